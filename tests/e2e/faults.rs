//! Faults: of calls of the model, with files, with the model's own server. Each fault says what happened,
//! and the session continues.

use kode_e2e::{Project, Script, Session, Step, call, say, step};
use serde_json::{Value, json};

/// The prompt that follows every fault: it shows that the history is one the model's server accepts. Where nothing was
/// answered before, the model reads it in one message with the prompt before it.
const AFTER: &str = "after the fault";

fn assert_continues(session: &Session<'_>, what: &str) {
    let done = session.run(AFTER);
    assert_eq!(done["stopReason"], "end_turn", "{what}: {:?}", session.notices());
    let last = session.items().pop().unwrap();
    assert_eq!(last["body"]["text"], "Going on.", "{what}");
}

struct BadCall {
    what: &'static str,
    steps: Vec<Step>,
    error: &'static str,
    says: &'static [&'static str],
}

fn bad(what: &'static str, step: Step, error: &'static str, says: &'static [&'static str]) -> BadCall {
    BadCall { what, steps: vec![step], error, says }
}

fn read(name: &str) -> Step {
    call("Read", json!({ "file_path": format!("{{{{cwd}}}}/{name}") }))
}

fn edit(name: &str, old: &str) -> Step {
    let path = format!("{{{{cwd}}}}/{name}");
    call("Edit", json!({ "file_path": path, "old_string": old, "new_string": "new" }))
}

fn bad_calls() -> Vec<BadCall> {
    let after_read =
        |what, step, error, says| BadCall { what, steps: vec![read("a.txt"), step], error, says };
    vec![
        bad("wrong path", read("no/such.txt"), "notFound", &["no/such.txt"]),
        bad("a folder", read("folder"), "", &["folder"]),
        bad("binary file", read("binary.bin"), "", &["binary"]),
        after_read("two matches", edit("a.txt", "twice"), "mismatch", &["2", "replace_all"]),
        after_read("no match", edit("a.txt", "nowhere"), "mismatch", &["a.txt"]),
        bad("unread file", edit("unread.txt", "old"), "mismatch", &["unread.txt", "Read"]),
        bad("edit of nothing", edit("none.txt", "old"), "notFound", &["none.txt"]),
        bad("unknown tool", call("Fly", json!({})), "unknownTool", &["Fly", "Read"]),
        bad("broken json", step().raw_call("Read", "{\"file_path\": \"x"), "invalidInput", &["JSON"]),
        bad("json no object", step().raw_call("Read", "[1, 2]"), "invalidInput", &[]),
        bad(
            "unknown argument",
            call("Read", json!({ "file_path": "{{cwd}}/a.txt", "colour": "red" })),
            "invalidInput",
            &["colour"],
        ),
        bad("missing argument", call("Read", json!({})), "invalidInput", &["file_path"]),
        bad("wrong type", call("Read", json!({ "file_path": 7 })), "invalidInput", &["file_path"]),
        bad("bad pattern", call("Grep", json!({ "pattern": "(" })), "", &["("]),
        bad("failing command", call("Bash", json!({ "command": "echo oops; exit 3" })), "", &["oops", "3"]),
        bad(
            "timeout",
            call("Bash", json!({ "command": "echo begun; sleep 600", "timeout": 200 })),
            "timeout",
            &["begun"],
        ),
    ]
}

#[test]
fn a_call_that_cannot_work_reports_the_model_why_and_the_turn_continues() {
    let rows = bad_calls();
    let mut script = Script::default().when(AFTER, [say("Going on.")]);
    for row in &rows {
        let steps = row.steps.iter().cloned().chain([say("I see.")]);
        script = script.when(&format!("^{}$", row.what), steps);
    }
    let project = Project::new(&script);
    project
        .write("a.txt", "twice\ntwice\nonce\n")
        .write("unread.txt", "old\n")
        .write("binary.bin", [0, 159, 146, 150, 0, 1, 2, 3])
        .write("folder/x.txt", "x\n");
    let client = project.open();
    for row in rows {
        let what = row.what;
        let session = client.session_with(json!({ "mode": "bypassPermissions" }));
        assert_eq!(session.run(what)["stopReason"], "end_turn", "{what}");
        let call = session.calls().pop().unwrap();
        assert_eq!(call["state"], "FAILED", "{what}: {call}");
        if !row.error.is_empty() {
            assert_eq!(call["error"], row.error, "{what}: {call}");
        }
        assert!(call["display"].as_str().is_some_and(|display| !display.is_empty()), "{what}: {call}");
        let (text, is_error) = project.model.last_results().pop().unwrap();
        assert!(is_error, "{what}: {text}");
        for expected in row.says {
            assert!(text.contains(expected), "{what}: no {expected:?} in {text:?}");
        }
        assert_continues(&session, what);
    }
}

#[test]
fn a_file_that_changed_on_disk_after_it_was_read_is_not_overwritten() {
    let script = Script::default().when("^read", [read("a.txt"), say("Read.")]).when(
        "^edit",
        [
            edit("a.txt", "line"),
            call("Write", json!({ "file_path": "{{cwd}}/a.txt", "content": "mine\n" })),
            read("a.txt"),
            edit("a.txt", "changed"),
            say("Edited."),
        ],
    );
    let project = Project::new(&script);
    project.write("a.txt", "a line\n");
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("read");
    project.write("a.txt", "a line that somebody else has changed\n");
    session.run("edit");
    let states: Vec<Value> = session.calls().iter().map(|call| call["state"].clone()).collect();
    assert_eq!(states, ["COMPLETED", "FAILED", "FAILED", "COMPLETED", "COMPLETED"], "{:?}", session.calls());
    assert_eq!(project.read("a.txt"), "a line that somebody else has new\n");
}

#[test]
fn what_the_models_server_refuses_is_reported_and_the_next_prompt_works() {
    let status = |status: u16, message: &str| {
        json!({
            "status": status,
            "body": { "type": "error", "error": { "type": "some_error", "message": message } },
        })
    };
    let rows = [
        ("refused", status(400, "the prompt smells"), "the prompt smells"),
        ("unauthorized", status(401, "invalid x-api-key"), "invalid x-api-key"),
        ("forbidden", status(403, "not for you"), "not for you"),
        ("no such model", status(404, "model: nonsense"), "model: nonsense"),
        ("not an api", json!({ "status": 404, "body": "<html>wrong place</html>" }), "404"),
        ("garbage", json!({ "raw": "event: message_start\ndata: {\"type\": nonsense\n\n" }), ""),
        ("no stream", json!({ "raw": "this is no event stream\n" }), ""),
    ];
    let mut script = Script::default().when(AFTER, [say("Going on.")]);
    for (what, fault, _) in &rows {
        // As often as a request may be tried again.
        script = script.when(&format!("^{what}$"), [say("Never said.").faults(vec![fault.clone(); 4])]);
    }
    let project = Project::new(&script);
    let client = project.open();
    let sessions: Vec<_> = rows
        .iter()
        .map(|(what, ..)| {
            let session = client.session();
            let turn = session.prompt(what);
            (session, turn)
        })
        .collect();
    for ((what, _, says), (session, turn)) in rows.iter().zip(&sessions) {
        let done = session.wait_done(turn);
        assert_eq!(done["stopReason"], "error", "{what}");
        let notice = session.notices().pop().unwrap_or_else(|| panic!("{what}: nothing is told"));
        assert_eq!(notice["level"], "error", "{what}: {notice}");
        assert!(notice["text"].as_str().unwrap().contains(says), "{what}: {notice}");
        assert!(notice["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{what}: {notice}");
        assert!(!notice.to_string().contains("test-key"), "{what}: {notice}");
        assert_continues(session, what);
    }
}

#[test]
fn a_rate_limit_is_waited_for_and_the_turn_then_works() {
    let limit = json!({ "status": 429, "headers": { "retry-after": "0" } });
    let project = Project::new(&Script::new([say("Here I am.").faults([limit.clone(), limit])]));
    let client = project.open();
    let session = client.session();
    assert_eq!(session.run("hello")["stopReason"], "end_turn");
    let retries = session.events().iter().filter(|event| event["type"] == "model_retry").count();
    assert_eq!(retries, 2);
    assert_eq!(project.model.requests().len(), 3);
}

#[test]
fn a_user_who_does_not_wait_has_the_model_asked_again_at_once() {
    let limit = json!({ "status": 429, "headers": { "retry-after": "50" } });
    let project = Project::new(&Script::new([say("Here I am.").faults([limit])]));
    let client = project.open();
    let session = client.session();
    let turn = session.prompt("hello");
    let retry = session.wait_event("a wait", |event| event["type"] == "model_retry");
    assert!(retry["delayMs"].as_u64().unwrap() >= 50_000, "{retry}");
    assert_eq!(session.call("agent/turn/retry", json!({})), json!({ "running": true }));
    assert_eq!(session.wait_done(&turn)["stopReason"], "end_turn");
    assert_eq!(project.model.requests().len(), 2);
    assert_eq!(session.call("agent/turn/retry", json!({})), json!({ "running": false }));
}

#[test]
fn a_server_that_fails_is_asked_again_a_few_times_and_then_reported() {
    let overloaded = json!({ "status": 500, "body": { "error": { "message": "out of order" } } });
    let script = Script::default()
        .when(AFTER, [say("Going on.")])
        .when("^fail", [say("Never said.").faults(vec![overloaded; 8])]);
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session();
    assert_eq!(session.run("fail")["stopReason"], "error");
    assert_eq!(project.model.requests().len(), 4, "one attempt and three retries");
    let notice = session.notices().pop().unwrap();
    assert!(notice["text"].as_str().unwrap().contains("out of order"), "{notice}");
    assert_continues(&session, "fail");
}

#[test]
fn an_answer_that_breaks_off_is_asked_for_again_and_calls_are_never_run_twice() {
    let cut = json!({ "cut_after_events": 6 });
    let script = Script::new([
        step()
            .text("I will run it now.")
            .call("Bash", json!({ "command": "echo run >> runs.txt" }))
            .chunk(4)
            .faults([cut]),
        say("Done."),
    ]);
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    assert_eq!(session.run("go")["stopReason"], "end_turn", "{:?}", session.notices());
    assert_eq!(project.read("runs.txt"), "run\n");
    let messages: Vec<Value> =
        session.items().into_iter().filter(|item| item["body"]["type"] == "agentMessage").collect();
    assert_eq!(messages[0]["body"]["interrupted"], true, "what was shown stays shown: {messages:?}");
    assert!(messages.iter().skip(1).all(|item| item["body"]["interrupted"] == false), "{messages:?}");
}

#[test]
fn an_answer_cut_by_its_token_limit_says_so_and_its_calls_get_results() {
    let script = Script::default().when(AFTER, [say("Going on.")]).when(
        "^long|cut off by its token limit",
        [step().text("I begin").call("Bash", json!({ "command": "echo never" })).stop_reason("max_tokens")],
    );
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    assert_eq!(session.run("long")["stopReason"], "max_tokens");
    assert_eq!(session.calls()[0]["state"], "SEALED");
    assert_continues(&session, "long");
}

#[test]
fn a_picture_that_the_provider_refuses_goes_into_no_later_request() {
    const PICTURE: &str = "iVBORw0KGgo=";
    let error = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "Could not process image" } });
    let refusal = json!({ "status": 400, "body": error });
    let project = Project::new(
        &Script::default().when(AFTER, [say("Going on.")]).otherwise([say("I read it.").faults([refusal])]),
    );
    let client = project.open();
    let session = client.session();
    let input = json!([
        { "type": "text", "text": "what is it?" },
        { "type": "image", "mediaType": "image/png", "data": PICTURE },
    ]);
    let turn = session.call("agent/turn/start", json!({ "input": input }));
    let done = session.wait_done(turn["turnId"].as_str().unwrap());
    assert_eq!(done["stopReason"], "end_turn", "{:?}", session.notices());
    let has_picture: Vec<_> =
        project.model.requests().iter().map(|request| request.to_string().contains(PICTURE)).collect();
    assert_eq!(has_picture, [true, false]);
    let notices = json!(session.notices()).to_string();
    assert!(
        notices.contains("Left out a picture") && notices.contains("Could not process image"),
        "{notices}"
    );
    assert!(project.model.last_request().to_string().contains("the provider refused it"));
    let id = session.id.clone();
    client.kill();

    let client = project.open();
    let session = Session::new(&client, &id);
    session.call("agent/session/load", json!({}));
    assert_continues(&session, "after a restart");
    assert!(!project.model.last_request().to_string().contains(PICTURE));
}
