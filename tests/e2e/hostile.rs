//! Files that become something else between the agent's check them and its edit.
//!
//! Rule: an edit is made on what it was asked for, or refused with a text that names the problem; whatever is outside
//! of the workspace stays as it is.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use kode_e2e::{Offer, Project, Script, call, say};
use serde_json::{Value, json};

const TEXT: &str = "one\ntwo\nthree\n";
const EDITED: &str = "one\nTWO\nthree\n";

/// The event of a file.
type Happening<'a> = &'a dyn Fn(&Project);

/// The outcome of an edit.
struct Outcome {
    state: String,
    /// The texts for the model.
    result: String,
}

/// Lets the agent read `name`, lets `happen` happen, and lets it edit the file.
fn edit_after(project: &Project, name: &str, happen: impl FnOnce(&Project)) -> Outcome {
    let client = project.connect(&Offer::kode());
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    let turn = session.prompt(name);
    project.model.wait_until_held("read");
    happen(project);
    project.model.release("read");
    let over = session.wait_event("a prompt or the end", |event| {
        event["type"] == "permission_required"
            || (event["type"] == "done" && event["turnId"] == turn.as_str())
    });
    if over["type"] == "permission_required" {
        session.respond(&over["prompt"], json!({ "decision": "deny", "scope": "once" })).unwrap();
        session.wait_done(&turn);
    }
    let [(result, _)] = project.model.last_results().try_into().unwrap();
    Outcome { state: session.calls()[1]["state"].as_str().unwrap().to_owned(), result }
}

fn project() -> Project {
    let path = "{{cwd}}/{{prompt}}";
    let script = Script::new([
        call("Read", json!({ "file_path": path })),
        call("Edit", json!({ "file_path": path, "old_string": "two", "new_string": "TWO" })).gate("read", 0),
        say("Tried."),
    ]);
    let project = Project::new(&script);
    project.write("a.txt", TEXT).write("folder/b.txt", TEXT);
    fs::create_dir(project.outside().join("elsewhere")).unwrap();
    fs::write(project.outside().join("elsewhere/b.txt"), TEXT).unwrap();
    project
}

/// Everything outside of the workspace is unchanged.
fn assert_untouched_outside(project: &Project, what: &str) {
    let outside = project.outside().join("elsewhere");
    assert_eq!(fs::read_to_string(outside.join("b.txt")).unwrap(), TEXT, "{what}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "{what}");
}

#[test]
fn another_file_in_its_place_is_edited_by_its_own_text_or_refused() {
    for new in ["zero\none\ntwo\nthree\n", "two\ntwo\n", "other\n"] {
        let project = project();
        let outcome = edit_after(&project, "a.txt", |project| {
            project.write("new", new);
            fs::rename(project.path("new"), project.path("a.txt")).unwrap();
        });
        let now = project.read("a.txt");
        match outcome.state.as_str() {
            "COMPLETED" => assert_eq!(now, new.replacen("two", "TWO", 1), "{}", outcome.result),
            "FAILED" => assert_eq!(now, new, "{}", outcome.result),
            other => panic!("{other}: {}", outcome.result),
        }
        assert_eq!(now.matches("TWO").count(), usize::from(outcome.state == "COMPLETED"), "{now}");
        assert!(outcome.result.contains("a.txt"), "{}", outcome.result);
    }
}

#[test]
fn what_cannot_be_edited_any_more_is_refused_and_left_alone() {
    let read_only = |project: &Project| {
        fs::set_permissions(project.path("a.txt"), fs::Permissions::from_mode(0o444)).unwrap();
    };
    let deleted = |project: &Project| fs::remove_file(project.path("a.txt")).unwrap();
    let folder = |project: &Project| {
        deleted(project);
        fs::create_dir(project.path("a.txt")).unwrap();
    };
    let renamed = |project: &Project| fs::rename(project.path("a.txt"), project.path("A.txt")).unwrap();
    let binary = |project: &Project| {
        project.write("a.txt", b"two\x00\xff\x00");
    };
    let link_out = |project: &Project| {
        deleted(project);
        symlink(project.outside().join("elsewhere/b.txt"), project.path("a.txt")).unwrap();
    };
    let link_nowhere = |project: &Project| {
        deleted(project);
        symlink(project.outside().join("elsewhere/new.txt"), project.path("a.txt")).unwrap();
    };
    let hostile: [(&str, Happening<'_>); 7] = [
        ("read-only", &read_only),
        ("deleted", &deleted),
        ("a folder", &folder),
        ("renamed", &renamed),
        ("binary", &binary),
        ("a link out", &link_out),
        ("a link to nowhere", &link_nowhere),
    ];
    for (what, happen) in hostile {
        let project = project();
        let names = |project: &Project| {
            let entries = fs::read_dir(project.workspace()).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let (mut then, mut bytes) = (Vec::new(), None);
        let outcome = edit_after(&project, "a.txt", |project| {
            happen(project);
            then = names(project);
            bytes = fs::read(project.path("a.txt")).ok();
        });
        assert!(["FAILED", "DENIED"].contains(&outcome.state.as_str()), "{what}: {}", outcome.result);
        assert!(outcome.result.contains("a.txt"), "{what}: {}", outcome.result);
        assert_eq!(names(&project), then, "{what}");
        assert_eq!(fs::read(project.path("a.txt")).ok(), bytes, "{what}");
        assert_untouched_outside(&project, what);
    }
}

#[test]
fn a_folder_that_leads_out_now_is_not_followed() {
    let project = project();
    let outcome = edit_after(&project, "folder/b.txt", |project| {
        fs::rename(project.path("folder"), project.path("moved")).unwrap();
        symlink(project.outside().join("elsewhere"), project.path("folder")).unwrap();
    });
    assert!(["FAILED", "DENIED"].contains(&outcome.state.as_str()), "{}", outcome.result);
    assert_eq!(project.read("moved/b.txt"), TEXT);
    assert_untouched_outside(&project, "a folder that leads out");
}

#[test]
fn nothing_leads_out_when_the_user_takes_a_change_back() {
    let script = Script::new([
        call("Read", json!({ "file_path": "{{cwd}}/folder/b.txt" })),
        call(
            "Edit",
            json!({ "file_path": "{{cwd}}/folder/b.txt", "old_string": "two", "new_string": "TWO" }),
        ),
        call("Write", json!({ "file_path": "{{cwd}}/folder/new.txt", "content": "new\n" })),
        call("Bash", json!({ "command": "printf '\\000' > folder/data.bin" })),
        say("Done."),
    ]);
    let project = Project::new(&script);
    project.write("folder/b.txt", TEXT);
    let client = project.connect(&Offer::kode());
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("go");
    assert_eq!(project.read("folder/b.txt"), EDITED);
    // The very files that would be changed back, elsewhere.
    let outside = project.outside().join("elsewhere");
    fs::rename(project.path("folder"), &outside).unwrap();
    symlink(&outside, project.path("folder")).unwrap();

    let id = session.begin_resolution(json!({ "type": "session", "sessionId": session.id }), "undo", "undo");
    let outcome = session.wait_resolved(&id.unwrap());
    assert_eq!(outcome["resolved"], json!([]), "{outcome}");
    let failed = outcome["failed"].as_array().unwrap();
    let has_reason =
        |failure: &Value| failure["reason"].as_str().is_some_and(|reason| reason.contains("folder"));
    assert!(failed.len() == 3 && failed.iter().all(has_reason), "{outcome}");
    let checkpoints = session.call("agent/checkpoint/list", json!({}));
    let checkpoint = &checkpoints["checkpoints"][0]["checkpointId"];
    let params = json!({ "checkpointId": checkpoint, "what": "files", "userEdits": "discard" });
    let restore = session.call("agent/checkpoint/restore", params);
    let outcome = session.wait_resolved(restore["resolutionId"].as_str().unwrap());
    assert_eq!(outcome["resolved"], json!([]), "{outcome}");
    assert_eq!(fs::read_to_string(outside.join("b.txt")).unwrap(), EDITED);
    assert_eq!(fs::read_to_string(outside.join("new.txt")).unwrap(), "new\n");
    assert_eq!(fs::read(outside.join("data.bin")).unwrap(), b"\0");
}

#[test]
fn a_file_that_is_made_meanwhile_is_not_overwritten() {
    let script = Script::new([
        call("Write", json!({ "file_path": "{{cwd}}/new.txt", "content": "by the agent\n" })),
        say("Tried."),
    ]);
    let project = Project::new(&script);
    let client = project.connect(&Offer::kode());
    let session = client.session();
    let turn = session.prompt("go");
    let prompt = session.wait_permission(0);
    project.write("new.txt", "by the user\n");
    session.respond(&prompt, json!({ "decision": "allow", "scope": "once" })).unwrap();
    session.wait_done(&turn);
    assert_eq!(project.read("new.txt"), "by the user\n");
    let [(result, is_error)] = project.model.last_results().try_into().unwrap();
    assert!(is_error && result.contains("new.txt"), "{result}");
    assert_eq!(session.hunks(), [] as [Value; 0]);
}
