//! kode-ls: a coding agent that is a language server.
//!
//! Rule: this crate translates between LSP and the engine and knows neither how a tool nor how a model works.
//! Nothing but frames is written to stdout.

pub mod cli;
pub mod server;
pub mod transport;
pub mod lifecycle;
pub mod backend;
pub mod client;
pub mod documents;
pub mod lsp;
pub mod host;
pub mod agent;
pub mod handlers;
pub mod follow;
pub mod plain;
pub mod convert;
pub mod display;
pub mod home;
pub mod logging;

#[cfg(test)]
mod testing;
