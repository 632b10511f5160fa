//! An answer in the history and in the transcript.
//!
//! Rule: the message for the model and the items for people are one record. What a fault left behind stays on the screen;
//! of it only final text becomes history.

use serde_json::Value;

use crate::core::lock;
use crate::core::thread::ThreadHandle;
use crate::turn::next::CutPart;
use crate::turn::sample::stream::pending_call;
use crate::turn::sample::{
    ModelAnswer, ModelCaller, ModelToolCall, ReceivedAnswer, StreamedItems, canonical,
};
use kode_base::ids::CallId;
use kode_base::mode::Mode;
use kode_model::{AnswerOrigin, Block, Message, ModelError, ModelResponse, StopReason, Usage};
use kode_record::event::{Item, ItemBody};
use kode_record::record::Record;
use kode_tool::names::THINK;

/// Records a whole answer.
pub(super) fn record(caller: &ModelCaller<'_>, answer: ReceivedAnswer, usage: Usage) -> ModelAnswer {
    let turn = caller.turn;
    let ReceivedAnswer { response, mut shown, other: _, spared_by } = answer;
    let cut = cut(&response, &shown);
    let mut items = Vec::new();
    let mut calls = Vec::new();
    let last = response.content.len().saturating_sub(1);
    for (at, block) in response.content.iter().enumerate() {
        let broke_off = at == last && response.stop_reason == StopReason::MaxTokens;
        let Some(body) = body(caller, block, broke_off) else { continue };
        let known = shown.take(&turn.conversation.thread, block);
        let streamed = known.is_some();
        let mut item = turn.new_item(body);
        if let Some(id) = known {
            item.id = id;
        }
        if let Block::ToolUse { id, name, input, input_error } = block {
            calls.push(ModelToolCall {
                turn: turn.id.clone(),
                id: CallId::from_external(id),
                item: item.id.clone(),
                name: canonical(turn.conversation, name),
                input: input.clone(),
                input_error: input_error.clone(),
                spared_by: spared_by.clone(),
                pending: None,
            });
        }
        items.push((item, streamed));
    }
    let duration_ms = shown.took_ms();
    note_duration(items.iter_mut().map(|(item, _)| item), duration_ms);
    // Calls that were started and did not end are not in the answer; on the screen they must not wait for ever.
    items.extend(shown.interrupted(&turn.conversation.thread).into_iter().map(|item| (item, true)));
    // Streamed items keep their place, also when the session is folded from its journal.
    let place = |item: &Item| turn.read(|thread| thread.place_of(&item.id).unwrap_or(usize::MAX));
    items.sort_by_cached_key(|(item, _)| place(item));
    let ModelResponse { id, content, stop_reason, usage: reported } = response;
    let text = content.iter().rev().find_map(|block| match block {
        Block::Text { text } => Some(text.clone()),
        Block::Image(_)
        | Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::ToolUse { .. }
        | Block::ToolResult { .. } => None,
    });
    let content = content.into_iter().map(Block::exact).collect();
    let origin = AnswerOrigin {
        wire: caller.model.wire(),
        model: caller.model.name().to_owned(),
        host: Some(caller.profile.host()),
        response_id: id,
    };
    let record = Record::Answer {
        turn: turn.id.clone(),
        message: Message { origin: Some(origin), ..Message::assistant(content) },
        streamed: items.iter().filter(|(_, streamed)| *streamed).map(|(item, _)| item.id.clone()).collect(),
        items: items.into_iter().map(|(item, _)| item).collect(),
        usage: reported,
        duration_ms,
        mode: mode_of_request(caller),
    };
    turn.commit(record);
    ModelAnswer { stop_reason, usage, calls, cut, text: text.unwrap_or_default() }
}

/// Keeps the streamed items of an attempt in the transcript, and out of the history.
pub(super) fn leave(thread: &ThreadHandle, shown: &mut StreamedItems) {
    for item in shown.interrupted(thread) {
        thread.commit(Record::Item { item, streamed: true });
    }
}

/// Keeps an answer that broke off for good: its items in the transcript, and its text in the history.
pub(super) fn keep_partial(caller: &ModelCaller<'_>, error: &ModelError, shown: &mut StreamedItems) {
    let mut items = shown.interrupted(&caller.turn.conversation.thread);
    let duration_ms = shown.took_ms();
    note_duration(items.iter_mut(), duration_ms);
    let content: Vec<_> = error
        .partial
        .iter()
        .flat_map(|partial| &partial.content)
        // Thinking goes back to the model only whole and signed; a call only when it can be run.
        .filter(|block| matches!(block, Block::Text { .. }))
        .cloned()
        .collect();
    if items.is_empty() && content.is_empty() {
        return;
    }
    let message = Message::assistant(content);
    let usage = error.partial.as_ref().map(|partial| partial.usage).unwrap_or_default();
    let streamed = items.iter().map(|item| item.id.clone()).collect();
    let (turn, mode) = (caller.turn.id.clone(), mode_of_request(caller));
    caller.turn.commit(Record::Answer { turn, message, items, usage, streamed, duration_ms, mode });
}

/// The mode in the request that is answered, where it is not the session's any more.
fn mode_of_request(caller: &ModelCaller<'_>) -> Option<Mode> {
    let requested = *lock(&caller.turn.conversation.requested_mode);
    requested.filter(|requested| *requested != caller.turn.services.core.state().config.mode)
}

/// Notes with the last text of an answer how long it took.
fn note_duration<'a>(items: impl DoubleEndedIterator<Item = &'a mut Item>, took: Option<u64>) {
    let last = items.rev().find_map(|item| match &mut item.body {
        ItemBody::AgentMessage { duration_ms, .. } => Some(duration_ms),
        ItemBody::UserMessage { .. }
        | ItemBody::Thinking { .. }
        | ItemBody::ToolCall(_)
        | ItemBody::Notice { .. }
        | ItemBody::Command { .. } => None,
    });
    if let Some(duration_ms) = last {
        *duration_ms = took;
    }
}

/// The part that the token limit cut off.
fn cut(response: &ModelResponse, shown: &StreamedItems) -> CutPart {
    let is_whole = |begun: &String| {
        response.content.iter().any(|block| matches!(block, Block::ToolUse { id, .. } if id == begun))
    };
    let says = |block: &Block| matches!(block, Block::Text { text } if !text.trim().is_empty());
    if !shown.begun().iter().all(is_whole) {
        CutPart::Call
    } else if response.content.iter().any(says) {
        CutPart::Text
    } else {
        CutPart::Thinking
    }
}

fn body(caller: &ModelCaller<'_>, block: &Block, broke_off: bool) -> Option<ItemBody> {
    match block {
        Block::Text { text } if text.is_empty() => None,
        Block::Text { text } => {
            let (text, model) = (text.clone(), Some(caller.model.name().to_owned()));
            Some(ItemBody::AgentMessage {
                text,
                complete: true,
                interrupted: broke_off,
                model,
                duration_ms: None,
            })
        }
        Block::Thinking { thinking, .. } if thinking.is_empty() => None,
        Block::Thinking { thinking, .. } => {
            Some(ItemBody::Thinking { text: thinking.clone(), complete: true })
        }
        Block::ToolUse { id, name, input, .. } => {
            let name = canonical(caller.turn.conversation, name);
            let thought = thought(&name, input);
            // The call stays one for the model, which waits for its result; for people it is thinking.
            Some(thought.map_or_else(
                || pending_call(caller.turn.conversation, id, &name, input.clone()),
                |text| ItemBody::Thinking { text, complete: true },
            ))
        }
        Block::Image(_) | Block::RedactedThinking { .. } | Block::ToolResult { .. } => None,
    }
}

/// The thought in a call of Think; `None` for a call of another tool, and for arguments that Think refuses.
fn thought(tool: &str, input: &Value) -> Option<String> {
    let fields = input.as_object().filter(|fields| tool == THINK && fields.len() == 1)?;
    let thought = fields.get("thought")?.as_str()?;
    (!thought.trim().is_empty()).then(|| thought.to_owned())
}
