//! The prompt that the user has not sent yet.
//!
//! Rule: a draft is stored as the client gave it; no model gets it, and a submitted prompt removes it. It changes with every
//! key: memory has the newest at once. A short one is in the journal at once as well; a long one is written every few
//! seconds and at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::core::Core;
use kode_record::draft::PromptDraft;
use kode_record::record::Record;

/// The most bytes of a draft, with its attachments.
pub const MAX_DRAFT: usize = 256 * 1_024;

/// The largest draft that is written at once, in bytes.
const WRITTEN_AT_ONCE: usize = 4 * 1_024;

/// The time that a change of a longer draft waits for the next ones before it is written.
pub(crate) const WRITE_INTERVAL: Duration = Duration::from_secs(3);

/// Why a draft was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// It is too long.
    #[error("the draft has {size} bytes; the limit is {MAX_DRAFT}")]
    TooLong {
        /// Its size in bytes.
        size: usize,
    },
    /// The session was closed.
    #[error("the session is closed; load it again to continue")]
    Closed,
}

/// Stores the draft of a session.
pub struct Drafts {
    core: Arc<Core>,
    /// Whether the journal has an older draft than memory. Read and written under the lock of the state.
    is_due: AtomicBool,
    changed: Notify,
}

impl Drafts {
    pub(super) fn new(core: &Arc<Core>) -> Arc<Self> {
        Arc::new(Self { core: Arc::clone(core), is_due: AtomicBool::default(), changed: Notify::default() })
    }

    /// Stores the unsent prompt; `None` once it is gone.
    ///
    /// # Errors
    /// [`DraftError`]; the draft stays as it is then.
    pub fn set(&self, draft: Option<PromptDraft>) -> Result<(), DraftError> {
        let size = draft.as_ref().map_or(0, |draft| draft.text.len() + draft.parts.to_string().len());
        if size > MAX_DRAFT {
            return Err(DraftError::TooLong { size });
        }
        let mut state = self.core.state();
        if self.core.is_closing() {
            return Err(DraftError::Closed);
        }
        if state.draft != draft {
            let record = Record::Drafted { draft };
            let waits = size > WRITTEN_AT_ONCE;
            if waits {
                state.apply(record).into_iter().for_each(|event| self.core.publish(event));
            } else {
                self.core.commit_to(&mut state, record);
            }
            self.is_due.store(waits, Ordering::Relaxed);
            self.changed.notify_one();
        }
        Ok(())
    }

    /// Writes the draft if the journal has an older one.
    pub(super) fn write(&self) {
        let mut state = self.core.state();
        if self.is_due.swap(false, Ordering::Relaxed) {
            // Published again: a process that follows the journal gets it only now.
            let draft = state.draft.clone();
            self.core.commit_to(&mut state, Record::Drafted { draft });
        }
    }
}

/// Writes the draft every few seconds while it changes, until the session is closed. The task that closes the session writes
/// the last one.
pub(super) async fn keep(drafts: Arc<Drafts>) {
    loop {
        tokio::select! {
            biased;
            () = drafts.core.closing() => break,
            () = drafts.changed.notified() => {}
        }
        tokio::select! {
            biased;
            () = drafts.core.closing() => break,
            () = tokio::time::sleep(WRITE_INTERVAL) => drafts.write(),
        }
    }
}
