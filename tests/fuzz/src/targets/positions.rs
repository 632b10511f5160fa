//! Positions of editors in any text and every encoding they may be counted in.
//!
//! Rule: a position is always on a character; a byte that begins one is found again from its position.
#![no_main]

use arbitrary::Arbitrary;
use kode_ls::lsp::position::PositionEncoding;
use libfuzzer_sys::fuzz_target;
use lsp_types::{Position, PositionEncodingKind};
use ropey::Rope;

#[derive(Arbitrary, Debug)]
struct Case {
    text: String,
    line: u32,
    character: u32,
    encoding: u8,
}

fuzz_target!(|case: Case| {
    let kinds = [PositionEncodingKind::UTF8, PositionEncodingKind::UTF16, PositionEncodingKind::UTF32];
    let encoding = PositionEncoding::negotiate(&kinds[usize::from(case.encoding) % kinds.len()..][..1]);
    let rope = Rope::from_str(&case.text);
    let byte = encoding.byte_offset(&rope, Position::new(case.line, case.character));
    assert!(case.text.is_char_boundary(byte));
    let position = encoding.position(&rope, byte);
    assert_eq!(encoding.byte_offset(&rope, position), byte, "{position:?}");
});
