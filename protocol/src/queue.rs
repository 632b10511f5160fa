//! The queue: prompts for their turn, messages to the running turn, and the unsent prompt.
//!
//! Rule: a prompt that was submitted is changed, moved or dropped only until it begins; a late request gets
//! `alreadyResolved`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{QueueId, SessionId, TurnId};
use crate::turn::InputPart;

/// A change of what waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateQueueParams {
    /// The session.
    pub session_id: SessionId,
    /// The change.
    pub op: QueueOp,
}

/// The change of a queued prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum QueueOp {
    /// It says something else.
    Edit(EditQueued),
    /// It is dropped.
    Remove(RemoveQueued),
    /// It waits in another place of the queue.
    Move(MoveQueued),
    /// It comes at once: it goes to the running turn, or begins its own when none runs.
    Promote(PromoteQueued),
}

/// Something that waits says something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditQueued {
    /// The queued prompts.
    pub queue_id: QueueId,
    /// The new words.
    pub text: String,
    /// The attachments of them; what went with them before when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<InputPart>>,
}

/// Something that waits is dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoveQueued {
    /// The queued prompts.
    pub queue_id: QueueId,
}

/// A prompt waits in another place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MoveQueued {
    /// The prompt.
    pub queue_id: QueueId,
    /// The one that comes after it from now on; it is the last when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<QueueId>,
}

/// A prompt comes at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromoteQueued {
    /// The prompt.
    pub queue_id: QueueId,
}

/// The result of a change of the queue; `queue_changed` has its new state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateQueueResult {
    /// The turn that was started, or that is reported, by a promotion; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
}

/// Keeps the unsent prompt of a session. It is bounded; the client sends it when typing rests, not with each key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetDraftParams {
    /// The session.
    pub session_id: SessionId,
    /// The words; with neither words nor parts there is no draft any more.
    pub text: String,
    /// The attachments of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<InputPart>,
}

/// The unsent prompt of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Draft {
    /// The words.
    pub text: String,
    /// The attachments of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<InputPart>,
}
