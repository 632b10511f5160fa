//! The meaning of streams of every kind, healthy and broken, wherever their bytes are cut.
//!
//! Rule: each stream is read in one piece, in two at every byte, and byte by byte, and always means the same.

use serde_json::{Value, json};

use super::answer::ChatAnswer;
use crate::exchange::replay;
use crate::exchange::testing::replay_every_cut;
use kode_model::{Block, Delta, Message, ModelError, ModelErrorKind, ModelResponse, StopReason, Usage};

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

fn thought(thinking: &str) -> Block {
    Block::Thinking { thinking: thinking.into(), signature: String::new() }
}

fn call(id: &str, name: &str, input: Value) -> Block {
    Block::ToolUse { id: id.into(), name: name.into(), input, input_error: None }
}

/// The event of a chunk with this delta.
fn delta(delta: Value) -> String {
    event(json!({"id": "a", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}))
}

fn said(words: &str) -> String {
    delta(json!({"content": words}))
}

fn event(data: Value) -> String {
    format!("data: {data}\n\n")
}

fn finish(reason: &str) -> String {
    event(json!({"id": "a", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
}

fn calls(calls: Value) -> String {
    delta(json!({ "tool_calls": calls }))
}

const DONE: &str = "data: [DONE]\n\n";

fn read(stream: &str) -> Result<ModelResponse, ModelError> {
    replay_every_cut(ChatAnswer::default, stream.as_bytes())
}

fn answered(events: &[String]) -> ModelResponse {
    read(&(events.concat() + DONE)).unwrap()
}

fn content(events: &[String]) -> Vec<Block> {
    answered(events).content
}

fn one(name: &str, arguments: &str) -> Value {
    json!([{"index": 0, "id": "x", "type": "function", "function": {"name": name, "arguments": arguments}}])
}

/// A piece of the arguments of the call with this number.
fn piece(index: usize, arguments: &str) -> Value {
    json!({"index": index, "function": {"arguments": arguments}})
}

/// The beginning of the call with this number.
fn begun(index: usize, id: &str) -> Value {
    json!({"index": index, "id": id, "type": "function", "function": {"name": "Read", "arguments": ""}})
}

/// A call without a number.
fn bare(id: Value, name: &str, arguments: Value) -> Value {
    json!({"id": id, "function": {"name": name, "arguments": arguments}})
}

fn read_call(id: &str, input: Value) -> Block {
    call(id, "Read", input)
}

/// Checks that streams of these names and events give these calls.
fn check_calls(cases: Vec<(&str, Vec<String>, Vec<Block>)>) {
    for (what, events, expected) in cases {
        // Some say `stop` when they mean calls.
        for reason in ["tool_calls", "function_call", "stop"] {
            let response = answered(&[&events[..], &[finish(reason)]].concat());
            assert_eq!(
                (response.content, response.stop_reason),
                (expected.clone(), StopReason::ToolUse),
                "{what}"
            );
        }
    }
}

#[test]
fn calls_with_numbers_come_in_every_form() {
    check_calls(vec![
        (
            "pieces by number, mixed",
            vec![
                calls(json!([begun(0, "x")])),
                calls(json!([begun(1, "y"), piece(0, "{\"a\"")])),
                calls(json!([piece(1, "{}"), piece(0, ": \"é☃\"}")])),
            ],
            vec![read_call("x", json!({"a": "é☃"})), read_call("y", json!({}))],
        ),
        (
            "one number for all",
            vec![
                calls(one("Read", "{}")),
                calls(json!([{"index": 0, "id": "y", "function": {"name": "Read", "arguments": "{}"}}])),
            ],
            vec![read_call("x", json!({})), read_call("y", json!({}))],
        ),
        (
            "a name in pieces",
            vec![
                calls(one("Re", "")),
                calls(json!([{"index": 0, "function": {"name": "ad", "arguments": "{}"}}])),
            ],
            vec![read_call("x", json!({}))],
        ),
        (
            "other kinds of calls are skipped with their pieces",
            vec![
                calls(
                    json!([{"index": 0, "id": "w", "type": "custom", "custom": {"name": "Read", "input": "{}"}}]),
                ),
                calls(
                    json!([piece(0, "{}"), {"index": 1, "id": "x", "function": {"name": "Read", "arguments": "{}"}}]),
                ),
            ],
            vec![read_call("x", json!({}))],
        ),
        (
            "the old form",
            vec![
                delta(json!({"function_call": {"name": "Read", "arguments": ""}})),
                delta(json!({"function_call": {"arguments": "{\"a\": 1}"}})),
            ],
            vec![read_call("call", json!({"a": 1}))],
        ),
        (
            "double-encoded arguments",
            vec![calls(one("Read", "\"{\\\"a\\\": 1}\""))],
            vec![read_call("x", json!({"a": 1}))],
        ),
        (
            "an end that is missing",
            vec![calls(one("Read", "{\"a\": [\"b\""))],
            vec![read_call("x", json!({"a": ["b"]}))],
        ),
        (
            "an unknown tool is not this module's matter",
            vec![calls(one("Nope", "{}"))],
            vec![call("x", "Nope", json!({}))],
        ),
    ]);
}

#[test]
fn calls_without_numbers_come_in_every_form() {
    check_calls(vec![
        (
            "whole calls without numbers",
            vec![calls(json!([
                bare(json!("x"), "Read", json!("{}")),
                bare(json!("y"), "Read", json!("{\"a\":1}"))
            ]))],
            vec![read_call("x", json!({})), read_call("y", json!({"a": 1}))],
        ),
        (
            "neither numbers nor ids",
            vec![
                calls(json!([bare(Value::Null, "Read", json!(""))])),
                calls(json!([bare(json!(""), "Read", json!({"a": 1}))])),
            ],
            vec![read_call("call", json!({})), read_call("call-2", json!({"a": 1}))],
        ),
        (
            "pieces without numbers or ids go on with the last call",
            vec![
                calls(json!([bare(json!("x"), "Read", json!("{\"a\""))])),
                calls(json!([{"function": {"arguments": ":1}"}}])),
            ],
            vec![read_call("x", json!({"a": 1}))],
        ),
        (
            "the id and the name with every piece",
            vec![
                calls(json!([bare(json!("x"), "Read", json!("{\"a\""))])),
                calls(json!([bare(json!("x"), "Read", json!(":1}"))])),
            ],
            vec![read_call("x", json!({"a": 1}))],
        ),
        (
            "one id for all",
            vec![calls(json!([
                bare(json!("x"), "Read", json!("{}")),
                bare(json!("x"), "Read", json!("{\"a\":1}"))
            ]))],
            vec![read_call("x", json!({})), read_call("x-2", json!({"a": 1}))],
        ),
    ]);
}

#[test]
fn arguments_that_cannot_be_read_are_distinguished() {
    let invalid = "{\"a\": ";
    for (events, words) in [
        (vec![calls(one("Read", invalid)), finish("tool_calls")], "line 1 column"),
        (vec![calls(one("Read", "[1]")), finish("tool_calls")], "array"),
    ] {
        match &content(&events)[..] {
            [Block::ToolUse { input, input_error: Some(reason), .. }] => {
                assert!(reason.contains(words), "{reason}");
                assert!(input["invalid_arguments"].is_string());
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_finish_reason_is_understood_and_cuts_drop_calls() {
    for (wire, expected, kept) in [
        ("stop", StopReason::EndTurn, true),
        ("tool_calls", StopReason::EndTurn, true),
        ("length", StopReason::MaxTokens, false),
        ("model_length", StopReason::MaxTokens, false),
        ("content_filter", StopReason::Refusal, false),
        ("novelty", StopReason::Other("novelty".into()), true),
    ] {
        let response = answered(&[said("so"), finish(wire)]);
        assert_eq!((response.content, response.stop_reason), (vec![text("so")], expected), "{wire}");
        let with_call = content(&[said("so"), calls(one("Read", "{}")), finish(wire)]);
        assert_eq!(with_call.len(), if kept { 2 } else { 1 }, "{wire}");
    }
    let cut = content(&[said("so"), calls(one("Write", "{\"content\": \"half")), finish("length")]);
    assert_eq!(cut, [text("so")], "a call that the limit cut is never run");
}

#[test]
fn ends_that_are_left_out_are_made_up_only_where_all_has_come() {
    let without_reason = answered(&[said("all")]);
    assert_eq!(
        (without_reason.content, without_reason.stop_reason),
        (vec![text("all")], StopReason::EndTurn)
    );
    let with_call = answered(&[calls(one("Read", "{\"a\": 1}"))]);
    assert_eq!(with_call.stop_reason, StopReason::ToolUse);
    let without_done = read(&[said("all"), finish("stop")].concat()).unwrap();
    assert_eq!(without_done.stop_reason, StopReason::EndTurn);
    for (what, stream, kept) in [
        ("neither", said("so far"), Some(vec![text("so far")])),
        ("no content", DONE.to_owned(), None),
        ("nothing", String::new(), None),
        (
            "half an event",
            said("so far") + "data: {\"choices\": [{\"delta\": {\"cont",
            Some(vec![text("so far")]),
        ),
        ("an end that is half", said("so far") + "data: [DO", Some(vec![text("so far")])),
        ("a call that is half", calls(one("Read", "{\"a\": 1")) + DONE, Some(vec![])),
        ("a call without an end", said("so far") + &calls(one("Read", "{}")), Some(vec![text("so far")])),
    ] {
        let error = read(&stream).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Interrupted, "{what}: {error}");
        assert_eq!(error.partial.map(|partial| partial.content), kept, "{what}");
    }
}

#[test]
fn reasoning_is_no_answer_text() {
    for events in [
        [delta(json!({"reasoning_content": "h"})), delta(json!({"reasoning_content": "m", "content": null}))],
        [delta(json!({"reasoning": "h", "content": ""})), delta(json!({"reasoning": "m", "content": ""}))],
        [
            delta(json!({"reasoning": "hm", "reasoning_content": "hm"})),
            delta(json!({"reasoning": {"tokens": 3}})),
        ],
        [
            delta(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]})),
            delta(json!({})),
        ],
    ] {
        let all = [&events[..], &[said("yes"), finish("stop")]].concat();
        assert_eq!(content(&all), [thought("hm"), text("yes")], "{events:?}");
    }
    let inline = content(&[said("<think>hm</think>"), said("yes"), finish("stop")]);
    assert_eq!(inline, [text("<think>hm</think>yes")]);
}

#[test]
fn sealed_data_is_before_what_it_belongs_to() {
    let signed = |index: usize, signature: Value| {
        json!({"index": index, "id": format!("c{index}"), "type": "function", "extra_content": signature,
            "function": {"name": "Read", "arguments": "{}"}})
    };
    let signature = json!({"google": {"thought_signature": "s"}});
    let detail = json!({"type": "reasoning.encrypted", "data": "d", "index": 0});
    let events = [
        delta(json!({"reasoning_details": [detail]})),
        said("I look."),
        calls(json!([signed(0, signature.clone()), signed(1, Value::Null)])),
        delta(json!({"content": "", "extra_content": signature})),
        finish("tool_calls"),
    ];
    let sealed = |value: Value| Block::RedactedThinking { data: value.to_string() };
    assert_eq!(
        content(&events),
        [
            sealed(json!({"reasoning_details": [detail]})),
            sealed(json!({"message": {"extra_content": signature}})),
            text("I look."),
            sealed(json!({"call": {"extra_content": signature}})),
            read_call("c0", json!({})),
            read_call("c1", json!({})),
        ]
    );
    let alone = [delta(json!({"reasoning_details": [detail]})), finish("stop")];
    assert_eq!(content(&alone), [], "sealed data without an answer is none");
}

#[test]
fn blank_text_before_a_call_is_neither_shown_nor_kept() {
    let stream =
        [said("\n"), said("\n"), calls(one("Read", "{}")), finish("tool_calls"), DONE.to_owned()].concat();
    let mut shown = Vec::new();
    let response =
        replay(ChatAnswer::default(), [stream.as_bytes()], &mut |delta| shown.push(delta)).unwrap();
    assert_eq!(response.content, [call("x", "Read", json!({}))]);
    assert_eq!(shown, [Delta::ToolUse { index: 1, id: "x".into(), name: "Read".into() }]);
    let stream = [said("\n"), said("yes"), said(" no "), finish("stop"), DONE.to_owned()].concat();
    let mut shown = String::new();
    let response = replay(ChatAnswer::default(), [stream.as_bytes()], &mut |delta| match delta {
        Delta::Text { text, .. } => shown.push_str(&text),
        Delta::Thinking { .. } | Delta::ToolUse { .. } => panic!("{delta:?}"),
    });
    assert_eq!(response.unwrap().content, [text("\nyes no ")]);
    assert_eq!(shown, "\nyes no ");
}

#[test]
fn refusals_keep_their_words() {
    let events = [delta(json!({"refusal": "I ca"})), delta(json!({"refusal": "n't."})), finish("stop")];
    let response = answered(&events);
    assert_eq!((response.content, response.stop_reason), (vec![text("I can't.")], StopReason::Refusal));
}

#[test]
fn what_is_not_known_is_skipped() {
    let events = [
        ": OPENROUTER PROCESSING\n\n".to_owned(),
        event(json!({"choices": [], "prompt_filter_results": [{"index": 0}]})),
        event(json!({"novelty": 7})),
        delta(json!({"role": "assistant", "content": null, "tool_calls": null, "audio": {"id": "b"}})),
        "event: message\nid: 7\ndata: \n\n".to_owned(),
        event(json!({"choices": [{"index": 1, "delta": {"content": "another answer"}}]})),
        event(json!({"id": null, "choices": [{"index": null, "delta": {"content": "yes"}, "logprobs": null,
            "finish_reason": null}], "usage": null})),
        finish("stop"),
    ];
    assert_eq!(content(&events), [text("yes")]);
    let empty = answered(&[delta(json!({"role": "assistant", "content": ""})), finish("stop")]);
    assert_eq!((empty.content, empty.stop_reason), (vec![], StopReason::EndTurn));
}

#[test]
fn tokens_are_counted_as_the_server_does() {
    let counts = |usage: Value| {
        let last = event(json!({"choices": [], "usage": usage}));
        answered(&[said("yes"), finish("stop"), last]).usage
    };
    let usage = Usage {
        input_tokens: 30,
        output_tokens: 20,
        cache_read_tokens: 70,
        cache_write_tokens: 0,
        thinking_tokens: 15,
    };
    let counted = counts(json!({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 70}, "completion_tokens_details": {"reasoning_tokens": 15}}));
    assert_eq!(counted, usage);
    let beside = counts(json!({"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 120,
        "prompt_cache_hit_tokens": 70, "completion_tokens_details": {"reasoning_tokens": 15}}));
    assert_eq!(beside, usage);
    let odd = counts(json!({"prompt_tokens": 1, "completion_tokens": u64::MAX, "total_tokens": null,
        "prompt_tokens_details": {"cached_tokens": 5}, "completion_tokens_details": {"reasoning_tokens": u64::MAX}}));
    assert_eq!((odd.input_tokens, odd.cache_read_tokens), (0, 1));
    assert!(!counts(Value::Null).is_reported());
}

#[test]
fn errors_in_the_middle_are_typed_and_keep_what_came() {
    for (stream, kind, words) in [
        (
            event(json!({"error": {"message": "Overloaded", "type": "server_error", "code": null}})),
            ModelErrorKind::Server,
            "Overloaded",
        ),
        (
            event(
                json!({"error": {"message": "Slow", "code": 429}, "choices": [{"index": 0, "delta": {"content": ""},
            "finish_reason": "error"}]}),
            ),
            ModelErrorKind::RateLimited,
            "Slow",
        ),
        (event(json!({"error": "no slot"})), ModelErrorKind::Server, "no slot"),
        (
            event(json!({"object": "error", "message": "bad", "type": "BadRequestError", "code": 400})),
            ModelErrorKind::BadRequest,
            "bad",
        ),
        (
            event(
                json!({"error": {"message": "maximum context length is 5", "code": "context_length_exceeded"}}),
            ),
            ModelErrorKind::ContextTooLong,
            "maximum",
        ),
        ("event: error\ndata: out of memory\n\n".to_owned(), ModelErrorKind::Server, "out of memory"),
        (event(json!({"error": {}})), ModelErrorKind::Server, "broke the answer off"),
        (event(json!({"error": 7})), ModelErrorKind::Protocol, "does not say"),
        (finish("insufficient_system_resource"), ModelErrorKind::Server, "gave up"),
        ("data: {\"choices\": [{]}\n\n".to_owned(), ModelErrorKind::Protocol, "an event"),
        ("data: {\"choices\": 7}\n\n".to_owned(), ModelErrorKind::Protocol, "an event"),
    ] {
        let error = read(&(said("so far") + &stream + DONE)).unwrap_err();
        assert_eq!(error.kind, kind, "{stream}: {error}");
        assert!(error.message.contains(words), "{stream}: {error}");
        assert_eq!(error.partial.unwrap().content, [text("so far")], "{stream}");
    }
}

#[test]
fn characters_that_are_no_text_do_no_harm() {
    let stream =
        [b"data: {\"choices\":[{\"delta\":{\"content\":\"a\xff\xc3\"}}]}\n\n", finish("stop").as_bytes()]
            .concat();
    let response = replay_every_cut(ChatAnswer::default, &stream).unwrap();
    assert_eq!(response.content, [text("a\u{fffd}\u{fffd}")]);
}

#[test]
fn ids_of_earlier_answers_are_not_used_again() {
    let history = [Message::assistant(vec![call("x", "Read", json!({})), call("call", "Read", json!({}))])];
    let stream = [
        calls(json!([{"index": 0, "id": "x", "function": {"name": "Read", "arguments": "{}"}},
            {"index": 1, "function": {"name": "Read", "arguments": "{}"}}])),
        finish("tool_calls"),
    ]
    .concat();
    let response = replay_every_cut(|| ChatAnswer::to(&history), stream.as_bytes()).unwrap();
    assert_eq!(response.content, [call("x-2", "Read", json!({})), call("call-2", "Read", json!({}))]);
}
