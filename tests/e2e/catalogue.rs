//! The sessions there are, over the wire and on the command line: listed, named, archived, deleted, searched.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use kode_e2e::history::{History, Length};
use kode_e2e::{Client, Encoding, Offer, Project, Script, Session, call, conforms, say};
use serde_json::{Value, json};

fn project() -> Project {
    Project::new(&Script::default().otherwise([say("Hello, said the model.")]))
}

fn list(client: &Client, params: Value) -> Vec<Value> {
    let answer = client.call("agent/session/list", params);
    conforms::<kode_protocol::ListSessionsResult>(&answer).unwrap();
    answer["sessions"].as_array().unwrap().clone()
}

fn ids(sessions: &[Value]) -> Vec<&str> {
    sessions.iter().map(|session| session["sessionId"].as_str().unwrap()).collect()
}

/// The folder of a session in the state of the program.
fn folder(project: &Project, id: &str) -> PathBuf {
    let workspaces = fs::read_dir(project.home().join("sessions")).unwrap();
    let found = workspaces.map(|workspace| workspace.unwrap().path().join(id)).find(|folder| folder.exists());
    found.unwrap_or_else(|| panic!("{id} is not stored"))
}

fn close(client: &Client, session: &Session<'_>) {
    session.call("agent/session/close", json!({}));
    let sessions = list(client, json!({ "archived": "include" }));
    assert!(
        sessions.iter().any(|one| one["sessionId"] == session.id && one["state"] == "stored"),
        "{sessions:?}"
    );
}

#[test]
fn a_session_in_the_list_says_what_it_is_and_what_it_takes() {
    let project = project();
    let client = project.open();
    let session = client.session();
    session.run("fix the cache\nand the tests");
    let one = list(&client, json!({})).remove(0);
    assert_eq!(
        (&one["title"], &one["state"], &one["runState"]),
        (&json!("fix the cache"), &json!("live"), &json!("READY"))
    );
    assert_eq!((&one["turns"], &one["lastAnswer"]), (&json!(1), &json!("Hello, said the model.")));
    assert_eq!(
        (&one["model"], &one["mode"], &one["archived"]),
        (&json!("main"), &json!("default"), &json!(false))
    );
    assert!(one["createdAt"].as_str().unwrap() <= one["updatedAt"].as_str().unwrap());
    assert!(Path::new(one["folder"].as_str().unwrap()).ends_with("workspace"), "{one}");
    close(&client, &session);
    // The note of who writes a session goes after the session is listed as stored, and sizes count it: another server counts.
    client.hang_up();
    client.wait_for_process();
    let client = project.open();
    let page = client.call("agent/session/list", json!({ "totals": true }));
    let bytes = page["sessions"][0]["bytes"].as_u64().unwrap();
    assert!(bytes > 500 && page["totals"]["bytes"].as_u64().unwrap() >= bytes, "{page}");
    assert_eq!(page["totals"]["sessions"], 1);
    let elsewhere = url::Url::from_file_path(project.outside()).unwrap().to_string();
    assert_eq!(list(&client, json!({ "folder": elsewhere })), [] as [Value; 0]);
}

#[test]
fn of_fifty_sessions_three_damaged_ones_hide_none_and_pages_hold_while_sessions_change() {
    let project = project();
    let client = project.open();
    let session = client.session();
    session.run("the first");
    close(&client, &session);
    let whole = folder(&project, &session.id);
    let journal = fs::read_to_string(whole.join("journal.jsonl")).unwrap();
    for number in 1..50 {
        let id = format!("ses_{number:02}");
        fs::create_dir(whole.with_file_name(&id)).unwrap();
        let copy = whole.with_file_name(&id).join("journal.jsonl");
        fs::write(copy, journal.replace(&session.id, &id)).unwrap();
    }
    for (id, content) in [("ses_07", "no JSON\n"), ("ses_08", ""), ("ses_09", "{\"v\":1,\n")] {
        fs::write(whole.with_file_name(id).join("journal.jsonl"), content).unwrap();
    }
    let (mut seen, mut params) = (Vec::new(), json!({ "limit": 20 }));
    loop {
        let page = client.call("agent/session/list", params);
        seen.extend(page["sessions"].as_array().unwrap().clone());
        let Some(next) = page.get("nextCursor") else { break };
        let last = seen.last().unwrap()["sessionId"].as_str().unwrap().to_owned();
        client.call("agent/session/delete", json!({ "sessionId": last }));
        client.session().run("one more");
        params = json!({ "limit": 20, "cursor": next });
    }
    assert_eq!(seen.len(), 50);
    let mut once: Vec<_> = ids(&seen);
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), 50, "each once, and none that came later");
    let unreadable: Vec<_> = seen.iter().filter(|session| session["state"] == "unreadable").collect();
    assert_eq!(unreadable.len(), 3);
    assert!(unreadable.iter().all(|session| session["problem"].is_string()), "{unreadable:?}");
}

#[test]
fn a_title_of_the_users_is_reported_survives_a_restart_and_can_be_given_to_what_is_not_live() {
    let project = project();
    let client = project.open();
    let session = client.session();
    session.run("first words");
    session.call("agent/session/rename", json!({ "title": " The\ncache " }));
    let reported =
        session.wait_event("the title", |event| event["type"] == "title_changed" && event["by"].is_string());
    assert_eq!((&reported["title"], &reported["by"]), (&json!("The cache"), &json!("user")));
    let id = session.id.clone();
    client.kill();
    drop(client);
    let client = project.open();
    let one = list(&client, json!({})).remove(0);
    assert_eq!((&one["title"], &one["titledBy"]), (&json!("The cache"), &json!("user")));
    client.call("agent/session/rename", json!({ "sessionId": id, "title": "Stored" }));
    let session = Session::new(&client, &id);
    assert_eq!(session.snapshot()["title"], "Stored");
    assert_eq!(project.model.requests().len(), 1, "no model was asked for a title");
    for (title, kind) in [("", "invalidParams"), ("x".repeat(201).as_str(), "invalidParams")] {
        let error = session.request("agent/session/rename", json!({ "title": title })).unwrap_err();
        assert_eq!(error.kind(), kind);
    }
    let unknown = client.request("agent/session/rename", json!({ "sessionId": "ses_0", "title": "a" }));
    assert_eq!(unknown.unwrap_err().kind(), "unknownSession");
}

#[test]
fn a_model_of_its_own_behind_quick_names_the_session_after_its_first_turn() {
    let script =
        Script::default().when("The title:$", [say("\"A name from the model.\"")]).otherwise([say("Hello.")]);
    let project = Project::new(&script);
    let small =
        json!({ "model": "small-model", "baseUrl": project.model.base_url(), "apiKey": "small-key-123" });
    let options = json!({ "models": { "small": small }, "pointers": { "quick": "small" } });
    let client = project.connect(&Offer::kode().options(options));
    let session = client.session();
    session.run("first words");
    let reported =
        session.wait_event("the title", |event| event["type"] == "title_changed" && event["by"].is_string());
    assert_eq!((&reported["title"], &reported["by"]), (&json!("A name from the model"), &json!("model")));
    let charged = session.events().iter().filter(|event| event["type"] == "token_usage").count();
    assert_eq!(charged, 2, "the title is paid openly");
    session.run("second words");
    close(&client, &session);
    let one = list(&client, json!({})).remove(0);
    assert_eq!((&one["title"], &one["titledBy"]), (&json!("A name from the model"), &json!("model")));
    assert_eq!(project.model.requests().len(), 3);
}

#[test]
fn what_is_archived_is_listed_on_demand_and_can_be_used_all_the_same() {
    let project = project();
    let client = project.open();
    let (first, second) = (client.session(), client.session());
    first.run("one");
    second.run("two");
    first.call("agent/session/archive", json!({ "archived": true }));
    first.wait_event("to be archived", |event| {
        event["type"] == "archived_changed" && event["archived"] == true
    });
    close(&client, &second);
    second.call("agent/session/archive", json!({ "archived": true }));
    assert_eq!(list(&client, json!({})), [] as [Value; 0]);
    assert_eq!(ids(&list(&client, json!({ "archived": "only" }))), [&second.id, &first.id]);
    assert_eq!(first.run("three")["stopReason"], "end_turn");
    second.call("agent/session/archive", json!({ "archived": false }));
    assert_eq!(ids(&list(&client, json!({}))), [&second.id]);
}

#[test]
fn a_session_is_deleted_whole_but_neither_while_it_works_nor_while_another_window_has_it() {
    let script = Script::default().when("^wait", [say("late").gate("held", 0)]).otherwise([say("Hello.")]);
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session();
    let turn = session.prompt("wait");
    project.model.wait_until_held("held");
    let busy = |client: &Client| {
        let refused = client.request("agent/session/delete", json!({ "sessionId": session.id }));
        assert_eq!(refused.unwrap_err().kind(), "sessionBusy");
    };
    busy(&client);
    let other = project.open();
    assert_eq!(list(&other, json!({}))[0]["state"], "elsewhere");
    busy(&other);
    let renamed = other.request("agent/session/rename", json!({ "sessionId": session.id, "title": "a" }));
    assert_eq!(renamed.unwrap_err().kind(), "sessionBusy");
    project.model.release("held");
    session.wait_done(&turn);
    let stored = folder(&project, &session.id);
    session.call("agent/session/delete", json!({}));
    assert!(!stored.exists() && list(&client, json!({})).is_empty());
    let left: Vec<_> =
        fs::read_dir(stored.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [] as [PathBuf; 0], "nothing is left of it");
    let again = client.request("agent/session/delete", json!({ "sessionId": session.id }));
    assert_eq!(again.unwrap_err().kind(), "unknownSession");
    let gone = client.request("agent/session/load", json!({ "sessionId": session.id }));
    assert_eq!(gone.unwrap_err().kind(), "unknownSession");
}

#[test]
fn words_are_found_in_live_and_stored_sessions_with_their_place() {
    let script = Script::default()
        .when(
            "^run",
            [
                call(
                    "Bash",
                    json!({ "command": "expr 'needle in the hay' : '.*'; echo needle in the output" }),
                ),
                say("Ran."),
            ],
        )
        .otherwise([say("😀 A \"Quoted Näedle\" in the answer.")]);
    let project = Project::new(&script);
    let client = project.connect(&Offer::kode().encodings(&[Encoding::Utf16]));
    let stored = client.session();
    stored.run("no such word");
    close(&client, &stored);
    let live = client.session_with(json!({ "mode": "bypassPermissions" }));
    live.run("run the needle");
    let search = |query: &str| -> Vec<Value> {
        let answer = client.call("agent/session/search", json!({ "query": query }));
        conforms::<kode_protocol::SearchSessionsResult>(&answer).unwrap();
        answer["hits"].as_array().unwrap().clone()
    };
    let found = search("NEEDLE");
    let kinds: Vec<_> = found.iter().map(|hit| hit["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["toolOutput", "toolTitle", "prompt"]);
    assert!(found.iter().all(|hit| hit["sessionId"] == live.id && hit["itemId"].is_string()), "{found:?}");
    let quoted = search("\"quoted näedle\"").remove(0);
    assert_eq!((&quoted["sessionId"], &quoted["kind"]), (&json!(stored.id), &json!("answer")));
    let units: Vec<u16> = quoted["snippet"].as_str().unwrap().encode_utf16().collect();
    let place = |name: &str| usize::try_from(quoted[name].as_u64().unwrap()).unwrap();
    let text = String::from_utf16(&units[place("start")..place("end")]).unwrap();
    assert_eq!(text, "\"Quoted Näedle\"");
    let page = client.call("agent/session/search", json!({ "query": "needle", "limit": 1 }));
    let rest = json!({ "query": "needle", "cursor": page["nextCursor"] });
    assert_eq!(client.call("agent/session/search", rest)["hits"].as_array().unwrap()[..], found[1..]);
    let empty = client.request("agent/session/search", json!({ "query": " " }));
    assert_eq!(empty.unwrap_err().data["path"], "query");
}

#[test]
fn what_is_removed_when_a_session_is_closed_is_never_what_a_checkpoint_needs() {
    let write = |content: &str| call("Write", json!({ "file_path": "{{cwd}}/a.txt", "content": content }));
    let read = || call("Read", json!({ "file_path": "{{cwd}}/a.txt" }));
    let script = Script::default()
        .when("^first", [read(), write("by the first\n"), say("1")])
        .when("^second", [call("Bash", json!({ "command": "printf 'by a command' > a.txt" })), say("2")]);
    let project = Project::new(&script);
    project.write("a.txt", "before\n");
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("first");
    session.run("second");
    close(&client, &session);
    let blobs = folder(&project, &session.id).join("blobs");
    let unnamed = blobs.join("0".repeat(64));
    fs::write(&unnamed, "nobody names it").unwrap();
    let old = SystemTime::now() - Duration::from_secs(2 * 60 * 60);
    for blob in fs::read_dir(&blobs).unwrap() {
        fs::File::options().append(true).open(blob.unwrap().path()).unwrap().set_modified(old).unwrap();
    }
    assert!(fs::read_dir(&blobs).unwrap().count() > 1);
    session.call("agent/session/load", json!({}));
    close(&client, &session);
    // Waits until the session has ended.
    session.call("agent/session/load", json!({}));
    assert!(!unnamed.exists(), "it takes room for nothing");
    let checkpoints = session.call("agent/checkpoint/list", json!({}));
    let first = &checkpoints["checkpoints"][0]["checkpointId"];
    let answer = session.call("agent/checkpoint/restore", json!({ "checkpointId": first, "what": "files" }));
    let outcome = session.wait_resolved(answer["resolutionId"].as_str().unwrap());
    assert_eq!(outcome["failed"], json!([]), "{outcome}");
    assert_eq!(project.read("a.txt"), "before\n");
}

#[test]
fn the_command_line_lists_names_searches_and_deletes_by_the_beginning_of_an_id() {
    let project = project();
    let client = project.open();
    let session = client.session();
    session.run("fix the cache");
    client.shut_down();
    let run = |arguments: &[&str]| {
        let output = project.run(&[&["sessions"], arguments].concat(), "");
        assert_eq!(output.code, 0, "{arguments:?}: {}", output.stderr);
        output.stdout
    };
    let id = session.id.as_str();
    let start = &id[..id.len() - 1];
    assert!(run(&[]).contains("fix the cache"));
    let listed: Value = serde_json::from_str(&run(&["list", "--json"])).unwrap();
    conforms::<kode_protocol::ListSessionsResult>(&listed).unwrap();
    assert_eq!(listed["sessions"][0]["sessionId"], id);
    run(&["rename", start, "A", "new", "name"]);
    let shown: Value = serde_json::from_str(&run(&["show", start, "--json"])).unwrap();
    assert_eq!((&shown["title"], &shown["turns"]), (&json!("A new name"), &json!(1)));
    assert!(run(&["show", start]).contains("A new name"));
    assert!(run(&["search", "CACHE"]).contains("prompt"));
    assert!(run(&["size"]).contains("in 1 sessions"));
    run(&["archive", start]);
    assert!(!run(&[]).contains("A new name") && run(&["list", "--archived"]).contains("A new name"));
    run(&["archive", start, "--undo"]);
    assert!(run(&[]).contains("A new name"));
    let doctor = project.run(&["doctor", "--json"], "");
    let findings: Value = serde_json::from_str(&doctor.stdout).unwrap();
    assert_eq!(findings["sessions"]["sessions"], 1);
    let unsure = project.run(&["sessions", "delete", start], "");
    assert!(unsure.code != 0 && unsure.stderr.contains("--yes"), "{}", unsure.stderr);
    run(&["delete", start, "--yes"]);
    assert!(run(&[]).contains("no sessions"));
    assert_ne!(project.run(&["sessions", "show", start], "").code, 0);
}

#[test]
fn an_editor_without_a_panel_picks_the_conversation_that_continues() {
    let project = project();
    let client = project.connect(&Offer::plain());
    let execute = |command: &str, argument: Value| {
        client.call("workspace/executeCommand", json!({ "command": command, "arguments": [argument] }))
    };
    let asked = |n: usize| {
        client.wait_for("a message request", |received| {
            received.of("window/showMessageRequest").nth(n).cloned()
        })
    };
    let first = execute("kode.ask", json!({ "text": "the first" }))["sessionId"].clone();
    execute("kode.renameSession", json!({ "title": "My first" }));
    let second = execute("kode.newSession", Value::Null)["sessionId"].clone();
    execute("kode.ask", json!({ "text": "the second" }));
    let answer = execute("kode.sessions", Value::Null);
    assert_eq!((answer["asked"].as_u64(), answer["sessions"].as_array().unwrap().len()), (Some(2), 2));
    let request = asked(0);
    let titles = request["params"]["actions"].as_array().unwrap();
    assert_eq!(titles[0]["title"], "Cancel");
    let mine =
        titles.iter().find(|action| action["title"].as_str().unwrap().starts_with("My first")).unwrap();
    client.answer(&request, mine.clone());
    client.wait_for("to be told", |received| {
        let mut shown = received.of("window/showMessage");
        shown
            .find(|message| {
                message["params"]["message"].as_str().unwrap().contains("the next prompt continues")
            })
            .map(drop)
    });
    assert_eq!(execute("kode.ask", json!({ "text": "more" }))["sessionId"], first);
    assert_eq!(execute("kode.sessions", json!({ "sessionId": second }))["title"], "the second");
    let found = execute("kode.searchSessions", json!({ "query": "the second" }));
    assert_eq!(found["hits"][0]["sessionId"], second, "{found}");
    execute("kode.archiveSession", json!({ "sessionId": first }));
    // Refused as long as its turn runs.
    let delete = json!({ "command": "kode.deleteSession", "arguments": [{ "sessionId": second }] });
    while client.request("workspace/executeCommand", delete.clone()).is_err() {}
    assert_eq!(execute("kode.sessions", Value::Null)["sessions"], json!([]));
}

#[test]
fn the_command_line_lists_a_large_session_by_the_ends_of_its_journal_and_shows_the_whole() {
    let (turns, project) = (2_345, Project::new(&Script::new([say("Yes.")])));
    let client = project.open();
    let session = client.session();
    session.run("Is it large?");
    let id = session.id.clone();
    assert_eq!(client.shut_down(), 0);
    let history = History::of(&project, &id);
    history.write(Length { turns, bytes: 0, compact_every: 0 });
    assert!(fs::metadata(&history.path).unwrap().len() > 1 << 20, "a smaller one is read as a whole");
    let listed = project.run(&["sessions"], "");
    assert!(
        listed.stdout.contains("Is it large?") && listed.stdout.contains("`kode-ls sessions show ID`"),
        "{listed:?}"
    );
    assert!(!listed.stdout.contains(&turns.to_string()), "{listed:?}");
    let shown = project.run(&["sessions", "show", &id], "");
    assert!(shown.stdout.contains(&turns.to_string()), "{shown:?}");
    let again = project.run(&["sessions"], "");
    assert!(
        again.stdout.contains(&turns.to_string()) && !again.stdout.contains("sessions show"),
        "{again:?}"
    );
}
