//! The core of a live session: its state, its journal and its events.
//!
//! Rule: every change goes through [`Core::commit`]. It folds the record into the state, writes it and publishes its events
//! under one lock, so that journal, memory and events never disagree. The core is all that every component of a session
//! shares; a component gets any other one it needs by name.

pub(crate) mod editor;
pub(crate) mod environment;
mod mend;
mod storage;
pub(crate) mod thread;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::state::config::ConfigChange;
use crate::state::titles::{TitleError, tidy};
use crate::state::{SessionState, new_item};
use kode_base::ids::{AgentId, SessionId, TurnId};
use kode_base::mode::Mode;
use kode_journal::Journal;
use kode_record::event::{Event, EventLog, ItemBody};
use kode_record::record::Record;
use kode_record::title::TitledBy;

pub(crate) use storage::keep;

/// The state, the journal and the events of a live session.
pub(crate) struct Core {
    id: SessionId,
    state: Mutex<SessionState>,
    journal: Journal,
    events: Arc<EventLog>,
    cancel: CancellationToken,
    /// Held while news of the disk are published, so that the end of a failure does not overtake its beginning.
    storage_news: Mutex<()>,
    /// Held while the shelf is rebuilt, and while a base that names places on it is written.
    mending: Mutex<()>,
}

/// A turn runs or a sub-agent works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

/// Locks a mutex, also after a panic of another holder.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    /// The core of a session with this state, which its journal adds up to.
    pub(crate) fn new(state: SessionState, journal: Journal, events: Arc<EventLog>) -> Self {
        Self {
            id: state.id.clone(),
            state: Mutex::new(state),
            journal,
            events,
            cancel: CancellationToken::new(),
            storage_news: Mutex::default(),
            mending: Mutex::default(),
        }
    }

    /// The session's id.
    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    /// The events.
    pub(crate) fn events(&self) -> &Arc<EventLog> {
        &self.events
    }

    /// The journal.
    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The folder of the journal.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.journal.path().parent()
    }

    /// The state, locked. A prompt is accepted and a session is closed under this lock.
    pub(crate) fn state(&self) -> MutexGuard<'_, SessionState> {
        lock(&self.state)
    }

    /// Folds a record into the state, writes it and publishes its events.
    pub(crate) fn commit(&self, record: Record) {
        self.commit_to(&mut self.state(), record);
    }

    /// As [`Self::commit`], for a caller that holds the lock of the state.
    ///
    /// The lock is held until the line is queued, so no reader sees unwritten state. The line carries the number of the
    /// newest event, so no event may come between; only what has to be is done under the lock that numbers events.
    pub(crate) fn commit_to(&self, state: &mut SessionState, record: Record) {
        let prepared = self.journal.prepare(&record);
        let events = state.apply(record);
        match prepared {
            Ok(line) => {
                let at = line.written;
                self.events.report(at, events, |seq| self.write_line(line, seq));
            }
            Err(error) => {
                self.events.report(Timestamp::now(), events, |_| {});
                self.journal.note_refused(&error);
            }
        }
    }

    /// Commits a record unless a turn runs or a sub-agent works.
    ///
    /// # Errors
    /// [`Busy`]; nothing is committed then.
    pub(crate) fn commit_when_idle(&self, record: Record) -> Result<(), Busy> {
        let mut state = self.state();
        if !state.is_idle() {
            return Err(Busy);
        }
        self.commit_to(&mut state, record);
        Ok(())
    }

    /// Commits a record of a sub-agent's conversation, or of the session's own.
    pub(crate) fn commit_in(&self, agent: Option<&AgentId>, record: Record) {
        self.commit(match agent {
            None => record,
            Some(agent) => Record::InAgent { agent: agent.clone(), record: Box::new(record) },
        });
    }

    /// Adds an item to the session's own transcript, for a caller that holds the lock of the state.
    pub(crate) fn add_item(&self, state: &mut SessionState, turn: &TurnId, body: ItemBody) {
        let item = new_item(turn, body);
        self.commit_to(state, Record::Item { item, streamed: false });
    }

    /// Sets the title of the session, unless a model would replace the user's.
    ///
    /// # Errors
    /// [`TitleError`]; the title stays then.
    pub(crate) fn set_title(&self, title: &str, by: TitledBy) -> Result<(), TitleError> {
        let title = tidy(title)?;
        let mut state = self.state();
        if self.is_closing() && by == TitledBy::User {
            return Err(TitleError::Closed);
        }
        let is_new = match by {
            TitledBy::User => state.title.text != title || state.title.by != Some(TitledBy::User),
            TitledBy::Model => state.title.text != title && state.title.by != Some(TitledBy::User),
        };
        if is_new {
            self.commit_to(&mut state, Record::Titled { title, by });
        }
        Ok(())
    }

    /// Changes the choices of the session. Model and effort apply from the next model call on, the output style from the next
    /// turn on.
    pub(crate) fn configure(&self, change: ConfigChange) {
        let mut state = self.state();
        if !self.is_closing()
            && let Some(record) = state.config.changed(change)
        {
            self.commit_to(&mut state, record);
        }
    }

    /// Changes the mode.
    pub(crate) fn set_mode(&self, mode: Mode) {
        self.configure(ConfigChange { mode: Some(mode), ..ConfigChange::default() });
    }

    /// Publishes an event that no record emits.
    pub(crate) fn publish(&self, event: Event) {
        self.events.publish(event);
    }

    /// Begins to close the session.
    pub(crate) fn close(&self) {
        self.cancel.cancel();
    }

    /// Whether the session is being closed.
    pub(crate) fn is_closing(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Waits until the session is being closed.
    pub(crate) async fn closing(&self) {
        self.cancel.cancelled().await;
    }

    /// A token that is cancelled when the session is closed.
    pub(crate) fn cancel_token(&self) -> CancellationToken {
        self.cancel.child_token()
    }
}
