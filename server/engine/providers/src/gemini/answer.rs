//! An answer of Gemini's format as it grows, chunk by chunk.
//!
//! Rule: what this build does not know is skipped; what had arrived can be had at any time; a tool call is in the
//! response only if the answer ended, and not by a cut. Every call arrives whole.

use serde_json::{Value, json};

use super::sealed::GeminiSeal;
use super::wire::{CandidatePart, GeminiCandidate, GeminiChunk, GeminiUsage};
use crate::call_ids::CallIds;
use crate::exchange::{AnswerFault, AnswerProgress, StreamedAnswer};
use crate::failure::ReportedError;
use kode_model::{Block, Delta, DeltaSink, Message, ModelResponse, StopReason, Usage};
use kode_net::sse::SseEvent;

/// Ends of answers that a filter stopped.
const FILTERED: [&str; 6] = ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"];

/// Ends at which the model wrote a call that the server could not read. Asked again, it mostly writes a good one.
const BAD_CALL: [&str; 2] = ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"];

/// The received part of an answer.
#[derive(Debug, Default)]
pub(crate) struct GeminiAnswer {
    id: Option<String>,
    blocks: Vec<GeminiContent>,
    call_ids: CallIds,
    finish_reason: Option<String>,
    refused: bool,
    usage: Usage,
    begun: bool,
}

#[derive(Debug)]
enum GeminiContent {
    Text {
        text: String,
        /// The signature of its end, and how many bytes that end has.
        signed: Option<(String, usize)>,
    },
    Thinking {
        text: String,
        signature: String,
    },
    Call {
        id: String,
        name: String,
        input: Value,
        /// Why the arguments cannot be used.
        error: Option<String>,
        signature: Option<String>,
    },
}

impl GeminiAnswer {
    /// The answer to come to `history`.
    pub(crate) fn to(history: &[Message]) -> Self {
        Self { call_ids: CallIds::of(history), ..Self::default() }
    }

    fn take_chunk(
        &mut self,
        chunk: GeminiChunk,
        raw: &[u8],
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<AnswerProgress, AnswerFault> {
        if chunk.error.is_some() {
            return Err(match ReportedError::read(raw) {
                Some(reported) => AnswerFault::Reported(reported),
                None => AnswerFault::Unreadable("an error that does not say what it is".to_owned()),
            });
        }
        if let Some(usage) = &chunk.usage_metadata {
            self.usage = counted(usage);
        }
        if let Some(id) = chunk.response_id.filter(|id| !id.is_empty()) {
            self.id.get_or_insert(id);
        }
        let blocked = chunk.prompt_feedback.and_then(|feedback| {
            let reason = feedback.block_reason?;
            Some(feedback.block_reason_message.unwrap_or(reason))
        });
        if let Some(reason) = blocked {
            (self.begun, self.refused) = (true, true);
            self.finish_reason.get_or_insert_with(|| "SAFETY".to_owned());
            self.say(&format!("The provider blocked the prompt: {reason}."), None, on_delta);
            return Ok(AnswerProgress::Content);
        }
        let Some(candidates) = chunk.candidates else {
            return Ok(AnswerProgress::SignOfLife);
        };
        self.begun = true;
        // Only one answer is asked for.
        for candidate in candidates.into_iter().filter(|candidate| candidate.index == 0) {
            self.take_candidate(candidate, on_delta)?;
        }
        Ok(AnswerProgress::Content)
    }

    fn take_candidate(
        &mut self,
        candidate: GeminiCandidate,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<(), AnswerFault> {
        for part in candidate.content.parts {
            self.take_part(part, on_delta);
        }
        let Some(reason) = candidate.finish_reason.filter(|reason| !reason.is_empty()) else { return Ok(()) };
        if BAD_CALL.contains(&reason.as_str()) {
            let message =
                candidate.finish_message.unwrap_or_else(|| "the model's call is malformed".to_owned());
            // A failure of the server's side: the same request may be tried again.
            return Err(AnswerFault::Reported(ReportedError {
                kind: "server_error".to_owned(),
                code: reason,
                message,
                ..ReportedError::default()
            }));
        }
        self.finish_reason = Some(reason);
        Ok(())
    }

    fn take_part(&mut self, part: CandidatePart, on_delta: &mut DeltaSink<'_>) {
        let signature = part.thought_signature.filter(|signature| !signature.is_empty());
        if let Some(call) = part.function_call {
            let id = self.call_ids.unique(&call.id);
            on_delta(Delta::ToolUse { index: self.blocks.len(), id: id.clone(), name: call.name.clone() });
            let (input, error) = match call.args {
                Value::Null => (json!({}), None),
                input @ Value::Object(_) => (input, None),
                other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => (
                    json!({ "invalid_arguments": other.to_string() }),
                    Some("The arguments are no JSON object.".to_owned()),
                ),
            };
            self.blocks.push(GeminiContent::Call { id, name: call.name, input, error, signature });
            return;
        }
        match part.text {
            Some(text) if part.thought => self.think(&text, signature, on_delta),
            Some(text) => self.say(&text, signature, on_delta),
            None => self.say("", signature, on_delta),
        }
    }

    fn think(&mut self, piece: &str, signature: Option<String>, on_delta: &mut DeltaSink<'_>) {
        let is_open = matches!(self.blocks.last(), Some(GeminiContent::Thinking { signature, .. }) if signature.is_empty());
        if !is_open {
            self.blocks.push(GeminiContent::Thinking { text: String::new(), signature: String::new() });
        }
        let index = self.blocks.len() - 1;
        let Some(GeminiContent::Thinking { text, signature: known }) = self.blocks.last_mut() else { return };
        text.push_str(piece);
        *known = signature.unwrap_or_default();
        if !piece.is_empty() {
            on_delta(Delta::Thinking { index, text: piece.to_owned() });
        }
    }

    fn say(&mut self, piece: &str, signature: Option<String>, on_delta: &mut DeltaSink<'_>) {
        let is_open = matches!(self.blocks.last(), Some(GeminiContent::Text { signed: None, .. }));
        if !is_open {
            // A signature alone after a call or a thought has no text to stand with.
            if piece.is_empty() {
                return;
            }
            self.blocks.push(GeminiContent::Text { text: String::new(), signed: None });
        }
        let index = self.blocks.len() - 1;
        let Some(GeminiContent::Text { text, signed }) = self.blocks.last_mut() else { return };
        // Blank text before a call is no text, so it is shown when something follows it.
        let shown = if text.trim().is_empty() { 0 } else { text.len() };
        text.push_str(piece);
        *signed = signature.map(|signature| (signature, piece.len()));
        if !text.trim().is_empty() && text.len() > shown {
            on_delta(Delta::Text { index, text: text[shown..].to_owned() });
        }
    }

    fn stop_reason(&self) -> StopReason {
        let calls = self.blocks.iter().any(|block| matches!(block, GeminiContent::Call { .. }));
        match self.finish_reason.as_deref() {
            _ if self.refused => StopReason::Refusal,
            Some("MAX_TOKENS") => StopReason::MaxTokens,
            Some(reason) if FILTERED.contains(&reason) => StopReason::Refusal,
            Some("STOP") | None => {
                if calls {
                    StopReason::ToolUse
                } else {
                    StopReason::EndTurn
                }
            }
            Some(other) => StopReason::Other(other.to_lowercase()),
        }
    }

    fn into_blocks(self, keeps_calls: bool) -> Vec<Block> {
        let blocks = self.blocks.into_iter().flat_map(|block| match block {
            GeminiContent::Text { text, .. } if text.trim().is_empty() => [None, None],
            GeminiContent::Text { text, signed } => {
                let sealed = signed.map(|(signature, tail)| GeminiSeal::TextSignature { signature, tail });
                [sealed.and_then(GeminiSeal::into_block), Some(Block::Text { text })]
            }
            GeminiContent::Thinking { text, signature } => {
                [None, Some(Block::Thinking { thinking: text, signature })]
            }
            GeminiContent::Call { name, .. } if !keeps_calls || name.is_empty() => [None, None],
            GeminiContent::Call { id, name, input, error, signature } => {
                let sealed = signature.map(GeminiSeal::CallSignature);
                let call = Block::ToolUse { id, name, input, input_error: error };
                [sealed.and_then(GeminiSeal::into_block), Some(call)]
            }
        });
        blocks.flatten().collect()
    }
}

impl StreamedAnswer for GeminiAnswer {
    fn apply(
        &mut self,
        event: &SseEvent,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<AnswerProgress, AnswerFault> {
        let data = event.data.trim();
        if data.is_empty() {
            return Ok(AnswerProgress::SignOfLife);
        }
        match serde_json::from_str(data) {
            Ok(chunk) => self.take_chunk(chunk, data.as_bytes(), on_delta),
            Err(error) => Err(AnswerFault::Unreadable(format!("an event of its stream: {error}"))),
        }
    }

    fn apply_whole(&mut self, body: &[u8], on_delta: &mut DeltaSink<'_>) -> Result<(), AnswerFault> {
        let unreadable = |reason: String| AnswerFault::Unreadable(reason);
        // Without `alt=sse` some gateways stream one array of chunks.
        let chunks: Vec<Value> = match serde_json::from_slice(body) {
            Ok(Value::Array(chunks)) => chunks,
            Ok(chunk) => vec![chunk],
            Err(error) => return Err(unreadable(format!("its JSON body: {error}"))),
        };
        for chunk in chunks {
            let raw = chunk.to_string();
            let chunk = serde_json::from_value(chunk)
                .map_err(|error| unreadable(format!("its JSON body: {error}")))?;
            self.take_chunk(chunk, raw.as_bytes(), on_delta)?;
        }
        if !self.begun {
            return Err(unreadable("a JSON body without candidates".to_owned()));
        }
        if self.finish_reason.is_some() { Ok(()) } else { Err(AnswerFault::NoStopReason) }
    }

    /// The format has no event for the end of a stream: it ends after the chunk that says why.
    fn is_whole(&self) -> bool {
        self.finish_reason.is_some()
    }

    fn into_response(self) -> ModelResponse {
        let (stop_reason, id, usage) = (self.stop_reason(), self.id.clone(), self.usage);
        let keeps_calls = !matches!(stop_reason, StopReason::MaxTokens | StopReason::Refusal);
        ModelResponse { content: self.into_blocks(keeps_calls), id, stop_reason, usage }
    }

    fn into_partial(self) -> Option<ModelResponse> {
        if !self.begun {
            return None;
        }
        let (id, usage) = (self.id.clone(), self.usage);
        let mut content = self.into_blocks(false);
        content.retain(|block| !matches!(block, Block::RedactedThinking { .. }));
        let stop_reason = StopReason::Other("interrupted".to_owned());
        Some(ModelResponse { content, id, stop_reason, usage })
    }
}

fn counted(usage: &GeminiUsage) -> Usage {
    let prompt = usage.prompt_token_count + usage.tool_use_prompt_token_count;
    Usage {
        input_tokens: prompt.saturating_sub(usage.cached_content_token_count),
        output_tokens: usage.candidates_token_count + usage.thoughts_token_count,
        cache_read_tokens: usage.cached_content_token_count,
        cache_write_tokens: 0,
        thinking_tokens: usage.thoughts_token_count,
    }
}
