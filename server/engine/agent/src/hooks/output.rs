//! The output of one run of a hook: exit code, JSON and plain text, parsed into one value.
//!
//! Rule: exit code 2 blocks where the event can block, regardless of other output; other codes and broken JSON never do;
//! output that is not understood is reported and decides nothing.

use serde_json::{Map, Value};

use super::update::{self, PermissionUpdate};
use kode_config::hooks::event::{BlockEffect, HookEvent};
use kode_process::outcome::Exit;
use kode_record::hook::HookOutcome;

/// The reason where a hook gives none.
const NO_REASON: &str = "it gives no reason";

/// Words in the name of a hook that is meant to hold something back.
const GUARDS: [&str; 9] =
    ["guard", "block", "deny", "protect", "prevent", "forbid", "check", "validate", "verify"];

/// The end of a run.
#[derive(Clone, Debug)]
pub(super) struct HandlerRun {
    pub(super) exit: HandlerExit,
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// The command, in one line.
    pub(super) head: String,
    /// The missing programs and scripts that it names.
    pub(super) missing: Option<String>,
}

impl HandlerRun {
    /// Of a hook that was not started.
    pub(super) fn not_started(head: String, reason: &str) -> Self {
        let exit = HandlerExit::NotStarted(reason.to_owned());
        Self { exit, stdout: String::new(), stderr: String::new(), head, missing: None }
    }
}

/// How something that was run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HandlerExit {
    /// As a process does.
    Exit(Exit),
    /// It could not be started.
    NotStarted(String),
    /// It failed in its own way: a server's refusal, a model's fault.
    Failed(String),
}

/// The decision of a hook on a call, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HookChoice {
    /// No question to the user is needed.
    Allow,
    /// The user is asked.
    Ask,
    /// Another party decides: here the user.
    Defer,
    /// It does not run.
    Deny,
}

/// The answer to a permission prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PermissionAnswer {
    pub(crate) allow: bool,
    pub(crate) updated_input: Option<Value>,
    pub(crate) updates: Vec<PermissionUpdate>,
    pub(crate) message: Option<String>,
    /// Whether the turn ends.
    pub(crate) interrupt: bool,
}

/// The output of a hook.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HandlerOutput {
    pub(crate) choice: Option<(HookChoice, String)>,
    /// The reason to block, or to continue.
    pub(crate) block: Option<String>,
    pub(crate) updated_input: Option<Value>,
    pub(crate) context: Option<String>,
    pub(crate) updated_output: Option<Value>,
    /// Why the turn stops.
    pub(crate) stop: Option<String>,
    pub(crate) system_message: Option<String>,
    pub(crate) permission: Option<PermissionAnswer>,
    pub(crate) session_title: Option<String>,
    pub(crate) initial_message: Option<String>,
    /// The error, for the user.
    pub(crate) error: Option<String>,
    /// Advice on the output's form.
    pub(crate) notes: Vec<String>,
    pub(crate) outcome: Option<HookOutcome>,
}

impl HandlerOutput {
    /// How the run ended, in one word.
    pub(crate) fn outcome(&self) -> HookOutcome {
        if let Some(outcome) = self.outcome {
            return outcome;
        }
        match &self.choice {
            _ if self.stop.is_some() => HookOutcome::Stopped,
            _ if self.block.is_some() => HookOutcome::Blocked,
            Some((HookChoice::Deny, _)) => HookOutcome::Blocked,
            Some((HookChoice::Ask | HookChoice::Defer, _)) => HookOutcome::Asked,
            _ if self.permission.as_ref().is_some_and(|answer| !answer.allow) => HookOutcome::Blocked,
            _ if self.error.is_some() => HookOutcome::Failed,
            _ if self.updated_input.is_some()
                || self.updated_output.is_some()
                || self.context.is_some()
                || self.permission.is_some()
                || self.initial_message.is_some() =>
            {
                HookOutcome::Changed
            }
            Some((HookChoice::Allow, _)) | None => HookOutcome::Ok,
        }
    }

    /// The report of the run, in one line.
    pub(crate) fn message(&self) -> Option<String> {
        let refused = self.permission.as_ref().and_then(|answer| answer.message.as_ref());
        let reason = self.choice.as_ref().map(|(_, reason)| reason).filter(|reason| !reason.is_empty());
        let said = [self.error.as_ref(), self.stop.as_ref(), self.block.as_ref(), reason, refused];
        said.into_iter().flatten().chain(self.notes.first()).next().cloned()
    }

    fn failed(outcome: HookOutcome, error: String) -> Self {
        Self { outcome: Some(outcome), error: Some(error), ..Self::default() }
    }
}

/// The output of a run at an event.
pub(super) fn read(event: HookEvent, run: &HandlerRun) -> HandlerOutput {
    let code = match &run.exit {
        HandlerExit::NotStarted(reason) => {
            return HandlerOutput::failed(
                HookOutcome::NotSetUp,
                format!("`{}` could not be started: {reason}", run.head),
            );
        }
        HandlerExit::Failed(reason) => {
            return HandlerOutput::failed(HookOutcome::Failed, format!("`{}`: {reason}", run.head));
        }
        HandlerExit::Exit(Exit::TimedOut) => {
            let error = format!("`{}` took too long and was stopped; it decides nothing", run.head);
            return HandlerOutput::failed(HookOutcome::TimedOut, error);
        }
        HandlerExit::Exit(Exit::Cancelled) => {
            return HandlerOutput { outcome: Some(HookOutcome::Cancelled), ..HandlerOutput::default() };
        }
        HandlerExit::Exit(Exit::Signal(signal)) => {
            return HandlerOutput::failed(
                HookOutcome::Failed,
                format!("`{}` was ended by signal {signal}", run.head),
            );
        }
        HandlerExit::Exit(Exit::Code(code)) => *code,
    };
    if let Some(missing) = run.missing.as_ref().filter(|_| code != 0) {
        let error = format!("`{}` is not set up: {missing}; it decides nothing", run.head);
        return HandlerOutput::failed(HookOutcome::NotSetUp, error);
    }
    let mut said = match parsed(run.stdout.trim()) {
        ParsedOutput::Strict(object) => of_object(event, &object),
        ParsedOutput::Loose(object) if code == 0 => {
            let note = "its JSON does not stand alone on standard output; print nothing else";
            let mut said = of_object(event, &object);
            said.notes.push(note.to_owned());
            said
        }
        ParsedOutput::Loose(_) | ParsedOutput::Text => of_text(event, code, &run.stdout),
        ParsedOutput::Broken(error) => HandlerOutput {
            notes: vec![format!("its output looks like JSON and is invalid: {error}")],
            ..of_text(event, code, &run.stdout)
        },
    };
    match code {
        0 => said,
        2 => blocked(event, said, run),
        126 | 127 => HandlerOutput::failed(
            HookOutcome::NotSetUp,
            format!("`{}` could not be started: {}", run.head, first_line(&run.stderr, "it was not found")),
        ),
        _ if !said.is_empty() => said,
        code => {
            let why = first_line(&run.stderr, "it says nothing about why");
            said.error = Some(format!("`{}` failed with exit code {code}: {why}", run.head));
            let name = run.head.to_ascii_lowercase();
            if code == 1
                && event.blocking() != BlockEffect::Ignored
                && GUARDS.iter().any(|word| name.contains(word))
            {
                said.notes
                    .push("exit code 1 holds nothing back; a hook that is to do so exits with 2".to_owned());
            }
            said
        }
    }
}

impl HandlerOutput {
    /// Whether it has no effect.
    fn is_empty(&self) -> bool {
        let said = Self { notes: Vec::new(), ..self.clone() };
        said == Self::default()
    }
}

/// The effect of exit code 2 at an event.
fn blocked(event: HookEvent, mut said: HandlerOutput, run: &HandlerRun) -> HandlerOutput {
    let given = said.choice.take().map(|(_, reason)| reason).filter(|reason| !reason.is_empty());
    let reason = said.block.take().or(given);
    let reason = reason.unwrap_or_else(|| match run.stderr.trim() {
        "" => NO_REASON.to_owned(),
        text => text.to_owned(),
    });
    match event.blocking() {
        BlockEffect::Blocks if event == HookEvent::PreToolUse => {
            said.updated_input = None;
            said.choice = Some((HookChoice::Deny, reason));
        }
        BlockEffect::Blocks => {
            said.context = None;
            said.block = Some(reason);
        }
        BlockEffect::GoesOn | BlockEffect::TellsModel => said.block = Some(reason),
        BlockEffect::TellsUser => said.system_message = Some(reason),
        BlockEffect::Ignored => {}
    }
    said
}

enum ParsedOutput {
    /// The whole of it is one object.
    Strict(Map<String, Value>),
    /// It contains an object with hook fields.
    Loose(Map<String, Value>),
    /// It begins like an object but is not valid JSON.
    Broken(String),
    /// Anything else.
    Text,
}

fn parsed(stdout: &str) -> ParsedOutput {
    let strict = stdout.starts_with('{').then(|| serde_json::from_str(stdout));
    if let Some(Ok(object)) = strict {
        return ParsedOutput::Strict(object);
    }
    if let Some(object) = object_in(stdout) {
        return ParsedOutput::Loose(object);
    }
    match strict {
        Some(Err(error)) => ParsedOutput::Broken(error.to_string()),
        Some(Ok(_)) | None => ParsedOutput::Text,
    }
}

/// The first object in a text that has hook fields.
fn object_in(text: &str) -> Option<Map<String, Value>> {
    const TRIES: usize = 50;
    const FIELDS: [&str; 7] = [
        "decision",
        "continue",
        "hookSpecificOutput",
        "systemMessage",
        "permissionDecision",
        "additionalContext",
        "stopReason",
    ];
    text.match_indices('{').take(TRIES).find_map(|(at, _)| {
        let mut objects = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Map<String, Value>>();
        let object = objects.next()?.ok()?;
        FIELDS.iter().any(|field| object.contains_key(*field)).then_some(object)
    })
}

/// The effect of plain text at an event.
fn of_text(event: HookEvent, code: i32, stdout: &str) -> HandlerOutput {
    let text = stdout.trim();
    let is_context = code == 0 && event.takes_plain_text() && !text.is_empty();
    HandlerOutput { context: is_context.then(|| text.to_owned()), ..HandlerOutput::default() }
}

/// The effect of an object at an event.
fn of_object(event: HookEvent, object: &Map<String, Value>) -> HandlerOutput {
    let mut said = HandlerOutput::default();
    let empty = Map::new();
    let specific = object.get("hookSpecificOutput").and_then(Value::as_object).unwrap_or(&empty);
    if let Some(named) = specific.get("hookEventName").and_then(Value::as_str)
        && named != event.name()
    {
        said.notes.push(format!("its hookEventName is {named}, and the event is {}", event.name()));
    }
    let text = |name: &str| text_of(specific, name).or_else(|| text_of(object, name));
    if object.get("continue").and_then(Value::as_bool) == Some(false) {
        said.stop = Some(text_of(object, "stopReason").unwrap_or_else(|| NO_REASON.to_owned()));
    }
    said.system_message = text_of(object, "systemMessage");
    if event != HookEvent::PermissionRequest {
        said.context = text("additionalContext");
    }
    said.session_title = text("sessionTitle");
    said.initial_message = text_of(specific, "initialUserMessage");
    match event {
        HookEvent::PreToolUse => of_pre_tool_use(object, specific, &mut said),
        HookEvent::PermissionRequest => of_permission_request(specific, &mut said),
        HookEvent::PostToolUse => {
            said.updated_output =
                specific.get("updatedToolOutput").filter(|output| !output.is_null()).cloned();
            of_decision(object, &mut said);
        }
        HookEvent::Compaction | HookEvent::PreCompact => {
            of_decision(object, &mut said);
            let is_blocked = [object, specific]
                .iter()
                .any(|from| from.get("blockCompaction").and_then(Value::as_bool) == Some(true));
            if is_blocked {
                said.block = Some(text("blockReason").unwrap_or_else(|| NO_REASON.to_owned()));
            }
        }
        HookEvent::PostToolUseFailure
        | HookEvent::UserPromptSubmit
        | HookEvent::Stop
        | HookEvent::SubagentStop => of_decision(object, &mut said),
        HookEvent::SessionStart
        | HookEvent::SessionEnd
        | HookEvent::SubagentStart
        | HookEvent::Notification
        | HookEvent::PostCompact => {}
    }
    said
}

/// The old decision, as events other than those about permissions have it.
fn of_decision(object: &Map<String, Value>, said: &mut HandlerOutput) {
    match object.get("decision").and_then(Value::as_str) {
        Some("block" | "deny") => {
            said.block = Some(text_of(object, "reason").unwrap_or_else(|| NO_REASON.to_owned()));
        }
        None | Some("approve" | "allow" | "passthrough" | "continue") => {}
        Some(other) => said.notes.push(format!("its decision `{other}` means nothing; write block")),
    }
}

fn of_pre_tool_use(object: &Map<String, Value>, specific: &Map<String, Value>, said: &mut HandlerOutput) {
    let reason = text_of(specific, "permissionDecisionReason").or_else(|| text_of(object, "reason"));
    let reason = || reason.clone().unwrap_or_default();
    let stated = specific.get("permissionDecision").and_then(Value::as_str);
    let beside = object.get("permissionDecision").and_then(Value::as_str);
    if let (None, Some(_)) = (stated, beside) {
        said.notes.push("its permissionDecision belongs into hookSpecificOutput".to_owned());
    }
    let choice = match stated.or(beside) {
        Some("allow") => Some(HookChoice::Allow),
        Some("deny") => Some(HookChoice::Deny),
        Some("ask") => Some(HookChoice::Ask),
        Some("defer") => Some(HookChoice::Defer),
        None | Some("passthrough" | "continue") => None,
        Some(other) => {
            said.notes.push(format!(
                "its permissionDecision `{other}` means nothing; write allow, deny, ask or defer"
            ));
            None
        }
    };
    let old = match object.get("decision").and_then(Value::as_str) {
        Some("approve" | "allow") => Some(HookChoice::Allow),
        Some("block" | "deny") => Some(HookChoice::Deny),
        Some("ask") => Some(HookChoice::Ask),
        None | Some("passthrough" | "continue") => None,
        Some(other) => {
            said.notes.push(format!("its decision `{other}` means nothing; write approve or block"));
            None
        }
    };
    said.choice = choice.or(old).map(|choice| (choice, reason()));
    said.updated_input = update::input_of(specific.get("updatedInput"), &mut said.notes);
}

fn of_permission_request(specific: &Map<String, Value>, said: &mut HandlerOutput) {
    let Some(decision) = specific.get("decision").and_then(Value::as_object) else { return };
    let allow = match decision.get("behavior").and_then(Value::as_str) {
        Some("allow") => true,
        Some("deny") => false,
        _ => {
            said.notes.push("its decision has no behavior; write allow or deny".to_owned());
            return;
        }
    };
    said.permission = Some(PermissionAnswer {
        allow,
        updated_input: update::input_of(decision.get("updatedInput"), &mut said.notes),
        updates: update::read(decision.get("updatedPermissions"), &mut said.notes),
        message: text_of(decision, "message"),
        interrupt: decision.get("interrupt").and_then(Value::as_bool).unwrap_or(false),
    });
}

fn text_of(object: &Map<String, Value>, name: &str) -> Option<String> {
    object.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

fn first_line(text: &str, otherwise: &str) -> String {
    const LENGTH: usize = 300;
    let line = text.trim().lines().next().filter(|line| !line.trim().is_empty()).unwrap_or(otherwise);
    line.chars().take(LENGTH).collect()
}

#[cfg(test)]
mod tests;
