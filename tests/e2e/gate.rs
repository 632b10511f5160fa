//! The gate from outside: settings files, rules and standing answers, and what they make of calls.
//!
//! Rule: every test has a home folder of its own; what a call did differs from the transcript, the model's requests and
//! the disk, and never from what the gate says of itself alone.

mod command_line;
mod corpus;
#[cfg(unix)]
mod explained;
mod ignored;
mod running;
mod settings;
mod standing;

use std::path::PathBuf;

use kode_e2e::{Client, Offer, Output, Project, Script, Session, Step, call, run, say, step};
use serde_json::{Value, json};

/// A project and the home folder of its user.
struct Desk {
    project: Project,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It ran, well or not.
    Ran,
    /// The user was asked, and said no.
    Asked,
    /// It was refused without a question.
    Refused,
}

impl Desk {
    fn new(script: &Script) -> Self {
        let project = Project::new(script);
        std::fs::create_dir(project.outside().join("user")).unwrap();
        Self { project }
    }

    fn home(&self) -> PathBuf {
        self.project.outside().join("user")
    }

    /// The user's settings.
    fn user_file(&self) -> PathBuf {
        self.home().join(".kode/settings.json")
    }

    fn write_user(&self, settings: &str) -> &Self {
        std::fs::create_dir_all(self.home().join(".kode")).unwrap();
        std::fs::write(self.user_file(), settings).unwrap();
        self
    }

    fn user(&self, settings: &Value) -> &Self {
        self.write_user(&settings.to_string())
    }

    /// Starts a server that finds this home folder.
    fn start(&self) -> Client {
        self.project.start_as(&[], &[("HOME", self.home().to_str().unwrap())])
    }

    /// Starts a server for a client with a panel of its own.
    fn open(&self) -> Client {
        let client = self.start();
        client.initialize(Offer::kode().params(&self.project.workspace()));
        client
    }

    /// Runs `kode-ls` in the workspace to its end.
    fn cli(&self, arguments: &[&str], input: &str) -> Output {
        let (state, home) = (self.project.home(), self.home());
        let environment = [("KODE_LS_HOME", state.to_str().unwrap()), ("HOME", home.to_str().unwrap())];
        run(arguments, Some(&self.project.workspace()), &environment, input)
    }
}

fn bash(command: &str) -> Step {
    call("Bash", json!({ "command": command }))
}

fn read(path: &str) -> Step {
    call("Read", json!({ "file_path": format!("{{{{cwd}}}}/{path}") }))
}

fn write(path: &str) -> Step {
    call("Write", json!({ "file_path": format!("{{{{cwd}}}}/{path}"), "content": "written\n" }))
}

/// A script that answers prompts of these names with one call each.
fn script<const N: usize>(calls: [(&str, Step); N]) -> Script {
    calls
        .into_iter()
        .fold(Script::default(), |script, (name, step)| script.when(&format!("^{name}$"), [step, say("ok")]))
}

/// Submits a prompt whose turn makes one call, says no when it is asked for, and tells what became of it, with the
/// prompt, if there was one, and the call.
fn fate(session: &Session<'_>, text: &str) -> (Fate, Value, Value) {
    let before = session.calls().len();
    let known: Vec<Value> =
        session.events().iter().map(|event| event["prompt"]["permissionId"].clone()).collect();
    let turn = session.prompt(text);
    session.wait_event("a prompt or the end", |event| match event["type"].as_str() {
        Some("permission_required") => !known.contains(&event["prompt"]["permissionId"]),
        Some("done") => event["turnId"] == turn.as_str(),
        _ => false,
    });
    let prompt = session.snapshot()["pendingPermissions"][0].clone();
    if !prompt.is_null() {
        session.respond(&prompt, json!({ "decision": "deny", "scope": "once" })).unwrap();
    }
    session.wait_done(&turn);
    let call = session.calls().remove(before);
    let fate = match (prompt.is_null(), call["state"].as_str().unwrap()) {
        (false, _) => Fate::Asked,
        (true, "DENIED") => Fate::Refused,
        (true, _) => Fate::Ran,
    };
    (fate, prompt, call)
}

/// Waits for the `n`th prompt and answers it.
fn answer(session: &Session<'_>, n: usize, mut answer: Value) -> Value {
    let prompt = session.wait_permission(n);
    answer["decision"] = json!("allow");
    session.respond(&prompt, answer).unwrap();
    prompt
}
