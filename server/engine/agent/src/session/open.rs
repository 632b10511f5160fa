//! Opening a stored session: its base and the end of its journal, or the whole journal.
//!
//! Rule: the journal decides. A base that cannot be used costs the time of a full fold and is told in the log alone; a
//! fold needs the memory of what it adds up to, and not that of the journal.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::session::base::{Content, FORM, Newest};
use crate::session::replay::Replay;
use crate::session::{SessionState, told};
use kode_journal::base::{self, BASE, BaseError};
use kode_journal::disk::Disk;
use kode_journal::{BlobId, Blobs, JournalLines, SHELF, Shelf};
use kode_record::event::RecentEvents;
use kode_record::record::Record;
use kode_text::edit::ledger::{Ledger, LedgerEntry};

/// How far reading a journal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loading {
    /// The bytes that were read.
    pub read: u64,
    /// All bytes that are to be read.
    pub total: u64,
}

/// After so many bytes it is told how far reading is.
const TELL_EVERY: u64 = 4 << 20;

/// What was found on disk.
#[derive(Debug)]
pub(crate) struct Opening {
    /// The state and the newest events; `None` when the journal holds no session.
    pub(crate) replay: Option<Replay>,
    pub(crate) ledger: Ledger,
    pub(crate) base: Newest,
    /// How many bytes of the journal were folded.
    pub(crate) read: u64,
}

/// What a session is read from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) journal: &'a Path,
    pub(crate) blobs: &'a Blobs,
    /// What is taken for the first record when that is lost.
    pub(crate) beginning: &'a Record,
}

/// Reads the session with this journal, which nobody may write meanwhile. `since` is the number of the event after which
/// somebody wants the events: a base tells none of those before it.
///
/// # Errors
/// When the journal cannot be read, or what leaves memory has no place.
pub(crate) fn open(source: &Source<'_>, since: Option<u64>, tell: &dyn Fn(Loading)) -> io::Result<Opening> {
    let journal = source.journal;
    match from_base(source, since, tell) {
        Ok(Some(opening)) => return Ok(opening),
        Ok(None) => {}
        Err(reason) => {
            tracing::warn!(%reason, path = %journal.display(), "the base of a session is not used: its whole journal is read");
        }
    }
    // First of all, since it leans on the shelf that is made anew.
    base::remove(&journal.with_file_name(BASE))?;
    let shelf = Arc::new(Shelf::create(&journal.with_file_name(SHELF))?);
    let Some((beginning, is_lost)) = beginning(source)? else {
        let mut lines = JournalLines::<Record>::open_on(source.disk, journal, 0)?;
        let _none = lines.by_ref().count();
        let base = Newest { skipped: lines.skipped(), ..Newest::default() };
        return Ok(Opening { replay: None, ledger: Ledger::default(), base, read: lines.at() });
    };
    let mut replay = Replay { state: beginning, kept: RecentEvents::default() };
    replay.state.attach(&shelf);
    let mut fold = Fold { replay, ledger: Ledger::default(), blobs: source.blobs };
    let mut lines = JournalLines::open_on(source.disk, journal, 0)?;
    fold.take_all(&mut lines, tell)?;
    // A line that is gone without a trace is told as well.
    let skipped = lines.skipped().max(u64::from(is_lost));
    let base = Newest { skipped, ..Newest::default() };
    Ok(Opening { replay: Some(fold.replay), ledger: fold.ledger, base, read: lines.at() })
}

/// Opens a session from its base, if it has one that will do.
fn from_base(
    source: &Source<'_>,
    since: Option<u64>,
    tell: &dyn Fn(Loading),
) -> Result<Option<Opening>, BaseError> {
    let journal = source.journal;
    let Some(base) = base::read(&journal.with_file_name(BASE), FORM, journal)? else { return Ok(None) };
    let Content { mut state, ledger, skipped, newest } = base.content::<Content<SessionState, Ledger>>()?;
    if since.is_some_and(|since| since < newest) {
        return Ok(None);
    }
    let offset = base.header.mark.offset;
    let shelf = Arc::new(Shelf::open(&journal.with_file_name(SHELF), base.header.shelf)?);
    state.attach(&shelf);
    let replay = Replay { state, kept: RecentEvents::after(newest) };
    let mut fold = Fold { replay, ledger, blobs: source.blobs };
    let mut lines = JournalLines::open_on(source.disk, journal, offset)?;
    fold.take_all(&mut lines, tell)?;
    if shelf.is_damaged() {
        return Err(BaseError::Damaged);
    }
    let newest = Newest { offset, size: base.size(), skipped: skipped + lines.skipped(), is_wanted: false };
    let read = lines.at() - offset;
    Ok(Some(Opening { replay: Some(fold.replay), ledger: fold.ledger, base: newest, read }))
}

/// The changes that a journal tells of, which another process may be writing. Waits for the disk.
///
/// # Errors
/// What the system says about the journal.
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
/// Most often the first line says it, and the others are not looked at.
fn beginning(source: &Source<'_>) -> io::Result<Option<(SessionState, bool)>> {
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

/// A fold that goes on.
struct Fold<'a> {
    replay: Replay,
    ledger: Ledger,
    blobs: &'a Blobs,
}

impl Fold<'_> {
    fn take_all(&mut self, lines: &mut JournalLines<Record>, tell: &dyn Fn(Loading)) -> io::Result<()> {
        let (start, total) = (lines.at(), lines.end().saturating_sub(lines.at()));
        let mut told = 0;
        while let Some(line) = lines.next() {
            let (stamp, record) = line?;
            match record {
                Record::Edits { entry } => {
                    self.replay.note(stamp, told::of_edits(&entry).into_iter().collect());
                    enter(&mut self.ledger, self.blobs, entry);
                }
                record => self.replay.add(stamp, record),
            }
            let read = lines.at() - start;
            if read - told >= TELL_EVERY {
                told = read;
                tell(Loading { read, total });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
