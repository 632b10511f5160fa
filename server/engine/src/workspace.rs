//! What a path contains, and the only code that writes the user's files.
//!
//! Rule: an open document wins over the disk, saved or not; open documents change only through the host, closed
//! files only by guarded atomic writes; nothing is written over text the session has not read.

mod atomic;
pub mod encoding;
pub mod overlay;
pub mod shadow;
pub mod stream;
#[cfg(test)]
pub(crate) mod testing;
pub mod write;

pub(crate) use overlay::blocking;
pub use overlay::{FileText, Freshness, PathError, ReadError, Source, Workspace};
pub use stream::{OpenText, TextStream};
pub use write::ApplyError;
