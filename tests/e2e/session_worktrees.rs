//! Sessions that work in a git worktree of their own, and merging it back through the review.
//!
//! Rule: the workspace is checked by its bytes, and the worktrees as git itself lists them.

use std::fs;
use std::path::PathBuf;

use kode_e2e::{Client, Project, Reply, Script, Session, call, git, say};
use serde_json::{Value, json};

/// A project with a commit, and a change that is not committed.
fn repository(script: &Script) -> Project {
    let project = Project::new(script);
    project.write("a.txt", "one\ntwo\nthree\nfour\n").write("src/b.txt", "b\n").write("old.txt", "old\n");
    git(&project.workspace(), &["init", "--quiet"]);
    git(&project.workspace(), &["add", "."]);
    git(&project.workspace(), &["commit", "--quiet", "-m", "begin"]);
    project.write("src/b.txt", "b, not committed\n");
    project
}

/// A session in a worktree, and the folder of it.
fn begin<'c>(client: &'c Client, more: &Value) -> (Session<'c>, PathBuf) {
    let mut params = json!({ "worktree": true });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let begun = client.request("agent/session/new", params).unwrap();
    let folder = PathBuf::from(begun["snapshot"]["worktree"]["path"].as_str().unwrap());
    let session = Session::new(client, begun["sessionId"].as_str().unwrap());
    (session, folder)
}

/// The text of the newest command of a session.
fn answer(session: &Session<'_>, prompt: &str) -> (String, bool) {
    session.run(prompt);
    let snapshot = session.snapshot();
    let items = snapshot["items"].as_array().unwrap();
    let command =
        items.iter().rev().map(|item| &item["body"]).find(|body| body["type"] == "command").unwrap();
    (command["text"].as_str().unwrap().to_owned(), command["failed"] == json!(true))
}

fn changed(client: &Client, session: &Session<'_>) -> Vec<(String, u64)> {
    let listed = client.request("agent/edits/list", json!({ "sessionId": session.id })).unwrap();
    let files = listed["files"].as_array().unwrap().clone();
    let open = |file: &Value| {
        let hunks = file["hunks"].as_array().unwrap();
        hunks.iter().filter(|hunk| hunk["state"] == "applied").count() as u64
    };
    files.iter().map(|file| (file["path"].as_str().unwrap().to_owned(), open(file))).collect()
}

#[test]
fn a_session_works_in_its_worktree_and_is_merged_as_changes_to_review() {
    let script = Script::default().when(
        "change",
        [
            call("Read", json!({ "file_path": "a.txt" })),
            call("Edit", json!({ "file_path": "a.txt", "old_string": "two", "new_string": "TWO" })),
            call("Write", json!({ "file_path": "new/c.txt", "content": "new\n" })),
            call("Bash", json!({ "command": "rm old.txt && git add -A && git -c user.name=t -c user.email=t@t commit -qm w" })),
            say("done"),
        ],
    );
    let project = repository(&script);
    let client = project.open();
    let (session, folder) = begin(&client, &json!({ "mode": "bypassPermissions" }));
    session.run("change");

    assert_eq!(fs::read_to_string(folder.join("a.txt")).unwrap(), "one\nTWO\nthree\nfour\n");
    assert_eq!(fs::read_to_string(folder.join("src/b.txt")).unwrap(), "b\n", "begins at the commit");
    assert_eq!(project.read("a.txt"), "one\ntwo\nthree\nfour\n");
    assert!(project.workspace().join("old.txt").exists() && !project.workspace().join("new").exists());
    let system = project.model.last_request().to_string();
    assert!(system.contains("This session works in a git worktree of its own"), "{system}");
    assert!(system.contains(&format!("Working directory: {}", folder.display())), "{system}");

    // The user has changed another line meanwhile.
    project.write("a.txt", "one\ntwo\nthree\nFOUR\n");
    let (text, failed) = answer(&session, "/worktree merge");
    assert!(!failed && text.contains("3 files of the workspace are changed"), "{text}");
    assert_eq!(project.read("a.txt"), "one\nTWO\nthree\nFOUR\n");
    assert_eq!(project.read("new/c.txt"), "new\n");
    assert!(!project.workspace().join("old.txt").exists());
    assert_eq!(project.read("src/b.txt"), "b, not committed\n");

    let workspace = project.workspace();
    let mut open = changed(&client, &session);
    open.retain(|(_, hunks)| *hunks > 0);
    let names: Vec<_> = open.iter().map(|(path, _)| path.clone()).collect();
    let whole = |name: &str| workspace.join(name).display().to_string();
    assert_eq!(
        names,
        [whole("a.txt"), whole("new/c.txt"), whole("old.txt")],
        "those of the worktree are kept"
    );

    let undo = json!({ "sessionId": session.id, "selection": { "type": "all" }, "action": "undo" });
    client.request("agent/edits/resolve", undo).unwrap();
    client
        .wait_for("the undone text", |_| (project.read("a.txt") == "one\ntwo\nthree\nFOUR\n").then_some(()));
    client.wait_for("the file that was removed", |_| workspace.join("old.txt").exists().then_some(()));
}

#[test]
fn a_second_merge_brings_only_the_new_changes() {
    let edit = |old: &str, new: &str| {
        call("Edit", json!({ "file_path": "a.txt", "old_string": old, "new_string": new }))
    };
    let read = || call("Read", json!({ "file_path": "a.txt" }));
    let script = Script::default()
        .when("first", [read(), edit("two", "TWO"), say("done")])
        .when("second", [read(), edit("four", "FOUR"), say("done")]);
    let project = repository(&script);
    let client = project.open();
    let (session, _) = begin(&client, &json!({ "mode": "acceptEdits" }));
    session.run("first");
    assert!(!answer(&session, "/worktree merge").1);
    // The user does not want the first change.
    project.write("a.txt", "one\ntwo\nthree\nfour\n");
    session.run("second");
    let (text, failed) = answer(&session, "/worktree merge");
    assert!(!failed, "{text}");
    assert_eq!(project.read("a.txt"), "one\ntwo\nthree\nFOUR\n");
    let (text, failed) = answer(&session, "/worktree merge");
    assert!(!failed && text.contains("The workspace has all changes"), "{text}");
}

#[test]
fn a_merge_with_a_conflict_changes_no_file_and_names_it() {
    let script = Script::default().when(
        "change",
        [
            call("Read", json!({ "file_path": "a.txt" })),
            call("Edit", json!({ "file_path": "a.txt", "old_string": "two", "new_string": "TWO" })),
            call("Write", json!({ "file_path": "c.txt", "content": "new\n" })),
            say("done"),
        ],
    );
    let project = repository(&script);
    let client = project.open();
    let (session, _) = begin(&client, &json!({ "mode": "acceptEdits" }));
    session.run("change");
    project.write("a.txt", "one\n2\nthree\nfour\n");
    let (text, failed) = answer(&session, "/worktree merge");
    assert!(failed && text.contains("Nothing was merged") && text.contains("`a.txt`: line 2"), "{text}");
    assert_eq!(project.read("a.txt"), "one\n2\nthree\nfour\n");
    assert!(!project.workspace().join("c.txt").exists());
}

#[test]
fn the_workspace_is_read_and_never_changed_by_a_session_in_a_worktree() {
    let script = Script::default().when(
        "^/",
        [
            call("Read", json!({ "file_path": "{{prompt}}" })),
            call("Edit", json!({ "file_path": "{{prompt}}", "old_string": "two", "new_string": "TWO" })),
            call("Bash", json!({ "command": "echo x >> {{prompt}}" })),
            say("done"),
        ],
    );
    let project = repository(&script);
    let client = project.open();
    let (session, folder) = begin(&client, &json!({ "mode": "bypassPermissions" }));
    session.run(&project.workspace().join("a.txt").display().to_string());
    let results = project.model.last_request().to_string();
    assert!(results.contains("does not change the workspace itself"), "{results}");
    assert!(
        results.contains(&format!("the same file of the worktree is `{}`", folder.join("a.txt").display())),
        "{results}"
    );
    assert_eq!(project.read("a.txt"), "one\ntwo\nthree\nfour\n");
}

#[test]
fn a_session_in_a_worktree_continues_there_after_a_restart_also_where_the_worktree_is_gone() {
    let script = Script::default()
        .when("write", [call("Write", json!({ "file_path": "c.txt", "content": "new\n" })), say("done")])
        .when("look", [call("Bash", json!({ "command": "pwd" })), say("done")]);
    let project = repository(&script);
    let client = project.open();
    let (session, folder) = begin(&client, &json!({ "mode": "bypassPermissions" }));
    session.run("write");
    let id = session.id.clone();
    client.kill();

    let client = project.open();
    let snapshot = client.request("agent/session/load", json!({ "sessionId": id })).unwrap();
    assert_eq!(snapshot["worktree"]["path"], json!(folder), "{snapshot}");
    let session = Session::new(&client, &id);
    session.run("look");
    let results = project.model.last_results();
    assert!(results[0].0.contains(&folder.display().to_string()), "{results:?}");
    client.kill();

    fs::remove_dir_all(&folder).unwrap();
    let client = project.open();
    client.request("agent/session/load", json!({ "sessionId": id })).unwrap();
    assert_eq!(fs::read_to_string(folder.join("a.txt")).unwrap(), "one\ntwo\nthree\nfour\n", "made again");
}

#[test]
fn a_folder_without_commits_has_no_worktree_and_says_why() {
    let project = Project::new(&Script::default());
    let client = project.open();
    let error = client.request("agent/session/new", json!({ "worktree": true })).unwrap_err();
    assert!(error.message.contains("lies in no git repository with a commit"), "{}", error.message);
    assert_eq!(error.data["kind"], "worktreeUnavailable");
    client.on_request("window/showDocument", |_, _| Reply::Result(json!({ "success": true })));
    let session = client.session_with(json!({}));
    let (text, failed) = answer(&session, "/worktree merge");
    assert!(failed && text.contains("`/worktree new` begins one"), "{text}");
}

#[test]
fn a_command_begins_a_session_in_a_worktree_for_editors_without_a_client() {
    let project = repository(&Script::default());
    let client = project.open();
    let session = client.session_with(json!({ "mode": "plan" }));
    session.run("/worktree new");
    let snapshot = session.snapshot();
    let items = snapshot["items"].as_array().unwrap();
    let id = items
        .iter()
        .find_map(|item| item["body"]["goTo"].as_str())
        .unwrap_or_else(|| panic!("{items:?}"))
        .to_owned();
    let begun = client.request("agent/session/load", json!({ "sessionId": id })).unwrap();
    assert_eq!(
        (&begun["mode"], &begun["worktree"]["workspace"]),
        (&json!("plan"), &json!(project.workspace()))
    );
}

#[test]
fn a_run_in_a_script_leaves_its_work_in_a_worktree_and_continues_there() {
    let script = Script::default()
        .when("^write", [call("Write", json!({ "file_path": "c.txt", "content": "new\n" })), say("done")])
        .when("^look", [call("Bash", json!({ "command": "cat c.txt" })), say("done")]);
    let project = repository(&script);
    let run = |arguments: &[&str]| {
        let all = ["run", "--mode", "bypassPermissions"].iter().chain(arguments).copied().collect::<Vec<_>>();
        let output = project.run_as(&all, "", &[]);
        assert_eq!(output.code, 0, "{output:?}");
    };
    run(&["--worktree", "write"]);
    assert!(!project.workspace().join("c.txt").exists());
    run(&["--continue", "look"]);
    let results = project.model.last_results();
    assert!(results[0].0.contains("new"), "{results:?}");
}

#[cfg(unix)]
#[test]
fn a_merge_follows_no_link_out_of_the_workspace() {
    let line = "rm sub && mkdir sub && echo new > sub/key && echo new > c.txt";
    let script = Script::default().when("change", [call("Bash", json!({ "command": line })), say("done")]);
    let project = repository(&script);
    let outside = project.outside().join("outside");
    fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, project.workspace().join("sub")).unwrap();
    git(&project.workspace(), &["add", "sub"]);
    git(&project.workspace(), &["commit", "--quiet", "-m", "link"]);
    let client = project.open();
    let (session, _) = begin(&client, &json!({ "mode": "bypassPermissions" }));
    session.run("change");
    let (text, failed) = answer(&session, "/worktree merge");
    assert!(
        !failed && text.contains("`sub/key` is not merged: it leads out of the workspace folders"),
        "{text}"
    );
    assert_eq!(project.read("c.txt"), "new\n");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "nothing is written behind the link");
}

#[test]
fn without_a_sandbox_a_merge_runs_no_program_that_the_repository_names() {
    let project = repository(&Script::default());
    let home = project.outside().join("user");
    fs::create_dir_all(home.join(".kode")).unwrap();
    fs::write(home.join(".kode/settings.json"), r#"{ "sandbox": { "enabled": false } }"#).unwrap();
    let client = project.start_as(&[], &[("HOME", home.to_str().unwrap())]);
    client.initialize(kode_e2e::Offer::kode().params(&project.workspace()));
    let (session, folder) = begin(&client, &json!({}));
    let canary = project.outside().join("canary");
    let filter = format!("touch {}; cat", canary.display());
    git(&project.workspace(), &["config", "filter.trap.clean", &filter]);
    fs::write(folder.join(".gitattributes"), "*.txt filter=trap\n").unwrap();
    fs::write(folder.join("c.txt"), "new\n").unwrap();
    for command in ["/worktree merge", "/worktree"] {
        let (text, _) = answer(&session, command);
        assert!(text.contains("name programs that git would run, and no sandbox holds them"), "{text}");
    }
    assert!(!canary.exists() && !project.workspace().join("c.txt").exists());
}
