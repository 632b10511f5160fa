//! The parts of the Messages format that are read.
//!
//! Rule: absent fields are defaults and unknown ones are skipped, so that servers may say less or more; one flat
//! struct per event is read without an intermediate tree.

use serde::Deserialize;
use serde_json::Value;

/// An event whose name was left out.
#[derive(Deserialize)]
pub(super) struct TypedEvent {
    #[serde(rename = "type", default)]
    pub(super) kind: String,
}

/// `message_start`.
#[derive(Deserialize)]
pub(super) struct MessageStart {
    pub(super) message: MessagesMessage,
}

/// A message: the beginning of a streamed one, or a whole one.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct MessagesMessage {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) id: Option<String>,
    pub(super) content: Vec<WireBlock>,
    pub(super) stop_reason: Option<String>,
    pub(super) usage: MessagesUsage,
}

/// `content_block_start`.
#[derive(Deserialize)]
pub(super) struct BlockStart {
    pub(super) index: usize,
    pub(super) content_block: WireBlock,
}

/// A block, with the fields of all its types.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireBlock {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) text: String,
    pub(super) thinking: String,
    pub(super) signature: String,
    pub(super) data: String,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Value,
}

/// `content_block_delta`.
#[derive(Deserialize)]
pub(super) struct BlockDelta {
    pub(super) index: usize,
    pub(super) delta: WireDelta,
}

/// A piece of a block, with the fields of all its types.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireDelta {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) text: String,
    pub(super) thinking: String,
    pub(super) signature: String,
    pub(super) partial_json: String,
}

/// `content_block_stop`.
#[derive(Deserialize)]
pub(super) struct BlockStop {
    pub(super) index: usize,
}

/// `message_delta`.
#[derive(Deserialize)]
pub(super) struct MessageDelta {
    pub(super) delta: MessageChange,
    #[serde(default)]
    pub(super) usage: MessagesUsage,
}

/// The final fields of a message.
#[derive(Deserialize)]
pub(super) struct MessageChange {
    pub(super) stop_reason: Option<String>,
}

/// Token counts; each is absent where it has not changed.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct MessagesUsage {
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) cache_read_input_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
}
