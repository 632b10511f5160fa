//! Pages of older data on disk: items of a transcript, and messages before a compaction.
//!
//! Rule: a part is found under the lock of the state and read without it.

use std::io;
use std::sync::Arc;

use crate::state::SessionState;
use crate::state::transcript::{OlderItems, TranscriptPart};
use kode_base::ids::{AgentId, ItemId, WindowId};
use kode_model::Message;
use kode_record::event::Item;

/// Some items of a transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemPage {
    /// The items, oldest first.
    pub items: Vec<Arc<Item>>,
    /// Whether there are older ones.
    pub more_items: bool,
}

/// Some messages of a conversation as it was before it was compacted.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowPage {
    /// The messages asked for, oldest first.
    pub messages: Vec<Message>,
    /// How many messages there were in all.
    pub total: usize,
}

/// Why a part of a conversation cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PagingError {
    /// No sub-agent of that id.
    #[error("there is no sub-agent `{0}` in this session")]
    UnknownAgent(AgentId),
    /// No item of that id.
    #[error("there is no item `{0}` in this conversation, or it went back before it")]
    UnknownItem(ItemId),
    /// No window of that id.
    #[error(
        "there is no window `{0}` in this conversation, or it went back before it; `context_compression` names windows"
    )]
    UnknownWindow(WindowId),
    /// The disk.
    #[error("older entries of the session cannot be read: {0}")]
    Storage(#[from] io::Error),
}

impl SessionState {
    /// The items before one of them; `Err` inside has the older items where it has to be looked for among them.
    ///
    /// # Errors
    /// [`PagingError::UnknownAgent`].
    pub(crate) fn items_before(
        &self,
        agent: Option<&AgentId>,
        before: &ItemId,
        limit: usize,
    ) -> Result<Result<TranscriptPart, OlderItems>, PagingError> {
        // The session's own is always there.
        let unknown = || PagingError::UnknownAgent(agent.cloned().unwrap_or_else(AgentId::generate));
        Ok(self.thread(agent).ok_or_else(unknown)?.items.before(before, limit))
    }
}

impl ItemPage {
    /// Reads the items that were found before one of them. Waits for the disk.
    ///
    /// # Errors
    /// [`PagingError::UnknownItem`] and [`PagingError::Storage`].
    pub(super) fn read(
        found: Result<TranscriptPart, OlderItems>,
        before: &ItemId,
        limit: usize,
    ) -> Result<Self, PagingError> {
        let part = match found {
            Ok(part) => part,
            Err(older) => {
                older.before(before, limit)?.ok_or_else(|| PagingError::UnknownItem(before.clone()))?
            }
        };
        let more_items = part.more;
        Ok(Self { items: part.read()?, more_items })
    }
}
