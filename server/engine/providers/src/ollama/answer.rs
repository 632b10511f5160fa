//! An answer of Ollama's format as it grows, line by line.
//!
//! Rule: what this build does not know is skipped; what had arrived can be had at any time; a tool call is in the
//! response only if the answer ended, and not by a cut. Every call arrives whole.

use serde_json::{Value, json};

use super::wire::{OllamaAnswerCall, OllamaLine};
use crate::arguments;
use crate::call_ids::CallIds;
use crate::exchange::{AnswerFault, AnswerProgress, StreamedAnswer};
use crate::failure::ReportedError;
use kode_model::{Block, Delta, DeltaSink, Message, ModelResponse, StopReason, Usage};
use kode_net::sse::SseEvent;

/// The received part of an answer.
#[derive(Debug, Default)]
pub(crate) struct OllamaAnswer {
    blocks: Vec<Block>,
    call_ids: CallIds,
    done_reason: Option<String>,
    done: bool,
    usage: Usage,
    begun: bool,
}

impl OllamaAnswer {
    /// The answer to come to `history`.
    pub(crate) fn to(history: &[Message]) -> Self {
        Self { call_ids: CallIds::of(history), ..Self::default() }
    }

    fn take(
        &mut self,
        line: OllamaLine,
        raw: &[u8],
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<AnswerProgress, AnswerFault> {
        if line.error.is_some() {
            return Err(match ReportedError::read(raw) {
                Some(reported) => AnswerFault::Reported(reported),
                None => AnswerFault::Unreadable("an error that does not say what it is".to_owned()),
            });
        }
        self.begun |= line.message.is_some() || line.done;
        if let Some(message) = line.message {
            self.think(&message.thinking, on_delta);
            self.say(&message.content, on_delta);
            message.tool_calls.into_iter().for_each(|call| self.call(call, on_delta));
        }
        if !line.done {
            return Ok(AnswerProgress::Content);
        }
        self.done = true;
        self.done_reason = line.done_reason;
        self.usage = Usage {
            input_tokens: line.prompt_eval_count,
            output_tokens: line.eval_count,
            ..Usage::default()
        };
        Ok(AnswerProgress::Done)
    }

    fn say(&mut self, piece: &str, on_delta: &mut DeltaSink<'_>) {
        if piece.is_empty() {
            return;
        }
        if !matches!(self.blocks.last(), Some(Block::Text { .. })) {
            self.blocks.push(Block::Text { text: String::new() });
        }
        let index = self.blocks.len() - 1;
        let Some(Block::Text { text }) = self.blocks.last_mut() else { return };
        // Blank text before a call is no text, so it is shown when something follows it.
        let shown = if text.trim().is_empty() { 0 } else { text.len() };
        text.push_str(piece);
        if !text.trim().is_empty() {
            on_delta(Delta::Text { index, text: text[shown..].to_owned() });
        }
    }

    fn think(&mut self, piece: &str, on_delta: &mut DeltaSink<'_>) {
        if piece.is_empty() {
            return;
        }
        match self.blocks.last_mut() {
            Some(Block::Thinking { thinking, .. }) => thinking.push_str(piece),
            _ => self.blocks.push(Block::Thinking { thinking: piece.to_owned(), signature: String::new() }),
        }
        on_delta(Delta::Thinking { index: self.blocks.len() - 1, text: piece.to_owned() });
    }

    fn call(&mut self, call: OllamaAnswerCall, on_delta: &mut DeltaSink<'_>) {
        let name = call.function.name;
        if name.is_empty() {
            tracing::warn!("an answer held a call without a name");
            return;
        }
        let id = self.call_ids.unique(&call.id);
        on_delta(Delta::ToolUse { index: self.blocks.len(), id: id.clone(), name: name.clone() });
        let (input, input_error) = match call.function.arguments {
            Value::Null => (json!({}), None),
            input @ Value::Object(_) => (input, None),
            Value::String(text) => arguments::input(text, true),
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
                arguments::input(other.to_string(), false)
            }
        };
        self.blocks.push(Block::ToolUse { id, name, input, input_error });
    }

    fn stop_reason(&self) -> StopReason {
        let calls = self.blocks.iter().any(|block| matches!(block, Block::ToolUse { .. }));
        match self.done_reason.as_deref() {
            Some("length") => StopReason::MaxTokens,
            Some("stop") | None => {
                if calls {
                    StopReason::ToolUse
                } else {
                    StopReason::EndTurn
                }
            }
            Some(other) => StopReason::Other(other.to_owned()),
        }
    }
}

impl StreamedAnswer for OllamaAnswer {
    fn apply(
        &mut self,
        event: &SseEvent,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<AnswerProgress, AnswerFault> {
        match serde_json::from_str(&event.data) {
            Ok(line) => self.take(line, event.data.as_bytes(), on_delta),
            Err(error) => Err(AnswerFault::Unreadable(format!("a line of its stream: {error}"))),
        }
    }

    fn apply_whole(&mut self, body: &[u8], on_delta: &mut DeltaSink<'_>) -> Result<(), AnswerFault> {
        let line = serde_json::from_slice(body)
            .map_err(|error| AnswerFault::Unreadable(format!("its JSON body: {error}")))?;
        self.take(line, body, on_delta)?;
        if !self.begun {
            return Err(AnswerFault::Unreadable("a JSON body without a message".to_owned()));
        }
        if self.done { Ok(()) } else { Err(AnswerFault::NoStopReason) }
    }

    fn is_whole(&self) -> bool {
        self.done
    }

    fn into_response(self) -> ModelResponse {
        let stop_reason = self.stop_reason();
        let cut = stop_reason == StopReason::MaxTokens;
        let mut content = self.blocks;
        content.retain(|block| match block {
            Block::Text { text } => !text.trim().is_empty(),
            Block::ToolUse { .. } => !cut,
            _ => true,
        });
        ModelResponse { id: None, content, stop_reason, usage: self.usage }
    }

    fn into_partial(self) -> Option<ModelResponse> {
        if !self.begun {
            return None;
        }
        let mut content = self.blocks;
        content.retain(|block| !matches!(block, Block::ToolUse { .. }));
        let stop_reason = StopReason::Other("interrupted".to_owned());
        Some(ModelResponse { id: None, content, stop_reason, usage: self.usage })
    }
}
