//! The user's view of the agent's changes: hunks, resolutions, checkpoints.
//!
//! Rule: looking costs no disk and waits for nothing; acting answers at once with an id, and how it went is reported by
//! an event.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::core::Busy;
use kode_base::ids::{CheckpointId, HunkId, ItemId, TurnId};
use kode_base::paths::Target;

/// The effect of an undo where the user has changed the text of a hunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AmendedPolicy {
    /// Leaves the text alone and marks the hunk as a conflict.
    #[default]
    Ask,
    /// Removes the rest of the agent's text, restores the text it replaced, and keeps the user's.
    Undo,
}

/// Why nothing was started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// No such hunk.
    #[error("there is no hunk `{0}` in this session")]
    UnknownHunk(HunkId),
    /// No such resolution, or it was taken back already.
    #[error("there is no resolution to take back")]
    UnknownResolution,
    /// No hunk for which the action makes sense.
    #[error("there is nothing to {action}")]
    Nothing {
        /// The action, as a verb.
        action: &'static str,
    },
    /// No such checkpoint.
    #[error("there is no checkpoint `{0}` in this session")]
    UnknownCheckpoint(CheckpointId),
    /// The settings disable restoring files.
    #[error(
        "files are not brought back: `fileCheckpointingEnabled` is false in the settings; restore the conversation alone"
    )]
    FilesOff,
    /// A turn runs.
    #[error("a turn is running; cancel it or wait for it")]
    Busy,
    /// The session was closed.
    #[error("the session is closed; load it again to continue")]
    Closed,
}

impl From<Busy> for ResolveError {
    fn from(_: Busy) -> Self {
        Self::Busy
    }
}

/// Which text of a file is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewSide {
    /// Without the hunks that are neither kept nor undone.
    Baseline,
    /// As it is.
    Current,
    /// With the proposed hunks.
    Proposed,
}

/// A checkpoint: the state before a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointView {
    /// Its id.
    pub id: CheckpointId,
    /// The turn of the prompt.
    pub turn: TurnId,
    /// The prompt in the transcript.
    pub item: ItemId,
    /// The beginning of the prompt.
    pub title: String,
    /// When the prompt came.
    pub timestamp: Timestamp,
    /// The files that were changed from then until the next checkpoint, by the agent or its commands.
    pub targets: Vec<Target>,
    /// Files that a command changed and that cannot be restored, because they were too large or too many to be kept.
    pub uncovered: Vec<Target>,
}

/// The scope of a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RestoreWhat {
    /// The conversation.
    Conversation,
    /// The files.
    Files,
    /// Both.
    Both,
}

/// The handling of the user's own changes since a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UserEdits {
    /// They stay.
    #[default]
    Keep,
    /// They are discarded: files are restored byte for byte.
    Discard,
}

/// The effect of a restore on one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreFile {
    /// The file.
    pub target: Target,
    /// The change, as a unified diff from the current text.
    pub unified: String,
    /// The user's own changes since the checkpoint, as a unified diff; empty if none exist.
    pub user_edits: String,
    /// Why it cannot be restored, if it cannot.
    pub problem: Option<String>,
}

/// The effect of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestorePreview {
    /// The files that would change.
    pub files: Vec<RestoreFile>,
    /// Items of the transcript that would go.
    pub items: usize,
}
