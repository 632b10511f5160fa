//! How a session lives with a bad disk: what could not be written is tried again, and people are told.
//!
//! Rule: a disk that refuses stops nothing. It is told once when that begins and once when it is over; until then every
//! record is tried again with the next one and by the task here.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::session::{Session, lock};
use kode_journal::{PreparedLine, StorageNews};
use kode_record::event::Event;

/// So long after the first failure it is tried again; each time it is twice as long.
pub(super) const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest time between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Session {
    /// Waits until the disk has what was committed. A failure is told and the work goes on: the records are kept.
    pub(crate) async fn sync(&self) {
        if let Err(error) = self.journal.sync().await {
            tracing::debug!(%error, "the session goes on without its disk");
        }
        self.tell_of_storage();
    }

    /// Wants the disk to have what was committed, without waiting for it.
    pub(crate) fn sync_soon(&self) {
        self.journal.sync_soon();
    }

    /// Writes a line into the journal. That it could not be is told by the journal's keeper: never here, where events get
    /// their numbers.
    pub(super) fn write_line(&self, line: PreparedLine, seq: u64) {
        if let Err(error) = self.journal.append_line(line, seq) {
            tracing::debug!(%error, "a record waits");
        }
    }

    /// Lets the journal go, and says what of it is lost.
    pub(super) fn release_journal(&self) {
        self.tell_of_storage();
        if let Some(news) = self.journal.release() {
            self.publish(storage_event(news));
        }
    }

    /// Tells what is new of the disk.
    fn tell_of_storage(&self) {
        // Held until it is told, so that the end of a failure does not overtake its beginning.
        let _in_order = lock(&self.telling);
        self.journal.take_news().into_iter().map(storage_event).for_each(|event| self.publish(event));
    }
}

fn storage_event(StorageNews { message, recovered }: StorageNews) -> Event {
    Event::StorageFailure { message, recovered }
}

/// Keeps the journal of a session until the session is closed; what is left then is tried by the task that closes it.
pub(super) async fn keep(session: Arc<Session>) {
    let mut pause = FIRST_PAUSE;
    loop {
        tokio::select! {
            biased;
            () = session.cancel.cancelled() => return,
            () = session.journal.attention() => {}
        }
        session.tell_of_storage();
        if !session.journal.is_failing() {
            pause = FIRST_PAUSE;
            if session.journal.is_sync_due() {
                session.sync().await;
            }
        }
        while session.journal.is_failing() {
            tokio::select! {
                biased;
                () = session.cancel.cancelled() => return,
                // A record got through, or there is something to tell.
                () = session.journal.attention() => session.tell_of_storage(),
                () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
            session.sync().await;
        }
        pause = FIRST_PAUSE;
    }
}
