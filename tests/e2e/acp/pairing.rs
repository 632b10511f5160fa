//! Pairs: `kode-ls acp` works on the documents of the language server that the same editor runs.
//!
//! Rule: two real processes; the text in the editor and on the disk counts. The client of ACP is one whose own file methods
//! would lose unsaved text.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};

use kode_e2e::{AcpClient, Client, LIMIT, Offer, Project, Reply, Typing};
use serde_json::{Value, json};

use super::{EDITS, counting, edit_sessions, of_kind, project};

/// A client that overwrites buffers, with a session in the mode that edits unasked.
fn careless(project: &Project) -> (AcpClient, String) {
    let client = project.acp_as(&[]);
    let files =
        json!({ "fs": { "readTextFile": true, "writeTextFile": true }, "session": { "notices": {} } });
    client.initialize_as("CodeCompanion.nvim", files);
    client
        .on_request("fs/write_text_file", |_, request| panic!("the client is not asked to write: {request}"));
    client.on_request("fs/read_text_file", |_, _| {
        Reply::Error(-32_603, "the client is not asked to read".into())
    });
    let session = client.new_session();
    client.set_mode(&session, "acceptEdits");
    (client, session)
}

/// An editor with `a.txt` open, and a line that is not saved.
fn editor(project: &Project) -> (Client, String) {
    let (client, uri) = (project.open(), project.uri("a.txt"));
    client.editor.open(&uri, "one\ntwo\n");
    client.editor.type_text(&uri, &Typing::before("two", "unsaved\n"));
    // The server has taken in all of it, and the offer is there.
    client.call("agent/doctor", json!({}));
    offered(project);
    (client, uri)
}

/// Waits for the offer of a language server, which nothing reports.
fn offered(project: &Project) {
    let folder = project.home().join("pairs");
    let is_there = || {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).any(|path| path.extension().is_some_and(|name| name == "json"))
    };
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !is_there() {
        assert!(std::time::Instant::now() < limit, "no language server offers itself");
        std::thread::yield_now();
    }
}

#[test]
fn unsaved_text_is_read_and_kept_where_the_client_alone_would_lose_it() {
    let project = project();
    let (lsp, uri) = editor(&project);
    let (client, session) = careless(&project);
    let updates = client.run(&session, "edit");
    assert_eq!(lsp.editor.text(&uri), "one\nunsaved\nTWO\n");
    assert_eq!(project.read("a.txt"), "one\ntwo\n", "the editor saves, not the agent");
    assert!(project.model.requests().iter().any(|request| request.to_string().contains("unsaved")));
    let last = *of_kind(&updates, "tool_call_update").last().unwrap();
    assert_eq!(last["content"][0]["newText"], "one\nunsaved\nTWO\n");
    // It is one step of undo in the editor, with a label.
    let [edit] = lsp.editor.edits().try_into().expect("one edit");
    assert!(edit.params["label"].as_str().is_some_and(|label| label.contains("a.txt")), "{}", edit.params);
    // Text typed between two prompts is seen by the next.
    lsp.editor.type_text(&uri, &Typing::before("one", "typed later\n"));
    client.run(&session, "read");
    assert!(project.model.last_request().to_string().contains("typed later"));
}

#[test]
fn the_hunks_of_a_paired_session_are_listed_in_the_editor_and_judged_where_it_runs() {
    let project = project();
    let (lsp, uri) = editor(&project);
    let (client, session) = careless(&project);
    client.run(&session, "edit");
    let followed = kode_e2e::Session::new(&lsp, &session);
    followed.call("agent/session/load", json!({}));
    let hunks = followed.hunks();
    assert_eq!(hunks.len(), 1, "{hunks:#?}");
    let refused = followed.try_resolve(&hunks.iter().collect::<Vec<_>>(), "undo", "ask").unwrap_err();
    assert!(refused.message.contains("CodeCompanion.nvim"), "{}", refused.message);
    client.run(&session, "/undo 1");
    assert_eq!(lsp.editor.text(&uri), "one\nunsaved\ntwo\n");
}

/// Waits for the newest diagnostics of a document, until they are as wanted.
fn wait_diagnostics(lsp: &Client, uri: &str, what: &str, is_meant: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    lsp.wait_for(what, |received| {
        let of_file = |message: &&Value| message["params"]["uri"] == uri;
        let newest = received.of("textDocument/publishDiagnostics").filter(of_file).last()?;
        let found = newest["params"]["diagnostics"].as_array()?.clone();
        is_meant(&found).then_some(found)
    })
}

#[test]
fn the_hunks_of_a_paired_session_are_diagnostics_in_the_editor_as_long_as_they_wait() {
    let project = project();
    let lsp = project.connect(&Offer::plain());
    let uri = project.uri("a.txt");
    lsp.editor.open(&uri, "one\ntwo\n");
    offered(&project);
    let (client, session) = careless(&project);
    client.run(&session, "edit");
    let at =
        |line: u64| move |found: &[Value]| found.len() == 1 && found[0]["range"]["start"]["line"] == line;
    let shown = wait_diagnostics(&lsp, &uri, "the hunk", at(1));
    assert_eq!((&shown[0]["source"], &shown[0]["severity"]), (&json!("kode"), &json!(4)));
    assert_eq!(
        shown[0]["message"],
        "Kode changed 1 line (Edit, +1 -1); of the session in CodeCompanion.nvim"
    );
    // It moves with the text.
    lsp.editor.type_text(&uri, &Typing::before("one", "zero\n"));
    wait_diagnostics(&lsp, &uri, "the hunk one line below", at(2));
    // A second session has hunks beside it.
    let other = client.new_session();
    client.set_mode(&other, "acceptEdits");
    client.run(&other, "write");
    let new = project.uri("new.txt");
    wait_diagnostics(&lsp, &new, "the hunk of the other session", |found| found.len() == 1);
    client.run(&session, "/undo 1");
    wait_diagnostics(&lsp, &uri, "the end of the hunk", <[Value]>::is_empty);
    // Hunks that a client leaves behind go with it.
    client.close();
    wait_diagnostics(&lsp, &new, "the end of the session", <[Value]>::is_empty);
}

#[test]
fn hunks_of_a_session_that_the_editor_takes_over_are_its_own() {
    let project = project();
    let lsp = project.connect(&Offer::plain());
    let uri = project.uri("a.txt");
    lsp.editor.open(&uri, "one\ntwo\n");
    offered(&project);
    let (client, session) = careless(&project);
    client.run(&session, "edit");
    wait_diagnostics(&lsp, &uri, "the hunk", |found| found.len() == 1);
    lsp.call("agent/session/takeOver", json!({ "sessionId": session }));
    let own =
        |found: &[Value]| found.len() == 1 && !found[0]["message"].as_str().unwrap().contains("session in");
    wait_diagnostics(&lsp, &uri, "the hunk of the editor's own session", own);
}

#[test]
fn when_the_language_server_goes_the_session_continues_alone_and_says_so() {
    let project = project();
    let (lsp, _) = editor(&project);
    let (client, session) = careless(&project);
    client.run(&session, "read");
    lsp.kill();
    let told = client.wait_update(&session, "the notice", |update| update["sessionUpdate"] == "notice");
    assert!(told.to_string().contains("unsaved text is no longer seen"), "{told}");
    client.run(&session, "edit");
    assert_eq!(project.read("a.txt"), "one\nTWO\n");
}

#[test]
fn only_the_server_of_the_same_editor_and_workspace_is_paired_with() {
    let project = project();
    let other = project.outside().join("other");
    fs::create_dir(&other).unwrap();
    let of_another_workspace = || {
        let lsp = project.start();
        lsp.initialize(Offer::kode().params(&other));
        lsp
    };
    let of_another_editor = || project.connect_below_editor(&project.workspace());
    let servers: [&dyn Fn() -> Client; 2] = [&of_another_editor, &of_another_workspace];
    for start in servers {
        let lsp = start();
        let uri = project.uri("a.txt");
        lsp.editor.open(&uri, "one\ntwo\n");
        lsp.editor.type_text(&uri, &Typing::before("two", "unsaved\n"));
        offered(&project);
        project.write("a.txt", "one\ntwo\n");
        let (client, session) = careless(&project);
        client.run(&session, "edit");
        assert_eq!(lsp.editor.text(&uri), "one\nunsaved\ntwo\n");
        assert_eq!(project.read("a.txt"), "one\nTWO\n");
        assert_eq!(lsp.shut_down(), 0);
    }
}

#[test]
fn an_offer_is_private_and_gone_with_its_server() {
    let project = project();
    let (lsp, _) = editor(&project);
    let folder = project.home().join("pairs");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let offer = files.iter().find(|path| path.extension().is_some_and(|name| name == "json")).unwrap();
    assert_eq!((files.len(), mode(offer)), (2, 0o600));
    // A stranger without the token is sent away, and the others are served.
    let socket = files.iter().find(|path| path.extension().is_some_and(|name| name == "sock")).unwrap();
    let mut stranger = std::os::unix::net::UnixStream::connect(socket).unwrap();
    let hello =
        json!({ "jsonrpc": "2.0", "id": 0, "method": "hello", "params": { "version": 1, "token": "guess" } });
    std::io::Write::write_all(&mut stranger, format!("{hello}\n").as_bytes()).unwrap();
    stranger.set_read_timeout(Some(LIMIT)).unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut stranger, &mut said).unwrap();
    assert_eq!(said, "");
    let (client, session) = careless(&project);
    client.run(&session, "read");
    assert!(project.model.last_request().to_string().contains("unsaved"));
    assert_eq!(lsp.shut_down(), 0);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn no_key_is_lost_while_the_agent_edits_and_the_user_types() {
    (0..edit_sessions()).for_each(|_| count_while_typing());
}

fn count_while_typing() {
    let project = Project::new(&counting());
    project.write("a.txt", "typed:\ncount: [0]\n");
    let (lsp, uri) = (project.open(), project.uri("a.txt"));
    lsp.editor.open(&uri, "typed:\ncount: [0]\n");
    lsp.call("agent/doctor", json!({}));
    offered(&project);
    let (client, session) = careless(&project);
    let is_over = AtomicBool::new(false);
    let typed = std::thread::scope(|scope| {
        let typing = scope.spawn(|| {
            let (mut typed, mut seen) = (String::new(), 0);
            while !is_over.load(Ordering::Relaxed) {
                // A key for each message of the agent: between any two steps of an edit.
                let now = client.look(|received| received.messages.len());
                if std::mem::replace(&mut seen, now) == now {
                    std::thread::yield_now();
                    continue;
                }
                let key = char::from(b'a' + u8::try_from(typed.len() % 26).unwrap());
                lsp.editor.type_text(&uri, &Typing::before("\n", &key.to_string()));
                typed.push(key);
            }
            typed
        });
        let id = client.send_prompt(&session, "count");
        while client.look(|received| received.around_answer(id).is_none()) {
            std::thread::yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
        typing.join().unwrap()
    });
    let text = lsp.editor.text(&uri);
    assert!(!typed.is_empty());
    let expected: Value = json!(format!("typed:{typed}\ncount: [{EDITS}]\n"));
    assert_eq!(json!(text), expected);
}
