//! The journal on a failing disk: lines that could not be written are tried again, and the user is notified.
//!
//! Rule: a failing disk stops nothing. The user is notified once when a failure begins and once when it ends; until then
//! every line is tried again with the next one, and by the task here.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::core::{Core, lock};
use kode_journal::{PreparedLine, StorageNews};
use kode_record::event::Event;

/// The pause after the first failure; each next one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Core {
    /// Waits until the committed records are on the disk. After a failure they are kept in memory.
    pub(crate) async fn sync(&self) {
        if let Err(error) = self.journal.sync().await {
            tracing::debug!(%error, "the session continues without its disk");
        }
        self.publish_storage_news();
    }

    /// Requests that the committed records be written to the disk soon.
    pub(crate) fn sync_soon(&self) {
        self.journal.sync_soon();
    }

    /// Writes a line to the journal. A failure is published by [`keep`], never here, where events get their numbers.
    pub(super) fn write_line(&self, line: PreparedLine, seq: u64) {
        if let Err(error) = self.journal.append_line(line, seq) {
            tracing::debug!(%error, "a record waits");
        }
    }

    /// Releases the journal, and publishes how much of it is lost.
    pub(crate) fn release_journal(&self) {
        self.publish_storage_news();
        if let Some(news) = self.journal.release() {
            self.publish(storage_event(news));
        }
    }

    fn publish_storage_news(&self) {
        let _in_order = lock(&self.storage_news);
        self.journal.take_news().into_iter().map(storage_event).for_each(|event| self.publish(event));
    }
}

fn storage_event(StorageNews { message, recovered }: StorageNews) -> Event {
    Event::StorageFailure { message, recovered }
}

/// Keeps the journal of a session until the session is closed; the task that closes it writes the rest.
pub(crate) async fn keep(core: Arc<Core>) {
    let mut pause = FIRST_PAUSE;
    loop {
        tokio::select! {
            biased;
            () = core.closing() => return,
            () = core.journal.attention() => {}
        }
        core.publish_storage_news();
        if !core.journal.is_failing() {
            pause = FIRST_PAUSE;
            if core.journal.is_sync_due() {
                core.sync().await;
            }
        }
        while core.journal.is_failing() {
            tokio::select! {
                biased;
                () = core.closing() => return,
                // A line was written, or there is news.
                () = core.journal.attention() => core.publish_storage_news(),
                () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
            core.sync().await;
        }
        pause = FIRST_PAUSE;
    }
}
