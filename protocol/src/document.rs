//! Texts of a file that are neither on the disk nor in the editor: the sides of a diff.
//!
//! Rule: looking changes nothing; a file without hunks has the same text on all sides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{SessionId, Uri};

/// The session of the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocumentTextParams {
    /// The session; when absent, the newest live one that has hunks in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The file or document.
    pub uri: Uri,
}

/// A text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocumentText {
    /// The text; empty where there is no file.
    pub text: String,
    /// The version of the open document that it was made from; absent for a closed file, and for a followed session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i32>,
}
