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

use agent_client_protocol_schema::v1::{CancelRequestNotification, RequestId};
use futures::FutureExt;
use kode_engine::acp::lines::{MessageReader, OUTBOX, write_lines};
use kode_engine::acp::message::RpcMessage;
use kode_engine::acp::peer::{CANCEL_REQUEST, RpcPeer};
use kode_engine::base::task;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::agent::LaunchOptions;
use super::error;
use super::requests::{AcpServer, RpcReply};
use crate::lifecycle::Lifecycle;

/// Requests that may wait for their answer at the same time; one more is answered with an error at once.
const MAX_IN_FLIGHT: usize = 1_024;

/// How long handlers may continue when the connection ends.
const HANDLER_GRACE: Duration = Duration::from_secs(1);

/// How long the last messages may take to be written.
const WRITE_GRACE: Duration = Duration::from_secs(1);

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
    let peer = RpcPeer::new(outbox);
    let mut writing = task::spawn(write_lines(writer, queue));
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
            Ok(Some(line)) => RpcMessage::of(&line),
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
    peer: Arc<RpcPeer>,
    handlers: JoinSet<()>,
    waiting: WaitingRequests,
}

impl RpcDispatcher {
    async fn take(&mut self, message: RpcMessage) {
        match message {
            RpcMessage::Request { id, method, params } => self.request(id, method, params).await,
            RpcMessage::Notification { method, params } if method == CANCEL_REQUEST => self.cancel(params),
            RpcMessage::Notification { method, params } => self.server.notified(&method, params),
            RpcMessage::Answer { id, outcome } => self.peer.resolve(&id, outcome),
            RpcMessage::Invalid { id, error } => {
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

async fn answer(peer: &RpcPeer, id: RequestId, reply: RpcReply) {
    match reply {
        RpcReply::Now(outcome) => peer.respond(id, outcome).await,
        RpcReply::Later => {}
    }
}

fn waiting(table: &WaitingRequests) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
