//! Forks, exports and imports: what a copy has, what it has not, and that the original stays as it is.

use kode_e2e::{Project, Script, Session, call, say};
use serde_json::{Value, json};

fn script() -> Script {
    let edit = json!({ "file_path": "{{cwd}}/a.txt", "old_string": "old", "new_string": "new" });
    let read = call("Read", json!({ "file_path": "{{cwd}}/a.txt" }));
    Script::default()
        .when("^change", [read, call("Edit", edit), say("Changed ```it```.")])
        .when("^second", [say("Second answer.")])
        .when("^other", [say("Another way.")])
}

fn text_of(item: &Value) -> &str {
    item["body"]["text"].as_str().unwrap_or_default()
}

/// The journal of a session, as it is on the disk.
fn journal(project: &Project, session: &str) -> String {
    let workspaces = std::fs::read_dir(project.home().join("sessions")).unwrap();
    let paths = workspaces.map(|folder| folder.unwrap().path().join(session).join("journal.jsonl"));
    let path = paths.into_iter().find(|path| path.is_file()).expect("the session is stored");
    std::fs::read_to_string(path).unwrap()
}

fn project() -> Project {
    let project = Project::new(&script());
    project.write("a.txt", "old\n");
    project
}

#[test]
fn a_fork_has_what_was_said_and_not_what_waits_and_the_original_stays() {
    let project = project();
    let client = project.open();
    let session = client.session();
    session.call("agent/session/configure", json!({ "mode": "acceptEdits" }));
    session.run("change it");
    session.run("second");
    let items = session.items();
    let second = items.iter().find(|item| text_of(item) == "second").unwrap();
    let before = journal(&project, &session.id);

    let forked = session.call("agent/session/fork", json!({ "beforeItemId": second["itemId"] }));
    let snapshot = &forked["snapshot"];
    let kept = items.iter().take_while(|item| *item != second).cloned().collect::<Vec<_>>();
    assert_eq!(snapshot["items"], json!(kept));
    assert_eq!((&snapshot["draft"]["text"], &snapshot["mode"]), (&json!("second"), &json!("acceptEdits")));
    assert_eq!(snapshot["usage"]["inputTokens"], 0, "what the other session cost is not the fork's");
    let fork = Session::new(&client, forked["sessionId"].as_str().unwrap());
    assert_eq!(fork.edited_files(), Vec::<Value>::new());
    assert_eq!(session.hunks().len(), 1, "the change is still the other session's");

    assert_eq!(fork.run("other")["stopReason"], "end_turn");
    let sent = project.model.last_request().to_string();
    assert!(
        sent.contains("change it") && sent.contains("Changed ```it```.") && !sent.contains("Second"),
        "{sent}"
    );
    assert_eq!(session.items(), items);
    assert_eq!(journal(&project, &session.id), before);
}

#[test]
fn a_fork_in_the_middle_of_a_turn_has_a_result_for_every_call() {
    let project = project();
    let client = project.open();
    let session = client.session();
    session.call("agent/session/configure", json!({ "mode": "acceptEdits" }));
    session.run("change it");
    let items = session.items();
    for item in &items {
        let forked = session.call("agent/session/fork", json!({ "afterItemId": item["itemId"] }));
        let fork = Session::new(&client, forked["sessionId"].as_str().unwrap());
        assert_eq!(forked["snapshot"]["state"], "READY");
        // The scripted model refuses a history that no provider would take.
        assert_eq!(fork.run("other")["stopReason"], "end_turn", "after {item}");
    }
}

#[test]
fn a_session_is_forked_in_a_place_that_is_there() {
    let project = project();
    let client = project.open();
    let session = client.session();
    session.run("second");
    let item = session.items()[0]["itemId"].clone();
    for (wrong, path) in [
        (json!({ "afterItemId": "item_none" }), "itemId"),
        (json!({ "afterItemId": item, "beforeItemId": item }), "beforeItemId"),
    ] {
        let error = session.request("agent/session/fork", wrong).unwrap_err();
        assert_eq!((error.kind(), &error.data["path"]), ("invalidParams", &json!(path)), "{error:?}");
    }
    let unknown = json!({ "sessionId": "ses_none" });
    let error = client.request("agent/session/fork", unknown).unwrap_err();
    assert_eq!(error.kind(), "unknownSession");
    let list = client.call("agent/session/list", json!({}));
    assert_eq!(list["sessions"].as_array().unwrap().len(), 1, "nothing is left of what failed: {list}");
}

#[test]
fn an_export_has_everything_that_was_shown_in_its_order() {
    let project = project();
    let client = project.open();
    let session = client.session();
    session.call("agent/session/configure", json!({ "mode": "acceptEdits" }));
    session.run("change it\n# not a heading");
    let exported = session.call("agent/session/export", json!({ "format": "json" }));
    assert_eq!(exported["document"]["session"]["items"], json!(session.items()));
    assert_eq!(exported["fileName"], "change-it.json");
    let exported = session.call("agent/session/export", json!({}));
    let text = exported["document"]["text"].as_str().unwrap();
    let mut rest = text;
    for part in [
        "# change it",
        "> change it",
        "> # not a heading",
        "**Read**",
        "**Edit**",
        "-old",
        "+new",
        "Changed ```it```.",
    ] {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} does not come next in\n{text}"));
        rest = &rest[at + part.len()..];
    }
    // A session that another server has open is exported as well.
    let other = project.open();
    let again = other.call("agent/session/export", json!({ "sessionId": session.id }));
    assert_eq!(again["document"], exported["document"]);
}

#[test]
fn a_session_of_the_kode_sdk_continues_here() {
    let project = project();
    let folder = project.outside().join(".kode-coder/agt_1");
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, value: Value| std::fs::write(folder.join(name), value.to_string()).unwrap();
    let from = format!("file://{}", folder.display());
    let client = project.open();
    let import = || client.request("agent/session/import", json!({ "from": from }));
    let reason = |error: &kode_e2e::RpcError| error.message.clone();

    assert!(reason(&import().unwrap_err()).contains("messages.json"));
    write(
        "messages.json",
        json!([{ "role": "user", "content": [{ "type": "text", "text": "list it" }] },
        { "role": "assistant", "content": [
            { "type": "text", "text": "Looking." },
            { "type": "tool_use", "id": "c1", "name": "fs_glob", "input": { "pattern": "*" } },
            { "type": "tool_use", "id": "c2", "name": "bash_run", "input": { "cmd": "ls" } } ] },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "c1", "content": "a.txt" },
            { "type": "hologram" } ] }]),
    );
    assert!(reason(&import().unwrap_err()).contains("templateId"));
    write(
        "info.json",
        json!({ "agentId": "agt_1", "templateId": "coder", "createdAt": "2026-01-02T03:04:05Z" }),
    );
    write(
        "tools.json",
        json!([{ "id": "c1", "name": "fs_glob", "state": "COMPLETED", "startedAt": 1_767_323_046_000_u64 }]),
    );
    let imported = import().unwrap();
    assert_eq!(
        (&imported["templateId"], &imported["messages"], &imported["skipped"]),
        (&json!("coder"), &json!(3), &json!(1))
    );

    client.call("agent/session/load", json!({ "sessionId": imported["sessionId"] }));
    let session = Session::new(&client, imported["sessionId"].as_str().unwrap());
    let calls = session.calls();
    assert_eq!((&calls[0]["state"], &calls[0]["name"]), (&json!("COMPLETED"), &json!("fs_glob")));
    assert_eq!(calls[1]["state"], "SEALED", "it had no result");
    assert_eq!(session.run("other")["stopReason"], "end_turn");
    let sent = project.model.last_request().to_string();
    assert!(sent.contains("list it") && sent.contains("a.txt"), "{sent}");

    write("messages.json", json!([{ "content": 7 }]));
    let error = import().unwrap_err();
    assert!(error.kind() == "invalidParams" && reason(&error).contains("message 0"), "{error:?}");
    assert_eq!(client.call("agent/session/list", json!({}))["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn without_an_editor_a_session_continues_or_is_copied() {
    let project = project();
    let run = |arguments: &[&str]| {
        let output = project.run(&[&["run", "--output-format", "json"], arguments].concat(), "");
        let result: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        assert_eq!(output.code, 0, "{output:?}");
        result["session_id"].as_str().unwrap().to_owned()
    };
    let failed = |arguments: &[&str]| {
        let output = project.run(&[&["run"], arguments].concat(), "");
        assert_ne!(output.code, 0, "{output:?}");
        output.stderr
    };
    assert!(failed(&["--continue", "second"]).contains("no session"));
    let first = run(&["second"]);
    assert_eq!(run(&["--continue", "other"]), first);
    assert!(project.model.last_request().to_string().contains("Second answer."));
    let short = &first[..first.len() - 1];
    let copy = run(&["--resume", short, "--fork", "other"]);
    assert_ne!(copy, first);
    let sent = project.model.last_request()["messages"].as_array().unwrap().len();
    assert_eq!(run(&["--resume", first.trim_start_matches("ses_"), "other"]), first);
    assert_eq!(
        project.model.last_request()["messages"].as_array().unwrap().len(),
        sent,
        "the copy did not change it"
    );
    assert!(failed(&["--resume", "ses_", "other"]).contains("several sessions begin"));
    assert!(failed(&["--resume", "nothing", "other"]).contains("nothing"));
    assert!(failed(&["--fork", "other"]).contains("--continue"));
}
