//! The engine: the one crate that knows tools, MCP and providers beside the loop. A front end depends on it alone.
//!
//! Rule: [`text::host::Host`] is the one door to the editor that holds the user's text.
//!
//! Must not know: LSP, the wire protocol, which editor there is.
//! Used by: server.
//!
//! The layers, from the ground up:
//!
//! 1. [`base`], [`net`], [`command`], [`journal`]
//! 2. [`process`], [`model`], [`text`], [`permission`]
//! 3. [`providers`], [`config`]
//! 4. [`tool`], [`record`]
//! 5. [`telemetry`], [`tools`], [`mcp`], [`languages`], [`acp`], [`agent`]

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

pub use kode_acp as acp;
pub use kode_agent as agent;
pub use kode_base as base;
pub use kode_command as command;
pub use kode_config as config;
pub use kode_journal as journal;
pub use kode_languages as languages;
pub use kode_mcp as mcp;
pub use kode_model as model;
pub use kode_net as net;
pub use kode_permission as permission;
pub use kode_process as process;
pub use kode_providers as providers;
pub use kode_record as record;
pub use kode_telemetry as telemetry;
pub use kode_text as text;
pub use kode_tool as tool;
pub use kode_tools as tools;
