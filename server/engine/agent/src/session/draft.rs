//! The prompt that the user has not sent yet.
//!
//! Rule: it is kept as the client gave it and is nobody's but the user's: no model hears of it, and what is sent takes it
//! away. It changes with every key: memory has the newest at once, and the journal as well while it is short; a long one is
//! written every few seconds and at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::session::Session;
use kode_record::draft::PromptDraft;
use kode_record::record::Record;

/// The most bytes of a draft, with what goes with it.
pub const MAX_DRAFT: usize = 256 * 1_024;

/// Up to so many bytes a draft is written at once.
const WRITTEN_AT_ONCE: usize = 4 * 1_024;

/// So long a change of a longer draft waits for the next ones before it is written.
pub(super) const WRITE_INTERVAL: Duration = Duration::from_secs(3);

/// What is still to be done for the draft.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    /// Whether the journal has another draft than memory. Read and written under the lock of the state.
    is_due: AtomicBool,
    changed: Notify,
}

/// Why a draft was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// It is too long.
    #[error("the draft has {size} bytes; the limit is {MAX_DRAFT}")]
    TooLong {
        /// Its size in bytes.
        size: usize,
    },
    /// The session was closed.
    #[error("the session is closed; load it again to go on")]
    Closed,
}

impl Session {
    /// Keeps the unsent prompt; `None` when there is none any more.
    ///
    /// # Errors
    /// [`DraftError`]; the one before stays then.
    pub fn set_draft(&self, draft: Option<PromptDraft>) -> Result<(), DraftError> {
        let size = draft.as_ref().map_or(0, |draft| draft.text.len() + draft.parts.to_string().len());
        if size > MAX_DRAFT {
            return Err(DraftError::TooLong { size });
        }
        let mut state = self.state();
        if self.cancel.is_cancelled() {
            return Err(DraftError::Closed);
        }
        if state.draft != draft {
            let record = Record::Drafted { draft };
            let waits = size > WRITTEN_AT_ONCE;
            if waits {
                state.apply(record).into_iter().for_each(|event| self.publish(event));
            } else {
                self.commit_locked(&mut state, record);
            }
            self.unwritten.is_due.store(waits, Ordering::Relaxed);
            self.unwritten.changed.notify_one();
        }
        Ok(())
    }

    /// Writes the draft if the journal has another one.
    pub(super) fn write_draft(&self) {
        let mut state = self.state();
        if self.unwritten.is_due.swap(false, Ordering::Relaxed) {
            // Told once more: whoever follows the journal alone hears of it only now.
            let draft = state.draft.clone();
            self.commit_locked(&mut state, Record::Drafted { draft });
        }
    }
}

/// Writes the draft every few seconds while it changes, until the session is closed; what is left then is written by the
/// task that closes it.
pub(super) async fn keep(session: Arc<Session>) {
    loop {
        tokio::select! {
            biased;
            () = session.cancel.cancelled() => break,
            () = session.unwritten.changed.notified() => {}
        }
        tokio::select! {
            biased;
            () = session.cancel.cancelled() => break,
            () = tokio::time::sleep(WRITE_INTERVAL) => session.write_draft(),
        }
    }
}
