//! The journal: a session as one append-only file of typed records, one JSON object a line.
//!
//! Rule: the journal is the truth. What the user was shown as done has been written before; memory is a fold over
//! the records, and a session that is taken up again goes through the same fold.

mod blobs;
pub(crate) mod disk;
pub mod lease;
mod pictures;
mod reader;
pub mod record;
#[cfg(test)]
mod survival;
pub(crate) mod tail;
mod writer;

pub use blobs::{BlobId, Blobs, NotABlobId};
pub use disk::write_atomically;
pub(crate) use reader::{LINE_LIMIT, read_on};
pub use reader::{ReadJournal, Stamp, read};
pub use record::Record;
pub use writer::{Journal, JournalError, PreparedLine, StorageNews};
