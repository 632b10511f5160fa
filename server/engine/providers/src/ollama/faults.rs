//! The meaning of streams of every kind, healthy and broken, wherever their bytes are cut. The healthy ones are those that
//! Ollama's API reference shows.
//!
//! Rule: each stream is read in one piece, in two at every byte, and byte by byte, and always means the same.

use serde_json::{Value, json};

use super::answer::OllamaAnswer;
use crate::exchange::testing::{Framing, replay_every_cut_of};
use kode_model::{Block, ModelError, ModelErrorKind, ModelResponse, StopReason};

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

fn call(id: &str, name: &str, input: Value) -> Block {
    Block::ToolUse { id: id.into(), name: name.into(), input, input_error: None }
}

fn read(lines: &[Value]) -> Result<ModelResponse, ModelError> {
    let stream: String = lines.iter().map(|line| format!("{line}\n")).collect();
    replay_every_cut_of(Framing::lines, OllamaAnswer::default, stream.as_bytes())
}

fn message(message: Value) -> Value {
    json!({"model": "llama3.2", "created_at": "2023-08-04T08:52:19.385406455-07:00", "message": message, "done": false})
}

fn said(text: &str) -> Value {
    message(json!({"role": "assistant", "content": text, "images": null}))
}

fn done(reason: &str) -> Value {
    json!({
        "model": "llama3.2", "created_at": "2023-08-04T19:22:45.499127Z",
        "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": reason,
        "total_duration": 4_883_583_458_u64, "load_duration": 1_334_875, "prompt_eval_count": 26,
        "prompt_eval_duration": 342_546_000, "eval_count": 282, "eval_duration": 4_535_599_000_u64,
    })
}

#[test]
fn a_streamed_answer_has_its_text_and_tokens() {
    let response = read(&[said("The"), said(" sky"), done("stop")]).unwrap();
    assert_eq!((response.content, response.stop_reason), (vec![text("The sky")], StopReason::EndTurn));
    assert_eq!((response.usage.input_tokens, response.usage.output_tokens), (26, 282));
}

#[test]
fn thinking_and_calls_are_distinguished() {
    let weather = json!({"function": {"name": "get_weather", "arguments": {"city": "Tokyo"}}});
    let response = read(&[
        message(json!({"role": "assistant", "content": "", "thinking": "I "})),
        message(json!({"role": "assistant", "content": "", "thinking": "think."})),
        message(json!({"role": "assistant", "content": "\n"})),
        message(json!({"role": "assistant", "content": "", "tool_calls": [weather]})),
        message(json!({"role": "assistant", "content": "", "tool_calls": [
            {"id": "c7", "function": {"index": 1, "name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}}]})),
        done("stop"),
    ])
    .unwrap();
    assert_eq!(
        response.content,
        [
            Block::Thinking { thinking: "I think.".into(), signature: String::new() },
            call("call", "get_weather", json!({"city": "Tokyo"})),
            call("c7", "get_weather", json!({"city": "Paris"})),
        ]
    );
    assert_eq!(response.stop_reason, StopReason::ToolUse);
}

#[test]
fn a_cut_answer_keeps_its_text_and_not_its_calls() {
    let called = json!({"function": {"name": "Read", "arguments": {}}});
    let response = read(&[said("I look"), message(json!({"tool_calls": [called]})), done("length")]).unwrap();
    assert_eq!((response.content, response.stop_reason), (vec![text("I look")], StopReason::MaxTokens));
    let broken = read(&[said("I look"), message(json!({"tool_calls": [called]}))]).unwrap_err();
    assert_eq!(
        (broken.kind, broken.partial.unwrap().content),
        (ModelErrorKind::Interrupted, vec![text("I look")])
    );
}

#[test]
fn errors_in_the_middle_are_typed() {
    let error =
        read(&[said("I"), json!({"error": "an error was encountered while running the model"})]).unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Server);
    assert!(error.message.contains("while running the model"), "{}", error.message);
    let unreadable = replay_every_cut_of(Framing::lines, OllamaAnswer::default, b"not json\n").unwrap_err();
    assert_eq!(unreadable.kind, ModelErrorKind::Protocol);
}
