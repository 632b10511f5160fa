//! Files that are named by several spellings: in another letter case, and by the editor's own URIs.
//!
//! Rule: the disk of the temporary folder decides the expected result, so that the same tests hold on every disk. One that folds
//! letters and Unicode forms is put below them with `TMPDIR` (see `tests/tools/folding-disk`).

use kode_e2e::{Project, Script, call, say, step};
use serde_json::{Value, json};

/// Whether the disk of a project takes both letter cases for one.
fn folds(project: &Project) -> bool {
    project.write("Probe", "");
    project.path("pROBE").exists()
}

fn file(name: &str) -> String {
    format!("{{{{cwd}}}}/{name}")
}

fn read(name: &str) -> Value {
    json!({ "file_path": file(name) })
}

fn edit(name: &str) -> Value {
    json!({ "file_path": file(name), "old_string": "one", "new_string": "two" })
}

#[test]
fn a_file_that_was_read_is_edited_by_another_spelling_exactly_where_it_is_the_same_file() {
    let script = Script::default().when(
        "^edit",
        [call("Read", read("Src/README.md")), call("Edit", edit("src/readme.MD")), say("Edited.")],
    );
    let project = Project::new(&script);
    let folds = folds(&project);
    project.write("Src/README.md", "one\n");
    let client = project.open();
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.run("edit");
    assert_eq!(project.read("Src/README.md"), if folds { "two\n" } else { "one\n" });
    let changed: Vec<_> = session.edited_files().iter().map(|file| file["uri"].clone()).collect();
    let expected: &[Value] = if folds { &[project.uri("Src/README.md").into()] } else { &[] };
    assert_eq!(changed, expected, "{:?}", session.calls());
}

#[test]
fn an_open_document_is_the_text_of_its_file_by_each_spelling() {
    let script = Script::default().when(
        "^edit",
        [call("Read", read("Src/README.md")), call("Edit", edit("Src/README.md")), say("Edited.")],
    );
    let project = Project::new(&script);
    let folds = folds(&project);
    project.write("Src/README.md", "one saved\n");
    let client = project.open();
    let uri = project.uri("src/readme.md");
    client.editor.open(&uri, "one unsaved\n");
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.run("edit");
    let (shown, saved) =
        if folds { ("two unsaved\n", "one saved\n") } else { ("one unsaved\n", "two saved\n") };
    assert_eq!((&*client.editor.text(&uri), &*project.read("Src/README.md")), (shown, saved));
    let edited = session.edited_files();
    let named = if folds { uri } else { project.uri("Src/README.md") };
    assert_eq!(edited[0]["uri"], json!(named), "{edited:?}");
}

/// The files of a workspace that is empty but for two files that one answer makes, with their text, and the states of both calls.
fn made(names: [&str; 2]) -> (Vec<(String, String)>, Vec<Value>) {
    let write = |name: &str, content: &str| json!({ "file_path": file(name), "content": content });
    let both = step().call("Write", write(names[0], "first\n")).call("Write", write(names[1], "second\n"));
    let project = Project::new(&Script::default().when("^make", [both, say("Made.")]));
    let client = project.open();
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.run("make");
    let names = std::fs::read_dir(project.workspace()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut files: Vec<_> = names
        .map(|name| name.into_string().unwrap())
        .filter(|name| name.eq_ignore_ascii_case("new.txt"))
        .map(|name| (name.clone(), project.read(&name)))
        .collect();
    files.sort();
    (files, session.calls().iter().map(|call| call["state"].clone()).collect())
}

#[test]
fn two_new_files_of_one_name_are_made_one_after_the_other_where_they_are_one() {
    let alike = made(["New.txt", "nEW.TXT"]);
    if folds(&Project::new(&Script::default())) {
        assert_eq!(alike, made(["New.txt", "New.txt"]));
        assert_eq!(alike.0.len(), 1);
    } else {
        let files =
            [("New.txt", "first\n"), ("nEW.TXT", "second\n")].map(|(name, text)| (name.into(), text.into()));
        assert_eq!(alike, (files.to_vec(), vec![json!("COMPLETED"); 2]));
    }
}

#[test]
fn a_document_keeps_the_uri_that_its_editor_gave_it() {
    let script = Script::default()
        .when("^edit", [call("Read", read("a(b).txt")), call("Edit", edit("a(b).txt")), say("Edited.")]);
    let project = Project::new(&script);
    project.write("a(b).txt", "one\n");
    let client = project.open();
    // As VS Code writes it, which is not how the server would.
    let uri = project.uri("a(b).txt").replace('(', "%28").replace(')', "%29");
    client.editor.open(&uri, "one\n");
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.run("edit");
    assert_eq!(client.editor.text(&uri), "two\n");
    let edited = session.edited_files();
    assert_eq!(edited[0]["uri"], json!(uri));
    assert!(edited[0]["baselineUri"].as_str().unwrap().contains("a%2528b%2529"), "{edited:?}");
    let changed = session.wait_event("hunks", |event| event["type"] == "edits_changed");
    assert_eq!(changed["uris"], json!([uri]));
}
