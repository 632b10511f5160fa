//! Requests on the wire, and the adapter against servers on loopback.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::exchange::testing::{RawServer, answer};
use kode_base::effort::Effort;
use kode_model::profile::Credentials;
use kode_model::provider::Provider;
use kode_model::{AnswerOrigin, Block, Image, Message, ToolDeclaration};

const LINES: &str = "200 OK\r\ncontent-type: application/x-ndjson";
const YES: &str = "{\"message\":{\"role\":\"assistant\",\"content\":\"yes\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":3,\"eval_count\":2}\n";

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest { messages: messages.into(), max_tokens: 100, ..ModelRequest::default() }
}

fn sent(model: &str, capabilities: Capabilities, request: &ModelRequest) -> Value {
    let dialect = OllamaDialect { model, host: "h", capabilities, context_window: 16_384 };
    serde_json::to_value(request::body(dialect, request)).unwrap()
}

#[test]
fn a_request_on_the_wire() {
    let image = Image { media_type: "image/png".into(), data: "cA==".into(), text: None };
    let call = |id: &str| Block::ToolUse {
        id: id.into(),
        name: "Read".into(),
        input: json!({"a": 1}),
        input_error: None,
    };
    let thinking = || Block::Thinking { thinking: "hm".into(), signature: String::new() };
    let origin =
        AnswerOrigin { wire: Wire::Ollama, model: "m".into(), host: Some("h".into()), response_id: None };
    let own = |content| Message { origin: Some(origin.clone()), ..Message::assistant(content) };
    let pictured = Block::ToolResult {
        tool_use_id: "c2".into(),
        content: "seen".into(),
        images: vec![image.clone()],
        is_error: false,
    };
    let request = ModelRequest {
        system: vec!["You are an agent.".into(), "Working directory: /w".into()],
        tools: vec![ToolDeclaration {
            name: "Read".into(),
            description: "Reads a file.".into(),
            input_schema: json!({"type": "object"}).into(),
            grammar: None,
        }],
        temperature: Some(0.5),
        effort: Some(Effort::High),
        reminders: vec!["<reminder>x</reminder>".into()],
        ..request(vec![
            Message::user(vec![text("read /a"), Block::Image(image)]),
            own(vec![thinking(), text("Reading."), call("c1"), call("c2")]),
            Message::user(vec![Block::result("c1", "", false), pictured, text("and")]),
            Message::assistant(vec![thinking(), text("done"), call("c3")]),
            Message::user(vec![Block::result("c3", "x", false)]),
        ])
    };
    let called = |id: &str, index: usize| json!({"id": id, "function": {"index": index, "name": "Read", "arguments": {"a": 1}}});
    assert_eq!(
        sent("m", Capabilities::ALL, &request),
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "You are an agent.\n\nWorking directory: /w"},
                {"role": "user", "content": "read /a", "images": ["cA=="]},
                {"role": "assistant", "content": "Reading.", "thinking": "hm",
                 "tool_calls": [called("c1", 0), called("c2", 1)]},
                {"role": "tool", "content": "(no output)", "tool_name": "Read", "tool_call_id": "c1"},
                {"role": "tool", "content": "seen", "images": ["cA=="], "tool_name": "Read", "tool_call_id": "c2"},
                {"role": "user", "content": "and"},
                {"role": "assistant", "content": "done", "tool_calls": [called("c3", 0)]},
                {"role": "tool", "content": "x", "tool_name": "Read", "tool_call_id": "c3"},
                {"role": "user", "content": "<reminder>x</reminder>"},
            ],
            "tools": [{"type": "function", "function": {
                "name": "Read", "description": "Reads a file.", "parameters": {"type": "object"}}}],
            "stream": true,
            "think": true,
            "options": {"num_ctx": 16384, "num_predict": 100, "temperature": 0.5},
            "truncate": false,
            "shift": false,
        })
    );
    assert_eq!(sent("gpt-oss:20b", Capabilities::ALL, &request)["think"], "high");
    let plain = Capabilities { thinking: false, images: false, ..Capabilities::ALL };
    let sent = sent("m", plain, &request);
    assert!(sent["think"].is_null() && !sent.to_string().contains("cA=="), "{sent}");
}

fn profile(base_url: &str) -> Profile {
    Profile {
        provider: Provider::Ollama,
        base_url: base_url.to_owned(),
        model: "m".into(),
        credentials: Credentials::None,
        context_window: 8_192,
        ..Profile::demo()
    }
}

#[tokio::test]
async fn the_server_is_reported_which_window_to_serve() {
    let server = RawServer::start(vec![answer(LINES, YES)]).await;
    let model = Ollama::new(&profile(&server.base_url)).unwrap();
    let request = request(vec![Message::user(vec![text("hello")])]);
    let response = model.complete(&request, &CancellationToken::new()).await.unwrap();
    assert_eq!(response.content, [text("yes")]);
    let asked = server.requests().remove(0);
    let (head, body) = asked.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("POST /api/chat HTTP/1.1\r\n") && !head.to_lowercase().contains("authorization"),
        "{head}"
    );
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["options"]["num_ctx"], &body["truncate"]), (&json!(8192), &json!(false)));
}

#[tokio::test]
async fn a_model_that_does_not_think_is_asked_without_from_then_on() {
    let refusal = answer("400 Bad Request", r#"{"error":"\"m\" does not support thinking"}"#);
    let server = RawServer::start(vec![refusal, answer(LINES, YES)]).await;
    let model = Ollama::new(&profile(&server.base_url)).unwrap();
    let request = request(vec![Message::user(vec![text("hello")])]);
    for _ in 0..2 {
        model.complete(&request, &CancellationToken::new()).await.unwrap();
    }
    let asked: Vec<bool> = server
        .requests()
        .iter()
        .map(|request| {
            let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
            body.get("think").is_some()
        })
        .collect();
    assert_eq!(asked, [true, false, false]);
}
