//! The same turns against aimock, whose reading of the three wire formats is not ours.
//!
//! Rule: nothing here asks the scripted model. Where no aimock is named, these tests have nothing to do; `tests/run`
//! names one, or says that they are left out.

use kode_e2e::{Aimock, Offer, Project, Script, Session};
use serde_json::{Value, json};

use super::{WIRES, Wire, last_text, thoughts};

/// Runs a test over each wire, each with a project and a server of its own.
fn on_each_wire(fixtures: impl Fn(&Project) -> Vec<Value>, test: impl Fn(&Session<'_>, Wire)) {
    for wire in WIRES {
        let project = Project::new(&Script::default());
        project.write("a.txt", "the first file\n").write("b.txt", "the second file\n");
        let file = project.outside().join("fixtures.json");
        let Some(aimock) = Aimock::start(&fixtures(&project), &file) else { return };
        let mut profile = wire.profile(aimock.base_url());
        profile["maxRetries"] = json!(1);
        let client = project.connect(&Offer::kode().options(json!({ "model": profile })));
        test(&client.session(), wire);
        assert_eq!(project.model.exchanges(), Vec::<Value>::new(), "{wire:?}: our own model is not asked");
    }
}

/// A call of Read, as a fixture writes it.
fn read(project: &Project, name: &str) -> Value {
    json!({ "name": "Read", "arguments": { "file_path": project.path(name) } })
}

fn says(text: &str) -> Value {
    json!({ "content": text })
}

#[test]
fn a_text_is_read_piece_by_piece() {
    let fixtures = |_: &Project| {
        vec![
            json!({ "match": { "userMessage": "hello" }, "response": says("A few words of häh? 🙂 indeed.") }),
        ]
    };
    on_each_wire(fixtures, |session, wire| {
        assert_eq!(session.run("hello")["stopReason"], "end_turn", "{wire:?}: {:?}", session.notices());
        assert_eq!(last_text(session), "A few words of häh? 🙂 indeed.", "{wire:?}");
    });
}

#[test]
fn calls_are_run_and_their_results_understood() {
    let fixtures = |project: &Project| {
        let calls =
            json!({ "content": "I look.", "toolCalls": [read(project, "a.txt"), read(project, "b.txt")] });
        vec![
            json!({ "match": { "toolResultContains": "the second file" }, "response": says("I have seen both.") }),
            json!({ "match": { "userMessage": "read both" }, "response": calls }),
        ]
    };
    on_each_wire(fixtures, |session, wire| {
        assert_eq!(session.run("read both")["stopReason"], "end_turn", "{wire:?}: {:?}", session.notices());
        assert_eq!(last_text(session), "I have seen both.", "{wire:?}");
        let states: Vec<Value> = session.calls().iter().map(|call| call["state"].clone()).collect();
        assert_eq!(states, ["COMPLETED", "COMPLETED"], "{wire:?}: {:?}", session.calls());
    });
}

#[test]
fn reasoning_is_shown_as_such() {
    let fixtures = |_: &Project| {
        let response = json!({ "reasoning": "Step by step.", "content": "Thought about it." });
        vec![json!({ "match": { "userMessage": "think" }, "response": response })]
    };
    on_each_wire(fixtures, |session, wire| {
        // Ollama's field is `thinking`; aimock writes `reasoning_content`, which no Ollama does.
        if matches!(wire, Wire::Ollama) {
            return;
        }
        assert_eq!(session.run("think")["stopReason"], "end_turn", "{wire:?}: {:?}", session.notices());
        assert_eq!(thoughts(session), ["Step by step."], "{wire:?}");
        assert_eq!(last_text(session), "Thought about it.", "{wire:?}");
    });
}

#[test]
fn a_rate_limit_is_waited_for() {
    let fixtures = |_: &Project| {
        let limit = json!({
            "error": { "message": "slow down", "type": "rate_limit_error" }, "status": 429, "retryAfter": 0,
        });
        vec![
            json!({ "match": { "userMessage": "hurry", "sequenceIndex": 0 }, "response": limit }),
            json!({ "match": { "userMessage": "hurry" }, "response": says("Here I am.") }),
        ]
    };
    on_each_wire(fixtures, |session, wire| {
        assert_eq!(session.run("hurry")["stopReason"], "end_turn", "{wire:?}: {:?}", session.notices());
        assert_eq!(last_text(session), "Here I am.", "{wire:?}");
        let retries = session.events().iter().filter(|event| event["type"] == "model_retry").count();
        assert_eq!(retries, 1, "{wire:?}");
    });
}

#[test]
fn a_stream_that_is_cut_is_no_answer() {
    let fixtures = |_: &Project| {
        let text = says("This sentence will be cut somewhere in the middle of it.");
        vec![json!({ "match": { "userMessage": "cut" }, "response": text, "truncateAfterChunks": 4 })]
    };
    on_each_wire(fixtures, |session, wire| {
        assert_eq!(session.run("cut")["stopReason"], "error", "{wire:?}");
        let notice = session.notices().pop().unwrap();
        assert_eq!(notice["level"], "error", "{wire:?}: {notice}");
    });
}

#[test]
fn an_error_is_reported_in_the_servers_words() {
    let fixtures = |_: &Project| {
        let error = json!({ "error": { "message": "the prompt smells", "type": "invalid_request_error" }, "status": 400 });
        vec![json!({ "match": { "userMessage": "smell" }, "response": error })]
    };
    on_each_wire(fixtures, |session, wire| {
        assert_eq!(session.run("smell")["stopReason"], "error", "{wire:?}");
        let notice = session.notices().pop().unwrap();
        assert!(notice["text"].as_str().unwrap().contains("the prompt smells"), "{wire:?}: {notice}");
    });
}
