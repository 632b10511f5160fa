//! Bash: runs a command line.
//!
//! Rule: whatever ends a command, the model gets what it wrote until then; anything but exit code 0 is an error.
//! Commands see files, not editors: where the two differ the result says so.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, interval};

use crate::paths::Target;
use crate::sandbox::GuardReport;
use crate::shell::{CommandOutcome, CommandSpec, Exit, ShellError};
use crate::tools::{
    Action, CallContext, Plan, Progress, Tool, ToolError, ToolErrorKind, ToolFacts, ToolKind, ToolOutput,
    Touch,
};
use crate::workspace::unsaved::NotSaved;

/// How long a command may take if the call does not say, in milliseconds.
const DEFAULT_TIMEOUT_MS: u64 = 120_000;
/// How long a command may be allowed to take, in milliseconds.
const MAX_TIMEOUT_MS: u64 = 600_000;
/// How long a command line may be, in bytes: safely less than what systems take as one argument.
const MAX_COMMAND: usize = 100_000;
/// How many characters of a command its title shows.
const MAX_TITLE: usize = 80;
/// How often a running command's output is reported at most.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// How many characters of a running command's output are reported: its end.
const MAX_PROGRESS: usize = 2_000;
/// How many files that differ are named.
const MAX_NAMED: usize = 5;

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
            aliases: &["bash", "bash_run", "run_command", "Shell"],
            kind: ToolKind::Execute,
            concurrency_safe: false,
            description: "Runs a command line with bash and gives its output, standard error included. The working \
                directory carries over to the next command as long as it stays in the workspace; variables do not. \
                There is no terminal and no standard input: commands that ask questions fail. What a command leaves \
                running in the background is ended with it. Of long output the middle is cut out. Use Read, Edit, \
                Write, Glob and Grep to work with files: they also know text in the editor that is not saved yet.",
        }
    }

    fn timeout(&self) -> Option<Duration> {
        None
    }

    async fn plan(&self, input: BashInput, context: &CallContext) -> Result<Plan, ToolError> {
        let spec = check(&input)?;
        let title = format!("Run `{}`", first_line(&input.command));
        let directory = context.shell.directory();
        let touches = vec![Touch::Command {
            command: input.command,
            directory,
            outside_sandbox: input.outside_sandbox,
        }];
        Ok(Plan { title, touches, action: Action::Run(Box::new(move |context| run(spec, context).boxed())) })
    }
}

fn check(input: &BashInput) -> Result<CommandSpec, ToolError> {
    let refused = |message: String, hint| Err(ToolError::new(ToolErrorKind::InvalidInput, message, hint));
    let timeout = input.timeout.unwrap_or(DEFAULT_TIMEOUT_MS);
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
    if timeout == 0 || timeout > MAX_TIMEOUT_MS {
        let message = format!(
            "A timeout of {timeout} ms is not possible: the maximum is {MAX_TIMEOUT_MS} ms, the minimum 1 ms"
        );
        return refused(
            message,
            "Give a timeout in milliseconds within these limits, or leave it out for 120000.",
        );
    }
    Ok(CommandSpec {
        command: input.command.clone(),
        timeout: Duration::from_millis(timeout),
        outside_sandbox: input.outside_sandbox,
    })
}

fn first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(MAX_TITLE).collect();
    if short.len() < text.trim().len() {
        short.push('…');
    }
    short
}

async fn run(spec: CommandSpec, context: CallContext) -> Result<ToolOutput, ToolError> {
    let limit = spec.timeout;
    let not_saved = tokio::select! {
        not_saved = context.workspace.save_before_command() => not_saved,
        () = context.cancel.cancelled() => Vec::new(),
    };
    let unsaved = context.workspace.unsaved_documents().await;
    let outcome = run_reporting(spec, &context).await.map_err(|error| not_started(&error))?;
    let mut notes = Vec::new();
    if !context.workspace.contains(&Target::File(outcome.directory.clone())) {
        let home = context.shell.return_home();
        notes.push(format!(
            "Note: `{}` is outside the workspace; the next command starts in `{home}` again.",
            outcome.directory
        ));
    }
    notes.extend(guard_notes(&outcome.guarded));
    for NotSaved { target, reason } in not_saved.iter().take(MAX_NAMED) {
        let file = context.workspace.display(target);
        notes.push(format!("Note: `{file}` could not be saved before the command ran: {reason}."));
    }
    if !unsaved.is_empty() {
        let unsaved: Vec<_> = unsaved.iter().map(|target| context.workspace.display(target)).collect();
        notes.push(format!("Note: the command did not see unsaved text of {}.", named(&unsaved)));
    }
    result(&outcome, &notes, limit)
}

/// What became of guarded files, as notes.
fn guard_notes(guarded: &GuardReport) -> Vec<String> {
    let GuardReport { created, restored, changed, incomplete } = guarded;
    let paths = |paths: Vec<&PathBuf>| {
        named(&paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>())
    };
    let mut notes = Vec::new();
    if !created.is_empty() {
        let files = paths(created.iter().collect());
        notes.push(format!("Note: the command created {files}, which steer other programs; tell the user."));
    }
    if !restored.is_empty() {
        let files = paths(restored.iter().map(|restored| &restored.path).collect());
        notes.push(format!("Note: commands may not change {files}; what the command did there was undone."));
    }
    if !changed.is_empty() {
        let files = paths(changed.iter().map(|(path, _)| path).collect());
        notes.push(format!("Note: the command changed {files}, which could not be put back; tell the user."));
    }
    notes.extend(incomplete.iter().map(|reason| format!("Note: {reason}.")));
    notes
}

/// Runs the command while its output is reported.
async fn run_reporting(spec: CommandSpec, context: &CallContext) -> Result<CommandOutcome, ShellError> {
    let reporter = Mutex::new(Reporter::new(Arc::clone(&context.progress)));
    let report =
        |action: &dyn Fn(&mut Reporter)| action(&mut reporter.lock().unwrap_or_else(PoisonError::into_inner));
    let on_output = |text: &str| report(&|reporter| reporter.push(text));
    let mut running = pin!(context.shell.run(spec, on_output, &context.cancel));
    let mut ticks = interval(PROGRESS_INTERVAL);
    loop {
        tokio::select! {
            biased;
            outcome = &mut running => return outcome,
            _ = ticks.tick() => report(&Reporter::flush),
        }
    }
}

/// Reports the end of a growing output, the first of it at once and then not more often than allowed.
struct Reporter {
    progress: Progress,
    end: String,
    last: Option<Instant>,
    waiting: bool,
}

impl Reporter {
    fn new(progress: Progress) -> Self {
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
    }));
    let failed = |kind, what: String, hint: &str| {
        let error = ToolError::new(kind, format!("{what}\n{text}"), hint);
        Err(ToolError { structured: structured.clone().map(Box::new), ..error })
    };
    match outcome.exit {
        Exit::Code(0) => {
            let seconds = outcome.duration.as_secs_f64();
            Ok(ToolOutput { display: format!("Done in {seconds:.1} s"), model_text: text, structured })
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

fn not_started(error: &ShellError) -> ToolError {
    let hint = match error {
        ShellError::NoShell => "Ask the user to install bash; until then work with the other tools.",
        ShellError::NoDirectory { .. } => {
            "Check that the command is right for that folder, then run it again."
        }
        ShellError::Sandbox { .. } => {
            "Nothing was run. Tell the user; `kode-ls doctor` says what is missing. Work with the other tools until then."
        }
        ShellError::Start { .. } => {
            "Check that the folder can be entered and that the system has resources left."
        }
    };
    ToolError::new(ToolErrorKind::Failed, format!("The command was not run: {error}"), hint)
}

fn named(files: &[String]) -> String {
    let names = files.iter().take(MAX_NAMED).map(|file| format!("`{file}`"));
    let names = names.collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(MAX_NAMED) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::Fixture;

    async fn failure(fixture: &Fixture, input: serde_json::Value) -> ToolError {
        fixture.run(Bash, input).await.unwrap_err()
    }

    #[tokio::test]
    async fn output_of_a_command_that_works_is_given_with_its_facts() {
        let fixture = Fixture::new();
        let found = fixture.run(Bash, json!({ "command": "echo out; echo err >&2" })).await.unwrap();
        assert_eq!(found.model_text, "out\nerr");
        let structured = found.structured.unwrap();
        assert_eq!(structured["exitCode"], 0);
        assert_eq!(structured["timedOut"], false);
        assert_eq!(structured["truncatedChars"], 0);
        assert_eq!(fixture.text(Bash, json!({ "command": "true" })).await, "(no output)");
    }

    #[tokio::test]
    async fn a_failed_command_is_an_error_with_code_and_output() {
        let fixture = Fixture::new();
        let error = failure(&fixture, json!({ "command": "echo why; exit 3" })).await;
        assert_eq!((error.kind, &*error.message), (ToolErrorKind::Failed, "Exit code 3\nwhy"));
        let error = failure(&fixture, json!({ "command": "no-such-program" })).await;
        assert!(
            error.message.starts_with("Exit code 127\n") && error.hint.contains("not found"),
            "{error:?}"
        );
        let error = failure(&fixture, json!({ "command": "kill -9 $$" })).await;
        assert_eq!(error.message, "Ended by signal 9\n(no output)");
    }

    #[tokio::test]
    async fn a_timeout_names_the_milliseconds_and_keeps_the_output() {
        let fixture = Fixture::new();
        let error = failure(&fixture, json!({ "command": "echo begun; sleep 600", "timeout": 300 })).await;
        assert_eq!(error.kind, ToolErrorKind::Timeout);
        assert!(error.message.contains("300 ms") && error.message.ends_with("\nbegun"), "{error:?}");
    }

    #[tokio::test]
    async fn a_cancelled_command_keeps_its_output() {
        let fixture = Fixture::new();
        let mut context = fixture.context();
        let cancel = context.cancel.clone();
        context.progress = Arc::new(move |text| {
            if text.contains("begun") {
                cancel.cancel();
            }
        });
        let command = json!({ "command": "echo begun; sleep 600" });
        let error = fixture.run_in(context, Bash, command).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Cancelled);
        assert!(error.message.ends_with("\nbegun"), "{error:?}");
    }

    #[tokio::test]
    async fn long_output_is_cut_in_the_middle_and_the_cut_is_told() {
        let fixture = Fixture::new();
        let command = "head -c 1000000 /dev/zero | tr '\\0' x";
        let found = fixture.run(Bash, json!({ "command": command })).await.unwrap();
        assert_eq!(found.structured.unwrap()["truncatedChars"], 973_000);
        assert!(found.model_text.contains("973000 characters of output cut here"));
        assert_eq!(found.model_text.matches('x').count(), 27_000);
    }

    #[tokio::test]
    async fn arguments_that_cannot_work_are_refused() {
        let fixture = Fixture::new();
        let cases = [
            (json!({ "command": " " }), "empty"),
            (json!({ "command": "a\0b" }), "NUL"),
            (json!({ "command": "x".repeat(MAX_COMMAND + 1) }), "100001 bytes"),
            (json!({ "command": "true", "timeout": 600_001 }), "the maximum is 600000 ms"),
            (json!({ "command": "true", "timeout": 0 }), "the minimum 1 ms"),
        ];
        for (input, message) in cases {
            let error = fixture.plan(Bash, input).await.unwrap_err();
            assert_eq!(error.kind, ToolErrorKind::InvalidInput);
            assert!(error.message.contains(message), "{error:?}");
        }
    }

    #[tokio::test]
    async fn the_command_is_declared_exactly_and_titled_shortly() {
        let fixture = Fixture::new();
        let long = "y".repeat(MAX_TITLE + 1);
        let cases = [
            (json!({ "command": "ls -l\n" }), "Run `ls -l`".to_owned()),
            (json!({ "command": "cd a\nls" }), "Run `cd a…`".to_owned()),
            (json!({ "command": long }), format!("Run `{}…`", &long[1..])),
        ];
        for (input, title) in cases {
            let plan = fixture.plan(Bash, input.clone()).await.unwrap();
            assert_eq!(plan.title, title);
            let command = input["command"].as_str().unwrap().to_owned();
            let is_command =
                |touch: &Touch| matches!(touch, Touch::Command { command: given, .. } if *given == command);
            assert!(plan.touches.iter().all(is_command) && plan.touches.len() == 1);
        }
    }

    #[tokio::test]
    async fn the_folder_is_carried_over_until_it_leaves_the_workspace() {
        let fixture = Fixture::new();
        fixture.write("sub/file", "");
        let context = fixture.context();
        let run = async |command: &str| {
            let input = json!({ "command": command });
            fixture.run_in(context.clone(), Bash, input).await.unwrap().model_text
        };
        run("cd sub").await;
        assert_eq!(run("ls").await, "file");
        let left = run("cd /; pwd").await;
        assert!(left.starts_with("/\n\nNote: `/` is outside the workspace"), "{left}");
        assert_eq!(run("pwd").await, fixture.root().to_string());
    }

    #[tokio::test]
    async fn files_with_unsaved_text_are_named() {
        let mut fixture = Fixture::new();
        for (path, saved, shown) in [
            ("same", "a\nb\n", "a\nb\n"),
            ("crlf", "a\r\nb\n", "a\nb\n"),
            ("bom", "\u{feff}a\n", "a\n"),
            ("changed", "a\n", "b\n"),
        ] {
            fixture.write(path, saved);
            fixture.open(path, shown);
        }
        fixture.write("latin1", b"\xe9");
        fixture.open("latin1", "é");
        fixture.open("new", "");
        fixture.open_untitled("1", "text");
        let text = fixture.text(Bash, json!({ "command": "echo done" })).await;
        assert_eq!(text, "done\n\nNote: the command did not see unsaved text of `changed`, `new`.");

        let files: Vec<String> = (0..7).map(|number| number.to_string()).collect();
        assert_eq!(named(&files), "`0`, `1`, `2`, `3`, `4` and 2 more");
    }

    #[tokio::test]
    async fn the_output_is_reported_while_the_command_runs() {
        let fixture = Fixture::new();
        let mut context = fixture.context();
        let go_on = fixture.root().join("go-on");
        let report = Arc::clone(&context.progress);
        context.progress = Arc::new(move |text| {
            std::fs::write(&go_on, "").unwrap();
            report(text);
        });
        let command = "echo first; until [ -e go-on ]; do sleep 0.01; done; echo second";
        let found = fixture.run_in(context, Bash, json!({ "command": command })).await.unwrap();
        assert_eq!(found.model_text, "first\nsecond");
        assert_eq!(fixture.progress()[0], "first\n");
    }

    #[tokio::test(start_paused = true)]
    async fn reports_come_at_once_and_then_not_too_often_with_the_end_of_the_output() {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let mut reporter = Reporter::new({
            let reports = Arc::clone(&reports);
            Arc::new(move |text| reports.lock().unwrap().push(text))
        });
        let seen = || std::mem::take(&mut *reports.lock().unwrap());
        reporter.push("a");
        assert_eq!(seen(), ["a"]);
        reporter.push("b");
        reporter.push("c");
        assert_eq!(seen(), [""; 0]);
        tokio::time::advance(PROGRESS_INTERVAL).await;
        reporter.flush();
        reporter.flush();
        assert_eq!(seen(), ["abc"]);
        tokio::time::advance(PROGRESS_INTERVAL).await;
        reporter.push(&"é".repeat(MAX_PROGRESS + 1));
        assert_eq!(seen(), ["é".repeat(MAX_PROGRESS)]);
    }
}
