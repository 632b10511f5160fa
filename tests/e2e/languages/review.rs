//! The diagnostics of hunks in the text, from the change to the decision.
//!
//! Rule: text of the user is no part of a hunk. Reports follow the text at once, and the server when typing rests.

use kode_e2e::{Client, Offer, Project, Reply, Session, Typing, call};
use serde_json::{Value, json};

use super::{entry, keep_settings, log, open, project_of, unasked, user_home};

const TEXT: &str = "one\ntwo\nthree\nfour\nhmm\n";

/// A turn that changes the lines 1 and 5, of which the second adds an error and fixes a warning.
fn changing() -> Project {
    let edits =
        json!([{ "old_string": "one", "new_string": "uno" }, { "old_string": "hmm", "new_string": "oops" }]);
    let project = project_of([
        call("Read", json!({ "file_path": "a.word" })),
        call("MultiEdit", json!({ "file_path": "a.word", "edits": edits })),
    ]);
    project.write("a.word", TEXT);
    project
}

/// The summaries of the hunks.
fn summaries(session: &Session<'_>) -> Vec<Value> {
    session.hunks().iter().map(|hunk| hunk["diagnostics"]["summary"].clone()).collect()
}

/// Waits until the hunks say this.
fn wait_summaries(session: &Session<'_>, expected: &[Value]) {
    for number in 0.. {
        if summaries(session) == expected {
            return;
        }
        let mut news = 0;
        session.wait_event("news of the hunks", |event| {
            news += usize::from(event["type"] == "edits_changed");
            news > number
        });
    }
}

#[test]
fn a_changed_line_says_what_it_adds_moves_with_the_text_and_loses_what_the_user_fixes() {
    let project = changing();
    let client = open(&project, "");
    let uri = project.uri("a.word");
    client.editor.open(&uri, TEXT);
    let session = unasked(&client);
    session.run("go");
    let both = json!("adds 1 error, fixes 1 warning");
    assert_eq!(summaries(&session), [Value::Null, both.clone()]);
    let lines = |line: u32| {
        json!([
            format!("a.word:{line}:1 error: `oops` is no word [words 1]"),
            "fixed: a.word:5:1 warning: `hmm` is no word [words 2]",
        ])
    };
    assert_eq!(session.hunks()[1]["diagnostics"]["lines"], lines(5));
    client.editor.type_text(&uri, &Typing::before("two", "typed oops\n"));
    assert_eq!(session.hunks()[1]["diagnostics"]["lines"], lines(6));
    // The error is fixed, and the user's own one stays their own.
    client.editor.type_text(&uri, &Typing::after("four\noop", "erate"));
    wait_summaries(&session, &[Value::Null, json!("fixes 1 warning")]);
    assert_eq!(session.edited_files()[0]["diagnostics"], Value::Null);
    // A decided hunk has no report any more, also when the decision is taken back.
    let hunks = session.hunks();
    session.resolve(&[&hunks[1]], "keep");
    session.revert(None);
    assert_eq!(summaries(&session), [Value::Null, Value::Null]);
    assert_eq!(client.shut_down(), 0);
}

#[test]
fn an_edit_that_breaks_other_lines_says_so_at_the_file() {
    let project = changing();
    let client = open(&project, "elsewhere");
    let uri = project.uri("a.word");
    client.editor.open(&uri, TEXT);
    let session = unasked(&client);
    session.run("go");
    let files = session.edited_files();
    assert_eq!(files[0]["diagnostics"]["summary"], "adds 1 error");
    assert_eq!(files[0]["diagnostics"]["lines"], json!(["a.word:3:1 error: `oops` is somewhere [words 3]"]));
    assert_eq!(client.shut_down(), 0);
}

/// The titles of the lenses that keep one hunk, with their lines.
fn lenses(client: &Client, uri: &str) -> Vec<(u64, String)> {
    let lenses = client.call("textDocument/codeLens", json!({ "textDocument": { "uri": uri } }));
    let shown = lenses.as_array().unwrap().iter().map(|lens| {
        let line = lens["range"]["start"]["line"].as_u64().unwrap();
        (line, lens["command"]["title"].as_str().unwrap().to_owned())
    });
    shown.filter(|(_, title)| title.contains("Keep +")).collect()
}

#[test]
fn an_editor_without_a_client_shows_it_until_the_user_has_fixed_it() {
    let project = changing();
    keep_settings(&project, &json!({ "words": entry("", &log(&project)) }));
    let home = user_home(&project).to_str().unwrap().to_owned();
    let client = project.start_as(&[], &[("HOME", home.as_str())]);
    let offer = Offer::plain()
        .options(json!({ "delivery": [{ "glob": "*.word", "delivery": "apply" }] }))
        .with("/workspace/codeLens/refreshSupport", json!(true))
        .with("/textDocument/hover/contentFormat", json!(["markdown"]));
    client.initialize(offer.params(&project.workspace()));
    client.on_request("workspace/codeLens/refresh", |_, _| Reply::Result(Value::Null));
    let uri = project.uri("a.word");
    client.editor.open(&uri, TEXT);
    let ask = json!({ "command": "kode.ask", "arguments": [{ "text": "go" }] });
    client.call("workspace/executeCommand", ask);
    let wait_hint = |expected: &str| {
        client.wait_for(expected, |received| {
            let published = received.of("textDocument/publishDiagnostics");
            let newest = published.filter(|message| message["params"]["uri"] == uri.as_str()).last()?;
            let list = newest["params"]["diagnostics"].as_array()?;
            list.iter().any(|hint| hint["message"] == expected).then_some(())
        });
    };
    let plain = "Kode changed 1 line (MultiEdit, +1 -1)";
    wait_hint(&format!("{plain} (adds 1 error, fixes 1 warning)"));
    let expected =
        |verdict: &str| [(0, "Kode: Keep +1 -1".to_owned()), (4, format!("Kode: Keep +1 -1{verdict}"))];
    assert_eq!(lenses(&client, &uri), expected(" (adds 1 error, fixes 1 warning)"));
    let at = json!({ "textDocument": { "uri": uri }, "position": { "line": 4, "character": 0 } });
    let hover = client.call("textDocument/hover", at)["contents"]["value"].as_str().unwrap().to_owned();
    let reported =
        "It adds 1 error, fixes 1 warning:\n\n```text\na.word:5:1 error: `oops` is no word [words 1]\n";
    assert!(hover.contains(reported), "{hover}");
    client.editor.type_text(&uri, &Typing::after("four\noop", "erate"));
    wait_hint(&format!("{plain}; you have changed it since (fixes 1 warning)"));
    assert_eq!(lenses(&client, &uri), expected(" (fixes 1 warning)"));
}
