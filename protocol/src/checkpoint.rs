//! Checkpoints: what stood before each prompt, and how to bring it back.
//!
//! Rule: a restore can be checked before it is done and taken back afterwards, with `agent/edits/revert`; what it did
//! is reported by `edits_resolved`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{CheckpointId, ItemId, ResolutionId, SessionId, Timestamp, TurnId, Uri};

/// The session of the checkpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListCheckpointsParams {
    /// The session.
    pub session_id: SessionId,
}

/// The checkpoints of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListCheckpointsResult {
    /// The checkpoints, oldest first.
    pub checkpoints: Vec<Checkpoint>,
}

/// The state before a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// Names the checkpoint.
    pub checkpoint_id: CheckpointId,
    /// The turn of the prompt.
    pub turn_id: TurnId,
    /// The prompt in the transcript.
    pub item_id: ItemId,
    /// The beginning of the prompt.
    pub title: String,
    /// When the prompt came.
    pub timestamp: Timestamp,
    /// The files that were changed from then until the next checkpoint, by the agent or its commands.
    pub uris: Vec<Uri>,
    /// Files that a command changed and that cannot be restored, because they were too large or too many to be kept.
    pub uncovered: Vec<Uri>,
}

/// The parts to restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreCheckpointParams {
    /// The session.
    pub session_id: SessionId,
    /// The checkpoint.
    pub checkpoint_id: CheckpointId,
    /// The restored parts.
    pub what: RestoreWhat,
    /// The handling of the user's own changes since the checkpoint.
    #[serde(default)]
    pub user_edits: UserEdits,
    /// Whether to tell what would be done, and do nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// The parts that a restore brings back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UserEdits {
    /// They stay.
    #[default]
    Keep,
    /// They go: files become byte for byte what they were.
    Discard,
}

/// The outcome of a request to restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum RestoreCheckpointResult {
    /// The restore was started.
    Started(StartedRestore),
    /// The effect of a restore; nothing was done.
    Preview(RestorePreview),
}

/// A restore that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartedRestore {
    /// Names it in `edits_resolved`, and in `agent/edits/revert` when it is to be taken back.
    pub resolution_id: ResolutionId,
}

/// The effect of a restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestorePreview {
    /// The files that would change.
    pub files: Vec<RestoreFile>,
    /// Items of the transcript that would go.
    pub items: u64,
}

/// The effect of a restore on one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreFile {
    /// The file.
    pub uri: Uri,
    /// Its path or untitled URI, as shown to people.
    pub path: String,
    /// The changes, as a unified diff from the current text.
    pub unified: String,
    /// The user's own changes since the checkpoint, as a unified diff; absent if none exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_edits: Option<String>,
    /// Why it cannot be restored; absent when it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
