//! Commands in the text of a skill or command: their output replaces them before the model reads the text.
//!
//! Rule: such a command passes the whole pipeline of a Bash call: hooks, rules, the user's answer, the sandbox, the ledger. No
//! transcript contains it, so nothing of it stays open when the server ends.

use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::turn::pipeline;
use crate::turn::sample::ModelToolCall;
use crate::turn::services::TurnContext;
use kode_base::call::{ToolError, ToolErrorKind, ToolKind, Touch};
use kode_base::ids::{CallId, ItemId};
use kode_base::paths::AbsPath;
use kode_permission::equipment::Equipment;
use kode_process::outcome::Exit;
use kode_process::shell::CommandSpec;
use kode_tool::{CallAction, CallContext, CallPlan, Tool, ToolFacts, ToolOutput, erased};

/// The most time of one command.
const COMMAND_TIME: Duration = Duration::from_secs(30);

/// The most bytes of one command's output; with more the expansion fails.
const MAX_OUTPUT: usize = 64 << 10;

/// The most characters of a failed command's output in the error.
const MAX_SHOWN: usize = 1_000;

/// The tool that such a command is for rules and hooks.
const BASH: &str = "Bash";

/// The next step for a command that cannot run.
const HINT: &str = "Change the file, or allow the command by a rule or in the file's `allowed-tools`.";

/// The arguments; others that a hook may give have no meaning here.
#[derive(Debug, Deserialize, JsonSchema)]
struct EmbeddedInput {
    command: String,
}

/// Runs a command whose output takes its place in a text.
struct EmbeddedCommand {
    directory: AbsPath,
    /// The file that contains it, for people.
    place: String,
}

/// Runs a command of the file `place` and returns its output. Boxed, because it is a call like the one that may have asked
/// for the text.
///
/// # Errors
/// Why there is no output, for people.
pub(crate) fn run<'a>(
    turn: TurnContext<'a>,
    (place, command): (&str, &str),
    equipment: &'a Equipment,
    cancel: &'a CancellationToken,
) -> BoxFuture<'a, Result<String, String>> {
    let call = ModelToolCall {
        turn: turn.id.clone(),
        id: CallId::generate(),
        item: ItemId::generate(),
        name: BASH.to_owned(),
        input: json!({ "command": command }),
        input_error: None,
        spared_by: None,
        pending: None,
    };
    let directory = turn.conversation.workspace().cwd();
    let tool = erased(EmbeddedCommand { directory, place: place.to_owned() });
    async move {
        let ran = pipeline::run_embedded(turn, &call, tool, equipment, cancel).await;
        ran.map(|output| output.model_text).map_err(|error| error.message.trim_end_matches('.').to_owned())
    }
    .boxed()
}

#[async_trait]
impl Tool for EmbeddedCommand {
    type Input = EmbeddedInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: BASH,
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
        let title = format!("Run `{command}`, which is in {}", self.place);
        let touches = vec![Touch::Command {
            command: command.clone(),
            directory: directory.clone(),
            outside_sandbox: false,
        }];
        let work = move |context| work(command, directory, context).boxed();
        Ok(CallPlan { title, touches, action: CallAction::Run(Box::new(work)) })
    }
}

async fn work(command: String, directory: AbsPath, context: CallContext) -> Result<ToolOutput, ToolError> {
    let failed = |message: String| Err(ToolError::new(ToolErrorKind::Failed, message, HINT));
    let spec = CommandSpec {
        command: command.clone(),
        directory: directory.clone(),
        timeout: COMMAND_TIME,
        sandbox: context.sandbox.clone(),
        call: None,
    };
    // Where the command goes is its own matter.
    let shell = context.shell.elsewhere(directory);
    let outcome = match shell.run(spec, |_| {}, &context.cancel).await {
        Ok(outcome) => outcome,
        Err(error) => return failed(format!("`{command}` could not be run: {error}")),
    };
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
