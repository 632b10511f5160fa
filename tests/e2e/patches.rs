//! `apply_patch`: several files by one call, asked about as one diff, undone as a whole, and free text where the API has it.
//!
//! Rule: after every undo and restore the files are compared by bytes and mode with what they were before the patch.

use std::fs;

use kode_e2e::{Client, Offer, Project, Script, Typing, call, say};
use serde_json::{Value, json};

const OPEN: &str = "one\ntwo\nthree\n";

const PATCH: &str = "*** Begin Patch
*** Add File: new/made.txt
+made
*** Update File: open.txt
@@
 one
-two
+TWO
*** Update File: tool.sh
*** Move to: bin/tool.sh
@@
-echo old
+echo new
*** Delete File: doomed.txt
*** End Patch";

const NAMES: [&str; 5] = ["new/made.txt", "open.txt", "tool.sh", "bin/tool.sh", "doomed.txt"];

#[cfg(unix)]
fn mode(facts: &fs::Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&facts.permissions()) & 0o777
}

/// The one bit of a mode that other systems have.
#[cfg(not(unix))]
fn mode(facts: &fs::Metadata) -> u32 {
    facts.permissions().readonly().into()
}

/// The bytes and the mode of the files that the patch touches; `None` for one that is not there.
fn files(project: &Project) -> Vec<Option<(String, u32)>> {
    let file = |name| {
        let facts = fs::metadata(project.path(name)).ok()?;
        Some((project.read(name), mode(&facts)))
    };
    NAMES.map(file).into()
}

fn script(patch: &str) -> Script {
    let read = |name: &str| call("Read", json!({ "file_path": name }));
    let steps =
        [read("open.txt"), read("tool.sh"), call("apply_patch", json!({ "input": patch })), say("Patched.")];
    Script::default().when("^patch", steps).otherwise([say("Hello.")])
}

fn project(patch: &str) -> Project {
    let project = Project::new(&script(patch));
    project.write("open.txt", OPEN).write("tool.sh", "#!/bin/sh\necho old\n").write("doomed.txt", "doomed\n");
    #[cfg(unix)]
    fs::set_permissions(project.path("tool.sh"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    project
}

/// A client whose model takes patches, behind the Responses format.
fn connect(project: &Project) -> Client {
    let model = json!({
        "provider": "openai-responses", "model": "gpt-5-codex", "apiKey": "key", "store": false,
        "baseUrl": format!("{}/v1", project.model.base_url()),
    });
    let client = project.start_as(&[], &[]);
    client.initialize(Offer::kode().options(json!({ "model": model })).params(&project.workspace()));
    client
}

#[test]
fn a_patch_is_asked_about_as_one_diff_and_undone_and_brought_back_whole() {
    let project = project(PATCH);
    let before = files(&project);
    let client = connect(&project);
    let uri = project.uri("open.txt");
    client.editor.open(&uri, OPEN);
    let session = client.session();
    let turn = session.prompt("patch it");
    let prompt = session.wait_permission(0);
    assert_eq!(prompt["title"], "Create new/made.txt, Edit open.txt, Move tool.sh to bin/tool.sh and 1 more");
    let unified = prompt["preview"]["unified"].as_str().unwrap_or_else(|| panic!("{prompt}"));
    for part in [
        "+++ b/new/made.txt",
        "--- a/tool.sh\n+++ b/bin/tool.sh",
        "-echo old",
        "--- a/doomed.txt\n+++ /dev/null",
        "-doomed",
    ] {
        assert!(unified.contains(part), "{part}: {unified}");
    }
    client.editor.type_text(&uri, &Typing::after("three", " mine"));
    session.respond(&prompt, json!({ "decision": "allow" })).unwrap();
    session.wait_done(&turn);
    assert_eq!(project.model.refusals(), Vec::<Value>::new());
    assert_eq!(client.editor.text(&uri), "one\nTWO\nthree mine\n");
    let after = files(&project);
    assert_eq!(after[3], Some(("#!/bin/sh\necho new\n".to_owned(), 0o755)));
    assert_eq!((&after[0], &after[2], &after[4]), (&Some(("made\n".to_owned(), 0o644)), &None, &None));

    let hunks = session.hunks();
    let all: Vec<&Value> = hunks.iter().collect();
    let undone = session.resolve(&all, "undo");
    assert_eq!(undone["failed"], json!([]), "{undone}");
    assert_eq!(client.editor.text(&uri), OPEN.replace("three", "three mine"));
    assert_eq!(files(&project), before);
    let again = session.revert(None);
    assert_eq!(again["failed"], json!([]), "{again}");
    assert_eq!(files(&project), after, "a file that is made again has its former mode");

    // The bytes are in the journal: another process restores them.
    let id = session.id.clone();
    drop(client);
    let client = connect(&project);
    client.editor.open(&uri, OPEN);
    let session = kode_e2e::Session::new(&client, &id);
    session.call("agent/session/load", json!({}));
    let checkpoints = session.call("agent/checkpoint/list", json!({}))["checkpoints"].clone();
    let id = &checkpoints[0]["checkpointId"];
    let answer = session.call(
        "agent/checkpoint/restore",
        json!({ "checkpointId": id, "what": "files", "userEdits": "keep" }),
    );
    session.wait_resolved(answer["resolutionId"].as_str().unwrap());
    assert_eq!(files(&project), before);
}

#[test]
fn lines_that_stand_in_a_file_otherwise_than_given_are_patched_there_or_shown() {
    let file = "fn a() {\n\trun(\"it's\", 1);\n\tstop(a - b);\n}\n\nfn b() {\n\twalk(2);\n}\n";
    let sections = "@@\n fn a() {\n-    run(\"it's\", 1);\n+    run(\"it's\", 2);\n     stop(a - b);\n }";
    let typographic = "@@\n-\trun(“it’s”, 2);\n+\trun(“it’s”, 3);\n \tstop(a – b);";
    let missing = "@@\n fn b() {\n-  walk(7);\n+  walk(8);\n }";
    let patch = |sections| {
        let input = format!("*** Begin Patch\n*** Update File: a.rs\n{sections}\n*** End Patch");
        call("apply_patch", json!({ "input": input }))
    };
    let read = call("Read", json!({ "file_path": "a.rs" }));
    let steps = [read, patch(sections), patch(typographic), patch(missing), say("Patched.")];
    let project = Project::new(&Script::default().when("^patch", steps));
    project.write("a.rs", file);
    let client = connect(&project);
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.run("patch it");
    assert_eq!(project.read("a.rs"), file.replace("1)", "3)"));
    let calls: Vec<Value> =
        session.calls().into_iter().filter(|call| call["name"] == "apply_patch").collect();
    assert_eq!(
        calls.iter().map(|call| &call["state"]).collect::<Vec<_>>(),
        ["COMPLETED", "COMPLETED", "FAILED"]
    );
    let request = project.model.last_request().to_string();
    for said in [
        "a section of `a.rs` stood at lines 1-4: the file has a tab for each 4 spaces.",
        "a section of `a.rs` stood at lines 2-3 with other quotes, dashes or spaces;",
        "section 1 was not found in `a.rs`. The nearest passage is at lines 6-8:",
    ] {
        assert!(request.contains(said), "{said}: {request}");
    }
}

#[test]
fn the_call_is_free_text_held_to_a_grammar_and_so_is_its_result() {
    let project = project(PATCH);
    let client = connect(&project);
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.run("patch it");
    let requests = project.model.requests();
    let tools = requests[0]["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "apply_patch").expect("it is offered");
    assert_eq!((&tool["type"], &tool["format"]["syntax"]), (&json!("custom"), &json!("lark")));
    let items = project.model.last_request()["input"].as_array().unwrap().clone();
    let of = |kind: &str| {
        items.iter().find(|item| item["type"] == kind).unwrap_or_else(|| panic!("{items:#?}")).clone()
    };
    assert_eq!(of("custom_tool_call")["input"], PATCH);
    let output = of("custom_tool_call_output")["output"].to_string();
    assert!(
        output.contains("Applied the patch to 4 files") && output.contains("tool.sh moved to bin/tool.sh"),
        "{output}"
    );
}

#[test]
fn a_patch_that_fails_in_its_last_file_changes_none() {
    let failing = PATCH.replace("*** Delete File: doomed.txt", "*** Delete File: missing.txt");
    let project = project(&failing);
    let before = files(&project);
    let client = connect(&project);
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.run("patch it");
    let failed = session.calls().into_iter().find(|call| call["name"] == "apply_patch").unwrap();
    assert_eq!(failed["state"], "FAILED");
    assert!(failed.to_string().contains("`missing.txt` does not exist"), "{failed}");
    assert_eq!(files(&project), before);
    assert_eq!(session.hunks(), Vec::<Value>::new());
}

#[test]
fn an_unsaved_document_is_not_deleted_and_a_rule_covers_every_file_of_a_patch() {
    let project = project(PATCH);
    let before = files(&project);
    let client = connect(&project);
    let uri = project.uri("doomed.txt");
    client.editor.open(&uri, "doomed\n");
    client.editor.type_text(&uri, &Typing::after("doomed", " no more"));
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.run("patch it");
    let failed = session.calls().into_iter().find(|call| call["name"] == "apply_patch").unwrap();
    assert!(failed.to_string().contains("the user has unsaved changes in it"), "{failed}");
    assert_eq!(files(&project), before);
    assert_eq!(client.editor.text(&uri), "doomed no more\n");

    project.write(".claude/settings.json", r#"{"permissions": {"deny": ["Edit(bin/**)"]}}"#);
    let client = connect(&project);
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.run("patch it");
    let denied = session.calls().into_iter().find(|call| call["name"] == "apply_patch").unwrap();
    assert_eq!(denied["state"], "DENIED", "{denied}");
    assert_eq!(files(&project), before);
}

#[test]
fn a_model_that_was_not_trained_on_patches_is_not_offered_them() {
    let project = project(PATCH);
    let client = project.open();
    client.session().run("hello");
    let request = project.model.last_request();
    let names: Vec<&str> =
        request["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.contains(&"Edit") && !names.contains(&"apply_patch"), "{names:?}");
}

#[test]
fn a_patch_that_is_taken_back_leaves_earlier_changes_as_they_were() {
    let read = |name: &str| call("Read", json!({ "file_path": name }));
    let edit = json!({ "file_path": "a.txt", "old_string": "two", "new_string": "TWO" });
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-TWO\n+2\n*** Update File: b.txt\n@@\n-yes\n+no\n*** End Patch";
    let script = Script::default()
        .when("^edit", [read("a.txt"), call("Edit", edit), say("Edited.")])
        .when("^patch", [read("b.txt"), call("apply_patch", json!({ "input": patch })), say("Not patched.")]);
    let project = Project::new(&script);
    project.write("a.txt", OPEN).write("b.txt", "x\nyes\n");
    let client = connect(&project);
    let (a, b) = (project.uri("a.txt"), project.uri("b.txt"));
    client.editor.open(&a, OPEN);
    client.editor.open(&b, "x\nyes\n");
    let session = client.session();
    let turn = session.prompt("edit it");
    session.allow(0);
    session.wait_done(&turn);
    let before = session.hunks();
    let turn = session.prompt("patch it");
    let prompt = session.wait_permission(1);
    client.editor.type_text(&b, &Typing::after("ye", "+"));
    session.respond(&prompt, json!({ "decision": "allow" })).unwrap();
    session.wait_done(&turn);
    let request = project.model.last_request().to_string();
    assert!(request.contains("None of the files was changed"), "{request}");
    assert_eq!(client.editor.text(&a), OPEN.replace("two", "TWO"));
    assert_eq!(client.editor.text(&b), "x\nye+s\n");
    assert_eq!(session.hunks(), before);
    let undone = session.resolve(&before.iter().collect::<Vec<_>>(), "undo");
    assert_eq!(undone["failed"], json!([]), "{undone}");
    assert_eq!(client.editor.text(&a), OPEN);
}
