//! Child processes, the sandbox around them, git, and worktrees.
//!
//! Layer: knows nothing of models, settings, sessions. Used by settings, tools, MCP servers and sessions.

pub mod git;
pub mod outcome;
pub mod plain_git;
pub mod sandbox;
pub mod shell;
pub mod worktree;
