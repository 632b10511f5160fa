//! The options of a prompt for its own turn.
//!
//! Rule: `None` means the settings decide.

use serde::{Deserialize, Serialize};

use kode_config::budget::Budget;

/// Options of a prompt's turn; `None` falls back to the settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnOptions {
    /// The most model calls, as [`TurnLimit::of`] reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<i64>,
    /// Whether the prompt is answered twice, for the user to choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate_answers: Option<bool>,
    /// The profile of the sandbox that its commands run in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The budget of the turn.
    #[serde(flatten)]
    pub budget: Budget,
}

impl TurnOptions {
    /// Whether no option is set.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
