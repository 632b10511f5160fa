//! Answers in Ollama's chat format.
//!
//! Rule: every line is a whole response with the new text; calls come whole; the last line tells the tokens.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{AnswerPart, ScriptedAnswer, WireAnswer, pieces};

/// Writes an answer.
pub(super) fn write(answer: &ScriptedAnswer<'_>) -> WireAnswer {
    let (mut content, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
    let mut events = Vec::new();
    for part in &answer.parts {
        match part {
            AnswerPart::Text(text) | AnswerPart::Refusal(text) => {
                content.push_str(text);
                events.extend(pieces(text, answer.chunk).map(|text| line(answer, &json!({"content": text}))));
            }
            AnswerPart::Thinking { text, .. } if answer.body["think"] != Value::Null => {
                thinking.push_str(text);
                let piece = |text| line(answer, &json!({"content": "", "thinking": text}));
                events.extend(pieces(text, answer.chunk).map(piece));
            }
            AnswerPart::Thinking { .. } | AnswerPart::Redacted { .. } => {}
            AnswerPart::Call { id, name, input, .. } => {
                let function = json!({"index": calls.len(), "name": name, "arguments": input});
                let call = json!({"id": id, "function": function});
                events.push(line(answer, &json!({"content": "", "tool_calls": [call]})));
                calls.push(call);
            }
        }
    }
    let mut message = json!({"role": "assistant", "content": content});
    if !thinking.is_empty() {
        message["thinking"] = json!(thinking);
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    events.push(written(&end(answer, &json!({"role": "assistant", "content": ""}))));
    WireAnswer { whole: end(answer, &message), events, output: None }
}

fn line(answer: &ScriptedAnswer<'_>, message: &Value) -> Bytes {
    let mut message = message.clone();
    message["role"] = json!("assistant");
    written(&json!({
        "model": answer.body["model"], "created_at": "2023-11-14T22:13:20Z", "message": message, "done": false,
    }))
}

fn end(answer: &ScriptedAnswer<'_>, message: &Value) -> Value {
    let reason = if answer.stop_reason == "max_tokens" { "length" } else { "stop" };
    json!({
        "model": answer.body["model"],
        "created_at": "2023-11-14T22:13:20Z",
        "message": message,
        "done": true,
        "done_reason": reason,
        "total_duration": 1_000_000,
        "load_duration": 0,
        "prompt_eval_count": answer.prompt_tokens(),
        "prompt_eval_duration": 400_000,
        "eval_count": answer.usage.output_tokens,
        "eval_duration": 600_000,
    })
}

fn written(line: &Value) -> Bytes {
    Bytes::from(format!("{line}\n"))
}
