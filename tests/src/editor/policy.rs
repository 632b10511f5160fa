//! The typing of the user, and how an editor handles an edit of the agent: as real clients do, or as bad ones do.
//!
//! Rule: a place is looked up when the user types, so that a test states it before the text is known.

use super::Change;

/// Something the user does with the keyboard, at a place that is looked up when it happens.
#[derive(Clone, Debug)]
pub struct Typing {
    place: Place,
    pub(super) insert: String,
}

#[derive(Clone, Debug)]
enum Place {
    Before(String),
    After(String),
    At(u16),
    Lowercase(u16),
    Visible(u16),
}

impl Typing {
    /// Types in front of the first `place`.
    #[must_use]
    pub fn before(place: &str, insert: &str) -> Self {
        Self { place: Place::Before(place.to_owned()), insert: insert.to_owned() }
    }

    /// Types behind the first `place`.
    #[must_use]
    pub fn after(place: &str, insert: &str) -> Self {
        Self { place: Place::After(place.to_owned()), insert: insert.to_owned() }
    }

    /// Types at this share of the text: 0 is its start, [`u16::MAX`] its end.
    #[must_use]
    pub fn at(share: u16, insert: &str) -> Self {
        Self { place: Place::At(share), insert: insert.to_owned() }
    }

    /// Deletes the first lowercase ASCII letter behind this share of the text, if there is one.
    #[must_use]
    pub fn delete_lowercase(share: u16) -> Self {
        Self { place: Place::Lowercase(share), insert: String::new() }
    }

    /// Deletes the first character behind this share of the text that is no white space, if there is one.
    #[must_use]
    pub fn delete(share: u16) -> Self {
        Self { place: Place::Visible(share), insert: String::new() }
    }

    /// The change of this text that it makes.
    pub(super) fn change(&self, text: &str) -> Change {
        let find = |place: &str| {
            let found = text.find(place);
            found.unwrap_or_else(|| panic!("no {place:?} to type at in {text:?}"))
        };
        let at = |share: u16| {
            let mut place = text.len() * usize::from(share) / usize::from(u16::MAX);
            while !text.is_char_boundary(place) {
                place -= 1;
            }
            place
        };
        let range = match &self.place {
            Place::Before(place) => find(place)..find(place),
            Place::After(place) => find(place) + place.len()..find(place) + place.len(),
            Place::At(share) => at(*share)..at(*share),
            Place::Visible(share) => {
                let start = at(*share);
                let found = text[start..].char_indices().find(|(_, char)| !char.is_whitespace());
                found.map_or(start..start, |(place, char)| start + place..start + place + char.len_utf8())
            }
            Place::Lowercase(share) => {
                let start = at(*share);
                match text[start..].find(|char: char| char.is_ascii_lowercase()) {
                    Some(letter) => start + letter..start + letter + 1,
                    None => start..start,
                }
            }
        };
        (range, self.insert.clone())
    }
}

/// The editor's handling of an agent's edit.
#[derive(Clone, Debug)]
pub enum Policy {
    /// Applies it when the version fits, notifies, then answers: what a good client does.
    Apply,
    /// Answers first and notifies afterwards.
    AnswerFirst,
    /// Refuses with a reason.
    Reject(String),
    /// Applies nothing and never answers.
    Ignore,
    /// Applies it but never answers.
    NeverAnswer,
    /// Says that it was applied, and does nothing.
    Lie,
    /// The user types before the edit arrives, so that its version is stale; then as [`Policy::Apply`].
    TypeFirst(Vec<Typing>),
    /// Applies it; the user's typing is in the same notification.
    TypeInBatch(Vec<Typing>),
    /// Applies it and notifies; the user types before the answer.
    TypeThenAnswer(Vec<Typing>),
    /// Applies it and sends the whole text with the user's typing in it, as one change that skips versions.
    TypeInWhole(Vec<Typing>),
    /// Applies it and sends one notification for each of its places.
    InPieces,
    /// Applies the first of its places alone, and answers that it has failed.
    Partly,
    /// Applies it, and one of its places once more as if the text were still the old one: an editor with a fault.
    Twice,
    /// The user closes the document before the edit arrives, and the editor refuses it.
    CloseFirst,
    /// The user renames the file before the edit arrives: the document is open under this URI, and the editor refuses the edit.
    RenameFirst(String),
    /// Applies it, and answers only when the document changes again or [`Editor::answer_late`] is called.
    AnswerLate,
    /// Applies it, and is gone before the server is notified.
    HangUp,
}

/// Why an editor saves a document, in the protocol's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveReason {
    /// A person has asked for it.
    Manual = 1,
    /// Some time has passed.
    AfterDelay = 2,
    /// The document is no longer checked.
    FocusOut = 3,
}
