//! Reading what has left memory: older items of a transcript, and messages as they were before a compaction.
//!
//! Rule: a part is named under the lock and read without it. What cannot be read back is made anew from the journal, once,
//! and read again: a damaged cache costs time and nothing else.

use std::io;
use std::sync::Arc;

use crate::session::transcript::{Pages, Part};
use crate::session::{Session, SessionState};
use kode_base::blocking;
use kode_base::ids::{AgentId, ItemId, WindowId};
use kode_journal::base::BASE;
use kode_journal::{JournalLines, SHELF, Shelf};
use kode_model::Message;
use kode_record::compaction::StoredMessages;
use kode_record::event::Item;
use kode_record::record::Record;

/// How the name of a shelf ends that is still being made.
const NEW: &str = ".new";

/// Some items of a transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemPage {
    /// The items, oldest first.
    pub items: Vec<Item>,
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
    #[error("what the session keeps on disk cannot be read: {0}")]
    Storage(#[from] io::Error),
}

impl SessionState {
    /// The items before one of them; `Err` inside has the older items where it has to be looked for among them.
    ///
    /// # Errors
    /// [`PagingError::UnknownAgent`].
    pub(super) fn items_before(
        &self,
        agent: Option<&AgentId>,
        before: &ItemId,
        limit: usize,
    ) -> Result<Result<Part, Pages>, PagingError> {
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
        found: Result<Part, Pages>,
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

impl Session {
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
        self.reading(move |session| {
            let found = session.state().items_before(agent.as_ref(), &before, limit)?;
            ItemPage::read(found, &before, limit)
        })
        .await
    }

    /// At most `limit` messages from number `from` on (the first is 0) of a conversation as it was before it was
    /// compacted. Past the end there are none.
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
        self.reading(move |session| {
            let (stored, shelf) = session.stored_window(agent.as_ref(), &window)?;
            let whole = stored.read(shelf.as_deref())?;
            let messages = whole.iter().skip(from).take(limit).cloned().collect();
            Ok(WindowPage { messages, total: whole.len() })
        })
        .await
    }

    /// All messages of a conversation as it was before it was compacted.
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

    /// The calls of this session and its sub-agents that changed files, oldest first.
    pub async fn read_edit_items(self: &Arc<Self>) -> Vec<Item> {
        let session = Arc::clone(self);
        blocking(move || session.edit_items()).await
    }

    fn stored_window(
        &self,
        agent: Option<&AgentId>,
        window: &WindowId,
    ) -> Result<(StoredMessages, Option<Arc<Shelf>>), PagingError> {
        let state = self.state();
        let stored = state.thread(agent).and_then(|thread| thread.window(window)).cloned();
        let stored = stored.ok_or_else(|| PagingError::UnknownWindow(window.clone()))?;
        Ok((stored, state.shelf().cloned()))
    }

    /// Looks for something on a thread that may wait for the disk; a second time when what has left memory was damaged.
    async fn reading<T: Send + 'static>(
        self: &Arc<Self>,
        look: impl Fn(&Self) -> Result<T, PagingError> + Send + 'static,
    ) -> Result<T, PagingError> {
        let session = Arc::clone(self);
        blocking(move || match look(&session) {
            Err(PagingError::Storage(error)) => {
                tracing::warn!(%error, session = %session.id, "what has left memory is made anew from the journal");
                session.mend()?;
                look(&session)
            }
            found @ (Ok(_) | Err(_)) => found,
        })
        .await
    }

    /// A first record for a journal that has lost it.
    pub(crate) fn opened(&self) -> Record {
        let state = self.state();
        Record::Opened {
            session: state.id.clone(),
            roots: state.roots.clone(),
            cwd: state.cwd.clone(),
            mode: state.mode.into(),
            model: state.model.clone(),
            forked_from: state.forked_from.clone(),
        }
    }

    /// The state that the session began with.
    fn beginning(&self) -> io::Result<SessionState> {
        for line in JournalLines::open(self.journal.path(), 0)? {
            if let Some(state) = SessionState::open(&line?.1) {
                return Ok(state);
            }
        }
        SessionState::open(&self.opened()).ok_or_else(|| io::Error::other("the session has no beginning"))
    }

    /// Makes what has left memory anew from the journal. What was not recorded yet stays.
    ///
    /// # Errors
    /// What the system says, or that the session is being closed: another process may write its folder then.
    pub(super) fn mend(&self) -> io::Result<()> {
        // One at a time: the second finds that all is well.
        let _one_at_a_time = self.base.mending();
        if !self.state().shelf().is_some_and(|shelf| shelf.is_damaged()) {
            return Ok(());
        }
        self.refuse_when_closing()?;
        let path = self.journal.path().with_file_name(SHELF);
        let new = path.with_file_name(format!("{SHELF}{NEW}"));
        let shelf = Arc::new(Shelf::create(&new)?);
        let mut fresh = self.beginning()?;
        fresh.attach(&shelf);
        let mut lines = JournalLines::open(self.journal.path(), 0)?;
        lines.read_to(self.journal.whole_length()?);
        fold_on(&mut fresh, &mut lines)?;
        let mut state = self.state();
        lines.read_to(self.journal.whole_length()?);
        fold_on(&mut fresh, &mut lines)?;
        self.refuse_when_closing()?;
        // It says where things lay on the shelf that goes.
        match std::fs::remove_file(path.with_file_name(BASE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        shelf.move_to(&path)?;
        fresh.take_over(&state);
        *state = fresh;
        Ok(())
    }

    fn refuse_when_closing(&self) -> io::Result<()> {
        match self.is_closing() {
            true => Err(io::Error::other("the session is being closed: load it again")),
            false => Ok(()),
        }
    }
}

/// Folds lines into a state. What they tell was told.
fn fold_on(state: &mut SessionState, lines: &mut JournalLines<Record>) -> io::Result<()> {
    for line in lines {
        let (_, record) = line?;
        drop(state.apply(record));
    }
    Ok(())
}
