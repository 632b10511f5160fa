//! The data that a session stores and publishes: journal records, events and transcript items.
//!
//! Must not know: how sessions work.
//! Used by: agent, engine, telemetry.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

pub mod background;
pub mod compaction;
pub mod context;
pub mod draft;
pub mod event;
pub mod goal;
pub mod hook;
pub mod intent;
pub mod observer;
pub mod options;
pub mod phases;
pub mod prompt;
pub mod queue;
pub mod record;
pub mod reminder;
pub mod resolution;
pub mod team;
pub mod title;
pub mod tokens;
