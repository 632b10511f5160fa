//! The trust requests of workspace files, and the user's word on it: asked once, by content, and taken back.
//!
//! Rule: what counts differs from what a command does or prints, and never from what the server says of itself alone.

use std::path::PathBuf;

use kode_e2e::{Client, Offer, Output, Project, Script, call, run, say};
use serde_json::{Value, json};

struct Desk {
    project: Project,
}

impl Desk {
    fn new() -> Self {
        let print = call("Bash", json!({ "command": "echo \"value:$ASKED:\"" }));
        let project = Project::new(&Script::default().when("^print$", [print, say("ok")]));
        std::fs::create_dir_all(project.outside().join("user")).unwrap();
        Self { project }
    }

    fn home(&self) -> PathBuf {
        self.project.outside().join("user")
    }

    /// The workspace wants a variable and a rule that lets it be printed.
    fn trust_request(&self, value: &str) {
        let settings =
            json!({ "env": { "ASKED": value }, "permissions": { "allow": ["Bash(echo:*)"] } }).to_string();
        self.project.write(".claude/settings.json", settings);
    }

    fn open(&self, offer: &Offer) -> Client {
        let client = self.project.start_as(&[], &[("HOME", self.home().to_str().unwrap())]);
        client.initialize(offer.params(&self.project.workspace()));
        client
    }

    fn cli(&self, arguments: &[&str]) -> Output {
        let (state, home) = (self.project.home(), self.home());
        let environment = [("KODE_LS_HOME", state.to_str().unwrap()), ("HOME", home.to_str().unwrap())];
        run(arguments, Some(&self.project.workspace()), &environment, "")
    }
}

/// The output of the command in a session in which everything runs.
fn printed(desk: &Desk, client: &Client) -> String {
    client.session_with(json!({ "mode": "bypassPermissions" })).run("print");
    let (text, _) = desk.project.model.last_results().pop().unwrap();
    let value = text.split("value:").nth(1).and_then(|rest| rest.split(':').next());
    value.unwrap_or_else(|| panic!("{text}")).to_owned()
}

fn digests(listed: &Value, key: &str) -> Vec<String> {
    let all = listed[key].as_array().unwrap().iter();
    all.map(|one| one["digest"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_workspace_is_asked_about_once_and_what_was_shown_is_what_counts() {
    let desk = Desk::new();
    desk.trust_request("one");
    let client = desk.open(&Offer::kode());
    let session = client.session();
    let reported = session.wait_event("trust_required", |event| event["type"] == "trust_required");
    assert_eq!(
        (&reported["count"], &reported["summary"]),
        (&json!(2), &json!("1 variable, 1 allow rule")),
        "{reported}"
    );
    assert_eq!(session.snapshot()["trustRequired"]["count"], 2);
    assert_eq!(printed(&desk, &client), "");

    let shown = client.call("agent/trust/list", json!({}));
    let shown = digests(&shown, "waiting");
    // Changes of the file after it was shown are not approved with it.
    desk.trust_request("two");
    let approved = client.call("agent/trust/approve", json!({ "digests": shown }));
    assert_eq!(approved["changed"], 1, "the rule alone is as it was");
    assert_eq!(printed(&desk, &client), "");
    let listed = client.call("agent/trust/list", json!({}));
    client.call("agent/trust/approve", json!({ "digests": digests(&listed, "waiting") }));
    assert_eq!(printed(&desk, &client), "two");
    assert_eq!(session.snapshot()["trustRequired"], Value::Null);

    // Another text is another wish, and the one before is shown beside it.
    desk.trust_request("three");
    let listed = client.call("agent/trust/list", json!({}));
    assert_eq!(listed["waiting"][0]["earlier"], "\"two\"", "{listed}");
    assert_eq!(printed(&desk, &client), "");
    desk.trust_request("two");
    let listed = client.call("agent/trust/list", json!({}));
    let revoked = client.call("agent/trust/revoke", json!({ "digests": digests(&listed, "approved") }));
    assert_eq!(revoked["changed"], 2);
    assert_eq!(printed(&desk, &client), "");
}

#[test]
fn while_the_editor_distrusts_the_workspace_no_approval_counts() {
    let desk = Desk::new();
    desk.trust_request("one");
    assert_eq!(desk.cli(&["trust", "approve", "--yes"]).code, 0);
    for offer in [
        Offer::kode().options(json!({ "workspaceTrusted": false })),
        Offer::kode().with("/experimental/kode/workspaceTrusted", json!(false)),
    ] {
        let client = desk.open(&offer);
        assert_eq!(printed(&desk, &client), "");
        assert_eq!(client.call("agent/trust/list", json!({}))["distrusted"], true);
        client.call("agent/trust/workspace", json!({ "trusted": true }));
        assert_eq!(printed(&desk, &client), "one");
        client.call("agent/trust/workspace", json!({ "trusted": false }));
        assert_eq!(printed(&desk, &client), "");
        client.shut_down();
    }
}

#[test]
fn an_editor_without_a_plugin_asks_with_a_message_and_not_now_is_kept() {
    let desk = Desk::new();
    desk.trust_request("one");
    let answer = |title: &'static str| {
        move |client: &Client| {
            let request = client.wait_for("the question", |received| {
                received
                    .of("window/showMessageRequest")
                    .find(|asked| {
                        asked["params"]["message"]
                            .as_str()
                            .is_some_and(|text| text.contains("This workspace asks for"))
                    })
                    .cloned()
            });
            assert!(request["params"]["message"].as_str().unwrap().contains("1 variable, 1 allow rule"));
            client.answer(&request, json!({ "title": title }));
        }
    };
    let client = desk.open(&Offer::plain());
    client.session();
    answer("Not now")(&client);
    // The answer is taken in beside everything else.
    while client.call("agent/trust/list", json!({}))["waiting"][0]["dismissed"] != true {}
    drop(client);
    // Not asked again, until something changes.
    desk.trust_request("two");
    let client = desk.open(&Offer::plain());
    client.session();
    let request =
        client.wait_for("the question", |received| received.of("window/showMessageRequest").next().cloned());
    assert!(request["params"]["message"].as_str().unwrap().contains("1 variable"), "{request}");
    assert!(!request["params"]["message"].as_str().unwrap().contains("allow rule"), "{request}");
    // Users approve only shown texts.
    assert!(request["params"]["message"].as_str().unwrap().contains("env.ASKED \"two\""), "{request}");
    client.answer(&request, json!({ "title": "Trust" }));
    while client.call("agent/trust/list", json!({}))["approved"] == json!([]) {}
}

#[test]
fn what_agents_and_skills_ask_for_is_reported_as_well_and_no_secret_in_it_leaves() {
    const SECRET: &str = "s3cr3tXY9";
    let desk = Desk::new();
    let agent = "---\nname: dear\ndescription: Costs.\nmodel: dear-9\neffort: high\n---\nYou are dear.";
    desk.project.write(".claude/agents/dear.md", agent);
    let skill = format!("---\nallowed-tools: Bash(curl --token={SECRET} *)\n---\nGet it.");
    desk.project.write(".claude/skills/get/SKILL.md", skill);
    let url = format!("https://me:{SECRET}@example.com/hook");
    let settings = json!({
        "env": { "ANY": SECRET },
        "permissions": { "deny": [format!("Bash(curl --password {SECRET} *)")] },
        "hooks": { "Stop": [{ "hooks": [{ "type": "http", "url": url, "headers": { "x-any": SECRET } }] }] },
    });
    desk.project.write(".claude/settings.json", settings.to_string());
    let client = desk.open(&Offer::kode());
    let session = client.session();
    let reported = session
        .wait_event("trust_required", |event| event["type"] == "trust_required" && event["count"] == 4);
    let summary = reported["summary"].as_str().unwrap();
    assert!(summary.contains("1 choice of a model") && summary.contains("1 list of tools"), "{reported}");
    assert_eq!(session.snapshot()["trustRequired"]["count"], 4);
    let listed = client.call("agent/trust/list", json!({}));
    let keys: Vec<_> =
        listed["waiting"].as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap()).collect();
    for key in ["model", "allowedTools", "env.ANY", "hooks.Stop"] {
        assert!(keys.contains(&key), "{listed}");
    }
    let execute = |command: &str| {
        client.call("workspace/executeCommand", json!({ "command": command, "arguments": [] }))
    };
    let mut shown = vec![
        listed,
        execute("kode.trust"),
        execute("kode.permissionRules"),
        session.call("agent/config/get", json!({})),
        session.call("agent/hooks/list", json!({})),
        session.call("agent/permission/rules", json!({})),
    ];
    for command in ["/trust", "/permissions", "/hooks", "/config"] {
        session.run(command);
    }
    shown.push(session.snapshot());
    shown.extend(session.records());
    shown.push(json!(desk.cli(&["trust"]).stdout));
    shown.push(json!(desk.cli(&["doctor", "--json"]).stdout));
    for shown in shown {
        assert!(!shown.to_string().contains(SECRET), "{shown:#}");
    }
    // The approval is for the whole text all the same.
    desk.project.write(".claude/agents/dear.md", agent.replace("dear-9", "dear-10"));
    let before = client.call("agent/trust/list", json!({}));
    assert!(before.to_string().contains("dear-10"), "{before}");
}

#[test]
fn the_command_line_lists_approves_and_revokes() {
    let desk = Desk::new();
    desk.trust_request("one");
    let listed = desk.cli(&["trust"]);
    assert!(listed.stdout.contains("waits    permissions.allow Bash(echo:*)"), "{listed:?}");
    assert_eq!(desk.cli(&["trust", "approve", "--yes", ".claude/settings.json"]).code, 0);
    let listed = desk.cli(&["trust"]);
    assert!(listed.stdout.contains("approved env.ASKED") && !listed.stdout.contains("waits"), "{listed:?}");
    assert!(desk.cli(&["trust", "revoke"]).stdout.ends_with("revoked: 2\n"));
    assert!(desk.cli(&["trust"]).stdout.contains("waits    env.ASKED"));
    assert!(desk.cli(&["trust", "revoke"]).code != 0);
}
