//! Answers as servers send them, whole, odd and broken, cut at every byte.
//!
//! Rule: whatever comes, and however it is cut, there is one answer or one typed error, and never a call that was not
//! complete.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::answer::ResponsesAnswer;
use crate::exchange::{StreamedAnswer, replay};
use kode_model::{Block, Delta, Message, ModelError, ModelErrorKind, ModelResponse, StopReason, Usage};

/// A stream of these events, each named by its type.
fn stream(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect()
}

fn read(stream: &str) -> (Result<ModelResponse, ModelError>, Vec<Delta>, bool) {
    read_chunks(&[stream.as_bytes()])
}

fn read_chunks(chunks: &[&[u8]]) -> (Result<ModelResponse, ModelError>, Vec<Delta>, bool) {
    let resumable = Arc::new(AtomicBool::new(false));
    let mut deltas = Vec::new();
    let answer = ResponsesAnswer::to(&[], Arc::clone(&resumable));
    let result = replay(answer, chunks.iter().copied(), &mut |delta| deltas.push(delta));
    (result, deltas, resumable.load(Ordering::Acquire))
}

fn created() -> Value {
    json!({"type": "response.created", "sequence_number": 0, "response": {"id": "resp_1", "object": "response",
        "status": "in_progress", "error": null, "output": [], "usage": null, "tools": [{"type": "function"}]}})
}

fn added(index: usize, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: usize, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "Read",
        "arguments": arguments, "status": "completed"})
}

fn reasoning() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"},
        {"type": "summary_text", "text": "aha"}], "encrypted_content": "gAAA"})
}

fn delta(kind: &str, index: usize, delta: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": index, "delta": delta})
}

fn end(status: &str, rest: Value) -> Value {
    let mut response = json!({"id": "resp_1", "status": status, "output": [], "usage": {"input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 7}, "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 15}});
    response.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    json!({"type": format!("response.{status}"), "response": response})
}

fn completed() -> Value {
    end("completed", json!({}))
}

/// An answer with everything in it.
fn full() -> Vec<Value> {
    let summary = |part: usize, text: &str| {
        json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0,
            "summary_index": part, "delta": text, "sequence_number": 3})
    };
    vec![
        created(),
        json!({"type": "response.in_progress", "response": {"id": "resp_1"}}),
        added(0, json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "part": {}}),
        summary(0, "hm"),
        summary(1, "aha"),
        json!({"type": "response.reasoning_summary_text.done", "output_index": 0, "summary_index": 1, "text": "aha"}),
        done(0, reasoning()),
        added(1, json!({"type": "message", "id": "msg_1", "status": "in_progress", "content": []})),
        json!({"type": "response.content_part.added", "output_index": 1, "content_index": 0,
            "part": {"type": "output_text", "text": ""}}),
        delta("output_text", 1, "Aé☃"),
        delta("output_text", 1, "𝄞"),
        json!({"type": "response.output_text.annotation.added", "output_index": 1, "annotation": {}}),
        json!({"type": "response.output_text.done", "output_index": 1, "content_index": 0, "text": "Aé☃𝄞"}),
        done(1, message("Aé☃𝄞")),
        added(
            2,
            json!({"type": "function_call", "id": "fc_a", "call_id": "a", "name": "Read", "arguments": ""}),
        ),
        delta("function_call_arguments", 2, "{\"p\":"),
        delta("function_call_arguments", 2, "1}"),
        json!({"type": "response.function_call_arguments.done", "output_index": 2, "arguments": "{\"p\":1}"}),
        done(2, call("a", "{\"p\":1}")),
        completed(),
    ]
}

fn calls(response: &ModelResponse) -> Vec<(&str, &Value)> {
    fn call(block: &Block) -> Option<(&str, &Value)> {
        match block {
            Block::ToolUse { id, input, .. } => Some((id, input)),
            _ => None,
        }
    }
    response.content.iter().filter_map(call).collect()
}

fn said(content: &[Block]) -> String {
    let text = |block: &Block| match block {
        Block::Text { text } => Some(text.clone()),
        _ => None,
    };
    content.iter().filter_map(text).collect::<Vec<_>>().join("|")
}

#[test]
fn a_whole_answer_is_read_the_same_wherever_it_is_cut_in_two() {
    let stream = stream(&full());
    let (response, deltas, resumable) = read(&stream);
    let response = response.unwrap();
    assert_eq!(
        response,
        ModelResponse {
            id: Some("resp_1".into()),
            content: vec![
                Block::Thinking { thinking: "hm\n\naha".into(), signature: String::new() },
                Block::RedactedThinking { data: reasoning().to_string() },
                Block::Text { text: "Aé☃𝄞".into() },
                Block::ToolUse {
                    id: "a".into(),
                    name: "Read".into(),
                    input: json!({"p": 1}),
                    input_error: None
                },
            ],
            stop_reason: StopReason::ToolUse,
            usage: Usage {
                input_tokens: 3,
                output_tokens: 5,
                cache_read_tokens: 7,
                cache_write_tokens: 0,
                thinking_tokens: 2
            },
        }
    );
    let thinking = |text: &str| Delta::Thinking { index: 0, text: text.into() };
    let text = |text: &str| Delta::Text { index: 2, text: text.into() };
    let called = Delta::ToolUse { index: 3, id: "a".into(), name: "Read".into() };
    assert_eq!(deltas, [thinking("hm"), thinking("\n\naha"), text("Aé☃"), text("𝄞"), called]);
    assert!(resumable);
    for cut in 0..=stream.len() {
        let (first, second) = stream.as_bytes().split_at(cut);
        let (again, again_deltas, _) = read_chunks(&[first, second]);
        assert_eq!((again.unwrap(), again_deltas), (response.clone(), deltas.clone()), "cut at {cut}");
    }
}

#[test]
fn an_answer_that_ends_at_any_byte_is_interrupted_and_has_no_call() {
    let stream = stream(&full());
    let last = stream.rfind("event: response.completed").unwrap();
    for end in 0..last {
        let (result, deltas, resumable) = read_chunks(&[&stream.as_bytes()[..end]]);
        let error = result.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Interrupted, "after {end} bytes: {error}");
        assert!(!resumable);
        let content = error.partial.map(|partial| partial.content).unwrap_or_default();
        assert!(!content.iter().any(|block| matches!(block, Block::ToolUse { .. })), "after {end} bytes");
        let shown: String = deltas
            .iter()
            .map(|delta| match delta {
                Delta::Text { text, .. } => text.as_str(),
                Delta::Thinking { .. } | Delta::ToolUse { .. } => "",
            })
            .collect();
        assert_eq!(said(&content), shown, "after {end} bytes");
    }
}

/// The meaning of a broken or odd stream.
enum ExpectedResult {
    /// The text, why it stopped, the calls, and whether the conversation can continue from the server's copy.
    Answer(&'static str, StopReason, &'static [&'static str], bool),
    /// An error of that kind with these words, and the text before.
    Fault(ModelErrorKind, &'static str, &'static str),
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn table() -> Vec<(&'static str, String, ExpectedResult)> {
    use ModelErrorKind::{BadRequest, ContextTooLong, Interrupted, Protocol, RateLimited, Server};
    use StopReason::{EndTurn, MaxTokens, Refusal, ToolUse};

    use ExpectedResult::{Answer, Fault};
    let text = || [created(), delta("output_text", 0, "so far")];
    let after = |rest: &[Value]| stream(&[&text()[..], rest].concat());
    let fc =
        |id: &str| json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "Read"});
    let incomplete = |reason: Value| end("incomplete", json!({"incomplete_details": reason}));
    vec![
        ("nothing at all", String::new(), Fault(Interrupted, "ended before", "")),
        ("only signs of life", ": ping\n\n".repeat(9), Fault(Interrupted, "ended before", "")),
        ("no end", after(&[]), Fault(Interrupted, "ended before", "so far")),
        (
            "half an event",
            format!("{}event: response.completed\ndata: {{\"resp", after(&[])),
            Fault(Interrupted, "ended before", "so far"),
        ),
        (
            "an event that is no JSON",
            format!("{}event: response.completed\ndata: {{\"resp\n\n", after(&[])),
            Fault(Protocol, "response.completed", "so far"),
        ),
        (
            "bytes of another protocol",
            "\u{0}\u{1}HTTP/2 garbage\r\n\r\n".into(),
            Fault(Interrupted, "ended", ""),
        ),
        (
            "an end without its response",
            after(&[json!({"type": "response.completed"})]),
            Fault(Protocol, "response", "so far"),
        ),
        (
            "an end that is none",
            after(&[json!({"type": "response.completed", "response": {"status": "queued"}})]),
            Fault(Interrupted, "stop reason", "so far"),
        ),
        (
            "an error event",
            after(&[json!({"type": "error", "code": "server_error", "message": "Oops", "param": null})]),
            Fault(Server, "Oops", "so far"),
        ),
        (
            "an error event around an error",
            after(&[json!({"type": "error", "error": {"type": "tokens",
            "code": "rate_limit_exceeded", "message": "Slow down"}})]),
            Fault(RateLimited, "Slow down", "so far"),
        ),
        (
            "an error event without words",
            after(&[json!({"type": "error", "message": null})]),
            Fault(Server, "without words", "so far"),
        ),
        (
            "failed",
            after(&[end("failed", json!({"error": {"code": "rate_limit_exceeded", "message": "Slow"}}))]),
            Fault(RateLimited, "Slow", "so far"),
        ),
        (
            "failed by its prompt",
            after(&[end("failed", json!({"error": {"code": "invalid_prompt", "message": "No"}}))]),
            Fault(BadRequest, "No", "so far"),
        ),
        (
            "failed by its length",
            after(&[end(
                "failed",
                json!({"error": {"code": "context_length_exceeded",
            "message": "Your input exceeds the context window of this model."}}),
            )]),
            Fault(ContextTooLong, "exceeds", "so far"),
        ),
        (
            "failed without a reason",
            after(&[end("failed", json!({"error": null}))]),
            Fault(Server, "without a reason", "so far"),
        ),
        (
            "cut by the token limit",
            after(&[
                added(1, fc("a")),
                delta("function_call_arguments", 1, "{\"p\":"),
                incomplete(json!({"reason": "max_output_tokens"})),
            ]),
            Answer("so far", MaxTokens, &[], false),
        ),
        (
            "cut by the limit after a call",
            after(&[
                added(1, fc("a")),
                done(1, call("a", "{}")),
                incomplete(json!({"reason": "max_output_tokens"})),
            ]),
            Answer("so far", MaxTokens, &[], false),
        ),
        (
            "cut by a filter",
            after(&[incomplete(json!({"reason": "content_filter"}))]),
            Answer("so far", Refusal, &[], false),
        ),
        (
            "cut for a new reason",
            after(&[incomplete(json!({"reason": "steered"}))]),
            Answer("so far", StopReason::Other("steered".into()), &[], false),
        ),
        (
            "cut for no reason",
            after(&[incomplete(Value::Null)]),
            Answer("so far", StopReason::Other("incomplete".into()), &[], false),
        ),
        (
            "completed, but incomplete",
            after(&[json!({"type": "response.completed", "response":
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}})]),
            Answer("so far", MaxTokens, &[], false),
        ),
        (
            "a refusal",
            stream(&[
                created(),
                delta("refusal", 0, "I can"),
                delta("refusal", 0, "not"),
                added(1, fc("a")),
                done(1, call("a", "{}")),
                completed(),
            ]),
            Answer("I cannot", Refusal, &[], false),
        ),
        (
            "a call that never ended",
            after(&[added(1, fc("a")), delta("function_call_arguments", 1, "{}"), completed()]),
            Answer("so far", EndTurn, &[], false),
        ),
        (
            "an incomplete call in a complete answer",
            after(&[
                added(1, fc("a")),
                done(
                    1,
                    json!({"type": "function_call", "call_id": "a", "id": "fc_a", "name": "Read",
            "arguments": "{\"p\"", "status": "incomplete"}),
                ),
                completed(),
            ]),
            Answer("so far", EndTurn, &[], false),
        ),
        (
            "a call without a name",
            after(&[done(1, json!({"type": "function_call", "call_id": "a"})), completed()]),
            Answer("so far", EndTurn, &[], false),
        ),
        (
            "ids used twice",
            stream(&[
                created(),
                done(0, call("a", "{}")),
                done(
                    1,
                    json!({"type": "function_call", "call_id": "a", "id": "fc_b", "name": "Read", "arguments": "{}"}),
                ),
                completed(),
            ]),
            Answer("", ToolUse, &["a", "a-2"], false),
        ),
        (
            "a call without an id",
            stream(&[created(), done(0, json!({"type": "function_call", "name": "Read"})), completed()]),
            Answer("", ToolUse, &["call"], false),
        ),
        (
            "every item at the number nought",
            stream(&[
                created(),
                done(0, message("a")),
                added(0, fc("a")),
                done(0, call("a", "{}")),
                added(0, fc("b")),
                done(0, call("b", "{}")),
                completed(),
            ]),
            Answer("a", ToolUse, &["a", "b"], true),
        ),
        (
            "no numbers at all",
            stream(&[
                created(),
                json!({"type": "response.output_item.added", "item": {"type": "message", "id": "m"}}),
                json!({"type": "response.output_text.delta", "item_id": "m", "delta": "x"}),
                json!({"type": "response.output_item.done", "item": {"type": "message", "id": "m"}}),
                json!({"type": "response.output_item.done", "item": call("a", "{}")}),
                completed(),
            ]),
            Answer("x", ToolUse, &["a"], true),
        ),
        (
            "numbers beyond all bounds",
            stream(&[
                created(),
                added(usize::MAX, fc("a")),
                done(usize::MAX, call("a", "{}")),
                json!({"type": "response.output_text.delta", "output_index": 7_000_000, "content_index": usize::MAX,
            "delta": "x"}),
                completed(),
            ]),
            Answer("x", ToolUse, &["a"], true),
        ),
        (
            "more items than there can be",
            stream(&(0..4200).map(|at| done(at, call(&at.to_string(), "{}"))).collect::<Vec<_>>()),
            Fault(Protocol, "more than", ""),
        ),
        (
            "only the end",
            stream(&[end("completed", json!({"output": [reasoning(), message("x"), call("a", "{}")]}))]),
            Answer("x", ToolUse, &["a"], true),
        ),
        (
            "the end knows more",
            stream(&[
                created(),
                added(0, json!({"type": "message", "id": "msg_1"})),
                end("completed", json!({"output": [message("x"), call("a", "{}")]})),
            ]),
            Answer("x", ToolUse, &["a"], true),
        ),
        (
            "the end says it again",
            after(&[
                done(1, call("a", "{}")),
                end("completed", json!({"output": [message("so far"), call("a", "{}")]})),
            ]),
            Answer("so far", ToolUse, &["a"], true),
        ),
        (
            "unknown events, items and parts",
            stream(&[
                created(),
                json!({"type": "response.news", "delta": {"text": 7}}),
                added(0, json!({"type": "hologram", "id": 7, "content": "beam"})),
                delta("hologram", 0, "no"),
                delta("output_text", 0, "no"),
                done(0, json!({"type": "hologram"})),
                done(
                    1,
                    json!({"type": "message", "content": [{"type": "smell", "text": "no"},
            {"type": "output_text", "text": "yes"}], "novelty": [1]}),
                ),
                completed(),
            ]),
            Answer("yes", EndTurn, &[], true),
        ),
        (
            "null wherever possible",
            stream(&[
                created(),
                added(0, json!({"type": "message", "id": null, "content": null})),
                json!({"type": "response.output_text.delta", "output_index": null, "item_id": null, "content_index": null,
            "delta": "x", "text": null}),
                json!({"type": "response.completed", "response": {"status": "completed",
            "output": null, "usage": null, "incomplete_details": null, "error": null, "id": null}}),
            ]),
            Answer("x", EndTurn, &[], true),
        ),
        (
            "events without names",
            full().iter().map(|event| format!("data: {event}\r\n\r\n")).collect(),
            Answer("Aé☃𝄞", ToolUse, &["a"], true),
        ),
        (
            "the mark of another format",
            format!("data: [DONE]\n\n{}", after(&[completed()])),
            Answer("so far", EndTurn, &[], true),
        ),
        ("an empty answer", stream(&[created(), completed()]), Answer("", EndTurn, &[], true)),
    ]
}

#[test]
fn every_fault_is_an_answer_without_the_broken_part_or_a_typed_error() {
    let table = table();
    assert!(table.len() >= 20);
    for (name, stream, means) in table {
        let whole = read(&stream);
        let (result, _, resumable) = &whole;
        match (result, means) {
            (Ok(response), ExpectedResult::Answer(text, stop_reason, ids, continues)) => {
                assert_eq!(said(&response.content), text, "{name}");
                assert_eq!(response.stop_reason, stop_reason, "{name}");
                let found: Vec<&str> = calls(response).into_iter().map(|(id, _)| id).collect();
                assert_eq!(found, ids, "{name}");
                assert_eq!(*resumable, continues, "{name}");
            }
            (Err(error), ExpectedResult::Fault(kind, words, text)) => {
                assert_eq!(error.kind, kind, "{name}: {error}");
                assert!(error.message.contains(words), "{name}: {error}");
                let partial =
                    error.partial.as_ref().map(|partial| said(&partial.content)).unwrap_or_default();
                assert_eq!(partial, text, "{name}");
            }
            (result, _) => panic!("{name}: {result:?}"),
        }
        if stream.len() > 20_000 {
            continue;
        }
        let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        assert_eq!(read_chunks(&bytes), whole, "{name}, byte by byte");
        for cut in 0..=stream.len() {
            let (first, second) = stream.as_bytes().split_at(cut);
            assert_eq!(read_chunks(&[first, second]), whole, "{name}, cut at {cut}");
        }
    }
}

#[test]
fn arguments_that_are_no_object_are_distinguished() {
    for (arguments, expected, is_error) in [
        ("", json!({}), false),
        (r#"{"a":1}"#, json!({"a": 1}), false),
        ("[1]", json!({"invalid_arguments": "[1]"}), true),
    ] {
        let response = read(&stream(&[created(), done(0, call("a", arguments)), completed()])).0.unwrap();
        match &response.content[..] {
            [Block::ToolUse { input, input_error, .. }] => {
                assert_eq!((input, input_error.is_some()), (&expected, is_error), "{arguments}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn reasoning_that_only_names_what_the_server_has_is_not_kept() {
    let bare = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let open =
        json!({"type": "reasoning", "id": "rs_1", "content": [{"type": "reasoning_text", "text": "hm"}]});
    let answer = |item: &Value| {
        read(&stream(&[created(), done(0, item.clone()), done(1, message("x")), completed()]))
            .0
            .unwrap()
            .content
    };
    assert_eq!(answer(&bare), [Block::Text { text: "x".into() }]);
    assert_eq!(
        answer(&open)[..2],
        [
            Block::Thinking { thinking: "hm".into(), signature: String::new() },
            Block::RedactedThinking { data: open.to_string() }
        ]
    );
}

#[test]
fn ids_of_earlier_answers_are_not_used_again() {
    let earlier = Block::ToolUse { id: "a".into(), name: "Read".into(), input: json!({}), input_error: None };
    let resumable = Arc::new(AtomicBool::new(true));
    let answer = ResponsesAnswer::to(&[Message::assistant(vec![earlier])], Arc::clone(&resumable));
    let stream = stream(&[created(), done(0, call("a", "{}")), completed()]);
    let response = replay(answer, [stream.as_bytes()], &mut |_| {}).unwrap();
    assert_eq!(calls(&response)[0].0, "a-2");
    assert!(!resumable.load(Ordering::Acquire), "the server knows the call by another id");
}

#[test]
fn answers_that_are_not_streamed_are_read_as_well() {
    let whole = |body: Value| {
        let mut answer = ResponsesAnswer::to(&[], Arc::default());
        let mut deltas = Vec::new();
        let ended = answer.apply_whole(body.to_string().as_bytes(), &mut |delta| deltas.push(delta));
        (ended.map(|()| answer.into_response()), deltas.len())
    };
    let (response, deltas) = whole(
        json!({"object": "response", "id": "resp_1", "status": "completed", "error": null,
        "output": [reasoning(), message("x"), call("a", "{}")], "usage": {"input_tokens": 1, "output_tokens": 2}}),
    );
    let response = response.unwrap();
    assert_eq!((said(&response.content).as_str(), calls(&response).len(), deltas), ("x", 1, 4));
    assert_eq!((response.stop_reason, response.usage.input_tokens), (StopReason::ToolUse, 1));
    for broken in [
        json!({"object": "list", "data": []}),
        json!({"status": "in_progress", "output": []}),
        json!({"error": {"message": "no"}}),
        json!({"object": "response", "status": "failed", "error": {"code": "x", "message": "no"}}),
        json!([]),
        json!({}),
    ] {
        assert!(whole(broken.clone()).0.is_err(), "{broken}");
    }
}
