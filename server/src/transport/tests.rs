//! The serve loop against clients that break every rule, and against load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use lsp_types::{
    DidChangeTextDocumentParams, ExecuteCommandParams, InitializeParams, InitializeResult, MessageType,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tower_lsp::Client;
use tower_lsp::jsonrpc;

use super::*;
use crate::testing::{TestClient, frame};

/// A server whose commands do what a test needs.
struct Probe {
    client: Client,
    gate: Arc<Semaphore>,
    versions: Arc<Mutex<Vec<i32>>>,
}

#[async_trait]
impl LanguageServer for Probe {
    async fn initialize(&self, _params: InitializeParams) -> jsonrpc::Result<InitializeResult> {
        Ok(InitializeResult::default())
    }

    async fn shutdown(&self) -> jsonrpc::Result<()> {
        Ok(())
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        self.versions.lock().unwrap().push(params.text_document.version);
        tokio::task::yield_now().await;
    }

    async fn execute_command(&self, params: ExecuteCommandParams) -> jsonrpc::Result<Option<Value>> {
        match params.command.as_str() {
            "echo" => {}
            "wait" => self.gate.acquire().await.unwrap().forget(),
            "panic" => panic!("on purpose"),
            "panic later" => {
                tokio::task::yield_now().await;
                panic!("on purpose");
            }
            "log first" => {
                for number in 0..20 {
                    self.client.log_message(MessageType::LOG, number).await;
                }
            }
            "abandon" => {
                let asked = self.client.workspace_folders();
                tokio::time::timeout(Duration::from_secs(1), asked).await.unwrap_err();
            }
            other => panic!("no such command: {other}"),
        }
        Ok(Some(json!(params.command)))
    }
}

struct Server {
    client: TestClient,
    gate: Arc<Semaphore>,
    versions: Arc<Mutex<Vec<i32>>>,
    lifecycle: Arc<Lifecycle>,
}

/// A server that is not initialized.
fn connect() -> Server {
    let gate = Arc::new(Semaphore::new(0));
    let versions = Arc::<Mutex<Vec<i32>>>::default();
    let service =
        LspService::new(|client| Probe { client, gate: Arc::clone(&gate), versions: Arc::clone(&versions) });
    let lifecycle = Arc::<Lifecycle>::default();
    Server { client: TestClient::connect(service, Arc::clone(&lifecycle)), gate, versions, lifecycle }
}

async fn start() -> Server {
    let mut server = connect();
    server.client.initialize(json!({})).await;
    server
}

impl Server {
    async fn command(&mut self, id: i64, command: &str) {
        self.client
            .send(json!({"id": id, "method": "workspace/executeCommand", "params": {"command": command}}))
            .await;
    }

    async fn assert_alive(&mut self, context: &str) {
        self.command(4711, "echo").await;
        let answer = self.client.receive().await;
        assert_eq!(
            (&answer["id"], &answer["result"]),
            (&json!(4711), &json!("echo")),
            "after {context}: {answer}"
        );
    }
}

#[tokio::test]
async fn a_fault_is_answered_once_and_the_next_request_is_served() {
    let long_line = [b"X-Long: ".as_slice(), &vec![b'x'; 3 * frame::MAX_HEADER_LINE], b"\r\n"].concat();
    let too_large = format!("Content-Length: {}\r\n\r\n", frame::MAX_BODY + 1);
    let large_body = [too_large.as_bytes(), &vec![b'['; frame::MAX_BODY + 1]].concat();
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
    let cases: Vec<(&str, Vec<u8>, Option<i64>)> = vec![
        ("malformed JSON", frame(b"{\"jsonrpc\":"), Some(-32700)),
        ("an empty body", frame(b""), Some(-32700)),
        ("a body that is no UTF-8", frame(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}"), Some(-32700)),
        ("a batch", frame(format!("[{request}]").as_bytes()), Some(-32600)),
        ("JSON that is no message", frame(b"true"), Some(-32600)),
        ("a text before the header", b"hello\nworld\n\n".to_vec(), Some(-32700)),
        ("a text on the line of the header", b"hello {} ".to_vec(), Some(-32700)),
        ("bytes before the header", b"\0\xff\xfe: \n".to_vec(), Some(-32700)),
        ("a length that is no number", b"Content-Length: ten\r\n\r\n{}".to_vec(), Some(-32700)),
        ("a negative length", b"Content-Length: -1\r\n\r\n".to_vec(), Some(-32700)),
        ("headers without a length", b"Content-Type: a\r\n\r\n{}".to_vec(), Some(-32700)),
        ("a header line that is too long", long_line, Some(-32700)),
        ("a body that is too large", large_body, Some(-32600)),
        ("a length that is a lie", [too_large.as_bytes(), b"{}"].concat(), Some(-32600)),
        (
            "a length no machine has",
            b"Content-Length: 99999999999999999999999\r\n\r\n{}".to_vec(),
            Some(-32600),
        ),
        ("empty lines between messages", b"\r\n\r\n\n".to_vec(), None),
        (
            "lower-case and further headers",
            b"x-a: 1\r\ncontent-length: 4\r\nX-B: 2\r\nContent-Type: a; charset=utf-8\r\n\r\n[{}]".to_vec(),
            Some(-32600),
        ),
        ("bare newlines", b"Content-Length:2\n\n[]".to_vec(), Some(-32600)),
    ];
    let mut server = start().await;
    for (name, bytes, code) in cases {
        server.client.send_bytes(&bytes).await;
        // Skipped bytes end at the next header, so the answer may come before or with the next request.
        server.command(4711, "echo").await;
        if let Some(code) = code {
            let answer = server.client.receive().await;
            assert_eq!(
                (&answer["error"]["code"], &answer["id"]),
                (&json!(code), &Value::Null),
                "{name}: {answer}"
            );
        }
        let answer = server.client.receive().await;
        assert_eq!(
            (&answer["id"], &answer["result"]),
            (&json!(4711), &json!("echo")),
            "after {name}: {answer}"
        );
    }
}

#[tokio::test]
async fn a_length_that_is_too_small_costs_its_own_message_only() {
    let mut server = start().await;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"workspace/executeCommand","params":{"command":"echo"}}"#;
    server.client.send_bytes(format!("Content-Length: {}\r\n\r\n{body}", body.len() - 5).as_bytes()).await;
    server.command(4711, "echo").await;
    for _ in ["the cut body", "its rest"] {
        assert_eq!(server.client.receive().await["error"]["code"], -32700);
    }
    assert_eq!(server.client.receive().await["id"], 4711);
}

#[tokio::test]
async fn frames_may_arrive_byte_by_byte_and_many_at_once() {
    let mut server = start().await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "workspace/executeCommand", "params": {"command": "echo"}});
    let bytes = frame(message.to_string().as_bytes());
    for byte in &bytes {
        server.client.send_bytes(std::slice::from_ref(byte)).await;
        tokio::task::yield_now().await;
    }
    server.client.send_bytes(&bytes.repeat(3)).await;
    for _ in 0..4 {
        assert_eq!(server.client.receive().await["result"], "echo");
    }
}

#[tokio::test]
async fn requests_before_initialize_are_refused_and_unknown_ones_named() {
    let mut server = connect();
    server.command(1, "echo").await;
    assert_eq!(server.client.receive().await["error"]["code"], -32002);
    server.client.initialize(json!({})).await;
    let answer = server.client.request(2, "no/such", json!({})).await;
    assert_eq!(answer["error"]["code"], -32601);
    server.client.notify("$/no/such", json!({})).await;
    server.assert_alive("an unknown notification").await;
}

#[tokio::test]
async fn notifications_stay_in_order_while_requests_wait() {
    let mut server = start().await;
    let requests = 64;
    for id in 0..requests {
        server.command(id, "wait").await;
    }
    let notifications = 10_000;
    for version in 0..notifications {
        server
            .client
            .notify(
                "textDocument/didChange",
                json!({"textDocument": {"uri": "file:///a", "version": version}, "contentChanges": []}),
            )
            .await;
    }
    server.assert_alive("10,000 changes").await;
    assert!(server.versions.lock().unwrap().iter().copied().eq(0..notifications));
    server.gate.add_permits(requests as usize);
    let mut answered = Vec::new();
    for _ in 0..requests {
        answered.push(server.client.receive().await["id"].as_i64().unwrap());
    }
    answered.sort_unstable();
    assert!(answered.into_iter().eq(0..requests));
}

#[tokio::test]
async fn one_request_too_many_is_refused_and_nothing_freezes() {
    let mut server = start().await;
    let limit = i64::try_from(MAX_IN_FLIGHT).unwrap();
    for id in 0..limit {
        server.command(id, "wait").await;
    }
    server.command(limit, "wait").await;
    let refused = server.client.receive().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(limit), &json!(SERVER_BUSY)));
    server.client.notify("$/cancelRequest", json!({"id": 7})).await;
    let cancelled = server.client.receive().await;
    assert_eq!((&cancelled["id"], &cancelled["error"]["code"]), (&json!(7), &json!(-32800)));
    server.assert_alive("a place became free").await;
}

#[tokio::test]
async fn a_panic_is_an_internal_error_of_that_request_alone() {
    let mut server = start().await;
    server.command(1, "wait").await;
    for (id, command) in [(2, "panic"), (3, "panic later")] {
        server.command(id, command).await;
        let answer = server.client.receive().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32603)), "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("on purpose"), "{answer}");
    }
    server.gate.add_permits(1);
    assert_eq!(server.client.receive().await["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_nobody_waits_for_any_more_is_dropped() {
    let mut server = start().await;
    server.command(1, "abandon").await;
    let asked = server.client.receive().await;
    assert_eq!(asked["method"], "workspace/workspaceFolders");
    assert_eq!(server.client.receive().await["id"], 1);
    server.client.send(json!({"id": asked["id"], "result": null})).await;
    server.client.send(json!({"id": 999, "result": null})).await;
    server.assert_alive("a late and an unasked answer").await;
}

#[tokio::test]
async fn what_a_handler_sends_comes_before_its_answer() {
    let mut server = start().await;
    for id in 1..50 {
        server.command(id, "log first").await;
        for number in 0..20 {
            assert_eq!(server.client.receive().await["params"]["message"], number.to_string());
        }
        assert_eq!(server.client.receive().await["id"], id);
    }
}

#[tokio::test]
async fn only_exit_after_shutdown_is_orderly() {
    for (messages, expected) in [
        (vec![json!({"id": 1, "method": "shutdown"}), json!({"method": "exit"})], ServeEnd::Orderly),
        (
            vec![
                json!({"id": 1, "method": "shutdown", "params": {}}),
                json!({"method": "exit", "params": null}),
            ],
            ServeEnd::Orderly,
        ),
        (vec![json!({"method": "exit"})], ServeEnd::Abrupt),
        (vec![json!({"method": "shutdown"}), json!({"method": "exit"})], ServeEnd::Abrupt),
        (vec![json!({"id": 1, "method": "shutdown"})], ServeEnd::Abrupt),
        (vec![], ServeEnd::Abrupt),
    ] {
        let mut server = start().await;
        for message in &messages {
            server.client.send(message.clone()).await;
        }
        server.client.hang_up();
        while server.client.try_receive().await.is_some() {}
        assert_eq!(server.client.ended().await, expected, "{messages:?}");
    }
    let mut server = connect();
    server.client.send(json!({"id": 1, "method": "shutdown"})).await;
    server.client.notify("exit", json!(null)).await;
    assert_eq!(server.client.ended().await, ServeEnd::Abrupt, "shutdown before initialize is an error");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_input_leaves_handlers_a_grace_and_runs_what_was_registered() {
    let mut server = start().await;
    let ran = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&ran);
    server.lifecycle.at_end(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        flag.store(true, Ordering::SeqCst);
    });
    server.command(1, "wait").await;
    server.command(2, "wait").await;
    server.assert_alive("two requests").await;
    server.client.hang_up();
    server.gate.add_permits(1);
    assert_eq!(server.client.receive().await["result"], "wait", "answered within the grace");
    assert_eq!(server.client.try_receive().await, None);
    assert_eq!(server.client.ended().await, ServeEnd::Abrupt);
    assert!(ran.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_client_that_reads_no_more_ends_the_server() {
    let (service, socket) = LspService::new(|client| Probe {
        client,
        gate: Arc::new(Semaphore::new(0)),
        versions: Arc::default(),
    });
    let (mut output, input) = tokio::io::duplex(1 << 10);
    let (server_output, unread) = tokio::io::duplex(1 << 10);
    drop(unread);
    let serving =
        tokio::spawn(
            async move { serve(input, server_output, service, socket, &Lifecycle::default()).await },
        );
    tokio::io::AsyncWriteExt::write_all(&mut output, &frame(b"[]")).await.unwrap();
    assert_eq!(serving.await.unwrap(), ServeEnd::Abrupt);
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_server_and_an_end_that_hangs_is_given_up() {
    let server = start().await;
    server.lifecycle.at_end(std::future::pending());
    server.lifecycle.at_end(async { panic!("on purpose") });
    server.lifecycle.stop();
    assert_eq!(server.client.ended().await, ServeEnd::Abrupt);
}
