//! The store of a server of the Responses format: conversations by the id of their last response.
//!
//! Rule: bounded; the oldest responses are forgotten first, and asking for one that is forgotten is an error the
//! client must be able to live with.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

/// How many responses are kept.
const MAX_RESPONSES: usize = 256;

/// How many items are known to need their reasoning.
const MAX_NEEDS: usize = 4_096;

/// The items of a conversation, oldest first, and their bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct StoredConversation {
    /// The items.
    pub(super) items: Vec<Arc<Value>>,
    /// How many bytes of requests they took.
    pub(super) bytes: usize,
}

/// The conversations a server keeps.
#[derive(Debug, Default)]
pub(super) struct ConversationStore {
    conversations: HashMap<String, StoredConversation>,
    order: VecDeque<String>,
    /// Items that came right after reasoning, and the ids of that.
    needs: HashMap<String, String>,
    needing: VecDeque<String>,
}

impl ConversationStore {
    /// The conversation up to a response.
    pub(super) fn get(&self, response: &str) -> Option<&StoredConversation> {
        self.conversations.get(response)
    }

    /// The reasoning that an item of an answer cannot be sent without.
    pub(super) fn needed(&self, item: &str) -> Option<String> {
        self.needs.get(item).cloned()
    }

    /// Notes which items of an answer need which reasoning, kept or not.
    pub(super) fn note(&mut self, output: &[Arc<Value>]) {
        let id = |item: &Value| item["id"].as_str().unwrap_or_default().to_owned();
        for pair in output.windows(2) {
            if pair[0]["type"] == "reasoning" && pair[1]["type"] != "reasoning" {
                self.needs.insert(id(&pair[1]), id(&pair[0]));
                self.needing.push_back(id(&pair[1]));
            }
        }
        while self.needing.len() > MAX_NEEDS {
            if let Some(oldest) = self.needing.pop_front() {
                self.needs.remove(&oldest);
            }
        }
    }

    /// Keeps a conversation up to a response.
    pub(super) fn keep(&mut self, response: String, conversation: StoredConversation) {
        if self.order.len() == MAX_RESPONSES
            && let Some(oldest) = self.order.pop_front()
        {
            self.conversations.remove(&oldest);
        }
        self.order.push_back(response.clone());
        self.conversations.insert(response, conversation);
    }

    /// Forgets all conversations.
    pub(super) fn forget(&mut self) {
        self.conversations.clear();
        self.order.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_first() {
        let mut memory = ConversationStore::default();
        for number in 0..=MAX_RESPONSES {
            memory.keep(number.to_string(), StoredConversation::default());
        }
        assert!(memory.get("0").is_none() && memory.get("1").is_some());
        memory.forget();
        assert!(memory.get("1").is_none());
        memory.keep("new".into(), StoredConversation::default());
        assert!(memory.get("new").is_some());
    }
}
