//! The PowerShell tool: its judgement of commands, and how they run.
//!
//! Rule: PowerShell is a stand-in here, named by `KODE_LS_POWERSHELL`: a script that runs commands with bash, and that gives answers of
//! PowerShell's parser which were written for these tests. No test here says anything about PowerShell itself.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kode_e2e::{Client, Offer, Project, Script, Step, call, say, step};
use serde_json::{Value, json};

/// The stand-in. `%ANSWERS%` is its folder.
const STAND_IN: &str = r#"#!/bin/bash
# A stand-in for PowerShell in tests. It is not PowerShell: it runs commands with bash.
if [ -n "$KODE_LS_PARSED" ]; then
    [ -e '%ANSWERS%/broken' ] && { echo 'Parser, what parser?'; exit 0; }
    [ -e '%ANSWERS%/silent' ] && exec sleep 1000
    exec cat "%ANSWERS%/$(printf '%s' "$KODE_LS_PARSED" | cksum | tr ' ' '-')"
fi
script=$KODE_LS_SCRIPT
report=$KODE_LS_REPORT
unset KODE_LS_SCRIPT KODE_LS_REPORT
Get-Content() { cat "$@"; }
Set-Location() { cd "$1"; }
Remove-Item() { rm "$@"; }
[ -n "$report" ] && trap 'printf "\357\273\277%s\r\n" "$PWD" > "$report"' EXIT
. "$script"
"#;

/// A project whose machine has a PowerShell.
struct Machine {
    project: Project,
    folder: tempfile::TempDir,
}

impl Machine {
    fn new(script: &Script, commands: &[&str]) -> Self {
        // Programs below the folder for temporary files are not started.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let machine = Self { project: Project::new(script), folder };
        let text = STAND_IN.replace("%ANSWERS%", machine.folder.path().to_str().unwrap());
        fs::write(machine.program(), text).unwrap();
        fs::set_permissions(machine.program(), fs::Permissions::from_mode(0o755)).unwrap();
        for command in commands {
            machine.answer(command);
        }
        machine
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("pwsh")
    }

    /// Has the parser know a command.
    fn answer(&self, command: &str) {
        let script = "printf '%s' \"$1\" | cksum | tr ' ' '-'";
        let key =
            Command::new("sh").args(["-c", script, "sh", &STANDARD.encode(command)]).output().unwrap().stdout;
        let name = String::from_utf8(key).unwrap();
        fs::write(self.folder.path().join(name.trim()), answer(command)).unwrap();
    }

    fn mark(&self, name: &str) {
        fs::write(self.folder.path().join(name), "").unwrap();
    }

    fn open(&self) -> Client {
        let (home, program) = (self.project.outside().join("user"), self.program());
        fs::create_dir_all(home.join(".kode")).unwrap();
        let variables = [("HOME", home.to_str().unwrap()), ("KODE_LS_POWERSHELL", program.to_str().unwrap())];
        let client = self.project.start_as(&[], &variables);
        client.initialize(Offer::kode().params(&self.project.workspace()));
        client
    }

    fn settings(&self, settings: &Value) {
        let folder = self.project.outside().join("user/.kode");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
    }
}

/// The answer of the parser about one command of plain words and parameters; about `$x = ...`, that of an assignment.
fn answer(command: &str) -> String {
    let mut nodes = Vec::new();
    let mut add = |kind: &str, from: usize, to: usize, parent: i64, value: &str, form: &str| {
        let value = STANDARD.encode(value);
        let node =
            json!({ "kind": kind, "start": from, "end": to, "parent": parent, "value": value, "form": form });
        nodes.push(node.to_string());
    };
    let end = command.len();
    add("ScriptBlockAst", 0, end, -1, "", "");
    add("NamedBlockAst", 0, end, 0, "", "");
    if command.starts_with('$') {
        add("AssignmentStatementAst", 0, end, 1, "", "");
    } else {
        add("PipelineAst", 0, end, 1, "", "");
        add("CommandAst", 0, end, 2, "", "Unknown");
        let mut at = 0;
        for word in command.split(' ') {
            match word.strip_prefix('-') {
                Some(name) => add("CommandParameterAst", at, at + word.len(), 3, name, ""),
                None => add("StringConstantExpressionAst", at, at + word.len(), 3, word, "BareWord"),
            }
            at += word.len() + 1;
        }
    }
    let head = json!({ "version": 1, "nodes": nodes.len(), "problems": 0, "problem": "" });
    format!("{head}\n{}\n", nodes.join("\n"))
}

fn powershell(command: &str) -> Step {
    call("PowerShell", json!({ "command": command }))
}

#[test]
fn a_command_that_only_looks_runs_unasked_and_carries_its_folder_over() {
    let commands = ["Get-Content a.txt", "Set-Location sub", "Get-Content b.txt"];
    let script = Script::new([
        powershell(commands[0]),
        powershell(commands[1]),
        powershell(commands[2]),
        call("Bash", json!({ "command": "cat b.txt" })),
        say("Done."),
    ]);
    let machine = Machine::new(&script, &commands);
    machine.project.write("a.txt", "from the top\n").write("sub/b.txt", "from below\n");
    let client = machine.open();
    let session = client.session();
    session.run("go");
    let calls = session.calls();
    let states: Vec<_> = calls.iter().map(|call| call["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["COMPLETED"; 4], "{calls:#?}");
    let results = machine.project.model.last_request().to_string();
    assert!(results.contains("from the top") && results.matches("from below").count() >= 2, "{results}");
}

#[test]
fn another_command_is_asked_for_with_its_text_and_a_rule_that_is_kept_and_read_again() {
    let command = "Remove-Item a.txt";
    let script = Script::default().otherwise([powershell(command), say("Done.")]);
    let machine = Machine::new(&script, &[command]);
    machine.project.write("a.txt", "x");
    let client = machine.open();
    let session = client.session();
    let turn = session.prompt("first");
    let prompt = session.wait_permission(0);
    assert_eq!((&prompt["tool"], &prompt["preview"]["command"]), (&json!("PowerShell"), &json!(command)));
    assert!(prompt["notes"].to_string().contains("Runs in the sandbox"), "{prompt}");
    assert!(prompt["offers"].to_string().contains("PowerShell(Remove-Item a.txt)"), "{prompt}");
    session.respond(&prompt, json!({ "decision": "allow", "scope": "project" })).unwrap();
    session.wait_done(&turn);
    assert!(!machine.project.path("a.txt").exists());
    drop(client);
    machine.project.write("a.txt", "x");
    let client = machine.open();
    let session = client.session();
    session.run("second");
    assert_eq!(session.calls()[0]["state"], "COMPLETED");
    assert!(!machine.project.path("a.txt").exists(), "the kept rule allows it");
}

#[test]
fn what_a_rule_denies_or_no_mode_runs_is_refused_whatever_its_alias_and_letter_case() {
    let commands = ["del a.txt", "REMOVE-ITEM a.txt", "cp a.txt b.txt", "Get-Content .env", "Stop-Computer"];
    let script = commands.iter().fold(Script::default(), |script, command| {
        script.when(&format!("^{command}$").replace('.', "[.]"), [powershell(command), say("Done.")])
    });
    let machine = Machine::new(&script, &commands);
    machine.project.write("a.txt", "x").write(".env", "KEY=hush\n");
    machine.settings(&json!({ "permissions": { "deny": ["PowerShell(Remove-Item:*)", "Bash(cp:*)"] } }));
    let client = machine.open();
    for mode in ["default", "bypassPermissions"] {
        for command in commands {
            let session = client.session_with(json!({ "mode": mode }));
            let turn = session.prompt(command);
            assert_eq!(session.permission_or_end(&turn, 0), None, "{mode} {command}");
            assert_eq!(session.calls()[0]["state"], "DENIED", "{mode} {command}");
        }
    }
    assert_eq!(machine.project.read("a.txt"), "x");
}

#[test]
fn without_an_answer_of_the_parser_every_command_is_asked_for() {
    let command = "Get-Content a.txt";
    for (mark, reason) in
        [("broken", "cannot be read"), ("silent", "stopped after 5 seconds"), ("", "parser failed")]
    {
        let script = Script::new([powershell(command), say("Done.")]);
        let machine = Machine::new(&script, &[]);
        machine.project.write("a.txt", "x");
        if !mark.is_empty() {
            machine.mark(mark);
        }
        let client = machine.open();
        let session = client.session();
        let turn = session.prompt("go");
        let prompt = session.wait_permission(0);
        assert!(prompt["reason"].as_str().unwrap().contains(reason), "{mark}: {prompt}");
        assert!(
            !prompt["offers"].to_string().contains("PowerShell(Get-Content a.txt)\"]"),
            "{mark}: {prompt}"
        );
        session.respond(&prompt, json!({ "decision": "deny", "scope": "once" })).unwrap();
        session.wait_done(&turn);
        assert_eq!(session.calls()[0]["state"], "DENIED", "{mark}");
    }
}

#[test]
fn an_assignment_is_asked_for_and_plan_mode_refuses_it() {
    let command = "$x = 1";
    let script = Script::default().otherwise([powershell(command), say("Done.")]);
    let machine = Machine::new(&script, &[command]);
    let client = machine.open();
    let session = client.session();
    let turn = session.prompt("go");
    let prompt = session.wait_permission(0);
    assert!(prompt["reason"].as_str().unwrap().contains("sets a variable"), "{prompt}");
    session.respond(&prompt, json!({ "decision": "deny", "scope": "once" })).unwrap();
    session.wait_done(&turn);
    let planning = client.session_with(json!({ "mode": "plan" }));
    let turn = planning.prompt("go");
    assert_eq!(planning.permission_or_end(&turn, 0), None);
    assert_eq!(planning.calls()[0]["state"], "DENIED");
}

#[test]
fn exit_codes_and_time_limits_are_those_of_bash() {
    let script = Script::new([
        step()
            .call("PowerShell", json!({ "command": "exit 3" }))
            .call("PowerShell", json!({ "command": "sleep 1000", "timeout": 200 })),
        say("Done."),
    ]);
    let machine = Machine::new(&script, &["exit 3", "sleep 1000"]);
    let client = machine.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("go");
    let calls = session.calls();
    assert_eq!(calls[0]["structured"]["exitCode"], 3, "{calls:#?}");
    assert_eq!(calls[1]["structured"]["timedOut"], true, "{calls:#?}");
}

#[test]
fn without_a_powershell_there_is_no_such_tool_and_doctor_says_which_shells_there_are() {
    let project = Project::new(&Script::new([say("Done.")]));
    let client = project.open();
    client.session().run("go");
    assert!(!project.model.last_request()["tools"].to_string().contains("\"PowerShell\""));
    let machine = Machine::new(&Script::new([say("Done.")]), &[]);
    let client = machine.open();
    client.session().run("go");
    let request = machine.project.model.last_request();
    assert!(request["tools"].to_string().contains("\"PowerShell\""), "{request}");
    assert!(request.to_string().contains("or in PowerShell (PowerShell)"), "{request}");
    let named = [("KODE_LS_POWERSHELL", machine.program().to_str().unwrap().to_owned())];
    let named: Vec<_> = named.iter().map(|(name, value)| (*name, value.as_str())).collect();
    for (variables, expected) in [(&named[..], true), (&[], false)] {
        let output = machine.project.run_as(&["doctor", "--json"], "", variables);
        let findings: Value = serde_json::from_str(&output.stdout).unwrap();
        assert!(findings["shells"]["Bash"].is_string(), "{findings}");
        assert_eq!(findings["shells"]["PowerShell"].is_string(), expected, "{findings}");
    }
}
