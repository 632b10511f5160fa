//! A server that misbehaves: what its user sees, what the model hears, and that nothing is left behind.

use std::fs;
use std::path::Path;

use kode_e2e::system::is_running;
use kode_e2e::{LIMIT, Project, Script, Session, call, say};
use serde_json::{Value, json};

use super::{faulty, listed, open, program, start, user_home};

fn tool(name: &str) -> String {
    format!("mcp__fault__{name}")
}

/// A session in which nothing is asked.
fn unasked<'a>(client: &'a kode_e2e::Client) -> Session<'a> {
    client.session_with(json!({ "mode": "bypassPermissions" }))
}

fn entry(how: &str, log: &Path) -> Value {
    let mut entry = program(&faulty(), &[how]);
    entry["env"] = json!({ "FAULT_LOG": log, "GIVEN": "${FAULT_GIVEN:-by default}" });
    entry["recovery"] = json!({ "initialDelay": 10, "maxDelay": 20, "maxAttempts": 3 });
    entry
}

/// Waits until a state of the server is reported that fits.
fn wait_state(session: &Session<'_>, what: &str, mut fits: impl FnMut(&Value) -> bool) -> Value {
    let event = session.wait_event(what, |event| {
        event["type"] == "mcp_changed" && event["servers"].as_array().unwrap().iter().any(&mut fits)
    });
    event["servers"].as_array().unwrap().iter().find(|server| fits(server)).unwrap().clone()
}

/// The result of the model's last call.
fn last_result(project: &Project) -> (String, bool) {
    let [result] = project.model.last_results().try_into().unwrap();
    result
}

/// Waits until a file has a line that fits.
fn wait_line(file: &Path, fits: impl Fn(&str) -> bool) -> String {
    let began = std::time::Instant::now();
    loop {
        let text = fs::read_to_string(file).unwrap_or_default();
        if let Some(line) = text.lines().find(|line| fits(line)) {
            return line.to_owned();
        }
        assert!(began.elapsed() < LIMIT, "no such line: {text}");
        std::thread::yield_now();
    }
}

/// One call of a tool of the faulty server in a session where nothing is asked.
fn one_call(how: &str, name: &str, input: Value, variables: &[(&str, &str)]) -> (String, bool) {
    let project = Project::new(&Script::new([call(&tool(name), input), say("Done.")]));
    let log = project.outside().join("fault.log");
    let client = open(&project, &json!({ "fault": entry(how, &log) }), variables);
    let session = unasked(&client);
    session.run("go");
    last_result(&project)
}

#[test]
fn a_call_asks_with_its_arguments_and_a_yes_for_the_session_covers_the_tool() {
    let echo = || call(&tool("echo"), json!({ "text": "hello" }));
    let project = Project::new(&Script::new([echo(), echo(), say("Done.")]));
    let log = project.outside().join("fault.log");
    let client = open(&project, &json!({ "fault": entry("", &log) }), &[]);
    let session = client.session();
    let turn = session.prompt("go");
    let prompt = session.wait_permission(0);
    assert_eq!(prompt["preview"]["paths"], json!(["fault:echo {\"text\":\"hello\"}"]), "{prompt}");
    assert_eq!(prompt["offers"][0]["rules"], json!(["mcp__fault__echo"]), "{prompt}");
    session.respond(&prompt, json!({ "decision": "allow", "scope": "session" })).unwrap();
    session.wait_done(&turn);
    assert_eq!(last_result(&project), ("hello".to_owned(), false));
    let offered = project.model.requests().last().unwrap()["tools"].as_array().unwrap().clone();
    let echo = offered.iter().find(|offered| offered["name"] == tool("echo")).unwrap();
    assert_eq!(echo["input_schema"]["properties"]["text"]["minLength"], 2, "the schema is the server's own");
    let system = project.model.requests().last().unwrap()["system"].to_string();
    assert!(system.contains("Call echo before anything else."), "{system}");
}

#[test]
fn servers_start_behind_the_first_request_and_not_beside_what_goes_before_it() {
    let project = Project::new(&Script::new([say("Done.")]));
    let log = project.outside().join("fault.log");
    let client = open(&project, &json!({ "fault": entry("", &log) }), &[("KODE_LS_MCP_WAIT", "0")]);
    // It runs between the prompt and the request, for longer than the server needs to write its first line.
    let look =
        format!("sleep 0.3; if test -e {0}; then touch {0}.too-early; fi; touch {0}.looked", log.display());
    let hook = json!([{ "hooks": [{ "type": "command", "command": look }] }]);
    let settings = user_home(&project).join(".kode-ls/settings.json");
    let mut written: Value = serde_json::from_str(&fs::read_to_string(&settings).unwrap()).unwrap();
    written["hooks"] = json!({ "UserPromptSubmit": hook });
    fs::write(&settings, written.to_string()).unwrap();
    let session = client.session();
    session.run("go");
    wait_state(&session, "the server is there", |server| server["state"] == "connected");
    let (looked, early) = (log.with_extension("log.looked"), log.with_extension("log.too-early"));
    assert!(looked.exists() && log.exists() && !early.exists());
}

#[test]
fn arguments_that_do_not_fit_reach_no_server() {
    let (text, is_error) = one_call("", "echo", json!({ "text": "x" }), &[]);
    assert!(is_error && text.contains("`/text`"), "{text}");
}

#[test]
fn an_error_of_the_server_is_reported_as_one() {
    assert_eq!(one_call("", "fail", json!({}), &[]).0.lines().next(), Some("the disk is on fire"));
}

#[test]
fn a_server_gets_the_variables_of_its_entry_and_no_key() {
    let (text, _) = one_call("", "environment", json!({}), &[("FAULT_GIVEN", "by the user")]);
    let folder = text.lines().find_map(|line| line.strip_prefix("CLAUDE_PROJECT_DIR="));
    assert!(text.contains("GIVEN=by the user\nANTHROPIC_API_KEY=\nCLAUDE_PROJECT_DIR="), "{text}");
    assert!(folder.is_some_and(|folder| Path::new(folder).is_absolute()), "{text}");
}

#[test]
fn garbage_floods_and_answers_to_nobody_do_not_disturb() {
    for how in ["garbage", "flood", "wrong-id"] {
        assert_eq!(
            one_call(how, "echo", json!({ "text": "hello" }), &[]),
            ("hello".to_owned(), false),
            "{how}"
        );
    }
}

#[test]
fn a_huge_result_is_cut_and_all_of_it_is_in_a_file() {
    let (text, is_error) = one_call("", "huge", json!({ "size": 1_000_000 }), &[]);
    assert!(!is_error && text.len() < 120_000, "{}", text.len());
    let file = text.split("The whole result is in ").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
    // The project is gone with its folder; that it named one is what can be seen.
    assert!(file.ends_with(".txt"), "{file}");
}

#[test]
fn a_call_that_hangs_ends_with_its_time_and_the_server_is_reported() {
    let project = Project::new(&Script::new([
        call(&tool("hang"), json!({})),
        call(&tool("echo"), json!({ "text": "hello" })),
        say("Done."),
    ]));
    let log = project.outside().join("fault.log");
    let mut entry = entry("", &log);
    entry["timeout"] = json!(200);
    let client = open(&project, &json!({ "fault": entry }), &[]);
    let session = unasked(&client);
    session.run("go");
    let results: Vec<_> = session.calls().iter().map(|call| call["state"].clone()).collect();
    assert_eq!(results, ["FAILED", "COMPLETED"]);
    wait_line(&log, |line| line.starts_with("cancelled"));
}

#[test]
fn a_call_that_the_user_cancels_is_cancelled_at_the_server() {
    let project = Project::new(&Script::new([call(&tool("hang"), json!({})), say("Done.")]));
    let log = project.outside().join("fault.log");
    let client = open(&project, &json!({ "fault": entry("", &log) }), &[]);
    let session = unasked(&client);
    let turn = session.prompt("go");
    wait_line(&log, |line| line == "call hang");
    session.call("agent/turn/cancel", json!({}));
    session.wait_done(&turn);
    wait_line(&log, |line| line.starts_with("cancelled"));
}

#[test]
fn a_server_killed_in_a_call_is_started_again_and_its_tools_return() {
    let project = Project::new(
        &Script::default()
            .when("^first$", [call(&tool("crash"), json!({})), say("It crashed.")])
            .when("^second$", [call(&tool("echo"), json!({ "text": "hello" })), say("Done.")]),
    );
    let log = project.outside().join("fault.log");
    let client = open(&project, &json!({ "fault": entry("", &log) }), &[]);
    let session = unasked(&client);
    session.run("first");
    let (text, is_error) = last_result(&project);
    assert!(is_error && text.contains("ended"), "{text}");
    session.run("second");
    assert_eq!(last_result(&project), ("hello".to_owned(), false));
    let begun = fs::read_to_string(&log).unwrap().lines().filter(|line| line.starts_with("pid")).count();
    assert_eq!(begun, 2, "one process at first, and one after the crash");
}

#[test]
fn one_that_ends_at_once_or_is_not_there_says_why_and_costs_nobody_else() {
    let project = Project::new(&Script::new([call(&tool("echo"), json!({ "text": "hello" })), say("Done.")]));
    let log = project.outside().join("fault.log");
    let servers = json!({
        "fault": entry("", &log),
        "ends": entry("exit", &log),
        "missing": { "command": "no-such-program-anywhere" },
        "unset": { "command": "x", "args": ["${NOT_SET_ANYWHERE}"] },
        "broken": { "type": "carrier pigeon" },
        "off": { "command": "x", "enabled": false },
    });
    let client = open(&project, &servers, &[]);
    let session = unasked(&client);
    session.run("go");
    assert_eq!(last_result(&project), ("hello".to_owned(), false));
    let ends = wait_state(&session, "the end of all attempts", |server| {
        server["name"] == "ends" && server["state"] == "failed"
    });
    assert_eq!(ends["failedAttempts"], 3);
    assert!(ends["failure"]["stderr"].as_str().unwrap().contains("the token is missing"), "{ends}");
    for (name, state, said) in [
        ("missing", "failed", "was not found"),
        ("unset", "failed", "NOT_SET_ANYWHERE"),
        ("broken", "failed", "carrier pigeon"),
        ("off", "disabled", ""),
    ] {
        let server = listed(&client, name);
        let failure = &server["failure"];
        assert_eq!(server["state"], state, "{server}");
        assert!(failure["message"].as_str().unwrap_or_default().contains(said), "{server}");
        assert!(said.is_empty() || !failure["hint"].as_str().unwrap().is_empty(), "{server}");
    }
}

#[test]
fn one_that_never_speaks_holds_nobody_up_and_is_given_up_after_its_time() {
    let project = Project::new(&Script::new([say("Hello.")]));
    let log = project.outside().join("fault.log");
    let variables = [("MCP_TIMEOUT", "150"), ("KODE_LS_MCP_WAIT", "0")];
    let client = open(&project, &json!({ "fault": entry("hang", &log) }), &variables);
    let session = unasked(&client);
    assert_eq!(session.run("go")["stopReason"], "end_turn");
    let failed = wait_state(&session, "the end of all attempts", |server| server["state"] == "failed");
    assert!(failed["failure"]["message"].as_str().unwrap().contains("did not answer within"), "{failed}");
}

#[test]
fn the_tools_of_a_slow_one_come_with_a_later_round() {
    let project = Project::new(
        &Script::default().when("^first$", [say("Hello.")]).when("^second$", [say("Hello again.")]),
    );
    let log = project.outside().join("fault.log");
    let client = open(&project, &json!({ "fault": entry("slow", &log) }), &[("KODE_LS_MCP_WAIT", "0")]);
    let session = unasked(&client);
    session.run("first");
    wait_state(&session, "the connection", |server| server["state"] == "connected");
    session.run("second");
    let has_tools = |request: &Value| request["tools"].to_string().contains("mcp__fault__echo");
    let requests = project.model.requests();
    assert!(!has_tools(requests.first().unwrap()) && has_tools(requests.last().unwrap()));
}

#[test]
fn the_first_request_of_a_run_has_the_tools_of_a_slow_one() {
    let project = Project::new(&Script::new([say("Hello.")]));
    let home = user_home(&project);
    fs::create_dir_all(home.join(".kode-ls")).unwrap();
    let servers = json!({ "fault": entry("slow", &project.outside().join("fault.log")) });
    let settings = json!({ "mcpServers": servers, "sandbox": { "enabled": false } });
    fs::write(home.join(".kode-ls/settings.json"), settings.to_string()).unwrap();
    let output = project.run_as(&["run", "first"], "", &[("HOME", home.to_str().unwrap())]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "Hello.\n"), "{output:?}");
    let requests = project.model.requests();
    assert!(requests[0]["tools"].to_string().contains("mcp__fault__echo"), "{}", requests[0]["tools"]);
}

#[test]
fn progress_is_shown_while_a_call_runs() {
    let project = Project::new(&Script::new([call(&tool("progress"), json!({})), say("Done.")]));
    let log = project.outside().join("fault.log");
    let client = open(&project, &json!({ "fault": entry("", &log) }), &[]);
    let session = unasked(&client);
    session.run("go");
    session.wait_event("progress", |event| {
        event["type"] == "tool:progress" && event["text"].as_str().unwrap().contains("of 3: working")
    });
}

#[test]
fn a_question_of_a_server_goes_to_the_user_and_the_folders_of_the_workspace_to_the_server() {
    let project = Project::new(&Script::new([
        call(&tool("ask"), json!({})),
        call(&tool("roots"), json!({})),
        say("Done."),
    ]));
    let log = project.outside().join("fault.log");
    let client = open(&project, &json!({ "fault": entry("", &log) }), &[]);
    let session = unasked(&client);
    let turn = session.prompt("go");
    let asked = session.wait_event("the question", |event| event["type"] == "question_asked");
    let question = &asked["question"];
    assert!(question["questions"][0]["question"].as_str().unwrap().contains("`fault` asks: Which color?"));
    let answer = json!({ "questionId": question["questionId"], "answers": [{ "labels": ["blue"] }] });
    session.call("agent/question/respond", answer);
    session.wait_done(&turn);
    let (text, _) = last_result(&project);
    let folder = url::Url::from_file_path(project.workspace()).unwrap();
    assert!(text.contains(folder.as_str()), "{text}");
    let first = project.model.requests()[1]["messages"].to_string();
    assert!(first.contains("accept") && first.contains("blue"), "{first}");
}

#[test]
fn tools_that_change_are_looked_up_again_and_reported_until_they_are_accepted() {
    let project = Project::new(
        &Script::default()
            .when("^first$", [call(&tool("change"), json!({})), say("Changed.")])
            .when("^second$", [say("Done.")]),
    );
    let log = project.outside().join("fault.log");
    let client = open(&project, &json!({ "fault": entry("", &log) }), &[]);
    let session = unasked(&client);
    session.run("first");
    let changed = wait_state(&session, "the change", |server| !server["changedTools"].is_null());
    assert!(changed["changedTools"].as_array().unwrap().contains(&json!("new one")), "{changed}");
    session.run("second");
    let tools = project.model.requests().last().unwrap()["tools"].to_string();
    assert!(tools.contains("mcp__fault__new_one") && tools.contains("version 2"), "{tools}");
    session.call("agent/mcp/enable", json!({ "server": "fault" }));
    assert!(listed(&client, "fault")["changedTools"].is_null());
    session.call("agent/mcp/disable", json!({ "server": "fault" }));
    assert_eq!(listed(&client, "fault")["state"], "disabled");
    wait_line(&log, |line| line == "end");
}

#[test]
fn a_server_of_the_workspace_waits_for_approval_and_a_swapped_entry_waits_again() {
    let project = Project::new(
        &Script::default()
            .when("^use it$", [call(&tool("echo"), json!({ "text": "hello" })), say("Done.")])
            .otherwise([say("Hello.")]),
    );
    let log = project.outside().join("fault.log");
    let mut server = entry("", &log);
    server["sandbox"] = json!(false);
    project.write(".mcp.json", json!({ "mcpServers": { "fault": server } }).to_string());
    let client = start(&project, &[]);
    let session = unasked(&client);
    session.run("go");
    assert_eq!(listed(&client, "fault")["state"], "waitingForApproval");
    assert!(!log.exists(), "nothing is started before");
    let waiting = client.call("agent/trust/list", json!({ "sessionId": session.id }))["waiting"].clone();
    let digests: Vec<_> = waiting.as_array().unwrap().iter().map(|waits| waits["digest"].clone()).collect();
    session.call("agent/trust/approve", json!({ "digests": digests }));
    session.run("use it");
    assert_eq!(last_result(&project), ("hello".to_owned(), false));
    server["env"]["GIVEN"] = json!("something else");
    project.write(".mcp.json", json!({ "mcpServers": { "fault": server } }).to_string());
    session.run("go");
    assert_eq!(listed(&client, "fault")["state"], "waitingForApproval");
    wait_line(&log, |line| line == "end");
}

#[test]
fn an_entry_that_waits_for_approval_is_named_where_a_weaker_one_is_used() {
    let project = Project::new(&Script::new([say("Hello.")]));
    let log = project.outside().join("fault.log");
    project.write(".mcp.json", json!({ "mcpServers": { "fault": entry("stronger", &log) } }).to_string());
    let client = open(&project, &json!({ "fault": entry("", &log) }), &[]);
    unasked(&client).run("go");
    let listed = client.call("agent/mcp/list", json!({}));
    let left_out = listed["leftOut"].as_str().unwrap_or_else(|| panic!("{listed}"));
    assert!(left_out.contains("`fault` of") && left_out.contains(".mcp.json"), "{left_out}");
    assert!(left_out.contains("waits for your approval") && left_out.contains("settings.json"), "{left_out}");
}

#[test]
fn two_sessions_share_one_process_that_ends_with_the_last_and_with_the_server() {
    let project = Project::new(&Script::new([say("Hello.")]));
    let log = project.outside().join("fault.log");
    let client = open(&project, &json!({ "fault": entry("", &log) }), &[]);
    let (one, two) = (unasked(&client), unasked(&client));
    one.run("go");
    two.run("go");
    let count = |what: &str| {
        fs::read_to_string(&log).unwrap_or_default().lines().filter(|line| line.starts_with(what)).count()
    };
    assert_eq!(count("pid"), 1);
    one.call("agent/session/close", json!({}));
    assert_eq!(count("end"), 0);
    two.call("agent/session/close", json!({}));
    wait_line(&log, |line| line == "end");
    let three = unasked(&client);
    three.run("go");
    let pid = fs::read_to_string(&log)
        .unwrap()
        .lines()
        .filter_map(|line| line.strip_prefix("pid "))
        .next_back()
        .unwrap()
        .to_owned();
    client.shut_down();
    assert!(!is_running(pid.parse().unwrap()));
}

#[test]
fn a_server_in_the_sandbox_writes_in_the_workspace_alone_and_ends_with_a_killed_server_of_ours() {
    let project = Project::new(&Script::new([
        call(&tool("write"), json!({ "path": "{{cwd}}/inside.txt" })),
        call(&tool("write"), json!({ "path": "{{cwd}}/../outside.txt" })),
        say("Done."),
    ]));
    let home = user_home(&project);
    fs::create_dir_all(home.join(".kode-ls")).unwrap();
    let settings = json!({ "mcpServers": { "fault": program(&faulty(), &[""]) } });
    fs::write(home.join(".kode-ls/settings.json"), settings.to_string()).unwrap();
    let client = start(&project, &[]);
    let session = unasked(&client);
    session.run("go");
    // Files written there may be in a folder of the sandbox that is called the same.
    assert_eq!(project.read("inside.txt"), "written\n");
    assert!(!project.outside().join("outside.txt").exists());
    client.kill();
    let began = std::time::Instant::now();
    while processes_of(&project) > 0 {
        assert!(began.elapsed() < LIMIT, "the server of the sandbox goes on");
        std::thread::yield_now();
    }
}

/// How many processes run in the project's folder.
fn processes_of(project: &Project) -> usize {
    let workspace = project.workspace();
    let is_there = |entry: &fs::DirEntry| {
        fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&workspace))
    };
    fs::read_dir("/proc").unwrap().flatten().filter(is_there).count()
}

#[test]
fn the_command_line_lists_and_tests_servers() {
    let project = Project::new(&Script::new([say("Hello.")]));
    let home = user_home(&project);
    fs::create_dir_all(home.join(".kode-ls")).unwrap();
    let mut good = program(&faulty(), &[""]);
    good["sandbox"] = json!(false);
    let settings =
        json!({ "mcpServers": { "fault": good, "missing": { "command": "no-such-program-anywhere" } } });
    fs::write(home.join(".kode-ls/settings.json"), settings.to_string()).unwrap();
    let state = project.home();
    let variables = [("HOME", home.to_str().unwrap()), ("KODE_LS_HOME", state.to_str().unwrap())];
    let run = |arguments: &[&str]| kode_e2e::run(arguments, Some(&project.workspace()), &variables, "");
    let listed = run(&["mcp", "list"]);
    assert!(listed.stdout.contains("fault  not started  stdio") && listed.code == 0, "{listed:?}");
    let tested = run(&["mcp", "test", "fault"]);
    assert!(tested.code == 0 && tested.stdout.contains("mcp__fault__echo"), "{tested:?}");
    let missing = run(&["mcp", "test", "missing"]);
    assert!(missing.code == 1 && missing.stdout.contains("was not found"), "{missing:?}");
    let unknown = run(&["mcp", "test", "nobody"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("fault, missing"), "{unknown:?}");
}

#[test]
fn the_client_is_named_after_the_server_and_a_tool_without_a_description_too() {
    let echo = call(&tool("echo"), json!({ "text": "hello" }));
    let project = Project::new(&Script::new([echo, say("Done.")]));
    let log = project.outside().join("fault.log");
    let mut trusted = entry("undescribed", &log);
    trusted["trustAnnotations"] = json!(true);
    let client = open(&project, &json!({ "fault": trusted }), &[]);
    let session = client.session();
    session.run("go");
    assert_eq!(last_result(&project), ("hello".to_owned(), false), "what only looks is not asked for");
    let named = wait_line(&log, |line| line.starts_with("client"));
    assert!(named.contains("\"name\":\"kode-fault\"") && named.contains("\"version\":"), "{named}");
    let offered = project.model.last_request()["tools"].as_array().unwrap().clone();
    let echo = offered.iter().find(|offered| offered["name"] == tool("echo")).unwrap();
    assert_eq!(echo["description"], "The tool `echo` of the MCP server `fault`.");
    session.submit("/mcp tools");
    session.wait_event("the tools", |event| event["item"].to_string().contains("mcp__fault__echo"));
}
