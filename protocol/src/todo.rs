//! The todo list that the model keeps of its work.
//!
//! Rule: always the whole list, in the model's order; clients show it and never change it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::SessionId;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Todo {
    /// The task.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
    /// The same while it is being done.
    pub active_form: String,
}

/// How far a thing to do is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Being done now.
    InProgress,
    /// Done.
    Completed,
}

/// How many entries of the list are how far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TodoCounts {
    /// All of them.
    pub total: u64,
    /// Not begun.
    pub pending: u64,
    /// Being done now.
    pub in_progress: u64,
    /// Done.
    pub completed: u64,
}

/// Why the model was reminded of its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TodoReminderReason {
    /// The conversation begins and there is no list.
    Initial,
    /// The list was not written for a while.
    Stale,
    /// The list has changed.
    Changed,
}

/// The session of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListTodosParams {
    /// The session.
    pub session_id: SessionId,
}

/// A list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListTodosResult {
    /// The list in the model's order; empty if absent.
    pub todos: Vec<Todo>,
    /// How many of them are how far.
    pub counts: TodoCounts,
}
