//! How full the context window of a conversation is.
//!
//! Rule: plain data; counts are tokens.

use serde::{Deserialize, Serialize};

use crate::tokens::CountSource;
use kode_model::UsageWindow;

/// How full a context window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextUse {
    /// Tokens of the next request.
    pub tokens: u64,
    /// How the number came about.
    pub source: CountSource,
    /// Tokens the model can read.
    pub window: u64,
    /// The number of tokens from which on the conversation is compacted; `None` when that is switched off.
    pub trigger: Option<u64>,
    /// Tokens that are kept free for the answer.
    pub reserved: u64,
    /// The source of the number.
    pub parts: ContextParts,
}

/// The parts of a request, in tokens. The parts are counted and corrected; they add up to the whole but for rounding
/// and for what a provider adds of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextParts {
    /// The system prompt without memory files.
    pub system: u64,
    /// The tools.
    pub tools: u64,
    /// Instructions from files of the user and the project.
    pub memory: u64,
    /// The user's prompt and the text sent with it.
    pub user: u64,
    /// The model's text.
    pub assistant: u64,
    /// Results of tools.
    pub results: u64,
    /// Pictures.
    pub images: u64,
    /// The summary of compacted messages, with the files beside it.
    pub summary: u64,
}

impl ContextUse {
    /// Tokens that are neither taken nor kept free for the answer.
    #[must_use]
    pub fn free(&self) -> u64 {
        self.window.saturating_sub(self.tokens).saturating_sub(self.reserved)
    }
}

/// How fast a provider answered, and how much of its limits is used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pace {
    /// Tokens of output a second, from the first piece of the answer to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_second: Option<f64>,
    /// Milliseconds from the request to the end of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// The provider's limits, as far as it states them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<UsageWindow>,
}

impl Pace {
    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tokens_per_second.is_none() && self.took_ms.is_none() && self.limits.is_empty()
    }
}
