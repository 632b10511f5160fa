//! `kode-ls wrap`: one connection of an editor to a language server and the agent.
//!
//! Rule: the server for words is the editor's own here. The agent has no other, so that all of its answers come from it.

use kode_e2e::system::is_running;
use kode_e2e::{Client, LIMIT, Offer, Project, Received, Typing, call, say};
use serde_json::{Value, json};

use super::faults::started;
use super::{log, offered, project_of, result, results, unasked, user_home, words_server};

/// Starts `kode-ls wrap` with this server for an editor whose user has no server for the agent.
pub(super) fn open(project: &Project, command: &[&str], offer: Offer) -> Client {
    let home = user_home(project);
    std::fs::create_dir_all(home.join(".kode-ls")).unwrap();
    let settings = json!({ "lspServersOnPath": false, "sandbox": { "enabled": false } });
    std::fs::write(home.join(".kode-ls/settings.json"), settings.to_string()).unwrap();
    let log = log(project);
    let path = std::env::var("PATH").unwrap();
    let variables =
        [("HOME", home.to_str().unwrap()), ("FAULT_LOG", log.to_str().unwrap()), ("PATH", path.as_str())];
    let client = project.start_as(&[&["wrap", "--"], command].concat(), &variables);
    client.initialize(offer.params(&project.workspace()));
    client
}

pub(super) fn open_words(project: &Project, how: &str, offer: Offer) -> Client {
    open(project, &[words_server().to_str().unwrap(), how], offer)
}

fn kill(process: u32) {
    let process = rustix::process::Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
}

/// The diagnostics of a file that the editor received last.
fn wait_diagnostics(client: &Client, uri: &str, is_wanted: impl Fn(&[Value]) -> bool) {
    client.wait_for("diagnostics", |received| {
        let of_file = received
            .of("textDocument/publishDiagnostics")
            .filter(|message| message["params"]["uri"] == uri)
            .last()?;
        is_wanted(of_file["params"]["diagnostics"].as_array()?).then_some(())
    });
}

fn line_actions(client: &Client, uri: &str, line: u32) -> Vec<Value> {
    let range = json!({ "start": { "line": line, "character": 0 }, "end": { "line": line, "character": 4 } });
    let params = json!({ "textDocument": { "uri": uri }, "range": range, "context": { "diagnostics": [] } });
    client.call("textDocument/codeAction", params).as_array().unwrap().clone()
}

#[test]
fn an_editor_has_the_features_of_both_and_the_agent_asks_the_same_server() {
    let project = project_of([
        call("References", json!({ "symbol": "alpha", "file_path": "b.word" })),
        call("Definition", json!({ "symbol": "alpha", "file_path": "b.word" })),
        call("Diagnostics", json!({ "path": "a.word" })),
        call("CodeActions", json!({ "file_path": "a.word", "line": 2 })),
        call("ApplyCodeAction", json!({ "file_path": "a.word", "id": "1" })),
    ]);
    project.write("a.word", "def alpha\n").write("b.word", "use alpha\n");
    let client = open_words(&project, "", Offer::kode());
    let uri = project.uri("a.word");
    client.editor.open(&uri, "def alpha\noops\n");
    let titles = |actions: &[Value]| -> Vec<String> {
        actions.iter().map(|action| action["title"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(titles(&line_actions(&client, &uri, 1)), ["Say fine"]);
    let place = json!({ "textDocument": { "uri": uri }, "position": { "line": 0, "character": 4 } });
    assert_eq!(client.call("textDocument/completion", place.clone()), json!([{ "label": "alpha" }]));
    assert!(client.call("textDocument/hover", place).to_string().contains("the word alpha"));
    let session = unasked(&client);
    session.run("go");
    let results = results(&project);
    let expected = "2 lines in 2 files\na.word\n  1: def alpha\nb.word\n  1: use alpha";
    assert_eq!(results[0], (expected.to_owned(), false));
    assert!(results[1].0.starts_with("the word alpha\n\na.word:1"), "{}", results[1].0);
    assert_eq!(results[2].0, "a.word\n  2:1 error: `oops` is no word [words 1]");
    assert!(results[3].0.starts_with("1. Say fine [quickfix]"), "{}", results[3].0);
    assert!(!results[4].1, "{}", results[4].0);
    assert_eq!(client.editor.text(&uri), "def alpha\nfine\n");
    assert_eq!(started(&log(&project)).len(), 1, "no second instance is started");
    let text = std::fs::read_to_string(log(&project)).unwrap();
    let [opened, closed] = ["didOpen", "didClose"].map(|method| text.matches(method).count());
    assert_eq!(
        opened,
        closed + 1,
        "the file that is not open in the editor is closed after each request: {text}"
    );
    assert_eq!(client.shut_down(), 0);
    assert!(!is_running(started(&log(&project))[0]));
}

#[test]
fn tools_are_offered_for_files_that_the_server_names_or_the_editor_has_opened() {
    for (how, is_opened, is_offered) in [("", false, false), ("", true, true), ("named", false, true)] {
        let project = project_of([say("First.")]);
        project.write("a.word", "def alpha\n");
        let client = open_words(&project, how, Offer::kode());
        let session = unasked(&client);
        session.run("go");
        let before = offered(&project).contains(&"References".to_owned());
        assert_eq!(before, is_offered && !is_opened, "{how} before a document is open");
        if is_opened {
            client.editor.open(&project.uri("a.word"), "def alpha\n");
        }
        session.run("again");
        let after = offered(&project);
        for tool in ["Symbols", "Definition", "References", "RenameSymbol"] {
            assert_eq!(after.contains(&tool.to_owned()), is_offered, "{how}: {tool} in {after:?}");
        }
    }
}

#[test]
fn the_server_is_notified_of_files_that_the_agent_changes_on_the_disk() {
    let project = project_of([
        call("Read", json!({ "file_path": "b.word" })),
        call("Edit", json!({ "file_path": "b.word", "old_string": "use", "new_string": "take" })),
        call("References", json!({ "symbol": "alpha", "file_path": "a.word" })),
    ]);
    project.write("a.word", "def alpha\n").write("b.word", "use alpha\n");
    let client = open_words(&project, "", Offer::kode());
    client.editor.open(&project.uri("a.word"), "def alpha\n");
    unasked(&client).run("go");
    let expected = "2 lines in 2 files\na.word\n  1: def alpha\nb.word\n  1: take alpha";
    assert_eq!(results(&project)[2].0, expected);
    let text = std::fs::read_to_string(log(&project)).unwrap();
    let [changed, asked] = ["workspace/didChangeWatchedFiles", "textDocument/references"]
        .map(|method| text.find(method).unwrap_or_else(|| panic!("no {method} in {text}")));
    assert!(changed < asked, "{text}");
}

#[test]
fn diagnostics_and_actions_of_both_are_shown_together_in_an_editor_without_a_panel() {
    let project = project_of([
        call("Read", json!({ "file_path": "a.word" })),
        call("Edit", json!({ "file_path": "a.word", "old_string": "alpha", "new_string": "omega" })),
    ]);
    project.write("a.word", "def alpha\noops\n");
    let client = open_words(&project, "", Offer::plain());
    let uri = project.uri("a.word");
    client.editor.open(&uri, "def alpha\noops\n");
    wait_diagnostics(&client, &uri, |list| list.len() == 1);
    let session = unasked(&client);
    session.prompt("go");
    let sources = |list: &[Value]| -> Vec<String> {
        let mut sources: Vec<_> =
            list.iter().map(|one| one["source"].as_str().unwrap_or_default().to_owned()).collect();
        sources.sort();
        sources
    };
    wait_diagnostics(&client, &uri, |list| sources(list) == ["kode", "words"]);
    // A publication of the server keeps those of the agent.
    client.editor.type_text(&uri, &Typing::after("oops", " oops"));
    wait_diagnostics(&client, &uri, |list| sources(list) == ["kode", "words", "words"]);
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 1, "character": 4 } });
    let params = json!({ "textDocument": { "uri": uri }, "range": range, "context": { "diagnostics": [] } });
    let actions = client.call("textDocument/codeAction", params).to_string();
    assert!(actions.contains("Kode: "), "{actions}");
    let lenses = client.call("textDocument/codeLens", json!({ "textDocument": { "uri": uri } }));
    assert!(!lenses.as_array().unwrap().is_empty());
}

#[test]
fn a_server_that_is_killed_is_started_again_and_the_agent_continues() {
    let reference = || call("References", json!({ "symbol": "alpha", "file_path": "a.word" }));
    let project = project_of([reference()]);
    project.write("a.word", "def alpha\n");
    let client = open_words(&project, "", Offer::kode());
    let uri = project.uri("a.word");
    client.editor.open(&uri, "def alpha\n");
    client.editor.type_text(&uri, &Typing::after("alpha", " alpha"));
    let place = json!({ "textDocument": { "uri": uri }, "position": { "line": 0, "character": 4 } });
    client.call("textDocument/hover", place.clone());
    let published = |received: &Received| received.of("textDocument/publishDiagnostics").count();
    let before = client.look(published);
    kill(started(&log(&project))[0]);
    let shown = client.wait_for("the message", |received| {
        received.of("window/showMessage").next().map(|message| message["params"]["message"].to_string())
    });
    assert!(shown.contains("signal 9 ended it") && shown.contains("started again"), "{shown}");
    // It publishes about the document as soon as it has it again.
    client.wait_for("the document is open again", |received| (published(received) > before).then_some(()));
    // It has the text that the editor shows, which the disk has not.
    let words = client.call("textDocument/completion", place);
    assert_eq!(words, json!([{ "label": "alpha alpha" }]));
    unasked(&client).run("go");
    assert_eq!(result(&project).0, "1 lines in 1 files\na.word\n  1: def alpha alpha");
    let messages = client.look(|received| received.of("window/showMessage").count());
    assert_eq!(messages, 1, "one message for one end");
    assert_eq!(client.shut_down(), 0);
    let processes = started(&log(&project));
    assert!(processes.len() == 2 && !processes.iter().any(|process| is_running(*process)));
}

#[test]
fn a_server_that_hangs_or_floods_stops_neither_the_agent_nor_its_end() {
    for how in ["stuck", "flood"] {
        let project = project_of([call("Read", json!({ "file_path": "a.word" }))]);
        project.write("a.word", "def alpha\n");
        let client = open_words(&project, how, Offer::kode());
        client.editor.open(&project.uri("a.word"), "def alpha\n");
        let document = json!({ "uri": project.uri("a.word") });
        let place = json!({ "textDocument": document, "position": { "line": 0, "character": 4 } });
        let waiting = client.send_request("textDocument/implementation", place);
        unasked(&client).run("go");
        match how {
            "stuck" => assert!(!client.is_answered(waiting)),
            _ => drop(client.await_answer(waiting).unwrap()),
        }
        assert_eq!(client.shut_down(), 0, "{how}");
        assert!(!started(&log(&project)).iter().any(|process| is_running(*process)), "{how}");
    }
}

#[test]
fn a_server_that_is_not_there_is_reported_and_the_agent_serves() {
    let project = project_of([]);
    let client = open(&project, &["no-such-language-server"], Offer::kode());
    let shown = client.wait_for("the message", |received| {
        received.of("window/showMessage").next().map(|message| message["params"]["message"].to_string())
    });
    assert!(shown.contains("no-such-language-server: it could not be started"), "{shown}");
    unasked(&client).run("go");
    assert_eq!(client.shut_down(), 0);
}

#[test]
fn a_killed_process_leaves_no_server() {
    let project = project_of([]);
    let client = open_words(&project, "", Offer::kode());
    client.kill();
    let began = std::time::Instant::now();
    while started(&log(&project)).iter().any(|process| is_running(*process)) {
        assert!(began.elapsed() < LIMIT, "the server is left");
        std::thread::yield_now();
    }
}

#[test]
#[cfg(any(target_os = "linux", windows))]
fn a_wrapped_server_that_hangs_ends_with_a_process_that_is_killed() {
    let project =
        project_of([call("References", json!({ "symbol": "alpha", "file_path": "a.word", "line": 1 }))]);
    project.write("a.word", "def alpha\n");
    let client = open_words(&project, "deaf", Offer::kode());
    client.editor.open(&project.uri("a.word"), "def alpha\n");
    unasked(&client).prompt("go");
    super::faults::kill_while_it_hangs(&client, &log(&project));
}
