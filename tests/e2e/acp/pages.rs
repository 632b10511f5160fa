//! Pages in a browser: those that MCP servers ask for, and the sign-in to one.

use kode_e2e::{AcpClient, Project, Script, call, say};
use serde_json::{Value, json};

#[cfg(unix)]
use super::text_of;
#[cfg(unix)]
use crate::mcp::auth;
use crate::mcp::faulty;
#[cfg(unix)]
use crate::mcp::pages::files_with;
use crate::mcp::pages::visit;

/// A project without a sandbox whose model has a server ask for a page.
fn project() -> (Project, String) {
    let script = Script::default()
        .when("^page", [call("mcp__fault__page", json!({})), say("Done.")])
        .when("^toll", [call("mcp__fault__toll", json!({})), say("Done.")])
        .otherwise([say("Hello.")]);
    let project = Project::new(&script);
    let home = project.outside().join("user");
    std::fs::create_dir_all(home.join(".kode-ls")).unwrap();
    let settings = json!({ "sandbox": { "enabled": false }, "permissions": { "allow": ["mcp__fault"] } });
    std::fs::write(home.join(".kode-ls/settings.json"), settings.to_string()).unwrap();
    (project, home.to_str().unwrap().to_owned())
}

/// A client with these capabilities, with a session that has this server.
fn opened((project, home): &(Project, String), capabilities: Value, server: Value) -> (AcpClient, String) {
    let client = project.acp_as(&[("KODE_LS_MCP_WAIT", "30000"), ("HOME", home)]);
    client.initialize(capabilities);
    let params = json!({ "cwd": project.workspace(), "mcpServers": [server] });
    let session = client.call("session/new", params)["sessionId"].as_str().unwrap().to_owned();
    (client, session)
}

fn fault() -> Value {
    json!({ "name": "fault", "command": faulty(), "args": [""], "env": [] })
}

fn with_pages() -> Value {
    json!({ "elicitation": { "url": {} } })
}

/// Waits for the notification that a page is done.
fn wait_complete(client: &AcpClient) -> Value {
    let complete =
        client.wait_for("the report", |received| received.of("elicitation/complete").next().cloned());
    assert!(complete.get("id").is_none(), "{complete}");
    complete["params"]["elicitationId"].clone()
}

#[test]
fn a_client_that_opens_pages_gets_the_address_and_hears_when_the_page_is_done() {
    let project = project();
    let (client, session) = opened(&project, with_pages(), fault());
    let id = client.send_prompt(&session, "page");
    let request = client.wait_request("elicitation/create", 0);
    let params = &request["params"];
    assert_eq!((&params["mode"], &params["sessionId"]), (&json!("url"), &json!(session)));
    assert!(params["toolCallId"].is_string(), "{params}");
    let address = params["url"].as_str().unwrap().to_owned();
    let message = params["message"].as_str().unwrap();
    assert!(message.contains(&format!("Address: {address}\nHost: 127.0.0.1\n")), "{message}");
    client.answer(&request, json!({ "action": "accept" }));
    client.await_answer(id).unwrap();
    assert_eq!(project.0.model.last_results(), [(r#"{"action":"accept"}"#.to_owned(), false)]);
    visit(&address);
    assert_eq!(wait_complete(&client), params["elicitationId"]);
}

#[test]
fn a_client_that_opens_no_pages_asks_for_a_permission_that_shows_the_address() {
    let project = project();
    let (client, session) = opened(&project, json!({ "elicitation": { "form": {} } }), fault());
    let id = client.send_prompt(&session, "page");
    let request = client.wait_request("session/request_permission", 0);
    let title = request["params"]["toolCall"]["title"].as_str().unwrap();
    assert!(
        title.contains("\nAddress: http://127.0.0.1:") && title.contains("\nHost: 127.0.0.1\n"),
        "{title}"
    );
    let options = request["params"]["options"].as_array().unwrap();
    let shown: Vec<_> = options.iter().map(|option| (&option["name"], &option["kind"])).collect();
    assert_eq!(
        shown,
        [
            (&json!("Do not open it"), &json!("reject_once")),
            (&json!("I open the address in a browser"), &json!("allow_once")),
        ]
    );
    client.select(&request, options[1]["optionId"].as_str().unwrap());
    client.await_answer(id).unwrap();
    assert_eq!(project.0.model.last_results(), [(r#"{"action":"accept"}"#.to_owned(), false)]);
    let id = client.send_prompt(&session, "page");
    client.select(&client.wait_request("session/request_permission", 1), "0");
    client.await_answer(id).unwrap();
    assert_eq!(project.0.model.last_results(), [(r#"{"action":"decline"}"#.to_owned(), false)]);
}

#[test]
fn a_call_that_needs_a_page_first_goes_on_when_the_page_is_done() {
    let project = project();
    let (client, session) = opened(&project, with_pages(), fault());
    let id = client.send_prompt(&session, "toll");
    let request = client.wait_request("elicitation/create", 0);
    client.answer(&request, json!({ "action": "accept" }));
    visit(request["params"]["url"].as_str().unwrap());
    assert_eq!(wait_complete(&client), request["params"]["elicitationId"]);
    client.await_answer(id).unwrap();
    assert_eq!(project.0.model.last_results(), [("the toll is paid".to_owned(), false)]);
}

#[test]
fn a_page_waits_as_long_as_the_turn() {
    let project = project();
    let (client, session) = opened(&project, with_pages(), fault());
    let id = client.send_prompt(&session, "page");
    let request = client.wait_request("elicitation/create", 0);
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.await_answer(id).unwrap()["stopReason"], "cancelled");
    client.wait_for("the end of the request", |received| {
        received.of("$/cancel_request").find(|cancel| cancel["params"]["requestId"] == request["id"]).cloned()
    });
    client.run(&session, "hello");
}

#[cfg(unix)]
#[test]
fn a_user_signs_in_to_a_server_by_a_command() {
    let project = project();
    let server =
        json!({ "type": "http", "name": "closed", "url": format!("{}/mcp", auth::serve()), "headers": [] });
    let (client, session) = opened(&project, with_pages(), server);
    client.run(&session, "hello");
    let id = client.send_prompt(&session, "/mcp login closed");
    let request = client.wait_request("elicitation/create", 0);
    let page = request["params"]["url"].as_str().unwrap().to_owned();
    assert!(page.contains("/authorize?"), "{page}");
    assert!(
        request["params"]["message"].as_str().unwrap().starts_with("Sign in to the MCP server `closed`?\n")
    );
    client.answer(&request, json!({ "action": "accept" }));
    auth::say_yes(&page);
    assert_eq!(wait_complete(&client), request["params"]["elicitationId"]);
    assert_eq!(client.await_answer(id).unwrap()["stopReason"], "end_turn");
    let said = client.look(|received| kode_e2e::updates_of(&received.messages, &session));
    assert!(text_of(&said, "agent_message_chunk").contains("You are signed in to `closed`."), "{said:?}");
    client.close();
    // The address has a secret of the sign-in in it.
    let state = url::Url::parse(&page)
        .unwrap()
        .query_pairs()
        .find(|(name, _)| name == "state")
        .unwrap()
        .1
        .into_owned();
    assert_eq!(files_with(&project.0.home(), &state), Vec::<std::path::PathBuf>::new());
}

#[cfg(unix)]
#[test]
fn a_sign_in_is_refused_and_cancelled() {
    let project = project();
    let server =
        json!({ "type": "http", "name": "closed", "url": format!("{}/mcp", auth::serve()), "headers": [] });
    let (client, session) = opened(&project, json!({}), server);
    client.run(&session, "hello");
    let id = client.send_prompt(&session, "/mcp login closed");
    let request = client.wait_request("session/request_permission", 0);
    let title = request["params"]["toolCall"]["title"].as_str().unwrap();
    assert!(title.contains("/authorize?") && title.contains("\nHost: 127.0.0.1"), "{title}");
    client.select(&request, "0");
    client.await_answer(id).unwrap();
    client.wait_update(&session, "the answer", |update| {
        update["content"]["text"].as_str().is_some_and(|text| text.contains("the page was not opened"))
    });
    let id = client.send_prompt(&session, "/mcp login closed");
    client.select(&client.wait_request("session/request_permission", 1), "1");
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.await_answer(id).unwrap()["stopReason"], "cancelled");
    let unknown = client.run(&session, "/mcp login nobody");
    assert!(text_of(&unknown, "agent_message_chunk").contains("nobody"), "{unknown:?}");
}
