//! Answers in the Responses format.
//!
//! Rule: every item is added, filled and done, with one running number over all events. Reasoning is shown and sealed
//! only where the request asks for it, and its seal names the model, for no other one can read it.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{AnswerPart, CREATED, ID_MARK, ScriptedAnswer, WireAnswer, named_event, pieces};

/// The field of `include` that asks for sealed reasoning.
pub(in crate::scripted) const SEALED: &str = "reasoning.encrypted_content";

/// The seal of reasoning: what it begins with for a model.
pub(in crate::scripted) fn seal_of(model: &Value) -> String {
    format!("sealed:{}:", model.as_str().unwrap_or_default())
}

/// Writes an answer.
pub(super) fn write(answer: &ScriptedAnswer<'_>) -> WireAnswer {
    let id = format!("resp{ID_MARK}{:x}_{}", answer.numbers.server, answer.numbers.message);
    let incomplete = match answer.stop_reason.as_str() {
        "max_tokens" => Some("max_output_tokens"),
        "refusal" if !answer.parts.iter().any(|part| matches!(part, AnswerPart::Refusal(_))) => {
            Some("content_filter")
        }
        _ => None,
    };
    let end = if incomplete.is_some() { "incomplete" } else { "completed" };
    let last = answer.parts.len().saturating_sub(1);
    let mut stream = Stream::default();
    let begun = response(answer, &id, "in_progress", None, Vec::new());
    stream.send("response.created", json!({ "response": begun }));
    stream.send("response.in_progress", json!({ "response": begun }));
    let mut output = Vec::with_capacity(answer.parts.len());
    for (index, part) in answer.parts.iter().enumerate() {
        let status = if index == last { end } else { "completed" };
        output.push(item(answer, part, index, status, &mut stream));
    }
    let whole = response(answer, &id, end, incomplete, output.clone());
    stream.send(&format!("response.{end}"), json!({ "response": whole }));
    WireAnswer {
        whole,
        events: stream.events,
        output: Some((id, output.into_iter().map(Arc::new).collect())),
    }
}

/// Events with their running number.
#[derive(Default)]
struct Stream {
    events: Vec<Bytes>,
}

impl Stream {
    fn send(&mut self, kind: &str, mut data: Value) {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.events.len());
        self.events.push(named_event(&data));
    }
}

/// Streams an item and gives it as it is at the end.
fn item(
    answer: &ScriptedAnswer<'_>,
    part: &AnswerPart,
    index: usize,
    status: &str,
    stream: &mut Stream,
) -> Value {
    let id =
        |kind: &str| format!("{kind}{ID_MARK}{:x}_{}_{index}", answer.numbers.server, answer.numbers.message);
    match part {
        AnswerPart::Text(text) => message(answer, &id("msg"), index, status, ("output_text", text), stream),
        AnswerPart::Refusal(text) => message(answer, &id("msg"), index, status, ("refusal", text), stream),
        AnswerPart::Thinking { text, signature } => {
            reasoning(answer, &id("rs"), index, (text, signature), stream)
        }
        AnswerPart::Redacted { data } => reasoning(answer, &id("rs"), index, ("", data), stream),
        AnswerPart::Call { id: call_id, name, input, .. } if is_custom(answer.body, name) => {
            let id = id("ctc");
            let text = input["input"].as_str().unwrap_or_default();
            let item = |status: &str, text: &str| {
                json!({
                    "type": "custom_tool_call", "id": id, "call_id": call_id, "name": name,
                    "input": text, "status": status,
                })
            };
            added(stream, index, &item("in_progress", ""));
            for delta in pieces(text, answer.chunk) {
                let data = json!({"item_id": id, "output_index": index, "delta": delta});
                stream.send("response.custom_tool_call_input.delta", data);
            }
            let data = json!({"item_id": id, "output_index": index, "input": text});
            stream.send("response.custom_tool_call_input.done", data);
            done(stream, index, item(status, text))
        }
        AnswerPart::Call { id: call_id, name, arguments, .. } => {
            let id = id("fc");
            let item = |status: &str, arguments: &str| {
                json!({
                    "type": "function_call", "id": id, "call_id": call_id, "name": name,
                    "arguments": arguments, "status": status,
                })
            };
            added(stream, index, &item("in_progress", ""));
            for delta in pieces(arguments, answer.chunk) {
                let data = json!({"item_id": id, "output_index": index, "delta": delta});
                stream.send("response.function_call_arguments.delta", data);
            }
            let data = json!({"item_id": id, "output_index": index, "name": name, "arguments": arguments});
            stream.send("response.function_call_arguments.done", data);
            done(stream, index, item(status, arguments))
        }
    }
}

/// Whether the request declares a tool whose calls are free text.
fn is_custom(body: &Value, name: &str) -> bool {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools.into_iter().any(|tool| tool["type"] == "custom" && tool["name"] == name)
}

/// A message of one part, which is text or a refusal.
fn message(
    answer: &ScriptedAnswer<'_>,
    id: &str,
    index: usize,
    status: &str,
    (kind, text): (&str, &str),
    stream: &mut Stream,
) -> Value {
    let is_text = kind == "output_text";
    let item = |status: &str, content: Value| json!({"type": "message", "id": id, "role": "assistant", "status": status, "content": content});
    let part = |text: &str| {
        if is_text {
            json!({"type": kind, "text": text, "annotations": [], "logprobs": []})
        } else {
            json!({"type": kind, "refusal": text})
        }
    };
    let send = |stream: &mut Stream, what: &str, mut data: Value| {
        data["item_id"] = json!(id);
        data["output_index"] = json!(index);
        data["content_index"] = json!(0);
        stream.send(&format!("response.{what}"), data);
    };
    added(stream, index, &item("in_progress", json!([])));
    send(stream, "content_part.added", json!({"part": part("")}));
    for delta in pieces(text, answer.chunk) {
        let data = if is_text { json!({"delta": delta, "logprobs": []}) } else { json!({ "delta": delta }) };
        send(stream, &format!("{kind}.delta"), data);
    }
    let whole = if is_text { json!({"text": text, "logprobs": []}) } else { json!({ "refusal": text }) };
    send(stream, &format!("{kind}.done"), whole);
    send(stream, "content_part.done", json!({"part": part(text)}));
    done(stream, index, item(status, json!([part(text)])))
}

fn reasoning(
    answer: &ScriptedAnswer<'_>,
    id: &str,
    index: usize,
    (text, seal): (&str, &str),
    stream: &mut Stream,
) -> Value {
    let is_shown = !answer.body["reasoning"]["summary"].is_null() && !text.is_empty();
    let included = answer.body["include"].as_array().into_iter().flatten();
    let is_sealed = included.into_iter().any(|field| field == SEALED);
    let item = |summary: Value| {
        let mut item = json!({"type": "reasoning", "id": id, "summary": summary});
        if is_sealed {
            item["encrypted_content"] = json!(format!("{}{seal}", seal_of(&answer.body["model"])));
        }
        item
    };
    let part = |text: &str| json!({"type": "summary_text", "text": text});
    added(stream, index, &item(json!([])));
    if !is_shown {
        return done(stream, index, item(json!([])));
    }
    let send = |stream: &mut Stream, what: &str, mut data: Value| {
        data["item_id"] = json!(id);
        data["output_index"] = json!(index);
        data["summary_index"] = json!(0);
        stream.send(&format!("response.reasoning_summary_{what}"), data);
    };
    send(stream, "part.added", json!({"part": part("")}));
    for delta in pieces(text, answer.chunk) {
        send(stream, "text.delta", json!({ "delta": delta }));
    }
    send(stream, "text.done", json!({ "text": text }));
    send(stream, "part.done", json!({"part": part(text)}));
    done(stream, index, item(json!([part(text)])))
}

fn added(stream: &mut Stream, index: usize, item: &Value) {
    stream.send("response.output_item.added", json!({"output_index": index, "item": item}));
}

fn done(stream: &mut Stream, index: usize, item: Value) -> Value {
    stream.send("response.output_item.done", json!({"output_index": index, "item": item}));
    item
}

fn response(
    answer: &ScriptedAnswer<'_>,
    id: &str,
    status: &str,
    incomplete: Option<&str>,
    output: Vec<Value>,
) -> Value {
    let asked = |field: &str, otherwise: Value| match &answer.body[field] {
        Value::Null => otherwise,
        value => value.clone(),
    };
    let usage = match status {
        "in_progress" => Value::Null,
        _ => json!({
            "input_tokens": answer.prompt_tokens(),
            "input_tokens_details": {
                "cached_tokens": answer.usage.cache_read_input_tokens,
                "cache_write_tokens": answer.usage.cache_creation_input_tokens,
            },
            "output_tokens": answer.usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": answer.usage.reasoning_tokens},
            "total_tokens": answer.prompt_tokens() + answer.usage.output_tokens,
        }),
    };
    json!({
        "id": id,
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "background": false,
        "error": null,
        "incomplete_details": incomplete.map(|reason| json!({ "reason": reason })),
        "instructions": asked("instructions", Value::Null),
        "max_output_tokens": asked("max_output_tokens", Value::Null),
        "metadata": asked("metadata", json!({})),
        "model": answer.body["model"],
        "output": output,
        "parallel_tool_calls": asked("parallel_tool_calls", json!(true)),
        "previous_response_id": asked("previous_response_id", Value::Null),
        "reasoning": asked("reasoning", json!({"effort": null, "summary": null})),
        "store": asked("store", json!(true)),
        "temperature": asked("temperature", json!(1.0)),
        "text": asked("text", json!({"format": {"type": "text"}})),
        "tool_choice": asked("tool_choice", json!("auto")),
        "tools": asked("tools", json!([])),
        "top_p": asked("top_p", json!(1.0)),
        "truncation": asked("truncation", json!("disabled")),
        "usage": usage,
        "user": asked("user", Value::Null),
    })
}
