//! Prompts, their updates and their ends.

use kode_e2e::{Reply, updates_of};
use serde_json::json;

use super::{COMMAND, of_kind, opened, project, streaming, text_of};

#[test]
fn prompt_001_and_002_the_answer_is_streamed_before_the_stop_reason() {
    let project = project();
    let (client, session) = opened(&project);
    let updates = client.run(&session, "hello");
    assert_eq!(text_of(&updates, "agent_message_chunk"), "Hello to you.");
    assert!(of_kind(&updates, "user_message_chunk").is_empty(), "the client shows its own prompt");
    let usage = of_kind(&updates, "usage_update");
    assert!(usage[0]["size"].as_u64().unwrap() > usage[0]["used"].as_u64().unwrap());
    let thoughts = client.run(&session, "think");
    assert_eq!(text_of(&thoughts, "agent_thought_chunk"), "Let me see.");
    assert_eq!(text_of(&thoughts, "agent_message_chunk"), "Done.");
}

#[test]
fn a_new_session_reports_its_commands_and_its_title() {
    let project = project();
    let (client, session) = opened(&project);
    let commands = client.wait_update(&session, "the commands", |update| {
        update["sessionUpdate"] == "available_commands_update"
    });
    let names: Vec<_> =
        commands["availableCommands"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    for name in ["rewind", "undo", "fork", "context", "review", "trust", "takeover"] {
        assert!(names.contains(&&json!(name)), "{name} in {names:?}");
    }
    client.run(&session, "hello");
    client.wait_update(&session, "the title", |update| {
        update["sessionUpdate"] == "session_info_update" && update["title"].is_string()
    });
}

#[test]
fn an_edit_is_a_tool_call_with_its_diff_and_its_place() {
    let project = project();
    let (client, session) = opened(&project);
    client.set_mode(&session, "acceptEdits");
    let updates = client.run(&session, "edit");
    let announced = of_kind(&updates, "tool_call");
    assert_eq!(announced.len(), 2, "{updates:#?}");
    assert_eq!((&announced[0]["kind"], &announced[1]["kind"]), (&json!("read"), &json!("edit")));
    let id = &announced[1]["toolCallId"];
    let last = of_kind(&updates, "tool_call_update")
        .into_iter()
        .rfind(|update| update["toolCallId"] == *id)
        .unwrap();
    assert_eq!(last["status"], "completed");
    assert_eq!(last["content"][0]["type"], "diff");
    assert_eq!(last["content"][0]["path"], json!(project.path("a.txt")));
    assert_eq!(last["content"][0]["oldText"], "one\ntwo\n");
    assert_eq!(last["content"][0]["newText"], "one\nTWO\n");
    assert_eq!(last["locations"], json!([{ "path": project.path("a.txt") }]));
    assert_eq!(project.read("a.txt"), "one\nTWO\n");
}

#[test]
fn a_command_is_titled_by_itself_and_shows_its_output() {
    let project = project();
    let (client, session) = opened(&project);
    client.set_mode(&session, "bypassPermissions");
    let updates = client.run(&session, "run");
    assert_eq!(of_kind(&updates, "tool_call")[0]["kind"], "execute");
    let last = *of_kind(&updates, "tool_call_update").last().unwrap();
    assert_eq!(last["title"], COMMAND);
    assert_eq!(last["status"], "completed");
    assert!(last["content"][0]["content"]["text"].as_str().unwrap().contains("from-the-shell"), "{last}");
    assert_eq!(last["rawOutput"]["exitCode"], 0);
}

#[test]
fn todos_are_a_plan() {
    let project = project();
    let (client, session) = opened(&project);
    let updates = client.run(&session, "plan");
    let plan = of_kind(&updates, "plan")[0];
    let shown: Vec<_> =
        plan["entries"].as_array().unwrap().iter().map(|one| (&one["content"], &one["status"])).collect();
    assert_eq!(shown, [(&json!("Read"), &json!("completed")), (&json!("Write"), &json!("in_progress"))]);
}

#[test]
fn cancel_001_and_002_a_cancelled_turn_ends_with_its_calls_and_nothing_comes_after() {
    let project = project();
    let (client, session) = opened(&project);
    let id = client.send_prompt(&session, "run");
    let request = client.wait_request("session/request_permission", 0);
    client.notify("session/cancel", json!({ "sessionId": session }));
    client.answer(&request, json!({ "outcome": { "outcome": "cancelled" } }));
    assert_eq!(client.await_answer(id).unwrap()["stopReason"], "cancelled");
    // Another request and its answer: whatever followed the first answer is there by then.
    client.call("session/list", json!({}));
    let (until, after) = client.look(|received| {
        let (until, after) = received.around_answer(id).unwrap();
        (updates_of(until, &session), updates_of(after, &session))
    });
    assert_eq!(after, Vec::<serde_json::Value>::new());
    let calls: Vec<_> =
        of_kind(&until, "tool_call").into_iter().chain(of_kind(&until, "tool_call_update")).collect();
    assert_eq!(calls.last().unwrap()["status"], "failed", "{calls:#?}");
    client.run(&session, "hello");
}

#[test]
fn a_cancel_ends_a_streamed_answer_and_the_prompts_that_wait() {
    let project = project();
    let (client, session) = opened(&project);
    let (first, second) = (client.send_prompt(&session, "hold"), client.send_prompt(&session, "hello"));
    streaming(&client, &session);
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.await_answer(first).unwrap()["stopReason"], "cancelled");
    assert_eq!(client.await_answer(second).unwrap()["stopReason"], "cancelled");
    client.run(&session, "hello");
}

#[test]
fn a_cancelled_request_is_answered_with_its_error() {
    let project = project();
    let (client, session) = opened(&project);
    let (first, second) = (client.send_prompt(&session, "hold"), client.send_prompt(&session, "hello"));
    project.model.wait_until_held("hold");
    client.notify("$/cancel_request", json!({ "requestId": second }));
    assert_eq!(client.await_answer(second).unwrap_err().code, -32_800);
    client.notify("$/cancel_request", json!({ "requestId": first }));
    assert_eq!(client.await_answer(first).unwrap_err().code, -32_800);
}

#[test]
fn a_second_prompt_waits_and_is_answered_at_its_own_end() {
    let project = project();
    let (client, session) = opened(&project);
    let (first, second) = (client.send_prompt(&session, "hold"), client.send_prompt(&session, "hello"));
    project.model.wait_until_held("hold");
    assert!(!client.is_answered(second));
    project.model.release("hold");
    client.await_answer(first).unwrap();
    client.await_answer(second).unwrap();
    client.look(|received| {
        let (until, after) = received.around_answer(first).unwrap();
        assert_eq!(text_of(&updates_of(until, &session), "agent_message_chunk"), "First half, second half.");
        assert_eq!(text_of(&updates_of(after, &session), "agent_message_chunk"), "Hello to you.");
    });
}

#[test]
fn a_prompt_steers_the_running_turn_when_it_says_so() {
    let project = project();
    let (client, session) = opened(&project);
    let first = client.send_prompt(&session, "run");
    let request = client.wait_request("session/request_permission", 0);
    let steering = client.send_request(
        "session/prompt",
        json!({
            "sessionId": session, "prompt": [{ "type": "text", "text": "and be brief" }],
            "_meta": { "kode": { "delivery": "steer" } },
        }),
    );
    client.call("session/list", json!({}));
    client.select(&request, "allow");
    assert_eq!(client.await_answer(first).unwrap()["stopReason"], "end_turn");
    assert_eq!(client.await_answer(steering).unwrap()["stopReason"], "end_turn");
    let requests = project.model.requests();
    let last = requests.iter().rfind(|request| request["messages"].to_string().contains("and be brief"));
    assert!(
        last.is_some_and(|request| request["messages"].to_string().contains("from-the-shell")),
        "{requests:#?}"
    );
}

#[test]
fn error_001_a_failed_turn_is_an_error_of_one_line() {
    let project = project();
    let client = project.acp_as(&[("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")]);
    client.initialize(json!({}));
    let session = client.new_session();
    let failed = client.prompt(&session, "hello").unwrap_err();
    assert_eq!(failed.code, -32_603);
    assert!(!failed.message.contains('\n') && !failed.message.is_empty(), "{failed:?}");
}

#[test]
fn promptcap_001_to_003_text_images_links_and_resources_reach_the_model_and_audio_is_refused() {
    const PIXEL: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let project = project();
    let (client, session) = opened(&project);
    let id = client.send_blocks(
        &session,
        json!([
            { "type": "text", "text": "hello " },
            { "type": "image", "mimeType": "image/png", "data": PIXEL },
            { "type": "resource_link", "name": "a.txt", "uri": project.uri("a.txt") },
            { "type": "resource", "resource": { "uri": "zed:///thread/1", "text": "from another thread" } },
        ]),
    );
    client.await_answer(id).unwrap();
    let request = project.model.last_request()["messages"].to_string();
    for expected in [PIXEL, "one\\n", "from another thread", "zed:///thread/1"] {
        assert!(request.contains(expected), "{expected} in {request}");
    }
    let audio =
        client.send_blocks(&session, json!([{ "type": "audio", "data": "", "mimeType": "audio/wav" }]));
    let refused = client.await_answer(audio).unwrap_err();
    assert_eq!(refused.code, -32_602);
    assert!(refused.message.contains("audio"), "{}", refused.message);
}

#[test]
fn clientcap_001_to_003_a_client_that_offers_nothing_is_asked_for_permissions_alone() {
    let project = project();
    let (client, session) = opened(&project);
    client.permit("allow");
    client.on_request("fs/read_text_file", |_, _| Reply::Error(-32_601, "not offered".into()));
    for prompt in ["edit", "write", "run", "ask"] {
        let before = client.look(|received| received.messages.len());
        client.await_answer(client.send_prompt(&session, prompt)).unwrap();
        client.look(|received| {
            let requests = received.messages[before..].iter().filter(|message| message.get("id").is_some());
            for request in requests {
                assert_eq!(request["method"], "session/request_permission", "{prompt}: {request}");
            }
        });
    }
    assert_eq!((project.read("a.txt").as_str(), project.read("new.txt").as_str()), ("one\nTWO\n", "made\n"));
}

#[test]
fn meta_001_fields_of_other_products_are_ignored() {
    let project = project();
    let (client, session) = opened(&project);
    let params = json!({
        "sessionId": session, "prompt": [{ "type": "text", "text": "hello", "_meta": { "x": 1 } }],
        "_meta": { "vendor": { "a": [1, 2] } },
    });
    assert_eq!(client.call("session/prompt", params)["stopReason"], "end_turn");
}

#[test]
fn a_command_of_the_session_is_answered_without_the_model() {
    let project = project();
    let (client, session) = opened(&project);
    let updates = client.run(&session, "/status");
    assert!(text_of(&updates, "agent_message_chunk").contains(&session), "{updates:#?}");
    assert!(project.model.requests().is_empty());
}

#[test]
fn undo_restores_the_files_before_the_prompt_is_answered() {
    let project = project();
    let (client, session) = opened(&project);
    client.set_mode(&session, "acceptEdits");
    client.run(&session, "edit");
    let listed = client.run(&session, "/rewind");
    assert!(text_of(&listed, "agent_message_chunk").contains("edit"), "{listed:#?}");
    client.run(&session, "/undo 1");
    assert_eq!(project.read("a.txt"), "one\ntwo\n");
}

#[test]
fn a_command_is_one_whatever_the_client_adds_to_it() {
    let project = project();
    let (client, session) = opened(&project);
    client.set_mode(&session, "acceptEdits");
    client.run(&session, "edit");
    let requests = project.model.requests().len();
    let link = json!({ "type": "resource_link", "name": "a.txt", "uri": format!("file://{}", project.path("a.txt").display()) });
    let environment = json!({ "type": "text", "text": "<environment>x</environment>" });
    let id = client.send_blocks(&session, json!([{ "type": "text", "text": "/undo 1" }, environment, link]));
    client.await_answer(id).unwrap();
    assert_eq!(project.read("a.txt"), "one\ntwo\n");
    assert_eq!(project.model.requests().len(), requests, "the model is not asked");
}
