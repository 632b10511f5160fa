//! The names of the tools that the loop itself speaks of.
//!
//! Rule: the loop knows tools by name alone; what they do is behind the registry.

/// Lists the problems that language servers report.
pub const DIAGNOSTICS: &str = "Diagnostics";
/// Searches files.
pub const GREP: &str = "Grep";
/// Lists a folder.
pub const LS: &str = "LS";
/// Shows a file.
pub const READ: &str = "Read";
/// Takes a thought.
pub const THINK: &str = "Think";
/// Keeps the todo list.
pub const TODO_WRITE: &str = "TodoWrite";
