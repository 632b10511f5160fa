//! The way of one call, in seven stages: discovery, permission, pre-hook, confirmation, execution, post-hook,
//! formatting.
//!
//! Rule: this is the one gate. No stage is skipped, whatever fails becomes the call's result, arguments that somebody
//! changed go through discovery's checks and the permission stage again, and so does what had to wait for the user.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::edit::diff;
use crate::edit::ledger::Change;
use crate::event::{CallOutcome, CallState, Event, NoticeLevel};
use crate::hooks::HookEvent;
use crate::hooks::output::Choice;
use crate::hooks::tool::{Answered as HookAnswer, BY_HOOK, Before, Looked};
use crate::ids::{ChangeId, HunkId, PermissionId};
use crate::journal::Record;
use crate::journal::record::Executed;
use crate::model::Block;
use crate::paths::AbsPath;
use crate::permission::gate::{Case, Standing, Verdict};
use crate::permission::{
    Answer, Answered, Decision, GateDecision, Grant, Mode, Offer, Outcome, PermissionPrompt, Scope,
};
use crate::question::{Draft, Reply};
use crate::sandbox::Sandbox;
use crate::session::Session;
use crate::session::conversation::Conversation;
use crate::session::equipment::Equipment;
use crate::session::guard::Judged;
use crate::session::proposal::{Accepted, Proposal};
use crate::session::review::HunkKind;
use crate::tools::{
    Action, Asker, CallContext, ErasedTool, Plan, RunFn, ToolError, ToolErrorKind, ToolKind, ToolOutput,
    Touch,
};
use crate::turn::sample::Call;
use crate::turn::taken_up::{Again, is_call_left_open};
use crate::turn::uses::Used;
use crate::turn::{act, delegate, prompt, uses};
use crate::workspace::KnownText;

/// After a cancel a tool has so long to stop by itself and hand over what it has.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

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

/// A plan that may be carried out.
struct Confirmed {
    plan: Plan,
    /// What the model is told first: what the user changed about the call.
    remark: String,
    /// The names under which the hunks of the change were proposed.
    names: Vec<HunkId>,
    /// What holds its commands back, whatever the settings say by now.
    sandbox: Option<Arc<Sandbox>>,
}

/// What became of a call that hooks were asked about in the user's place.
enum ByHook {
    /// It may be carried out.
    Settled(Confirmed),
    /// The user decides.
    Open(Box<Open>),
}

/// A call that the user is to decide about.
struct Open {
    plan: Plan,
    judged: Judged,
    /// The arguments, where a hook has changed them.
    input: Option<Value>,
}

/// A call that hooks have looked at.
struct Hooked {
    plan: Plan,
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

/// A question of a running call, with where the answer goes.
type Ask = (Draft, oneshot::Sender<Option<Reply>>);

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
            _ if self.goes_on() => {
                Confirmed { plan, remark: String::new(), names: Vec::new(), sandbox: judged.sandbox }
            }
            GateDecision::Ask if is_allowed && is_only_unspoken_for(&judged.verdict) => {
                self.note_allowed(BY_HOOK).await;
                Confirmed { plan, remark: String::new(), names: Vec::new(), sandbox: judged.sandbox }
            }
            GateDecision::Ask if self.is_spared(&judged.verdict) => {
                self.note_allowed(self.call.spared_by.as_deref().unwrap_or_default()).await;
                Confirmed { plan, remark: String::new(), names: Vec::new(), sandbox: judged.sandbox }
            }
            GateDecision::Ask => self.confirm(tool.as_ref(), plan, judged, &context).await?,
            // What the user was asked about before runs not by itself now, whatever the rules say by now.
            GateDecision::Allow if self.was_asked() => {
                self.confirm(tool.as_ref(), plan, judged, &context).await?
            }
            GateDecision::Allow | GateDecision::Deny => {
                Confirmed { plan, remark: String::new(), names: Vec::new(), sandbox: judged.sandbox }
            }
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
        let agent = self.conversation.agent.as_ref();
        let beside = match read {
            Some(read) => self.session.instructions_beside(agent, &read).await,
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
        plan: Plan,
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
                Verdict { decision, reason, rule: verdict.rule.clone(), standing: Standing::Never };
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

    fn case<'c>(&self, tool: &dyn ErasedTool, input: &'c Value, touches: &'c [Touch]) -> Case<'c> {
        let facts = tool.facts();
        Case { tool: facts.name, kind: facts.kind, input, touches }
    }

    fn looked<'c>(&'c self, case: &'c Case<'c>) -> Looked<'c> {
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
    ) -> Result<Plan, ToolError> {
        tokio::select! {
            plan = tool.plan(input, context) => plan,
            () = self.cancel.cancelled() => Err(cancelled()),
        }
    }

    /// Whether the user has seen the call in the answer they chose and let it run. That speaks for what is asked only
    /// because nothing allows it: an ask rule, a guarded place and what is proposed first ask all the same.
    fn is_spared(&self, verdict: &Verdict) -> bool {
        self.call.spared_by.is_some() && is_only_unspoken_for(verdict)
    }

    /// Whether the user was asked for permission when the server ended, and has not answered.
    fn was_asked(&self) -> bool {
        matches!(self.call.again, Some(Again::Permission(..)))
    }

    /// Whether the call's sub-agent goes on where it was when the server ended.
    fn goes_on(&self) -> bool {
        matches!(self.call.again, Some(Again::Agent(..)))
    }

    /// Notes who let the call run.
    async fn note_allowed(&self, by: &str) {
        let decision = Decision {
            id: PermissionId::generate(),
            call: self.call.id.clone(),
            outcome: Outcome::Allow,
            scope: Scope::Once,
            by: by.to_owned(),
            feedback: None,
        };
        self.session.commit(Record::Decided { decision, grants: Vec::new() });
        self.session.sync().await;
    }

    /// The mode in which the call is judged.
    fn mode(&self) -> Mode {
        self.conversation.mode(self.session.mode())
    }

    /// What is in force now says of a call; a refusal is the error.
    fn judge(&self, tool: &dyn ErasedTool, plan: &Plan, input: &Value) -> Result<Judged, ToolError> {
        unless_refused(plan, self.look(tool, plan, input))
    }

    /// What is in force now says of a call. The settings were looked at before.
    fn look(&self, tool: &dyn ErasedTool, plan: &Plan, input: &Value) -> Judged {
        let case = self.case(tool, input, &plan.touches);
        match self.embedded {
            Some(equipment) => self.conversation.judge_embedded(&case, equipment),
            None => self.conversation.judge(&case),
        }
    }

    /// Has hooks answer, then the user. A hook speaks for the user only where they are asked because nothing allows the
    /// call as it stands by then: rules that ask and guarded places are for the user, whatever a hook has made of the call.
    async fn confirm(
        &self,
        tool: &dyn ErasedTool,
        plan: Plan,
        judged: Judged,
        context: &CallContext,
    ) -> Result<Confirmed, ToolError> {
        match self.confirm_by_hook(tool, plan, judged, context).await? {
            ByHook::Settled(confirmed) => Ok(confirmed),
            ByHook::Open(open) => {
                let Open { plan, judged, input } = *open;
                let Some(input) = input else {
                    return self.confirm_by_user(tool, plan, judged, context).await;
                };
                // The user is shown what would run, and what stands from then on is that.
                let remark = changed_by_hook(&input);
                let call = Call { input, ..self.call.clone() };
                let pipeline = Pipeline { call: &call, ..*self };
                let mut confirmed = pipeline.confirm_by_user(tool, plan, judged, context).await?;
                confirmed.remark.insert_str(0, &remark);
                Ok(confirmed)
            }
        }
    }

    /// Has hooks answer in the user's place, as far as they may.
    async fn confirm_by_hook(
        &self,
        tool: &dyn ErasedTool,
        plan: Plan,
        judged: Judged,
        context: &CallContext,
    ) -> Result<ByHook, ToolError> {
        if !self.conversation.has_hooks(HookEvent::PermissionRequest) {
            return Ok(ByHook::Open(Box::new(Open { plan, judged, input: None })));
        }
        let answered = {
            let offers = prompt::offers(self.conversation, tool, &self.call.input, &plan, &judged.verdict);
            let case = self.case(tool, &self.call.input, &plan.touches);
            self.conversation.answer_for_user(self.looked(&case), &offers, self.cancel).await
        };
        let Some(HookAnswer { answer, updates, interrupt }) = answered else {
            return Ok(ByHook::Open(Box::new(Open { plan, judged, input: None })));
        };
        if interrupt {
            self.conversation.ask_to_stop();
        }
        if !answer.allow {
            self.note_answer(prompt::id(self.call), &answer, Vec::new()).await;
            let reason = answer.feedback.as_deref().unwrap_or("it gives no reason");
            return Err(refused_by_hook(&plan.title, reason, &[]));
        }
        let input = answer.updated_input.clone();
        let (plan, judged) = match &input {
            // Settings, mode and links may have changed meanwhile.
            None => {
                self.session.look().await;
                self.judge_again(tool, plan, judged)?
            }
            Some(input) => {
                let changed = self.plan(tool, input.clone(), context).await;
                self.session.look().await;
                let changed = changed.and_then(|plan| {
                    let now = self.judge(tool, &plan, input)?;
                    stays_held(judged.sandbox.is_some(), &now, &plan)?;
                    Ok((plan, now))
                });
                changed.map_err(|error| of_hook(input, error))?
            }
        };
        let speaks_for_user =
            judged.verdict.decision == GateDecision::Allow || is_only_unspoken_for(&judged.verdict);
        if !speaks_for_user {
            tracing::info!(call = %self.call.id, reason = judged.verdict.reason, "a hook's yes is not enough");
            return Ok(ByHook::Open(Box::new(Open { plan, judged, input })));
        }
        let grants = self.session.take_updates(updates).await;
        self.note_answer(prompt::id(self.call), &answer, grants).await;
        let remark = input.as_ref().map(changed_by_hook).unwrap_or_default();
        Ok(ByHook::Settled(Confirmed { plan, remark, names: Vec::new(), sandbox: judged.sandbox }))
    }

    /// Asks the user. What they allow is the plan that was shown, or a part of it, or one made from the arguments they
    /// gave instead; the model is told which.
    async fn confirm_by_user(
        &self,
        tool: &dyn ErasedTool,
        plan: Plan,
        judged: Judged,
        context: &CallContext,
    ) -> Result<Confirmed, ToolError> {
        let prompt = prompt::prompt(self.conversation, tool, self.call, &plan, &judged);
        let mut offers = prompt.offers.clone();
        let id = prompt.id.clone();
        let proposal = match &plan.action {
            Action::Change(change) => self.session.propose(change, &self.change(Some(&id))).await,
            Action::Run(_)
            | Action::Ask(_)
            | Action::SetMode(_)
            | Action::SetTodos(_)
            | Action::Delegate(_)
            | Action::Use(_) => Proposal::default(),
        };
        let Some(answer) = self.ask_user(prompt, self.known_texts(&plan)).await else {
            self.session.withdraw_proposals(&proposal.names());
            return Err(cancelled());
        };
        let planned = match answer.updated_input.clone().filter(|_| answer.allow) {
            None if !answer.allow => Ok((plan, judged)),
            None => {
                self.session.look().await;
                self.judge_again(tool, plan, judged)
            }
            // The user has seen what they wrote, so no second question; but a refusal is still a refusal.
            Some(input) => {
                let planned = self.plan(tool, input.clone(), context).await;
                self.session.look().await;
                planned.and_then(|plan| {
                    let judged = self.judge(tool, &plan, &input)?;
                    offers = prompt::offers(self.conversation, tool, &input, &plan, &judged.verdict);
                    Ok((plan, judged))
                })
            }
        };
        let grants = match &planned {
            // What stands from now on is what runs now, not what the model had asked for.
            Ok((plan, _)) if answer.allow && answer.scope != Scope::Once => {
                prompt::grants(self.session, plan)
            }
            _ => Vec::new(),
        };
        if !grants.is_empty() && matches!(answer.scope, Scope::Project | Scope::User) {
            self.keep(&answer, &offers).await;
        }
        // Even if no file could be written, the same call is not asked for again.
        self.note_answer(id, &answer, grants).await;
        let accepted = self.accepted(&answer, proposal);
        self.session.reject_proposals(&accepted.rejected);
        let (plan, judged) = planned.inspect_err(|_| self.session.withdraw_proposals(&accepted.names))?;
        let nothing_is_left = accepted.names.is_empty() && !accepted.rejected.is_empty();
        if !answer.allow || nothing_is_left {
            return Err(refused(&plan.title, answer.feedback.as_deref()));
        }
        let mut confirmed = self.confirmed(plan, judged.sandbox, answer.updated_input, accepted);
        if let Some(words) = answer.feedback.as_deref().filter(|words| !words.trim().is_empty()) {
            confirmed.remark.push_str(&format!("The user said: {}\n", words.trim()));
        }
        Ok(confirmed)
    }

    /// Judges a call anew that somebody has allowed: a refusal wins, and what holds the call back is never less than what
    /// was shown.
    fn judge_again(
        &self,
        tool: &dyn ErasedTool,
        plan: Plan,
        before: Judged,
    ) -> Result<(Plan, Judged), ToolError> {
        let now = self.judge(tool, &plan, &self.call.input)?;
        let sandbox = now.sandbox.or(before.sandbox);
        Ok((plan, Judged { sandbox, ..now }))
    }

    /// Records an answer to a prompt.
    async fn note_answer(&self, id: PermissionId, answer: &Answer, grants: Vec<Grant>) {
        let decision = Decision {
            id,
            call: self.call.id.clone(),
            outcome: if answer.allow { Outcome::Allow } else { Outcome::Deny },
            scope: answer.scope,
            by: answer.by.clone(),
            feedback: answer.feedback.clone(),
        };
        self.session.commit(Record::Decided { decision, grants });
        self.session.sync().await;
    }

    /// What of the proposed hunks the answer takes and what it refuses.
    fn accepted(&self, answer: &Answer, proposal: Proposal) -> Accepted {
        match (&answer.updated_input, answer.allow) {
            (_, false) => proposal.accepted(Some(&[])),
            (Some(_), true) => proposal.accepted(None),
            (None, true) => match &answer.hunks {
                Some(hunks) => proposal.accepted(Some(hunks)),
                None => {
                    let mut names = proposal.names();
                    let refused = self.session.refused_proposals(&names);
                    names.retain(|name| !refused.contains(name));
                    proposal.accepted(Some(&names))
                }
            },
        }
    }

    /// Asks the user; nothing when the call was cancelled first.
    async fn ask_user(&self, prompt: PermissionPrompt, known: Vec<KnownText>) -> Option<Answer> {
        if self.embedded.is_none() {
            self.conversation.call_waits(&self.call.item, &prompt.title, Some(&prompt.id), known);
        }
        let message = format!("kode-ls needs your permission to use {}: {}", prompt.tool, prompt.title);
        self.session.notify("permission_prompt", "Permission needed", message);
        self.session.begin_waiting();
        let answered = self.session.broker.ask(prompt, self.cancel).await;
        self.session.end_waiting();
        match answered {
            Answered::By(answer) => {
                self.session.note_answer();
                Some(answer)
            }
            Answered::Cancelled => None,
        }
    }

    /// What is known of the texts that a plan changes.
    fn known_texts(&self, plan: &Plan) -> Vec<KnownText> {
        let Action::Change(change) = &plan.action else { return Vec::new() };
        let targets = change.files.iter().map(|file| &file.target);
        targets.filter_map(|target| self.session.workspace.known_text(target)).collect()
    }

    /// The plan as the user has allowed it.
    fn confirmed(
        &self,
        mut plan: Plan,
        sandbox: Option<Arc<Sandbox>>,
        updated_input: Option<Value>,
        accepted: Accepted,
    ) -> Confirmed {
        let names = accepted.names.clone();
        if let Some(input) = updated_input {
            let remark = format!("The user changed the arguments to {input}\n");
            return Confirmed { plan, remark, names, sandbox };
        }
        let mut remark = String::new();
        if let (Action::Change(change), false) = (&mut plan.action, accepted.rejected.is_empty()) {
            let left_out = accepted.split(change);
            let patch = diff::preview(&left_out, &self.session.workspace);
            remark = format!("The user accepted only a part of this change. What they left out:\n{patch}\n");
        }
        Confirmed { plan, remark, names, sandbox }
    }

    /// Whose a change of this call is.
    fn change(&self, permission: Option<&PermissionId>) -> Change {
        Change {
            id: ChangeId::generate(),
            turn: self.call.turn.clone(),
            call: self.call.id.clone(),
            kind: HunkKind::Text,
            permission: permission.cloned(),
        }
    }

    /// Keeps a standing yes that reaches beyond the session.
    async fn keep(&self, answer: &Answer, offers: &[Offer]) {
        let offered = offers.iter().find(|offer| offer.scope == answer.scope).map(|offer| &offer.rules);
        let rules = answer.rules.as_ref().or(offered).cloned().unwrap_or_default();
        for error in self.session.keep_rules(answer.scope, rules).await {
            let hint =
                "It counts until this session ends; the rule can be written into the settings by hand.";
            self.conversation.notice(
                &self.call.turn,
                NoticeLevel::Warning,
                format!("A standing answer was not kept: {error}."),
                Some(hint.to_owned()),
            );
        }
    }

    /// Notes in the transcript that the call begins to run.
    fn begins(&self, title: &str) {
        if self.embedded.is_none() {
            self.conversation.call_begins(&self.call.item, title);
        }
    }

    async fn execute(
        &self,
        tool: &dyn ErasedTool,
        plan: Plan,
        names: &[HunkId],
        context: CallContext,
    ) -> Result<ToolOutput, ToolError> {
        let Plan { title, touches: _, action } = plan;
        let (action, delegation) = match action {
            // These take no place: what comes of them has its own.
            Action::Delegate(delegation) => {
                if !self.goes_on() {
                    self.begins(&title);
                }
                (None, Some(*delegation))
            }
            Action::Use(wanted) => {
                self.begins(&title);
                match uses::expand(self.conversation, self.call, &wanted, self.cancel).await? {
                    Used::Told(output) => return Ok(output),
                    Used::Delegated(delegation) => (None, Some(*delegation)),
                }
            }
            Action::Run(_)
            | Action::Change(_)
            | Action::Ask(_)
            | Action::SetMode(_)
            | Action::SetTodos(_) => (Some(action), None),
        };
        if let Some(delegation) = delegation {
            let progress = Arc::clone(&context.progress);
            return delegate::run(self.conversation, self.call, delegation, progress, self.cancel).await;
        }
        let Some(action) = action else { return Err(fault(self.call)) };
        let kind = tool.facts().kind;
        // In one conversation calls wait for one another; those of different ones must not overlap either, for what a
        // command has changed is told from what was there before.
        let _alone = match kind {
            ToolKind::ReadOnly => None,
            ToolKind::Write | ToolKind::Execute => tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(cancelled()),
                alone = self.session.agents.alone() => Some(alone),
            },
        };
        // Only what runs takes a place; a call that waits for the user holds back nobody.
        let place = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(cancelled()),
            place = self.session.places.take() => place,
        };
        // A question that is asked again has begun nothing.
        if !matches!(self.call.again, Some(Again::Question(_))) {
            self.begins(&title);
        }
        if kind != ToolKind::ReadOnly {
            // After a power cut it must be known that this call had begun, and who allowed it.
            self.session.sync().await;
        }
        match action {
            Action::Change(change) => {
                let summary = change.summary.clone();
                let applied = self.session.apply_change(change, &self.change(None), names, self.cancel).await;
                // What became of the files is safe before the model hears of it, also when only some were changed.
                self.session.sync().await;
                let applied = applied?;
                Ok(diff::report(&summary, &applied, &self.session.workspace))
            }
            Action::Run(work) if kind == ToolKind::Execute => {
                let _until_its_changes_are_entered = self.session.command_runs();
                let scan = self.session.before_command().await;
                let result = self.work(work, context, tool.timeout()).await;
                // Whatever became of the command: what it changed until then it changed.
                self.session.after_command(scan, &self.change(None)).await;
                self.session.sync().await;
                result
            }
            Action::Run(work) => self.work(work, context, tool.timeout()).await,
            Action::Ask(draft) => {
                drop(place);
                act::ask(self.conversation, self.call, &title, *draft, self.cancel).await
            }
            Action::SetMode(mode) => act::set_mode(self.conversation, mode),
            Action::SetTodos(todos) => act::set_todos(self.conversation, todos),
            Action::Delegate(_) | Action::Use(_) => Err(fault(self.call)),
        }
    }

    /// Runs the work in a task of its own, so that it can be given up when it heeds neither a cancel nor its time.
    async fn work(
        &self,
        work: RunFn,
        context: CallContext,
        limit: Option<Duration>,
    ) -> Result<ToolOutput, ToolError> {
        let stop = context.cancel.clone();
        let mut task = tokio::spawn(async move { work(context).await });
        let over = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let mut asked = self.asked.lock().await;
        let mut over = pin!(over);
        let ended = loop {
            break tokio::select! {
            biased;
            ended = &mut task => ended,
            () = self.cancel.cancelled() => match within_grace(&mut task).await {
                Some(ended) => ended,
                None => {
                    task.abort();
                    return Err(cancelled());
                }
            },
            ask = asked.recv() => {
                if let Some((draft, answer)) = ask {
                    let reply = self.conversation.ask_beside(&self.call.id, &self.call.item, draft, self.cancel);
                    // Who asked may have given up meanwhile.
                    drop(answer.send(reply.await));
                }
                continue;
            }
            () = &mut over => {
                stop.cancel();
                if within_grace(&mut task).await.is_none() {
                    task.abort();
                }
                return Err(timed_out(self.call, limit.unwrap_or_default()));
            }
            };
        };
        ended.unwrap_or_else(|_| Err(fault(self.call)))
    }

    fn context(&self) -> CallContext {
        let (session, call) = (self.session, self.call);
        let (item, id, events) = (call.item.clone(), call.id.clone(), Arc::clone(session.events()));
        let latest = Mutex::new(String::new());
        let asks = self.asks.clone();
        let ask: Asker = Arc::new(move |draft| {
            let asks = asks.clone();
            Box::pin(async move {
                let (sender, receiver) = oneshot::channel();
                asks.send((draft, sender)).await.ok()?;
                receiver.await.ok()?
            })
        });
        CallContext {
            call_id: call.id.clone(),
            workspace: Arc::clone(&session.workspace),
            shell: Arc::clone(&self.conversation.shell),
            sandbox: session.in_force().policy.sandbox.clone(),
            agents: Arc::new(session.known_agents()),
            catalog: session.catalog(),
            may_read: self.conversation.may_read(),
            cancel: self.cancel.child_token(),
            ask: Some(ask),
            progress: Arc::new(move |text| {
                let mut latest = latest.lock().unwrap_or_else(PoisonError::into_inner);
                if *latest != text {
                    latest.clone_from(&text);
                    events.publish(Event::ToolProgress { item: item.clone(), call: id.clone(), text });
                }
            }),
        }
    }
}

async fn within_grace<T>(task: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    tokio::time::timeout(CANCEL_GRACE, task).await.ok()
}

fn fault(call: &Call) -> ToolError {
    tracing::error!(call = %call.id, tool = %call.name, "the tool panicked");
    ToolError::new(
        ToolErrorKind::Failed,
        format!("{} failed because of a fault in kode-ls itself.", call.name),
        "Do not repeat the same call; the log has the details.",
    )
}

fn timed_out(call: &Call, limit: Duration) -> ToolError {
    ToolError::new(
        ToolErrorKind::Timeout,
        format!("{} was stopped after {} ms, the time it is given.", call.name, limit.as_millis()),
        "Ask for less in one call, for example a smaller folder or a narrower pattern.",
    )
}

pub(super) fn cancelled() -> ToolError {
    ToolError::new(
        ToolErrorKind::Cancelled,
        "The user cancelled this call.",
        "Do not repeat it unless asked to.",
    )
}

/// The judgment, unless it refuses the call.
fn unless_refused(plan: &Plan, judged: Judged) -> Result<Judged, ToolError> {
    match judged.verdict.decision {
        GateDecision::Allow | GateDecision::Ask => Ok(judged),
        GateDecision::Deny => Err(ToolError::new(
            ToolErrorKind::Denied,
            format!("{} was refused: {}.", plan.title, judged.verdict.reason),
            "Do not try it another way; go on without it.",
        )),
    }
}

/// Whether a call is asked about only because nothing allows it: no rule asks for it, and it is at no guarded place.
fn is_only_unspoken_for(verdict: &Verdict) -> bool {
    verdict.rule.is_none() && verdict.standing == Standing::Rule
}

/// What the model is told where a hook has changed a call.
fn changed_by_hook(input: &Value) -> String {
    format!("A hook changed the arguments to {input}\n")
}

/// An error that comes of what a hook has made of a call.
fn of_hook(input: &Value, error: ToolError) -> ToolError {
    ToolError { message: format!("{}{}", changed_by_hook(input), error.message), ..error }
}

fn refused_by_hook(title: &str, reason: &str, told: &[String]) -> ToolError {
    let mut hint = "Do not try it another way; do what the hook asks for, or go on without it.".to_owned();
    for text in told {
        hint.push_str(&format!("\n\n{text}"));
    }
    ToolError::new(ToolErrorKind::Denied, format!("A hook refused: {title}. Its reason: {reason}"), hint)
}

fn stopped(title: &str) -> ToolError {
    let hint = "Wait for what the user says next.";
    ToolError::new(
        ToolErrorKind::Denied,
        format!("A hook stopped the turn, so this does not run: {title}."),
        hint,
    )
}

fn refused(title: &str, feedback: Option<&str>) -> ToolError {
    let hint = match feedback.map(str::trim) {
        Some(feedback) if !feedback.is_empty() => format!("They said: {feedback}"),
        _ => "Do not try it another way; go on without it, or ask what they want instead.".to_owned(),
    };
    ToolError::new(ToolErrorKind::Denied, format!("The user refused: {title}."), hint)
}

// -- formatting -----------------------------------------------------------------------------------------------------

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
    let executed = Some(Executed { name, duration_ms });
    conversation.end_call(&call.item, outcome, (result, instructed), executed);
}

/// Refuses a call that a hook has changed from one that the sandbox holds into one that it does not hold.
fn stays_held(has_to: bool, judged: &Judged, plan: &Plan) -> Result<(), ToolError> {
    if !has_to || judged.sandbox.is_some() {
        return Ok(());
    }
    Err(ToolError::new(
        ToolErrorKind::Forbidden,
        format!("{}: a hook changed the call into one that leaves the sandbox.", plan.title),
        "Leaving the sandbox is for the user to allow; call it without the hook's change.",
    ))
}
