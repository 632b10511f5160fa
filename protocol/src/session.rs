//! Sessions: begin, list, load, end, configure.
//!
//! Rule: a snapshot and the events after its bookmark together are everything; a client that lost its view takes a
//! new snapshot and goes on from there.

use serde::{Deserialize, Serialize};

use crate::SessionId;
use crate::event::{QueuedPrompt, RunState, Usage};
use crate::item::Item;
use crate::permission::PermissionPrompt;

/// What the agent may do unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Reads run; edits and commands ask.
    Default,
    /// Reads and edits inside the workspace run; commands ask.
    AcceptEdits,
    /// Reads run; edits and commands are refused.
    Plan,
    /// Everything runs.
    BypassPermissions,
}

/// Parameters of `agent/session/new`. All of it may be left out.
#[derive(Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewParams {
    /// URI of the folder to work in; the workspace when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The mode to start in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Name of the model profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Parameters of `agent/session/list`.
#[derive(Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListParams {
    /// The most sessions to return, 1 to 1000; 50 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where an earlier list ended: its `nextCursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Result of `agent/session/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListResult {
    /// The sessions, newest first.
    pub sessions: Vec<SessionSummary>,
    /// Where to go on; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    /// The session.
    pub session_id: SessionId,
    /// What people call it; empty before the first prompt.
    pub title: String,
    /// When it was last written to, RFC 3339.
    pub updated: String,
    /// Whether it is live in this server.
    pub live: bool,
}

/// Parameters of `agent/session/load`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoadParams {
    /// The session.
    pub session_id: SessionId,
    /// The most items to return, newest first chosen; 200 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<u32>,
}

/// A session as it is: what all events up to the bookmark add up to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// The session.
    pub session_id: SessionId,
    /// What people call it; empty before the first prompt.
    pub title: String,
    /// The newest event that is in the snapshot; events up to it are to be ignored.
    pub bookmark: u64,
    /// What it is doing.
    pub state: RunState,
    /// Its mode.
    pub mode: Mode,
    /// The name of its model profile.
    pub model: String,
    /// The newest items, oldest first.
    pub items: Vec<Item>,
    /// Whether there are older items.
    pub more_items: bool,
    /// Prompts that wait for the user.
    pub pending_permissions: Vec<PermissionPrompt>,
    /// Prompts that wait for their turn, next first.
    pub queue: Vec<QueuedPrompt>,
    /// Tokens of all turns.
    pub usage: Usage,
}

/// Parameters of `agent/session/close`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CloseParams {
    /// The session.
    pub session_id: SessionId,
}

/// Parameters of `agent/session/configure`. What is absent stays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigureParams {
    /// The session.
    pub session_id: SessionId,
    /// The mode from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Name of the model profile from the next model call on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// A session's settings as they are now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// The mode.
    pub mode: Mode,
    /// Name of the model profile.
    pub model: String,
}
