//! Sessions and the agent loop.
//!
//! Layer: knows nothing of tools, MCP connections or providers by name. Used by the engine.

pub mod context;
pub mod engine;
pub mod explain;
pub mod hooks;
pub mod input;
pub mod session;
pub mod sessions;
pub mod transfer;
pub mod turn;
