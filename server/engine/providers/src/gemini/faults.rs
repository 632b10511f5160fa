//! The meaning of streams of every kind, healthy and broken, wherever their bytes are cut.
//!
//! Rule: each stream is read in one piece, in two at every byte, and byte by byte, and always means the same.

use serde_json::{Value, json};

use super::answer::GeminiAnswer;
use crate::exchange::testing::replay_every_cut;
use kode_model::{Block, ModelError, ModelErrorKind, ModelResponse, StopReason, Usage};

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

fn sealed(value: &Value) -> Block {
    Block::RedactedThinking { data: value.to_string() }
}

fn call(id: &str, input: Value) -> Block {
    Block::ToolUse { id: id.into(), name: "Read".into(), input, input_error: None }
}

fn event(chunk: &Value) -> String {
    format!("data: {chunk}\r\n\r\n")
}

fn parts(parts: Value) -> String {
    event(
        &json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}], "responseId": "r1"}),
    )
}

fn finish(reason: &str) -> String {
    event(&json!({
        "candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": reason, "index": 0}],
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 7, "thoughtsTokenCount": 5,
            "cachedContentTokenCount": 60, "totalTokenCount": 112},
    }))
}

fn read(events: &[String]) -> Result<ModelResponse, ModelError> {
    replay_every_cut(GeminiAnswer::default, events.concat().as_bytes())
}

fn content(events: &[String]) -> Vec<Block> {
    read(events).unwrap().content
}

fn called(id: &str, args: Value) -> Value {
    json!({"functionCall": {"id": id, "name": "Read", "args": args}})
}

#[test]
fn a_whole_answer_has_its_blocks_and_tokens() {
    let response = read(&[
        parts(json!([{"text": "I ", "thought": true}])),
        parts(json!([{"text": "think.", "thought": true}])),
        parts(json!([{"text": "I look"}])),
        parts(json!([{"text": " now."}])),
        parts(json!([called("c1", json!({"a": 1}))])),
        finish("STOP"),
    ])
    .unwrap();
    let thinking = Block::Thinking { thinking: "I think.".into(), signature: String::new() };
    assert_eq!(response.content, [thinking, text("I look now."), call("c1", json!({"a": 1}))]);
    assert_eq!((response.id.as_deref(), response.stop_reason), (Some("r1"), StopReason::ToolUse));
    let usage = Usage {
        input_tokens: 40,
        output_tokens: 12,
        cache_read_tokens: 60,
        cache_write_tokens: 0,
        thinking_tokens: 5,
    };
    assert_eq!(response.usage, usage);
}

#[test]
fn signatures_stay_with_their_parts() {
    let mut signed = called("c1", json!({}));
    signed["thoughtSignature"] = json!("s1");
    let calls = [parts(json!([signed, called("c2", json!({}))])), finish("STOP")];
    assert_eq!(
        content(&calls),
        [sealed(&json!({"call_signature": "s1"})), call("c1", json!({})), call("c2", json!({}))]
    );
    for (last, tail) in [("", 0), (" end", 4)] {
        let events = [
            parts(json!([{"text": "The"}])),
            parts(json!([{"text": last, "thoughtSignature": "s2"}])),
            finish("STOP"),
        ];
        let seal = sealed(&json!({"text_signature": {"signature": "s2", "tail": tail}}));
        assert_eq!(content(&events), [seal, text(&format!("The{last}"))]);
    }
    let thought = parts(json!([{"text": "hm", "thought": true, "thoughtSignature": "s3"}]));
    let thinking = Block::Thinking { thinking: "hm".into(), signature: "s3".into() };
    assert_eq!(content(&[thought, parts(json!([{"text": "so"}])), finish("STOP")]), [thinking, text("so")]);
    let alone = parts(json!([{"text": "", "thoughtSignature": "s4"}]));
    assert_eq!(content(&[alone, finish("STOP")]), [], "a signature without an answer is none");
}

#[test]
fn every_finish_reason_is_understood_and_cuts_drop_calls() {
    for (reason, expected, keeps) in [
        ("STOP", StopReason::ToolUse, true),
        ("MAX_TOKENS", StopReason::MaxTokens, false),
        ("SAFETY", StopReason::Refusal, false),
        ("RECITATION", StopReason::Refusal, false),
        ("OTHER", StopReason::Other("other".into()), true),
    ] {
        let response = read(&[parts(json!([called("c1", json!({}))])), finish(reason)]).unwrap();
        assert_eq!(
            (response.stop_reason, response.content.len()),
            (expected, usize::from(keeps)),
            "{reason}"
        );
    }
    for reason in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"] {
        let error = read(&[parts(json!([{"text": "I"}])), finish(reason)]).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Server, "it is tried again");
        assert_eq!(error.partial.unwrap().content, [text("I")]);
    }
}

#[test]
fn a_blocked_prompt_is_a_refusal() {
    let blocked = event(&json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}));
    let response = read(&[blocked]).unwrap();
    assert_eq!(response.stop_reason, StopReason::Refusal);
    assert_eq!(response.content, [text("The provider blocked the prompt: PROHIBITED_CONTENT.")]);
}

#[test]
fn calls_without_ids_and_with_odd_arguments_are_distinguished() {
    let nameless = json!({"functionCall": {"name": "Read"}});
    let odd = json!({"functionCall": {"name": "Read", "args": [1]}});
    let none = json!({"functionCall": {"args": {}}});
    let blocks = content(&[parts(json!([nameless, nameless, odd, none])), finish("STOP")]);
    assert_eq!(blocks[..2], [call("call", json!({})), call("call-2", json!({}))]);
    let Block::ToolUse { input, input_error, .. } = &blocks[2] else { panic!("{blocks:?}") };
    assert_eq!(input, &json!({"invalid_arguments": "[1]"}));
    assert!(input_error.is_some() && blocks.len() == 3, "{blocks:?}");
}

#[test]
fn what_breaks_off_keeps_what_came() {
    let error = read(&[parts(json!([{"text": "I look"}, called("c1", json!({}))]))]).unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Interrupted);
    assert_eq!(error.partial.unwrap().content, [text("I look")]);
    let failed = event(
        &json!({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}),
    );
    let error = read(&[parts(json!([{"text": "I"}])), failed]).unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Server);
    assert!(error.message.contains("overloaded"), "{}", error.message);
    assert_eq!(read(&["data: {\r\n\r\n".to_owned()]).unwrap_err().kind, ModelErrorKind::Protocol);
}

#[test]
fn what_is_not_known_is_skipped() {
    let odd = json!({"executableCode": {"code": "1"}, "newField": 1});
    let other = event(&json!({"candidates": [{"index": 1, "content": {"parts": [{"text": "other"}]}}]}));
    let events = [parts(json!([odd, {"text": "yes"}])), other, event(&json!({"new": 1})), finish("STOP")];
    assert_eq!(content(&events), [text("yes")]);
}
