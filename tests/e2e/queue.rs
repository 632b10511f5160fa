//! Prompts that wait, over the wire: changed until they begin, paused by a cancel, kept through a kill; and drafts.

use kode_e2e::{Project, Script, Session, say};
use serde_json::{Value, json};

fn project() -> Project {
    Project::new(&Script::default().when("^first$", [say("One.").gate("hold", 0)]).otherwise([say("Ok.")]))
}

fn texts(prompts: &Value) -> Vec<String> {
    let prompts = prompts.as_array().expect("prompts").iter();
    prompts.map(|prompt| prompt["text"].as_str().expect("a text").to_owned()).collect()
}

fn update(session: &Session<'_>, op: Value) -> Result<Value, kode_e2e::RpcError> {
    session.request("agent/queue/update", json!({ "op": op }))
}

fn asked(session: &Session<'_>) -> Vec<String> {
    let items = session.items().into_iter().filter(|item| item["body"]["type"] == "userMessage");
    items.map(|item| item["body"]["text"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn what_waits_is_changed_paused_by_a_cancel_and_continues_after_a_prompt() {
    let project = project();
    let client = project.open();
    let session = client.session();
    let first = session.prompt("first");
    project.model.wait_until_held("hold");
    let ids: Vec<Value> =
        ["a", "b", "c"].iter().map(|text| session.submit(text)["queueId"].clone()).collect();
    update(&session, json!({ "type": "move", "queueId": ids[2], "before": ids[0] })).unwrap();
    update(&session, json!({ "type": "edit", "queueId": ids[1], "text": "b2" })).unwrap();
    update(&session, json!({ "type": "remove", "queueId": ids[0] })).unwrap();
    let gone = update(&session, json!({ "type": "remove", "queueId": ids[0] })).unwrap_err();
    assert_eq!(gone.kind(), "unknownPrompt", "{gone:?}");
    assert_eq!(texts(&session.snapshot()["queue"]), ["c", "b2"]);

    session.call("agent/turn/cancel", json!({}));
    assert_eq!(session.wait_done(&first)["stopReason"], "cancelled");
    let paused =
        session.wait_event("the pause", |event| event["type"] == "queue_changed" && event["paused"] == true);
    assert_eq!(texts(&paused["queue"]), ["c", "b2"]);
    assert_eq!(session.snapshot()["queuePaused"], true);
    let turn = session.prompt("instead");
    session.wait_done(&turn);
    session.wait_event("the end of the queue", |event| {
        event["type"] == "queue_changed" && event["queue"] == json!([]) && event["paused"] == false
    });
    assert_eq!(asked(&session), ["first", "instead", "c", "b2"]);
    let late = update(&session, json!({ "type": "edit", "queueId": ids[1], "text": "x" })).unwrap_err();
    assert_eq!((late.kind(), &late.data["by"]), ("alreadyResolved", &json!("turn")), "{late:?}");
}

#[test]
fn queue_and_draft_survive_a_kill_and_a_promoted_prompt_begins() {
    let project = project();
    let (id, ids) = {
        let client = project.open();
        let session = client.session();
        session.call("agent/draft/set", json!({ "text": "sent soon" }));
        session.prompt("first");
        project.model.wait_until_held("hold");
        assert!(session.snapshot()["draft"].is_null(), "what is handed in takes it away");
        let ids = ["a", "b"].map(|text| session.submit(text)["queueId"].clone());
        let draft =
            json!({ "text": "half a thou", "parts": [{ "type": "mention", "uri": project.uri("a.txt") }] });
        session.call("agent/draft/set", draft.clone());
        let reported = session.wait_event("the draft", |event| {
            event["type"] == "draft_changed" && event["draft"]["text"] == "half a thou"
        });
        assert_eq!(reported["draft"], draft);
        let long = json!({ "text": "x".repeat(300 * 1024) });
        assert_eq!(session.request("agent/draft/set", long).unwrap_err().kind(), "invalidParams");
        let id = session.id.clone();
        client.kill();
        client.wait_for_end();
        (id, ids)
    };
    let client = project.open();
    let session = Session::new(&client, &id);
    let snapshot = session.snapshot();
    assert_eq!(texts(&snapshot["queue"]), ["a", "b"]);
    assert_eq!((&snapshot["queuePaused"], &snapshot["draft"]["text"]), (&json!(true), &json!("half a thou")));
    let begun = update(&session, json!({ "type": "promote", "queueId": ids[1] })).unwrap();
    session.wait_done(begun["turnId"].as_str().expect("a turn began"));
    session.wait_event("the rest", |event| event["type"] == "queue_changed" && event["queue"] == json!([]));
    assert_eq!(asked(&session), ["first", "b", "a"]);
    project.model.release("hold");
}
