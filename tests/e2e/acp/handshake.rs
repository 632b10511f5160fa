//! The transport, the envelope of messages, the handshake and authentication.

use kode_e2e::{Project, Script, Step};
use serde_json::{Value, json};

use super::{opened, project};

#[test]
fn transport_001_and_002_each_message_is_a_line_and_stdout_has_nothing_else() {
    let project = project();
    let (client, session) = opened(&project);
    // The connection of the test fails on a line that is no message. Blank lines and CRLF are accepted.
    client.send_bytes(b"\n\r\n".to_vec());
    client.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":900,\"method\":\"session/list\"}\r\n".to_vec());
    client.await_answer(900).unwrap();
    client.run(&session, "hello");
    // stderr_001: logs are no messages, and a session at work writes none that a client must show.
    assert_eq!(client.stderr(), "");
}

#[test]
fn jsonrpc_001_to_005_invalid_messages_get_the_errors_of_the_protocol() {
    let project = project();
    let (client, session) = opened(&project);
    for (line, code) in
        [("{\"jsonrpc\":", -32_700), ("[]", -32_600), ("{\"jsonrpc\":\"2.0\",\"foo\":1}", -32_600)]
    {
        let strays = client.look(|received| received.strays.len());
        client.send_bytes(format!("{line}\n").into_bytes());
        let answer = client.wait_for("the error", |received| received.strays.get(strays).cloned());
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(code)), "{line}");
    }
    let unknown = client.request("session/unknown", json!({})).unwrap_err();
    assert_eq!(unknown.code, -32_601);
    // ext_001: an extension that is not served is a method that is not known.
    assert_eq!(client.request("_vendor/unknown", json!({})).unwrap_err().code, -32_601);
    let params = client.request("session/new", json!({ "cwd": 7, "mcpServers": [] })).unwrap_err();
    assert_eq!(params.code, -32_602);
    assert!(params.message.contains("cwd"), "{}", params.message);
    client.notify("_vendor/notification", json!({}));
    client.notify("session/cancel", json!({ "sessionId": "ses_unknown" }));
    client.run(&session, "hello");
}

#[test]
fn init_001_to_004_version_1_and_what_is_served_is_announced() {
    let project = project();
    let client = project.acp_as(&[]);
    let early = client.request("session/new", json!({ "cwd": project.workspace(), "mcpServers": [] }));
    assert_eq!(early.unwrap_err().code, -32_600, "nothing is served before initialize");
    let params = json!({ "protocolVersion": 65_535, "clientCapabilities": {}, "unknownField": true });
    let result = client.request("initialize", params).unwrap();
    // init_003: the version that the client asks for is not echoed.
    assert_eq!(result["protocolVersion"], 1);
    assert_eq!(result["agentInfo"]["name"], "kode-ls");
    assert!(result["agentInfo"]["version"].is_string());
    let capabilities = &result["agentCapabilities"];
    assert_eq!(capabilities["loadSession"], true);
    let prompts = json!({ "image": true, "audio": false, "embeddedContext": true });
    assert_eq!(capabilities["promptCapabilities"], prompts);
    for name in ["list", "resume", "close", "delete", "additionalDirectories"] {
        assert!(capabilities["sessionCapabilities"][name].is_object(), "{name}: {capabilities}");
    }
    // schema_002: the answer has no fields beside those of the protocol.
    let known = ["protocolVersion", "agentCapabilities", "authMethods", "agentInfo", "_meta"];
    assert!(result.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{result}");
    let again = client.request("initialize", json!({ "protocolVersion": 1 })).unwrap_err();
    assert_eq!(again.code, -32_600);
}

#[test]
fn auth_001_and_005_the_terminal_is_offered_to_clients_that_have_one() {
    let project = project();
    let plain = project.acp_as(&[]).initialize(json!({}));
    let terminal = project.acp_as(&[]).initialize(json!({ "auth": { "terminal": true } }));
    assert_eq!(plain["authMethods"].as_array().unwrap().len(), 1);
    assert_eq!(plain["authMethods"][0]["id"], "models");
    let setup = &terminal["authMethods"][1];
    assert_eq!((&setup["type"], &setup["args"]), (&json!("terminal"), &json!(["setup"])));
}

#[test]
fn auth_002_to_004_an_unknown_method_is_refused_and_a_logout_lasts_until_the_next_login() {
    let project = project();
    let client = project.acp(json!({}));
    let unknown = client.request("authenticate", json!({ "methodId": "oauth" })).unwrap_err();
    assert_eq!(unknown.code, -32_602);
    assert_eq!(client.call("authenticate", json!({ "methodId": "models" })), json!({}));
    assert_eq!(client.call("logout", json!({})), json!({}));
    let new = || client.request("session/new", json!({ "cwd": project.workspace(), "mcpServers": [] }));
    let refused = new().unwrap_err();
    assert_eq!(refused.code, -32_000);
    assert!(refused.message.contains("models"), "{}", refused.message);
    client.call("authenticate", json!({ "methodId": "models" }));
    new().unwrap();
}

#[test]
fn auth_003_without_a_model_the_error_is_one_line_that_names_what_is_missing() {
    let project = Project::new(&Script::new(Vec::<Step>::new()));
    let client = project.acp_as(&[("ANTHROPIC_API_KEY", ""), ("ANTHROPIC_BASE_URL", "")]);
    client.initialize(json!({}));
    let missing = client.request("authenticate", json!({ "methodId": "models" })).unwrap_err();
    assert_eq!(missing.code, -32_000);
    assert!(missing.message.contains("API_KEY") && !missing.message.contains('\n'), "{}", missing.message);
}

#[test]
fn shutdown_001_the_process_ends_in_order_when_its_input_ends() {
    let project = project();
    let (client, session) = opened(&project);
    let _running = client.send_prompt(&session, "hold");
    project.model.wait_until_held("hold");
    assert_eq!(client.close(), 0);
    // The turn that ran is in the stored session.
    let next = project.acp(json!({}));
    let listed = next.call("session/list", json!({ "cwd": project.workspace() }));
    assert_eq!(listed["sessions"][0]["sessionId"], session.as_str());
}
