//! The targets, one file each.
//!
//! Rule: a target's head says what must hold.

pub(crate) mod answers;
pub(crate) mod archive;
pub(crate) mod edits;
pub(crate) mod frames;
pub(crate) mod front_matter;
pub(crate) mod globs;
pub(crate) mod journal;
pub(crate) mod notebook;
pub(crate) mod patches;
pub(crate) mod positions;
pub(crate) mod rules;
pub(crate) mod shell;
pub(crate) mod sse;
pub(crate) mod sync;
