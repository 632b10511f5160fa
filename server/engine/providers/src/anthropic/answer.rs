//! An answer as it grows, event by event.
//!
//! Rule: what this build does not know is skipped; what had arrived can be had at any time; a tool call is in the
//! response only if its block ended and the message ended with a stop reason that is no cut.

use serde::Deserialize;
use serde_json::Value;

use super::wire::{
    BlockDelta, BlockStart, BlockStop, MessageDelta, MessageStart, MessagesMessage, MessagesUsage,
    TypedEvent, WireBlock, WireDelta,
};
use crate::arguments;
use crate::call_ids::CallIds;
use crate::exchange::{self, AnswerFault, AnswerProgress};
use crate::failure::ReportedError;
use kode_model::{Block, Delta, DeltaSink, Message, ModelResponse, StopReason, Usage};
use kode_net::sse::SseEvent;

/// The received part of an answer.
#[derive(Debug, Default)]
pub(crate) struct MessagesAnswer {
    id: Option<String>,
    blocks: Vec<OpenBlock>,
    call_ids: CallIds,
    stop_reason: Option<StopReason>,
    usage: Usage,
    begun: bool,
}

#[derive(Debug)]
struct OpenBlock {
    /// The number the server gave it.
    wire_index: usize,
    content: OpenContent,
    ended: bool,
}

#[derive(Debug)]
enum OpenContent {
    Text(String),
    Thinking {
        thinking: String,
        signature: String,
    },
    RedactedThinking(String),
    ToolUse {
        id: String,
        name: String,
        /// Arguments that came with the start of the block, as in answers that are not streamed.
        input: Value,
        /// Arguments that came in pieces.
        json: String,
    },
    /// A kind of block this build does not know.
    Unknown,
}

impl MessagesAnswer {
    /// The answer to come to `history`.
    pub(crate) fn to(history: &[Message]) -> Self {
        Self { call_ids: CallIds::of(history), ..Self::default() }
    }
}

impl exchange::StreamedAnswer for MessagesAnswer {
    fn apply(
        &mut self,
        event: &SseEvent,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<AnswerProgress, AnswerFault> {
        let typed: TypedEvent;
        let kind = if event.event.is_empty() {
            typed = read(event)?;
            typed.kind.as_str()
        } else {
            event.event.as_str()
        };
        match kind {
            "message_start" => {
                let MessageStart { message } = read(event)?;
                self.begin(message.id, &message.usage);
            }
            "content_block_start" => {
                let BlockStart { index, content_block } = read(event)?;
                self.start_block(index, content_block, on_delta);
            }
            "content_block_delta" => {
                let BlockDelta { index, delta } = read(event)?;
                self.extend_block(index, delta, on_delta);
            }
            "content_block_stop" => {
                let BlockStop { index } = read(event)?;
                if let Some(position) = self.position(index) {
                    self.blocks[position].ended = true;
                }
            }
            "message_delta" => {
                let MessageDelta { delta, usage } = read(event)?;
                if let Some(reason) = delta.stop_reason {
                    self.stop_reason = Some(stop_reason(reason));
                }
                self.count(&usage);
            }
            "message_stop" => {
                return match self.stop_reason {
                    Some(_) => Ok(AnswerProgress::Done),
                    None => Err(AnswerFault::NoStopReason),
                };
            }
            "error" => return Err(reported(event.data.as_bytes())),
            _ => return Ok(AnswerProgress::SignOfLife),
        }
        Ok(AnswerProgress::Content)
    }

    fn apply_whole(&mut self, body: &[u8], on_delta: &mut DeltaSink<'_>) -> Result<(), AnswerFault> {
        let unreadable = |reason: String| AnswerFault::Unreadable(reason);
        let message: MessagesMessage =
            serde_json::from_slice(body).map_err(|error| unreadable(format!("its JSON body: {error}")))?;
        if message.kind == "error" {
            return Err(reported(body));
        }
        if message.kind != "message" {
            return Err(unreadable(format!("a JSON body of the type `{}`", message.kind)));
        }
        self.begin(message.id, &message.usage);
        for (index, block) in message.content.into_iter().enumerate() {
            self.start_block(index, block, on_delta);
        }
        for block in &mut self.blocks {
            block.ended = true;
        }
        self.stop_reason = message.stop_reason.map(stop_reason);
        if self.stop_reason.is_some() { Ok(()) } else { Err(AnswerFault::NoStopReason) }
    }

    fn into_response(self) -> ModelResponse {
        let stop_reason = self.stop_reason.unwrap_or(StopReason::EndTurn);
        let cut = matches!(stop_reason, StopReason::MaxTokens | StopReason::Refusal);
        let may_close = arguments::may_close(&stop_reason);
        let content = self.blocks.into_iter().filter_map(|block| {
            let runnable = block.ended && !cut;
            let is_call = matches!(block.content, OpenContent::ToolUse { .. });
            if is_call && !runnable { None } else { block.content.into_block(may_close) }
        });
        ModelResponse { content: content.collect(), id: self.id, stop_reason, usage: self.usage }
    }

    fn into_partial(self) -> Option<ModelResponse> {
        if !self.begun && self.blocks.is_empty() {
            return None;
        }
        let content = self.blocks.into_iter().filter_map(|block| match block.content {
            OpenContent::ToolUse { .. } => None,
            OpenContent::Text(text) if text.is_empty() => None,
            OpenContent::Thinking { thinking, signature } if thinking.is_empty() && signature.is_empty() => {
                None
            }
            content => content.into_block(false),
        });
        Some(ModelResponse {
            content: content.collect(),
            id: self.id,
            stop_reason: self.stop_reason.unwrap_or_else(|| StopReason::Other("interrupted".to_owned())),
            usage: self.usage,
        })
    }
}

impl MessagesAnswer {
    fn begin(&mut self, id: Option<String>, usage: &MessagesUsage) {
        self.begun = true;
        self.id = id;
        self.count(usage);
    }

    /// The counts are totals, so a later one replaces an earlier one.
    fn count(&mut self, usage: &MessagesUsage) {
        let update = |total: &mut u64, reported: Option<u64>| *total = reported.unwrap_or(*total);
        update(&mut self.usage.input_tokens, usage.input_tokens);
        update(&mut self.usage.output_tokens, usage.output_tokens);
        update(&mut self.usage.cache_read_tokens, usage.cache_read_input_tokens);
        update(&mut self.usage.cache_write_tokens, usage.cache_creation_input_tokens);
    }

    fn start_block(&mut self, wire_index: usize, block: WireBlock, on_delta: &mut DeltaSink<'_>) {
        let index = self.blocks.len();
        let content = match block.kind.as_str() {
            "text" => {
                show(&block.text, |text| on_delta(Delta::Text { index, text }));
                OpenContent::Text(block.text)
            }
            "thinking" => {
                show(&block.thinking, |text| on_delta(Delta::Thinking { index, text }));
                OpenContent::Thinking { thinking: block.thinking, signature: block.signature }
            }
            "redacted_thinking" => OpenContent::RedactedThinking(block.data),
            // No provider takes a call without a name back.
            "tool_use" if block.name.is_empty() => {
                tracing::warn!("an answer held a call that has no name");
                OpenContent::Unknown
            }
            "tool_use" => {
                let id = self.call_ids.unique(&block.id);
                on_delta(Delta::ToolUse { index, id: id.clone(), name: block.name.clone() });
                OpenContent::ToolUse { id, name: block.name, input: block.input, json: String::new() }
            }
            _ => OpenContent::Unknown,
        };
        self.blocks.push(OpenBlock { wire_index, content, ended: false });
    }

    fn extend_block(&mut self, wire_index: usize, delta: WireDelta, on_delta: &mut DeltaSink<'_>) {
        let index = match self.position(wire_index) {
            Some(position) => position,
            // Some servers leave the start of a block out.
            None => match delta.kind.as_str() {
                "text_delta" => self.open(wire_index, OpenContent::Text(String::new())),
                "thinking_delta" => {
                    let empty = OpenContent::Thinking { thinking: String::new(), signature: String::new() };
                    self.open(wire_index, empty)
                }
                _ => return,
            },
        };
        match (&mut self.blocks[index].content, delta.kind.as_str()) {
            (OpenContent::Text(text), "text_delta") => {
                text.push_str(&delta.text);
                show(&delta.text, |text| on_delta(Delta::Text { index, text }));
            }
            (OpenContent::Thinking { thinking, .. }, "thinking_delta") => {
                thinking.push_str(&delta.thinking);
                show(&delta.thinking, |text| on_delta(Delta::Thinking { index, text }));
            }
            (OpenContent::Thinking { signature, .. }, "signature_delta") => {
                signature.push_str(&delta.signature)
            }
            (OpenContent::ToolUse { json, .. }, "input_json_delta") => json.push_str(&delta.partial_json),
            _ => {}
        }
    }

    fn open(&mut self, wire_index: usize, content: OpenContent) -> usize {
        self.blocks.push(OpenBlock { wire_index, content, ended: false });
        self.blocks.len() - 1
    }

    /// Where the block with the server's number is; the latest if the server used the number twice.
    fn position(&self, wire_index: usize) -> Option<usize> {
        self.blocks.iter().rposition(|block| block.wire_index == wire_index)
    }
}

impl OpenContent {
    /// The block; `may_close` says whether arguments without an end may be given one.
    fn into_block(self, may_close: bool) -> Option<Block> {
        match self {
            Self::Text(text) => Some(Block::Text { text }),
            Self::Thinking { thinking, signature } => Some(Block::Thinking { thinking, signature }),
            Self::RedactedThinking(data) => Some(Block::RedactedThinking { data }),
            Self::ToolUse { id, name, input, json } => {
                let (input, input_error) = arguments::input(written(input, json), may_close);
                Some(Block::ToolUse { id, name, input, input_error })
            }
            Self::Unknown => None,
        }
    }
}

fn reported(body: &[u8]) -> AnswerFault {
    match ReportedError::read(body) {
        Some(reported) => AnswerFault::Reported(reported),
        None => AnswerFault::Unreadable("an error that does not say what it is".to_owned()),
    }
}

/// The text of arguments, which came in pieces or with the start of their block.
fn written(started_with: Value, json: String) -> String {
    match started_with {
        _ if !json.trim().is_empty() => json,
        Value::Null => String::new(),
        Value::String(raw) => raw,
        value @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => value.to_string(),
    }
}

fn stop_reason(reason: String) -> StopReason {
    match reason.as_str() {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        // A full context window cuts the answer off just like its own limit.
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::PauseTurn,
        _ => StopReason::Other(reason),
    }
}

fn show(text: &str, mut on_text: impl FnMut(String)) {
    if !text.is_empty() {
        on_text(text.to_owned());
    }
}

fn read<'a, T: Deserialize<'a>>(event: &'a SseEvent) -> Result<T, AnswerFault> {
    serde_json::from_str(&event.data).map_err(|error| {
        AnswerFault::Unreadable(format!("the event `{}` of its stream: {error}", event.event))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::exchange::StreamedAnswer as _;

    /// The response to a stream of event data, and the deltas seen on the way.
    fn answered(events: &[Value]) -> (Result<ModelResponse, AnswerFault>, Vec<Delta>) {
        let mut answer = MessagesAnswer::default();
        let mut deltas = Vec::new();
        for event in events {
            let kind = event["type"].as_str().unwrap().to_owned();
            let event = SseEvent { event: kind, data: event.to_string() };
            match answer.apply(&event, &mut |delta| deltas.push(delta)) {
                Ok(AnswerProgress::Done) => return (Ok(answer.into_response()), deltas),
                Ok(AnswerProgress::Content | AnswerProgress::SignOfLife) => {}
                Err(fault) => return (Err(fault), deltas),
            }
        }
        panic!("the stream has no end");
    }

    fn start(index: usize, block: Value) -> Value {
        json!({"type": "content_block_start", "index": index, "content_block": block})
    }

    fn delta(index: usize, delta: Value) -> Value {
        json!({"type": "content_block_delta", "index": index, "delta": delta})
    }

    fn stop(index: usize) -> Value {
        json!({"type": "content_block_stop", "index": index})
    }

    fn end(reason: &str) -> [Value; 2] {
        [
            json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}}),
            json!({"type": "message_stop"}),
        ]
    }

    fn call(index: usize, id: &str, json: &str) -> [Value; 3] {
        [
            start(index, json!({"type": "tool_use", "id": id, "name": "Read", "input": {}})),
            delta(index, json!({"type": "input_json_delta", "partial_json": json})),
            stop(index),
        ]
    }

    fn inputs(response: &ModelResponse) -> Vec<(String, Value, Option<String>)> {
        let call = |block: &Block| match block {
            Block::ToolUse { id, input, input_error, .. } => {
                Some((id.clone(), input.clone(), input_error.clone()))
            }
            _ => None,
        };
        response.content.iter().filter_map(call).collect()
    }

    #[test]
    fn unknown_events_blocks_and_deltas_are_skipped() {
        let events = [
            &[
                json!({"type": "news", "content": 7}),
                json!({"type": "ping"}),
                start(0, json!({"type": "hologram", "beam": {"text": "no"}})),
                delta(0, json!({"type": "text_delta", "text": "not text"})),
                start(1, json!({"type": "text", "text": "", "citations": null})),
                delta(1, json!({"type": "citations_delta", "citation": {}})),
                delta(1, json!({"type": "text_delta", "text": "yes"})),
                delta(9, json!({"type": "input_json_delta", "partial_json": "{"})),
                stop(1),
                stop(7),
            ][..],
            &end("end_turn"),
        ]
        .concat();
        let (response, deltas) = answered(&events);
        let response = response.unwrap();
        assert_eq!(response.content, [Block::Text { text: "yes".into() }]);
        assert_eq!(response.usage.output_tokens, 9);
        assert_eq!(deltas, [Delta::Text { index: 1, text: "yes".into() }]);
    }

    #[test]
    fn a_call_without_a_name_is_left_out_and_shown_to_nobody() {
        let nameless = start(1, json!({"type": "tool_use", "id": "y", "name": "", "input": {}}));
        let events = [
            &call(0, "x", "")[..],
            &[nameless, delta(1, json!({"type": "input_json_delta", "partial_json": "{}"})), stop(1)],
            &end("tool_use"),
        ]
        .concat();
        let (response, deltas) = answered(&events);
        let ids: Vec<String> = inputs(&response.unwrap()).into_iter().map(|(id, ..)| id).collect();
        assert_eq!((ids, deltas.len()), (vec!["x".to_owned()], 1));
    }

    #[test]
    fn blocks_may_be_interleaved_and_lack_a_start() {
        let events = [
            &[
                delta(0, json!({"type": "thinking_delta", "thinking": "h"})),
                delta(1, json!({"type": "text_delta", "text": "a"})),
                delta(0, json!({"type": "thinking_delta", "thinking": "m"})),
                delta(0, json!({"type": "signature_delta", "signature": "sig"})),
                delta(1, json!({"type": "text_delta", "text": "b"})),
            ][..],
            &end("end_turn"),
        ]
        .concat();
        assert_eq!(
            answered(&events).0.unwrap().content,
            [
                Block::Thinking { thinking: "hm".into(), signature: "sig".into() },
                Block::Text { text: "ab".into() }
            ]
        );
    }

    #[test]
    fn arguments_are_objects_or_distinguished() {
        let invalid = |raw: &str| json!({ "invalid_arguments": raw });
        for (json, expected, reason) in [
            ("", json!({}), None),
            (" ", json!({}), None),
            (r#"{"a":1}"#, json!({"a": 1}), None),
            ("[1]", invalid("[1]"), Some("array")),
            ("7", invalid("7"), Some("single")),
            (r#"{"a":"#, invalid(r#"{"a":"#), Some("line 1 column 5")),
        ] {
            let events = [&call(0, "x", json)[..], &end("tool_use")].concat();
            let response = answered(&events).0.unwrap();
            let (_, input, error) = inputs(&response).remove(0);
            assert_eq!(input, expected, "{json}");
            assert_eq!(error.is_some(), reason.is_some(), "{json}: {error:?}");
            if let (Some(error), Some(reason)) = (error, reason) {
                assert!(error.contains(reason), "{json}: {error}");
            }
        }
    }

    #[test]
    fn ids_used_twice_are_made_unique() {
        let events = [
            &call(0, "x", "")[..],
            &call(1, "x", ""),
            &call(2, "x-2", ""),
            &call(3, "", ""),
            &end("tool_use"),
        ]
        .concat();
        let (response, deltas) = answered(&events);
        let ids: Vec<String> = inputs(&response.unwrap()).into_iter().map(|(id, ..)| id).collect();
        assert_eq!(ids, ["x", "x-2", "x-2-2", "call"]);
        let shown: Vec<&str> = deltas
            .iter()
            .map(|delta| match delta {
                Delta::ToolUse { id, .. } => id.as_str(),
                Delta::Text { .. } | Delta::Thinking { .. } => "",
            })
            .collect();
        assert_eq!(shown, ids, "what is shown early has the id of what follows");
    }

    #[test]
    fn ids_of_earlier_answers_are_not_used_again() {
        let earlier =
            Block::ToolUse { id: "x".into(), name: "Read".into(), input: json!({}), input_error: None };
        let mut answer = MessagesAnswer::to(&[Message::assistant(vec![earlier])]);
        for data in [&call(0, "x", "")[..], &end("tool_use")].concat() {
            let event = SseEvent { event: String::new(), data: data.to_string() };
            answer.apply(&event, &mut |_| {}).unwrap();
        }
        assert_eq!(inputs(&answer.into_response())[0].0, "x-2");
    }

    #[test]
    fn calls_count_only_in_answers_that_were_not_cut() {
        for (reason, expected) in [
            ("tool_use", 1),
            ("end_turn", 1),
            ("stop_sequence", 1),
            ("pause_turn", 1),
            ("something_new", 1),
            ("max_tokens", 0),
            ("model_context_window_exceeded", 0),
            ("refusal", 0),
        ] {
            let ended = [&call(0, "x", "{}")[..], &end(reason)].concat();
            let response = answered(&ended).0.unwrap();
            assert_eq!(inputs(&response).len(), expected, "{reason}");
        }
        let never_ended = [&call(0, "x", "{}")[..2], &end("tool_use")].concat();
        assert!(answered(&never_ended).0.unwrap().content.is_empty());
    }

    #[test]
    fn faults_are_distinguished() {
        let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
        let reported = ReportedError {
            kind: "overloaded_error".into(),
            message: "Overloaded".into(),
            ..ReportedError::default()
        };
        assert_eq!(answered(&[error]).0, Err(AnswerFault::Reported(reported)));
        assert_eq!(answered(&[json!({"type": "message_stop"})]).0, Err(AnswerFault::NoStopReason));
        let no_index = json!({"type": "content_block_delta", "delta": {}});
        assert!(matches!(answered(&[no_index]).0, Err(AnswerFault::Unreadable(_))));
    }

    #[test]
    fn events_without_a_name_are_known_by_their_type() {
        let mut answer = MessagesAnswer::default();
        let event = SseEvent { event: String::new(), data: json!({"type": "ping"}).to_string() };
        assert_eq!(answer.apply(&event, &mut |_| {}), Ok(AnswerProgress::SignOfLife));
        assert_eq!(answer.into_partial(), None);
    }
}
