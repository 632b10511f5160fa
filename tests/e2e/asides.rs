//! Side questions over the wire: answered from the conversation as it is, and no part of it.

use std::fs;
use std::path::{Path, PathBuf};

use kode_e2e::{Offer, Project, Script, Session, call, say, text_of};
use serde_json::{Value, json};

/// How often a place is asked for that becomes free.
const TRIES: usize = 5_000;

/// A script whose turn waits for the permission to run a command, and answers side questions meanwhile.
fn waiting() -> Script {
    Script::default()
        .when(
            "^go",
            [
                say("I look first.").call("Glob", json!({ "pattern": "*" })),
                say("Now the command.").call("Bash", json!({ "command": "touch made" })),
                say("All done."),
            ],
        )
        .when(
            "why touch",
            [say("Because the build wants it.").usage(json!({ "input_tokens": 7, "output_tokens": 5 }))],
        )
        .otherwise([say("Ok.")])
}

fn ask(session: &Session<'_>, question: &str) -> Value {
    session.call("agent/session/ask", json!({ "question": question, "askId": "mine" }))
}

/// The text of a request, without the system prompt and the tools.
fn conversation(request: &Value) -> String {
    request["messages"].to_string()
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .flat_map(|entry| match entry.file_type().unwrap() {
            kind if kind.is_dir() => files(&entry.path()),
            kind if kind.is_file() => vec![entry.path()],
            _ => Vec::new(),
        })
        .collect()
}

/// The requests that have this text in their messages.
fn with<'a>(requests: &'a [Value], text: &str) -> Vec<&'a Value> {
    requests.iter().filter(|request| conversation(request).contains(text)).collect()
}

#[test]
fn a_question_is_answered_while_a_call_waits_and_leaves_no_trace() {
    let project = Project::new(&waiting());
    let (id, spent) = {
        let client = project.open();
        let session = client.session();
        let turn = session.prompt("go");
        let prompt = session.wait_permission(0);
        let answer = ask(&session, "why touch, by the way?");
        assert_eq!(answer["answer"], "Because the build wants it.", "{answer}");
        assert_eq!((&answer["isWhole"], &answer["usage"]["outputTokens"]), (&json!(true), &json!(5)));
        // Events take their own way to the client.
        client.wait_for("the pieces of the answer", |received| {
            let events = received.events(&session.id).iter().map(|record| &record["event"]);
            let pieces = events.filter(|event| event["type"] == "side_answer" && event["askId"] == "mine");
            let text: String = pieces.filter_map(|event| event["text"].as_str()).collect();
            (text == "Because the build wants it.").then_some(())
        });
        let waiting = session.call("agent/permission/list", json!({})).to_string();
        assert!(waiting.contains(prompt["permissionId"].as_str().unwrap()), "it waits still: {waiting}");
        session
            .respond(&prompt, json!({ "decision": "allow", "scope": "once" }))
            .expect("the answer is taken");
        assert_eq!(session.wait_done(&turn)["stopReason"], "end_turn");
        assert!(session.items().iter().all(|item| !item.to_string().contains("by the way")), "no item");
        (session.id.clone(), session.call("agent/usage/get", json!({})))
    };
    let requests = project.model.requests();
    let asked = with(&requests, "by the way");
    assert_eq!((requests.len(), asked.len()), (4, 1), "three rounds, and one request of its own");
    // The request before it is its prefix: the same system prompt, tools and messages.
    let (aside, round) = (asked[0], &requests[1]);
    assert_eq!((&aside["system"], &aside["tools"]), (&round["system"], &round["tools"]));
    let (mine, theirs) = (aside["messages"].as_array().unwrap(), round["messages"].as_array().unwrap());
    assert_eq!(mine.len(), theirs.len());
    assert_eq!(mine[..mine.len() - 1], theirs[..theirs.len() - 1]);
    let (mine, theirs) = (mine.last().unwrap(), theirs.last().unwrap());
    let (mine, theirs) = (mine["content"].as_array().unwrap(), theirs["content"].as_array().unwrap());
    assert_eq!(mine[..theirs.len()], theirs[..], "the cached end is the same, marks included");
    let added = text_of(&json!(mine[theirs.len()..]));
    assert!(added.contains("touch made") && added.ends_with("why touch, by the way?"), "{added}");
    // Its tokens are counted: those of three rounds and its own.
    assert_eq!(spent["models"][0]["calls"], 4, "{spent}");
    assert_eq!(spent["turns"].as_array().map(Vec::len), Some(1), "{spent}");
    for file in files(&project.home()) {
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        for trace in ["by the way", "the build wants it"] {
            assert!(!text.contains(trace), "{trace} is in {}", file.display());
        }
    }
    let client = project.open();
    let session = Session::new(&client, &id);
    let snapshot = session.snapshot();
    assert!(!snapshot.to_string().contains("the build wants it"), "{snapshot}");
    assert_eq!(session.call("agent/usage/get", json!({}))["models"][0]["calls"], 4, "the count is kept");
    session.run("more");
    assert!(!conversation(&project.model.last_request()).contains("by the way"));
}

#[test]
fn a_question_can_be_cancelled_and_two_are_answered_at_a_time() {
    let held = [say("A long answer.").gate("hold", 2)];
    let script = Script::default().when("quick", [say("Quick.")]).otherwise(held);
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session();
    let send = |question: &str| {
        client.send_request("agent/session/ask", json!({ "sessionId": session.id, "question": question }))
    };
    let (first, second) = (send("one"), send("two"));
    project.model.wait_until_held("hold");
    let quick = || session.request("agent/session/ask", json!({ "question": "quick" }));
    assert_eq!(quick().unwrap_err().kind(), "sessionBusy");
    client.notify("$/cancelRequest", json!({ "id": first }));
    assert_eq!(client.await_answer(first).unwrap_err().code, -32_800);
    // Its place is free once the model has stopped, while the other one is still held.
    let answer = (0..TRIES).find_map(|_| match quick() {
        Ok(answer) => Some(answer),
        Err(error) => {
            assert_eq!(error.kind(), "sessionBusy", "{error:?}");
            None
        }
    });
    let answer = answer.expect("the place of a cancelled question is free");
    assert_eq!(answer["answer"], "Quick.");
    assert!(!client.is_answered(second));
    project.model.release("hold");
    assert_eq!(client.await_answer(second).unwrap()["answer"], "A long answer.");
    assert_eq!(session.snapshot()["state"], "READY");
}

#[test]
fn a_model_that_fails_or_calls_tools_is_reported_clearly() {
    let faults = [json!({ "status": 401 }), json!({ "status": 401 })];
    let script = Script::default()
        .when("broken", [say("never").faults(faults)])
        .when(
            "stubborn",
            [call("Bash", json!({ "command": "touch made" })), say("I cannot run it; the log would say.")],
        )
        .otherwise([say("Ok.")]);
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session();
    let failed = session.request("agent/session/ask", json!({ "question": "broken?" })).unwrap_err();
    assert_eq!(failed.kind(), "modelFailed", "{failed:?}");
    assert!(failed.message.contains("401") && !failed.hint().is_empty(), "{failed:?}");
    let answer = ask(&session, "stubborn?");
    assert_eq!(answer["answer"], "I cannot run it; the log would say.");
    assert!(!project.path("made").exists(), "nothing ran");
    let empty = session.request("agent/session/ask", json!({ "question": "  " })).unwrap_err();
    assert_eq!(empty.kind(), "invalidParams", "{empty:?}");
    let prompt = json!([{ "type": "text", "text": "/btw why?" }]);
    let refused = session.request("agent/turn/start", json!({ "input": prompt })).unwrap_err();
    assert!(refused.hint().contains("agent/session/ask"), "{refused:?}");
}

#[test]
fn an_editor_without_a_plugin_asks_by_command_and_by_prompt() {
    let project = Project::new(&waiting());
    let client = project.connect(&Offer::plain());
    let run = |command: &str, argument: Value| {
        client.call("workspace/executeCommand", json!({ "command": command, "arguments": [argument] }))
    };
    let shown = |count: usize| {
        client.wait_for("the answer", |received| {
            let texts = received.of("window/showMessage").map(|message| message["params"]["message"].clone());
            let mut answers = texts.filter(|text| text.as_str().is_some_and(|text| text.starts_with("/btw")));
            answers.nth(count)
        })
    };
    run("kode.ask", json!({ "text": "go" }));
    client.wait_for("the permission prompt", |received| {
        received.of("window/showMessageRequest").next().cloned()
    });
    run("kode.btw", json!({ "text": "why touch?" }));
    assert_eq!(shown(0), "/btw why touch?\n\nBecause the build wants it.");
    run("kode.ask", json!({ "text": "/btw why touch, again?" }));
    assert_eq!(shown(1), "/btw why touch, again?\n\nBecause the build wants it.");
    assert_eq!(run("kode.queue", json!({}))["queue"], json!([]), "nothing waits");
}

#[test]
fn an_agent_panel_gets_the_answer_as_a_message_of_its_own() {
    let project = Project::new(&waiting());
    let client = project.acp(json!({}));
    let session = client.new_session();
    let turn = client.send_prompt(&session, "go");
    let _permission = client.wait_request("session/request_permission", 0);
    let answered = client.prompt(&session, "/btw why touch?").unwrap();
    assert_eq!(answered["stopReason"], "end_turn", "{answered}");
    assert_eq!(answered["_meta"]["kode"]["usage"]["outputTokens"], 5, "{answered}");
    let update = client
        .wait_update(&session, "the answer", |update| update["_meta"]["kode"]["sideQuestion"].is_string());
    assert_eq!(update["content"]["text"], "Because the build wants it.");
    assert!(update["messageId"].is_string(), "{update}");
    assert!(!client.is_answered(turn), "the turn waits still");
    let other = client.send_prompt(&session, "/btw why touch?");
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert!(client.await_answer(other).is_ok());
    assert_eq!(client.await_answer(turn).unwrap()["stopReason"], "cancelled");
}

#[test]
fn a_script_asks_about_its_last_session() {
    let project = Project::new(&waiting());
    let first = project.run(&["run", "hello"], "");
    assert_eq!(first.code, 0, "{first:?}");
    let asked = project.run(&["run", "-c", "--output-format", "json", "/btw why touch?"], "");
    let result: Value = serde_json::from_str(&asked.stdout).expect("one object");
    assert_eq!(
        (&result["result"], &result["is_error"]),
        (&json!("Because the build wants it."), &json!(false))
    );
    assert_eq!(result["usage"]["output_tokens"], 5, "{result}");
    let text = project.run(&["run", "-c", "/btw why touch?"], "");
    assert_eq!((text.code, text.stdout.as_str()), (0, "Because the build wants it.\n"), "{text:?}");
    let more = project.run(&["run", "-c", "more"], "");
    assert_eq!(more.code, 0, "{more:?}");
    assert!(!conversation(&project.model.last_request()).contains("why touch"), "no trace");
}
