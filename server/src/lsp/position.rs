//! Positions: line and character in the negotiated encoding on the wire, bytes of a rope inside.
//!
//! Rule: positions from an editor are clamped the way the LSP specification says and never trusted, so every
//! position has an offset; lines end at `\n`, `\r\n` and `\r` and nowhere else.

use std::ops::Range;

use lsp_types::{Position, PositionEncodingKind};
use ropey::Rope;
use serde::{Deserialize, Serialize};

/// The unit of `character` in a position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PositionEncoding {
    /// Bytes.
    Utf8,
    /// UTF-16 code units, what every editor understands.
    #[default]
    Utf16,
    /// Unicode scalar values.
    Utf32,
}

impl PositionEncoding {
    /// The first encoding an editor offers that exists here: the order is the editor's preference, and what it
    /// likes best costs it least. UTF-16 when nothing known is offered.
    #[must_use]
    pub fn negotiate(offered: &[PositionEncodingKind]) -> Self {
        let known = |kind: &PositionEncodingKind| {
            [Self::Utf8, Self::Utf16, Self::Utf32].into_iter().find(|encoding| encoding.kind() == *kind)
        };
        offered.iter().find_map(known).unwrap_or_default()
    }

    /// The name of the encoding on the wire.
    #[must_use]
    pub fn kind(self) -> PositionEncodingKind {
        match self {
            Self::Utf8 => PositionEncodingKind::UTF8,
            Self::Utf16 => PositionEncodingKind::UTF16,
            Self::Utf32 => PositionEncodingKind::UTF32,
        }
    }

    /// The same as text.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
            Self::Utf32 => "utf-32",
        }
    }

    /// How much a text counts.
    #[must_use]
    pub fn units(self, text: &str) -> u32 {
        let count = match self {
            Self::Utf8 => text.len(),
            Self::Utf16 => text.encode_utf16().count(),
            Self::Utf32 => text.chars().count(),
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// The character index a position means. A character past the end of its line is the end of the line, a line
    /// past the end of the text is the end of the text, and a position inside a character is its start.
    #[must_use]
    pub fn char_index(self, text: &Rope, position: Position) -> usize {
        let line = position.line as usize;
        if line >= text.len_lines() {
            return text.len_chars();
        }
        let column = position.character as usize;
        let start = text.line_to_char(line);
        let end = start + content_chars(text, line);
        match self {
            Self::Utf8 => {
                let byte = text.char_to_byte(start).saturating_add(column);
                text.byte_to_char(byte.min(text.char_to_byte(end)))
            }
            Self::Utf16 => {
                let unit = text.char_to_utf16_cu(start).saturating_add(column);
                text.utf16_cu_to_char(unit.min(text.char_to_utf16_cu(end)))
            }
            Self::Utf32 => start.saturating_add(column).min(end),
        }
    }

    /// The byte offset a position means, clamped like [`Self::char_index`].
    #[must_use]
    pub fn byte_offset(self, text: &Rope, position: Position) -> usize {
        text.char_to_byte(self.char_index(text, position))
    }

    /// The byte range an editor's range means; a range written backwards is turned around.
    #[must_use]
    pub fn byte_range(self, text: &Rope, range: lsp_types::Range) -> Range<usize> {
        let (a, b) = (self.byte_offset(text, range.start), self.byte_offset(text, range.end));
        a.min(b)..a.max(b)
    }

    /// The position of a byte offset; offsets past the end are the end, offsets inside a character its start.
    #[must_use]
    pub fn position(self, text: &Rope, byte: usize) -> Position {
        let char_index = text.byte_to_char(byte.min(text.len_bytes()));
        let line = text.char_to_line(char_index);
        let start = text.line_to_char(line);
        let column = match self {
            Self::Utf8 => text.char_to_byte(char_index) - text.char_to_byte(start),
            Self::Utf16 => text.char_to_utf16_cu(char_index) - text.char_to_utf16_cu(start),
            Self::Utf32 => char_index - start,
        };
        Position::new(saturate(line), saturate(column))
    }

    /// The range of a byte range.
    #[must_use]
    pub fn range(self, text: &Rope, bytes: Range<usize>) -> lsp_types::Range {
        lsp_types::Range::new(self.position(text, bytes.start), self.position(text, bytes.end))
    }
}

/// The number of characters of a line without its line ending.
fn content_chars(text: &Rope, line: usize) -> usize {
    let line = text.line(line);
    let length = line.len_chars();
    let from_end = |back: usize| length.checked_sub(back).and_then(|index| line.get_char(index));
    match (from_end(2), from_end(1)) {
        (Some('\r'), Some('\n')) => length - 2,
        (_, Some('\n' | '\r')) => length - 1,
        _ => length,
    }
}

fn saturate(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use PositionEncoding::{Utf8, Utf16, Utf32};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_known_offer_wins_and_utf16_is_the_default() {
        let offers = |names: &[&'static str]| {
            PositionEncoding::negotiate(
                &names.iter().map(|name| PositionEncodingKind::from(*name)).collect::<Vec<_>>(),
            )
        };
        assert_eq!(offers(&["utf-32", "utf-8", "utf-16"]), Utf32);
        assert_eq!(offers(&["utf-8", "utf-16"]), Utf8);
        assert_eq!(offers(&["ebcdic", "utf-16"]), Utf16);
        assert_eq!(offers(&["ebcdic"]), Utf16);
        assert_eq!(offers(&[]), Utf16);
    }

    #[test]
    fn characters_are_counted_in_the_encoding() {
        let text = Rope::from_str("aä漢😀b\n");
        for (encoding, columns) in
            [(Utf8, [0, 1, 3, 6, 10, 11]), (Utf16, [0, 1, 2, 3, 5, 6]), (Utf32, [0, 1, 2, 3, 4, 5])]
        {
            for (byte, column) in [0, 1, 3, 6, 10, 11].into_iter().zip(columns) {
                let position = Position::new(0, column);
                assert_eq!(encoding.position(&text, byte), position, "{encoding:?} of byte {byte}");
                assert_eq!(encoding.byte_offset(&text, position), byte, "{encoding:?} of {position:?}");
            }
        }
    }

    #[test]
    fn positions_outside_the_text_are_clamped() {
        let text = Rope::from_str("ab\r\nc\rd\n");
        for encoding in [Utf8, Utf16, Utf32] {
            let offset = |line, character| encoding.byte_offset(&text, Position::new(line, character));
            assert_eq!(offset(0, 3), 2, "before the \\r\\n");
            assert_eq!(offset(0, u32::MAX), 2);
            assert_eq!(offset(1, 9), 5, "before the lone \\r");
            assert_eq!(offset(2, 9), 7);
            assert_eq!(offset(3, 9), 8, "the empty last line");
            assert_eq!(offset(4, 0), 8);
            assert_eq!(offset(u32::MAX, u32::MAX), 8);
            assert_eq!(encoding.byte_offset(&Rope::new(), Position::new(3, 3)), 0);
        }
    }

    #[test]
    fn a_position_inside_a_character_is_its_start() {
        let text = Rope::from_str("x😀y");
        assert_eq!(Utf16.byte_offset(&text, Position::new(0, 2)), 1);
        assert_eq!(Utf8.byte_offset(&text, Position::new(0, 4)), 1);
        assert_eq!(Utf8.position(&text, 3), Position::new(0, 1));
    }

    #[test]
    fn only_the_three_line_endings_of_lsp_end_a_line() {
        let text = Rope::from_str("a\u{b}b\u{c}c\u{85}d\u{2028}e\u{2029}f\ng\rh\r\ni");
        assert_eq!(text.len_lines(), 4);
        assert_eq!(Utf32.position(&text, text.len_bytes()), Position::new(3, 1));
    }

    #[test]
    fn a_range_written_backwards_is_turned_around() {
        let text = Rope::from_str("abc");
        let range = lsp_types::Range::new(Position::new(0, 2), Position::new(0, 1));
        assert_eq!(Utf16.byte_range(&text, range), 1..2);
    }

    proptest! {
        #[test]
        fn every_offset_survives_the_way_there_and_back(text in "[a-zäß漢😀🏳\n\r\u{2028}]{0,60}") {
            let rope = Rope::from_str(&text);
            for (byte, _) in text.char_indices() {
                // Between `\r` and `\n` no position exists; edits there are widened before they are sent.
                if text[..byte].ends_with('\r') && text[byte..].starts_with('\n') {
                    continue;
                }
                for encoding in [Utf8, Utf16, Utf32] {
                    prop_assert_eq!(encoding.byte_offset(&rope, encoding.position(&rope, byte)), byte);
                }
            }
        }
    }
}
