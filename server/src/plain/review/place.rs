//! Where a hunk is in its document, in lines and in positions of the editor.
//!
//! Rule: every hunk has a place of at least one line that the editor shows, whatever its numbers say; a text that only
//! went away is where it went away.

use std::ops::Range;

use kode_engine::text::edit::ledger::review::{HunkState, HunkView};
use lsp_types::Position;
use ropey::Rope;

use crate::lsp::PositionEncoding;

/// Where a hunk is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HunkLocation {
    /// The lines it is shown at, counted from 0, never empty.
    pub(super) lines: Range<usize>,
    /// The bytes it reaches over, without a line ending at their end; empty where it has taken text away.
    bytes: Range<usize>,
}

impl HunkLocation {
    /// Finds a hunk in the text that its numbers count in.
    pub(super) fn of(text: &Rope, hunk: &HunkView) -> Self {
        let last = last_line(text);
        let proposed = hunk.state == HunkState::Proposed;
        let (lines, bytes) = match proposed.then(|| replaced(text, hunk)).flatten() {
            Some(bytes) => {
                let lines = hunk.lines.start..hunk.lines.start + line_count(&hunk.old_text);
                (lines, bytes)
            }
            None => (hunk.lines.clone(), hunk.range.clone()),
        };
        let start = lines.start.min(last);
        let lines = start..lines.end.min(last + 1).max(start + 1);
        let bytes = bytes.start.min(text.len_bytes())..bytes.end.min(text.len_bytes());
        Self { lines, bytes: without_line_ending(text, bytes) }
    }

    /// Whether the place shares a line with a range of the editor. A range that ends before the first character of a
    /// line does not reach that line.
    pub(super) fn touches(&self, text: &Rope, range: lsp_types::Range) -> bool {
        let last = last_line(text);
        let line = |position: Position| usize::try_from(position.line).unwrap_or(usize::MAX);
        let (start, mut end) = (line(range.start.min(range.end)), line(range.start.max(range.end)));
        if end > start && range.start.max(range.end).character == 0 {
            end -= 1;
        }
        self.lines.start <= end.min(last) && start.min(last) < self.lines.end
    }

    /// The range for the editor.
    pub(super) fn range(&self, text: &Rope, encoding: PositionEncoding) -> lsp_types::Range {
        let position = |byte: usize| {
            let position = encoding.position(text, byte);
            // Between the two characters of a line ending, or behind the last line that is shown, is no place.
            let position = encoding.position(text, encoding.byte_offset(text, position));
            position.min(end_of_line(text, encoding, self.lines.end - 1)).max(self.start())
        };
        lsp_types::Range::new(position(self.bytes.start), position(self.bytes.end))
    }

    /// The start of the first line.
    pub(super) fn start(&self) -> Position {
        Position::new(u32::try_from(self.lines.start).unwrap_or(u32::MAX), 0)
    }

    /// The lines as people count them.
    pub(super) fn lines_for_people(&self) -> String {
        match self.lines.len() {
            0 | 1 => format!("line {}", self.lines.start + 1),
            _ => format!("lines {}-{}", self.lines.start + 1, self.lines.end),
        }
    }
}

/// The bytes of the lines that a proposed hunk replaces; `None` when the text has others there.
pub(super) fn replaced(text: &Rope, hunk: &HunkView) -> Option<Range<usize>> {
    let start = text.try_line_to_byte(hunk.lines.start).ok()?;
    let end = start.checked_add(hunk.old_text.len())?;
    (text.get_byte_slice(start..end)? == hunk.old_text.as_str()).then_some(start..end)
}

/// The lines of a text as people count them: an unfinished one counts.
pub(super) fn line_count(text: &str) -> usize {
    let rope = Rope::from_str(text);
    if text.is_empty() { 0 } else { last_line(&rope) + 1 }
}

/// The last line that editors show: none behind a line ending at the end of the text.
fn last_line(text: &Rope) -> usize {
    let last = text.len_lines() - 1;
    if last > 0 && text.line(last).len_chars() == 0 { last - 1 } else { last }
}

fn end_of_line(text: &Rope, encoding: PositionEncoding, line: usize) -> Position {
    let behind = Position::new(u32::try_from(line).unwrap_or(u32::MAX), u32::MAX);
    encoding.position(text, encoding.byte_offset(text, behind))
}

fn without_line_ending(text: &Rope, mut bytes: Range<usize>) -> Range<usize> {
    bytes.end = bytes.end.max(bytes.start);
    let ends_with =
        |range: &Range<usize>, byte: u8| range.end > range.start && text.byte(range.end - 1) == byte;
    if ends_with(&bytes, b'\n') {
        bytes.end -= 1;
        if ends_with(&bytes, b'\r') {
            bytes.end -= 1;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use PositionEncoding::{Utf8, Utf16, Utf32};
    use lsp_types::Range as LspRange;
    use proptest::prelude::*;

    use super::*;
    use crate::plain::review::testing::{WithHunks, file, hunk};

    fn range(start: (u32, u32), end: (u32, u32)) -> LspRange {
        LspRange::new(Position::new(start.0, start.1), Position::new(end.0, end.1))
    }

    #[test]
    fn positions_count_in_the_encoding() {
        let file = file("ä\n🙂 new 🙂 end\n").applied("🙂 new 🙂", "old", 1..2);
        let place = HunkLocation::of(&file.text, &file.hunks[0]);
        assert_eq!(place.range(&file.text, Utf8), range((1, 0), (1, 13)));
        assert_eq!(place.range(&file.text, Utf16), range((1, 0), (1, 9)));
        assert_eq!(place.range(&file.text, Utf32), range((1, 0), (1, 7)));
    }

    #[test]
    fn whole_lines_end_before_their_line_ending() {
        for ending in ["\n", "\r\n"] {
            let text = format!("a{ending}new{ending}two{ending}b{ending}");
            let file = file(&text).applied(&format!("new{ending}two{ending}"), "", 1..3);
            let place = HunkLocation::of(&file.text, &file.hunks[0]);
            assert_eq!(place.range(&file.text, Utf16), range((1, 0), (2, 3)), "{ending:?}");
            assert_eq!(place.lines_for_people(), "lines 2-3");
        }
    }

    #[test]
    fn a_removal_is_shown_where_the_text_was() {
        for (text, line, shown) in [
            ("a\nb\n", 1, 1),
            ("a\nb\n", 2, 1),
            ("a\nb", 2, 1),
            ("a\r\nb\r\n", 2, 1),
            ("", 0, 0),
            ("\n", 1, 0),
        ] {
            let file = file(text).removed("gone\n", line);
            let place = HunkLocation::of(&file.text, &file.hunks[0]);
            assert_eq!(place.lines, shown..shown + 1, "{text:?}");
            let range = place.range(&file.text, Utf16);
            assert_eq!((range.start, range.start.line as usize), (range.end, shown), "{text:?}");
        }
    }

    #[test]
    fn a_hunk_at_the_end_of_a_file_without_a_line_ending_is_whole() {
        let file = file("a\nlast").applied("\nlast", "", 0..2);
        let place = HunkLocation::of(&file.text, &file.hunks[0]);
        assert_eq!(place.range(&file.text, Utf16), range((0, 1), (1, 4)));
    }

    #[test]
    fn a_proposed_hunk_is_at_the_lines_it_would_replace() {
        let file = file("a\nb\nc\nd\n").proposed("b\nc\n", "x\n", 1);
        let place = HunkLocation::of(&file.text, &file.hunks[0]);
        assert_eq!((place.lines.clone(), place.range(&file.text, Utf16)), (1..3, range((1, 0), (2, 1))));
        let mut moved = file.hunks[0].clone();
        moved.old_text = "other\n".to_owned();
        assert_eq!(HunkLocation::of(&file.text, &moved).lines, 1..2, "the text has moved on");
        assert_eq!(replaced(&file.text, &moved), None);
    }

    #[test]
    fn lines_are_touched_and_not_their_neighbors() {
        let file = file("a\nb\nc\nd\n").applied("b\nc\n", "", 1..3);
        let place = HunkLocation::of(&file.text, &file.hunks[0]);
        for (asked, touched) in [
            (range((0, 0), (0, 1)), false),
            (range((0, 0), (1, 0)), false),
            (range((1, 0), (1, 0)), true),
            (range((2, 1), (2, 1)), true),
            (range((3, 0), (3, 0)), false),
            (range((0, 0), (9, 9)), true),
            (range((3, 0), (0, 0)), true),
        ] {
            assert_eq!(place.touches(&file.text, asked), touched, "{asked:?}");
        }
        let removed = crate::plain::review::testing::file("a\nb\n").removed("c\n", 2);
        let place = HunkLocation::of(&removed.text, &removed.hunks[0]);
        assert!(place.touches(&removed.text, range((1, 0), (1, 0))));
        assert!(place.touches(&removed.text, range((7, 0), (7, 0))), "an editor that has more lines by now");
        assert!(!place.touches(&removed.text, range((0, 0), (0, 0))));
    }

    proptest! {
        #[test]
        fn numbers_that_fit_no_text_have_a_place_all_the_same(
            text in "[aä🙂\r\n]{0,12}", start in 0usize..40, length in 0usize..40, line in 0usize..9, lines in 0usize..9,
            proposed: bool,
        ) {
            let text = Rope::from_str(&text);
            let mut hunk = hunk(if proposed { HunkState::Proposed } else { HunkState::Applied }, "a\n", "b\n");
            hunk.range = start..start + length;
            hunk.lines = line..line + lines;
            let place = HunkLocation::of(&text, &hunk);
            prop_assert!(!place.lines.is_empty() && place.lines.end <= text.len_lines());
            for encoding in [Utf8, Utf16, Utf32] {
                let range = place.range(&text, encoding);
                prop_assert!(range.start <= range.end);
                prop_assert!(place.lines.contains(&(range.start.line as usize)));
                prop_assert!(place.lines.contains(&(range.end.line as usize)));
                place.touches(&text, range);
            }
        }
    }
}
