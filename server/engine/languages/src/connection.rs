//! A connection to a language server: requests and their answers, and the requests of the server.
//!
//! Rule: every wait has a limit and every queue a bound. A peer that breaks the protocol, floods or ends closes the connection,
//! and each pending request fails with the reason.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use kode_base::task;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::wire;

/// The most messages that wait for the server to read them.
const MAX_OUTGOING: usize = 256;

/// The code of an unknown method.
const METHOD_NOT_FOUND: i64 = -32601;

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RequestFailure {
    /// The server answered with an error.
    Refused { code: i64, message: String },
    /// No answer in time. The request is cancelled.
    Timeout,
    /// The connection is closed, for this reason.
    Closed(String),
}

/// The receiver of what a server sends by itself. Called in the order of the messages; returns at once.
pub(crate) trait ServerMessages: Send + Sync {
    /// Takes a notification.
    fn notification(&self, method: &str, parameters: Value);

    /// Answers a request; `None` for a method that is not known.
    fn request(&self, method: &str, parameters: &Value) -> Option<Value>;
}

/// A connection. Dropping it closes the server's input.
pub(crate) struct LanguageConnection {
    outgoing: mpsc::Sender<Vec<u8>>,
    shared: Arc<ConnectionState>,
    next: AtomicI64,
    tasks: [tokio::task::AbortHandle; 2],
}

/// The state that the tasks of a connection share.
struct ConnectionState {
    pending: Mutex<HashMap<i64, oneshot::Sender<Result<Value, RequestFailure>>>>,
    closed: CancellationToken,
    reason: Mutex<Option<String>>,
}

impl ConnectionState {
    /// Closes the connection; the first reason stays.
    fn close(&self, reason: String) {
        let reason = self.reason.lock().get_or_insert(reason).clone();
        self.closed.cancel();
        for (_, pending) in self.pending.lock().drain() {
            // A caller that has given up waits for nothing.
            drop(pending.send(Err(RequestFailure::Closed(reason.clone()))));
        }
    }

    fn failure(&self) -> RequestFailure {
        RequestFailure::Closed(self.reason.lock().clone().unwrap_or_default())
    }
}

/// A request that no answer is waited for any more, once it is dropped.
struct RequestGuard<'c> {
    connection: &'c LanguageConnection,
    id: i64,
    is_answered: bool,
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        self.connection.shared.pending.lock().remove(&self.id);
        if !self.is_answered {
            let message = notification("$/cancelRequest", &json!({ "id": self.id }));
            // A server that reads nothing has no use for it.
            drop(self.connection.outgoing.try_send(message));
        }
    }
}

impl LanguageConnection {
    /// Starts to read from and to write to a server.
    pub(crate) fn start(
        output: impl AsyncRead + Send + Unpin + 'static,
        input: impl AsyncWrite + Send + Unpin + 'static,
        messages: Arc<dyn ServerMessages>,
    ) -> Self {
        let (outgoing, queue) = mpsc::channel(MAX_OUTGOING);
        let shared = Arc::new(ConnectionState {
            pending: Mutex::default(),
            closed: CancellationToken::new(),
            reason: Mutex::default(),
        });
        let writing = task::spawn(write_all(input, queue, Arc::clone(&shared)));
        let answers = outgoing.downgrade();
        let reading = task::spawn(read_all(output, answers, Arc::clone(&shared), messages));
        let tasks = [writing.abort_handle(), reading.abort_handle()];
        Self { outgoing, shared, next: AtomicI64::new(1), tasks }
    }

    /// Whether the server can still be asked.
    pub(crate) fn is_open(&self) -> bool {
        !self.shared.closed.is_cancelled()
    }

    /// Waits until the connection is closed, and returns the reason.
    pub(crate) async fn closed(&self) -> String {
        self.shared.closed.cancelled().await;
        self.shared.reason.lock().clone().unwrap_or_default()
    }

    /// Closes the connection and the server's input.
    pub(crate) fn close(&self, reason: &str) {
        self.shared.close(reason.to_owned());
    }

    /// Sends a request and waits for its result. A caller that stops waiting cancels the request.
    pub(crate) async fn request(
        &self,
        method: &str,
        parameters: &Value,
        limit: Duration,
    ) -> Result<Value, RequestFailure> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.shared.pending.lock().insert(id, sender);
        let mut pending = RequestGuard { connection: self, id, is_answered: false };
        if !self.is_open() {
            return Err(self.shared.failure());
        }
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters });
        let exchange = async {
            self.send(wire::frame(&message)).await?;
            answer.await.unwrap_or_else(|_| Err(self.shared.failure()))
        };
        let result = timeout(limit, exchange).await.unwrap_or(Err(RequestFailure::Timeout));
        pending.is_answered = !matches!(result, Err(RequestFailure::Timeout));
        result
    }

    /// Sends a notification, when the server has read enough of those before.
    pub(crate) async fn notify(&self, method: &str, parameters: &Value) -> Result<(), RequestFailure> {
        self.send(notification(method, parameters)).await
    }

    async fn send(&self, message: Vec<u8>) -> Result<(), RequestFailure> {
        tokio::select! {
            biased;
            () = self.shared.closed.cancelled() => Err(self.shared.failure()),
            sent = self.outgoing.send(message) => sent.map_err(|_| self.shared.failure()),
        }
    }
}

impl Drop for LanguageConnection {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::AbortHandle::abort);
    }
}

fn notification(method: &str, parameters: &Value) -> Vec<u8> {
    wire::frame(&json!({ "jsonrpc": "2.0", "method": method, "params": parameters }))
}

/// Writes the queued messages until the connection is closed.
async fn write_all(
    mut input: impl AsyncWrite + Send + Unpin,
    mut queue: mpsc::Receiver<Vec<u8>>,
    shared: Arc<ConnectionState>,
) {
    let writing = async {
        while let Some(message) = queue.recv().await {
            input.write_all(&message).await?;
            input.flush().await?;
        }
        Ok::<_, io::Error>(())
    };
    tokio::select! {
        biased;
        () = shared.closed.cancelled() => {}
        written = writing => {
            if let Err(error) = written {
                shared.close(format!("it reads no more: {error}"));
            }
        }
    }
}

/// Reads messages until the connection is closed.
async fn read_all(
    output: impl AsyncRead + Send + Unpin,
    answers: mpsc::WeakSender<Vec<u8>>,
    shared: Arc<ConnectionState>,
    messages: Arc<dyn ServerMessages>,
) {
    let mut output = BufReader::with_capacity(64 << 10, output);
    let reason = loop {
        let read = tokio::select! {
            biased;
            () = shared.closed.cancelled() => return,
            read = wire::read(&mut output) => read,
        };
        match read {
            Ok(Some(message)) => {
                if let Err(reason) = dispatch(message, &answers, &shared, &*messages) {
                    break reason;
                }
            }
            Ok(None) => break "it ended".to_owned(),
            Err(error) => break format!("it broke the protocol: {error}"),
        }
    };
    shared.close(reason);
}

/// Hands a message to its receiver.
fn dispatch(
    mut message: Value,
    answers: &mpsc::WeakSender<Vec<u8>>,
    shared: &ConnectionState,
    messages: &dyn ServerMessages,
) -> Result<(), String> {
    let id = message.get("id").filter(|id| !id.is_null()).cloned();
    let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
    let parameters = message.get_mut("params").map(Value::take).unwrap_or_default();
    match (id, method) {
        (None, Some(method)) => messages.notification(&method, parameters),
        (Some(id), Some(method)) => {
            let answer = match messages.request(&method, &parameters) {
                Some(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                None => {
                    let error = json!({ "code": METHOD_NOT_FOUND, "message": format!("`{method}` is not supported") });
                    json!({ "jsonrpc": "2.0", "id": id, "error": error })
                }
            };
            let Some(answers) = answers.upgrade() else { return Ok(()) };
            answers
                .try_send(wire::frame(&answer))
                .map_err(|_| "it sends requests and does not read the answers".to_owned())?;
        }
        (Some(id), None) => {
            let pending = id.as_i64().and_then(|id| shared.pending.lock().remove(&id));
            // One that no caller waits for came too late.
            if let Some(pending) = pending {
                drop(pending.send(result_of(&mut message)));
            }
        }
        (None, None) => {}
    }
    Ok(())
}

fn result_of(message: &mut Value) -> Result<Value, RequestFailure> {
    match message.get("error").filter(|error| !error.is_null()) {
        None => Ok(message.get_mut("result").map(Value::take).unwrap_or_default()),
        Some(error) => Err(RequestFailure::Refused {
            code: error.get("code").and_then(Value::as_i64).unwrap_or_default(),
            message: error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{DuplexStream, duplex};

    use super::*;

    /// Keeps notifications and answers one method.
    #[derive(Default)]
    struct Kept(Mutex<Vec<String>>);

    impl ServerMessages for Kept {
        fn notification(&self, method: &str, _parameters: Value) {
            self.0.lock().push(method.to_owned());
        }

        fn request(&self, method: &str, parameters: &Value) -> Option<Value> {
            (method == "workspace/configuration").then(|| parameters.clone())
        }
    }

    struct Peer {
        connection: Arc<LanguageConnection>,
        kept: Arc<Kept>,
        input: BufReader<DuplexStream>,
        output: DuplexStream,
    }

    fn peer(room: usize) -> Peer {
        let (input, server_input) = duplex(room);
        let (output, server_output) = duplex(room);
        let kept = Arc::new(Kept::default());
        let connection =
            LanguageConnection::start(server_output, input, Arc::clone(&kept) as Arc<dyn ServerMessages>);
        Peer { connection: Arc::new(connection), kept, input: BufReader::new(server_input), output }
    }

    impl Peer {
        async fn send(&mut self, message: Value) {
            self.output.write_all(&wire::frame(&message)).await.unwrap();
        }

        async fn receive(&mut self) -> Value {
            wire::read(&mut self.input).await.unwrap().unwrap()
        }

        fn ask(&self, method: &'static str) -> tokio::task::JoinHandle<Result<Value, RequestFailure>> {
            let connection = Arc::clone(&self.connection);
            tokio::spawn(async move { connection.request(method, &json!({}), Duration::from_secs(5)).await })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_find_their_requests_in_any_order() {
        let mut peer = peer(1 << 16);
        let (one, other) = (peer.ask("one"), peer.ask("other"));
        let (first, second) = (peer.receive().await, peer.receive().await);
        peer.send(json!({ "jsonrpc": "2.0", "method": "window/logMessage", "params": {} })).await;
        peer.send(json!({ "id": second["id"], "result": second["method"] })).await;
        let error = json!({ "code": -32801, "message": first["method"] });
        peer.send(json!({ "id": first["id"], "error": error })).await;
        let results = [one.await.unwrap(), other.await.unwrap()];
        assert!(results.contains(&Ok(second["method"].clone())), "{results:?}");
        let message = first["method"].as_str().unwrap().to_owned();
        assert!(results.contains(&Err(RequestFailure::Refused { code: -32801, message })), "{results:?}");
        assert_eq!(*peer.kept.0.lock(), ["window/logMessage"]);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_the_server_are_answered() {
        let mut peer = peer(1 << 16);
        peer.send(json!({ "id": "a", "method": "workspace/configuration", "params": [1] })).await;
        assert_eq!(peer.receive().await, json!({ "jsonrpc": "2.0", "id": "a", "result": [1] }));
        peer.send(json!({ "id": 7, "method": "no/such" })).await;
        assert_eq!(peer.receive().await["error"]["code"], METHOD_NOT_FOUND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answers_costs_the_limit_and_is_reported_to_stop() {
        let mut peer = peer(1 << 16);
        let asked = peer.ask("slow");
        let request = peer.receive().await;
        assert_eq!(asked.await.unwrap(), Err(RequestFailure::Timeout));
        let cancelled = peer.receive().await;
        assert_eq!(cancelled["params"]["id"], request["id"]);
        // A late answer is dropped.
        peer.send(json!({ "id": request["id"], "result": 1 })).await;
        let dropped = peer.ask("dropped");
        let request = peer.receive().await;
        dropped.abort();
        assert_eq!(peer.receive().await["params"]["id"], request["id"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_read_costs_the_limit() {
        let mut peer = peer(16);
        assert_eq!(peer.ask("one").await.unwrap(), Err(RequestFailure::Timeout));
        assert!(peer.connection.is_open());
        // It sends requests and reads none of the answers.
        for id in 0..=MAX_OUTGOING + 4 {
            let message = json!({ "id": id, "method": "no/such" });
            if peer.output.write_all(&wire::frame(&message)).await.is_err() {
                break;
            }
        }
        assert!(peer.connection.closed().await.contains("does not read"), "closed");
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_server_fails_every_pending_request_with_the_reason() {
        let mut peer = peer(1 << 16);
        let asked = peer.ask("one");
        peer.receive().await;
        peer.output.write_all(b"Content-Length: 99999999999\r\n\r\n").await.unwrap();
        let Err(RequestFailure::Closed(reason)) = asked.await.unwrap() else { panic!() };
        assert!(reason.contains("exceeds the limit"), "{reason}");
        assert!(matches!(peer.ask("two").await.unwrap(), Err(RequestFailure::Closed(_))));
    }
}
