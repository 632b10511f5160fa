//! Child processes, the sandbox around them, git, and worktrees.
//!
//! Must not know: models, settings, sessions.
//! Used by: acp, providers, config, tool, record, tools, mcp, languages, agent, engine.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

pub mod git;
pub mod git_obeys;
mod interpreter;
#[cfg(unix)]
pub mod login_path;
pub mod outcome;
pub mod pipes;
pub mod plain_git;
mod process_group;
pub mod programs;
pub mod sandbox;
pub mod shell;
pub mod worktree;
