//! TodoWrite: the model's list of what there is to do, written as a whole.
//!
//! Rule: a list that breaks the limits is refused with the limit, and the list before stays.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use kode_base::call::{ToolError, ToolErrorKind, ToolKind};
use kode_base::todo::{MAX_TODOS, Todo, TodoStatus};
use kode_tool::names::TODO_WRITE;
use kode_tool::{CallAction, CallContext, CallPlan, Tool, ToolFacts};

/// The arguments of TodoWrite.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TodoWriteInput {
    /// The whole list, at most 20 entries; it replaces the one before. At most one entry is in progress.
    pub todos: Vec<TodoInput>,
}

/// One thing to do.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TodoInput {
    /// What is to be done, for example `Run the tests`.
    pub content: String,
    /// How far it is.
    pub status: StatusInput,
    /// The same while it is being done, for example `Running the tests`. Like `content` if left out.
    #[serde(default, rename = "activeForm")]
    pub active_form: Option<String>,
}

/// How far a thing to do is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusInput {
    /// Not begun.
    Pending,
    /// Being done now.
    InProgress,
    /// Done.
    Completed,
}

/// Writes the list.
#[derive(Clone, Copy, Debug)]
pub struct TodoWrite;

#[async_trait]
impl Tool for TodoWrite {
    type Input = TodoWriteInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: TODO_WRITE,
            kind: ToolKind::ReadOnly,
            concurrency_safe: false,
            description: "Writes the list of what there is to do, which the user watches. Use it for work of three or \
                more steps: write the list before you begin, mark one entry as in_progress before you work on it and \
                as completed right after, and add what turns up. Mark nothing as completed that does not work yet. Not \
                for single steps or plain questions.",
        }
    }

    async fn plan(&self, input: TodoWriteInput, _context: &CallContext) -> Result<CallPlan, ToolError> {
        let todos = todos(input)?;
        let title = format!("Write the todo list ({} entries)", todos.len());
        Ok(CallPlan { title, touches: Vec::new(), action: CallAction::SetTodos(todos) })
    }
}

fn todos(input: TodoWriteInput) -> Result<Vec<Todo>, ToolError> {
    let wrong = |reason: String, hint: &str| {
        ToolError::new(ToolErrorKind::InvalidInput, format!("{TODO_WRITE}: {reason}."), hint)
    };
    let count = input.todos.len();
    if count > MAX_TODOS {
        let reason = format!("`todos` has {count} entries; there may be at most {MAX_TODOS}");
        return Err(wrong(reason, "Join related items, or leave out completed ones."));
    }
    if let Some(empty) = input.todos.iter().position(|todo| todo.content.trim().is_empty()) {
        let reason = format!("`todos[{empty}].content` is empty");
        return Err(wrong(reason, "Name the task, and write the list again."));
    }
    let in_progress = input.todos.iter().filter(|todo| todo.status == StatusInput::InProgress).count();
    if in_progress > 1 {
        let reason = format!("{in_progress} entries of `todos` have the `status` in_progress; one may");
        return Err(wrong(reason, "Leave the one you work on now in progress, and write the list again."));
    }
    let todo = |todo: TodoInput| {
        let active_form = todo.active_form.filter(|text| !text.trim().is_empty());
        Todo {
            active_form: active_form.unwrap_or_else(|| todo.content.clone()),
            content: todo.content,
            status: match todo.status {
                StatusInput::Pending => TodoStatus::Pending,
                StatusInput::InProgress => TodoStatus::InProgress,
                StatusInput::Completed => TodoStatus::Completed,
            },
        }
    };
    Ok(input.todos.into_iter().map(todo).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::built_in::built_in;
    use crate::testing::Fixture;

    async fn plan(input: Value) -> Result<Vec<Todo>, ToolError> {
        let tool = built_in().find("todo_write").unwrap();
        match tool.plan(input, &Fixture::new().context()).await?.action {
            CallAction::SetTodos(todos) => Ok(todos),
            _ => panic!("it writes the list"),
        }
    }

    fn entries(count: usize, status: &str) -> Value {
        let entry = json!({ "content": "a", "status": status, "activeForm": "b" });
        json!({ "todos": vec![entry; count] })
    }

    #[tokio::test]
    async fn a_list_is_read_in_the_forms_of_all_dialects() {
        let expected =
            [Todo { content: "Run".into(), status: TodoStatus::InProgress, active_form: "Running".into() }];
        for input in [
            json!({ "todos": [{ "content": "Run", "status": "in_progress", "activeForm": "Running" }] }),
            json!({ "items": [{ "title": "Run", "status": "in_progress", "active_form": "Running" }] }),
        ] {
            assert_eq!(plan(input.clone()).await.unwrap(), expected, "{input}");
        }
        let bare = plan(json!({ "todos": [{ "content": "Run", "status": "pending" }] })).await.unwrap();
        assert_eq!(bare[0].active_form, "Run");
        assert_eq!(plan(entries(20, "pending")).await.unwrap().len(), 20);
    }

    #[tokio::test]
    async fn a_list_beyond_the_limits_is_refused_with_field_reason_and_next_step() {
        for (input, expected) in [
            (entries(21, "pending"), "`todos` has 21 entries; there may be at most 20"),
            (entries(2, "in_progress"), "2 entries of `todos` have the `status` in_progress"),
            (json!({ "todos": [{ "content": " ", "status": "pending" }] }), "`todos[0].content` is empty"),
            (json!({ "todos": [{ "content": "a" }] }), "`todos[0]` lacks the field `status`"),
            (json!({ "todos": [{ "content": "a", "status": "later" }] }), "later"),
        ] {
            let error = plan(input.clone()).await.unwrap_err();
            assert!(error.message.contains(expected) && !error.hint.is_empty(), "{input}: {error}");
        }
    }
}
