//! A step of a script as an answer: its texts filled in, its calls numbered, its cost counted. Each wire writes it in
//! its own way, as a stream of events or as one whole.
//!
//! Rule: the events are those of the real API in their real order, every one a frame of its own.

mod chat;
mod gemini;
mod messages;
mod ollama;
pub(super) mod responses;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::question::RequestView;
use super::scenes::Templates;
use super::script::{Quirks, ScriptContent, ScriptStep, StepUsage};
use super::sealed;
use kode_model::Wire;

/// Roughly how many bytes make a token, for costs the script does not say.
const BYTES_PER_TOKEN: usize = 4;

/// When every answer was made, in seconds since 1970: a fixed time, for the clock is no part of a script.
const CREATED: u64 = 1_700_000_000;

/// The separator of the name of a kind of id and its number.
pub(super) const ID_MARK: &str = "_scripted_";

/// The numbers that make the ids of an answer unique.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// The answer's own.
    pub(super) message: usize,
    /// That of its first call.
    pub(super) first_call: usize,
    /// The server's, for ids that another server must not know.
    pub(super) server: u64,
}

/// The number in the id of a call, if a scripted model gave it.
pub(super) fn call_number(id: &str) -> Option<usize> {
    id.rsplit_once(ID_MARK)?.1.parse().ok()
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

/// An answer ready to be written.
pub(super) struct ScriptedAnswer<'a> {
    body: &'a Value,
    wire: Wire,
    quirks: &'a Quirks,
    numbers: Numbers,
    parts: Vec<AnswerPart>,
    stop_reason: String,
    usage: StepUsage,
    /// Characters per delta.
    chunk: usize,
}

/// The form of an answer on its wire.
pub(super) struct WireAnswer {
    /// The whole, for requests that are not streamed.
    pub(super) whole: Value,
    /// The stream.
    pub(super) events: Vec<Bytes>,
    /// The id by which Responses continue from it, and what it adds to the conversation.
    pub(super) output: Option<(String, Vec<Arc<Value>>)>,
}

/// A piece of an answer.
enum AnswerPart {
    Text(String),
    Refusal(String),
    Thinking { text: String, signature: String },
    Redacted { data: String },
    Call { id: String, name: String, arguments: String, input: Value },
}

impl AnswerPart {
    fn size(&self) -> usize {
        match self {
            Self::Text(text) | Self::Refusal(text) => text.len(),
            Self::Thinking { text, signature } => text.len() + signature.len(),
            Self::Redacted { data } => data.len(),
            Self::Call { name, arguments, .. } => name.len() + arguments.len(),
        }
    }
}

impl<'a> ScriptedAnswer<'a> {
    /// The answer of `step`.
    pub(super) fn new(
        step: &ScriptStep,
        question: &RequestView<'a>,
        quirks: &'a Quirks,
        numbers: Numbers,
    ) -> Self {
        let templates = Templates::new(question);
        let prefix = match question.wire {
            Wire::AnthropicMessages => "toolu",
            Wire::ChatCompletions | Wire::Responses | Wire::Gemini | Wire::Ollama => "call",
        };
        let reasons = |content: &ScriptContent| {
            matches!(content, ScriptContent::Thinking { .. } | ScriptContent::RedactedThinking { .. })
        };
        let signs = quirks.signed_calls || question.wire == Wire::Gemini;
        let seals = signs || (quirks.reasoning_details && step.content.iter().any(reasons));
        // Only a server that seals its calls has to know them again.
        let server = if seals { sealed::id_part(numbers.server) } else { String::new() };
        let mut call = numbers.first_call;
        let mut next_id = || {
            call += 1;
            format!("{prefix}{server}{ID_MARK}{}", call - 1)
        };
        let was_refused = question.was_refused();
        let said = step.said(was_refused).iter();
        let parts: Vec<AnswerPart> = said.map(|content| part(content, &templates, &mut next_id)).collect();
        let estimate = || StepUsage {
            input_tokens: tokens(question.bytes).min(quirks.cuts_above.unwrap_or(u64::MAX)),
            output_tokens: parts.iter().map(|part| tokens(part.size())).sum(),
            ..StepUsage::default()
        };
        let implied = if step.calls(was_refused) > 0 { "tool_use" } else { "end_turn" };
        Self {
            body: question.body,
            wire: question.wire,
            quirks,
            numbers,
            stop_reason: step.stop_reason.clone().unwrap_or_else(|| implied.to_owned()),
            usage: step.usage.unwrap_or_else(estimate),
            chunk: step.chunk.max(1),
            parts,
        }
    }

    /// The answer of one text, for requests the script has no step for.
    pub(super) fn text(text: &str, question: &RequestView<'a>, quirks: &'a Quirks, numbers: Numbers) -> Self {
        let step = ScriptStep {
            content: vec![ScriptContent::Text { text: text.to_owned() }],
            ..ScriptStep::default()
        };
        Self::new(&step, question, quirks, numbers)
    }

    /// The answer as its wire has it.
    pub(super) fn write(&self) -> WireAnswer {
        match self.wire {
            Wire::AnthropicMessages => messages::write(self),
            Wire::ChatCompletions => chat::write(self),
            Wire::Responses => responses::write(self),
            Wire::Gemini => gemini::write(self),
            Wire::Ollama => ollama::write(self),
        }
    }

    /// All input tokens, cached or not.
    fn prompt_tokens(&self) -> u64 {
        self.usage.input_tokens + self.usage.cache_read_input_tokens + self.usage.cache_creation_input_tokens
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

fn part(content: &ScriptContent, templates: &Templates, next_id: &mut impl FnMut() -> String) -> AnswerPart {
    match content {
        ScriptContent::Text { text } => AnswerPart::Text(templates.fill(text)),
        ScriptContent::Refusal { text } => AnswerPart::Refusal(templates.fill(text)),
        ScriptContent::Thinking { thinking, signature } => {
            AnswerPart::Thinking { text: templates.fill(thinking), signature: signature.clone() }
        }
        ScriptContent::RedactedThinking { data } => AnswerPart::Redacted { data: data.clone() },
        ScriptContent::ToolUse { name, input, raw_input, id } => {
            // The number is taken whether or not it is used, as the numbers of an answer follow each other.
            let numbered = next_id();
            let (arguments, input) = match raw_input {
                Some(raw) => (raw.clone(), Value::String(raw.clone())),
                None => {
                    let input = templates.fill_value(&Value::Object(input.clone()));
                    (input.to_string(), input)
                }
            };
            AnswerPart::Call { id: id.clone().unwrap_or(numbered), name: name.clone(), arguments, input }
        }
    }
}

/// The rough number of tokens of this many bytes.
pub(super) fn tokens(bytes: usize) -> u64 {
    (bytes / BYTES_PER_TOKEN) as u64
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

/// An event whose name is the type in its data.
fn named_event(data: &Value) -> Bytes {
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
