//! The context window and its compaction between the engine's types and those of the wire.
//!
//! Rule: values only, no decisions; matches are exhaustive, so that a new case of either side is not forgotten.

use kode_engine::agent::history::paging::WindowPage;
use kode_engine::base::ids::{AgentId, TurnId};
use kode_engine::model::{Block, Message, Role};
use kode_engine::record::compaction::{Cause, Compaction};
use kode_engine::record::context::ContextUse;
use kode_engine::record::event::CompressionStep;
use kode_engine::record::tokens::CountSource;
use kode_protocol as wire;
use serde_json::{Value, json};

use crate::convert::{UriNames, agent_id, turn_id, usage};

/// How full a context window is.
#[must_use]
pub fn context_use(context: &ContextUse) -> wire::ContextUse {
    let parts = context.parts;
    wire::ContextUse {
        tokens: context.tokens,
        source: match context.source {
            CountSource::Reported => wire::TokenSource::Reported,
            CountSource::Estimated => wire::TokenSource::Estimated,
        },
        window: context.window,
        trigger: context.trigger,
        reserved: context.reserved,
        free: context.free(),
        parts: wire::ContextParts {
            system_prompt: parts.system,
            tools: parts.tools,
            memory_files: parts.memory,
            user_messages: parts.user,
            assistant_messages: parts.assistant,
            tool_results: parts.results,
            images: parts.images,
            summary: parts.summary,
        },
    }
}

/// A page of messages that begins with message `from`, and ends before the one with which it would have more than
/// `bytes` of JSON. Its first one is always there.
#[must_use]
pub fn window_page(page: &WindowPage, from: u32, bytes: usize) -> wire::WindowPage {
    let mut messages: Vec<wire::WindowMessage> = Vec::new();
    let mut taken = 0;
    for message in &page.messages {
        let message = window_message(message);
        taken += message.content.to_string().len();
        if taken > bytes && !messages.is_empty() {
            break;
        }
        messages.push(message);
    }
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let (total, next) = (number(page.total), from.saturating_add(number(messages.len())));
    wire::WindowPage { messages, next: (next < total).then_some(next), total }
}

fn window_message(message: &Message) -> wire::WindowMessage {
    wire::WindowMessage {
        role: match message.role {
            Role::User => wire::WindowRole::User,
            Role::Assistant => wire::WindowRole::Assistant,
        },
        model: message.origin.as_ref().map(|origin| origin.model.clone()),
        content: message.content.iter().map(window_block).collect(),
    }
}

fn window_block(block: &Block) -> Value {
    match block {
        Block::Text { text } => json!({ "type": "text", "text": text }),
        Block::Thinking { thinking, signature: _ } => json!({ "type": "thinking", "text": thinking }),
        Block::RedactedThinking { data: _ } => json!({ "type": "hiddenThinking" }),
        Block::Image(image) => {
            json!({ "type": "image", "mediaType": image.media_type, "bytes": image.data.len() })
        }
        Block::ToolUse { id, name, input, input_error: _ } => {
            json!({ "type": "toolCall", "callId": id, "name": name, "input": input })
        }
        Block::ToolResult { tool_use_id, content, images, is_error } => json!({
            "type": "toolResult", "callId": tool_use_id, "text": content, "images": images.len(), "isError": is_error,
        }),
    }
}

pub(super) fn compression(
    turn: &TurnId,
    agent: Option<&AgentId>,
    step: CompressionStep,
    names: UriNames<'_>,
) -> wire::Event {
    let step = match step {
        CompressionStep::Started { cause: why, messages, tokens, window } => {
            wire::CompressionStep::Started(wire::CompressionStarted {
                cause: cause(why),
                messages,
                tokens,
                window,
            })
        }
        CompressionStep::Progress { written } => {
            wire::CompressionStep::Progress(wire::CompressionProgress { written })
        }
        CompressionStep::Done { compaction } => wire::CompressionStep::Done(done(*compaction, names)),
        CompressionStep::Unchanged { reason } => {
            wire::CompressionStep::Unchanged(wire::CompressionUnchanged { reason })
        }
    };
    let (turn_id, agent_id) = (turn_id(turn), agent.map(agent_id));
    wire::Event::ContextCompression(Box::new(wire::ContextCompression { turn_id, agent_id, step }))
}

fn cause(cause: Cause) -> wire::CompressionCause {
    match cause {
        Cause::Threshold => wire::CompressionCause::Threshold,
        Cause::Asked => wire::CompressionCause::Asked,
        Cause::TurnLimit => wire::CompressionCause::TurnLimit,
        Cause::TooLong => wire::CompressionCause::TooLong,
    }
}

fn done(compaction: Compaction, names: UriNames<'_>) -> wire::CompressionDone {
    let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    wire::CompressionDone {
        window_id: compaction.window.as_str().to_owned(),
        cause: cause(compaction.cause),
        messages_before: compaction.messages.before,
        messages_after: compaction.messages.after,
        tokens_before: compaction.tokens.before,
        tokens_after: compaction.tokens.after,
        trigger: compaction.trigger,
        model: compaction.model,
        usage: usage(compaction.usage),
        duration_ms: compaction.duration_ms,
        failure: compaction.failure,
        files: compaction
            .files
            .into_iter()
            .map(|file| wire::CompressionFile {
                uri: names.uri(&file.target),
                shown: number(file.shown),
                lines: number(file.lines),
                problem: file.problem,
            })
            .collect(),
    }
}
