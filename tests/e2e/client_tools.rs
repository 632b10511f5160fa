//! Tools that a client registers: offered to the model, judged by the rules, carried out by the client.
//!
//! Rule: what the model was offered and what it got are read from its requests.

use kode_e2e::{Client, Project, Reply, Script, Session, call, say};
use serde_json::{Value, json};

const NAME: &str = "mcp__issues_ext__find_issue";

fn register(client: &Client, provider: &str, tools: Value) -> Value {
    client.call("agent/tools/register", json!({ "provider": provider, "tools": tools }))
}

fn find_issue() -> Value {
    json!([{
        "name": "find_issue",
        "description": "Finds an issue by its number.",
        "inputSchema": {
            "type": "object",
            "properties": { "number": { "type": "integer", "minimum": 1 } },
            "required": ["number"],
        },
    }])
}

fn script() -> Script {
    Script::default()
        .when("^find", [call(NAME, json!({ "number": 7 })), say("Found.")])
        .when("^wrong", [call(NAME, json!({ "number": "seven" })), say("Oh.")])
        .otherwise([say("Hello.")])
}

/// The names of the tools in the newest request.
fn offered(project: &Project) -> Vec<String> {
    let request = project.model.last_request();
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn last_result(project: &Project) -> String {
    let [(text, _)] = project.model.last_results().try_into().unwrap();
    text
}

/// A client that answers calls of its tools so.
fn answering(project: &Project, reply: impl Fn(&Value) -> Reply + Send + 'static) -> Client {
    let client = project.open();
    client.on_request("agent/tools/call", move |_, request| reply(&request["params"]));
    assert_eq!(register(&client, "issues.ext", find_issue())["names"], json!([NAME]));
    client
}

#[test]
fn a_tool_of_the_client_is_asked_for_and_carried_out_by_it() {
    let project = Project::new(&script());
    let client = answering(&project, |params| {
        assert_eq!(params["provider"], "issues.ext");
        assert_eq!(params["name"], "find_issue");
        let text = format!("Issue {} is about tea.", params["arguments"]["number"]);
        Reply::Result(json!({ "content": [{ "type": "text", "text": text }] }))
    });
    let session = client.session();
    let turn = session.prompt("find it");
    let prompt = session.wait_permission(0);
    assert!(prompt["title"].as_str().unwrap().contains("issues.ext:find_issue"), "{prompt}");
    session.allow(0);
    session.wait_done(&turn);
    assert!(offered(&project).contains(&NAME.to_owned()));
    assert_eq!(last_result(&project), "Issue 7 is about tea.");
}

#[test]
fn rules_decide_about_tools_of_the_client_as_about_others() {
    let project = Project::new(&script());
    project
        .write(".kode/settings.json", json!({ "permissions": { "deny": ["mcp__issues_ext"] } }).to_string());
    let client = answering(&project, |_| panic!("a refused call reached the client"));
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("find it");
    assert_ne!(session.calls()[0]["state"], "completed");
}

#[test]
fn arguments_that_do_not_fit_never_reach_the_client() {
    let project = Project::new(&script());
    let client = answering(&project, |_| panic!("a wrong call reached the client"));
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("wrong");
    assert!(last_result(&project).contains("`/number`"), "{}", last_result(&project));
}

#[test]
fn a_failure_of_the_client_is_the_result_of_the_call() {
    for (reply, expected) in [
        (
            json!({ "content": [{ "type": "text", "text": "No such issue." }], "isError": true }),
            "No such issue.",
        ),
        (json!({ "content": "nonsense" }), "find_issue"),
    ] {
        let project = Project::new(&script());
        let client = answering(&project, move |_| Reply::Result(reply.clone()));
        let session = client.session_with(json!({ "mode": "bypassPermissions" }));
        assert_eq!(session.run("find it")["stopReason"], "end_turn");
        assert!(last_result(&project).contains(expected), "{}", last_result(&project));
    }
}

#[test]
fn withdrawn_tools_are_offered_no_more() {
    let project = Project::new(&script());
    let client = answering(&project, |_| panic!("it is gone"));
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("hello");
    assert!(offered(&project).contains(&NAME.to_owned()));
    register(&client, "issues.ext", json!([]));
    session.run("hello again");
    assert!(!offered(&project).contains(&NAME.to_owned()));
    session.run("find it");
    assert_eq!(session.calls().len(), 1);
    assert_ne!(session.calls()[0]["state"], "completed");
}

#[test]
fn a_cancelled_call_is_reported_to_the_client() {
    let project = Project::new(&script());
    let client = answering(&project, |_| Reply::Silence);
    let session: Session<'_> = client.session_with(json!({ "mode": "bypassPermissions" }));
    let turn = session.prompt("find it");
    let asked = client.wait_for("the call", |received| received.of("agent/tools/call").next().cloned());
    session.call("agent/turn/cancel", json!({}));
    assert_eq!(session.wait_done(&turn)["stopReason"], "cancelled");
    let over = client.wait_for("its end", |received| received.of("agent/tools/cancelled").next().cloned());
    assert_eq!(over["params"]["callId"], asked["params"]["callId"]);
}

#[test]
fn a_list_with_a_fault_is_refused_with_the_reason() {
    let project = Project::new(&script());
    let client = project.open();
    let tools = json!([{ "name": "x", "description": "", "inputSchema": { "type": "array" } }]);
    let params = json!({ "provider": "p", "tools": tools });
    let refused = client.request("agent/tools/register", params).unwrap_err();
    assert!(refused.message.contains("the schema of `x` cannot be used"), "{}", refused.message);
}
