//! TeamTasks: shows and changes the list of tasks that a team shares.
//!
//! Rule: only the form of the call is checked here; the list is changed by the loop, one call after the other.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use kode_base::call::{ToolError, ToolErrorKind, ToolKind};
use kode_tool::names::TEAM_TASKS;
use kode_tool::team::{TaskAction, TeamAction};
use kode_tool::{CallAction, CallContext, CallPlan, OfferContext, Tool, ToolFacts};

/// The arguments of TeamTasks.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TeamTasksInput {
    /// The action: `list` shows the list; `add` adds a task (`title`, and `blockedBy` if it comes after others); `claim`,
    /// `complete` and `release` are about a `task`; `block` replaces the tasks before a `task` (`blockedBy`).
    pub action: TaskActionInput,
    /// The number of the task.
    #[serde(default)]
    pub task: Option<u32>,
    /// Its topic, in one line.
    #[serde(default)]
    pub title: Option<String>,
    /// The numbers of the tasks that have to be completed before.
    #[serde(default, rename = "blockedBy")]
    pub blocked_by: Option<Vec<u32>>,
}

/// An action on the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskActionInput {
    /// Shows it.
    List,
    /// Adds a task.
    Add,
    /// Takes a task: no other agent works on it.
    Claim,
    /// Completes a task that you have claimed.
    Complete,
    /// Gives a task that you have claimed back.
    Release,
    /// Replaces the tasks before a task.
    Block,
}

/// Shows and changes the shared list.
#[derive(Clone, Copy, Debug)]
pub struct TeamTasks;

#[async_trait]
impl Tool for TeamTasks {
    type Input = TeamTasksInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: TEAM_TASKS,
            // It reaches nothing outside the session.
            kind: ToolKind::ReadOnly,
            concurrency_safe: false,
            description: "Shows and changes the list of tasks that the main conversation and the sub-agents in the \
                background share. Claim a task before you work on it: only one agent gets it. Complete it when it is \
                done, which frees those that it blocks. Tasks of an agent that ends are free again.",
        }
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        offer.in_team.then(|| self.facts().description.to_owned())
    }

    async fn plan(&self, input: TeamTasksInput, _context: &CallContext) -> Result<CallPlan, ToolError> {
        let missing = |field: &str, action: &str| {
            let message = format!("`{field}` is missing: {action} needs it.");
            ToolError::new(ToolErrorKind::InvalidInput, message, "`list` shows the tasks with their numbers.")
        };
        let task = |action: &str| input.task.ok_or_else(|| missing("task", action));
        let blocked_by = input.blocked_by.clone();
        let (title, action) = match input.action {
            TaskActionInput::List => ("Show the shared tasks".to_owned(), TaskAction::List),
            TaskActionInput::Add => {
                let title = input.title.clone().ok_or_else(|| missing("title", "`add`"))?;
                let shown = title.split_whitespace().collect::<Vec<_>>().join(" ");
                let blocked_by = blocked_by.unwrap_or_default();
                (format!("Add a shared task: {shown}"), TaskAction::Add { title, blocked_by })
            }
            TaskActionInput::Claim => {
                let task = task("`claim`")?;
                (format!("Claim task {task}"), TaskAction::Claim(task))
            }
            TaskActionInput::Complete => {
                let task = task("`complete`")?;
                (format!("Complete task {task}"), TaskAction::Complete(task))
            }
            TaskActionInput::Release => {
                let task = task("`release`")?;
                (format!("Release task {task}"), TaskAction::Release(task))
            }
            TaskActionInput::Block => {
                let task = task("`block`")?;
                let blocked_by = blocked_by.ok_or_else(|| missing("blockedBy", "`block`"))?;
                (format!("Change the tasks before task {task}"), TaskAction::Block { task, blocked_by })
            }
        };
        Ok(CallPlan { title, touches: Vec::new(), action: CallAction::Team(TeamAction::Tasks(action)) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::Fixture;

    #[tokio::test]
    async fn an_action_names_what_it_needs() {
        let fixture = Fixture::new();
        for (input, expected) in [
            (json!({ "action": "list" }), Ok(TaskAction::List)),
            (
                json!({ "action": "add", "title": "a", "blockedBy": [1] }),
                Ok(TaskAction::Add { title: "a".to_owned(), blocked_by: vec![1] }),
            ),
            (json!({ "action": "claim", "task": 2 }), Ok(TaskAction::Claim(2))),
            (
                json!({ "action": "block", "task": 2, "blockedBy": [] }),
                Ok(TaskAction::Block { task: 2, blocked_by: vec![] }),
            ),
            (json!({ "action": "add" }), Err("`title` is missing")),
            (json!({ "action": "release" }), Err("`task` is missing")),
            (json!({ "action": "block", "task": 2 }), Err("`blockedBy` is missing")),
        ] {
            match (fixture.plan(TeamTasks, input.clone()).await, expected) {
                (Ok(plan), Ok(expected)) => match plan.action {
                    CallAction::Team(TeamAction::Tasks(action)) => assert_eq!(action, expected),
                    _ => panic!("it is about the list"),
                },
                (Err(error), Err(expected)) => assert!(error.message.starts_with(expected), "{error}"),
                (planned, expected) => panic!("{input}: {planned:?} {expected:?}"),
            }
        }
    }
}
