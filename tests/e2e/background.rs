//! Commands in the background: started, checked, ended by those who may, and never left behind.
//!
//! Rule: a command writes the ids of its processes, so that a test knows what has to be gone.

use std::path::Path;

use kode_e2e::{Client, LIMIT, Project, Script, Session, Step, call, say};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

/// A command that continues like a server, with a child, and names both.
const SERVER: &str = "sleep 600 & echo child $! shell $$ ready; wait";

fn background(command: &str) -> Step {
    call("Bash", json!({ "command": command, "run_in_background": true }))
}

fn look(id: &str) -> Step {
    call("BashOutput", json!({ "task_id": id, "block": true }))
}

fn session(client: &Client) -> Session<'_> {
    client.session_with(json!({ "mode": "bypassPermissions" }))
}

/// The results that the model was given, oldest first.
fn results(project: &Project) -> Vec<String> {
    let request = project.model.last_request();
    let messages = request["messages"].as_array().unwrap().iter();
    messages.flat_map(kode_e2e::results_of).map(|(text, _)| text).collect()
}

/// Waits until nothing that the commands have started runs any more. It is reported by what it is and where, not by a
/// number: in the sandbox processes have numbers of their own. Nothing reports the end of another process's child, so it is
/// looked for.
fn assert_gone(project: &Project) {
    let workspace = project.workspace();
    let is_of_command = |process: &Path| {
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        let place = std::fs::read_link(process.join("cwd")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("sleep") && place.starts_with(&workspace)
    };
    let running = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|process| process.path());
        processes.filter(|process| is_of_command(process)).collect::<Vec<_>>()
    };
    let until = std::time::Instant::now() + LIMIT;
    while !running().is_empty() {
        assert!(std::time::Instant::now() < until, "{:?} still run", running());
        std::thread::yield_now();
    }
}

/// The whole output of something, page by page.
fn output(session: &Session<'_>, of: &Value, limit: usize) -> String {
    let mut text = String::new();
    let mut params = of.clone();
    params["limit"] = json!(limit);
    loop {
        params["offset"] = json!(text.len());
        let page = session.call("agent/output/read", params.clone());
        text.push_str(page["text"].as_str().unwrap());
        if page["nextOffset"] == page["totalBytes"] {
            return text;
        }
    }
}

fn wait_ended(session: &Session<'_>) -> Value {
    session.wait_event("the end of the command", |event| event["type"] == "background_ended")["task"].clone()
}

#[test]
fn a_server_in_the_background_is_read_and_killed_with_its_children() {
    let steps = [
        background(SERVER),
        look("bash_1"),
        call("KillShell", json!({ "shell_id": "bash_1" })),
        say("Done."),
    ];
    let project = Project::new(&Script::new(steps));
    let client = project.open();
    let session = session(&client);
    session.run("serve");
    let results = results(&project);
    assert!(
        results[0].contains("runs in the background") && results[0].contains("BashOutput"),
        "{results:?}"
    );
    assert!(results[1].contains(" runs, for "), "{results:?}");
    assert!(results[2].contains("was killed"), "{results:?}");
    let started =
        session.wait_event("the start", |event| event["type"] == "background_started")["task"].clone();
    assert_eq!((&started["taskId"], &started["end"]), (&json!("bash_1"), &Value::Null));
    let ended = wait_ended(&session);
    assert_eq!(ended["end"]["status"], "killed");
    assert_eq!(session.call("agent/tasks/list", json!({}))["tasks"], json!([ended]));
    assert_eq!(session.snapshot()["tasks"], json!([]));
    let by_task = output(&session, &json!({ "taskId": "bash_1" }), 5);
    assert!(by_task.ends_with("ready\n"), "{by_task}");
    assert_eq!(output(&session, &json!({ "callId": started["callId"] }), 1 << 20), by_task);
    assert_gone(&project);
    assert_eq!(session.calls().iter().filter(|call| call["state"] == "COMPLETED").count(), 3);
}

#[test]
fn the_fifth_command_in_the_background_is_refused_and_closing_ends_the_others() {
    let steps = (0..5).map(|_| background(SERVER)).chain([look("bash_1"), say("Done.")]);
    let project = Project::new(&Script::new(steps));
    let client = project.open();
    let session = session(&client);
    session.run("serve");
    let results = results(&project);
    assert!(results[4].contains("4 background commands") && results[4].contains("bash_4 (`"), "{results:?}");
    let running = session.snapshot()["tasks"].as_array().unwrap().clone();
    assert_eq!(running.len(), 4);
    for task in &running {
        let id = json!({ "taskId": task["taskId"] });
        let until = std::time::Instant::now() + LIMIT;
        let mut text = output(&session, &id, 1 << 20);
        while !text.contains("ready") {
            assert!(std::time::Instant::now() < until, "{task} wrote {text:?}");
            text = output(&session, &id, 1 << 20);
        }
    }
    session.call("agent/session/close", json!({}));
    assert_gone(&project);
}

#[test]
fn the_end_of_the_server_ends_what_runs_in_the_background() {
    for by_signal in [false, true] {
        let project = Project::new(&Script::new([background(SERVER), look("bash_1"), say("Done.")]));
        let client = project.open();
        let session = session(&client);
        session.run("serve");
        let text = output(&session, &json!({ "taskId": "bash_1" }), 1 << 20);
        assert!(text.contains("ready"), "{text}");
        if by_signal {
            let server = i32::try_from(client.process_id()).unwrap();
            rustix::process::kill_process(Pid::from_raw(server).unwrap(), Signal::TERM).unwrap();
            client.wait_for_exit();
        } else {
            assert_eq!(client.shut_down(), 0);
        }
        assert_gone(&project);
    }
}

#[test]
fn a_client_can_stop_a_command_and_the_model_is_notified_of_its_end_once() {
    let script = Script::default()
        .when("^serve$", [background("echo up; sleep 600"), look("bash_1"), say("It is up.")])
        .otherwise([say("I see.")]);
    let project = Project::new(&script);
    let client = project.open();
    let session = session(&client);
    session.run("serve");
    assert_eq!(session.call("agent/tasks/stop", json!({ "taskId": "bash_1" })), json!({ "cancelled": true }));
    assert_eq!(wait_ended(&session)["end"]["status"], "killed");
    assert_eq!(
        session.call("agent/tasks/stop", json!({ "taskId": "bash_1" })),
        json!({ "cancelled": false })
    );
    for _ in 0..2 {
        session.run("and now?");
        let request = project.model.last_request().to_string();
        assert_eq!(request.matches("bash_1 (`echo up; sleep 600`) was killed").count(), 1, "{request}");
    }
}

#[test]
fn after_a_kill_of_the_server_the_model_is_reported_what_ended_with_it() {
    let script = Script::default()
        .when("^serve$", [background("echo up; sleep 5"), look("bash_1"), say("It is up.")])
        .when("^again$", [background("true"), say("Again.")])
        .otherwise([call("BashOutput", json!({ "task_id": "bash_1" })), say("I see.")]);
    let project = Project::new(&script);
    let client = project.open();
    let id = {
        let session = session(&client);
        session.run("serve");
        session.id.clone()
    };
    client.kill();
    let client = project.open();
    let session = Session::new(&client, &id);
    assert_eq!(session.call("agent/session/load", json!({}))["tasks"], json!([]));
    let tasks = session.call("agent/tasks/list", json!({}))["tasks"].clone();
    assert_eq!(tasks[0]["end"]["status"], "endedWithSession", "{tasks}");
    assert_eq!(output(&session, &json!({ "taskId": "bash_1" }), 1 << 20), "up\n");
    session.run("and now?");
    let request = project.model.last_request().to_string();
    assert!(
        request.contains("bash_1 (`echo up; sleep 5`) ended when the session or the server did"),
        "{request}"
    );
    assert!(
        results(&project).pop().unwrap().contains("There is no background command `bash_1`"),
        "{request}"
    );
    session.run("again");
    assert!(results(&project).pop().unwrap().starts_with("bash_2 ("), "numbers are not used again");
}

#[test]
fn the_whole_of_a_long_output_is_read_without_a_question_and_nothing_beside_it() {
    let read = call("Read", json!({ "file_path": "{{prompt}}", "offset": 15_000, "limit": 1 }));
    let count = call("Bash", json!({ "command": "seq 1 20000" }));
    let script = Script::default().when("^count$", [count, say("Long.")]).otherwise([read, say("Read.")]);
    let project = Project::new(&script);
    let client = project.open();
    let session = session(&client);
    session.run("count");
    let call_id = session.calls()[0]["callId"].clone();
    let whole: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(output(&session, &json!({ "callId": call_id }), 1 << 20), whole);

    let reported = results(&project).pop().unwrap();
    let file = reported.split_once("the whole output is in `").unwrap().1.split_once('`').unwrap().0;
    session.call("agent/session/configure", json!({ "mode": "default" }));
    session.run(file);
    assert_eq!(session.calls()[1]["state"], "COMPLETED", "{:?}", session.calls());
    assert!(results(&project).pop().unwrap().contains("15000\t15000"), "{:?}", results(&project));
    let journal = Path::new(file).parent().unwrap().with_file_name("journal.jsonl");
    session.run(&journal.display().to_string());
    assert_eq!(session.calls()[2]["state"], "DENIED", "{:?}", session.calls());
}

/// A command that names its process, waits for a file, and ends.
const WAITS: &str =
    "echo shell $$; echo before >&2; until [ -e go-on ]; do sleep 0.05; done; echo after $$; exit 3";

fn foreground(command: &str) -> Step {
    call("Bash", json!({ "command": command, "timeout": 600_000 }))
}

/// Waits until the newest call has written a text, and gives its id.
fn wait_written(session: &Session<'_>, text: &str) -> Value {
    let written = |event: &Value| {
        event["type"] == "tool:progress" && event["text"].as_str().is_some_and(|seen| seen.contains(text))
    };
    session.wait_event("the output of the command", written)["callId"].clone()
}

#[test]
fn a_running_command_is_moved_to_the_background_and_is_the_same_process_with_all_its_output() {
    let script = Script::default()
        .when("^build$", [foreground(WAITS), say("It builds.")])
        .otherwise([look("bash_1"), say("I see.")]);
    let project = Project::new(&script);
    let client = project.open();
    let session = session(&client);
    let turn = session.prompt("build");
    let call_id = wait_written(&session, "before");
    let moved = session.call("agent/tasks/background", json!({ "callId": call_id }));
    assert_eq!(moved, json!({ "taskId": "bash_1" }));
    session.wait_done(&turn);
    let result = results(&project).pop().unwrap();
    let shell = result.split_once("\nshell ").unwrap().1.split_once('\n').unwrap().0.to_owned();
    assert!(result.starts_with("The user moved the command to the background"), "{result}");
    assert!(result.contains("`task_id`: \"bash_1\"") && result.contains("\nbefore"), "{result}");
    let ended_call = session.calls().pop().unwrap();
    assert_eq!(
        (&ended_call["state"], &ended_call["display"]),
        (&json!("COMPLETED"), &json!("Moved to the background as bash_1"))
    );
    let running = session.snapshot()["tasks"].clone();
    assert_eq!((&running[0]["taskId"], &running[0]["callId"]), (&json!("bash_1"), &call_id), "{running}");
    let again = session.request("agent/tasks/background", json!({ "callId": call_id })).unwrap_err();
    assert_eq!(again.kind(), "nothingToDo");
    assert!(again.message.contains("in the background already, as bash_1"), "{}", again.message);

    project.write("go-on", "");
    let ended = wait_ended(&session);
    assert_eq!((&ended["end"]["status"], &ended["end"]["exitCode"]), (&json!("exited"), &json!(3)));
    let whole = format!("shell {shell}\nbefore\nafter {shell}\n");
    assert_eq!(
        output(&session, &json!({ "taskId": "bash_1" }), 1 << 20),
        whole,
        "one process wrote all of it"
    );
    session.run("and now?");
    let request = project.model.last_request().to_string();
    assert!(
        request.contains("bash_1 (`echo shell $$; ") && request.contains("ended with exit code 3"),
        "{request}"
    );
    let seen = results(&project).pop().unwrap();
    assert!(seen.ends_with(&format!("\nafter {shell}")), "only what is new: {seen}");
}

#[test]
fn a_moved_command_outlives_its_turn_and_its_time_and_ends_by_its_id_or_with_the_server() {
    for by_id in [true, false] {
        let command = call("Bash", json!({ "command": SERVER, "timeout": 600_000 }));
        let project = Project::new(&Script::new([command, say("Up.").gate("up", 0)]));
        let client = project.open();
        let id = {
            let session = session(&client);
            let turn = session.prompt("serve");
            let call_id = wait_written(&session, "ready");
            session.call("agent/tasks/background", json!({ "callId": call_id }));
            project.model.wait_until_held("up");
            session.call("agent/turn/cancel", json!({}));
            session.wait_done(&turn);
            assert_eq!(
                session.snapshot()["tasks"].as_array().unwrap().len(),
                1,
                "the turn's end is not its own"
            );
            session.id.clone()
        };
        if by_id {
            let session = Session::new(&client, &id);
            session.call("agent/tasks/stop", json!({ "taskId": "bash_1" }));
            assert_eq!(wait_ended(&session)["end"]["status"], "killed");
        } else {
            client.kill();
            let client = project.open();
            let session = Session::new(&client, &id);
            assert_eq!(session.call("agent/session/load", json!({}))["tasks"], json!([]));
            let tasks = session.call("agent/tasks/list", json!({}))["tasks"].clone();
            assert_eq!(tasks[0]["end"]["status"], "endedWithSession", "{tasks}");
        }
        assert_gone(&project);
    }
}

#[test]
fn what_cannot_be_moved_to_the_background_is_said_and_runs_on() {
    let ask = call(
        "AskUserQuestion",
        json!({ "questions": [{
        "question": "Which?", "header": "Color", "multiSelect": false,
        "options": [{ "label": "red", "description": "warm" }, { "label": "blue", "description": "cold" }],
    }] }),
    );
    let full = (0..4).map(|_| background("sleep 600")).chain([foreground(WAITS), say("Full.")]);
    let script = Script::default()
        .when("^short$", [foreground("echo short"), say("Over.")])
        .when("^ask$", [ask, say("Asked.")])
        .otherwise(full);
    let project = Project::new(&script);
    let client = project.open();
    let session = session(&client);
    let refused = |call_id: &Value| {
        let error = session.request("agent/tasks/background", json!({ "callId": call_id })).unwrap_err();
        assert!(error.data["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{error:?}");
        (error.kind().to_owned(), error.message.clone())
    };
    let (kind, message) = refused(&json!("call_none"));
    assert!(kind == "unknownCall" && message.contains("there is no call `call_none`"), "{message}");

    session.run("short");
    let (kind, message) = refused(&session.calls()[0]["callId"]);
    assert!(kind == "unknownCall" && message.contains("has ended meanwhile"), "{message}");

    let turn = session.prompt("ask");
    let question = session.wait_event("the question", |event| event["type"] == "question_asked");
    let (kind, message) = refused(&session.calls()[1]["callId"]);
    assert!(kind == "nothingToDo" && message.contains("this is a call of AskUserQuestion"), "{message}");
    drop(question);
    session.call("agent/turn/cancel", json!({}));
    session.wait_done(&turn);

    let turn = session.prompt("fill");
    let call_id = wait_written(&session, "before");
    let (kind, message) = refused(&call_id);
    assert!(kind == "sessionBusy" && message.contains("4 background commands of this session"), "{message}");
    project.write("go-on", "");
    session.wait_done(&turn);
    let result = results(&project).pop().unwrap();
    assert!(
        result.starts_with("Exit code 3") && result.contains("\nafter "),
        "it went on where it was: {result}"
    );
}

#[test]
fn what_cannot_be_read_or_stopped_is_said() {
    let project = Project::new(&Script::new([say("Hello.")]));
    let client = project.open();
    let session = session(&client);
    let cases = [
        ("agent/output/read", json!({}), "invalidParams"),
        ("agent/output/read", json!({ "callId": "a", "taskId": "b" }), "invalidParams"),
        ("agent/output/read", json!({ "callId": "a", "limit": 0 }), "invalidParams"),
        ("agent/output/read", json!({ "callId": "../journal" }), "unknownCall"),
        ("agent/output/read", json!({ "taskId": "bash_1" }), "unknownTask"),
        ("agent/tasks/stop", json!({ "taskId": "bash_1" }), "unknownTask"),
    ];
    for (method, params, kind) in cases {
        let error = session.request(method, params.clone()).unwrap_err();
        assert_eq!(error.kind(), kind, "{method} {params}");
        assert!(error.data["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{method} {params}");
    }
}

/// An agent that no caller waits for.
const HELPER: &str = "---\nname: helper\ndescription: Helps.\nbackground: true\n---\nYou help.\n";

fn helper(more: Value) -> Step {
    let mut input = json!({ "description": "it", "prompt": "help", "subagent_type": "helper" });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call("Task", input)
}

#[test]
fn a_sub_agent_in_the_background_works_on_and_gives_its_answer_when_somebody_looks() {
    let wait = call("BashOutput", json!({ "task_id": "bash_1", "block": true }));
    let script = Script::default()
        .when("^help$", [say("Helped.").gate("help", 0)])
        .when("^go$", [helper(json!({})), say("It works on it.")])
        .when("^wait$", [wait, say("It has ended.")])
        .otherwise([say("Well.")]);
    let project = Project::new(&script);
    project.write(".claude/agents/helper.md", HELPER);
    let client = project.open();
    let session = session(&client);
    assert_eq!(session.run("go")["stopReason"], "end_turn", "nobody waits for it");
    // The request of the sub-agent may come before or after it.
    let asked = project.model.requests().iter().map(Value::to_string).collect::<String>();
    assert!(asked.contains("in the background as bash_1"), "{asked}");
    project.model.wait_until_held("help");
    let now = session.snapshot();
    assert_eq!((now["subagents"].as_array().unwrap().len(), now["tasks"].as_array().unwrap().len()), (1, 1));
    let checkpoints = session.call("agent/checkpoint/list", json!({}))["checkpoints"].clone();
    for what in ["conversation", "files", "both"] {
        let back = json!({ "checkpointId": checkpoints[0]["checkpointId"], "what": what });
        let refused = session.request("agent/checkpoint/restore", back).unwrap_err();
        assert_eq!(refused.kind(), "sessionBusy", "nothing goes back beneath it: {what}");
    }
    project.model.release("help");
    let ended = wait_ended(&session);
    assert_eq!(
        (&ended["end"]["status"], &ended["end"]["exitCode"]),
        (&json!("exited"), &json!(0)),
        "{ended}"
    );
    assert_eq!(session.snapshot()["subagents"], json!([]));
    session.run("wait");
    let request = project.model.last_request().to_string();
    assert!(request.contains("sub-agents in the background that have ended"), "{request}");
    assert!(results(&project).pop().unwrap().contains("Helped."), "{:?}", results(&project));
    let before = session.snapshot()["tasks"].clone();
    session.run("and now?");
    let request = project.model.last_request().to_string();
    assert_eq!(
        request.matches("sub-agents in the background that have ended").count(),
        1,
        "told once: {before}"
    );
}

#[test]
fn a_sub_agent_in_the_background_is_ended_by_its_id_and_waited_for_where_the_call_says_so() {
    let stop = call("KillShell", json!({ "shell_id": "bash_1" }));
    let script = Script::default()
        .when("^help$", [call("Bash", json!({ "command": "sleep 600" }))])
        .when("^answer$", [say("Answered.")])
        .when("^go$", [helper(json!({})), say("It works on it.")])
        .when("^stop$", [stop, say("It is gone.")])
        .otherwise([helper(json!({ "prompt": "answer", "run_in_background": false })), say("Well.")]);
    let project = Project::new(&script);
    project.write(".claude/agents/helper.md", HELPER);
    let client = project.open();
    let session = session(&client);
    session.run("go");
    session.wait_event("its call", |event| event["type"] == "subagent_started");
    session.run("stop");
    assert!(results(&project).pop().unwrap().contains("was killed"), "{:?}", results(&project));
    session.wait_event("its end", |event| event["type"] == "subagent_ended" && event["ok"] == json!(false));
    assert_eq!(session.snapshot()["subagents"], json!([]));
    session.run("wait for it");
    assert!(results(&project).pop().unwrap().starts_with("Answered."), "{:?}", results(&project));
}

#[test]
fn a_sub_agent_in_the_background_ends_with_the_server_and_is_sealed() {
    let script = Script::default()
        .when("^help$", [call("Bash", json!({ "command": "sleep 600" }))])
        .when("^go$", [helper(json!({})), say("It works on it.")])
        .otherwise([say("Well.")]);
    let project = Project::new(&script);
    project.write(".claude/agents/helper.md", HELPER);
    let client = project.open();
    let id = {
        let session = session(&client);
        session.run("go");
        session.wait_event("its beginning", |event| event["type"] == "subagent_started");
        session.id.clone()
    };
    client.kill();
    let client = project.open();
    let session = Session::new(&client, &id);
    let loaded = session.call("agent/session/load", json!({}));
    assert_eq!((&loaded["subagents"], &loaded["tasks"]), (&json!([]), &json!([])));
    session.run("and now?");
    let request = project.model.last_request().to_string();
    assert!(request.contains("bash_1 (`helper: it`) ended when the session or the server did"), "{request}");
}

#[test]
fn a_skill_in_the_background_is_not_waited_for_and_keeps_what_it_may_not_do() {
    let note = call("Bash", json!({ "command": "touch evil" }));
    let used = call("Skill", json!({ "skill": "survey" }));
    let wait = call("BashOutput", json!({ "task_id": "bash_1", "block": true }));
    let again = call("BashOutput", json!({ "task_id": "bash_2", "block": true }));
    let script = Script::default()
        .when("Survey it all", [note.gate("survey", 0), say("Seen.")])
        .when("has run `/survey`", [say("It is under way.")])
        .when("^wait$", [wait, say("It has ended.")])
        .when("^use$", [used, say("It is under way.")])
        .otherwise([again, say("Well.")]);
    let project = Project::new(&script);
    let head = "description: Looks.\ncontext: fork\nbackground: true\ndisallowed-tools: Bash(touch:*)";
    project.write(".claude/skills/survey/SKILL.md", format!("---\n{head}\n---\nSurvey it all.\n"));
    let client = project.open();
    let session = session(&client);
    assert_eq!(session.run("/survey")["stopReason"], "end_turn", "nobody waits for it");
    project.model.wait_until_held("survey");
    project.model.release("survey");
    let ended = wait_ended(&session);
    assert_eq!(ended["end"]["exitCode"], 0, "{ended}");
    // The turn in which the skill was used is long over.
    assert!(!project.path("evil").exists());
    session.run("wait");
    assert!(results(&project).pop().unwrap().contains("Seen."), "{:?}", results(&project));

    // The same where the model uses it.
    assert_eq!(session.run("use")["stopReason"], "end_turn");
    session.run("and now?");
    assert!(results(&project).pop().unwrap().contains("Seen."), "{:?}", results(&project));
    assert!(!project.path("evil").exists());
}
