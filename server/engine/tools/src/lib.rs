//! The built-in tools, one in each file.
//!
//! Must not know: sessions, the loop.
//! Used by: engine.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

pub mod apply_patch;
pub mod ask_user_question;
#[cfg(test)]
pub mod bad_input;
pub mod bash;
pub mod bash_output;
pub mod built_in;
pub mod call_hierarchy;
pub mod code_actions;
mod command_notes;
pub mod definition;
pub mod diagnostics;
pub mod edit;
pub mod format;
pub mod glob;
pub mod grep;
pub mod kill_shell;
pub mod listing;
pub mod ls;
pub mod lsp;
pub mod multi_edit;
pub mod notebook_edit;
pub mod plan_mode;
pub mod powershell;
pub mod read;
pub mod references;
pub mod rename_symbol;
pub mod replacement;
#[cfg(test)]
pub mod rig;
pub mod send_message;
pub mod skill;
pub mod slash_command;
mod symbol;
pub mod symbols;
pub mod task;
pub mod team_tasks;
#[cfg(test)]
pub mod testing;
pub mod think;
pub mod todo_write;
pub mod tool_search;
pub mod wait_for_message;
pub mod walk;
pub mod web_fetch;
pub mod web_search;
pub mod write;
