//! Sessions and what can be asked about them: lists, snapshots, repeated events, edits, tools and models.

use kode_e2e::{Offer, Project, Script, Session, call, conforms, say, step};
use serde_json::{Value, json};

fn project() -> Project {
    Project::new(&Script::new([say("Hello.")]))
}

#[test]
fn sessions_are_listed_in_pages_the_last_used_first() {
    let project = project();
    let client = project.open();
    let names = ["one", "two", "three"];
    for name in names {
        client.session().run(name);
    }
    let mut titles = Vec::new();
    let mut page = json!({ "limit": 2 });
    loop {
        let answer = client.call("agent/session/list", page);
        let sessions = answer["sessions"].as_array().unwrap();
        assert!(sessions.len() <= 2, "{answer}");
        titles.extend(sessions.iter().map(|session| session["title"].as_str().unwrap().to_owned()));
        match answer.get("nextCursor") {
            Some(cursor) => page = json!({ "limit": 2, "cursor": cursor }),
            None => break,
        }
    }
    assert_eq!(titles, ["three", "two", "one"]);
}

#[test]
fn sessions_of_other_workspaces_are_not_listed() {
    let project = project();
    let client = project.open();
    client.session().run("mine");
    drop(client);
    let elsewhere = project.start();
    std::fs::create_dir(project.outside().join("elsewhere")).unwrap();
    elsewhere.initialize(Offer::kode().params(&project.outside().join("elsewhere")));
    let list = elsewhere.call("agent/session/list", json!({}));
    assert_eq!(list["sessions"], json!([]));
}

#[test]
fn a_closed_session_takes_no_prompts_until_it_is_loaded_again() {
    let project = project();
    let client = project.open();
    let session = client.session();
    session.run("first");
    let before = session.items();
    session.call("agent/session/close", json!({}));
    let list = client.call("agent/session/list", json!({}));
    assert_eq!(list["sessions"][0]["state"], "stored", "{list}");
    let text = json!([{ "type": "text", "text": "second" }]);
    let error = session.request("agent/turn/start", json!({ "input": text })).unwrap_err();
    assert_eq!(error.kind(), "unknownSession", "{error:?}");
    assert_eq!(session.items(), before);
    assert_eq!(session.run("second")["stopReason"], "end_turn");
}

#[test]
fn a_client_is_sent_again_what_it_has_missed() {
    let project = project();
    let client = project.open();
    let session = client.session();
    session.run("hi");
    session.wait_event("the session to be ready", |event| event["state"] == "READY");
    let records = session.records();
    let since = records[2]["bookmark"]["seq"].clone();
    session.call("agent/session/load", json!({ "since": since }));
    let again = client.wait_for("the events again", |received| {
        let events = received.events(&session.id);
        (events.len() == 2 * records.len() - 3).then(|| events[records.len()..].to_vec())
    });
    let places = |records: &[Value]| -> Vec<Value> {
        records.iter().map(|record| record["bookmark"].clone()).collect()
    };
    assert_eq!(places(&again), places(&records[3..]));
}

#[test]
fn a_session_that_one_server_closed_continues_in_another() {
    let project = project();
    let first = project.open();
    let session = first.session();
    session.run("from the first");
    session.call("agent/session/close", json!({}));
    let second = project.open();
    let there = Session::new(&second, &session.id);
    assert_eq!(there.items().len(), 2);
    assert_eq!(there.run("from the second")["stopReason"], "end_turn");
}

#[test]
fn a_session_that_is_closed_in_the_middle_of_a_turn_is_whole_when_it_is_loaded_again() {
    let script = Script::default()
        .when("again$", [say("Here again.")])
        .when("^run", [call("Bash", json!({ "command": "expr begun; sleep 600" })), say("never")]);
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.prompt("run");
    session.wait_event("output of the command", |event| event["type"] == "tool:progress");
    session.call("agent/session/close", json!({}));
    // At once, while the closed one may still be ending.
    session.call("agent/session/load", json!({}));
    assert_eq!(session.run("again")["stopReason"], "end_turn");
    let states = |session: &Session<'_>| -> Vec<Value> {
        session.calls().iter().map(|call| call["state"].clone()).collect()
    };
    let before = (session.items(), states(&session));
    assert!(["FAILED", "SEALED"].contains(&before.1[0].as_str().unwrap()), "{before:?}");
    let id = session.id.clone();
    drop(client);
    let client = project.open();
    let session = Session::new(&client, &id);
    assert_eq!((session.items(), states(&session)), before, "the journal tells the same");
}

#[test]
fn a_client_that_stops_reading_holds_up_no_turn_and_finds_its_way_again() {
    let long = "many words that nobody reads now. ".repeat(20_000);
    let script = Script::new([
        step().text(&long).call("Bash", json!({ "command": "expr ran" })).chunk(64),
        say("Read me.").gate("second", 0),
    ]);
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    let request = json!({
        "sessionId": session.id, "input": [{ "type": "text", "text": "go" }],
    });
    let reading = client.stop_reading();
    client.send_request("agent/turn/start", request);
    project.model.wait_until_held("second");
    project.model.release("second");
    drop(reading);
    client.wait_for("the end of the turn, or to be told what was missed", |received| {
        let mut events = received.events(&session.id).iter().map(|record| &record["event"]["type"]);
        events.find(|kind| **kind == "done" || **kind == "gap").map(drop)
    });
    let items = session.items();
    assert_eq!(items[1]["body"]["text"], long.as_str(), "the snapshot has all of it");
}

#[test]
fn edits_are_listed_by_file_with_their_diffs() {
    let write = |name: &str, content: &str| {
        call("Write", json!({ "file_path": format!("{{{{cwd}}}}/{name}"), "content": content }))
    };
    let edit = json!({ "file_path": "{{cwd}}/open.txt", "old_string": "b", "new_string": "B\nb" });
    let script = Script::new([
        write("new.txt", "one\ntwo\n"),
        call("Read", json!({ "file_path": "{{cwd}}/open.txt" })),
        call("Edit", edit),
        say("Done."),
    ]);
    let project = Project::new(&script);
    project.write("open.txt", "a\nb\nc\n");
    let client = project.open();
    client.editor.open(&project.uri("open.txt"), "a\nb\nc\n");
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.run("go");
    let changed: Vec<Value> = session
        .events()
        .into_iter()
        .filter(|event| event["type"] == "edits_changed")
        .map(|event| event["uris"].clone())
        .collect();
    assert_eq!(changed, [json!([project.uri("new.txt")]), json!([project.uri("open.txt")])]);
    let answer = session.call("agent/edits/list", json!({ "history": true }));
    let files = answer["history"].as_array().unwrap();
    let summary: Vec<Value> =
        files.iter().map(|file| json!([file["uri"], file["added"], file["removed"]])).collect();
    assert_eq!(summary, [json!([project.uri("new.txt"), 2, 0]), json!([project.uri("open.txt"), 1, 0])]);
    let unified = files[1]["changes"][0]["unified"].as_str().unwrap();
    assert!(unified.contains("+B"), "{unified}");
}

#[test]
fn answers_are_what_the_protocol_says() {
    let write = json!({ "file_path": "{{cwd}}/new.txt", "content": "new\n" });
    let script = Script::new([
        step().thinking("Hm.").text("I write.").call("Write", write),
        call("Read", json!({ "file_path": "no such file" })),
        call("Bash", json!({ "command": "expr asked" })),
        say("Done."),
    ]);
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.prompt("go");
    session.wait_permission(0);
    session.submit("waits");
    let ask = |method: &str| session.call(method, json!({}));
    conforms::<kode_protocol::Snapshot>(&ask("agent/session/load")).unwrap();
    conforms::<kode_protocol::ListSessionsResult>(&ask("agent/session/list")).unwrap();
    conforms::<kode_protocol::ListPermissionsResult>(&ask("agent/permission/list")).unwrap();
    conforms::<kode_protocol::ListEditsResult>(&ask("agent/edits/list")).unwrap();
    conforms::<kode_protocol::ListToolsResult>(&ask("agent/tools/list")).unwrap();
    conforms::<kode_protocol::ListModelsResult>(&ask("agent/models/list")).unwrap();
    conforms::<kode_protocol::ListAgentsResult>(&ask("agent/agents/list")).unwrap();
    conforms::<kode_protocol::ConfigureSessionResult>(&ask("agent/session/configure")).unwrap();
    conforms::<kode_protocol::CancelResult>(&ask("agent/turn/cancel")).unwrap();
    conforms::<kode_protocol::NewSessionResult>(&client.call("agent/session/new", json!({}))).unwrap();
    let error = client.request("agent/session/load", json!({ "sessionId": "ses_none" })).unwrap_err();
    conforms::<kode_protocol::ErrorData>(&error.data).unwrap();
}

#[test]
fn acts_that_mean_nothing_are_refused_with_their_kind() {
    let project = project();
    let client = project.open();
    let session = client.session();
    let id = session.id.as_str();
    session.run("hi");
    for (method, params, kind) in [
        ("agent/edits/resolve", json!({ "selection": { "type": "all" }, "action": "undo" }), "nothingToDo"),
        (
            "agent/edits/resolve",
            json!({ "selection": { "type": "session", "sessionId": id }, "action": "keep" }),
            "nothingToDo",
        ),
        (
            "agent/edits/resolve",
            json!({ "selection": { "type": "session", "sessionId": "ses_none" }, "action": "keep" }),
            "unknownSession",
        ),
        (
            "agent/edits/resolve",
            json!({ "selection": { "type": "hunks", "sessionId": id, "hunkIds": [] }, "action": "keep" }),
            "invalidParams",
        ),
        ("agent/edits/resolve", json!({ "action": "keep" }), "invalidParams"),
        ("agent/edits/revert", json!({}), "unknownResolution"),
        ("agent/edits/revert", json!({ "resolutionId": "res_none" }), "unknownResolution"),
        ("agent/edits/list", json!({ "uri": "no uri" }), "invalidParams"),
        ("agent/document/proposed", json!({ "uri": project.uri("none.txt") }), "unknownDocument"),
        (
            "agent/checkpoint/restore",
            json!({ "checkpointId": "ckpt_none", "what": "both" }),
            "unknownCheckpoint",
        ),
        (
            "agent/checkpoint/restore",
            json!({ "checkpointId": "ckpt_none", "what": "both", "dryRun": true }),
            "unknownCheckpoint",
        ),
    ] {
        let error = session.request(method, params.clone()).unwrap_err();
        assert_eq!(error.kind(), kind, "{method} {params}: {error:?}");
        conforms::<kode_protocol::ErrorData>(&error.data).unwrap();
    }
    assert_eq!(session.call("agent/edits/list", json!({})), json!({ "files": [], "history": [] }));
    let checkpoints = session.call("agent/checkpoint/list", json!({}));
    conforms::<kode_protocol::ListCheckpointsResult>(&checkpoints).unwrap();
}

#[test]
fn tools_and_models_are_listed() {
    let project = project();
    let client = project.open();
    let tools = client.call("agent/tools/list", json!({}));
    let names: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.is_sorted(), "{names:?}");
    for name in
        ["AskUserQuestion", "Bash", "Edit", "ExitPlanMode", "LS", "Read", "Think", "TodoWrite", "WebFetch"]
    {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    for tool in tools["tools"].as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
        let description = tool["description"].as_str().unwrap();
        assert!(
            description.len() > 40 && description.starts_with(tool["summary"].as_str().unwrap()),
            "{tool}"
        );
        for field in ["displayName", "category", "summary"] {
            assert!(tool[field].as_str().is_some_and(|text| !text.is_empty()), "{field} of {tool}");
        }
        let is_asked = tool["readOnly"] == false || tool["category"] == "web";
        assert_eq!(tool["needsPermission"], is_asked, "{tool}");
    }
    let models = client.call("agent/models/list", json!({}));
    let names: Vec<&str> =
        models["models"].as_array().unwrap().iter().map(|model| model["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["demo", "main"]);
    assert!(!models.to_string().contains("test-key"));
}

#[test]
fn plan_mode_offers_no_tool_that_changes_files() {
    let project = project();
    let client = project.open();
    let listed = client.call("agent/tools/list", json!({}));
    client.session_with(json!({ "mode": "plan" })).run("hi");
    let request = project.model.last_request();
    let offered: Vec<_> =
        request["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    let is_offered = |tool: &Value| offered.contains(&tool["name"]);
    let offered_kinds: Vec<_> = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|tool| is_offered(tool))
        .map(|tool| &tool["kind"])
        .collect();
    assert!(
        offered_kinds.contains(&&json!("readOnly")) && !offered_kinds.contains(&&json!("write")),
        "{offered:?}"
    );
    assert!(offered.contains(&json!("ExitPlanMode")), "{offered:?}");
}

#[test]
fn the_model_is_reported_what_it_can_call_and_where_it_is() {
    let project = project();
    let client = project.open();
    client.session().run("hi");
    let request = project.model.last_request();
    let system = request["system"].to_string();
    assert!(system.contains(&format!("Working directory: {}", project.workspace().display())), "{system}");
    let tools: Vec<&Value> = request["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert!(tools.contains(&&json!("Read")) && tools.contains(&&json!("TodoWrite")), "{tools:?}");
    for useless in ["Diagnostics", "ExitPlanMode", "Skill", "SlashCommand"] {
        assert!(!tools.contains(&&json!(useless)), "{useless} is of no use here and offered: {tools:?}");
    }
    assert_eq!(request["stream"], true);
}

#[test]
fn a_session_without_a_key_says_what_to_set_and_works_once_another_model_is_chosen() {
    let project = project();
    let client = project.start_as(&[], &[("ANTHROPIC_API_KEY", ""), ("ANTHROPIC_BASE_URL", "")]);
    client.initialize(Offer::kode().params(&project.workspace()));
    let error = client.request("agent/session/new", json!({ "model": "nonsense" })).unwrap_err();
    assert_eq!(error.kind(), "modelNotConfigured", "{error:?}");
    let session = client.session();
    assert_eq!(session.run("hi")["stopReason"], "error");
    let notice = session.notices().pop().unwrap();
    assert!(notice.to_string().contains("ANTHROPIC_API_KEY"), "{notice}");
    session.call("agent/session/configure", json!({ "model": "demo", "mode": "plan" }));
    assert_eq!(session.run("hi")["stopReason"], "end_turn");
}
