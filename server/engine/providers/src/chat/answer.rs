//! An answer as it grows, chunk by chunk.
//!
//! Rule: what this build does not know is skipped; what had arrived can be had at any time; a tool call is in the
//! response only if the answer ended, and not by a cut.

use serde_json::Value;

use super::sealed::{ChatSeal, ProviderFields, add_detail};
use super::wire::{ChatChoice, ChatChunk, ChatUsage, ChoiceDelta, WireCall, WireFunction};
use crate::arguments;
use crate::call_ids::CallIds;
use crate::exchange::{self, AnswerFault, AnswerProgress};
use crate::failure::ReportedError;
use kode_model::{Block, Delta, DeltaSink, Message, ModelResponse, StopReason, Usage};
use kode_net::sse::SseEvent;

/// The marker of the end of a stream.
const END: &str = "[DONE]";

/// The name that servers give to events that are errors, if they give names.
const ERROR_EVENT: &str = "error";

/// The only kind of call there is a tool for.
const FUNCTION: &str = "function";

/// Ends that say that the server gave up; the request may be tried again.
const GIVEN_UP: [&str; 3] = ["insufficient_system_resource", "error", "abort"];

/// The received part of an answer.
#[derive(Debug, Default)]
pub(crate) struct ChatAnswer {
    id: Option<String>,
    blocks: Vec<ChatContent>,
    call_ids: CallIds,
    /// The sealed data that the provider wants back with the message.
    extra: ProviderFields,
    reasoning_details: Vec<Value>,
    finish_reason: Option<String>,
    refused: bool,
    usage: Usage,
    /// Grows with every piece of content.
    taken: usize,
    /// Whether a chunk of an answer has come at all.
    begun: bool,
}

#[derive(Debug)]
enum ChatContent {
    Text(String),
    Thinking(String),
    Call(OpenChatCall),
}

#[derive(Debug)]
struct OpenChatCall {
    /// The server's number of it, if it gave one.
    index: Option<usize>,
    /// The server's id of it; may be empty.
    wire_id: String,
    /// The id it has here.
    id: String,
    name: String,
    json: String,
    /// Whether it is of a kind that can be run.
    runnable: bool,
    /// The sealed data that the provider wants back with the call.
    extra: Box<ProviderFields>,
}

impl OpenChatCall {
    /// Whether it can be run: no provider takes a call without a name back.
    fn runs(&self) -> bool {
        self.runnable && !self.name.is_empty()
    }
}

impl ChatAnswer {
    /// The answer to come to `history`.
    pub(crate) fn to(history: &[Message]) -> Self {
        Self { call_ids: CallIds::of(history), ..Self::default() }
    }

    fn take_chunk(
        &mut self,
        chunk: ChatChunk,
        raw: &[u8],
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<AnswerProgress, AnswerFault> {
        let is_error = chunk.error.as_ref().is_some_and(|error| !error.is_null());
        if is_error || (chunk.choices.is_none() && chunk.usage.is_none()) {
            return match ReportedError::read(raw) {
                Some(reported) => Err(AnswerFault::Reported(reported)),
                None if is_error => {
                    Err(AnswerFault::Unreadable("an error that does not say what it is".to_owned()))
                }
                None => Ok(AnswerProgress::SignOfLife),
            };
        }
        self.begun = true;
        if self.id.is_none() {
            self.id = chunk.id.filter(|id| !id.is_empty());
        }
        let mut progress = AnswerProgress::SignOfLife;
        if let Some(usage) = chunk.usage {
            self.usage = counted(&usage);
            progress = AnswerProgress::Content;
        }
        // Only one answer is asked for.
        for choice in chunk.choices.into_iter().flatten().filter(|choice| choice.index == 0) {
            progress = progress.max(self.take_choice(choice, on_delta)?);
        }
        Ok(progress)
    }

    fn take_choice(
        &mut self,
        choice: ChatChoice,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<AnswerProgress, AnswerFault> {
        let mut progress = AnswerProgress::SignOfLife;
        let before = self.taken;
        if let Some(part) = choice.delta.or(choice.message) {
            self.take_part(part, on_delta);
        }
        if self.taken > before {
            progress = AnswerProgress::Content;
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            if GIVEN_UP.contains(&reason.as_str()) {
                return Err(AnswerFault::Reported(ReportedError {
                    code: reason,
                    message: "the server gave up before the answer was whole".to_owned(),
                    ..ReportedError::default()
                }));
            }
            self.finish_reason = Some(reason);
            progress = AnswerProgress::Content;
        }
        Ok(progress)
    }

    fn take_part(&mut self, part: ChoiceDelta, on_delta: &mut DeltaSink<'_>) {
        self.extra.merge(part.extra);
        for detail in part.reasoning_details {
            self.taken += 1;
            add_detail(&mut self.reasoning_details, detail);
        }
        let reasoning = part.reasoning_content.filter(|text| !text.is_empty());
        if let Some(text) = reasoning.or_else(|| part.reasoning.as_str().map(str::to_owned)) {
            self.think(&text, on_delta);
        }
        match part.content {
            Value::String(text) => self.say(&text, on_delta),
            Value::Array(parts) => {
                for typed in &parts {
                    if let Some(text) = typed.get("text").and_then(Value::as_str) {
                        self.say(text, on_delta);
                    }
                    // Reasoning in parts holds a list of texts again.
                    for inner in typed.get("thinking").and_then(Value::as_array).into_iter().flatten() {
                        self.think(inner.get("text").and_then(Value::as_str).unwrap_or_default(), on_delta);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
        }
        if let Some(refusal) = part.refusal.filter(|text| !text.is_empty()) {
            self.refused = true;
            self.say(&refusal, on_delta);
        }
        for call in part.tool_calls {
            self.take_call(call, on_delta);
        }
        if let Some(function) = part.function_call {
            let call = WireCall { index: Some(0), function: Some(function), ..WireCall::default() };
            self.take_call(call, on_delta);
        }
    }

    fn say(&mut self, piece: &str, on_delta: &mut DeltaSink<'_>) {
        if piece.is_empty() {
            return;
        }
        self.taken += piece.len();
        if !matches!(self.blocks.last(), Some(ChatContent::Text(_))) {
            self.blocks.push(ChatContent::Text(String::new()));
        }
        let index = self.blocks.len() - 1;
        let Some(ChatContent::Text(text)) = self.blocks.last_mut() else { return };
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
        self.taken += piece.len();
        match self.blocks.last_mut() {
            Some(ChatContent::Thinking(text)) => text.push_str(piece),
            Some(ChatContent::Text(_) | ChatContent::Call(_)) | None => {
                self.blocks.push(ChatContent::Thinking(piece.to_owned()));
            }
        }
        on_delta(Delta::Thinking { index: self.blocks.len() - 1, text: piece.to_owned() });
    }

    fn take_call(&mut self, call: WireCall, on_delta: &mut DeltaSink<'_>) {
        let WireFunction { name, arguments } = call.function.unwrap_or_default();
        let name = name.unwrap_or_default();
        let wire_id = call.id.unwrap_or_default();
        let position = self.position(call.index, &wire_id, &name).unwrap_or_else(|| {
            let runnable = call.kind.as_deref().is_none_or(|kind| kind.is_empty() || kind == FUNCTION);
            let id = if runnable { self.call_ids.unique(&wire_id) } else { wire_id.clone() };
            let json = String::new();
            let name = String::new();
            let call =
                OpenChatCall { index: call.index, wire_id, id, name, json, runnable, extra: Box::default() };
            self.blocks.push(ChatContent::Call(call));
            self.taken += 1;
            self.blocks.len() - 1
        });
        let args = match arguments {
            Value::Null => String::new(),
            Value::String(piece) => piece,
            whole @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                whole.to_string()
            }
        };
        self.taken += args.len();
        let Some(ChatContent::Call(open)) = self.blocks.get_mut(position) else { return };
        // Some servers say the name with every piece, and some say it in pieces.
        if open.name.is_empty() && !name.is_empty() && open.runnable {
            on_delta(Delta::ToolUse { index: position, id: open.id.clone(), name: name.clone() });
        }
        if open.name != name {
            open.name.push_str(&name);
        }
        open.json.push_str(&args);
        open.extra.merge(call.extra);
    }

    /// Where the call is that a piece belongs to; none if it begins a new one.
    fn position(&self, index: Option<usize>, wire_id: &str, name: &str) -> Option<usize> {
        let mut calls = self.blocks.iter().enumerate().rev().filter_map(|(position, block)| match block {
            ChatContent::Call(call) => Some((position, call)),
            ChatContent::Text(_) | ChatContent::Thinking(_) => None,
        });
        let (position, call) = match (index, wire_id) {
            (Some(index), _) => calls.find(|(_, call)| call.index == Some(index))?,
            // Without a number, a piece without an id continues with the last call.
            (None, "") => calls.next()?,
            (None, wire_id) => calls.find(|(_, call)| call.wire_id == wire_id)?,
        };
        // Some servers give every call the same number or id, or none, but then each is whole and has its name.
        let other_id = !wire_id.is_empty() && !call.wire_id.is_empty() && call.wire_id != wire_id;
        let is_next = wire_id.is_empty() || call.name != name || call.is_complete();
        let is_new = !name.is_empty() && (other_id || (index.is_none() && is_next));
        (!is_new).then_some(position)
    }

    fn calls(&self) -> impl Iterator<Item = &OpenChatCall> {
        self.blocks.iter().filter_map(|block| match block {
            ChatContent::Call(call) => Some(call),
            ChatContent::Text(_) | ChatContent::Thinking(_) => None,
        })
    }

    /// Why the answer ended.
    fn stop_reason(&self) -> StopReason {
        if self.refused {
            return StopReason::Refusal;
        }
        let calls = self.calls().any(OpenChatCall::runs);
        match self.finish_reason.as_deref() {
            Some("length" | "max_tokens" | "model_length") => StopReason::MaxTokens,
            Some("content_filter" | "refusal") => StopReason::Refusal,
            // Many servers say `stop` whatever the model did.
            Some("stop" | "tool_calls" | "function_call" | "tool_use" | "end_turn" | "eos") | None => {
                if calls { StopReason::ToolUse } else { StopReason::EndTurn }
            }
            Some(other) => StopReason::Other(other.to_owned()),
        }
    }

    /// Whether what has come can be the whole answer although nothing said why it ended.
    fn may_be_whole(&self) -> bool {
        !self.blocks.is_empty() && self.calls().all(|call| call.json.is_empty() || call.is_complete())
    }
}

impl OpenChatCall {
    /// Whether its arguments are an object from beginning to end.
    fn is_complete(&self) -> bool {
        let json = self.json.trim_end();
        json.ends_with('}') && serde_json::from_str::<serde_json::Map<String, Value>>(json).is_ok()
    }
}

impl exchange::StreamedAnswer for ChatAnswer {
    fn apply(
        &mut self,
        event: &SseEvent,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<AnswerProgress, AnswerFault> {
        let data = event.data.trim();
        if data == END {
            let ended = self.finish_reason.is_some() || self.may_be_whole();
            return if ended { Ok(AnswerProgress::Done) } else { Err(AnswerFault::NoStopReason) };
        }
        if data.is_empty() {
            return Ok(AnswerProgress::SignOfLife);
        }
        match serde_json::from_str(data) {
            Ok(chunk) => self.take_chunk(chunk, data.as_bytes(), on_delta),
            Err(_) if event.event == ERROR_EVENT => {
                let message = data.to_owned();
                Err(AnswerFault::Reported(ReportedError { message, ..ReportedError::default() }))
            }
            Err(error) => Err(AnswerFault::Unreadable(format!("an event of its stream: {error}"))),
        }
    }

    fn apply_whole(&mut self, body: &[u8], on_delta: &mut DeltaSink<'_>) -> Result<(), AnswerFault> {
        let unreadable = |reason: String| AnswerFault::Unreadable(reason);
        let chunk: ChatChunk =
            serde_json::from_slice(body).map_err(|error| unreadable(format!("its JSON body: {error}")))?;
        let object = chunk.object.clone().unwrap_or_default();
        self.take_chunk(chunk, body, on_delta)?;
        if !self.begun {
            return Err(unreadable(format!("a JSON body of the type `{object}`")));
        }
        let ended = self.finish_reason.is_some() || self.may_be_whole();
        if ended { Ok(()) } else { Err(AnswerFault::NoStopReason) }
    }

    fn is_whole(&self) -> bool {
        self.finish_reason.is_some()
    }

    fn into_response(self) -> ModelResponse {
        let stop_reason = self.stop_reason();
        let skipped = self.calls().filter(|call| !call.runs()).count();
        if skipped > 0 {
            tracing::warn!(skipped, "an answer held calls that are no function calls, or have no name");
        }
        let cut = matches!(stop_reason, StopReason::MaxTokens | StopReason::Refusal);
        let may_close = arguments::may_close(&stop_reason);
        let content = self.blocks.into_iter().flat_map(|block| match block {
            ChatContent::Text(text) => {
                [None, Some(text).filter(|text| !text.trim().is_empty()).map(text_block)]
            }
            ChatContent::Thinking(text) => [None, Some(thinking_block(text))],
            ChatContent::Call(call) if cut || !call.runs() => [None, None],
            ChatContent::Call(OpenChatCall { id, name, json, extra, .. }) => {
                let (input, input_error) = arguments::input(json, may_close);
                [ChatSeal::Call(*extra).into_block(), Some(Block::ToolUse { id, name, input, input_error })]
            }
        });
        let content: Vec<_> = content.flatten().collect();
        // Sealed data belongs to an answer; alone it is dropped.
        let sealed = [ChatSeal::ReasoningDetails(self.reasoning_details), ChatSeal::Message(self.extra)];
        let sealed = sealed.into_iter().filter(|_| !content.is_empty()).filter_map(ChatSeal::into_block);
        let content = sealed.collect::<Vec<_>>().into_iter().chain(content).collect();
        ModelResponse { content, id: self.id, stop_reason, usage: self.usage }
    }

    fn into_partial(self) -> Option<ModelResponse> {
        if !self.begun {
            return None;
        }
        let content = self.blocks.into_iter().filter_map(|block| match block {
            ChatContent::Text(text) => Some(text_block(text)),
            ChatContent::Thinking(text) => Some(thinking_block(text)),
            ChatContent::Call(_) => None,
        });
        Some(ModelResponse {
            content: content.collect(),
            id: self.id,
            stop_reason: StopReason::Other("interrupted".to_owned()),
            usage: self.usage,
        })
    }
}

fn text_block(text: String) -> Block {
    Block::Text { text }
}

fn thinking_block(thinking: String) -> Block {
    Block::Thinking { thinking, signature: String::new() }
}

fn counted(usage: &ChatUsage) -> Usage {
    let in_details = usage.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
    let cached = in_details.or(usage.prompt_cache_hit_tokens).unwrap_or_default().min(usage.prompt_tokens);
    let details = usage.completion_tokens_details.as_ref();
    let thinking_tokens = details.and_then(|details| details.reasoning_tokens).unwrap_or_default();
    // Some servers count reasoning beside the answer and not as a part of it; the total tells.
    let with_reasoning = usage.completion_tokens.saturating_add(thinking_tokens);
    let beside = usage.prompt_tokens.saturating_add(with_reasoning) == usage.total_tokens;
    Usage {
        input_tokens: usage.prompt_tokens - cached,
        output_tokens: if beside { with_reasoning } else { usage.completion_tokens },
        cache_read_tokens: cached,
        cache_write_tokens: 0,
        thinking_tokens,
    }
}
