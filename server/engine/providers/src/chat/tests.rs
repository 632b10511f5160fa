//! The adapter against servers that send scripted bytes, over real HTTP on loopback.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::exchange::testing::{RawServer, answer};
use kode_base::secret::Secret;
use kode_model::profile::Credentials;
use kode_model::provider::Provider;
use kode_model::{Block, Message, StopReason};

const STREAM: &str = "200 OK\r\ncontent-type: text/event-stream; charset=utf-8";
const JSON: &str = "200 OK\r\ncontent-type: application/json";
const YES: &str = "data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"yes\"},\"finish_reason\":\"stop\"}]}\n\n\
                   data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";

fn profile(base_url: &str) -> Profile {
    let credentials = Credentials::ApiKey(Secret::new("test-key"));
    let base_url = format!("{base_url}/v1");
    Profile { provider: Provider::OpenAi, base_url, model: "m".into(), credentials, ..Profile::demo() }
}

fn request() -> ModelRequest {
    let messages = vec![Message::user(vec![text("hello")])];
    ModelRequest {
        messages: messages.into(),
        max_tokens: 100,
        cache_key: Some("s".into()),
        ..ModelRequest::default()
    }
}

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

async fn ask(model: &ChatCompletions) -> Result<ModelResponse, ModelError> {
    model.complete(&request(), &CancellationToken::new()).await
}

async fn answered(head: &str, body: &str) -> Result<ModelResponse, ModelError> {
    let server = RawServer::start(vec![answer(head, body)]).await;
    ask(&ChatCompletions::new(&profile(&server.base_url)).unwrap()).await
}

/// The body of a request as it arrived.
fn body(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test]
async fn an_answer_arrives_and_the_request_is_as_the_profile_says() {
    let server = RawServer::start(vec![answer(STREAM, YES)]).await;
    let headers = [("X-Team".to_owned(), Secret::new("tools"))].into();
    let model = ChatCompletions::new(&Profile { headers, ..profile(&server.base_url) }).unwrap();
    let response = ask(&model).await.unwrap();
    assert_eq!((response.id.as_deref(), response.stop_reason), (Some("a"), StopReason::EndTurn));
    assert_eq!(response.content, [text("yes")]);
    assert_eq!((response.usage.input_tokens, response.usage.output_tokens), (3, 2));
    let request = server.requests().remove(0);
    let head = request.split_once("\r\n\r\n").unwrap().0.to_lowercase();
    for expected in
        ["post /v1/chat/completions http/1.1\r\n", "authorization: bearer test-key\r\n", "x-team: tools"]
    {
        assert!(head.contains(expected), "{expected:?} is missing in {head}");
    }
    assert_eq!(body(&request).get("prompt_cache_key"), None, "only its own server knows the key");
    assert_eq!(model.wire(), Wire::ChatCompletions);
}

#[tokio::test]
async fn servers_without_a_key_get_none() {
    let server = RawServer::start(vec![answer(STREAM, YES)]).await;
    let profile = Profile { credentials: Credentials::None, ..profile(&server.base_url) };
    ask(&ChatCompletions::new(&profile).unwrap()).await.unwrap();
    assert!(!server.requests()[0].to_lowercase().contains("authorization"));
}

#[tokio::test]
async fn a_server_that_does_not_report_counts_in_streams_is_asked_without_from_then_on() {
    let refusal =
        json!({"error": {"message": "Unrecognized request argument: stream_options", "code": null}});
    let refusal = answer("400 Bad Request", &refusal.to_string());
    let server = RawServer::start(vec![refusal, answer(STREAM, YES)]).await;
    let model = ChatCompletions::new(&profile(&server.base_url)).unwrap();
    ask(&model).await.unwrap();
    ask(&model).await.unwrap();
    let asked: Vec<bool> =
        server.requests().iter().map(|request| body(request).get("stream_options").is_some()).collect();
    assert_eq!(asked, [true, false, false]);

    let refusal = answer("400 Bad Request", "stream_options");
    let server = RawServer::start(vec![refusal]).await;
    let model = ChatCompletions::new(&profile(&server.base_url)).unwrap();
    assert_eq!(ask(&model).await.unwrap_err().kind, ModelErrorKind::BadRequest);
    assert_eq!(server.requests().len(), 2, "asked once more, and no more than that");
}

#[tokio::test]
async fn answers_that_are_not_streamed_are_read_whole() {
    let message = json!({"role": "assistant", "content": "hi", "reasoning_content": "hm", "refusal": null, "tool_calls": [
        {"id": "x", "type": "function", "function": {"name": "Read", "arguments": "{\"a\": 1}"}}]});
    let whole = json!({"id": "a", "object": "chat.completion", "usage": {"prompt_tokens": 1, "completion_tokens": 2},
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]});
    let server = RawServer::start(vec![answer(JSON, &whole.to_string())]).await;
    let capabilities = Capabilities { streaming: false, ..Capabilities::ALL };
    for (capabilities, streams) in [(capabilities, false), (Capabilities::ALL, true)] {
        let profile = Profile { capabilities, ..profile(&server.base_url) };
        let response = ask(&ChatCompletions::new(&profile).unwrap()).await.unwrap();
        let input = json!({"a": 1});
        let call = Block::ToolUse { id: "x".into(), name: "Read".into(), input, input_error: None };
        let thought = Block::Thinking { thinking: "hm".into(), signature: String::new() };
        assert_eq!(response.content, [thought, text("hi"), call]);
        assert_eq!((response.stop_reason, response.usage.output_tokens), (StopReason::ToolUse, 2));
        assert_eq!(body(server.requests().last().unwrap())["stream"], streams);
    }
    for (head, body, kind, words) in [
        (
            JSON,
            "{\"object\": \"list\", \"data\": []}",
            ModelErrorKind::Protocol,
            "JSON body of the type `list`",
        ),
        (JSON, "nonsense", ModelErrorKind::Protocol, "JSON body"),
        (
            JSON,
            "{\"error\": {\"message\": \"no such model\", \"code\": 404}}",
            ModelErrorKind::BadRequest,
            "no such",
        ),
        (JSON, "{\"choices\": []}", ModelErrorKind::Interrupted, "stop reason"),
        ("200 OK\r\ncontent-type: text/html", "<html>", ModelErrorKind::Protocol, "`text/html`"),
    ] {
        let error = answered(head, body).await.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(words), "{error}");
    }
}

#[tokio::test]
async fn refusals_are_typed_and_say_how_long_to_wait() {
    use ModelErrorKind::{
        Authentication, BadRequest, Configuration, ContextTooLong, Payment, RateLimited, Server,
    };
    let openai = |message: &str, code: &str| {
        json!({"error": {"message": message, "type": "t", "param": null, "code": code}}).to_string()
    };
    let quota = openai("You exceeded your current quota", "insufficient_quota");
    let long = openai("This model's maximum context length is 5 tokens.", "context_length_exceeded");
    for (head, body, kind, seconds) in [
        ("429 Too Many Requests\r\nretry-after: 2", "{}", RateLimited, Some(2.0)),
        ("429 Too Many Requests\r\nretry-after-ms: 1500", "{}", RateLimited, Some(1.5)),
        ("429 Too Many Requests\r\nretry-after: Sun, 06 Nov 1994 08:49:37 GMT", "{}", RateLimited, Some(0.0)),
        ("429 Too Many Requests\r\nx-ratelimit-reset-tokens: 6m0s", "{}", RateLimited, Some(360.0)),
        ("429 Too Many Requests", "", RateLimited, None),
        ("429 Too Many Requests\r\nretry-after: 2", &quota, Payment, Some(2.0)),
        ("500 Oh", "<html>", Server, None),
        ("502 Oh", "", Server, None),
        ("503 Oh", "{\"detail\": \"starting\"}", Server, None),
        ("529 Oh", "", Server, None),
        ("400 Oh", &openai("roles", ""), BadRequest, None),
        ("400 Oh", &long, ContextTooLong, None),
        ("413 Oh", "", ContextTooLong, None),
        ("404 Oh", "{\"error\": \"model 'm' not found\"}", BadRequest, None),
        ("401 Oh", "{\"message\": \"no\"}", Authentication, None),
        ("308 Oh\r\nlocation: http://127.0.0.1:1/elsewhere", "", Configuration, None),
    ] {
        let error = answered(head, body).await.unwrap_err();
        assert_eq!(error.kind, kind, "{head}: {error}");
        assert_eq!(error.retry_after, seconds.map(Duration::from_secs_f64), "{head}");
        assert_eq!(error.partial, None, "{head}");
        assert!(error.message.starts_with("127.0.0.1:"), "{error}");
    }
    let error = answered("401 Unauthorized", &openai("Incorrect key: test-key.", "invalid_api_key"))
        .await
        .unwrap_err();
    assert!(error.message.ends_with("Incorrect key: …."), "{error}");
}

#[tokio::test]
async fn connections_that_fail_are_typed() {
    let said = "data: {\"choices\":[{\"delta\":{\"content\":\"so far\"}}]}\n\n";
    let finished = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let broken = format!("{STREAM}\r\ncontent-length: 100000");
    for (what, head, body, kind, kept) in [
        ("it ends early", STREAM, said.to_owned(), Some(ModelErrorKind::Interrupted), true),
        ("it breaks off", &broken, said.to_owned(), Some(ModelErrorKind::Interrupted), true),
        ("it breaks off after all has come", &broken, format!("{said}{finished}"), None, true),
        (
            "no gzip",
            &format!("{STREAM}\r\ncontent-encoding: gzip"),
            said.to_owned(),
            Some(ModelErrorKind::Interrupted),
            false,
        ),
        (
            "huge headers",
            &format!("{STREAM}\r\nx-huge: {}", "x".repeat(1 << 20)),
            said.to_owned(),
            Some(ModelErrorKind::Network),
            false,
        ),
        ("no HTTP", "nonsense", String::new(), Some(ModelErrorKind::Network), false),
    ] {
        match (answered(head, &body).await, kind) {
            (Ok(response), None) => assert_eq!(response.content, [text("so far")], "{what}"),
            (Err(error), Some(kind)) => {
                assert_eq!(error.kind, kind, "{what}: {error}");
                let content = error.partial.map(|partial| partial.content);
                assert_eq!(content, kept.then(|| vec![text("so far")]), "{what}");
            }
            (other, _) => panic!("{what}: {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_empty_chunks_ends_too() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 16 * 1024]).await;
        let _ = stream.write_all(&answer(STREAM, "")).await;
        while stream
            .write_all(b": ping\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\"}}]}\n\n")
            .await
            .is_ok()
        {
            tokio::time::sleep(Duration::from_secs(100)).await;
        }
    });
    let error = ask(&ChatCompletions::new(&profile(&base_url)).unwrap()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Interrupted);
    assert!(error.message.contains("signs of life"), "{error}");
    server.abort();
}

#[tokio::test]
async fn cancelling_keeps_what_came() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 16 * 1024]).await;
        let said = "data: {\"choices\":[{\"delta\":{\"content\":\"so far\"}}]}\n\n";
        let _ = stream.write_all(&answer(STREAM, said)).await;
        std::future::pending::<()>().await;
    });
    let model = ChatCompletions::new(&profile(&base_url)).unwrap();
    let cancel = CancellationToken::new();
    let error = model.stream(&request(), &mut |_| cancel.cancel(), &cancel).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Cancelled);
    assert_eq!(error.partial.unwrap().content, [text("so far")]);
    server.abort();
}
