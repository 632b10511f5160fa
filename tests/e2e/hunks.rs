//! The review of hunks as a client with a panel sees it: listed, moved by typing, kept, undone, brought back, told.
//!
//! Rule: the list is checked against the text on the screen, never against what the server says of it.

use kode_e2e::{Client, Offer, Policy, Project, SaveReason, Script, Session, Typing, call, say};
use serde_json::{Value, json};

const TEXT: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";

/// As the agent leaves [`TEXT`].
const EDITED: &str = "one\nTWO\nthree\nfour\nfive\nSIX a\nSIX b\nseven\n";

/// A model that changes two places of a file in one call.
fn two_places() -> Script {
    let edits = json!([
        { "old_string": "two", "new_string": "TWO" },
        { "old_string": "six", "new_string": "SIX a\nSIX b" },
    ]);
    let path = "{{cwd}}/a.txt";
    Script::default()
        .when(
            "edit",
            [
                call("Read", json!({ "file_path": path })),
                call("MultiEdit", json!({ "file_path": path, "edits": edits })),
                say("Edited."),
            ],
        )
        .when(
            "write b",
            [
                call("Read", json!({ "file_path": "{{cwd}}/b.txt" })),
                call("Write", json!({ "file_path": "{{cwd}}/b.txt", "content": "B\n" })),
                say("Written."),
            ],
        )
        .otherwise([say("Hello.")])
}

/// A project with `a.txt` in it, to be edited by [`two_places`].
fn project() -> Project {
    let project = Project::new(&two_places());
    project.write("a.txt", TEXT);
    project
}

/// An editor with `a.txt` open.
fn opened(project: &Project, offer: &Offer) -> (Client, String) {
    let client = project.connect(offer);
    let uri = project.uri("a.txt");
    client.editor.open(&uri, TEXT);
    (client, uri)
}

/// A session in which the agent has changed both places without asking.
fn edited(client: &Client) -> Session<'_> {
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    assert_eq!(session.run("edit")["stopReason"], "end_turn");
    session
}

/// The ranges of the hunks on the screen.
fn covered(client: &Client, uri: &str, hunks: &[Value]) -> Vec<String> {
    let text = client.editor.text(uri);
    let place = |hunk: &Value, end: &str| client.editor.offset(uri, &hunk["range"][end]);
    hunks.iter().map(|hunk| text[place(hunk, "start")..place(hunk, "end")].to_owned()).collect()
}

fn states(hunks: &[Value]) -> Vec<&str> {
    hunks.iter().map(|hunk| hunk["state"].as_str().unwrap()).collect()
}

fn ids(hunks: &[&Value]) -> Value {
    hunks.iter().map(|hunk| hunk["hunkId"].clone()).collect()
}

/// The user's newest message as the model was sent it.
fn last_prompt(project: &Project) -> String {
    let request = project.model.last_request();
    let messages = request["messages"].as_array().unwrap();
    messages.iter().rev().find(|message| message["role"] == "user").unwrap()["content"].to_string()
}

#[test]
fn hunks_are_listed_where_they_stand_and_move_with_typing() {
    let project = project();
    let (client, uri) = opened(&project, &Offer::kode());
    let session = edited(&client);
    assert_eq!(client.editor.text(&uri), EDITED);
    let [file] = session.edited_files().try_into().unwrap();
    let reported = [&file["uri"], &file["path"], &file["version"], &file["added"], &file["removed"]];
    assert_eq!(reported, [&json!(uri), &json!("a.txt"), &json!(2), &json!(3), &json!(2)], "{file}");
    let hunks = session.hunks();
    assert_eq!(states(&hunks), ["applied", "applied"]);
    assert_eq!(covered(&client, &uri, &hunks), ["TWO", "SIX a\nSIX b"]);
    let texts: Vec<_> = hunks.iter().map(|hunk| (&hunk["oldText"], &hunk["newText"])).collect();
    assert_eq!(texts, [(&json!("two\n"), &json!("TWO\n")), (&json!("six\n"), &json!("SIX a\nSIX b\n"))]);
    assert_eq!(hunks[1]["lineRange"], json!({ "start": 5, "end": 7 }));

    client.editor.type_text(&uri, &Typing::before("one", "zero 🙂\nzero\n"));
    client.editor.type_text(&uri, &Typing::before("TWO", "🙂 "));
    let moved = session.hunks();
    assert_eq!(covered(&client, &uri, &moved), ["TWO", "SIX a\nSIX b"]);
    assert_eq!(moved[1]["lineRange"], json!({ "start": 7, "end": 9 }));
    assert_eq!(session.edited_files()[0]["version"], client.editor.version(&uri));
    assert_eq!(ids(&moved.iter().collect::<Vec<_>>()), ids(&hunks.iter().collect::<Vec<_>>()));
    assert_eq!(client.editor.edits().len(), 1, "looking changes nothing");
}

#[test]
fn a_hunk_is_undone_in_one_labelled_step_and_brought_back() {
    let project = project();
    let (client, uri) = opened(&project, &Offer::kode());
    let session = edited(&client);
    client.editor.type_text(&uri, &Typing::before("one", "mine\n"));
    let [first, second] = session.hunks().try_into().unwrap();

    let outcome = session.resolve(&[&first], "undo");
    assert_eq!((&outcome["action"], &outcome["resolved"]), (&json!("undo"), &ids(&[&first])));
    assert_eq!((&outcome["conflicts"], &outcome["failed"]), (&json!([]), &json!([])));
    let without = format!("mine\n{}", EDITED.replace("TWO", "two"));
    assert_eq!(client.editor.text(&uri), without);
    let [_, undo] = client.editor.edits().try_into().expect("one edit more");
    assert!(undo.params["label"].as_str().is_some_and(|label| label.contains("undo")), "{}", undo.params);
    let [left] = session.hunks().try_into().unwrap();
    assert_eq!(left["hunkId"], second["hunkId"]);

    session.revert(outcome["resolutionId"].as_str());
    assert_eq!(client.editor.text(&uri), format!("mine\n{EDITED}"));
    assert_eq!(ids(&session.hunks().iter().collect::<Vec<_>>()), ids(&[&first, &second]));
    assert_eq!(client.editor.edits().len(), 3);

    let undone = session.resolve(&[&first], "undo");
    let kept = session.resolve(&[&second], "keep");
    assert_eq!(session.edited_files(), [] as [Value; 0], "nothing waits any more");
    assert_eq!(client.editor.text(&uri), without, "keeping changes no text");
    session.revert(kept["resolutionId"].as_str());
    assert_eq!(ids(&session.hunks().iter().collect::<Vec<_>>()), ids(&[&second]));
    session.revert(undone["resolutionId"].as_str());
    assert_eq!(states(&session.hunks()), ["applied", "applied"]);
    assert_eq!(client.editor.text(&uri), format!("mine\n{EDITED}"));
}

#[test]
fn the_hunks_of_each_call_are_counted_before_and_after_the_decision() {
    let project = project();
    let (client, _uri) = opened(&project, &Offer::kode());
    let session = edited(&client);
    let calls = || session.call("agent/edits/list", json!({}))["calls"].clone();
    let call = session.calls().pop().unwrap()["callId"].clone();
    assert_eq!(calls(), json!([{ "callId": call, "open": 2, "kept": 0, "undone": 0 }]));

    let [first, second] = session.hunks().try_into().unwrap();
    let undone = session.resolve(&[&first], "undo");
    session.resolve(&[&second], "keep");
    assert_eq!(calls(), json!([{ "callId": call, "open": 0, "kept": 1, "undone": 1 }]));
    session.revert(undone["resolutionId"].as_str());
    assert_eq!(calls(), json!([{ "callId": call, "open": 1, "kept": 1, "undone": 0 }]));
}

/// A session that has made `b.txt`, which was opened since, as a check of the change does.
fn created<'a>(project: &Project, client: &'a Client) -> (Session<'a>, String) {
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    assert_eq!(session.run("write b")["stopReason"], "end_turn");
    let uri = project.uri("b.txt");
    client.editor.open(&uri, "B\n");
    (session, uri)
}

#[test]
fn undoing_a_created_file_removes_it_though_it_is_open() {
    let project = project();
    let offer = Offer::kode().with("/workspace/workspaceEdit/resourceOperations", json!(["delete"]));
    let client = project.connect(&offer);
    let (session, uri) = created(&project, &client);
    let undone = session.resolve(&[&session.hunks()[0]], "undo");
    assert_eq!(undone["failed"], json!([]));
    assert!(!project.path("b.txt").exists());
    assert!(!client.editor.is_open(&uri), "the editor has closed what is gone");

    session.revert(undone["resolutionId"].as_str());
    assert_eq!(project.read("b.txt"), "B\n", "it can be taken back");
}

#[test]
fn undoing_a_created_file_removes_it_in_an_editor_that_deletes_none() {
    let project = project();
    let client = project.connect(&Offer::kode());
    let (session, uri) = created(&project, &client);
    session.resolve(&[&session.hunks()[0]], "undo");
    assert!(!project.path("b.txt").exists(), "it had what the agent wrote and nothing else");
    assert_eq!(client.editor.text(&uri), "");
}

#[test]
fn undoing_a_created_file_leaves_it_where_the_user_wrote_into_it() {
    let project = project();
    let offer = Offer::kode().with("/workspace/workspaceEdit/resourceOperations", json!(["delete"]));
    let client = project.connect(&offer);
    let (session, uri) = created(&project, &client);
    project.write("b.txt", "B\nwritten by another program\n");
    session.resolve(&[&session.hunks()[0]], "undo");
    assert_eq!(project.read("b.txt"), "B\nwritten by another program\n");
    assert_eq!(client.editor.text(&uri), "");
    assert!(client.editor.is_open(&uri));
}

#[test]
fn what_the_user_wrote_into_a_hunk_stays_whatever_becomes_of_it() {
    let project = project();
    let (client, uri) = opened(&project, &Offer::kode());
    let session = edited(&client);
    client.editor.type_text(&uri, &Typing::after("SIX a", " mine"));
    let [first, second] = session.hunks().try_into().unwrap();
    assert_eq!((&first["amended"], &second["amended"]), (&json!(false), &json!(true)));
    let before = client.editor.text(&uri);

    let outcome = session.resolve(&[&first, &second], "undo");
    assert_eq!((&outcome["resolved"], &outcome["conflicts"]), (&ids(&[&first]), &ids(&[&second])));
    assert_eq!(client.editor.text(&uri), before.replace("TWO", "two"));
    let [conflict] = session.hunks().try_into().unwrap();
    assert_eq!((&conflict["state"], &conflict["hunkId"]), (&json!("conflict"), &second["hunkId"]));

    let outcome = session.undo_amended(&[&second]);
    assert_eq!(outcome["resolved"], ids(&[&second]), "{outcome}");
    let text = client.editor.text(&uri);
    assert!(text.contains(" mine") && text.contains("six") && !text.contains("SIX"), "{text}");
    assert_eq!(text.replace(" mine", ""), TEXT);
    assert_eq!(session.hunks(), [] as [Value; 0]);
    session.revert(None);
    assert_eq!(client.editor.text(&uri), before.replace("TWO", "two"), "taken back as well");
}

#[test]
fn the_editors_own_undo_and_redo_are_recognised() {
    let project = project();
    let (client, uri) = opened(&project, &Offer::kode());
    let session = edited(&client);
    let both = ids(&session.hunks().iter().collect::<Vec<_>>());
    assert!(client.editor.undo(&uri));
    assert_eq!(client.editor.text(&uri), TEXT);
    assert_eq!(session.hunks(), [] as [Value; 0], "the user's undo is an undo");
    assert!(client.editor.redo(&uri));
    assert_eq!(client.editor.text(&uri), EDITED);
    let hunks = session.hunks();
    assert_eq!((states(&hunks), ids(&hunks.iter().collect::<Vec<_>>())), (vec!["applied"; 2], both));

    // Typing in between makes no difference to what the step is.
    assert!(client.editor.undo(&uri));
    client.editor.type_text(&uri, &Typing::before("four", "mine "));
    assert_eq!(session.hunks(), [] as [Value; 0]);
    assert!(client.editor.undo(&uri));
    assert!(client.editor.redo(&uri));
    assert_eq!(session.hunks(), [] as [Value; 0]);
    assert!(client.editor.edits().len() == 1, "the server takes no part in it");
}

#[test]
fn the_model_is_reported_once_what_became_of_its_changes() {
    let project = project();
    let (client, uri) = opened(&project, &Offer::kode());
    let session = edited(&client);
    session.run("hello");
    assert!(!last_prompt(&project).contains("The user has edited or undone"), "there is nothing to tell yet");
    let [first, _] = session.hunks().try_into().unwrap();
    session.resolve(&[&first], "undo");
    client.editor.type_text(&uri, &Typing::after("SIX a", " mine"));
    session.run("hello again");
    let reported = last_prompt(&project);
    for part in ["a.txt", "undone", "-TWO", "+two", "-SIX a", "+SIX a mine"] {
        assert!(reported.contains(part), "{part}: {reported}");
    }
    assert!(!reported.contains("-SIX b") && !reported.contains("seven"), "only what differs: {reported}");
    session.run("hello once more");
    assert!(!last_prompt(&project).contains("The user has edited or undone"), "{}", last_prompt(&project));
    session.revert(None);
    session.run("and now");
    let reported = last_prompt(&project);
    assert!(
        reported.contains("-two") && reported.contains("+TWO") && !reported.contains("SIX"),
        "{reported}"
    );
}

#[test]
fn all_of_a_turn_a_file_and_everything_can_be_meant() {
    let project = project();
    let (client, uri) = opened(&project, &Offer::kode());
    let session = edited(&client);
    let turn = session.hunks()[0]["turnId"].clone();
    for selection in [
        json!({ "type": "turn", "sessionId": session.id, "turnId": turn }),
        json!({ "type": "file", "uri": uri }),
        json!({ "type": "session", "sessionId": session.id }),
        json!({ "type": "all" }),
    ] {
        let id = session.begin_resolution(selection.clone(), "undo", "ask").unwrap();
        let outcome = session.wait_resolved(&id);
        assert_eq!(outcome["resolved"].as_array().unwrap().len(), 2, "{selection}: {outcome}");
        assert_eq!(client.editor.text(&uri), TEXT, "{selection}");
        let error = session.begin_resolution(json!({ "type": "all" }), "undo", "ask").unwrap_err();
        assert_eq!(error.kind(), "nothingToDo", "{error:?}");
        session.revert(Some(&id));
        assert_eq!(client.editor.text(&uri), EDITED, "{selection}");
    }
}

#[test]
fn an_editor_that_refuses_to_undo_is_notified_of_and_nothing_is_lost() {
    let project = project();
    let (client, uri) = opened(&project, &Offer::kode());
    let session = edited(&client);
    let [first, _] = session.hunks().try_into().unwrap();
    client.editor.next(Policy::Reject("the buffer is locked".to_owned()));
    let outcome = session.resolve(&[&first], "undo");
    assert_eq!(outcome["resolved"], json!([]), "{outcome}");
    let reason = outcome["failed"][0]["reason"].as_str().unwrap_or_else(|| panic!("{outcome}"));
    assert!(reason.contains("locked"), "{reason}");
    assert_eq!(client.editor.text(&uri), EDITED);
    assert_eq!(states(&session.hunks()), ["applied", "applied"]);
    session.resolve(&[&first], "undo");
    assert_eq!(client.editor.text(&uri), EDITED.replace("TWO", "two"));
}

// -- proposals ------------------------------------------------------------------------------------------------------

#[test]
fn a_part_of_a_change_can_be_accepted_and_the_rest_later() {
    let project = project();
    let (client, uri) = opened(&project, &Offer::kode());
    let session = client.session();
    let turn = session.prompt("edit");
    let prompt = session.wait_permission(0);
    let proposed = session.hunks();
    assert_eq!(states(&proposed), ["proposed", "proposed"]);
    assert!(proposed.iter().all(|hunk| hunk["permissionId"] == prompt["permissionId"]), "{proposed:?}");
    let texts = |hunks: &[Value], side: &str| hunks.iter().map(|hunk| hunk[side].clone()).collect::<Vec<_>>();
    assert_eq!(texts(&proposed, "newText"), [json!("TWO\n"), json!("SIX a\nSIX b\n")]);
    assert_eq!(client.editor.text(&uri), TEXT);
    let document =
        |method: &str| client.call(method, json!({ "uri": uri, "sessionId": session.id }))["text"].clone();
    assert_eq!(document("agent/document/proposed"), EDITED);
    assert_eq!(document("agent/document/baseline"), TEXT);

    // They move while they wait.
    client.editor.type_text(&uri, &Typing::before("one", "mine 🙂\n"));
    let moved = session.hunks();
    assert_eq!(moved[0]["lineRange"], json!({ "start": 2, "end": 3 }), "{moved:?}");
    assert_eq!(texts(&moved, "oldText"), [json!("two\n"), json!("six\n")]);
    assert_eq!(document("agent/document/proposed"), format!("mine 🙂\n{EDITED}"));

    let answer = json!({ "decision": "allow", "scope": "once", "hunks": [proposed[0]["hunkId"]] });
    session.respond(&prompt, answer).unwrap();
    session.wait_done(&turn);
    let first_only = format!("mine 🙂\n{}", TEXT.replace("two", "TWO"));
    assert_eq!(client.editor.text(&uri), first_only);
    let [(result, is_error)] = project.model.last_results().try_into().unwrap();
    assert!(!is_error && result.contains("a part") && result.contains("+SIX a"), "{result}");
    assert!(!result.contains("left out:\n-two") && result.contains("TWO"), "{result}");
    let [made] = session.hunks().try_into().unwrap();
    assert_eq!((&made["state"], &made["hunkId"]), (&json!("applied"), &proposed[0]["hunkId"]));

    session.resolve(&[&proposed[1]], "accept");
    assert_eq!(client.editor.text(&uri), format!("mine 🙂\n{EDITED}"));
    assert_eq!(states(&session.hunks()), ["applied", "applied"]);
    session.run("hello");
    let reported = last_prompt(&project);
    assert!(
        reported.contains("-six") && reported.contains("+SIX a") && !reported.contains("TWO"),
        "{reported}"
    );
}

#[test]
fn accepting_and_rejecting_hunks_answers_the_prompt() {
    for (first, second, expected) in [
        ("accept", "accept", EDITED.to_owned()),
        ("accept", "reject", TEXT.replace("two", "TWO")),
        ("reject", "accept", TEXT.replace("six", "SIX a\nSIX b")),
        ("reject", "reject", TEXT.to_owned()),
    ] {
        let project = project();
        let (client, uri) = opened(&project, &Offer::kode());
        let session = client.session();
        let turn = session.prompt("edit");
        let prompt = session.wait_permission(0);
        let [one, two] = session.hunks().try_into().unwrap();
        session.resolve(&[&one], first);
        assert_eq!(session.snapshot()["pendingPermissions"], json!([prompt]), "{first}: one is still open");
        assert_eq!(client.editor.text(&uri), TEXT, "{first}: nothing is made before all is decided");
        session.resolve(&[&two], second);
        session.wait_done(&turn);
        assert_eq!(client.editor.text(&uri), expected, "{first} {second}");
        let [(result, is_error)] = project.model.last_results().try_into().unwrap();
        assert_eq!(is_error, (first, second) == ("reject", "reject"), "{first} {second}: {result}");
        let made = [first, second].iter().filter(|action| **action == "accept").count();
        assert_eq!(states(&session.hunks()), vec!["applied"; made], "{first} {second}");
        let error = session.respond(&prompt, json!({ "decision": "allow", "scope": "once" })).unwrap_err();
        assert_eq!(error.kind(), "alreadyResolved");
    }
}

#[test]
fn a_yes_to_the_prompt_does_not_make_a_hunk_that_was_rejected_before() {
    let project = project();
    let (client, uri) = opened(&project, &Offer::kode());
    let session = client.session();
    let turn = session.prompt("edit");
    let prompt = session.wait_permission(0);
    let [one, _] = session.hunks().try_into().unwrap();
    session.resolve(&[&one], "reject");
    session.respond(&prompt, json!({ "decision": "allow", "scope": "once" })).unwrap();
    session.wait_done(&turn);
    assert_eq!(client.editor.text(&uri), TEXT.replace("six", "SIX a\nSIX b"));
}

#[test]
fn a_refused_change_and_a_cancelled_one_leave_no_proposals() {
    let project = project();
    let (client, uri) = opened(&project, &Offer::kode());
    let session = client.session();
    let turn = session.prompt("edit");
    let prompt = session.wait_permission(0);
    session.respond(&prompt, json!({ "decision": "deny", "scope": "once" })).unwrap();
    session.wait_done(&turn);
    assert_eq!(session.hunks(), [] as [Value; 0]);
    let turn = session.prompt("edit");
    session.wait_permission(1);
    assert_eq!(session.hunks().len(), 2);
    session.call("agent/turn/cancel", json!({}));
    session.wait_done(&turn);
    assert_eq!(session.hunks(), [] as [Value; 0]);
    assert_eq!(client.editor.text(&uri), TEXT);
}

// -- delivery -------------------------------------------------------------------------------------------------------

#[test]
fn delivery_rules_decide_what_is_asked() {
    let rule = |glob: &str, delivery: &str| json!({ "glob": glob, "delivery": delivery });
    let options = |rules: Value| Offer::kode().options(json!({ "delivery": rules }));
    let asks = |session: &Session<'_>| {
        let turn = session.prompt("edit");
        session.wait_event("a prompt or the end", |event| {
            event["type"] == "permission_required" || (event["type"] == "done" && event["turnId"] == *turn)
        })["type"]
            == "permission_required"
    };
    for (rules, mode, asked) in [
        (json!([]), "acceptEdits", false),
        (json!([]), "default", true),
        (json!([rule("*.txt", "propose")]), "acceptEdits", true),
        (json!([rule("*.txt", "propose")]), "bypassPermissions", true),
        (json!([rule("docs/**", "propose")]), "acceptEdits", false),
        (json!([rule("*.txt", "apply")]), "default", false),
        (json!([rule("a.*", "propose"), rule("*.txt", "apply")]), "default", true),
    ] {
        let project = project();
        let (client, _) = opened(&project, &options(rules.clone()));
        let session = client.session_with(json!({ "mode": mode }));
        assert_eq!(asks(&session), asked, "{rules} in {mode}");
    }

    // A session may have rules of its own.
    let project = project();
    let (client, uri) = opened(&project, &options(json!([rule("*.txt", "propose")])));
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    let answer = session.call("agent/session/configure", json!({ "delivery": [rule("*.txt", "apply")] }));
    assert_eq!(answer["delivery"], json!([rule("*.txt", "apply")]));
    let error = session.request("agent/session/configure", json!({ "delivery": [rule("a[", "apply")] }));
    let error = error.unwrap_err();
    assert_eq!((error.kind(), &error.data["path"]), ("invalidParams", &json!("delivery")), "{error:?}");
    assert!(error.message.contains("a["), "{error:?}");
    assert!(!asks(&session), "the bad rule has changed nothing");
    assert_eq!(client.editor.text(&uri), EDITED);
    assert!(client.editor.undo(&uri));
    assert!(
        asks(&client.session_with(json!({ "mode": "acceptEdits" }))),
        "other sessions keep the user's rules"
    );
}

// -- saving and committing ------------------------------------------------------------------------------------------

#[test]
fn a_save_by_the_user_keeps_and_a_save_by_the_editor_does_not() {
    let project = project();
    let (client, uri) = opened(&project, &Offer::kode());
    let session = edited(&client);
    for reason in [SaveReason::AfterDelay, SaveReason::FocusOut] {
        client.editor.save(&uri, Some(reason));
        assert_eq!(states(&session.hunks()), ["applied", "applied"], "{reason:?}");
    }
    client.editor.save(&uri, Some(SaveReason::Manual));
    assert_eq!(session.hunks(), [] as [Value; 0]);
    let resolved = session.wait_event("the keeping", |event| event["type"] == "edits_resolved");
    assert_eq!((&resolved["action"], resolved["resolved"].as_array().unwrap().len()), (&json!("keep"), 2));
    session.revert(resolved["resolutionId"].as_str());
    assert_eq!(states(&session.hunks()), ["applied", "applied"]);
    // An editor that does not say why has saved for a person.
    client.editor.save(&uri, None);
    assert_eq!(session.hunks(), [] as [Value; 0]);
    assert_eq!(project.read("a.txt"), EDITED);
}

#[test]
fn a_commit_keeps_what_was_committed_and_not_what_was_not_saved() {
    let project = project();
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git")
            .args(["-c", "user.name=Tester", "-c", "user.email=tester@example.com"])
            .args(["-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"])
            .args(arguments)
            .current_dir(project.workspace())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
    };
    project.write("b.txt", "b\n");
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    let (client, uri) = opened(&project, &Offer::kode());
    let session = edited(&client);
    session.run("write b");
    assert_eq!(project.read("b.txt"), "B\n", "it is closed, so it is written at once");
    assert_eq!(states(&session.hunks()), ["applied"; 3]);

    let kept = |n: usize| {
        client.wait_for("the keeping", |received| {
            let events = received.events(&session.id).iter().map(|record| &record["event"]);
            events.filter(|event| event["type"] == "edits_resolved").nth(n).cloned()
        })
    };
    git(&["commit", "-qam", "second"]);
    assert_eq!((&kept(0)["action"], kept(0)["resolved"].as_array().unwrap().len()), (&json!("keep"), 1));
    assert_eq!(covered(&client, &uri, &session.hunks()), ["TWO", "SIX a\nSIX b"], "the editor has not saved");
    client.editor.save(&uri, Some(SaveReason::AfterDelay));
    git(&["commit", "-qam", "third"]);
    assert_eq!((&kept(1)["action"], kept(1)["resolved"].as_array().unwrap().len()), (&json!("keep"), 2));
    assert_eq!(session.hunks(), [] as [Value; 0]);
}

#[test]
fn an_edit_that_an_editor_reports_in_pieces_is_the_agents_and_one_step_to_take_back() {
    let project = project();
    let (client, uri) = opened(&project, &Offer::kode());
    client.editor.always(Policy::InPieces);
    let session = edited(&client);
    let hunks = session.hunks();
    assert_eq!(states(&hunks), ["applied", "applied"]);
    let all: Vec<&Value> = hunks.iter().collect();
    assert_eq!(session.resolve(&all, "undo")["conflicts"], json!([]));
    assert_eq!(client.editor.text(&uri), TEXT);
    session.revert(None);
    assert_eq!(client.editor.text(&uri), EDITED);
    assert_eq!(states(&session.hunks()), ["applied", "applied"]);
}

#[test]
fn a_file_is_marked_as_reviewed_until_it_changes_again_and_nothing_is_decided_by_it() {
    let edit_more = json!({ "file_path": "{{cwd}}/a.txt", "old_string": "four", "new_string": "FOUR" });
    let read = call("Read", json!({ "file_path": "{{cwd}}/a.txt" }));
    let script = two_places().when("more", [read, call("Edit", edit_more), say("Done.")]);
    let project = Project::new(&script);
    project.write("a.txt", TEXT);
    let mut client = project.open();
    let session = edited(&client);
    let uri = project.uri("a.txt");
    let mark = |session: &Session<'_>, reviewed: bool| {
        session.call("agent/edits/review", json!({ "uri": uri, "reviewed": reviewed }));
    };
    let is_marked = |session: &Session<'_>| session.edited_files()[0]["reviewed"] == true;
    assert!(!is_marked(&session));
    mark(&session, true);
    assert!(is_marked(&session));
    assert_eq!(states(&session.hunks()), ["applied", "applied"], "nothing was decided");
    mark(&session, false);
    assert!(!is_marked(&session));
    mark(&session, true);
    let id = session.id.clone();
    client.kill();
    client = project.open();
    client.call("agent/session/load", json!({ "sessionId": id }));
    let session = Session::new(&client, &id);
    assert!(is_marked(&session), "it outlives the server");
    session.resolve(&[&session.hunks()[0]], "keep");
    assert!(is_marked(&session), "what is left was reviewed");
    assert_eq!(session.run("more")["stopReason"], "end_turn");
    assert!(!is_marked(&session), "a new hunk was not");
    let unknown = json!({ "uri": project.uri("none.txt"), "reviewed": true });
    let refused = session.request("agent/edits/review", unknown).unwrap_err();
    assert!(refused.message.contains("there is nothing to review"), "{}", refused.message);
}
