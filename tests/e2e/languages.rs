//! Language servers behind the agent: what the model gets of them, what they change, and how they fail.
//!
//! Rule: the server for words is ours, so that each of its faults is one on purpose. Real servers are in `real`.

mod editor;
mod faults;
#[cfg(unix)]
mod moves;
mod proposals;
#[cfg(unix)]
mod real;
mod review;
#[cfg(unix)]
mod wrap;

use std::fs;
use std::path::{Path, PathBuf};

use kode_e2e::{Client, Offer, Project, Script, Session, Step, Typing, binary, call, say};
use serde_json::{Value, json};

/// Our own server, with all its faults.
fn words_server() -> PathBuf {
    binary().with_file_name(format!("fault-language-server{}", std::env::consts::EXE_SUFFIX))
}

fn user_home(project: &Project) -> PathBuf {
    project.outside().join("user")
}

/// The entry of the server for words, which misbehaves in this way.
fn entry(how: &str, log: &Path) -> Value {
    json!({
        "command": words_server(), "args": [how], "extensionToLanguage": { ".word": "words" },
        "env": { "FAULT_LOG": log }, "startupTimeout": 400,
    })
}

/// Gives the user these language servers in their own settings, without a sandbox.
fn keep_settings(project: &Project, servers: &Value) {
    let folder = user_home(project).join(".kode-ls");
    fs::create_dir_all(&folder).unwrap();
    let settings = json!({ "lspServers": servers, "sandbox": { "enabled": false } });
    fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
}

/// Starts a server of ours whose user has these language servers in their own settings, without a sandbox.
fn open_with(project: &Project, servers: &Value, variables: &[(&str, &str)]) -> Client {
    keep_settings(project, servers);
    let home = user_home(project).to_str().unwrap().to_owned();
    let variables = [&[("HOME", home.as_str())], variables].concat();
    let client = project.start_as(&[], &variables);
    client.initialize(Offer::kode().params(&project.workspace()));
    client
}

/// As [`open_with`], with the server for words.
fn open(project: &Project, how: &str) -> Client {
    open_with(project, &json!({ "words": entry(how, &log(project)) }), &[])
}

fn log(project: &Project) -> PathBuf {
    project.outside().join("words.log")
}

/// A session in which nothing is asked.
fn unasked(client: &Client) -> Session<'_> {
    client.session_with(json!({ "mode": "bypassPermissions" }))
}

/// A project with these calls for one turn.
fn project_of(calls: impl IntoIterator<Item = Step>) -> Project {
    Project::new(&Script::new(calls.into_iter().chain([say("Done.")])))
}

/// The results of all calls, in their order.
fn results(project: &Project) -> Vec<(String, bool)> {
    let request = project.model.last_request();
    request["messages"].as_array().unwrap().iter().flat_map(kode_e2e::results_of).collect()
}

/// The only result of the last turn.
fn result(project: &Project) -> (String, bool) {
    let [result] = project.model.last_results().try_into().unwrap();
    result
}

fn offered(project: &Project) -> Vec<String> {
    let request = project.model.last_request();
    let tools = request["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn symbols_definitions_and_references_come_from_all_files_and_from_unsaved_text() {
    let project = project_of([
        call("Symbols", json!({ "file_path": "a.word" })),
        call("Symbols", json!({ "query": "alp" })),
        call("Definition", json!({ "symbol": "alpha", "file_path": "b.word" })),
        call("References", json!({ "symbol": "alpha", "file_path": "a.word" })),
    ]);
    project
        .write("a.word", "def alpha\n")
        .write("b.word", "use alpha\n")
        .write("deep/c.word", "alphabet alpha\n");
    let client = open(&project, "");
    // The editor shows another text than the disk has.
    client.editor.open(&project.uri("a.word"), "𝄞 first\n\ndef alpha\ndef beta\n");
    let session = unasked(&client);
    session.run("go");
    let results: Vec<String> = results(&project)
        .into_iter()
        .map(|(text, failed)| {
            assert!(!failed, "{text}");
            text
        })
        .collect();
    assert_eq!(results[0], "3-3 function alpha\n4-4 function beta");
    assert_eq!(results[1], "a.word:3 function alpha");
    assert_eq!(results[2], "the word alpha\n\na.word:3-3\n     3\tdef alpha");
    let expected = "3 lines in 3 files\na.word\n  3: def alpha\nb.word\n  1: use alpha\ndeep/c.word\n  1: alphabet alpha";
    assert_eq!(results[3], expected);
    // Typing goes into the next result, and costs no message before.
    let messages = || fs::read_to_string(log(&project)).unwrap().matches("didChange\n").count();
    let before = messages();
    client.editor.type_text(&project.uri("a.word"), &Typing::before("first", "alpha "));
    assert_eq!(messages(), before);
    assert_eq!(client.shut_down(), 0);
}

#[test]
fn tools_of_language_servers_are_offered_where_one_serves_the_workspace() {
    let project = project_of([]);
    let client = open_with(&project, &json!({}), &[("PATH", "/usr/bin:/bin")]);
    unasked(&client).run("go");
    let without = offered(&project);
    for tool in ["Symbols", "References", "RenameSymbol", "Diagnostics", "LSP"] {
        assert!(!without.contains(&tool.to_owned()), "{tool} in {without:?}");
    }
    let project = project_of([]);
    let client = open(&project, "");
    unasked(&client).run("go");
    assert!(!offered(&project).contains(&"Symbols".to_owned()), "there is no file of the language");
    let project = project_of([]);
    project.write("deep/er/a.word", "def alpha\n");
    let client = open(&project, "");
    unasked(&client).run("go");
    let with = offered(&project);
    for tool in [
        "Symbols",
        "Definition",
        "References",
        "CallHierarchy",
        "RenameSymbol",
        "CodeActions",
        "ApplyCodeAction",
        "Format",
        "Diagnostics",
    ] {
        assert!(with.contains(&tool.to_owned()), "{tool} in {with:?}");
    }
    assert!(!log(&project).exists(), "no server is started before a call needs it");
}

#[test]
fn clients_of_the_agent_client_protocol_have_the_tools_too() {
    let project = project_of([call("References", json!({ "symbol": "alpha", "file_path": "a.word" }))]);
    project.write("a.word", "def alpha\n").write("b.word", "use alpha\n");
    keep_settings(&project, &json!({ "words": entry("", &log(&project)) }));
    let home = user_home(&project);
    let client = project.acp_as(&[("HOME", home.to_str().unwrap())]);
    client.initialize(json!({}));
    let session = client.new_session();
    client.run(&session, "go");
    assert_eq!(
        result(&project),
        ("2 lines in 2 files\na.word\n  1: def alpha\nb.word\n  1: use alpha".into(), false)
    );
}

#[test]
fn a_server_that_the_workspace_declares_waits_for_approval() {
    let project = project_of([call("Symbols", json!({ "file_path": "a.word" }))]);
    let servers = json!({ "words": entry("", &log(&project)) });
    project.write("a.word", "def alpha\n");
    project.write(".kode-ls/settings.json", json!({ "lspServers": servers }).to_string());
    let client = open_with(&project, &json!({}), &[("PATH", "/usr/bin:/bin")]);
    let session = unasked(&client);
    session.run("go");
    let (text, failed) = result(&project);
    assert!(failed && text.contains("No language server serves this workspace"), "{text}");
    assert!(!log(&project).exists());
    let doctor = client.call("agent/doctor", json!({ "sessionId": session.id }));
    let text = doctor["text"].as_str().unwrap();
    assert!(
        text.contains("## Language servers\n- words") && text.contains("waits for your approval"),
        "{text}"
    );
}

#[test]
fn an_edit_reports_the_diagnostics_that_it_adds_and_removes() {
    let edit = |old: &str, new: &str| {
        call("Edit", json!({ "file_path": "a.word", "old_string": old, "new_string": new }))
    };
    let project = project_of([
        call("Read", json!({ "file_path": "a.word" })),
        edit("alpha", "alpha oops"),
        edit("oops", "fine"),
        edit("fine", "good"),
        call("Diagnostics", json!({})),
    ]);
    project.write("a.word", "hmm\ndef alpha\n");
    let client = open(&project, "");
    client.editor.open(&project.uri("a.word"), "hmm\ndef alpha\n");
    unasked(&client).run("go");
    let results: Vec<String> = results(&project).into_iter().map(|(text, _)| text).collect();
    let heading = "Diagnostics of the language server after this change";
    let new = format!("{heading}: 1 new, 0 gone\nnew: a.word:2:11 error: `oops` is no word [words 1]");
    assert!(results[1].ends_with(&new), "{}", results[1]);
    let gone = format!("{heading}: 0 new, 1 gone\ngone: a.word:2:11 error: `oops` is no word [words 1]");
    assert!(results[2].ends_with(&gone), "{}", results[2]);
    assert!(!results[3].contains("language server"), "{}", results[3]);
    assert_eq!(results[4], "a.word\n  1:1 warning: `hmm` is no word [words 2]");
}

#[test]
fn a_prompt_fills_in_what_its_change_would_add_and_fix() {
    let diagnostics = call("Diagnostics", json!({ "path": "a.word" }));
    let project = project_of([
        call("Read", json!({ "file_path": "a.word" })),
        diagnostics.clone(),
        call("Edit", json!({ "file_path": "a.word", "old_string": "hmm", "new_string": "oops" })),
        diagnostics,
    ]);
    project.write("a.word", "def alpha\nhmm\n");
    let client = open(&project, "");
    client.editor.open(&project.uri("a.word"), "unsaved\nhmm\n");
    let session = client.session();
    let turn = session.prompt("go");
    let prompt = session.wait_permission(0);
    assert_eq!(prompt["diagnostics"], Value::Null, "the prompt waits for no server");
    let updated = session.wait_event("the diagnostics", |event| event["type"] == "permission_updated");
    assert_eq!(updated["permissionId"], prompt["permissionId"]);
    let expected = json!({
        "summary": "adds 1 error, fixes 1 warning",
        "lines": [
            "a.word:2:1 error: `oops` is no word [words 1]",
            "fixed: a.word:2:1 warning: `hmm` is no word [words 2]",
        ],
    });
    assert_eq!(updated["diagnostics"], expected);
    assert_eq!(session.snapshot()["pendingPermissions"][0]["diagnostics"], expected);
    session.respond(&prompt, json!({ "decision": "deny", "scope": "once" })).unwrap();
    session.wait_done(&turn);
    let results = results(&project);
    assert_eq!(results[3].0, results[1].0, "no other call sees the proposed text");
    assert_eq!(client.editor.text(&project.uri("a.word")), "unsaved\nhmm\n");
}

#[test]
fn a_rename_is_one_prompt_one_change_and_one_checkpoint_and_keeps_what_is_typed() {
    const FILES: usize = 40;
    const UNSAVED: usize = 10;
    let rename = json!({ "symbol": "alpha", "file_path": "0.word", "new_name": "omega" });
    let project = project_of([call("RenameSymbol", rename)]);
    let name = |number: usize| format!("{number}.word");
    // Five places a file.
    let text = |number: usize| {
        let first = if number == 0 { "def alpha" } else { "alpha" };
        format!("{first}\nalpha and alpha\nalphabet\nalpha\nalpha\n")
    };
    for number in 0..FILES {
        project.write(&name(number), text(number));
    }
    let client = open(&project, "");
    for number in 0..UNSAVED {
        client.editor.open(&project.uri(&name(number)), &format!("unsaved\n{}", text(number)));
    }
    let session = client.session();
    let turn = session.prompt("go");
    let prompt = session.wait_permission(0);
    let preview = prompt["preview"].to_string();
    assert!(preview.contains("0.word") && preview.contains("39.word"), "{preview}");
    client.editor.type_text(&project.uri("3.word"), &Typing::before("unsaved", "typed "));
    session.respond(&prompt, json!({ "decision": "allow", "scope": "once" })).unwrap();
    session.wait_done(&turn);
    let (report, failed) = result(&project);
    assert!(
        !failed && report.starts_with("Renamed `alpha` to `omega` at 200 places in 40 files"),
        "{report}"
    );
    let renamed = |number| text(number).replace("alpha", "omega").replace("omegabet", "alphabet");
    let open_text = |number: usize| client.editor.text(&project.uri(&name(number)));
    for number in 0..UNSAVED {
        let typed = if number == 3 { "typed " } else { "" };
        assert_eq!(open_text(number), format!("{typed}unsaved\n{}", renamed(number)));
    }
    for number in UNSAVED..FILES {
        assert_eq!(project.read(&name(number)), renamed(number));
    }
    assert_eq!(session.edited_files().len(), FILES);
    // One hunk of an unsaved document is undone alone.
    let uri = project.uri("3.word");
    let file = session.edited_files().into_iter().find(|file| file["uri"] == uri.as_str()).unwrap();
    session.resolve(&[&file["hunks"][0]], "undo");
    assert!(
        open_text(3).contains("alpha") && open_text(3).starts_with("typed unsaved\n"),
        "{}",
        open_text(3)
    );
    let checkpoints = session.call("agent/checkpoint/list", json!({}));
    let checkpoint = &checkpoints["checkpoints"][0]["checkpointId"];
    let restore = json!({ "checkpointId": checkpoint, "what": "files", "userEdits": "keep" });
    let restored = session.call("agent/checkpoint/restore", restore);
    session.wait_resolved(restored["resolutionId"].as_str().unwrap());
    assert_eq!(open_text(3), format!("typed unsaved\n{}", text(3)));
    assert_eq!(open_text(0), format!("unsaved\n{}", text(0)));
    for number in UNSAVED..FILES {
        assert_eq!(project.read(&name(number)), text(number));
    }
}

#[test]
fn actions_and_formatting_are_edits_like_all_others() {
    let project = project_of([
        call("CodeActions", json!({ "file_path": "a.word", "line": 2 })),
        call("ApplyCodeAction", json!({ "file_path": "a.word", "id": "1" })),
        call("Format", json!({ "file_path": "a.word" })),
        call("Format", json!({ "file_path": "a.word" })),
        call("ApplyCodeAction", json!({ "file_path": "a.word", "id": "9" })),
    ]);
    project.write("a.word", "def alpha  \noops\n");
    let client = open(&project, "");
    let session = unasked(&client);
    session.run("go");
    let results = results(&project);
    assert_eq!(results[0].0, "1. Say fine [quickfix] (preferred)");
    assert!(results[1].0.contains("Applied the code action “Say fine”"), "{}", results[1].0);
    assert!(results[1].0.contains("gone: a.word:2:1 error"), "{}", results[1].0);
    assert!(results[2].0.starts_with("Formatted a.word"), "{}", results[2].0);
    assert!(results[3].0.contains("formatted already"), "{}", results[3].0);
    assert!(results[4].1 && results[4].0.contains("has not proposed an action"), "{}", results[4].0);
    assert_eq!(project.read("a.word"), "def alpha\nfine\n");
    assert_eq!(session.hunks().len(), 2);
}

#[test]
fn the_tool_of_other_agents_gives_the_same_by_line_and_column() {
    let lsp = |operation: &str, line: u32, character: u32| {
        let mut input = json!({ "operation": operation, "filePath": "b.word" });
        input["line"] = line.into();
        input["character"] = character.into();
        call("LSP", input)
    };
    let project = project_of([
        lsp("goToDefinition", 1, 7),
        lsp("findReferences", 1, 7),
        lsp("hover", 1, 7),
        call("LSP", json!({ "operation": "documentSymbol", "filePath": "a.word" })),
        call("LSP", json!({ "operation": "workspaceSymbol", "filePath": "a.word", "query": "alp" })),
    ]);
    project.write("a.word", "def alpha\n").write("b.word", "𝄞 use alpha\n");
    let client = open(&project, "");
    unasked(&client).run("go");
    let results: Vec<String> = results(&project).into_iter().map(|(text, _)| text).collect();
    assert_eq!(results[0], "the word alpha\n\na.word:1-1\n     1\tdef alpha");
    assert_eq!(results[1], "2 lines in 2 files\na.word\n  1: def alpha\nb.word\n  1: 𝄞 use alpha");
    assert_eq!(results[2], "the word alpha");
    assert_eq!((results[3].as_str(), results[4].as_str()), ("1-1 function alpha", "a.word:1 function alpha"));
}
