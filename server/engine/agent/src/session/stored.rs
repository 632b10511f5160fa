//! What a live session keeps beside its journal for the list of sessions, and what it removes when it is closed.
//!
//! Rule: nothing waits for it while the session lives; only the end of the session does, because until then nobody else
//! may touch its folder.

use std::time::SystemTime;

use crate::session::Session;
use crate::sessions;
use kode_base::blocking;

/// At the end of a session a journal is looked through for the contents it names only if it is not larger than this; of
/// larger ones that is done when it is cleaned up.
const MAX_SWEPT: u64 = 64 << 20;

impl Session {
    /// Ends the session if no turn runs; false when one does.
    pub(crate) fn close_if_idle(&self) -> bool {
        let _no_prompt_is_taken_meanwhile = self.state();
        if self.is_busy() || self.is_resolving() {
            return false;
        }
        self.cancel.cancel();
        self.shell.tasks().close();
        true
    }

    /// Begins to write what the list says of the session.
    pub(super) fn begin_summary(&self) {
        let journal = self.journal.path().to_path_buf();
        tokio::task::spawn_blocking(move || sessions::refresh(&journal));
    }

    /// Writes what the list says of the session, and removes what it has kept and needs no more.
    pub(super) async fn settle_folder(&self) {
        let journal = self.journal.path().to_path_buf();
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
