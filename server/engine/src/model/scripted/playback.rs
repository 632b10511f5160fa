//! A step of a script as the wire shows it: a stream of events, or one whole message.
//!
//! Rule: the events are those of the real API in their real order, every one a frame of its own.

use bytes::Bytes;
use serde_json::{Value, json};

use super::script::{Content, Step, StepUsage, Templates};

/// Roughly how many bytes make a token, for costs the script does not say.
const BYTES_PER_TOKEN: usize = 4;

/// What the ids of calls begin with; a number follows.
pub(super) const CALL_ID_PREFIX: &str = "toolu_scripted_";

/// The numbers that make the ids of an answer unique.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// The answer's own.
    pub(super) message: usize,
    /// That of its first call.
    pub(super) first_call: usize,
}

/// One move of an answer's delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cue {
    /// Send this event.
    Send(Bytes),
    /// Wait until the gate of this name is open.
    Hold(String),
    /// Close the connection without an end.
    Cut,
}

/// An answer ready to be sent.
pub(super) struct Answer {
    id: String,
    model: Value,
    blocks: Vec<Block>,
    stop_reason: String,
    usage: StepUsage,
}

struct Block {
    /// The block as a whole message has it.
    whole: Value,
    /// The block as the stream starts it.
    start: Value,
    /// What the stream adds.
    deltas: Vec<Value>,
}

impl Answer {
    /// The answer of `step` to `request`.
    pub(super) fn new(step: &Step, request: &Value, numbers: Numbers) -> Self {
        let templates = Templates::new(request);
        let chunk = step.chunk.max(1);
        let mut call = numbers.first_call;
        let blocks: Vec<Block> =
            step.content.iter().map(|content| block(content, &templates, chunk, &mut call)).collect();
        let stop_reason = step.stop_reason.clone();
        let size = |value: &Value| (value.to_string().len() / BYTES_PER_TOKEN) as u64;
        let estimate = || StepUsage {
            input_tokens: size(request),
            output_tokens: blocks.iter().map(|block| size(&block.whole)).sum(),
            ..StepUsage::default()
        };
        Self {
            id: format!("msg_scripted_{}", numbers.message),
            model: request["model"].clone(),
            stop_reason: stop_reason
                .unwrap_or_else(|| if step.calls() > 0 { "tool_use" } else { "end_turn" }.to_owned()),
            usage: step.usage.unwrap_or_else(estimate),
            blocks,
        }
    }

    /// The answer of one text, for requests the script has no step for.
    pub(super) fn text(text: &str, request: &Value, numbers: Numbers) -> Self {
        let step = Step { content: vec![Content::Text { text: text.to_owned() }], ..Step::default() };
        Self::new(&step, request, numbers)
    }

    /// The answer as one message.
    pub(super) fn whole(&self) -> Value {
        let content = self.blocks.iter().map(|block| block.whole.clone()).collect();
        self.message(content, json!(self.stop_reason), &self.usage)
    }

    /// The answer as events.
    pub(super) fn events(&self) -> Vec<Bytes> {
        let begun = StepUsage { output_tokens: 1, ..self.usage };
        let message = self.message(Vec::new(), Value::Null, &begun);
        let mut events = vec![event(&json!({"type": "message_start", "message": message}))];
        for (index, block) in self.blocks.iter().enumerate() {
            let start = &block.start;
            events
                .push(event(&json!({"type": "content_block_start", "index": index, "content_block": start})));
            if index == 0 {
                events.push(event(&json!({"type": "ping"})));
            }
            for delta in &block.deltas {
                events.push(event(&json!({"type": "content_block_delta", "index": index, "delta": delta})));
            }
            events.push(event(&json!({"type": "content_block_stop", "index": index})));
        }
        events.push(event(&json!({
            "type": "message_delta",
            "delta": {"stop_reason": self.stop_reason, "stop_sequence": null},
            "usage": {"output_tokens": self.usage.output_tokens},
        })));
        events.push(event(&json!({"type": "message_stop"})));
        events
    }

    fn message(&self, content: Vec<Value>, stop_reason: Value, usage: &StepUsage) -> Value {
        json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": null,
            "usage": usage,
        })
    }
}

/// The moves that deliver `events`, with the gate and the cut at their places.
pub(super) fn cues(events: Vec<Bytes>, gate: Option<(usize, String)>, cut: Option<usize>) -> Vec<Cue> {
    let mut cues: Vec<Cue> = events.into_iter().map(Cue::Send).collect();
    if let Some(after) = cut {
        cues.truncate(after);
        cues.push(Cue::Cut);
    }
    if let Some((after, name)) = gate {
        cues.insert(after.min(cues.len()), Cue::Hold(name));
    }
    cues
}

fn block(content: &Content, templates: &Templates, chunk: usize, call: &mut usize) -> Block {
    match content {
        Content::Text { text } => {
            let text = templates.fill(text);
            let delta = |piece| json!({"type": "text_delta", "text": piece});
            Block {
                start: json!({"type": "text", "text": ""}),
                deltas: pieces(&text, chunk).map(delta).collect(),
                whole: json!({"type": "text", "text": text}),
            }
        }
        Content::Thinking { thinking, signature } => {
            let thinking = templates.fill(thinking);
            let delta = |piece| json!({"type": "thinking_delta", "thinking": piece});
            let mut deltas: Vec<Value> = pieces(&thinking, chunk).map(delta).collect();
            if !signature.is_empty() {
                deltas.push(json!({"type": "signature_delta", "signature": signature}));
            }
            Block {
                start: json!({"type": "thinking", "thinking": "", "signature": ""}),
                deltas,
                whole: json!({"type": "thinking", "thinking": thinking, "signature": signature}),
            }
        }
        Content::RedactedThinking { data } => {
            let whole = json!({"type": "redacted_thinking", "data": data});
            Block { start: whole.clone(), deltas: Vec::new(), whole }
        }
        Content::ToolUse { name, input, raw_input, id } => {
            let id = id.clone().unwrap_or_else(|| format!("{CALL_ID_PREFIX}{call}"));
            *call += 1;
            let (raw, input) = match raw_input {
                Some(raw) => (raw.clone(), Value::String(raw.clone())),
                None => {
                    let input = templates.fill_value(&Value::Object(input.clone()));
                    (input.to_string(), input)
                }
            };
            let delta = |piece| json!({"type": "input_json_delta", "partial_json": piece});
            Block {
                start: json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                deltas: std::iter::once("").chain(pieces(&raw, chunk)).map(delta).collect(),
                whole: json!({"type": "tool_use", "id": id, "name": name, "input": input}),
            }
        }
    }
}

/// `text` in pieces of `chunk` characters.
fn pieces(mut text: &str, chunk: usize) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let end = text.char_indices().nth(chunk).map_or(text.len(), |(end, _)| end);
        let (piece, rest) = text.split_at(end);
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

fn event(data: &Value) -> Bytes {
    Bytes::from(format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_into_characters_not_bytes() {
        assert_eq!(pieces("aé☃𝄞b", 2).collect::<Vec<_>>(), ["aé", "☃𝄞", "b"]);
        assert_eq!(pieces("", 2).count(), 0);
    }

    #[test]
    fn gates_and_cuts_stand_where_the_script_says() {
        let events = || vec![Bytes::from("a"), Bytes::from("b")];
        let send = |text: &'static str| Cue::Send(Bytes::from(text));
        let hold = || Cue::Hold("g".into());
        assert_eq!(cues(events(), None, None), [send("a"), send("b")]);
        assert_eq!(cues(events(), None, Some(1)), [send("a"), Cue::Cut]);
        assert_eq!(cues(events(), Some((1, "g".into())), None), [send("a"), hold(), send("b")]);
        assert_eq!(cues(events(), Some((9, "g".into())), Some(0)), [Cue::Cut, hold()]);
    }
}
