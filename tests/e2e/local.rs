//! Models of the user's own machine: lists of servers, first contact.
//!
//! Rule: the scripted model plays the programs with their documented answers; no request leaves loopback.

use std::fs;
use std::net::TcpListener;

use kode_e2e::{Client, Offer, Project, Script, call, say};
use serde_json::{Value, json};

/// A profile of an OpenAI-compatible server that claims a window.
fn profile(project: &Project, window: u64) -> Value {
    json!({
        "provider": "openai", "baseUrl": format!("{}/v1", project.model.base_url()), "model": "gemma-test",
        "apiKey": "test-key", "contextWindow": window,
    })
}

fn open(project: &Project, profile: Value) -> Client {
    project.connect(&Offer::kode().options(json!({ "model": profile })))
}

/// Answers of a turn that reads a file, then of as many turns as are asked for.
fn script() -> Script {
    let read = || call("Read", json!({ "file_path": "{{cwd}}/a.txt" }));
    Script::default().when("^read", [read(), say("Read.")]).otherwise([say("Hello.")])
}

/// The lists of an Ollama with one model.
fn ollama_pages() -> Value {
    json!({
        "/api/tags": { "models": [{ "name": "gemma-test:4b", "model": "gemma-test:4b", "size": 3_338_801_804_u64,
            "details": { "family": "gemma3", "parameter_size": "4.3B", "quantization_level": "Q4_K_M" } }] },
        "/api/show": { "capabilities": ["completion", "tools", "vision"],
            "details": { "family": "gemma3" }, "model_info": { "gemma3.context_length": 131_072 } },
        "/api/ps": { "models": [] },
    })
}

fn discovered(client: &Client, params: Value) -> Vec<Value> {
    client.call("agent/models/discover", params)["servers"].as_array().unwrap().clone()
}

#[test]
fn a_running_server_of_this_machine_is_found_when_models_are_asked_for() {
    let project = Project::new(&script().quirk("pages", ollama_pages()));
    let host = project.model.base_url().trim_start_matches("http://").to_owned();
    let client = project.start_as(&[], &[("OLLAMA_HOST", &host)]);
    client.initialize(Offer::kode().params(&project.workspace()));
    let servers = discovered(&client, json!({}));
    let ollama = servers.iter().find(|server| server["provider"] == "ollama").expect("the server");
    let model = &ollama["models"][0];
    assert_eq!(
        (&model["name"], &model["contextWindow"], &model["tools"], &model["images"]),
        (&json!("gemma-test:4b"), &json!(131_072), &json!(true), &json!(true)),
        "{ollama}"
    );
}

#[test]
fn a_server_that_does_not_answer_is_named_with_the_reason() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let project = Project::new(&script());
    let mut profile = profile(&project, 8_192);
    profile["baseUrl"] = json!(format!("http://{}/v1", silent.local_addr().unwrap()));
    let client = open(&project, profile);
    let servers = discovered(&client, json!({ "profile": "main" }));
    assert_eq!(servers[0]["models"], json!([]));
    assert!(servers[0]["problem"]["message"].as_str().unwrap().contains("within 3 s"), "{servers:?}");
}

// -- first contact ----------------------------------------------------------------------------------------------------

/// A project of a user who has no model yet.
fn newcomer(project: &Project) -> Client {
    let home = project.outside().join("user");
    fs::create_dir_all(&home).unwrap();
    let none = [("HOME", home.to_str().unwrap()), ("ANTHROPIC_API_KEY", ""), ("ANTHROPIC_BASE_URL", "")];
    let client = project.start_as(&[], &none);
    client.initialize(Offer::kode().params(&project.workspace()));
    client
}

fn choice(project: &Project, key: &str) -> Value {
    json!({
        "provider": "openai-compatible", "model": "gpt-test", "key": { "type": "value", "value": key },
        "options": { "baseUrl": format!("{}/v1", project.model.base_url()) },
    })
}

#[test]
fn a_newcomer_chooses_tries_and_keeps_a_model() {
    let project = Project::new(&script());
    let client = newcomer(&project);
    let listed = client.call("agent/models/list", json!({}));
    assert_eq!(listed["usable"], false, "{listed}");
    let providers = client.call("agent/setup/providers", json!({}));
    let ids: Vec<_> =
        providers["providers"].as_array().unwrap().iter().map(|known| known["id"].clone()).collect();
    for id in [
        "anthropic",
        "openai-responses",
        "gemini",
        "ollama",
        "bedrock",
        "vertex",
        "azure",
        "openai-compatible",
    ] {
        assert!(ids.contains(&json!(id)), "{id}: {ids:?}");
    }
    let choice = choice(&project, "test-key");
    let tried = client.call("agent/setup/try", choice.clone());
    assert_eq!((&tried["ok"], &tried["model"]), (&json!(true), &json!("gpt-test")), "{tried}");
    let saved = client.call("agent/setup/save", json!({ "choice": choice, "name": "mine" }));
    let key_file = saved["keyFile"].as_str().expect("the key is kept in a file");
    assert_eq!(fs::read_to_string(key_file).unwrap().trim(), "test-key");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(key_file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let settings = fs::read_to_string(saved["file"].as_str().unwrap()).unwrap();
    assert!(!settings.contains("test-key"), "{settings}");
    // At once, and after a restart.
    assert_eq!(client.call("agent/models/list", json!({}))["usable"], true);
    assert_eq!(client.session().run("hello")["stopReason"], "end_turn");
    client.shut_down();
    let client = newcomer(&project);
    assert_eq!(client.session().run("hello")["stopReason"], "end_turn");
}

#[test]
fn a_trial_says_what_to_do_about_each_mistake() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (fault, address, says) in [
        (Some(401), None, "key"),
        (Some(404), None, "model"),
        (None, Some(format!("http://{free}/v1")), "address"),
    ] {
        let faults = fault.map(|status| json!({ "status": status }));
        let project = Project::new(&Script::new([say("Hello.").faults(faults)]));
        let client = newcomer(&project);
        let mut choice = choice(&project, "test-key");
        if let Some(address) = address {
            choice["options"]["baseUrl"] = json!(address);
        }
        let tried = client.call("agent/setup/try", choice);
        let problem = &tried["problem"];
        assert_eq!(tried["ok"], false, "{fault:?}: {tried}");
        assert!(problem["hint"].as_str().is_some_and(|hint| hint.contains(says)), "{fault:?}: {tried}");
        assert!(!tried.to_string().contains("test-key"), "{fault:?}: no key is repeated: {tried}");
    }
}

#[test]
fn a_local_server_is_set_up_without_a_key_from_the_terminal() {
    let project = Project::new(&script().quirk("pages", ollama_pages()));
    let host = project.model.base_url().trim_start_matches("http://").to_owned();
    let home = project.outside().join("user");
    fs::create_dir_all(&home).unwrap();
    let variables = [
        ("HOME", home.to_str().unwrap()),
        ("OLLAMA_HOST", host.as_str()),
        ("ANTHROPIC_API_KEY", ""),
        ("ANTHROPIC_BASE_URL", ""),
    ];
    let listed = project.run_as(&["setup", "--list", "--json"], "", &variables);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap_or_else(|_| panic!("{listed:?}"));
    assert!(listed.to_string().contains("gemma-test:4b"), "{listed}");
    let arguments = ["setup", "--provider", "ollama", "--model", "gemma-test:4b", "--json"];
    let saved = project.run_as(&arguments, "", &variables);
    assert_eq!(saved.code, 0, "{saved:?}");
    let listed = project.run_as(&["models", "--json"], "", &variables);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let mine = listed["models"].as_array().unwrap().iter().find(|model| model["model"] == "gemma-test:4b");
    assert_eq!(mine.expect("the profile")["active"], true, "{listed}");
}
