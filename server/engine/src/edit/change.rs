//! The change set: what a tool wants done to files, as a value that knows the text it was computed on.
//!
//! Rule: edits are byte ranges of the base text, sorted and not overlapping; applying them to any other text is
//! refused or goes through a rebase first, never tried and hoped for.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::host::DocumentSnapshot;
use crate::paths::Target;
use crate::workspace::FileText;
use crate::workspace::encoding::TextFormat;

/// One replacement: the bytes `range` of the base text become `new_text`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextEdit {
    /// Byte range in the base text, on character boundaries.
    pub range: Range<usize>,
    /// What stands there afterwards, taken literally.
    pub new_text: String,
}

/// Everything one tool call wants changed. Applied as one labelled undo step per open document.
#[derive(Clone, Debug)]
pub struct ChangeSet {
    /// The name of the undo step, for example `Kode: Edit src/main.rs`.
    pub label: String,
    /// What the tool wants said first in its result, for example `Replaced 3 occurrences`.
    pub summary: String,
    /// The files, each at most once.
    pub files: Vec<FileChange>,
    /// Who changes them.
    pub author: Author,
}

/// Who changes a text.
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
    /// What is changed.
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

/// What became of one file of a change set.
#[derive(Clone, Debug)]
pub struct AppliedFile {
    /// What was changed.
    pub target: Target,
    /// Whether the file was made by this change.
    pub created: bool,
    /// The text just before, with the user's typing up to that moment.
    pub old_text: String,
    /// The text just after.
    pub new_text: String,
    /// How often the change had to be computed anew because the text had moved under it.
    pub rebased: u32,
    /// How it is written on disk; `None` for an open document, which its editor writes.
    pub format: Option<TextFormat>,
    /// What was changed, in bytes of `old_text`.
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

/// The edits of a text that come to the same as `first`, which lead to `middle`, and then `second`: sorted, neither
/// overlapping nor touching.
#[must_use]
pub fn compose_edits(first: &[TextEdit], middle: &str, second: &[TextEdit]) -> Vec<TextEdit> {
    let (mut first, mut second) = (first.iter().peekable(), second.iter().peekable());
    let mut composed = Vec::new();
    // By how much the edits of `first` that have been passed moved what follows them.
    let (mut removed, mut inserted) = (0, 0);
    loop {
        let first_start = first.peek().map(|edit| edit.range.start + inserted - removed);
        let second_start = second.peek().map(|edit| edit.range.start);
        let Some(start) = first_start.into_iter().chain(second_start).min() else { return composed };
        let base_start = start + removed - inserted;
        let mut new_text = String::new();
        let (mut taken, mut end) = (start, start);
        loop {
            if let Some(edit) = first.next_if(|edit| edit.range.start + inserted - removed <= end) {
                end = end.max(edit.range.start + inserted - removed + edit.new_text.len());
                removed += edit.range.len();
                inserted += edit.new_text.len();
            } else if let Some(edit) = second.next_if(|edit| edit.range.start <= end) {
                new_text.push_str(&middle[taken..edit.range.start]);
                new_text.push_str(&edit.new_text);
                taken = edit.range.end;
                end = end.max(taken);
            } else {
                break;
            }
        }
        new_text.push_str(&middle[taken..end]);
        let range = base_start..end + removed - inserted;
        if !range.is_empty() || !new_text.is_empty() {
            composed.push(TextEdit { range, new_text });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edits(text: &str, cuts: &[(usize, String)]) -> Vec<TextEdit> {
        let mut ends: Vec<usize> = cuts.iter().map(|(at, _)| at % (text.len() + 1)).collect();
        ends.sort_unstable();
        let ranges = ends.chunks_exact(2).map(|pair| pair[0]..pair[1]);
        ranges
            .zip(cuts)
            .map(|(range, (_, new_text))| TextEdit { range, new_text: new_text.clone() })
            .collect()
    }

    proptest! {
        #[test]
        fn composed_edits_come_to_the_same(
            text in "[a-d]{0,20}",
            first in proptest::collection::vec((0..40usize, "[x-z]{0,3}"), 0..8),
            second in proptest::collection::vec((0..40usize, "[X-Z]{0,3}"), 0..8),
        ) {
            let first = edits(&text, &first);
            let middle = apply_edits(&text, &first);
            let second = edits(&middle, &second);
            let composed = compose_edits(&first, &middle, &second);
            prop_assert_eq!(apply_edits(&text, &composed), apply_edits(&middle, &second));
            for pair in composed.windows(2) {
                prop_assert!(pair[0].range.end < pair[1].range.start, "{:?}", composed);
            }
        }
    }

    #[test]
    fn what_lies_apart_stays_apart() {
        let edit = |range, new_text: &str| TextEdit { range, new_text: new_text.to_owned() };
        let first = [edit(0..1, "xyz")];
        let second = [edit(1..2, ""), edit(6..7, "F")];
        assert_eq!(compose_edits(&first, "xyzbcdef", &second), [edit(0..1, "xz"), edit(4..5, "F")]);
    }
}
