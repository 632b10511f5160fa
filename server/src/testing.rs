//! A client for tests, at the other end of an in-memory connection.
//!
//! Rule: tests talk frames, as an editor does, and wait for messages, never for time.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;
use tower_lsp::{ClientSocket, LanguageServer, LspService};

use crate::lifecycle::Lifecycle;
use crate::transport::frame::FrameReader;
use crate::transport::{ServeEnd, serve};

/// Room for messages on their way, each direction.
const CONNECTION: usize = 1 << 20;

/// An editor by hand.
pub(crate) struct TestClient {
    output: Option<DuplexStream>,
    input: FrameReader<DuplexStream>,
    serving: JoinHandle<ServeEnd>,
}

impl TestClient {
    /// Serves `service` at the other end.
    pub(crate) fn connect<B: LanguageServer>(
        (service, socket): (LspService<B>, ClientSocket),
        lifecycle: Arc<Lifecycle>,
    ) -> Self {
        let (output, server_input) = tokio::io::duplex(CONNECTION);
        let (server_output, input) = tokio::io::duplex(CONNECTION);
        let serving =
            tokio::spawn(
                async move { serve(server_input, server_output, service, socket, &lifecycle).await },
            );
        Self { output: Some(output), input: FrameReader::new(input), serving }
    }

    /// Writes bytes as they are.
    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.output.as_mut().unwrap().write_all(bytes).await.unwrap();
    }

    /// Writes one message.
    pub(crate) async fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.send_bytes(&frame(message.to_string().as_bytes())).await;
    }

    /// The next message of the server.
    pub(crate) async fn receive(&mut self) -> Value {
        self.try_receive().await.expect("the server closed the connection")
    }

    /// The next message of the server; `None` when it has closed the connection.
    pub(crate) async fn try_receive(&mut self) -> Option<Value> {
        read_message(&mut self.input).await
    }

    /// Sends a request and gives its answer, which must be the next message.
    pub(crate) async fn request(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.send(json!({"id": id, "method": method, "params": params})).await;
        let answer = self.receive().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Sends a notification.
    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"method": method, "params": params})).await;
    }

    /// Goes through the handshake.
    pub(crate) async fn initialize(&mut self, capabilities: Value) -> Value {
        let answer = self.request(0, "initialize", json!({"capabilities": capabilities})).await;
        self.notify("initialized", json!({})).await;
        answer
    }

    /// Ends the server's input, as an editor that has died does.
    pub(crate) fn hang_up(&mut self) {
        self.output = None;
    }

    /// Waits until the server has ended by itself.
    pub(crate) async fn ended(self) -> ServeEnd {
        self.serving.await.unwrap()
    }
}

/// A frame around a body.
pub(crate) fn frame(body: &[u8]) -> Vec<u8> {
    [format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

async fn read_message(input: &mut FrameReader<impl AsyncRead + Unpin>) -> Option<Value> {
    let body = input.next().await.unwrap()?.unwrap();
    Some(serde_json::from_slice(&body).unwrap())
}
