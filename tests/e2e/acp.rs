//! `kode-ls acp` as clients of the Agent Client Protocol see it.
//!
//! Rule: a test that shows a requirement of the protocol's test kit bears the requirement's id in its name.

mod files;
mod handshake;
mod kode;
mod pages;
#[cfg(unix)]
mod pairing;
mod permissions;
mod registry;
mod sessions;
#[cfg(unix)]
mod terminals;
mod turns;

use kode_e2e::{AcpClient, Project, Script, call, say, step};
use serde_json::{Value, json};

/// A command that no mode but one lets run unasked.
const COMMAND: &str = "echo from-the-shell | tee out.txt";

/// The script of most tests.
fn script() -> Script {
    let read = json!({ "file_path": "{{cwd}}/a.txt" });
    let edit = json!({ "file_path": "{{cwd}}/a.txt", "old_string": "two", "new_string": "TWO" });
    let write = json!({ "file_path": "{{cwd}}/new.txt", "content": "made\n" });
    let todos = json!({ "todos": [
        { "content": "Read", "status": "completed", "activeForm": "Reading" },
        { "content": "Write", "status": "in_progress", "activeForm": "Writing" },
    ] });
    let ask = json!({ "questions": [{
        "question": "Which color?", "header": "Color", "multiSelect": false,
        "options": [{ "label": "red", "description": "warm" }, { "label": "blue", "description": "" }],
    }] });
    Script::default()
        .when("^hello", [say("Hello to you.").chunk(4)])
        .when("^think", [step().thinking("Let me see.").text("Done.")])
        .when("^read", [call("Read", read.clone()), say("It has two lines.")])
        .when("^edit", [call("Read", read), call("Edit", edit), say("Edited.")])
        .when("^write", [call("Write", write), say("Written.")])
        .when("^run", [call("Bash", json!({ "command": COMMAND })), say("Ran.")])
        .when("^plan", [call("TodoWrite", todos), say("Planned.")])
        .when("^ask", [call("AskUserQuestion", ask), say("I see.")])
        .when("^hold", [say("First half, second half.").chunk(6).gate("hold", 5)])
        .otherwise([say("So it is.")])
}

/// The edits of a session that counts.
const EDITS: usize = 200;

/// How many sessions of [`EDITS`] are played in the tests that count keys: one, unless a variable names another number.
fn edit_sessions() -> usize {
    std::env::var("KODE_E2E_EDIT_SESSIONS").map_or(1, |number| number.parse().expect("a number"))
}

/// A model that counts in `a.txt` from `[0]`, an edit for each number.
fn counting() -> Script {
    let replace = |number: usize| {
        let (old, new) = (format!("[{number}]"), format!("[{}]", number + 1));
        json!({ "file_path": "{{cwd}}/a.txt", "old_string": old, "new_string": new })
    };
    let steps = [call("Read", json!({ "file_path": "{{cwd}}/a.txt" }))].into_iter();
    // A turn has a limit of model calls, and not of calls in an answer.
    let edits: Vec<_> = (0..EDITS).collect();
    let edits = edits
        .chunks(20)
        .map(|numbers| numbers.iter().fold(step(), |step, number| step.call("Edit", replace(*number))));
    Script::default().when("^count", steps.chain(edits).chain([say("Done.")]))
}

fn project() -> Project {
    let project = Project::new(&script());
    project.write("a.txt", "one\ntwo\n");
    project
}

/// A client that offers nothing, with a session.
fn opened(project: &Project) -> (AcpClient, String) {
    let client = project.acp(json!({}));
    let session = client.new_session();
    (client, session)
}

/// The updates of a kind.
fn of_kind<'a>(updates: &'a [Value], kind: &'a str) -> Vec<&'a Value> {
    updates.iter().filter(|update| update["sessionUpdate"] == kind).collect()
}

/// The text of all chunks of a kind.
fn text_of(updates: &[Value], kind: &str) -> String {
    of_kind(updates, kind)
        .iter()
        .map(|update| update["content"]["text"].as_str().unwrap_or_default())
        .collect()
}

/// Waits until the answer to `hold` has started. A prompt after a turn without one would be joined to that turn's prompt.
fn streaming(client: &AcpClient, session: &str) {
    client.wait_update(session, "the first half", |update| update["sessionUpdate"] == "agent_message_chunk");
}
