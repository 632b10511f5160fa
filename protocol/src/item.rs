//! The items a transcript is made of.
//!
//! Rule: an item is replaced as a whole by `item_updated`, `tool:start` and `tool:end`; only its text grows piece by
//! piece.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallId, ItemId, TurnId};

/// One item of the transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Its id.
    pub id: ItemId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// When it was added, RFC 3339.
    pub timestamp: String,
    /// What it is.
    pub body: ItemBody,
}

/// What an item is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ItemBody {
    /// What the user asked.
    UserMessage {
        /// The text.
        text: String,
    },
    /// What the model said, in Markdown.
    AgentMessage {
        /// The text so far.
        text: String,
        /// Whether the text is whole.
        complete: bool,
        /// Whether it broke off.
        interrupted: bool,
    },
    /// What the model thought.
    Thinking {
        /// The text so far.
        text: String,
        /// Whether the text is whole.
        complete: bool,
    },
    /// A tool call.
    ToolCall(ToolCall),
    /// Something the user should know that nobody said.
    Notice {
        /// How serious it is.
        level: NoticeLevel,
        /// What happened.
        text: String,
        /// What to do next.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The call.
    pub call_id: CallId,
    /// The tool's name.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// What the tool does to the world; absent for an unknown tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_kind: Option<ToolKind>,
    /// The arguments.
    pub input: Value,
    /// Where the call is.
    pub state: CallState,
    /// The short result for people; empty while there is none.
    pub display: String,
    /// The result for machines, as the tool defines it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// The class of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolErrorKind>,
    /// When it began to run, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// When it ended, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Its states so far.
    pub audit: Vec<AuditEntry>,
}

/// A state a call was in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// The state.
    pub state: CallState,
    /// Since when, RFC 3339.
    pub at: String,
}

/// How serious a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something may need attention.
    Warning,
    /// Something failed.
    Error,
}

/// What a tool does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ToolKind {
    /// Looks only.
    ReadOnly,
    /// Changes files.
    Write,
    /// Runs something.
    Execute,
}

/// Where a tool call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CallState {
    /// Known, not running.
    Pending,
    /// Waits for the user.
    ApprovalRequired,
    /// Runs.
    Executing,
    /// Worked.
    Completed,
    /// Failed.
    Failed,
    /// Was refused.
    Denied,
    /// Was unfinished when the turn or the server ended.
    Sealed,
}

/// The classes of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ToolErrorKind {
    /// No tool has this name.
    UnknownTool,
    /// The arguments do not fit.
    InvalidInput,
    /// The file, folder or document is not there.
    NotFound,
    /// The file cannot be used, or lies where it must not.
    Forbidden,
    /// The text is not what the call took it for.
    Mismatch,
    /// The user's typing and the edit overlap.
    Conflict,
    /// A rule, a mode or the user said no.
    Denied,
    /// It took too long.
    Timeout,
    /// It was cancelled.
    Cancelled,
    /// It ran and failed.
    Failed,
}
