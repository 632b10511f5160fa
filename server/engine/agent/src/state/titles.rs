//! The title of a session: the first line of its first prompt, a model's suggestion, or the user's own words.
//!
//! Rule: only the user replaces a title of the user's. A model's title belongs to the conversation it was made for.

use serde::{Deserialize, Serialize};

use kode_record::event::Event;
use kode_record::title::TitledBy;

/// The longest title a user can give, in characters.
pub const MAX_TITLE: usize = 200;

/// The longest title made from a prompt, in characters.
const TITLE_LIMIT: usize = 80;

/// Why a title was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TitleError {
    /// It has no visible character.
    #[error("a title needs at least one character that can be seen")]
    Empty,
    /// It is too long.
    #[error("a title has at most {MAX_TITLE} characters")]
    TooLong,
    /// The session was closed.
    #[error("the session is closed; load it again to continue")]
    Closed,
}

/// A title as it is stored: one line without needless space.
///
/// # Errors
/// [`TitleError::Empty`] and [`TitleError::TooLong`].
pub fn tidy(title: &str) -> Result<String, TitleError> {
    let seen: String = title.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    let title = seen.split_whitespace().collect::<Vec<_>>().join(" ");
    match title.chars().count() {
        0 => Err(TitleError::Empty),
        count if count > MAX_TITLE => Err(TitleError::TooLong),
        _ => Ok(title),
    }
}

/// A title from the first line of a prompt.
pub(crate) fn title_from(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(TITLE_LIMIT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// The title of a session as its records add up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTitle {
    /// The title; empty before the first prompt.
    pub text: String,
    /// The author of the title; `None` for the first line of the first prompt.
    pub by: Option<TitledBy>,
}

impl SessionTitle {
    /// Sets a title, unless a model would replace the user's.
    pub(super) fn set(&mut self, text: String, by: TitledBy) -> Option<Event> {
        if by == TitledBy::Model && self.is_users() {
            return None;
        }
        *self = Self { text, by: Some(by) };
        Some(self.event())
    }

    /// Names a session that has no title after its first prompt.
    pub(super) fn name_after(&mut self, prompt: &str) -> Option<Event> {
        if !self.text.is_empty() {
            return None;
        }
        self.text = title_from(prompt);
        (!self.text.is_empty()).then(|| self.event())
    }

    /// Names a session again whose conversation went back: after `first`, the title of the first prompt that is left.
    /// A model's title stays while `has_items`.
    pub(super) fn rename_after(&mut self, first: Option<&str>, has_items: bool) -> Option<Event> {
        if self.is_users() || (self.by.is_some() && has_items) {
            return None;
        }
        let text = first.unwrap_or_default().to_owned();
        let has_changed = text != self.text;
        *self = Self { text, by: None };
        has_changed.then(|| self.event())
    }

    /// Restores the title of before a rewind. A title that the user has given since stays.
    pub(super) fn restore(&mut self, before: Self) -> Option<Event> {
        if self.is_users() || self.text == before.text {
            return None;
        }
        *self = before;
        Some(self.event())
    }

    fn is_users(&self) -> bool {
        self.by == Some(TitledBy::User)
    }

    fn event(&self) -> Event {
        Event::TitleChanged { title: self.text.clone(), by: self.by }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_line_of_bounded_length() {
        assert_eq!(tidy("  two\n words\u{7} "), Ok("two words".to_owned()));
        assert_eq!(tidy(" \n\t"), Err(TitleError::Empty));
        assert_eq!(tidy(&"é".repeat(MAX_TITLE)).map(|title| title.chars().count()), Ok(MAX_TITLE));
        assert_eq!(tidy(&"é".repeat(MAX_TITLE + 1)), Err(TitleError::TooLong));
    }
}
