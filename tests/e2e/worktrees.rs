//! Sub-agents with a git worktree of their own: what they do is on their branch, and the workspace stays as it is.
//!
//! Rule: the workspace is checked by its bytes, and the worktrees as git itself lists them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use kode_e2e::{Project, Script, Session, Step, call, git, say};
use serde_json::{Value, json};

/// A type of agent that works in a worktree.
const APART: &str =
    "---\nname: apart\ndescription: Works apart.\nisolation: worktree\n---\nYou work apart.\n";

/// A project with a commit, a change that is not committed, and the type of agent.
fn repository(script: &Script) -> Project {
    let project = Project::new(script);
    project.write("a.txt", "one\ntwo\n").write("src/b.txt", "b\n");
    project.write(".claude/agents/apart.md", APART);
    git(&project.workspace(), &["init", "--quiet"]);
    git(&project.workspace(), &["add", "."]);
    git(&project.workspace(), &["commit", "--quiet", "-m", "begin"]);
    project.write("src/b.txt", "b, not committed\n");
    project
}

/// The worktrees besides the workspace, as git lists them.
fn worktrees(project: &Project) -> Vec<PathBuf> {
    let listed = git(&project.workspace(), &["worktree", "list", "--porcelain"]);
    let all = listed.lines().filter_map(|line| line.strip_prefix("worktree ")).map(PathBuf::from);
    all.filter(|path| *path != project.workspace()).collect()
}

fn branches(project: &Project) -> Vec<String> {
    let listed = git(&project.workspace(), &["branch", "--format=%(refname:short)"]);
    listed.lines().filter(|branch| *branch != "main").map(str::to_owned).collect()
}

/// The prompt of a sub-agent: the folder of the workspace, so that its `{{prompt}}` is that and its `{{cwd}}` the worktree.
const ITS: &str = "^/";

fn task(more: Value) -> Step {
    let mut input = json!({ "description": "apart", "prompt": "{{cwd}}" });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call("Task", input)
}

fn apart() -> Step {
    task(json!({ "subagent_type": "apart" }))
}

fn bash(command: &str) -> Step {
    call("Bash", json!({ "command": command }))
}

fn write(path: &str, content: &str) -> Step {
    call("Write", json!({ "file_path": path, "content": content }))
}

/// The results of the sub-agent's calls, in their order.
fn results(session: &Session<'_>) -> Vec<Value> {
    let started = session.wait_event("the sub-agent", |event| event["type"] == "subagent_started");
    let agent = session.call("agent/subagent/load", json!({ "agentId": started["agentId"] }));
    let items = agent["items"].as_array().unwrap().iter();
    items.filter(|item| item["body"]["type"] == "toolCall").map(|item| item["body"].clone()).collect()
}

const COMMIT: &str = "git add -A && git -c user.name=t -c user.email=t@example.com commit --quiet -m done";

#[test]
fn what_a_sub_agent_does_in_its_worktree_is_on_its_branch_and_the_workspace_stays_as_it_is() {
    let edit = json!({ "file_path": "{{cwd}}/a.txt", "old_string": "two", "new_string": "three", "replace_all": false });
    let script = Script::default()
        .when(
            ITS,
            [
                call("Read", json!({ "file_path": "a.txt" })),
                call("Edit", edit),
                write("{{cwd}}/new/c.txt", "c\n"),
                call("Grep", json!({ "pattern": "not committed" })),
                bash("pwd; cat src/b.txt; cat .git"),
                bash(COMMIT),
                write("{{cwd}}/later.txt", "not committed\n"),
                say("It is done."),
            ],
        )
        .otherwise([apart(), say("All done.")]);
    let project = repository(&script);
    // At a place where git's own commands may write in the sandbox.
    let canary = project.path(".git/hook-has-run");
    let hook = project.path(".git/hooks/post-checkout");
    fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", canary.display())).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("go");

    let calls = results(&session);
    let states: Vec<_> = calls.iter().map(|call| call["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["COMPLETED"; 7], "{calls:#?}");
    let [worktree] = worktrees(&project).try_into().unwrap();
    let [branch] = branches(&project).try_into().unwrap();
    assert!(worktree.starts_with(project.outside().join("home-worktrees/workspace")), "{worktree:?}");
    let said = calls[4]["display"].to_string() + &calls[4]["structured"].to_string();
    assert!(!said.contains("not committed"), "what is not committed is not in a worktree: {said}");
    assert_eq!(fs::read_to_string(worktree.join("a.txt")).unwrap(), "one\nthree\n");

    assert_eq!(
        (project.read("a.txt"), project.read("src/b.txt")),
        ("one\ntwo\n".into(), "b, not committed\n".into())
    );
    assert!(!project.path("new").exists() && !project.path("later.txt").exists());
    assert!(!canary.exists(), "no hook of the repository runs");
    assert_eq!(git(&project.workspace(), &["status", "--porcelain"]), " M src/b.txt\n");
    assert_eq!(git(&project.workspace(), &["show", &format!("{branch}:new/c.txt")]), "c\n");
    let [(text, is_error)] = project.model.last_results().try_into().unwrap();
    assert!(text.starts_with("It is done.") && !is_error, "{text}");
    for expected in
        [&*worktree.to_string_lossy(), &branch, "1 commit since", "1 changed file not committed", "git merge"]
    {
        assert!(text.contains(expected), "no `{expected}` in {text}");
    }
    let reported = &session.calls()[0]["structured"]["worktree"];
    assert_eq!((&reported["kept"], &reported["branch"]), (&json!(true), &json!(branch)), "{reported}");
    let system = project.model.requests()[1]["system"].to_string();
    assert!(system.contains("git worktree of your own") && system.contains(&branch), "{system}");
}

#[test]
fn a_worktree_in_which_nothing_was_done_is_removed_with_its_branch() {
    let script = Script::default()
        .when(ITS, [bash("ls"), say("Nothing to do.")])
        .otherwise([task(json!({ "isolation": "worktree" })), say("All done.")]);
    let project = repository(&script);
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("go");
    let [(text, _)] = project.model.last_results().try_into().unwrap();
    assert!(text.contains("changed nothing in its git worktree"), "{text}");
    assert_eq!((worktrees(&project).len(), branches(&project).len()), (0, 0));
    assert_eq!(session.calls()[0]["structured"]["worktree"]["kept"], false);
}

#[test]
fn the_workspace_is_out_of_reach_for_a_sub_agent_with_a_worktree_and_rules_hold_in_both() {
    let script = Script::default()
        .when(
            ITS,
            [
                call("Read", json!({ "file_path": "{{prompt}}/a.txt" })),
                call("Grep", json!({ "pattern": "not committed", "path": "{{prompt}}" })),
                write("{{prompt}}/a.txt", "changed\n"),
                bash("echo changed > {{prompt}}/a.txt"),
                bash("git -C {{prompt}} checkout --quiet -- src/b.txt"),
                bash("cd {{prompt}}; touch here; cd -; rm -rf {{prompt}}/src"),
                write("{{cwd}}/secret/key.txt", "k\n"),
                write("{{prompt}}/secret/key.txt", "k\n"),
                write("{{cwd}}/linked/new.txt", "n\n"),
                write("free.txt", "f\n"),
                say("That is all."),
            ],
        )
        .otherwise([apart(), say("All done.")]);
    let project = repository(&script);
    std::os::unix::fs::symlink(project.path("src"), project.path("linked")).unwrap();
    git(&project.workspace(), &["add", "linked"]);
    git(&project.workspace(), &["commit", "--quiet", "-m", "link"]);
    let settings = json!({ "permissions": { "deny": ["Edit(/secret/**)"] } });
    project.write(".claude/settings.json", settings.to_string());
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("go");
    let calls = results(&session);
    let states: Vec<_> = calls.iter().map(|call| call["state"].as_str().unwrap()).collect();
    let expected = [
        "COMPLETED",
        "COMPLETED",
        "DENIED",
        "FAILED",
        "FAILED",
        "FAILED",
        "DENIED",
        "DENIED",
        "DENIED",
        "COMPLETED",
    ];
    assert_eq!(states, expected, "{calls:#?}");
    assert!(
        calls[1]["structured"].to_string().contains("b.txt"),
        "it may look into the workspace: {}",
        calls[1]
    );
    let [worktree] = worktrees(&project).try_into().unwrap();
    let refused = calls[2]["display"].as_str().unwrap();
    assert!(refused.contains(&*worktree.join("a.txt").to_string_lossy()), "it says where else: {refused}");
    assert_eq!(
        (project.read("a.txt"), project.read("src/b.txt")),
        ("one\ntwo\n".into(), "b, not committed\n".into())
    );
    assert!(!project.path("here").exists() && !project.path("secret").exists());
    assert!(worktree.join("free.txt").exists() && !worktree.join("secret").exists());
}

#[test]
fn without_a_commit_to_begin_at_no_sub_agent_begins_and_the_model_is_reported_why() {
    let script = Script::default().when(ITS, [say("Never.")]).otherwise([apart(), say("All done.")]);
    let project = Project::new(&script);
    project.write(".claude/agents/apart.md", APART);
    let client = project.open();
    for repository in [false, true] {
        if repository {
            git(&project.workspace(), &["init", "--quiet"]);
        }
        let session = client.session_with(json!({ "mode": "bypassPermissions" }));
        session.run("go");
        let [(text, is_error)] = project.model.last_results().try_into().unwrap();
        let why = if repository { "there is no commit yet" } else { "there is no `.git`" };
        assert!(is_error && text.contains("did not begin") && text.contains(why), "{text}");
        assert!(session.events().iter().all(|event| event["type"] != "subagent_started"));
    }
}

#[test]
fn a_sub_agent_that_continues_has_its_worktree_again_also_when_somebody_has_removed_it() {
    let script = Script::default()
        .when(ITS, [write("{{cwd}}/first.txt", "1\n"), bash(COMMIT), say("First.")])
        .when("^more$", [bash("ls; pwd"), write("{{cwd}}/second.txt", "2\n"), bash(COMMIT), say("Second.")])
        .when("^go$", [apart(), say("All done.")])
        .otherwise([
            call("Task", json!({ "description": "more", "prompt": "more", "resume": "{{prompt}}" })),
            say("Again."),
        ]);
    let project = repository(&script);
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("go");
    let agent = session.calls()[0]["structured"]["agentId"].as_str().unwrap().to_owned();
    let [worktree] = worktrees(&project).try_into().unwrap();
    session.run(&agent);
    assert_eq!(worktrees(&project), std::slice::from_ref(&worktree));
    assert!(worktree.join("first.txt").exists() && worktree.join("second.txt").exists());
    let reported = session.calls()[1]["structured"]["worktree"].clone();
    assert_eq!(reported["commits"], 2, "counted from where it began: {reported}");
    let path = worktree.to_str().unwrap();
    git(&project.workspace(), &["worktree", "remove", path]);
    session.run(&agent);
    assert_eq!(worktrees(&project), std::slice::from_ref(&worktree));
    assert!(worktree.join("first.txt").exists(), "the branch was there, and so is what was on it");
}

#[test]
fn a_sub_agent_continues_in_its_worktree_after_the_server_was_killed() {
    let script = Script::default()
        .when(ITS, [write("{{cwd}}/first.txt", "1\n"), write("{{cwd}}/second.txt", "2\n"), say("Done.")])
        .otherwise([apart(), say("All done.")]);
    let project = repository(&script);
    let client = project.open();
    let session = client.session();
    session.prompt("go");
    session.allow(0);
    let asked = session.wait_permission(1);
    let [worktree] = worktrees(&project).try_into().unwrap();
    client.kill();
    let client = project.open();
    let session = Session::new(&client, &session.id);
    session.call("agent/session/load", json!({}));
    let waiting = session.snapshot()["pendingPermissions"][0].clone();
    assert_eq!(waiting["title"], asked["title"]);
    session.respond(&waiting, json!({ "decision": "allow", "scope": "once" })).expect("it is taken");
    session.wait_event("the end", |event| event["type"] == "done");
    assert!(worktree.join("first.txt").exists() && worktree.join("second.txt").exists());
    assert!(!project.path("first.txt").exists() && !project.path("second.txt").exists());
    assert_eq!(worktrees(&project), [worktree]);
}

#[test]
fn where_nothing_holds_git_the_user_is_asked_before_it_runs_what_the_repository_names() {
    let script = Script::default().when(ITS, [say("Nothing to do.")]).otherwise([apart(), say("All done.")]);
    let project = repository(&script);
    let canary = project.outside().join("canary");
    let filter = format!("touch {}; cat", canary.display());
    git(&project.workspace(), &["config", "filter.trap.smudge", &filter]);
    project.write(".gitattributes", "*.txt filter=trap\n");
    git(&project.workspace(), &["add", "."]);
    git(&project.workspace(), &["commit", "--quiet", "-m", "trap"]);
    fs::remove_file(&canary).ok();
    let off = json!({ "sandbox": { "enabled": false } });
    fs::create_dir_all(project.outside().join("user/.claude")).unwrap();
    fs::write(project.outside().join("user/.claude/settings.json"), off.to_string()).unwrap();
    let user = project.outside().join("user");
    let client = project.start_as(&[], &[("HOME", user.to_str().unwrap())]);
    client.initialize(kode_e2e::Offer::kode().params(&project.workspace()));
    let session = client.session();
    session.prompt("go");
    let asked = session.wait_permission(0);
    assert!(asked["preview"]["command"].as_str().unwrap().contains("git worktree add"), "{asked:#}");
    assert!(!canary.exists() && worktrees(&project).is_empty());
    session.respond(&asked, json!({ "decision": "deny", "scope": "once" })).expect("it is taken");
    session.wait_event("the end", |event| event["type"] == "done");
    assert!(!canary.exists() && worktrees(&project).is_empty());
    session.prompt("go");
    session.allow(1);
    session.wait_event("the sub-agent", |event| event["type"] == "subagent_started");
    assert!(canary.exists(), "what the user has let run has run");
}

#[test]
fn a_session_in_a_folder_of_a_repository_works_in_the_same_folder_of_the_worktree() {
    let script = Script::default()
        .when(ITS, [write("here.txt", "h\n"), say("Done.")])
        .otherwise([apart(), say("All done.")]);
    let project = Project::new(&script);
    project.write(".claude/agents/apart.md", APART);
    let top = project.outside();
    git(top, &["init", "--quiet"]);
    git(top, &["add", "workspace"]);
    git(top, &["commit", "--quiet", "-m", "begin"]);
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("go");
    let [(text, is_error)] = project.model.last_results().try_into().unwrap();
    assert!(!is_error, "{text}");
    let reported = session.calls()[0]["structured"]["worktree"]["path"].as_str().unwrap().to_owned();
    assert!(Path::new(&reported).join("workspace/here.txt").exists(), "{reported}");
    assert!(!project.path("here.txt").exists());
}
