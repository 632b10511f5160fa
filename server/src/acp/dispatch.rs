//! The serve loop: from lines to handlers and back.
//!
//! Rule: handlers are polled once in arrival order, so what a handler does before its first wait happens in that order.
//! Nothing in the loop waits for a handler, and a handler that panics answers with an error.

use std::any::Any;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use agent_client_protocol_schema::v1::{CancelRequestNotification, Error, RequestId};
use futures::FutureExt;
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::agent::LaunchOptions;
use super::error;
use super::lines::{MAX_MESSAGE, MessageLine, MessageReader, OUTBOX, write_lines};
use super::peer::{CANCEL_REQUEST, ClientPeer};
use super::requests::{AcpServer, RpcReply};
use crate::lifecycle::Lifecycle;

/// Requests that may wait for their answer at the same time; one more is answered with an error at once.
const MAX_IN_FLIGHT: usize = 1_024;

/// How long handlers may continue when the connection ends.
const HANDLER_GRACE: Duration = Duration::from_secs(1);

/// How long the last messages may take to be written.
const WRITE_GRACE: Duration = Duration::from_secs(1);

/// A message of the client.
enum IncomingRpc {
    Request { id: RequestId, method: String, params: Option<Value> },
    Notification { method: String, params: Option<Value> },
    Answer { id: RequestId, outcome: Result<Value, Error> },
    Invalid { id: RequestId, error: Error },
}

/// The requests that wait for their handlers, each with the token that cancels it.
type WaitingRequests = Arc<Mutex<HashMap<RequestId, CancellationToken>>>;

/// Serves until the client leaves or the process is asked to end. When this returns, the tasks of [`Lifecycle::at_end`] have
/// run.
pub(super) async fn serve<R, W>(reader: R, writer: W, options: LaunchOptions, lifecycle: Arc<Lifecycle>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (outbox, queue) = mpsc::channel(OUTBOX);
    let peer = ClientPeer::new(outbox);
    let mut writing = tokio::spawn(write_lines(writer, queue));
    let server = AcpServer::new(Arc::clone(&peer), options, Arc::clone(&lifecycle));
    let mut dispatch =
        RpcDispatcher { server, peer, handlers: JoinSet::new(), waiting: WaitingRequests::default() };
    let mut lines = MessageReader::new(reader);
    let ended = loop {
        let line = tokio::select! {
            biased;
            () = lifecycle.stopped() => break "the process was asked to end".to_owned(),
            _ = &mut writing => break "the client reads no more".to_owned(),
            line = lines.next() => line,
        };
        let message = match line {
            Ok(Some(MessageLine::Message(line))) => parse(&line),
            Ok(Some(MessageLine::TooLong)) => too_long(),
            Ok(None) => break "the input ended".to_owned(),
            Err(error) => break format!("the input broke: {error}"),
        };
        dispatch.take(message).await;
    };
    tracing::info!("serving ended: {ended}");
    dispatch.finish().await;
    lifecycle.end().await;
    drop(dispatch);
    // The writer ends with the last sender; tasks that still hold one have nothing to say any more.
    if !writing.is_finished() && tokio::time::timeout(WRITE_GRACE, &mut writing).await.is_err() {
        writing.abort();
    }
}

struct RpcDispatcher {
    server: Arc<AcpServer>,
    peer: Arc<ClientPeer>,
    handlers: JoinSet<()>,
    waiting: WaitingRequests,
}

impl RpcDispatcher {
    async fn take(&mut self, message: IncomingRpc) {
        match message {
            IncomingRpc::Request { id, method, params } => self.request(id, method, params).await,
            IncomingRpc::Notification { method, params } if method == CANCEL_REQUEST => self.cancel(params),
            IncomingRpc::Notification { method, params } => self.server.notified(&method, params),
            IncomingRpc::Answer { id, outcome } => self.peer.resolve(&id, outcome),
            IncomingRpc::Invalid { id, error } => {
                tracing::warn!(%error, "the client sent an invalid message");
                self.peer.respond(id, Err(error)).await;
            }
        }
    }

    /// Polls the handler once; unfinished work continues as a task.
    async fn request(&mut self, id: RequestId, method: String, params: Option<Value>) {
        while self.handlers.try_join_next().is_some() {}
        if self.handlers.len() >= MAX_IN_FLIGHT {
            let busy = format!("{MAX_IN_FLIGHT} requests wait for their answers. Try again later.");
            return self.peer.respond(id, Err(error::internal(&busy))).await;
        }
        let (server, of_request) = (Arc::clone(&self.server), id.clone());
        let handling = async move { server.call(of_request, &method, params).await };
        let mut handling = Box::pin(AssertUnwindSafe(handling).catch_unwind());
        // Unconstrained, because the runtime's fairness budget would make a handler wait that has nothing to wait for.
        match futures::poll!(tokio::task::unconstrained(&mut handling)) {
            Poll::Ready(outcome) => answer(&self.peer, id, reply(outcome)).await,
            Poll::Pending => {
                let cancel = CancellationToken::new();
                waiting(&self.waiting).insert(id.clone(), cancel.clone());
                let (peer, table) = (Arc::clone(&self.peer), Arc::clone(&self.waiting));
                self.handlers.spawn(async move {
                    let outcome = tokio::select! {
                        biased;
                        outcome = handling => reply(outcome),
                        () = cancel.cancelled() => RpcReply::Now(Err(error::cancelled())),
                    };
                    waiting(&table).remove(&id);
                    answer(&peer, id, outcome).await;
                });
            }
        }
    }

    /// Cancels a request of the client.
    fn cancel(&self, params: Option<Value>) {
        let Some(Ok(cancel)) = params.map(serde_json::from_value::<CancelRequestNotification>) else {
            return;
        };
        let token = waiting(&self.waiting).get(&cancel.request_id).cloned();
        match token {
            Some(token) => token.cancel(),
            None => self.server.cancel_prompt(&cancel.request_id),
        }
    }

    /// Ends the handlers: the client is gone.
    async fn finish(&mut self) {
        self.peer.close();
        let all = async { while self.handlers.join_next().await.is_some() {} };
        if tokio::time::timeout(HANDLER_GRACE, all).await.is_err() {
            self.handlers.shutdown().await;
        }
    }
}

/// The reply of a handler; that of one that panicked is an error.
fn reply(outcome: Result<RpcReply, Box<dyn Any + Send>>) -> RpcReply {
    outcome.unwrap_or_else(|panic| {
        tracing::error!("a handler panicked: {}", panic_text(&*panic));
        let fault = "The request broke off because of a fault in kode-ls. The log has the details.";
        RpcReply::Now(Err(error::internal(fault)))
    })
}

async fn answer(peer: &ClientPeer, id: RequestId, reply: RpcReply) {
    match reply {
        RpcReply::Now(outcome) => peer.respond(id, outcome).await,
        RpcReply::Later => {}
    }
}

fn waiting(table: &WaitingRequests) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

fn too_long() -> IncomingRpc {
    let error = error::invalid_request(&format!(
        "A message may have {} MiB; this one is longer and was skipped.",
        MAX_MESSAGE >> 20
    ));
    IncomingRpc::Invalid { id: RequestId::Null, error }
}

/// Parses one message.
fn parse(line: &[u8]) -> IncomingRpc {
    match serde_json::from_slice(line) {
        Ok(Value::Object(message)) => read(message),
        Ok(Value::Array(_)) => {
            invalid(RequestId::Null, "Batches are not supported. Send one message a line.")
        }
        Ok(_) => invalid(RequestId::Null, "A message is a JSON object."),
        Err(error) => {
            let error = error::parse(&format!("The line is not valid JSON: {error}."));
            IncomingRpc::Invalid { id: RequestId::Null, error }
        }
    }
}

fn read(mut message: Map<String, Value>) -> IncomingRpc {
    let id = message.remove("id").map(serde_json::from_value::<RequestId>);
    let id = match id {
        None => None,
        Some(Ok(id)) => Some(id),
        Some(Err(_)) => return invalid(RequestId::Null, "`id` is neither a string nor an integer."),
    };
    let known = id.clone().unwrap_or(RequestId::Null);
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid(known, "`jsonrpc` is not \"2.0\".");
    }
    let params = message.remove("params").filter(|params| !params.is_null());
    match (message.remove("method"), id) {
        (Some(Value::String(_)), _) if params.as_ref().is_some_and(|params| !params.is_object()) => {
            invalid(known, "`params` is not an object.")
        }
        (Some(Value::String(method)), Some(id)) => IncomingRpc::Request { id, method, params },
        (Some(Value::String(method)), None) => IncomingRpc::Notification { method, params },
        (Some(_), _) => invalid(known, "`method` is not a string."),
        (None, Some(id)) => match (message.remove("result"), message.remove("error")) {
            (_, Some(error)) => IncomingRpc::Answer { id, outcome: Err(client_error(error)) },
            (Some(result), None) => IncomingRpc::Answer { id, outcome: Ok(result) },
            (None, None) => invalid(id, "The message has neither `method` nor `result` nor `error`."),
        },
        (None, None) => invalid(known, "The message has neither `method` nor `id`."),
    }
}

fn client_error(error: Value) -> Error {
    serde_json::from_value(error.clone()).unwrap_or_else(|_| error::internal(&error.to_string()))
}

fn invalid(id: RequestId, message: &str) -> IncomingRpc {
    IncomingRpc::Invalid { id, error: error::invalid_request(message) }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn code(message: IncomingRpc) -> (RequestId, i32) {
        match message {
            IncomingRpc::Invalid { id, error } => (id, error.code.into()),
            _ => panic!("the message is valid"),
        }
    }

    #[test]
    fn a_message_that_is_wrong_is_answered_by_what_is_known_of_it() {
        for (line, id, expected) in [
            ("{", RequestId::Null, -32_700),
            ("7", RequestId::Null, -32_600),
            ("[]", RequestId::Null, -32_600),
            (r#"{"id":1,"method":"x"}"#, RequestId::Number(1), -32_600),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, RequestId::Null, -32_600),
            (r#"{"jsonrpc":"2.0","id":"a","method":3}"#, RequestId::Str("a".into()), -32_600),
            (r#"{"jsonrpc":"2.0","id":2,"method":"x","params":[1]}"#, RequestId::Number(2), -32_600),
            (r#"{"jsonrpc":"2.0","id":3}"#, RequestId::Number(3), -32_600),
            (r#"{"jsonrpc":"2.0"}"#, RequestId::Null, -32_600),
        ] {
            assert_eq!(code(parse(line.as_bytes())), (id, expected), "{line}");
        }
    }

    #[test]
    fn requests_notifications_and_answers_are_distinguished() {
        let line = |value: Value| parse(value.to_string().as_bytes());
        let request = line(json!({ "jsonrpc": "2.0", "id": 0, "method": "m", "params": null }));
        assert!(matches!(request, IncomingRpc::Request { id: RequestId::Number(0), params: None, .. }));
        let notification = line(json!({ "jsonrpc": "2.0", "method": "m", "params": {} }));
        assert!(matches!(notification, IncomingRpc::Notification { params: Some(_), .. }));
        let answer = line(json!({ "jsonrpc": "2.0", "id": 4, "result": null }));
        assert!(matches!(answer, IncomingRpc::Answer { outcome: Ok(Value::Null), .. }));
        let failed = line(json!({ "jsonrpc": "2.0", "id": 4, "error": { "code": 1, "message": "no" } }));
        let IncomingRpc::Answer { outcome: Err(error), .. } = failed else { panic!("an error") };
        assert_eq!((i32::from(error.code), error.message.as_str()), (1, "no"));
    }
}
