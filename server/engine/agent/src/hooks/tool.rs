//! Hooks around a call: before it is judged in full, when the user would be asked, and when it has ended.
//!
//! Rule: a hook can make a call stricter and never looser than rules and guarded places let it be; arguments that a hook
//! gives take the place of all of the model's and are checked like those.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::fire::{Fired, Moment};
use super::in_process::{HookCall, PreDecision};
use super::output::Choice;
use super::update::{self, Updates};
use crate::session::conversation::Conversation;
use kode_base::call::{ToolError, ToolErrorKind};
use kode_base::ids::{CallId, TurnId};
use kode_base::reminder;
use kode_config::hooks::event::HookEvent;
use kode_permission::gate::GateCase;
use kode_permission::{Offer, PromptAnswer, Scope};
use kode_text::workspace::Workspace;
use kode_tool::ToolOutput;

/// Who answered, where a hook did.
pub(crate) const BY_HOOK: &str = "a hook";

/// So long hooks may take that are told of a call which was cancelled.
const AFTER_CANCEL: Duration = Duration::from_secs(2);

/// The arguments that are paths.
const PATHS: [&str; 3] = ["file_path", "notebook_path", "path"];

/// The call that hooks look at.
#[derive(Clone, Copy)]
pub(crate) struct Looked<'a> {
    pub(crate) turn: &'a TurnId,
    pub(crate) call: &'a CallId,
    pub(crate) case: &'a GateCase<'a>,
}

/// What hooks say before a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Before {
    pub(crate) choice: Option<(Choice, String)>,
    /// All arguments, where they are others now.
    pub(crate) input: Option<Value>,
    /// What the model is told with the result.
    pub(crate) context: Vec<String>,
    /// Whether a hook has stopped the turn.
    pub(crate) is_stopped: bool,
}

/// The answer of a hook to a permission prompt.
pub(crate) struct Answered {
    pub(crate) answer: PromptAnswer,
    /// What it changes of the permissions, where its yes counts.
    pub(crate) updates: Updates,
    /// Whether the turn ends.
    pub(crate) interrupt: bool,
}

impl Conversation<'_> {
    /// Whether anybody looks at calls at an event.
    pub(crate) fn has_tool_hooks(&self, event: HookEvent) -> bool {
        let is_chained =
            !matches!(event, HookEvent::PermissionRequest) && !self.session.hooks.chain.is_empty();
        is_chained || self.has_hooks(event)
    }

    /// Has hooks look at a call that no rule refuses.
    pub(crate) async fn before_call(&self, looked: Looked<'_>, cancel: &CancellationToken) -> Before {
        let mut before = self.chained_before(looked).await;
        if matches!(before.choice, Some((Choice::Deny, _))) || !self.has_hooks(HookEvent::PreToolUse) {
            return before;
        }
        let input = before.input.as_ref().unwrap_or(looked.case.input);
        let case = GateCase { input, ..*looked.case };
        let moment = self.moment(HookEvent::PreToolUse, Looked { case: &case, ..looked }, Map::new());
        let fired = self.fire(moment, cancel).await;
        before.is_stopped = self.note_stop(looked.turn, fired.stop);
        before.context.extend(fired.context);
        let choices = before.choice.into_iter().chain(fired.choice);
        // Of equals the first.
        before.choice = choices.reduce(|one, other| if other.0 > one.0 { other } else { one });
        before.input = match &before.choice {
            Some((Choice::Deny, _)) => None,
            _ => fired.updated_input.or(before.input),
        };
        before
    }

    async fn chained_before(&self, looked: Looked<'_>) -> Before {
        let chain = &self.session.hooks.chain;
        if chain.is_empty() {
            return Before::default();
        }
        let said = chain.before(self.hook_call(looked)).await;
        let choice = match said.decision {
            PreDecision::Continue | PreDecision::Update { .. } => None,
            PreDecision::Allow => Some((Choice::Allow, String::new())),
            PreDecision::Ask { reason } => Some((Choice::Ask, reason)),
            PreDecision::Deny { reason } => Some((Choice::Deny, reason)),
        };
        Before { choice, input: said.input, ..Before::default() }
    }

    /// Has hooks answer a permission prompt. Nothing when none does.
    pub(crate) async fn answer_for_user(
        &self,
        looked: Looked<'_>,
        offers: &[Offer],
        cancel: &CancellationToken,
    ) -> Option<Answered> {
        if !self.has_hooks(HookEvent::PermissionRequest) {
            return None;
        }
        let mut fields = Map::new();
        fields.insert("permission_suggestions".to_owned(), update::suggestions(offers));
        let mut fired = self.fire(self.moment(HookEvent::PermissionRequest, looked, fields), cancel).await;
        let is_stopped = self.note_stop(looked.turn, fired.stop.take());
        let Some(said) = fired.permission.take() else {
            return is_stopped.then(|| Answered {
                answer: answer(false, None, Some("A hook stopped the turn.".to_owned())),
                updates: Updates::default(),
                interrupt: false,
            });
        };
        let is_of_workspace = fired.permission_is_of_workspace;
        let updates = Updates { entries: said.updates, is_of_workspace };
        let answer = answer(said.allow, said.updated_input, said.message);
        Some(Answered { answer, updates, interrupt: said.interrupt && !said.allow })
    }

    /// Has hooks look at how a call ended, and adds what they say to its result.
    pub(crate) async fn after_call(
        &self,
        looked: Looked<'_>,
        mut result: Result<ToolOutput, ToolError>,
        took: Duration,
        before: Vec<String>,
        cancel: &CancellationToken,
    ) -> Result<ToolOutput, ToolError> {
        let mut told = before;
        if !self.session.hooks.chain.is_empty() {
            told.extend(self.session.hooks.chain.after(self.hook_call(looked), &mut result).await);
        }
        let event = if result.is_ok() { HookEvent::PostToolUse } else { HookEvent::PostToolUseFailure };
        if self.has_hooks(event) {
            let fields = fields_after(&result, looked.case, took, self.workspace());
            let mut moment = self.moment(event, looked, fields);
            // A cancelled call is told of as well; nobody waits for that for long.
            let own = CancellationToken::new();
            let is_cancelled = cancel.is_cancelled();
            let cancel = if is_cancelled { &own } else { cancel };
            moment.limit = is_cancelled.then_some(AFTER_CANCEL);
            let fired = self.fire(moment, cancel).await;
            let Fired { context, block, updated_output, stop, .. } = fired;
            self.note_stop(looked.turn, stop);
            told.extend(context);
            told.extend(block.map(|reason| format!("A hook objects to this call: {reason}")));
            if let (Ok(output), Some(updated)) = (&mut result, updated_output) {
                output.model_text = match updated {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
            }
        }
        if told.is_empty() {
            return result;
        }
        let told: String =
            told.iter().map(|text| format!("\n\n{}", reminder(&format!("A hook says:\n{text}")))).collect();
        match &mut result {
            Ok(output) => output.model_text.push_str(&told),
            Err(error) => error.hint.push_str(&told),
        }
        result
    }

    fn hook_call<'a>(&'a self, looked: Looked<'a>) -> HookCall<'a> {
        HookCall {
            session: self.session.id(),
            agent: self.agent.as_ref(),
            call: looked.call,
            tool: looked.case.tool,
            input: looked.case.input,
        }
    }

    fn moment<'a>(&self, event: HookEvent, looked: Looked<'a>, more: Map<String, Value>) -> Moment<'a> {
        let mut fields = Map::new();
        fields.insert("tool_name".to_owned(), json!(looked.case.tool));
        fields.insert("tool_input".to_owned(), absolute(looked.case.input, self.workspace()));
        fields.insert("tool_use_id".to_owned(), json!(looked.call));
        fields.extend(more);
        Moment {
            event,
            value: Some(looked.case.tool),
            fields,
            call: Some(looked.case),
            turn: Some(looked.turn),
            limit: None,
        }
    }
}

fn answer(allow: bool, updated_input: Option<Value>, feedback: Option<String>) -> PromptAnswer {
    let by = BY_HOOK.to_owned();
    PromptAnswer { allow, scope: Scope::Once, feedback, updated_input, rules: None, hunks: None, by }
}

/// What hooks are told of how a call ended.
fn fields_after(
    result: &Result<ToolOutput, ToolError>,
    case: &GateCase<'_>,
    took: Duration,
    workspace: &Workspace,
) -> Map<String, Value> {
    let mut fields = Map::new();
    match result {
        Ok(output) => {
            fields.insert("tool_response".to_owned(), response(output, case, workspace));
        }
        Err(error) => {
            fields.insert("error".to_owned(), json!(error.message));
            fields.insert("is_interrupt".to_owned(), json!(error.kind == ToolErrorKind::Cancelled));
        }
    }
    let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    fields.insert("duration_ms".to_owned(), json!(took));
    fields
}

/// A result in the form that scripts read: what the tool says for machines, with the text, and the names others have for it.
fn response(output: &ToolOutput, case: &GateCase<'_>, workspace: &Workspace) -> Value {
    let mut fields = match &output.structured {
        Some(Value::Object(fields)) => fields.clone(),
        Some(other) => Map::from_iter([("data".to_owned(), other.clone())]),
        None => Map::new(),
    };
    let mut put = |name: &str, value: Value| {
        fields.entry(name).or_insert(value);
    };
    put("text", json!(output.model_text));
    put("success", json!(true));
    if case.tool == "Bash" {
        put("stdout", json!(output.model_text));
        put("stderr", json!(""));
        put("interrupted", json!(false));
    }
    let input = absolute(case.input, workspace);
    if let Some(path) = input.get("file_path") {
        put("filePath", path.clone());
    }
    Value::Object(fields)
}

/// The arguments with all paths absolute.
fn absolute(input: &Value, workspace: &Workspace) -> Value {
    let mut input = input.clone();
    for name in PATHS {
        let Some(Value::String(path)) = input.get_mut(name) else { continue };
        if let Some(file) = workspace.resolve(path).ok().as_ref().and_then(|target| target.file()) {
            *path = file.to_string();
        }
    }
    input
}
