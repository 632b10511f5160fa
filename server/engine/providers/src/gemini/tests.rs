//! Requests on the wire, and the adapter against servers on loopback.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::sealed::GeminiSeal;
use super::*;
use crate::exchange::testing::{RawServer, answer};
use kode_base::effort::Effort;
use kode_base::secret::Secret;
use kode_model::profile::Credentials;
use kode_model::{AnswerOrigin, Block, Image, Message, ToolDeclaration};

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

fn call(id: &str) -> Block {
    Block::ToolUse { id: id.into(), name: "Read".into(), input: json!({"a": 1}), input_error: None }
}

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest { messages: messages.into(), max_tokens: 100, ..ModelRequest::default() }
}

fn sent(model: &str, capabilities: Capabilities, request: &ModelRequest) -> Value {
    serde_json::to_value(request::body(GeminiDialect { model, host: "h", capabilities }, request)).unwrap()
}

fn own(content: Vec<Block>) -> Message {
    let origin =
        AnswerOrigin { wire: Wire::Gemini, model: "m".into(), host: Some("h".into()), response_id: None };
    Message { origin: Some(origin), ..Message::assistant(content) }
}

#[test]
fn a_request_on_the_wire() {
    let image = Image { media_type: "image/png".into(), data: "cA==".into(), text: None };
    let pictured = Block::ToolResult {
        tool_use_id: "c2".into(),
        content: " ".into(),
        images: vec![image.clone()],
        is_error: true,
    };
    let request = ModelRequest {
        system: vec!["You are an agent.".into(), String::new(), "Working directory: /w".into()],
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
            Message::assistant(vec![text("Reading."), call("c1"), call("c2")]),
            Message::user(vec![Block::result("c1", "one", false), pictured, text("and")]),
        ])
    };
    let called = |id: &str| json!({"functionCall": {"id": id, "name": "Read", "args": {"a": 1}}});
    let picture = json!({"inlineData": {"mimeType": "image/png", "data": "cA=="}});
    assert_eq!(
        sent("m", Capabilities::ALL, &request),
        json!({
            "systemInstruction": {"parts": [{"text": "You are an agent."}, {"text": "Working directory: /w"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "read /a"}, picture]},
                {"role": "model", "parts": [{"text": "Reading."}, called("c1"), called("c2")]},
                {"role": "user", "parts": [
                    {"functionResponse": {"id": "c1", "name": "Read", "response": {"output": "one"}}},
                    {"functionResponse": {"id": "c2", "name": "Read", "response": {"error": "(no output)"}}},
                    picture,
                    {"text": "and"},
                    {"text": "<reminder>x</reminder>"},
                ]},
            ],
            "tools": [{"functionDeclarations": [
                {"name": "Read", "description": "Reads a file.", "parametersJsonSchema": {"type": "object"}}]}],
            "generationConfig": {
                "maxOutputTokens": 100, "temperature": 0.5,
                "thinkingConfig": {"includeThoughts": true, "thinkingLevel": "high"},
            },
        })
    );
}

#[test]
fn signed_parts_go_back_as_they_came_to_their_provider_alone() {
    let sealed = |sealed: GeminiSeal| sealed.into_block().unwrap();
    let of_text = |tail| sealed(GeminiSeal::TextSignature { signature: "t".into(), tail });
    let content = || {
        vec![
            Block::Thinking { thinking: "hm".into(), signature: "s".into() },
            Block::Thinking { thinking: "plain".into(), signature: String::new() },
            of_text(4),
            text("The end"),
            sealed(GeminiSeal::CallSignature("c".into())),
            call("c1"),
            call("c2"),
        ]
    };
    let results = || Message::user(vec![Block::result("c1", "1", false), Block::result("c2", "2", false)]);
    let signs = Capabilities { signed_calls: true, ..Capabilities::ALL };
    let parts = |answer: Message| {
        let history = vec![Message::user(vec![text("go")]), answer, results()];
        sent("m", signs, &request(history))["contents"][1]["parts"].take()
    };
    let called = |id: &str| json!({"functionCall": {"id": id, "name": "Read", "args": {"a": 1}}});
    let mut signed = called("c1");
    signed["thoughtSignature"] = json!("c");
    assert_eq!(
        parts(own(content())),
        json!([
            {"text": "hm", "thought": true, "thoughtSignature": "s"},
            {"text": "The"},
            {"text": " end", "thoughtSignature": "t"},
            signed,
            called("c2"),
        ])
    );
    signed["thoughtSignature"] = json!("skip_thought_signature_validator");
    assert_eq!(parts(Message::assistant(content())), json!([{"text": "The end"}, signed, called("c2")]));
    let empty = parts(own(vec![of_text(0), text("Yes."), call("c1"), call("c2")]));
    assert_eq!(empty[1], json!({"text": "", "thoughtSignature": "t"}), "an empty part is a part");
    let odd = parts(own(vec![of_text(99), text("é"), call("c1"), call("c2")]));
    assert_eq!(
        odd[0],
        json!({"text": "é", "thoughtSignature": "t"}),
        "a length that cannot be costs nothing"
    );
}

#[test]
fn effort_has_the_form_that_the_model_takes() {
    for (model, effort, expected) in [
        ("gemini-3-pro-preview", Some(Effort::Low), json!({"includeThoughts": true, "thinkingLevel": "low"})),
        ("gemini-3-pro-preview", Some(Effort::Medium), json!({"includeThoughts": true})),
        (
            "gemini-3.8-flash",
            Some(Effort::Medium),
            json!({"includeThoughts": true, "thinkingLevel": "medium"}),
        ),
        ("gemini-2.5-pro", Some(Effort::Low), json!({"includeThoughts": true, "thinkingBudget": 1024})),
        (
            "models/gemini-2.5-flash",
            Some(Effort::High),
            json!({"includeThoughts": true, "thinkingBudget": 24576}),
        ),
        ("gemini-2.5-pro", None, json!({"includeThoughts": true})),
    ] {
        let request = ModelRequest { effort, ..request(vec![Message::user(vec![text("go")])]) };
        let config = sent(model, Capabilities::ALL, &request)["generationConfig"]["thinkingConfig"].take();
        assert_eq!(config, expected, "{model} {effort:?}");
    }
}

#[test]
fn a_model_that_can_do_little_is_asked_for_little() {
    let little = Capabilities {
        streaming: false,
        tool_use: false,
        thinking: false,
        system_message: false,
        images: false,
        temperature: false,
        ..Capabilities::ALL
    };
    let tool = ToolDeclaration {
        name: "Read".into(),
        description: String::new(),
        input_schema: json!({}).into(),
        grammar: None,
    };
    let image = Image { media_type: "image/png".into(), data: "cA==".into(), text: None };
    let request = ModelRequest {
        system: vec!["You are an agent.".into()],
        tools: vec![tool],
        temperature: Some(0.5),
        effort: Some(Effort::High),
        ..request(vec![Message::user(vec![Block::Image(image)])])
    };
    let note = "[A picture (image/png) is here, which this model cannot see.]";
    assert_eq!(
        sent("m", little, &request),
        json!({
            "contents": [{"role": "user", "parts": [{"text": "You are an agent."}, {"text": note}]}],
            "generationConfig": {"maxOutputTokens": 100},
        })
    );
}

const STREAM: &str = "200 OK\r\ncontent-type: text/event-stream";
const JSON: &str = "200 OK\r\ncontent-type: application/json; charset=UTF-8";
const YES: &str = r#"{"candidates": [{"content": {"parts": [{"text": "yes"}], "role": "model"}, "finishReason": "STOP", "index": 0}], "responseId": "r"}"#;

fn profile(base_url: &str) -> Profile {
    Profile {
        provider: Provider::Gemini,
        base_url: format!("{base_url}/v1beta"),
        model: "gemini-3.8-flash".into(),
        credentials: Credentials::ApiKey(Secret::new("test-key")),
        ..Profile::demo()
    }
}

async fn asked(profile: &Profile) -> ModelResponse {
    let request = request(vec![Message::user(vec![text("hello")])]);
    Gemini::new(profile).unwrap().complete(&request, &CancellationToken::new()).await.unwrap()
}

#[tokio::test]
async fn requests_go_where_the_model_is() {
    let events = format!("data: {YES}\r\n\r\n");
    let server = RawServer::start(vec![answer(STREAM, &events)]).await;
    let base = server.base_url.clone();
    asked(&profile(&base)).await;
    let whole = RawServer::start(vec![answer(JSON, YES)]).await;
    let capabilities = Capabilities { streaming: false, ..Capabilities::ALL };
    let response = asked(&Profile { capabilities, ..profile(&whole.base_url) }).await;
    assert_eq!(response.content, [text("yes")]);
    let vertex = Profile {
        provider: Provider::VertexGemini,
        base_url: format!("{base}/v1/projects/p/locations/l/publishers/google/models"),
        ..profile(&base)
    };
    asked(&vertex).await;
    let head = |request: &str| request.split_once("\r\n\r\n").unwrap().0.to_lowercase();
    let (requests, whole) = (server.requests(), whole.requests());
    for (head, path, key) in [
        (
            head(&requests[0]),
            "post /v1beta/models/gemini-3.8-flash:streamgeneratecontent?alt=sse http",
            "x-goog-api-key: test-key",
        ),
        (
            head(&whole[0]),
            "post /v1beta/models/gemini-3.8-flash:generatecontent http",
            "x-goog-api-key: test-key",
        ),
        (
            head(&requests[1]),
            "post /v1/projects/p/locations/l/publishers/google/models/gemini-3.8-flash:streamgeneratecontent?alt=sse",
            "authorization: bearer test-key",
        ),
    ] {
        assert!(head.contains(path) && head.contains(key), "{path} {key}: {head}");
    }
}
