//! The adapter over real HTTP on loopback, against servers that keep answers, forget them, or never could.

use std::net::{Ipv4Addr, SocketAddr};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use kode_base::effort::Effort;
use kode_base::secret::Secret;
use kode_model::profile::Credentials;
use kode_model::provider::Provider;
use kode_model::{AnswerOrigin, Block};

/// The answer of a server to one request: status, headers and body, or nothing at all.
enum Reply {
    Http(String, String),
    Silence,
}

/// A server that gives these replies in turn, and what it was sent.
struct Server {
    base_url: String,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Server {
    async fn new(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        tokio::spawn(async move {
            let mut silent = Vec::new();
            for reply in replies {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = receive(&mut stream).await;
                log.lock().push(request);
                match reply {
                    Reply::Http(head, body) => {
                        let response = format!(
                            "HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                            body.len()
                        );
                        stream.write_all(response.as_bytes()).await.unwrap();
                    }
                    Reply::Silence => silent.push(stream),
                }
            }
        });
        Self { base_url, seen }
    }

    fn profile(&self) -> Profile {
        Profile {
            provider: Provider::OpenAiResponses,
            base_url: self.base_url.clone(),
            model: "gpt-5".into(),
            credentials: Credentials::ApiKey(Secret::new("test-key-test-key")),
            ..Profile::demo()
        }
    }

    fn model(&self) -> Responses {
        Responses::new(&self.profile()).unwrap()
    }

    fn bodies(&self) -> Vec<Value> {
        let seen = self.seen.lock();
        seen.iter().map(|(_, body)| body.clone()).collect()
    }
}

/// Reads one request: its head in lower case, and its body.
async fn receive(stream: &mut TcpStream) -> (String, Value) {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let length = stream.read(&mut buffer).await.unwrap();
        bytes.extend_from_slice(&buffer[..length]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str(body)
        {
            return (head.to_lowercase(), body);
        }
        assert_ne!(length, 0, "the request is whole before the connection ends: {text}");
    }
}

/// An answer named `id` that says so, or calls a tool of that name.
fn answers(id: &str, calls: bool) -> Reply {
    let item = if calls {
        json!({"type": "function_call", "call_id": format!("call_{id}"), "name": "Read", "arguments": "{}"})
    } else {
        json!({"type": "message", "content": [{"type": "output_text", "text": id}]})
    };
    let reasoning = json!({"type": "reasoning", "summary": [], "encrypted_content": format!("sealed {id}")});
    let events = [
        json!({"type": "response.output_item.done", "output_index": 0, "item": reasoning}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": item}),
        json!({"type": "response.completed", "response": {"id": id, "status": "completed"}}),
    ];
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    Reply::Http("200 OK\r\ncontent-type: text/event-stream".into(), body)
}

fn refuses(status: &str, code: &str, message: &str) -> Reply {
    let body =
        json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": code}});
    Reply::Http(format!("{status}\r\ncontent-type: application/json"), body.to_string())
}

fn forgotten() -> Reply {
    refuses("400 Bad Request", "previous_response_not_found", "Previous response with id 'r1' not found.")
}

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

fn request() -> ModelRequest {
    ModelRequest {
        messages: vec![Message::user(vec![text("hello")])].into(),
        max_tokens: 1000,
        ..ModelRequest::default()
    }
}

/// Asks, and lets the conversation continue with the answer and what comes after it.
async fn round(model: &Responses, request: &mut ModelRequest) -> Result<(), ModelError> {
    let response = model.complete(request, &CancellationToken::new()).await?;
    let origin = Some(AnswerOrigin {
        wire: Wire::Responses,
        model: model.model.clone(),
        host: Some(model.host.clone()),
        response_id: response.id.clone(),
    });
    let results = response.content.iter().filter_map(|block| match block {
        Block::ToolUse { id, .. } => Some(Block::result(id, "read", false)),
        _ => None,
    });
    let next: Vec<Block> = results.chain([text("go on")]).collect();
    request.messages.push(Message { origin, ..Message::assistant(response.content) });
    request.messages.push(Message::user(next));
    Ok(())
}

fn previous(bodies: &[Value]) -> Vec<Option<&str>> {
    bodies.iter().map(|body| body["previous_response_id"].as_str()).collect()
}

fn items(body: &Value) -> usize {
    body["input"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_conversation_continues_from_the_newest_answer_and_sends_only_what_is_new() {
    let server = Server::new(vec![answers("r1", true), answers("r2", false), answers("r3", false)]).await;
    let model = server.model();
    let mut request = request();
    for _ in 0..3 {
        round(&model, &mut request).await.unwrap();
    }
    let bodies = server.bodies();
    assert_eq!(previous(&bodies), [None, Some("r1"), Some("r2")]);
    assert_eq!(
        bodies[1]["input"][0],
        json!({"type": "function_call_output", "call_id": "call_r1", "output": "read"})
    );
    assert_eq!((items(&bodies[1]), items(&bodies[2])), (2, 1));
    assert!(bodies.iter().all(|body| body["store"] == true));
}

#[tokio::test]
async fn an_answer_the_server_has_forgotten_is_made_up_for_by_the_whole_history() {
    let server = Server::new(vec![
        answers("r1", true),
        forgotten(),
        answers("r2", true),
        refuses("404 Not Found", "", "Previous response with id 'r2' not found."),
        refuses("500 Internal Server Error", "", "still starting"),
        answers("r3", false),
    ])
    .await;
    let model = server.model();
    let mut request = request();
    round(&model, &mut request).await.unwrap();
    round(&model, &mut request).await.unwrap();
    let error = round(&model, &mut request).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Server, "other errors are for the caller to try again: {error}");
    round(&model, &mut request).await.unwrap();
    let bodies = server.bodies();
    assert_eq!(previous(&bodies), [None, Some("r1"), None, Some("r2"), None, None]);
    let types: Vec<&str> =
        bodies[2]["input"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["message", "reasoning", "function_call", "function_call_output", "message"]);
}

#[tokio::test]
async fn a_changed_history_is_sent_whole() {
    let server = Server::new(vec![answers("r1", false), answers("r2", false), answers("r3", false)]).await;
    let model = server.model();
    let mut request = request();
    round(&model, &mut request).await.unwrap();
    round(&model, &mut request).await.unwrap();
    // As a compaction does that keeps the newest messages.
    let mut kept = request.messages.to_vec();
    kept[0] = Message::user(vec![text("a summary")]);
    request.messages = kept.into();
    round(&model, &mut request).await.unwrap();
    let bodies = server.bodies();
    assert_eq!(previous(&bodies), [None, Some("r1"), None]);
    assert_eq!(bodies[2]["input"][0]["content"][0]["text"], "a summary");
}

#[tokio::test]
async fn reminders_do_not_stay_in_the_conversation() {
    let server = Server::new(vec![answers("r1", false), answers("r2", false), answers("r3", false)]).await;
    let model = server.model();
    let mut request = request();
    round(&model, &mut request).await.unwrap();
    request.reminders = vec!["remember".into()];
    round(&model, &mut request).await.unwrap();
    request.reminders.clear();
    round(&model, &mut request).await.unwrap();
    let bodies = server.bodies();
    assert_eq!(
        previous(&bodies),
        [None, Some("r1"), Some("r1")],
        "the second answer was to a reminder as well"
    );
    assert!(bodies[1].to_string().contains("remember") && !bodies[2].to_string().contains("remember"));
}

#[tokio::test]
async fn without_storage_everything_is_sent_with_its_sealed_reasoning() {
    let zero_retention = "Previous response cannot be used for this organization due to Zero Data Retention.";
    for by_profile in [true, false] {
        let refused =
            (!by_profile).then(|| refuses("400 Bad Request", "unsupported_parameter", zero_retention));
        let replies = [answers("r1", true)].into_iter().chain(refused);
        let server = Server::new(replies.chain([answers("r2", false), answers("r3", false)]).collect()).await;
        let model = Responses::new(&Profile { store: !by_profile, ..server.profile() }).unwrap();
        let mut request = request();
        for _ in 0..3 {
            round(&model, &mut request).await.unwrap();
        }
        let bodies = server.bodies();
        let [.., second, third] = &bodies[..] else { panic!("{bodies:?}") };
        for body in [second, third] {
            assert_eq!((&body["store"], &body["previous_response_id"]), (&json!(false), &Value::Null));
            assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
        }
        assert_eq!(third["input"][1]["encrypted_content"], "sealed r1");
        assert_eq!(bodies.len(), if by_profile { 3 } else { 4 });
    }
}

#[tokio::test]
async fn what_a_server_does_not_offer_is_done_without_from_then_on() {
    let server = Server::new(vec![
        refuses(
            "400 Bad Request",
            "unsupported_value",
            "Your organization must be verified to generate reasoning summaries.",
        ),
        refuses("400 Bad Request", "", "Encrypted content is not supported with this model."),
        answers("r1", false),
        answers("r2", false),
        refuses(
            "400 Bad Request",
            "invalid_encrypted_content",
            "The encrypted content gA could not be verified.",
        ),
        answers("r3", false),
        refuses("400 Bad Request", "", "The model `gpt-5` does not exist."),
    ])
    .await;
    let model = Responses::new(&Profile { store: false, ..server.profile() }).unwrap();
    let mut request = request();
    for _ in 0..3 {
        round(&model, &mut request).await.unwrap();
    }
    assert_eq!(round(&model, &mut request).await.unwrap_err().kind, ModelErrorKind::BadRequest);
    let bodies = server.bodies();
    let asked: Vec<(bool, bool)> = bodies
        .iter()
        .map(|body| (body["reasoning"]["summary"] == "auto", body["include"].is_array()))
        .collect();
    assert_eq!(asked[..3], [(true, true), (false, true), (false, false)]);
    assert!(asked[3..].iter().all(|asked| *asked == (false, false)));
    let sealed = |body: &Value| body.to_string().contains("sealed r1");
    assert_eq!((sealed(&bodies[4]), sealed(&bodies[5])), (true, false));
    assert_eq!(bodies.len(), 7, "an error that names nothing of ours is not tried again");
}

#[tokio::test]
async fn a_free_text_call_is_read_and_a_server_that_has_none_is_asked_with_a_function() {
    let item = json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "apply_patch", "input": ""});
    let whole = json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "apply_patch",
        "input": "*** Begin\n\"quoted\"", "status": "completed"});
    let events = [
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.custom_tool_call_input.delta", "output_index": 0, "item_id": "ctc_1", "delta": "*** Beg"}),
        json!({"type": "response.custom_tool_call_input.done", "output_index": 0, "item_id": "ctc_1", "input": "*** Begin\n\"quoted\""}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": whole}),
        json!({"type": "response.completed", "response": {"id": "r2", "status": "completed"}}),
    ];
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let called = Reply::Http("200 OK\r\ncontent-type: text/event-stream".into(), body);
    let unknown =
        refuses("400 Bad Request", "invalid_value", "Invalid value: 'custom'. Param: tools[0].type");
    let server = Server::new(vec![called, unknown, answers("r3", false)]).await;
    let capabilities = Capabilities { patches: true, ..Capabilities::ALL };
    let model = Responses::new(&Profile { capabilities, ..server.profile() }).unwrap();
    let tool = kode_model::ToolDeclaration {
        name: "apply_patch".into(),
        description: String::new(),
        input_schema: json!({"type": "object"}).into(),
        grammar: Some("start: /.+/"),
    };
    let mut request = ModelRequest { tools: vec![tool], ..request() };
    round(&model, &mut request).await.unwrap();
    let Block::ToolUse { input, .. } = &request.messages[1].content[0] else {
        panic!("{:?}", request.messages)
    };
    assert_eq!(*input, json!({"input": "*** Begin\n\"quoted\""}));
    round(&model, &mut request).await.unwrap();
    let types: Vec<Value> = server.bodies().iter().map(|body| body["tools"][0]["type"].clone()).collect();
    assert_eq!(types, ["custom", "custom", "function"]);
}

#[tokio::test]
async fn nothing_is_sent_again_once_something_was_shown() {
    let shown = json!({"type": "response.output_text.delta", "output_index": 0, "delta": "so far"});
    let error = json!({"type": "error", "message": "Previous response with id 'r1' not found."});
    let broken = Reply::Http(
        "200 OK\r\ncontent-type: text/event-stream".into(),
        format!("data: {shown}\n\ndata: {error}\n\n"),
    );
    let server = Server::new(vec![answers("r1", false), broken]).await;
    let model = server.model();
    let mut request = request();
    round(&model, &mut request).await.unwrap();
    let error = round(&model, &mut request).await.unwrap_err();
    assert_eq!(error.partial.unwrap().content, [text("so far")]);
    assert_eq!(server.bodies().len(), 2);
}

#[tokio::test]
async fn redirects_are_refused_and_keys_are_not_repeated() {
    let moved = "307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/v1/responses";
    let server = Server::new(vec![
        Reply::Http(moved.into(), String::new()),
        refuses("401 Unauthorized", "invalid_api_key", "Incorrect API key provided: test-key-test-key."),
    ])
    .await;
    let model = server.model();
    let error = round(&model, &mut request()).await.unwrap_err();
    assert_eq!((error.kind, error.status), (ModelErrorKind::Configuration, Some(307)));
    let error = round(&model, &mut request()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Authentication);
    assert!(!error.message.contains("test-key"), "{error}");
    let (head, _) = server.seen.lock()[0].clone();
    for expected in ["post /v1/responses http/1.1\r\n", "authorization: bearer test-key-test-key\r\n"] {
        assert!(head.contains(expected), "{expected:?} is missing in {head}");
    }
}

#[tokio::test]
async fn cancelling_stops_a_request_that_is_not_answered() {
    let server = Server::new(vec![Reply::Silence]).await;
    let model = server.model();
    let cancel = CancellationToken::new();
    let request = request();
    let server_has_it = async {
        while server.bodies().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(model.complete(&request, &cancel), server_has_it);
    let error = result.unwrap_err();
    assert_eq!((error.kind, error.partial), (ModelErrorKind::Cancelled, None));
}

#[test]
fn reasoning_models_are_known_and_others_reason_when_an_effort_is_asked_for() {
    let all = Capabilities::ALL;
    let no_sampling = Capabilities { temperature: false, ..all };
    let no_thinking = Capabilities { thinking: false, ..all };
    let asked = ModelRequest { effort: Some(Effort::High), ..request() };
    for (model, capabilities, unasked, when_asked) in [
        ("gpt-5", all, true, true),
        ("gpt-5.3-codex", all, true, true),
        ("openai/o4-mini", all, true, true),
        ("codex-mini-latest", all, true, true),
        ("gpt-oss-120b", all, true, true),
        ("gpt-5", no_thinking, false, false),
        ("gpt-4o", all, false, false),
        ("gpt-5-chat-latest", all, false, false),
        ("some-model", all, false, true),
        ("some-model", no_sampling, true, true),
    ] {
        let found = (reasons(model, capabilities, &request()), reasons(model, capabilities, &asked));
        assert_eq!(found, (unasked, when_asked), "{model}");
    }
}
