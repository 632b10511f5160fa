//! Child processes, the sandbox around them, git, and worktrees.
//!
//! Must not know: models, settings, sessions.
//! Used by: acp, providers, config, tool, record, tools, mcp, languages, agent, engine.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

pub mod git;
pub mod outcome;
pub mod plain_git;
pub mod programs;
pub mod sandbox;
pub mod shell;
pub mod worktree;
