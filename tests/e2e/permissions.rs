//! Permissions over the wire: modes, answers, their reach, and the errors of answers that come too late.

use kode_e2e::{Offer, Project, Script, call, say, step};
use serde_json::{Value, json};

fn bash(command: &str) -> kode_e2e::Step {
    call("Bash", json!({ "command": command }))
}

#[test]
fn a_refusal_reaches_the_model_with_the_users_words() {
    let edit = json!({ "file_path": "{{cwd}}/a.txt", "old_string": "old", "new_string": "new" });
    let script = Script::new([
        call("Read", json!({ "file_path": "{{cwd}}/a.txt" })),
        call("Edit", edit),
        say("I leave it."),
    ]);
    let project = Project::new(&script);
    project.write("a.txt", "old\n");
    let client = project.open();
    client.editor.open(&project.uri("a.txt"), "old\n");
    let session = client.session();
    let turn = session.prompt("edit");
    let prompt = session.wait_permission(0);
    let answer = json!({ "decision": "deny", "scope": "once", "feedback": "rather rename the variable" });
    session.respond(&prompt, answer).unwrap();
    assert_eq!(session.wait_done(&turn)["stopReason"], "end_turn");
    let [(text, is_error)] = project.model.last_results().try_into().unwrap();
    assert!(is_error && text.contains("rather rename the variable"), "{text}");
    let denied = &session.calls()[1];
    assert_eq!(
        (&denied["state"], &denied["structured"]["feedback"]),
        (&json!("DENIED"), &json!("rather rename the variable"))
    );
    assert!(client.editor.edits().is_empty());
    assert_eq!(client.editor.text(&project.uri("a.txt")), "old\n");
}

#[test]
fn arguments_changed_by_the_user_are_what_runs() {
    let project = Project::new(&Script::new([bash("expr from-the-model"), say("Done.")]));
    let client = project.open();
    let session = client.session();
    let turn = session.prompt("go");
    let prompt = session.wait_permission(0);
    let answer = json!({
        "decision": "allow", "scope": "once", "updatedInput": { "command": "expr from-the-user" },
    });
    session.respond(&prompt, answer).unwrap();
    session.wait_done(&turn);
    let [(text, is_error)] = project.model.last_results().try_into().unwrap();
    assert!(!is_error && text.contains("from-the-user") && !text.contains("from-the-model"), "{text}");
}

#[test]
fn changed_arguments_that_do_not_fit_are_refused_like_the_models() {
    let project = Project::new(&Script::new([bash("expr hello"), say("Done.")]));
    let client = project.open();
    let session = client.session();
    let turn = session.prompt("go");
    let prompt = session.wait_permission(0);
    let answer = json!({ "decision": "allow", "scope": "once", "updatedInput": { "nonsense": "echo x" } });
    session.respond(&prompt, answer).unwrap();
    assert_eq!(session.wait_done(&turn)["stopReason"], "end_turn");
    let [(text, is_error)] = project.model.last_results().try_into().unwrap();
    assert!(is_error && text.contains("command"), "{text}");
}

#[test]
fn the_first_answer_wins_and_the_second_is_reported_who_was_first() {
    let project = Project::new(&Script::new([bash("expr once"), say("Done.")]));
    let client = project.open();
    let session = client.session();
    let turn = session.prompt("go");
    let prompt = session.allow(0);
    let error = session.respond(&prompt, json!({ "decision": "deny", "scope": "once" })).unwrap_err();
    assert_eq!(error.kind(), "alreadyResolved", "{error:?}");
    assert!(error.data["by"].as_str().is_some_and(|by| !by.is_empty()), "{error:?}");
    assert!(!error.hint().is_empty(), "{error:?}");
    session.wait_done(&turn);
    assert_eq!(session.calls()[0]["state"], "COMPLETED");
}

#[test]
fn unknown_sessions_and_prompts_are_typed_errors_with_a_hint() {
    let project = Project::new(&Script::new([say("Hello.")]));
    let client = project.open();
    let session = client.session();
    let text = json!([{ "type": "text", "text": "hi" }]);
    for (method, params, kind) in [
        ("agent/turn/start", json!({ "sessionId": "ses_none", "input": text }), "unknownSession"),
        ("agent/turn/cancel", json!({ "sessionId": "ses_none" }), "unknownSession"),
        ("agent/session/load", json!({ "sessionId": "ses_none" }), "unknownSession"),
        ("agent/session/load", json!({ "sessionId": "../../etc" }), "unknownSession"),
        (
            "agent/permission/respond",
            json!({
                "sessionId": session.id, "permissionId": "perm_none", "decision": "allow", "scope": "once",
            }),
            "unknownPermission",
        ),
    ] {
        let error = client.request(method, params.clone()).unwrap_err();
        assert_eq!(error.kind(), kind, "{method} {params}: {error:?}");
        assert!(!error.hint().is_empty() && !error.message.is_empty(), "{method}: {error:?}");
    }
}

#[test]
fn a_yes_for_the_session_covers_the_same_command_and_no_other() {
    let script =
        Script::new([bash("expr same"), bash("expr same"), bash("expr same; expr more"), say("Done.")]);
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session();
    let turn = session.prompt("go");
    let first = session.wait_permission(0);
    assert!(first["scopes"].as_array().unwrap().contains(&json!("session")), "{first}");
    assert!(first["offers"][0]["rules"][0].as_str().unwrap().contains("expr same"), "{first}");
    session.respond(&first, json!({ "decision": "allow", "scope": "session" })).unwrap();
    let second = session.wait_permission(1);
    assert_eq!(
        second["preview"]["command"], "expr same; expr more",
        "the same command is not asked for again"
    );
    session.allow(1);
    session.wait_done(&turn);
    let states: Vec<Value> = session.calls().iter().map(|call| call["state"].clone()).collect();
    assert_eq!(states, ["COMPLETED", "COMPLETED", "COMPLETED"]);
}

/// The verdict on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Runs,
    Asks,
    Refused,
}

#[test]
fn the_mode_decides_what_runs_what_asks_and_what_is_refused() {
    use Verdict::{Asks, Refused, Runs};
    let write = json!({ "file_path": "{{cwd}}/written.txt", "content": "written\n" });
    let script = Script::default()
        .when("^read", [call("Read", json!({ "file_path": "{{cwd}}/a.txt" })), say("ok")])
        .when("^write", [call("Write", write), say("ok")])
        .when("^command", [bash("expr ran"), say("ok")])
        .when("^outside", [call("Read", json!({ "file_path": "{{cwd}}/../secret.txt" })), say("ok")]);
    let matrix = [
        ("default", [Runs, Asks, Asks, Asks]),
        ("acceptEdits", [Runs, Runs, Asks, Asks]),
        ("plan", [Runs, Refused, Refused, Asks]),
        ("bypassPermissions", [Runs, Runs, Runs, Runs]),
    ];
    for (mode, row) in matrix {
        let project = Project::new(&script);
        project.write("a.txt", "text\n");
        std::fs::write(project.outside().join("secret.txt"), "secret\n").unwrap();
        let client = project.open();
        for (what, expected) in ["read", "write", "command", "outside"].into_iter().zip(row) {
            let session = client.session_with(json!({ "mode": mode }));
            let turn = session.prompt(what);
            session.wait_event("a prompt or the end", |event| {
                event["type"] == "permission_required" || event["type"] == "done"
            });
            let asked = !session.snapshot()["pendingPermissions"].as_array().unwrap().is_empty();
            if asked {
                let prompt = session.wait_permission(0);
                session.respond(&prompt, json!({ "decision": "deny", "scope": "once" })).unwrap();
            }
            session.wait_done(&turn);
            let call = session.calls().remove(0);
            let got = match (asked, call["state"].as_str().unwrap()) {
                (true, _) => Asks,
                (false, "COMPLETED") => Runs,
                (false, "DENIED") => Refused,
                (false, other) => panic!("{mode} {what}: {other} {call}"),
            };
            assert_eq!(got, expected, "{mode} {what}: {call}");
        }
    }
}

#[test]
fn the_mode_of_a_session_can_be_changed_and_holds_from_the_next_call_on() {
    let script = Script::new([bash("expr one"), bash("expr two"), say("Done.")]);
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session();
    let turn = session.prompt("go");
    let prompt = session.wait_permission(0);
    session.call("agent/session/configure", json!({ "mode": "bypassPermissions" }));
    session.respond(&prompt, json!({ "decision": "allow", "scope": "once" })).unwrap();
    session.wait_done(&turn);
    let asked = session.events().iter().filter(|event| event["type"] == "permission_required").count();
    assert_eq!(asked, 1);
    assert_eq!(session.snapshot()["mode"], "bypassPermissions");
}

#[test]
fn every_prompt_of_an_answer_is_asked_and_a_refused_one_does_not_stop_the_next() {
    let both = step()
        .call("Bash", json!({ "command": "expr refused" }))
        .call("Bash", json!({ "command": "expr allowed" }));
    let project = Project::new(&Script::new([both, say("Done.")]));
    let client = project.open();
    let session = client.session();
    let turn = session.prompt("go");
    let first = session.wait_permission(0);
    session.respond(&first, json!({ "decision": "deny", "scope": "once" })).unwrap();
    session.allow(1);
    session.wait_done(&turn);
    let results = project.model.last_results();
    assert!(results[0].1 && !results[1].1 && results[1].0.contains("allowed"), "{results:?}");
}

#[cfg(unix)]
#[test]
fn links_and_further_folders_are_judged_by_where_they_lead() {
    let read = |path: &str| call("Read", json!({ "file_path": path }));
    let script = Script::default()
        .when("^link", [read("{{cwd}}/link.txt"), say("ok")])
        .when("^second", [read("{{cwd}}/../second/b.txt"), say("ok")])
        .when("^beside", [read("{{cwd}}/../workspace-beside/c.txt"), say("ok")]);
    let project = Project::new(&script);
    for folder in ["second", "workspace-beside"] {
        std::fs::create_dir(project.outside().join(folder)).unwrap();
    }
    std::fs::write(project.outside().join("secret.txt"), "secret\n").unwrap();
    std::fs::write(project.outside().join("second/b.txt"), "in the second folder\n").unwrap();
    std::fs::write(project.outside().join("workspace-beside/c.txt"), "beside\n").unwrap();
    std::os::unix::fs::symlink(project.outside().join("secret.txt"), project.path("link.txt")).unwrap();
    let client = project.start();
    let mut params = Offer::kode().params(&project.workspace());
    let second = Offer::kode().params(&project.outside().join("second"));
    params["workspaceFolders"].as_array_mut().unwrap().push(second["workspaceFolders"][0].clone());
    client.initialize(params);
    for (what, asks) in [("link", true), ("beside", true), ("second", false)] {
        let session = client.session();
        let turn = session.prompt(what);
        if asks {
            let prompt = session.wait_permission(0);
            assert!(prompt["reason"].as_str().unwrap().contains("outside"), "{what}: {prompt}");
            let leads = prompt["risks"].to_string().contains("leads to `");
            assert_eq!(leads, what == "link", "{what}: {prompt}");
            session.respond(&prompt, json!({ "decision": "deny", "scope": "once" })).unwrap();
        }
        session.wait_done(&turn);
        let state = if asks { "DENIED" } else { "COMPLETED" };
        assert_eq!(session.calls()[0]["state"], state, "{what}");
    }
}

#[test]
fn what_steers_other_programs_is_asked_for_even_when_edits_are_accepted() {
    let write = json!({ "file_path": "{{cwd}}/.git/hooks/pre-commit", "content": "#!/bin/sh\n" });
    let project = Project::new(&Script::new([call("Write", write), say("ok")]));
    project.write(".git/config", "");
    let client = project.open();
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    let turn = session.prompt("go");
    let prompt = session.wait_permission(0);
    assert!(prompt["reason"].as_str().unwrap().contains(".git"), "{prompt}");
    session.respond(&prompt, json!({ "decision": "deny", "scope": "once" })).unwrap();
    session.wait_done(&turn);
    assert!(!project.path(".git/hooks/pre-commit").exists());
}

#[test]
fn the_model_reads_of_a_mode_that_the_user_sets_while_it_answers() {
    let read = call("Read", json!({ "file_path": "{{cwd}}/a.txt" })).gate("answer", 0);
    let script =
        Script::default().when("^more$", [say("Bye.")]).otherwise([read, say("Done.").gate("second", 0)]);
    let project = Project::new(&script);
    project.write("a.txt", "text\n");
    let client = project.open();
    let session = client.session();
    let turn = session.prompt("go");
    let said =
        |mode: &str| project.model.last_request().to_string().contains(&format!("set the mode to {mode}"));
    project.model.wait_until_held("answer");
    assert!(!said("acceptEdits"));
    session.call("agent/session/configure", json!({ "mode": "acceptEdits" }));
    project.model.release("answer");
    project.model.wait_until_held("second");
    assert!(said("acceptEdits"), "the round after the answer tells the model");
    session.call("agent/session/configure", json!({ "mode": "plan" }));
    project.model.release("second");
    session.wait_done(&turn);
    session.run("more");
    assert!(said("plan"), "the next turn tells the model");
}

#[test]
fn a_wrong_option_of_the_client_is_reported_and_the_others_count() {
    let project = Project::new(&Script::new([say("Hello.")]));
    let options = json!({ "mode": "AUTO_EDIT", "surprise": 1 });
    let client = project.connect(&Offer::kode().options(options));
    let reported = client.wait_for("the report", |received| {
        let shown = received.of("window/showMessage").map(|message| message["params"]["message"].to_string());
        shown.into_iter().find(|text| text.contains("surprise"))
    });
    assert!(reported.contains("initializationOptions.surprise of kode-ls is ignored"), "{reported}");
    assert_eq!(client.session().snapshot()["mode"], "acceptEdits");
}
