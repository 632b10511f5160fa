//! A session as it lies on disk, and how it is opened.
//!
//! Rule: the journal is opened for writing before it is read, so that no other process writes during the read; a fault of
//! ours in what it says is not its absence.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io};

use crate::history::base::NewestBase;
use crate::history::{LoadProgress, open};
use crate::sessions::{BLOBS, SessionError};
use crate::state::SessionState;
use crate::state::replay::Replay;
use kode_base::task;
use kode_journal::disk::{Disk, OpenMode};
use kode_journal::{Blobs, Journal};
use kode_record::event::EventLog;
use kode_record::record::Record;
use kode_text::edit::ledger::Ledger;

/// The time to open a session from which on it gets a base at once.
const LONG_OPENING: Duration = Duration::from_millis(250);

/// A session as it lies on disk.
pub(super) struct OpenedSession {
    pub(super) journal: Journal,
    pub(super) blobs: Blobs,
    pub(super) state: SessionState,
    pub(super) events: Arc<EventLog>,
    pub(super) ledger: Ledger,
    pub(super) base: NewestBase,
    /// Lines of the journal that could not be read; `None` for a session that has just begun.
    pub(super) resumed: Option<u64>,
}

/// Reads a journal with `open` on a blocking thread. A panic on its content is reported as a corrupted journal.
pub(super) async fn in_background(
    journal: PathBuf,
    open: impl FnOnce(&Path) -> Result<OpenedSession, SessionError> + Send + 'static,
) -> Result<OpenedSession, SessionError> {
    let path = journal.clone();
    task::spawn_blocking(move || open(&journal)).await.unwrap_or_else(|error| {
        tracing::error!(%error, path = %path.display(), "a session could not be folded");
        Err(SessionError::Corrupted { path, skipped: 0 })
    })
}

/// Opens a stored session for writing: from its base, or by folding its journal. `beginning` is treated as its first
/// record when that is lost.
pub(super) fn open_session(
    disk: &Arc<dyn Disk>,
    path: &Path,
    beginning: &Record,
    since: Option<u64>,
    report: &dyn Fn(LoadProgress),
) -> Result<OpenedSession, SessionError> {
    // Opened first: from then on no other process writes it. It is not created: it may be deleted just now.
    let (journal, blobs) = match (open_journal(disk, path, OpenMode::Existing), beginning) {
        (Err(SessionError::Storage { source, .. }), Record::Opened { session, .. })
            if source.kind() == io::ErrorKind::NotFound =>
        {
            return Err(SessionError::Unknown(session.clone()));
        }
        (opened, _) => opened?,
    };
    let began = Instant::now();
    let source = open::OpeningSource { disk: &**disk, journal: path, blobs: &blobs, beginning };
    let opening = open::open(&source, since, report)
        .map_err(|source| SessionError::Storage { path: path.to_path_buf(), source })?;
    let open::OpenedJournal { replay, ledger, mut base, read } = opening;
    let took = began.elapsed();
    base.is_wanted = took >= LONG_OPENING;
    let (from, ms) = (base.offset, took.as_millis());
    tracing::info!(path = %path.display(), from, bytes = read, ms, "a session was opened");
    let skipped = base.skipped;
    let Some(Replay { mut state, kept }) = replay else {
        return Err(SessionError::Corrupted { path: path.to_path_buf(), skipped });
    };
    // The id is the name of the folder, whatever a damaged or foreign line contains.
    if let Record::Opened { session, .. } = beginning {
        state.id.clone_from(session);
    }
    let events = EventLog::next_life(state.id.clone(), kept);
    Ok(OpenedSession { journal, blobs, state, events, ledger, base, resumed: Some(skipped) })
}

/// The journal at a place, and the blobs beside it.
pub(super) fn open_journal(
    disk: &Arc<dyn Disk>,
    path: &Path,
    how: OpenMode,
) -> Result<(Journal, Blobs), SessionError> {
    let blobs = Blobs::on(Arc::clone(disk), path.with_file_name(BLOBS));
    let journal = Journal::open_patiently(Arc::clone(disk), path, how, Some(blobs.clone()));
    let journal = journal.map_err(|source| SessionError::Storage { path: path.to_path_buf(), source })?;
    Ok((journal, blobs))
}

/// Whether nothing is at a place. An unreadable entry counts as something.
pub(super) fn is_absent(path: &Path) -> bool {
    let none = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
    fs::symlink_metadata(path).is_err_and(|error| none.contains(&error.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_fault_while_a_journal_is_folded_names_the_journal() {
        let path = PathBuf::from("/state/journal.jsonl");
        let Err(error) = in_background(path.clone(), |_| panic!("the test wanted it")).await else {
            panic!("there is no session in it")
        };
        assert!(
            matches!(&error, SessionError::Corrupted { path: named, skipped: 0 } if *named == path),
            "{error}"
        );
    }
}
