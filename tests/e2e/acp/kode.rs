//! The methods of kode-ls beyond the protocol: those that `initialize` announces, and nothing else.

use kode_e2e::{AcpClient, conforms};
use kode_protocol as wire;
use serde_json::{Value, json};

use super::{opened, project, text_of};

/// The hunks of a file in the answer to `_kode/edits/list`.
fn hunks(client: &AcpClient, session: &str) -> Vec<Value> {
    let listed = client.call("_kode/edits/list", json!({ "sessionId": session }));
    conforms::<wire::ListEditsResult>(&listed).unwrap();
    let files = listed["files"].as_array().unwrap().iter();
    files.flat_map(|file| file["hunks"].as_array().unwrap().clone()).collect()
}

/// Waits for the report of an act.
fn wait_resolved(client: &AcpClient, resolution: &Value) -> Value {
    client.wait_for("the report", |received| {
        received
            .of("_kode/edits/resolved")
            .map(|report| &report["params"])
            .find(|report| report["resolutionId"] == *resolution)
            .cloned()
    })
}

#[test]
fn the_methods_are_announced_and_others_are_unknown() {
    let project = project();
    let client = project.acp_as(&[]);
    let kode = client.initialize(json!({}))["agentCapabilities"]["_meta"]["kode"].clone();
    for flag in ["fork", "checkpoints", "review", "steer"] {
        assert_eq!(kode[flag], true, "{flag}");
    }
    let methods = kode["methods"].as_array().unwrap();
    assert_eq!(methods.len(), 8, "{methods:?}");
    for method in methods.iter().map(|method| method.as_str().unwrap()) {
        let wrong = client.request(method, json!({ "sessionId": 7 })).unwrap_err();
        assert_eq!((wrong.code, &wrong.data["kind"]), (-32_602, &json!("invalidParams")), "{method}");
        let params = json!({
            "sessionId": "ses_0", "title": "x", "checkpointId": "x", "what": "both", "action": "undo",
            "selection": { "type": "session", "sessionId": "ses_0" },
        });
        let unknown = client.request(method, params).unwrap_err();
        assert!(unknown.code == -32_002 && unknown.message.contains("ses_0"), "{method}: {unknown:?}");
    }
    for method in ["_kode/session/load", "_kode/edits/propose", "_kode/", "_zed/x", "agent/edits/list"] {
        assert_eq!(client.request(method, json!({})).unwrap_err().code, -32_601, "{method}");
    }
}

#[test]
fn hunks_are_listed_and_resolved_one_by_one_by_file_and_all() {
    let project = project();
    let (client, session) = opened(&project);
    client.set_mode(&session, "acceptEdits");
    client.run(&session, "edit");
    client.run(&session, "write");
    let listed = hunks(&client, &session);
    assert_eq!(listed.len(), 2, "{listed:#?}");
    let resolve = |action: &str, selection: Value| {
        let params = json!({ "action": action, "selection": selection });
        let result = client.call("_kode/edits/resolve", params);
        conforms::<wire::ResolveEditsResult>(&result).unwrap();
        wait_resolved(&client, &result["resolutions"][0]["resolutionId"])
    };
    let edited = listed.iter().find(|hunk| !hunk.to_string().contains("made")).unwrap();
    let one = json!({ "type": "hunks", "sessionId": session, "hunkIds": [edited["hunkId"]] });
    let report = resolve("undo", one);
    assert_eq!((&report["sessionId"], &report["resolved"]), (&json!(session), &json!([edited["hunkId"]])));
    assert_eq!(project.read("a.txt"), "one\ntwo\n");
    let file = json!({ "type": "file", "sessionId": session, "uri": project.uri("new.txt") });
    resolve("keep", file);
    assert_eq!(hunks(&client, &session), Vec::<Value>::new());
    client.run(&session, "edit");
    let kept = resolve("undo", json!({ "type": "session", "sessionId": session }));
    assert_eq!(project.read("a.txt"), "one\ntwo\n");
    let reverted = client
        .call("_kode/edits/revert", json!({ "sessionId": session, "resolutionId": kept["resolutionId"] }));
    conforms::<wire::Resolution>(&reverted).unwrap();
    wait_resolved(&client, &reverted["resolutionId"]);
    assert_eq!(project.read("a.txt"), "one\nTWO\n");
    let params = json!({ "action": "undo", "selection": { "type": "hunks", "sessionId": session, "hunkIds": ["hunk_0"] } });
    let unknown = client.request("_kode/edits/resolve", params).unwrap_err();
    assert!(unknown.message.contains("`_kode/edits/list` names the hunks"), "{unknown:?}");
}

#[test]
fn a_checkpoint_is_listed_and_restored() {
    let project = project();
    let (client, session) = opened(&project);
    client.set_mode(&session, "acceptEdits");
    client.run(&session, "edit");
    let listed = client.call("_kode/checkpoint/list", json!({ "sessionId": session }));
    conforms::<wire::ListCheckpointsResult>(&listed).unwrap();
    let checkpoint = &listed["checkpoints"][0]["checkpointId"];
    let params = |dry: bool| json!({ "sessionId": session, "checkpointId": checkpoint, "what": "both", "dryRun": dry });
    let preview = client.call("_kode/checkpoint/restore", params(true));
    conforms::<wire::RestoreCheckpointResult>(&preview).unwrap();
    assert_eq!(project.read("a.txt"), "one\nTWO\n");
    let begun = client.call("_kode/checkpoint/restore", params(false));
    wait_resolved(&client, &begun["resolutionId"]);
    assert_eq!(project.read("a.txt"), "one\ntwo\n");
    client.run(&session, "hello");
    let messages = project.model.last_request()["messages"].to_string();
    assert!(!messages.contains("Edited."), "{messages}");
}

#[test]
fn a_session_is_forked_named_and_weighed() {
    let project = project();
    let (client, session) = opened(&project);
    client.run(&session, "hello");
    let forked = client.call("_kode/session/fork", json!({ "sessionId": session }));
    conforms::<wire::NewSessionResult>(&forked).unwrap();
    let fork = forked["sessionId"].as_str().unwrap();
    assert_ne!(fork, session);
    client.call("session/load", json!({ "sessionId": fork, "cwd": project.workspace(), "mcpServers": [] }));
    let replayed = client.look(|received| kode_e2e::updates_of(&received.messages, fork));
    assert_eq!(text_of(&replayed, "agent_message_chunk"), "Hello to you.");
    client.run(fork, "read");
    let title = json!({ "sessionId": fork, "title": "The other way" });
    assert_eq!(client.call("_kode/session/rename", title), Value::Null);
    client.wait_update(fork, "the title", |update| update["title"] == "The other way");
    let empty =
        client.request("_kode/session/rename", json!({ "sessionId": fork, "title": " " })).unwrap_err();
    assert!(!empty.message.is_empty(), "{empty:?}");
    let context = client.call("_kode/context/get", json!({ "sessionId": session }));
    conforms::<wire::ContextUse>(&context).unwrap();
}

#[test]
fn a_session_that_another_process_writes_is_refused_as_a_prompt_is() {
    let project = project();
    let (writer, session) = opened(&project);
    writer.run(&session, "hello");
    let client = project.acp(json!({}));
    client
        .call("session/load", json!({ "sessionId": session, "cwd": project.workspace(), "mcpServers": [] }));
    let prompt = client.prompt(&session, "hello").unwrap_err();
    assert!(prompt.message.contains("/takeover"), "{prompt:?}");
    for (method, more) in [
        ("_kode/checkpoint/list", json!({})),
        ("_kode/checkpoint/restore", json!({ "checkpointId": "x", "what": "both" })),
        ("_kode/edits/list", json!({})),
        (
            "_kode/edits/resolve",
            json!({ "action": "undo", "selection": { "type": "session", "sessionId": session } }),
        ),
        ("_kode/edits/revert", json!({})),
        ("_kode/session/fork", json!({})),
        ("_kode/session/rename", json!({ "title": "x" })),
        ("_kode/context/get", json!({})),
    ] {
        let mut params = more;
        params["sessionId"] = json!(session);
        let refused = client.request(method, params).unwrap_err();
        assert_eq!((refused.code, &refused.message), (prompt.code, &prompt.message), "{method}");
    }
}

#[test]
fn reports_go_only_to_clients_that_use_the_methods() {
    let project = project();
    let (client, session) = opened(&project);
    client.set_mode(&session, "acceptEdits");
    client.run(&session, "edit");
    client.run(&session, "/undo 1");
    // The answer to the command comes behind the end of what it does.
    assert_eq!(project.read("a.txt"), "one\ntwo\n");
    assert_eq!(client.look(|received| received.of("_kode/edits/resolved").count()), 0);
    client.call("_kode/edits/list", json!({ "sessionId": session }));
    client.run(&session, "edit");
    client.run(&session, "/undo 1");
    client.wait_for("the report", |received| received.of("_kode/edits/resolved").next().cloned());
}
