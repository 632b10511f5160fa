//! Requests as they go over the wire, one golden body for each thing that servers differ in.

use serde_json::json;

use super::*;
use kode_model::{AnswerOrigin, ToolChoice, ToolDeclaration};

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

fn call(id: &str) -> Block {
    let input = json!({"file_path": "/a"});
    Block::ToolUse { id: id.into(), name: "Read".into(), input, input_error: Some("never sent".into()) }
}

fn picture() -> Image {
    Image { media_type: "image/png".into(), data: "iVBO".into(), text: None }
}

fn thought(thinking: &str) -> Block {
    Block::Thinking { thinking: thinking.into(), signature: String::new() }
}

fn of(model: &str, wire: Wire, content: Vec<Block>) -> Message {
    let origin = AnswerOrigin { wire, model: model.into(), host: None, response_id: None };
    Message { origin: Some(origin), ..Message::assistant(content) }
}

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest { messages: messages.into(), max_tokens: 100, ..ModelRequest::default() }
}

fn sent(capabilities: Capabilities, request: &ModelRequest) -> Value {
    let dialect =
        ChatDialect { model: "m", host: "h", capabilities, include_usage: true, takes_cache_key: false };
    serde_json::to_value(body(dialect, request)).unwrap()
}

fn sent_messages(capabilities: Capabilities, request: &ModelRequest) -> Value {
    sent(capabilities, request)["messages"].take()
}

#[test]
fn a_request_on_the_wire() {
    let request = ModelRequest {
        system: vec!["You are an agent.".into(), String::new(), "Working directory: /w".into()],
        tools: vec![ToolDeclaration {
            name: "Read".into(),
            description: "Reads a file.".into(),
            input_schema: json!({"type": "object", "properties": {"file_path": {"type": "string"}}}).into(),
            grammar: None,
        }],
        temperature: Some(0.5),
        top_p: Some(0.25),
        effort: Some(Effort::High),
        reminders: vec!["<reminder>x</reminder>".into(), "<reminder>y</reminder>".into()],
        cache_key: Some("session".into()),
        ..request(vec![
            Message::user(vec![text("read /a"), text("now")]),
            Message::assistant(vec![text("Reading."), call("c1"), call("c2")]),
            Message::user(vec![
                text("and"),
                Block::result("c1", "one", false),
                Block::result("c2", " ", true),
            ]),
        ])
    };
    let plain = Capabilities { sends_reasoning_back: false, ..Capabilities::ALL };
    let called = json!({"name": "Read", "arguments": "{\"file_path\":\"/a\"}"});
    assert_eq!(
        sent(plain, &request),
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "You are an agent.\n\nWorking directory: /w"},
                {"role": "user", "content": "read /a\n\nnow"},
                {"role": "assistant", "content": "Reading.", "tool_calls": [
                    {"id": "c1", "type": "function", "function": called},
                    {"id": "c2", "type": "function", "function": called},
                ]},
                {"role": "tool", "tool_call_id": "c1", "content": "one"},
                {"role": "tool", "tool_call_id": "c2", "content": "(no output)"},
                {"role": "user", "content": "and\n\n<reminder>x</reminder>\n\n<reminder>y</reminder>"},
            ],
            "tools": [{"type": "function", "function": {
                "name": "Read",
                "description": "Reads a file.",
                "parameters": {"type": "object", "properties": {"file_path": {"type": "string"}}},
            }}],
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_completion_tokens": 100,
            "temperature": 0.5,
            "top_p": 0.25,
            "reasoning_effort": "high",
        })
    );
}

#[test]
fn a_model_that_can_do_nothing_is_asked_for_nothing() {
    let none = Capabilities {
        streaming: false,
        tool_use: false,
        thinking: false,
        system_message: false,
        images: false,
        temperature: false,
        max_completion_tokens: false,
        sends_reasoning_back: false,
        signed_calls: false,
        patches: false,
        pdf: false,
    };
    let tool = ToolDeclaration {
        name: "Read".into(),
        description: String::new(),
        input_schema: json!({}).into(),
        grammar: None,
    };
    let request = ModelRequest {
        system: vec!["You are an agent.".into()],
        tools: vec![tool],
        temperature: Some(0.5),
        top_p: Some(0.5),
        effort: Some(Effort::Low),
        ..request(vec![Message::user(vec![text("hi")])])
    };
    assert_eq!(
        sent(none, &request),
        json!({
            "model": "m",
            "messages": [{"role": "user", "content": "You are an agent.\n\nhi"}],
            "stream": false,
            "max_tokens": 100,
        })
    );
}

#[test]
fn the_system_prompt_finds_a_place_without_a_role_of_its_own() {
    let capabilities = Capabilities { system_message: false, ..Capabilities::ALL };
    let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}});
    for (history, expected) in [
        (
            vec![Message::user(vec![text("look"), Block::Image(picture())])],
            json!([{"role": "user", "content": [{"type": "text", "text": "S\n\nlook"}, url]}]),
        ),
        (
            vec![Message::user(vec![Block::Image(picture()), text("look")])],
            json!([{"role": "user", "content": [{"type": "text", "text": "S"}, url, {"type": "text", "text": "look"}]}]),
        ),
        (
            vec![Message::assistant(vec![text("hello")])],
            json!([{"role": "user", "content": "S"}, {"role": "assistant", "content": "hello"}]),
        ),
        (vec![], json!([{"role": "user", "content": "S"}])),
    ] {
        let request = ModelRequest { system: vec!["S".into()], ..request(history) };
        assert_eq!(sent_messages(capabilities, &request), expected);
    }
}

#[test]
fn pictures_follow_the_results_they_belong_to() {
    let result = |content: &str| Block::ToolResult {
        tool_use_id: "c1".into(),
        content: content.into(),
        images: vec![picture()],
        is_error: false,
    };
    let history = |content: &str| {
        request(vec![
            Message::user(vec![text("look")]),
            Message::assistant(vec![call("c1"), call("c2")]),
            Message::user(vec![result(content), Block::result("c2", "two", false), text("well?")]),
        ])
    };
    let messages = sent_messages(Capabilities::ALL, &history("a picture"));
    let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}});
    assert_eq!(messages[1]["content"], Value::Null);
    assert_eq!(messages[2], json!({"role": "tool", "tool_call_id": "c1", "content": "a picture"}));
    assert_eq!(messages[3], json!({"role": "tool", "tool_call_id": "c2", "content": "two"}));
    assert_eq!(messages[4], json!({"role": "user", "content": [url, {"type": "text", "text": "well?"}]}));
    let alone = sent_messages(Capabilities::ALL, &history(""));
    assert_eq!(alone[2]["content"], PICTURES_FOLLOW);

    let blind = Capabilities { images: false, ..Capabilities::ALL };
    let messages = sent_messages(blind, &history("a picture"));
    let note = "[A picture (image/png) is here, which this model cannot see.]";
    assert_eq!(messages[2]["content"], format!("a picture\n\n{note}"));
    assert_eq!(messages[4]["content"], "well?");
    let shown = request(vec![Message::user(vec![Block::Image(picture()), text("look")])]);
    assert_eq!(sent_messages(blind, &shown)[0]["content"], format!("{note}\n\nlook"));
}

#[test]
fn what_changes_stands_last() {
    let history = vec![
        Message::user(vec![text("go")]),
        Message::assistant(vec![call("c1")]),
        Message::user(vec![Block::result("c1", "one", false)]),
    ];
    let plain = sent_messages(Capabilities::ALL, &request(history.clone()));
    let reminded = ModelRequest { reminders: vec!["now".into(), " ".into()], ..request(history) };
    let reminded = sent_messages(Capabilities::ALL, &reminded);
    let (last, before) = reminded.as_array().unwrap().split_last().unwrap();
    assert_eq!(before, plain.as_array().unwrap(), "what had been sent stays the same");
    assert_eq!(*last, json!({"role": "user", "content": "now"}));
}

#[test]
fn reasoning_goes_back_with_the_calls_it_led_to_and_to_the_model_it_came_from() {
    let history = |origin: fn(Vec<Block>) -> Message| {
        request(vec![
            Message::user(vec![text("first")]),
            origin(vec![thought("plain"), text("done")]),
            Message::user(vec![text("second")]),
            origin(vec![thought("called"), call("c1")]),
            Message::user(vec![Block::result("c1", "one", false)]),
            origin(vec![thought("answered"), text("done")]),
            Message::user(vec![text("third")]),
            origin(vec![call("c2")]),
            Message::user(vec![Block::result("c2", "two", false)]),
        ])
    };
    let reasoning = |capabilities: Capabilities, request: &ModelRequest| {
        let messages = sent_messages(capabilities, request);
        let answers = messages.as_array().unwrap().iter().filter(|message| message["role"] == "assistant");
        let reasoning = answers.map(|answer| answer.get("reasoning_content").cloned());
        reasoning.map(|text| text.map(|text| text.as_str().unwrap().to_owned())).collect::<Vec<_>>()
    };
    let some = |text: &str| Some(text.to_owned());
    let own = history(|content| of("m", Wire::ChatCompletions, content));
    let wanted = [None, some("called"), some("answered"), some("")];
    assert_eq!(reasoning(Capabilities::ALL, &own), wanted, "that of rounds without calls is not wanted");
    let none = Capabilities { sends_reasoning_back: false, ..Capabilities::ALL };
    assert_eq!(reasoning(none, &own), [None, None, None, None]);
    for foreign in [
        history(|content| of("other", Wire::ChatCompletions, content)),
        history(|content| of("m", Wire::AnthropicMessages, content)),
        history(Message::assistant),
    ] {
        assert_eq!(reasoning(Capabilities::ALL, &foreign), [None, some(""), None, some("")]);
    }
}

#[test]
fn sealed_data_goes_back_to_its_provider_alone() {
    let sealed = |sealed: ChatSeal| sealed.into_block().unwrap();
    let extra = |signature: &str| ProviderFields {
        extra_content: Some(json!({"google": {"thought_signature": signature}})),
        ..ProviderFields::default()
    };
    let details = vec![json!({"type": "reasoning.encrypted", "data": "d", "index": 0})];
    let content = vec![
        sealed(ChatSeal::ReasoningDetails(details.clone())),
        sealed(ChatSeal::Message(extra("of the message"))),
        sealed(ChatSeal::Call(extra("of the call"))),
        call("c1"),
        call("c2"),
    ];
    let answered = |origin: Option<AnswerOrigin>| {
        let answer = Message { origin, ..Message::assistant(content.clone()) };
        let results = Message::user(vec![Block::result("c1", "1", false), Block::result("c2", "2", false)]);
        request(vec![Message::user(vec![text("go")]), answer, results])
    };
    let origin = |model: &str, host: Option<&str>| {
        let (model, host) = (model.to_owned(), host.map(str::to_owned));
        Some(AnswerOrigin { wire: Wire::ChatCompletions, model, host, response_id: None })
    };
    let signatures = |answer: &Value| {
        let calls = answer["tool_calls"].as_array().unwrap();
        let of = |value: &Value| value.pointer("/extra_content/google/thought_signature").cloned();
        [of(answer), of(&calls[0]), of(&calls[1])]
    };
    let signs = Capabilities { signed_calls: true, ..Capabilities::ALL };
    let placeholder = Some(json!("skip_thought_signature_validator"));
    for own in [origin("m", Some("h")), origin("m", None)] {
        for capabilities in [Capabilities::ALL, signs] {
            let sent = sent_messages(capabilities, &answered(own.clone()));
            let [of_message, first, second] = signatures(&sent[1]);
            assert_eq!(of_message, Some(json!("of the message")));
            assert_eq!((first, second), (Some(json!("of the call")), None));
            assert_eq!(sent[1]["reasoning_details"], json!(details));
        }
    }
    for foreign in [origin("m", Some("elsewhere")), origin("other", Some("h")), None] {
        let plain = sent_messages(Capabilities::ALL, &answered(foreign.clone()));
        assert_eq!(signatures(&plain[1]), [None, None, None], "{foreign:?}");
        let sent = sent_messages(signs, &answered(foreign));
        assert_eq!(signatures(&sent[1]), [None, placeholder.clone(), None]);
        assert!(sent[1]["reasoning_details"].is_null() && plain[1]["reasoning_details"].is_null());
    }
}

#[test]
fn nothing_empty_is_sent() {
    let request = request(vec![
        Message::user(vec![text("one")]),
        Message::assistant(vec![thought("hm"), text(" ")]),
        Message::user(vec![text(""), text("two")]),
    ]);
    let messages = sent_messages(Capabilities::ALL, &request);
    assert_eq!(
        messages,
        json!([{"role": "user", "content": "one\n\ntwo"}]),
        "the user's words become one message"
    );
}

#[test]
fn the_cache_key_goes_where_it_is_known() {
    let request = ModelRequest { cache_key: Some("s".into()), ..request(vec![]) };
    let dialect = ChatDialect {
        model: "m",
        host: "h",
        capabilities: Capabilities::ALL,
        include_usage: false,
        takes_cache_key: true,
    };
    let body = serde_json::to_value(body(dialect, &request)).unwrap();
    assert_eq!(body["prompt_cache_key"], "s");
    assert_eq!(body.get("stream_options"), None);
    assert_eq!(sent(Capabilities::ALL, &request).get("prompt_cache_key"), None);
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
        sent(Capabilities::ALL, &request)["tool_choice"].take()
    };
    assert_eq!(choice(vec![tool.clone()], ToolChoice::None), "none");
    assert_eq!(choice(vec![tool], ToolChoice::Auto), Value::Null);
    assert_eq!(choice(Vec::new(), ToolChoice::None), Value::Null);
}
