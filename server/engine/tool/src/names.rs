//! The names of the tools that the loop itself refers to.
//!
//! Rule: the loop knows tools by name alone; what they do is behind the registry.

/// Lists the problems that language servers report.
pub const DIAGNOSTICS: &str = "Diagnostics";
/// Searches files.
pub const GREP: &str = "Grep";
/// Whatever a guest does itself.
pub const GUEST: &str = "Guest";
/// Lists a folder.
pub const LS: &str = "LS";
/// Shows a file.
pub const READ: &str = "Read";
/// Takes a thought.
pub const THINK: &str = "Think";
/// Brings further tools where the context window is small.
pub const TOOL_SEARCH: &str = "ToolSearch";
/// The tools that all work needs, which every context window has room for.
pub const ESSENTIAL: [&str; 7] = ["Bash", "Edit", "Glob", GREP, "PowerShell", READ, "Write"];
/// Keeps the todo list.
pub const TODO_WRITE: &str = "TodoWrite";
/// Sends a message to another agent of the team.
pub const SEND_MESSAGE: &str = "SendMessage";
/// Keeps the list of tasks that a team shares.
pub const TEAM_TASKS: &str = "TeamTasks";
/// Waits for a message of another agent of the team.
pub const WAIT_FOR_MESSAGE: &str = "WaitForMessage";
/// The tools of a team, which a sub-agent in the background has besides those of its type.
pub const OF_TEAM: [&str; 3] = [SEND_MESSAGE, TEAM_TASKS, WAIT_FOR_MESSAGE];
