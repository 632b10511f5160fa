//! Profiles of the sandbox: the limits of commands in them, for a session and for one turn.
//!
//! Rule: the machine's own sandbox holds the commands, and a file that is there or not is the proof.

use kode_e2e::{Client, Offer, Project, Script, call, say};
use serde_json::{Value, json};

/// Each prompt has the model write a file by a command.
fn writing() -> Script {
    let write = |name: &str| call("Bash", json!({ "command": format!("echo x > {name} || echo refused") }));
    Script::default()
        .when("^first", [write("first.txt"), say("done")])
        .when("^second", [write("second.txt"), say("done")])
        .when("^cache", [write("cache/there.txt"), say("done")])
        .when("^third", [write("third.txt"), say("done")])
        .when("^proxy", [call("Bash", json!({ "command": "echo \"proxy=[$http_proxy]\"" })), say("done")])
        .when(
            "^outside",
            [
                call("Bash", json!({ "command": "echo x > outside.txt", "dangerouslyDisableSandbox": true })),
                say("done"),
            ],
        )
}

/// A client whose user has these settings.
fn client_of(project: &Project, settings: &Value) -> Client {
    let home = project.outside().join("user");
    std::fs::create_dir_all(home.join(".kode")).unwrap();
    std::fs::write(home.join(".kode/settings.json"), settings.to_string()).unwrap();
    let client = project.start_as(&[], &[("HOME", home.to_str().unwrap())]);
    client.initialize(Offer::kode().params(&project.workspace()));
    client
}

#[test]
fn a_session_in_a_read_only_profile_has_no_command_that_writes() {
    let project = Project::new(&writing());
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    let now = session.call("agent/session/configure", json!({ "sandbox": "read-only" }));
    assert_eq!(now["sandbox"], "read-only");
    let names: Vec<_> = now["sandboxProfiles"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["default", "offline", "read-only"]);
    session.wait_event("the profile", |event| {
        event["type"] == "mode_changed" && event["sandbox"] == "read-only"
    });
    session.run("first");
    assert!(project.model.last_results()[0].0.contains("refused"), "{:?}", project.model.last_results());
    assert!(!project.workspace().join("first.txt").exists());
    session.run("outside");
    assert!(project.model.last_results()[0].1, "it is refused: {:?}", project.model.last_results());
    assert!(!project.workspace().join("outside.txt").exists(), "{:?}", project.model.last_results());
    session.run("/status");
    assert!(session.snapshot().to_string().contains("on, profile read-only"));

    let id = session.id.clone();
    client.kill();
    let client = project.open();
    let snapshot = client.request("agent/session/load", json!({ "sessionId": id })).unwrap();
    assert_eq!(snapshot["sandbox"], "read-only", "it survives a restart");
    let session = kode_e2e::Session::new(&client, &id);
    session.run("second");
    assert!(!project.workspace().join("second.txt").exists());
    session.run("/sandbox default");
    session.run("third");
    assert!(project.workspace().join("third.txt").exists(), "{:?}", project.model.last_results());
}

#[test]
fn a_profile_of_one_turn_ends_with_it() {
    let project = Project::new(&writing());
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    let input = json!([{ "type": "text", "text": "first" }]);
    let started = session.call("agent/turn/start", json!({ "input": input, "sandbox": "read-only" }));
    session.wait_done(started["turnId"].as_str().unwrap());
    assert!(!project.workspace().join("first.txt").exists());
    session.run("second");
    assert!(project.workspace().join("second.txt").exists());
    let wrong = json!({ "sessionId": session.id, "input": input, "sandbox": "none" });
    let error = client.request("agent/turn/start", wrong).unwrap_err();
    assert_eq!(error.message, "there is no sandbox profile `none`; there are default, offline, read-only");
}

#[test]
fn profiles_of_the_user_set_network_and_folders_and_those_of_a_workspace_do_not_count() {
    let project = Project::new(&writing());
    let further = project.outside().join("further");
    std::fs::create_dir_all(&further).unwrap();
    project.write(
        ".kode/settings.json",
        json!({ "sandbox": { "profiles": { "open": { "allowWrite": ["//"] } } } }).to_string(),
    );
    let settings = json!({ "sandbox": {
        "network": { "allowedDomains": ["example.com"] },
        "profiles": {
            "deps": { "description": "Installs packages", "readOnly": true, "allowedDomains": ["example.org"],
                      "allowWrite": [project.workspace().join("cache")] },
        },
    } });
    std::fs::create_dir_all(project.workspace().join("cache")).unwrap();
    let client = client_of(&project, &settings);
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    let proxy = || project.model.last_results()[0].0.contains("proxy=[http");
    session.run("proxy");
    assert!(proxy(), "{:?}", project.model.last_results());
    let profiles =
        session.call("agent/session/configure", json!({ "sandbox": "offline" }))["sandboxProfiles"].clone();
    let names: Vec<_> = profiles.as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["default", "deps", "offline", "read-only"], "{profiles}");
    session.run("proxy");
    assert!(!proxy(), "{:?}", project.model.last_results());
    session.run("/sandbox deps");
    session.run("proxy");
    assert!(proxy(), "{:?}", project.model.last_results());
    session.run("first");
    assert!(!project.workspace().join("first.txt").exists());
    session.run("cache");
    assert!(project.workspace().join("cache/there.txt").exists(), "{:?}", project.model.last_results());
}

#[test]
fn a_run_in_a_script_is_held_by_the_profile_that_it_names() {
    let project = Project::new(&writing());
    let run = |arguments: &[&str]| {
        let all = ["run", "--mode", "bypassPermissions"].iter().chain(arguments).copied().collect::<Vec<_>>();
        project.run_as(&all, "", &[])
    };
    assert_eq!(run(&["--sandbox", "read-only", "first"]).code, 0);
    assert!(!project.workspace().join("first.txt").exists());
    assert_eq!(run(&["second"]).code, 0);
    assert!(project.workspace().join("second.txt").exists());
    let wrong = run(&["--sandbox", "none", "third"]);
    assert!(wrong.code != 0 && wrong.stderr.contains("there is no sandbox profile `none`"), "{wrong:?}");
}
