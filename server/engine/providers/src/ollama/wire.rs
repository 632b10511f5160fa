//! The parts of Ollama's chat format that are read.
//!
//! Rule: absent fields and null are the same, and unknown ones are skipped, so that servers may say less or more.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A line of a streamed answer, or a whole one.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct OllamaLine {
    pub(super) message: Option<OllamaAnswerMessage>,
    #[serde(deserialize_with = "or_default")]
    pub(super) done: bool,
    pub(super) done_reason: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) prompt_eval_count: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) eval_count: u64,
    pub(super) error: Option<Value>,
}

/// New text, thinking and calls.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct OllamaAnswerMessage {
    #[serde(deserialize_with = "or_default")]
    pub(super) content: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) thinking: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) tool_calls: Vec<OllamaAnswerCall>,
}

/// A whole call.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct OllamaAnswerCall {
    #[serde(deserialize_with = "or_default")]
    pub(super) id: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) function: OllamaAnswerFunction,
}

/// The function of a call.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct OllamaAnswerFunction {
    #[serde(deserialize_with = "or_default")]
    pub(super) name: String,
    /// An object; some models write its JSON as text.
    pub(super) arguments: Value,
}

/// The value, or the default for null.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
