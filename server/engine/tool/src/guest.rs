//! Guests: other agents that work as sub-agents, as the loop uses them.
//!
//! Rule: the loop gives a guest its task and answers what it asks for through these traits alone. How a guest is spoken to is not
//! known here.

use std::path::PathBuf;

use async_trait::async_trait;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use kode_base::call::ToolError;
use kode_base::paths::AbsPath;
use kode_process::shell::served::ServedSpec;

/// A piece of work for a guest.
#[derive(Clone, Debug)]
pub struct GuestJob {
    /// The name of its type, for people.
    pub name: String,
    /// The program to start.
    pub program: ServedSpec,
    /// The id of the mode it is to work in; the one it begins in if absent.
    pub mode: Option<String>,
    /// The folder it works in.
    pub cwd: AbsPath,
    /// The task.
    pub prompt: String,
}

/// How a guest has ended its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestEnd {
    /// It has finished.
    Finished,
    /// Its model's answer was cut off.
    MaxTokens,
    /// It has used up its model calls.
    MaxTurns,
    /// Its model declined to answer.
    Refused,
    /// It was cancelled.
    Cancelled,
}

/// The kind of an action that a guest reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GuestActionKind {
    /// It reads files.
    Read,
    /// It changes files.
    Edit,
    /// It removes files.
    Delete,
    /// It moves files.
    Move,
    /// It searches.
    Search,
    /// It runs a command.
    Execute,
    /// It thinks.
    Think,
    /// It fetches something from the network.
    Fetch,
    /// Anything else.
    #[default]
    Other,
}

impl GuestActionKind {
    /// Its name in transcripts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::Search => "search",
            Self::Execute => "execute",
            Self::Think => "think",
            Self::Fetch => "fetch",
            Self::Other => "other",
        }
    }

    /// Whether it changes the files that it names.
    #[must_use]
    pub fn names_its_files(self) -> bool {
        matches!(self, Self::Edit | Self::Delete | Self::Move)
    }

    /// Whether it only looks.
    #[must_use]
    pub fn only_looks(self) -> bool {
        matches!(self, Self::Read | Self::Search | Self::Think)
    }
}

/// The state of an action that a guest reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestActionState {
    /// It has not begun.
    Pending,
    /// It runs.
    Running,
    /// It has worked.
    Completed,
    /// It has failed.
    Failed,
}

/// A change of a file that a guest shows when it asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestEdit {
    /// The file.
    pub path: PathBuf,
    /// The text that is replaced, the whole one or a part; absent for a new file.
    pub old: Option<String>,
    /// The text instead.
    pub new: String,
}

/// An action that a guest reports, or asks for; what it leaves out is as it was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuestAction {
    /// The guest's id of it.
    pub id: String,
    /// One line for people.
    pub title: Option<String>,
    /// Its kind.
    pub kind: Option<GuestActionKind>,
    /// Where it is.
    pub state: Option<GuestActionState>,
    /// Its arguments, in the guest's own form.
    pub input: Option<Value>,
    /// The files that it concerns.
    pub paths: Vec<PathBuf>,
    /// The changes of files that it consists of; empty where it does not show them all.
    pub edits: Vec<GuestEdit>,
    /// The text of its result.
    pub text: Option<String>,
}

/// Something that a guest reports.
#[derive(Clone, Debug, PartialEq)]
pub enum GuestReport {
    /// A piece of its answer.
    Text(String),
    /// A piece of its thinking.
    Thought(String),
    /// An action of its own.
    Action(GuestAction),
}

/// The answer to a guest that asks for permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestAnswer {
    /// It may, this once.
    Allowed,
    /// It may not.
    Denied,
    /// Its work was cancelled first.
    Cancelled,
}

/// The place where a guest's requests are answered.
#[async_trait]
pub trait GuestDesk: Send + Sync {
    /// The text of a file as the user sees it: from a line on, counted from 1, and at most `limit` lines.
    ///
    /// # Errors
    /// Why it is not shown.
    async fn read(&self, path: PathBuf, line: Option<u32>, limit: Option<u32>) -> Result<String, ToolError>;

    /// Gives a file a text.
    ///
    /// # Errors
    /// Why it was not changed, or not as the guest wants it.
    async fn write(&self, path: PathBuf, content: String) -> Result<(), ToolError>;

    /// Whether the guest may do something itself.
    async fn permit(&self, action: GuestAction) -> GuestAnswer;

    /// Takes a report in. Longer work is given back, and must be carried out before the guest's work counts as done.
    fn report(&self, report: GuestReport) -> Option<BoxFuture<'_, ()>>;
}

/// Runs guests.
#[async_trait]
pub trait GuestRunner: Send + Sync {
    /// Starts a guest, gives it its task, and answers it at `desk` until it has done it. Nothing of it runs afterwards. When
    /// `cancel` fires it is asked to stop, and has a few seconds for it.
    ///
    /// # Errors
    /// Why it could not be started, or broke off.
    async fn run(
        &self,
        job: GuestJob,
        desk: &dyn GuestDesk,
        cancel: &CancellationToken,
    ) -> Result<GuestEnd, ToolError>;
}
