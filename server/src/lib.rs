//! kode-ls: a coding agent that is a language server.
//!
//! Rule: this crate translates between LSP and the engine and knows neither how a tool nor how a model works.
//! Nothing but frames is written to stdout.

pub mod agent;
pub mod backend;
pub mod cli;
pub mod client;
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
pub mod plain;
mod policies;
pub mod server;
mod setup;
mod signals;
pub mod transport;

#[cfg(test)]
mod testing;
