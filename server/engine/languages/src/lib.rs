//! A client of language servers: what they know about the text of a workspace, unsaved text included.
//!
//! Rule: a server starts at the first call that needs it, runs in the sandbox, serves all sessions of its root and ends after ten
//! idle minutes. Every wait, queue, answer and number of restarts is bounded. A program without an entry in settings runs
//! in a sandbox alone.
//!
//! Must not know: sessions, the loop.
//! Used by: engine.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

mod connection;
mod documents;
mod editor;
mod edits;
mod instance;
mod known;
mod launch;
mod messages;
mod positions;
mod results;
mod running;
mod selection;
mod service;
#[cfg(test)]
mod tests;
mod uri;
mod wire;
mod work;

pub use editor::{EditorAnswer, EditorFailure, EditorRequest, EditorServers};
pub use known::{extensions_of_language, known_language, language_of_extension};
pub use service::Languages;
pub use work::ServerWork;
