//! What the model says, while it streams.
//!
//! Rule: whatever is shown of an answer is a record before anybody sees it; what of it no answer took up is what an answer
//! that broke off has left behind.

use jiff::Timestamp;

use crate::event::{Event, Item, ItemBody};
use crate::ids::ItemId;
use crate::session::thread::Thread;

impl Thread {
    /// The items of the answer that streams, as they are left behind when it breaks off now.
    #[must_use]
    pub fn broken_off(&self, at: Timestamp) -> Vec<Item> {
        let items = self.streaming.iter().filter_map(|id| self.item(id).cloned());
        items.map(|item| item.broken_off(at)).collect()
    }

    /// Shows the beginning of an item.
    pub(super) fn begin_to_show(&mut self, item: Item) -> Event {
        self.streaming.push(item.id.clone());
        self.put(item.clone());
        Event::ItemAdded { item }
    }

    /// Adds text to the end of a growing item.
    pub(super) fn grow(&mut self, id: ItemId, more: String) -> Option<Event> {
        match &mut self.items.get_mut(&id)?.body {
            ItemBody::AgentMessage { text, .. } => {
                text.push_str(&more);
                Some(Event::TextChunk { item: id, text: more })
            }
            ItemBody::Thinking { text, .. } => {
                text.push_str(&more);
                Some(Event::ThinkChunk { item: id, text: more })
            }
            ItemBody::UserMessage { .. } | ItemBody::ToolCall(_) | ItemBody::Notice { .. } => None,
        }
    }
}
