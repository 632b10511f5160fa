//! The messages of both servers, and the answers of calls.
//!
//! Rule: ids of both are made one series. Diagnostics of a file are those of both, whichever server publishes.

use std::borrow::Cow;

use kode_engine::languages::EditorFailure;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::body::{Body, BodyKind, OutgoingFrame};
use super::calls::{Call, CallPart, Caller, RelayedServer, ToolCall};
use super::from_editor::{CancelParams, ProgressToken, copied};
use super::relay::{REQUEST_FAILED, Relay};
use super::results::SharedRequest;
use super::selectors;
use crate::wrapped::key;

/// The most progress of a server that is kept.
const MAX_PROGRESS: usize = 1_000;
/// The most files whose diagnostics of the agent are kept.
const MAX_FILES: usize = 10_000;

/// The errors that mean "ask again": the content changed, or the server cancelled the request.
const TRY_AGAIN: [i64; 2] = [-32801, -32802];

/// The diagnostics that a server publishes about a file.
#[derive(Deserialize)]
struct PublishParams<'a> {
    #[serde(borrow)]
    uri: Cow<'a, str>,
    #[serde(default)]
    version: Option<i32>,
    #[serde(borrow)]
    diagnostics: &'a RawValue,
}

#[derive(Deserialize)]
struct ProgressParams<'a> {
    #[serde(borrow)]
    token: &'a RawValue,
    value: ProgressValue<'a>,
}

#[derive(Deserialize)]
struct ProgressValue<'a> {
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
}

impl Relay {
    /// Takes a message of the wrapped server.
    pub(super) async fn child_message(&mut self, body: Body) {
        if self.child.as_ref().is_none_or(|child| child.reason.is_some()) {
            return;
        }
        match body.kind().clone() {
            BodyKind::Request(method) => {
                match method.as_str() {
                    "window/workDoneProgress/create" if !self.shows_progress => {
                        return self.hide_progress(&body).await;
                    }
                    "client/registerCapability" => {
                        let params = body.value();
                        self.offer.register(&params);
                        self.parts.wrapped.note_named(selectors::of_registrations(&params));
                    }
                    "client/unregisterCapability" => self.offer.unregister(&body.value()),
                    _ => {}
                }
                self.ask_editor(RelayedServer::Child, body).await;
            }
            BodyKind::Notification(method) => match method.as_str() {
                "textDocument/publishDiagnostics" => self.child_published(body).await,
                "$/cancelRequest" => self.cancel_at_editor(RelayedServer::Child, &body).await,
                _ => {
                    if self.note_work(&method, &body) {
                        self.send_to_editor(body.frame()).await;
                    }
                }
            },
            BodyKind::Answer { .. } => self.answered(RelayedServer::Child, body).await,
            BodyKind::Unreadable => self.send_to_editor(body.frame()).await,
        }
    }

    /// Takes a message of the agent.
    pub(super) async fn agent_message(&mut self, body: Body) {
        match body.kind().clone() {
            BodyKind::Request(method) => {
                if method == "window/workDoneProgress/create"
                    && let Some(params) = body.parse::<ProgressToken<'_>>()
                {
                    if self.agent_progress.len() >= MAX_PROGRESS {
                        self.agent_progress.clear();
                    }
                    self.agent_progress.insert(copied(params.token));
                }
                self.ask_editor(RelayedServer::Agent, body).await;
            }
            BodyKind::Notification(method) => match method.as_str() {
                "textDocument/publishDiagnostics" => self.agent_published(body).await,
                "$/cancelRequest" => self.cancel_at_editor(RelayedServer::Agent, &body).await,
                _ => self.send_to_editor(body.frame()).await,
            },
            BodyKind::Answer { .. } => self.answered(RelayedServer::Agent, body).await,
            BodyKind::Unreadable => self.send_to_editor(body.frame()).await,
        }
    }

    /// Takes a request of a server to the editor.
    async fn ask_editor(&mut self, server: RelayedServer, body: Body) {
        match self.calls.ask(Some(server), body.id()) {
            Some(id) => self.send_to_editor(body.with_id(id.to_string())).await,
            None => {
                let reason = "too many requests wait for the answers of the editor";
                self.send_to_server(server, OutgoingFrame::error(&body.id(), REQUEST_FAILED, reason)).await;
            }
        }
    }

    async fn cancel_at_editor(&mut self, server: RelayedServer, body: &Body) {
        let id = body.parse::<CancelParams<'_>>().map(|params| copied(params.id));
        if let Some(id) = id.and_then(|id| self.calls.asked_as(server, &id)) {
            self.send_to_editor(OutgoingFrame::notification("$/cancelRequest", &json!({ "id": id }))).await;
        }
    }

    /// Creates progress of the wrapped server that the editor does not show.
    async fn hide_progress(&mut self, body: &Body) {
        if let Some(params) = body.parse::<ProgressToken<'_>>()
            && self.child_progress.len() < MAX_PROGRESS
        {
            self.child_progress.insert(copied(params.token));
        }
        self.send_to_server(RelayedServer::Child, OutgoingFrame::result(&body.id(), &Value::Null)).await;
    }

    /// Notes what the wrapped server says of its work. Returns whether it is for the editor.
    fn note_work(&mut self, method: &str, body: &Body) -> bool {
        match method {
            "$/progress" => return self.note_progress(body),
            "experimental/serverStatus" => {
                self.parts.wrapped.work().take(method, &body.value());
            }
            "window/logMessage" => {
                let work = self.parts.wrapped.work();
                if work.is_searching() {
                    work.take(method, &body.value());
                }
            }
            _ => {}
        }
        true
    }

    fn note_progress(&mut self, body: &Body) -> bool {
        let Some(params) = body.parse::<ProgressParams<'_>>() else { return true };
        let token = copied(params.token);
        let is_hidden = !self.shows_progress && self.child_progress.contains(&token);
        let kind = &*params.value.kind;
        if matches!(kind, "begin" | "end") {
            self.parts.wrapped.work().take("$/progress", &body.value());
        }
        match kind {
            "begin" if self.shows_progress && self.child_progress.len() < MAX_PROGRESS => {
                self.child_progress.insert(token);
            }
            "end" => {
                self.child_progress.remove(&token);
            }
            _ => {}
        }
        !is_hidden
    }

    async fn child_published(&mut self, body: Body) {
        let Some(params) = body.parse::<PublishParams<'_>>() else {
            return self.send_to_editor(body.frame()).await;
        };
        let uri = params.uri.into_owned();
        self.parts.wrapped.publish(uri.clone(), params.version, copied(params.diagnostics));
        let own = self.published.get(&key(&uri)).cloned().unwrap_or_default();
        self.send_to_editor(with_diagnostics(body, own)).await;
    }

    async fn agent_published(&mut self, body: Body) {
        let params = body.value();
        let uri = params["uri"].as_str().unwrap_or_default().to_owned();
        let own = params["diagnostics"].as_array().cloned().unwrap_or_default();
        if own.is_empty() {
            self.published.remove(&key(&uri));
        } else if self.published.len() < MAX_FILES {
            self.published.insert(key(&uri), own);
        }
        let theirs = self.parts.wrapped.published(&uri).map(|known| known.list).unwrap_or_default();
        let theirs: Vec<Value> = serde_json::from_slice(&theirs).unwrap_or_default();
        self.send_to_editor(with_diagnostics(body, theirs)).await;
    }

    /// Answers the caller of a call whose servers have answered.
    pub(super) async fn finish(&mut self, call: Call) {
        let Call { caller, shared, child, agent, .. } = call;
        match caller {
            Caller::Editor(id) => {
                let answer = match shared {
                    Some(shared) => merged(shared, &id, child, agent),
                    None => alone(&id, if matches!(child, CallPart::Unasked) { agent } else { child }),
                };
                self.send_to_editor(answer).await;
            }
            Caller::Shutdown(id) => {
                let answer = match agent {
                    CallPart::Answered(body) => body.with_id(id),
                    _ => OutgoingFrame::result(&id, &Value::Null),
                };
                self.send_to_editor(answer).await;
            }
            Caller::Tools(tool) => self.answer_tool(tool, child).await,
            Caller::Opening => self.opened(child).await,
            Caller::AgentOpening => self.agent_opened(agent).await,
            Caller::Reopening => self.reopened(child).await,
            Caller::Barrier => self.resume(agent).await,
        }
    }

    async fn answer_tool(&mut self, tool: ToolCall, part: CallPart) {
        let ToolCall { answer, version, opened } = tool;
        let has_moved = version.is_some_and(|(target, version)| self.texts.version(&target) != Some(version));
        let result = match part {
            _ if has_moved => Err(EditorFailure::Moved),
            CallPart::Answered(body) if *body.kind() == (BodyKind::Answer { is_error: false }) => {
                Ok(body.value())
            }
            CallPart::Answered(body) => Err(refusal(&body.value())),
            CallPart::Lost(reason) => Err(EditorFailure::NoAnswer(reason)),
            CallPart::Unasked | CallPart::Waiting => {
                Err(EditorFailure::NoAnswer("it was not asked".to_owned()))
            }
        };
        // The tool may have given up.
        drop(answer.send(result));
        if let Some(closed) = opened.and_then(|target| self.texts.give_back(&target)) {
            self.send_to_server(RelayedServer::Child, closed).await;
        }
    }
}

/// Why a server gave no result.
fn refusal(error: &Value) -> EditorFailure {
    if error["code"].as_i64().is_some_and(|code| TRY_AGAIN.contains(&code)) {
        return EditorFailure::Moved;
    }
    EditorFailure::Refused(error["message"].as_str().unwrap_or("it gave no reason").to_owned())
}

/// The message with more diagnostics; unchanged without any.
fn with_diagnostics(body: Body, more: Vec<Value>) -> OutgoingFrame {
    if more.is_empty() {
        return body.frame();
    }
    let mut params = body.value();
    if let Some(list) = params["diagnostics"].as_array_mut() {
        list.extend(more);
    }
    body.with_content(&params).frame()
}

/// The answer of the one server that was asked.
fn alone(id: &bytes::Bytes, part: CallPart) -> OutgoingFrame {
    match part {
        CallPart::Answered(body) => body.with_id(id.clone()),
        CallPart::Lost(reason) => OutgoingFrame::error(id, REQUEST_FAILED, &reason),
        CallPart::Unasked | CallPart::Waiting => OutgoingFrame::result(id, &Value::Null),
    }
}

/// The answer of both servers: that of the wrapped server as it is, unless the agent has something to add.
fn merged(shared: SharedRequest, id: &bytes::Bytes, child: CallPart, agent: CallPart) -> OutgoingFrame {
    let own = match &agent {
        CallPart::Answered(body) if *body.kind() == (BodyKind::Answer { is_error: false }) => {
            Some(body.value()).filter(|own| !shared.is_empty(own))
        }
        _ => None,
    };
    let Some(own) = own else {
        return alone(id, if matches!(child, CallPart::Unasked) { agent } else { child });
    };
    let own = shared.mark(own);
    match child {
        CallPart::Answered(body) if *body.kind() == (BodyKind::Answer { is_error: false }) => {
            let theirs = body.value();
            let both = if shared.is_empty(&theirs) { own } else { shared.merge(theirs, own) };
            OutgoingFrame::result(id, &both)
        }
        _ => OutgoingFrame::result(id, &own),
    }
}
