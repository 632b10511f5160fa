//! Models: lists, switches in the middle of a session, costs, keys that a command prints, and what a workspace cannot set.

use std::fs;
use std::path::PathBuf;

use kode_e2e::{Client, Offer, Project, Script, say};
use serde_json::{Value, json};

/// A project whose model says who it is, and a user with settings.
struct Desk {
    project: Project,
    other: Project,
}

impl Desk {
    fn new() -> Self {
        let script = |name: &str| {
            let usage = json!({ "input_tokens": 1_000_000, "output_tokens": 100_000 });
            let step = || say(name).usage(usage.clone());
            Script::default().otherwise([step(), step(), step()])
        };
        Self { project: Project::new(&script("The first.")), other: Project::new(&script("The second.")) }
    }

    fn user(&self) -> PathBuf {
        self.project.outside().join("user")
    }

    /// Writes the user's settings, with `{{other}}` for the address of the other server.
    fn settings(&self, settings: &Value) -> &Self {
        let folder = self.user().join(".kode");
        fs::create_dir_all(&folder).unwrap();
        let text = settings.to_string().replace("{{other}}", self.other.model.base_url());
        fs::write(folder.join("settings.json"), text).unwrap();
        self
    }

    fn open(&self, options: Value) -> Client {
        let user = self.user();
        fs::create_dir_all(&user).unwrap();
        let client =
            self.project.start_as(&[], &[("HOME", user.to_str().unwrap()), ("SECOND_KEY", "second-key-1")]);
        client.initialize(Offer::kode().options(options).params(&self.project.workspace()));
        client
    }
}

fn names(listed: &Value) -> Vec<&str> {
    listed["models"].as_array().unwrap().iter().map(|model| model["name"].as_str().unwrap()).collect()
}

fn by_name<'a>(listed: &'a Value, name: &str) -> &'a Value {
    listed["models"].as_array().unwrap().iter().find(|model| model["name"] == name).unwrap()
}

/// Everything that was written into the state folder, as text.
fn written(desk: &Desk) -> String {
    let mut texts = String::new();
    let mut folders = vec![desk.project.home()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                texts.push_str(&String::from_utf8_lossy(&fs::read(entry.path()).unwrap_or_default()));
            }
        }
    }
    texts
}

#[test]
fn profiles_are_listed_with_what_is_wrong_and_without_keys() {
    let desk = Desk::new();
    desk.settings(&json!({
        "modelProfiles": {
            "second": { "baseUrl": "{{other}}", "model": "claude-haiku-4-5", "apiKey": { "fromEnv": "SECOND_KEY" } },
            "broken": { "provider": "openai", "model": "m", "apiKey": "${NOT_SET}" },
        },
        "modelPointers": { "quick": "second" },
    }));
    let client = desk.open(json!({ "models": { "mine": { "model": "own", "apiKey": "own-key-123" } } }));
    let listed = client.call("agent/models/list", json!({}));
    assert_eq!(names(&listed), ["broken", "demo", "main", "mine", "second"]);
    assert_eq!(
        listed["pointers"],
        json!({ "main": "main", "task": "main", "compact": "main", "quick": "second" })
    );
    let second = by_name(&listed, "second");
    assert_eq!((&second["wire"], &second["prices"]["input"]), (&json!("anthropicMessages"), &json!(1.0)));
    assert_eq!(second["host"], desk.other.model.base_url().trim_start_matches("http://"));
    assert_eq!(by_name(&listed, "mine").get("prices"), None, "what an unknown model costs is unknown");
    let broken = by_name(&listed, "broken");
    assert!(broken["problem"]["message"].as_str().unwrap().contains("NOT_SET"), "{broken}");
    for key in ["test-key", "second-key-1", "own-key-123"] {
        assert!(!listed.to_string().contains(key), "{key}");
    }
}

#[test]
fn a_switch_counts_from_the_next_call_on_and_its_cost_is_kept() {
    let desk = Desk::new();
    desk.settings(&json!({
        "modelProfiles": {
            "second": { "baseUrl": "{{other}}", "model": "other-model", "apiKey": { "fromEnv": "SECOND_KEY" } },
        },
        "modelCatalog": { "claude-sonnet-5": { "prices": { "input": 2.0, "output": 10.0 } } },
        "sessionTitles": false,
        "modelPointers": { "quick": "second" },
    }));
    let client = desk.open(json!({}));
    let session = client.session();
    let done = session.run("one");
    assert_eq!(done["cost"], json!(3.0), "{done}");
    let now = session.call("agent/session/configure", json!({ "model": "haiku", "effort": "high" }));
    assert_eq!((&now["model"]["name"], &now["effort"]), (&json!("second"), &json!("high")));
    let done = session.run("two");
    assert_eq!(done.get("cost"), None, "an unknown price is no zero: {done}");
    assert_eq!((desk.project.model.requests().len(), desk.other.model.requests().len()), (1, 1));
    let usage = session.call("agent/usage/get", json!({}));
    let models: Vec<_> = usage["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| (&model["model"], model.get("cost")))
        .collect();
    assert_eq!(models, [(&json!("claude-sonnet-5"), Some(&json!(3.0))), (&json!("other-model"), None)]);
    assert_eq!((&usage["knownCost"], usage.get("cost")), (&json!(3.0), None));
    // Prices change, paid amounts do not.
    let id = session.snapshot()["sessionId"].clone();
    assert_eq!(client.shut_down(), 0);
    desk.settings(
        &json!({ "modelCatalog": { "claude-sonnet-5": { "prices": { "input": 9.0, "output": 9.0 } } } }),
    );
    let client = desk.open(json!({}));
    let snapshot = client.call("agent/session/load", json!({ "sessionId": id }));
    assert_eq!((&snapshot["effort"], snapshot.get("cost")), (&json!("high"), None));
    assert_eq!(client.call("agent/usage/get", json!({ "sessionId": id }))["knownCost"], json!(3.0));
}

#[test]
fn a_helper_gives_the_key_and_nobody_else_sees_it() {
    let desk = Desk::new();
    desk.settings(&json!({
        "modelProfiles": { "second": {
            "baseUrl": "{{other}}", "model": "m",
            "apiKeyHelper": "echo run >> ../helper-runs; echo helper-key-777", "apiKeyHelperTtlMs": 3_600_000,
        } },
    }));
    let client = desk.open(json!({ "profile": "second" }));
    let session = client.session();
    session.run("one");
    session.run("two");
    assert_eq!(desk.other.model.requests().len(), 2);
    let runs = fs::read_to_string(desk.project.outside().join("helper-runs")).unwrap();
    assert_eq!(runs.lines().count(), 1, "one key serves many requests");
    assert_eq!(client.shut_down(), 0);
    assert!(!written(&desk).contains("helper-key-777"), "the key is in the state folder");
}

#[test]
fn a_helper_that_fails_is_reported_without_its_output() {
    let desk = Desk::new();
    desk.settings(&json!({
        "modelProfiles": { "second": {
            "baseUrl": "{{other}}", "model": "m", "apiKeyHelper": "echo half-a-key-888; exit 3",
        } },
    }));
    let client = desk.open(json!({ "profile": "second" }));
    let session = client.session();
    let done = session.run("one");
    assert_eq!(done["stopReason"], "error", "{done}");
    let reported = session.notices().iter().map(Value::to_string).collect::<String>();
    assert!(reported.contains("apiKeyHelper") && reported.contains('3'), "{reported}");
    assert!(!reported.contains("half-a-key-888"), "{reported}");
    assert_eq!(desk.other.model.requests().len(), 0);
}

#[test]
fn a_file_of_the_workspace_sets_no_address() {
    let desk = Desk::new();
    let wanted = json!({
        "modelProfiles": { "main": { "baseUrl": desk.other.model.base_url(), "model": "m", "apiKey": "k" } },
        "apiKeyHelper": "touch stolen", "model": "demo",
    });
    desk.project.write(".kode/settings.json", wanted.to_string());
    let client = desk.open(json!({}));
    let session = client.session();
    session.run("one");
    assert_eq!((desk.project.model.requests().len(), desk.other.model.requests().len()), (1, 0));
    assert!(!desk.project.path("stolen").exists());
    let rules = session.call("agent/permission/rules", json!({}));
    let problems = rules["problems"].to_string();
    assert!(problems.contains("modelProfiles") && problems.contains("apiKeyHelper"), "{problems}");
    assert!(rules["withheld"].to_string().contains("model"), "{rules}");
}
