//! Agents that others wrote, from the registry of npm, as guests: each against a scripted model of its own wire.
//!
//! Rule: they are where `tests/tools/install-guests.sh` puts them, or where `KODE_LS_GUESTS` says; where they are not, the tests
//! fail and say how to install them. They reach nothing but loopback, and have a home of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use kode_e2e::system::{is_running, processes_in};
use kode_e2e::{Client, LIMIT, Offer, Project, Script, ScriptedModel, Session, Step, Typing, call, say};
use serde_json::{Value, json};

use super::calls_of_guest;

/// An address where nothing listens: the proxy to the network, which no guest gets.
const NOWHERE: &str = "http://127.0.0.1:9";

/// The folder the agents are installed in.
fn installed() -> PathBuf {
    let installed = std::env::var_os("KODE_LS_GUESTS").map(PathBuf::from).unwrap_or_else(|| {
        let tools = std::env::var_os("KODE_LS_TOOLS").map(PathBuf::from).unwrap_or_else(|| {
            let home = || PathBuf::from(std::env::var_os("HOME").expect("a home folder")).join(".cache");
            let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).unwrap_or_else(home);
            cache.join("kode-ls-tools")
        });
        tools.join("guests")
    });
    assert!(
        installed.join(".complete").is_file(),
        "there are no agents in {}: run tests/tools/install-guests.sh, or set KODE_LS_GUESTS",
        installed.display()
    );
    installed
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agent {
    /// Writes each file itself and reports the same write here.
    OpenCode,
    /// Reads and writes files here.
    Gemini,
    /// Writes files itself.
    Codex,
    /// Writes files itself, and asks only in one of its modes.
    Claude,
}

impl Agent {
    /// Its entry in `runs`.
    fn runs(self, home: &Path, model: &str) -> Value {
        let (program, arguments, own, mode) = match self {
            Self::OpenCode => {
                let off = ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"];
                let off = off.map(|name| (format!("OPENCODE_DISABLE_{name}"), "1".to_owned()));
                ("opencode", vec!["acp"], off.to_vec(), None)
            }
            Self::Gemini => {
                let own = [("GEMINI_API_KEY", "key"), ("GOOGLE_GEMINI_BASE_URL", model)];
                ("gemini", vec!["--acp"], owned(&own), None)
            }
            Self::Codex => ("codex-acp", vec![], owned(&[("SCRIPTED_KEY", "key")]), None),
            Self::Claude => {
                let own = [
                    ("ANTHROPIC_API_KEY", "key"),
                    ("ANTHROPIC_BASE_URL", model),
                    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
                    // Set, it makes the adapter ask for a right that root does not get.
                    ("IS_SANDBOX", ""),
                ];
                ("claude-agent-acp", vec![], owned(&own), Some("default"))
            }
        };
        let place = |name: &str| home.join(name).to_str().unwrap().to_owned();
        let mut variables = owned(&[
            ("HTTP_PROXY", NOWHERE),
            ("HTTPS_PROXY", NOWHERE),
            ("NO_PROXY", "127.0.0.1,localhost"),
            ("XDG_CACHE_HOME", &place(".cache")),
            ("XDG_CONFIG_HOME", &place(".config")),
            ("XDG_DATA_HOME", &place(".local/share")),
            ("XDG_STATE_HOME", &place(".local/state")),
        ]);
        variables.extend(own);
        let variables: serde_json::Map<String, Value> =
            variables.into_iter().map(|(name, value)| (name, json!(value))).collect();
        let mut runs = json!({
            "command": installed().join("bin").join(program), "args": arguments, "env": variables,
        });
        if let Some(mode) = mode {
            runs["mode"] = json!(mode);
        }
        runs
    }

    /// Writes its settings.
    fn prepare(self, home: &Path, model: &str) {
        let (file, text) = match self {
            Self::OpenCode => {
                let provider = json!({
                    "npm": "@ai-sdk/openai-compatible", "name": "Local",
                    "options": { "baseURL": format!("{model}/v1"), "apiKey": "key" },
                    "models": { "scripted": { "name": "Scripted", "limit": { "context": 200_000, "output": 8_000 } } },
                });
                let settings = json!({
                    "model": "local/scripted", "small_model": "local/scripted",
                    "permission": { "edit": "ask", "bash": "ask" }, "provider": { "local": provider },
                });
                (".config/opencode/opencode.json", settings.to_string())
            }
            Self::Gemini => {
                let settings = json!({
                    "security": { "auth": { "selectedType": "gemini-api-key" } },
                    "privacy": { "usageStatisticsEnabled": false },
                    "general": { "enableAutoUpdate": false },
                    "model": { "name": "gemini-2.5-flash" },
                });
                (".gemini/settings.json", settings.to_string())
            }
            Self::Codex => {
                let settings = format!(
                    "model = \"scripted\"\nmodel_provider = \"local\"\napproval_policy = \"untrusted\"\n\
                     sandbox_mode = \"danger-full-access\"\n[model_providers.local]\nname = \"Local\"\n\
                     base_url = \"{model}/v1\"\nenv_key = \"SCRIPTED_KEY\"\nwire_api = \"responses\"\n"
                );
                (".codex/config.toml", settings)
            }
            Self::Claude => (".claude/settings.json", "{}".to_owned()),
        };
        let file = home.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn read(self, path: &str) -> Step {
        match self {
            Self::OpenCode => call("read", json!({ "filePath": path })),
            Self::Gemini => call("read_file", json!({ "file_path": path })),
            Self::Codex => call("exec_command", json!({ "cmd": format!("cat {path}") })),
            Self::Claude => call("Read", json!({ "file_path": path })),
        }
    }

    fn edit(self, path: &str, old: &str, new: &str) -> Step {
        match self {
            Self::OpenCode => call("edit", json!({ "filePath": path, "oldString": old, "newString": new })),
            Self::Gemini => call(
                "replace",
                json!({ "file_path": path, "instruction": "Change it.", "old_string": old, "new_string": new }),
            ),
            Self::Codex => patch(&format!("*** Update File: {path}\n@@\n-{old}\n+{new}\n")),
            Self::Claude => call("Edit", json!({ "file_path": path, "old_string": old, "new_string": new })),
        }
    }

    fn create(self, path: &str, line: &str) -> Step {
        let content = format!("{line}\n");
        match self {
            Self::OpenCode => call("write", json!({ "filePath": path, "content": content })),
            Self::Gemini => call("write_file", json!({ "file_path": path, "content": content })),
            Self::Codex => patch(&format!("*** Add File: {path}\n+{line}\n")),
            Self::Claude => call("Write", json!({ "file_path": path, "content": content })),
        }
    }

    fn command(self, line: &str) -> Step {
        match self {
            Self::OpenCode => call("bash", json!({ "command": line, "description": "Runs it" })),
            Self::Gemini => call("run_shell_command", json!({ "command": line, "description": "Runs it" })),
            Self::Codex => call("exec_command", json!({ "cmd": line })),
            Self::Claude => call("Bash", json!({ "command": line, "description": "Runs it" })),
        }
    }

    /// Whether its writes of files come here.
    fn writes_here(self) -> bool {
        matches!(self, Self::OpenCode | Self::Gemini)
    }

    /// Whether it also changes files itself when it writes them.
    fn writes_itself(self) -> bool {
        self != Self::Gemini
    }
}

fn owned(variables: &[(&str, &str)]) -> Vec<(String, String)> {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A patch in the form of Codex, which takes it as a command.
fn patch(body: &str) -> Step {
    let line = format!("apply_patch <<'END'\n*** Begin Patch\n{body}*** End Patch\nEND");
    call("exec_command", json!({ "cmd": line }))
}

/// A project, and the agent as the guest `visitor` of its user.
struct Visit {
    project: Project,
    model: ScriptedModel,
}

impl Visit {
    /// The model of the guest answers with the steps that are made of the path of a file.
    fn new(agent: Agent, steps: impl FnOnce(&dyn Fn(&str) -> String) -> Vec<Step>) -> Self {
        let task = json!({ "description": "the visit", "prompt": "Do it.", "subagent_type": "visitor" });
        let project =
            Project::new(&Script::default().otherwise([call("Task", task), say("It was a nice visit.")]));
        project.write("a.txt", "one\ntwo\nthree\n").write("b.txt", "uno\ndos\n");
        let steps = steps(&|name| project.path(name).to_str().unwrap().to_owned());
        // Some ask their model for a title besides, with the same words.
        let script = Script::default().when("Do it", steps).otherwise([say("A visit").repeat(9)]);
        let script = script.quirk("unchecked", json!(true));
        let model = ScriptedModel::start(&script, &project.outside().join("guest-model.json"));
        let visit = Self { project, model };
        let home = visit.home();
        agent.prepare(&home, visit.model.base_url());
        fs::create_dir_all(home.join(".kode-ls/agents")).unwrap();
        visit.describe(&agent.runs(&home, visit.model.base_url()));
        visit
    }

    /// Writes the agent's file.
    fn describe(&self, runs: &Value) {
        let head = format!("name: visitor\ndescription: Visits.\nruns: {runs}");
        let text = format!("---\n{head}\n---\nYou are a guest here.\n");
        fs::write(self.home().join(".kode-ls/agents/visitor.md"), text).unwrap();
    }

    /// The guest runs a command that writes its process into `pipe` and does not end.
    fn busy(agent: Agent) -> Self {
        let visit = Self::new(agent, |path| {
            vec![agent.command(&format!("echo $$ > {}; sleep 1000; true", path("pipe"))), say("It is over.")]
        });
        let made = Command::new("mkfifo").arg(visit.project.path("pipe")).status();
        assert!(made.unwrap().success());
        visit
    }

    /// Begins the turn and waits for the command; gives the turn and the process.
    fn wait_until_busy(&self, session: &Session<'_>) -> (String, u32) {
        let turn = session.prompt("go");
        session.allow(0);
        session.allow(1);
        let (sender, receiver) = mpsc::channel();
        let pipe = self.project.path("pipe");
        // Opening it waits for the command; the thread ends with the test at the latest.
        thread::spawn(move || sender.send(fs::read_to_string(pipe)));
        let shell = receiver.recv_timeout(LIMIT).expect("the command of the guest runs").unwrap();
        (turn, shell.trim().parse().unwrap())
    }

    /// Waits until no process works in the workspace but these: killed ones may still be about to end.
    fn wait_until_left(&self, known: &[u32]) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let mut left = processes_in(&self.project.workspace());
            left.retain(|process| !known.contains(process));
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "processes {left:?} are left");
            thread::yield_now();
        }
    }

    fn home(&self) -> PathBuf {
        self.project.outside().join("user")
    }

    fn open(&self) -> Client {
        let home = self.home();
        let client = self.project.start_as(&[], &[("HOME", home.to_str().unwrap())]);
        client.initialize(Offer::kode().params(&self.project.workspace()));
        client
    }

    /// The result of the call that the guest worked for.
    fn result(&self) -> (String, bool) {
        self.project.model.last_results().pop().expect("the call has a result")
    }

    /// All requests to the model of the guest.
    fn told(&self) -> String {
        self.model.requests().iter().map(Value::to_string).collect()
    }
}

/// Runs the turn. The start of the guest is allowed, and what it then asks for as `decision` says. Gives the prompts without
/// the one for its start.
fn run(session: &Session<'_>, decision: &str) -> Vec<Value> {
    let turn = session.prompt("go");
    let start = session.allow(0);
    assert!(start["preview"]["command"].as_str().unwrap().contains("/bin/"), "{start:#}");
    let mut prompts = Vec::new();
    while let Some(prompt) = session.permission_or_end(&turn, prompts.len() + 1) {
        session.respond(&prompt, json!({ "decision": decision, "scope": "once" })).unwrap();
        prompts.push(prompt);
    }
    prompts
}

fn names_in(files: &[Value]) -> Vec<&str> {
    files.iter().map(|file| file["path"].as_str().unwrap()).collect()
}

/// The guest reads and changes a file with unsaved text, changes another one, makes one and runs a command. Everything that it
/// has written is in the review, by a call or marked, and is undone there.
fn works(agent: Agent) {
    let visit = Visit::new(agent, |path| {
        vec![
            agent.read(&path("a.txt")),
            agent.edit(&path("a.txt"), "two", "TWO"),
            agent.read(&path("b.txt")),
            agent.edit(&path("b.txt"), "dos", "DOS"),
            agent.create(&path("sub/new.txt"), "made"),
            agent.command("echo shell > c.txt"),
            say("All of it is done."),
        ]
    });
    let (project, client) = (&visit.project, visit.open());
    let uri = project.uri("a.txt");
    client.editor.open(&uri, "one\ntwo\nthree\n");
    client.editor.type_text(&uri, &Typing::before("three", "typed\n"));
    let session = client.session();
    let prompts = run(&session, "allow");
    let (result, is_error) = visit.result();
    assert!(!is_error && result.starts_with("All of it is done."), "{result}\n{}", visit.told());
    for (name, expected) in [("b.txt", "uno\nDOS\n"), ("sub/new.txt", "made\n"), ("c.txt", "shell\n")] {
        assert_eq!(project.read(name), expected, "{name}");
    }
    let (shown, saved) = match (agent.writes_here(), agent.writes_itself()) {
        (true, true) => ("one\nTWO\ntyped\nthree\n", "one\nTWO\nthree\n"),
        (true, false) => ("one\nTWO\ntyped\nthree\n", "one\ntwo\nthree\n"),
        (false, _) => ("one\ntwo\ntyped\nthree\n", "one\nTWO\nthree\n"),
    };
    assert_eq!((client.editor.text(&uri).as_str(), project.read("a.txt").as_str()), (shown, saved));

    // Each change is asked for once and shown, whether it then comes here or not.
    assert!(prompts.iter().all(|prompt| prompt["tool"] == "Guest"), "{prompts:#?}");
    let shown = ["-two\n+TWO", "-dos\n+DOS", "+made"];
    assert_eq!(prompts.len(), shown.len() + 1, "{prompts:#?}");
    for (prompt, lines) in prompts.iter().zip(shown) {
        assert!(
            prompt["preview"]["unified"].as_str().is_some_and(|text| text.contains(lines)),
            "{prompt:#?}"
        );
    }
    let command = &prompts.last().unwrap()["preview"]["command"];
    assert_eq!(command, "echo shell > c.txt", "{prompts:#?}");

    let files = session.edited_files();
    assert_eq!(names_in(&files), ["a.txt", "b.txt", "c.txt", "sub/new.txt"], "{files:#?}");
    let calls = calls_of_guest(&session);
    let here: Vec<&Value> = calls.iter().filter(|call| call["name"] == "Write").collect();
    assert!(here.iter().all(|call| call["state"] == "COMPLETED"), "{calls:#?}");
    assert_eq!(here.len(), if agent.writes_here() { 3 } else { 0 }, "{calls:#?}");
    let around = result.split_once("around kode-ls: ").map(|(_, names)| names).unwrap_or_default();
    for name in ["a.txt", "b.txt", "c.txt", "sub/new.txt"] {
        let is_here = here.iter().any(|call| call["title"].as_str().unwrap().ends_with(name));
        assert!(is_here || around.contains(name), "{name} is not marked: {result}\n{calls:#?}");
        let is_around = name == "c.txt" || !agent.writes_here();
        assert!(!is_around || around.contains(name), "{name} was written around us: {result}");
    }
    let of_command = calls.iter().find(|call| call["title"].as_str().unwrap().contains("echo shell"));
    let display = of_command.unwrap()["display"].as_str().unwrap();
    assert!(display.starts_with("Done by the guest itself: not ours, cannot be undone"), "{calls:#?}");
    assert_eq!(of_command.unwrap()["structured"]["ours"], json!(false));

    let hunks = session.hunks();
    session.resolve(&hunks.iter().collect::<Vec<_>>(), "undo");
    assert_eq!(client.editor.text(&uri), "one\ntwo\ntyped\nthree\n");
    assert_eq!(
        (project.read("a.txt"), project.read("b.txt")),
        ("one\ntwo\nthree\n".into(), "uno\ndos\n".into())
    );
    assert!(!project.path("sub/new.txt").exists() && !project.path("c.txt").exists());
}

/// The user refuses the change that the guest asks for: it is not made, and the guest's model learns of it or its turn ends.
fn obeys(agent: Agent) {
    let visit = Visit::new(agent, |path| {
        vec![
            agent.read(&path("b.txt")),
            agent.edit(&path("b.txt"), "dos", "DOS"),
            agent.create(&path("sub/new.txt"), "made"),
            agent.command("echo shell > c.txt"),
            say("Nothing is done."),
        ]
    });
    let client = visit.open();
    let session = client.session();
    let prompts = run(&session, "deny");
    assert!(!prompts.is_empty(), "{}", visit.told());
    assert_eq!(visit.project.read("b.txt"), "uno\ndos\n");
    assert!(!visit.project.path("sub").exists() && !visit.project.path("c.txt").exists());
    assert_eq!(names_in(&session.edited_files()), [""; 0]);
    let states: Vec<Value> = calls_of_guest(&session).iter().map(|call| call["state"].clone()).collect();
    assert_eq!(states.iter().filter(|state| **state == "DENIED").count(), prompts.len(), "{states:?}");
    // A guest that ends its turn then has not ended the turn that it works for.
    let (result, _) = visit.result();
    assert!(!result.is_empty());
}

/// A rule of the user denies the command that the guest asks for, without a question.
fn heeds_rules(agent: Agent) {
    let visit = Visit::new(agent, |_| vec![agent.command("curl http://127.0.0.1:9/"), say("It is over.")]);
    fs::create_dir_all(visit.home().join(".kode-ls")).unwrap();
    let settings = json!({ "permissions": { "deny": ["Bash(curl:*)"] } });
    fs::write(visit.home().join(".kode-ls/settings.json"), settings.to_string()).unwrap();
    let client = visit.open();
    let session = client.session();
    let prompts = run(&session, "allow");
    assert!(prompts.is_empty(), "{prompts:#?}");
    let calls = calls_of_guest(&session);
    let states: Vec<_> = calls.iter().map(|call| (call["name"].as_str(), call["state"].as_str())).collect();
    assert_eq!(states, [(Some("Guest"), Some("DENIED"))], "{calls:#?}");
}

/// A cancel ends the guest and the command that it runs.
fn ends(agent: Agent) {
    let visit = Visit::busy(agent);
    let client = visit.open();
    let session = client.session();
    let (turn, shell) = visit.wait_until_busy(&session);
    session.call("agent/turn/cancel", json!({}));
    assert_eq!(session.wait_done(&turn)["stopReason"], "cancelled");
    assert!(!is_running(shell), "the command of the guest is left");
    visit.wait_until_left(&[client.process_id()]);
}

/// A crash of kode-ls ends the guest and the command that it runs.
fn ends_with_its_host(agent: Agent) {
    let visit = Visit::busy(agent);
    let client = visit.open();
    let session = client.session();
    visit.wait_until_busy(&session);
    client.kill();
    visit.wait_until_left(&[]);
}

#[test]
fn opencode_writes_files_itself_and_reports_them_and_all_are_in_the_review() {
    works(Agent::OpenCode);
}

#[test]
fn gemini_reads_and_writes_files_through_kode_ls() {
    works(Agent::Gemini);
}

#[test]
fn gemini_in_the_sandbox_changes_the_workspace_through_kode_ls_alone() {
    let agent = Agent::Gemini;
    let visit = Visit::new(agent, |path| {
        vec![
            agent.command("echo shell > c.txt"),
            agent.edit(&path("b.txt"), "dos", "DOS"),
            // It makes a missing folder itself, and cannot do that here.
            agent.create(&path("new.txt"), "made"),
            say("All of it is done."),
        ]
    });
    let mut runs = agent.runs(&visit.home(), visit.model.base_url());
    runs["sandbox"] = json!(true);
    runs["writable"] = json!([visit.home().join(".gemini")]);
    visit.describe(&runs);
    let client = visit.open();
    let session = client.session();
    run(&session, "allow");
    let (result, is_error) = visit.result();
    assert!(!is_error && result == "All of it is done.", "{result}\n{}", visit.told());
    assert_eq!(names_in(&session.edited_files()), ["b.txt", "new.txt"]);
    assert_eq!(visit.project.read("b.txt"), "uno\nDOS\n");
    assert_eq!(visit.project.read("new.txt"), "made\n");
    assert!(!visit.project.path("c.txt").exists());
}

#[test]
fn codex_writes_files_itself_and_all_are_in_the_review_and_marked() {
    works(Agent::Codex);
}

#[test]
fn claude_writes_files_itself_and_all_are_in_the_review_and_marked() {
    works(Agent::Claude);
}

#[test]
fn opencode_obeys_the_user() {
    obeys(Agent::OpenCode);
}

#[test]
fn gemini_obeys_the_user() {
    obeys(Agent::Gemini);
}

#[test]
fn codex_obeys_the_user() {
    obeys(Agent::Codex);
}

#[test]
fn claude_obeys_the_user() {
    obeys(Agent::Claude);
}

#[test]
fn a_rule_holds_for_the_commands_of_opencode() {
    heeds_rules(Agent::OpenCode);
}

#[test]
fn a_rule_holds_for_the_commands_of_gemini() {
    heeds_rules(Agent::Gemini);
}

#[test]
fn a_rule_holds_for_the_commands_of_codex() {
    heeds_rules(Agent::Codex);
}

#[test]
fn a_rule_holds_for_the_commands_of_claude() {
    heeds_rules(Agent::Claude);
}

#[test]
fn opencode_ends_with_its_command_when_it_is_cancelled() {
    ends(Agent::OpenCode);
}

#[test]
fn gemini_ends_with_its_command_when_it_is_cancelled() {
    ends(Agent::Gemini);
}

#[test]
fn codex_ends_with_its_command_when_it_is_cancelled() {
    ends(Agent::Codex);
}

#[test]
fn claude_ends_with_its_command_when_it_is_cancelled() {
    ends(Agent::Claude);
}

#[test]
fn opencode_ends_with_its_command_when_kode_ls_crashes() {
    ends_with_its_host(Agent::OpenCode);
}

#[test]
fn gemini_ends_with_its_command_when_kode_ls_crashes() {
    ends_with_its_host(Agent::Gemini);
}

#[test]
fn codex_ends_with_its_command_when_kode_ls_crashes() {
    ends_with_its_host(Agent::Codex);
}

#[test]
fn claude_ends_with_its_command_when_kode_ls_crashes() {
    ends_with_its_host(Agent::Claude);
}
