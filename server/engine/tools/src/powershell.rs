//! PowerShell: runs a command in the language of PowerShell.
//!
//! Rule: as Bash, whose runner, limits and results it has. Its parser is asked how the command reads before anything is judged; without
//! its answer the user is asked.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::bash::{BashInput, check, planned};
use kode_base::call::{CommandLanguage, ToolError, ToolErrorKind, ToolKind};
use kode_base::command_shell::CommandShell;
use kode_process::shell::powershell::reading;
use kode_tool::{CallContext, CallPlan, Tool, ToolFacts};

/// The arguments of PowerShell.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PowerShellInput {
    /// The command, in the language of PowerShell; it may have several lines.
    pub command: String,
    /// What the command does, in five to ten words, for the user.
    #[serde(default)]
    pub description: Option<String>,
    /// How many milliseconds the command may take: 120000 if left out, at most 600000.
    #[serde(default)]
    pub timeout: Option<u64>,
    /// Whether to run outside the sandbox, where there is one: the user is asked.
    #[serde(default, rename = "dangerouslyDisableSandbox")]
    pub outside_sandbox: bool,
    /// Whether to go on at once while the command runs: for servers, watchers and long tests. BashOutput tells what it
    /// writes, KillShell ends it.
    #[serde(default)]
    pub run_in_background: bool,
}

/// Runs a command with PowerShell.
#[derive(Clone, Copy, Debug)]
pub struct PowerShell;

#[async_trait]
impl Tool for PowerShell {
    type Input = PowerShellInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: CommandShell::PowerShell.tool(),
            kind: ToolKind::Execute,
            concurrency_safe: false,
            description: "Runs a command with PowerShell and gives its output, errors included, as Bash does with bash. The working \
                directory carries over to the next command of either shell as long as it stays in the workspace; variables and \
                functions do not. There is no terminal and no standard input, and no profile is loaded. The exit code is 0 when the \
                last statement succeeded, otherwise that of the last program that failed, or 1. Plain commands with constant \
                arguments are understood best: one that only looks may then run without a question. With `run_in_background` the \
                command runs on until it ends, KillShell ends it, or the session does. Of long output the middle is cut out and the \
                whole kept in a file that Read can read. Use Read, Edit, Write, Glob and Grep to work with files: they also know \
                text in the editor that is not saved yet.",
        }
    }

    fn timeout(&self) -> Option<Duration> {
        None
    }

    async fn plan(&self, input: PowerShellInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let PowerShellInput { command, description, timeout, outside_sandbox, run_in_background } = input;
        let input = BashInput { command, description, timeout, outside_sandbox, run_in_background };
        check(&input, &|name| context.shell.variable(name))?;
        let Some(reading) = context.cancel.run_until_cancelled(reading(&input.command)).await else {
            return Err(ToolError::new(
                ToolErrorKind::Cancelled,
                "The call was cancelled before the command was judged.",
                "Do not repeat it unless the user asks for it.",
            ));
        };
        planned(CommandLanguage::PowerShell(Arc::new(reading)), input, context)
    }
}
