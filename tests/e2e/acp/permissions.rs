//! Permission requests, questions, modes and config options.

use kode_e2e::Reply;
use serde_json::{Value, json};

use super::{COMMAND, of_kind, opened, project, text_of};

fn option_ids(request: &Value) -> Vec<&str> {
    let options = request["params"]["options"].as_array().unwrap();
    options.iter().map(|option| option["optionId"].as_str().unwrap()).collect()
}

#[test]
fn a_command_is_asked_for_by_itself_and_each_lasting_answer_names_its_rule() {
    let project = project();
    let (client, session) = opened(&project);
    let id = client.send_prompt(&session, "run");
    let request = client.wait_request("session/request_permission", 0);
    let call = &request["params"]["toolCall"];
    assert_eq!((&call["title"], &call["kind"]), (&json!(COMMAND), &json!("execute")));
    assert_eq!(call["rawInput"]["command"], COMMAND);
    assert_eq!(option_ids(&request).first(), Some(&"allow"));
    let options = request["params"]["options"].as_array().unwrap();
    for option in options.iter().filter(|option| option["kind"] == "allow_always") {
        assert!(option["name"].as_str().unwrap().contains(": Bash("), "{option}");
    }
    client.select(&request, "reject");
    client.await_answer(id).unwrap();
    let results = project.model.last_results();
    assert!(results[0].1, "the model hears of the denial: {results:?}");
}

#[test]
fn an_edit_is_asked_for_with_its_diff_and_an_always_is_kept() {
    let project = project();
    let (client, session) = opened(&project);
    let id = client.send_prompt(&session, "edit");
    let request = client.wait_request("session/request_permission", 0);
    let content = &request["params"]["toolCall"]["content"];
    assert_eq!((&content[0]["type"], &content[0]["newText"]), (&json!("diff"), &json!("one\nTWO\n")));
    client.select(&request, "allow-edits");
    client.await_answer(id).unwrap();
    assert_eq!(project.read("a.txt"), "one\nTWO\n");
    // The mode of the answer lasts, and the client is notified of it.
    let update =
        client.wait_update(&session, "the mode", |update| update["sessionUpdate"] == "current_mode_update");
    assert_eq!(update["currentModeId"], "acceptEdits");
    client.run(&session, "write");
    assert_eq!(client.look(|received| received.of("session/request_permission").count()), 1);
}

#[test]
fn a_client_that_shows_one_answer_of_a_kind_is_offered_the_narrowest_of_each() {
    let project = project();
    let client = project.acp_as(&[]);
    client.initialize_as("CodeCompanion.nvim", json!({}));
    let session = client.new_session();
    let id = client.send_prompt(&session, "edit");
    let request = client.wait_request("session/request_permission", 0);
    assert_eq!(option_ids(&request), ["allow", "allow-session", "reject"]);
    client.select(&request, "allow-session");
    client.await_answer(id).unwrap();
    assert_eq!(project.read("a.txt"), "one\nTWO\n");
}

#[test]
fn a_rule_for_the_project_is_kept_for_the_next_process() {
    let project = project();
    let (client, session) = opened(&project);
    client.permit("allow-project");
    client.await_answer(client.send_prompt(&session, "run")).unwrap();
    drop(client);
    let (client, session) = opened(&project);
    client.run(&session, "run");
    assert_eq!(client.look(|received| received.of("session/request_permission").count()), 0);
}

#[test]
fn one_unanswered_prompt_holds_up_nothing_else() {
    let project = project();
    let (client, session) = opened(&project);
    let waiting = client.send_prompt(&session, "run");
    let request = client.wait_request("session/request_permission", 0);
    let other = client.new_session();
    client.run(&other, "hello");
    client.call("session/list", json!({}));
    client.call("session/load", json!({ "sessionId": other, "cwd": project.workspace(), "mcpServers": [] }));
    client.set_mode(&session, "plan");
    assert!(!client.is_answered(waiting));
    client.select(&request, "allow");
    client.await_answer(waiting).unwrap();
}

#[test]
fn a_question_is_a_permission_request_without_forms_and_a_form_with_them() {
    let project = project();
    let (client, session) = opened(&project);
    let id = client.send_prompt(&session, "ask");
    let request = client.wait_request("session/request_permission", 0);
    assert_eq!(request["params"]["toolCall"]["title"], "Which color?");
    assert_eq!(option_ids(&request), ["0", "1", "refuse"]);
    client.select(&request, "1");
    client.await_answer(id).unwrap();
    assert!(project.model.last_results()[0].0.contains("blue"), "{:?}", project.model.last_results());

    let client = project.acp(json!({ "elicitation": { "form": {} } }));
    let session = client.new_session();
    client.on_request("elicitation/create", |_, request| {
        let schema = &request["params"]["requestedSchema"]["properties"];
        assert_eq!(schema["answer1"]["oneOf"][0]["const"], "red", "{request}");
        Reply::Result(json!({ "action": "accept", "content": { "other1": "green" } }))
    });
    client.run(&session, "ask");
    assert!(project.model.last_results()[0].0.contains("green"), "{:?}", project.model.last_results());
}

#[test]
fn a_denial_with_a_reason_reaches_the_model() {
    let project = project();
    let client = project.acp(json!({ "elicitation": { "form": {} } }));
    let session = client.new_session();
    client.permit("reject-because");
    client.on_request("elicitation/create", |_, _| {
        Reply::Result(json!({ "action": "accept", "content": { "reason": "use printf" } }))
    });
    client.await_answer(client.send_prompt(&session, "run")).unwrap();
    assert!(project.model.last_results()[0].0.contains("use printf"), "{:?}", project.model.last_results());
}

#[test]
fn modes_001_and_002_modes_are_listed_and_set_and_unknown_ones_refused() {
    let project = project();
    let client = project.acp(json!({}));
    let result = client.call("session/new", json!({ "cwd": project.workspace(), "mcpServers": [] }));
    let session = result["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(result["modes"]["currentModeId"], "default");
    let modes = result["modes"]["availableModes"].as_array().unwrap();
    let ids: Vec<_> = modes.iter().map(|mode| mode["id"].as_str().unwrap()).collect();
    assert_eq!(
        ids,
        ["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions", "approval", "readonly"]
    );
    assert_eq!(client.call("session/set_mode", json!({ "sessionId": session, "modeId": "plan" })), json!({}));
    client.wait_update(&session, "the mode", |update| update["currentModeId"] == "plan");
    let update = client
        .wait_update(&session, "the options", |update| update["sessionUpdate"] == "config_option_update");
    assert_eq!(update["configOptions"][0]["currentValue"], "plan");
    let unknown = client.request("session/set_mode", json!({ "sessionId": session, "modeId": "yolo" }));
    assert_eq!(unknown.unwrap_err().code, -32_602);
}

#[test]
fn config_001_to_003_every_answer_has_the_whole_list() {
    const OPTIONS: [&str; 5] = ["mode", "model", "effort", "style", "sandbox"];
    let project = project();
    project.write(".kode/output-styles/pirate.md", "---\nname: Pirate\n---\nAnswer as a pirate.\n");
    let client = project.acp(json!({}));
    let result = client.call("session/new", json!({ "cwd": project.workspace(), "mcpServers": [] }));
    let session = &result["sessionId"];
    let ids = |options: &Value| -> Vec<String> {
        options.as_array().unwrap().iter().map(|option| option["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&result["configOptions"]), OPTIONS);
    for option in result["configOptions"].as_array().unwrap() {
        let values = option["options"].as_array().unwrap();
        assert!(values.iter().any(|value| value["value"] == option["currentValue"]), "{option}");
    }
    let set = |id: &str, value: Value| {
        client.request(
            "session/set_config_option",
            json!({ "sessionId": session, "configId": id, "value": value }),
        )
    };
    let answer = set("effort", json!("high")).unwrap();
    assert_eq!(ids(&answer["configOptions"]), OPTIONS);
    assert_eq!(answer["configOptions"][2]["currentValue"], "high");
    let answer = set("mode", json!("readonly")).unwrap();
    assert_eq!(answer["configOptions"][0]["currentValue"], "readonly");
    assert_eq!(answer["configOptions"][2]["currentValue"], "high");
    // Files of styles are read after the answer to `session/new`.
    let has_pirate = |options: &Value| {
        let values = options[3]["options"].as_array();
        values.is_some_and(|values| values.iter().any(|value| value["value"] == "Pirate"))
    };
    if !has_pirate(&result["configOptions"]) {
        let id = session.as_str().unwrap();
        client.wait_update(id, "the styles", |update| has_pirate(&update["configOptions"]));
    }
    let answer = set("style", json!("Pirate")).unwrap();
    assert_eq!(answer["configOptions"][3]["currentValue"], "Pirate");
    let answer = set("sandbox", json!("read-only")).unwrap();
    assert_eq!(answer["configOptions"][4]["currentValue"], "read-only");
    let answer = set("style", json!("auto")).unwrap();
    assert_eq!(answer["configOptions"][3]["currentValue"], "auto");
    let answer = set("sandbox", json!("default")).unwrap();
    assert_eq!(answer["configOptions"][4]["currentValue"], "default");
    for (id, value) in [
        ("effort", json!("endless")),
        ("color", json!("red")),
        ("mode", json!(true)),
        ("style", json!("Nobody")),
        ("sandbox", json!("castle")),
    ] {
        assert_eq!(set(id, value).unwrap_err().code, -32_602, "{id}");
    }
}

#[test]
fn the_command_context_is_answered_as_text_without_a_call() {
    let project = project();
    let (client, session) = opened(&project);
    let updates = client.run(&session, "/context");
    assert!(!text_of(&updates, "agent_message_chunk").is_empty());
    assert!(of_kind(&updates, "tool_call").is_empty());
}
