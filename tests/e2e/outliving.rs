//! A server that outlives its client: the turn goes on, another server shows it, answers for it, and continues the session.
//!
//! Rule: a client that is gone has closed both streams, as the system does for a process that was killed.

use kode_e2e::{Client, Project, Script, Session, call, say};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

/// Says that the client goes and may come back.
fn leave(client: &Client) -> Value {
    client.call("agent/client/leave", json!({}))
}

fn edit(file: &str, from: &str, to: &str) -> kode_e2e::Step {
    call("Edit", json!({ "file_path": format!("{{{{cwd}}}}/{file}"), "old_string": from, "new_string": to }))
}

fn read(file: &str) -> kode_e2e::Step {
    call("Read", json!({ "file_path": format!("{{{{cwd}}}}/{file}") }))
}

/// The session as another server has it.
fn there<'a>(client: &'a Client, id: &str) -> (Session<'a>, Value) {
    let session = Session::new(client, id);
    let loaded = session.call("agent/session/load", json!({}));
    (session, loaded)
}

fn wait_released(session: &Session<'_>) {
    session.wait_event("the end of the writer", |event| {
        event["type"] == "lease_changed" && event["isMine"] == json!(false) && event["writer"].is_null()
    });
}

#[test]
fn a_turn_goes_on_while_its_window_is_loaded_again_and_the_session_is_continued_in_the_new_one() {
    let script = Script::default()
        .when("^work$", [read("a.txt"), edit("a.txt", "two", "TWO").gate("edit", 0), say("It is done.")])
        .otherwise([say("And so on.")]);
    let project = Project::new(&script);
    project.write("a.txt", "one\ntwo\n");
    let first = project.open();
    let session = first.session_with(json!({ "mode": "bypassPermissions" }));
    let turn = session.prompt("work");
    project.model.wait_until_held("edit");
    assert_eq!(leave(&first), json!({ "outlives": true }));
    let id = session.id.clone();
    let pid = first.process_id();
    first.hang_up();

    let second = project.open();
    let (follower, loaded) = there(&second, &id);
    assert_eq!(loaded["following"]["by"]["pid"], pid, "{loaded}");
    assert_eq!(loaded["state"], "WORKING", "{loaded}");
    project.model.release("edit");
    assert_eq!(follower.wait_done(&turn)["stopReason"], "end_turn");
    first.wait_for_process();
    wait_released(&follower);
    assert_eq!(project.read("a.txt"), "one\nTWO\n");
    follower.call("agent/session/takeOver", json!({}));
    assert_eq!(follower.hunks().len(), 1, "the change is reviewed as any other");
    follower.run("and now?");
    let request = project.model.last_request().to_string();
    assert!(request.contains("It is done."), "{request}");
}

#[test]
fn what_was_open_in_a_window_that_is_gone_is_changed_in_its_file() {
    let script =
        Script::new([read("a.txt"), edit("a.txt", "two", "TWO").gate("edit", 0), say("It is done.")]);
    let project = Project::new(&script);
    project.write("a.txt", "one\ntwo\n");
    let client = project.open();
    client.notify(
        "textDocument/didOpen",
        json!({ "textDocument": {
        "uri": project.uri("a.txt"), "languageId": "plaintext", "version": 1, "text": "one\ntwo\n",
    } }),
    );
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.prompt("work");
    project.model.wait_until_held("edit");
    assert_eq!(leave(&client), json!({ "outlives": true }));
    client.hang_up();
    project.model.release("edit");
    client.wait_for_process();
    assert_eq!(project.read("a.txt"), "one\nTWO\n");
}

#[test]
fn what_a_server_without_a_window_asks_is_answered_from_the_next_one() {
    let script =
        Script::new([call("Bash", json!({ "command": "touch made" })).gate("ask", 0), say("It ran.")]);
    let project = Project::new(&script);
    let first = project.open();
    let session = first.session();
    let turn = session.prompt("work");
    project.model.wait_until_held("ask");
    assert_eq!(leave(&first), json!({ "outlives": true }));
    let id = session.id.clone();
    first.hang_up();
    let second = project.open();
    let (follower, _) = there(&second, &id);
    project.model.release("ask");
    let prompt = follower.wait_permission(0);
    follower.call(
        "agent/permission/respond",
        json!({
            "permissionId": prompt["permissionId"], "decision": "allow", "scope": "once",
        }),
    );
    follower.wait_done(&turn);
    assert_eq!(project.read("made"), "");
    first.wait_for_process();
}

#[test]
fn a_server_without_work_a_shutdown_and_a_signal_end_it_at_once() {
    let script = Script::default()
        .when("^hang$", [say("one two three").chunk(4).gate("hang", 2)])
        .otherwise([say("Hello.")]);
    let project = Project::new(&script);
    let client = project.open();
    client.session().run("hello");
    assert_eq!(leave(&client), json!({ "outlives": false }));
    client.hang_up();
    client.wait_for_process();

    let client = project.open();
    let session = client.session();
    session.prompt("hang");
    project.model.wait_until_held("hang");
    assert_eq!(leave(&client), json!({ "outlives": true }));
    assert_eq!(client.shut_down(), 0, "a goodbye after all is one");

    let client = project.open();
    let session = client.session();
    session.prompt("hang");
    project.model.wait_until_held("hang");
    assert_eq!(leave(&client), json!({ "outlives": true }));
    client.hang_up();
    let server = i32::try_from(client.process_id()).unwrap();
    rustix::process::kill_process(Pid::from_raw(server).unwrap(), Signal::TERM).unwrap();
    client.wait_for_process();
}
