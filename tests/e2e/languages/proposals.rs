//! The diagnostics of proposed hunks: which hunk adds and fixes what, in editors with and without a client of ours.
//!
//! Rule: no server is waited for. The hunks are there first, and their diagnostics come later or never.

use kode_e2e::{Client, Offer, Project, Reply, Typing, call};
use serde_json::{Value, json};

use super::{entry, keep_settings, log, open, project_of, user_home};

const TEXT: &str = "one\ntwo\nthree\nfour\nhmm\n";

/// A turn that starts the server, then proposes to change the lines 1 and 5, of which the second adds an error and fixes a
/// warning.
fn proposing() -> Project {
    let edits =
        json!([{ "old_string": "one", "new_string": "uno" }, { "old_string": "hmm", "new_string": "oops" }]);
    let project = project_of([
        call("Diagnostics", json!({ "path": "a.word" })),
        call("Read", json!({ "file_path": "a.word" })),
        call("MultiEdit", json!({ "file_path": "a.word", "edits": edits })),
    ]);
    project.write("a.word", TEXT);
    project
}

/// The summaries of the hunks of the only file.
fn summaries(files: &[Value]) -> Vec<Value> {
    let hunks = files.first().and_then(|file| file["hunks"].as_array()).into_iter().flatten();
    hunks.map(|hunk| hunk["diagnostics"]["summary"].clone()).collect()
}

#[test]
fn of_two_proposed_hunks_the_one_that_adds_an_error_says_so_until_something_is_typed() {
    let project = proposing();
    let client = open(&project, "");
    let uri = project.uri("a.word");
    client.editor.open(&uri, TEXT);
    let session = client.session();
    session.prompt("go");
    session.wait_permission(0);
    session.wait_event("the diagnostics", |event| event["type"] == "permission_updated");
    let files = session.edited_files();
    assert_eq!(summaries(&files), [Value::Null, json!("adds 1 error, fixes 1 warning")]);
    let lines = json!([
        "a.word:5:1 error: `oops` is no word [words 1]",
        "fixed: a.word:5:1 warning: `hmm` is no word [words 2]",
    ]);
    assert_eq!(files[0]["hunks"][1]["diagnostics"]["lines"], lines);
    assert_eq!(files[0]["diagnostics"], Value::Null, "nothing is outside of the hunks");
    client.editor.type_text(&uri, &Typing::before("three", "typed "));
    session.wait_event("news of the hunks", |event| event["type"] == "edits_changed");
    assert_eq!(summaries(&session.edited_files()), [Value::Null, Value::Null]);
}

/// The titles of the lenses with a line.
fn lenses(client: &Client, uri: &str) -> Vec<(u64, String)> {
    let lenses = client.call("textDocument/codeLens", json!({ "textDocument": { "uri": uri } }));
    let shown = lenses.as_array().unwrap().iter().map(|lens| {
        let line = lens["range"]["start"]["line"].as_u64().unwrap();
        (line, lens["command"]["title"].as_str().unwrap().to_owned())
    });
    shown.filter(|(_, title)| title.contains("Allow +")).collect()
}

#[test]
fn an_editor_without_a_client_shows_it_in_the_lens_the_hover_and_the_list() {
    let project = proposing();
    keep_settings(&project, &json!({ "words": entry("", &log(&project)) }));
    let home = user_home(&project).to_str().unwrap().to_owned();
    let client = project.start_as(&[], &[("HOME", home.as_str())]);
    let offer = Offer::plain()
        .with("/workspace/codeLens/refreshSupport", json!(true))
        .with("/textDocument/hover/contentFormat", json!(["markdown"]));
    client.initialize(offer.params(&project.workspace()));
    client.on_request("workspace/codeLens/refresh", |_, _| Reply::Result(Value::Null));
    let uri = project.uri("a.word");
    client.editor.open(&uri, TEXT);
    let ask = json!({ "command": "kode.ask", "arguments": [{ "text": "go" }] });
    client.call("workspace/executeCommand", ask);
    let newest = |expected: &str| {
        client.wait_for(expected, |received| {
            let published = received.of("textDocument/publishDiagnostics");
            let newest = published.filter(|message| message["params"]["uri"] == uri.as_str()).last()?;
            let list = newest["params"]["diagnostics"].as_array()?;
            list.iter().any(|hint| hint["message"] == expected).then_some(())
        });
    };
    let plain = "Kode would change 1 line (MultiEdit, +1 -1)";
    newest(&format!("{plain} (adds 1 error, fixes 1 warning)"));
    let expected =
        |verdict: &str| [(0, "Kode: Allow +1 -1".to_owned()), (4, format!("Kode: Allow +1 -1{verdict}"))];
    assert_eq!(lenses(&client, &uri), expected(" (adds 1 error, fixes 1 warning)"));
    let hover = |line: u64| {
        let at = json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": 0 } });
        client.call("textDocument/hover", at)["contents"]["value"].as_str().unwrap().to_owned()
    };
    let reported =
        "It adds 1 error, fixes 1 warning:\n\n```text\na.word:5:1 error: `oops` is no word [words 1]\n";
    assert!(hover(4).contains(reported), "{}", hover(4));
    assert!(!hover(0).contains("adds"), "{}", hover(0));
    client.editor.type_text(&uri, &Typing::before("three", "typed "));
    client.wait_for("no diagnostics of hunks", |received| {
        let published = received.of("textDocument/publishDiagnostics");
        let newest = published.filter(|message| message["params"]["uri"] == uri.as_str()).last()?;
        (!newest.to_string().contains("adds 1 error")).then_some(())
    });
    assert_eq!(lenses(&client, &uri), expected(""));
    assert!(!hover(4).contains("adds"), "{}", hover(4));
}
