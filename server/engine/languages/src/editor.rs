//! The language servers of the editor, as the client of an editor makes them available.
//!
//! Rule: the editor's servers come first, because they have the user's texts and have read the project. Columns of a request have the
//! unit that the editor wants; each answer names its own unit. An answer about a text that has moved is refused by the client.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::time::sleep;

use crate::positions::Encoding;
use kode_base::paths::Target;
use kode_text::file_text::FileText;
use kode_text::workspace::Workspace;
use kode_text::workspace::language::LanguageError;

/// The longest wait for the answer of an editor.
const LIMIT: Duration = Duration::from_secs(20);
/// The name that errors give the servers of the editor together.
pub(crate) const EDITOR: &str = "of the editor";
/// The waits before a request is sent again whose text had moved: clients send changes with a delay.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(400)];

/// A request of the Language Server Protocol for the servers of an editor.
#[derive(Clone, Debug)]
pub struct EditorRequest {
    /// The method, such as `textDocument/references`.
    pub method: String,
    /// Its parameters. Columns have the unit of [`EditorServers::encoding`], and the version of an open document is that of this
    /// connection.
    pub parameters: Value,
    /// The longest wait for the answer.
    pub limit: Duration,
    /// The server that the request is for; all that serve the file when `None`.
    pub server: Option<String>,
}

/// The answer of one server of an editor.
#[derive(Clone, Debug, PartialEq)]
pub struct EditorAnswer {
    /// The name of the server; that of the editor where it answers for all.
    pub server: String,
    /// The unit of columns as the protocol names it; `utf-16` when `None`.
    pub encoding: Option<String>,
    /// The result.
    pub result: Value,
}

/// Why an editor gives no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditorFailure {
    /// The text of the request has changed meanwhile.
    Moved,
    /// The server refused, for this reason.
    Refused(String),
    /// No answer came, for this reason.
    NoAnswer(String),
}

/// The language servers of an editor.
#[async_trait]
pub trait EditorServers: Send + Sync {
    /// Whether the client answers such requests.
    fn is_offered(&self) -> bool;

    /// The unit of columns in requests, as the protocol names it.
    fn encoding(&self) -> &'static str {
        "utf-16"
    }

    /// Whether one of them serves files with this extension, which is in lower case; `None` where only an answer tells.
    fn serves(&self, _extension: &str) -> Option<bool> {
        None
    }

    /// The work that a server has not finished, in words, where that is known.
    fn unfinished(&self) -> Option<String> {
        None
    }

    /// Whether one of them computes the edits that go with files being moved.
    fn moves_files(&self) -> bool {
        false
    }

    /// Notifies servers that do not watch the disk of `changes`, which have the form of `FileEvent`. Does not wait.
    fn files_changed(&self, _changes: Vec<Value>) {}

    /// Asks the servers; no answer means that none of them serves the file.
    ///
    /// # Errors
    /// [`EditorFailure`].
    async fn request(&self, request: EditorRequest) -> Result<Vec<EditorAnswer>, EditorFailure>;
}

/// No editor, or one whose client answers no such requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NoEditorServers;

#[async_trait]
impl EditorServers for NoEditorServers {
    fn is_offered(&self) -> bool {
        false
    }

    async fn request(&self, _request: EditorRequest) -> Result<Vec<EditorAnswer>, EditorFailure> {
        Ok(Vec::new())
    }
}

/// One server of an editor.
#[derive(Clone)]
pub(crate) struct EditorServer {
    servers: Arc<dyn EditorServers>,
    pub(crate) name: String,
    pub(crate) encoding: Encoding,
}

/// The results of an editor's servers, with the versions of the documents that were open then.
pub(crate) struct EditorResults {
    pub(crate) list: Vec<(EditorServer, Value)>,
    pub(crate) versions: HashMap<Target, i32>,
}

/// A request about a file.
pub(crate) struct FileRequest<'r> {
    /// The file.
    pub(crate) target: &'r Target,
    /// The text that the parameters are about, where they have positions of it.
    pub(crate) file: Option<&'r FileText>,
    /// Whether the result is of use for the present text alone.
    pub(crate) is_exact: bool,
}

/// Asks the servers of an editor.
///
/// # Errors
/// [`LanguageError`].
pub(crate) async fn ask(
    servers: &Arc<dyn EditorServers>,
    workspace: &Workspace,
    method: &str,
    parameters: &Value,
    about: Option<&FileRequest<'_>>,
) -> Result<EditorResults, LanguageError> {
    let exact = about.filter(|about| about.is_exact);
    let mut delays = RETRY_DELAYS.iter();
    loop {
        let versions: HashMap<Target, i32> =
            workspace.documents().into_iter().map(|document| (document.target(), document.version)).collect();
        let mut parameters = parameters.clone();
        if let Some(about) = exact {
            let version = versions.get(about.target).copied();
            if about.file.is_some_and(|file| file.version() != version) {
                return Err(moved(workspace, about.target));
            }
            if let Some(version) = version {
                parameters["textDocument"]["version"] = version.into();
            }
        }
        let request = EditorRequest { method: method.to_owned(), parameters, limit: LIMIT, server: None };
        match (servers.request(request).await, exact) {
            (Ok(answers), _) => {
                let list = answers.into_iter().map(|answer| named(servers, answer)).collect();
                return Ok(EditorResults { list, versions });
            }
            (Err(EditorFailure::Moved), Some(about)) => match delays.next() {
                Some(delay) => sleep(*delay).await,
                None => return Err(moved(workspace, about.target)),
            },
            (Err(EditorFailure::NoAnswer(reason)), _) => {
                let server = EDITOR.to_owned();
                return Err(LanguageError::Unavailable { server, reason });
            }
            (Err(failure), _) => return Err(failed(EDITOR, failure)),
        }
    }
}

fn moved(workspace: &Workspace, target: &Target) -> LanguageError {
    LanguageError::Moved(workspace.display(target), EDITOR.to_owned())
}

fn failed(server: &str, failure: EditorFailure) -> LanguageError {
    let reason = match failure {
        EditorFailure::Moved => "the text has changed meanwhile".to_owned(),
        EditorFailure::Refused(reason) | EditorFailure::NoAnswer(reason) => reason,
    };
    LanguageError::Failed { server: server.to_owned(), reason }
}

fn named(servers: &Arc<dyn EditorServers>, answer: EditorAnswer) -> (EditorServer, Value) {
    let encoding = answer.encoding.as_deref().and_then(Encoding::parse).unwrap_or_default();
    (EditorServer { servers: Arc::clone(servers), name: answer.server, encoding }, answer.result)
}

impl EditorServer {
    /// The work that it has not finished, as far as it is known.
    pub(crate) fn unfinished(&self) -> Option<String> {
        self.servers.unfinished()
    }

    /// Asks this server for more about one of its results.
    ///
    /// # Errors
    /// [`LanguageError`].
    pub(crate) async fn request(&self, method: &str, parameters: &Value) -> Result<Value, LanguageError> {
        let request = EditorRequest {
            method: method.to_owned(),
            parameters: parameters.clone(),
            limit: LIMIT,
            server: Some(self.name.clone()),
        };
        let answers = self.servers.request(request).await.map_err(|failure| failed(&self.name, failure))?;
        Ok(answers.into_iter().next().map(|answer| answer.result).unwrap_or_default())
    }
}
