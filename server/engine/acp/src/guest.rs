//! Other agents as guests: a program that speaks the Agent Client Protocol is started for one task, and ended after it.
//!
//! Rule: a guest lives for one call. Whatever it does or fails to do, its process group is gone when the call ends, and the
//! error names the guest and the end of its error output.

mod answer;
mod talk;
#[cfg(test)]
mod tests;

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use kode_base::call::{ToolError, ToolErrorKind};
use kode_base::task;
use kode_process::outcome::Exit;
use kode_process::shell::error_output::ErrorOutput;
use kode_process::shell::served::{self, ServedProgram, ServiceEnd};
use kode_tool::guest::{GuestDesk, GuestEnd, GuestJob, GuestRunner};
use talk::{GuestTalk, TalkEnd};

use crate::peer::bounded;

/// How long the exit of a guest that has closed its output is waited for.
const EXIT_LIMIT: Duration = Duration::from_secs(2);

/// Starts programs that speak the Agent Client Protocol.
#[derive(Clone, Copy, Debug, Default)]
pub struct Guests;

#[async_trait]
impl GuestRunner for Guests {
    async fn run(
        &self,
        job: GuestJob,
        desk: &dyn GuestDesk,
        cancel: &CancellationToken,
    ) -> Result<GuestEnd, ToolError> {
        let GuestJob { name, program, mode, cwd, prompt } = job;
        let command = program.program.clone();
        let started = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(GuestEnd::Cancelled),
            started = served::start(program) => started,
        };
        let ServedProgram { input, output, errors, mut process } =
            started.map_err(|ended| not_started(&name, &command, &ended))?;
        let complaints = ErrorOutput::default();
        let reading = task::spawn(complaints.clone().read_from(errors));
        let ended = {
            let mut talk = GuestTalk::new(output, input, desk);
            talk.run(&cwd, (mode, prompt), cancel).await
        };
        let result = match ended {
            Ok(end) => Ok(end),
            Err(TalkEnd::Gone) => {
                let exit = timeout(EXIT_LIMIT, process.ended()).await.ok();
                complaints.settle().await;
                Err(broken(&name, &how(exit.as_ref()), &complaints.text()))
            }
            Err(TalkEnd::Failed { what, hint }) => {
                let message = format!("The guest `{name}` {what}.{}", last_words(&complaints.text()));
                Err(ToolError::new(ToolErrorKind::Failed, message, hint))
            }
        };
        process.end().await;
        // Programs that it started outside its group may hold the pipe open.
        reading.abort();
        result
    }
}

/// The error of a guest that was not started.
fn not_started(name: &str, command: &str, ended: &ServiceEnd) -> ToolError {
    let (why, hint) = match ended {
        ServiceEnd::NotFound(why) => (
            format!("`{command}` was not found: {why}"),
            "Install it, or write its whole path into `runs` of the agent's file.",
        ),
        ServiceEnd::NotStarted(why) => (
            format!("`{command}` could not be started: {why}"),
            "Check that it is a program that you may run.",
        ),
        ServiceEnd::NoSandbox(why) => (
            format!("the sandbox could not be set up: {why}"),
            "`kode-ls doctor` says what your machine offers; without `sandbox: true` it runs outside.",
        ),
        ServiceEnd::Ran(exit) => {
            (format!("it ended at once ({})", exit_text(*exit)), "Run its command by hand.")
        }
    };
    ToolError::new(ToolErrorKind::Failed, format!("The guest `{name}` did not start: {why}."), hint)
}

fn broken(name: &str, how: &str, complaints: &str) -> ToolError {
    ToolError::new(
        ToolErrorKind::Failed,
        format!("The guest `{name}` broke off: {how}.{}", last_words(complaints)),
        "Its changes so far are kept. Start it again for the remaining work, or do the rest yourself.",
    )
}

/// The end of what it wrote to its standard error, for a message.
fn last_words(complaints: &str) -> String {
    let last: Vec<&str> = complaints.lines().rev().take(5).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    match last.is_empty() {
        true => String::new(),
        false => format!(" The end of its error output: {}", bounded(&last.join(" · "))),
    }
}

fn how(ended: Option<&ServiceEnd>) -> String {
    match ended {
        None => "it closed its output and runs on".to_owned(),
        Some(ServiceEnd::Ran(exit)) => format!("its program has ended ({})", exit_text(*exit)),
        Some(ServiceEnd::NotFound(why) | ServiceEnd::NotStarted(why) | ServiceEnd::NoSandbox(why)) => {
            why.clone()
        }
    }
}

fn exit_text(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::TimedOut | Exit::Cancelled => "it was stopped".to_owned(),
    }
}
