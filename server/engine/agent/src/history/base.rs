//! The base of a session: its folded state on disk, so that it opens without a fold of the whole journal.
//!
//! Rule: a base is written where memory is the fold of the journal: between two turns, or at the end. One is written at a
//! time; only the end of the session waits for it.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::core::lock;
use crate::history::SessionHistory;
use kode_base::task;
use kode_journal::Shelf;
use kode_journal::base::{self, BASE, BaseMark, ContentBytes};

/// The form of the folded state of this build: a hash of the sources that define it.
pub(crate) const FORM: &str = env!("KODE_FOLD_FORM");

/// The least growth of a journal before another base is written after a turn, in bytes.
const GROWTH: u64 = 1 << 20;

/// The smallest journal that gets a base, in bytes: a smaller one is folded as quickly as a base is read.
const SMALLEST_JOURNAL: u64 = 64 << 10;

/// The content of a base.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BaseContent<S, L> {
    /// The state.
    pub(crate) state: S,
    /// The changes.
    pub(crate) ledger: L,
    /// Lines of the journal that could not be read.
    pub(crate) skipped: u64,
    /// The number of the newest event.
    pub(crate) newest: u64,
}

/// The reason to write a base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BaseDue {
    /// A turn has ended.
    Turn,
    /// It would have been good to have one when the session was opened.
    Opened,
    /// The session ends.
    End,
}

/// The newest base of a session.
#[derive(Debug, Default)]
pub(crate) struct NewestBase {
    /// The bytes of the journal in it; 0 if absent.
    pub(crate) offset: u64,
    /// How large it is.
    pub(crate) size: u64,
    /// Lines that could not be read when the session was opened.
    pub(crate) skipped: u64,
    /// Whether it took long to open the session.
    pub(crate) is_wanted: bool,
}

/// The time that the first prompt of a session may wait for the bases of others. Without a base the session opens from its journal.
const PATIENCE_OPENED: Duration = Duration::from_millis(250);

/// The time that the end of a session waits for the bases of others.
const PATIENCE_END: Duration = Duration::from_secs(5);

/// The turns that the sessions of an engine take to write a base. An image is as large as the memory of its session, and many
/// sessions are opened, or end, at the same time: one encodes and writes at a time.
#[derive(Clone, Debug)]
pub(crate) struct BaseTurns(Arc<Semaphore>);

impl Default for BaseTurns {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl BaseTurns {
    /// Waits for a turn, which lasts until the permit is dropped; `None` where others take longer than the reason may wait.
    async fn take(&self, due: BaseDue) -> Option<OwnedSemaphorePermit> {
        let patience = match due {
            BaseDue::Turn => Duration::ZERO,
            BaseDue::Opened => PATIENCE_OPENED,
            BaseDue::End => PATIENCE_END,
        };
        tokio::time::timeout(patience, Arc::clone(&self.0).acquire_owned()).await.ok()?.ok()
    }
}

/// The writer of a session's bases.
#[derive(Debug, Default)]
pub(super) struct BaseWriter {
    turns: BaseTurns,
    newest: Mutex<NewestBase>,
    /// Held while one is written.
    writing: Arc<tokio::sync::Mutex<()>>,
}

impl BaseWriter {
    pub(super) fn new(turns: BaseTurns, newest: NewestBase) -> Self {
        Self { turns, newest: Mutex::new(newest), ..Self::default() }
    }

    /// Whether opening the session took so long that it should have a base; true once.
    fn take_wanted(&self) -> bool {
        std::mem::take(&mut lock(&self.newest).is_wanted)
    }

    fn is_due(&self, length: u64, due: BaseDue) -> bool {
        let newest = lock(&self.newest);
        let grown = length.saturating_sub(newest.offset);
        match due {
            // A large base is written less often: writes stay in proportion to records.
            BaseDue::Turn => grown >= GROWTH.max(newest.size),
            BaseDue::Opened | BaseDue::End => grown > 0 && length >= SMALLEST_JOURNAL,
        }
    }
}

impl SessionHistory {
    /// Whether opening the session took so long that it should have a base; true once.
    pub(crate) fn wants_base(&self) -> bool {
        self.base.take_wanted()
    }

    /// Writes a base if one is due. Returns when memory is encoded, before the disk has it. After a turn none is written while
    /// another session writes its own: the next turn asks again.
    pub(crate) async fn write_base_if_due(self: &Arc<Self>, due: BaseDue) {
        let Ok(length) = self.core.journal().whole_length() else { return };
        if !self.base.is_due(length, due) {
            return;
        }
        let Some(turn) = self.base.turns.take(due).await else { return };
        let Ok(writing) = Arc::clone(&self.base.writing).try_lock_owned() else { return };
        let history = Arc::clone(self);
        let (encoded, is_encoded) = oneshot::channel();
        // The thread that encodes an image frees it: an allocator with a heap for each thread keeps memory that another thread
        // frees until its own thread comes back.
        task::spawn_blocking(move || {
            let image = history.image();
            // The caller may be gone.
            let _ = encoded.send(());
            match image {
                Ok(image) => history.write_base(&image),
                Err(error) => tracing::warn!(%error, session = %history.core.id(), "no base is written"),
            }
            drop((turn, writing));
        });
        // The sender is dropped without a word where the thread ends early.
        drop(is_encoded.await);
    }

    /// Waits until a base that is being written is on disk.
    pub(crate) async fn base_written(&self) {
        let _written = self.base.writing.lock().await;
    }

    /// The content of memory, encoded, with the length of the journal that it is the fold of.
    fn image(&self) -> io::Result<BaseImage> {
        let mut book = self.edits.synced();
        self.edits.write_typing(&mut book);
        let state = self.core.state();
        if state.shelf().is_some_and(|shelf| shelf.is_damaged()) {
            return Err(io::Error::other("older entries must be read from the journal first"));
        }
        let skipped = lock(&self.base.newest).skipped;
        let offset = self.core.journal().start_over()?;
        let newest = self.core.events().newest();
        let content = base::encode(&BaseContent { state: &*state, ledger: &book.ledger, skipped, newest })?;
        let shelf = state.shelf().cloned();
        Ok(BaseImage { offset, content, length: shelf.as_ref().map_or(0, |shelf| shelf.length()), shelf })
    }

    fn write_base(&self, image: &BaseImage) {
        let path = self.core.journal().path().with_file_name(BASE);
        // The shelf may have been rebuilt since: the base would contain places of the old one.
        let _not_meanwhile = self.core.keep_shelf();
        let is_same = match (&image.shelf, self.core.state().shelf()) {
            (Some(written), Some(now)) => Arc::ptr_eq(written, now),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !is_same {
            tracing::info!(session = %self.core.id(), "no base is written: older entries were read from the journal again");
            return;
        }
        let write = || {
            if let Some(shelf) = &image.shelf {
                shelf.sync()?;
            }
            let mark = BaseMark::of(self.core.journal().path(), image.offset)?;
            base::write(&path, FORM, mark, image.length, &image.content)
        };
        match write() {
            Ok(()) => {
                let mut newest = lock(&self.base.newest);
                newest.offset = image.offset;
                newest.size = image.content.size();
            }
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "the base of a session is not written")
            }
        }
    }
}

/// The parts of a base to write.
struct BaseImage {
    offset: u64,
    content: ContentBytes,
    length: u64,
    shelf: Option<Arc<Shelf>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn sessions_take_turns_to_write_a_base_and_none_waits_long_for_the_others() {
        let turns = BaseTurns::default();
        let held = turns.clone().take(BaseDue::Turn).await.unwrap();
        for (due, patience) in [
            (BaseDue::Turn, Duration::ZERO),
            (BaseDue::Opened, PATIENCE_OPENED),
            (BaseDue::End, PATIENCE_END),
        ] {
            let began = tokio::time::Instant::now();
            assert!(turns.take(due).await.is_none(), "{due:?}");
            assert!((patience..patience + Duration::from_millis(2)).contains(&began.elapsed()), "{due:?}");
        }
        let waiting = tokio::spawn(async move { turns.take(BaseDue::End).await.is_some() });
        tokio::task::yield_now().await;
        drop(held);
        assert!(waiting.await.unwrap());
    }
}
