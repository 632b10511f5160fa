//! Positions of editors in any text and every encoding they may be counted in: the encoding, the line, the character, the
//! text.
//!
//! Rule: a position is always on a character; a byte that begins one is found again from its position.

use kode_ls::lsp::position::PositionEncoding;
use lsp_types::{Position, PositionEncodingKind};
use ropey::Rope;

use crate::input::Input;

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let kinds = [PositionEncodingKind::UTF8, PositionEncodingKind::UTF16, PositionEncodingKind::UTF32];
    let encoding = PositionEncoding::negotiate(&kinds[input.below(kinds.len())..][..1]);
    let [line, character] = [input.below(256), input.below(256)].map(|number| number as u32);
    let text = input.text();
    let rope = Rope::from_str(&text);
    let byte = encoding.byte_offset(&rope, Position::new(line, character));
    assert!(text.is_char_boundary(byte));
    let position = encoding.position(&rope, byte);
    assert_eq!(encoding.byte_offset(&rope, position), byte, "{position:?}");
}
