//! What the agent has changed in a session, file by file.
//!
//! Rule: counts and diffs tell what each call did when it was applied, not what the file holds now.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{CallId, SessionId, TurnId, Uri};

/// Whose edits are listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListEditsParams {
    /// The session.
    pub session_id: SessionId,
}

/// What a session has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListEditsResult {
    /// The files and documents, the one first changed first.
    pub files: Vec<EditedFile>,
}

/// A file or document that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditedFile {
    /// The file or document.
    pub uri: Uri,
    /// Its path or untitled URI, as shown to people.
    pub path: String,
    /// Lines added by all changes.
    pub added: u64,
    /// Lines removed by all changes.
    pub removed: u64,
    /// The changes, oldest first.
    pub changes: Vec<EditChange>,
}

/// What one call changed in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditChange {
    /// The call.
    pub call_id: CallId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The change as a unified diff.
    pub unified: String,
}

/// What the user does about hunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// A file that could not be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditFailure {
    /// The file or document.
    pub uri: Uri,
    /// Why not, for people.
    pub reason: String,
}
