//! What the agent has changed.
//!
//! Rule: only changes that were seen in the document or on disk are listed.

use serde::{Deserialize, Serialize};

use crate::{CallId, SessionId, TurnId};

/// Parameters of `agent/edits/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListParams {
    /// The session.
    pub session_id: SessionId,
}

/// Result of `agent/edits/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListResult {
    /// The files, in the order in which they were first changed.
    pub files: Vec<EditedFile>,
}

/// A file or untitled document the agent has changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EditedFile {
    /// Its URI.
    pub uri: String,
    /// Its path as shown to people.
    pub path: String,
    /// Lines added by all changes together.
    pub added: u64,
    /// Lines removed by all changes together.
    pub removed: u64,
    /// The changes, oldest first.
    pub changes: Vec<Change>,
}

/// One change of one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The call that made it.
    pub call_id: CallId,
    /// The turn it was made in.
    pub turn_id: TurnId,
    /// The change as a unified diff.
    pub unified: String,
}
