//! Sessions and the agent loop.
//!
//! Must not know: tools, MCP connections and providers by name.
//! Used by: engine.
//!
//! Rule: a module uses those above it in this list and none below it, so that no circle forms among them:
//!
//! 1. `prompt`, `state`, `sessions`, `explain`, `transfer`: data. The state folds records and does nothing else.
//! 2. `core`: state, journal and events of a live session; every component has it.
//! 3. `conversation`, `requests`, `gate`, `models`: a conversation at work, the requests to the user, the judgment of calls,
//!    the models.
//! 4. `edits`, `servers`, `extensions`, `instructions`, `hooks`: the other components, each with those that it needs.
//! 5. `context`, `input`, `history`: requests to the model, attachments of prompts, the stored session.
//! 6. `turn`: the loop, which works with all components.
//! 7. `session`: connects the components; prompts, commands, resuming, closing.
//! 8. `engine`: all sessions of a server.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

pub mod context;
pub(crate) mod conversation;
pub(crate) mod core;
pub mod edits;
pub mod engine;
pub mod explain;
pub mod extensions;
pub mod gate;
pub mod history;
pub mod hooks;
pub mod input;
pub mod instructions;
pub mod models;
pub mod prompt;
pub mod requests;
pub(crate) mod servers;
pub mod session;
pub mod sessions;
pub mod state;
#[cfg(test)]
mod tests;
pub mod transfer;
pub mod turn;
