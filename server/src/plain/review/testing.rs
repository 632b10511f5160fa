//! Reviews built by hand, for tests.
//!
//! Rule: a hunk's byte range is found by its text, so that a test shows text and not numbers.

use std::ops::Range;

use kode_engine::base::ids::{CallId, HunkId, SessionId, TurnId};
use kode_engine::base::paths::{AbsPath, Target};
use kode_engine::text::edit::ledger::review::{FileReview, HunkKind, HunkState, HunkView};
use ropey::Rope;

use super::SessionReview;

/// The path of the file that [`file`] makes.
pub(crate) const PATH: &str = "/w/src/a.rs";

/// A file in version 1 without hunks.
pub(crate) fn file(text: &str) -> FileReview {
    FileReview {
        target: Target::File(AbsPath::new(PATH).unwrap()),
        text: Rope::from_str(text),
        version: Some(1),
        hunks: Vec::new(),
        diagnostics: None,
    }
}

/// A hunk without a place.
pub(crate) fn hunk(state: HunkState, old_text: &str, new_text: &str) -> HunkView {
    HunkView {
        id: HunkId::generate(),
        turn: TurnId::generate(),
        call: CallId::from_external("call_1"),
        kind: HunkKind::Text,
        state,
        range: 0..0,
        lines: 0..0,
        old_text: old_text.to_owned(),
        new_text: new_text.to_owned(),
        amended: false,
        permission: None,
        diagnostics: None,
    }
}

/// Adds hunks to a file.
pub(crate) trait WithHunks: Sized {
    /// Adds a hunk.
    fn with(self, hunk: HunkView) -> Self;

    /// Adds a hunk that has put `new` into the text.
    fn applied(self, new: &str, old: &str, lines: Range<usize>) -> Self;

    /// Adds a hunk that has taken lines away.
    fn removed(self, old: &str, line: usize) -> Self;

    /// Adds a hunk that would replace the lines from `line` on.
    fn proposed(self, old: &str, new: &str, line: usize) -> Self;

    /// Turns the last hunk into a conflict.
    fn in_conflict(self) -> Self;
}

impl WithHunks for FileReview {
    fn with(mut self, hunk: HunkView) -> Self {
        self.hunks.push(hunk);
        self
    }

    fn applied(self, new: &str, old: &str, lines: Range<usize>) -> Self {
        let start = self.text.to_string().find(new).unwrap();
        let hunk = HunkView { range: start..start + new.len(), lines, ..hunk(HunkState::Applied, old, new) };
        self.with(hunk)
    }

    fn removed(self, old: &str, line: usize) -> Self {
        let start = self.text.try_line_to_byte(line).unwrap_or(self.text.len_bytes());
        let hunk = HunkView { range: start..start, lines: line..line, ..hunk(HunkState::Applied, old, "") };
        self.with(hunk)
    }

    fn proposed(self, old: &str, new: &str, line: usize) -> Self {
        let start = self.text.line_to_byte(line);
        let hunk =
            HunkView { range: start..start, lines: line..line + 1, ..hunk(HunkState::Proposed, old, new) };
        self.with(hunk)
    }

    fn in_conflict(mut self) -> Self {
        self.hunks.last_mut().unwrap().state = HunkState::Conflict;
        self
    }
}

/// The file as the only one of a session.
pub(crate) fn session(title: &str, file: FileReview) -> SessionReview {
    SessionReview { session: SessionId::generate(), title: title.to_owned(), file }
}
