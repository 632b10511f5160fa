//! The way of one call, in seven stages: discovery, permission, pre-hook, confirmation, execution, post-hook,
//! formatting.
//!
//! Rule: this is the one gate. No stage is skipped, whatever fails becomes the call's result, arguments that somebody
//! changed go through discovery's checks and the permission stage again, and so does what had to wait for the user.

mod confirm;
mod execute;
mod refusal;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::confirm::{Confirmed, is_only_unspoken_for};
use self::execute::{Ask, fault};
use self::refusal::{changed_by_hook, of_hook, refused_by_hook, stopped, unless_refused};
use crate::hooks::output::Choice;
use crate::hooks::tool::{BY_HOOK, Before, Looked};
use crate::session::Session;
use crate::session::conversation::Conversation;
use crate::session::guard::Judged;
use crate::turn::delegate;
use crate::turn::sample::Call;
use crate::turn::taken_up::{Again, is_call_left_open};
use kode_base::call::{ToolError, ToolErrorKind, Touch};
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_config::hooks::event::HookEvent;
use kode_model::Block;
use kode_permission::equipment::Equipment;
use kode_permission::gate::{AnswerReach, GateCase};
use kode_permission::{GateDecision, Verdict};
use kode_record::event::{CallOutcome, CallState};
use kode_record::record::ExecutedCall;
use kode_tool::{CallContext, CallPlan, ErasedTool, ToolOutput};

pub(super) use self::refusal::cancelled;

/// The stages, as they stand in traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Discovery,
    Permission,
    PreHook,
    Confirmation,
    Execution,
    PostHook,
    Formatting,
}

/// Runs one call to its result and records it.
pub(super) async fn run(conversation: &Conversation<'_>, call: Call, cancel: CancellationToken) {
    let started = Instant::now();
    let session = conversation.session;
    let (asks, asked) = mpsc::channel(1);
    let asked = tokio::sync::Mutex::new(asked);
    let pipeline = Pipeline {
        conversation,
        session,
        call: &call,
        cancel: &cancel,
        asks: &asks,
        asked: &asked,
        embedded: None,
    };
    let mut instructed = Vec::new();
    // A fault in a tool ends its call and nothing else.
    let ran = AssertUnwindSafe(pipeline.run(&mut instructed)).catch_unwind().await;
    let result = ran.unwrap_or_else(|_| Err(fault(&call)));
    session.forget_call(&call.id);
    let is_cancelled = matches!(&result, Err(error) if error.kind == ToolErrorKind::Cancelled);
    if is_cancelled && is_call_left_open(conversation, &call) {
        return;
    }
    delegate::give_up(conversation, &call);
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    trace(&call, Stage::Formatting);
    format_result(conversation, &call, (result, instructed), duration_ms);
}

/// Has a call go the whole way that stands in the text of a file and in no transcript; `equipment` is what that file brings
/// along.
pub(super) async fn run_embedded(
    conversation: &Conversation<'_>,
    call: &Call,
    tool: Arc<dyn ErasedTool>,
    equipment: &Equipment,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let session = conversation.session;
    let (asks, asked) = mpsc::channel(1);
    let asked = tokio::sync::Mutex::new(asked);
    let embedded = Some(equipment);
    let pipeline = Pipeline { conversation, session, call, cancel, asks: &asks, asked: &asked, embedded };
    let result = pipeline.run_with(tool, &mut Vec::new()).await;
    session.forget_call(&call.id);
    result
}

fn trace(call: &Call, stage: Stage) {
    tracing::debug!(call = %call.id, tool = %call.name, ?stage, "pipeline");
}

/// A call that hooks have looked at.
struct Hooked {
    plan: CallPlan,
    judged: Judged,
    /// The arguments, where a hook has changed them.
    input: Option<Value>,
    /// What the model is told with the result.
    context: Vec<String>,
    /// Whether a hook has said that nobody need be asked.
    is_allowed: bool,
}

#[derive(Clone, Copy)]
struct Pipeline<'a> {
    conversation: &'a Conversation<'a>,
    session: &'a Session,
    call: &'a Call,
    cancel: &'a CancellationToken,
    /// What the running call asks the user, with where the answer goes.
    asks: &'a mpsc::Sender<Ask>,
    asked: &'a tokio::sync::Mutex<mpsc::Receiver<Ask>>,
    /// What the file brings along in whose text the call stands; `None` for a call that stands in the transcript.
    embedded: Option<&'a Equipment>,
}

impl Pipeline<'_> {
    /// Goes through all stages. Notes in `instructed` the folders whose instructions are in the result.
    async fn run(&self, instructed: &mut Vec<AbsPath>) -> Result<ToolOutput, ToolError> {
        trace(self.call, Stage::Discovery);
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

        trace(self.call, Stage::Permission);
        if let Some(Again::Permission(_, known)) = &self.call.again {
            known.iter().for_each(|known| self.session.workspace.recall(known));
        }
        let plan = self.plan(tool.as_ref(), self.call.input.clone(), &context).await?;
        self.session.look().await;
        let judged = self.look(tool.as_ref(), &plan, &self.call.input);

        trace(self.call, Stage::PreHook);
        let hooked = self.pre_hook(tool.as_ref(), plan, judged, &context).await?;
        // From here on the call is what the hooks have made of it.
        let call = match &hooked.input {
            Some(input) => &Call { input: input.clone(), ..self.call.clone() },
            None => self.call,
        };
        let pipeline = Pipeline { call, ..*self };
        pipeline.carry_out(tool, hooked, context, instructed).await
    }

    /// Goes through the stages from the confirmation on.
    async fn carry_out(
        &self,
        tool: Arc<dyn ErasedTool>,
        hooked: Hooked,
        mut context: CallContext,
        instructed: &mut Vec<AbsPath>,
    ) -> Result<ToolOutput, ToolError> {
        let Hooked { plan, judged, input: changed, context: told, is_allowed } = hooked;
        trace(self.call, Stage::Confirmation);
        let confirmed = match judged.verdict.decision {
            // Its sub-agent was let go to work before, and asks for what it does itself.
            _ if self.goes_on() => Confirmed::unasked(plan, judged.sandbox),
            GateDecision::Ask if is_allowed && is_only_unspoken_for(&judged.verdict) => {
                self.note_allowed(BY_HOOK).await;
                Confirmed::unasked(plan, judged.sandbox)
            }
            GateDecision::Ask if self.is_spared(&judged.verdict) => {
                self.note_allowed(self.call.spared_by.as_deref().unwrap_or_default()).await;
                Confirmed::unasked(plan, judged.sandbox)
            }
            GateDecision::Ask => self.confirm(tool.as_ref(), plan, judged, &context).await?,
            // What the user was asked about before runs not by itself now, whatever the rules say by now.
            GateDecision::Allow if self.was_asked() => {
                self.confirm(tool.as_ref(), plan, judged, &context).await?
            }
            GateDecision::Allow | GateDecision::Deny => Confirmed::unasked(plan, judged.sandbox),
        };

        trace(self.call, Stage::Execution);
        let read = match confirmed.plan.touches.as_slice() {
            [Touch::Read(target)] if tool.facts().name == "Read" => Some(target.clone()),
            _ => None,
        };
        context.sandbox = confirmed.sandbox;
        let touches = confirmed.plan.touches.clone();
        let began = Instant::now();
        let result = self.execute(tool.as_ref(), confirmed.plan, &confirmed.names, context).await;
        self.session.withdraw_proposals(&confirmed.names);

        trace(self.call, Stage::PostHook);
        let result = self.post_hook(tool.as_ref(), &touches, result, began.elapsed(), told).await;
        let mut output = result?;
        output.model_text.insert_str(0, &confirmed.remark);
        if let Some(input) = changed {
            output.model_text.insert_str(0, &changed_by_hook(&input));
        }
        let beside = match read {
            Some(read) => self.session.instructions_beside(self.conversation, &read).await,
            None => None,
        };
        if let Some(beside) = beside {
            output.model_text.push_str("\n\n");
            output.model_text.push_str(&beside.text);
            *instructed = beside.folders;
        }
        Ok(output)
    }

    /// Has hooks look at a call that no rule refuses: they may refuse it, have the user asked, or change the arguments, which
    /// then are planned and judged anew.
    async fn pre_hook(
        &self,
        tool: &dyn ErasedTool,
        plan: CallPlan,
        judged: Judged,
        context: &CallContext,
    ) -> Result<Hooked, ToolError> {
        if self.session.hooks.has_stopped(&self.call.turn) {
            return Err(stopped(&plan.title));
        }
        let is_refused_by_rule =
            judged.verdict.decision == GateDecision::Deny && judged.verdict.rule.is_some();
        // A call whose sub-agent goes on was looked at when it began.
        if is_refused_by_rule || self.goes_on() || !self.conversation.has_tool_hooks(HookEvent::PreToolUse) {
            let judged = unless_refused(&plan, judged)?;
            return Ok(Hooked { plan, judged, input: None, context: Vec::new(), is_allowed: false });
        }
        let before = {
            let case = self.case(tool, &self.call.input, &plan.touches);
            self.conversation.before_call(self.looked(&case), self.cancel).await
        };
        let Before { choice, input, context: told, is_stopped } = before;
        if is_stopped {
            return Err(stopped(&plan.title));
        }
        if let Some((Choice::Deny, reason)) = &choice {
            return Err(refused_by_hook(&plan.title, reason, &told));
        }
        if self.cancel.is_cancelled() {
            return Err(cancelled());
        }
        let (plan, judged) = match &input {
            None => (plan, judged),
            Some(input) => {
                let plan = self.plan(tool, input.clone(), context).await;
                let plan = plan.map_err(|error| of_hook(input, error))?;
                self.session.look().await;
                let judged = self.look(tool, &plan, input);
                (plan, judged)
            }
        };
        let mut judged = unless_refused(&plan, judged)?;
        let is_allowed = matches!(choice, Some((Choice::Allow, _)));
        if let Some((Choice::Ask | Choice::Defer, reason)) = choice {
            let verdict = &judged.verdict;
            let decision = match self.session.in_force().mode(self.mode()) {
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
        Ok(Hooked { plan, judged, input, context: told, is_allowed })
    }

    /// Has hooks look at how the call ended.
    async fn post_hook(
        &self,
        tool: &dyn ErasedTool,
        touches: &[Touch],
        result: Result<ToolOutput, ToolError>,
        took: Duration,
        told: Vec<String>,
    ) -> Result<ToolOutput, ToolError> {
        let event = if result.is_ok() { HookEvent::PostToolUse } else { HookEvent::PostToolUseFailure };
        let is_refused = result.as_ref().is_err_and(|error| error.kind == ToolErrorKind::Denied);
        if told.is_empty() && (is_refused || !self.conversation.has_tool_hooks(event)) {
            return result;
        }
        let case = self.case(tool, &self.call.input, touches);
        self.conversation.after_call(self.looked(&case), result, took, told, self.cancel).await
    }

    fn case<'c>(&self, tool: &dyn ErasedTool, input: &'c Value, touches: &'c [Touch]) -> GateCase<'c> {
        let facts = tool.facts();
        GateCase { tool: facts.name, kind: facts.kind, input, touches }
    }

    fn looked<'c>(&'c self, case: &'c GateCase<'c>) -> Looked<'c> {
        Looked { turn: &self.call.turn, call: &self.call.id, case }
    }

    fn discover(&self) -> Result<Arc<dyn ErasedTool>, ToolError> {
        let tool = self.conversation.tools.find(&self.call.name).ok_or_else(|| {
            let known: Vec<_> = self.conversation.tools.iter().map(|tool| tool.facts().name).collect();
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

    /// Whether the call's sub-agent goes on where it was when the server ended.
    fn goes_on(&self) -> bool {
        matches!(self.call.again, Some(Again::Agent(..)))
    }

    /// The mode in which the call is judged.
    fn mode(&self) -> Mode {
        self.conversation.mode(self.session.mode())
    }

    /// What is in force now says of a call; a refusal is the error.
    fn judge(&self, tool: &dyn ErasedTool, plan: &CallPlan, input: &Value) -> Result<Judged, ToolError> {
        unless_refused(plan, self.look(tool, plan, input))
    }

    /// What is in force now says of a call. The settings were looked at before.
    fn look(&self, tool: &dyn ErasedTool, plan: &CallPlan, input: &Value) -> Judged {
        let case = self.case(tool, input, &plan.touches);
        match self.embedded {
            Some(equipment) => self.conversation.judge_embedded(&case, equipment),
            None => self.conversation.judge(&case),
        }
    }
}

/// Records the result: model text, display text and structured result apart.
fn format_result(
    conversation: &Conversation<'_>,
    call: &Call,
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
        Ok(output) => (output.model_text.clone(), output.images.clone(), false),
        Err(error) => (error.model_text(), Vec::new(), true),
    };
    if let Err(error) = &result {
        tracing::info!(call = %id, tool = %name, error = %error, "tool failed");
    }
    let outcome = match result {
        Ok(output) => {
            let first_line = || output.model_text.lines().next().unwrap_or_default().to_owned();
            let display = if output.display.is_empty() { first_line() } else { output.display };
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
    conversation.end_call(&call.item, outcome, (result, instructed), executed);
}
