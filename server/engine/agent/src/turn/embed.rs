//! Commands that no call of the model contains: those in the text of a skill or command, whose output replaces them before
//! the model reads the text, and the check of a goal.
//!
//! Rule: such a command passes the whole pipeline of a Bash call: hooks, rules, the user's answer, the sandbox, the ledger. No
//! transcript contains it, so nothing of it stays open when the server ends.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::turn::pipeline;
use crate::turn::sample::ModelToolCall;
use crate::turn::services::TurnContext;
use kode_base::call::{CommandLanguage, ToolError, ToolErrorKind, ToolKind, Touch};
use kode_base::command_shell::CommandShell;
use kode_base::ids::{CallId, ItemId};
use kode_base::paths::AbsPath;
use kode_permission::equipment::Equipment;
use kode_process::outcome::Exit;
use kode_process::shell::{CommandSpec, powershell};
use kode_tool::{CallAction, CallContext, CallPlan, Tool, ToolFacts, ToolOutput, erased};

/// The most time of one command.
const COMMAND_TIME: Duration = Duration::from_secs(30);

/// The most bytes of one command's output; with more the expansion fails.
const MAX_OUTPUT: usize = 64 << 10;

/// The most characters of a failed command's output in the error.
const MAX_SHOWN: usize = 1_000;

/// The next step for a command that cannot run.
const HINT: &str = "Change the file, or allow the command by a rule or in the file's `allowed-tools`.";

/// The arguments; others that a hook may give have no meaning here.
#[derive(Debug, Deserialize, JsonSchema)]
struct EmbeddedInput {
    command: String,
}

/// A command that no call of the model contains.
struct EmbeddedCommand {
    shell: CommandShell,
    directory: AbsPath,
    use_of: EmbeddedUse,
}

/// The use of a command's output.
#[derive(Clone)]
enum EmbeddedUse {
    /// It takes the command's place in a text of this file.
    Text {
        /// The file, for people.
        place: String,
    },
    /// The command checks something and may take this time: its exit code is the result.
    Check(Duration),
}

/// A check that ran to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CheckRun {
    pub(super) exit: Exit,
    pub(super) output: String,
}

/// Runs a command of the file `place` in a shell and returns its output. Boxed, because it is a call like the one that may have asked
/// for the text.
///
/// # Errors
/// Why there is no output, for people.
pub(crate) fn run<'a>(
    turn: TurnContext<'a>,
    (place, shell, command): (&str, CommandShell, &str),
    equipment: &'a Equipment,
    cancel: &'a CancellationToken,
) -> BoxFuture<'a, Result<String, String>> {
    let call = call_of(turn, shell, command);
    let directory = turn.conversation.workspace().cwd();
    let tool =
        erased(EmbeddedCommand { shell, directory, use_of: EmbeddedUse::Text { place: place.to_owned() } });
    async move {
        let ran = pipeline::run_embedded(turn, &call, tool, equipment, cancel).await;
        ran.map(|output| output.model_text).map_err(|error| error.message.trim_end_matches('.').to_owned())
    }
    .boxed()
}

/// Runs a command that checks something, for at most `limit`. Documents that may be saved are saved before.
///
/// # Errors
/// Why it did not run, for people: rules or the user refused it, or it could not be started.
pub(super) async fn check(
    turn: TurnContext<'_>,
    command: &str,
    equipment: &Equipment,
    limit: Duration,
    cancel: &CancellationToken,
) -> Result<CheckRun, String> {
    let call = call_of(turn, CommandShell::Bash, command);
    let workspace = turn.conversation.workspace();
    let (shell, directory) = (CommandShell::Bash, workspace.cwd());
    let tool = erased(EmbeddedCommand { shell, directory, use_of: EmbeddedUse::Check(limit) });
    tokio::select! {
        _ = workspace.save_before_command() => {}
        () = cancel.cancelled() => {}
    }
    let ran = pipeline::run_embedded(turn, &call, tool, equipment, cancel).await;
    let output = ran.map_err(|error| error.message.trim_end_matches('.').to_owned())?;
    let exit = output.structured.as_ref().and_then(exit_of);
    let exit = exit.ok_or_else(|| "a hook replaced the result of the check".to_owned())?;
    Ok(CheckRun { exit, output: output.model_text })
}

/// How a check ended, as hooks of Bash get it.
fn exit_json(exit: Exit) -> Value {
    let (code, signal) = match exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (None, Some(signal)),
        Exit::TimedOut | Exit::Cancelled => (None, None),
    };
    json!({ "exitCode": code, "signal": signal, "timedOut": exit == Exit::TimedOut })
}

/// The exit that [`exit_json`] has written.
fn exit_of(json: &Value) -> Option<Exit> {
    let number = |name: &str| json.get(name)?.as_i64().and_then(|number| i32::try_from(number).ok());
    let is_timed_out = json.get("timedOut")?.as_bool()?;
    let ended = number("exitCode").map(Exit::Code).or_else(|| number("signal").map(Exit::Signal));
    Some(ended.unwrap_or(if is_timed_out { Exit::TimedOut } else { Exit::Cancelled }))
}

fn call_of(turn: TurnContext<'_>, shell: CommandShell, command: &str) -> ModelToolCall {
    ModelToolCall {
        turn: turn.id.clone(),
        id: CallId::generate(),
        item: ItemId::generate(),
        name: shell.tool().to_owned(),
        input: json!({ "command": command }),
        input_error: None,
        spared_by: None,
        pending: None,
    }
}

#[async_trait]
impl Tool for EmbeddedCommand {
    type Input = EmbeddedInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: self.shell.tool(),
            kind: ToolKind::Execute,
            concurrency_safe: false,
            description: "Runs a command of a file.",
        }
    }

    fn timeout(&self) -> Option<Duration> {
        None
    }

    async fn plan(&self, input: EmbeddedInput, _context: &CallContext) -> Result<CallPlan, ToolError> {
        let EmbeddedInput { command } = input;
        let directory = self.directory.clone();
        let title = match &self.use_of {
            EmbeddedUse::Text { place } => format!("Run `{command}`, which is in {place}"),
            EmbeddedUse::Check(_) => format!("Run `{command}`, which checks the goal"),
        };
        let language = match self.shell {
            CommandShell::Bash => CommandLanguage::Bash,
            CommandShell::PowerShell => {
                CommandLanguage::PowerShell(Arc::new(powershell::reading(&command).await))
            }
        };
        let touches = vec![Touch::Command {
            command: command.clone(),
            directory: directory.clone(),
            outside_sandbox: false,
            language,
        }];
        let use_of = self.use_of.clone();
        let shell = self.shell;
        let work = move |context| work((shell, command), directory, use_of, context).boxed();
        Ok(CallPlan { title, touches, action: CallAction::Run(Box::new(work)) })
    }
}

async fn work(
    (language, command): (CommandShell, String),
    directory: AbsPath,
    use_of: EmbeddedUse,
    context: CallContext,
) -> Result<ToolOutput, ToolError> {
    let limit = match use_of {
        EmbeddedUse::Text { .. } => COMMAND_TIME,
        EmbeddedUse::Check(limit) => limit,
    };
    let failed = |message: String| Err(ToolError::new(ToolErrorKind::Failed, message, HINT));
    let spec = CommandSpec {
        command: command.clone(),
        shell: language,
        directory: directory.clone(),
        timeout: limit,
        sandbox: context.sandbox.clone(),
        call: None,
    };
    // Where the command goes is its own matter.
    let shell = context.shell.elsewhere(directory);
    let outcome = match shell.run(spec, |_| {}, &context.cancel).await {
        Ok(outcome) => outcome,
        Err(error) => return failed(format!("`{command}` could not be run: {error}")),
    };
    if let EmbeddedUse::Check(_) = use_of {
        let model_text = outcome.output.text;
        let structured = Some(exit_json(outcome.exit));
        return Ok(ToolOutput { model_text, structured, ..ToolOutput::default() });
    }
    let ended = match &outcome.exit {
        Exit::Code(0) => {
            let text = outcome.output.text.trim_end();
            if text.len() > MAX_OUTPUT {
                return failed(format!("`{command}` put out more than {MAX_OUTPUT} bytes"));
            }
            return Ok(ToolOutput { model_text: text.to_owned(), ..ToolOutput::default() });
        }
        Exit::Code(code) => format!("exit code {code}"),
        Exit::TimedOut => format!("it took longer than {} s", COMMAND_TIME.as_secs()),
        Exit::Cancelled => "cancelled".to_owned(),
        Exit::Signal(signal) => format!("ended by signal {signal}"),
    };
    let shown: String = outcome.output.text.trim().chars().take(MAX_SHOWN).collect();
    failed(format!("`{command}` failed ({ended}):\n{shown}"))
}
