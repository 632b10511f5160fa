//! Side questions: answered from a conversation as it is, and no part of it.
//!
//! Rule: nothing of a question or its answer is in the transcript, in later requests or on the disk; only its tokens count.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{AskId, SessionId};
use crate::turn::Usage;

/// A side question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskSessionParams {
    /// The session whose conversation is asked about.
    pub session_id: SessionId,
    /// The question, at most 20,000 characters.
    pub question: String,
    /// An id of the client's own; with it the answer is streamed as `side_answer` events that have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_id: Option<AskId>,
}

/// The answer to a side question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskSessionResult {
    /// The answer in Markdown; it replaces what the events have streamed.
    pub answer: String,
    /// Whether it is the whole answer; false where a limit cut it.
    pub is_whole: bool,
    /// The model, as the provider knows it.
    pub model: String,
    /// The tokens that it took.
    pub usage: Usage,
    /// Their cost in US dollars by the prices of the day; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}
