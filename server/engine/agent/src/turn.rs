//! One prompt and all that the agent does about it.
//!
//! Rule: there is one loop, and whether it continues or stops is decided in one function, [`next::next`]. However a
//! turn ends, every call of it has a result, so that the history is one the model's provider accepts next.

mod act;
pub(crate) mod agent_slots;
mod attempt;
mod background;
pub(crate) mod call_slots;
mod candidates;
pub(crate) mod compact;
pub(crate) mod delegate;
mod embed;
mod ending;
pub(crate) mod expand;
mod extension;
pub(crate) mod goals;
mod guest;
mod intent;
pub mod limit;
pub mod next;
mod order;
mod permission;
mod pictures;
mod pipeline;
mod questions;
pub(crate) mod resume;
pub(crate) mod route;
mod sample;
mod schedule;
pub(crate) mod services;
pub(crate) mod steering;
pub(crate) mod team;
pub mod turns;
pub(crate) mod window;

use std::time::Instant;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::conversation::WorkUsage;
use crate::conversation::phases::Phase;
use crate::hooks::StopDecision;
use ending::{close, report, seal};
use goals::GoalOutcome;
use kode_base::ids::QuestionId;
use kode_base::mode::Mode;
use kode_base::question::{LIMIT_GO_ON, Question, QuestionDraft, QuestionKind};
use kode_base::reminder;
use kode_config::preferences::IncompleteIntent;
use kode_model::fallback::Trigger;
use kode_model::{ModelError, StopReason, Usage, retry};
use kode_record::compaction::Cause;
use kode_record::event::{Breakpoint, ItemBody, NoticeKind, NoticeLevel, TurnEnd};
use kode_record::options::TurnOptions;
use kode_record::phases::PhaseTimes;
use kode_record::record::Record;
use kode_tool::delegation::Delegation;
use limit::{RepeatedCalls, TurnLimit};
use next::{CallReason, CutPart, DecisionFacts, DecisionPoint, NextStep, Pause, next};
use questions::{ask_for_turn, rest_for_turn};
use resume::{ResumePoint, is_left_open};
use sample::{ModelAnswer, Sample, SampleOptions, sample};
use services::TurnContext;

pub(crate) use ending::{failed, interrupted, seal_except};

/// The remark after an answer that only announced work.
const DO_IT: &str = "You have said what you are going to do, and have not done it. Do it now, with your tools, or say that \
    you are done.";

/// The remark after a text that was cut off.
const GO_ON: &str =
    "Your answer was cut off by its token limit. Continue exactly where it stopped; repeat nothing.";

/// The remark after thinking that was cut off before any text.
const THINK_LESS: &str =
    "Your answer was cut off by its token limit before you had said anything. Think less, and answer.";

/// The remark after a call that was cut off.
const SMALLER: &str = "Your answer was cut off by its token limit in the middle of a call, so nothing of it was run. Make the \
    call again in smaller pieces.";

/// The outcome of a turn.
pub(crate) struct TurnResult {
    pub(crate) reason: TurnEnd,
    pub(crate) spent: WorkUsage,
    duration_ms: u64,
    phases: PhaseTimes,
    /// The fault, where the reason is an error.
    pub(crate) failure: Option<String>,
}

/// Runs a turn that only compacts the conversation.
pub(crate) async fn run_compaction(
    turn: TurnContext<'_>,
    focus: String,
    cancel: &CancellationToken,
) -> TurnResult {
    let (started, conversation) = (Instant::now(), turn.conversation);
    let reason = compact::on_request(turn, focus, cancel).await;
    conversation.note_phase(Phase::CompactCheck, started);
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (spent, phases) = (conversation.spent(), conversation.phases().times());
    TurnResult { reason, spent, duration_ms, phases, failure: None }
}

/// Runs a turn to its end: calls the model, runs the calls of its answer, calls it again.
pub(crate) async fn run(turn: TurnContext<'_>, cancel: &CancellationToken) -> TurnResult {
    TurnLoop::new(turn, cancel).finish(None).await
}

/// Runs a turn that begins with a sub-agent at work, as if the model had called it.
pub(crate) async fn run_delegation(
    turn: TurnContext<'_>,
    delegation: Delegation,
    cancel: &CancellationToken,
) -> TurnResult {
    let call = sample::call_of_task(turn, delegation);
    TurnLoop::new(turn, cancel).finish(Some(ResumePoint::Calls(vec![call]))).await
}

/// Resumes a turn.
pub(crate) async fn resume(
    turn: TurnContext<'_>,
    point: ResumePoint,
    cancel: &CancellationToken,
) -> TurnResult {
    let mut turn_loop = TurnLoop::new(turn, cancel);
    if turn.conversation.is_main() {
        let state = turn.services.core.state();
        turn_loop.model_calls = state.running.rounds;
        turn_loop.spent.model_calls = state.running.rounds;
        turn_loop.spent.usage = state.spending.usage_of(turn.id);
    }
    turn_loop.finish(Some(point)).await
}

/// Why the model gave no answer.
enum NoAnswer {
    Ended(TurnEnd),
    Failed {
        error: ModelError,
        /// The number of requests.
        attempts: u32,
    },
}

/// A turn while it runs.
struct TurnLoop<'a> {
    turn: TurnContext<'a>,
    cancel: &'a CancellationToken,
    options: TurnOptions,
    intent: IncompleteIntent,
    /// The most times that hooks may have the agent continue when it has finished.
    stop_limit: u32,
    spent: WorkUsage,
    /// Model calls since the user last let the turn continue.
    model_calls: u32,
    /// The number of times in a row that the model was asked to do the announced work.
    announced: u32,
    /// The number of times in a row that the model was asked to continue after its token limit.
    continued: u32,
    /// The number of times in a row that the provider paused the answer.
    paused: u32,
    /// The number of times that hooks had the agent continue when it had finished.
    held_back: u32,
    repeats: RepeatedCalls,
    sample: SampleOptions,
    failure: Option<String>,
}

impl<'a> TurnLoop<'a> {
    fn new(turn: TurnContext<'a>, cancel: &'a CancellationToken) -> Self {
        let services = turn.services;
        let in_force = services.gate.in_force();
        let preferences = &in_force.policy.preferences;
        let is_main = turn.conversation.is_main();
        if is_main {
            services.turns.begin_budget(turn.id);
        }
        let options = if is_main { services.turns.options() } else { TurnOptions::default() };
        let candidates = is_main && options.candidate_answers.unwrap_or(preferences.candidate_answers);
        Self {
            turn,
            cancel,
            options,
            intent: preferences.incomplete_intent,
            stop_limit: preferences.stop_hook_limit,
            spent: WorkUsage::default(),
            model_calls: 0,
            announced: 0,
            continued: 0,
            paused: 0,
            held_back: 0,
            repeats: RepeatedCalls::default(),
            sample: SampleOptions { candidates, fallback_first: false },
            failure: None,
        }
    }

    async fn finish(mut self, point: Option<ResumePoint>) -> TurnResult {
        let (started, turn) = (Instant::now(), self.turn);
        let resumed = match point {
            Some(point) => self.resume(point).await,
            None => Ok(()),
        };
        let reason = match resumed {
            Ok(()) => self.run().await,
            Err(end) => end,
        };
        if !is_left_open(turn, reason) {
            close(turn, reason, self.model_calls);
        }
        turn.conversation.thread.read(|thread| thread.messages.forget_written());
        turn.reach(Breakpoint::Ready, None);
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (mut spent, phases) = (self.spent, turn.conversation.phases().times());
        spent += turn.conversation.spent();
        TurnResult { reason, spent, duration_ms, phases, failure: self.failure }
    }

    async fn run(&mut self) -> TurnEnd {
        let (turn, services) = (self.turn, self.turn.services);
        loop {
            if self.limit() == TurnLimit::Disabled {
                return TurnEnd::ChatDisabled;
            }
            if services.hooks.has_stopped(turn.id) {
                return TurnEnd::Hook;
            }
            // Changed settings apply from this round on; the first round has those of the turn's beginning.
            if self.spent.model_calls > 0 {
                services.gate.refresh().await;
            }
            let before = turn.conversation.phases();
            background::report_ends(turn);
            steering::take(turn, self.cancel).await;
            team::take(turn);
            let began = Instant::now();
            compact::before_call(turn, self.cancel).await;
            turn.conversation.note_phase(Phase::CompactCheck, began);
            let answer = match self.ask().await {
                Ok(answer) => answer,
                Err(end) => return end,
            };
            let decided = self.carry_out(&answer).await;
            tracing::trace!(turn = %turn.id, model_call = self.spent.model_calls,
                times = ?turn.conversation.phases().since(&before).times(), "round");
            let (why, pause) = match decided {
                Ok(decided) => decided,
                Err(end) => return end,
            };
            if let Err(end) = self.proceed(why, pause).await {
                return end;
            }
        }
    }

    /// Continues at a resume point, up to the next model call; the end of the turn when it is over.
    async fn resume(&mut self, point: ResumePoint) -> Result<(), TurnEnd> {
        let calls = match point {
            ResumePoint::Calls(calls) => calls,
            ResumePoint::Limit(question) => {
                let Question { id, draft, .. } = *question;
                if draft.kind == QuestionKind::Rest {
                    let text =
                        draft.questions.first().map(|asked| asked.question.clone()).unwrap_or_default();
                    let continues = rest_for_turn(self.turn, draft, Some(id), self.cancel).await;
                    return self.end_unless_rested(continues, text);
                }
                return {
                    let continues = self.lets_proceed(draft, Some(id)).await;
                    self.end_unless(continues, Pause::Limit)
                };
            }
        };
        schedule::run(self.turn, calls.clone(), self.cancel).await;
        if !self.cancel.is_cancelled() && !self.turn.services.requests.is_attended() {
            // The repeated requests need no answer any more, and no user has let the turn continue.
            if self.turn.conversation.is_main() {
                let hint = "Send `continue` to resume from here.";
                self.turn.commit(interrupted(self.turn.id, hint));
            }
            self.failure = Some("the server ended in the middle of its work".to_owned());
            return Err(TurnEnd::Error);
        }
        self.repeats.take(&self.turn.conversation.thread, &calls);
        let (usage, text) = (Usage::default(), String::new());
        let answer = ModelAnswer { stop_reason: StopReason::ToolUse, usage, calls, cut: CutPart::Text, text };
        match next(DecisionPoint::ToolsRan, &self.facts(&answer, false)) {
            NextStep::AskModel { why, pause } => self.proceed(why, pause).await,
            NextStep::RunTools => self.proceed(CallReason::Results, None).await,
            NextStep::Stop(end) => Err(end),
        }
    }

    /// Prepares the next model call; the end of the turn when the user declines.
    async fn proceed(&mut self, why: CallReason, pause: Option<Pause>) -> Result<(), TurnEnd> {
        if let Some(pause) = pause {
            let continues = self.continues(pause).await;
            self.end_unless(continues, pause)?;
        }
        self.turn.conversation.timed(Phase::Next, || self.prepare(why));
        Ok(())
    }

    fn end_unless(&self, continues: bool, pause: Pause) -> Result<(), TurnEnd> {
        match continues {
            true => Ok(()),
            false if self.cancel.is_cancelled() => Err(TurnEnd::Cancelled),
            false => Err(pause.end()),
        }
    }

    fn end_unless_rested(&mut self, continues: bool, failure: String) -> Result<(), TurnEnd> {
        match continues {
            true => Ok(()),
            false if self.cancel.is_cancelled() => Err(TurnEnd::Cancelled),
            false => {
                self.failure = Some(failure);
                Err(TurnEnd::Error)
            }
        }
    }

    /// Rests until a limit of the model's provider is reset; the end of the turn where it does not continue. A sub-agent does
    /// not rest: its call fails, and the turn rests with the next request of its own.
    async fn rest(&mut self, error: &ModelError, attempts: u32) -> Result<(), TurnEnd> {
        let conversation = self.turn.conversation;
        let models = self.turn.services.models.now();
        let profile = models.profile(&conversation.model()).ok();
        let until = profile.filter(|_| conversation.is_main()).and_then(|profile| {
            let until = retry::reset(error, &profile.retry_policy(), Timestamp::now())?;
            Some((profile.host(), until))
        });
        let mut continues = false;
        if let Some((host, until)) = until {
            let draft = QuestionDraft::rest(ending::resting(&host, until), until);
            continues = rest_for_turn(self.turn, draft, None, self.cancel).await;
        }
        if !continues && !self.cancel.is_cancelled() {
            report(self.turn, error, attempts);
        }
        self.end_unless_rested(continues, error.to_string())
    }

    /// Asks the model for an answer, also after rests; the end of the turn if absent.
    async fn ask(&mut self) -> Result<ModelAnswer, TurnEnd> {
        loop {
            match self.ask_once().await {
                Ok(answer) => return Ok(answer),
                Err(NoAnswer::Ended(end)) => return Err(end),
                Err(NoAnswer::Failed { error, attempts }) => self.rest(&error, attempts).await?,
            }
        }
    }

    /// Asks the model once.
    async fn ask_once(&mut self) -> Result<ModelAnswer, NoAnswer> {
        self.spent.model_calls = self.spent.model_calls.saturating_add(1);
        self.model_calls = self.model_calls.saturating_add(1);
        let most = match self.limit() {
            TurnLimit::Calls(limit) => Some(limit),
            TurnLimit::Unlimited | TurnLimit::Disabled => None,
        };
        self.turn.reach_model(self.model_calls, most);
        let options = std::mem::take(&mut self.sample);
        match sample(self.turn, options, self.cancel).await {
            Sample::Answer(answer) => {
                self.spent.usage += answer.usage;
                Ok(answer)
            }
            Sample::Cancelled => Err(NoAnswer::Ended(TurnEnd::Cancelled)),
            Sample::NotChosen(usage) => {
                self.spent.usage += usage;
                let cancelled = self.cancel.is_cancelled();
                Err(NoAnswer::Ended(if cancelled { TurnEnd::Cancelled } else { TurnEnd::NotChosen }))
            }
            Sample::Failed { error, attempts } => Err(NoAnswer::Failed { error, attempts }),
        }
    }

    /// Does what an answer asks for, and says why the model is asked again and what the user is asked before; the end of
    /// the turn when it is over.
    async fn carry_out(&mut self, answer: &ModelAnswer) -> Result<(CallReason, Option<Pause>), TurnEnd> {
        let began = Instant::now();
        if answer.stop_reason != StopReason::MaxTokens {
            self.continued = 0;
        }
        match answer.stop_reason {
            StopReason::PauseTurn => self.paused += 1,
            _ => self.paused = 0,
        }
        let announces = self.announces(answer);
        let mut point = DecisionPoint::Answered;
        let mut decided = next(point, &self.facts(answer, announces));
        self.turn.conversation.note_phase(Phase::Next, began);
        loop {
            match decided {
                NextStep::RunTools => {
                    let began = Instant::now();
                    let calls = u32::try_from(answer.calls.len()).unwrap_or(u32::MAX);
                    self.spent.tool_calls = self.spent.tool_calls.saturating_add(calls);
                    self.turn.reach(Breakpoint::ToolPending, None);
                    schedule::run(self.turn, answer.calls.clone(), self.cancel).await;
                    self.turn.reach(Breakpoint::PostTool, None);
                    self.turn.conversation.note_phase(Phase::ToolExecution, began);
                    self.announced = 0;
                    self.repeats.take(&self.turn.conversation.thread, &answer.calls);
                    point = DecisionPoint::ToolsRan;
                    decided = next(point, &self.facts(answer, announces));
                }
                NextStep::AskModel { why, pause } => return Ok((why, pause)),
                NextStep::Stop(TurnEnd::EndTurn) if point == DecisionPoint::Answered => {
                    point = self.before_stop().await?;
                    decided = next(point, &self.facts(answer, announces));
                }
                NextStep::Stop(end) => return Err(end),
            }
        }
    }

    /// Runs the hooks of the end of the turn; the end, unless one of them has the agent continue.
    async fn before_stop(&mut self) -> Result<DecisionPoint, TurnEnd> {
        let is_active = self.held_back > 0;
        let (turn, hooks) = (self.turn, &self.turn.services.hooks);
        match hooks.before_stop(turn.conversation, turn.id, is_active, self.cancel).await {
            // Messages that the user has sent meanwhile come first.
            _ if steering::waits(self.turn) || team::waits(self.turn) => Ok(DecisionPoint::ToolsRan),
            StopDecision::End => self.check_goal().await,
            StopDecision::Stop => Err(TurnEnd::Hook),
            StopDecision::Continue(_) if self.held_back >= self.stop_limit => {
                let text = format!(
                    "A hook has continued the turn {} times and asks for it again. The turn ends anyway.",
                    self.held_back
                );
                self.notice(NoticeKind::Hook, &text);
                Err(TurnEnd::EndTurn)
            }
            StopDecision::Continue(reason) => {
                self.held_back += 1;
                let remark = format!("A hook held the end of your work back, for this reason:\n{reason}");
                self.remark(&reminder(&remark));
                Ok(DecisionPoint::HeldBack)
            }
        }
    }

    /// Checks the goal; the end, unless it is not met and its bounds are not reached.
    async fn check_goal(&mut self) -> Result<DecisionPoint, TurnEnd> {
        match goals::before_stop(self.turn, self.cancel).await {
            GoalOutcome::Cancelled => Err(TurnEnd::Cancelled),
            GoalOutcome::Exhausted => Err(TurnEnd::Budget),
            GoalOutcome::End if steering::waits(self.turn) => Ok(DecisionPoint::ToolsRan),
            GoalOutcome::End => Err(TurnEnd::EndTurn),
            GoalOutcome::Continue(reason) => {
                // The bounds of the goal are in the place of the limit of one prompt's calls.
                self.model_calls = 0;
                self.repeats.forget();
                let remark = format!(
                    "The goal of this session is not met yet, so your work continues. The check says:\n{reason}"
                );
                self.remark(&reminder(&remark));
                Ok(DecisionPoint::HeldBack)
            }
        }
    }

    fn facts<'f>(&self, answer: &'f ModelAnswer, announces: bool) -> DecisionFacts<'f> {
        DecisionFacts {
            stop_reason: &answer.stop_reason,
            calls: answer.calls.len(),
            cut: answer.cut,
            announces,
            intent: self.intent,
            announced: self.announced,
            continued: self.continued,
            paused: self.paused,
            stopped: self.turn.services.hooks.has_stopped(self.turn.id),
            cancelled: self.cancel.is_cancelled(),
            steered: steering::waits(self.turn),
            exit: self.turn.conversation.is_asked_to_stop(),
            model_calls: self.model_calls,
            model_call_limit: match self.limit() {
                TurnLimit::Calls(limit) => Some(limit),
                TurnLimit::Unlimited => None,
                TurnLimit::Disabled => Some(0),
            },
            used_up: self.turn.services.turns.used_up(self.turn.id),
            goal_exhausted: self.turn.conversation.is_main()
                && self.turn.services.goals.exhausted().is_some(),
            repeats: self.repeats.count(),
            // A sub-agent reports to the call it works for.
            may_ask: self.turn.conversation.is_main(),
        }
    }

    /// Whether an answer only announces work that it could do: in plan mode it plans.
    fn announces(&self, answer: &ModelAnswer) -> bool {
        let has_tools = self.turn.conversation.tools.iter().next().is_some();
        has_tools
            && self.turn.mode() != Mode::Plan
            && answer.calls.is_empty()
            && intent::announces(&answer.text, || self.asked())
    }

    /// The last message of the turn: the user's, or the task of the sub-agent.
    fn asked(&self) -> String {
        self.turn.read(|thread| {
            let said = thread.newest_since(self.turn.id).iter().rev().find_map(|item| match &item.body {
                ItemBody::UserMessage { text, .. } => Some(text.clone()),
                ItemBody::AgentMessage { .. }
                | ItemBody::Thinking { .. }
                | ItemBody::ToolCall(_)
                | ItemBody::Notice { .. }
                | ItemBody::Command { .. } => None,
            });
            said.unwrap_or_default()
        })
    }

    /// The limit of the turn's model calls, as it is now.
    fn limit(&self) -> TurnLimit {
        match self.turn.conversation.model_call_limit {
            Some(limit) => TurnLimit::Calls(limit),
            None => self.turn.services.turns.limit_of(&self.options, self.turn.mode()),
        }
    }

    /// Asks the user whether the turn continues, and makes room for it when it does.
    async fn continues(&mut self, pause: Pause) -> bool {
        let question = match pause {
            Pause::Limit => format!("The turn has made {} model calls. Continue?", self.model_calls),
            Pause::Cost => {
                let cost = self.turn.services.turns.spent_since(self.turn.id).0;
                format!("The turn has cost ${cost:.2}, its whole budget. Continue?")
            }
            Pause::Time => {
                let minutes = self.turn.services.turns.spent_since(self.turn.id).1.as_secs() / 60;
                format!("The turn has run for {minutes} minutes, its whole budget. Continue?")
            }
            Pause::Repeats => {
                let times = self.repeats.count();
                format!("The same call was made {times} times in a row with the same result. Continue?")
            }
            Pause::Paused => {
                let times = self.paused;
                format!("The provider paused the answer {times} times in a row. Continue?")
            }
        };
        self.lets_proceed(QuestionDraft::turn_limit(question), None).await
    }

    /// Asks whether the turn continues; `again` is the question of an earlier run of the session.
    async fn lets_proceed(&mut self, draft: QuestionDraft, again: Option<QuestionId>) -> bool {
        let reply = ask_for_turn(self.turn, draft, again, self.cancel).await;
        let said = reply.as_ref().and_then(|reply| reply.answers.as_ref()?.first()?.labels.first());
        if said.is_none_or(|label| label != LIMIT_GO_ON) {
            return false;
        }
        self.model_calls = 0;
        self.repeats.forget();
        self.paused = 0;
        let (began, request) =
            (Instant::now(), compact::CompactionRequest { cause: Cause::TurnLimit, focus: None });
        let outcome = compact::compact(self.turn, request, self.cancel).await;
        self.turn.conversation.note_phase(Phase::CompactCheck, began);
        self.turn.services.turns.begin_budget(self.turn.id);
        outcome != compact::CompactionOutcome::Cancelled
    }

    /// Adds a remark for the model on why it is called again, where it could not know.
    fn prepare(&mut self, why: CallReason) {
        match why {
            CallReason::Results | CallReason::Paused | CallReason::Steered | CallReason::Hook => {}
            CallReason::Cut(cut) => {
                self.continued += 1;
                seal(&self.turn.conversation.thread, ending::CUT_OFF);
                if self.continued == 1 {
                    let text = "The answer was cut off by its token limit and is continued.";
                    self.notice(NoticeKind::Continued, text);
                }
                self.remark(match cut {
                    CutPart::Text => GO_ON,
                    CutPart::Thinking => THINK_LESS,
                    CutPart::Call => SMALLER,
                });
            }
            CallReason::Announced { fallback } => {
                self.announced += 1;
                self.sample.fallback_first = fallback || self.falls_back_from_announcing();
                self.notice(
                    NoticeKind::IncompleteIntent,
                    "The answer only announced work; the model is asked to do it.",
                );
                self.remark(DO_IT);
            }
        }
    }

    /// Whether the profile wants its fallback asked after an announcement.
    fn falls_back_from_announcing(&self) -> bool {
        let models = self.turn.services.models.now();
        models.profile(&self.turn.conversation.model()).is_ok_and(|profile| {
            let fallback = profile.fallback.as_ref();
            fallback.is_some_and(|fallback| fallback.triggers.contains(&Trigger::IncompleteIntent))
        })
    }

    fn notice(&self, kind: NoticeKind, text: &str) {
        self.turn.notice_of(kind, (NoticeLevel::Info, text, ""));
    }

    fn remark(&self, text: &str) {
        let record = Record::Remark { turn: self.turn.id.clone(), text: text.to_owned() };
        self.turn.commit(record);
    }
}
