//! The acts in a round: all that a person does in a session, and what happens to servers.
//!
//! Rule: what a round has opened it closes again; what it expects it waits for.

use std::time::Instant;

use kode_e2e::system::processes_in;
use kode_e2e::{Client, LIMIT, Policy, Project, Script, Session, Step, Typing, call, say};
use serde_json::{Value, json};

const TEXT: &str = "first line\nsecond line\nthird line\nfourth line\nfifth line\n";

/// A command that stays until it is ended, with a child of its own.
const STAYS: &str = "sleep 600 & echo up; wait";

/// The model's behavior for each prompt.
pub(crate) fn script() -> Script {
    let read = || call("Read", json!({ "file_path": "{{cwd}}/a.txt" }));
    let edit = || {
        let change = json!({
            "file_path": "{{cwd}}/a.txt", "old_string": "third line", "new_string": "THIRD LINE",
        });
        call("Edit", change)
    };
    let serve = || call("Bash", json!({ "command": STAYS, "run_in_background": true }));
    let look = || call("BashOutput", json!({ "task_id": "bash_1", "block": true }));
    let held = || say("This answer does not end.").chunk(4).gate("never", 4);
    let search = call("Grep", json!({ "pattern": "line", "path": "{{cwd}}" }));
    Script::default()
        .when("^edit", [read(), edit(), say("Edited.")])
        .when("^command", [command("echo done; seq 1 2000"), search, say("Ran.")])
        .when("^serve", [serve(), look(), say("It is up.")])
        .when(
            "^write",
            [call("Write", json!({ "file_path": "{{cwd}}/c.txt", "content": "new\n" })), say("Written.")],
        )
        .when("^hold", [held()])
        .when("^break", [serve(), look(), held()])
        .otherwise([say("Hello again.")])
}

fn command(line: &str) -> Step {
    call("Bash", json!({ "command": line }))
}

/// A session of everything on the steady server and one that asks first, both closed and deleted at their end.
pub(crate) fn work(client: &Client, project: &Project, number: usize) {
    project.write("a.txt", TEXT);
    let uri = project.uri("a.txt");
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    client.editor.open(&uri, TEXT);
    client.editor.next(Policy::TypeFirst(vec![Typing::after("first", " typed")]));
    finish(&session, "edit");
    client.editor.type_text(&uri, &Typing::before("fifth", "typed\n"));
    let hunks = session.hunks();
    let decision = if number.is_multiple_of(2) { "keep" } else { "undo" };
    session.resolve(&hunks.iter().collect::<Vec<_>>(), decision);
    let expected = if number.is_multiple_of(2) { "THIRD LINE" } else { "third line" };
    let expected =
        TEXT.replace("third line", expected).replace("first", "first typed").replace("fifth", "typed\nfifth");
    assert_eq!(client.editor.text(&uri), expected);
    finish(&session, "command");
    finish(&session, "serve");
    let turn = session.prompt("hold");
    project.model.wait_until_held("never");
    session.call("agent/turn/cancel", json!({}));
    assert_eq!(session.wait_done(&turn)["stopReason"], "cancelled");
    client.editor.close(&uri);
    close(client, &session.id);
    let asking = client.session();
    let turn = asking.prompt("write");
    asking.allow(0);
    asking.wait_done(&turn);
    std::fs::remove_file(project.path("c.txt")).expect("it was written");
    close(client, &asking.id);
}

/// One turn of a session that continues for long.
pub(crate) fn talk(client: &Client, session: &str) {
    finish(&Session::new(client, session), "and now?");
}

/// Closes a session and deletes it.
pub(crate) fn close(client: &Client, session: &str) {
    for method in ["agent/session/close", "agent/session/delete"] {
        client.call(method, json!({ "sessionId": session }));
    }
}

/// A server that is killed while it works and has a command in the background, and another that continues with its session
/// and is left as by an editor that crashes.
pub(crate) fn kill_and_come_back(project: &Project) {
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.prompt("break");
    session.wait_event("the last answer", |event| event["item"]["body"]["type"] == "agentMessage");
    let process = client.process_id();
    client.kill();
    wait_until_gone(project, process);
    let again = project.open();
    let resumed = Session::new(&again, &session.id);
    let snapshot = resumed.call("agent/session/load", json!({}));
    assert!(!snapshot["items"].as_array().expect("items").is_empty(), "{snapshot}");
    assert_eq!(finish(&resumed, "and now?")["stopReason"], "end_turn");
    close(&again, &session.id);
}

/// Waits until a killed server leaves nothing but the steady one's processes. Nothing reports the end of another
/// process, so it is looked for.
fn wait_until_gone(project: &Project, killed: u32) {
    let left = || {
        let mut left = processes_in(&project.workspace());
        left.retain(|process| *process != killed);
        left
    };
    let until = Instant::now() + LIMIT;
    // The steady server itself works in the workspace.
    while left().len() > 1 {
        assert!(Instant::now() < until, "of a killed server processes are left: {:?}", left());
        std::thread::yield_now();
    }
}

/// Carries a prompt out, which must come to its end.
fn finish(session: &Session<'_>, prompt: &str) -> Value {
    let done = session.run(prompt);
    assert_eq!(done["stopReason"], "end_turn", "{prompt}: {done}");
    done
}
