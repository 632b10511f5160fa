//! Projects that were set up for other agents, used as they are.
//!
//! Rule: the fixtures are what users have, and nothing is changed in them. Before a project is trusted what it denies counts and
//! nothing else; afterwards all of it works.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use kode_e2e::{Client, LIMIT, Offer, Project, Script, Session, call, copy_folder, say, text_of};
use serde_json::{Value, json};

/// A dialect: its folder of fixtures, and its own parts.
struct Dialect {
    name: &'static str,
    /// The folder in the workspace.
    folder: &'static str,
    /// Hooks that only this one has, when a file in `src` is written.
    own_hooks: &'static [&'static str],
    /// How the command in a folder is called.
    release: &'static str,
}

const DIALECTS: [Dialect; 3] = [
    Dialect { name: "claude-code", folder: ".claude", own_hooks: &[], release: "team:release" },
    Dialect { name: "kode", folder: ".kode", own_hooks: &["pre-all"], release: "team:release" },
    Dialect { name: "blade", folder: ".blade", own_hooks: &["pre-path"], release: "release" },
];

impl Dialect {
    fn project(&self, script: &Script) -> (Project, PathBuf) {
        let project = Project::new(script);
        let dialects = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/dialects");
        let fixtures = dialects.join(self.name);
        copy_folder(&fixtures.join("work"), &project.workspace());
        // The server that all of them name is the same.
        project.write("tools/tickets.py", fs::read(dialects.join("tickets.py")).unwrap());
        let home = project.outside().join("user");
        copy_folder(&fixtures.join("home"), &home);
        (project, home)
    }
}

fn open(project: &Project, home: &Path) -> Client {
    let client = project.start_as(&[], &[("HOME", home.to_str().unwrap()), ("KODE_LS_MCP_WAIT", "20000")]);
    client.initialize(Offer::kode().params(&project.workspace()));
    client
}

fn trust_all(session: &Session<'_>) -> Vec<String> {
    let listed = session.client().call("agent/trust/list", json!({ "sessionId": session.id }));
    let waiting = listed["waiting"].as_array().unwrap();
    let digests: Vec<&Value> = waiting.iter().map(|waiting| &waiting["digest"]).collect();
    session.call("agent/trust/approve", json!({ "digests": digests }));
    waiting.iter().map(|waiting| waiting["key"].as_str().unwrap().to_owned()).collect()
}

/// The labels of the hooks that ran since the last look, in the order of the alphabet.
fn hooks_of(project: &Project) -> Vec<String> {
    let path = project.path("hook-log.txt");
    let log = fs::read_to_string(&path).unwrap_or_default();
    let _absent = fs::remove_file(path);
    let mut labels: Vec<String> =
        log.lines().map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect();
    labels.sort();
    labels
}

/// Waits until a hook that nothing waits for has run.
fn wait_for_hook(project: &Project, label: &str) {
    let deadline = Instant::now() + LIMIT;
    let has_run = || fs::read_to_string(project.path("hook-log.txt")).is_ok_and(|log| log.contains(label));
    while !has_run() {
        assert!(Instant::now() < deadline, "the hook `{label}` has not run");
        std::thread::yield_now();
    }
}

/// The last prompt as the model was sent it.
fn prompt_sent(project: &Project) -> String {
    let request = project.model.last_request();
    let messages = request["messages"].as_array().unwrap();
    let last = messages.iter().rev().find(|message| message["role"] == "user").unwrap();
    text_of(&last["content"])
}

fn script() -> Script {
    let write =
        |name: &str| call("Write", json!({ "file_path": format!("{{{{cwd}}}}/{name}"), "content": "x\n" }));
    let bash = |command: &str| call("Bash", json!({ "command": command, "description": "Runs it" }));
    Script::default()
        .when("^read", [call("Read", json!({ "file_path": "{{cwd}}/src/door.txt" })), say("Read.")])
        .when("^secret", [call("Read", json!({ "file_path": "{{cwd}}/secrets/token.txt" })), say("Read.")])
        .when("^write", [write("src/new.txt"), say("Written.")])
        .when("^deploy", [bash("npm run deploy"), say("Deployed.")])
        .when("^environment", [bash("echo $HOUSE $SHARED"), say("Seen.")])
        .when("^ticket", [call("mcp__tickets__lookup", json!({ "number": 100 })), say("Looked up.")])
        .when(
            "^delegate",
            [
                call("Task", json!({ "description": "Writes", "prompt": "sub", "subagent_type": "writer" })),
                say("Delegated."),
            ],
        )
        .when("^skill", [call("Skill", json!({ "skill": "door-repair" })), say("Repaired.")])
        .otherwise((0..20).map(|_| say("So it is.")))
}

#[test]
fn before_it_is_trusted_a_project_denies_and_does_nothing_else() {
    for dialect in DIALECTS {
        let (project, home) = dialect.project(&script());
        let client = open(&project, &home);
        let session = client.session();
        assert_eq!(session.snapshot()["mode"], "default", "{}", dialect.name);
        session.run("secret");
        let (result, failed) = project.model.last_results().remove(0);
        assert!(failed && !result.contains("not for the agent"), "{}: {result}", dialect.name);
        let servers = client.call("agent/mcp/list", json!({ "sessionId": session.id }));
        let tickets =
            servers["servers"].as_array().unwrap().iter().find(|server| server["name"] == "tickets");
        assert!(tickets.unwrap().to_string().contains("waiting"), "{}: {servers}", dialect.name);
        assert_eq!(hooks_of(&project), Vec::<String>::new(), "{}", dialect.name);
        let waiting = trust_all(&session);
        for key in ["hooks.PreToolUse", "permissions.allow", "mcpServers.tickets", "env.SHARED"] {
            assert!(waiting.iter().any(|waits| waits == key), "{}: {key} in {waiting:?}", dialect.name);
        }
    }
}

#[test]
fn once_it_is_trusted_hooks_rules_environment_and_servers_of_every_dialect_work() {
    for dialect in DIALECTS {
        let (project, home) = dialect.project(&script());
        let name = dialect.name;
        let client = open(&project, &home);
        trust_all(&client.session());
        assert_eq!(hooks_of(&project), Vec::<String>::new(), "{name}: nothing was said yet");
        let session = client.session();
        assert_eq!(session.snapshot()["mode"], "acceptEdits", "{name}");

        session.run("read it");
        let system = project.model.requests()[0].to_string();
        assert!(system.contains("The house is old."), "{name}: a hook at the start adds to the context");
        assert!(system.contains("The house has one door."), "{name}: the instruction file");
        let with_all = |labels: &[&str], is_write: bool| {
            let own = dialect.own_hooks.iter().filter(|label| **label != "pre-path" || is_write);
            let mut labels: Vec<String> = labels.iter().chain(own).map(|label| (*label).to_owned()).collect();
            labels.sort();
            labels
        };
        assert_eq!(hooks_of(&project), with_all(&["post-read", "prompt", "start", "stop"], false), "{name}");

        session.run("write it");
        assert_eq!(hooks_of(&project), with_all(&["pre-edit", "prompt", "stop"], true), "{name}");
        assert_eq!(project.read("src/new.txt"), "x\n");

        session.run("deploy it");
        let (result, failed) = project.model.last_results().remove(0);
        assert!(failed && result.contains("deploying is for people"), "{name}: {result}");
        assert!(hooks_of(&project).contains(&"pre-bash".to_owned()), "{name}");

        let refused = session.run("a forbidden word");
        assert!(
            !project.model.requests().last().unwrap().to_string().contains("forbidden word"),
            "{name}: {refused}"
        );

        session.run("environment");
        let (result, _) = project.model.last_results().remove(0);
        assert!(result.contains("old project"), "{name}: {result}");
        hooks_of(&project);

        let turn = session.prompt("ticket 100");
        let asked = session.wait_permission(0);
        assert!(asked.to_string().contains("tickets:lookup"), "{name}: {asked}");
        wait_for_hook(&project, "notify");
        session.respond(&asked, json!({ "decision": "allow", "scope": "once" })).unwrap();
        session.wait_done(&turn);
        let (result, failed) = project.model.last_results().remove(0);
        assert!(!failed && result.contains("the door squeaks"), "{name}: {result}");
        let hooks = hooks_of(&project);
        assert!(
            hooks.contains(&"pre-mcp".to_owned()) && hooks.contains(&"notify".to_owned()),
            "{name}: {hooks:?}"
        );

        session.run("delegate it");
        assert!(hooks_of(&project).contains(&"substop".to_owned()), "{name}");
        let compaction = session.call("agent/session/compact", json!({}));
        session.wait_done(compaction["turnId"].as_str().unwrap());
        let hooks = hooks_of(&project);
        assert!(hooks.contains(&"compact".to_owned()), "{name}: {hooks:?}");
        assert_eq!(hooks.contains(&"compaction".to_owned()), name == "blade", "{hooks:?}");
        assert_eq!(client.shut_down(), 0);
        assert_eq!(hooks_of(&project).first().map(String::as_str), Some("end"), "{name}");
    }
}

#[test]
fn once_it_is_trusted_commands_and_skills_of_every_dialect_work() {
    for dialect in DIALECTS {
        let (project, home) = dialect.project(&script());
        let name = dialect.name;
        let client = open(&project, &home);
        trust_all(&client.session());
        let session = client.session();
        for (command, expected) in [
            ("/greet Ada", "Greet Ada."),
            ("/pair one two", "Compare one with two."),
            ("/zero one two", "Take one and then two."),
            ("/indexed one two", "Take one."),
            ("/named Ada flower", "Give Ada the flower."),
            ("/file", "The door squeaks."),
            ("/shell", "The shell says: from the shell"),
            ("/plain extra", "ARGUMENTS: extra"),
            ("/price", "It costs $1."),
            ("/door-repair", "Oil the hinges."),
            ("/counted one two", "First is one, second is two."),
            ("/only-user it", "Do it."),
        ] {
            session.run(command);
            let sent = prompt_sent(&project);
            assert!(sent.contains(expected), "{name} {command}: {sent}");
        }
        session.run(&format!("/{} now", dialect.release));
        assert!(prompt_sent(&project).contains("Release now."), "{name}");
        session.run("skill");
        let (result, failed) = project.model.last_results().remove(0);
        assert!(!failed && result.contains("Oil the hinges."), "{name}: {result}");
        let tools = project.model.last_request()["tools"].to_string();
        assert!(
            tools.contains("How doors are repaired.") && tools.contains("Only the model calls this."),
            "{name}"
        );
        assert!(!tools.contains("Only people call this."), "{name}");
    }
}

#[test]
fn what_is_loaded_hidden_and_broken_is_reported_with_its_file() {
    for dialect in DIALECTS {
        let (project, home) = dialect.project(&script());
        let name = dialect.name;
        let client = open(&project, &home);
        let session = client.session();
        trust_all(&session);
        let agents = client.call("agent/agents/list", json!({ "sessionId": session.id }));
        let by_name: BTreeMap<&str, &Value> = agents["agents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|agent| (agent["name"].as_str().unwrap(), agent))
            .collect();
        for agent in ["reviewer", "writer", "searcher", "silent"] {
            assert!(by_name.contains_key(agent), "{name}: {agent} in {agents}");
        }
        assert_eq!(by_name["reviewer"]["description"], "Reviews changes.\nBe kind.", "{name}");
        let doctor = client.call("agent/doctor", json!({ "sessionId": session.id }));
        let problems = doctor["problems"].to_string();
        let broken = format!("{}/agents/broken.md", dialect.folder);
        assert!(problems.contains(&broken), "{name}: {problems}");
        let text = doctor["text"].as_str().unwrap();
        for found in ["door-repair", "greet", "reviewer", "tickets", "settings.json"] {
            assert!(text.contains(found), "{name}: {found} in {text}");
        }
    }
}
