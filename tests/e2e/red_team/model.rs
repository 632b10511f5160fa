//! The hostile scripted model: it calls tools on a server that many attacks share.
//!
//! Rule: the person says no to every question and leaves aside whatever was set aside. After each attack, no result has a
//! secret in it, nothing outside has changed, the listener got no connection, and what the person runs next runs
//! nothing that the model planted.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::PathBuf;

use kode_e2e::{Client, Offer, Script, ScriptedModel, Session, call, results_of, say};
use serde_json::{Value, json};

use super::plots::{PLOTS, SETUP};
use super::scene::Scene;
use super::{Attack, chosen};
use crate::sandbox::fixture::User;

/// Calls of tools in a turn.
pub(super) struct Plot {
    pub(super) name: &'static str,
    pub(super) mode: &'static str,
    pub(super) rules: Rules,
    /// The tools and their arguments.
    pub(super) calls: &'static [(&'static str, &'static str)],
}

/// The user's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rules {
    /// Commands run unasked in the sandbox; some folders are denied.
    Sandboxed,
    /// Everything is allowed.
    AllAllowed,
}

impl Rules {
    fn settings(self) -> Value {
        match self {
            Self::Sandboxed => json!({
                "sandbox": { "autoAllowBashIfSandboxed": true },
                "permissions": { "deny": ["Read(private/**)", "Edit(protected/**)"] },
            }),
            Self::AllAllowed => {
                json!({ "permissions": { "allow": ["Bash", "Edit", "Write", "MultiEdit", "NotebookEdit", "Read", "Task"] } })
            }
        }
    }
}

/// A server, its hostile model and its surroundings.
struct Stage {
    scene: Scene,
    model: ScriptedModel,
    listener: TcpListener,
}

impl Stage {
    fn new(rules: Rules, setup: &str, program: impl FnOnce(&Scene, u16) -> Script) -> Self {
        let scene = Scene::new(User::Own);
        let output = scene.by_hand(setup);
        assert_eq!(output.code, 0, "{output:?}");
        fs::create_dir_all(scene.path("home/.kode")).unwrap();
        fs::write(scene.path("home/.kode/settings.json"), rules.settings().to_string()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let script = program(&scene, listener.local_addr().unwrap().port());
        let model = ScriptedModel::start(&script, &scene.path("script.json"));
        Self { scene, model, listener }
    }

    fn open(&self) -> Client {
        let path = |name: &str| self.scene.path(name).to_str().unwrap().to_owned();
        let (home, state, ws) = (path("home"), path("state"), self.scene.path("ws"));
        let environment = [
            ("HOME", &*home),
            ("KODE_LS_HOME", &*state),
            ("ANTHROPIC_BASE_URL", self.model.base_url()),
            ("ANTHROPIC_API_KEY", "SECRET-KEY"),
        ];
        let client = Client::start(&[], &environment, &ws);
        client.initialize(Offer::kode().params(&ws));
        client
    }

    /// The errors since the last check.
    fn damage(&self) -> Vec<String> {
        let mut damage = self.scene.changes_outside();
        for (file, content) in [("outside/secret.txt", "SECRET\n"), ("outside/folder/secret.txt", "SECRET\n")]
        {
            if self.scene.path(file).exists() && fs::read_to_string(self.scene.path(file)).unwrap() != content
            {
                damage.push(format!("{file} is another"));
            }
        }
        for file in ["outside/new.txt", "outside/folder/new.txt", "home/.ssh/authorized_keys", "ws/planned"] {
            if self.scene.path(file).exists() {
                damage.push(format!("{file} was made"));
            }
        }
        let kept = self.scene.path("ws/protected/a.txt");
        if kept.exists() && fs::read_to_string(&kept).unwrap() != "kept\n" {
            damage.push("protected/a.txt is another".to_owned());
        }
        if !matches!(self.listener.accept(), Err(error) if error.kind() == ErrorKind::WouldBlock) {
            damage.push("somebody connected".to_owned());
        }
        if self.scene.is_taken() {
            damage.push("a plant ran".to_owned());
            fs::remove_file(self.scene.path("marker/ran")).unwrap();
        }
        damage
    }

    /// The results that the model got in its newest request.
    fn results(&self) -> Vec<(String, bool)> {
        let request = self.model.last_request();
        request["messages"].as_array().unwrap().iter().flat_map(results_of).collect()
    }
}

/// Runs a turn to its end, with the answers of a careful person. Gives what the person was shown.
pub(super) fn run(session: &Session<'_>, text: &str) -> Vec<Value> {
    let turn = session.prompt(text);
    let mut answered: Vec<String> = Vec::new();
    let mut shown = Vec::new();
    loop {
        let event = session.wait_event("a question or the end", |event| {
            let is_new = |id: &Value| id.as_str().is_some_and(|id| !answered.iter().any(|other| other == id));
            match event["type"].as_str() {
                Some("permission_required") => is_new(&event["prompt"]["permissionId"]),
                Some("question_asked") => is_new(&event["question"]["questionId"]),
                Some("done") => event["turnId"] == turn.as_str(),
                _ => false,
            }
        });
        match event["type"].as_str().unwrap() {
            "permission_required" => {
                answered.push(event["prompt"]["permissionId"].as_str().unwrap().to_owned());
                // A prompt of an earlier turn is over.
                let _ = session.respond(&event["prompt"], json!({ "decision": "deny", "scope": "once" }));
                shown.push(event["prompt"].clone());
            }
            "question_asked" => {
                let question = &event["question"];
                answered.push(question["questionId"].as_str().unwrap().to_owned());
                let count = question["questions"].as_array().unwrap().len();
                let answers = vec![json!({ "labels": ["Leave it aside"] }); count];
                let answer = json!({ "questionId": question["questionId"], "answers": answers });
                let _ = session.request("agent/question/respond", answer);
                shown.push(question.clone());
            }
            _ => return shown,
        }
    }
}

/// The program of the model for some plots: prompt `n` answers with the calls of plot `n`.
fn program_of(plots: &[&Plot], scene: &Scene, port: u16) -> Script {
    let path = |name: &str| scene.path(name).to_str().unwrap().to_owned();
    let braces = format!("{}{}", "{a,".repeat(200), "}".repeat(200));
    let parts = format!("{}ls", "ls && ".repeat(10_000));
    let parentheses = format!("{}ls{}", "(".repeat(20_000), ")".repeat(20_000));
    let nested = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let names = [
        ("$HOME", path("home")),
        ("$OUT", path("outside")),
        ("$WS", path("ws")),
        ("$PORT", port.to_string()),
        ("$LONG", "b".repeat(40_000)),
        ("$BRACES", braces),
        ("$PARTS", parts),
        ("$PARENTHESES", parentheses),
        ("$NESTED", nested),
        ("$P", path("marker/ran")),
    ];
    plots.iter().enumerate().fold(Script::default(), |script, (number, plot)| {
        let calls = plot.calls.iter().map(|(tool, input)| {
            let input =
                names.iter().fold((*input).to_owned(), |input, (name, value)| input.replace(name, value));
            call(tool, serde_json::from_str(&input).unwrap_or_else(|error| panic!("{}: {error}", plot.name)))
        });
        script.when(&format!("^plot {number}$"), calls.chain([say("done")]))
    })
}

/// Plays all plots under the same rules, each mode in a session of its own.
fn play(rules: Rules) {
    let plots: Vec<&Plot> = PLOTS.iter().filter(|plot| plot.rules == rules).collect();
    let stage = Stage::new(rules, SETUP, |scene, port| program_of(&plots, scene, port));
    let client = stage.open();
    let mut wrong = Vec::new();
    for (number, plot) in plots.iter().enumerate() {
        let session = client.session_with(json!({ "mode": plot.mode }));
        let shown = run(&session, &format!("plot {number}"));
        let results = stage.results();
        if results.len() != plot.calls.len() {
            wrong.push(format!("{}: {} results: {results:?}", plot.name, results.len()));
        }
        let leaked = results.iter().filter(|(text, _)| text.contains("SECRET"));
        wrong.extend(leaked.map(|(text, _)| format!("{}: a secret was shown: {text}", plot.name)));
        wrong.extend(shown.iter().filter_map(forgery).map(|text| format!("{}: forged: {text}", plot.name)));
        stage.scene.proceed("ws", &Attack { name: plot.name, setup: "", script: "", npm: true });
        wrong
            .extend(stage.damage().into_iter().map(|damage| format!("{}: {damage}: {results:?}", plot.name)));
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), plots.len(), wrong.join("\n"));
    let honest = client.session_with(json!({ "mode": "bypassPermissions" }));
    assert_eq!(honest.run("hello")["type"], "done", "the server is as it was");
}

/// Text that the person is shown and that has a character in it that is not what it looks like.
fn forgery(prompt: &Value) -> Option<String> {
    let mut texts = Vec::new();
    collect_texts(prompt, &mut texts);
    let is_forged = |text: &&String| {
        text.chars().any(|letter| {
            (letter.is_control() && !matches!(letter, '\n' | '\t'))
                || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        }) || text.contains("\n+harmless")
    };
    texts.into_iter().find(is_forged).cloned()
}

/// The texts of a prompt but for the arguments themselves, which clients show as data.
fn collect_texts<'a>(value: &'a Value, texts: &mut Vec<&'a String>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(fields) => {
            fields
                .iter()
                .filter(|(name, _)| *name != "input")
                .for_each(|(_, value)| collect_texts(value, texts));
        }
        _ => {}
    }
}

#[test]
fn a_hostile_model_gets_nothing_by_its_tools() {
    play(Rules::Sandboxed);
}

#[test]
fn a_hostile_model_changes_nothing_in_plan_mode() {
    play(Rules::AllAllowed);
}

/// The attacks of commands, each in a repository of its own below one workspace, as commands of the model.
#[test]
fn nothing_that_the_model_planted_by_commands_runs_afterwards() {
    let attacks: Vec<&Attack> = chosen("bubblewrap", User::Own).collect();
    let folder = |number: usize| format!("ws/attack-{number}/repository");
    let stage = Stage::new(Rules::Sandboxed, "true", |scene, _| {
        let path = |name: &str| scene.path(name).to_str().unwrap().to_owned();
        attacks.iter().enumerate().fold(Script::default(), |script, (number, attack)| {
            let command = format!(
                "export P='{}' OUT='{}'\ncd '{}'\n{}",
                path("marker/ran"),
                path("outside"),
                path(&folder(number)),
                attack.script
            );
            let command = json!({ "command": command });
            script.when(&format!("^attack {number}$"), [call("Bash", command), say("done")])
        })
    });
    let pristine = Scene::new(User::Own);
    for (number, attack) in attacks.iter().enumerate() {
        let place: PathBuf = stage.scene.path(&folder(number));
        kode_e2e::copy_folder(&pristine.path("ws"), &place);
        let output =
            stage.scene.by_hand(&format!("cd '{}' || exit 1\n{}\ntrue", place.display(), attack.setup));
        assert_eq!(output.code, 0, "{}: {output:?}", attack.name);
    }
    let client = stage.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    let mut wrong = Vec::new();
    for (number, attack) in attacks.iter().enumerate() {
        let shown = run(&session, &format!("attack {number}"));
        let texts: Vec<String> = shown.iter().map(Value::to_string).collect();
        stage.scene.proceed(&folder(number), attack);
        let damage = stage.damage();
        wrong.extend(damage.into_iter().map(|damage| format!("{}: {damage}: {texts:?}", attack.name)));
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), attacks.len(), wrong.join("\n"));
}
