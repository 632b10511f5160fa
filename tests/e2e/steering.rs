//! Messages of the user to a running turn, over the wire.

use kode_e2e::{Offer, Project, Script, Session, call, say, text_of};
use serde_json::{Value, json};

fn steer(session: &Session<'_>, text: &str) -> Value {
    let input = json!([{ "type": "text", "text": text }]);
    session.call("agent/turn/start", json!({ "input": input, "delivery": "steer" }))
}

fn last_text(request: &Value) -> String {
    text_of(&request["messages"].as_array().expect("messages").last().expect("a message")["content"])
}

#[test]
fn a_turn_that_would_end_continues_with_what_was_said_meanwhile() {
    let project = Project::new(&Script::new([say("Done.").gate("hold", 0), say("That too.")]));
    let client = project.open();
    let session = client.session();
    let turn = session.prompt("go");
    project.model.wait_until_held("hold");
    let reported = steer(&session, "and the tests");
    assert_eq!((&reported["type"], &reported["turnId"]), (&json!("steering"), &json!(turn)), "{reported}");
    assert_eq!(session.snapshot()["steering"][0]["text"], "and the tests");
    project.model.release("hold");
    assert_eq!(session.wait_done(&turn)["stopReason"], "end_turn");
    let requests = project.model.requests();
    assert_eq!(requests.len(), 2, "one turn, two calls");
    assert!(last_text(&requests[1]).contains("and the tests"), "{}", requests[1]);
    let steered: Vec<Value> =
        session.items().into_iter().filter(|item| item["body"]["steered"] == true).collect();
    assert_eq!((steered.len(), &steered[0]["turnId"]), (1, &json!(turn)));
    let snapshot = session.snapshot();
    assert_eq!((&snapshot["steering"], &snapshot["queue"]), (&json!([]), &json!([])));
    assert_eq!(steer(&session, "new")["type"], "started", "no turn runs");
}

#[test]
fn a_kill_before_it_was_reported_leaves_it_in_the_queue() {
    let script = Script::default()
        .when("^go$", [call("Glob", json!({ "pattern": "*" })), say("Done.").gate("hold", 0)])
        .otherwise([say("Ok.")]);
    let project = Project::new(&script);
    let id = {
        let client = project.open();
        let session = client.session();
        session.prompt("go");
        project.model.wait_until_held("hold");
        steer(&session, "one");
        steer(&session, "two");
        client.kill();
        client.wait_for_end();
        session.id.clone()
    };
    let client = project.open();
    let session = Session::new(&client, &id);
    let snapshot = session.snapshot();
    let waiting: Vec<&Value> =
        snapshot["queue"].as_array().unwrap().iter().map(|prompt| &prompt["text"]).collect();
    assert_eq!(waiting, ["one", "two"]);
    assert_eq!((&snapshot["steering"], &snapshot["queuePaused"]), (&json!([]), &json!(true)));
    project.model.release("hold");
}

#[test]
fn an_editor_without_a_plugin_steers_and_lists_by_commands() {
    let project = Project::new(&Script::new([say("Done.").gate("hold", 0), say("That too.")]));
    let client = project.connect(&Offer::plain());
    let run = |command: &str, argument: Value| {
        client.call("workspace/executeCommand", json!({ "command": command, "arguments": [argument] }))
    };
    run("kode.ask", json!({ "text": "go" }));
    project.model.wait_until_held("hold");
    run("kode.ask", json!({ "text": "later" }));
    run("kode.steer", json!({ "text": "now" }));
    let listed = run("kode.queue", json!({}));
    assert_eq!(
        (&listed["queue"][0]["text"], &listed["steering"][0]["text"]),
        (&json!("later"), &json!("now"))
    );
    assert_eq!(run("kode.queue", json!({ "op": "remove" }))["queue"], json!([]));
    project.model.release("hold");
}
