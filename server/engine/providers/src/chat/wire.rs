//! The parts of the Chat Completions format that are read.
//!
//! Rule: absent fields and null are the same, and unknown ones are skipped, so that servers may say less or more.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::sealed::ProviderFields;

/// A piece of a streamed answer, or a whole one.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ChatChunk {
    pub(super) object: Option<String>,
    pub(super) id: Option<String>,
    /// Absent in other messages.
    pub(super) choices: Option<Vec<ChatChoice>>,
    pub(super) usage: Option<ChatUsage>,
    pub(super) error: Option<Value>,
}

/// One of the answers that were asked for; only one ever is.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ChatChoice {
    #[serde(deserialize_with = "or_default")]
    pub(super) index: u64,
    pub(super) delta: Option<ChoiceDelta>,
    pub(super) message: Option<ChoiceDelta>,
    pub(super) finish_reason: Option<String>,
}

/// The new part of an answer, or all of it.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ChoiceDelta {
    /// A text, or a list of typed parts.
    pub(super) content: Value,
    pub(super) reasoning_content: Option<String>,
    /// The name of others for it; some send an object here, which says nothing to show.
    pub(super) reasoning: Value,
    pub(super) refusal: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) tool_calls: Vec<WireCall>,
    /// The form before there were several calls in one answer.
    pub(super) function_call: Option<WireFunction>,
    /// Reasoning that OpenRouter wants back, in elements or in pieces of elements.
    #[serde(deserialize_with = "or_default")]
    pub(super) reasoning_details: Vec<Value>,
    #[serde(flatten)]
    pub(super) extra: ProviderFields,
}

/// A call, or a piece of one.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireCall {
    pub(super) index: Option<usize>,
    pub(super) id: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) function: Option<WireFunction>,
    #[serde(flatten)]
    pub(super) extra: ProviderFields,
}

/// The function of a call.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireFunction {
    pub(super) name: Option<String>,
    /// JSON as text; some servers send the object itself.
    pub(super) arguments: Value,
}

/// Token counts.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ChatUsage {
    #[serde(deserialize_with = "or_default")]
    pub(super) prompt_tokens: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) completion_tokens: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) total_tokens: u64,
    pub(super) prompt_tokens_details: Option<PromptDetails>,
    pub(super) completion_tokens_details: Option<CompletionDetails>,
    /// Where one server says what others say in the details.
    pub(super) prompt_cache_hit_tokens: Option<u64>,
}

/// The details of the prompt's tokens.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct PromptDetails {
    pub(super) cached_tokens: Option<u64>,
}

/// The details of the answer's tokens.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct CompletionDetails {
    pub(super) reasoning_tokens: Option<u64>,
}

/// The value, or the default for null.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
