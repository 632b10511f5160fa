//! One adapter for each wire format, and the scripted model that speaks all of them.
//!
//! Must not know: settings, tools, sessions.
//! Used by: engine.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

pub mod anthropic;
pub mod arguments;
mod aws;
pub mod call_ids;
pub mod chat;
pub mod exchange;
pub mod failure;
pub mod gemini;
pub mod keyed;
mod limits;
pub mod ollama;
pub mod published;
pub mod recorded;
pub mod responses;
pub mod scripted;
pub mod textual;
mod toolless;
pub mod unseen;
mod written;

#[cfg(test)]
extern crate self as kode_providers;
pub mod adapter;
pub mod connector;
pub mod discovery;
#[cfg(test)]
mod every_adapter;
#[cfg(test)]
#[path = "../../testing/src/validity.rs"]
pub mod validity;
