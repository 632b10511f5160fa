//! Servers that are compatible with Chat Completions, but for something: the turn works all the same.
//!
//! Rule: each quirk alone, with the settings a user of such a server would have.

use kode_e2e::{Project, Script, call, say};
use serde_json::{Value, json};

use super::{Wire, answer, open_with, read, thoughts};

/// A script of one read and an answer, on a server with a quirk.
fn project(quirk: &str, value: Value) -> Project {
    let script = Script::new([call("Read", read("a.txt")), say("It says: {{last_result}}")]);
    let project = Project::new(&script.quirk(quirk, value));
    project.write("a.txt", "the text\n");
    project
}

/// Runs a turn with a read, which must work, and gives the requests.
fn reads(project: &Project, settings: Value) -> Vec<Value> {
    let client = open_with(project, Wire::Chat, settings);
    let text = answer(&client.session(), "read it", Wire::Chat);
    assert!(text.contains("the text"), "{text}");
    project.model.requests()
}

#[test]
fn calls_in_one_piece_and_without_ids_are_run() {
    for quirk in ["whole_calls", "no_call_ids"] {
        reads(&project(quirk, json!(true)), json!({}));
    }
}

#[test]
fn no_usage_is_no_fault() {
    let project = project("no_usage", json!(true));
    let client = open_with(&project, Wire::Chat, json!({}));
    let done = client.session().run("read it");
    assert_eq!((&done["stopReason"], &done["usage"]["outputTokens"]), (&json!("end_turn"), &json!(0)));
}

#[test]
fn a_server_that_knows_no_stream_options_is_not_asked_for_them_again() {
    let asked = reads(&project("refused_fields", json!(["stream_options"])), json!({}));
    let given: Vec<bool> = asked.iter().map(|request| !request["stream_options"].is_null()).collect();
    assert_eq!(given, [true, false, false]);
}

#[test]
fn the_limit_of_an_answer_has_the_name_that_the_server_knows() {
    for (refused, known) in [("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")]
    {
        let settings = json!({ "capabilities": { "maxCompletionTokens": known == "max_completion_tokens" } });
        let asked = reads(&project("refused_fields", json!([refused])), settings);
        assert!(asked.iter().all(|request| request[known].is_u64()), "{known}");
    }
}

#[test]
fn a_model_without_a_system_role_is_reported_in_the_prompt() {
    let asked =
        reads(&project("no_system_role", json!(true)), json!({ "capabilities": { "systemRole": false } }));
    let first = &asked[0]["messages"][0];
    assert_eq!(first["role"], "user");
    assert!(kode_e2e::text_of(&first["content"]).contains("Working directory: "), "{first}");
}

#[test]
fn a_server_that_does_not_stream_is_asked_for_the_whole() {
    let asked =
        reads(&project("no_streaming", json!(true)), json!({ "capabilities": { "streaming": false } }));
    assert!(asked.iter().all(|request| request["stream"] != true), "{asked:?}");
}

#[test]
fn a_model_without_tools_calls_them_in_its_text() {
    // Relative: the model speaks JSON, in which the separators of Windows would have to be escaped.
    let spoken = r#"<tool_call>{"name": "Read", "arguments": {"file_path": "a.txt"}}</tool_call>"#;
    let script = Script::default().when("the text", [say("I have seen it.")]).otherwise([say(spoken)]);
    let project = Project::new(&script.quirk("no_tools", json!(true)));
    project.write("a.txt", "the text\n");
    let client = open_with(&project, Wire::Chat, json!({ "capabilities": { "tools": false } }));
    let session = client.session();
    assert_eq!(answer(&session, "read it", Wire::Chat), "I have seen it.");
    assert_eq!(session.calls()[0]["state"], "COMPLETED", "{:?}", session.calls());
}

#[test]
fn reasoning_in_a_field_of_another_name_is_shown() {
    let script = Script::new([kode_e2e::step().thinking("I think.").text("Yes.")]);
    let project = Project::new(&script.quirk("reasoning_field", json!("reasoning")));
    let client = open_with(&project, Wire::Chat, json!({}));
    let session = client.session();
    answer(&session, "hello", Wire::Chat);
    assert_eq!(thoughts(&session), ["I think."]);
}

#[test]
fn a_server_of_this_machine_needs_no_key() {
    let project = project("keyless", json!(true));
    let client = open_with(&project, Wire::Chat, json!({ "apiKey": null }));
    assert!(answer(&client.session(), "read it", Wire::Chat).contains("the text"));
}

#[test]
fn a_request_that_is_too_long_for_the_server_says_so() {
    let project = project("max_request_bytes", json!(1_000));
    let client = open_with(&project, Wire::Chat, json!({}));
    let session = client.session();
    assert_eq!(session.run("read it")["stopReason"], "error");
    let notice = session.notices().pop().unwrap();
    assert!(notice["text"].as_str().unwrap().contains("413"), "{notice}");
}
