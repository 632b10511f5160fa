//! The hooks of a call: before it is judged in full, when the user would be asked, and after it has ended.
//!
//! Rule: a hook can make the judgment of a call stricter than rules and guarded places, never looser. Arguments that a hook
//! gives replace all of the model's and are checked like those.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::HookRunner;
use super::fire::{HookReply, HookTrigger};
use super::in_process::{HookCall, PreCallDecision};
use super::output::HookChoice;
use super::update::{self, PermissionUpdates};
use crate::conversation::Conversation;
use kode_base::call::{ToolError, ToolErrorKind};
use kode_base::command_shell::CommandShell;
use kode_base::ids::{CallId, TurnId};
use kode_base::reminder;
use kode_config::hooks::event::HookEvent;
use kode_permission::gate::GateCase;
use kode_permission::{Offer, PromptAnswer};
use kode_text::workspace::Workspace;
use kode_tool::ToolOutput;

/// The name of the answering party, where a hook answered.
pub(crate) const BY_HOOK: &str = "a hook";

/// The most time of hooks after a cancelled call.
const AFTER_CANCEL: Duration = Duration::from_secs(2);

/// The arguments that are paths.
const PATHS: [&str; 3] = ["file_path", "notebook_path", "path"];

/// A call that hooks run for.
#[derive(Clone, Copy)]
pub(crate) struct HookedCall<'a> {
    pub(crate) turn: &'a TurnId,
    pub(crate) call: &'a CallId,
    pub(crate) case: &'a GateCase<'a>,
}

/// The reply of hooks before a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PreCallReply {
    pub(crate) choice: Option<(HookChoice, String)>,
    /// All arguments, where they are others now.
    pub(crate) input: Option<Value>,
    /// Texts for the model, with the result.
    pub(crate) context: Vec<String>,
    /// Whether a hook has stopped the turn.
    pub(crate) is_stopped: bool,
}

/// The reply of hooks to a permission prompt.
pub(crate) struct PermissionReply {
    pub(crate) answer: PromptAnswer,
    /// Its changes of the permissions, where its permission applies.
    pub(crate) updates: PermissionUpdates,
    /// Whether the turn ends.
    pub(crate) interrupt: bool,
}

impl HookRunner {
    /// Whether a hook could run at an event of a call.
    pub(crate) fn has_call_hooks(&self, conversation: &Conversation, event: HookEvent) -> bool {
        let is_chained = !matches!(event, HookEvent::PermissionRequest) && !self.state.chain.is_empty();
        is_chained || self.has_hooks(conversation, event)
    }

    /// Runs the hooks before a call that no rule refuses.
    pub(crate) async fn before_call(
        &self,
        conversation: &Conversation,
        call: HookedCall<'_>,
        cancel: &CancellationToken,
    ) -> PreCallReply {
        let mut before = self.chained_before(conversation, call).await;
        if matches!(before.choice, Some((HookChoice::Deny, _)))
            || !self.has_hooks(conversation, HookEvent::PreToolUse)
        {
            return before;
        }
        let input = before.input.as_ref().unwrap_or(call.case.input);
        let case = GateCase { input, ..*call.case };
        let call = HookedCall { case: &case, ..call };
        let trigger = trigger(conversation, HookEvent::PreToolUse, call, Map::new());
        let reply = self.fire(conversation, trigger, cancel).await;
        before.is_stopped = self.note_stop(call.turn, reply.stop);
        before.context.extend(reply.context);
        let choices = before.choice.into_iter().chain(reply.choice);
        // Of equals the first.
        before.choice = choices.reduce(|one, other| if other.0 > one.0 { other } else { one });
        before.input = match &before.choice {
            Some((HookChoice::Deny, _)) => None,
            _ => reply.updated_input.or(before.input),
        };
        before
    }

    async fn chained_before(&self, conversation: &Conversation, call: HookedCall<'_>) -> PreCallReply {
        let chain = &self.state.chain;
        if chain.is_empty() {
            return PreCallReply::default();
        }
        let said = chain.before(self.hook_call(conversation, call)).await;
        let choice = match said.decision {
            PreCallDecision::Continue | PreCallDecision::Update { .. } => None,
            PreCallDecision::Allow => Some((HookChoice::Allow, String::new())),
            PreCallDecision::Ask { reason } => Some((HookChoice::Ask, reason)),
            PreCallDecision::Deny { reason } => Some((HookChoice::Deny, reason)),
        };
        PreCallReply { choice, input: said.input, ..PreCallReply::default() }
    }

    /// Runs the hooks of a permission prompt; `None` when none answers.
    pub(crate) async fn answer_for_user(
        &self,
        conversation: &Conversation,
        call: HookedCall<'_>,
        offers: &[Offer],
        cancel: &CancellationToken,
    ) -> Option<PermissionReply> {
        if !self.has_hooks(conversation, HookEvent::PermissionRequest) {
            return None;
        }
        let mut fields = Map::new();
        fields.insert("permission_suggestions".to_owned(), update::suggestions(offers));
        let trigger = trigger(conversation, HookEvent::PermissionRequest, call, fields);
        let mut reply = self.fire(conversation, trigger, cancel).await;
        let is_stopped = self.note_stop(call.turn, reply.stop.take());
        let Some(said) = reply.permission.take() else {
            return is_stopped.then(|| PermissionReply {
                answer: answer(false, None, Some("A hook stopped the turn.".to_owned())),
                updates: PermissionUpdates::default(),
                interrupt: false,
            });
        };
        let is_of_workspace = reply.permission_is_of_workspace;
        let updates = PermissionUpdates { entries: said.updates, is_of_workspace };
        let answer = answer(said.allow, said.updated_input, said.message);
        Some(PermissionReply { answer, updates, interrupt: said.interrupt && !said.allow })
    }

    /// Runs the hooks after a call and adds their texts to its result.
    pub(crate) async fn after_call(
        &self,
        conversation: &Conversation,
        call: HookedCall<'_>,
        mut result: Result<ToolOutput, ToolError>,
        (took, before): (Duration, Vec<String>),
        cancel: &CancellationToken,
    ) -> Result<ToolOutput, ToolError> {
        let mut texts = before;
        if !self.state.chain.is_empty() {
            let hook_call = self.hook_call(conversation, call);
            texts.extend(self.state.chain.after(hook_call, &mut result).await);
        }
        let event = if result.is_ok() { HookEvent::PostToolUse } else { HookEvent::PostToolUseFailure };
        if self.has_hooks(conversation, event) {
            let fields = fields_after(&result, call.case, took, conversation.workspace());
            let mut trigger = trigger(conversation, event, call, fields);
            // Hooks of a cancelled call run as well, for a short time.
            let own = CancellationToken::new();
            let is_cancelled = cancel.is_cancelled();
            let cancel = if is_cancelled { &own } else { cancel };
            trigger.limit = is_cancelled.then_some(AFTER_CANCEL);
            let reply = self.fire(conversation, trigger, cancel).await;
            let HookReply { context, block, updated_output, stop, .. } = reply;
            self.note_stop(call.turn, stop);
            texts.extend(context);
            texts.extend(block.map(|reason| format!("A hook objects to this call: {reason}")));
            if let (Ok(output), Some(updated)) = (&mut result, updated_output) {
                output.model_text = match updated {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
            }
        }
        if texts.is_empty() {
            return result;
        }
        let text: String =
            texts.iter().map(|text| format!("\n\n{}", reminder(&format!("A hook says:\n{text}")))).collect();
        match &mut result {
            Ok(output) => output.model_text.push_str(&text),
            Err(error) => error.hint.push_str(&text),
        }
        result
    }

    fn hook_call<'a>(&'a self, conversation: &'a Conversation, call: HookedCall<'a>) -> HookCall<'a> {
        HookCall {
            session: self.core.id(),
            agent: conversation.agent(),
            call: call.call,
            tool: call.case.tool,
            input: call.case.input,
        }
    }
}

/// The event of a call.
fn trigger<'a>(
    conversation: &Conversation,
    event: HookEvent,
    call: HookedCall<'a>,
    more: Map<String, Value>,
) -> HookTrigger<'a> {
    let mut fields = Map::new();
    fields.insert("tool_name".to_owned(), json!(call.case.tool));
    fields.insert("tool_input".to_owned(), absolute(call.case.input, conversation.workspace()));
    fields.insert("tool_use_id".to_owned(), json!(call.call));
    fields.extend(more);
    HookTrigger {
        event,
        value: Some(call.case.tool),
        fields,
        call: Some(call.case),
        turn: Some(call.turn),
        limit: None,
    }
}

fn answer(allow: bool, updated_input: Option<Value>, feedback: Option<String>) -> PromptAnswer {
    let by = BY_HOOK.to_owned();
    PromptAnswer { allow, feedback, updated_input, by, ..PromptAnswer::default() }
}

/// The fields of the end of a call.
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

/// A result in the form that scripts read: the structured result of the tool, its text, and the field names of other agents.
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
    if CommandShell::of_tool(case.tool).is_some() {
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
