//! Answers in Gemini's format.
//!
//! Rule: every chunk is a whole response with the new parts; calls come whole, the first one with a signature; the chunk
//! that says why the answer ends tells the tokens and ends the stream.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{AnswerPart, ID_MARK, ScriptedAnswer, WireAnswer, pieces};
use crate::scripted::sealed;

/// Writes an answer.
pub(super) fn write(answer: &ScriptedAnswer<'_>) -> WireAnswer {
    let streamed: Vec<Value> =
        answer.parts.iter().flat_map(|part| parts(answer, part, answer.chunk)).collect();
    let whole = answer.parts.iter().flat_map(|part| parts(answer, part, usize::MAX));
    let mut whole: Vec<Value> = whole.collect();
    let end = end(answer);
    whole.extend(end.clone());
    let mut events: Vec<Bytes> =
        streamed.into_iter().map(|part| event(&response(answer, vec![part], None))).collect();
    events.push(event(&response(answer, end.into_iter().collect(), Some(finish_reason(answer)))));
    WireAnswer { whole: response(answer, whole, Some(finish_reason(answer))), events, output: None }
}

/// A part of the answer as the parts of responses.
fn parts(answer: &ScriptedAnswer<'_>, part: &AnswerPart, chunk: usize) -> Vec<Value> {
    match part {
        AnswerPart::Text(text) | AnswerPart::Refusal(text) => {
            pieces(text, chunk).map(|text| json!({"text": text})).collect()
        }
        AnswerPart::Thinking { text, .. } if asks_for_thoughts(answer.body) => {
            pieces(text, chunk).map(|text| json!({"text": text, "thought": true})).collect()
        }
        // The format has no sealed reasoning but signatures.
        AnswerPart::Thinking { .. } | AnswerPart::Redacted { .. } => Vec::new(),
        AnswerPart::Call { id, name, input, .. } => {
            let mut call = json!({"functionCall": {"id": id, "name": name, "args": input}});
            if first_call(answer) == Some(id.as_str()) {
                call["thoughtSignature"] = json!(sealed::seal(answer.numbers.server, id));
            }
            vec![call]
        }
    }
}

fn asks_for_thoughts(body: &Value) -> bool {
    body["generationConfig"]["thinkingConfig"]["includeThoughts"] == true
}

fn first_call<'a>(answer: &'a ScriptedAnswer<'_>) -> Option<&'a str> {
    answer.parts.iter().find_map(|part| match part {
        AnswerPart::Call { id, .. } => Some(id.as_str()),
        AnswerPart::Text(_)
        | AnswerPart::Refusal(_)
        | AnswerPart::Thinking { .. }
        | AnswerPart::Redacted { .. } => None,
    })
}

/// The empty part with the signature that ends an answer without calls.
fn end(answer: &ScriptedAnswer<'_>) -> Option<Value> {
    let thinks = answer.parts.iter().any(|part| matches!(part, AnswerPart::Thinking { .. }));
    let signs = thinks && first_call(answer).is_none();
    let signature = || sealed::seal(answer.numbers.server, &answer.numbers.message.to_string());
    signs.then(|| json!({"text": "", "thoughtSignature": signature()}))
}

fn response(answer: &ScriptedAnswer<'_>, parts: Vec<Value>, finish_reason: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    let mut usage =
        json!({"promptTokenCount": answer.prompt_tokens(), "totalTokenCount": answer.prompt_tokens()});
    if let Some(reason) = finish_reason {
        candidate["finishReason"] = json!(reason);
        let (output, thoughts) = (answer.usage.output_tokens, answer.usage.reasoning_tokens);
        usage = json!({
            "promptTokenCount": answer.prompt_tokens(),
            "candidatesTokenCount": output.saturating_sub(thoughts),
            "thoughtsTokenCount": thoughts,
            "cachedContentTokenCount": answer.usage.cache_read_input_tokens,
            "totalTokenCount": answer.prompt_tokens() + output,
        });
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": "gemini-scripted",
        "responseId": format!("gem{ID_MARK}{}", answer.numbers.message),
    })
}

fn finish_reason<'a>(answer: &'a ScriptedAnswer<'_>) -> &'a str {
    match answer.stop_reason.as_str() {
        "end_turn" | "stop_sequence" | "tool_use" => "STOP",
        "max_tokens" => "MAX_TOKENS",
        "refusal" => "SAFETY",
        other => other,
    }
}

fn event(data: &Value) -> Bytes {
    Bytes::from(format!("data: {data}\r\n\r\n"))
}
