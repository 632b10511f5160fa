//! The names of the tools that the loop itself refers to.
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
/// Brings further tools where the context window is small.
pub const TOOL_SEARCH: &str = "ToolSearch";
/// The tools that all work needs, which every context window has room for.
pub const ESSENTIAL: [&str; 6] = ["Bash", "Edit", "Glob", GREP, READ, "Write"];
/// Keeps the todo list.
pub const TODO_WRITE: &str = "TodoWrite";
