//! The lines of hunks in the text before a change and in the text that the change makes.
//!
//! Rule: pure functions of a text and its edits. Lines count from 1, as those of diagnostics do. Every line belongs to at most one
//! hunk.

use std::ops::Range;

use ropey::Rope;

use crate::edits::review_reports::is_in_review;
use kode_base::ids::{CallId, HunkId};
use kode_text::edit::TextEdit;
use kode_text::edit::ledger::NewHunk;
use kode_text::edit::ledger::review::FileReview;

/// The lines of the hunks of one file, in their order.
#[derive(Debug, Default)]
pub(crate) struct HunkLines(Vec<LinesOfHunk>);

#[derive(Debug)]
struct LinesOfHunk {
    id: HunkId,
    /// Its whole lines before the change; empty where it only adds lines.
    before: Range<usize>,
    /// Its whole lines after the change; empty where it only removes lines.
    after: Range<usize>,
}

impl HunkLines {
    /// Finds the lines of hunks, sorted by place, that turn `old` into `new`.
    pub(super) fn of<'a>(old: &str, new: &str, hunks: impl Iterator<Item = &'a NewHunk>) -> Self {
        let (old, new) = (Rope::from_str(old), Rope::from_str(new));
        let mut shift = 0;
        let lines = hunks.filter_map(|hunk| {
            let (first, last) = (hunk.edits.first()?, hunk.edits.last()?);
            let before = first.range.start..last.range.end;
            let start = before.start.saturating_add_signed(shift);
            shift += hunk.edits.iter().map(growth).sum::<isize>();
            let after = start..before.end.saturating_add_signed(shift);
            let is_whole =
                is_start(&old, before.start) && is_end(&old, before.end) && is_end(&new, after.end);
            let (before, after) = (lines(&old, &before, is_whole), lines(&new, &after, is_whole));
            Some(LinesOfHunk { id: hunk.id.clone(), before, after })
        });
        Self(lines.collect())
    }

    /// Finds the lines of the hunks of a file that are in its text. The text before is that without the hunks of `calls`.
    pub(super) fn of_review(file: &FileReview, calls: &[CallId]) -> Self {
        let mut shift = 0_isize;
        let in_text = file.hunks.iter().filter(|hunk| is_in_review(hunk.state));
        let lines = in_text.map(|hunk| {
            let after = hunk.lines.start + 1..hunk.lines.end + 1;
            let start = after.start.saturating_add_signed(-shift);
            let count = match calls.contains(&hunk.call) {
                true => hunk.old_text.lines().count(),
                false => after.len(),
            };
            shift += after.len().cast_signed() - count.cast_signed();
            LinesOfHunk { id: hunk.id.clone(), before: start..start + count, after }
        });
        Self(lines.collect())
    }

    /// Whether lines before and after have the same distance from the first line of one hunk.
    pub(super) fn has_same_offset(&self, before: u32, after: u32) -> bool {
        let (Ok(before), Ok(after)) = (usize::try_from(before), usize::try_from(after)) else { return false };
        self.0.iter().any(|hunk| {
            let is_in_hunk = hunk.before.contains(&before) && hunk.after.contains(&after);
            is_in_hunk && before - hunk.before.start == after - hunk.after.start
        })
    }

    /// The first line of a hunk in the text after.
    pub(super) fn first_line(&self, id: &HunkId) -> Option<u32> {
        let hunk = self.0.iter().find(|hunk| hunk.id == *id)?;
        u32::try_from(hunk.after.start).ok()
    }

    /// The hunk that a line of the text before belongs to.
    pub(crate) fn hunk_before(&self, line: u32) -> Option<&HunkId> {
        let line = usize::try_from(line).ok()?;
        self.0.iter().find(|hunk| hunk.before.contains(&line)).map(|hunk| &hunk.id)
    }

    /// The hunk that a line of the text after belongs to.
    pub(crate) fn hunk_after(&self, line: u32) -> Option<&HunkId> {
        let line = usize::try_from(line).ok()?;
        self.0.iter().find(|hunk| hunk.after.contains(&line)).map(|hunk| &hunk.id)
    }

    /// The place in the text after of a line that no hunk changes; `None` for a line of a hunk.
    pub(crate) fn moved(&self, line: u32) -> Option<u32> {
        if self.hunk_before(line).is_some() {
            return None;
        }
        let at = usize::try_from(line).ok()?;
        let above = self.0.iter().take_while(|hunk| hunk.before.end <= at).last();
        let moved = above.map_or(at, |hunk| hunk.after.end + (at - hunk.before.end));
        u32::try_from(moved).ok()
    }
}

fn growth(edit: &TextEdit) -> isize {
    edit.new_text.len().cast_signed() - edit.range.len().cast_signed()
}

fn is_start(text: &Rope, byte: usize) -> bool {
    text.line_to_byte(text.byte_to_line(byte)) == byte
}

fn is_end(text: &Rope, byte: usize) -> bool {
    byte == text.len_bytes() || is_start(text, byte)
}

/// The lines of a range, from 1. A range of whole lines does not reach the line that begins at its end.
fn lines(text: &Rope, range: &Range<usize>, is_whole: bool) -> Range<usize> {
    let (first, last) = (text.byte_to_line(range.start) + 1, text.byte_to_line(range.end) + 1);
    let reaches_last = !is_whole || !is_start(text, range.end);
    first..last + usize::from(reaches_last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kode_text::edit::change::apply_edits;
    use kode_text::edit::diff::word_changes;
    use kode_text::edit::ledger::split;

    fn between(old: &str, new: &str) -> HunkLines {
        let edits = word_changes(old, new);
        assert_eq!(apply_edits(old, &edits), new);
        let named = |edits| NewHunk { id: HunkId::generate(), edits };
        let hunks: Vec<NewHunk> = split(old, &edits).into_iter().map(named).collect();
        HunkLines::of(old, new, hunks.iter())
    }

    /// The lines of each hunk, before and after.
    fn shown(lines: &HunkLines) -> Vec<[Range<usize>; 2]> {
        lines.0.iter().map(|hunk| [hunk.before.clone(), hunk.after.clone()]).collect()
    }

    #[test]
    fn hunks_have_whole_lines_in_both_texts() {
        for (old, new, expected) in [
            ("a\nb\nc\n", "a\nB\nc\n", vec![[2..3, 2..3]]),
            ("a\nb\nc\nd\n", "A\nx\nb\nc\nD\n", vec![[1..2, 1..3], [4..5, 5..6]]),
            ("a\nb\n", "a\nx\ny\nb\n", vec![[2..2, 2..4]]),
            ("a\nb\nc\n", "a\nc\n", vec![[2..3, 2..2]]),
            ("one two\nb\n", "two\nb\n", vec![[1..2, 1..2]]),
            ("a\nb", "a\nb\nc", vec![[2..3, 2..4]]),
            ("", "a\nb\n", vec![[1..1, 1..3]]),
            ("a\r\nb\r\n", "a\r\nB\r\n", vec![[2..3, 2..3]]),
        ] {
            assert_eq!(shown(&between(old, new)), expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn lines_between_hunks_move_and_those_of_hunks_do_not() {
        let lines = between("a\nb\nc\nd\ne\n", "x\ny\na\nb\nD\ne\n");
        let hunks: Vec<&HunkId> = lines.0.iter().map(|hunk| &hunk.id).collect();
        assert_eq!(shown(&lines), [[1..1, 1..3], [3..5, 5..6]]);
        assert_eq!([1, 2, 3, 4, 5].map(|line| lines.moved(line)), [Some(3), Some(4), None, None, Some(6)]);
        assert_eq!(
            [2, 3, 5, 6].map(|line| lines.hunk_after(line)),
            [Some(hunks[0]), None, Some(hunks[1]), None]
        );
        assert_eq!([1, 3, 4].map(|line| lines.hunk_before(line)), [None, Some(hunks[1]), Some(hunks[1])]);
    }
}
