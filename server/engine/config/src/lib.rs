//! What users bring: settings, plugins, agents, skills, commands, hooks, styles and instructions.
//!
//! Layer: knows nothing of live sessions or tools that run. Used by tools, MCP and sessions.

pub mod agents;
pub mod budget;
pub mod command;
pub mod extension;
pub mod hooks;
pub mod in_force;
pub mod mcp;
pub mod memory;
pub mod plugin;
pub mod policies;
pub mod policy;
pub mod preferences;
pub mod settings;
pub mod style;
