//! The meaning of streams of every kind, healthy and broken, wherever their bytes are cut.
//!
//! Rule: each stream is read in one piece, in two at every byte, and byte by byte, and always means the same.

use serde_json::{Value, json};

use super::answer::MessagesAnswer;
use crate::exchange::testing::replay_every_cut;
use kode_model::{Block, ModelError, ModelErrorKind, ModelResponse, StopReason};

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

fn event(name: &str, data: Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

fn begun() -> String {
    event(
        "message_start",
        json!({"type": "message_start", "message": {"id": "a", "usage": {"input_tokens": 4}}}),
    )
}

/// A whole block: how it starts, its pieces, its end.
fn block(index: usize, start: Value, pieces: &[Value]) -> String {
    let start = event("content_block_start", json!({"index": index, "content_block": start}));
    let pieces =
        pieces.iter().map(|piece| event("content_block_delta", json!({"index": index, "delta": piece})));
    let end = event("content_block_stop", json!({ "index": index }));
    start + &pieces.collect::<String>() + &end
}

fn said(words: &str) -> String {
    block(0, json!({"type": "text", "text": ""}), &[json!({"type": "text_delta", "text": words})])
}

fn called(index: usize, id: &str, arguments: &[&str]) -> String {
    let pieces: Vec<Value> =
        arguments.iter().map(|piece| json!({"type": "input_json_delta", "partial_json": piece})).collect();
    block(index, json!({"type": "tool_use", "id": id, "name": "Read", "input": {}}), &pieces)
}

fn end(reason: &str) -> String {
    event("message_delta", json!({"delta": {"stop_reason": reason}, "usage": {"output_tokens": 2}}))
        + &event("message_stop", json!({}))
}

fn read(stream: &str) -> Result<ModelResponse, ModelError> {
    replay_every_cut(MessagesAnswer::default, stream.as_bytes())
}

#[test]
fn whole_answers_are_read() {
    let call = |id: &str, input: Value| Block::ToolUse {
        id: id.into(),
        name: "Read".into(),
        input,
        input_error: None,
    };
    let thinking = block(
        0,
        json!({"type": "thinking", "thinking": ""}),
        &[
            json!({"type": "thinking_delta", "thinking": "hé"}),
            json!({"type": "signature_delta", "signature": "sig"}),
        ],
    );
    let thought = Block::Thinking { thinking: "hé".into(), signature: "sig".into() };
    for (what, body, reason, expected, stop) in [
        (
            "reasoning and text",
            thinking + &said("Aé☃𝄞"),
            "end_turn",
            vec![thought, text("Aé☃𝄞")],
            StopReason::EndTurn,
        ),
        (
            "two calls",
            called(0, "x", &["{\"a\"", ": \"☃\"}"]) + &called(1, "y", &[]),
            "tool_use",
            vec![call("x", json!({"a": "☃"})), call("y", json!({}))],
            StopReason::ToolUse,
        ),
        (
            "one id for both",
            called(0, "x", &[]) + &called(1, "x", &[]),
            "tool_use",
            vec![call("x", json!({})), call("x-2", json!({}))],
            StopReason::ToolUse,
        ),
        (
            "arguments without an end",
            called(0, "x", &["{\"a\": [\"b\""]),
            "tool_use",
            vec![call("x", json!({"a": ["b"]}))],
            StopReason::ToolUse,
        ),
        (
            "a limit inside a call",
            said("so") + &called(1, "x", &["{\"a\": [\"b\""]),
            "max_tokens",
            vec![text("so")],
            StopReason::MaxTokens,
        ),
        (
            "a refusal after a call",
            said("so") + &called(1, "x", &["{}"]),
            "refusal",
            vec![text("so")],
            StopReason::Refusal,
        ),
        ("a pause", said("so"), "pause_turn", vec![text("so")], StopReason::PauseTurn),
        ("nothing", String::new(), "end_turn", vec![], StopReason::EndTurn),
        (
            "news",
            event("novelty", json!([7])) + ": comment\n\nretry: 5\n\n" + &said("so"),
            "end_turn",
            vec![text("so")],
            StopReason::EndTurn,
        ),
    ] {
        let response = read(&(begun() + &body + &end(reason))).unwrap();
        assert_eq!((response.content, response.stop_reason), (expected, stop), "{what}");
        assert_eq!((response.usage.input_tokens, response.usage.output_tokens), (4, 2), "{what}");
    }
}

#[test]
fn arguments_without_an_end_stay_so_where_the_answer_may_proceed() {
    let response = read(&(begun() + &called(0, "x", &["{\"a\": 1"]) + &end("pause_turn"))).unwrap();
    assert!(matches!(&response.content[..], [Block::ToolUse { input_error: Some(_), .. }]), "{response:?}");
}

#[test]
fn broken_streams_are_typed_and_keep_what_came() {
    use ModelErrorKind::{
        Authentication, ContextTooLong, Interrupted, Payment, Protocol, RateLimited, Server,
    };
    let error = |kind: &str, message: &str| {
        event("error", json!({"type": "error", "error": {"type": kind, "message": message}}))
    };
    for (what, stream, kind) in [
        ("the end is missing", String::new(), Interrupted),
        ("the end is half", end("end_turn").trim_end().to_owned(), Interrupted),
        ("no stop reason", event("message_stop", json!({})), Interrupted),
        ("overloaded", error("overloaded_error", "Overloaded"), Server),
        ("a limit of the rate", error("rate_limit_error", "Slow"), RateLimited),
        (
            "too long",
            error("invalid_request_error", "prompt is too long: 5 tokens > 4 maximum"),
            ContextTooLong,
        ),
        ("no credit", error("billing_error", "Pay"), Payment),
        ("not allowed", error("permission_error", "No"), Authentication),
        ("an error of no shape", event("error", json!({"oh": "no"})), Protocol),
        ("no JSON", "event: message_delta\ndata: {\"delta\":\n\n".to_owned(), Protocol),
        ("a field of another type", event("content_block_stop", json!({"index": "x"})), Protocol),
    ] {
        let broken = read(&(begun() + &said("so far") + &called(1, "x", &["{}"]) + &stream)).unwrap_err();
        assert_eq!(broken.kind, kind, "{what}: {broken}");
        let partial = broken.partial.unwrap();
        assert_eq!((partial.content, partial.usage.input_tokens), (vec![text("so far")], 4), "{what}");
    }
}

#[test]
fn characters_that_are_no_text_do_no_harm() {
    let mut stream = begun().into_bytes();
    stream.extend_from_slice(b"event: content_block_delta\ndata: {\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\xff\xc3\"}}\n\n");
    stream.extend_from_slice(end("end_turn").as_bytes());
    let response = replay_every_cut(MessagesAnswer::default, &stream).unwrap();
    assert_eq!(response.content, [text("a\u{fffd}\u{fffd}")]);
}
