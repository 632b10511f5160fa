//! Settings from outside: what counts and where it comes from, changing one, changes that are taken in while the server runs.
//!
//! Rule: every test has a home folder of its own; reports are checked against files on the disk, and a change is waited
//! for by the event that tells it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kode_e2e::{Client, Offer, Output, Project, Script, binary, run, say};
use serde_json::{Value, json};

/// A project and the home folder of its user.
struct Desk {
    project: Project,
}

impl Desk {
    fn new() -> Self {
        let project = Project::new(&Script::default().when("^hello$", [say("hi")]));
        std::fs::create_dir_all(project.outside().join("user/.kode")).unwrap();
        Self { project }
    }

    fn home(&self) -> PathBuf {
        self.project.outside().join("user")
    }

    fn user(&self, settings: &Value) {
        std::fs::write(self.home().join(".kode/settings.json"), settings.to_string()).unwrap();
    }

    fn open(&self, offer: &Offer) -> Client {
        let client = self.project.start_as(&[], &[("HOME", self.home().to_str().unwrap())]);
        client.initialize(offer.params(&self.project.workspace()));
        client
    }

    fn environment(&self) -> [(String, String); 2] {
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        [("KODE_LS_HOME".to_owned(), text(self.project.home())), ("HOME".to_owned(), text(self.home()))]
    }

    fn cli(&self, arguments: &[&str]) -> Output {
        let environment = self.environment();
        let environment: Vec<_> = environment.iter().map(|(name, value)| (&**name, &**value)).collect();
        run(arguments, Some(&self.project.workspace()), &environment, "")
    }

    /// A process that sets something for the user, not waited for.
    fn setter(&self, key: &str, value: &str) -> std::process::Child {
        let mut command = Command::new(binary());
        command.args(["config", "set", key, value]).current_dir(self.project.workspace());
        command
            .envs(self.environment())
            .env("USERPROFILE", self.home())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    }
}

fn setting<'v>(reported: &'v Value, key: &str) -> &'v Value {
    let settings = reported["settings"].as_array().unwrap();
    settings.iter().find(|setting| setting["key"] == key).unwrap_or(&Value::Null)
}

#[test]
fn what_counts_is_reported_with_its_place_and_without_secrets() {
    let desk = Desk::new();
    desk.user(&json!({
        "language": "German", "env": { "GITHUB_TOKEN": "hush-hush", "PLAIN": "p" },
        "modelProfiles": { "mine": { "model": "m", "apiKey": "hush-hush", "baseURL": "http://127.0.0.1:9" } },
    }));
    desk.project.write(
        ".claude/settings.json",
        "{\n  \"language\": \"French\",\n  \"permissions\": { \"allow\": [\"Bash(ls)\"], \"deny\": [\"Bash(curl:*)\"] }\n}\n",
    );
    let client = desk.open(&Offer::kode());
    let session = client.session();
    let reported = session.call("agent/config/get", json!({}));
    assert!(!reported.to_string().contains("hush-hush"), "{reported}");
    let language = setting(&reported, "language");
    assert_eq!((&language["value"], &language["source"]["layer"]), (&json!("French"), &json!("project")));
    assert_eq!(language["source"]["line"], 2);
    assert!(Path::new(language["source"]["file"].as_str().unwrap()).ends_with(".claude/settings.json"));
    assert_eq!(language["stated"].as_array().unwrap().len(), 2, "{language}");
    let allow = setting(&reported, "permissions.allow");
    assert_eq!((&allow["value"], &allow["stated"][0]["standing"]), (&Value::Null, &json!("waiting")));
    assert_eq!(setting(&reported, "permissions.deny")["value"], json!(["Bash(curl:*)"]));
    assert_eq!(setting(&reported, "env.PLAIN")["value"], "p");
    assert_eq!(setting(&reported, "autoCompactThreshold")["value"], 0.8);
    assert_eq!(setting(&reported, "session.permissions.defaultMode")["value"], "default");
    let wrong = session.request("agent/config/get", json!({ "key": "langauge" })).unwrap_err();
    assert!(wrong.message.contains("did you mean `language`"), "{wrong:?}");
}

#[test]
fn a_setting_is_written_where_it_belongs_and_everything_else_in_the_file_stays() {
    let desk = Desk::new();
    desk.project.write(".kode/settings.local.json", "{\n  // mine\n  \"unknown\": [1],\n}\n");
    let client = desk.open(&Offer::kode());
    let session = client.session();
    let set = |params: Value| session.request("agent/config/set", params);
    let written = set(json!({ "key": "env.A", "value": "b", "scope": "local" })).unwrap();
    assert_eq!(written["changed"], true, "{written}");
    let text = desk.project.read(".kode/settings.local.json");
    assert!(
        text.contains("// mine") && text.contains("\"unknown\": [1]") && text.contains("\"A\": \"b\""),
        "{text}"
    );
    // A value that the user sets in a file of the workspace takes effect.
    let reported = session.call("agent/config/get", json!({ "key": "env" }));
    assert_eq!(setting(&reported, "env.A")["value"], "b", "{reported}");

    let again = set(json!({ "key": "env.A", "value": "b", "scope": "local" })).unwrap();
    assert_eq!(again["changed"], false);
    set(json!({ "key": "env.A", "scope": "local" })).unwrap();
    assert!(!desk.project.read(".kode/settings.local.json").contains("\"A\""));

    for (params, path) in [
        (json!({ "key": "nothing", "value": 1, "scope": "user" }), "key"),
        (json!({ "key": "theme", "value": "dark", "scope": "user" }), "key"),
        (json!({ "key": "tools.maxConcurrency", "value": 0, "scope": "user" }), "value"),
        (json!({ "key": "apiKeyHelper", "value": "x", "scope": "project" }), "scope"),
        (json!({ "key": "language", "value": "x", "scope": "session" }), "key"),
    ] {
        let refused = set(params.clone()).unwrap_err();
        assert_eq!((refused.kind(), &refused.data["path"]), ("invalidParams", &json!(path)), "{params}");
    }
    // A session's own is on no disk.
    set(json!({ "key": "permissions.defaultMode", "value": "plan", "scope": "session" })).unwrap();
    assert_eq!(session.snapshot()["mode"], "plan");
    let files =
        [".kode/settings.json", ".kode-ls/settings.json"].map(|file| desk.project.path(file).exists());
    assert_eq!(files, [false, false]);
    assert!(!desk.home().join(".kode/settings.json").exists());
}

#[test]
fn a_change_of_a_file_is_taken_in_while_the_server_runs_and_reported_once() {
    let desk = Desk::new();
    desk.user(&json!({ "language": "German" }));
    let client = desk.open(&Offer::kode());
    let session = client.session();
    session.call("agent/config/get", json!({}));
    let profile = |name: &str| json!({ "modelProfiles": { name: { "provider": "demo" } } });
    desk.user(&profile("fresh"));
    let changed = |session: &kode_e2e::Session<'_>| {
        session.events().into_iter().filter(|event| event["type"] == "config_changed").collect::<Vec<_>>()
    };
    session.wait_event("the change", |event| event["type"] == "config_changed");
    let file = changed(&session)[0]["files"][0].clone();
    assert!(Path::new(file.as_str().unwrap()).ends_with("user/.kode/settings.json"), "{file}");
    let names = client.call("agent/models/list", json!({})).to_string();
    assert!(names.contains("fresh"), "{names}");

    // The same text again is no change, and a problem is reported at its place and cleared.
    desk.user(&profile("fresh"));
    desk.project.write(".kode/settings.json", "{ \"permisions\": {}, \"langage\": 1 }");
    let uri = desk.project.uri(".kode/settings.json");
    let diagnostics = |count: usize| {
        client.wait_for(&format!("{count} diagnostics"), |received| {
            let reported = received.of("textDocument/publishDiagnostics");
            let newest = reported.filter(|reported| reported["params"]["uri"] == uri.as_str()).last()?;
            let newest = newest["params"]["diagnostics"].as_array()?.clone();
            (newest.len() == count).then_some(newest)
        })
    };
    let reported = diagnostics(1);
    assert!(reported[0]["message"].as_str().unwrap().contains("did you mean `language`"), "{reported:?}");
    assert_eq!(reported[0]["range"]["start"]["character"], 20);
    desk.project.write(".kode/settings.json", "{}");
    diagnostics(0);
    assert_eq!(changed(&session).len(), 3, "{:?}", changed(&session));
}

#[test]
fn a_service_that_searches_the_web_is_offered_as_soon_as_settings_name_it() {
    let desk = Desk::new();
    desk.user(&json!({}));
    let client = desk.open(&Offer::kode());
    let session = client.session();
    let is_offered = || {
        session.run("hello");
        let requests = desk.project.model.requests();
        let tools = requests.last().unwrap()["tools"].as_array().unwrap().clone();
        tools.iter().any(|tool| tool["name"] == "WebSearch")
    };
    let change = |settings: &Value| {
        let is_change = |record: &&Value| record["event"]["type"] == "config_changed";
        let before = session.records().iter().filter(is_change).count();
        desk.user(settings);
        client.wait_for("the change", |received| {
            (received.events(&session.id).iter().filter(is_change).count() > before).then_some(())
        });
    };
    assert!(!is_offered());
    change(&json!({ "webSearch": { "provider": "searxng", "endpoint": "http://127.0.0.1:9/" } }));
    assert!(is_offered());
    change(&json!({}));
    assert!(!is_offered());
}

#[test]
fn settings_of_the_editor_narrow_and_only_the_users_own_loosen() {
    let desk = Desk::new();
    desk.user(&json!({ "language": "German" }));
    let deny =
        json!({ "permissions": { "deny": ["WebFetch"], "allow": ["Bash(git tag:*)"] }, "language": "Welsh" });
    let own = json!({ "permissions": { "allow": ["Bash(git branch:*)"] } });
    let offer = Offer::kode().options(json!({ "settings": deny, "userSettings": own }));
    let client = desk.open(&offer);
    let reported = client.session().call("agent/config/get", json!({}));
    assert_eq!(setting(&reported, "permissions.allow")["value"], json!(["Bash(git branch:*)"]), "{reported}");
    assert_eq!(setting(&reported, "permissions.deny")["value"], json!(["WebFetch"]));
    let language = setting(&reported, "language");
    assert_eq!((&language["value"], &language["source"]["layer"]), (&json!("Welsh"), &json!("editor")));
}

#[test]
fn fifty_processes_write_at_the_same_time_and_all_of_it_lands() {
    const WRITERS: usize = 50;
    let desk = Desk::new();
    let children: Vec<_> =
        (0..WRITERS).map(|number| desk.setter(&format!("env.K{number}"), &number.to_string())).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let listed = desk.cli(&["config", "get", "env", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["settings"].as_array().unwrap().len(), WRITERS, "{listed}");
}

#[test]
fn a_writer_that_is_killed_leaves_the_old_file_or_the_new_one() {
    let desk = Desk::new();
    desk.user(&json!({ "language": "old" }));
    let file = desk.home().join(".kode/settings.json");
    for round in 0..20 {
        let mut child = desk.setter("language", &format!("new {round}"));
        // Somewhere between its first step and its last.
        for _ in 0..round * 2_000 {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let settings: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let language = settings["language"].as_str().unwrap();
        assert!(language == "old" || language.starts_with("new "), "{settings}");
    }
    let written = desk.cli(&["config", "set", "language", "last"]);
    assert_eq!(written.code, 0, "{written:?}");
}

#[test]
fn the_command_line_lists_sets_and_prints_the_schema() {
    let desk = Desk::new();
    let set = desk.cli(&["config", "set", "permissions.deny", r#"["Bash(curl:*)"]"#, "--scope", "project"]);
    assert_eq!(set.code, 0, "{set:?}");
    assert!(desk.project.read(".kode/settings.json").contains("Bash(curl:*)"));
    let listed = desk.cli(&["config"]);
    assert!(listed.stdout.contains("permissions.deny = [\"Bash(curl:*)\"]"), "{listed:?}");
    let schema: Value = serde_json::from_str(&desk.cli(&["config", "schema"]).stdout).unwrap();
    assert_eq!(schema["properties"]["permissions"]["properties"]["deny"]["type"], "array");
    let wrong = desk.cli(&["config", "set", "langage", "x"]);
    assert!(wrong.code != 0 && wrong.stderr.contains("did you mean `language`"), "{wrong:?}");
}
