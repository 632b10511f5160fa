//! MCP servers that others wrote, from the registries of npm and PyPI, over every form of the wire.
//!
//! Rule: they are where `tests/tools/install-mcp.sh` puts them, or where `KODE_LS_MCP_SERVERS` says; where they are not, the
//! tests fail and say how to install them.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;

use kode_e2e::{Process, Project, Script, Session, call, say};
use serde_json::{Value, json};

use super::{listed, open, program};

/// The folder the servers are installed in.
fn servers() -> PathBuf {
    let installed = std::env::var_os("KODE_LS_MCP_SERVERS").map(PathBuf::from).unwrap_or_else(|| {
        let tools = std::env::var_os("KODE_LS_TOOLS").map(PathBuf::from).unwrap_or_else(|| {
            let home = || PathBuf::from(std::env::var_os("HOME").expect("a home folder")).join(".cache");
            let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).unwrap_or_else(home);
            cache.join("kode-ls-tools")
        });
        tools.join("mcp")
    });
    assert!(
        installed.join(".complete").is_file(),
        "there are no MCP servers in {}: run tests/tools/install-mcp.sh, or set KODE_LS_MCP_SERVERS",
        installed.display()
    );
    installed
}

fn node(name: &str) -> PathBuf {
    servers().join("node_modules/.bin").join(name)
}

fn python(name: &str) -> PathBuf {
    servers().join("python/bin").join(name)
}

/// The results of a server for the calls of a turn without questions.
fn results(
    entry: Value,
    name: &str,
    calls: Vec<(&str, Value)>,
    prepare: impl FnOnce(&Project),
) -> Vec<(String, bool)> {
    let count = calls.len();
    let steps = calls.into_iter().map(|(tool, input)| call(&format!("mcp__{name}__{tool}"), input));
    let project = Project::new(&Script::new(steps.chain([say("Done.")])));
    prepare(&project);
    let entry: Value =
        serde_json::from_str(&entry.to_string().replace("{{cwd}}", project.workspace().to_str().unwrap()))
            .unwrap();
    let client = open(&project, &json!({ name: entry }), &[]);
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("go");
    assert_eq!(listed(&client, name)["state"], "connected", "{}", listed(&client, name));
    let results = results_of(&project);
    assert_eq!(results.len(), count);
    results
}

/// The results of all calls, in order.
fn results_of(project: &Project) -> Vec<(String, bool)> {
    let request = project.model.last_request();
    request["messages"].as_array().unwrap().iter().skip(1).flat_map(calls_in).collect()
}

fn calls_in(message: &Value) -> Vec<(String, bool)> {
    let is_result = message["content"]
        .as_array()
        .is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_result"));
    if is_result { kode_e2e::results_of(message) } else { Vec::new() }
}

#[test]
fn filesystem_reads_and_writes_and_what_it_changes_can_be_undone() {
    let project = Project::new(&Script::new([
        call("mcp__files__read_text_file", json!({ "path": "{{cwd}}/a.txt" })),
        call("mcp__files__write_file", json!({ "path": "{{cwd}}/a.txt", "content": "new\n" })),
        say("Done."),
    ]));
    project.write("a.txt", "old\n");
    let entry = program(&node("mcp-server-filesystem"), &[project.workspace().to_str().unwrap()]);
    let client = open(&project, &json!({ "files": entry }), &[]);
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("go");
    let results = results_of(&project);
    assert!(results[0].0.contains("old") && !results[1].1, "{results:?}");
    assert_eq!(project.read("a.txt"), "new\n");
    let hunks = session.hunks();
    assert_eq!(hunks.len(), 1, "what a server changes is the agent's change like any other");
    session.resolve(&[&hunks[0]], "undo");
    assert_eq!(project.read("a.txt"), "old\n");
}

#[test]
fn memory_remembers_from_call_to_call() {
    let mut entry = program(&node("mcp-server-memory"), &[]);
    entry["env"] = json!({ "MEMORY_FILE_PATH": "{{cwd}}/memory.json" });
    let entity = json!({ "name": "Ada", "entityType": "person", "observations": ["writes programs"] });
    let results = results(
        entry,
        "memory",
        vec![("create_entities", json!({ "entities": [entity] })), ("read_graph", json!({}))],
        |_| {},
    );
    assert!(results[1].0.contains("writes programs"), "{results:?}");
}

#[test]
fn sequential_thinking_checks_its_arguments_and_answers() {
    let thought =
        json!({ "thought": "One.", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1 });
    let results = results(
        program(&node("mcp-server-sequential-thinking"), &[]),
        "thinking",
        vec![("sequentialthinking", json!({ "thought": "One." })), ("sequentialthinking", thought)],
        |_| {},
    );
    assert!(results[0].1 && results[0].0.contains("nextThoughtNeeded"), "{results:?}");
    assert!(!results[1].1, "{results:?}");
}

#[test]
fn git_and_time_and_fetch_of_pypi_answer() {
    let git = results(
        program(&python("mcp-server-git"), &["--repository", "{{cwd}}"]),
        "git",
        vec![("git_status", json!({ "repo_path": "{{cwd}}" }))],
        |project| {
            let made = std::process::Command::new("git")
                .args(["init", "-q", "-b", "trunk"])
                .arg(project.workspace())
                .status();
            assert!(made.unwrap().success());
            project.write("a.txt", "a\n");
        },
    );
    assert!(git[0].0.contains("a.txt"), "{git:?}");
    let time = results(
        program(&python("mcp-server-time"), &["--local-timezone", "UTC"]),
        "time",
        vec![("get_current_time", json!({ "timezone": "Europe/Berlin" }))],
        |_| {},
    );
    assert!(time[0].0.contains("Europe/Berlin"), "{time:?}");
    let page = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/page", page.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in page.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            while lines.next().is_some_and(|line| !line.is_empty()) {}
            let body = "A page of plain text.";
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            // A client that does not wait for the answer has gone.
            let _ = std::io::Write::write_all(&mut &stream, format!("{head}{body}").as_bytes());
        }
    });
    let fetch = results(
        program(&python("mcp-server-fetch"), &["--ignore-robots-txt", "--allow-private-ips"]),
        "fetch",
        vec![("fetch", json!({ "url": url }))],
        |_| {},
    );
    assert!(fetch[0].0.contains("A page of plain text."), "{fetch:?}");
}

/// Starts the server called everything so that it listens, and gives its port.
fn everything(form: &str) -> (Process, u16) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let port_text = port.to_string();
    let program = node("mcp-server-everything");
    let mut process = Process::start_program(&program, &[form], None, &[("PORT", &port_text)]);
    let stderr = BufReader::new(process.child().stderr.take().expect("stderr is a pipe"));
    let stdout = BufReader::new(process.child().stdout.take().expect("stdout is a pipe"));
    std::thread::spawn(move || stdout.lines().count());
    let mut lines = stderr.lines().map_while(Result::ok);
    let listens = lines.any(|line| line.contains("listening") || line.contains("running on port"));
    assert!(listens, "{form} does not listen");
    std::thread::spawn(move || lines.count());
    (process, port)
}

/// The demands on every form of the server called everything.
fn check_everything(entry: &Value) {
    let project = Project::new(
        &Script::default()
            .when(
                "^echo$",
                [
                    call("mcp__everything__echo", json!({ "message": "hello" })),
                    call("mcp__everything__get-tiny-image", json!({})),
                    call("ListMcpResourcesTool", json!({ "server": "everything" })),
                    say("Done."),
                ],
            )
            .otherwise([say("Hello.")]),
    );
    let client = open(&project, &json!({ "everything": entry }), &[]);
    let session: Session<'_> = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("echo");
    let server = listed(&client, "everything");
    assert_eq!(server["state"], "connected", "{server}");
    assert!(server["tools"].as_u64().unwrap() > 5 && server["prompts"].as_u64().unwrap() > 0, "{server}");
    assert!(server["title"].is_string(), "{server}");
    let messages = project.model.last_request()["messages"].clone();
    let results = results_of(&project);
    assert!(results[0].0.contains("hello"), "{results:?}");
    assert!(messages.to_string().contains("image/png"), "a picture is sent as one");
    assert!(results[2].0.contains("everything"), "{results:?}");
    session.call("agent/mcp/reconnect", json!({ "server": "everything" }));
    session.wait_event("the new connection", |event| {
        event["type"] == "mcp_changed" && event["servers"][0]["state"] == "connected"
    });
}

#[test]
fn everything_over_standard_input() {
    check_everything(&program(&node("mcp-server-everything"), &["stdio"]));
}

#[test]
fn everything_over_streamable_http() {
    let (_process, port) = everything("streamableHttp");
    check_everything(&json!({ "type": "http", "url": format!("http://127.0.0.1:{port}/mcp") }));
}

#[test]
fn everything_over_server_sent_events_said_or_found_out() {
    let (_process, port) = everything("sse");
    let url = format!("http://127.0.0.1:{port}/sse");
    check_everything(&json!({ "type": "sse", "url": url }));
    check_everything(&json!({ "url": url }));
}

#[test]
fn a_server_in_the_network_that_goes_away_is_reached_again() {
    let (mut process, port) = everything("streamableHttp");
    let project = Project::new(&Script::new([say("Hello.")]));
    let entry = json!({
        "type": "http", "url": format!("http://127.0.0.1:{port}/mcp"), "healthCheck": { "interval": 50 },
        "recovery": { "initialDelay": 20, "maxDelay": 20, "maxAttempts": 3 },
    });
    let client = open(&project, &json!({ "everything": entry }), &[]);
    let session = client.session();
    session.run("go");
    process.kill();
    let failed = session.wait_event("the loss", |event| {
        event["type"] == "mcp_changed" && event["servers"][0]["state"] == "failed"
    });
    assert_eq!(failed["servers"][0]["failure"]["class"], "transient", "{failed}");
    let _again = {
        let program = node("mcp-server-everything");
        let text = port.to_string();
        let mut process = Process::start_program(&program, &["streamableHttp"], None, &[("PORT", &text)]);
        let stderr = BufReader::new(process.child().stderr.take().expect("stderr is a pipe"));
        let mut lines = stderr.lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("listening")));
        std::thread::spawn(move || lines.count());
        process
    };
    session.call("agent/mcp/reconnect", json!({ "server": "everything" }));
    let before = session.records().len();
    client.wait_for("the new connection", |received| {
        let records = received.events(&session.id);
        records
            .iter()
            .skip(before.saturating_sub(1))
            .find(|record| {
                record["event"]["type"] == "mcp_changed"
                    && record["event"]["servers"][0]["state"] == "connected"
            })
            .cloned()
    });
}

#[test]
fn a_server_that_wants_a_token_is_reported_as_one() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            while lines.next().is_some_and(|line| !line.is_empty()) {}
            let head = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            // A client that does not wait for the answer has gone.
            let _ = std::io::Write::write_all(&mut &stream, head.as_bytes());
        }
    });
    let project = Project::new(&Script::new([say("Hello.")]));
    let client = open(&project, &json!({ "closed": { "type": "http", "url": url } }), &[]);
    let session = client.session();
    session.run("go");
    let needs = session.wait_event("what it needs", |event| {
        event["type"] == "mcp_changed" && event["servers"][0]["state"] == "needsAuth"
    });
    let failure = &needs["servers"][0]["failure"];
    assert_eq!(failure["class"], "auth");
    assert!(failure["hint"].as_str().unwrap().contains("agent/mcp/authenticate"), "{failure}");
}
