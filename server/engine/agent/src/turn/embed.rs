//! Commands in the text of a skill or command: run before the model reads the text, and put into it.
//!
//! Rule: such a command goes the whole way of a call of Bash: hooks, rules, the user's answer, the sandbox, the ledger. It
//! stands in no transcript, so nothing of it is left open when the server ends.

use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::session::conversation::Conversation;
use crate::turn::pipeline;
use crate::turn::sample::Call;
use kode_base::call::{ToolError, ToolErrorKind, ToolKind, Touch};
use kode_base::ids::{CallId, ItemId, TurnId};
use kode_base::paths::AbsPath;
use kode_permission::equipment::Equipment;
use kode_process::outcome::Exit;
use kode_process::shell::CommandSpec;
use kode_tool::{CallAction, CallContext, CallPlan, Tool, ToolFacts, ToolOutput, erased};

/// So long one command may take.
const COMMAND_TIME: Duration = Duration::from_secs(30);

/// The most bytes that one command's output may have; more of it breaks the text off.
const MAX_OUTPUT: usize = 64 << 10;

/// The most characters of a failed command's output that are told.
const MAX_TOLD: usize = 1_000;

/// The tool that rules and hooks know such a command by.
const BASH: &str = "Bash";

/// What is done next about a command that cannot be run.
const HINT: &str = "Change the file, or allow the command by a rule or in the file's `allowed-tools`.";

/// The arguments; what else a hook may give has no meaning here.
#[derive(Debug, Deserialize, JsonSchema)]
struct Line {
    command: String,
}

/// Runs a command whose output takes its place in a text.
struct Embedded {
    directory: AbsPath,
    /// Where it stands, for people.
    place: String,
}

/// Runs a command that stands in the file `place` and gives what it puts out. Boxed, for it is a call like the one that may
/// have wanted the text.
///
/// # Errors
/// Why there is no output, for people.
pub(crate) fn run<'a>(
    conversation: &'a Conversation<'_>,
    turn: &TurnId,
    (place, command): (&str, &str),
    equipment: &'a Equipment,
    cancel: &'a CancellationToken,
) -> BoxFuture<'a, Result<String, String>> {
    let call = Call {
        turn: turn.clone(),
        id: CallId::generate(),
        item: ItemId::generate(),
        name: BASH.to_owned(),
        input: json!({ "command": command }),
        input_error: None,
        spared_by: None,
        again: None,
    };
    let directory = conversation.workspace().cwd();
    let tool = erased(Embedded { directory, place: place.to_owned() });
    async move {
        let ran = pipeline::run_embedded(conversation, &call, tool, equipment, cancel).await;
        ran.map(|output| output.model_text).map_err(|error| error.message.trim_end_matches('.').to_owned())
    }
    .boxed()
}

#[async_trait]
impl Tool for Embedded {
    type Input = Line;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: BASH,
            aliases: &[],
            kind: ToolKind::Execute,
            concurrency_safe: false,
            description: "Runs a command of a file.",
        }
    }

    fn timeout(&self) -> Option<Duration> {
        None
    }

    async fn plan(&self, input: Line, _context: &CallContext) -> Result<CallPlan, ToolError> {
        let Line { command } = input;
        let directory = self.directory.clone();
        let title = format!("Run `{command}`, which stands in {}", self.place);
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
    let shown: String = outcome.output.text.trim().chars().take(MAX_TOLD).collect();
    failed(format!("`{command}` failed ({ended}):\n{shown}"))
}
