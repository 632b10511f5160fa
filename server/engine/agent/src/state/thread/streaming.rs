//! The answer of the model while it streams.
//!
//! Rule: whatever is shown of an answer is a record before anybody sees it; what of it no answer took up is what an answer
//! that broke off has left behind.

use std::sync::Arc;

use jiff::Timestamp;

use crate::state::thread::Thread;
use kode_base::ids::ItemId;
use kode_model::{Block, Message, Usage};
use kode_record::event::{Event, Item, ItemBody};
use kode_record::record::Record;

impl Thread {
    /// The items of the answer that streams, as they are left behind when it breaks off now.
    #[must_use]
    pub fn broken_off(&self, at: Timestamp) -> Vec<Item> {
        let items = self.streaming.iter().filter_map(|id| self.item(id).cloned());
        items.map(|item| Arc::unwrap_or_clone(item).broken_off(at)).collect()
    }

    /// The streaming items as the record of an answer that breaks off now; `None` when nothing streams.
    pub(crate) fn broken_off_answer(&self, at: Timestamp) -> Option<Record> {
        let items = self.broken_off(at);
        let turn = items.first()?.turn.clone();
        // Thinking goes back to the model only whole and signed; a call only when it can be run.
        let said = items.iter().filter_map(|item| match &item.body {
            ItemBody::AgentMessage { text, .. } if !text.trim().is_empty() => {
                Some(Block::Text { text: text.clone() })
            }
            ItemBody::AgentMessage { .. }
            | ItemBody::UserMessage { .. }
            | ItemBody::Thinking { .. }
            | ItemBody::ToolCall(_)
            | ItemBody::Notice { .. }
            | ItemBody::Command { .. } => None,
        });
        let message = Message::assistant(said.collect());
        let streamed = items.iter().map(|item| item.id.clone()).collect();
        Some(Record::Answer {
            turn,
            message,
            items,
            usage: Usage::default(),
            streamed,
            duration_ms: None,
            mode: None,
        })
    }

    /// Shows the beginning of an item.
    pub(crate) fn begin_to_show(&mut self, item: Item) -> Event {
        self.streaming.push(item.id.clone());
        let item = self.put(item);
        Event::ItemAdded { item }
    }

    /// Adds text to the end of a growing item.
    pub(crate) fn grow(&mut self, id: ItemId, more: String) -> Option<Event> {
        match &mut self.items.get_mut(&id)?.body {
            ItemBody::AgentMessage { text, .. } => {
                text.push_str(&more);
                Some(Event::TextChunk { item: id, text: more })
            }
            ItemBody::Thinking { text, .. } => {
                text.push_str(&more);
                Some(Event::ThinkChunk { item: id, text: more })
            }
            ItemBody::UserMessage { .. }
            | ItemBody::ToolCall(_)
            | ItemBody::Notice { .. }
            | ItemBody::Command { .. } => None,
        }
    }
}
