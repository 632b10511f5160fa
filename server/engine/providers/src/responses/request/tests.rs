//! Requests on the wire, whole and as continuations.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::kept::StoredAnswers;
use super::*;
use crate::validity::{MODEL, message};
use kode_model::normalise::normalise;
use kode_model::{AnswerOrigin, ToolChoice, ToolDeclaration, Wire};

/// The model at a host that no journal names.
const OWN: OwnModel<'_> = OwnModel { model: MODEL, host: "" };

const FEATURES: Features = Features {
    stored: true,
    reasoning: true,
    sampling: true,
    summaries: true,
    sealed: true,
    reasoning_back: true,
    freeform: true,
    capabilities: Capabilities::ALL,
};

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

fn call(id: &str) -> Block {
    Block::ToolUse { id: id.into(), name: "Read".into(), input: json!({"a": 1}), input_error: None }
}

fn picture_block() -> Block {
    Block::Image(Image { media_type: "image/png".into(), data: "cA==".into(), text: None })
}

fn sealed(id: &str) -> Block {
    Block::RedactedThinking {
        data: format!(r#"{{"type":"reasoning", "id":"{id}","summary":[],"encrypted_content":"é\u00e9"}}"#),
    }
}

fn origin(wire: Wire, model: &str, response: Option<&str>) -> Option<AnswerOrigin> {
    Some(AnswerOrigin { wire, model: model.into(), host: None, response_id: response.map(str::to_owned) })
}

fn own(response: &str, content: Vec<Block>) -> Message {
    Message { origin: origin(Wire::Responses, MODEL, Some(response)), ..Message::assistant(content) }
}

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest { messages: messages.into(), max_tokens: 8000, ..ModelRequest::default() }
}

fn sent(features: Features, request: &ModelRequest, bookmark: Option<ResponseBookmark<'_>>) -> Value {
    serde_json::from_str(&written(features, request, bookmark)).unwrap()
}

fn written(features: Features, request: &ModelRequest, bookmark: Option<ResponseBookmark<'_>>) -> String {
    serde_json::to_string(&body(OWN, features, request, bookmark)).unwrap()
}

fn lines(sent: &Value) -> String {
    let line = |(field, value): (&String, &Value)| match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| format!("\n  {item}")).collect();
            format!("{field}:{}", items.concat())
        }
        value => format!("{field}: {value}"),
    };
    sent.as_object().unwrap().iter().map(line).collect::<Vec<_>>().join("\n")
}

fn conversation() -> ModelRequest {
    let shown = Block::Thinking { thinking: "hm".into(), signature: String::new() };
    let image = Image { media_type: "image/png".into(), data: "cA==".into(), text: None };
    let pictured = Block::ToolResult {
        tool_use_id: "call_2".into(),
        content: "a picture".into(),
        images: vec![image],
        is_error: false,
    };
    ModelRequest {
        system: vec!["You are an agent.".into(), String::new(), "Working directory: /w".into()],
        tools: vec![ToolDeclaration {
            name: "Read".into(),
            description: "Reads a file.".into(),
            input_schema: json!({"type": "object", "properties": {"file_path": {"type": "string"}}}).into(),
            grammar: None,
        }],
        temperature: Some(0.5),
        cache_key: Some("session".into()),
        reminders: vec!["<system-reminder>x</system-reminder>".into()],
        ..request(vec![
            Message::user(vec![text("read /a"), picture_block()]),
            own("resp_1", vec![shown, sealed("rs_1"), text("Reading."), call("call_1"), call("call_2")]),
            Message::user(vec![text("and"), Block::result("call_1", "", false), pictured]),
        ])
    }
}

#[test]
fn a_whole_request_on_the_wire() {
    insta::assert_snapshot!(lines(&sent(FEATURES, &conversation(), None)), @r#"
    model: "gpt-5"
    instructions: "You are an agent.\n\nWorking directory: /w"
    input:
      {"type":"message","role":"user","content":[{"type":"input_text","text":"read /a"},{"type":"input_image","image_url":"data:image/png;base64,cA==","detail":"auto"}]}
      {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"éé"}
      {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Reading."}]}
      {"type":"function_call","call_id":"call_1","name":"Read","arguments":"{\"a\":1}"}
      {"type":"function_call","call_id":"call_2","name":"Read","arguments":"{\"a\":1}"}
      {"type":"function_call_output","call_id":"call_1","output":""}
      {"type":"function_call_output","call_id":"call_2","output":[{"type":"input_text","text":"a picture"},{"type":"input_image","image_url":"data:image/png;base64,cA==","detail":"auto"}]}
      {"type":"message","role":"user","content":[{"type":"input_text","text":"and"},{"type":"input_text","text":"<system-reminder>x</system-reminder>"}]}
    tools:
      {"type":"function","name":"Read","description":"Reads a file.","parameters":{"type":"object","properties":{"file_path":{"type":"string"}}},"strict":false}
    max_output_tokens: 8000
    reasoning: {"effort":"medium","summary":"auto"}
    include:
      "reasoning.encrypted_content"
    store: true
    truncation: "disabled"
    prompt_cache_key: "session"
    stream: true
    "#);
}

#[test]
fn calls_of_a_tool_with_a_grammar_are_free_text_and_their_results_say_so() {
    let call = |id: &str, input: Value| Block::ToolUse {
        id: id.into(),
        name: "apply_patch".into(),
        input,
        input_error: None,
    };
    let calls = vec![call("call_1", json!({"input": "*** x"})), call("call_2", json!({"wrong": 1}))];
    let request = ModelRequest {
        tools: vec![ToolDeclaration {
            name: "apply_patch".into(),
            description: "Patches.".into(),
            input_schema: json!({"type": "object"}).into(),
            grammar: Some("start: /.+/"),
        }],
        ..request(vec![
            Message::user(vec![text("go")]),
            own("resp_1", calls),
            Message::user(vec![Block::result("call_1", "ok", false), Block::result("call_2", "no", true)]),
        ])
    };
    let items = |features: Features| {
        let sent = sent(features, &request, None);
        (sent["input"].as_array().unwrap()[1..].to_vec(), sent["tools"][0].clone())
    };
    let (input, tool) = items(FEATURES);
    assert_eq!(
        tool,
        json!({"type": "custom", "name": "apply_patch", "description": "Patches.",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}})
    );
    assert_eq!(
        input,
        [
            json!({"type": "custom_tool_call", "call_id": "call_1", "name": "apply_patch", "input": "*** x"}),
            json!({"type": "function_call", "call_id": "call_2", "name": "apply_patch", "arguments": "{\"wrong\":1}"}),
            json!({"type": "custom_tool_call_output", "call_id": "call_1", "output": "ok"}),
            json!({"type": "function_call_output", "call_id": "call_2", "output": "no"}),
        ]
    );
    let (input, tool) = items(Features { freeform: false, ..FEATURES });
    assert_eq!((&tool["type"], &input[0]["type"]), (&json!("function"), &json!("function_call")));
}

#[test]
fn a_model_that_sees_no_pictures_is_notified_of_them() {
    let sent = sent(
        Features { capabilities: Capabilities { images: false, ..Capabilities::ALL }, ..FEATURES },
        &conversation(),
        None,
    );
    let note = "[A picture (image/png) is here, which this model cannot see.]";
    assert_eq!(sent["input"][0]["content"][1]["text"], note);
    assert_eq!(sent["input"][6]["output"], format!("a picture\n\n{note}"));
    assert!(!sent.to_string().contains("cA=="), "{sent}");
}

#[test]
fn a_request_that_continues_from_a_kept_answer() {
    let bookmark = ResponseBookmark { response: "resp_1", next: 2 };
    let plain = Features { reasoning: false, ..FEATURES };
    let request = ModelRequest { tools: vec![], ..conversation() };
    insta::assert_snapshot!(lines(&sent(plain, &request, Some(bookmark))), @r#"
    model: "gpt-5"
    instructions: "You are an agent.\n\nWorking directory: /w"
    previous_response_id: "resp_1"
    input:
      {"type":"function_call_output","call_id":"call_1","output":""}
      {"type":"function_call_output","call_id":"call_2","output":[{"type":"input_text","text":"a picture"},{"type":"input_image","image_url":"data:image/png;base64,cA==","detail":"auto"}]}
      {"type":"message","role":"user","content":[{"type":"input_text","text":"and"},{"type":"input_text","text":"<system-reminder>x</system-reminder>"}]}
    max_output_tokens: 8000
    temperature: 0.5
    store: true
    truncation: "disabled"
    prompt_cache_key: "session"
    stream: true
    "#);
}

#[test]
fn reasoning_goes_back_byte_for_byte_and_only_to_its_own_model() {
    let answer = vec![sealed("rs_1"), text("so")];
    let Block::RedactedThinking { data } = sealed("rs_1") else { panic!("not sealed") };
    let with = |origin| {
        let answer = Message { origin, ..Message::assistant(answer.clone()) };
        written(FEATURES, &request(vec![Message::user(vec![text("a")]), answer]), None)
    };
    assert!(with(origin(Wire::Responses, MODEL, None)).contains(&data));
    for foreign in [
        None,
        origin(Wire::Responses, "gpt-5-mini", Some("resp_1")),
        origin(Wire::ChatCompletions, MODEL, Some("resp_1")),
    ] {
        assert!(!with(foreign.clone()).contains("rs_1"), "{foreign:?}");
    }
    let answer = own("resp_1", vec![text("so"), sealed("rs_2")]);
    let sent = written(FEATURES, &request(vec![Message::user(vec![text("a")]), answer]), None);
    assert!(!sent.contains("rs_2"), "nothing follows it: {sent}");
}

#[test]
fn what_the_api_would_refuse_is_rewritten() {
    let long = "x".repeat(70);
    let named = |name: &str| Block::ToolUse {
        id: long.clone(),
        name: name.into(),
        input: json!({}),
        input_error: None,
    };
    let request = ModelRequest {
        max_tokens: 1,
        ..request(vec![
            Message::user(vec![text("a")]),
            Message::assistant(vec![named("Read file.ä"), named("")]),
            Message::user(vec![Block::result(long.as_str(), "x", false)]),
        ])
    };
    let sent = sent(FEATURES, &request, None);
    assert_eq!(sent["max_output_tokens"], 16);
    assert_eq!(
        (&sent["input"][1]["name"], &sent["input"][2]["name"]),
        (&json!("Read_file__"), &json!("unnamed"))
    );
    let id = sent["input"][1]["call_id"].as_str().unwrap();
    assert!(id.len() == 64 && id.starts_with("xxx"), "{id}");
    assert_eq!(sent["input"][3]["call_id"], id, "call and result stay a pair");
}

fn field<'a>(item: &'a Value, name: &str) -> &'a str {
    item[name].as_str().unwrap_or_default()
}

proptest! {
    #[test]
    fn whatever_happened_reasoning_has_its_item_and_calls_have_their_outputs(
        history in prop::collection::vec(message(), 0..12),
        kept in any::<prop::sample::Index>(),
        stored in any::<bool>(),
    ) {
        let request = request(normalise(&history));
        let state = StoredAnswers::default();
        let ours: Vec<usize> =
            (0..request.messages.len()).filter(|at| OWN.gave(&request.messages[*at])).collect();
        if stored && !ours.is_empty() {
            let at = ours[kept.index(ours.len())];
            if let Some(id) = request.messages[at].origin.as_ref().and_then(|o| o.response_id.clone()) {
                state.remember(id, &request.messages, at);
            }
        }
        let bookmark = state.bookmark(OWN, &request.messages);
        let sent = sent(Features { stored, ..FEATURES }, &request, bookmark);
        let items = sent["input"].as_array().unwrap();
        // With a kept answer the calls of that answer are open; outputs of older ones were sent before.
        let mut open: Vec<String> = Vec::new();
        if let Some(ResponseBookmark { next, .. }) = bookmark {
            prop_assert!(!items.is_empty());
            let calls = request.messages[next - 1].content.iter().filter_map(|block| match block {
                Block::ToolUse { id, .. } => Some(id.clone()),
                _ => None,
            });
            open.extend(calls);
        }
        for (at, item) in items.iter().enumerate() {
            let next = items.get(at + 1).unwrap_or(&Value::Null);
            match field(item, "type") {
                "reasoning" => prop_assert!(
                    matches!(field(next, "type"), "reasoning" | "function_call")
                        || field(next, "role") == "assistant",
                    "nothing of its answer follows {item} in {items:#?}"
                ),
                "function_call" => open.push(field(item, "call_id").to_owned()),
                "function_call_output" => {
                    let call = open.iter().position(|id| id == field(item, "call_id"));
                    prop_assert!(call.is_some(), "{item} answers no call in {items:#?}");
                    open.remove(call.unwrap_or_default());
                }
                "message" => {
                    let parts = item["content"].as_array().unwrap();
                    prop_assert!(!parts.is_empty());
                    prop_assert!(parts.iter().all(|part| part["text"] != "" && part["text"] != " "));
                    prop_assert!(open.is_empty() || field(item, "role") == "assistant", "{items:#?}");
                }
                other => prop_assert!(false, "{other}"),
            }
        }
        prop_assert!(open.is_empty(), "{open:?} are not answered in {items:#?}");
    }
}

#[test]
fn a_choice_of_no_tool_goes_with_tools_alone() {
    let tool = ToolDeclaration {
        name: "Read".into(),
        description: String::new(),
        input_schema: json!({}).into(),
        grammar: None,
    };
    let choice = |tools: Vec<ToolDeclaration>, tool_choice| {
        let request = ModelRequest { tools, tool_choice, ..request(vec![Message::user(vec![text("hi")])]) };
        sent(FEATURES, &request, None)["tool_choice"].take()
    };
    assert_eq!(choice(vec![tool.clone()], ToolChoice::None), "none");
    assert_eq!(choice(vec![tool], ToolChoice::Auto), Value::Null);
    assert_eq!(choice(Vec::new(), ToolChoice::None), Value::Null);
}
