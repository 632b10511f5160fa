//! Opening a stored session: its base and the end of its journal, or the whole journal.
//!
//! Rule: the journal decides. A base that cannot be used costs the time of a full fold and is told in the log alone; a
//! fold needs the memory of what it adds up to, and not that of the journal.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::edit::ledger::{Entry, Ledger};
use crate::event::Kept;
use crate::journal::base::{self, BASE, BaseError};
use crate::journal::{BlobId, Blobs, Lines, Record, SHELF, Shelf, Stamp};
use crate::session::SessionState;
use crate::session::base::{Content, Newest};
use crate::session::replay::Replay;

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

/// Reads the session with this journal, which nobody may write meanwhile. `since` is the number of the event after which
/// somebody wants the events: a base tells none of those before it.
///
/// # Errors
/// When the journal cannot be read, or what leaves memory has no place.
pub(crate) fn open(
    journal: &Path,
    blobs: &Blobs,
    since: Option<u64>,
    tell: &dyn Fn(Loading),
) -> io::Result<Opening> {
    match from_base(journal, blobs, since, tell) {
        Ok(Some(opening)) => return Ok(opening),
        Ok(None) => {}
        Err(reason) => {
            tracing::warn!(%reason, path = %journal.display(), "the base of a session is not used: its whole journal is read");
        }
    }
    // First of all, since it leans on the shelf that is made anew.
    base::remove(&journal.with_file_name(BASE))?;
    let shelf = Arc::new(Shelf::create(&journal.with_file_name(SHELF))?);
    let mut fold = Fold { replay: None, ledger: Ledger::default(), shelf, blobs };
    let mut lines = Lines::open(journal, 0)?;
    fold.take_all(&mut lines, tell)?;
    let base = Newest { skipped: lines.skipped(), ..Newest::default() };
    Ok(Opening { replay: fold.replay, ledger: fold.ledger, base, read: lines.at() })
}

/// Opens a session from its base, if it has one that will do.
fn from_base(
    journal: &Path,
    blobs: &Blobs,
    since: Option<u64>,
    tell: &dyn Fn(Loading),
) -> Result<Option<Opening>, BaseError> {
    let Some(base) = base::read(&journal.with_file_name(BASE), journal)? else { return Ok(None) };
    let Content { mut state, ledger, skipped, newest } = base.content::<Content<SessionState, Ledger>>()?;
    if since.is_some_and(|since| since < newest) {
        return Ok(None);
    }
    let offset = base.header.mark.offset;
    let shelf = Arc::new(Shelf::open(&journal.with_file_name(SHELF), base.header.shelf)?);
    state.attach(&shelf);
    let replay = Some(Replay { state, kept: Kept::after(newest) });
    let mut fold = Fold { replay, ledger, shelf, blobs };
    let mut lines = Lines::open(journal, offset)?;
    fold.take_all(&mut lines, tell)?;
    if fold.shelf.is_damaged() {
        return Err(BaseError::Damaged);
    }
    let newest = Newest { offset, size: base.size(), skipped: skipped + lines.skipped(), is_wanted: false };
    Ok(Some(Opening { replay: fold.replay, ledger: fold.ledger, base: newest, read: lines.at() - offset }))
}

/// A fold that goes on.
struct Fold<'a> {
    replay: Option<Replay>,
    ledger: Ledger,
    shelf: Arc<Shelf>,
    blobs: &'a Blobs,
}

impl Fold<'_> {
    fn take_all(&mut self, lines: &mut Lines, tell: &dyn Fn(Loading)) -> io::Result<()> {
        let (start, total) = (lines.at(), lines.end() - lines.at());
        let mut told = 0;
        while let Some(line) = lines.next() {
            let (stamp, record) = line?;
            self.take(stamp, record);
            let read = lines.at() - start;
            if read - told >= TELL_EVERY {
                told = read;
                tell(Loading { read, total });
            }
        }
        Ok(())
    }

    fn take(&mut self, stamp: Stamp, record: Record) {
        match (&mut self.replay, record) {
            (replay, Record::Edits { entry }) => {
                if let Some(replay) = replay {
                    replay.note(stamp, Vec::new());
                }
                self.enter(entry);
            }
            (Some(replay), record) => replay.add(stamp, record),
            (replay @ None, record) => {
                *replay = Replay::begin(stamp, &record);
                if let Some(replay) = replay {
                    replay.state.attach(&self.shelf);
                }
            }
        }
    }

    fn enter(&mut self, entry: Entry) {
        let load = |id: &BlobId| String::from_utf8(self.blobs.get(id)?).map_err(io::Error::other);
        if let Err(error) = self.ledger.apply(entry, load) {
            let folder = self.blobs.folder().display();
            tracing::warn!(%error, %folder, "the changes of a file are not known any more");
        }
    }
}

#[cfg(test)]
mod tests;
