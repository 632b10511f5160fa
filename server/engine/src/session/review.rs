//! What the user sees of the agent's changes and does about them: hunks, resolutions, checkpoints.
//!
//! Rule: looking costs no disk and waits for nothing; acting answers at once with an id, and how it went is told by
//! an event.

use std::ops::Range;

use jiff::Timestamp;
use ropey::Rope;
use serde::{Deserialize, Serialize};

use crate::ids::{CallId, CheckpointId, HunkId, ItemId, PermissionId, ResolutionId, TurnId};
use crate::paths::Target;

/// Where a hunk is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HunkState {
    /// Asked for, not in the text.
    Proposed,
    /// In the text, not looked at yet.
    Applied,
    /// In the text for good: the user kept it, saved or committed the file.
    Kept,
    /// Not in the text: rejected or undone. It can be brought back.
    Undone,
    /// In the text, was to be undone, and the user's own changes stand in it: the user decides.
    Conflict,
}

/// What a hunk does to its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HunkKind {
    /// Changes lines.
    Text,
    /// Makes the file.
    Created,
    /// Deletes the file.
    Deleted,
    /// Replaces a file that is not text.
    Binary,
}

/// A hunk as it stands now.
#[derive(Clone, Debug, PartialEq)]
pub struct HunkView {
    /// Its id.
    pub id: HunkId,
    /// The turn it was made in.
    pub turn: TurnId,
    /// The call that made it.
    pub call: CallId,
    /// What it does to the file.
    pub kind: HunkKind,
    /// Where it is in its life.
    pub state: HunkState,
    /// The bytes of the text that it reaches over; empty where it only takes text away, or is not in the text.
    pub range: Range<usize>,
    /// The whole lines around `range`, counted from 0; empty when without the hunk there would be lines, and with it
    /// there are none.
    pub lines: Range<usize>,
    /// These lines without the hunk.
    pub old_text: String,
    /// These lines with the hunk.
    pub new_text: String,
    /// Whether the user has changed what the hunk put there.
    pub amended: bool,
    /// The prompt that asks about it, while it is proposed.
    pub permission: Option<PermissionId>,
}

/// The hunks of one file.
#[derive(Clone, Debug)]
pub struct FileReview {
    /// The file or document.
    pub target: Target,
    /// The text that the hunks' ranges count in.
    pub text: Rope,
    /// The version of the open document that has this text; `None` for a closed file.
    pub version: Option<i32>,
    /// The hunks in the order of their places.
    pub hunks: Vec<HunkView>,
}

/// Which hunks are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// These.
    Hunks(Vec<HunkId>),
    /// All of a file.
    File(Target),
    /// All of a turn.
    Turn(TurnId),
    /// All of the session.
    Session,
}

/// What the user does about hunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReviewAction {
    /// Puts proposed hunks into the text, and undone ones back into it.
    Accept,
    /// Drops proposed hunks, and takes applied ones out of the text.
    Reject,
    /// Leaves hunks in the text and off the list.
    Keep,
    /// Takes hunks out of the text, kept ones as well.
    Undo,
}

/// What undoing does where the user has changed what a hunk put there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Amended {
    /// Leaves the text alone and marks the hunk as a conflict.
    #[default]
    Ask,
    /// Takes out what is left of the agent's text, puts back what it replaced, and leaves the user's text there.
    Undo,
}

/// How a resolution went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolutionOutcome {
    /// The resolution.
    pub id: ResolutionId,
    /// What was done; `None` when an earlier resolution was taken back.
    pub action: Option<ReviewAction>,
    /// The hunks whose state is now what was asked for.
    pub resolved: Vec<HunkId>,
    /// The hunks that the user's own text stands in; they are [`HunkState::Conflict`] now.
    pub conflicts: Vec<HunkId>,
    /// The files that could not be changed, and why.
    pub failed: Vec<(Target, String)>,
}

/// Why nothing was begun.
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
    /// The settings say that files are not brought back.
    #[error(
        "files are not brought back: `fileCheckpointingEnabled` is false in the settings; restore the conversation alone"
    )]
    FilesOff,
    /// A turn runs.
    #[error("a turn is running; cancel it or wait for it")]
    Busy,
    /// The session was closed.
    #[error("the session is closed; load it again to go on")]
    Closed,
}

/// Which text of a file is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
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

/// What a restore brings back.
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

/// What becomes of the user's own changes since a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UserEdits {
    /// They stay.
    #[default]
    Keep,
    /// They go: files become byte for byte what they were.
    Discard,
}

/// What a restore would do to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreFile {
    /// The file.
    pub target: Target,
    /// What would change, as a unified diff from the text as it is.
    pub unified: String,
    /// The user's own changes since the checkpoint, as a unified diff; empty when there are none.
    pub user_edits: String,
    /// Why it cannot be restored, if it cannot.
    pub problem: Option<String>,
}

/// What a restore would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestorePreview {
    /// The files that would change.
    pub files: Vec<RestoreFile>,
    /// Items of the transcript that would go.
    pub items: usize,
}

impl ReviewAction {
    /// The action as a verb.
    #[must_use]
    pub fn verb(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Reject => "reject",
            Self::Keep => "keep",
            Self::Undo => "undo",
        }
    }
}
