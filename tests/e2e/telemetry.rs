//! The export of sessions, as a collector gets it: spans, metrics, and nothing that was not asked for.
//!
//! Rule: everything that a user, a model or a file says contains [`WORD`]; where it must not leave, no byte of it may arrive.

mod collector;

use std::fs;
use std::net::TcpListener;

use kode_e2e::{Client, Offer, Project, Rotel, Script, call, say};
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value, json};

use self::collector::{Collector, attribute};

/// It is in all content and in the key of the collector.
const WORD: &str = "wombat";
const KEY: &str = "wombat-key";

/// A request to a collector may take this many milliseconds: longer than a test waits for the end of a process.
const UNBOUNDED: (&str, &str) = ("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000");

fn script() -> Script {
    let path = "{{cwd}}/wombat.txt";
    let edits = json!([
        { "old_string": "two", "new_string": "wombat two" },
        { "old_string": "six", "new_string": "wombat six" },
    ]);
    let task = json!({ "description": "wombat task", "prompt": "do the wombat task" });
    let write = json!({ "file_path": "{{cwd}}/wombat-new.txt", "content": "wombat\n" });
    Script::default()
        .when("^do the wombat task$", [call("Write", write), say("The wombat is written.")])
        .when(
            "^work",
            [
                call("Read", json!({ "file_path": path })),
                call("MultiEdit", json!({ "file_path": path, "edits": edits })),
                call("Task", task),
                say("The wombat is done."),
            ],
        )
        .otherwise([say("Hello, wombat.")])
}

fn project() -> Project {
    let project = Project::new(&script());
    project.write("wombat.txt", "one\ntwo\nthree\nfour\nfive\nsix\n");
    fs::create_dir_all(project.outside().join("user/.kode")).unwrap();
    project
}

/// Writes the user's own settings.
fn of_user(project: &Project, telemetry: &Value) {
    let settings = json!({ "telemetry": telemetry }).to_string();
    fs::write(project.outside().join("user/.kode/settings.json"), settings).unwrap();
}

fn home(project: &Project) -> String {
    project.outside().join("user").to_str().unwrap().to_owned()
}

fn open(project: &Project) -> Client {
    let client = project.start_as(&[], &[("HOME", &home(project)), ("COLLECTOR_KEY", KEY)]);
    client.initialize(Offer::kode().params(&project.workspace()));
    client
}

/// A run with the user's settings and these variables.
fn hello(project: &Project, variables: &[(&str, &str)]) {
    let home = home(project);
    let variables: Vec<_> = [("HOME", home.as_str())].iter().chain(variables).copied().collect();
    let output = project.run_as(&["run", "hello wombat"], "", &variables);
    assert_eq!((output.code, output.stdout.as_str()), (0, "Hello, wombat.\n"), "{output:?}");
}

/// A turn with prompts, a sub-agent, and a kept and an undone hunk; then the end of the server.
fn work(project: &Project) {
    let client = open(project);
    let session = client.session();
    let turn = session.prompt("work on the wombat");
    session.allow(0);
    session.allow(1);
    session.wait_done(&turn);
    let hunks = session.hunks();
    assert_eq!(hunks.len(), 3, "{hunks:?}");
    session.resolve(&[&hunks[0], &hunks[2]], "keep");
    session.resolve(&[&hunks[1]], "undo");
    assert_eq!(client.shut_down(), 0);
}

fn named<'s>(spans: &'s [Span], name: &str) -> Vec<&'s Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

fn one<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    let found = named(spans, name);
    let names: Vec<_> = spans.iter().map(|span| &span.name).collect();
    assert_eq!(found.len(), 1, "{name} in {names:?}");
    found[0]
}

fn of(span: &Span, key: &str) -> String {
    attribute(&span.attributes, key).unwrap_or_else(|| panic!("no {key} in {span:?}"))
}

#[test]
fn a_turn_passes_a_collector_that_others_wrote() {
    let (project, collector) = (project(), Collector::start());
    let Some(rotel) = Rotel::start(&collector.address, project.outside()) else { return };
    of_user(&project, &json!({ "endpoint": rotel.address() }));
    work(&project);
    rotel.end();
    let spans = collector.spans();
    let turn = one(&spans, "invoke_agent kode-ls");
    let (task, agent) = (one(&spans, "execute_tool Task"), one(&spans, "invoke_agent general-purpose"));
    assert_eq!((&task.parent_span_id, &agent.parent_span_id), (&turn.span_id, &task.span_id));
    let waits = named(&spans, "wait_for_permission");
    let parents: Vec<_> = waits.iter().map(|wait| &wait.parent_span_id).collect();
    assert_eq!(parents, [&turn.span_id, &agent.span_id]);
    let mut names: Vec<_> = collector.metrics().into_iter().map(|metric| metric.name).collect();
    names.sort();
    let wanted = ["gen_ai.client.operation.duration", "gen_ai.client.token.usage", "kode.cost", "kode.edits"];
    assert_eq!(names[..4], wanted);
    assert_eq!(attribute(&collector.resource().attributes, "service.name").as_deref(), Some("kode-ls"));
}

#[test]
fn a_turn_arrives_with_its_calls_prompts_and_sub_agents_and_without_a_word_of_them() {
    let (project, collector) = (project(), Collector::start());
    let headers = json!({ "x-key": { "fromEnv": "COLLECTOR_KEY" } });
    of_user(&project, &json!({ "endpoint": collector.address, "headers": headers }));
    work(&project);
    let spans = collector.spans();
    let turn = one(&spans, "invoke_agent kode-ls");
    assert_eq!((of(turn, "kode.turn.stop_reason").as_str(), turn.parent_span_id.len()), ("end_turn", 0));
    let session = of(turn, "gen_ai.conversation.id");
    assert!(session.starts_with("ses_"), "{session}");
    let agent = one(&spans, "invoke_agent general-purpose");
    let task = one(&spans, "execute_tool Task");
    assert_eq!((&agent.parent_span_id, &task.parent_span_id), (&task.span_id, &turn.span_id));
    for (tool, parent) in [("Read", turn), ("MultiEdit", turn), ("Write", agent)] {
        let span = one(&spans, &format!("execute_tool {tool}"));
        assert_eq!(span.parent_span_id, parent.span_id, "{tool}");
        assert_eq!(
            (of(span, "gen_ai.tool.name"), of(span, "kode.tool.outcome").as_str()),
            (tool.into(), "completed")
        );
        assert!(!of(span, "gen_ai.tool.call.id").is_empty());
    }
    let waits = named(&spans, "wait_for_permission");
    assert_eq!(waits.len(), 2);
    for (wait, parent) in waits.iter().zip([turn, agent]) {
        assert_eq!(
            (of(wait, "kode.permission.outcome").as_str(), &wait.parent_span_id),
            ("allow", &parent.span_id)
        );
        assert!(wait.end_time_unix_nano > wait.start_time_unix_nano);
    }
    let chats: Vec<_> = spans.iter().filter(|span| span.name.starts_with("chat ")).collect();
    let of_agent = chats.iter().filter(|chat| chat.parent_span_id == agent.span_id).count();
    let of_turn = chats.iter().filter(|chat| chat.parent_span_id == turn.span_id).count();
    assert_eq!((of_turn, of_agent), (4, 2));
    for chat in &chats {
        assert_eq!(
            (of(chat, "gen_ai.operation.name"), of(chat, "gen_ai.provider.name")),
            ("chat".into(), "anthropic".into())
        );
        assert_eq!(chat.name, format!("chat {}", of(chat, "gen_ai.request.model")));
        assert!(chat.end_time_unix_nano > chat.start_time_unix_nano, "{chat:?}");
        assert!(of(chat, "gen_ai.usage.input_tokens").parse::<u64>().is_ok());
    }
    assert!(
        spans
            .iter()
            .all(|span| span.trace_id == turn.trace_id && of(span, "gen_ai.conversation.id") == session)
    );
    let input = chats.iter().map(|chat| of(chat, "gen_ai.usage.input_tokens").parse::<f64>().unwrap());
    assert_eq!(
        collector.sum("gen_ai.client.token.usage", ("gen_ai.token.type", "input")),
        input.sum::<f64>()
    );
    assert!(collector.sum("gen_ai.client.operation.duration", ("gen_ai.provider.name", "anthropic")) > 0.0);
    assert!(collector.sum("kode.permission.wait", ("kode.permission.outcome", "allow")) > 0.0);
    assert_eq!(collector.sum("kode.edits", ("decision", "kept")), 2.0);
    assert_eq!(collector.sum("kode.edits", ("decision", "undone")), 1.0);
    assert!(collector.received().iter().all(|export| export.headers.contains("x-key: wombat-key")));
    let text = collector.text();
    assert!(!text.contains(WORD) && !text.contains(project.outside().to_str().unwrap()), "{text}");
}

#[test]
fn content_arrives_where_the_users_own_settings_ask_for_it() {
    let (project, collector) = (project(), Collector::start());
    of_user(&project, &json!({ "endpoint": collector.address, "content": true }));
    work(&project);
    let spans = collector.spans();
    let turn = one(&spans, "invoke_agent kode-ls");
    assert!(of(turn, "gen_ai.input.messages").contains("work on the wombat"));
    assert!(of(turn, "gen_ai.output.messages").contains("The wombat is done."));
    assert!(of(one(&spans, "execute_tool Read"), "gen_ai.tool.call.arguments").contains("wombat.txt"));
}

#[test]
fn the_variables_of_the_standard_name_collector_service_and_headers() {
    let (project, collector, other) = (project(), Collector::start(), Collector::start());
    let metrics = format!("{}/own/metrics", other.address);
    hello(
        &project,
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.address),
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", &metrics),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-team=wombat-key"),
            ("OTEL_SERVICE_NAME", "my-agent"),
            ("OTEL_RESOURCE_ATTRIBUTES", "team=blue"),
        ],
    );
    let resource = collector.resource();
    let said = |key: &str| attribute(&resource.attributes, key);
    assert_eq!((said("service.name"), said("team")), (Some("my-agent".to_owned()), Some("blue".to_owned())));
    assert!(said("service.version").is_some());
    assert!(collector.received().iter().all(|export| export.headers.contains("x-team: wombat-key")));
    assert!(collector.received().iter().all(|export| export.path == "/v1/traces"));
    assert!(other.received().iter().any(|export| export.path == "/own/metrics"));
    assert!(!collector.text().contains(WORD) && !other.text().contains(WORD));
    let arrived = collector.received().len();
    hello(&project, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.address), ("OTEL_SDK_DISABLED", "true")]);
    assert_eq!(collector.received().len(), arrived, "it is switched off");
}

#[test]
fn settings_of_a_workspace_switch_no_export_on_and_redirect_none() {
    let (project, collector, own) = (project(), Collector::start(), Collector::start());
    let settings = json!({ "telemetry": { "endpoint": collector.address, "content": true } }).to_string();
    for file in [".kode/settings.json", ".kode/settings.local.json", ".claude/settings.json"] {
        project.write(file, &settings);
    }
    let home = home(&project);
    let trusted = project.run_as(&["trust", "approve"], "", &[("HOME", &home)]);
    hello(&project, &[]);
    assert!(collector.received().is_empty(), "{trusted:?}");
    let doctor = project.run_as(&["doctor"], "", &[("HOME", &home)]).stdout;
    assert!(
        doctor.contains("`telemetry` is ignored here") && !doctor.contains(&collector.address),
        "{doctor}"
    );
    of_user(&project, &json!({ "endpoint": own.address }));
    hello(&project, &[]);
    assert!(collector.received().is_empty());
    assert!(!own.spans().is_empty() && !own.text().contains(WORD));
}

#[test]
fn a_collector_that_is_gone_or_silent_holds_no_end_up_and_costs_one_line_of_the_log() {
    let project = project();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", listener.local_addr().unwrap());
    let gone = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    for address in [&silent, &gone] {
        hello(&project, &[("OTEL_EXPORTER_OTLP_ENDPOINT", address), UNBOUNDED]);
    }
    let logs = fs::read_dir(project.home().join("log")).unwrap();
    let logs: String = logs.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    let warnings = logs.lines().filter(|line| line.contains(&gone)).count();
    assert_eq!(warnings, 1, "{logs}");
    of_user(&project, &json!({ "endpoint": silent }));
    let client = project.start_as(&[], &[("HOME", &home(&project)), UNBOUNDED]);
    client.initialize(Offer::kode().params(&project.workspace()));
    assert_eq!(client.session().run("hello wombat")["stopReason"], "end_turn");
    assert_eq!(client.shut_down(), 0);
}

#[test]
fn the_doctor_names_the_collector_and_no_header() {
    let project = project();
    let home = home(&project);
    let doctor = |variables: &[(&str, &str)]| {
        let variables: Vec<_> = [("HOME", home.as_str())].iter().chain(variables).copied().collect();
        let text = project.run_as(&["doctor"], "", &variables).stdout;
        let line = text.lines().find(|line| line.starts_with("telemetry")).map(str::to_owned);
        assert!(!text.contains(WORD), "{text}");
        line.unwrap_or_else(|| panic!("no line in {text}"))
    };
    assert!(doctor(&[]).ends_with(" off"));
    let by_variables = doctor(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:wombat-key@127.0.0.1:9"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-team=wombat-key"),
    ]);
    assert!(by_variables.contains("http://127.0.0.1:9/v1/traces"), "{by_variables}");
    of_user(
        &project,
        &json!({ "endpoint": "http://127.0.0.1:9", "headers": { "x-key": { "fromEnv": "COLLECTOR_KEY" } } }),
    );
    assert!(doctor(&[("COLLECTOR_KEY", KEY)]).contains("http://127.0.0.1:9/v1/metrics, without content"));
    assert!(doctor(&[]).contains("COLLECTOR_KEY"), "what is missing has a name");
}
