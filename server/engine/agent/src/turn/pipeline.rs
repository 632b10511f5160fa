//! The way of one call, in seven stages: discovery, permission, pre-hook, confirmation, execution, post-hook,
//! formatting.
//!
//! Rule: this is the one gate. No stage is skipped, whatever fails becomes the call's result, arguments that a user or hook
//! changed go through discovery's checks and the permission stage again, and so does what had to wait for the user.

mod confirm;
mod diagnose;
mod execute;
mod refusal;
mod set_aside;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::confirm::{ConfirmedPlan, is_only_unspoken_for};
use self::execute::{RunningQuestion, fault};
use self::refusal::{changed_by_hook, of_hook, refused_by_hook, stopped, unless_refused};
use crate::conversation::Conversation;
use crate::core::thread::ThreadHandle;
use crate::gate::Judgment;
use crate::hooks::call::{BY_HOOK, HookedCall, PreCallReply};
use crate::hooks::output::HookChoice;
use crate::turn::delegate;
use crate::turn::resume::{PendingRequest, is_call_left_open};
use crate::turn::sample::ModelToolCall;
use crate::turn::services::{Services, TurnContext};
use kode_base::call::{ToolError, ToolErrorKind, Touch};
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_config::hooks::event::HookEvent;
use kode_config::ignore_files::IgnoreLook;
use kode_model::Block;
use kode_permission::equipment::Equipment;
use kode_permission::gate::{AnswerReach, GateCase};
use kode_permission::{GateDecision, Verdict};
use kode_record::event::{Breakpoint, CallOutcome, CallState};
use kode_record::record::ExecutedCall;
use kode_tool::{CallContext, CallPlan, ErasedTool, ToolOutput};

pub(super) use self::refusal::cancelled;

/// The stages, as traces name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PipelineStage {
    Discovery,
    Permission,
    PreHook,
    Confirmation,
    Execution,
    PostHook,
    Formatting,
}

/// Runs one call to its result and records it; `ignored` is the view of ignore files that calls judged together share.
pub(super) async fn run(
    turn: TurnContext<'_>,
    call: ModelToolCall,
    cancel: CancellationToken,
    ignored: Option<&Arc<IgnoreLook>>,
) {
    let started = Instant::now();
    let (asks, asked) = mpsc::channel(1);
    let asked = tokio::sync::Mutex::new(asked);
    let pipeline =
        Pipeline { turn, call: &call, cancel: &cancel, asks: &asks, asked: &asked, embedded: None, ignored };
    let mut instructed = Vec::new();
    // A fault in a tool ends its call and nothing else.
    let ran = AssertUnwindSafe(pipeline.run(&mut instructed)).catch_unwind().await;
    let result = ran.unwrap_or_else(|_| Err(fault(&call)));
    turn.services.turns.forget_call(&call.id);
    let is_cancelled = matches!(&result, Err(error) if error.kind == ToolErrorKind::Cancelled);
    if is_cancelled && is_call_left_open(turn, &call) {
        return;
    }
    delegate::give_up(&turn.services.core, &call);
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    trace(&call, PipelineStage::Formatting);
    format_result(&turn.conversation.thread, &call, (result, instructed), duration_ms);
}

/// Runs a call of the text of a file, which no transcript contains, through all stages; `equipment` is that of the file.
pub(super) async fn run_embedded(
    turn: TurnContext<'_>,
    call: &ModelToolCall,
    tool: Arc<dyn ErasedTool>,
    equipment: &Equipment,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    run_alone(turn, call, tool, Some(equipment), cancel).await
}

/// Runs a call that has no other calls beside it through all stages.
async fn run_alone(
    turn: TurnContext<'_>,
    call: &ModelToolCall,
    tool: Arc<dyn ErasedTool>,
    embedded: Option<&Equipment>,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let (asks, asked) = mpsc::channel(1);
    let asked = tokio::sync::Mutex::new(asked);
    let pipeline = Pipeline { turn, call, cancel, asks: &asks, asked: &asked, embedded, ignored: None };
    let result = pipeline.run_with(tool, &mut Vec::new()).await;
    turn.services.turns.forget_call(&call.id);
    result
}

/// Runs a call that a guest has made with a tool of its own, to its result, and records it.
pub(super) async fn run_guest(
    turn: TurnContext<'_>,
    call: &ModelToolCall,
    tool: Arc<dyn ErasedTool>,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let started = Instant::now();
    let result = judge_guest(turn, call, tool, cancel).await;
    end_guest(turn, call, result.clone(), started);
    result
}

/// As [`run_guest`], and the result is recorded by the caller.
pub(super) async fn judge_guest(
    turn: TurnContext<'_>,
    call: &ModelToolCall,
    tool: Arc<dyn ErasedTool>,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let ran = AssertUnwindSafe(run_alone(turn, call, tool, None, cancel)).catch_unwind().await;
    ran.unwrap_or_else(|_| Err(fault(call)))
}

/// Records the result of a call of a guest.
pub(super) fn end_guest(
    turn: TurnContext<'_>,
    call: &ModelToolCall,
    result: Result<ToolOutput, ToolError>,
    started: Instant,
) {
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    format_result(&turn.conversation.thread, call, (result, Vec::new()), duration_ms);
}

fn trace(call: &ModelToolCall, stage: PipelineStage) {
    tracing::debug!(call = %call.id, tool = %call.name, ?stage, "pipeline");
}

/// The plan of a call after its hooks.
struct HookedPlan {
    plan: CallPlan,
    judged: Judgment,
    /// The arguments, where a hook has changed them.
    input: Option<Value>,
    /// Texts for the model, with the result.
    context: Vec<String>,
    /// Whether a hook allows it without a question.
    is_allowed: bool,
}

#[derive(Clone, Copy)]
struct Pipeline<'a> {
    turn: TurnContext<'a>,
    call: &'a ModelToolCall,
    cancel: &'a CancellationToken,
    /// The questions of the running call, each with the sender of its answer.
    asks: &'a mpsc::Sender<RunningQuestion>,
    asked: &'a tokio::sync::Mutex<mpsc::Receiver<RunningQuestion>>,
    /// The equipment of the file that contains the call; `None` for a call of the transcript.
    embedded: Option<&'a Equipment>,
    /// The view of ignore files that it is judged by first, with the calls beside it; `None` for one of its own.
    ignored: Option<&'a Arc<IgnoreLook>>,
}

impl<'a> Pipeline<'a> {
    fn services(&self) -> &'a Services {
        self.turn.services
    }

    fn conversation(&self) -> &'a Conversation {
        self.turn.conversation
    }

    /// Goes through all stages. Notes in `instructed` the folders whose instructions are in the result.
    async fn run(&self, instructed: &mut Vec<AbsPath>) -> Result<ToolOutput, ToolError> {
        trace(self.call, PipelineStage::Discovery);
        let tool = self.discover()?;
        self.run_with(tool, instructed).await
    }

    /// Goes through the stages behind the discovery.
    async fn run_with(
        &self,
        tool: Arc<dyn ErasedTool>,
        instructed: &mut Vec<AbsPath>,
    ) -> Result<ToolOutput, ToolError> {
        let context = self.context();

        trace(self.call, PipelineStage::Permission);
        if let Some(PendingRequest::Permission(_, known)) = &self.call.pending {
            known.iter().for_each(|known| self.services().environment.workspace.recall(known));
        }
        let plan = self.plan(tool.as_ref(), self.call.input.clone(), &context).await?;
        self.services().gate.refresh().await;
        let judged = self.look(tool.as_ref(), &plan, &self.call.input, self.ignored);

        trace(self.call, PipelineStage::PreHook);
        let hooked = self.pre_hook(tool.as_ref(), plan, judged, &context).await?;
        // From here on the call has the arguments of the hooks.
        let call = match &hooked.input {
            Some(input) => &ModelToolCall { input: input.clone(), ..self.call.clone() },
            None => self.call,
        };
        let pipeline = Pipeline { call, ..*self };
        pipeline.carry_out(tool, hooked, context, instructed).await
    }

    /// Goes through the stages from the confirmation on.
    async fn carry_out(
        &self,
        tool: Arc<dyn ErasedTool>,
        hooked: HookedPlan,
        mut context: CallContext,
        instructed: &mut Vec<AbsPath>,
    ) -> Result<ToolOutput, ToolError> {
        let HookedPlan { plan, judged, input: changed, context: reported, is_allowed } = hooked;
        trace(self.call, PipelineStage::Confirmation);
        let confirmed = match judged.verdict.decision {
            // Its sub-agent was allowed to work before, and asks for its own calls.
            _ if self.is_resumed() => ConfirmedPlan::unasked(plan, judged.bounds),
            GateDecision::Ask if is_allowed && is_only_unspoken_for(&judged.verdict) => {
                self.note_allowed(BY_HOOK).await;
                ConfirmedPlan::unasked(plan, judged.bounds)
            }
            GateDecision::Ask if self.is_spared(&judged.verdict) => {
                self.note_allowed(self.call.spared_by.as_deref().unwrap_or_default()).await;
                ConfirmedPlan::unasked(plan, judged.bounds)
            }
            GateDecision::Ask => self.confirm(tool.as_ref(), plan, judged, &context).await?,
            // A call that waited for the user does not run without an answer, whatever the rules are by now.
            GateDecision::Allow if self.was_asked() => {
                self.confirm(tool.as_ref(), plan, judged, &context).await?
            }
            GateDecision::Allow | GateDecision::Deny => ConfirmedPlan::unasked(plan, judged.bounds),
        };

        trace(self.call, PipelineStage::Execution);
        self.turn.reach(Breakpoint::PreTool, Some(&self.call.id));
        let read = match confirmed.plan.touches.as_slice() {
            [Touch::Read(target)] if tool.facts().name == "Read" => Some(target.clone()),
            _ => None,
        };
        context.sandbox = confirmed.bounds.sandbox;
        context.resolved = confirmed.bounds.resolved;
        let touches = confirmed.plan.touches.clone();
        let began = Instant::now();
        let result = self.execute(tool.as_ref(), confirmed.plan, &confirmed.names, context).await;
        self.services().edits.withdraw_proposals(&confirmed.names);
        let result = self.decide_set_aside(result).await;

        trace(self.call, PipelineStage::PostHook);
        let result = self.post_hook(tool.as_ref(), &touches, result, began.elapsed(), reported).await;
        let mut output = result?;
        output.model_text.insert_str(0, &confirmed.remark);
        if let Some(input) = changed {
            output.model_text.insert_str(0, &changed_by_hook(&input));
        }
        let beside = match read {
            Some(read) => self.services().instructions.beside(self.conversation(), &read).await,
            None => None,
        };
        if let Some(beside) = beside {
            output.model_text.push_str("\n\n");
            output.model_text.push_str(&beside.text);
            *instructed = beside.folders;
        }
        Ok(output)
    }

    /// Runs the hooks before a call that no rule refuses: they may refuse it, have the user asked, or change the arguments, which
    /// are planned and judged again then.
    async fn pre_hook(
        &self,
        tool: &dyn ErasedTool,
        plan: CallPlan,
        judged: Judgment,
        context: &CallContext,
    ) -> Result<HookedPlan, ToolError> {
        if self.services().hooks.has_stopped(&self.call.turn) {
            return Err(stopped(&plan.title));
        }
        let is_refused_by_rule =
            judged.verdict.decision == GateDecision::Deny && judged.verdict.rule.is_some();
        // The hooks of a call with a resumed sub-agent ran when it began.
        if is_refused_by_rule
            || self.is_resumed()
            || !self.services().hooks.has_call_hooks(self.conversation(), HookEvent::PreToolUse)
        {
            let judged = unless_refused(&plan, judged)?;
            return Ok(HookedPlan { plan, judged, input: None, context: Vec::new(), is_allowed: false });
        }
        let before = {
            let case = self.case(tool, &self.call.input, &plan.touches);
            self.services().hooks.before_call(self.conversation(), self.hooked(&case), self.cancel).await
        };
        let PreCallReply { choice, input, context: reported, is_stopped } = before;
        if is_stopped {
            return Err(stopped(&plan.title));
        }
        if let Some((HookChoice::Deny, reason)) = &choice {
            return Err(refused_by_hook(&plan.title, reason, &reported));
        }
        if self.cancel.is_cancelled() {
            return Err(cancelled());
        }
        let (plan, judged) = match &input {
            None => (plan, judged),
            Some(input) => {
                let plan = self.plan(tool, input.clone(), context).await;
                let plan = plan.map_err(|error| of_hook(input, error))?;
                self.services().gate.refresh().await;
                let judged = self.look(tool, &plan, input, None);
                (plan, judged)
            }
        };
        let mut judged = unless_refused(&plan, judged)?;
        let is_allowed = matches!(choice, Some((HookChoice::Allow, _)));
        if let Some((HookChoice::Ask | HookChoice::Defer, reason)) = choice {
            let verdict = &judged.verdict;
            let decision = match self.services().gate.in_force().mode(self.mode()) {
                Mode::DontAsk => GateDecision::Deny,
                Mode::Default
                | Mode::AcceptEdits
                | Mode::Plan
                | Mode::BypassPermissions
                | Mode::Approval
                | Mode::Readonly => GateDecision::Ask,
            };
            let reason = format!("a hook asks for it: {reason}");
            judged.verdict =
                Verdict { decision, reason, rule: verdict.rule.clone(), standing: AnswerReach::Never };
            judged = unless_refused(&plan, judged)?;
        }
        Ok(HookedPlan { plan, judged, input, context: reported, is_allowed })
    }

    /// Runs the hooks after a call.
    async fn post_hook(
        &self,
        tool: &dyn ErasedTool,
        touches: &[Touch],
        result: Result<ToolOutput, ToolError>,
        took: Duration,
        reported: Vec<String>,
    ) -> Result<ToolOutput, ToolError> {
        let event = if result.is_ok() { HookEvent::PostToolUse } else { HookEvent::PostToolUseFailure };
        let is_refused = result.as_ref().is_err_and(|error| error.kind == ToolErrorKind::Denied);
        if reported.is_empty()
            && (is_refused || !self.services().hooks.has_call_hooks(self.conversation(), event))
        {
            return result;
        }
        let case = self.case(tool, &self.call.input, touches);
        self.services()
            .hooks
            .after_call(self.conversation(), self.hooked(&case), result, (took, reported), self.cancel)
            .await
    }

    fn case<'c>(&self, tool: &dyn ErasedTool, input: &'c Value, touches: &'c [Touch]) -> GateCase<'c> {
        let facts = tool.facts();
        GateCase { tool: facts.name, kind: facts.kind, input, touches }
    }

    fn hooked<'c>(&'c self, case: &'c GateCase<'c>) -> HookedCall<'c> {
        HookedCall { turn: &self.call.turn, call: &self.call.id, case }
    }

    fn discover(&self) -> Result<Arc<dyn ErasedTool>, ToolError> {
        let tool = self.conversation().tools.find(&self.call.name).ok_or_else(|| {
            let known: Vec<_> = self.conversation().tools.iter().map(|tool| tool.facts().name).collect();
            ToolError::new(
                ToolErrorKind::UnknownTool,
                format!("There is no tool `{}`.", self.call.name),
                format!("Use one of: {}.", known.join(", ")),
            )
        })?;
        match &self.call.input_error {
            Some(error) => Err(ToolError::new(
                ToolErrorKind::InvalidInput,
                format!("The arguments of {} are not valid JSON: {error}.", self.call.name),
                "Send the call again with one JSON object as its arguments.",
            )),
            None => Ok(tool),
        }
    }

    async fn plan(
        &self,
        tool: &dyn ErasedTool,
        input: Value,
        context: &CallContext,
    ) -> Result<CallPlan, ToolError> {
        tokio::select! {
            plan = tool.plan(input, context) => plan,
            () = self.cancel.cancelled() => Err(cancelled()),
        }
    }

    /// Whether the call's sub-agent is resumed.
    fn is_resumed(&self) -> bool {
        matches!(self.call.pending, Some(PendingRequest::Agent(..)))
    }

    /// The mode in which the call is judged.
    fn mode(&self) -> Mode {
        self.turn.mode()
    }

    /// Judges a call by the policy in force; a refusal is the error.
    fn judge(&self, tool: &dyn ErasedTool, plan: &CallPlan, input: &Value) -> Result<Judgment, ToolError> {
        unless_refused(plan, self.look(tool, plan, input, None))
    }

    /// Judges a call by the policy in force, which was refreshed before.
    fn look(
        &self,
        tool: &dyn ErasedTool,
        plan: &CallPlan,
        input: &Value,
        ignored: Option<&Arc<IgnoreLook>>,
    ) -> Judgment {
        let case = self.case(tool, input, &plan.touches);
        let gate = &self.services().gate;
        match self.embedded {
            Some(equipment) => gate.judge_embedded_for(self.conversation(), &case, equipment),
            None => gate.judge_for(self.conversation(), &case, ignored),
        }
    }
}

/// Records the result: model text, display text and structured result apart.
fn format_result(
    thread: &ThreadHandle,
    call: &ModelToolCall,
    (result, instructed): (Result<ToolOutput, ToolError>, Vec<AbsPath>),
    duration_ms: u64,
) {
    let (id, name) = (call.id.clone(), call.name.clone());
    let state = match &result {
        Ok(_) => CallState::Completed,
        Err(error) => match error.kind {
            ToolErrorKind::Denied => CallState::Denied,
            _ => CallState::Failed,
        },
    };
    let (content, images, is_error) = match &result {
        Ok(output) => (texts(output).0.to_owned(), output.images.clone(), false),
        Err(error) => (error.model_text(), Vec::new(), true),
    };
    if let Err(error) = &result {
        tracing::info!(call = %id, tool = %name, error = %error, "tool failed");
    }
    let outcome = match result {
        Ok(output) => {
            let display = texts(&output).1.to_owned();
            CallOutcome { state, display, structured: output.structured, error: None }
        }
        Err(error) => CallOutcome {
            state,
            display: error.message.lines().next().unwrap_or_default().to_owned(),
            structured: error.structured.map(|structured| *structured),
            error: Some(error.kind),
        },
    };
    let result = Block::ToolResult { tool_use_id: id.as_str().to_owned(), content, images, is_error };
    let executed = Some(ExecutedCall { name, duration_ms });
    thread.end_call(&call.item, outcome, (result, instructed), executed);
}

/// The texts of a result, for the model and for people. Where one is empty, the other is used.
fn texts(output: &ToolOutput) -> (&str, &str) {
    let first_line = output.model_text.lines().next().unwrap_or_default();
    let shown = if output.display.is_empty() { first_line } else { &output.display };
    let reported = if output.model_text.is_empty() { shown } else { &output.model_text };
    (reported, shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_text_of_a_result_is_replaced_by_the_other() {
        for (model_text, display, expected) in [
            ("one\ntwo", "shown", ("one\ntwo", "shown")),
            ("one\ntwo", "", ("one\ntwo", "one")),
            ("", "shown", ("shown", "shown")),
            ("", "", ("", "")),
        ] {
            let output = ToolOutput {
                model_text: model_text.to_owned(),
                display: display.to_owned(),
                ..ToolOutput::default()
            };
            assert_eq!(texts(&output), expected);
        }
    }
}
