//! MCP servers as settings and front matter declare them.
//!
//! Rule: parsing only; nothing is started or reached.

pub mod config;
pub mod fault;
pub mod file_servers;
pub mod names;
