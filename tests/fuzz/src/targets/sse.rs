//! Streams of server-sent events in pieces of any size: the sizes, then the stream.
//!
//! Rule: where a stream is cut makes no difference to the events in it.

use kode_engine::net::sse::SseParser;

use crate::input::Input;

const LIMIT: usize = 4_096;

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let sizes = input.bytes();
    let (mut whole, mut events) = (Vec::new(), Vec::new());
    let at_once = SseParser::with_limit(LIMIT).feed(input.rest(), &mut whole);
    let mut parser = SseParser::with_limit(LIMIT);
    let in_pieces = input.pieces(sizes).into_iter().try_for_each(|piece| parser.feed(piece, &mut events));
    assert_eq!(at_once, in_pieces);
    assert_eq!(whole, events);
}
