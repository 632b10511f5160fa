//! The unsent prompt of a session.
//!
//! Rule: plain data.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The prompt that the user has not sent yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptDraft {
    /// The words.
    pub text: String,
    /// The attachments of them, as the client writes it; `null` for nothing.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub parts: Value,
}
