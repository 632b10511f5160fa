//! Sessions: new, load, resume, list, delete, close.

use std::process::Command;

use kode_e2e::{AcpClient, Project, RpcError, Script, call, say, updates_of};
use serde_json::{Value, json};

use super::{of_kind, opened, project, streaming, text_of};

fn load(client: &AcpClient, project: &Project, session: &str) -> Result<Value, RpcError> {
    let params = json!({ "sessionId": session, "cwd": project.workspace(), "mcpServers": [] });
    client.request("session/load", params)
}

fn list(client: &AcpClient, params: Value) -> Vec<String> {
    let listed = client.call("session/list", params);
    let sessions = listed["sessions"].as_array().unwrap();
    sessions.iter().map(|one| one["sessionId"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn session_001_and_002_sessions_have_ids_of_their_own_and_unknown_ones_are_refused() {
    let project = project();
    let (client, first) = opened(&project);
    let second = client.new_session();
    assert_ne!(first, second);
    // info_unknownsession: every method names the session it does not know.
    for (method, params) in [
        ("session/prompt", json!({ "sessionId": "ses_0", "prompt": [{ "type": "text", "text": "x" }] })),
        ("session/set_mode", json!({ "sessionId": "ses_0", "modeId": "plan" })),
        ("session/close", json!({ "sessionId": "ses_0" })),
        ("session/load", json!({ "sessionId": "ses_0", "cwd": project.workspace(), "mcpServers": [] })),
    ] {
        let error = client.request(method, params).unwrap_err();
        assert_eq!(error.code, -32_002, "{method}: {error:?}");
        assert!(error.message.contains("ses_0"), "{method}: {error:?}");
    }
    for cwd in [json!("relative"), json!("/no/such/folder")] {
        let refused = client.request("session/new", json!({ "cwd": cwd, "mcpServers": [] })).unwrap_err();
        assert_eq!(refused.code, -32_602, "{cwd}");
    }
}

#[test]
fn load_001_to_003_the_replay_is_whole_and_before_the_answer_and_nothing_comes_after() {
    let project = project();
    let (client, session) = opened(&project);
    client.set_mode(&session, "acceptEdits");
    client.run(&session, "edit");
    client.run(&session, "plan");
    drop(client);

    let client = project.acp(json!({}));
    let params = json!({ "sessionId": session, "cwd": project.workspace(), "mcpServers": [] });
    let id = client.send_request("session/load", params);
    let result = client.await_answer(id).unwrap();
    assert!(result.is_object());
    assert_eq!(result["modes"]["currentModeId"], "acceptEdits");
    client.call("session/list", json!({}));
    let (before, after) = client.look(|received| {
        let (before, after) = received.around_answer(id).unwrap();
        (updates_of(before, &session), updates_of(after, &session))
    });
    assert_eq!(after, Vec::<Value>::new());
    assert_eq!(text_of(&before, "user_message_chunk"), "editplan");
    assert_eq!(text_of(&before, "agent_message_chunk"), "Edited.Planned.");
    let calls = of_kind(&before, "tool_call");
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|call| call["status"] == "completed"), "{calls:#?}");
    assert_eq!(calls[1]["content"][0]["newText"], "one\nTWO\n");
    assert_eq!(of_kind(&before, "plan").len(), 1);
    assert_eq!(of_kind(&before, "available_commands_update").len(), 1);
    client.run(&session, "hello");
}

#[test]
fn resume_001_and_002_a_session_continues_without_its_transcript() {
    let project = project();
    let (client, session) = opened(&project);
    client.run(&session, "hello");
    drop(client);
    let client = project.acp(json!({}));
    let params = json!({ "sessionId": session, "cwd": project.workspace(), "mcpServers": [] });
    let result = client.call("session/resume", params);
    assert_eq!(result["modes"]["currentModeId"], "default");
    let seen = client.look(|received| updates_of(&received.messages, &session));
    assert!(of_kind(&seen, "agent_message_chunk").is_empty(), "{seen:#?}");
    client.run(&session, "read");
    let messages = project.model.last_request()["messages"].to_string();
    assert!(messages.contains("Hello to you."), "{messages}");
    let unknown = json!({ "sessionId": "ses_0", "cwd": project.workspace() });
    assert_eq!(client.request("session/resume", unknown).unwrap_err().code, -32_002);
}

#[test]
fn list_001_and_002_sessions_are_listed_by_folder_and_in_pages() {
    let project = project();
    let client = project.acp(json!({}));
    let mut made: Vec<String> = (0..53).map(|_| client.new_session()).collect();
    let first = client.call("session/list", json!({ "cwd": project.workspace() }));
    let one = &first["sessions"][0];
    assert_eq!(one["cwd"], json!(project.workspace()));
    assert!(one["updatedAt"].is_string());
    let next = client.call(
        "session/list",
        json!({ "cwd": project.workspace(), "cursor": first["nextCursor"].as_str().unwrap() }),
    );
    assert!(next.get("nextCursor").is_none_or(Value::is_null), "{next}");
    let pages = [&first, &next];
    let mut listed: Vec<String> = pages
        .iter()
        .flat_map(|page| page["sessions"].as_array().unwrap())
        .map(|one| one["sessionId"].as_str().unwrap().to_owned())
        .collect();
    listed.sort();
    made.sort();
    assert_eq!(listed, made);
    assert!(list(&client, json!({ "cwd": "/" })).is_empty());
    assert_eq!(client.request("session/list", json!({ "cursor": "x" })).unwrap_err().code, -32_602);
}

#[test]
fn sessions_without_a_prompt_are_listed_as_long_as_they_are_open() {
    let project = project();
    let client = project.acp(json!({}));
    let used = client.new_session();
    assert_eq!(client.prompt(&used, "say it").unwrap()["stopReason"], "end_turn");
    // More than a page of them, all used later.
    let unused: Vec<String> = (0..53).map(|_| client.new_session()).collect();
    assert!(list(&client, json!({})).contains(&unused[52]));
    assert_eq!(client.close(), 0);
    let next = project.acp(json!({}));
    assert_eq!(list(&next, json!({})), [used]);
}

#[test]
fn delete_001_and_002_a_deleted_session_is_gone_and_an_unknown_one_is_gone_already() {
    let project = project();
    let (client, session) = opened(&project);
    client.run(&session, "hello");
    let running = client.new_session();
    let id = client.send_prompt(&running, "hold");
    project.model.wait_until_held("hold");
    for one in [&session, &running, &session, &"ses_0".to_owned()] {
        assert_eq!(client.call("session/delete", json!({ "sessionId": one })), json!({}));
    }
    assert_eq!(client.await_answer(id).unwrap()["stopReason"], "cancelled");
    assert!(list(&client, json!({})).is_empty());
    assert_eq!(load(&client, &project, &session).unwrap_err().code, -32_002);
}

#[test]
fn close_001_and_002_a_closed_session_ends_its_turn_and_can_be_loaded_again() {
    let project = project();
    let (client, session) = opened(&project);
    let id = client.send_prompt(&session, "hold");
    streaming(&client, &session);
    assert_eq!(client.call("session/close", json!({ "sessionId": session })), json!({}));
    assert_eq!(client.await_answer(id).unwrap()["stopReason"], "cancelled");
    assert_eq!(client.prompt(&session, "hello").unwrap_err().code, -32_002);
    // Another process has it meanwhile.
    let other = project.acp(json!({}));
    load(&other, &project, &session).unwrap();
    other.run(&session, "hello");
}

#[test]
fn adddirs_001_files_of_additional_folders_are_the_session_s() {
    let write = json!({ "file_path": "{{cwd}}/../beside/b.txt", "content": "made\n" });
    let project = Project::new(&Script::new([call("Write", write), say("Written.")]));
    let beside = project.outside().join("beside");
    std::fs::create_dir(&beside).unwrap();
    let client = project.acp(json!({}));
    let params = json!({
        "cwd": project.workspace(), "mcpServers": [], "additionalDirectories": [beside],
    });
    let session = client.call("session/new", params)["sessionId"].as_str().unwrap().to_owned();
    client.set_mode(&session, "acceptEdits");
    client.run(&session, "write it");
    assert_eq!(std::fs::read_to_string(beside.join("b.txt")).unwrap(), "made\n");
}

#[test]
fn a_killed_process_continues_by_load_and_asks_again() {
    let project = project();
    let (client, session) = opened(&project);
    client.run(&session, "hello");
    let _running = client.send_prompt(&session, "run");
    let first = client.wait_request("session/request_permission", 0);
    client.kill();
    std::mem::forget(client);

    let client = project.acp(json!({}));
    load(&client, &project, &session).unwrap();
    let again = client.wait_request("session/request_permission", 0);
    assert_eq!(again["params"]["toolCall"]["title"], first["params"]["toolCall"]["title"]);
    client.select(&again, "allow");
    client.wait_update(&session, "the end of the turn", |update| {
        update["sessionUpdate"] == "agent_message_chunk" && update["content"]["text"] == "Ran."
    });
    client.run(&session, "hello");
}

#[test]
fn a_session_of_another_process_is_followed_and_taken_over() {
    let project = project();
    let (first, session) = opened(&project);
    first.run(&session, "hello");
    let second = project.acp(json!({}));
    load(&second, &project, &session).unwrap();
    let refused = second.prompt(&session, "hello").unwrap_err();
    assert!(refused.message.contains("/takeover"), "{refused:?}");
    first.run(&session, "think");
    second.wait_update(&session, "the prompt of the other window", |update| {
        update["sessionUpdate"] == "user_message_chunk" && update["content"]["text"] == "think"
    });
    second.run(&session, "/takeover");
    second.run(&session, "hello");
    let refused = first.prompt(&session, "hello").unwrap_err();
    assert!(refused.message.contains("/takeover"), "{refused:?}");
}

#[test]
fn sixty_four_sessions_run_on_one_connection() {
    let project = project();
    let client = project.acp(json!({}));
    let sessions: Vec<String> = (0..64).map(|_| client.new_session()).collect();
    let prompts: Vec<i64> = sessions.iter().map(|session| client.send_prompt(session, "hello")).collect();
    for id in prompts {
        assert_eq!(client.await_answer(id).unwrap()["stopReason"], "end_turn");
    }
    for session in &sessions {
        let updates = client.look(|received| updates_of(&received.messages, session));
        assert_eq!(text_of(&updates, "agent_message_chunk"), "Hello to you.", "{session}");
    }
}

#[test]
fn a_client_s_mcp_server_offers_its_tools_to_the_session_it_is_given_with() {
    let project = Project::new(&Script::new([say("So it is."), say("So it is.")]));
    let server = std::env::current_exe().unwrap();
    let server = server
        .ancestors()
        .find(|folder| folder.ends_with("deps"))
        .unwrap()
        .with_file_name("fault-mcp-server");
    assert!(Command::new(&server).arg("--help").output().is_ok(), "{}", server.display());
    let client = project.acp(json!({}));
    let given = json!([{ "name": "given", "command": server, "args": [], "env": [] }]);
    let params = json!({ "cwd": project.workspace(), "mcpServers": given });
    let session = client.call("session/new", params)["sessionId"].as_str().unwrap().to_owned();
    let updates = client.run(&session, "/mcp");
    assert!(text_of(&updates, "agent_message_chunk").contains("given"), "{updates:#?}");
    let other = client.new_session();
    let updates = client.run(&other, "/mcp");
    assert!(!text_of(&updates, "agent_message_chunk").contains("given"), "{updates:#?}");
}

#[test]
fn a_session_that_cannot_be_stored_says_so() {
    let project = project();
    std::fs::create_dir_all(project.home()).unwrap();
    std::fs::write(project.home().join("sessions"), "").unwrap();
    let (client, session) = opened(&project);
    client.wait_update(&session, "the notice", |update| {
        update.to_string().contains("This session is not stored")
    });
    client.run(&session, "hello");
}
