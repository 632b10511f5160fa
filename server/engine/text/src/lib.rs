//! The text of files as the user sees it, edits of it, and the ledger of hunks.
//!
//! Must not know: tools, sessions, the caller that edits.
//! Used by: config, tool, record, tools, languages, agent, engine.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

pub mod edit;
pub mod host;
pub mod workspace;

#[cfg(test)]
extern crate self as kode_text;
pub mod document;
pub mod file_text;
#[cfg(test)]
#[path = "../../testing/src/folding.rs"]
pub mod folding;
pub mod shell_change;
#[cfg(test)]
#[path = "../../testing/src/text.rs"]
pub mod testing;
