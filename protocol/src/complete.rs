//! Completion in the text of a prompt: files, folders and more after `@`, commands and skills after `/`.
//!
//! Rule: whole texts are given and not parts of words; the chosen one replaces the named range.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::SessionId;

/// Where in a prompt something is to be completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompleteParams {
    /// The session that the prompt is for; the folders of the workspace count when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The text of the prompt so far.
    pub text: String,
    /// How much of it precedes the cursor, counted as the characters of positions are.
    pub cursor: u32,
}

/// The completions at the cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompleteResult {
    /// The beginning of the replaced range; it ends at the cursor. Counted as the cursor is.
    pub start: u32,
    /// The choices, best first; at most 50.
    pub items: Vec<CompletionItem>,
}

/// Something to choose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompletionItem {
    /// Its kind.
    pub kind: CompletionKind,
    /// As it is shown.
    pub label: String,
    /// The text that replaces the range.
    pub insert_text: String,
    /// Further details; may be empty.
    pub detail: String,
}

/// The kinds of what can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CompletionKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// Diagnostics.
    Diagnostics,
    /// The changes in the repository.
    Diff,
    /// Another conversation.
    Session,
    /// A command.
    Command,
    /// A skill.
    Skill,
}
