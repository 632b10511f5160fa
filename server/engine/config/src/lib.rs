//! Configuration by users: settings, plugins, agents, skills, commands, hooks, styles and instructions.
//!
//! Must not know: live sessions, running tools.
//! Used by: tool, record, tools, mcp, languages, agent, engine.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

pub mod agents;
pub mod budget;
pub mod command;
pub mod extension;
pub mod hooks;
pub mod ignore_files;
pub mod in_force;
pub mod language_servers;
pub mod mcp;
pub mod memory;
pub mod plugin;
pub mod policies;
pub mod policy;
pub mod preferences;
pub mod sandbox_profile;
pub mod settings;
pub mod style;
