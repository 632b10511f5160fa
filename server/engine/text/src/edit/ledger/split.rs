//! Splitting a change into hunks.
//!
//! Rule: a hunk is what a person would judge at once: changed lines with no whole unchanged line between them.

use std::ops::Range;

use crate::edit::TextEdit;
use crate::edit::diff::{line_changes, split_lines};

/// The hunks of a change: edits as small as they can be, grouped by lines, in order. `edits` are of `text`, sorted and not
/// overlapping.
#[must_use]
pub fn split(text: &str, edits: &[TextEdit]) -> Vec<Vec<TextEdit>> {
    let mut hunks: Vec<Vec<TextEdit>> = Vec::new();
    for edit in edits.iter().flat_map(|edit| smallest(text, edit)) {
        match hunks.last_mut() {
            Some(hunk) if hunk.last().is_some_and(|last| is_near(text, last.range.end..edit.range.start)) => {
                hunk.push(edit);
            }
            _ => hunks.push(vec![edit]),
        }
    }
    hunks
}

fn smallest(text: &str, edit: &TextEdit) -> Vec<TextEdit> {
    let mut changes = line_changes(&text[edit.range.clone()], &edit.new_text);
    for change in &mut changes {
        change.range = change.range.start + edit.range.start..change.range.end + edit.range.start;
    }
    changes
}

/// Whether no whole line lies in the unchanged text between two edits.
fn is_near(text: &str, between: Range<usize>) -> bool {
    let breaks = |text: &str| split_lines(text).iter().filter(|line| line.ends_with(['\n', '\r'])).count();
    let starts_line = text[..between.start].ends_with(['\n', '\r']) || between.start == 0;
    let whole_lines = breaks(&text[between]).saturating_sub(usize::from(!starts_line));
    whole_lines == 0
}
