//! Export of sessions to OpenTelemetry collectors: turns, model calls, tools and prompts as spans, and metrics about them.
//!
//! Rule: it is off unless a collector is named; a session never waits for it, and no content leaves unless the user's own
//! settings ask for that.
//!
//! Must not know: how sessions work, tools, providers.
//! Used by: engine.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

mod client;
mod export;
mod instruments;
mod losses;
pub mod names;
mod options;
mod spans;

pub use export::Telemetry;
pub use options::{TelemetryError, TelemetryOptions};
