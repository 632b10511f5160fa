//! Signatures of Gemini's parts, as blocks keep them.
//!
//! Rule: a signature stays with its very part: it says which part of the text that follows was signed, or that the call
//! that follows was.

use serde::{Deserialize, Serialize};

use kode_model::Block;

/// A signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GeminiSeal {
    /// Of the call that follows.
    CallSignature(String),
    /// Of the end of the text that follows.
    TextSignature {
        /// The signature.
        signature: String,
        /// The length of the signed part in bytes; 0 for an empty part after the text.
        tail: usize,
    },
}

impl GeminiSeal {
    /// The signature in a block; `None` for blocks of other kinds and of other wire formats.
    pub(super) fn of(block: &Block) -> Option<Self> {
        let Block::RedactedThinking { data } = block else { return None };
        serde_json::from_str(data).ok()
    }

    /// The block that keeps the signature.
    pub(super) fn into_block(self) -> Option<Block> {
        serde_json::to_string(&self).ok().map(|data| Block::RedactedThinking { data })
    }
}
