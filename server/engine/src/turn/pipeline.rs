//! The way of one call, in seven stages: discovery, permission, pre-hook, confirmation, execution, post-hook,
//! formatting.
//!
//! Rule: this is the one gate. No stage is skipped, whatever fails becomes the call's result, arguments that somebody
//! changed go through discovery's checks and the permission stage again, and so does what had to wait for the user.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::edit::diff;
use crate::edit::ledger::Change;
use crate::event::{CallOutcome, CallState, Event, NoticeLevel};
use crate::ids::{ChangeId, HunkId, PermissionId};
use crate::journal::Record;
use crate::journal::record::Executed;
use crate::model::Block;
use crate::paths::AbsPath;
use crate::permission::gate::{Case, Standing, Verdict};
use crate::permission::{Answer, Answered, Decision, GateDecision, Mode, Offer, Outcome, Scope};
use crate::sandbox::Sandbox;
use crate::session::Session;
use crate::session::conversation::Conversation;
use crate::session::guard::Judged;
use crate::session::proposal::{Accepted, Proposal};
use crate::session::review::HunkKind;
use crate::tools::{
    Action, CallContext, ErasedTool, Plan, RunFn, ToolError, ToolErrorKind, ToolKind, ToolOutput, Touch,
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
    let pipeline = Pipeline { conversation, session, call: &call, cancel: &cancel };
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

struct Pipeline<'a> {
    conversation: &'a Conversation<'a>,
    session: &'a Session,
    call: &'a Call,
    cancel: &'a CancellationToken,
}

impl Pipeline<'_> {
    /// Goes through all stages. Notes in `instructed` the folders whose instructions are in the result.
    async fn run(&self, instructed: &mut Vec<AbsPath>) -> Result<ToolOutput, ToolError> {
        trace(self.call, Stage::Discovery);
        let tool = self.discover()?;
        let mut context = self.context();

        trace(self.call, Stage::Permission);
        if let Some(Again::Permission(_, known)) = &self.call.again {
            known.iter().for_each(|known| self.session.workspace.recall(known));
        }
        let plan = self.plan(tool.as_ref(), self.call.input.clone(), &context).await?;
        let judged = self.judge(tool.as_ref(), &plan, &self.call.input)?;

        // Hooks join here: they may refuse, ask, or change the arguments, which then are planned and judged anew.
        trace(self.call, Stage::PreHook);

        trace(self.call, Stage::Confirmation);
        let confirmed = match judged.verdict.decision {
            // Its sub-agent was let go to work before, and asks for what it does itself.
            _ if self.goes_on() => {
                Confirmed { plan, remark: String::new(), names: Vec::new(), sandbox: judged.sandbox }
            }
            GateDecision::Ask if self.is_spared(&judged.verdict) => {
                self.note_spared().await;
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
        let result = self.execute(tool.as_ref(), confirmed.plan, &confirmed.names, context).await;
        self.session.withdraw_proposals(&confirmed.names);
        let mut output = result?;
        output.model_text.insert_str(0, &confirmed.remark);
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

        // Hooks join here: they may add to the result.
        trace(self.call, Stage::PostHook);
        Ok(output)
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
        self.call.spared_by.is_some() && verdict.rule.is_none() && verdict.standing == Standing::Rule
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
    async fn note_spared(&self) {
        let decision = Decision {
            id: PermissionId::generate(),
            call: self.call.id.clone(),
            outcome: Outcome::Allow,
            scope: Scope::Once,
            by: self.call.spared_by.clone().unwrap_or_default(),
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
        let facts = tool.facts();
        let case = Case { tool: facts.name, kind: facts.kind, input, touches: &plan.touches };
        let judged = self.session.judge(&case, self.mode());
        match judged.verdict.decision {
            GateDecision::Allow | GateDecision::Ask => Ok(judged),
            GateDecision::Deny => Err(ToolError::new(
                ToolErrorKind::Denied,
                format!("{} was refused: {}.", plan.title, judged.verdict.reason),
                "Do not try it another way; go on without it.",
            )),
        }
    }

    /// Asks the user. What they allow is the plan that was shown, or a part of it, or one made from the arguments they
    /// gave instead; the model is told which.
    async fn confirm(
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
        let known = self.known_texts(&plan);
        self.conversation.call_waits(&self.call.item, &plan.title, Some(&id), known);
        self.session.begin_waiting();
        let answered = self.session.broker.ask(prompt, self.cancel).await;
        self.session.end_waiting();
        let answer = match answered {
            Answered::By(answer) => {
                self.session.note_answer();
                answer
            }
            Answered::Cancelled => {
                self.session.withdraw_proposals(&proposal.names());
                return Err(cancelled());
            }
        };
        let planned = match answer.updated_input.clone().filter(|_| answer.allow) {
            None if !answer.allow => Ok((plan, judged)),
            // Settings, mode and links may have changed while the user was thinking: a refusal wins, and what holds the
            // call back is never less than they were shown.
            None => self.judge(tool, &plan, &self.call.input).map(|now| {
                let sandbox = now.sandbox.or(judged.sandbox);
                (plan, Judged { sandbox, ..now })
            }),
            // The user has seen what they wrote, so no second question; but a refusal is still a refusal.
            Some(input) => {
                let planned = self.plan(tool, input.clone(), context).await;
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
        let decision = Decision {
            id,
            call: self.call.id.clone(),
            outcome: if answer.allow { Outcome::Allow } else { Outcome::Deny },
            scope: answer.scope,
            by: answer.by.clone(),
            feedback: answer.feedback.clone(),
        };
        if !grants.is_empty() && matches!(answer.scope, Scope::Project | Scope::User) {
            self.keep(&answer, &offers).await;
        }
        // Even if no file could be written, the same call is not asked for again.
        self.session.commit(Record::Decided { decision, grants });
        self.session.sync().await;
        let accepted = match (&answer.updated_input, answer.allow) {
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
        };
        self.session.reject_proposals(&accepted.rejected);
        let (plan, judged) = planned.inspect_err(|_| self.session.withdraw_proposals(&accepted.names))?;
        let nothing_is_left = accepted.names.is_empty() && !accepted.rejected.is_empty();
        if !answer.allow || nothing_is_left {
            return Err(refused(&plan.title, answer.feedback.as_deref()));
        }
        Ok(self.confirmed(plan, judged.sandbox, answer.updated_input, accepted))
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
                    self.conversation.call_begins(&self.call.item, &title);
                }
                (None, Some(*delegation))
            }
            Action::Use(wanted) => {
                self.conversation.call_begins(&self.call.item, &title);
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
            place = self.session.places.acquire() => place.map_err(|_| cancelled())?,
        };
        // A question that is asked again has begun nothing.
        if !matches!(self.call.again, Some(Again::Question(_))) {
            self.conversation.call_begins(&self.call.item, &title);
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
        let ended = tokio::select! {
            biased;
            ended = &mut task => ended,
            () = self.cancel.cancelled() => match within_grace(&mut task).await {
                Some(ended) => ended,
                None => {
                    task.abort();
                    return Err(cancelled());
                }
            },
            () = over => {
                stop.cancel();
                if within_grace(&mut task).await.is_none() {
                    task.abort();
                }
                return Err(timed_out(self.call, limit.unwrap_or_default()));
            }
        };
        ended.unwrap_or_else(|_| Err(fault(self.call)))
    }

    fn context(&self) -> CallContext {
        let (session, call) = (self.session, self.call);
        let (item, id, events) = (call.item.clone(), call.id.clone(), Arc::clone(session.events()));
        let latest = Mutex::new(String::new());
        CallContext {
            call_id: call.id.clone(),
            workspace: Arc::clone(&session.workspace),
            shell: Arc::clone(&self.conversation.shell),
            sandbox: session.in_force().policy.sandbox.clone(),
            agents: Arc::new(session.known_agents()),
            may_read: session.may_read(self.mode()),
            cancel: self.cancel.child_token(),
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
