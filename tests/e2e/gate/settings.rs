//! Settings files: what they allow, ask for and refuse, and the reports about errors in them.
//!
//! Rule: what a workspace's own files loosen waits for approval, what they deny counts at once; what cannot be read makes
//! nothing looser, and gets its place.

use super::*;

fn execute(client: &Client, command: &str, argument: Value) -> Value {
    client.call("workspace/executeCommand", json!({ "command": command, "arguments": [argument] }))
}

/// Waits until the newest diagnostics of a file are this many; gives them.
fn diagnostics(client: &Client, uri: &str, count: usize) -> Vec<Value> {
    client.wait_for(&format!("{count} diagnostics of {uri}"), |received| {
        let newest = received
            .of("textDocument/publishDiagnostics")
            .filter(|reported| reported["params"]["uri"] == uri)
            .last();
        let newest = newest?["params"]["diagnostics"].as_array()?.clone();
        (newest.len() == count).then_some(newest)
    })
}

/// The messages so far that contain a text.
fn messages(client: &Client, text: &str) -> Vec<String> {
    client.look(|received| {
        let shown =
            received.of("window/showMessage").filter_map(|message| message["params"]["message"].as_str());
        shown.filter(|message| message.contains(text)).map(str::to_owned).collect()
    })
}

fn wait_message(client: &Client, text: &str) {
    client.wait_for(&format!("the message {text:?}"), |received| {
        let mut shown = received.of("window/showMessage");
        shown
            .find(|message| message["params"]["message"].as_str().is_some_and(|shown| shown.contains(text)))
            .map(drop)
    });
}

#[test]
fn the_users_rules_allow_ask_and_deny() {
    let desk = Desk::new(&script([
        ("allowed", bash("git tag one")),
        ("asked", bash("ls")),
        ("denied", bash("git stash drop")),
        ("hidden", bash("true && (git stash drop)")),
        ("unruled", bash("git branch new")),
        ("file", read("private/a.txt")),
    ]));
    desk.project.write("private/a.txt", "private\n");
    desk.user(&json!({ "permissions": {
        "allow": ["Bash(git tag:*)"], "ask": ["Bash(ls)"], "deny": ["Bash(git stash:*)", "Read(//**/private/**)"],
    } }));
    let client = desk.open();
    let session = client.session();
    for (text, expected) in [
        ("allowed", Fate::Ran),
        ("asked", Fate::Asked),
        ("denied", Fate::Refused),
        ("hidden", Fate::Refused),
        ("unruled", Fate::Asked),
        ("file", Fate::Refused),
    ] {
        let (fate, prompt, call) = fate(&session, text);
        assert_eq!(fate, expected, "{text}: {prompt} {call}");
    }
    // An ask rule asks each time: there is nothing to keep.
    let (_, prompt, _) = fate(&session, "asked");
    assert_eq!(prompt["scopes"], json!(["once"]), "{prompt}");
    assert!(prompt["reason"].as_str().unwrap().contains("Bash(ls)"), "{prompt}");
    for mode in ["bypassPermissions", "acceptEdits"] {
        let session = client.session_with(json!({ "mode": mode }));
        assert_eq!(fate(&session, "denied").0, Fate::Refused, "{mode}");
        assert_eq!(fate(&session, "asked").0, Fate::Asked, "{mode}");
    }
    let listed = session.call("agent/permission/rules", json!({}));
    assert_eq!(listed["rules"].as_array().unwrap().len(), 4, "{listed}");
    let explained = json!({ "tool": "bash", "input": { "command": "git stash drop" } });
    let explained = session.call("agent/permission/explain", explained);
    assert_eq!((&explained["decision"], &explained["rule"]), (&json!("deny"), &json!("Bash(git stash:*)")));
    let wrong = session
        .request("agent/permission/addRule", json!({ "scope": "user", "behavior": "deny", "rule": "Bash(" }));
    assert_eq!(wrong.unwrap_err().kind(), "invalidParams");
}

#[test]
fn a_projects_allow_rules_wait_for_approval_and_its_deny_rules_do_not() {
    let desk = Desk::new(&script([("tag", bash("git tag one")), ("stash", bash("git stash drop"))]));
    desk.project.write(
        ".kode/settings.json",
        r#"{ "permissions": { "allow": ["Bash(git tag:*)", "Bash(git stash:*)"], "deny": ["Bash(git stash:*)"] } }"#,
    );
    let client = desk.start();
    client.initialize(Offer::kode().params(&desk.project.workspace()));
    let session = client.session();
    let reported = session.wait_event("config_changed", |event| event["type"] == "config_changed");
    assert_eq!(
        (reported["withheld"].as_array().unwrap().len(), &reported["problems"]),
        (2, &json!([])),
        "{reported}"
    );
    let asked = session.wait_event("trust_required", |event| event["type"] == "trust_required");
    assert_eq!(asked["summary"], "2 allow rules", "{asked}");
    assert_eq!(fate(&session, "tag").0, Fate::Asked);
    assert_eq!(fate(&session, "stash").0, Fate::Refused);
    assert_eq!(diagnostics(&client, &desk.project.uri(".kode/settings.json"), 2)[0]["severity"], 3);

    // Nothing is approved that was not shown, nor in another file than is named.
    let trust = |more: Value| {
        let mut argument = json!({ "op": "approve", "sessionId": session.id });
        argument.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        client
            .request("workspace/executeCommand", json!({ "command": "kode.trust", "arguments": [argument] }))
    };
    let shown = execute(&client, "kode.trust", json!({ "sessionId": session.id }));
    let shown: Vec<_> = shown["wishes"].as_array().unwrap().iter().map(|one| one["digest"].clone()).collect();
    assert!(trust(json!({})).unwrap_err().message.contains("list"));
    let other = trust(json!({ "digests": shown, "file": "settings.json" }));
    assert!(other.unwrap_err().message.contains("changed since it was shown"));
    let swapped = trust(json!({ "digests": [shown[0], "0".repeat(64)] }));
    assert!(swapped.unwrap_err().message.contains("changed since it was shown"));
    assert_eq!(fate(&session, "tag").0, Fate::Asked);
    let approved = trust(json!({ "digests": shown, "file": ".kode/settings.json" })).unwrap();
    assert_eq!(approved["changed"], 2, "{approved}");
    diagnostics(&client, &desk.project.uri(".kode/settings.json"), 0);
    assert_eq!(fate(&session, "tag").0, Fate::Ran);
    assert_eq!(fate(&session, "stash").0, Fate::Refused);

    let listed = execute(&client, "kode.permissionRules", json!({ "sessionId": session.id }));
    assert!(listed["text"].as_str().unwrap().contains("deny Bash(git stash:*)"), "{listed}");
    assert!(trust(json!({ "digests": [] })).unwrap_err().message.contains("nothing"));
}

#[test]
fn a_broken_file_is_reported_where_it_is_and_everything_is_asked_for_until_it_is_mended() {
    let desk = Desk::new(&script([("read", read("a.txt")), ("write", write("b.txt"))]));
    desk.project.write("a.txt", "text\n");
    desk.project.write(".kode/settings.json", "{\n  \"permissions\": {\n    \"deny\": [\"Bash(\"]\n  }\n}\n");
    let client = desk.open();
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    let uri = desk.project.uri(".kode/settings.json");
    let [reported] = diagnostics(&client, &uri, 1).try_into().unwrap();
    assert_eq!((&reported["severity"], &reported["source"]), (&json!(1), &json!("kode-ls")), "{reported}");
    let range = json!({ "start": { "line": 2, "character": 13 }, "end": { "line": 2, "character": 20 } });
    assert_eq!(reported["range"], range, "{reported}");
    wait_message(&client, "This rule denies nothing");
    for text in ["read", "write"] {
        let (fate, prompt, _) = fate(&session, text);
        assert_eq!(fate, Fate::Asked, "{text}");
        assert!(prompt["reason"].as_str().unwrap().contains("settings"), "{prompt}");
    }
    desk.project.write(".kode/settings.json", "{ \"permissions\": { \"deny\": [\"Bash(git stash:*)\"] } }\n");
    assert_eq!(fate(&session, "read").0, Fate::Ran);
    diagnostics(&client, &uri, 0);
    let reported = session.events().into_iter().rfind(|event| event["type"] == "config_changed").unwrap();
    assert_eq!((&reported["problems"], &reported["withheld"]), (&json!([]), &json!([])));

    desk.project.write(".kode/settings.json", "{ nothing");
    assert_eq!(fate(&session, "read").0, Fate::Asked);
    diagnostics(&client, &uri, 1);
    assert_eq!(messages(&client, "settings").len(), 2, "one for each fault");
}

#[test]
fn a_mode_can_be_switched_off_and_another_be_the_first() {
    let desk = Desk::new(&script([("write", write("a.txt"))]));
    desk.user(&json!({ "permissions": { "disableBypassPermissionsMode": "disable", "defaultMode": "acceptEdits" } }));
    let client = desk.open();
    let session = client.session();
    assert_eq!(session.snapshot()["mode"], "acceptEdits");
    assert_eq!(fate(&session, "write").0, Fate::Ran);
    let refused = [
        session.request("agent/session/configure", json!({ "mode": "bypassPermissions" })).unwrap_err(),
        client.request("agent/session/new", json!({ "mode": "bypassPermissions" })).unwrap_err(),
        client
            .request(
                "workspace/executeCommand",
                json!({ "command": "kode.setMode", "arguments": [{ "mode": "bypassPermissions" }] }),
            )
            .unwrap_err(),
    ];
    for error in refused {
        assert!(error.message.contains("disableBypassPermissionsMode"), "{error:?}");
    }
    assert_eq!(client.session_with(json!({ "mode": "plan" })).snapshot()["mode"], "plan");
    let run = desk.cli(&["run", "--mode", "bypassPermissions", "write"], "");
    assert!(run.code != 0 && run.stderr.contains("disableBypassPermissionsMode"), "{run:?}");

    // The editor's settings are stronger than the file.
    let client = desk.start();
    client.initialize(Offer::kode().options(json!({ "mode": "plan" })).params(&desk.project.workspace()));
    assert_eq!(client.session().snapshot()["mode"], "plan");
}

#[test]
fn a_tool_that_is_denied_altogether_is_not_offered() {
    let desk = Desk::new(&script([("hello", say("hi"))]));
    desk.user(&json!({ "permissions": { "deny": ["WebFetch", "Bash(curl:*)"] } }));
    let client = desk.open();
    client.session().run("hello");
    let tools = desk.project.model.last_request()["tools"].clone();
    let tools: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(!tools.contains(&"WebFetch") && tools.contains(&"Bash"), "{tools:?}");
}

#[test]
fn a_search_service_of_the_user_adds_the_tool_and_a_wrong_one_is_reported() {
    let hello = || script([("hello", say("hi"))]);
    let offered = |desk: &Desk, client: &Client| {
        client.session().run("hello");
        desk.project.model.last_request()["tools"].to_string().contains("\"WebSearch\"")
    };
    let desk = Desk::new(&hello());
    // A workspace cannot say where the words go.
    desk.project.write(
        ".kode/settings.json",
        r#"{ "webSearch": { "provider": "searxng", "endpoint": "http://127.0.0.1:9" } }"#,
    );
    let client = desk.open();
    assert!(!offered(&desk, &client));
    desk.user(&json!({ "webSearch": { "provider": "searxng", "endpoint": "http://127.0.0.1:9" } }));
    assert!(offered(&desk, &desk.open()));
    desk.user(&json!({ "webSearch": { "provider": "searxng" } }));
    let client = desk.open();
    assert!(!offered(&desk, &client));
    wait_message(&client, "endpoint");
}
