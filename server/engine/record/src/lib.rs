//! What a session records and tells: records of the journal, events and transcript items.
//!
//! Layer: knows nothing of how sessions work. Used by sessions and front ends.

pub mod background;
pub mod compaction;
pub mod context;
pub mod draft;
pub mod event;
pub mod hook;
pub mod intent;
pub mod options;
pub mod phases;
pub mod prompt;
pub mod queue;
pub mod record;
pub mod reminder;
pub mod resolution;
pub mod title;
pub mod tokens;
