//! Bytes of a fuzzer as what a target needs.
//!
//! Rule: every sequence of bytes is a valid input, and seeds can be written and read by people: numbers are one byte
//! each, texts end at a record separator (0x1E) or with the input.

use std::borrow::Cow;

/// The end of a text.
const SEPARATOR: u8 = 0x1e;

/// The rest of the bytes.
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next number below `end`; 0 at the end of the input.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(first) % end.max(1)
    }

    /// The next bytes, as far as the separator.
    pub(crate) fn bytes(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == SEPARATOR).unwrap_or(self.0.len());
        let (bytes, rest) = self.0.split_at(end);
        self.0 = rest.get(1..).unwrap_or_default();
        bytes
    }

    /// The next text, as far as the separator.
    pub(crate) fn text(&mut self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.bytes())
    }

    /// All that is left, cut into pieces as long as `sizes` say, over and over.
    pub(crate) fn pieces(self, sizes: &[u8]) -> Vec<&'a [u8]> {
        let mut sizes = sizes.iter().map(|size| usize::from(*size).max(1)).cycle();
        let mut rest = self.0;
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(sizes.next().unwrap_or(1).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces
    }

    /// All that is left.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }
}
