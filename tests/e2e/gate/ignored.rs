//! Files that `.aiignore` and its like keep from the agent: no tool, command, interpreter or sub-agent gets their content.
//!
//! Rule: what the model was sent is what counts: the content of a kept file is in none of its requests.

use super::*;

/// The content of a kept file; what calls look for is only its first word.
const KEPT: &str = "needle 7391-of-the-kept-file\n";

/// A workspace with a commit in which `.aiignore` keeps a tracked folder from the agent.
fn with_kept(desk: Desk) -> Desk {
    let project = &desk.project;
    project.write(".aiignore", "# not for agents\n/kept/\n*.kept\n!open.kept\n");
    project.write("kept/a.txt", KEPT).write("b.kept", KEPT).write("open.kept", "needle in the open\n");
    project.write("src/main.rs", "fn main() {}\n");
    for arguments in
        [&["init", "--quiet"][..], &["add", "--all"], &["commit", "--quiet", "--message", "begin"]]
    {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.com"]).args(arguments);
        assert!(git.current_dir(project.workspace()).status().unwrap().success());
    }
    desk
}

/// Checks that no request to the model holds the content of a kept file.
fn check_kept(desk: &Desk) {
    let told = desk.project.model.requests().iter().filter(|body| body.to_string().contains("7391")).count();
    assert_eq!(told, 0, "the content of a kept file went to the model");
}

/// The text of the last result.
fn last(desk: &Desk) -> String {
    let [(text, _)] = desk.project.model.last_results().try_into().unwrap();
    text
}

fn perl(path: &str) -> Step {
    // The name is put together only when it runs.
    let (start, end) = path.split_at(2);
    bash(&format!("perl -e 'open F, \"{start}\" . \"{end}\" or die \"no: $!\"; print <F>'"))
}

#[test]
fn no_tool_and_no_command_gets_what_an_ignore_file_keeps() {
    let edit = json!({ "file_path": "{{cwd}}/kept/a.txt", "old_string": "needle", "new_string": "x" });
    let task = json!({ "description": "it", "prompt": "sub-agent", "subagent_type": "general-purpose" });
    let grep =
        |path: &str| call("Grep", json!({ "pattern": "needle", "path": path, "output_mode": "content" }));
    let refused = [
        ("read", read("kept/a.txt")),
        ("second", read("b.kept")),
        ("write", write("kept/new.txt")),
        ("cat", bash("cat kept/a.txt")),
        ("cd", bash("cd kept && cat a.txt")),
        ("glob", bash("cat k*/a.txt")),
        ("show", bash("git show HEAD:kept/a.txt")),
        ("blob", bash("git cat-file -p HEAD:./b.kept")),
        ("diff", bash("git diff -- kept/a.txt")),
        ("in", grep("{{cwd}}/kept")),
        ("ls", call("LS", json!({ "path": "{{cwd}}/kept" }))),
    ];
    let ran = [
        ("perl", perl("kept/a.txt")),
        // It ends before it is judged: the file has not been read.
        ("edit", call("Edit", edit)),
        ("search", bash("grep -r needle .; true")),
        ("status", bash("git status; git diff -- src; git add --all; true")),
        ("needle", grep("{{cwd}}")),
        ("files", call("Glob", json!({ "pattern": "**/*", "path": "{{cwd}}" }))),
        ("list", call("LS", json!({ "path": "{{cwd}}" }))),
        ("open", read("open.kept")),
    ];
    // Refused or not, they get nothing.
    let either = [
        ("tar", bash("tar -cf - . | tar -xOf -")),
        ("find", bash("find . -type f -exec cat {} +")),
        ("copy", bash("cp -r . /tmp/copy; cat /tmp/copy/kept/a.txt")),
        ("link", bash("ln -s kept/a.txt l; cat l; ln b.kept h; cat h")),
        ("move", bash("mv kept k2; cat k2/a.txt; mv src/../b.kept x; cat x")),
    ];
    let names: Vec<_> = refused.iter().map(|(name, _)| *name).collect();
    let script = refused
        .into_iter()
        .chain(ran.clone())
        .chain(either.clone())
        .fold(Script::default(), |script, (name, step)| script.when(&format!("^{name}$"), [step, say("ok")]));
    let script = script
        .when(
            "^sub-agent$",
            [read("kept/a.txt"), bash("git show HEAD:kept/a.txt"), perl("kept/a.txt"), say("done")],
        )
        .when("^ask$", [call("Task", task), say("ok")]);
    let desk = with_kept(Desk::new(&script));
    desk.project.write("named.txt", "");
    let client = desk.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    for name in names {
        let (fate, _, call) = fate(&session, name);
        assert_eq!(fate, Fate::Refused, "{name}: {call}");
        let said = last(&desk);
        assert!(said.contains("line 2 (`/kept/`)") || said.contains("line 3 (`*.kept`)"), "{name}: {said}");
        assert!(said.contains(".aiignore"), "{name}: {said}");
    }
    for (name, _) in ran {
        let (fate, _, call) = fate(&session, name);
        assert_eq!(fate, Fate::Ran, "{name}: {call}");
        let said = last(&desk);
        match name {
            "perl" => assert!(said.contains("Permission denied"), "{said}"),
            "search" | "needle" => {
                assert!(said.contains("open.kept") && !said.contains("kept/a.txt:"), "{said}")
            }
            "files" | "list" => assert!(said.contains("main.rs") && !said.contains("a.txt"), "{said}"),
            _ => {}
        }
    }
    for (name, _) in either {
        let _ = fate(&session, name);
    }
    session.run("ask");
    session.run("Look at @kept/a.txt and @open.kept");
    check_kept(&desk);
    let asked =
        desk.project.model.requests().iter().filter(|body| body.to_string().contains("in the open")).count();
    assert!(asked > 0, "the files beside it are read");
    let mut git = std::process::Command::new("git");
    git.args(["ls-files", "-s", "--", "kept", "b.kept"]).current_dir(desk.project.workspace());
    let staged = git.output().unwrap();
    let empty = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
    let staged = String::from_utf8(staged.stdout).unwrap();
    assert!(
        staged.lines().count() == 2 && !staged.contains(empty),
        "git took no kept file for an empty one: {staged}"
    );
}

#[test]
fn a_change_of_an_ignore_file_counts_from_the_next_call_on() {
    let desk = Desk::new(&script([("read", read("src/a.txt")), ("perl", perl("src/a.txt"))]));
    desk.project.write("src/a.txt", "some text\n");
    let client = desk.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    let is_read = || {
        let by_tool = fate(&session, "read").0 == Fate::Ran;
        let _ = fate(&session, "perl");
        (by_tool, last(&desk).contains("some text"))
    };
    assert_eq!(is_read(), (true, true));
    desk.project.write("src/.cursorignore", "*.txt\n");
    assert_eq!(is_read(), (false, false), "a new file counts");
    desk.project.write("src/.cursorignore", "*.md\n");
    assert_eq!(is_read(), (true, true), "a change counts");
    desk.project.write(".geminiignore", "src\n");
    assert_eq!(is_read(), (false, false), "one in another folder counts");
    std::fs::remove_file(desk.project.path(".geminiignore")).unwrap();
    assert_eq!(is_read(), (true, true), "one that is gone does not");
}

#[test]
fn calls_of_one_answer_are_judged_together_only_where_all_of_them_read() {
    let file = |path: &str| json!({ "file_path": format!("{{{{cwd}}}}/{path}") });
    let wait = json!({ "command": "while [ ! -e go ]; do sleep 0.02; done" });
    let reads =
        step().call("Read", file("src/a.txt")).call("Read", file("b.kept")).call("Read", file("b.txt"));
    let behind = step().call("Read", file("src/a.txt")).call("Bash", wait).call("Read", file("src/a.txt"));
    let desk = Desk::new(&script([("reads", reads), ("behind", behind)]));
    desk.project.write(".aiignore", "*.kept\n").write("b.kept", KEPT).write("b.txt", "some text\n");
    desk.project.write("src/a.txt", "some text\n").write("src/.cursorignore", "*.md\n");
    let client = desk.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    let failed =
        || desk.project.model.last_results().into_iter().map(|(_, failed)| failed).collect::<Vec<_>>();
    session.run("reads");
    assert_eq!(failed(), [false, true, false]);
    let prompt = session.prompt("behind");
    let runs = |event: &Value| event["type"] == "tool:start" && event.to_string().contains("sleep 0.02");
    session.wait_event("the command", runs);
    desk.project.write("src/.cursorignore", "*.txt\n").write("go", "");
    session.wait_done(&prompt);
    assert_eq!(failed(), [false, false, true], "the file changed while the command ran");
    check_kept(&desk);
}

#[test]
fn the_user_switches_ignore_files_of_a_name_off_and_a_workspace_cannot() {
    let off = json!({ "disabledIgnoreFiles": [".cursorignore", ".gitignore"] });
    for is_own in [false, true] {
        let desk = Desk::new(&script([("read", read("src/a.txt")), ("perl", perl("src/a.txt"))]));
        desk.project.write("src/a.txt", "some text\n").write("src/.cursorignore", "*.txt\n");
        if is_own {
            desk.user(&off);
        } else {
            desk.project.write(".kode/settings.json", off.to_string());
        }
        let client = desk.open();
        let session = client.session_with(json!({ "mode": "bypassPermissions" }));
        let by_tool = fate(&session, "read").0 == Fate::Ran;
        let _ = fate(&session, "perl");
        assert_eq!((by_tool, last(&desk).contains("some text")), (is_own, is_own));
        let text = desk.cli(&["doctor"], "").stdout;
        assert_eq!(text.contains(".cursorignore is off by `disabledIgnoreFiles`"), is_own, "{text}");
        let problem =
            if is_own { "`.gitignore` is no ignore file" } else { "cannot switch ignore files off" };
        assert!(text.contains(problem), "{text}");
    }
}

#[test]
fn without_a_sandbox_commands_that_may_read_a_kept_file_are_refused() {
    let calls = [
        ("cat", bash("cat kept/a.txt")),
        ("grep", bash("grep -r needle .")),
        ("tar", bash("tar -cf x.tar .")),
    ];
    let desk = with_kept(Desk::new(&script(calls.clone())));
    desk.user(&json!({ "sandbox": { "enabled": false } }));
    let client = desk.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    for (name, _) in &calls[..2] {
        assert_eq!(fate(&session, name).0, Fate::Refused, "{name}");
        assert!(last(&desk).contains(".aiignore"), "{}", last(&desk));
    }
    check_kept(&desk);
}

#[test]
fn what_commits_hold_of_a_kept_file_is_asked_for() {
    let calls = [
        ("log", bash("git log -p")),
        ("show", bash("git show")),
        ("names", bash("git show --stat")),
        ("beside", bash("git log -p -- src")),
    ];
    let desk = with_kept(Desk::new(&script(calls)));
    let client = desk.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    for name in ["log", "show"] {
        let (fate, prompt, _) = fate(&session, name);
        assert_eq!(fate, Fate::Asked, "{name}");
        let reason = prompt["reason"].as_str().unwrap();
        assert!(reason.contains("kept/a.txt") || reason.contains("b.kept"), "{reason}");
        assert!(reason.contains(".aiignore"), "{reason}");
    }
    for name in ["names", "beside"] {
        assert_eq!(fate(&session, name).0, Fate::Ran, "{name}");
    }
    check_kept(&desk);
}

#[test]
fn an_ignore_file_is_changed_by_no_command_and_by_no_edit_without_a_question() {
    let calls = [
        ("write", write("src/.aiignore")),
        ("rm", bash("rm .aiignore")),
        (
            "perl",
            bash("perl -e 'open F, \">\", \".ai\" . \"ignore\" or die \"no: $!\"'; mv src/../.ai* x; true"),
        ),
        ("new", bash("perl -e 'open F, \">\", \"kept2/.ai\" . \"ignore\"; print F \"!*\"'; ls -A kept2")),
    ];
    let desk = with_kept(Desk::new(&script(calls)));
    desk.project.write("kept2/a.kept", KEPT);
    let text = desk.project.read(".aiignore");
    let client = desk.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    for name in ["write", "rm"] {
        assert_eq!(fate(&session, name).0, Fate::Asked, "{name}");
    }
    let _ = fate(&session, "perl");
    assert_eq!(desk.project.read(".aiignore"), text);
    session.prompt("new");
    let asked =
        session.wait_event("a question about the new file", |event| event["type"] == "question_asked");
    assert!(asked["question"].to_string().contains("kept2/.aiignore"), "{asked}");
    assert!(!desk.project.path("kept2/.aiignore").exists(), "a new ignore file is set aside");
}

#[test]
fn a_sub_agent_in_a_worktree_is_kept_from_the_same_files() {
    let task = json!({ "description": "it", "prompt": "apart", "subagent_type": "general-purpose", "isolation": "worktree" });
    let script = Script::default()
        .when(
            "^apart$",
            [
                read("kept/a.txt"),
                bash("cat kept/a.txt"),
                perl("kept/a.txt"),
                call("Grep", json!({ "pattern": "needle", "output_mode": "content" })),
                bash("git show HEAD:kept/a.txt"),
                say("done"),
            ],
        )
        .when("^go$", [call("Task", task), say("ok")]);
    let desk = with_kept(Desk::new(&script));
    // It is not committed, so that the worktree has none.
    let mut git = std::process::Command::new("git");
    git.args(["rm", "--quiet", "--cached", ".aiignore"]).current_dir(desk.project.workspace());
    assert!(git.status().unwrap().success());
    let mut git = std::process::Command::new("git");
    git.args([
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.com",
        "commit",
        "--quiet",
        "--amend",
        "--no-edit",
    ]);
    assert!(git.current_dir(desk.project.workspace()).status().unwrap().success());
    let client = desk.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("go");
    check_kept(&desk);
    let text = desk.project.model.requests().last().unwrap().to_string();
    assert!(text.contains("done"), "{text}");
}

#[test]
fn doctor_lists_ignore_files_with_their_bad_lines() {
    let desk = with_kept(Desk::new(&Script::default()));
    desk.project.write("src/.codexignore", "[z-a]\n*.key\n");
    let found: Value = serde_json::from_str(&desk.cli(&["doctor", "--json"], "").stdout).unwrap();
    let files = found["ignoreFiles"]["files"].as_array().unwrap();
    let of = |end: &str| files.iter().find(|file| file["file"].as_str().unwrap().ends_with(end)).unwrap();
    assert_eq!(
        (&of(".aiignore")["patterns"], &of(".aiignore")["paths"]),
        (&json!(3), &json!(2)),
        "{found:#}"
    );
    assert_eq!(of(".codexignore")["faults"][0]["line"], 1, "{found:#}");
    let text = desk.cli(&["doctor"], "").stdout;
    assert!(text.contains("/.aiignore (3 patterns, 2 paths kept from the agent)"), "{text}");
    assert!(text.contains("/src/.codexignore:1: `[z-a]` matches nothing"), "{text}");
}

#[test]
fn completion_offers_no_kept_file() {
    let desk = with_kept(Desk::new(&Script::default()));
    let client = desk.open();
    let session = client.session();
    let completed = session.call("agent/complete", json!({ "text": "@kept", "cursor": 5 }));
    let text = completed.to_string();
    assert!(text.contains("open.kept") && !text.contains("b.kept") && !text.contains("a.txt"), "{text}");
}

#[test]
fn more_kept_files_than_a_sandbox_can_hide_let_no_command_run_in_it() {
    let desk = Desk::new(&script([("run", bash("echo 'it r''an'"))]));
    desk.project.write(".aiignore", "*.kept\n");
    for number in 0..=5_000 {
        desk.project.write(&format!("data/{number}.kept"), "kept\n");
    }
    let client = desk.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    let _ = fate(&session, "run");
    let text = last(&desk);
    assert!(text.contains("hide 5001 files and folders one by one"), "{text}");
    assert!(text.contains("name their folders instead") && !text.contains("it ran"), "{text}");
    // The folder as a whole is one entry.
    desk.project.write(".aiignore", "/data/\n");
    let _ = fate(&session, "run");
    assert!(last(&desk).contains("it ran"), "{}", last(&desk));
}
