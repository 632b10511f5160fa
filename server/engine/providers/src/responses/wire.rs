//! The parts of the Responses format that are read.
//!
//! Rule: absent and null fields are defaults and unknown ones are skipped, so that servers may say less or more; items
//! stay as they were written until their type is known.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Something of which only the type matters yet.
#[derive(Deserialize)]
pub(super) struct TypedObject {
    #[serde(rename = "type", default, deserialize_with = "or_default")]
    pub(super) kind: String,
}

/// An event about a part of an answer, with the fields of all those events.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireEvent {
    pub(super) output_index: Option<usize>,
    pub(super) item_id: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) content_index: usize,
    #[serde(deserialize_with = "or_default")]
    pub(super) summary_index: usize,
    #[serde(deserialize_with = "or_default")]
    pub(super) delta: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) text: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) refusal: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) arguments: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) input: String,
}

/// `response.output_item.added` and `.done`.
#[derive(Deserialize)]
pub(super) struct ItemEvent {
    #[serde(default)]
    pub(super) output_index: Option<usize>,
    pub(super) item: Box<RawValue>,
}

/// An event about the answer as a whole.
#[derive(Deserialize)]
pub(super) struct ResponseEvent {
    pub(super) response: WireResponse,
}

/// An answer: the beginning or the end of a streamed one, or a whole one.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireResponse {
    pub(super) object: Option<String>,
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) status: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) output: Vec<Box<RawValue>>,
    #[serde(deserialize_with = "or_default")]
    pub(super) incomplete_details: IncompleteDetails,
    pub(super) usage: Option<ResponsesUsage>,
    pub(super) error: Option<Value>,
}

/// Why an answer is incomplete.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct IncompleteDetails {
    #[serde(deserialize_with = "or_default")]
    pub(super) reason: String,
}

/// An item of an answer, with the fields of all known types.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireItem {
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(super) kind: String,
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) status: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) content: Vec<WirePart>,
    #[serde(deserialize_with = "or_default")]
    pub(super) summary: Vec<WirePart>,
    #[serde(deserialize_with = "or_default")]
    pub(super) encrypted_content: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) call_id: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) arguments: Value,
    #[serde(deserialize_with = "or_default")]
    pub(super) input: String,
}

/// A part of an item, with the fields of all known types.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WirePart {
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(super) kind: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) text: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) refusal: String,
}

/// Token counts; the cached and the reasoning ones are parts of the others.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ResponsesUsage {
    #[serde(deserialize_with = "or_default")]
    pub(super) input_tokens: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) input_tokens_details: InputDetails,
    #[serde(deserialize_with = "or_default")]
    pub(super) output_tokens: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) output_tokens_details: OutputDetails,
}

/// Of which kinds the input was.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct InputDetails {
    #[serde(deserialize_with = "or_default")]
    pub(super) cached_tokens: u64,
}

/// Of which kinds the output was.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct OutputDetails {
    #[serde(deserialize_with = "or_default")]
    pub(super) reasoning_tokens: u64,
}

fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}
