//! KillShell: ends a background command.
//!
//! Rule: it ends only what this session has started, with everything that belongs to it, and is done when that is gone.

use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::bash_output::{describe, one_id, shown, unknown};
use kode_base::call::{ToolError, ToolKind};
use kode_tool::{CallAction, CallContext, CallPlan, Tool, ToolFacts, ToolOutput};

/// The arguments of KillShell.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KillShellInput {
    /// The id of the background command, for example `bash_1`.
    #[serde(default)]
    pub shell_id: Option<String>,
    /// The same as `shell_id`.
    #[serde(default)]
    pub task_id: Option<String>,
}

/// Ends a background command.
#[derive(Clone, Copy, Debug)]
pub struct KillShell;

#[async_trait]
impl Tool for KillShell {
    type Input = KillShellInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "KillShell",
            // It takes back what the user has allowed, and nothing else.
            kind: ToolKind::ReadOnly,
            concurrency_safe: false,
            description: "Ends a command that Bash runs in the background, with everything it has started, and tells \
                what it wrote since the last look. It is asked to end first, and killed when it does not.",
        }
    }

    fn timeout(&self) -> Option<Duration> {
        None
    }

    async fn plan(&self, input: KillShellInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let id = one_id("KillShell", &[("shell_id", &input.shell_id), ("task_id", &input.task_id)])?;
        let title = format!("End {}", describe(context.shell.tasks(), id));
        let id = id.to_owned();
        let run = move |context: CallContext| kill(id, context).boxed();
        Ok(CallPlan { title, touches: Vec::new(), action: CallAction::Run(Box::new(run)) })
    }
}

async fn kill(id: String, context: CallContext) -> Result<ToolOutput, ToolError> {
    let tasks = context.shell.tasks();
    let task = tasks.find(&id).ok_or_else(|| unknown(tasks, &id))?;
    let was_running = task.kill().await;
    let mut output = shown(&task, tasks.look(&task), None);
    if !was_running {
        output.model_text.insert_str(0, "There was nothing to end. ");
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bash::Bash;
    use crate::testing::Fixture;
    use kode_base::call::ToolErrorKind;

    #[tokio::test]
    async fn a_killed_command_gives_its_last_output_and_is_named_in_the_title() {
        let fixture = Fixture::new();
        let context = fixture.context();
        let command = "trap 'echo cleaned; exit 0' TERM; echo begun; while :; do :; done";
        let input = json!({ "command": command, "run_in_background": true });
        fixture.run_in(context.clone(), Bash, input).await.unwrap();
        context.shell.tasks().find("bash_1").unwrap().news().await;
        let kill = json!({ "shell_id": "bash_1" });
        let input = KillShellInput { shell_id: Some("bash_1".to_owned()), task_id: None };
        let plan = KillShell.plan(input, &context).await.unwrap();
        assert!(plan.title.starts_with("End bash_1 (`trap ") && plan.touches.is_empty(), "{plan:?}");
        let found = fixture.run_in(context.clone(), KillShell, kill.clone()).await.unwrap();
        assert!(
            found.model_text.contains(" was killed, after ")
                && found.model_text.ends_with("\nbegun\ncleaned"),
            "{found:?}"
        );
        assert!(context.shell.tasks().running().is_empty());
        let again = fixture.run_in(context, KillShell, kill).await.unwrap();
        assert!(again.model_text.starts_with("There was nothing to end."), "{again:?}");
    }

    #[tokio::test]
    async fn what_names_no_command_is_refused() {
        let fixture = Fixture::new();
        let error = fixture.plan(KillShell, json!({})).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::InvalidInput);
        assert!(
            error.message.contains("`shell_id` is missing") && error.hint.contains("bash_1"),
            "{error:?}"
        );
        let error = fixture.run(KillShell, json!({ "task_id": "bash_9" })).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::NotFound);
        assert!(error.message.contains("`bash_9`"), "{error:?}");
    }
}
