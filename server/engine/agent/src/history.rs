//! The stored history of a session: its base, its older items and windows, and sessions that another process writes.
//!
//! Rule: the journal decides; everything else is made from it. A place is found under the lock of the state and read without
//! it: no lock is held while the disk is read.

pub(crate) mod base;
pub mod following;
mod image;
pub(crate) mod open;
pub mod paging;
pub(crate) mod relay;
pub mod snapshot;
mod stored;

use std::sync::Arc;

use crate::core::Core;
use crate::edits::Edits;
use crate::state::agents::SubAgentView;
use crate::state::transcript::{TranscriptPart, is_edit};
use base::{BaseTurns, BaseWriter, NewestBase};
use kode_base::blocking;
use kode_base::ids::{AgentId, ItemId, WindowId};
use kode_journal::Shelf;
use kode_model::Message;
use kode_record::compaction::StoredMessages;
use kode_record::event::Item;
use paging::{ItemPage, PagingError, WindowPage};

pub use open::LoadProgress;
pub use snapshot::Snapshot;

/// The stored history of a live session.
pub struct SessionHistory {
    core: Arc<Core>,
    edits: Arc<Edits>,
    base: BaseWriter,
}

impl SessionHistory {
    pub(crate) fn new(core: &Arc<Core>, edits: &Arc<Edits>, turns: BaseTurns, base: NewestBase) -> Arc<Self> {
        let (core, edits) = (Arc::clone(core), Arc::clone(edits));
        Arc::new(Self { core, edits, base: BaseWriter::new(turns, base) })
    }

    /// At most `limit` items before one of them, of the session's own transcript or of a sub-agent's.
    ///
    /// # Errors
    /// [`PagingError`].
    pub async fn items_before(
        self: &Arc<Self>,
        agent: Option<AgentId>,
        before: ItemId,
        limit: usize,
    ) -> Result<ItemPage, PagingError> {
        self.reading(move |history| {
            let found = history.core.state().items_before(agent.as_ref(), &before, limit)?;
            ItemPage::read(found, &before, limit)
        })
        .await
    }

    /// At most `limit` messages from number `from` on (the first is 0) of a conversation before its compaction. Past the end
    /// none exist.
    ///
    /// # Errors
    /// [`PagingError`].
    pub async fn window_page(
        self: &Arc<Self>,
        agent: Option<AgentId>,
        window: WindowId,
        from: usize,
        limit: usize,
    ) -> Result<WindowPage, PagingError> {
        self.reading(move |history| {
            let (stored, shelf) = history.stored_window(agent.as_ref(), &window)?;
            let whole = stored.read(shelf.as_deref())?;
            let messages = whole.iter().skip(from).take(limit).cloned().collect();
            Ok(WindowPage { messages, total: whole.len() })
        })
        .await
    }

    /// All messages of a conversation before its compaction.
    ///
    /// # Errors
    /// [`PagingError`].
    pub async fn window(
        self: &Arc<Self>,
        agent: Option<&AgentId>,
        window: &WindowId,
    ) -> Result<Vec<Message>, PagingError> {
        let page = self.window_page(agent.cloned(), window.clone(), 0, usize::MAX).await?;
        Ok(page.messages)
    }

    /// The messages for the model from number `from` on, oldest first, each with its number.
    #[must_use]
    pub fn messages_from(&self, from: usize) -> Vec<(usize, Message)> {
        let state = self.core.state();
        state.main.messages_from(from).map(|(number, message)| (number, message.clone())).collect()
    }

    /// The calls of the session and its sub-agents that changed files, oldest first.
    pub async fn read_edit_items(self: &Arc<Self>) -> Vec<Arc<Item>> {
        let history = Arc::clone(self);
        blocking(move || history.edit_items()).await
    }

    /// As [`Self::read_edit_items`]. Blocks on the disk.
    #[must_use]
    pub fn edit_items(&self) -> Vec<Arc<Item>> {
        let parts: Vec<TranscriptPart> = {
            let state = self.core.state();
            let threads =
                std::iter::once(&state.main).chain(state.agents.values().map(|agent| &agent.thread));
            threads.map(|thread| thread.items.edits()).collect()
        };
        let mut items: Vec<Arc<Item>> =
            parts.into_iter().flat_map(TranscriptPart::read_what_can_be).collect();
        items.retain(|item| is_edit(item));
        items.sort_by_key(|item| item.timestamp);
        items
    }

    /// A sub-agent with at most `items` of its newest items; `None` where there is no such sub-agent.
    #[must_use]
    pub fn sub_agent(&self, id: &AgentId, items: usize) -> Option<SubAgentView> {
        let (view, part) = {
            let state = self.core.state();
            SubAgentView::of(&state, self.core.events().newest(), id, items)?
        };
        Some(SubAgentView { items: part.read_what_can_be(), ..view })
    }

    fn stored_window(
        &self,
        agent: Option<&AgentId>,
        window: &WindowId,
    ) -> Result<(StoredMessages, Option<Arc<Shelf>>), PagingError> {
        let state = self.core.state();
        let stored = state.thread(agent).and_then(|thread| thread.window(window)).cloned();
        let stored = stored.ok_or_else(|| PagingError::UnknownWindow(window.clone()))?;
        Ok((stored, state.shelf().cloned()))
    }

    /// Reads on a thread that may block on the disk; a second time where the shelf was damaged and is rebuilt.
    async fn reading<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl Fn(&Self) -> Result<T, PagingError> + Send + 'static,
    ) -> Result<T, PagingError> {
        let history = Arc::clone(self);
        blocking(move || match read(&history) {
            Err(PagingError::Storage(error)) => {
                tracing::warn!(%error, session = %history.core.id(), "the shelf is rebuilt from the journal");
                history.core.mend()?;
                read(&history)
            }
            result @ (Ok(_) | Err(_)) => result,
        })
        .await
    }
}
