//! Streams of server-sent events in pieces of any size.
//!
//! Rule: where a stream is cut makes no difference to the events in it.
#![no_main]

use arbitrary::Arbitrary;
use kode_engine::model::sse::SseParser;
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 4_096;

#[derive(Arbitrary, Debug)]
struct Stream {
    bytes: Vec<u8>,
    cuts: Vec<u8>,
}

fuzz_target!(|stream: Stream| {
    let (mut whole, mut pieces) = (Vec::new(), Vec::new());
    let at_once = SseParser::with_limit(LIMIT).feed(&stream.bytes, &mut whole);
    let mut parser = SseParser::with_limit(LIMIT);
    let (mut rest, mut in_pieces) = (&stream.bytes[..], Ok(()));
    for cut in &stream.cuts {
        let (piece, after) = rest.split_at(usize::from(*cut).min(rest.len()));
        rest = after;
        in_pieces = in_pieces.and_then(|()| parser.feed(piece, &mut pieces));
    }
    in_pieces = in_pieces.and_then(|()| parser.feed(rest, &mut pieces));
    assert_eq!(at_once.is_err(), in_pieces.is_err());
    if at_once.is_ok() {
        assert_eq!(whole, pieces);
    }
});
