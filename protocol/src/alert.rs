//! Alerts of a user who is not at the editor, and the focus of the editor.
//!
//! Rule: the server decides whether to alert; a client reports its focus, and rings a bell that it has offered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::SessionId;

/// Whether the editor is in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportFocusParams {
    /// Whether one of its windows has the focus.
    pub focused: bool,
}

/// The bell that a client is to ring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RingBellParams {
    /// The session.
    pub session_id: SessionId,
    /// The reason.
    pub reason: AlertReason,
}

/// Why the user is alerted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AlertReason {
    /// A turn ended.
    Ended,
    /// A permission prompt or a question waits.
    Waiting,
}

/// The client goes and may come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaveParams {}

/// The future of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaveResult {
    /// Whether it outlives the connection, because a turn runs.
    pub outlives: bool,
}
