//! Opening a stored session: its base and the end of its journal, or the whole journal.
//!
//! Rule: the journal decides. A base that cannot be used costs the time of a full fold and is reported in the log alone. A
//! fold needs the memory of its result, and not that of the journal.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::history::base::{BaseContent, FORM, NewestBase};
use crate::state::replay::Replay;
use crate::state::{SessionState, events};
use kode_journal::base::{self, BASE, BaseError};
use kode_journal::disk::Disk;
use kode_journal::{BlobId, Blobs, JournalLines, SHELF, Shelf};
use kode_record::event::RecentEvents;
use kode_record::record::Record;
use kode_text::edit::ledger::{Ledger, LedgerEntry};

/// How far reading a journal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadProgress {
    /// The bytes that were read.
    pub read: u64,
    /// All bytes that are to be read.
    pub total: u64,
}

/// The bytes between two reports of progress.
const PROGRESS_BYTES: u64 = 4 << 20;

/// A session as it was read from disk.
#[derive(Debug)]
pub(crate) struct OpenedJournal {
    /// The state and the newest events; `None` when the journal holds no session.
    pub(crate) replay: Option<Replay>,
    pub(crate) ledger: Ledger,
    pub(crate) base: NewestBase,
    /// How many bytes of the journal were folded.
    pub(crate) read: u64,
}

/// The source of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpeningSource<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) journal: &'a Path,
    pub(crate) blobs: &'a Blobs,
    /// The record that replaces the first one where it is lost.
    pub(crate) beginning: &'a Record,
}

/// Reads the session with this journal, which no process may write meanwhile. `since` is the number of the event after which
/// events are wanted: a base has none of those before it.
///
/// # Errors
/// When the journal cannot be read, or what leaves memory has no place.
pub(crate) fn open(
    source: &OpeningSource<'_>,
    since: Option<u64>,
    progress: &dyn Fn(LoadProgress),
) -> io::Result<OpenedJournal> {
    let journal = source.journal;
    match from_base(source, since, progress) {
        Ok(Some(opening)) => return Ok(opening),
        Ok(None) => {}
        Err(reason) => {
            tracing::warn!(%reason, path = %journal.display(), "the base of a session is not used: its whole journal is read");
        }
    }
    // Removed first, because it refers to the shelf that is rebuilt.
    base::remove(&journal.with_file_name(BASE))?;
    let shelf = Arc::new(Shelf::create(&journal.with_file_name(SHELF))?);
    let Some((beginning, is_lost)) = beginning(source)? else {
        let mut lines = JournalLines::<Record>::open_on(source.disk, journal, 0)?;
        let _none = lines.by_ref().count();
        let base = NewestBase { skipped: lines.skipped(), ..NewestBase::default() };
        return Ok(OpenedJournal { replay: None, ledger: Ledger::default(), base, read: lines.at() });
    };
    let mut replay = Replay { state: beginning, kept: kept_after(0, since) };
    replay.state.attach(&shelf);
    let mut fold = JournalFold { replay, ledger: Ledger::default(), blobs: source.blobs };
    let mut lines = JournalLines::open_on(source.disk, journal, 0)?;
    fold.take_all(&mut lines, progress)?;
    // A line that disappeared without a trace counts as skipped.
    let skipped = lines.skipped().max(u64::from(is_lost));
    let base = NewestBase { skipped, ..NewestBase::default() };
    Ok(OpenedJournal { replay: Some(fold.replay), ledger: fold.ledger, base, read: lines.at() })
}

/// The events of the lines after a number. A reader without a bookmark begins with a snapshot: to keep the events before it would
/// cost memory for as long as the session is open.
fn kept_after(newest: u64, since: Option<u64>) -> RecentEvents {
    if since.is_some() { RecentEvents::after(newest) } else { RecentEvents::counted_after(newest) }
}

/// Opens a session from its base, if it has one that will do.
fn from_base(
    source: &OpeningSource<'_>,
    since: Option<u64>,
    progress: &dyn Fn(LoadProgress),
) -> Result<Option<OpenedJournal>, BaseError> {
    let journal = source.journal;
    let Some(base) = base::read(&journal.with_file_name(BASE), FORM, journal)? else { return Ok(None) };
    let BaseContent { mut state, ledger, skipped, newest } =
        base.content::<BaseContent<SessionState, Ledger>>()?;
    if since.is_some_and(|since| since < newest) {
        return Ok(None);
    }
    let offset = base.header.mark.offset;
    let shelf = Arc::new(Shelf::open(&journal.with_file_name(SHELF), base.header.shelf)?);
    state.attach(&shelf);
    let replay = Replay { state, kept: kept_after(newest, since) };
    let mut fold = JournalFold { replay, ledger, blobs: source.blobs };
    let mut lines = JournalLines::open_on(source.disk, journal, offset)?;
    fold.take_all(&mut lines, progress)?;
    if shelf.is_damaged() {
        return Err(BaseError::Damaged);
    }
    let newest =
        NewestBase { offset, size: base.size(), skipped: skipped + lines.skipped(), is_wanted: false };
    let read = lines.at() - offset;
    Ok(Some(OpenedJournal { replay: Some(fold.replay), ledger: fold.ledger, base: newest, read }))
}

/// The changes in a journal, which another process may be writing. Blocks on the disk.
///
/// # Errors
/// The error of the system.
pub(crate) fn changes_of(journal: &Path, blobs: &Blobs) -> io::Result<Ledger> {
    let mut ledger = Ledger::default();
    for line in JournalLines::open(journal, 0)? {
        if let Record::Edits { entry } = line?.1 {
            enter(&mut ledger, blobs, entry);
        }
    }
    Ok(ledger)
}

fn enter(ledger: &mut Ledger, blobs: &Blobs, entry: LedgerEntry) {
    let load = |id: &BlobId| String::from_utf8(blobs.get(id)?).map_err(io::Error::other);
    if let Err(error) = ledger.apply(entry, load) {
        let folder = blobs.folder().display();
        tracing::warn!(%error, %folder, "the changes of a file are not known any more");
    }
}

/// The state that a journal begins with, and whether its own beginning is lost; `None` when it has no record at all.
/// Usually the first line is it, and no other is read.
fn beginning(source: &OpeningSource<'_>) -> io::Result<Option<(SessionState, bool)>> {
    let mut is_empty = true;
    for line in JournalLines::open_on(source.disk, source.journal, 0)? {
        is_empty = false;
        if let Some(state) = SessionState::open(&line?.1) {
            return Ok(Some((state, false)));
        }
    }
    if is_empty {
        return Ok(None);
    }
    tracing::warn!(path = %source.journal.display(), "the beginning of the session is lost");
    Ok(SessionState::open(source.beginning).map(|state| (state, true)))
}

/// A fold in progress.
struct JournalFold<'a> {
    replay: Replay,
    ledger: Ledger,
    blobs: &'a Blobs,
}

impl JournalFold<'_> {
    fn take_all(
        &mut self,
        lines: &mut JournalLines<Record>,
        progress: &dyn Fn(LoadProgress),
    ) -> io::Result<()> {
        let (start, total) = (lines.at(), lines.end().saturating_sub(lines.at()));
        let mut reported = 0;
        while let Some(line) = lines.next() {
            let (stamp, record) = line?;
            match record {
                Record::Edits { entry } => {
                    self.replay.note(stamp, events::edits_changed(&entry).into_iter().collect());
                    enter(&mut self.ledger, self.blobs, entry);
                }
                record => self.replay.add(stamp, record),
            }
            let read = lines.at() - start;
            if read - reported >= PROGRESS_BYTES {
                reported = read;
                progress(LoadProgress { read, total });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
