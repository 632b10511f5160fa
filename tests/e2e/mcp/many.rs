//! Servers with many tools: those that are switched off, and those that the model gets by need.
//!
//! Rule: the server has 100 tools with long descriptions, about 23,000 tokens in all.

use kode_e2e::{Client, Offer, Project, Script, call, say};
use serde_json::{Value, json};

use super::{faulty, listed, open, program, user_home};

/// The names of the tools that a request declares.
fn declared(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().expect("a list of tools").iter();
    let name = |tool: &Value| tool["name"].as_str().or(tool["function"]["name"].as_str()).unwrap().to_owned();
    tools.map(name).collect()
}

/// Answers of a turn that looks for a tool and calls it.
fn script() -> Script {
    Script::new([
        call("ToolSearch", json!({ "query": "many_42" })),
        call("mcp__big__many_42", json!({})),
        say("It said: {{last_result}}"),
    ])
}

fn called_by_need(project: &Project, client: &Client) {
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    assert_eq!(session.run("call number 42")["stopReason"], "end_turn", "{:?}", session.notices());
    let requests = project.model.requests();
    let tool = "mcp__big__many_42".to_owned();
    assert!(!declared(&requests[0]).contains(&tool), "it is named alone");
    assert!(requests[0].to_string().contains("Further tools"), "{}", requests[0]);
    assert!(requests[0].to_string().contains("mcp__big__many_"), "some are named");
    assert!(declared(&requests[1]).contains(&tool), "it was asked for");
    assert!(!declared(&requests[1]).contains(&"mcp__big__many_7".to_owned()), "others were not");
    assert!(requests[2].to_string().contains("many_42 was called"), "{}", requests[2]);
}

#[test]
fn tools_beyond_a_share_of_the_window_are_named_and_declared_when_the_model_asks() {
    let project = Project::new(&script());
    let servers = json!({ "big": program(&faulty(), &["many"]) });
    // A window of 200,000 tokens: 100 tools take more than a tenth of it.
    let client = open(&project, &servers, &[("ANTHROPIC_MODEL", "claude-haiku-4-5")]);
    called_by_need(&project, &client);
    let built_in = declared(&project.model.requests()[0]);
    for tool in ["Read", "WebFetch", "Task"] {
        assert!(built_in.contains(&tool.to_owned()), "{tool} is declared at once: {built_in:?}");
    }
}

#[test]
fn a_hundred_tools_leave_a_window_of_32768_tokens_usable() {
    let project = Project::new(&script().quirk("refuses_above", json!(32_768)));
    let home = user_home(&project);
    std::fs::create_dir_all(home.join(".kode-ls")).unwrap();
    let servers = json!({ "big": program(&faulty(), &["many"]) });
    let settings = json!({ "mcpServers": servers, "sandbox": { "enabled": false } });
    std::fs::write(home.join(".kode-ls/settings.json"), settings.to_string()).unwrap();
    let profile = json!({
        "provider": "openai", "baseUrl": format!("{}/v1", project.model.base_url()), "model": "gemma-test",
        "apiKey": "test-key", "contextWindow": 32_768,
    });
    let variables = [("HOME", home.to_str().unwrap()), ("KODE_LS_MCP_WAIT", "30000")];
    let client = project.start_as(&[], &variables);
    client.initialize(Offer::kode().options(json!({ "model": profile })).params(&project.workspace()));
    called_by_need(&project, &client);
    assert_eq!(project.model.refusals().len(), 0);
    let first = project.model.requests()[0].to_string().len();
    assert!(first < 32_768 * 4 / 2, "{first} bytes");
}

#[test]
fn single_tools_of_a_server_are_switched_off_in_its_entry() {
    let project = Project::new(&Script::new([say("Fine.")]));
    let mut entry = program(&faulty(), &[]);
    entry["enabledTools"] = json!(["echo", "huge", "missing"]);
    entry["disabledTools"] = json!(["huge"]);
    let client = open(&project, &json!({ "fault": entry }), &[]);
    client.session().run("hello");
    let tools = declared(&project.model.requests()[0]);
    let of_server: Vec<_> = tools.iter().filter(|tool| tool.starts_with("mcp__")).collect();
    assert_eq!(of_server, ["mcp__fault__echo"]);
    let notes = listed(&client, "fault")["notes"].to_string();
    assert!(notes.contains("names `missing`") && notes.contains("tools are off by its entry"), "{notes}");
}
