//! The editor's own language servers: asked first, through the client, and ours only where it gives no answer.
//!
//! Rule: the client here answers as a client of ours does; the real ones are tested in their editors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kode_e2e::{Client, Connection, Offer, Project, Reply, Typing, call};
use serde_json::{Value, json};

use super::{entry, keep_settings, log, offered, project_of, result, results, unasked, user_home};

/// The code of a request whose text has changed.
const CONTENT_MODIFIED: i64 = -32801;

/// Starts a server of ours for an editor that answers for its language servers.
fn open(project: &Project, answer: impl Fn(&Connection, &Value) -> Reply + Send + 'static) -> Client {
    keep_settings(project, &json!({ "words": entry("", &log(project)) }));
    let home = user_home(project).to_str().unwrap().to_owned();
    let client = project.start_as(&[], &[("HOME", &home), ("PATH", "/usr/bin:/bin")]);
    client.on_request("agent/editor/lsp", move |connection, request| answer(connection, &request["params"]));
    let offer = Offer::kode().with("/experimental/kode/languageServers", json!(true));
    client.initialize(offer.params(&project.workspace()));
    client
}

fn answers(result: Value) -> Reply {
    Reply::Result(json!({ "answers": [{ "server": "theirs", "result": result }] }))
}

fn range(line: u32, start: u32, end: u32) -> Value {
    json!({ "start": { "line": line, "character": start }, "end": { "line": line, "character": end } })
}

#[test]
fn the_servers_of_the_editor_are_asked_first_and_see_what_it_shows() {
    let project = project_of([
        call("References", json!({ "symbol": "alpha", "file_path": "a.word", "line": 2 })),
        call("Definition", json!({ "symbol": "alpha", "file_path": "a.word", "line": 2 })),
    ]);
    project.write("a.word", "saved\n").write("b.word", "\u{1d11e} alpha\n");
    let (a, b) = (project.uri("a.word"), project.uri("b.word"));
    let other = b.clone();
    let client = open(&project, move |_, asked| match asked["method"].as_str().unwrap() {
        "textDocument/references" => {
            let document = &asked["params"]["textDocument"];
            assert_eq!((&document["uri"], &asked["params"]["position"]["character"]), (&json!(a), &json!(3)));
            let ours = json!({ "uri": a, "range": range(1, 3, 8) });
            // Two servers know the same place, and count in other units.
            let theirs = json!({ "uri": other, "range": range(0, 5, 10) });
            Reply::Result(json!({ "answers": [
                { "server": "one", "result": [ours] },
                { "server": "two", "positionEncoding": "utf-8", "result": [theirs] },
                { "server": "three", "result": [{ "uri": other, "range": range(0, 3, 8) }] },
            ] }))
        }
        "textDocument/documentSymbol" => answers(Value::Null),
        "textDocument/hover" => answers(json!({ "contents": "a word of theirs" })),
        "textDocument/definition" => answers(json!([{ "uri": a, "range": range(1, 3, 8) }])),
        method => panic!("{method} was not asked for"),
    });
    client.editor.open(&project.uri("a.word"), "unsaved\n\u{1d11e} alpha\n");
    unasked(&client).run("go");
    let results = results(&project);
    let expected = "2 lines in 2 files\na.word\n  2: \u{1d11e} alpha\nb.word\n  1: \u{1d11e} alpha";
    assert_eq!(results[0], (expected.to_owned(), false));
    assert!(results[1].0.starts_with("a word of theirs\n\na.word:2"), "{}", results[1].0);
    assert!(!log(&project).exists(), "no instance of ours is started");
}

#[test]
fn an_instance_of_ours_answers_where_the_editor_has_no_server_for_it() {
    let project = project_of([call("References", json!({ "symbol": "alpha", "file_path": "a.word" }))]);
    project.write("a.word", "def alpha\n").write("b.word", "use alpha\n");
    let client = open(&project, |_, _| Reply::Result(json!({ "answers": [] })));
    unasked(&client).run("go");
    assert_eq!(result(&project).0, "2 lines in 2 files\na.word\n  1: def alpha\nb.word\n  1: use alpha");
    assert!(log(&project).exists());
}

#[test]
fn a_rename_of_the_editor_is_for_the_text_that_it_shows() {
    let rename = json!({ "symbol": "alpha", "file_path": "a.word", "line": 1, "new_name": "omega" });
    let project = project_of([call("RenameSymbol", rename)]);
    project.write("a.word", "alpha\n").write("b.word", "alpha\n");
    let (a, b) = (project.uri("a.word"), project.uri("b.word"));
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let client = open(&project, move |_, request| {
        assert_eq!(request["method"], "textDocument/rename");
        // The user has typed, and the change is on its way.
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            return Reply::Error(CONTENT_MODIFIED, "the text has changed".to_owned());
        }
        let edit = |uri: &str, version: Value| {
            let edits = json!([{ "range": range(0, 0, 5), "newText": "omega" }]);
            json!({ "textDocument": { "uri": uri, "version": version }, "edits": edits })
        };
        let version = request["params"]["textDocument"]["version"].clone();
        answers(json!({ "documentChanges": [edit(&a, version), edit(&b, Value::Null)] }))
    });
    client.editor.open(&project.uri("a.word"), "alpha unsaved\n");
    let session = client.session();
    let turn = session.prompt("go");
    let prompt = session.wait_permission(0);
    client.editor.type_text(&project.uri("a.word"), &Typing::before("unsaved", "typed "));
    session.respond(&prompt, json!({ "decision": "allow", "scope": "once" })).unwrap();
    session.wait_done(&turn);
    let (text, failed) = result(&project);
    assert!(!failed && text.starts_with("Renamed `alpha` to `omega` at 2 places in 2 files"), "{text}");
    assert_eq!(client.editor.text(&project.uri("a.word")), "omega typed unsaved\n");
    assert_eq!((project.read("b.word").as_str(), asked.load(Ordering::SeqCst)), ("omega\n", 2));
    assert!(!log(&project).exists());
}

#[test]
fn an_action_that_only_the_editor_can_run_is_refused() {
    let project = project_of([
        call("CodeActions", json!({ "file_path": "a.word", "line": 1 })),
        call("ApplyCodeAction", json!({ "file_path": "a.word", "id": "1" })),
        call("ApplyCodeAction", json!({ "file_path": "a.word", "id": "2" })),
    ]);
    project.write("a.word", "alpha\n");
    let a = project.uri("a.word");
    let client = open(&project, move |_, asked| match asked["method"].as_str().unwrap() {
        "textDocument/codeAction" => {
            let edit = json!({ "changes": { a.clone(): [{ "range": range(0, 0, 5), "newText": "omega" }] } });
            let run = json!({ "title": "Run it", "command": "theirs.run" });
            answers(json!([run, { "title": "Say omega", "edit": edit, "command": run }]))
        }
        method => panic!("{method} was not asked for"),
    });
    unasked(&client).run("go");
    let results = results(&project);
    assert_eq!(results[0].0, "1. Run it\n2. Say omega");
    assert!(results[1].1 && results[1].0.contains("is a command of the editor"), "{}", results[1].0);
    assert_eq!((results[2].1, project.read("a.word").as_str()), (false, "omega\n"));
}

#[test]
fn an_editor_with_servers_costs_no_request_without_a_call() {
    let project = project_of([]);
    project.write("main.py", "alpha = 1\n");
    let client = open(&project, |_, _| panic!("nothing was called"));
    unasked(&client).run("go");
    assert!(offered(&project).contains(&"References".to_owned()));
    assert!(!log(&project).exists());
}
