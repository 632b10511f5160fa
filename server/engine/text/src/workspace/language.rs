//! The knowledge of language servers about the text of a workspace, as tools ask for it.
//!
//! Rule: plain data in lines from 1 and bytes of a text; which server answers, and over which protocol, is not known here.
//! A result is about the text that the server had, which is part of the result where edits are computed on it.

use std::time::Duration;

use async_trait::async_trait;

use crate::edit::FileChange;
use crate::file_text::FileText;
use crate::host::{DiagnosticsError, FileDiagnostics};
use crate::workspace::Workspace;
use kode_base::paths::Target;

/// A position in a text.
#[derive(Clone, Copy, Debug)]
pub struct TextPosition<'a> {
    /// The text.
    pub file: &'a FileText,
    /// The byte offset in it.
    pub offset: usize,
}

/// A declaration in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// Its kind, such as `function`.
    pub kind: &'static str,
    /// Its signature or type; may be empty.
    pub detail: String,
    /// The name of the declaration around it; may be empty.
    pub container: String,
    /// Its file.
    pub target: Target,
    /// Its first line, from 1.
    pub line: u32,
    /// Its last line, from 1.
    pub last_line: u32,
    /// The line of its name, from 1.
    pub name_line: u32,
    /// How many declarations are around it.
    pub depth: usize,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file.
    pub target: Target,
    /// Its first line, from 1.
    pub line: u32,
    /// Its column in that line, from 1: in characters where the text is known, else as the server counts.
    pub column: u32,
    /// The last line of the declaration there, from 1, where the server names it; else the line of its end.
    pub last_line: u32,
}

/// The kinds of places that belong to a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceKind {
    /// Where it is defined.
    Definition,
    /// Where it is declared.
    Declaration,
    /// Where its type is defined.
    Type,
    /// Where it is implemented.
    Implementation,
}

/// A function in a hierarchy of calls, with those that call it or that it calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallNode {
    /// Its name.
    pub name: String,
    /// Its kind, such as `method`.
    pub kind: &'static str,
    /// The place of its name.
    pub place: Place,
    /// The lines of the calls, from 1.
    pub lines: Vec<u32>,
    /// The next level.
    pub calls: Vec<CallNode>,
}

/// The direction of a hierarchy of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallDirection {
    /// The callers.
    Incoming,
    /// The called.
    Outgoing,
}

/// A change that a server proposes for a passage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeAction {
    /// The text that names it in [`LanguageServers::apply_action`].
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its kind, such as `quickfix`; may be empty.
    pub kind: String,
    /// Whether the server prefers it to the others.
    pub is_preferred: bool,
    /// Why it cannot be applied now, if it cannot.
    pub disabled: Option<String>,
}

/// A result with the state of the server behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<T> {
    /// The result.
    pub value: T,
    /// The work that the server has not finished, such as indexing: the result may be incomplete.
    pub unfinished: Option<String>,
}

/// Why a language server gives no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LanguageError {
    /// No server for the language of this file.
    #[error("no language server serves `{0}`")]
    NoServer(String),
    /// The server for the language is not running, and cannot be started.
    #[error("the language server {server} is not available: {reason}")]
    Unavailable {
        /// Its name.
        server: String,
        /// Why not.
        reason: String,
    },
    /// The server does not implement this request.
    #[error("the language server {server} does not support {request}")]
    Unsupported {
        /// Its name.
        server: String,
        /// The operation, such as `renaming`.
        request: &'static str,
    },
    /// The server did not answer in time.
    #[error("the language server {server} did not answer within {seconds} s")]
    Timeout {
        /// Its name.
        server: String,
        /// The limit.
        seconds: u64,
    },
    /// The server answered with an error, or with a result that cannot be used.
    #[error("the language server {server} failed: {reason}")]
    Failed {
        /// Its name.
        server: String,
        /// Its message, or the problems of its result.
        reason: String,
    },
    /// A text that the request is about cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The text changed while the server computed edits of it, twice in a row.
    #[error("`{0}` changed while the language server {1} computed its edits")]
    Moved(String, String),
}

/// The language servers of a workspace.
#[async_trait]
pub trait LanguageServers: Send + Sync {
    /// Applies the settings as they are now. Starts no server.
    async fn refresh(&self, workspace: &Workspace);

    /// Whether a server serves a language of the workspace, as of the last refresh.
    fn is_available(&self) -> bool;

    /// Whether there are servers for files like this one, running or not.
    fn knows_language(&self, target: &Target) -> bool;

    /// The declarations in a file, in the order of the text.
    async fn outline(
        &self,
        workspace: &Workspace,
        target: &Target,
    ) -> Result<Answer<Vec<Symbol>>, LanguageError>;

    /// The declarations of the workspace whose name fits a query.
    async fn find_symbols(
        &self,
        workspace: &Workspace,
        query: &str,
    ) -> Result<Answer<Vec<Symbol>>, LanguageError>;

    /// The places of a kind that belong to the symbol at a position.
    async fn places(
        &self,
        workspace: &Workspace,
        at: TextPosition<'_>,
        kind: PlaceKind,
    ) -> Result<Answer<Vec<Place>>, LanguageError>;

    /// The uses of the symbol at a position, its declaration included.
    async fn references(
        &self,
        workspace: &Workspace,
        at: TextPosition<'_>,
    ) -> Result<Answer<Vec<Place>>, LanguageError>;

    /// The signature and documentation of the symbol at a position.
    async fn hover(
        &self,
        workspace: &Workspace,
        at: TextPosition<'_>,
    ) -> Result<Answer<Option<String>>, LanguageError>;

    /// The calls to or from the function at a position, `levels` deep at most.
    async fn calls(
        &self,
        workspace: &Workspace,
        at: TextPosition<'_>,
        direction: CallDirection,
        levels: usize,
    ) -> Result<Answer<Vec<CallNode>>, LanguageError>;

    /// The changes that give the symbol at a position another name.
    async fn rename(
        &self,
        workspace: &Workspace,
        at: TextPosition<'_>,
        new_name: &str,
    ) -> Result<Answer<Vec<FileChange>>, LanguageError>;

    /// The changes that go with files being moved, each from its old place to the new one, such as those of imports. They are of the
    /// texts at the old places; none where no server computes them.
    async fn moves(
        &self,
        workspace: &Workspace,
        moved: &[(Target, Target)],
    ) -> Result<Vec<FileChange>, LanguageError>;

    /// The changes that a server proposes for lines of a file, from 1; `kind` narrows them, such as `quickfix`.
    async fn actions(
        &self,
        workspace: &Workspace,
        target: &Target,
        lines: (u32, u32),
        kind: Option<&str>,
    ) -> Result<Answer<Vec<CodeAction>>, LanguageError>;

    /// The changes that one of the last proposed actions of a file makes.
    async fn apply_action(
        &self,
        workspace: &Workspace,
        target: &Target,
        id: &str,
    ) -> Result<Answer<(String, Vec<FileChange>)>, LanguageError>;

    /// The changes that format a file, or some of its lines.
    async fn format(
        &self,
        workspace: &Workspace,
        target: &Target,
        lines: Option<(u32, u32)>,
    ) -> Result<Answer<Vec<FileChange>>, LanguageError>;

    /// The diagnostics of files.
    ///
    /// # Errors
    /// [`DiagnosticsError`]: no server, or none that answers. A file whose diagnostics were not complete within the limit is
    /// marked as outdated.
    async fn diagnostics(
        &self,
        workspace: &Workspace,
        request: DiagnosticsRequest<'_>,
    ) -> Result<Vec<FileDiagnostics>, DiagnosticsError>;

    /// The diagnostics of files before and after proposed changes, from servers that run. Nothing is changed, and no other request
    /// sees the proposed texts. `None` where no server reports them within the limit, and when the user types meanwhile.
    async fn try_changes(
        &self,
        workspace: &Workspace,
        files: &[FileChange],
        limit: Duration,
    ) -> Option<Vec<TriedFile>>;

    /// Notifies the servers that run of files that were written on the disk, each with whether it was created.
    async fn files_changed(&self, workspace: &Workspace, files: &[(Target, bool)]);
}

/// The diagnostics of a file before and after a proposed change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriedFile {
    /// The diagnostics of the current text.
    pub before: FileDiagnostics,
    /// The diagnostics of the proposed text.
    pub after: FileDiagnostics,
}

/// A request for diagnostics.
#[derive(Clone, Copy, Debug)]
pub struct DiagnosticsRequest<'a> {
    /// The files; all with known diagnostics when empty.
    pub targets: &'a [Target],
    /// The longest wait for complete diagnostics.
    pub limit: Duration,
    /// Which servers are started for it.
    pub start: ServerStart,
}

/// Which servers a request starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerStart {
    /// All that it needs.
    All,
    /// The servers that the user has configured: the others run only after a call that asks for them.
    Configured,
    /// None.
    Running,
}
