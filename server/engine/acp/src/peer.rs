//! The other side as this process reaches it: notifications, answers, and requests that wait for theirs.
//!
//! Rule: messages are written in the order in which they are handed over. A request whose caller stops waiting is cancelled
//! at the other side, and its late answer is dropped.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    CancelRequestNotification, Error, JsonRpcMessage, Notification, Request, RequestId, Response,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::lines::MAX_MESSAGE;
use kode_base::paths::one_line;

/// The method that cancels a request.
pub const CANCEL_REQUEST: &str = "$/cancel_request";

/// The most characters of a reason that the other side gives.
const MAX_REASON: usize = 1_000;

/// The outcome of a request to the other side.
type PeerAnswer = Result<Value, Error>;

/// Sends messages to the other side.
pub struct RpcPeer {
    outbox: mpsc::Sender<Vec<u8>>,
    pending: Mutex<PendingAnswers>,
    next: AtomicI64,
}

/// The requests that wait for the client.
#[derive(Default)]
struct PendingAnswers {
    waiting: HashMap<i64, oneshot::Sender<PeerAnswer>>,
    /// Whether the client is gone: no answer comes any more.
    is_closed: bool,
}

/// Why a request to the other side has no result.
#[derive(Debug, thiserror::Error)]
pub enum PeerCallError {
    /// The other side answered with an error.
    #[error("the client answered: {message}")]
    Refused {
        /// The code of the error.
        code: i32,
        /// Its message, on one line.
        message: String,
    },
    /// The client did not answer within the limit.
    #[error("the client did not answer within {0:?}")]
    Late(Duration),
    /// The client's answer does not fit the protocol.
    #[error("the client's answer is not valid: {0}")]
    Illegible(String),
    /// The message is longer than [`MAX_MESSAGE`].
    #[error("the message is longer than {} MiB", MAX_MESSAGE >> 20)]
    TooLong,
    /// The connection has ended.
    #[error("the client is gone")]
    Gone,
}

impl RpcPeer {
    /// A client whose messages go into this queue.
    pub fn new(outbox: mpsc::Sender<Vec<u8>>) -> Arc<Self> {
        Arc::new(Self { outbox, pending: Mutex::default(), next: AtomicI64::new(0) })
    }

    /// Sends a notification. Waits while too many messages wait to be written.
    pub async fn notify<P: Serialize>(&self, method: &str, params: P) {
        self.send(&Notification { method: method.into(), params: Some(params) }).await;
    }

    /// Sends a notification at once. Answers false where too many messages wait, or the other side is gone.
    #[must_use]
    pub fn try_notify<P: Serialize>(&self, method: &str, params: P) -> bool {
        let message = encoded(&Notification { method: method.into(), params: Some(params) });
        message.is_some_and(|message| self.outbox.try_send(message).is_ok())
    }

    /// Answers a request.
    pub async fn respond(&self, id: RequestId, outcome: Result<Value, Error>) {
        self.send(&Response::new(id, outcome)).await;
    }

    /// Sends a request and waits for its answer, without a limit if absent.
    ///
    /// # Errors
    /// [`PeerCallError`].
    pub async fn request<P: Serialize, R: DeserializeOwned>(
        &self,
        method: &str,
        params: P,
        limit: Option<Duration>,
    ) -> Result<R, PeerCallError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let request = Request { id: RequestId::Number(id), method: method.into(), params: Some(params) };
        let message = encoded(&request).ok_or(PeerCallError::TooLong)?;
        let (sender, answer) = oneshot::channel();
        {
            let mut pending = self.pending();
            if pending.is_closed {
                return Err(PeerCallError::Gone);
            }
            pending.waiting.insert(id, sender);
        }
        let mut guard = PendingGuard { peer: self, id, is_answered: false };
        let waiting = async {
            self.outbox.send(message).await.map_err(|_| PeerCallError::Gone)?;
            answer.await.map_err(|_| PeerCallError::Gone)
        };
        let answer = match limit {
            None => waiting.await?,
            Some(limit) => {
                tokio::time::timeout(limit, waiting).await.map_err(|_| PeerCallError::Late(limit))??
            }
        };
        guard.is_answered = true;
        let result = answer.map_err(|error| PeerCallError::Refused {
            code: error.code.into(),
            message: bounded(&reason(&error)),
        })?;
        serde_json::from_value(result).map_err(|error| PeerCallError::Illegible(error.to_string()))
    }

    /// Brings an answer of the client to the request that waits for it.
    pub fn resolve(&self, id: &RequestId, answer: PeerAnswer) {
        let RequestId::Number(id) = id else { return };
        match self.pending().waiting.remove(id) {
            // The caller may have stopped waiting at this moment.
            Some(waiting) => drop(waiting.send(answer)),
            None => tracing::debug!(id, "the client answered a request that nothing waits for"),
        }
    }

    /// Fails all requests that wait: the client is gone.
    pub fn close(&self) {
        let mut pending = self.pending();
        pending.is_closed = true;
        pending.waiting.clear();
    }

    async fn send<M: Serialize>(&self, message: &M) {
        let Some(message) = encoded(message) else {
            tracing::error!("a message beyond the limit of the transport was not sent");
            return;
        };
        // Fails only when the client reads no more, and then serving ends.
        let _ = self.outbox.send(message).await;
    }

    fn pending(&self) -> MutexGuard<'_, PendingAnswers> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that waits; dropped without an answer, it is cancelled at the client.
struct PendingGuard<'a> {
    peer: &'a RpcPeer,
    id: i64,
    is_answered: bool,
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        if self.is_answered || self.peer.pending().waiting.remove(&self.id).is_none() {
            return;
        }
        let params = CancelRequestNotification::new(RequestId::Number(self.id));
        let cancel = Notification { method: CANCEL_REQUEST.into(), params: Some(params) };
        // While the queue is full the client reads nothing; its late answer is dropped all the same.
        if let Some(message) = encoded(&cancel) {
            let _ = self.peer.outbox.try_send(message);
        }
    }
}

/// The message of an error with its data: for many programs every fault is an "Internal error", and only the data say which.
fn reason(error: &Error) -> String {
    let data = match &error.data {
        None | Some(Value::Null) => return error.message.clone(),
        Some(Value::String(text)) => text.clone(),
        Some(data) => {
            let named = ["details", "message"].iter().find_map(|name| data.get(*name)?.as_str());
            named.map_or_else(|| data.to_string(), str::to_owned)
        }
    };
    format!("{} ({data})", error.message)
}

/// A text of the other side on one line, cut to [`MAX_REASON`] characters.
#[must_use]
pub fn bounded(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let joined = words.join(" ");
    let line = one_line(&joined);
    match line.char_indices().nth(MAX_REASON) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.into_owned(),
    }
}

/// A message as one line; `None` beyond the limit. A string of JSON holds no line end, so no message has one.
fn encoded<M: Serialize>(message: &M) -> Option<Vec<u8>> {
    match serde_json::to_vec(&JsonRpcMessage::wrap(message)) {
        Ok(bytes) => (bytes.len() <= MAX_MESSAGE).then_some(bytes),
        Err(error) => {
            tracing::error!(%error, "a message cannot be written as JSON");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn next(queue: &mut mpsc::Receiver<Vec<u8>>) -> Value {
        serde_json::from_slice(&queue.recv().await.unwrap()).unwrap()
    }

    #[tokio::test]
    async fn an_answer_reaches_the_request_it_is_for() {
        let (outbox, mut queue) = mpsc::channel(8);
        let peer = RpcPeer::new(outbox);
        let asking = |method: &'static str| {
            let peer = Arc::clone(&peer);
            tokio::spawn(async move { peer.request::<_, Value>(method, json!({}), None).await })
        };
        let (first, second) = (asking("a"), asking("b"));
        let mut ids = HashMap::new();
        for _ in 0..2 {
            let request = next(&mut queue).await;
            assert_eq!(request["jsonrpc"], "2.0");
            ids.insert(request["method"].as_str().unwrap().to_owned(), request["id"].as_i64().unwrap());
        }
        peer.resolve(&RequestId::Number(ids["b"]), Err(Error::new(-1, "no\nway")));
        peer.resolve(&RequestId::Number(ids["a"]), Ok(json!(7)));
        assert_eq!(first.await.unwrap().unwrap(), 7);
        assert_eq!(second.await.unwrap().unwrap_err().to_string(), "the client answered: no way");
    }

    #[test]
    fn the_data_of_an_error_are_part_of_its_reason() {
        for (data, expected) in [
            (Value::Null, "Internal error"),
            (json!("no model"), "Internal error (no model)"),
            (json!({ "details": "Connection error.", "code": 3 }), "Internal error (Connection error.)"),
            (json!({ "message": "no key" }), "Internal error (no key)"),
            (json!({ "errorKind": "unknown" }), r#"Internal error ({"errorKind":"unknown"})"#),
        ] {
            assert_eq!(reason(&Error::new(-32_603, "Internal error").data(data)), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_given_up_is_cancelled_at_the_client() {
        let (outbox, mut queue) = mpsc::channel(8);
        let peer = RpcPeer::new(outbox);
        let limit = Duration::from_secs(1);
        let late = peer.request::<_, Value>("a", json!({}), Some(limit)).await.unwrap_err();
        assert!(matches!(late, PeerCallError::Late(_)), "{late}");
        let request = next(&mut queue).await;
        let cancel = next(&mut queue).await;
        assert_eq!(
            (&cancel["method"], &cancel["params"]["requestId"]),
            (&json!(CANCEL_REQUEST), &request["id"])
        );
        peer.resolve(&RequestId::Number(request["id"].as_i64().unwrap()), Ok(Value::Null));
    }

    #[tokio::test]
    async fn requests_fail_once_the_client_is_gone() {
        let (outbox, _queue) = mpsc::channel(8);
        let peer = RpcPeer::new(outbox);
        peer.close();
        let gone = peer.request::<_, Value>("a", json!({}), None).await.unwrap_err();
        assert!(matches!(gone, PeerCallError::Gone), "{gone}");
    }
}
