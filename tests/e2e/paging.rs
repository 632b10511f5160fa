//! Long sessions: older items page by page, and the same session however it is opened.
//!
//! Rule: the pages are compared with the whole, item by item.

use std::fs;

use kode_e2e::history::{History, Length, window_after};
use kode_e2e::{Client, Project, Script, Session, call, conforms, say};
use serde_json::{Value, json};

/// Turns of the long session. Each has a prompt, a call and an answer.
const TURNS: usize = 500;
const COMPACT_EVERY: usize = 100;

/// A project with a stored session of many turns, and its id.
fn long() -> (Project, History, String) {
    let read = call("Read", json!({ "file_path": "{{cwd}}/file.txt" }));
    let project =
        Project::new(&Script::default().when("^read", [read, say("Read.")]).otherwise([say("Yes.")]));
    project.write("file.txt", "A line.\n".repeat(20));
    let client = project.open();
    let session = client.session();
    session.run("read it");
    let id = session.id.clone();
    assert_eq!(client.shut_down(), 0);
    let history = History::of(&project, &id);
    history.write(Length { turns: TURNS, bytes: 0, compact_every: COMPACT_EVERY });
    (project, history, id)
}

fn loaded<'a>(client: &'a Client, id: &str) -> Session<'a> {
    let session = Session::new(client, id);
    session.call("agent/session/load", json!({ "items": 1 }));
    session
}

/// The whole transcript at once.
fn whole(session: &Session<'_>) -> Vec<Value> {
    let snapshot = session.call("agent/session/load", json!({ "items": 2_000 }));
    assert_eq!(snapshot["moreItems"], false);
    snapshot["items"].as_array().unwrap().clone()
}

/// The whole transcript, page by page from the newest on.
fn paged(session: &Session<'_>, limit: usize) -> Vec<Value> {
    let snapshot = session.call("agent/session/load", json!({ "items": 50 }));
    let (mut pages, mut more) =
        (vec![snapshot["items"].as_array().unwrap().clone()], snapshot["moreItems"].clone());
    while more == true {
        let before = pages.last().unwrap()[0]["itemId"].clone();
        let page = session.call("agent/session/items", json!({ "before": before, "limit": limit }));
        conforms::<kode_protocol::ItemPage>(&page).unwrap();
        pages.push(page["items"].as_array().unwrap().clone());
        more = page["moreItems"].clone();
        assert!((1..=limit).contains(&pages.last().unwrap().len()), "{page}");
    }
    pages.into_iter().rev().flatten().collect()
}

#[test]
fn a_long_transcript_is_paged_back_to_its_first_item() {
    let (project, history, id) = long();
    let client = project.open();
    let session = loaded(&client, &id);
    let items = whole(&session);
    assert_eq!(items.len(), TURNS * 3);
    let journal = fs::read_to_string(&history.path).unwrap();
    let prompts = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let prompts: Vec<Value> =
        prompts.filter(|line| line["type"] == "prompt").map(|line| line["item"]["id"].clone()).collect();
    assert!(items.iter().step_by(3).map(|item| &item["itemId"]).eq(&prompts), "in the order of the journal");
    assert!(fs::metadata(history.beside("items.jsonl")).unwrap().len() > 0, "the old ones are on disk");
    assert_eq!(paged(&session, 170), items);
    let page = session.call("agent/session/items", json!({ "before": items[0]["itemId"] }));
    assert_eq!(page, json!({ "items": [], "moreItems": false }));
    // New messages follow it, and a removed message is no place to page from.
    session.run("go on");
    assert_eq!(whole(&session)[..items.len()], items);
    for (params, path) in [
        (json!({ "before": "item_none" }), "before"),
        (json!({ "before": items[0]["itemId"], "agentId": "agent_none" }), "agentId"),
    ] {
        let error = session.request("agent/session/items", params).unwrap_err();
        assert_eq!((error.kind(), &error.data["path"]), ("invalidParams", &json!(path)), "{error:?}");
    }
    // The messages of a window that has left memory.
    let window = json!({ "windowId": window_after(COMPACT_EVERY), "limit": 3 });
    let page = session.call("agent/context/window", window);
    assert_eq!((page["total"].clone(), page["next"].clone()), (json!(COMPACT_EVERY * 4), json!(3)));
}

#[test]
fn a_second_window_pages_back_what_the_first_one_writes() {
    let (project, _, id) = long();
    let (first, second) = (project.open(), project.open());
    let written = loaded(&first, &id);
    let following = loaded(&second, &id);
    assert_eq!(following.snapshot()["following"]["by"]["pid"], first.process_id());
    assert_eq!(paged(&following, 170), whole(&written));
    assert_eq!(
        following.call("agent/usage/get", json!({}))["total"],
        written.call("agent/usage/get", json!({}))["total"]
    );
    let error = following.request("agent/session/items", json!({ "before": "item_none" })).unwrap_err();
    assert_eq!((error.kind(), &error.data["path"]), ("invalidParams", &json!("before")), "{error:?}");
}

#[test]
fn a_journal_without_a_beginning_is_refused_by_kind_and_kept_as_it_is() {
    let (project, history, id) = long();
    let journal = fs::read_to_string(&history.path).unwrap();
    // All that says where and when the session began is gone.
    let damaged: String = journal.lines().skip(1).take(5).map(|line| format!("x{line}\n")).collect();
    for cache in ["base.bin", "items.jsonl", "summary.json"] {
        let _absent = fs::remove_file(history.beside(cache));
    }
    fs::write(&history.path, &damaged).unwrap();
    let client = project.open();
    let error = Session::new(&client, &id).request("agent/session/load", json!({})).unwrap_err();
    assert_eq!((error.kind(), &error.data["skipped"]), ("corrupted", &json!(5)), "{error:?}");
    assert!(error.message.contains("journal.jsonl") && error.hint().contains("copy"), "{error:?}");
    assert_eq!(fs::read_to_string(&history.path).unwrap(), damaged);
    // The other sessions are not concerned.
    client.session().run("go on");
}

#[test]
fn a_long_session_is_the_same_whatever_became_of_what_lies_beside_its_journal() {
    let (project, history, id) = long();
    let client = project.open();
    let session = loaded(&client, &id);
    let items = whole(&session);
    assert_eq!(client.shut_down(), 0);
    let (base, shelf) = (history.beside("base.bin"), history.beside("items.jsonl"));
    let good = fs::read(&base).expect("the end of a session leaves a base");
    let damages: [(&str, &dyn Fn()); 7] = [
        ("nothing", &|| {}),
        ("base deleted", &|| fs::remove_file(&base).unwrap()),
        ("base truncated", &|| fs::write(&base, &good[..good.len() / 2]).unwrap()),
        ("base of garbage", &|| fs::write(&base, "garbage\n\0\u{1}").unwrap()),
        ("base of another version", &|| {
            let text = String::from_utf8_lossy(&good[..20]).replace("\"form\":\"", "\"form\":\"0");
            fs::write(&base, [text.as_bytes(), &good[20..]].concat()).unwrap();
        }),
        ("old items deleted", &|| fs::remove_file(&shelf).unwrap()),
        ("old items damaged", &|| {
            let length = fs::read(&shelf).unwrap().len();
            fs::write(&shelf, vec![b'x'; length]).unwrap();
        }),
    ];
    for (what, damage) in damages {
        damage();
        let client = project.open();
        let session = loaded(&client, &id);
        assert_eq!(paged(&session, 700), items, "{what}");
        // Half of the times it ends as it pleases.
        if what.starts_with("base") { client.kill() } else { assert_eq!(client.shut_down(), 0) }
    }
}

#[test]
fn a_session_killed_after_its_base_was_written_has_what_came_after_it() {
    let (project, history, id) = long();
    let client = project.open();
    loaded(&client, &id);
    assert_eq!(client.shut_down(), 0);
    let base = fs::read(history.beside("base.bin")).unwrap();
    let client = project.open();
    let session = loaded(&client, &id);
    session.run("one more");
    let items = whole(&session);
    client.kill();
    assert_eq!(fs::read(history.beside("base.bin")).unwrap(), base, "it is not old enough for another");
    let client = project.open();
    let session = loaded(&client, &id);
    assert_eq!(whole(&session), items);
    assert_eq!(session.run("and more")["stopReason"], "end_turn");
}
