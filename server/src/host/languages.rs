//! Requests for the language servers of the editor: the one that it is served together with, and those of a client that has offered
//! to answer for its own.
//!
//! Rule: the wait has the limit of the request and a short time for its way. A refusal because the text moved is
//! distinguished by its code.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kode_engine::base::task;
use kode_engine::languages::{EditorAnswer, EditorFailure, EditorRequest, EditorServers};
use kode_protocol as wire;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tower_lsp::jsonrpc::Error;

use crate::connection::ClientConnection;
use crate::wrapped::WrappedServer;

/// How much longer than the client itself its answer is waited for.
const GRACE: Duration = Duration::from_secs(2);

/// The code of an answer about a text that has changed, as LSP has it.
const CONTENT_MODIFIED: i64 = -32801;
/// The codes of requests that were given up before an answer.
const REQUEST_CANCELLED: i64 = -32800;
const SERVER_CANCELLED: i64 = -32802;

/// The language servers of the editor behind a connection.
pub(crate) struct EditorLanguages {
    connection: Arc<ClientConnection>,
}

impl EditorLanguages {
    /// The language servers of this connection's editor.
    pub(crate) fn new(connection: Arc<ClientConnection>) -> Self {
        Self { connection }
    }

    /// The server that the editor is served together with, while it answers.
    fn wrapped(&self) -> Option<&WrappedServer> {
        self.connection.wrapped.as_deref().filter(|wrapped| wrapped.is_ready())
    }

    /// Whether the client answers for the other servers of its editor.
    fn is_client_asked(&self) -> bool {
        self.connection.facts.get().is_some_and(|facts| facts.kode.language_servers)
    }
}

#[async_trait]
impl EditorServers for EditorLanguages {
    fn is_offered(&self) -> bool {
        self.wrapped().is_some() || self.is_client_asked()
    }

    fn encoding(&self) -> &'static str {
        match self.wrapped() {
            Some(_) => self.connection.documents.encoding().name(),
            None => "utf-16",
        }
    }

    fn serves(&self, extension: &str) -> Option<bool> {
        self.wrapped().map(|wrapped| wrapped.serves(extension))
    }

    fn unfinished(&self) -> Option<String> {
        self.wrapped().and_then(WrappedServer::unfinished)
    }

    fn moves_files(&self) -> bool {
        self.wrapped().is_some_and(WrappedServer::moves_files)
    }

    fn files_changed(&self, changes: Vec<Value>) {
        if let Some(wrapped) = self.wrapped() {
            wrapped.files_changed(changes);
        }
    }

    async fn request(&self, request: EditorRequest) -> Result<Vec<EditorAnswer>, EditorFailure> {
        if let Some(wrapped) = self.wrapped() {
            return wrapped.request(request, self.connection.documents.encoding().name()).await;
        }
        if !self.is_client_asked() {
            return Ok(Vec::new());
        }
        let params = wire::EditorLspParams {
            method: request.method,
            params: request.parameters,
            limit_ms: u32::try_from(request.limit.as_millis()).unwrap_or(u32::MAX),
            server: request.server,
        };
        let (sender, answer) = oneshot::channel();
        let client = self.connection.client.clone();
        // The request is owned by a task of its own: the service cannot bear an answer no caller waits for.
        task::spawn(async move {
            let _ = sender.send(client.send_request::<wire::EditorLsp>(params).await);
        });
        match timeout(request.limit + GRACE, answer).await {
            Ok(Ok(Ok(result))) => Ok(result.answers.into_iter().map(read).collect()),
            Ok(Ok(Err(error))) => Err(failure(&error)),
            Ok(Err(_)) => Err(EditorFailure::NoAnswer("the connection ended".to_owned())),
            Err(_) => {
                let seconds = request.limit.as_secs();
                Err(EditorFailure::NoAnswer(format!("the editor did not answer within {seconds} s")))
            }
        }
    }
}

fn read(answer: wire::EditorLspAnswer) -> EditorAnswer {
    EditorAnswer { server: answer.server, encoding: answer.position_encoding, result: answer.result }
}

fn failure(error: &Error) -> EditorFailure {
    match error.code.code() {
        CONTENT_MODIFIED => EditorFailure::Moved,
        REQUEST_CANCELLED | SERVER_CANCELLED => EditorFailure::NoAnswer(error.message.to_string()),
        _ => EditorFailure::Refused(error.message.to_string()),
    }
}
