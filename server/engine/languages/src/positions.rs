//! Positions of the Language Server Protocol in a text, and back.
//!
//! Rule: lines end with `\n`, `\r\n` or `\r`, as the protocol has it; a position beyond the end of a line means its end, and one
//! within a character its start.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The unit of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Bytes.
    Utf8,
    /// Code units of UTF-16, where server and client have agreed on nothing else.
    #[default]
    Utf16,
    /// Characters.
    Utf32,
}

/// A position: line and column from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Position {
    pub(crate) line: u32,
    pub(crate) character: u32,
}

/// A range; its end is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PositionRange {
    pub(crate) start: Position,
    pub(crate) end: Position,
}

/// The lines of a text.
pub(crate) struct LineIndex<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl Encoding {
    /// The encoding that a server names.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "utf-8" => Some(Self::Utf8),
            "utf-16" => Some(Self::Utf16),
            "utf-32" => Some(Self::Utf32),
            _ => None,
        }
    }

    fn width(self, char: char) -> usize {
        match self {
            Self::Utf8 => char.len_utf8(),
            Self::Utf16 => char.len_utf16(),
            Self::Utf32 => 1,
        }
    }
}

impl<'t> LineIndex<'t> {
    /// Finds the lines of a text.
    pub(crate) fn new(text: &'t str) -> Self {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for (at, byte) in bytes.iter().enumerate() {
            let ends = *byte == b'\n' || (*byte == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
            if ends {
                starts.push(at + 1);
            }
        }
        Self { text, starts }
    }

    /// The line that a byte is in, from 0.
    pub(crate) fn line_at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// The bytes of a line, from 0, without its end.
    pub(crate) fn line(&self, line: usize) -> Range<usize> {
        let Some(start) = self.starts.get(line).copied() else { return self.text.len()..self.text.len() };
        let end = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        let length = self.text[start..end].trim_end_matches(['\n', '\r']).len();
        start..start + length
    }

    /// The byte of a position.
    pub(crate) fn offset(&self, position: Position, encoding: Encoding) -> usize {
        let line = self.line(position.line as usize);
        let wanted = position.character as usize;
        let mut column = 0;
        for (at, char) in self.text[line.clone()].char_indices() {
            let width = encoding.width(char);
            if column + width > wanted {
                return line.start + at;
            }
            column += width;
        }
        line.end
    }

    /// The bytes of a range; `None` when its end is before its start.
    pub(crate) fn range(&self, range: PositionRange, encoding: Encoding) -> Option<Range<usize>> {
        let (start, end) = (self.offset(range.start, encoding), self.offset(range.end, encoding));
        // A range may end behind the last line to mean the whole text.
        let end = if range.end.line as usize >= self.starts.len() { self.text.len() } else { end };
        (start <= end).then_some(start..end)
    }

    /// The position of a byte.
    pub(crate) fn position(&self, offset: usize, encoding: Encoding) -> Position {
        let line = self.line_at(offset);
        let start = self.starts.get(line).copied().unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or_default();
        let column = before.chars().map(|char| encoding.width(char)).sum::<usize>();
        Position { line: narrow(line), character: narrow(column) }
    }

    /// How many lines there are.
    pub(crate) fn count(&self) -> usize {
        self.starts.len()
    }
}

/// A number of the protocol.
pub(crate) fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32];

    #[test]
    fn columns_are_counted_in_the_unit_of_the_server() {
        let index = LineIndex::new("a\r\n𝄞äb\rlast");
        for (encoding, character) in [(Encoding::Utf8, 6), (Encoding::Utf16, 3), (Encoding::Utf32, 2)] {
            let position = Position { line: 1, character };
            assert_eq!(index.offset(position, encoding), 9);
            assert_eq!(index.position(9, encoding), position);
        }
        assert_eq!((index.count(), index.line(2)), (3, 11..15));
    }

    #[test]
    fn positions_outside_the_text_are_moved_into_it() {
        let index = LineIndex::new("ä\nb\n");
        let at = |line, character| index.offset(Position { line, character }, Encoding::Utf8);
        assert_eq!((at(0, 1), at(0, 99), at(1, 99), at(2, 0), at(99, 0)), (0, 2, 4, 5, 5));
        let range = |start, end| PositionRange {
            start: Position { line: start, character: 0 },
            end: Position { line: end, character: 0 },
        };
        assert_eq!(index.range(range(0, 99), Encoding::Utf8), Some(0..5));
        assert_eq!(index.range(range(1, 0), Encoding::Utf8), None);
    }

    proptest! {
        #[test]
        fn every_character_has_a_position_that_leads_back(text in "[a-bä𝄞\r\n]{0,40}") {
            let index = LineIndex::new(&text);
            for (offset, _) in text.char_indices() {
                let line = index.line(index.line_at(offset));
                if line.contains(&offset) {
                    for encoding in ALL {
                        prop_assert_eq!(index.offset(index.position(offset, encoding), encoding), offset);
                    }
                }
            }
        }
    }
}
