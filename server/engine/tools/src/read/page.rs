//! The lines of a text that one `Read` shows.
//!
//! Rule: the text may come in pieces of any size and is not kept: only the shown lines are, and of a cut line
//! only its beginning.

use std::mem;

use kode_base::encoding::LineEnding;
use kode_text::edit::diff::push_numbered_cut;

/// Characters of a line that are shown.
pub(crate) const MAX_LINE_CHARS: usize = 2_000;

/// The most text one call shows.
pub(super) const MAX_OUTPUT_BYTES: usize = 256 << 10;

/// A window of a text, filled piece by piece.
pub(super) struct TextPage {
    first: usize,
    limit: usize,
    bytes: usize,
    /// The lines shown, numbered.
    text: String,
    shown: usize,
    is_full: bool,
    /// Lines that have ended.
    ended: usize,
    /// The line that has started.
    line: OpenLine,
    /// The last character was a carriage return, which ended its line; a line feed now belongs to it.
    is_after_return: bool,
    has_cut_line: bool,
    has_lf: bool,
    has_crlf: bool,
    has_cr: bool,
}

/// A line of which the end has not been seen.
#[derive(Default)]
struct OpenLine {
    start: String,
    chars: usize,
}

impl TextPage {
    /// A page of at most `limit` lines and about `bytes` bytes from line `first` (from 1) on; one line is always shown.
    pub(super) fn new(first: usize, limit: usize, bytes: usize) -> Self {
        Self {
            first,
            limit,
            bytes,
            text: String::new(),
            shown: 0,
            is_full: false,
            ended: 0,
            line: OpenLine::default(),
            is_after_return: false,
            has_cut_line: false,
            has_lf: false,
            has_crlf: false,
            has_cr: false,
        }
    }

    /// Takes the next piece of the text.
    pub(super) fn feed(&mut self, piece: &str) {
        let mut rest = piece;
        if !rest.is_empty() && mem::take(&mut self.is_after_return) {
            let after = rest.strip_prefix('\n');
            self.has_crlf |= after.is_some();
            self.has_cr |= after.is_none();
            rest = after.unwrap_or(rest);
        }
        while let Some(at) = memchr::memchr2(b'\n', b'\r', rest.as_bytes()) {
            self.push(&rest[..at]);
            self.end_line();
            let after = &rest[at + 1..];
            rest = match (rest.as_bytes()[at], after.as_bytes().first()) {
                (b'\n', _) => {
                    self.has_lf = true;
                    after
                }
                (_, Some(b'\n')) => {
                    self.has_crlf = true;
                    &after[1..]
                }
                (_, Some(_)) => {
                    self.has_cr = true;
                    after
                }
                (_, None) => {
                    self.is_after_return = true;
                    after
                }
            };
        }
        self.push(rest);
    }

    /// Says that the text has ended; a last line without line break counts.
    pub(super) fn end(&mut self) {
        self.has_cr |= mem::take(&mut self.is_after_return);
        if self.line.chars > 0 {
            self.end_line();
        }
    }

    /// How many lines are shown.
    pub(super) fn shown(&self) -> usize {
        self.shown
    }

    /// Whether the end of a line that is shown is left out.
    pub(super) fn has_cut_line(&self) -> bool {
        self.has_cut_line
    }

    /// How many lines have ended: all there are once the text has ended.
    pub(super) fn lines(&self) -> usize {
        self.ended
    }

    /// Whether nothing more will be shown and there is text after it.
    pub(super) fn has_more(&self) -> bool {
        self.is_full && (self.line.chars > 0 || self.ended >= self.first + self.shown)
    }

    /// Which line breaks the text has so far.
    pub(super) fn line_ending(&self) -> LineEnding {
        LineEnding::of_kinds(self.has_lf, self.has_crlf, self.has_cr || self.is_after_return)
    }

    /// The lines shown, each with a line feed at its end.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn push(&mut self, part: &str) {
        if self.is_full || self.ended + 1 < self.first {
            self.line.chars += part.len();
            return;
        }
        let room = MAX_LINE_CHARS.saturating_sub(self.line.chars);
        // A text has at most as many characters as bytes.
        let cut = if part.len() <= room { None } else { part.char_indices().nth(room) };
        self.line.start.push_str(cut.map_or(part, |(cut, _)| &part[..cut]));
        self.line.chars += part.chars().count();
    }

    fn end_line(&mut self) {
        self.show_line();
        self.line.start.clear();
        self.line.chars = 0;
    }

    fn show_line(&mut self) {
        self.ended += 1;
        if self.is_full || self.ended < self.first {
            return;
        }
        let (before, chars) = (self.text.len(), self.line.chars);
        let left_out = chars.saturating_sub(MAX_LINE_CHARS);
        push_numbered_cut(&mut self.text, self.ended, &self.line.start, left_out);
        self.text.push('\n');
        if self.text.len() > self.bytes && self.shown > 0 {
            self.text.truncate(before);
            self.is_full = true;
            return;
        }
        self.has_cut_line |= chars > MAX_LINE_CHARS;
        self.shown += 1;
        self.is_full = self.shown >= self.limit;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use kode_text::edit::diff::{push_numbered, split_lines};

    fn page(pieces: &[&str], first: usize, limit: usize) -> TextPage {
        let mut page = TextPage::new(first, limit, MAX_OUTPUT_BYTES);
        pieces.iter().for_each(|piece| page.feed(piece));
        page.end();
        page
    }

    #[test]
    fn a_full_page_knows_whether_there_is_more() {
        for (text, expected) in
            [("a\nb\n", false), ("a\nb\nc", true), ("a\nb\n\n", true), ("a\r\nb\r\n", false)]
        {
            let mut page = TextPage::new(1, 2, MAX_OUTPUT_BYTES);
            page.feed(text);
            assert_eq!(page.has_more(), expected, "{text:?}");
        }
        assert!(!page(&["a\n"], 1, 2).has_more());
    }

    #[test]
    fn memory_does_not_grow_with_a_line() {
        let mut page = TextPage::new(2, 1, MAX_OUTPUT_BYTES);
        for _ in 0..100 {
            page.feed(&"x".repeat(MAX_LINE_CHARS));
        }
        assert!(page.line.start.is_empty(), "the line is not shown");
        page.feed("\n");
        for _ in 0..100 {
            page.feed(&"é".repeat(MAX_LINE_CHARS));
        }
        assert_eq!(page.line.start.chars().count(), MAX_LINE_CHARS);
        page.end();
        let more = 99 * MAX_LINE_CHARS;
        assert!(page.into_text().ends_with(&format!("é... [{more} more characters]\n")));
    }

    proptest! {
        #[test]
        fn pieces_make_the_same_page_as_the_whole_text(
            text in "[ab人\r\n]{0,30}",
            cuts in proptest::collection::vec(0..31usize, 0..6),
            first in 1..8usize,
            limit in 1..8usize,
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| text.is_char_boundary(*cut)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
            let page = page(&pieces, first, limit);
            let lines = split_lines(&text);
            let mut expected = String::new();
            for (number, line) in (1..).zip(&lines).skip(first - 1).take(limit) {
                push_numbered(&mut expected, number, line, MAX_LINE_CHARS);
                expected.push('\n');
            }
            prop_assert_eq!(page.lines(), lines.len());
            prop_assert_eq!(page.line_ending(), LineEnding::of(&text));
            prop_assert_eq!(page.into_text(), expected);
        }
    }
}
