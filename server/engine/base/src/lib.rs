//! Identifiers, paths and small values that every layer shares, atomic file writes, and temporary folders.
//!
//! Must not know: models, tools, sessions, settings, editors.
//! Used by: acp, net, command, journal, process, model, text, permission, providers, config, tool, record,
//! telemetry, tools, mcp, languages, agent, engine.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

#[cfg(unix)]
pub mod anchor;
#[cfg(not(unix))]
#[path = "anchor/by_name.rs"]
pub mod anchor;
pub mod atomic;
#[cfg(unix)]
pub mod beneath;
pub mod blocking;
pub mod broker;
pub mod call;
pub mod capacity;
pub mod change_probe;
pub mod command_shell;
pub mod effort;
pub mod encoding;
pub mod entry;
pub mod file_moves;
pub mod file_turn;
pub mod file_uri;
pub mod folder_watch;
pub mod host_name;
pub mod identity;
pub mod ids;
pub mod mask;
pub mod mode;
pub mod page;
pub mod path_style;
pub mod paths;
pub mod powershell;
pub mod private;
pub mod proposed;
pub mod question;
pub mod real_folders;
pub mod regular;
pub mod reminder;
pub mod scratch;
pub mod secret;
pub mod secret_places;
pub mod spelling;
pub mod steering;
pub mod task;
pub mod team;
pub mod todo;
pub mod variables;
pub mod vcs;
pub mod watch;
pub mod windows_names;

#[cfg(test)]
extern crate self as kode_base;
#[cfg(test)]
#[path = "../../testing/src/folding.rs"]
pub mod folding;

pub use blocking::blocking;
pub use reminder::reminder;
