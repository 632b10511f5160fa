//! Turns: hand in a prompt, cancel.
//!
//! Rule: intents are small, answer at once, and carry ids made by the server.

use serde::{Deserialize, Serialize};

use crate::{CallId, QueueId, SessionId, TurnId};

/// Parameters of `agent/turn/start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StartParams {
    /// The session.
    pub session_id: SessionId,
    /// What the user asks, in order.
    pub input: Vec<Input>,
    /// What the editor shows while the user asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<EditorContext>,
}

/// A piece of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Input {
    /// What the user typed.
    Text {
        /// The text.
        text: String,
    },
    /// A file or folder the user points at.
    Mention {
        /// Its URI.
        uri: String,
    },
    /// Text the user has selected.
    Selection {
        /// URI of the document.
        uri: String,
        /// Where the selection is.
        range: Range,
        /// The selected text.
        text: String,
    },
}

/// A place in a document, in the position encoding negotiated by `initialize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Position {
    /// Line, from 0.
    pub line: u32,
    /// Offset in the line, from 0.
    pub character: u32,
}

/// A stretch of a document; the end is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Range {
    /// Where it begins.
    pub start: Position,
    /// Where it ends.
    pub end: Position,
}

/// What the editor shows while the user asks.
#[derive(Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EditorContext {
    /// URI of the document the user is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<String>,
    /// URIs of the documents that are visible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub visible: Vec<String>,
}

/// Result of `agent/turn/start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Started {
    /// The turn began.
    Started {
        /// The turn.
        turn_id: TurnId,
    },
    /// The prompt waits behind the running turn.
    Queued {
        /// Its place in the queue.
        queue_id: QueueId,
    },
}

/// Parameters of `agent/turn/cancel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CancelParams {
    /// The session.
    pub session_id: SessionId,
}

/// Parameters of `agent/tool/cancel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CancelCallParams {
    /// The session.
    pub session_id: SessionId,
    /// The call.
    pub call_id: CallId,
}

/// Result of a cancel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// Whether there was anything to cancel.
    pub cancelled: bool,
}
