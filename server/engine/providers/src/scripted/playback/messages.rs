//! Answers in the Messages format.
//!
//! Rule: every block is started, filled by deltas and stopped, in the order of the answer.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{AnswerPart, ID_MARK, ScriptedAnswer, WireAnswer, named_event, pieces};

struct BlockEvents {
    /// The block as a whole message has it.
    whole: Value,
    /// The block as the stream starts it.
    start: Value,
    /// The events of the stream.
    deltas: Vec<Value>,
}

/// Writes an answer.
pub(super) fn write(answer: &ScriptedAnswer<'_>) -> WireAnswer {
    let blocks: Vec<BlockEvents> = answer.parts.iter().map(|part| block(part, answer.chunk)).collect();
    let content = blocks.iter().map(|block| block.whole.clone()).collect();
    WireAnswer {
        whole: message(answer, content, json!(answer.stop_reason), answer.usage.output_tokens),
        events: events(answer, &blocks),
        output: None,
    }
}

fn events(answer: &ScriptedAnswer<'_>, blocks: &[BlockEvents]) -> Vec<Bytes> {
    let message = message(answer, Vec::new(), Value::Null, 1);
    let mut events = vec![named_event(&json!({"type": "message_start", "message": message}))];
    for (index, block) in blocks.iter().enumerate() {
        let start = &block.start;
        events.push(named_event(
            &json!({"type": "content_block_start", "index": index, "content_block": start}),
        ));
        if index == 0 {
            events.push(named_event(&json!({"type": "ping"})));
        }
        for delta in &block.deltas {
            events.push(named_event(&json!({"type": "content_block_delta", "index": index, "delta": delta})));
        }
        events.push(named_event(&json!({"type": "content_block_stop", "index": index})));
    }
    events.push(named_event(&json!({
        "type": "message_delta",
        "delta": {"stop_reason": answer.stop_reason, "stop_sequence": null},
        "usage": {"output_tokens": answer.usage.output_tokens},
    })));
    events.push(named_event(&json!({"type": "message_stop"})));
    events
}

fn message(
    answer: &ScriptedAnswer<'_>,
    content: Vec<Value>,
    stop_reason: Value,
    output_tokens: u64,
) -> Value {
    json!({
        "id": format!("msg{ID_MARK}{}", answer.numbers.message),
        "type": "message",
        "role": "assistant",
        "model": answer.body["model"],
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": {
            "input_tokens": answer.usage.input_tokens,
            "output_tokens": output_tokens,
            "cache_read_input_tokens": answer.usage.cache_read_input_tokens,
            "cache_creation_input_tokens": answer.usage.cache_creation_input_tokens,
        },
    })
}

fn block(part: &AnswerPart, chunk: usize) -> BlockEvents {
    match part {
        AnswerPart::Text(text) | AnswerPart::Refusal(text) => {
            let delta = |piece| json!({"type": "text_delta", "text": piece});
            BlockEvents {
                start: json!({"type": "text", "text": ""}),
                deltas: pieces(text, chunk).map(delta).collect(),
                whole: json!({"type": "text", "text": text}),
            }
        }
        AnswerPart::Thinking { text, signature } => {
            let delta = |piece| json!({"type": "thinking_delta", "thinking": piece});
            let mut deltas: Vec<Value> = pieces(text, chunk).map(delta).collect();
            if !signature.is_empty() {
                deltas.push(json!({"type": "signature_delta", "signature": signature}));
            }
            BlockEvents {
                start: json!({"type": "thinking", "thinking": "", "signature": ""}),
                deltas,
                whole: json!({"type": "thinking", "thinking": text, "signature": signature}),
            }
        }
        AnswerPart::Redacted { data } => {
            let whole = json!({"type": "redacted_thinking", "data": data});
            BlockEvents { start: whole.clone(), deltas: Vec::new(), whole }
        }
        AnswerPart::Call { id, name, arguments, input } => {
            let delta = |piece| json!({"type": "input_json_delta", "partial_json": piece});
            BlockEvents {
                start: json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                deltas: std::iter::once("").chain(pieces(arguments, chunk)).map(delta).collect(),
                whole: json!({"type": "tool_use", "id": id, "name": name, "input": input}),
            }
        }
    }
}
