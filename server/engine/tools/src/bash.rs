//! Bash: runs a command line.
//!
//! Rule: whatever ends a command, the model gets what it wrote until then; anything but exit code 0 is an error.
//! Commands see files, not editors: where the two differ the result says so. A command that the user moves to the background
//! gives the call a result at once.

#[cfg(test)]
mod tests;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::bash_output::shown;
use crate::command_notes::{MAX_NAMED, guard_notes, kept_note, named};
use kode_base::call::{CommandLanguage, ToolError, ToolErrorKind, ToolKind, Touch};
use kode_base::paths::Target;
use kode_process::outcome::Exit;
use kode_process::shell::{CommandOutcome, CommandSpec, ForegroundEnd, ShellError, ShellTask, StartError};
use kode_text::workspace::unsaved::UnsavedDocument;
use kode_tool::{CallAction, CallContext, CallPlan, ProgressReporter, Tool, ToolFacts, ToolOutput};

/// How long a command may take if the call does not say, in milliseconds.
const DEFAULT_TIMEOUT_MS: u64 = 120_000;
/// How long a command may be allowed to take, in milliseconds.
const MAX_TIMEOUT_MS: u64 = 600_000;
/// The variables by which users set both.
const DEFAULT_TIMEOUT: &str = "BASH_DEFAULT_TIMEOUT_MS";
const MAX_TIMEOUT: &str = "BASH_MAX_TIMEOUT_MS";
/// How long a command line may be, in bytes: safely less than what systems take as one argument.
const MAX_COMMAND: usize = 100_000;
/// How many characters of a command its title shows.
const MAX_TITLE: usize = 80;
/// How often a running command's output is reported at most.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// How many characters of a running command's output are reported: its end.
const MAX_PROGRESS: usize = 2_000;

/// The arguments of Bash.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashInput {
    /// The command line, in the language of bash.
    pub command: String,
    /// What the command does, in five to ten words, for the user.
    #[serde(default)]
    pub description: Option<String>,
    /// How many milliseconds the command may take: 120000 if left out, at most 600000.
    #[serde(default)]
    pub timeout: Option<u64>,
    /// Whether to run outside the sandbox, with the network and the whole disk: the user is asked. Only for commands
    /// that cannot work inside, such as installing packages.
    #[serde(default, rename = "dangerouslyDisableSandbox")]
    pub outside_sandbox: bool,
    /// Whether to go on at once while the command runs: for servers, watchers and long tests. BashOutput tells what it
    /// writes, KillShell ends it.
    #[serde(default)]
    pub run_in_background: bool,
}

/// Runs a command line.
#[derive(Clone, Copy, Debug)]
pub struct Bash;

#[async_trait]
impl Tool for Bash {
    type Input = BashInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "Bash",
            kind: ToolKind::Execute,
            concurrency_safe: false,
            description: "Runs a command line with bash and gives its output, standard error included. The working \
                directory carries over to the next command as long as it stays in the workspace; variables do not. \
                There is no terminal and no standard input: commands that ask questions fail. What a command leaves \
                running is ended with it; with `run_in_background` the command itself goes on, without a time limit, \
                until it ends, KillShell ends it, or the session does. It does not move the working directory, and \
                what it changes in files is not listed among your changes. Of long output the middle is cut out and \
                the whole kept in a file that Read can read. Use Read, Edit, Write, Glob and Grep to work with \
                files: they also know text in the editor that is not saved yet.",
        }
    }

    fn timeout(&self) -> Option<Duration> {
        None
    }

    async fn plan(&self, input: BashInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        planned(CommandLanguage::Bash, input, context)
    }
}

/// The plan of a call that runs a command in this language.
pub(crate) fn planned(
    language: CommandLanguage,
    input: BashInput,
    context: &CallContext,
) -> Result<CallPlan, ToolError> {
    let directory = context.shell.directory();
    let timeout = check(&input, &|name| context.shell.variable(name))?;
    let (command, call) = (input.command.clone(), Some(context.call_id.clone()));
    let spec = CommandSpec {
        command,
        shell: language.shell(),
        directory: directory.clone(),
        timeout,
        sandbox: context.sandbox.clone(),
        call,
    };
    let line = first_line(&input.command);
    let is_background = input.run_in_background;
    let title = format!("Run `{line}`{}", if is_background { " in the background" } else { "" });
    let touches = vec![Touch::Command {
        command: input.command,
        directory,
        outside_sandbox: input.outside_sandbox,
        language,
    }];
    let action = CallAction::Run(Box::new(move |context| {
        // Its confinement was settled together with the verdict.
        let spec = CommandSpec { sandbox: context.sandbox.clone(), ..spec };
        match is_background {
            true => start(spec, line, input.timeout, context).boxed(),
            false => run(spec, line, context).boxed(),
        }
    }));
    Ok(CallPlan { title, touches, action })
}

/// Checks the arguments, and gives how long the command may take.
pub(crate) fn check(
    input: &BashInput,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Duration, ToolError> {
    let refused = |message: String, hint| Err(ToolError::new(ToolErrorKind::InvalidInput, message, hint));
    let set = |name: &str| variable(name).and_then(|value| value.parse::<u64>().ok()).filter(|ms| *ms > 0);
    let longest = set(MAX_TIMEOUT).unwrap_or(MAX_TIMEOUT_MS);
    let usual = set(DEFAULT_TIMEOUT).unwrap_or(DEFAULT_TIMEOUT_MS).min(longest);
    let timeout = input.timeout.unwrap_or(usual);
    if input.command.trim().is_empty() {
        return refused("The command is empty".to_owned(), "Give the command line to run.");
    }
    if input.command.contains('\0') {
        return refused(
            "The command contains a NUL character".to_owned(),
            "Leave it out, or write `\\0` in a quoted string.",
        );
    }
    if input.command.len() > MAX_COMMAND {
        let message =
            format!("The command has {} bytes, more than the {MAX_COMMAND} allowed", input.command.len());
        return refused(message, "Write the text to a file with Write first and have the command read it.");
    }
    if timeout == 0 || timeout > longest {
        let message = format!(
            "A timeout of {timeout} ms is not possible: the maximum is {longest} ms, the minimum 1 ms"
        );
        return refused(
            message,
            "Give a timeout in milliseconds within these limits, or leave it out for 120000.",
        );
    }
    Ok(Duration::from_millis(timeout))
}

fn first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(MAX_TITLE).collect();
    if short.len() < text.trim().len() {
        short.push('…');
    }
    short
}

async fn run(spec: CommandSpec, line: String, context: CallContext) -> Result<ToolOutput, ToolError> {
    let limit = spec.timeout;
    let unseen = unseen_notes(&context).await;
    let outcome = match run_reporting(spec, line, &context).await.map_err(|error| not_started(&error))? {
        ForegroundEnd::Ended(outcome) => *outcome,
        ForegroundEnd::Moved(task) => return Ok(moved(&task, &context, &unseen)),
    };
    let mut notes = Vec::new();
    if let (Some(file), true) = (&outcome.output.file, outcome.output.cut > 0) {
        notes.push(kept_note(file));
    }
    if !context.workspace.contains(&Target::File(outcome.directory.clone())) {
        let home = context.shell.return_home();
        notes.push(format!(
            "Note: `{}` is outside the workspace; the next command starts in `{home}` again.",
            outcome.directory
        ));
    }
    notes.extend(guard_notes(&outcome.guarded));
    notes.extend(unseen);
    result(&outcome, &notes, limit)
}

/// The result of a call whose command the user has moved to the background.
fn moved(task: &ShellTask, context: &CallContext, notes: &[String]) -> ToolOutput {
    let (tasks, id) = (context.shell.tasks(), task.id());
    let file = tasks.outputs().map(|outputs| outputs.path(task.call()).to_string());
    let kept = file.as_ref().map(|file| format!(" All it writes is kept in `{file}`.")).unwrap_or_default();
    let seen = shown(task, tasks.look(task), None).model_text;
    let mut text = format!(
        "The user moved the command to the background, where it runs on without a time limit as {id}; continue with \
         other work. See what it writes from now on with BashOutput (`task_id`: \"{id}\"), end it with KillShell.{kept}\n\n{seen}"
    );
    for note in notes {
        text.push_str("\n\n");
        text.push_str(note);
    }
    let structured = json!({ "taskId": id.as_str(), "outputFile": file, "movedToBackground": true });
    ToolOutput {
        model_text: text,
        display: format!("Moved to the background as {id}"),
        structured: Some(structured),
        ..ToolOutput::default()
    }
}

/// Starts a command that continues after the call.
async fn start(
    spec: CommandSpec,
    line: String,
    timeout: Option<u64>,
    context: CallContext,
) -> Result<ToolOutput, ToolError> {
    let mut notes = unseen_notes(&context).await;
    if context.cancel.is_cancelled() {
        return Err(ToolError::new(
            ToolErrorKind::Cancelled,
            "The call was cancelled before the command was started.",
            "Do not repeat it unless the user asks for it.",
        ));
    }
    if timeout.is_some() {
        notes.push(
            "Note: `timeout` has no effect for a command in the background; end it with KillShell."
                .to_owned(),
        );
    }
    let task = context.shell.start(spec, line).await.map_err(|error| not_begun(&error))?;
    let id = task.id();
    let mut text = format!(
        "{task} runs in the background. See what it writes with BashOutput (`task_id`: \"{id}\"), end it with KillShell."
    );
    let file = context.shell.tasks().outputs().map(|outputs| outputs.path(task.call()).to_string());
    if let Some(file) = &file {
        text.push_str(&format!(" All it writes is kept in `{file}`."));
    }
    for note in notes {
        text.push_str("\n\n");
        text.push_str(&note);
    }
    let display = format!("Runs in the background as {id}");
    let structured = Some(json!({ "taskId": id.as_str(), "outputFile": file }));
    Ok(ToolOutput { model_text: text, display, structured, ..ToolOutput::default() })
}

/// The parts of open documents that the command will not see, as notes; saves first what may be saved.
async fn unseen_notes(context: &CallContext) -> Vec<String> {
    let not_saved = tokio::select! {
        not_saved = context.workspace.save_before_command() => not_saved,
        () = context.cancel.cancelled() => Vec::new(),
    };
    let unsaved = context.workspace.unsaved_documents().await;
    let mut notes = Vec::new();
    for UnsavedDocument { target, reason } in not_saved.iter().take(MAX_NAMED) {
        let file = context.workspace.display(target);
        notes.push(format!("Note: `{file}` could not be saved before the command ran: {reason}."));
    }
    if !unsaved.is_empty() {
        let unsaved: Vec<_> = unsaved.iter().map(|target| context.workspace.display(target)).collect();
        notes.push(format!("Note: the command did not see unsaved text of {}.", named(&unsaved)));
    }
    notes
}

/// Runs the command while its output is reported.
async fn run_reporting(
    spec: CommandSpec,
    line: String,
    context: &CallContext,
) -> Result<ForegroundEnd, ShellError> {
    let reporter = Arc::new(Mutex::new(Reporter::new(Arc::clone(&context.progress))));
    let written = Arc::clone(&reporter);
    let on_output = move |text: &str| written.lock().push(text);
    let mut running = pin!(context.shell.run_movable(spec, line, on_output, &context.cancel));
    let mut ticks = interval(PROGRESS_INTERVAL);
    // A late tick delays the next one, so that two reports are never closer than the interval.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            outcome = &mut running => return outcome,
            _ = ticks.tick() => reporter.lock().flush(),
        }
    }
}

/// Reports the end of a growing output, the first of it at once and then not more often than allowed.
struct Reporter {
    progress: ProgressReporter,
    end: String,
    last: Option<Instant>,
    waiting: bool,
}

impl Reporter {
    fn new(progress: ProgressReporter) -> Self {
        Self { progress, end: String::new(), last: None, waiting: false }
    }

    fn push(&mut self, text: &str) {
        self.end.push_str(text);
        if let Some((start, _)) = self.end.char_indices().rev().nth(MAX_PROGRESS - 1) {
            self.end.drain(..start);
        }
        self.waiting = true;
        self.flush();
    }

    fn flush(&mut self) {
        let may_report = self.last.is_none_or(|last| last.elapsed() >= PROGRESS_INTERVAL);
        if self.waiting && may_report {
            self.waiting = false;
            self.last = Some(Instant::now());
            (self.progress)(self.end.clone());
        }
    }
}

/// Turns an outcome into what the model gets.
fn result(outcome: &CommandOutcome, notes: &[String], limit: Duration) -> Result<ToolOutput, ToolError> {
    let output = outcome.output.text.trim_end();
    let mut text = if output.is_empty() { "(no output)".to_owned() } else { output.to_owned() };
    for note in notes {
        text.push_str("\n\n");
        text.push_str(note);
    }
    let structured = Some(json!({
        "exitCode": match outcome.exit {
            Exit::Code(code) => Some(code),
            Exit::Signal(_) | Exit::TimedOut | Exit::Cancelled => None,
        },
        "durationMs": u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
        "truncatedChars": outcome.output.cut,
        "timedOut": outcome.exit == Exit::TimedOut,
        "outputFile": outcome.output.file.as_ref().map(|file| file.path.to_string()),
    }));
    let failed = |kind, what: String, hint: &str| {
        let error = ToolError::new(kind, format!("{what}\n{text}"), hint);
        Err(ToolError { structured: structured.clone().map(Box::new), ..error })
    };
    match outcome.exit {
        Exit::Code(0) => {
            let seconds = outcome.duration.as_secs_f64();
            Ok(ToolOutput {
                display: format!("Done in {seconds:.1} s"),
                model_text: text,
                structured,
                ..ToolOutput::default()
            })
        }
        Exit::Code(code) => failed(ToolErrorKind::Failed, format!("Exit code {code}"), exit_hint(code)),
        Exit::Signal(signal) => failed(
            ToolErrorKind::Failed,
            format!("Ended by signal {signal}"),
            "Something outside this call ended the command; find out why before running it again.",
        ),
        Exit::TimedOut => failed(
            ToolErrorKind::Timeout,
            format!("Stopped after {} ms, the time allowed. Output until then:", limit.as_millis()),
            "Run it with a larger `timeout` (at most 600000), or do less in one command.",
        ),
        Exit::Cancelled => failed(
            ToolErrorKind::Cancelled,
            "The command was cancelled. Output until then:".to_owned(),
            "It may have done part of its work. Do not repeat it unless the user asks for it.",
        ),
    }
}

fn exit_hint(code: i32) -> &'static str {
    match code {
        126 => {
            "The file is there but cannot be executed: check its permissions or run it with its interpreter."
        }
        127 => "A command was not found: check its name and whether it is installed.",
        _ => "Read the output before deciding what to do; for some commands this code is not a failure.",
    }
}

fn not_begun(error: &StartError) -> ToolError {
    let hint = match error {
        StartError::Shell(error) => return not_started(error),
        StartError::TooMany { .. } => "End one of them with KillShell, or wait for it with BashOutput.",
        StartError::TooManyOverall { .. } => {
            "End one of this session with KillShell, or run the command without `run_in_background`."
        }
        StartError::Closed => "Nothing can be run in this session any more.",
    };
    ToolError::new(ToolErrorKind::Failed, format!("The command was not started: {error}."), hint)
}

fn not_started(error: &ShellError) -> ToolError {
    let hint = match error {
        ShellError::NoShell(_) => "Ask the user to install the shell; until then work with the other tools.",
        ShellError::NoDirectory { .. } => {
            "Check that the command is right for that folder, then run it again."
        }
        ShellError::Sandbox { .. } => {
            "Nothing was run. Tell the user; `kode-ls doctor` names the missing parts. Work with the other tools until then."
        }
        ShellError::Terminal { .. } => {
            "It may have done part of its work: check that before running it again. Tell the user, whose settings have \
             commands run in the client's terminal (`sandbox.clientTerminal`)."
        }
        ShellError::Fault => "Do not repeat the same call; the log has the details.",
        ShellError::Start { .. } => {
            "Check that the folder can be entered and that the system has resources left."
        }
    };
    let message = match error {
        ShellError::Terminal { .. } => format!("The command cannot be followed: {error}"),
        _ => format!("The command was not run: {error}"),
    };
    ToolError::new(ToolErrorKind::Failed, message, hint)
}
