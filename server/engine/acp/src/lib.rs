//! The Agent Client Protocol: messages on lines, requests that wait for their answers, and the client of other agents.
//!
//! Rule: every line, queue and wait is bounded, and the other side can break nothing but its own connection.
//!
//! Must not know: sessions, the loop.
//! Used by: engine.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

pub mod guest;
pub mod lines;
pub mod message;
pub mod peer;
