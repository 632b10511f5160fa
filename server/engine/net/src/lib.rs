//! HTTP clients, web pages as text, and web searches.
//!
//! Rule: what comes from the web is data of bounded size, and no page reaches what lies behind this machine's
//! network: only checked addresses are connected to.
//!
//! Must not know: models, tools, settings.
//! Used by: process, model, providers, config, telemetry, tools, mcp, agent, engine.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

pub mod address;
pub mod aws;
mod body;
mod cache;
pub mod client;
mod convert;
mod error;
mod markdown;
pub mod search;
#[cfg(test)]
extern crate self as kode_net;
pub mod http;
pub mod page;
pub mod pdf;
pub mod sse;
#[cfg(test)]
#[path = "../../testing/src/web.rs"]
pub mod testing;

pub use client::{FetchOutcome, WebClient, WebOptions};
pub use error::WebError;
pub use page::WebPage;
