//! Sessions as data that goes into and out of the store: forks, exports, and sessions of other agents.
//!
//! Rule: this only makes records of records, or text of a state; the engine reads and writes the journals.

pub(crate) mod export;
pub(crate) mod fork;
mod import;

pub use export::SessionExport;
pub(crate) use fork::fork;
pub use fork::{ForkPoint, UnknownItem};
pub use import::{ImportError, ImportOutcome};
pub(crate) use import::{ImportedRecords, read_sdk_session};
