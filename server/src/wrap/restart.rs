//! The start of the wrapped server, its end, and its start after an end.
//!
//! Rule: an end costs the user one message and the calls that waited. A server that served is started again within bounds, and gets
//! the texts that the agent has, at a moment at which the agent has all of them. The end of the agent is reported too.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::body::{Body, BodyKind, OutgoingFrame};
use super::calls::{CallPart, Caller, RelayedServer};
use super::capabilities::{self, ChildOffer};
use super::child::{Child, ChildPhase, describe};
use super::relay::{DRAIN_LIMIT, NoticeSeverity, REQUEST_FAILED, Relay};
use super::selectors;
use crate::wrapped::key;

/// How long the wrapped server may take to answer `initialize`: editors give up after 20 s.
pub(super) const INITIALIZE_LIMIT: Duration = Duration::from_secs(15);
/// How long the agent may take to have all texts.
const BARRIER_LIMIT: Duration = Duration::from_secs(5);
/// How often the wrapped server is started again within [`RESTART_SPAN`].
pub(super) const MAX_RESTARTS: usize = 3;
/// The time in which restarts are counted.
const RESTART_SPAN: Duration = Duration::from_secs(600);

/// A request that no server has: its answer tells that all messages before it have been taken.
const BARRIER: &str = "kode-ls/barrier";

impl Relay {
    /// Starts the wrapped server for the `initialize` of the editor.
    pub(super) async fn open(&mut self) {
        let Some(theirs) = self.handshake.as_ref().map(|handshake| handshake.theirs.clone()) else { return };
        if !self.launch(Caller::Opening, &theirs).await {
            self.open_agent().await;
        }
    }

    /// Starts a process of the wrapped server and sends it `initialize`. Returns whether it was started; if not, the user has the
    /// reason.
    async fn launch(&mut self, caller: Caller, params: &Value) -> bool {
        self.parts.wrapped.note_start();
        match (self.parts.launch)() {
            Ok(launched) => {
                self.child = Some(Child::new(launched, Instant::now() + INITIALIZE_LIMIT));
                self.own_call(caller, RelayedServer::Child, ("initialize", params)).await;
                true
            }
            Err(end) => {
                self.report_end(&describe(&end), false).await;
                false
            }
        }
    }

    /// Takes the answer of the wrapped server to `initialize`.
    pub(super) async fn opened(&mut self, part: CallPart) {
        match result_of(part) {
            Ok(result) => {
                self.serve_with(&result);
                if let Some(handshake) = &mut self.handshake {
                    capabilities::restrict(&mut handshake.ours, capabilities::encoding(&result));
                    handshake.result = Some(result);
                }
            }
            Err(Some(reason)) => self.lose_child(&format!("it refused `initialize`: {reason}")).await,
            Err(None) => {}
        }
        self.open_agent().await;
    }

    fn serve_with(&mut self, result: &Value) {
        self.offer = ChildOffer::of(result);
        self.parts.wrapped.note_named(selectors::of_capabilities(&result["capabilities"]));
        self.parts.wrapped.set_pulled(self.offer.is_pulled());
        self.parts.wrapped.set_moves_files(self.offer.moves_files());
        if let Some(child) = &mut self.child {
            child.phase = ChildPhase::Serving;
            child.deadline = None;
        }
    }

    async fn open_agent(&mut self) {
        let Some(ours) = self.handshake.as_ref().map(|handshake| handshake.ours.clone()) else { return };
        match self.agent {
            Some(_) => {
                self.own_call(Caller::AgentOpening, RelayedServer::Agent, ("initialize", &ours)).await;
            }
            None => self.agent_opened(CallPart::Lost("the agent has ended".to_owned())).await,
        }
    }

    /// Answers the `initialize` of the editor.
    pub(super) async fn agent_opened(&mut self, part: CallPart) {
        let Some(handshake) = &self.handshake else { return };
        let id = handshake.id.clone();
        let answer = match (&handshake.result, result_of(part)) {
            (Some(theirs), Ok(ours)) => OutgoingFrame::result(&id, &capabilities::merge(theirs, &ours)),
            (None, Ok(ours)) => OutgoingFrame::result(&id, &ours),
            (Some(theirs), Err(_)) => OutgoingFrame::result(&id, theirs),
            (None, Err(reason)) => {
                let reason = reason.unwrap_or_else(|| "neither server answers".to_owned());
                OutgoingFrame::error(&id, REQUEST_FAILED, &reason)
            }
        };
        self.send_to_editor(answer).await;
    }

    /// Passes on `initialized`: from now on the agent's tools ask the wrapped server.
    pub(super) async fn start_serving(&mut self, body: Body) {
        self.send_to_server(RelayedServer::Agent, body.frame()).await;
        if self.serves(RelayedServer::Child) {
            self.send_to_server(RelayedServer::Child, body.frame()).await;
            self.parts.wrapped.work().begin();
            self.parts.wrapped.set_ready(true);
        }
        self.initialized = Some(body);
        for (kind, text) in std::mem::take(&mut self.notices) {
            self.report(kind, text).await;
        }
    }

    /// Notes that the output of the wrapped server has ended.
    pub(super) async fn child_silent(&mut self, reason: &str) {
        tracing::info!(reason, "the wrapped server has closed its output");
        let Some(child) = &mut self.child else { return };
        child.is_silent = true;
        child.exit.stop();
        self.leave_child("it ended").await;
        self.conclude_child().await;
    }

    /// Notes that the process of the wrapped server has ended. What it has written before still counts.
    pub(super) async fn child_ended(&mut self) {
        if let Some(child) = &mut self.child {
            child.deadline = Some(Instant::now() + DRAIN_LIMIT);
        }
        self.conclude_child().await;
    }

    /// Ends a wrapped server that does not do what it has to.
    pub(super) async fn lose_child(&mut self, reason: &str) {
        let Some(child) = self.child.as_mut().filter(|child| child.reason.is_none()) else { return };
        child.reason = Some(reason.to_owned());
        child.deadline = None;
        child.exit.stop();
        self.leave_child(reason).await;
    }

    /// Has everything end that waits for the wrapped server.
    async fn leave_child(&mut self, reason: &str) {
        let Some(child) = self.child.as_mut().filter(|child| child.phase != ChildPhase::Ending) else {
            return;
        };
        child.phase = ChildPhase::Ending;
        self.parts.wrapped.set_ready(false);
        self.texts.clear();
        let reason = format!("{}: {reason}", self.parts.wrapped.name());
        self.lose_calls(RelayedServer::Child, &reason).await;
    }

    /// Takes note of a phase that has lasted too long.
    pub(super) async fn child_overdue(&mut self) {
        let Some(child) = &mut self.child else { return };
        child.deadline = None;
        if child.exit.how().is_some() {
            child.is_silent = true;
            self.leave_child("it ended").await;
            self.conclude_child().await;
        } else if child.phase == ChildPhase::Starting {
            let seconds = INITIALIZE_LIMIT.as_secs();
            self.lose_child(&format!("it did not answer `initialize` within {seconds} s")).await;
        }
    }

    /// Starts the wrapped server again, or leaves it, once its process and its output have ended.
    async fn conclude_child(&mut self) {
        let has_ended =
            |child: &Child| child.exit.how().is_some() && (child.is_silent || child.reason.is_some());
        let Some(child) = self.child.take_if(|child| has_ended(child)) else { return };
        let how = child.reason.as_deref().or(child.exit.how()).unwrap_or("it ended").to_owned();
        if self.is_shutting_down {
            return;
        }
        self.forget_child().await;
        let has_served = self.handshake.as_ref().is_some_and(|handshake| handshake.result.is_some());
        let now = Instant::now();
        self.restarts.retain(|started| now.duration_since(*started) < RESTART_SPAN);
        let is_restarted = has_served
            && self.initialized.is_some()
            && self.agent.is_some()
            && self.restarts.len() < MAX_RESTARTS;
        self.report_end(&how, is_restarted).await;
        if is_restarted {
            self.restarts.push_back(now);
            if let Some(theirs) = self.handshake.as_ref().map(|handshake| handshake.theirs.clone()) {
                self.launch(Caller::Reopening, &theirs).await;
            }
        }
    }

    async fn report_end(&mut self, how: &str, is_restarted: bool) {
        let name = self.parts.wrapped.name();
        let (kind, next) = if is_restarted {
            (NoticeSeverity::Warning, "It is started again and gets the open documents.".to_owned())
        } else {
            let count = self.restarts.len();
            let before = match count {
                0 => String::new(),
                count => format!("It was started again {count} times in ten minutes and is left now. "),
            };
            let next = "The agent goes on. The log of the editor has the messages of the server; restart the language server in \
                        the editor to try again.";
            (NoticeSeverity::Error, format!("{before}{next}"))
        };
        self.report(kind, format!("kode-ls wrap: {name}: {how}. {next}")).await;
    }

    /// Takes back what the editor has of a server that ended: diagnostics, progress and registrations.
    async fn forget_child(&mut self) {
        for known in self.parts.wrapped.take_published() {
            if known.list.as_ref() == b"[]" {
                continue;
            }
            let own = self.published.get(&key(&known.uri)).cloned().unwrap_or_default();
            let params = json!({ "uri": known.uri, "diagnostics": own });
            self.send_to_editor(OutgoingFrame::notification("textDocument/publishDiagnostics", &params))
                .await;
        }
        let shown = std::mem::take(&mut self.child_progress).into_iter().filter(|_| self.shows_progress);
        for token in shown.collect::<Vec<_>>() {
            let token: Value = serde_json::from_slice(&token).unwrap_or_default();
            let params = json!({ "token": token, "value": { "kind": "end" } });
            self.send_to_editor(OutgoingFrame::notification("$/progress", &params)).await;
        }
        let gone = self.offer.registered().iter().map(|(id, method)| json!({ "id": id, "method": method }));
        let gone: Vec<Value> = gone.collect();
        self.offer = ChildOffer::default();
        if gone.is_empty() {
            return;
        }
        if let Some(id) = self.calls.ask(None, bytes::Bytes::new()) {
            // The protocol spells it so.
            let params = json!({ "unregisterations": gone });
            self.send_to_editor(OutgoingFrame::request(id, "client/unregisterCapability", &params)).await;
        }
    }

    /// Takes the answer of a server that was started again to `initialize`.
    pub(super) async fn reopened(&mut self, part: CallPart) {
        let first = self.handshake.as_ref().and_then(|handshake| handshake.result.as_ref());
        let encoding = first.map(|first| capabilities::encoding(first).to_owned());
        match result_of(part) {
            Ok(result) if encoding.as_deref() == Some(capabilities::encoding(&result)) => {
                self.offer = ChildOffer::of(&result);
                // Nothing of the editor is passed on before the server has the texts that all later changes are about.
                self.is_held = true;
                let id = self.own_call(Caller::Barrier, RelayedServer::Agent, (BARRIER, &Value::Null)).await;
                self.calls.limit(id, Instant::now() + BARRIER_LIMIT);
            }
            Ok(_) => self.lose_child("it counts columns in another way than before").await,
            Err(Some(reason)) => self.lose_child(&format!("it refused `initialize`: {reason}")).await,
            Err(None) => {}
        }
    }

    /// Gives the texts of the agent to a server that was started again, and goes on.
    pub(super) async fn resume(&mut self, part: CallPart) {
        self.is_held = false;
        if !matches!(part, CallPart::Answered(_)) {
            return self.lose_child("the agent did not give it the open documents").await;
        }
        let Some(child) = self.child.as_mut().filter(|child| child.phase == ChildPhase::Starting) else {
            return;
        };
        child.phase = ChildPhase::Serving;
        child.deadline = None;
        for body in [self.initialized.clone(), self.configuration.clone()].into_iter().flatten() {
            self.send_to_server(RelayedServer::Child, body.frame()).await;
        }
        let takes_documents = self.offer.takes("textDocument/didOpen");
        let documents = self.parts.connection.documents.all();
        for document in documents.into_iter().filter(|one| takes_documents && !one.uri.starts_with("kode-")) {
            let version = i64::from(document.version);
            self.texts.open(key(&document.uri), &document.uri, version);
            let item = json!({
                "uri": document.uri, "languageId": document.language_id, "version": version,
                "text": document.text.to_string(),
            });
            let open = OutgoingFrame::notification("textDocument/didOpen", &json!({ "textDocument": item }));
            self.send_to_server(RelayedServer::Child, open).await;
        }
        self.parts.wrapped.work().begin();
        self.parts.wrapped.set_ready(self.serves(RelayedServer::Child));
    }

    /// Goes on without an agent that has ended, and says so.
    pub(super) async fn lose_agent(&mut self, how: &str) {
        if self.agent.take().is_none() || self.is_over {
            return;
        }
        self.is_held = false;
        self.lose_calls(RelayedServer::Agent, "the agent of kode-ls has ended").await;
        let text = format!(
            "kode-ls wrap: the agent ended: {how}. {} goes on. Restart the language server in the editor to get the agent back.",
            self.parts.wrapped.name()
        );
        self.report(NoticeSeverity::Error, text).await;
    }
}

/// The result of an answer; else the reason of a refusal, or none of a server that has ended.
fn result_of(part: CallPart) -> Result<Value, Option<String>> {
    match part {
        CallPart::Answered(body) if *body.kind() == (BodyKind::Answer { is_error: false }) => {
            Ok(body.value())
        }
        CallPart::Answered(body) => {
            Err(Some(body.value()["message"].as_str().unwrap_or("it gave no reason").to_owned()))
        }
        CallPart::Lost(_) | CallPart::Unasked | CallPart::Waiting => Err(None),
    }
}
