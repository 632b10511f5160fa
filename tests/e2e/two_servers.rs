//! Two servers on one session: one writes it, the other follows, and takes it over when it may.

use std::path::{Path, PathBuf};
use std::process::Command;

use kode_e2e::{Client, Offer, Project, Script, Session, call, say};
use serde_json::{Value, json};

fn script() -> Script {
    let write = json!({ "file_path": "{{cwd}}/new.txt", "content": "one\ntwo\n" });
    let read = json!({ "file_path": "{{cwd}}/a.txt" });
    let edit = json!({ "file_path": "{{cwd}}/a.txt", "old_string": "two", "new_string": "TWO" });
    let ask = json!({ "questions": [{
        "question": "Which?", "header": "Kind", "multiSelect": false,
        "options": [{ "label": "red", "description": "" }, { "label": "blue", "description": "" }],
    }] });
    Script::default()
        .when("^ask", [call("AskUserQuestion", ask), say("Blue it is.")])
        .when("^write", [call("Write", write), say("Written.")])
        .when("^edit", [call("Read", read), call("Edit", edit), say("Edited.")])
        .when("^hang", [say("one two three four").chunk(4).gate("middle", 6)])
        .when("", [say("So it is."), say("So it is."), say("So it is."), say("So it is.")])
}

/// The session in another server.
fn there<'a>(client: &'a Client, session: &Session<'_>) -> (Session<'a>, Value) {
    let there = Session::new(client, &session.id);
    let snapshot = there.call("agent/session/load", json!({}));
    (there, snapshot)
}

fn journal_below(folder: &Path, id: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    entries.flatten().map(|entry| entry.path()).find_map(|path| match path.is_dir() {
        true if path.ends_with(id) => Some(path.join("journal.jsonl")),
        true => journal_below(&path, id),
        false => None,
    })
}

/// Every line of the journal is whole, and the numbers on them only grow.
fn assert_whole(project: &Project, id: &str) {
    let journal = std::fs::read_to_string(journal_below(&project.home(), id).unwrap()).unwrap();
    let mut newest = 0;
    for line in journal.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let seq = line["seq"].as_u64().unwrap();
        assert!(seq >= newest, "{line}");
        newest = seq;
    }
}

/// The common display of both.
fn shown(snapshot: &Value) -> Value {
    let fields = ["title", "state", "mode", "items", "todos", "queue", "steering", "draft", "usage"];
    fields.iter().map(|field| ((*field).to_owned(), snapshot[*field].clone())).collect()
}

fn writes(session: &Session<'_>, is_mine: bool) {
    session.wait_event("who writes", |event| event["type"] == "lease_changed" && event["isMine"] == is_mine);
}

fn take_over(session: &Session<'_>, force: bool) -> Result<Value, kode_e2e::RpcError> {
    session.request("agent/session/takeOver", json!({ "force": force }))
}

fn signal(client: &Client, name: &str) {
    let sent = Command::new("kill").args([name, &client.process_id().to_string()]).status();
    assert!(sent.unwrap().success());
    // A thread on another core runs on for a moment after the signal.
    while name == "-STOP" && !is_stopped(client) {
        std::thread::yield_now();
    }
}

/// Whether all threads of a server are stopped.
fn is_stopped(client: &Client) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", client.process_id())).unwrap();
    tasks.flatten().all(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('T'))
    })
}

#[test]
fn a_second_window_shows_the_same_and_takes_over_when_nothing_runs() {
    let project = Project::new(&script());
    let (first, second) = (project.open(), project.open());
    let session = first.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("hello");
    let (follower, loaded) = there(&second, &session);
    assert_eq!(loaded["following"]["by"]["pid"], first.process_id(), "{loaded}");
    let turn = session.prompt("write it");
    follower.wait_done(&turn);
    follower.wait_event("the edit", |event| event["type"] == "edits_changed");
    follower.wait_event("the end", |event| event["type"] == "state_changed" && event["state"] == "READY");
    assert_eq!(shown(&follower.snapshot()), shown(&session.snapshot()));
    let hunks = follower.hunks();
    assert_eq!((hunks.len(), &hunks), (1, &session.hunks()));
    let seen = follower.records();
    let live = session.records();
    let reported: Vec<&Value> =
        seen.iter().filter(|record| record["event"]["type"] != "lease_changed").collect();
    assert!(reported.iter().all(|record| live.contains(record)), "{reported:#?}");

    let input = json!({ "input": [{ "type": "text", "text": "mine" }] });
    let refused = follower.request("agent/turn/start", input.clone()).unwrap_err();
    assert_eq!(refused.kind(), "sessionBusy");
    assert!(refused.message.contains(&first.process_id().to_string()), "{refused:?}");
    assert!(refused.hint().contains("takeOver"), "{refused:?}");

    take_over(&follower, false).unwrap();
    writes(&session, false);
    assert_eq!(session.request("agent/turn/start", input).unwrap_err().kind(), "sessionBusy");
    let turn = follower.prompt("and now");
    follower.wait_done(&turn);
    session.wait_done(&turn);
    assert_eq!(shown(&session.snapshot())["items"], shown(&follower.snapshot())["items"]);
    assert_whole(&project, &session.id);
}

#[test]
fn a_second_window_has_both_sides_of_what_the_first_has_changed_and_decides_nothing() {
    const BEFORE: &str = "one\ntwo\n";
    const AFTER: &str = "one\nTWO\n";
    let project = Project::new(&script());
    project.write("a.txt", BEFORE);
    let (uri, made) = (project.uri("a.txt"), project.uri("new.txt"));
    let reads = json!({ "dynamicRegistration": false });
    let first = project.open();
    let second = project.connect(&Offer::kode().with("/workspace/textDocumentContent", reads));
    let session = first.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("hello");
    let (follower, _) = there(&second, &session);
    second.editor.open(&uri, BEFORE);
    for (prompt, uri) in [("edit", &uri), ("write", &made)] {
        session.run(prompt);
        follower.wait_event("the edit", |event| {
            event["type"] == "edits_changed" && event["uris"].as_array().unwrap().contains(&json!(uri))
        });
    }
    for (uri, baseline, proposed) in [(&uri, BEFORE, AFTER), (&made, "", "one\ntwo\n")] {
        for (method, text) in [("baseline", baseline), ("proposed", proposed)] {
            let ask = |params: Value| second.call(&format!("agent/document/{method}"), params);
            assert_eq!(
                ask(json!({ "uri": uri, "sessionId": session.id })),
                json!({ "text": text }),
                "{method}"
            );
            assert_eq!(ask(json!({ "uri": uri })), json!({ "text": text }), "{method}");
        }
    }
    let of_a = || {
        let files = follower.edited_files();
        files.into_iter().find(|file| file["uri"] == json!(uri)).expect("the file is listed")
    };
    assert_eq!(of_a().get("version"), None, "the places are not those of the text that is open");
    second.editor.close(&uri);
    second.editor.open(&uri, AFTER);
    assert_eq!(of_a()["version"], 1);

    let baseline = of_a()["baselineUri"].clone();
    let read = || second.call("workspace/textDocumentContent", json!({ "uri": baseline }))["text"].clone();
    assert_eq!(read(), BEFORE);
    let hunk = of_a()["hunks"][0]["hunkId"].clone();
    let undo = json!({
        "selection": { "type": "hunks", "sessionId": session.id, "hunkIds": [hunk] }, "action": "undo",
    });
    let refused = second.request("agent/edits/resolve", undo).unwrap_err();
    assert_eq!(refused.kind(), "sessionBusy");
    assert!(refused.hint().contains("takeOver"), "{refused:?}");
    let hunks = session.hunks();
    session.resolve(&[hunks.iter().find(|known| known["hunkId"] == hunk).expect("the same hunk")], "keep");
    let asked = second.wait_for("a refresh", |received| {
        received.of("workspace/textDocumentContent/refresh").map(|one| one["params"]["uri"].clone()).next()
    });
    assert_eq!(asked, baseline);
    let kept = second.request("agent/document/baseline", json!({ "uri": made, "sessionId": session.id }));
    assert_eq!(kept.unwrap()["text"], "", "what still waits can be looked at");
}

#[test]
fn edits_of_two_servers_in_one_closed_file_lose_none_that_was_reported_as_made() {
    const EDITS: usize = 25;
    let file = "{{cwd}}/shared.txt";
    let steps = |first: usize| {
        let edits = (0..EDITS).flat_map(move |number| {
            let line = format!("line {:03}\n", 2 * number + first);
            let edit =
                json!({ "file_path": file, "old_string": line, "new_string": line.replace("line", "LINE") });
            [call("Read", json!({ "file_path": file })), call("Edit", edit)]
        });
        edits.chain([say("Edited.")]).collect::<Vec<_>>()
    };
    let project = Project::new(&Script::default().when("^even", steps(0)).when("^odd", steps(1)));
    let lines: String = (0..2 * EDITS).map(|number| format!("line {number:03}\n")).collect();
    project.write("shared.txt", lines);
    let (first, second) = (project.open(), project.open());
    let sessions = [&first, &second].map(|client| client.session_with(json!({ "mode": "acceptEdits" })));
    let turns = [sessions[0].prompt("even"), sessions[1].prompt("odd")];
    for (session, turn) in sessions.iter().zip(turns) {
        session.wait_done(&turn);
    }
    let text = project.read("shared.txt");
    let mut made = 0;
    for call in sessions.iter().flat_map(Session::calls).filter(|call| call["name"] == "Edit") {
        if call["error"].is_null() {
            made += 1;
            let line = call["input"]["new_string"].as_str().unwrap();
            assert!(text.contains(line), "{line:?} was reported as made and is gone from {text}");
        }
    }
    assert!(made > EDITS, "{made} edits were made");
}

#[test]
fn a_turn_keeps_its_session_unless_it_is_taken_by_force() {
    let project = Project::new(&script());
    let (first, second) = (project.open(), project.open());
    let session = first.session();
    let turn = session.prompt("hang on");
    project.model.wait_until_held("middle");
    let (follower, _) = there(&second, &session);
    let declined = take_over(&follower, false).unwrap_err();
    assert_eq!((declined.kind(), &declined.data["reason"]), ("takeOverDeclined", &json!("turnRunning")));
    take_over(&follower, true).unwrap();
    assert_eq!(session.wait_done(&turn)["stopReason"], "cancelled");
    assert_eq!(follower.run("go on")["stopReason"], "end_turn");
    assert_whole(&project, &session.id);
}

#[test]
fn what_a_killed_server_wrote_continues_with_the_next_prompt_elsewhere() {
    let project = Project::new(&script());
    let (first, second) = (project.open(), project.open());
    let session = first.session();
    session.run("hello");
    let (follower, _) = there(&second, &session);
    first.kill();
    follower.wait_event("nobody writes", |event| {
        event["type"] == "lease_changed" && event.get("writer").is_none()
    });
    assert_eq!(follower.snapshot()["following"], json!({}), "nobody takes it unasked");
    assert_eq!(follower.run("go on")["stopReason"], "end_turn");
    assert_eq!(follower.snapshot().get("following"), None);
    assert_whole(&project, &follower.id);
}

#[test]
fn what_is_asked_without_a_session_continues_where_it_was_also_when_another_window_had_it_last() {
    let project = Project::new(&script());
    let (first, second) = (project.open(), project.open());
    let ask = |client: &Client| {
        client.request(
            "workspace/executeCommand",
            json!({ "command": "kode.ask", "arguments": [{ "text": "hello" }] }),
        )
    };
    let id = ask(&first).unwrap()["sessionId"].as_str().unwrap().to_owned();
    let session = Session::new(&first, &id);
    session.wait_event("the end", |event| event["type"] == "done");
    let there = Session::new(&second, &id);
    there.call("agent/session/load", json!({}));
    take_over(&there, false).unwrap();
    writes(&session, false);
    assert_eq!(ask(&first).unwrap_err().kind(), "sessionBusy");
    second.kill();
    session.wait_event("nobody writes", |event| {
        event["type"] == "lease_changed" && event.get("writer").is_none()
    });
    assert_eq!(ask(&first).unwrap()["sessionId"], id);
    assert_whole(&project, &id);
}

#[test]
fn of_two_windows_that_take_over_at_once_one_wins() {
    let project = Project::new(&script());
    let (first, second, third) = (project.open(), project.open(), project.open());
    let session = first.session();
    session.run("hello");
    let ((one, _), (two, _)) = (there(&second, &session), there(&third, &session));
    let (of_one, of_two) = std::thread::scope(|scope| {
        let other = scope.spawn(|| take_over(&two, false));
        (take_over(&one, false), other.join().unwrap())
    });
    // Asked at once, one is refused; asked one after the other, the second has it from the first.
    let mut taken = 0;
    for answer in [of_one, of_two] {
        match answer {
            Ok(_) => taken += 1,
            Err(refused) => assert_eq!(refused.kind(), "sessionBusy", "{refused:?}"),
        }
    }
    assert!(taken > 0, "nobody has it");
    let (mut writers, followers): (Vec<_>, Vec<_>) =
        [one, two, session].into_iter().partition(|window| window.snapshot().get("following").is_none());
    assert_eq!((writers.len(), followers.len()), (1, 2), "one writes");
    let winner = writers.remove(0);
    assert_eq!(winner.run("go on")["stopReason"], "end_turn");
    assert_whole(&project, &winner.id);
}

#[test]
fn a_server_that_is_stopped_is_named_and_taken_over_once_it_continues() {
    let project = Project::new(&script());
    let (first, second) = (project.open(), project.open());
    let session = first.session();
    session.run("hello");
    let (follower, _) = there(&second, &session);
    signal(&first, "-STOP");
    let silent = take_over(&follower, false).unwrap_err();
    signal(&first, "-CONT");
    assert_eq!((silent.kind(), &silent.data["pid"]), ("writerSilent", &json!(first.process_id())));
    assert!(silent.hint().contains(&first.process_id().to_string()), "{silent:?}");
    take_over(&follower, false).unwrap();
    assert_eq!(follower.run("go on")["stopReason"], "end_turn");
}

#[test]
fn an_editor_without_a_panel_takes_over_by_a_command() {
    let project = Project::new(&script());
    let first = project.open();
    let session = first.session();
    session.run("hello");
    let second = project.connect(&kode_e2e::Offer::plain());
    let argument = json!({ "sessionId": session.id });
    let taken = second
        .call("workspace/executeCommand", json!({ "command": "kode.takeOver", "arguments": [argument] }));
    assert_eq!(taken["sessionId"], session.id.as_str());
    writes(&session, false);
}

#[test]
fn what_waits_in_one_window_is_answered_in_the_other() {
    let project = Project::new(&script());
    let (first, second) = (project.open(), project.open());
    let session = first.session();
    session.run("hello");
    let (follower, _) = there(&second, &session);
    let turn = session.prompt("write it");
    let prompt = follower.wait_permission(0);
    assert_eq!(prompt, session.wait_permission(0));
    let snapshot = follower.snapshot();
    assert_eq!((&snapshot["state"], &snapshot["pendingPermissions"]), (&json!("PAUSED"), &json!([prompt])));
    // A later client sees it, too.
    let third = project.open();
    assert_eq!(there(&third, &session).1["pendingPermissions"], json!([prompt]));
    follower.respond(&prompt, json!({ "decision": "allow", "mode": "acceptEdits" })).unwrap();
    for window in [&session, &follower] {
        let decided = window.wait_event("the answer", |event| event["type"] == "permission_decided");
        assert_eq!(
            (&decided["outcome"], &decided["permissionId"]),
            (&json!("allow"), &prompt["permissionId"])
        );
        window.wait_done(&turn);
    }
    assert_eq!(project.read("new.txt"), "one\ntwo\n");
    assert_eq!(session.snapshot()["mode"], "acceptEdits");
    let late = follower.respond(&prompt, json!({ "decision": "deny" })).unwrap_err();
    assert_eq!(late.kind(), "alreadyResolved", "{late:?}");
}

#[test]
fn a_question_is_answered_from_another_window_and_a_prompt_that_is_cancelled_closes_there() {
    let project = Project::new(&script());
    let (first, second) = (project.open(), project.open());
    let session = first.session();
    session.run("hello");
    let (follower, _) = there(&second, &session);
    let turn = session.prompt("ask me");
    let asked = follower.wait_event("the question", |event| event["type"] == "question_asked");
    let answer =
        json!({ "questionId": asked["question"]["questionId"], "answers": [{ "labels": ["blue"] }] });
    follower.call("agent/question/respond", answer);
    session.wait_done(&turn);
    assert!(project.model.last_results()[0].0.contains("blue"));

    session.prompt("write it");
    let prompt = follower.wait_permission(0);
    session.call("agent/turn/cancel", json!({}));
    let closed = follower.wait_event("the end of the prompt", |event| {
        event["type"] == "permission_decided" && event["permissionId"] == prompt["permissionId"]
    });
    assert_eq!(closed["outcome"], "cancelled");
    assert_eq!(follower.snapshot()["pendingPermissions"], json!([]));
}

#[test]
fn a_writer_that_hangs_does_not_hold_up_an_answer_for_ever() {
    let project = Project::new(&script());
    let (first, second) = (project.open(), project.open());
    let session = first.session();
    session.run("hello");
    let (follower, _) = there(&second, &session);
    session.prompt("write it");
    let prompt = follower.wait_permission(0);
    signal(&first, "-STOP");
    let error = follower.respond(&prompt, json!({ "decision": "allow" })).unwrap_err();
    assert_eq!(error.kind(), "sessionBusy", "{error:?}");
    signal(&first, "-CONT");
    follower.respond(&prompt, json!({ "decision": "deny" })).unwrap();
    follower.wait_event("the answer", |event| event["type"] == "permission_decided");
}
