//! Streams of every provider, in pieces of any size: a number for the wire format, the sizes of pieces, the stream.
//!
//! Rule: where a stream is cut makes no difference to what it means, nor to why it means nothing; and calls
//! have names.

use kode_engine::model::{Block, Wire};
use kode_engine::providers::recorded::replay;

use crate::input::Input;

const WIRES: [Wire; 5] =
    [Wire::AnthropicMessages, Wire::ChatCompletions, Wire::Responses, Wire::Gemini, Wire::Ollama];

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let wire = WIRES[input.below(WIRES.len())];
    let sizes = input.bytes();
    let whole = replay(wire, [input.rest()], &mut |_| {});
    let in_pieces = replay(wire, input.pieces(sizes), &mut |_| {});
    assert_eq!(whole, in_pieces);
    for block in whole.iter().flat_map(|response| &response.content) {
        if let Block::ToolUse { name, .. } = block {
            assert!(!name.is_empty(), "{whole:?}");
        }
    }
}
