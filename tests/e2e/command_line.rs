//! The grammar of the command line: help, lists without a word, settings that are written, and what shells know of it.

use kode_e2e::{Output, Project, Script, call, run, say};
use serde_json::{Value, json};

fn project() -> Project {
    Project::new(&Script::default().otherwise([say("Seen.")]))
}

/// Runs a command with a home folder of its own, into which settings of the user are written.
fn at_home(project: &Project, arguments: &[&str]) -> Output {
    let home = project.home();
    project.run_as(arguments, "", &[("HOME", home.to_str().unwrap())])
}

fn json_of(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The output of a command that has to work.
fn said(project: &Project, arguments: &[&str]) -> String {
    let output = at_home(project, arguments);
    assert_eq!(output.code, 0, "{arguments:?}: {output:?}");
    output.stdout
}

#[test]
fn every_command_has_help_a_manual_page_and_completions() {
    let listed = run(&["help"], None, &[], "").stdout;
    let commands =
        ["chat", "run", "mcp", "permissions", "sessions", "models", "doctor", "trust", "completions"];
    for command in commands {
        assert!(listed.contains(command), "{command} in {listed}");
        let help = run(&["help", command], None, &[], "");
        assert!(help.code == 0 && help.stdout.contains("Usage: kode-ls"), "{help:?}");
    }
    let help = run(&["help", "run"], None, &[], "").stdout;
    for part in ["130  interrupted", "\nInput:\n", "\nOutput:\n", "\nSafety:\n", "\nSession:\n"] {
        assert!(help.contains(part), "{part:?} in {help}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell], None, &[], "").stdout;
        assert!(script.contains("fail-on-denial"), "{shell}: {script}");
    }
    assert!(run(&["man"], None, &[], "").stdout.contains(".TH kode-ls"));
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    assert_eq!(run(&["man", "--dir", pages.to_str().unwrap()], None, &[], "").code, 0);
    assert!(pages.join("kode-ls-run.1").exists());
}

#[test]
fn a_group_of_commands_lists_by_itself_and_takes_the_same_options() {
    let project = project();
    let folder = project.workspace();
    for group in ["config", "trust", "mcp", "permissions", "sessions", "plugin", "models"] {
        said(&project, &[group]);
        json_of(&at_home(&project, &[group, "--json", "--cwd", folder.to_str().unwrap()]));
    }
    said(&project, &["sessions", "--limit", "3"]);
}

#[test]
fn mcp_servers_are_added_and_removed() {
    let project = project();
    let added = ["mcp", "add", "files", "-e", "ROOT=/tmp", "--", "npx", "-y", "server"];
    assert!(said(&project, &added).contains("settings.local.json"));
    let hub = [
        "mcp",
        "add",
        "hub",
        "--url",
        "https://mcp.example.com/mcp",
        "--header",
        "X-Team: a:b",
        "--scope",
        "user",
    ];
    said(&project, &hub);
    let servers = json_of(&at_home(&project, &["mcp", "--json"]))["servers"].clone();
    let names: Vec<_> = servers.as_array().unwrap().iter().map(|server| server["name"].clone()).collect();
    assert_eq!(names, ["files", "hub"], "{servers}");
    let entry = json_of(&at_home(&project, &["config", "get", "mcpServers", "--json"]));
    assert!(entry.to_string().contains("X-Team"), "{entry}");
    for wrong in [&["mcp", "add", "a b", "--", "x"][..], &["mcp", "add", "x"], &["mcp", "remove", "nosuch"]] {
        assert_ne!(at_home(&project, wrong).code, 0, "{wrong:?}");
    }
    assert!(said(&project, &["mcp", "remove", "files"]).contains("settings.local.json"));
    assert!(said(&project, &["mcp", "remove", "hub"]).contains("settings.json"));
    assert!(said(&project, &["mcp"]).contains("no MCP servers"));
}

#[test]
fn rules_are_explained_in_words_and_removed_where_they_stand() {
    let project = project();
    said(&project, &["permissions", "add", "allow", "Bash(make:*)"]);
    let explained = said(&project, &["permissions", "explain", "Bash(make test)"]);
    assert!(explained.starts_with("Bash(make test) runs unasked\n"), "{explained}");
    let asked = said(&project, &["permissions", "explain", "Bash(git push)"]);
    assert!(asked.contains("is asked for") && asked.contains("to allow"), "{asked}");
    let reported = json_of(&at_home(&project, &["permissions", "explain", "Edit(a.txt)", "--json"]));
    assert_eq!(reported["decision"], "ask");
    assert!(said(&project, &["permissions"]).contains("allow  Bash(make:*)"));
    assert!(
        said(&project, &["permissions", "remove", "allow", "Bash(make:*)"]).contains("settings.local.json")
    );
    assert_ne!(at_home(&project, &["permissions", "remove", "allow", "Bash(make:*)"]).code, 0);
}

#[test]
fn a_session_is_written_as_a_document() {
    let read = call("Read", json!({ "file_path": "{{cwd}}/a.txt" }));
    let project = Project::new(&Script::default().otherwise([read, say("It says hello.")]));
    project.write("a.txt", "hello\n");
    said(&project, &["run", "what does it say?"]);
    let sessions = json_of(&at_home(&project, &["sessions", "--json"]));
    let id = sessions["sessions"][0]["sessionId"].as_str().unwrap();
    let document = said(&project, &["sessions", "export", id]);
    assert!(document.contains("what does it say?") && document.contains("It says hello."), "{document}");
    let value = json_of(&at_home(&project, &["sessions", "export", id, "--format", "json"]));
    assert_eq!(value["sessionId"], id);
    let file = project.path("talk.md");
    let file = file.to_str().unwrap();
    said(&project, &["sessions", "export", id, "-o", file]);
    assert_eq!(project.read("talk.md"), document);
    assert_ne!(at_home(&project, &["sessions", "export", id, "-o", file]).code, 0, "it is not written over");
}

#[test]
fn nothing_is_approved_unseen() {
    let project = project();
    project.write(".kode/settings.json", r#"{"permissions":{"allow":["Bash(make:*)"]}}"#);
    let output = at_home(&project, &["trust", "approve"]);
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stdout.contains("Bash(make:*)") && output.stderr.contains("--yes"), "{output:?}");
    assert!(said(&project, &["trust"]).starts_with("waits"));
    said(&project, &["trust", "approve", "--yes"]);
    assert!(said(&project, &["trust"]).starts_with("approved"));
}

#[test]
fn the_doctor_begins_with_the_model_and_asks_it_on_request() {
    let project = project();
    let text = said(&project, &["doctor"]);
    assert!(text.lines().nth(2).unwrap().starts_with("model"), "{text}");
    assert!(text.contains("--online"), "{text}");
    assert!(project.model.requests().is_empty(), "nobody is asked unasked");
    let reported = json_of(&at_home(&project, &["doctor", "--online", "--json"]));
    assert_eq!(reported["models"]["answers"], true, "{}", reported["models"]);
    assert_eq!(project.model.requests().len(), 1);
    let home = tempfile::tempdir().unwrap();
    let environment = [("KODE_LS_HOME", home.path().to_str().unwrap())];
    for command in [&["doctor"][..], &["models"]] {
        let output = run(command, Some(home.path()), &environment, "");
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.stdout.contains("ANTHROPIC_API_KEY"), "{output:?}");
    }
}
