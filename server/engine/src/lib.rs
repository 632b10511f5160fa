//! The agent behind kode-ls: models, loop, tools, permissions, workspace text, edits and sessions.
//!
//! Rule: this crate knows neither LSP nor the wire protocol nor which editor there is. Its one door out to
//! whatever holds the user's text is [`host::Host`]; processes are spawned only by [`shell`] and its [`sandbox`], the
//! network is reached only by [`model`], [`mcp`], [`web`], [`hooks`] and the sandbox's proxy, and files are written only by
//! [`workspace`], [`journal`], [`sessions`], [`transfer`], [`settings`], [`plugin`] and, for tokens and what tools said,
//! [`mcp`], and in the session's own folders [`hooks`].

pub mod agents;
pub mod broker;
pub mod command;
pub mod context;
pub mod edit;
pub mod engine;
pub mod event;
pub mod extension;
mod folder_watch;
mod git;
pub mod hooks;
pub mod host;
pub mod ids;
pub mod input;
pub mod journal;
pub mod mcp;
pub mod memory;
pub mod model;
pub mod paths;
pub mod permission;
pub mod plugin;
pub mod preferences;
pub mod question;
mod regular;
pub mod sandbox;
pub mod session;
pub mod sessions;
pub mod settings;
pub mod shell;
pub mod style;
pub mod todo;
pub mod tools;
pub mod transfer;
pub mod turn;
pub mod variables;
pub mod web;
pub mod workspace;
pub mod worktree;
