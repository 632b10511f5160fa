//! The journal: a session as one append-only file of typed records, one JSON object a line.
//!
//! Rule: the journal is the truth. What the user was shown as done has been written before; memory is a fold over
//! the records, and a session that is taken up again goes through the same fold.

pub mod base;
mod blobs;
pub(crate) mod disk;
pub(crate) mod growing;
mod last;
pub mod lease;
mod pictures;
mod reader;
pub mod record;
mod shelf;
#[cfg(test)]
mod survival;
mod writer;

pub use blobs::{BlobId, Blobs, NotABlobId};
pub use disk::write_atomically;
pub use last::{LastLines, read_last};
#[cfg(test)]
pub(crate) use reader::read_on;
pub(crate) use reader::{LINE_LIMIT, trimmed};
pub use reader::{Lines, ReadJournal, Stamp, read};
pub use record::Record;
pub use shelf::{SHELF, Shelf, Slot};
pub use writer::{Journal, JournalError, PreparedLine, StorageNews};
