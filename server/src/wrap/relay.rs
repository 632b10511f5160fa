//! The relay between an editor, the wrapped server and the agent: one task that takes every message in turn.
//!
//! Rule: it waits for the editor alone. Messages for a server are put into a bounded queue, and a server that does not read is
//! treated as one that ended. Every merged answer has a limit.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kode_engine::base::paths::Target;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::body::{Body, BodyKind, OutgoingFrame};
use super::calls::{Call, CallPart, CallTable, Caller, RelayedServer};
use super::capabilities::ChildOffer;
use super::child::{Child, ChildLauncher, ChildPhase, IncomingBody, read_bodies};
use super::outbox::{Outbox, OutboxFailure};
use super::texts::OpenTexts;
use crate::connection::ClientConnection;
use crate::transport::{ServeEnd, message};
use crate::wrapped::{WrappedMessage, WrappedServer};

/// How long the wrapped server may take for what the agent has answered already.
pub(super) const CHILD_PATIENCE: Duration = Duration::from_secs(5);
/// How long the agent may take for what the wrapped server has answered already.
const AGENT_PATIENCE: Duration = Duration::from_millis(500);
/// Messages that wait for the editor before the servers are not read any more.
const EDITOR_QUEUE: usize = 64;
/// How long the last messages to the editor may take.
const WRITE_GRACE: Duration = Duration::from_secs(1);
/// How long the agent may take to end: a little over what it takes by its own limits.
const AGENT_GRACE: Duration = Duration::from_secs(12);
/// How long the output of a server may stay open when its process has ended.
pub(super) const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// The code of a request that a server cannot answer.
pub(super) const REQUEST_FAILED: i64 = -32803;
/// The kinds of messages to the user.
const MESSAGE_ERROR: u8 = 1;
const MESSAGE_WARNING: u8 = 2;

/// How grave a message to the user is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoticeSeverity {
    /// Something does not work any more.
    Error,
    /// Something went wrong and goes on.
    Warning,
}

/// The agent, served over a connection within the process.
pub(super) struct AgentEnd {
    /// Its input.
    pub(super) to_agent: DuplexStream,
    /// Its output.
    pub(super) from_agent: DuplexStream,
    /// The task that serves it.
    pub(super) serving: JoinHandle<ServeEnd>,
}

/// The parts of a relay.
pub(super) struct RelayParts {
    /// The agent's view of the wrapped server.
    pub(super) wrapped: Arc<WrappedServer>,
    /// The connection of the agent: its documents and the end of the process.
    pub(super) connection: Arc<ClientConnection>,
    /// Starts the wrapped server.
    pub(super) launch: ChildLauncher,
    /// Requests of the agent's tools to the wrapped server.
    pub(super) from_tools: mpsc::Receiver<WrappedMessage>,
}

/// The `initialize` of the editor.
pub(super) struct Handshake {
    /// Its id.
    pub(super) id: Bytes,
    /// The parameters for the wrapped server.
    pub(super) theirs: Value,
    /// The parameters for the agent.
    pub(super) ours: Value,
    /// The answers of the wrapped server.
    pub(super) result: Option<Value>,
}

/// The relay.
pub(super) struct Relay {
    pub(super) parts: RelayParts,
    pub(super) editor: Option<Outbox>,
    pub(super) agent: Option<Outbox>,
    pub(super) child: Option<Child>,
    pub(super) calls: CallTable,
    pub(super) texts: OpenTexts,
    pub(super) offer: ChildOffer,
    pub(super) handshake: Option<Handshake>,
    /// The notifications that a server gets after it has answered `initialize`.
    pub(super) initialized: Option<Body>,
    pub(super) configuration: Option<Body>,
    pub(super) restarts: VecDeque<Instant>,
    /// The diagnostics of the agent alone.
    pub(super) published: HashMap<Target, Vec<Value>>,
    /// The progress that the wrapped server shows, and that of the agent.
    pub(super) child_progress: HashSet<Bytes>,
    /// Whether the editor shows progress.
    pub(super) shows_progress: bool,
    pub(super) agent_progress: HashSet<Bytes>,
    /// Messages to the user from before `initialized`.
    pub(super) notices: Vec<(NoticeSeverity, String)>,
    /// Whether the editor is not read until the agent has all of its texts.
    pub(super) is_held: bool,
    pub(super) is_shutting_down: bool,
    pub(super) is_over: bool,
}

enum RelayEvent {
    Editor(IncomingBody),
    Agent(IncomingBody),
    AgentEnded(String),
    Child(IncomingBody),
    ChildEnded,
    Tools(WrappedMessage),
    Time,
    Stop,
}

impl Relay {
    /// A relay that nothing has come to yet.
    pub(super) fn new(parts: RelayParts) -> Self {
        Self {
            parts,
            editor: None,
            agent: None,
            child: None,
            calls: CallTable::default(),
            texts: OpenTexts::default(),
            offer: ChildOffer::default(),
            handshake: None,
            initialized: None,
            configuration: None,
            restarts: VecDeque::new(),
            published: HashMap::new(),
            child_progress: HashSet::new(),
            shows_progress: true,
            agent_progress: HashSet::new(),
            notices: Vec::new(),
            is_held: false,
            is_shutting_down: false,
            is_over: false,
        }
    }

    /// Passes messages on until the editor leaves, and ends both servers.
    pub(super) async fn run(
        mut self,
        (input, output): (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static),
        agent: AgentEnd,
    ) -> ServeEnd {
        let AgentEnd { to_agent, from_agent, mut serving } = agent;
        let mut from_editor = read_bodies(input);
        let mut from_agent = read_bodies(from_agent);
        let (editor, mut writing) = Outbox::start(output, EDITOR_QUEUE);
        self.editor = Some(editor);
        // Its end is noticed by the task that serves it.
        let (agent, _writing) = Outbox::start(to_agent, super::outbox::MAX_MESSAGES);
        self.agent = Some(agent);
        while !self.is_over {
            let deadline = self.next_deadline();
            let event = tokio::select! {
                () = self.parts.connection.lifecycle.stopped() => RelayEvent::Stop,
                _ = &mut writing => RelayEvent::Stop,
                Some(incoming) = from_editor.recv(), if !self.is_held => RelayEvent::Editor(incoming),
                Some(incoming) = from_agent.recv() => RelayEvent::Agent(incoming),
                ended = &mut serving, if self.agent.is_some() => RelayEvent::AgentEnded(describe(ended)),
                event = next_of_child(&mut self.child) => event,
                Some(message) = self.parts.from_tools.recv() => RelayEvent::Tools(message),
                () = until(deadline) => RelayEvent::Time,
            };
            self.take(event).await;
        }
        self.end(writing, from_agent, serving).await
    }

    async fn take(&mut self, event: RelayEvent) {
        match event {
            RelayEvent::Editor(IncomingBody::Message(body)) => self.editor_message(body).await,
            RelayEvent::Editor(IncomingBody::Fault(fault)) => {
                let answer = serde_json::to_vec(&message::frame_error(&fault)).unwrap_or_default();
                self.send_to_editor(OutgoingFrame::of(answer)).await;
            }
            RelayEvent::Editor(IncomingBody::End(reason)) => {
                tracing::warn!(reason, "the editor has gone");
                self.is_over = true;
            }
            RelayEvent::Agent(IncomingBody::Message(body)) => self.agent_message(body).await,
            RelayEvent::Agent(incoming) => tracing::debug!(?incoming, "the agent has ended its output"),
            RelayEvent::AgentEnded(how) => self.lose_agent(&how).await,
            RelayEvent::Child(IncomingBody::Message(body)) => self.child_message(body).await,
            RelayEvent::Child(IncomingBody::Fault(fault)) => {
                tracing::warn!(%fault, "the wrapped server broke the protocol");
            }
            RelayEvent::Child(IncomingBody::End(reason)) => self.child_silent(&reason).await,
            RelayEvent::ChildEnded => self.child_ended().await,
            RelayEvent::Tools(message) => self.tools_message(message).await,
            RelayEvent::Time => self.time(Instant::now()).await,
            RelayEvent::Stop => self.is_over = true,
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let child = self.child.as_ref().and_then(|child| child.deadline);
        self.calls.next_deadline().into_iter().chain(child).min()
    }

    /// Gives up what has taken too long.
    async fn time(&mut self, now: Instant) {
        for id in self.calls.overdue(now) {
            let waiting: Vec<_> =
                self.calls.get_mut(id).map(|call| call.waiting().collect()).unwrap_or_default();
            for server in waiting {
                self.cancel(server, id).await;
                self.lose_part(id, server, "it did not answer in time").await;
            }
        }
        if self.child.as_ref().is_some_and(|child| child.deadline.is_some_and(|deadline| deadline <= now)) {
            self.child_overdue().await;
        }
    }

    /// Sends a message to the editor. While it does not read, nothing else goes on.
    pub(super) async fn send_to_editor(&mut self, frame: OutgoingFrame) {
        let Some(editor) = &self.editor else { return };
        let sent = tokio::select! {
            biased;
            sent = editor.put_in_turn(frame) => sent,
            () = self.parts.connection.lifecycle.stopped() => Err(OutboxFailure::Closed),
        };
        self.is_over |= sent.is_err();
    }

    /// Sends a message to the agent.
    pub(super) async fn send_to_agent(&mut self, frame: OutgoingFrame) {
        let Some(agent) = &self.agent else { return };
        if agent.put(frame) == Err(OutboxFailure::Full) {
            self.lose_agent("it does not take in messages any more").await;
        }
    }

    /// Sends a message to the wrapped server.
    pub(super) async fn send_to_child(&mut self, frame: OutgoingFrame) {
        let Some(child) = &self.child else { return };
        // The end of one whose input is closed is noticed by its output and its process.
        if child.outbox.put(frame) == Err(OutboxFailure::Full) {
            self.lose_child("it did not read its input").await;
        }
    }

    /// Sends a message to a server.
    pub(super) async fn send_to_server(&mut self, server: RelayedServer, frame: OutgoingFrame) {
        // Boxed, because a server that does not read ends, which sends messages in turn.
        match server {
            RelayedServer::Child => Box::pin(self.send_to_child(frame)).await,
            RelayedServer::Agent => Box::pin(self.send_to_agent(frame)).await,
        }
    }

    /// Whether a server takes requests of the editor.
    pub(super) fn serves(&self, server: RelayedServer) -> bool {
        match server {
            RelayedServer::Child => {
                self.child.as_ref().is_some_and(|child| child.phase == ChildPhase::Serving)
            }
            RelayedServer::Agent => self.agent.is_some(),
        }
    }

    /// Makes a call of a message that is a request, to these servers.
    pub(super) async fn call(&mut self, mut call: Call, body: &Body, servers: &[RelayedServer]) -> u64 {
        for server in servers {
            *call.part(*server) = CallPart::Waiting;
        }
        let id = self.calls.insert(call);
        for server in servers {
            self.send_to_server(*server, body.with_id(id.to_string())).await;
        }
        id
    }

    /// Makes a call of the relay's own to one server.
    pub(super) async fn own_call(
        &mut self,
        caller: Caller,
        server: RelayedServer,
        (method, params): (&str, &Value),
    ) -> u64 {
        let mut call = Call::new(caller);
        *call.part(server) = CallPart::Waiting;
        let id = self.calls.insert(call);
        self.send_to_server(server, OutgoingFrame::request(id, method, params)).await;
        id
    }

    /// Takes in the answer of a server.
    pub(super) async fn answered(&mut self, server: RelayedServer, body: Body) {
        let Some(id) = body.own_id() else { return };
        let Some(call) = self.calls.get_mut(id) else {
            tracing::debug!(id, "an answer to a request that is no longer open");
            return;
        };
        if matches!(call.part(server), CallPart::Waiting) {
            *call.part(server) = CallPart::Answered(body);
            self.settle(id).await;
        }
    }

    /// Notes that a server will not answer a call.
    pub(super) async fn lose_part(&mut self, id: u64, server: RelayedServer, reason: &str) {
        let Some(call) = self.calls.get_mut(id) else { return };
        if matches!(call.part(server), CallPart::Waiting) {
            *call.part(server) = CallPart::Lost(reason.to_owned());
            self.settle(id).await;
        }
    }

    /// Notes that a server answers none of its calls any more.
    pub(super) async fn lose_calls(&mut self, server: RelayedServer, reason: &str) {
        for id in self.calls.waiting_for(server) {
            self.lose_part(id, server, reason).await;
        }
        for id in self.calls.forget(server) {
            let cancel = json!({ "id": id });
            self.send_to_editor(OutgoingFrame::notification("$/cancelRequest", &cancel)).await;
        }
    }

    /// Continues a call that has another answer: waits for the rest, or answers the caller.
    async fn settle(&mut self, id: u64) {
        let Some(call) = self.calls.get_mut(id) else { return };
        if call.is_open() {
            let patience = match (call.shared, &call.child, &call.agent) {
                (Some(shared), CallPart::Waiting, CallPart::Answered(own)) if has_content(shared, own) => {
                    Some(CHILD_PATIENCE)
                }
                (Some(_), CallPart::Answered(_), CallPart::Waiting) => Some(AGENT_PATIENCE),
                _ => None,
            };
            if let Some(patience) = patience {
                self.calls.limit(id, Instant::now() + patience);
            }
            return;
        }
        let Some(call) = self.calls.remove(id) else { return };
        // Boxed, because the answer of one call can make others.
        Box::pin(self.finish(call)).await;
    }

    /// Asks a server to give up a call.
    pub(super) async fn cancel(&mut self, server: RelayedServer, id: u64) {
        let frame = OutgoingFrame::notification("$/cancelRequest", &json!({ "id": id }));
        self.send_to_server(server, frame).await;
    }

    /// Shows the user a message, as soon as the editor takes one.
    pub(super) async fn report(&mut self, kind: NoticeSeverity, text: String) {
        tracing::warn!("{text}");
        if self.initialized.is_none() {
            self.notices.push((kind, text));
            return;
        }
        let kind = match kind {
            NoticeSeverity::Error => MESSAGE_ERROR,
            NoticeSeverity::Warning => MESSAGE_WARNING,
        };
        let params = json!({ "type": kind, "message": text });
        self.send_to_editor(OutgoingFrame::notification("window/showMessage", &params)).await;
    }

    /// Ends both servers, and says how the agent ended.
    async fn end(
        mut self,
        writing: JoinHandle<io::Result<()>>,
        mut from_agent: mpsc::Receiver<IncomingBody>,
        mut serving: JoinHandle<ServeEnd>,
    ) -> ServeEnd {
        self.parts.wrapped.set_ready(false);
        // The end of their inputs ends both; the end of the process too, where the editor's is the reason.
        let had_agent = self.agent.take().is_some();
        let child = async {
            if let Some(child) = self.child.take() {
                let Child { outbox, incoming, mut exit, .. } = child;
                drop((outbox, incoming));
                exit.stop();
                exit.wait().await;
            }
        };
        let agent = async {
            if !had_agent {
                return ServeEnd::Abrupt;
            }
            let ended = async {
                // It must not wait for a reader.
                let drain = async { while from_agent.recv().await.is_some() {} };
                tokio::join!(drain, &mut serving).1
            };
            match timeout(AGENT_GRACE, ended).await {
                Ok(Ok(end)) => end,
                Ok(Err(_)) | Err(_) => ServeEnd::Abrupt,
            }
        };
        let (ended, ()) = tokio::join!(agent, child);
        self.editor = None;
        // Messages that an editor no longer reads are lost.
        if !writing.is_finished() {
            let _ = timeout(WRITE_GRACE, writing).await;
        }
        ended
    }
}

/// Whether a server's answer has something in it.
pub(super) fn has_content(shared: super::results::SharedRequest, answer: &Body) -> bool {
    *answer.kind() == BodyKind::Answer { is_error: false } && !shared.is_empty(&answer.value())
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The next message of the wrapped server. Pending without a server.
async fn next_of_child(child: &mut Option<Child>) -> RelayEvent {
    let Some(Child { incoming, exit, .. }) = child else { return std::future::pending().await };
    let has_ended = exit.how().is_some();
    tokio::select! {
        Some(incoming) = incoming.recv() => RelayEvent::Child(incoming),
        () = exit.wait(), if !has_ended => RelayEvent::ChildEnded,
        else => std::future::pending().await,
    }
}

fn describe(ended: Result<ServeEnd, tokio::task::JoinError>) -> String {
    match ended {
        Ok(_) => "its service ended".to_owned(),
        Err(error) => error.to_string(),
    }
}
