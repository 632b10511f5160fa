//! BashOutput: what a background command has written since the last look, and what it is doing.
//!
//! Rule: looking changes nothing but what counts as checked; waiting ends with news, with its time or with a cancel.

use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::command_notes::{guard_notes, kept_note};
use kode_base::call::{ToolError, ToolErrorKind, ToolKind};
use kode_process::outcome::CapturedOutput;
use kode_process::shell::{ShellTask, TaskEnd, TaskState, TaskView, Tasks};
use kode_tool::{CallAction, CallContext, CallPlan, Tool, ToolFacts, ToolOutput};

/// How long is waited if the call does not say, in milliseconds.
const DEFAULT_WAIT_MS: u64 = 30_000;
/// How long may be waited, in milliseconds.
const MAX_WAIT_MS: u64 = 600_000;

/// The arguments of BashOutput.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashOutputInput {
    /// The id of the background command, for example `bash_1`.
    #[serde(default)]
    pub task_id: Option<String>,
    /// The same as `task_id`.
    #[serde(default)]
    pub shell_id: Option<String>,
    /// The same as `task_id`.
    #[serde(default)]
    pub bash_id: Option<String>,
    /// Whether to wait until the command has written something new or has ended; without it the answer comes at once.
    #[serde(default)]
    pub block: bool,
    /// How many milliseconds to wait at most: 30000 if left out, at most 600000. Counts only with `block`.
    #[serde(default)]
    pub timeout: Option<u64>,
    /// A regular expression: only lines it matches are shown, the others count as looked at all the same.
    #[serde(default)]
    pub filter: Option<String>,
}

/// Checks a background command.
#[derive(Clone, Copy, Debug)]
pub struct BashOutput;

#[async_trait]
impl Tool for BashOutput {
    type Input = BashOutputInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "BashOutput",
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: "Tells what a command that Bash runs in the background has written since the last look, and \
                whether it runs or how it ended. With `block` it waits for news first. Of much output the middle is \
                cut out; the whole is in the file that Bash has named.",
        }
    }

    fn timeout(&self) -> Option<Duration> {
        None
    }

    async fn plan(&self, input: BashOutputInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let id = one_id(
            "BashOutput",
            &[("task_id", &input.task_id), ("shell_id", &input.shell_id), ("bash_id", &input.bash_id)],
        )?;
        let timeout = input.timeout.unwrap_or(DEFAULT_WAIT_MS);
        if timeout > MAX_WAIT_MS {
            return Err(ToolError::new(
                ToolErrorKind::InvalidInput,
                format!("BashOutput: a `timeout` of {timeout} ms is more than the {MAX_WAIT_MS} ms allowed"),
                "Give a smaller one, or leave it out for 30000; the command runs on either way.",
            ));
        }
        let filter = input.filter.as_deref().map(matcher).transpose()?;
        // Whether there is such a command is known only when the call runs: another one may start it first.
        let title = format!("Read {}", describe(context.shell.tasks(), id));
        let (id, wait) = (id.to_owned(), input.block.then(|| Duration::from_millis(timeout)));
        let run = move |context: CallContext| look(id, wait, filter, context).boxed();
        Ok(CallPlan { title, touches: Vec::new(), action: CallAction::Run(Box::new(run)) })
    }
}

/// The id that a call names under one of several field names.
pub(super) fn one_id<'a>(tool: &str, fields: &[(&str, &'a Option<String>)]) -> Result<&'a str, ToolError> {
    let (first, _) = fields[0];
    let mut named = fields.iter().filter_map(|(field, id)| Some((field, id.as_deref()?)));
    let refused = |message: String| {
        let hint = format!("Give the id that Bash has named, for example `bash_1`, as `{first}`.");
        Err(ToolError::new(ToolErrorKind::InvalidInput, message, hint))
    };
    let Some((field, id)) = named.next() else {
        return refused(format!("{tool}: the field `{first}` is missing"));
    };
    if id.trim().is_empty() {
        return refused(format!("{tool}: `{field}` is empty"));
    }
    match named.find(|(_, other)| *other != id) {
        Some((other, _)) => refused(format!("{tool}: `{field}` and `{other}` name different commands")),
        None => Ok(id),
    }
}

/// A background command for a title.
pub(super) fn describe(tasks: &Tasks, id: &str) -> String {
    tasks.find(id).map_or_else(|| id.to_owned(), |task| task.to_string())
}

/// There is no such background command.
pub(super) fn unknown(tasks: &Tasks, id: &str) -> ToolError {
    let running: Vec<_> = tasks.running().iter().map(ToString::to_string).collect();
    let hint = match running.is_empty() {
        true => "None runs now. Those of an earlier server ended with it.".to_owned(),
        false => format!("Those that run: {}.", running.join(", ")),
    };
    ToolError::new(ToolErrorKind::NotFound, format!("There is no background command `{id}`."), hint)
}

fn matcher(pattern: &str) -> Result<RegexMatcher, ToolError> {
    RegexMatcher::new(pattern).map_err(|error| {
        ToolError::new(
            ToolErrorKind::InvalidInput,
            format!("BashOutput: `filter` is not a regular expression: {error}"),
            "Correct it, or leave it out to see all lines.",
        )
    })
}

async fn look(
    id: String,
    wait: Option<Duration>,
    filter: Option<RegexMatcher>,
    context: CallContext,
) -> Result<ToolOutput, ToolError> {
    let tasks = context.shell.tasks();
    let task = tasks.find(&id).ok_or_else(|| unknown(tasks, &id))?;
    if let Some(wait) = wait {
        tokio::select! {
            () = task.news() => {}
            () = tokio::time::sleep(wait) => {}
            () = context.cancel.cancelled() => {
                return Err(ToolError::new(
                    ToolErrorKind::Cancelled,
                    format!("Waiting for {task} was cancelled; it runs on."),
                    "Do not wait for it again unless the user asks for it.",
                ));
            }
        }
    }
    Ok(shown(&task, tasks.look(&task), filter.as_ref()))
}

/// The text for the model after a read.
pub(super) fn shown(task: &ShellTask, seen: TaskView, filter: Option<&RegexMatcher>) -> ToolOutput {
    let TaskView { output, state, duration, guarded } = seen;
    let seconds = duration.as_secs_f64();
    let (status, code) = match &state {
        TaskState::Running => ("running", None),
        TaskState::Ended(TaskEnd::Exited { code }) => ("exited", Some(*code)),
        TaskState::Ended(TaskEnd::Signaled { .. }) => ("signaled", None),
        TaskState::Ended(TaskEnd::Killed | TaskEnd::WithSession) => ("killed", None),
        TaskState::Ended(TaskEnd::Failed { .. }) => ("failed", None),
    };
    let head = match &state {
        TaskState::Running => format!("{task} runs, for {seconds:.1} s now."),
        TaskState::Ended(end) => format!("{task} {end}, after {seconds:.1} s."),
    };
    let (lines, left_out) = filtered(&output, filter);
    let lines = lines.trim_end();
    let mut text = head.clone();
    text.push('\n');
    text.push_str(if lines.is_empty() { "(no new output)" } else { lines });
    let mut notes = Vec::new();
    if left_out > 0 {
        notes.push(format!("Note: {left_out} new lines that the filter does not match are left out."));
    }
    if let (Some(file), true) = (&output.file, output.cut > 0 || left_out > 0) {
        notes.push(kept_note(file));
    }
    notes.extend(guard_notes(&guarded));
    for note in notes {
        text.push_str("\n\n");
        text.push_str(&note);
    }
    let file = output.file.as_ref().map_or(Value::Null, |file| json!(file.path.to_string()));
    let structured = json!({
        "taskId": task.id().as_str(),
        "status": status,
        "exitCode": code,
        "durationMs": u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        "truncatedChars": output.cut,
        "outputFile": file,
    });
    ToolOutput { model_text: text, display: head, structured: Some(structured), ..ToolOutput::default() }
}

/// The lines that are shown, and how many are not.
fn filtered(output: &CapturedOutput, filter: Option<&RegexMatcher>) -> (String, usize) {
    let Some(filter) = filter else { return (output.text.clone(), 0) };
    let matches = |line: &str| {
        let line = line.trim_end_matches(['\n', '\r']);
        // A gap in the middle is reported for every filter.
        filter.is_match(line.as_bytes()).unwrap_or(true) || output.is_marker(line)
    };
    let (shown, left_out): (Vec<_>, Vec<_>) =
        output.text.split_inclusive('\n').partition(|line| matches(line));
    (shown.concat(), left_out.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bash::Bash;
    use crate::testing::Fixture;

    async fn begin(fixture: &Fixture, context: &CallContext, command: &str) {
        let input = json!({ "command": command, "run_in_background": true });
        fixture.run_in(context.clone(), Bash, input).await.unwrap();
    }

    async fn end(context: &CallContext) {
        context.shell.tasks().close();
        context.shell.tasks().closed().await;
    }

    #[tokio::test]
    async fn output_is_reported_once_with_the_state() {
        let fixture = Fixture::new();
        let context = fixture.context();
        begin(&fixture, &context, "echo begun; until [ -e go-on ]; do sleep 0.01; done; echo over; exit 2")
            .await;
        let look = async |input: Value| fixture.run_in(context.clone(), BashOutput, input).await.unwrap();
        let first = look(json!({ "task_id": "bash_1", "block": true })).await;
        assert!(
            first.model_text.contains(" runs, for ") && first.model_text.ends_with("\nbegun"),
            "{first:?}"
        );
        assert_eq!(first.structured.unwrap()["status"], "running");
        let again = look(json!({ "bash_id": "bash_1" })).await;
        assert!(again.model_text.ends_with("\n(no new output)"), "{again:?}");
        fixture.write("go-on", "");
        context.shell.tasks().find("bash_1").unwrap().until_ended().await;
        let last = look(json!({ "shell_id": "bash_1", "block": true, "timeout": 600_000 })).await;
        assert!(last.model_text.contains(" ended with exit code 2, after "), "{last:?}");
        assert!(last.model_text.ends_with("\nover"), "{last:?}");
        let structured = last.structured.unwrap();
        assert_eq!((&structured["status"], &structured["exitCode"]), (&json!("exited"), &json!(2)));
    }

    #[tokio::test]
    async fn only_lines_that_match_are_shown_and_the_others_are_counted() {
        let fixture = Fixture::new();
        let context = fixture.context();
        begin(&fixture, &context, "printf 'a\\nerror: x\\nb\\nerror: y'").await;
        context.shell.tasks().find("bash_1").unwrap().until_ended().await;
        let input = json!({ "task_id": "bash_1", "filter": "^error" });
        let text = fixture.run_in(context.clone(), BashOutput, input).await.unwrap().model_text;
        assert!(text.contains("\nerror: x\nerror: y\n"), "{text}");
        assert!(
            text.contains("2 new lines that the filter does not match") && text.contains(".txt`"),
            "{text}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_with_its_time_or_a_cancel_and_the_command_runs_on() {
        let fixture = Fixture::new();
        let context = fixture.context();
        begin(&fixture, &context, "sleep 600").await;
        let input = json!({ "task_id": "bash_1", "block": true });
        let found = fixture.run_in(context.clone(), BashOutput, input.clone()).await.unwrap();
        assert_eq!(found.structured.unwrap()["status"], "running");
        context.cancel.cancel();
        let error = fixture.run_in(context.clone(), BashOutput, input).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Cancelled);
        assert_eq!(context.shell.tasks().running().len(), 1);
        end(&context).await;
    }

    #[tokio::test]
    async fn arguments_that_cannot_work_are_refused() {
        let fixture = Fixture::new();
        let cases = [
            (json!({}), "`task_id` is missing"),
            (json!({ "task_id": " " }), "`task_id` is empty"),
            (json!({ "task_id": "bash_1", "bash_id": "bash_2" }), "name different commands"),
            (json!({ "task_id": "bash_1", "timeout": 600_001 }), "600001 ms is more than the 600000 ms"),
            (json!({ "task_id": "bash_1", "filter": "(" }), "`filter` is not a regular expression"),
        ];
        for (input, message) in cases {
            let error = fixture.plan(BashOutput, input).await.unwrap_err();
            assert_eq!(error.kind, ToolErrorKind::InvalidInput);
            assert!(error.message.contains(message) && !error.hint.is_empty(), "{error:?}");
        }
        let error = fixture.run(BashOutput, json!({ "task_id": "bash_1" })).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::NotFound);
        assert!(error.message.contains("`bash_1`") && error.hint.contains("None runs now"), "{error:?}");
    }
}
