//! Servers that the file of an agent describes: for its sub-agents alone, and no longer than they work.

use std::fs;
use std::path::Path;

use kode_e2e::system::is_running;
use kode_e2e::{Client, Project, Script, Session, call, say};
use serde_json::{Value, json};

use super::{faulty, start, user_home};

const AGENT: &str = ".claude/agents/helper.md";

/// A file of an agent that describes the server that misbehaves in a way.
fn agent(how: &str, log: &Path) -> String {
    let server = json!({ "command": faulty(), "args": [how], "env": { "FAULT_LOG": log } });
    let servers = json!([{ "fault": server }]);
    format!("---\nname: helper\ndescription: Helps.\nmcpServers: {servers}\n---\nYou help.\n")
}

fn script() -> Script {
    let task = json!({ "description": "it", "prompt": "help", "subagent_type": "helper" });
    let echo = call("mcp__fault__echo", json!({ "text": "hello" }));
    Script::default().when("^help$", [echo, say("Helped.")]).otherwise([call("Task", task), say("Done.")])
}

fn open(project: &Project) -> Client {
    // Where there is a sandbox nothing can be written into a log outside.
    let home = user_home(project);
    fs::create_dir_all(home.join(".kode-ls")).unwrap();
    let settings = json!({ "sandbox": { "enabled": false } }).to_string();
    fs::write(home.join(".kode-ls/settings.json"), settings).unwrap();
    start(project, &[])
}

fn free(client: &Client) -> Session<'_> {
    client.session_with(json!({ "mode": "bypassPermissions" }))
}

/// The results that sub-agents got, oldest first: text and whether it is an error.
fn results(project: &Project) -> Vec<(String, bool)> {
    let requests = project.model.requests();
    let of_agents = requests.iter().filter(|request| request["system"].to_string().contains("You help."));
    let last = of_agents.map(|request| request["messages"].as_array().unwrap().last().unwrap().clone());
    last.filter(|message| message.to_string().contains("tool_result"))
        .flat_map(|message| kode_e2e::results_of(&message))
        .collect()
}

fn notices(session: &Session<'_>) -> String {
    session.notices().iter().map(|notice| notice.to_string()).collect::<Vec<_>>().join("\n")
}

/// The processes that the server was started as.
fn begun(log: &Path) -> Vec<String> {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix("pid ")).map(str::to_owned).collect()
}

#[test]
fn the_tools_of_a_described_server_are_the_sub_agent_s_alone_and_it_ends_with_that() {
    let project = Project::new(&script());
    let log = project.outside().join("fault.log");
    let home = user_home(&project);
    fs::create_dir_all(home.join(".claude/agents")).unwrap();
    fs::write(home.join(AGENT), agent("slow", &log)).unwrap();
    let client = open(&project);
    let session = free(&client);
    session.run("go");
    assert_eq!(results(&project), [("hello".to_owned(), false)], "{}", notices(&session));
    for request in project.model.requests() {
        let is_agent = request["system"].to_string().contains("You help.");
        let has_tool = request["tools"].to_string().contains("mcp__fault__echo");
        assert_eq!(has_tool, is_agent, "{}", request["tools"]);
        let is_reported = request["system"].to_string().contains("Call echo before anything else.");
        assert_eq!(is_reported, is_agent);
    }
    let pids = begun(&log);
    assert_eq!(pids.len(), 1, "{pids:?}");
    assert!(!is_running(pids[0].parse().unwrap()), "the server outlived its sub-agent");
    assert_eq!(client.call("agent/mcp/list", json!({}))["servers"], json!([]), "it is none of the settings");
}

#[test]
fn a_project_s_described_server_is_started_only_as_it_was_approved() {
    let project = Project::new(&script());
    let log = project.outside().join("fault.log");
    project.write(AGENT, agent("", &log));
    let client = open(&project);
    let session = free(&client);
    session.run("one");
    assert_eq!(begun(&log).len(), 0, "it was started without approval");
    assert!(notices(&session).contains("does without the MCP server `fault`: it waits for your approval"));
    let approve = || {
        let waiting = client.call("agent/trust/list", json!({ "sessionId": session.id }))["waiting"].clone();
        assert_eq!(waiting[0]["key"], "mcpServers.fault", "{waiting:#}");
        let digests: Vec<Value> =
            waiting.as_array().unwrap().iter().map(|one| one["digest"].clone()).collect();
        session.call("agent/trust/approve", json!({ "digests": digests }));
    };
    approve();
    session.run("two");
    assert_eq!(begun(&log).len(), 1);
    assert_eq!(results(&project).last().unwrap(), &("hello".to_owned(), false));
    project.write(AGENT, agent("other", &log));
    session.run("three");
    assert_eq!(begun(&log).len(), 1, "an entry that was changed was started");
    approve();
    session.run("four");
    assert_eq!(begun(&log).len(), 2);
}

#[test]
fn one_that_cannot_be_started_or_is_not_there_is_reported_and_holds_nothing_up() {
    let project = Project::new(&script());
    let log = project.outside().join("fault.log");
    let home = user_home(&project);
    fs::create_dir_all(home.join(".claude/agents")).unwrap();
    let agent = agent("exit", &log).replace("mcpServers: [", "mcpServers: [nowhere, ");
    fs::write(home.join(AGENT), agent).unwrap();
    let client = open(&project);
    let session = free(&client);
    session.run("go");
    let reported = notices(&session);
    assert!(
        reported.contains("does without the MCP server `fault`") && reported.contains("ended"),
        "{reported}"
    );
    assert!(reported.contains("`nowhere`: there is no such server"), "{reported}");
    assert!(results(&project)[0].1, "the tool is not there: {:?}", results(&project));
}
