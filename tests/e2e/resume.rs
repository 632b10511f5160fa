//! A server that is killed, at any point: the transcript is there again, and the session continues.

use kode_e2e::{Client, Offer, Policy, Project, Script, Session, call, say, step};
use serde_json::{Value, json};

/// Where the server is killed.
#[derive(Clone, Copy, Debug)]
enum Point {
    Streaming,
    Asking,
    Running,
    Done,
}

fn script() -> Script {
    let command = |command: &str| call("Bash", json!({ "command": command }));
    Script::default()
        .when("go on$", [say("Going on.")])
        .when("^Streaming$", [say("one two three four five six").chunk(4).gate("middle", 6)])
        .when(
            "^Asking$",
            [step().text("May I?").call("Bash", json!({ "command": "expr asked" })), say("Thanks.")],
        )
        .when(
            "^Running$",
            [
                command("expr first"),
                // No process is left to end it when the server is killed, so it ends soon by itself.
                command("expr begun; sleep 5"),
                say("Never."),
            ],
        )
        .when("^Done$", [command("expr first"), say("All done.")])
}

/// Brings a session to a point and kills the server there; gives its id and the items that were shown.
fn killed_at(project: &Project, point: Point) -> (String, Vec<Value>) {
    let client = project.open();
    let mode = if matches!(point, Point::Asking) { "default" } else { "bypassPermissions" };
    let session = client.session_with(json!({ "mode": mode }));
    let turn = session.prompt(&format!("{point:?}"));
    match point {
        Point::Streaming => {
            project.model.wait_until_held("middle");
            session.wait_event("the first words", |event| event["item"]["body"]["type"] == "agentMessage");
        }
        Point::Asking => {
            session.wait_permission(0);
        }
        Point::Running => {
            session.wait_event("output of the command", |event| {
                event["type"] == "tool:progress"
                    && event["text"].as_str().is_some_and(|text| text.contains("begun"))
            });
        }
        Point::Done => {
            session.wait_done(&turn);
        }
    }
    let items = session.items();
    client.kill();
    (session.id.clone(), items)
}

/// Allows what the snapshot says is asked.
fn allow_what_waits(session: &Session<'_>) {
    let prompt = session.snapshot()["pendingPermissions"][0].clone();
    session.respond(&prompt, json!({ "decision": "allow", "scope": "once" })).expect("the answer is taken");
}

fn loaded<'a>(client: &'a Client, id: &str) -> Session<'a> {
    let session = Session::new(client, id);
    session.call("agent/session/load", json!({}));
    session
}

#[test]
fn a_killed_server_continues_where_it_was() {
    for point in [Point::Streaming, Point::Asking, Point::Running, Point::Done] {
        let project = Project::new(&script());
        let (id, shown) = killed_at(&project, point);
        let client = project.open();

        let list = client.call("agent/session/list", json!({}));
        let listed =
            list["sessions"].as_array().unwrap().iter().find(|session| session["sessionId"] == id.as_str());
        let listed = listed.unwrap_or_else(|| panic!("{point:?}: {list} has no {id}"));
        assert_eq!(listed["title"], format!("{point:?}"), "{listed}");

        let session = loaded(&client, &id);
        let snapshot = session.snapshot();
        let asks = matches!(point, Point::Asking);
        assert_eq!(snapshot["state"], if asks { "PAUSED" } else { "READY" }, "{point:?}");
        assert_eq!(snapshot["pendingPermissions"].as_array().unwrap().len(), usize::from(asks), "{point:?}");
        let items = session.items();
        for item in &shown {
            let found = items.iter().find(|loaded| loaded["itemId"] == item["itemId"]);
            let found = found.unwrap_or_else(|| panic!("{point:?}: {item} is gone"));
            if item["body"]["complete"] == false {
                let (was, is) =
                    (item["body"]["text"].as_str().unwrap(), found["body"]["text"].as_str().unwrap());
                assert!(!was.is_empty() && is.starts_with(was), "{found}");
                assert_eq!(
                    (&found["body"]["complete"], &found["body"]["interrupted"]),
                    (&json!(true), &json!(true))
                );
                continue;
            }
            let state = item["body"]["state"].as_str();
            let stays = ["COMPLETED", "FAILED", "DENIED", "APPROVAL_REQUIRED"];
            if state.is_none_or(|state| stays.contains(&state)) {
                assert_eq!(found, item, "{point:?}");
            } else {
                assert_eq!(found["body"]["state"], "SEALED", "{point:?}: {found}");
            }
        }
        let unfinished = session.calls().into_iter().filter(|call| call["state"] == "SEALED").count();
        assert_eq!(unfinished, usize::from(matches!(point, Point::Running)), "{point:?}");

        if asks {
            allow_what_waits(&session);
            session.wait_event("the end of the turn", |event| event["type"] == "done");
            assert_eq!(session.items().pop().unwrap()["body"]["text"], "Thanks.");
        }
        assert_eq!(session.run("go on")["stopReason"], "end_turn", "{point:?}: {:?}", session.notices());
        let last = session.items().pop().unwrap();
        assert_eq!(last["body"]["text"], "Going on.", "{point:?}");
        let request = project.model.last_request().to_string();
        let said = request.contains("The program ended here, in the middle of your answer.");
        assert_eq!(said, matches!(point, Point::Streaming), "{point:?}: {request}");
    }
}

#[test]
fn a_resumed_session_names_the_step_that_its_turn_had_reached() {
    for (point, step) in [
        (Point::Streaming, "STREAMING_MODEL"),
        (Point::Asking, "AWAITING_APPROVAL"),
        (Point::Running, "TOOL_EXECUTING"),
        (Point::Done, "READY"),
    ] {
        let project = Project::new(&script());
        let (id, _) = killed_at(&project, point);
        let client = project.open();
        let session = Session::new(&client, &id);
        session.call("agent/session/load", json!({ "since": 0 }));
        let resumed = session.wait_event("the resumption", |event| event["type"] == "agent_resumed");
        assert_eq!(resumed["breakpoint"], step, "{point:?}");
    }
}

#[test]
fn a_sealed_call_says_what_to_do_before_it_is_repeated() {
    let project = Project::new(&script());
    let (id, _) = killed_at(&project, Point::Running);
    let client = project.open();
    let session = Session::new(&client, &id);
    session.call("agent/session/load", json!({ "since": 0 }));
    let resumed = session.wait_event("the resume", |event| event["type"] == "agent_resumed");
    let call = session.calls().into_iter().find(|call| call["state"] == "SEALED").unwrap();
    let sealed = json!([{ "callId": call["callId"], "state": "EXECUTING" }]);
    assert_eq!((&resumed["strategy"], &resumed["sealedCalls"]), (&json!("crash"), &sealed));
    let structured = &call["structured"];
    assert_eq!((&structured["ok"], &structured["state"]), (&json!(false), &json!("EXECUTING")), "{call}");
    assert!(structured["error"].as_str().unwrap().contains("the server ended"), "{call}");
    let recommendations = structured["recommendations"].as_array().unwrap();
    session.run("go on");
    let request = project.model.last_request().to_string();
    for said in recommendations {
        assert!(request.contains(said.as_str().unwrap()), "{said}: {request}");
    }
    client.kill();
    // A call is sealed once.
    let client = project.open();
    let session = Session::new(&client, &id);
    session.call("agent/session/load", json!({}));
    assert_eq!(session.calls().iter().filter(|call| call["state"] == "SEALED").count(), 1);
    assert_eq!(session.run("go on")["stopReason"], "end_turn");
}

/// How a server ends: killed, or as editors end it.
const ENDS: [fn(&Client); 2] = [Client::kill, |client| assert_eq!(client.shut_down(), 0)];

#[test]
fn what_waited_for_the_user_is_asked_again_and_nothing_runs_before_the_answer() {
    for end in ENDS {
        asks_again_after(end);
    }
}

fn asks_again_after(end: fn(&Client)) {
    let both = step().call("Bash", json!({ "command": "echo one >> log" }));
    let both = both.call("Bash", json!({ "command": "echo two >> log" }));
    let project = Project::new(&Script::new([both, say("Both ran.")]));
    let client = project.open();
    let session = client.session();
    session.prompt("go");
    let asked = session.wait_permission(0);
    let id = session.id.clone();
    end(&client);
    for _ in 0..2 {
        let client = project.open();
        let session = loaded(&client, &id);
        let snapshot = session.snapshot();
        assert_eq!(snapshot["state"], "PAUSED");
        let pending = snapshot["pendingPermissions"].as_array().unwrap();
        assert_eq!(pending.len(), 1, "{snapshot}");
        for field in ["permissionId", "callId", "itemId", "title", "preview"] {
            assert_eq!(pending[0][field], asked[field]);
        }
        let states: Vec<_> = session.calls().iter().map(|call| call["state"].clone()).collect();
        assert_eq!(states, ["APPROVAL_REQUIRED", "PENDING"]);
        end(&client);
    }
    assert_eq!((project.model.requests().len(), project.path("log").exists()), (1, false));

    let client = project.open();
    let session = loaded(&client, &id);
    allow_what_waits(&session);
    session.allow(0);
    let done = session.wait_event("the end of the turn", |event| event["type"] == "done");
    assert_eq!((&done["stopReason"], &done["modelCalls"]), (&json!("end_turn"), &json!(2)));
    assert_eq!(project.read("log"), "one\ntwo\n");
    assert_eq!(project.model.requests().len(), 2);
    assert_eq!(session.items().last().unwrap()["body"]["text"], "Both ran.");
}

/// A session in which the user is asked about an edit of a file, whose server is then killed.
fn killed_before_an_edit(project: &Project, open: bool) -> (String, Value) {
    project.write("a.txt", "one\ntwo\n");
    let client = project.connect(&Offer::kode());
    if open {
        client.editor.open(&project.uri("a.txt"), "one\ntwo\n");
    }
    let session = client.session();
    session.prompt("go");
    let asked = session.wait_permission(0);
    client.kill();
    (session.id.clone(), asked)
}

fn editing() -> Project {
    let path = json!("{{cwd}}/a.txt");
    let edit = json!({ "file_path": path, "old_string": "two", "new_string": "TWO" });
    let steps = [call("Read", json!({ "file_path": path })), call("Edit", edit), say("Edited.")];
    Project::new(&Script::default().when("continue$", [say("So be it.")]).otherwise(steps))
}

#[test]
fn an_edit_that_is_asked_again_is_proposed_again() {
    for open in [false, true] {
        let project = editing();
        let (id, asked) = killed_before_an_edit(&project, open);
        let client = project.connect(&Offer::kode());
        if open {
            client.editor.open(&project.uri("a.txt"), "one\ntwo\n");
        }
        let session = loaded(&client, &id);
        let snapshot = session.snapshot();
        assert_eq!(snapshot["pendingPermissions"][0]["permissionId"], asked["permissionId"], "{snapshot}");
        assert_eq!(session.hunks().len(), 1, "open: {open}");
        allow_what_waits(&session);
        session.wait_event("the end of the turn", |event| event["type"] == "done");
        assert_eq!(session.items().last().unwrap()["body"]["text"], "Edited.");
        let text = if open { client.editor.text(&project.uri("a.txt")) } else { project.read("a.txt") };
        assert_eq!(text, "one\nTWO\n", "open: {open}");
    }
}

#[test]
fn an_edit_that_an_editor_applied_before_it_was_gone_is_the_agent_s_and_is_undone() {
    let project = editing();
    let uri = project.uri("a.txt");
    project.write("a.txt", "one\ntwo\n");
    let client = project.connect(&Offer::kode());
    client.editor.open(&uri, "one\ntwo\n");
    client.editor.next(Policy::HangUp);
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.prompt("go");
    client.wait_for_process();
    let text = client.editor.text(&uri);
    assert_eq!(text, "one\nTWO\n");
    let client = project.connect(&Offer::kode());
    client.editor.open(&uri, &text);
    let session = loaded(&client, &session.id);
    let hunks = session.hunks();
    assert_eq!(hunks.len(), 1, "{:?}", session.items());
    session.resolve(&hunks.iter().collect::<Vec<_>>(), "undo");
    assert_eq!(client.editor.text(&uri), "one\ntwo\n");
}

#[test]
fn what_became_of_changes_is_reported_again_after_a_kill_under_its_number() {
    let project = editing();
    project.write("a.txt", "one\ntwo\n");
    let client = project.open();
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.run("go");
    let reported = |session: &Session<'_>| {
        session.wait_event("changed edits", |event| event["type"] == "edits_changed");
        let is_it = |params: &&Value| params["event"]["type"] == "edits_changed";
        session.records().iter().find(is_it).unwrap()["bookmark"]["seq"].clone()
    };
    let seq = reported(&session);
    client.kill();
    let client = project.open();
    let again = Session::new(&client, &session.id);
    again.call("agent/session/load", json!({ "since": 0 }));
    assert_eq!(reported(&again), seq);
}

#[test]
fn an_edit_whose_text_has_changed_is_not_asked_again_and_nothing_continues_by_itself() {
    let project = editing();
    let (id, _) = killed_before_an_edit(&project, false);
    project.write("a.txt", "other\n");
    let asked = project.model.requests().len();
    let client = project.open();
    let session = Session::new(&client, &id);
    // The session is there once the call is over, which may be before its turn is.
    if session.snapshot()["state"] != "READY" {
        session.wait_event("the end of the turn", |event| event["state"] == "READY");
    }
    let snapshot = session.snapshot();
    assert_eq!((&snapshot["state"], &snapshot["pendingPermissions"]), (&json!("READY"), &json!([])));
    assert_eq!(session.calls()[1]["state"], "FAILED");
    assert_eq!(session.notices()[0]["text"], "The server ended in the middle of this turn.");
    assert_eq!((project.model.requests().len(), project.read("a.txt")), (asked, "other\n".to_owned()));
    assert_eq!(session.run("continue")["stopReason"], "end_turn");
}

#[test]
fn cancelling_what_is_asked_again_ends_the_turn_as_ever() {
    let project = Project::new(&script());
    let (id, _) = killed_at(&project, Point::Asking);
    let client = project.open();
    let session = loaded(&client, &id);
    session.call("agent/turn/cancel", json!({}));
    let done = session.wait_event("the end of the turn", |event| event["type"] == "done");
    assert_eq!(done["stopReason"], "cancelled");
    assert_eq!(session.calls()[0]["state"], "FAILED", "{:?}", session.calls());
    assert_eq!(session.run("go on")["stopReason"], "end_turn");
}

/// Events between the permission prompt of a turn and the next prompt of the user.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Kill,
    ShutDown,
    Load,
    Cancel,
    Allow,
    Deny,
}

#[test]
fn the_history_is_accepted_after_every_order_of_close_resume_cancel_and_answer() {
    use Stage::{Allow, Cancel, Deny, Kill, Load, ShutDown};
    let orders: &[&[Stage]] = &[
        &[Kill, Load, Cancel],
        &[ShutDown, Load, Cancel],
        &[ShutDown, Load, ShutDown, Load, Cancel],
        &[Kill, Load, ShutDown, Load, Cancel],
        &[ShutDown, Load, Cancel, ShutDown, Load],
        &[ShutDown, Load, Cancel, Kill, Load],
        &[Cancel, ShutDown, Load],
        &[Allow, ShutDown, Load, Cancel],
        &[Allow, Kill, Load, Cancel],
        &[ShutDown, Load, Allow, Cancel],
        &[ShutDown, Load, Allow, ShutDown, Load, Cancel],
        &[Kill, Load, Deny, Kill, Load, Cancel],
    ];
    for order in orders {
        history_is_accepted_after(order);
    }
}

fn history_is_accepted_after(order: &[Stage]) {
    let three = step()
        .call("Read", json!({ "file_path": "a.txt" }))
        .call("Bash", json!({ "command": "echo one >> log" }))
        .call("Bash", json!({ "command": "echo two >> log" }));
    let script = Script::default()
        .when("go on$", [call("Read", json!({ "file_path": "a.txt" })), say("Going on.")])
        .otherwise([three, say("Both ran.")]);
    let project = Project::new(&script);
    project.write("a.txt", "text\n");
    let mut client = project.open();
    let id = client.session().id.clone();
    Session::new(&client, &id).prompt("go");
    Session::new(&client, &id).wait_permission(0);
    for stage in order {
        let session = Session::new(&client, &id);
        let decide = |decision: &str| {
            if let Some(prompt) =
                session.snapshot()["pendingPermissions"].as_array().and_then(|all| all.first())
            {
                session
                    .respond(prompt, json!({ "decision": decision, "scope": "once" }))
                    .expect("the answer is taken");
            }
        };
        match stage {
            Stage::Kill => client.kill(),
            Stage::ShutDown => assert_eq!(client.shut_down(), 0),
            Stage::Load => {
                client = project.open();
                loaded(&client, &id);
            }
            Stage::Cancel => {
                // After an answer the turn may have ended by itself.
                if session.call("agent/turn/cancel", json!({}))["cancelled"] == true {
                    session.wait_event("the end of the turn", |event| event["type"] == "done");
                }
            }
            Stage::Allow => decide("allow"),
            Stage::Deny => decide("deny"),
        }
    }
    let session = Session::new(&client, &id);
    let done = session.run("go on");
    assert_eq!(done["stopReason"], "end_turn", "{order:?}: {:?}", project.model.refusals());
    assert_eq!(project.model.refusals(), Vec::<Value>::new(), "{order:?}");
}

#[test]
fn what_a_sub_agent_asked_is_asked_again_and_it_continues() {
    for end in ENDS {
        sub_agent_continues_after(end);
    }
}

fn sub_agent_continues_after(end: fn(&Client)) {
    let command = json!({ "command": "echo ran >> log" });
    let script = Script::default()
        .when("^do it$", [step().text("Soon.").call("Bash", command), say("It is done.")])
        .otherwise([call("Task", json!({ "description": "it", "prompt": "do it" })), say("All done.")]);
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session();
    session.prompt("go");
    let asked = session.wait_permission(0);
    let id = session.id.clone();
    end(&client);
    let client = project.open();
    let session = loaded(&client, &id);
    let snapshot = session.snapshot();
    assert_eq!(snapshot["pendingPermissions"][0]["permissionId"], asked["permissionId"], "{snapshot}");
    assert_eq!(session.calls()[0]["state"], "EXECUTING");
    allow_what_waits(&session);
    session.wait_event("the end of the turn", |event| event["type"] == "done");
    let (text, is_error) = project.model.last_results().remove(0);
    assert!(text.starts_with("It is done.") && !is_error, "{text}");
    assert_eq!(project.read("log"), "ran\n");
    assert_eq!(session.items().last().unwrap()["body"]["text"], "All done.");
}

#[test]
fn a_question_outlives_the_end_of_the_server() {
    let options = json!([{ "label": "Red", "description": "" }, { "label": "Blue", "description": "" }]);
    let question =
        json!({ "question": "Which?", "header": "Color", "options": options, "multiSelect": false });
    for end in ENDS {
        let ask = call("AskUserQuestion", json!({ "questions": [question.clone()] }));
        let project = Project::new(&Script::new([ask, say("So it is.")]));
        let client = project.open();
        let session = client.session();
        session.prompt("go");
        session.wait_event("the question", |event| event["type"] == "question_asked");
        let asked = session.snapshot()["questions"].clone();
        assert_eq!(asked.as_array().map(Vec::len), Some(1), "{asked}");
        end(&client);
        let client = project.open();
        let session = loaded(&client, &session.id);
        let snapshot = session.snapshot();
        assert_eq!((&snapshot["state"], &snapshot["questions"]), (&json!("PAUSED"), &asked));
    }
}

#[test]
fn a_session_survives_kill_after_kill() {
    let project = Project::new(&script());
    let (id, _) = killed_at(&project, Point::Asking);
    for round in 1..=3 {
        let client = project.open();
        let session = loaded(&client, &id);
        allow_what_waits(&session);
        session.wait_event("the end of the turn", |event| event["type"] == "done");
        assert_eq!(session.run("go on")["stopReason"], "end_turn", "round {round}");
        session.prompt("Asking");
        session.wait_permission(0);
        let asked = session.items().iter().filter(|item| item["body"]["text"] == "Asking").count();
        assert_eq!(asked, 1 + round, "every prompt of every round is there");
        client.kill();
    }
}

#[test]
fn half_a_line_at_the_end_of_a_journal_costs_that_line_alone() {
    use std::io::Write;
    let project = Project::new(&script());
    let (id, shown) = killed_at(&project, Point::Done);
    let journal = crate::turn::files(&project.home())
        .into_iter()
        .find(|path| path.ends_with("journal.jsonl"))
        .expect("a journal");
    let mut file = std::fs::OpenOptions::new().append(true).open(journal).unwrap();
    file.write_all(b"{\"type\":\"item\",\"half a rec").unwrap();
    drop(file);
    let client = project.open();
    let session = loaded(&client, &id);
    assert_eq!(session.items(), shown);
    assert_eq!(session.run("go on")["stopReason"], "end_turn");
    drop(client);
    let client = project.open();
    let again = loaded(&client, &id);
    assert_eq!(
        again.items().last().unwrap()["body"]["text"],
        "Going on.",
        "nothing was appended to half a line"
    );
}
