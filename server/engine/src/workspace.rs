//! What a path contains, and the only code that writes the user's files.
//!
//! Rule: an open document wins over the disk, saved or not; open documents change only through the host, closed
//! files only by guarded atomic writes; nothing is written over text the session has not read.

pub(crate) mod atomic;
pub mod changes;
pub mod encoding;
pub mod error;
pub mod overlay;
pub mod reads;
mod real_paths;
pub mod shadow;
pub mod stream;
#[cfg(test)]
pub(crate) mod testing;
pub mod unsaved;
mod watch;
pub mod write;

pub use changes::{Origin, OutsideChange, WatchReport};
pub use error::{PathError, ReadError};
pub(crate) use overlay::{FileOnDisk, blocking};
pub use overlay::{FileText, Source, Workspace};
pub use reads::{AccessOrder, Accessed, Freshness, KnownText, Portion};
pub(crate) use real_paths::RealPaths;
pub use stream::{OpenText, TextStream};
pub use write::ApplyError;
