//! The conversation with a guest: handshake, one session, one prompt, and its requests meanwhile.
//!
//! Rule: reports are taken in as they come, requests are answered beside each other, and the prompt counts as done only when all
//! reports are carried out. Every wait has a limit; while the guest itself waits for an answer of this side, none runs.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    CancelNotification, CancelRequestNotification, ClientCapabilities, ContentBlock, Error, ErrorCode,
    FileSystemCapabilities, Implementation, InitializeRequest, InitializeResponse, NewSessionRequest,
    NewSessionResponse, PromptRequest, PromptResponse, RequestId, SessionId, SessionNotification,
    SetSessionModeRequest, StopReason, TextContent,
};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use kode_base::paths::AbsPath;
use kode_base::task;
use kode_tool::guest::{GuestDesk, GuestEnd};

use super::answer::{self, GuestReply, MissingFile};
use crate::lines::{MessageLine, OUTBOX, read_lines, write_lines};
use crate::message::{RpcMessage, failure};
use crate::peer::{CANCEL_REQUEST, PeerCallError, RpcPeer, bounded};

/// How long a guest may take to answer the handshake: some fetch themselves from a registry first.
const START_LIMIT: Duration = Duration::from_secs(120);

/// How long a guest may say nothing while it works on its task and waits for nothing from this side.
pub(super) const SILENCE_LIMIT: Duration = Duration::from_secs(30 * 60);

/// How long a cancelled guest may take to end its turn.
const CANCEL_GRACE: Duration = Duration::from_secs(3);

/// The most requests of a guest that are answered at the same time.
pub(super) const MAX_PENDING: usize = 64;

/// The most lines that are no messages; programs that print a greeting are forgiven.
pub(super) const MAX_INVALID: usize = 32;

/// Lines that were read and not yet taken in; the guest's writes wait behind them.
const INBOX: usize = 64;

/// Why a conversation has no result.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TalkEnd {
    /// The guest has closed its output, or reads no more.
    Gone,
    /// Another failure, with the next step.
    Failed { what: String, hint: &'static str },
}

/// A task that ends with this.
struct OwnTask(JoinHandle<()>);

impl Drop for OwnTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The conversation with one guest.
pub(super) struct GuestTalk<'a> {
    peer: Arc<RpcPeer>,
    inbox: mpsc::Receiver<MessageLine>,
    desk: &'a dyn GuestDesk,
    /// Requests and reports that are being worked on.
    work: FuturesUnordered<BoxFuture<'a, GuestReply>>,
    /// The requests among them, each with the token that cancels it.
    waiting: HashMap<RequestId, CancellationToken>,
    invalid: usize,
    session: Option<SessionId>,
    /// The text of a file that is not there, for this guest.
    missing: MissingFile,
    /// When something last came from the guest, or left for it.
    last: Instant,
    _reader: OwnTask,
    writer: OwnTask,
}

impl<'a> GuestTalk<'a> {
    /// A conversation over the output and the input of a guest.
    pub(super) fn new<R, W>(output: R, input: W, desk: &'a dyn GuestDesk) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (outbox, queue) = mpsc::channel(OUTBOX);
        let writer = task::spawn(async move {
            if let Err(error) = write_lines(input, queue).await {
                tracing::debug!(%error, "a guest reads no more");
            }
        });
        let (inbox, reader) = read_lines(output, INBOX);
        Self {
            peer: RpcPeer::new(outbox),
            inbox,
            desk,
            work: FuturesUnordered::new(),
            waiting: HashMap::new(),
            invalid: 0,
            session: None,
            missing: MissingFile::Error,
            last: Instant::now(),
            _reader: OwnTask(reader),
            writer: OwnTask(writer),
        }
    }

    /// Has the guest work on a task.
    ///
    /// # Errors
    /// [`TalkEnd`].
    pub(super) async fn run(
        &mut self,
        cwd: &AbsPath,
        (mode, prompt): (Option<String>, String),
        cancel: &CancellationToken,
    ) -> Result<GuestEnd, TalkEnd> {
        let session = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(GuestEnd::Cancelled),
            begun = self.begin(cwd, mode) => begun?,
        };
        self.session = Some(session.clone());
        let ended = self.prompt(&session, prompt, cancel).await;
        // Its reports are carried out also where it then broke off.
        self.carry_out_reports().await;
        ended
    }

    /// The handshake and a new session, in the mode it is to work in.
    async fn begin(&mut self, cwd: &AbsPath, mode: Option<String>) -> Result<SessionId, TalkEnd> {
        let files = FileSystemCapabilities::new().read_text_file(true).write_text_file(true);
        let request = InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(ClientCapabilities::new().fs(files))
            .client_info(Implementation::new("kode-ls", env!("CARGO_PKG_VERSION")));
        let peer = Arc::clone(&self.peer);
        let asked = async move { peer.request("initialize", request, Some(START_LIMIT)).await };
        let answer = self.serve_until(asked).await?;
        let answer: InitializeResponse = answer.map_err(|error| refused("initialize", error))?;
        if answer.protocol_version != ProtocolVersion::V1 {
            return Err(TalkEnd::Failed {
                what: format!("speaks version {} of the protocol alone", answer.protocol_version),
                hint: "kode-ls speaks version 1: use a version of the guest that does as well.",
            });
        }
        self.missing = MissingFile::of(answer.agent_info.as_ref());
        let request = NewSessionRequest::new(cwd.as_path());
        let peer = Arc::clone(&self.peer);
        let asked = async move { peer.request("session/new", request, Some(START_LIMIT)).await };
        let answer = self.serve_until(asked).await?;
        let answer: NewSessionResponse = answer.map_err(|error| refused("session/new", error))?;
        if let Some(mode) = mode {
            self.set_mode(&answer, mode).await?;
        }
        Ok(answer.session_id)
    }

    /// Has the guest work in a mode. One that does not list its modes may have it all the same.
    async fn set_mode(&mut self, begun: &NewSessionResponse, mode: String) -> Result<(), TalkEnd> {
        if let Some(offered) = begun.modes.as_ref().map(|modes| &modes.available_modes)
            && !offered.iter().any(|offered| *offered.id.0 == *mode)
        {
            let names: Vec<&str> = offered.iter().map(|offered| &*offered.id.0).collect();
            return Err(TalkEnd::Failed {
                what: format!("has no mode `{mode}`; it offers: {}", bounded(&names.join(", "))),
                hint: "Ask the user to put `mode` in `runs` of the agent's file right.",
            });
        }
        let request = SetSessionModeRequest::new(begun.session_id.clone(), mode);
        let peer = Arc::clone(&self.peer);
        let asked = async move { peer.request("session/set_mode", request, Some(START_LIMIT)).await };
        let _: Value = self.serve_until(asked).await?.map_err(|error| refused("session/set_mode", error))?;
        Ok(())
    }

    /// The prompt, until the guest has ended its turn.
    async fn prompt(
        &mut self,
        session: &SessionId,
        prompt: String,
        cancel: &CancellationToken,
    ) -> Result<GuestEnd, TalkEnd> {
        let request = PromptRequest::new(session.clone(), vec![ContentBlock::Text(TextContent::new(prompt))]);
        let peer = Arc::clone(&self.peer);
        let asked = async move { peer.request::<_, PromptResponse>("session/prompt", request, None).await };
        let mut asked = pin!(asked);
        let answer = tokio::select! {
            biased;
            answer = self.serve_until(&mut asked) => answer?,
            () = cancel.cancelled() => {
                self.peer.notify("session/cancel", CancelNotification::new(session.clone())).await;
                if timeout(CANCEL_GRACE, self.serve_until(&mut asked)).await.is_err() {
                    tracing::info!("a guest did not end its turn when it was cancelled");
                }
                return Ok(GuestEnd::Cancelled);
            }
        };
        let answer = answer.map_err(|error| refused("session/prompt", error))?;
        Ok(match answer.stop_reason {
            StopReason::MaxTokens => GuestEnd::MaxTokens,
            StopReason::MaxTurnRequests => GuestEnd::MaxTurns,
            StopReason::Refusal => GuestEnd::Refused,
            StopReason::Cancelled => GuestEnd::Cancelled,
            _ => GuestEnd::Finished,
        })
    }

    /// Serves the guest until a request to it has its answer.
    async fn serve_until<T>(&mut self, asked: impl Future<Output = T>) -> Result<T, TalkEnd> {
        let mut asked = pin!(asked);
        self.last = Instant::now();
        loop {
            // A guest that waits for the user may wait for ever.
            let is_silent = self.waiting.is_empty();
            tokio::select! {
                biased;
                done = self.work.next(), if !self.work.is_empty() => {
                    if let Some(done) = done {
                        self.settle(done).await;
                    }
                }
                // Lines come before answers: a report before an answer is taken in before it.
                line = self.inbox.recv() => match line {
                    Some(line) => {
                        self.take(line).await?;
                        // An answer that this line brought is seen before the next line.
                        if let Some(answer) = (&mut asked).now_or_never() {
                            return Ok(answer);
                        }
                    }
                    None => return Err(TalkEnd::Gone),
                },
                answer = &mut asked => return Ok(answer),
                _ = &mut self.writer.0 => return Err(TalkEnd::Gone),
                () = sleep_until(self.last + SILENCE_LIMIT), if is_silent => {
                    return Err(TalkEnd::Failed {
                        what: format!("said nothing for {} minutes and was ended", SILENCE_LIMIT.as_secs() / 60),
                        hint: "Start it again with a smaller task, or do the rest yourself.",
                    });
                }
            }
        }
    }

    /// Finishes the work on reports; requests of a guest that has ended its turn are dropped.
    async fn carry_out_reports(&mut self) {
        self.waiting.drain().for_each(|(_, token)| token.cancel());
        while self.work.next().await.is_some() {}
    }

    async fn settle(&mut self, done: GuestReply) {
        self.last = Instant::now();
        if let GuestReply::Request { id, outcome } = done {
            self.waiting.remove(&id);
            self.peer.respond(id, outcome).await;
        }
    }

    async fn take(&mut self, line: MessageLine) -> Result<(), TalkEnd> {
        self.last = Instant::now();
        match RpcMessage::of(&line) {
            RpcMessage::Answer { id, outcome } => self.peer.resolve(&id, outcome),
            RpcMessage::Request { id, method, params } => self.request(id, &method, params).await,
            RpcMessage::Notification { method, params } => self.notified(&method, params),
            RpcMessage::Invalid { id, error } => {
                tracing::debug!(%error, "a guest sent something that is no message");
                self.invalid += 1;
                if self.invalid > MAX_INVALID {
                    return Err(TalkEnd::Failed {
                        what: format!("sends lines that are no messages of the protocol: {}", error.message),
                        hint: "Check that `runs` names a program that speaks the Agent Client Protocol over its \
                               standard input and output; many need an argument for it.",
                    });
                }
                if id != RequestId::Null {
                    self.peer.respond(id, Err(error)).await;
                }
            }
        }
        Ok(())
    }

    async fn request(&mut self, id: RequestId, method: &str, params: Option<Value>) {
        if self.waiting.len() >= MAX_PENDING || self.waiting.contains_key(&id) {
            let busy = format!("{MAX_PENDING} requests wait for their answers, or one of this id does.");
            let error = failure(ErrorCode::InvalidRequest, &busy);
            return self.peer.respond(id, Err(error)).await;
        }
        match answer::of(self.desk, (self.session.as_ref(), self.missing), method, params) {
            Ok(work) => {
                let cancel = CancellationToken::new();
                self.waiting.insert(id.clone(), cancel.clone());
                self.work.push(Box::pin(async move {
                    let outcome = tokio::select! {
                        biased;
                        () = cancel.cancelled() => Err(cancelled()),
                        outcome = work => outcome,
                    };
                    GuestReply::Request { id, outcome }
                }));
            }
            Err(error) => self.peer.respond(id, Err(error)).await,
        }
    }

    fn notified(&mut self, method: &str, params: Option<Value>) {
        let Some(params) = params else { return };
        match method {
            "session/update" => {
                // A guest may report what this schema does not know.
                let Ok(update) = serde_json::from_value::<SessionNotification>(params) else { return };
                if self.session.as_ref() != Some(&update.session_id) {
                    return;
                }
                let report = answer::report(update.update);
                if let Some(work) = report.and_then(|report| self.desk.report(report)) {
                    self.work.push(Box::pin(work.map(|()| GuestReply::Report)));
                }
            }
            CANCEL_REQUEST => {
                let Ok(cancel) = serde_json::from_value::<CancelRequestNotification>(params) else { return };
                if let Some(token) = self.waiting.get(&cancel.request_id) {
                    token.cancel();
                }
            }
            _ => {}
        }
    }
}

fn cancelled() -> Error {
    failure(ErrorCode::RequestCancelled, "The request was cancelled.")
}

/// The end of a conversation by a request that the guest did not answer well.
fn refused(method: &str, error: PeerCallError) -> TalkEnd {
    let what = match error {
        PeerCallError::Refused { code, message } if code == i32::from(ErrorCode::AuthRequired) => {
            return TalkEnd::Failed {
                what: format!("is not signed in: {message}"),
                hint: "Ask the user to sign in with the guest's own program; kode-ls hands over no keys.",
            };
        }
        PeerCallError::Gone => return TalkEnd::Gone,
        PeerCallError::Refused { message, .. } => format!("answered `{method}` with an error: {message}"),
        PeerCallError::Late(limit) => format!("did not answer `{method}` within {} s", limit.as_secs()),
        PeerCallError::Illegible(why) => format!("answered `{method}` with something else: {why}"),
        PeerCallError::TooLong => "was to be given more than one message holds".to_owned(),
    };
    TalkEnd::Failed { what, hint: "Start it again, or do the rest yourself." }
}
