//! The wire types of the `agent/*` methods: what clients and server say to each other beyond LSP.
//!
//! Rule: this crate is the only place where a message is defined and holds no logic; JSON Schema, TypeScript and
//! Lua types in `generated/` are made from it (`cargo run -p kode-protocol --bin generate-bindings`).
//!
//! Rules of the wire:
//! - Names are camelCase, but for event types, stop reasons and states, which keep the names the field knows them
//!   by. A union is distinguished by its `type` (by its `kind` for errors), with one struct per case.
//! - A field without a value is absent, never `null`. `null` is the result of a request that has none.
//! - A field that holds an id is named after its type, everywhere: `sessionId`, `itemId`, `callId`.
//! - Fields and cases that a reader does not know are skipped: adding them is no new protocol version. Cases of
//!   plain enumerations are added only with a new one.
//! - Parameters are always an object, `{}` where a method takes none.
//!
//! Must not know: any logic of the engine or of a client.
//! Used by: server.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

pub mod alert;
pub mod ask;
pub mod catalogue;
pub mod checkpoint;
pub mod commands;
pub mod complete;
pub mod config;
pub mod context;
pub mod document;
pub mod editor;
pub mod edits;
pub mod error;
pub mod event;
pub mod goal;
pub mod hooks;
pub mod item;
mod lsp;
pub mod mcp;
pub mod methods;
pub mod models;
pub mod negotiation;
pub mod permission;
pub mod problem;
pub mod question;
pub mod queue;
pub mod session;
pub mod sessions;
pub mod state;
pub mod task;
pub mod team;
mod text;
pub mod todo;
pub mod tools;
pub mod transfer;
pub mod turn;

#[cfg(test)]
mod tests;

pub use alert::*;
pub use ask::*;
pub use catalogue::*;
pub use checkpoint::*;
pub use commands::*;
pub use complete::*;
pub use config::*;
pub use context::*;
pub use document::*;
pub use editor::*;
pub use edits::*;
pub use error::*;
pub use event::*;
pub use goal::*;
pub use hooks::*;
pub use item::*;
pub use mcp::*;
pub use methods::*;
pub use models::*;
pub use negotiation::*;
pub use permission::*;
pub use problem::*;
pub use question::*;
pub use queue::*;
pub use session::*;
pub use sessions::*;
pub use state::*;
pub use task::*;
pub use team::*;
pub use text::*;
pub use todo::*;
pub use tools::*;
pub use transfer::*;
pub use turn::*;
