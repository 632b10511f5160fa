//! kode-ls: a coding agent that is a language server. This crate translates between LSP and the engine.
//!
//! Rule: nothing but frames is written to stdout.
//!
//! Must not know: how a tool or a model works.
//! Used by: no crate of the product.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

mod acp;
pub mod agent;
mod answers;
pub mod backend;
pub mod cli;
pub mod client;
mod client_tools;
pub mod connection;
pub mod convert;
pub mod display;
pub mod documents;
pub mod handlers;
pub mod home;
pub mod host;
pub mod lifecycle;
pub mod logging;
pub mod lsp;
#[cfg(unix)]
mod pairing;
pub mod plain;
mod policies;
mod processes;
mod runtime;
pub mod server;
mod setup;
mod signals;
mod telemetry;
pub mod transport;
mod wrap;
mod wrapped;

#[cfg(test)]
mod testing;
