//! The change set: what a tool wants done to files, as a value that knows the text it was computed on.
//!
//! Rule: edits are byte ranges of the base text, sorted and not overlapping; applying them to any other text is
//! refused or goes through a rebase first, never tried and hoped for.

use std::ops::Range;
use std::sync::Arc;

use ropey::Rope;
use serde::{Deserialize, Serialize};

use crate::document::DocumentSnapshot;
use crate::file_text::FileText;
use kode_base::encoding::TextFormat;
use kode_base::paths::Target;

/// One replacement: the bytes `range` of the base text become `new_text`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextEdit {
    /// Byte range in the base text, on character boundaries.
    pub range: Range<usize>,
    /// The resulting text, taken literally.
    pub new_text: String,
}

/// Everything one tool call wants changed. Applied as one labelled undo step per open document; of the agent's changes all
/// are made or none.
#[derive(Clone, Debug)]
pub struct ChangeSet {
    /// The name of the undo step, for example `Kode: Edit src/main.rs`.
    pub label: String,
    /// The first text of the tool's result, for example `Replaced 3 occurrences`.
    pub summary: String,
    /// The files, each at most once.
    pub files: Vec<FileChange>,
    /// The files that are removed once the others are changed.
    pub removals: Vec<FileRemoval>,
    /// The author of the changes.
    pub author: Author,
}

/// The removal of one file, which may have been moved.
#[derive(Clone, Debug)]
pub struct FileRemoval {
    /// The file.
    pub target: Target,
    /// Its text when the removal was planned: a file with another text stays.
    pub base: FileText,
    /// The file of the same change that takes its place, with its encoding and mode bits.
    pub moved_to: Option<Target>,
}

/// The author of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// The agent: it knows the text afterwards as well as it knew it before.
    Agent,
    /// The user, who takes back or restores what the agent did: the agent must read the text again.
    User,
}

/// The change to one file or open document.
#[derive(Clone, Debug)]
pub struct FileChange {
    /// The target of the change.
    pub target: Target,
    /// The text the edits were computed on; `None` when the file did not exist and is created.
    pub base: Option<FileText>,
    /// The edits. For a new file: one insertion at 0.
    pub edits: Vec<TextEdit>,
}

impl FileChange {
    /// The text before, empty for a new file.
    #[must_use]
    pub fn old_text(&self) -> &str {
        self.base.as_ref().map_or("", |base| &base.text)
    }

    /// The text the edits aim at.
    #[must_use]
    pub fn new_text(&self) -> String {
        apply_edits(self.old_text(), &self.edits)
    }
}

/// The outcome of one file of a change set.
#[derive(Clone, Debug)]
pub struct AppliedFile {
    /// The target of the change.
    pub target: Target,
    /// Whether the file was made by this change.
    pub created: bool,
    /// The text just before, with the user's typing up to that moment.
    pub old_text: String,
    /// The text just after.
    pub new_text: String,
    /// How often the change had to be computed again because the text had moved under it.
    pub rebased: u32,
    /// How it is written on disk; `None` for an open document, which its editor writes.
    pub format: Option<TextFormat>,
    /// The changed range, in bytes of `old_text`.
    pub edits: Vec<TextEdit>,
    /// The open document at the moment it showed the change, perhaps with more of the user's typing; `None` for a
    /// closed file, and when nothing had to be changed.
    pub shown: Option<DocumentSnapshot>,
    /// The file just before, byte for byte; `None` for an open document and for a file that was not there.
    pub bytes: Option<Arc<[u8]>>,
}

/// Applies sorted, non-overlapping edits to the text they were computed on.
#[must_use]
pub fn apply_edits(text: &str, edits: &[TextEdit]) -> String {
    let grown: usize = edits.iter().map(|edit| edit.new_text.len()).sum();
    let mut result = String::with_capacity(text.len() + grown);
    let mut position = 0;
    for edit in edits {
        result.push_str(&text[position..edit.range.start]);
        result.push_str(&edit.new_text);
        position = edit.range.end;
    }
    result.push_str(&text[position..]);
    result
}

/// Applies sorted, non-overlapping byte edits to a rope.
pub fn edit_rope(text: &mut Rope, edits: &[TextEdit]) {
    for edit in edits.iter().rev() {
        let start = text.byte_to_char(edit.range.start);
        text.remove(start..text.byte_to_char(edit.range.end));
        text.insert(start, &edit.new_text);
    }
}
