//! The adapter against the scripted model, over real HTTP on loopback.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use url::Url;

use super::*;
use crate::scripted::{Script, ScriptedServer};
use kode_base::secret::Secret;
use kode_model::profile::Credentials;
use kode_model::{Block, Delta, Message, ModelErrorKind, StopReason, Usage};
use kode_net::http;

/// A model and the server it speaks to, which plays `steps` for any prompt.
struct Fixture {
    server: ScriptedServer,
    model: Anthropic,
}

impl Fixture {
    async fn new(steps: Value) -> Self {
        let script: Script = serde_json::from_value(json!({"programs": [{"steps": steps}]})).unwrap();
        let server = ScriptedServer::serve(script, loopback()).await.unwrap();
        let model = Anthropic::new(&profile(&server.base_url())).unwrap();
        Self { server, model }
    }

    async fn ask(&self) -> Result<ModelResponse, ModelError> {
        self.model.complete(&request(), &CancellationToken::new()).await
    }

    async fn failure(&self) -> ModelError {
        self.ask().await.unwrap_err()
    }
}

fn loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn profile(base_url: &str) -> Profile {
    let credentials = Credentials::ApiKey(Secret::new("test-key"));
    Profile { base_url: base_url.into(), model: "m".into(), credentials, ..Profile::demo() }
}

fn request() -> ModelRequest {
    ModelRequest {
        system: vec!["You are a test.".into()],
        messages: vec![Message::user(vec![text("hello")])].into(),
        tools: vec![],
        max_tokens: 1000,
        temperature: None,
        top_p: None,
        effort: None,
        ..ModelRequest::default()
    }
}

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

fn call(id: &str, name: &str, input: Value) -> Block {
    Block::ToolUse { id: id.into(), name: name.into(), input, input_error: None }
}

/// A server that answers every connection with the same bytes and closes it.
async fn raw_server(response: Vec<u8>) -> Anthropic {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 16 * 1024];
            let _ = stream.read(&mut buffer).await;
            let _ = stream.write_all(&response).await;
        }
    });
    Anthropic::new(&profile(&base_url)).unwrap()
}

async fn raw_answer(head: &str, body: &str) -> Result<ModelResponse, ModelError> {
    let response = format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n{body}").into_bytes();
    raw_server(response).await.complete(&request(), &CancellationToken::new()).await
}

#[tokio::test]
async fn an_answer_arrives_whole_and_in_pieces() {
    let usage = json!({"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 7,
        "cache_creation_input_tokens": 11});
    let fixture = Fixture::new(json!([{"chunk": 4, "usage": usage, "content": [
        {"type": "thinking", "thinking": "hm, hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "sealed"},
        {"type": "text", "text": "Aé☃𝄞 reading"},
        {"type": "tool_use", "name": "Read", "input": {"file_path": "/ä"}},
        {"type": "tool_use", "name": "Glob", "input": {}},
    ]}]))
    .await;
    let mut deltas = Vec::new();
    let response = fixture
        .model
        .stream(&request(), &mut |delta| deltas.push(delta), &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(
        response,
        ModelResponse {
            id: Some("msg_scripted_1".into()),
            content: vec![
                Block::Thinking { thinking: "hm, hm".into(), signature: "sig".into() },
                Block::RedactedThinking { data: "sealed".into() },
                text("Aé☃𝄞 reading"),
                call("toolu_scripted_1", "Read", json!({"file_path": "/ä"})),
                call("toolu_scripted_2", "Glob", json!({})),
            ],
            stop_reason: StopReason::ToolUse,
            usage: Usage {
                input_tokens: 3,
                output_tokens: 5,
                cache_read_tokens: 7,
                cache_write_tokens: 11,
                thinking_tokens: 0
            },
        }
    );
    let thinking = |text: &str| Delta::Thinking { index: 0, text: text.into() };
    let said = |text: &str| Delta::Text { index: 2, text: text.into() };
    let called = |index, id: &str, name: &str| Delta::ToolUse { index, id: id.into(), name: name.into() };
    assert_eq!(
        deltas,
        [
            thinking("hm, "),
            thinking("hm"),
            said("Aé☃𝄞"),
            said(" rea"),
            said("ding"),
            called(3, "toolu_scripted_1", "Read"),
            called(4, "toolu_scripted_2", "Glob"),
        ]
    );
}

#[tokio::test]
async fn a_conversation_goes_through_its_steps_and_past_them() {
    let fixture = Fixture::new(json!([
        {"content": [{"type": "tool_use", "name": "Read", "input": {"file_path": "{{prompt}}"}}]},
        {"content": [{"type": "text", "text": "It says: {{last_result}}"}]},
    ]))
    .await;
    let cancel = CancellationToken::new();
    let mut request = request();
    let first = fixture.model.complete(&request, &cancel).await.unwrap();
    assert_eq!(first.content, [call("toolu_scripted_1", "Read", json!({"file_path": "hello"}))]);
    let result = Block::result("toolu_scripted_1", "line", false);
    request.messages.push(Message::assistant(first.content));
    request.messages.push(Message::user(vec![result]));
    let second = fixture.model.complete(&request, &cancel).await.unwrap();
    assert_eq!((second.content, second.stop_reason), (vec![text("It says: line")], StopReason::EndTurn));
    request.messages.push(Message::assistant(vec![text("It says: line")]));
    request.messages.push(Message::user(vec![text("<system-reminder>go on</system-reminder>")]));
    let third = fixture.model.complete(&request, &cancel).await.unwrap();
    assert_eq!(third.content, [text("(the script has no further step)")]);
    assert_eq!(fixture.server.requests().len(), 3);
}

#[tokio::test]
async fn every_stop_reason_is_understood_and_cuts_drop_calls() {
    for (wire, expected, calls) in [
        ("end_turn", StopReason::EndTurn, true),
        ("tool_use", StopReason::ToolUse, true),
        ("stop_sequence", StopReason::StopSequence, true),
        ("pause_turn", StopReason::PauseTurn, true),
        ("novelty", StopReason::Other("novelty".into()), true),
        ("max_tokens", StopReason::MaxTokens, false),
        ("refusal", StopReason::Refusal, false),
    ] {
        let fixture = Fixture::new(json!([{"stop_reason": wire, "content": [
            {"type": "text", "text": "x"}, {"type": "tool_use", "name": "Read", "id": "c"}]}]))
        .await;
        let response = fixture.ask().await.unwrap();
        assert_eq!(response.stop_reason, expected);
        assert_eq!(response.content.len(), if calls { 2 } else { 1 }, "{wire}");
    }
}

#[tokio::test]
async fn arguments_that_are_no_json_are_distinguished() {
    let fixture = Fixture::new(json!([{"content": [
        {"type": "tool_use", "name": "Read", "raw_input": "{\"file_path\": "}]}]))
    .await;
    match &fixture.ask().await.unwrap().content[..] {
        [Block::ToolUse { input, input_error: Some(reason), .. }] => {
            assert_eq!(*input, json!({"invalid_arguments": "{\"file_path\": "}));
            assert!(reason.contains("line 1 column"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_stream_cut_after_any_event_keeps_what_came_and_no_call() {
    let step = |faults: Value| {
        json!([{"chunk": 3, "faults": faults, "content": [
            {"type": "thinking", "thinking": "abcdef", "signature": "sig"},
            {"type": "text", "text": "ghijkl"},
            {"type": "tool_use", "name": "Read", "input": {"a": 1}},
        ]}])
    };
    // 1 start, 6 and a ping of thinking, 4 of text, 7 of the call, 2 of the end.
    let kept_at = |events: usize| {
        let thinking = "abcdef"[..(3 * events.saturating_sub(3)).min(6)].to_owned();
        let signature = if events >= 6 { "sig" } else { "" }.to_owned();
        let said = &"ghijkl"[..(3 * events.saturating_sub(8)).min(6)];
        let mut content = Vec::new();
        if !thinking.is_empty() {
            content.push(Block::Thinking { thinking, signature });
        }
        if !said.is_empty() {
            content.push(text(said));
        }
        content
    };
    let cuts: Vec<Value> = (0..=18).map(|events| json!({"cut_after_events": events})).collect();
    let fixture = Fixture::new(step(json!(cuts))).await;
    for events in 0..=18 {
        let error = fixture.failure().await;
        assert_eq!(error.kind, ModelErrorKind::Interrupted, "{events}: {error}");
        let kept = error.partial.map(|partial| partial.content);
        let expected = (events > 0).then(|| kept_at(events));
        assert_eq!(kept, expected, "after {events} events");
    }
    assert_eq!(fixture.ask().await.unwrap().content.len(), 3, "the step itself comes after its faults");
}

#[tokio::test]
async fn refusals_carry_status_words_and_wait() {
    let fixture = Fixture::new(json!([{"content": [{"type": "text", "text": "ok"}], "faults": [
        {"status": 429, "headers": {"retry-after": "2"}},
        {"status": 429, "headers": {"retry-after": "0.5"}},
        {"status": 429, "headers": {"retry-after-ms": "250"}},
        {"status": 429, "headers": {"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}},
        {"status": 429},
        {"status": 529},
        {"status": 400, "body": {"type": "error", "error": {"type": "invalid_request_error", "message": "too long"}}},
        {"status": 401},
        {"status": 502, "body": "<html>"},
    ]}]))
    .await;
    let ms = |ms| Some(Duration::from_millis(ms));
    for (kind, status, wait, words) in [
        (ModelErrorKind::RateLimited, 429, ms(2000), "rate_limit_error"),
        (ModelErrorKind::RateLimited, 429, ms(500), ""),
        (ModelErrorKind::RateLimited, 429, ms(250), ""),
        (ModelErrorKind::RateLimited, 429, ms(0), ""),
        (ModelErrorKind::RateLimited, 429, None, "[request req_scripted]"),
        (ModelErrorKind::Server, 529, None, "overloaded_error"),
        (ModelErrorKind::BadRequest, 400, None, "too long"),
        (ModelErrorKind::Authentication, 401, None, "127.0.0.1:"),
        (ModelErrorKind::Server, 502, None, "<html>"),
    ] {
        let error = fixture.failure().await;
        assert_eq!((error.kind, error.status, error.retry_after), (kind, Some(status), wait), "{error}");
        assert!(error.message.contains(words), "{error}");
        assert_eq!(error.partial, None);
    }
    assert!(fixture.ask().await.is_ok());
}

#[tokio::test]
async fn error_events_and_broken_streams_are_typed() {
    let start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"a\",\"usage\":\
                 {\"input_tokens\":4}}}\n\nevent: content_block_delta\ndata: {\"index\":0,\"delta\":\
                 {\"type\":\"text_delta\",\"text\":\"so far\"}}\n\n";
    let raw = |rest: &str| json!({"raw": format!("{start}{rest}")});
    let fixture = Fixture::new(json!([{"content": [], "faults": [
        raw("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"),
        raw("event: message_delta\ndata: {\"delta\":\n\n"),
        raw("event: message_stop\ndata: {}\n\n"),
        raw("event: message_delta\ndata: {\"delta\": {\"stop_reason\": \"end_turn\"}}"),
    ]}]))
    .await;
    for (kind, words) in [
        (ModelErrorKind::Server, "overloaded_error"),
        (ModelErrorKind::Protocol, "message_delta"),
        (ModelErrorKind::Interrupted, "without a stop reason"),
        (ModelErrorKind::Interrupted, "ended before"),
    ] {
        let error = fixture.failure().await;
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(words), "{error}");
        let partial = error.partial.unwrap();
        assert_eq!(partial.content, [text("so far")]);
        assert_eq!(partial.usage.input_tokens, 4);
    }
}

#[tokio::test]
async fn cancelling_stops_a_request_wherever_it_is() {
    let fixture = Fixture::new(json!([{"content": [{"type": "text", "text": "held back"}], "chunk": 4,
        "gate": "middle", "gate_after_events": 4, "faults": [{"hang": true}]}]))
    .await;
    let request = request();

    // No answer at all: cancelled as soon as the server has the request.
    let cancel = CancellationToken::new();
    let server_has_it = async {
        while fixture.server.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(fixture.model.complete(&request, &cancel), server_has_it);
    let error = result.unwrap_err();
    assert_eq!((error.kind, error.partial), (ModelErrorKind::Cancelled, None));

    // In the middle of a stream: cancelled at the first text.
    let cancel = CancellationToken::new();
    let error = fixture.model.stream(&request, &mut |_| cancel.cancel(), &cancel).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Cancelled);
    assert_eq!(error.partial.unwrap().content, [text("held")]);

    // Before it began: nothing is sent.
    let asked = fixture.server.requests().len();
    let error = fixture.model.complete(&request, &cancel).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Cancelled);
    assert_eq!(fixture.server.requests().len(), asked);
}

#[tokio::test]
async fn gates_hold_answers_until_they_are_released() {
    let fixture = Fixture::new(json!([{"content": [{"type": "text", "text": "ok"}], "gate": "g"}])).await;
    let release = async {
        fixture.server.waiting("g").await;
        fixture.server.release("g");
    };
    let (response, ()) = tokio::join!(fixture.ask(), release);
    assert_eq!(response.unwrap().content, [text("ok")]);
    assert!(fixture.ask().await.is_ok(), "a released gate stays open");
}

#[tokio::test]
async fn the_control_endpoints_serve_other_processes() {
    let fixture = Fixture::new(json!([{"content": [{"type": "text", "text": "ok"}], "gate": "g"}])).await;
    let url = |path: &str| Url::parse(&format!("{}/scripted/{path}", fixture.server.base_url())).unwrap();
    let client = http::client(&url("requests")).unwrap();
    let control = async {
        assert_eq!(client.get(url("waiting/g")).send().await.unwrap().status(), 200);
        let requests: Value = client.get(url("requests")).send().await.unwrap().json().await.unwrap();
        assert_eq!(requests[0]["body"]["messages"][0]["content"][0]["text"], "hello");
        assert_eq!(client.post(url("release/g")).send().await.unwrap().status(), 200);
    };
    let (response, ()) = tokio::join!(fixture.ask(), control);
    assert!(response.is_ok());
    assert_eq!(client.get(url("nothing")).send().await.unwrap().status(), 404);
    let rebound = client.get(url("requests")).header("host", "evil.example").send().await.unwrap();
    assert_eq!(rebound.status(), 403);
}

#[tokio::test]
async fn the_server_serves_this_machine_only_and_ends_with_its_handle() {
    let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let error = ScriptedServer::serve(Script::default(), everywhere).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);

    let Fixture { server, model } = Fixture::new(json!([{"content": [], "faults": [{"hang": true}]}])).await;
    let stop = async {
        while server.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        drop(server);
    };
    let cancel = CancellationToken::new();
    let request = request();
    let (result, ()) = tokio::join!(model.complete(&request, &cancel), stop);
    assert_eq!(result.unwrap_err().kind, ModelErrorKind::Network);
    let again = model.complete(&request, &cancel).await;
    assert_eq!(again.unwrap_err().kind, ModelErrorKind::Network);
}

#[tokio::test]
async fn answers_that_are_not_streamed_are_read_whole() {
    let body = json!({"type": "message", "id": "a", "role": "assistant", "stop_reason": "tool_use",
        "content": [{"type": "text", "text": "hi"}, {"type": "tool_use", "id": "x", "name": "Read", "input": {"a": 1}},
            {"type": "novelty"}],
        "usage": {"input_tokens": 1, "output_tokens": 2}});
    let response = raw_answer("200 OK\r\ncontent-type: application/json", &body.to_string()).await.unwrap();
    assert_eq!(response.content, [text("hi"), call("x", "Read", json!({"a": 1}))]);
    assert_eq!(response.usage.output_tokens, 2);

    for (content_type, body, words) in [
        ("application/json", "{\"object\": \"chat.completion\"}", "JSON body of the type ``"),
        ("application/json; charset=utf-8", "nonsense", "JSON body"),
        ("text/html", "<html>", "`text/html`"),
    ] {
        let error = raw_answer(&format!("200 OK\r\ncontent-type: {content_type}"), body).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{error}");
        assert!(error.message.contains(words), "{error}");
    }
}

#[tokio::test]
async fn packed_answers_are_unpacked() {
    // `{"type":"message","content":[{"type":"text","text":"packed"}],"stop_reason":"end_turn"}`, by gzip.
    const PACKED: &[u8] = b"\
        \x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x35\xc9\x41\x0a\x80\x20\x10\x05\xd0\xbb\xfc\xb5\
        \x27\xf0\x2a\x12\x22\xfa\x69\x11\x8d\xe2\x4c\x50\x88\x77\x4f\x82\x56\x6f\xf1\x06\xec\x69\
        \x84\xc7\x49\xd5\xb4\x13\x0e\xb9\x8a\x51\x0c\x3e\x8c\x3f\x8d\xb7\xad\xf9\xf0\x68\x29\x1f\
        \x2c\x98\x9b\x83\x5a\x6d\xb1\x33\x69\x95\x15\x94\x12\xed\xea\x82\xf9\x02\xc0\xc0\x52\x0a\
        \x57\x00\x00\x00";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n";
    let answer = async |body: &[u8]| {
        let model = raw_server([head.as_bytes(), body].concat()).await;
        model.complete(&request(), &CancellationToken::new()).await
    };
    assert_eq!(answer(PACKED).await.unwrap().content, [text("packed")]);
    assert_eq!(answer(b"not gzip").await.unwrap_err().kind, ModelErrorKind::Interrupted);
}

#[tokio::test]
async fn one_connection_serves_request_after_request() {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let model = Anthropic::new(&profile(&format!("http://{}", listener.local_addr().unwrap()))).unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        drop(listener);
        let event = "event: message_delta\ndata: {\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
                     event: message_stop\ndata: {}\n\n";
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked";
        let response = format!("{head}\r\n\r\n{:x}\r\n{event}\r\n0\r\n\r\n", event.len());
        let mut buffer = [0; 16 * 1024];
        while stream.read(&mut buffer).await.is_ok_and(|length| length > 0) {
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    for _ in 0..3 {
        model.complete(&request(), &CancellationToken::new()).await.unwrap();
    }
    server.abort();
}

#[tokio::test]
async fn a_key_that_the_server_repeats_is_not_shown() {
    let body = json!({"error": {"type": "authentication_error", "message": "bad key test-key"}}).to_string();
    let error = raw_answer("401 Unauthorized", &body).await.unwrap_err();
    assert!(error.message.ends_with("bad key …"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn endless_pings_end_too() {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let model = Anthropic::new(&profile(&format!("http://{}", listener.local_addr().unwrap()))).unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 16 * 1024]).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        while stream.write_all(b"event: ping\ndata: {\"type\": \"ping\"}\n\n").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(100)).await;
        }
    });
    let error = model.complete(&request(), &CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Interrupted);
    assert!(error.message.contains("signs of life"), "{error}");
    server.abort();
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let head = "307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/elsewhere\r\ncontent-length: 0";
    let error = raw_answer(head, "").await.unwrap_err();
    assert_eq!((error.kind, error.status), (ModelErrorKind::Configuration, Some(307)));
    assert!(error.message.contains("http://127.0.0.1:1/elsewhere"), "{error}");
}

#[tokio::test]
async fn huge_error_bodies_are_cut() {
    let error = raw_answer("500 Oh\r\ncontent-type: text/plain", &"x".repeat(1 << 20)).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Server);
    assert!(error.message.len() < 4_000);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_network_error() {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let model = Anthropic::new(&profile(&base_url)).unwrap();
    let error = model.complete(&request(), &CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Network);
    assert!(error.message.contains(base_url.trim_start_matches("http://")), "{error}");
    assert!(error.message.contains("refused"), "the cause is told: {error}");
}

#[tokio::test(start_paused = true)]
async fn a_scripted_answer_comes_at_its_rate() {
    let answers = json!([
        {"content": [{"type": "text", "text": "x".repeat(40)}], "chunk": 1, "rate": 4},
    ]);
    let fixture = Fixture::new(answers).await;
    let began = tokio::time::Instant::now();
    fixture.model.complete(&request(), &CancellationToken::new()).await.unwrap();
    assert!(began.elapsed() >= std::time::Duration::from_secs(10), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn silence_ends_a_request() {
    let fixture = Fixture::new(json!([{"content": [{"type": "text", "text": "held back"}], "chunk": 4,
        "gate": "never", "gate_after_events": 4, "faults": [{"hang": true}]}]))
    .await;
    let error = fixture.failure().await;
    assert_eq!(error.kind, ModelErrorKind::Network, "{error}");
    assert!(error.message.contains("did not answer"), "{error}");
    let error = fixture.failure().await;
    assert_eq!(error.kind, ModelErrorKind::Interrupted, "{error}");
}

#[tokio::test]
async fn keys_and_headers_are_sent_as_the_profile_says() {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let base_url = format!("http://{}/gateway", listener.local_addr().unwrap());
    let received = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = String::new();
        while !head.contains("\r\n\r\n") {
            let mut buffer = [0; 4096];
            let length = stream.read(&mut buffer).await.unwrap();
            head.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
        head.to_lowercase()
    });
    let profile = Profile {
        credentials: Credentials::Bearer(Secret::new("token")),
        headers: [("X-Team".to_owned(), Secret::new("tools"))].into(),
        ..profile(&base_url)
    };
    let model = Anthropic::new(&profile).unwrap();
    assert!(model.complete(&request(), &CancellationToken::new()).await.is_err(), "the server only reads");
    let head = received.await.unwrap();
    for expected in [
        "post /gateway/v1/messages http/1.1\r\n",
        "authorization: bearer token\r\n",
        "x-team: tools\r\n",
        "anthropic-version: 2023-06-01\r\n",
        "content-type: application/json\r\n",
        "accept: text/event-stream\r\n",
        "accept-encoding: gzip\r\n",
        concat!("user-agent: kode-ls/", env!("CARGO_PKG_VERSION"), "\r\n"),
    ] {
        assert!(head.contains(expected), "{expected:?} is missing in {head}");
    }
    assert!(!head.contains("x-api-key"), "{head}");
}

#[tokio::test]
async fn the_demo_speaks_over_http_to_its_own_server() {
    let model = crate::adapter::connect(&Profile::demo()).await.unwrap();
    let response = model.complete(&request(), &CancellationToken::new()).await.unwrap();
    match &response.content[..] {
        [Block::Text { text }, Block::ToolUse { name, .. }] => {
            assert!(text.contains("scripted demo model"), "{text}");
            assert_eq!(name, "Glob");
        }
        other => panic!("{other:?}"),
    }
}
