//! The journal: a session as one append-only file of typed records, one JSON object a line.
//!
//! Rule: the journal is the truth. What the user was shown as done has been written before; memory is a fold over
//! the records, and a session that is resumed goes through the same fold.
//!
//! Must not know: what a record means.
//! Used by: text, record, agent, engine.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

pub mod base;
mod blobs;
pub mod disk;
pub mod growing;
pub mod lease;
mod line;
mod payloads;
pub mod reader;
pub mod shared_locks;
mod shelf;
#[cfg(test)]
#[path = "."]
pub mod disks {
    //! Disks that fail, for the tests of this crate.
    #[path = "../../testing/src/disk/faults.rs"]
    pub mod faults;
    #[path = "../../testing/src/disk/memory.rs"]
    pub mod memory;
}
#[cfg(test)]
extern crate self as kode_journal;
#[cfg(test)]
mod survival;
#[cfg(test)]
mod testing;
mod writer;

pub use blobs::{BlobId, Blobs, NotABlobId};
pub use line::{JournalEntry, JournalLine, VERSION};
pub(crate) use reader::LINE_LIMIT;
#[cfg(test)]
pub(crate) use reader::read_on;
pub use reader::{JournalLines, LineStamp, ReadJournal, read};
pub use shelf::{SHELF, Shelf, ShelfSlot};
pub use writer::{Journal, JournalError, PreparedLine, StorageNews};
