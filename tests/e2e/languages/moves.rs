//! Files that the agent moves: the language server's edits of what refers to them are part of the same change.
//!
//! Rule: one prompt and one checkpoint for all of it; a server that fails is a note in the result and nothing else.

use kode_e2e::{Offer, Project, Typing, call};
use serde_json::json;

use super::wrap::open_words;
use super::{open, project_of, results, unasked};

const PATCH: &str =
    "*** Begin Patch\n*** Update File: a.word\n*** Move to: c.word\n@@\n-fair\n+good\n*** End Patch";
const MOVED: &str = "def alpha\nfair\nof a\n";
const USING: &str = "use a\nuse alpha\n";

fn project() -> Project {
    let project = project_of([
        call("Read", json!({ "file_path": "a.word" })),
        call("apply_patch", json!({ "input": PATCH })),
    ]);
    project.write("a.word", MOVED).write("b.word", USING);
    project
}

/// The moved file with what the patch and the server change in it.
fn moved() -> String {
    MOVED.replace("fair", "good").replace("of a", "of c")
}

#[test]
fn what_refers_to_a_moved_file_is_updated_in_the_same_prompt_and_checkpoint() {
    let project = project();
    let client = open(&project, "follows");
    let session = client.session();
    let turn = session.prompt("go");
    let prompt = session.wait_permission(0);
    let (title, preview) = (prompt["title"].to_string(), prompt["preview"].to_string());
    assert!(title.contains("Move a.word to c.word, Update 2 files"), "{title}");
    assert!(preview.contains("b.word") && preview.contains("use c"), "{preview}");
    client.editor.open(&project.uri("b.word"), USING);
    client.editor.type_text(&project.uri("b.word"), &Typing::before("use alpha", "typed "));
    session.respond(&prompt, json!({ "decision": "allow", "scope": "once" })).unwrap();
    session.wait_done(&turn);
    let (report, failed) = results(&project).remove(1);
    assert!(!failed && report.contains("updated references to the moved files: a.word, b.word"), "{report}");
    assert!(!project.path("a.word").exists());
    assert_eq!(project.read("c.word"), moved());
    assert_eq!(client.editor.text(&project.uri("b.word")), "use c\ntyped use alpha\n");
    let checkpoints = session.call("agent/checkpoint/list", json!({}));
    let checkpoint = &checkpoints["checkpoints"][0]["checkpointId"];
    let restore = json!({ "checkpointId": checkpoint, "what": "files", "userEdits": "keep" });
    let restored = session.call("agent/checkpoint/restore", restore);
    session.wait_resolved(restored["resolutionId"].as_str().unwrap());
    assert_eq!(project.read("a.word"), MOVED);
    assert_eq!(client.editor.text(&project.uri("b.word")), "use a\ntyped use alpha\n");
    assert!(!project.path("c.word").exists());
}

#[test]
fn a_server_that_does_not_say_what_goes_with_a_move_costs_a_note() {
    let project = project();
    let client = open(&project, "follows and sticks");
    unasked(&client).run("go");
    let (report, failed) = results(&project).remove(1);
    let note = "References to the moved files were not updated, because the language server did not answer within 15 s";
    assert!(!failed && report.contains(note), "{report}");
    assert_eq!(
        (project.read("c.word"), project.read("b.word")),
        (MOVED.replace("fair", "good"), USING.into())
    );
    assert_eq!(client.shut_down(), 0);
}

#[test]
fn a_server_that_follows_no_moves_is_not_asked() {
    let project = project();
    let client = open(&project, "");
    unasked(&client).run("go");
    let (report, failed) = results(&project).remove(1);
    assert!(!failed && !report.contains("refers to"), "{report}");
    assert_eq!(project.read("b.word"), USING);
}

#[test]
fn a_wrapped_server_is_asked_what_goes_with_a_move() {
    let project = project();
    let client = open_words(&project, "follows", Offer::kode());
    client.editor.open(&project.uri("b.word"), USING);
    unasked(&client).run("go");
    let (report, failed) = results(&project).remove(1);
    assert!(!failed && report.contains("updated references to the moved files: a.word, b.word"), "{report}");
    assert_eq!(project.read("c.word"), moved());
    assert_eq!(client.editor.text(&project.uri("b.word")), USING.replace("use a\n", "use c\n"));
}
