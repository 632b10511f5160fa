//! Models of the user's own machine: windows that are served, lists of servers, small windows, first contact.
//!
//! Rule: the scripted model plays the programs with their documented answers; no request leaves loopback.

use std::fs;
use std::net::TcpListener;

use kode_e2e::{Client, Offer, Project, Script, Session, call, say, step};
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

fn texts(notices: &[Value], part: &str) -> usize {
    notices.iter().filter(|notice| notice["text"].as_str().is_some_and(|text| text.contains(part))).count()
}

/// Answers of a turn that reads a file, then of as many turns as are asked for.
fn script() -> Script {
    let read = || call("Read", json!({ "file_path": "{{cwd}}/a.txt" }));
    Script::default().when("^read", [read(), say("Read.")]).otherwise([say("Hello.")])
}

/// A prompt of about 8,000 tokens.
fn long() -> String {
    format!("hello {}", "word after word ".repeat(2_000))
}

#[test]
fn a_prompt_that_was_cut_is_reported_with_the_first_answer_and_the_window_is_kept() {
    let project = Project::new(&script().quirk("cuts_above", json!(4_096)));
    project.write("a.txt", "text\n");
    let client = open(&project, profile(&project, 200_000));
    let session = client.session();
    session.run(&long());
    let notices = session.notices();
    let warning = notices.iter().find(|notice| notice.to_string().contains("cuts off")).expect("a warning");
    assert_eq!(warning["level"], "warning");
    assert!(warning["text"].as_str().unwrap().contains("a context window of 4096"), "{warning}");
    assert!(warning["hint"].as_str().unwrap().contains("OLLAMA_CONTEXT_LENGTH=32768"), "{warning}");
    // The known state now: the tools by need alone, and nothing beyond the window.
    let before = project.model.recorded().len();
    let session = client.session();
    session.run("read it");
    session.run("hello again");
    let later = &project.model.recorded()[before..];
    if later.is_empty() {
        // Not even a new conversation has room in it: a notice says so, with the switch, and nothing is sent.
        let last = session.notices().pop().unwrap().to_string();
        assert!(last.contains("reads 4096 tokens") && last.contains("OLLAMA_CONTEXT_LENGTH"), "{last}");
    }
    for request in later {
        let bytes = request["body"].to_string().len() as u64;
        assert!(bytes / 4 <= 4_096, "a request of about {} tokens", bytes / 4);
    }
    let compactions = session.events().iter().filter(|event| event["type"] == "context_compression").count();
    assert!(compactions <= 1, "{compactions} compactions");
    assert_eq!(texts(&notices, "cuts off"), 1, "it is told once");
    assert_eq!(texts(&session.notices(), "cuts off"), 0, "it is known");
}

#[test]
fn no_request_is_refused_once_the_window_is_known() {
    let project = Project::new(&script().quirk("refuses_above", json!(8_192)));
    project.write("a.txt", "a line of text\n".repeat(200));
    let client = open(&project, profile(&project, 200_000));
    let session = client.session();
    session.run(&long());
    let first = project.model.refusals().len();
    assert_eq!(first, 1, "the error names the window: {:?}", project.model.refusals());
    let session = client.session();
    for prompt in ["read it", "read it once more", "read all of it", "hello"] {
        assert_eq!(session.run(prompt)["stopReason"], "end_turn", "{prompt}: {:?}", session.notices());
    }
    assert_eq!(project.model.refusals().len(), first, "no request beyond the window");
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
fn a_model_of_this_machine_names_its_profile_once_it_has_one() {
    let project = Project::new(&script().quirk("pages", ollama_pages()));
    let host = project.model.base_url().trim_start_matches("http://").to_owned();
    let home = project.outside().join("user");
    fs::create_dir_all(&home).unwrap();
    let client = project.start_as(&[], &[("OLLAMA_HOST", &host), ("HOME", home.to_str().unwrap())]);
    client.initialize(Offer::kode().params(&project.workspace()));
    let profile = || {
        let servers = discovered(&client, json!({}));
        let ollama = servers.into_iter().find(|server| server["provider"] == "ollama").expect("the server");
        ollama["models"][0]["profile"].clone()
    };
    let in_use = || {
        let listed = client.call("agent/setup/providers", json!({}));
        let mut providers = listed["providers"].as_array().unwrap().iter();
        providers.find(|provider| provider["id"] == "ollama").unwrap()["inUse"].clone()
    };
    assert_eq!((profile(), in_use()), (Value::Null, json!(false)));
    let choice = json!({ "provider": "ollama", "model": "gemma-test:4b" });
    client.call("agent/setup/save", json!({ "choice": choice, "name": "local", "main": false }));
    assert_eq!((profile(), in_use()), (json!("local"), json!(true)));
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

#[test]
fn a_turn_of_several_calls_works_in_a_window_of_8192_tokens() {
    let read = || call("Read", json!({ "file_path": "{{cwd}}/a.txt" }));
    let edit = json!({ "file_path": "{{cwd}}/a.txt", "old_string": "one", "new_string": "two" });
    let find = json!({ "query": "WebFetch" });
    let steps = [
        step().text("I look.").call("Read", json!({ "file_path": "{{cwd}}/a.txt" })),
        call("Edit", edit),
        call("ToolSearch", find),
        read(),
        say("Done."),
    ];
    let project = Project::new(&Script::new(steps).quirk("refuses_above", json!(8_192)));
    project.write("a.txt", "one\n");
    let client = open(&project, profile(&project, 8_192));
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    assert_eq!(session.run("edit it")["stopReason"], "end_turn", "{:?}", session.notices());
    assert_eq!((project.read("a.txt").as_str(), project.model.refusals().len()), ("two\n", 0));
    let tools = |request: &Value| -> Vec<String> {
        let tools = request["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let requests = project.model.requests();
    assert!(
        !tools(&requests[0]).contains(&"WebFetch".to_owned()),
        "tools by need: {:?}",
        tools(&requests[0])
    );
    assert!(tools(&requests[4]).contains(&"WebFetch".to_owned()), "{:?}", tools(&requests[4]));
    assert!(requests[0].to_string().len() < 8_192 * 4 / 2, "{} bytes", requests[0].to_string().len());
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

// -- rests --------------------------------------------------------------------------------------------------------------

/// The question that a resting turn asks.
fn resting<'a>(client: &'a Client, id: &str) -> (Session<'a>, Value) {
    let session = Session::new(client, id);
    let asked = session.snapshot()["questions"][0].clone();
    assert_eq!(asked["kind"], "rest", "{asked}");
    (session, asked)
}

#[test]
fn a_turn_rests_over_a_restart_until_the_user_lets_it_proceed() {
    let limit = json!({ "status": 429, "headers": { "retry-after": "7200" } });
    let project = Project::new(&Script::new([say("Here I am.").faults([limit])]));
    let id = {
        let client = project.open();
        let session = client.session();
        session.prompt("hello");
        let asked = session.wait_event("the rest", |event| event["type"] == "question_asked");
        assert!(asked.to_string().contains("accepts no more requests until"), "{asked}");
        let (_, asked) = resting(&client, &session.id);
        assert!(asked["until"].is_string(), "{asked}");
        client.kill();
        session.id.clone()
    };
    let client = project.open();
    Session::new(&client, &id).call("agent/session/load", json!({}));
    let (session, asked) = resting(&client, &id);
    let answers = json!([{ "labels": ["Try again now"] }]);
    session.call("agent/question/respond", json!({ "questionId": asked["questionId"], "answers": answers }));
    let done = session.wait_event("the end of the turn", |event| event["type"] == "done");
    assert_eq!(done["stopReason"], "end_turn");
    assert_eq!(session.items().last().unwrap()["body"]["text"], "Here I am.");
    assert_eq!(project.model.requests().len(), 2);
}
