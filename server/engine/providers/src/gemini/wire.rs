//! The parts of Gemini's format that are read.
//!
//! Rule: absent fields and null are the same, and unknown ones are skipped, so that servers may say less or more.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A piece of a streamed answer, or a whole one.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct GeminiChunk {
    pub(super) candidates: Option<Vec<GeminiCandidate>>,
    pub(super) prompt_feedback: Option<PromptFeedback>,
    pub(super) usage_metadata: Option<GeminiUsage>,
    pub(super) response_id: Option<String>,
    pub(super) error: Option<Value>,
}

/// One of the answers that were asked for; only one ever is.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct GeminiCandidate {
    #[serde(deserialize_with = "or_default")]
    pub(super) index: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) content: CandidateContent,
    pub(super) finish_reason: Option<String>,
    pub(super) finish_message: Option<String>,
}

/// New parts of the answer.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct CandidateContent {
    #[serde(deserialize_with = "or_default")]
    pub(super) parts: Vec<CandidatePart>,
}

/// A part, with the fields of all known types.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CandidatePart {
    pub(super) text: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) thought: bool,
    #[serde(alias = "thought_signature")]
    pub(super) thought_signature: Option<String>,
    pub(super) function_call: Option<GeminiCall>,
}

/// A call.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct GeminiCall {
    #[serde(deserialize_with = "or_default")]
    pub(super) id: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) name: String,
    pub(super) args: Value,
}

/// Why a prompt was not answered.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PromptFeedback {
    pub(super) block_reason: Option<String>,
    pub(super) block_reason_message: Option<String>,
}

/// Token counts. Those of the prompt include the cached ones; those of the candidates exclude thoughts.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct GeminiUsage {
    #[serde(deserialize_with = "or_default")]
    pub(super) prompt_token_count: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) candidates_token_count: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) thoughts_token_count: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) cached_content_token_count: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) tool_use_prompt_token_count: u64,
}

/// The value, or the default for null.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
