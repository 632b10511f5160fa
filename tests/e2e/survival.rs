//! Changes that outlive the server: killed at any moment, it knows them again, wherever they stand by then.
//!
//! Rule: files are compared by bytes; nothing that was written while no server ran is lost.

use std::fs;
use std::time::{Duration, Instant};

use kode_e2e::{Client, Offer, Policy, Project, Script, Session, Typing, call, say, step};
use serde_json::{Value, json};

/// Texts in encodings and with line ends that a careless program would lose.
fn files() -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
    let gbk = |line: &[u8]| [b"first \xd6\xd0\xce\xc4\r\n", line, b"last \xb2\xe2\xca\xd4"].concat();
    let utf16 = |text: &str| -> Vec<u8> {
        [0xFEFF].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    };
    vec![
        ("crlf.txt", b"one\r\ntwo\r\nthree".to_vec(), b"one\r\nTWO\r\nthree".to_vec()),
        ("mixed.txt", b"one\ntwo\r\nthree\r".to_vec(), b"one\nTWO\r\nthree\r".to_vec()),
        ("gbk.txt", gbk(b"two\r\n"), gbk(b"TWO\r\n")),
        ("utf16.txt", utf16("one\r\ntwo 🙂\r\n"), utf16("one\r\nTWO 🙂\r\n")),
        ("bom.txt", b"\xef\xbb\xbftwo\n".to_vec(), b"\xef\xbb\xbfTWO\n".to_vec()),
    ]
}

fn project() -> Project {
    let mut steps = Vec::new();
    for (name, ..) in files() {
        let path = format!("{{{{cwd}}}}/{name}");
        let edit = json!({ "file_path": path, "old_string": "two", "new_string": "TWO" });
        steps.push(step().call("Read", json!({ "file_path": path })));
        steps.push(call("Edit", edit));
    }
    steps.push(say("Edited."));
    let project = Project::new(&Script::default().when("^edit", steps).otherwise([say("Hello.")]));
    for (name, before, _) in files() {
        project.write(name, before);
    }
    project
}

/// A session that has edited all files, whose server is then killed; gives its id.
fn edited_and_killed(project: &Project) -> String {
    let client = project.open();
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.run("edit");
    for (name, _, after) in files() {
        assert_eq!(fs::read(project.path(name)).unwrap(), after, "{name}: {:?}", session.calls());
    }
    client.kill();
    session.id.clone()
}

fn loaded<'a>(client: &'a Client, id: &str) -> Session<'a> {
    let session = Session::new(client, id);
    session.call("agent/session/load", json!({}));
    session
}

/// The first hunk of a file once it is listed as it should be; the earlier list is reported as out of date.
fn listed(session: &Session<'_>, name: &str, fits: &dyn Fn(&Value) -> bool) -> Value {
    let mut seen = 0;
    loop {
        let files = session.edited_files();
        let hunk = files.into_iter().find(|file| file["path"] == name).map(|file| file["hunks"][0].clone());
        if let Some(hunk) = hunk.filter(fits) {
            return hunk;
        }
        let mut count = 0;
        session.wait_event(&format!("a change of what is listed of {name}"), |event| {
            count += usize::from(event["type"] == "edits_changed");
            count > seen
        });
        seen += 1;
    }
}

#[test]
fn undoing_after_a_kill_gives_back_every_byte() {
    let project = project();
    let id = edited_and_killed(&project);
    let client = project.open();
    let session = loaded(&client, &id);
    let hunks = session.hunks();
    assert_eq!(hunks.len(), files().len());
    let outcome = session.resolve(&hunks.iter().collect::<Vec<_>>(), "undo");
    assert_eq!((&outcome["failed"], &outcome["conflicts"]), (&json!([]), &json!([])));
    for (name, before, _) in files() {
        assert_eq!(fs::read(project.path(name)).unwrap(), before, "{name}");
    }
    // And again: a decision before the kill can be taken back after it.
    client.kill();
    let client = project.open();
    let session = loaded(&client, &id);
    assert_eq!(session.hunks(), [] as [Value; 0]);
    session.revert(outcome["resolutionId"].as_str());
    for (name, _, after) in files() {
        assert_eq!(fs::read(project.path(name)).unwrap(), after, "{name}");
    }
}

#[test]
fn hunks_are_found_again_after_others_have_written_while_no_server_ran() {
    let project = project();
    let id = edited_and_killed(&project);
    project.write("crlf.txt", b"zero\r\none\r\nmine TWO\r\nthree");
    project.write("bom.txt", b"\xef\xbb\xbfabove\nTWO\n");
    fs::remove_file(project.path("mixed.txt")).unwrap();
    let client = project.open();
    let session = loaded(&client, &id);
    let of = |name: &str, fits: &dyn Fn(&Value) -> bool| listed(&session, name, fits);
    let above = of("bom.txt", &|hunk| hunk["lineRange"] == json!({ "start": 1, "end": 2 }));
    let moved = of("crlf.txt", &|hunk| hunk["range"]["start"] == json!({ "line": 2, "character": 5 }));
    session.resolve(&[&moved], "undo");
    assert_eq!(project.read("crlf.txt"), "zero\r\none\r\nmine two\r\nthree");
    session.resolve(&[&above], "undo");
    assert_eq!(fs::read(project.path("bom.txt")).unwrap(), b"\xef\xbb\xbfabove\ntwo\n");
    assert!(!project.path("mixed.txt").exists(), "what the user has deleted stays deleted");
}

#[test]
fn a_document_that_is_opened_again_after_a_kill_has_its_hunks() {
    let project = project();
    let uri = project.uri("crlf.txt");
    let client = project.connect(&Offer::kode());
    client.editor.open(&uri, "unsaved\r\ntwo\r\n");
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.run("edit");
    client.editor.type_text(&uri, &Typing::before("unsaved", "mine "));
    let listed = session.hunks();
    let text = client.editor.text(&uri);
    client.kill();
    let id = session.id.clone();

    let client = project.connect(&Offer::kode());
    client.editor.open(&uri, &format!("later\r\n{text}"));
    let session = loaded(&client, &id);
    let hunks = session.hunks();
    let ids = |hunks: &[Value]| hunks.iter().map(|hunk| hunk["hunkId"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&hunks), ids(&listed));
    let file = session.edited_files().into_iter().find(|file| file["uri"] == uri.as_str()).unwrap();
    assert_eq!(
        (&file["version"], &file["hunks"][0]["lineRange"]),
        (&json!(1), &json!({ "start": 2, "end": 3 }))
    );
    session.resolve(&[&file["hunks"][0]], "undo");
    assert_eq!(client.editor.text(&uri), "later\r\nmine unsaved\r\ntwo\r\n");
}

/// A session whose server was killed while the editor had an edit of `two` to `TWO` and had not answered, with the document
/// unchanged in the editor by then: the hunks, and the texts after their undo.
fn hunks_after_a_kill_during_an_edit(text: &str) -> (usize, String) {
    let edit =
        call("Edit", json!({ "file_path": "{{cwd}}/a.txt", "old_string": "two", "new_string": "TWO" }));
    let read = call("Read", json!({ "file_path": "{{cwd}}/a.txt" }));
    let project = Project::new(&Script::new([read, edit, say("Edited.")]));
    project.write("a.txt", "one\ntwo\nthree\n");
    let uri = project.uri("a.txt");
    let client = project.connect(&Offer::kode());
    client.editor.open(&uri, "one\ntwo\nthree\n");
    client.editor.next(Policy::Ignore);
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.prompt("edit");
    client.editor.wait_edit();
    client.kill();
    let id = session.id.clone();
    let client = project.connect(&Offer::kode());
    client.editor.open(&uri, text);
    let session = loaded(&client, &id);
    let hunks = session.hunks();
    if !hunks.is_empty() {
        session.resolve(&hunks.iter().collect::<Vec<_>>(), "undo");
    }
    (hunks.len(), client.editor.text(&uri))
}

#[test]
fn an_edit_during_which_the_server_was_killed_is_the_agent_s_also_when_the_user_typed_since() {
    for (text, undone) in [
        ("one\nTWO\nthree\n", "one\ntwo\nthree\n"),
        ("one\nTWO\nthreex\n", "one\ntwo\nthreex\n"),
        ("xone\nTWO\nthree\n", "xone\ntwo\nthree\n"),
        ("one\nTWO mine\nthree\n", "one\ntwo mine\nthree\n"),
    ] {
        assert_eq!(hunks_after_a_kill_during_an_edit(text), (1, undone.to_owned()), "{text:?}");
    }
    // The edit never reached the document: its content is the user's.
    for text in ["one\ntwo\nthree\n", "one\ntwox\nthree\n"] {
        assert_eq!(hunks_after_a_kill_during_an_edit(text), (0, text.to_owned()), "{text:?}");
    }
}

#[test]
fn a_session_begins_where_the_state_folder_cannot_be_written_and_says_so() {
    let project = Project::new(&Script::new([say("Hello."), say("Again.")]));
    fs::create_dir_all(project.home()).unwrap();
    // A file in the place of the folder refuses every user, the superuser included.
    fs::write(project.home().join("sessions"), "").unwrap();
    let temporary = project.outside().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let variables = [("TMPDIR", temporary.to_str().unwrap())];
    let start = || {
        let client = project.start_as(&[], &variables);
        client.initialize(Offer::kode().params(&project.workspace()));
        client
    };
    let client = start();
    let session = client.session();
    let notice = json!(session.notices()).to_string();
    assert!(notice.contains("This session is not stored") && notice.contains("KODE_LS_HOME"), "{notice}");
    session.wait_event("the event", |event| event["type"] == "storage_failure");
    for _ in 0..2 {
        assert_eq!(session.run("hello")["stopReason"], "end_turn");
    }
    client.kill();
    let left: Vec<_> = fs::read_dir(&temporary).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!left.is_empty(), "a killed server removes nothing");

    let output = project.run_as(&["run", "hello"], "", &variables);
    let (answer, errors) = (&output.stdout, &output.stderr);
    assert!(output.code == 0 && answer.contains("Hello."), "{:?} {answer}{errors}", output.code);
    assert!(errors.contains("not stored"), "{errors}");
    let _server = start();
    let until = Instant::now() + Duration::from_secs(30);
    while left.iter().any(|folder| folder.exists()) {
        assert!(Instant::now() < until, "the next processes leave {left:?}");
        std::thread::yield_now();
    }
}

#[test]
fn a_session_whose_folder_is_removed_is_stored_again_whole() {
    let project = Project::new(&Script::new([say("Hello."), say("Again.")]));
    let client = project.open();
    let session = client.session();
    session.run("before");
    // The server may still write the end of the turn, and a file that it makes meanwhile keeps its folder.
    let folder = project.home().join("sessions");
    let until = Instant::now() + Duration::from_secs(30);
    while let Err(error) = fs::remove_dir_all(&folder) {
        assert!(Instant::now() < until, "{error}");
    }
    session.run("after");
    let news = session.wait_event("the report", |event| event["type"] == "storage_failure");
    assert!(news["message"].as_str().unwrap().contains("Another process removed"), "{news}");
    let (id, shown) = (session.id.clone(), session.items());
    client.kill();
    let client = project.open();
    let session = Session::new(&client, &id);
    session.call("agent/session/load", json!({}));
    assert_eq!(session.items(), shown);
}
