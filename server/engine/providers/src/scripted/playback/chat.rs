//! Answers in the Chat Completions format.
//!
//! Rule: usage is only streamed where it was asked for, in a last chunk without choices, as the real API does; what
//! compatible servers do otherwise is a quirk.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{AnswerPart, CREATED, ID_MARK, ScriptedAnswer, WireAnswer, pieces};
use crate::scripted::sealed::{self, Reasoning};

/// The field that reasoning comes in unless a quirk names another one.
const REASONING_FIELD: &str = "reasoning_content";

/// Writes an answer.
pub(super) fn write(answer: &ScriptedAnswer<'_>) -> WireAnswer {
    WireAnswer { whole: whole(answer), events: events(answer), output: None }
}

fn whole(answer: &ScriptedAnswer<'_>) -> Value {
    let text = |wanted: fn(&AnswerPart) -> Option<&str>| -> Value {
        let texts: Vec<&str> = answer.parts.iter().filter_map(wanted).collect();
        if texts.is_empty() { Value::Null } else { json!(texts.concat()) }
    };
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    message.insert(
        "content".to_owned(),
        text(|part| if let AnswerPart::Text(text) = part { Some(text) } else { None }),
    );
    message.insert(
        "refusal".to_owned(),
        text(|part| if let AnswerPart::Refusal(text) = part { Some(text) } else { None }),
    );
    let reasoning = text(|part| if let AnswerPart::Thinking { text, .. } = part { Some(text) } else { None });
    if !reasoning.is_null() {
        message.insert(reasoning_field(answer).to_owned(), reasoning);
    }
    let details = details(answer);
    if !details.is_empty() {
        message.insert("reasoning_details".to_owned(), Value::Array(details));
    }
    let calls: Vec<Value> = answer.parts.iter().filter_map(|part| whole_call(answer, part)).collect();
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    let choice =
        json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(answer)});
    let mut whole = envelope(answer, "chat.completion", json!([choice]));
    if !answer.quirks.no_usage {
        whole["usage"] = usage(answer);
    }
    whole
}

fn events(answer: &ScriptedAnswer<'_>) -> Vec<Bytes> {
    let reports_usage = !answer.quirks.no_usage && answer.body["stream_options"]["include_usage"] == true;
    let chunk = |choices: Value, reported: Value| {
        let mut chunk = envelope(answer, "chat.completion.chunk", choices);
        if reports_usage {
            chunk["usage"] = reported;
        }
        event(&chunk)
    };
    let delta = |delta: Value, finish_reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason});
        chunk(json!([choice]), Value::Null)
    };
    let begins_with_call = matches!(answer.parts.first(), Some(AnswerPart::Call { .. }));
    let begun = if begins_with_call { Value::Null } else { json!("") };
    let mut events = vec![delta(json!({"role": "assistant", "content": begun}), Value::Null)];
    for piece in details(answer).into_iter().flat_map(|detail| in_pieces(detail, answer.chunk)) {
        events.push(delta(json!({"reasoning_details": [piece]}), Value::Null));
    }
    let mut index = 0;
    for part in &answer.parts {
        events.extend(deltas(answer, part, index).into_iter().map(|piece| delta(piece, Value::Null)));
        index += usize::from(matches!(part, AnswerPart::Call { .. }));
    }
    events.push(delta(json!({}), json!(finish_reason(answer))));
    if reports_usage {
        events.push(chunk(json!([]), usage(answer)));
    }
    events.push(Bytes::from_static(b"data: [DONE]\n\n"));
    events
}

/// The events of a part; `index` is that of the call, if it is one.
fn deltas(answer: &ScriptedAnswer<'_>, part: &AnswerPart, index: usize) -> Vec<Value> {
    let in_field =
        |field: &str, text: &str| pieces(text, answer.chunk).map(|text| json!({ field: text })).collect();
    match part {
        AnswerPart::Text(text) => in_field("content", text),
        AnswerPart::Refusal(text) => in_field("refusal", text),
        AnswerPart::Thinking { text, .. } => in_field(reasoning_field(answer), text),
        // This format has no place for it.
        AnswerPart::Redacted { .. } => Vec::new(),
        AnswerPart::Call { .. } if answer.quirks.whole_calls => {
            whole_call(answer, part).map(|call| json!({"tool_calls": [call]})).into_iter().collect()
        }
        AnswerPart::Call { id, name, arguments, .. } => {
            let mut start = json!({
                "index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""},
            });
            if answer.quirks.no_call_ids {
                start.as_object_mut().map(|start| start.remove("id"));
            }
            sign(answer, id, &mut start);
            let piece = |piece| json!({"index": index, "function": {"arguments": piece}});
            let calls = std::iter::once(start).chain(pieces(arguments, answer.chunk).map(piece));
            calls.map(|call| json!({"tool_calls": [call]})).collect()
        }
    }
}

fn whole_call(answer: &ScriptedAnswer<'_>, part: &AnswerPart) -> Option<Value> {
    let AnswerPart::Call { id, name, arguments, .. } = part else { return None };
    let function = json!({"name": name, "arguments": arguments});
    let mut call = if answer.quirks.no_call_ids {
        json!({"type": "function", "function": function})
    } else {
        json!({"id": id, "type": "function", "function": function})
    };
    sign(answer, id, &mut call);
    Some(call)
}

/// Signs a call if it is the answer's first one and the server signs calls.
fn sign(answer: &ScriptedAnswer<'_>, id: &str, call: &mut Value) {
    let first = answer.parts.iter().find_map(|part| match part {
        AnswerPart::Call { id, .. } => Some(id.as_str()),
        AnswerPart::Text(_)
        | AnswerPart::Refusal(_)
        | AnswerPart::Thinking { .. }
        | AnswerPart::Redacted { .. } => None,
    });
    if answer.quirks.signed_calls && first == Some(id) {
        let signature = sealed::seal(answer.numbers.server, id);
        call["extra_content"] = json!({"google": {"thought_signature": signature}});
    }
}

/// The reasoning as `reasoning_details`, on servers that have those.
fn details(answer: &ScriptedAnswer<'_>) -> Vec<Value> {
    if !answer.quirks.reasoning_details {
        return Vec::new();
    }
    let reasoning = answer.parts.iter().filter_map(|part| match part {
        AnswerPart::Thinking { text, .. } => Some(Reasoning::Text(text)),
        AnswerPart::Redacted { data } => Some(Reasoning::Data(data)),
        AnswerPart::Text(_) | AnswerPart::Refusal(_) | AnswerPart::Call { .. } => None,
    });
    sealed::details(answer.numbers.server, answer.numbers.message, &reasoning.collect::<Vec<_>>())
}

/// A detail as it streams: a text in pieces, its signature at the end; data in one piece.
fn in_pieces(detail: Value, chunk: usize) -> Vec<Value> {
    let Some(text) = detail["text"].as_str() else { return vec![detail] };
    let piece = |text: &str, signature: &Value| {
        let mut piece = detail.clone();
        piece["text"] = json!(text);
        piece["signature"] = signature.clone();
        piece
    };
    let mut streamed: Vec<Value> = pieces(text, chunk).map(|text| piece(text, &Value::Null)).collect();
    streamed.push(piece("", &detail["signature"]));
    streamed
}

fn reasoning_field<'a>(answer: &'a ScriptedAnswer<'_>) -> &'a str {
    answer.quirks.reasoning_field.as_deref().unwrap_or(REASONING_FIELD)
}

fn finish_reason<'a>(answer: &'a ScriptedAnswer<'_>) -> &'a str {
    match answer.stop_reason.as_str() {
        "end_turn" | "stop_sequence" => "stop",
        "tool_use" => "tool_calls",
        "max_tokens" => "length",
        "refusal" => "content_filter",
        other => other,
    }
}

fn usage(answer: &ScriptedAnswer<'_>) -> Value {
    let (prompt, completion) = (answer.prompt_tokens(), answer.usage.output_tokens);
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": answer.usage.cache_read_input_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": answer.usage.reasoning_tokens, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    })
}

fn envelope(answer: &ScriptedAnswer<'_>, object: &str, choices: Value) -> Value {
    json!({
        "id": format!("chatcmpl{ID_MARK}{}", answer.numbers.message),
        "object": object,
        "created": CREATED,
        "model": answer.body["model"],
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
        "choices": choices,
    })
}

fn event(data: &Value) -> Bytes {
    Bytes::from(format!("data: {data}\n\n"))
}
