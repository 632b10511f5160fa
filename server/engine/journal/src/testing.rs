//! The records of the journal's own tests.

use serde::{Deserialize, Serialize};

use crate::JournalEntry;

/// A record without meaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum Note {
    /// A text.
    Text { text: String },
    /// A text that a later record repeats.
    Transient { text: String },
    /// The end of a test.
    Mark,
}

impl JournalEntry for Note {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Transient { .. })
    }

    fn may_have_payloads(&self) -> bool {
        false
    }

    fn payloads(&mut self) -> Vec<&mut String> {
        Vec::new()
    }

    fn replace_lost(&mut self, _: &dyn Fn(&str) -> bool) {}
}

/// A record with a text.
pub(crate) fn note(text: &str) -> Note {
    Note::Text { text: text.to_owned() }
}
