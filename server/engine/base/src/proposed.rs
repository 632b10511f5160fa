//! The diagnostics that a change, or a part of it, adds and removes.
//!
//! Rule: text for people, made once where the diagnostics are compared; prompts and hunks carry it unchanged.

use serde::{Deserialize, Serialize};

/// The diagnostics that a change would add and remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProposedDiagnostics {
    /// Their numbers, such as `adds 2 errors, fixes 1 warning`.
    pub summary: String,
    /// The first of them, one a line: the place, the severity and the message.
    pub lines: Vec<String>,
}
