//! Servers whose files, settings or secrets change while they run.

use std::fs;
use std::path::Path;

use kode_e2e::{Client, LIMIT, Project, Script, Session, call, say};
use serde_json::{Value, json};

use super::{faulty, listed, open, program, start, user_home};

/// Approves all that waits, as it is shown.
fn trust_all(session: &Session<'_>) {
    let listed = session.client().call("agent/trust/list", json!({ "sessionId": session.id }));
    let digests: Vec<Value> =
        listed["waiting"].as_array().unwrap().iter().map(|waiting| waiting["digest"].clone()).collect();
    assert!(!digests.is_empty(), "{listed}");
    session.call("agent/trust/approve", json!({ "digests": digests }));
}

fn unasked(client: &Client) -> Session<'_> {
    client.session_with(json!({ "mode": "bypassPermissions" }))
}

/// Waits until the server of that name is listed in a way that fits.
fn wait_listed(client: &Client, name: &str, mut fits: impl FnMut(&Value) -> bool) -> Value {
    let began = std::time::Instant::now();
    loop {
        let server = listed(client, name);
        if fits(&server) {
            return server;
        }
        assert!(began.elapsed() < LIMIT, "{server}");
        std::thread::yield_now();
    }
}

/// How often the server that keeps this log was started.
fn begun(log: &Path) -> usize {
    fs::read_to_string(log).unwrap_or_default().lines().filter(|line| line.starts_with("pid ")).count()
}

/// Waits until the server that keeps this log was started so often.
fn wait_begun(log: &Path, times: usize) {
    let began = std::time::Instant::now();
    while begun(log) < times {
        assert!(began.elapsed() < LIMIT, "{:?}", fs::read_to_string(log));
        std::thread::yield_now();
    }
}

/// The text that the model got for its last call.
fn last_text(project: &Project) -> String {
    let [(text, _)] = project.model.last_results().try_into().unwrap();
    text
}

#[test]
fn a_swapped_script_is_not_started_again_until_it_is_approved() {
    // The server itself swaps its script and ends: only the restarting code can see it.
    let evil = format!("touch swapped.txt\nexec '{}'\n", faulty().display());
    let swap = json!({ "path": "{{cwd}}/server.sh", "text": evil });
    let script = Script::default()
        .when("^begin", [say("Begun.")])
        .when("^swap", [call("mcp__fault__crash", swap), say("Done.")]);
    let project = Project::new(&script);
    project.write("server.sh", format!("exec '{}'\n", faulty().display()));
    let entry = json!({
        "command": "sh", "args": ["server.sh"], "recovery": { "initialDelay": 10, "maxDelay": 20 },
    });
    project.write(".mcp.json", json!({ "mcpServers": { "fault": entry } }).to_string());
    let client = open(&project, &json!({}), &[]);
    let session = unasked(&client);
    assert_eq!(listed(&client, "fault")["state"], "waitingForApproval");
    trust_all(&session);
    session.run("begin");
    wait_listed(&client, "fault", |server| server["state"] == "connected");

    let turn = session.prompt("swap it");
    session.wait_event("the swapped server waits, and says why", |event| {
        let server = &event["servers"][0];
        let why = server["notes"].to_string();
        event["type"] == "mcp_changed"
            && server["state"] == "waitingForApproval"
            && why.contains("changed since you approved it")
    });
    session.wait_done(&turn);
    assert!(!project.path("swapped.txt").exists(), "nobody has approved the swapped script");

    trust_all(&session);
    wait_listed(&client, "fault", |server| server["state"] == "connected");
    assert!(project.path("swapped.txt").exists(), "what was approved is what runs, and it comes by itself");
}

#[test]
fn what_a_server_is_made_of_starts_it_again_and_no_other() {
    let write = || call("mcp__inside__write", json!({ "path": "{{cwd}}/kept/x.txt" }));
    let project = Project::new(&Script::new([write(), say("Once."), write(), say("Twice.")]));
    project.write("kept/old.txt", "old\n");
    let log = project.outside().join("outside.log");
    let mut outside = program(&faulty(), &[]);
    (outside["sandbox"], outside["env"]) = (json!(false), json!({ "FAULT_LOG": log }));
    let servers = json!({ "inside": program(&faulty(), &[]), "outside": outside });
    let settings = user_home(&project).join(".kode-ls/settings.json");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(&settings, json!({ "mcpServers": servers }).to_string()).unwrap();
    let client = start(&project, &[]);
    let session = unasked(&client);
    session.run("write");
    assert_eq!(last_text(&project), "true");
    fs::remove_file(project.path("kept/x.txt")).unwrap();
    wait_listed(&client, "outside", |server| server["state"] == "connected");

    let kept = format!("/{}", project.path("kept").display());
    let held = json!({ "filesystem": { "denyWrite": [kept] } });
    fs::write(&settings, json!({ "mcpServers": servers, "sandbox": held }).to_string()).unwrap();
    session.run("write again");
    assert_eq!(last_text(&project), "false", "it runs in the sandbox as it is by now");
    assert!(!project.path("kept/x.txt").exists());
    assert_eq!(begun(&log), 1, "the sandbox does not matter to this one");
}

#[test]
fn a_key_that_settings_name_later_is_kept_from_servers_that_run_already() {
    let look = || call("mcp__fault__environment", json!({}));
    let project = Project::new(&Script::new([look(), say("Once."), look(), say("Twice.")]));
    let log = project.outside().join("fault.log");
    let mut entry = program(&faulty(), &[]);
    entry["env"] = json!({ "FAULT_LOG": log });
    let client = open(&project, &json!({ "fault": entry }), &[("GIVEN", "a-key-of-the-user")]);
    let session = unasked(&client);
    session.run("look");
    assert!(last_text(&project).contains("GIVEN=a-key-of-the-user"), "{}", last_text(&project));

    let profile = json!({ "provider": "openai", "model": "other", "apiKey": { "fromEnv": "GIVEN" } });
    let settings = json!({
        "mcpServers": { "fault": entry }, "sandbox": { "enabled": false }, "modelProfiles": { "other": profile },
    });
    fs::write(user_home(&project).join(".kode-ls/settings.json"), settings.to_string()).unwrap();
    wait_begun(&log, 2);
    session.run("look again");
    assert!(last_text(&project).contains("GIVEN=\n"), "{}", last_text(&project));
}

#[test]
fn a_command_of_the_workspace_for_headers_is_held_as_its_servers_are() {
    let project = Project::new(&Script::new([say("Begun.")]));
    project.write(
        "headers.sh",
        "pwd > where.txt\nenv > environment.txt\ntouch \"$HOME/escaped.txt\"\necho '{\"X-Token\": \"t\"}'\necho > done.txt\n",
    );
    let entry = json!({
        "type": "http", "url": "http://127.0.0.1:9/mcp", "headersHelper": "sh ./headers.sh", "recovery": false,
    });
    project.write(".mcp.json", json!({ "mcpServers": { "away": entry } }).to_string());
    let client = start(&project, &[("ANTHROPIC_API_KEY", "a-key-of-the-user")]);
    let session = client.session();
    trust_all(&session);
    session.run("begin");
    let failed = wait_listed(&client, "away", |server| server["state"] == "failed");
    assert!(project.path("done.txt").exists(), "{failed}");
    assert_eq!(Path::new(project.read("where.txt").trim()), project.workspace());
    let environment = project.read("environment.txt");
    assert!(!environment.contains("a-key-of-the-user"), "{environment}");
    assert!(environment.contains("CLAUDE_PROJECT_DIR="), "{environment}");
    assert!(!user_home(&project).join("escaped.txt").exists(), "it writes in the workspace alone");
}
