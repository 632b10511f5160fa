//! The serve loop between bytes and the service: our own, because no client's fault may end an agent at work.
//!
//! Rule: calls reach the service in arrival order and each handler is polled once right there, so what a handler
//! does before its first await happens in that order; nothing in the loop waits for a handler, and a handler that
//! panics answers with an error.

pub mod frame;
pub mod message;
pub mod stdio;
mod writer;

use std::any::Any;
use std::io;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::task::Poll;
use std::time::Duration;

use futures::future::{self, BoxFuture, FutureExt, poll_fn};
use futures::{Sink, SinkExt};
use kode_engine::base::task;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tower::Service;
use tower_lsp::jsonrpc::{ErrorCode, Id, Request, Response};
use tower_lsp::{ClientSocket, ExitedError, LanguageServer, LspService};

use crate::lifecycle::Lifecycle;
use crate::lsp::newer;
use frame::FrameReader;
use message::IncomingMessage;

/// Requests that may wait for their answer at the same time; one more is answered with an error at once.
pub const MAX_IN_FLIGHT: usize = 1_024;

/// Answers that may wait to be written before reading pauses.
const ANSWER_QUEUE: usize = 256;

/// How long handlers may continue when the connection ends.
const HANDLER_GRACE: Duration = Duration::from_secs(2);

/// How long `exit` waits for a `shutdown` that is not done: a little over what the end itself may take.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(6);

/// How long the last frames may take to be written.
const WRITE_GRACE: Duration = Duration::from_secs(1);

/// JSON-RPC code for a request beyond [`MAX_IN_FLIGHT`].
const SERVER_BUSY: i64 = -32_000;

/// Code of the protocol for a request before `initialize`.
const NOT_INITIALIZED: i64 = -32_002;

/// Why serving ends on [`Lifecycle::stop`].
const STOPPED: &str = "the process of the editor is gone";

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServeEnd {
    /// `exit` after `shutdown`.
    Orderly,
    /// Anything else: the stream ended or broke, `exit` came alone, or the editor's process is gone.
    Abrupt,
}

impl From<ServeEnd> for ExitCode {
    fn from(ended: ServeEnd) -> Self {
        match ended {
            ServeEnd::Orderly => Self::SUCCESS,
            ServeEnd::Abrupt => Self::FAILURE,
        }
    }
}

/// Serves until the client leaves. When this returns, the tasks of [`Lifecycle::at_end`] have run.
pub async fn serve<B, R, W>(
    reader: R,
    writer: W,
    service: LspService<B>,
    socket: ClientSocket,
    lifecycle: &Lifecycle,
) -> ServeEnd
where
    B: LanguageServer,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (calls, client_answers) = socket.split();
    let (answers, queue) = mpsc::channel(ANSWER_QUEUE);
    let mut writing = task::spawn(writer::write_frames(writer, queue, calls));
    let mut dispatch = Dispatcher {
        service,
        client_answers,
        answers,
        handlers: JoinSet::new(),
        shutdown: None,
        has_begun: false,
        shut_down: false,
        exited: false,
    };

    let mut frames = FrameReader::new(reader);
    let ended = loop {
        let frame = tokio::select! {
            biased;
            () = lifecycle.stopped() => break STOPPED.to_owned(),
            written = &mut writing => break format!("the editor reads no more: {}", describe(written)),
            frame = frames.next() => frame,
        };
        let message = match frame {
            Ok(Some(Ok(body))) => message::parse(&body),
            Ok(Some(Err(error))) => message::skipped(&error),
            Ok(None) => break "the input ended".to_owned(),
            Err(error) => break format!("the input broke: {error}"),
        };
        tokio::select! {
            biased;
            () = dispatch.take(message) => {}
            () = lifecycle.stopped() => break STOPPED.to_owned(),
            // Both ends of the connection are the editor's: when it reads no more, nothing is gained by waiting.
            written = &mut writing => break format!("the editor reads no more: {}", describe(written)),
        }
        if dispatch.exited {
            break "the editor said exit".to_owned();
        }
    };
    let orderly = dispatch.exited && dispatch.shut_down;
    if orderly {
        tracing::info!("serving ended: {ended}");
    } else {
        tracing::warn!("serving ended without shutdown and exit: {ended}");
    }
    dispatch.finish_handlers().await;
    if !orderly {
        lifecycle.linger().await;
    }
    lifecycle.end().await;
    // The writer ends when nothing can be answered any more.
    drop(dispatch);
    if !writing.is_finished() && tokio::time::timeout(WRITE_GRACE, &mut writing).await.is_err() {
        tracing::warn!("the editor did not read the last messages");
        writing.abort();
    }
    if orderly { ServeEnd::Orderly } else { ServeEnd::Abrupt }
}

type HandlerOutcome = Result<Result<Option<Response>, ExitedError>, Box<dyn Any + Send>>;

/// The caller, for the answers that no handler gives.
struct CallOrigin {
    method: String,
    id: Option<Id>,
    phase: ServingPhase,
}

/// How far a connection is.
#[derive(Clone, Copy)]
enum ServingPhase {
    /// `initialize` has not come.
    Starting,
    Serving,
    /// `shutdown` was answered.
    ShutDown,
}

impl CallOrigin {
    /// Whether the call can be answered with an error instead of being made. Notifications cannot, and the
    /// lifecycle must continue under any load.
    fn may_be_refused(&self) -> bool {
        self.id.is_some() && self.method != "shutdown"
    }

    fn busy(&self) -> Option<Response> {
        let reason = format!("{MAX_IN_FLIGHT} requests are waiting for their answers; try again later");
        tracing::error!(method = self.method, "refused a request: {reason}");
        self.error(ErrorCode::ServerError(SERVER_BUSY), reason)
    }

    fn response(&self, outcome: HandlerOutcome) -> Option<Response> {
        match outcome {
            Ok(Ok(response)) if self.method == "initialize" => response.map(newer::carry_out),
            // The protocol asks for these codes whatever the method is; the service knows its own methods only.
            Ok(Ok(Some(response))) if is_of_unknown_method(&response) => match self.phase {
                ServingPhase::Starting => self.error(
                    ErrorCode::ServerError(NOT_INITIALIZED),
                    "the server is not initialized; send `initialize` first".to_owned(),
                ),
                ServingPhase::ShutDown => {
                    self.error(ErrorCode::InvalidRequest, "the server is shut down".to_owned())
                }
                ServingPhase::Serving => Some(response),
            },
            Ok(Ok(response)) => response,
            Ok(Err(ExitedError { .. })) => {
                self.error(ErrorCode::InvalidRequest, "the server has exited".to_owned())
            }
            Err(panic) => {
                let reason = panic_text(&*panic);
                tracing::error!(method = self.method, "a handler panicked: {reason}");
                self.error(ErrorCode::InternalError, format!("internal error in {}: {reason}", self.method))
            }
        }
    }

    fn error(&self, code: ErrorCode, reason: String) -> Option<Response> {
        let id = self.id.clone()?;
        Some(Response::from_error(id, message::error(code, reason)))
    }
}

/// Hands messages to the service and keeps the handlers that are not done.
struct Dispatcher<B, C> {
    service: LspService<B>,
    client_answers: C,
    answers: mpsc::Sender<Response>,
    handlers: JoinSet<()>,
    /// The handler of `shutdown` while it is not done.
    shutdown: Option<AbortHandle>,
    /// Whether `initialize` has come.
    has_begun: bool,
    shut_down: bool,
    exited: bool,
}

impl<B: LanguageServer, C: Sink<Response, Error = ExitedError> + Unpin> Dispatcher<B, C> {
    async fn take(&mut self, message: IncomingMessage) {
        match message {
            IncomingMessage::Call(request) => self.call(request).await,
            IncomingMessage::Answer(response) => self.resolve(response),
            IncomingMessage::Invalid(response) => {
                tracing::warn!(error = ?response.error(), "the editor sent an invalid message");
                self.send(response).await;
            }
        }
    }

    /// Calls the handler and polls it once; unfinished work continues as a task.
    async fn call(&mut self, request: Request) {
        if poll_fn(|context| self.service.poll_ready(context)).await.is_err() {
            self.exited = true;
            return;
        }
        let origin = CallOrigin {
            method: request.method().to_owned(),
            id: request.id().cloned(),
            phase: self.phase(),
        };
        self.has_begun |= origin.method == "initialize";
        if origin.method == "exit" {
            self.exited = true;
            self.await_shutdown().await;
        }
        while self.handlers.try_join_next().is_some() {}
        let busy = self.handlers.len() >= MAX_IN_FLIGHT;
        if busy && origin.may_be_refused() {
            self.send_some(origin.busy()).await;
            return;
        }
        // Unconstrained, because the runtime's fairness budget would make a handler pend that has nothing to wait
        // for, and so lose its place in the order.
        let mut handler = start(&mut self.service, newer::carry_in(request));
        match futures::poll!(tokio::task::unconstrained(&mut handler)) {
            Poll::Ready(outcome) => {
                let response = origin.response(outcome);
                self.shut_down |=
                    origin.method == "shutdown" && response.as_ref().is_some_and(Response::is_ok);
                self.send_some(response).await;
            }
            Poll::Pending if busy && origin.id.is_none() => {
                tracing::error!(
                    method = origin.method,
                    "too many handlers are waiting; this one was dropped"
                );
            }
            Poll::Pending => {
                let shutdown = origin.method == "shutdown";
                let answers = self.answers.clone();
                let task = self.handlers.spawn(async move {
                    if let Some(response) = origin.response(handler.await) {
                        // Fails only when the writer is gone, and then no client is left.
                        let _ = answers.send(response).await;
                    }
                });
                if shutdown {
                    self.shut_down = true;
                    self.shutdown = Some(task);
                }
            }
        }
    }

    fn phase(&self) -> ServingPhase {
        match (self.has_begun, self.shut_down) {
            (_, true) => ServingPhase::ShutDown,
            (false, false) => ServingPhase::Starting,
            (true, false) => ServingPhase::Serving,
        }
    }

    /// Lets `shutdown` finish before `exit` cancels it: a client may send both at once.
    async fn await_shutdown(&mut self) {
        let Some(shutdown) = self.shutdown.take() else { return };
        let finished =
            async { while !shutdown.is_finished() && self.handlers.join_next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN_GRACE, finished).await.is_err() {
            tracing::warn!("shutdown was not done in time");
        }
    }

    /// Brings an answer to the caller the client.
    fn resolve(&mut self, response: Response) {
        let id = response.id().clone();
        let sink = &mut self.client_answers;
        // The service panics here when the asker has stopped waiting.
        let resolved = std::panic::catch_unwind(AssertUnwindSafe(|| sink.start_send_unpin(response)));
        if !matches!(resolved, Ok(Ok(()))) {
            tracing::debug!(%id, "the editor answered a request that no longer waits");
        }
    }

    async fn send_some(&mut self, response: Option<Response>) {
        if let Some(response) = response {
            self.send(response).await;
        }
    }

    /// Queues an answer. While the queue is full the client is not reading, and so nothing of it is read either.
    async fn send(&mut self, response: Response) {
        // Fails only when the writer is gone; the loop sees that itself.
        let _ = self.answers.send(response).await;
    }

    async fn finish_handlers(&mut self) {
        let all = async { while self.handlers.join_next().await.is_some() {} };
        if tokio::time::timeout(HANDLER_GRACE, all).await.is_err() {
            tracing::warn!("{} requests were not answered before the end", self.handlers.len());
            self.handlers.shutdown().await;
        }
    }
}

fn is_of_unknown_method(response: &Response) -> bool {
    response.error().is_some_and(|error| error.code == ErrorCode::MethodNotFound)
}

/// Calls the service; a panic, in the call or in the future, becomes an outcome.
fn start<B: LanguageServer>(
    service: &mut LspService<B>,
    request: Request,
) -> BoxFuture<'static, HandlerOutcome> {
    match std::panic::catch_unwind(AssertUnwindSafe(|| service.call(request))) {
        Ok(handler) => AssertUnwindSafe(handler).catch_unwind().boxed(),
        Err(panic) => future::ready(Err(panic)).boxed(),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

fn describe(written: Result<io::Result<()>, JoinError>) -> String {
    match written {
        Ok(Ok(())) => "writing ended".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
