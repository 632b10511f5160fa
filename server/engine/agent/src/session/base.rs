//! When a session writes its base, and what is in it.
//!
//! Rule: it is written where memory is what the journal adds up to: between two turns, or at the end. One is written at a
//! time; nobody waits for it but the end of the session.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use serde::{Deserialize, Serialize};

use crate::session::{Session, SessionState, lock};
use kode_base::blocking;
use kode_journal::Shelf;
use kode_journal::base::{self, BASE, BaseMark};

/// The form of what this build folds a journal into: a hash of the sources that define it.
pub(crate) const FORM: &str = env!("KODE_FOLD_FORM");

/// So much a journal has grown at least before another base is written after a turn.
const GROWTH: u64 = 1 << 20;

/// A journal of so few bytes is folded as quickly as a base is read.
const SMALLEST_JOURNAL: u64 = 64 << 10;

/// What is in a base.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Content<S, L> {
    /// The state.
    pub(crate) state: S,
    /// The changes.
    pub(crate) ledger: L,
    /// Lines of the journal that could not be read.
    pub(crate) skipped: u64,
    /// The number of the newest event.
    pub(crate) newest: u64,
}

/// Why a base may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A turn has ended.
    Turn,
    /// It would have been good to have one when the session was opened, or the session ends.
    Now,
}

/// The newest base of a session.
#[derive(Debug, Default)]
pub(crate) struct Newest {
    /// The bytes of the journal in it; 0 when there is none.
    pub(crate) offset: u64,
    /// How large it is.
    pub(crate) size: u64,
    /// Lines that could not be read when the session was opened.
    pub(crate) skipped: u64,
    /// Whether it took long to open the session.
    pub(crate) is_wanted: bool,
}

/// What a live session knows of its base.
#[derive(Debug, Default)]
pub(super) struct Bases {
    newest: Mutex<Newest>,
    /// Held while one is written.
    writing: Arc<tokio::sync::Mutex<()>>,
    /// Held while what has left memory is made anew, and while a base is put in its place.
    mending: Mutex<()>,
}

impl Bases {
    pub(super) fn new(newest: Newest) -> Self {
        Self { newest: Mutex::new(newest), ..Self::default() }
    }

    pub(super) fn mending(&self) -> MutexGuard<'_, ()> {
        lock(&self.mending)
    }

    /// Whether opening the session took so long that it should have a base.
    pub(super) fn is_wanted(&self) -> bool {
        std::mem::take(&mut lock(&self.newest).is_wanted)
    }

    fn is_due(&self, length: u64, due: Due) -> bool {
        let newest = lock(&self.newest);
        let grown = length.saturating_sub(newest.offset);
        match due {
            // A large one is written less often: what is written stays in proportion to what is recorded.
            Due::Turn => grown >= GROWTH.max(newest.size),
            Due::Now => grown > 0 && length >= SMALLEST_JOURNAL,
        }
    }
}

impl Session {
    /// Writes a base if it is time for one. Returns when memory has been looked at; the disk is not waited for.
    pub(super) async fn keep_base(self: &Arc<Self>, due: Due) {
        let Ok(length) = self.journal.whole_length() else { return };
        if !self.base.is_due(length, due) {
            return;
        }
        let Ok(turn) = Arc::clone(&self.base.writing).try_lock_owned() else { return };
        let session = Arc::clone(self);
        let looked = blocking(move || session.look_at_all()).await;
        match looked {
            Ok(taken) => {
                let session = Arc::clone(self);
                tokio::task::spawn_blocking(move || {
                    session.write_base(&taken);
                    drop(turn);
                });
            }
            Err(error) => tracing::warn!(%error, session = %self.id, "no base is written"),
        }
    }

    /// Waits until the base that is being written is.
    pub(super) async fn base_kept(&self) {
        let _written = self.base.writing.lock().await;
    }

    /// What memory holds, as bytes, with the part of the journal that adds up to it.
    fn look_at_all(&self) -> io::Result<Taken> {
        let mut book = self.sync_changes();
        self.write_typing(&mut book);
        let state = self.state();
        if state.shelf().is_some_and(|shelf| shelf.is_damaged()) {
            return Err(io::Error::other("what has left memory is to be made anew from the journal first"));
        }
        let skipped = lock(&self.base.newest).skipped;
        let offset = self.journal.begin_anew()?;
        let newest = self.events.newest();
        let content = base::encode(&Content { state: &*state, ledger: &book.ledger, skipped, newest })?;
        let shelf = state.shelf().cloned();
        Ok(Taken { offset, content, length: shelf.as_ref().map_or(0, |shelf| shelf.length()), shelf })
    }

    fn write_base(&self, taken: &Taken) {
        let path = self.journal.path().with_file_name(BASE);
        // What has left memory may have been made anew since: the base would say where things lay before.
        let _not_meanwhile = self.base.mending();
        let is_same = match (&taken.shelf, self.state().shelf()) {
            (Some(taken), Some(now)) => Arc::ptr_eq(taken, now),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !is_same {
            tracing::info!(session = %self.id, "no base is written: what had left memory was made anew");
            return;
        }
        let write = || {
            if let Some(shelf) = &taken.shelf {
                shelf.sync()?;
            }
            let mark = BaseMark::of(self.journal.path(), taken.offset)?;
            base::write(&path, FORM, mark, taken.length, &taken.content)
        };
        match write() {
            Ok(()) => {
                let mut newest = lock(&self.base.newest);
                newest.offset = taken.offset;
                newest.size = taken.content.len() as u64;
            }
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "the base of a session is not written")
            }
        }
    }
}

/// What a base is written from.
struct Taken {
    offset: u64,
    content: Vec<u8>,
    length: u64,
    shelf: Option<Arc<Shelf>>,
}

impl SessionState {
    /// Takes over what no record says: what is still growing, and a draft that is written later.
    pub(super) fn take_over(&mut self, live: &Self) {
        self.draft.clone_from(&live.draft);
        self.main.take_over(&live.main);
        for (id, agent) in &live.agents {
            self.agent_mut(id.clone()).thread.take_over(&agent.thread);
        }
    }
}
