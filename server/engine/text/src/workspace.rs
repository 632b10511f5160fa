//! The content of a path, and the only code that writes the user's files.
//!
//! Rule: an open document wins over the disk, saved or not; open documents change only through the host, closed
//! files only by guarded atomic writes; nothing is written over text the session has not read.

pub mod changes;
pub mod error;
pub mod language;
pub mod overlay;
pub mod preview;
pub mod reads;
pub mod real_paths;
pub mod shadow;
pub mod stream;
pub mod unsaved;
mod watch;
pub mod write;

pub use changes::{ChangeAuthor, OutsideChange, WatchReport};
pub use error::{PathError, ReadError};
pub use overlay::Workspace;
pub use reads::{AccessOrder, AccessedText, Freshness, KnownText, Portion};
pub(crate) use real_paths::RealPaths;
pub use stream::{OpenText, TextStream};
pub use write::ApplyError;
