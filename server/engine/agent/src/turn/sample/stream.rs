//! An answer on the screen while it streams.
//!
//! Rule: streaming text is shown at once, at most [`FLUSHES_PER_SECOND`] times a second; each time the shown text is a record
//! first, so nothing that was seen is lost; an item that was shown gets an end, whatever becomes of its answer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::conversation::Conversation;
use crate::core::thread::ThreadHandle;
use crate::turn::services::TurnContext;
use kode_base::ids::{CallId, ItemId};
use kode_model::{Block, Delta, Model, ModelError, ModelRequest, ModelResponse};
use kode_record::event::{Breakpoint, Item, ItemBody, ToolCallItem};
use kode_record::record::Record;
use kode_tool::names::THINK;

/// The most publications of streamed text in a second.
const FLUSHES_PER_SECOND: u64 = 60;

/// The least streaming time of an answer with a speed.
const MEASURED: Duration = Duration::from_millis(500);

/// The items of an answer that are shown while it streams, by number of their block.
pub(in crate::turn) struct StreamedItems {
    items: BTreeMap<usize, ItemId>,
    /// The calls that have started.
    begun: Vec<String>,
    /// The model that answers, as the provider knows it.
    model: String,
    /// When it was asked, and how long it took when it has answered or failed.
    asked: Instant,
    took: Option<Duration>,
    /// The time until the first piece.
    first: Option<Duration>,
}

#[derive(Default)]
struct DeltaBuffer {
    deltas: VecDeque<Delta>,
}

/// Calls the model once, and shows its answer as it arrives.
pub(super) async fn stream(
    turn: TurnContext<'_>,
    model: &dyn Model,
    request: &ModelRequest,
    shown: &mut StreamedItems,
    cancel: &CancellationToken,
) -> Result<ModelResponse, ModelError> {
    if !model.capabilities().streaming {
        return model.complete(request, cancel).await;
    }
    let buffer = Mutex::new(DeltaBuffer::default());
    let arrived = Notify::new();
    let mut sink = |delta: Delta| {
        buffer.lock().unwrap_or_else(PoisonError::into_inner).push(delta);
        arrived.notify_one();
    };
    let take = || std::mem::take(&mut buffer.lock().unwrap_or_else(PoisonError::into_inner).deltas);
    let answer = model.stream(request, &mut sink, cancel);
    tokio::pin!(answer);
    let mut next_flush = Instant::now();
    let mut is_streaming = false;
    let answer = loop {
        tokio::select! {
            biased;
            answer = &mut answer => break answer,
            () = arrived.notified() => {
                // The first piece is shown at once; later pieces within the interval are collected.
                tokio::select! {
                    biased;
                    answer = &mut answer => break answer,
                    () = sleep_until(next_flush) => {}
                }
                if !std::mem::replace(&mut is_streaming, true) {
                    turn.reach(Breakpoint::StreamingModel, None);
                }
                next_flush = Instant::now() + Duration::from_millis(1_000 / FLUSHES_PER_SECOND);
                take().into_iter().for_each(|delta| shown.add(turn, delta));
            }
        }
    };
    let rest = take();
    // A short answer may be whole before its first piece is taken.
    if !is_streaming && !rest.is_empty() {
        turn.reach(Breakpoint::StreamingModel, None);
    }
    rest.into_iter().for_each(|delta| shown.add(turn, delta));
    answer
}

impl DeltaBuffer {
    fn push(&mut self, delta: Delta) {
        match (self.deltas.back_mut(), &delta) {
            (Some(Delta::Text { index: last, text }), Delta::Text { index, text: more })
            | (Some(Delta::Thinking { index: last, text }), Delta::Thinking { index, text: more })
                if *last == *index =>
            {
                text.push_str(more);
            }
            _ => self.deltas.push_back(delta),
        }
    }
}

impl StreamedItems {
    /// Nothing yet of an answer of this model.
    pub(super) fn of(model: &str) -> Self {
        let (items, begun) = (BTreeMap::new(), Vec::new());
        Self { items, begun, model: model.to_owned(), asked: Instant::now(), took: None, first: None }
    }

    /// Notes that the answer has ended.
    pub(super) fn end(&mut self) {
        self.took = Some(self.asked.elapsed());
    }

    /// Milliseconds that the answer took, once it has ended.
    pub(super) fn took_ms(&self) -> Option<u64> {
        self.took.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
    }

    /// Tokens of output a second, from the first piece to the end; `None` for answers too short to measure.
    pub(super) fn tokens_per_second(&self, output: u64) -> Option<f64> {
        let time = self.took?.checked_sub(self.first?)?;
        if time < MEASURED || output == 0 {
            return None;
        }
        let tokens = f64::from(u32::try_from(output).ok()?);
        // One decimal is as exact as a provider's count.
        Some((tokens / time.as_secs_f64() * 10.0).round() / 10.0)
    }

    /// The calls that have started, in order.
    pub(super) fn begun(&self) -> &[String] {
        &self.begun
    }

    fn add(&mut self, turn: TurnContext<'_>, delta: Delta) {
        self.first.get_or_insert_with(|| self.asked.elapsed());
        let index = match &delta {
            Delta::Text { index, .. } | Delta::Thinking { index, .. } | Delta::ToolUse { index, .. } => {
                *index
            }
        };
        if let Some(id) = self.items.get(&index).cloned() {
            match delta {
                Delta::Text { text, .. } | Delta::Thinking { text, .. } => {
                    turn.commit(Record::Grown { item: id, text });
                }
                // A second beginning of one block says nothing new.
                Delta::ToolUse { .. } => {}
            }
            return;
        }
        if let Delta::ToolUse { id, .. } = &delta {
            self.begun.push(id.clone());
        }
        let body = match delta {
            Delta::Text { text, .. } => {
                let model = Some(self.model.clone());
                ItemBody::AgentMessage { text, complete: false, interrupted: false, model, duration_ms: None }
            }
            Delta::Thinking { text, .. } => ItemBody::Thinking { text, complete: false },
            // A thought is shown when it is complete: its text is in arguments that cannot be read before.
            Delta::ToolUse { name, .. } if canonical(turn.conversation, &name) == THINK => return,
            Delta::ToolUse { id, name, .. } => pending_call(turn.conversation, &id, &name, Value::Null),
        };
        let item = turn.new_item(body);
        self.items.insert(index, item.id.clone());
        turn.commit(Record::Streamed { item });
    }

    /// The shown items as they are left behind by an answer that broke off.
    pub(super) fn interrupted(&mut self, thread: &ThreadHandle) -> Vec<Item> {
        let items = std::mem::take(&mut self.items);
        let now = Timestamp::now();
        thread.read(|thread| {
            let items = items.into_values().filter_map(|id| thread.item(&id).cloned());
            items.map(|item| Arc::unwrap_or_clone(item).broken_off(now)).collect()
        })
    }

    /// Takes the item shown for a block of the answer: for a call the one of its id, else the next of its kind.
    pub(super) fn take(&mut self, thread: &ThreadHandle, block: &Block) -> Option<ItemId> {
        let is_it = |item: &Item| match (&item.body, block) {
            (ItemBody::AgentMessage { .. }, Block::Text { .. }) => true,
            (ItemBody::Thinking { .. }, Block::Thinking { .. }) => true,
            (ItemBody::ToolCall(call), Block::ToolUse { id, .. }) => call.call.as_str() == id,
            _ => false,
        };
        let index = thread.read(|thread| {
            let mut shown = self.items.iter();
            shown.find(|(_, id)| thread.item(id).is_some_and(|item| is_it(item))).map(|(index, _)| *index)
        })?;
        self.items.remove(&index)
    }
}

/// A tool's own name for whatever name the model has used.
pub(in crate::turn) fn canonical(conversation: &Conversation, name: &str) -> String {
    conversation.tools.find(name).map_or(name, |tool| tool.facts().name).to_owned()
}

/// The body of a call that is known and not more.
pub(super) fn pending_call(conversation: &Conversation, id: &str, name: &str, input: Value) -> ItemBody {
    let kind = conversation.tools.find(name).map(|tool| tool.facts().kind);
    let name = canonical(conversation, name);
    let call = ToolCallItem::pending(CallId::from_external(id), name, kind, input, Timestamp::now());
    ItemBody::ToolCall(Box::new(call))
}
