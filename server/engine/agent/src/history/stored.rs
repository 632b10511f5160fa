//! The entry of a live session in the list of sessions, and the removal of unused files at its end.
//!
//! Rule: nothing waits for it while the session lives. Its end does, because no other process may touch its folder until
//! then.

use std::time::SystemTime;

use crate::history::SessionHistory;
use crate::sessions;
use kode_base::blocking;
use kode_base::task;

/// The largest journal that is searched for unused blobs at the end of a session, in bytes; larger ones wait for the cleanup.
const MAX_SWEPT: u64 = 64 << 20;

impl SessionHistory {
    /// Begins to write the session's entry in the list.
    pub(crate) fn begin_summary(&self) {
        let journal = self.core.journal().path().to_path_buf();
        task::spawn_blocking(move || sessions::refresh(&journal));
    }

    /// Writes the session's entry in the list, and removes files that it needs no more.
    pub(crate) async fn settle_folder(&self) {
        let journal = self.core.journal().path().to_path_buf();
        blocking(move || {
            sessions::refresh(&journal);
            let is_small = journal.metadata().is_ok_and(|metadata| metadata.len() <= MAX_SWEPT);
            let Some(folder) = journal.parent().filter(|_| is_small) else { return };
            if let Err(error) = sessions::sweep(folder, SystemTime::now()) {
                tracing::debug!(%error, path = %journal.display(), "the session was not swept");
            }
        })
        .await;
    }
}
