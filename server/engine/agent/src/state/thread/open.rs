//! The open calls of a conversation: calls without a result, and their permission prompts.
//!
//! Rule: a prompt waits from the record that says so until its call continues, ends, or is decided about; whether anybody
//! is there who asks it is not for records to say.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::state::thread::Thread;
use kode_base::ids::{CallId, ItemId, PermissionId};
use kode_model::Block;
use kode_record::event::{CallState, Item, ItemBody};
use kode_text::workspace::KnownText;

/// A call of the newest answer that has no result yet.
#[derive(Clone, Debug)]
pub(crate) struct OpenCall {
    /// The call as the model made it.
    pub(crate) block: Block,
    /// Its item; `None` where the transcript shows it as something else.
    pub(crate) item: Option<Arc<Item>>,
    /// The permission prompt it waits for.
    pub(crate) permission: Option<PermissionId>,
    /// The known texts that it changes, at the time of the prompt.
    pub(crate) known: Vec<KnownText>,
}

/// A permission prompt that was not answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct UnansweredPrompt {
    permission: PermissionId,
    known: Vec<KnownText>,
}

impl OpenCall {
    /// The state it is in.
    pub(crate) fn state(&self) -> CallState {
        match self.item.as_ref().map(|item| &item.body) {
            Some(ItemBody::ToolCall(call)) => call.state,
            Some(_) | None => CallState::Pending,
        }
    }
}

impl Thread {
    /// The calls of the newest answer that have no result yet, in their order.
    pub(crate) fn open_calls(&self) -> Vec<OpenCall> {
        if self.calls.is_empty() {
            return Vec::new();
        }
        let items = self.unanswered();
        let blocks = self.messages.last().map(|answer| answer.content.as_slice()).unwrap_or_default();
        let open = blocks.iter().filter(|block| match block {
            Block::ToolUse { id, .. } => {
                self.calls.iter().any(|(call, result)| call == id && result.is_none())
            }
            _ => false,
        });
        let open = open.map(|block| {
            let of_it = |item: &&Arc<Item>| match (&item.body, block) {
                (ItemBody::ToolCall(call), Block::ToolUse { id, .. }) => call.call.as_str() == id,
                _ => false,
            };
            let item = items.iter().find(of_it).cloned();
            let asked = item.as_ref().and_then(|item| self.asked.get(&item.id).cloned());
            let (permission, known) = asked.map(|asked| (asked.permission, asked.known)).unzip();
            OpenCall { block: block.clone(), item, permission, known: known.unwrap_or_default() }
        });
        open.collect()
    }

    /// The permission prompt that the call of an item waits for.
    pub(crate) fn asked(&self, item: &ItemId) -> Option<&PermissionId> {
        self.asked.get(item).map(|asked| &asked.permission)
    }

    /// The item of an open call.
    pub(crate) fn item_of(&self, call: &CallId) -> Option<Arc<Item>> {
        self.unanswered().into_iter().find(|item| match &item.body {
            ItemBody::ToolCall(known) => known.call == *call,
            _ => false,
        })
    }

    /// Stores what a call waits for from now on.
    pub(crate) fn note_asked(
        &mut self,
        item: &ItemId,
        permission: Option<PermissionId>,
        known: Vec<KnownText>,
    ) {
        match permission {
            Some(permission) => drop(self.asked.insert(item.clone(), UnansweredPrompt { permission, known })),
            None => drop(self.asked.remove(item)),
        }
    }

    /// Notes that a prompt was decided about.
    pub(crate) fn note_decided(&mut self, permission: &PermissionId) {
        self.asked.retain(|_, asked| asked.permission != *permission);
    }
}
