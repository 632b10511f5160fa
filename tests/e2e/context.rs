//! The messages of a conversation as they were before it was compacted, over the wire.

use kode_e2e::{Project, Script, Session, say, summarize};
use serde_json::{Value, json};

/// The name of `/compact` for the messages before it.
fn compacted(session: &Session<'_>) -> Value {
    let turn = session.prompt("/compact");
    session.wait_done(&turn);
    let is_done = |event: &Value| event["type"] == "context_compression" && event["step"]["type"] == "done";
    session.wait_event("the end of the compaction", is_done)["step"].clone()
}

#[test]
fn an_old_window_is_read_page_by_page_also_after_a_restart() {
    let long = "lorem ipsum dolor sit amet ".repeat(80);
    let script = Script::default()
        .when("^The conversation:", [summarize("as it was").repeat(9)])
        .otherwise([say(&long).repeat(9)]);
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session();
    for round in 0..5 {
        session.run(&format!("prompt {round}"));
    }
    let done = compacted(&session);
    assert_eq!((&done["messagesBefore"], &done["failure"]), (&json!(10), &Value::Null), "{done}");
    let window = |session: &Session<'_>, from: Value, limit: u32| {
        session.request(
            "agent/context/window",
            json!({ "windowId": done["windowId"], "from": from, "limit": limit }),
        )
    };
    let pages = |session: &Session<'_>| {
        let (mut read, mut from) = (Vec::new(), json!(0));
        while !from.is_null() {
            let page = window(session, from, 4).unwrap();
            assert_eq!(page["total"], 10);
            read.push(page["messages"].as_array().unwrap().clone());
            from = page["next"].clone();
        }
        read
    };
    let read = pages(&session);
    assert_eq!(read.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 2]);
    for (at, message) in read.iter().flatten().enumerate() {
        let (role, text) = match at % 2 {
            0 => ("user", format!("prompt {}", at / 2)),
            _ => ("assistant", long.clone()),
        };
        assert_eq!((&message["role"], &message["content"][0]["text"]), (&json!(role), &json!(text)));
        assert_eq!(message["model"].is_null(), role == "user", "{message}");
    }

    let past = window(&session, json!(10), 4).unwrap();
    assert_eq!((&past["messages"], &past["next"], &past["total"]), (&json!([]), &Value::Null, &json!(10)));
    for (from, limit) in [(json!(-1), 4), (json!("first"), 4), (json!(1.5), 4), (json!(0), 0)] {
        let error = window(&session, from.clone(), limit).expect_err("no such page");
        assert_eq!(error.code, -32602, "{from} {limit}: {error:?}");
    }
    let unknown = json!({ "windowId": "win_none", "from": 0, "limit": 4 });
    let error = session.request("agent/context/window", unknown).expect_err("no such window");
    assert!(error.code == -32602 && error.message.contains("win_none"), "{error:?}");

    client.kill();
    client.wait_for_end();
    let client = project.open();
    let again = Session::new(&client, &session.id);
    let _ = again.snapshot();
    assert_eq!(pages(&again), read, "the journal keeps them");
}

#[test]
fn a_first_instruction_that_was_pasted_outlives_a_compaction() {
    let script = Script::default()
        .when("^The conversation:", [summarize("as it was").repeat(9)])
        .otherwise([say(&"lorem ipsum ".repeat(80)).repeat(9)]);
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session();
    session.run(&format!("Port the parser.\n{}", "Keep every test.\n".repeat(800)));
    for round in 0..5 {
        session.run(&format!("prompt {round}"));
    }
    compacted(&session);
    session.run("go on");
    let request = project.model.last_request().to_string();
    let (_, reported) =
        request.split_once("The first instruction of the user, word for word:").expect("it is told");
    let reported: String = reported.chars().take(200).collect();
    assert!(reported.contains("Port the parser.\\nKeep every test."), "{reported}");
}
