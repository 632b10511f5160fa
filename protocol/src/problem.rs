//! Problems of the user's files: agents, skills, commands and output styles.
//!
//! Rule: a problem names its file; whether the file is still used is a field, never only a sentence.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileProblem {
    /// The file's path.
    pub file: String,
    /// The problem, for people.
    pub message: String,
    /// Whether the file is left out; otherwise it is used, and something of it is not.
    #[serde(default)]
    pub severe: bool,
    /// The line in that file, from 1, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}
