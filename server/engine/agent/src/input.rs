//! What a prompt is made of: the words of the user, and what they point at.
//!
//! Rule: a prompt is in the journal as it was handed in before anything is looked up for it; what it points at is
//! read when its turn begins, so that a prompt that waited sees the files as they are then.

mod attach;
pub mod complete;
mod look_up;
pub mod mention;
pub mod note;
mod render;

use serde::{Deserialize, Serialize};

use kode_record::options::TurnOptions;
use kode_record::prompt::PromptPart;

/// What the user asks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// The text, as shown in the transcript.
    pub text: String,
    /// What goes with it to the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PromptPart>,
    /// How its turn goes.
    #[serde(default, skip_serializing_if = "TurnOptions::is_default")]
    pub options: TurnOptions,
}

impl Prompt {
    /// A prompt of words alone.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Whether nothing is asked: what the editor shows is no question.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.parts.iter().all(|part| matches!(part, PromptPart::Editor(_)))
    }
}
