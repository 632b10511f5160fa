//! The list of what there is to do, which the model keeps and the user watches.
//!
//! Rule: at most [`MAX_TODOS`] entries and at most one in progress; a list is replaced as a whole or not at all.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// The most entries of a list.
pub const MAX_TODOS: usize = 20;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Todo {
    /// The task, for example `Run the tests`.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
    /// The same while it is being done, for example `Running the tests`.
    pub active_form: String,
}

/// How far a thing to do is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Being done now.
    InProgress,
    /// Done.
    Completed,
}

/// How many entries of a list are how far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TodoCounts {
    /// All of them.
    pub total: usize,
    /// Not begun.
    pub pending: usize,
    /// Being done now.
    pub in_progress: usize,
    /// Done.
    pub completed: usize,
}

/// Why the model is reminded of its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TodoReminderReason {
    /// The conversation begins and there is no list.
    Initial,
    /// The list was not written for a while.
    Stale,
    /// The list has changed.
    Changed,
}

impl TodoCounts {
    /// Counts a list.
    #[must_use]
    pub fn of(todos: &[Todo]) -> Self {
        let count = |status| todos.iter().filter(|todo| todo.status == status).count();
        Self {
            total: todos.len(),
            pending: count(TodoStatus::Pending),
            in_progress: count(TodoStatus::InProgress),
            completed: count(TodoStatus::Completed),
        }
    }

    /// Whether anything is left to do.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.completed < self.total
    }
}

/// The list as people and the model read it, with the number of completed entries.
#[must_use]
pub fn render(todos: &[Todo]) -> String {
    if todos.is_empty() {
        return "The todo list is empty.".to_owned();
    }
    let mut text = String::new();
    for todo in todos {
        let _ = match todo.status {
            TodoStatus::Pending => writeln!(text, "[ ] {}", todo.content),
            TodoStatus::InProgress => writeln!(text, "[>] {} ({})", todo.content, todo.active_form),
            TodoStatus::Completed => writeln!(text, "[x] {}", todo.content),
        };
    }
    let counts = TodoCounts::of(todos);
    let _ = write!(text, "({} of {} done)", counts.completed, counts.total);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_with_its_marks_and_the_number_done() {
        let todo = |content: &str, status| Todo {
            content: content.into(),
            status,
            active_form: format!("{content}ing"),
        };
        let todos = [
            todo("read", TodoStatus::Completed),
            todo("edit", TodoStatus::InProgress),
            todo("test", TodoStatus::Pending),
        ];
        assert_eq!(render(&todos), "[x] read\n[>] edit (editing)\n[ ] test\n(1 of 3 done)");
        assert!(TodoCounts::of(&todos).is_open() && !TodoCounts::of(&todos[..1]).is_open());
    }
}
