//! Changes to text as values: edits, change sets, how they are matched, rebased, shown and reported.
//!
//! Rule: everything here is pure; change sets are applied by [`crate::workspace`].

pub mod change;
mod characters;
pub mod compose;
pub mod diff;
mod elision;
pub mod file_patch;
pub mod indent;
pub mod ledger;
pub mod matching;
pub mod nearest;
pub mod passage;
pub mod rebase;
pub mod repair;
pub mod weave;

pub use change::{AppliedFile, Author, ChangeSet, FileChange, FileRemoval, TextEdit};
