//! The messages of the editor, and the questions of the agent's tools: which server each is for.
//!
//! Rule: what both know goes to both, `agent/*` and our commands to the agent, and everything else to the wrapped server.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::time::Duration;

use bytes::Bytes;
use kode_engine::languages::EditorFailure;
use tokio::time::Instant;

use super::body::{Body, BodyKind, OutgoingFrame};
use super::calls::{Call, Caller, RelayedServer, ToolCall};
use super::capabilities;
use super::relay::{Handshake, REQUEST_FAILED, Relay};
use super::results::{self, SharedRequest};
use super::texts::DocumentParams;
use crate::plain::commands;
use crate::transport::message::{self, IncomingMessage};
use crate::wrapped::{WrappedMessage, WrappedRequest, key};

/// How long `shutdown` waits for both servers.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(6);
/// The start of the methods of the agent.
const AGENT_METHODS: &str = "agent/";

/// The parameters of a cancellation.
#[derive(Deserialize)]
pub(super) struct CancelParams<'a> {
    #[serde(borrow)]
    pub(super) id: &'a RawValue,
}

/// The parameters of a progress message.
#[derive(Deserialize)]
pub(super) struct ProgressToken<'a> {
    #[serde(borrow)]
    pub(super) token: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartialResults {
    partial_result_token: Option<IgnoredAny>,
}

impl Relay {
    /// Takes a message of the editor.
    pub(super) async fn editor_message(&mut self, body: Body) {
        match body.kind().clone() {
            BodyKind::Request(method) => self.editor_request(&method, body).await,
            BodyKind::Notification(method) => self.editor_notification(&method, body).await,
            BodyKind::Answer { .. } => {
                let asked = body.own_id().and_then(|id| self.calls.answered(id));
                if let Some((Some(server), id)) = asked {
                    self.send_to_server(server, body.with_id(id)).await;
                }
            }
            BodyKind::Unreadable => {
                if let IncomingMessage::Invalid(answer) = message::parse(body.bytes()) {
                    tracing::warn!(error = ?answer.error(), "the editor sent something illegible");
                    let answer = serde_json::to_vec(&answer).unwrap_or_default();
                    self.send_to_editor(OutgoingFrame::of(answer)).await;
                }
            }
        }
    }

    async fn editor_request(&mut self, method: &str, mut body: Body) {
        let id = body.id();
        if self.calls.is_full() {
            let reason = "too many requests wait for their answers; try again later";
            return self.send_to_editor(OutgoingFrame::error(&id, REQUEST_FAILED, reason)).await;
        }
        if method == "initialize" && self.handshake.is_none() {
            let (mut theirs, ours) = capabilities::split(&body.value());
            self.shows_progress = capabilities::offer_progress(&mut theirs);
            self.handshake = Some(Handshake { id, theirs, ours, result: None });
            return self.open().await;
        }
        if method == "shutdown" {
            return self.shut_down(body).await;
        }
        if let Some(own) = own_entry(method, &body) {
            return self.send_to_editor(OutgoingFrame::result(&id, &own)).await;
        }
        let shared = SharedRequest::of(method);
        let wanted = self.servers_of(method, shared, &body);
        let servers: Vec<_> = wanted.into_iter().filter(|server| self.serves(*server)).collect();
        if servers.is_empty() {
            let reason = self.reason_of_silence(method);
            return self.send_to_editor(OutgoingFrame::error(&id, REQUEST_FAILED, &reason)).await;
        }
        let mut call = Call::new(Caller::Editor(id));
        if servers.len() > 1 || servers == [RelayedServer::Agent] {
            call.shared = shared;
        }
        if servers.len() > 1 {
            body = whole_result(body);
        }
        self.call(call, &body, &servers).await;
    }

    /// The servers that a request is for.
    fn servers_of(&self, method: &str, shared: Option<SharedRequest>, body: &Body) -> Vec<RelayedServer> {
        let is_of_agent = self.handshake.is_none()
            || method.starts_with(AGENT_METHODS)
            || (method == "workspace/executeCommand" && is_own_command(&body.value()))
            || (method == "workspace/textDocumentContent" && is_own_document(&body.value()["uri"]))
            || body.parse::<DocumentParams<'_>>().is_some_and(|params| params.text_document.is_of_agent());
        match shared {
            _ if is_of_agent => vec![RelayedServer::Agent],
            Some(_) if self.offer.takes(method) => vec![RelayedServer::Child, RelayedServer::Agent],
            Some(_) => vec![RelayedServer::Agent],
            None => vec![RelayedServer::Child],
        }
    }

    fn reason_of_silence(&self, method: &str) -> String {
        let name = self.parts.wrapped.name();
        match self.child {
            Some(_) => format!("{name} is starting and does not answer `{method}` yet; try again shortly"),
            None if method.starts_with(AGENT_METHODS) => {
                "the agent of kode-ls has ended; restart the language server in the editor".to_owned()
            }
            None => format!("{name} does not run; restart the language server in the editor"),
        }
    }

    async fn shut_down(&mut self, body: Body) {
        self.is_shutting_down = true;
        self.parts.wrapped.set_ready(false);
        let both = [RelayedServer::Child, RelayedServer::Agent];
        let servers: Vec<_> = both.into_iter().filter(|server| self.serves(*server)).collect();
        if servers.is_empty() {
            return self.send_to_editor(OutgoingFrame::result(&body.id(), &Value::Null)).await;
        }
        let id = self.call(Call::new(Caller::Shutdown(body.id())), &body, &servers).await;
        self.calls.limit(id, Instant::now() + SHUTDOWN_LIMIT);
    }

    async fn editor_notification(&mut self, method: &str, body: Body) {
        match method {
            "initialized" => self.start_serving(body).await,
            "exit" => {
                self.send_to_both(&body).await;
                self.is_over = true;
            }
            "$/cancelRequest" => {
                let id = body.parse::<CancelParams<'_>>().map(|params| copied(params.id));
                let Some(call) = id.and_then(|id| self.calls.of_editor(&id)) else { return };
                let waiting: Vec<_> =
                    self.calls.get_mut(call).map(|call| call.waiting().collect()).unwrap_or_default();
                for server in waiting {
                    self.cancel(server, call).await;
                }
            }
            "window/workDoneProgress/cancel" => {
                let token = body.parse::<ProgressToken<'_>>().map(|params| copied(params.token));
                let is_of_agent = token.is_some_and(|token| self.agent_progress.contains(&token));
                let server = if is_of_agent { RelayedServer::Agent } else { RelayedServer::Child };
                self.send_to_server(server, body.frame()).await;
            }
            "textDocument/didOpen"
            | "textDocument/didChange"
            | "textDocument/didClose"
            | "textDocument/didSave"
            | "textDocument/willSave" => self.document_message(method, body).await,
            "workspace/didChangeConfiguration" => {
                self.send_to_both(&body).await;
                self.configuration = Some(body);
            }
            "workspace/didChangeWorkspaceFolders" => {
                self.change_folders(&body.value());
                self.send_to_server(RelayedServer::Agent, body.frame()).await;
                if self.serves(RelayedServer::Child) && self.offer.takes(method) {
                    self.send_to_server(RelayedServer::Child, body.frame()).await;
                }
            }
            "$/setTrace" => self.send_to_both(&body).await,
            _ if method.starts_with(AGENT_METHODS) => {
                self.send_to_server(RelayedServer::Agent, body.frame()).await
            }
            _ if self.serves(RelayedServer::Child) => {
                self.send_to_server(RelayedServer::Child, body.frame()).await
            }
            _ => tracing::debug!(method, "a notification for a server that does not run"),
        }
    }

    async fn send_to_both(&mut self, body: &Body) {
        self.send_to_server(RelayedServer::Agent, body.frame()).await;
        if self.serves(RelayedServer::Child) {
            self.send_to_server(RelayedServer::Child, body.frame()).await;
        }
    }

    /// Takes what concerns an open document: both have it.
    async fn document_message(&mut self, method: &str, body: Body) {
        self.send_to_server(RelayedServer::Agent, body.frame()).await;
        let Some(DocumentParams { text_document: document }) = body.parse() else { return };
        if document.is_of_agent() {
            return;
        }
        let target = key(&document.uri);
        if let Some(language) = &document.language_id {
            self.parts.wrapped.note_language(&target, language);
        }
        if !self.serves(RelayedServer::Child) || !self.offer.takes(method) {
            return;
        }
        let version = document.version.unwrap_or_default();
        match method {
            "textDocument/didOpen" => {
                if let Some(before) = self.texts.open(target, &document.uri, version) {
                    self.send_to_server(RelayedServer::Child, before).await;
                }
            }
            "textDocument/didChange" => self.texts.change(&target, version),
            "textDocument/didClose" => self.texts.close(&target),
            _ => {}
        }
        self.send_to_server(RelayedServer::Child, body.frame()).await;
    }

    /// Keeps the folders of the workspace for a server that is started again.
    fn change_folders(&mut self, params: &Value) {
        let Some(handshake) = &mut self.handshake else { return };
        let folders = &mut handshake.theirs["workspaceFolders"];
        let mut all = folders.as_array().cloned().unwrap_or_default();
        let changed = |list: &str| params["event"][list].as_array().cloned().unwrap_or_default();
        let gone = changed("removed");
        all.retain(|folder| !gone.iter().any(|gone| gone["uri"] == folder["uri"]));
        for folder in changed("added") {
            if all.iter().all(|known| known["uri"] != folder["uri"]) {
                all.push(folder);
            }
        }
        *folders = Value::Array(all);
    }

    /// Takes a message of the agent's tools for the wrapped server.
    pub(super) async fn tools_message(&mut self, message: WrappedMessage) {
        match message {
            WrappedMessage::Request(request) => self.ask_for_tools(request).await,
            WrappedMessage::FilesChanged(changes) => {
                // A server that is started again reads the files.
                if self.serves(RelayedServer::Child) && self.initialized.is_some() {
                    let params = json!({ "changes": changes });
                    let changed = OutgoingFrame::notification("workspace/didChangeWatchedFiles", &params);
                    self.send_to_server(RelayedServer::Child, changed).await;
                }
            }
        }
    }

    async fn ask_for_tools(&mut self, request: WrappedRequest) {
        let WrappedRequest { method, mut params, document, deadline, answer } = request;
        let name = self.parts.wrapped.name();
        if !self.serves(RelayedServer::Child) || self.initialized.is_none() || self.calls.is_full() {
            // The tool may have given up.
            drop(answer.send(Err(EditorFailure::NoAnswer(format!("{name} does not answer now")))));
            return;
        }
        let mut tool = ToolCall { answer, version: None, opened: None };
        if let Some(document) = document {
            let version = params.pointer("/textDocument/version").and_then(Value::as_i64);
            if let Some(version) = version {
                if self.texts.version(&document.target) != Some(version) {
                    drop(tool.answer.send(Err(EditorFailure::Moved)));
                    return;
                }
                tool.version = Some((document.target.clone(), version));
            }
            if let Some(open) = self.texts.lend(&document) {
                self.send_to_server(RelayedServer::Child, open).await;
            }
            if let Some(uri) = self.texts.uri(&document.target) {
                params["textDocument"] = json!({ "uri": uri });
                tool.opened = Some(document.target);
            }
        }
        let id = self.own_call(Caller::Tools(tool), RelayedServer::Child, (&method, &params)).await;
        self.calls.limit(id, deadline);
    }
}

/// A piece of a message that outlives it.
pub(super) fn copied(raw: &RawValue) -> Bytes {
    Bytes::copy_from_slice(raw.get().as_bytes())
}

/// Whether a command is one of the agent.
fn is_own_command(params: &Value) -> bool {
    params["command"].as_str().is_some_and(|command| commands::names().iter().any(|name| name == command))
}

fn is_own_document(uri: &Value) -> bool {
    uri.as_str().is_some_and(|uri| uri.starts_with("kode-"))
}

/// The entry that a request is to complete, where it is one of the agent: those are complete.
fn own_entry(method: &str, body: &Body) -> Option<Value> {
    let is_own = match method {
        "codeAction/resolve" | "completionItem/resolve" => results::is_of_agent,
        "codeLens/resolve" => |entry: &Value| is_own_command(&entry["command"]),
        _ => return None,
    };
    Some(body.value()).filter(is_own)
}

/// The request without the wish for a result in pieces, which could not be put together with another.
fn whole_result(body: Body) -> Body {
    if body.parse::<PartialResults>().is_none_or(|params| params.partial_result_token.is_none()) {
        return body;
    }
    let mut params = body.value();
    if let Some(params) = params.as_object_mut() {
        params.shift_remove("partialResultToken");
    }
    body.with_content(&params)
}
