//! One prompt and all that the agent does about it.
//!
//! Rule: there is one loop, and whether it goes on or stops is decided in one function, [`next::next`]. However a
//! turn ends, every call of it has a result, so that the history is one the model's provider accepts next.

mod act;
mod attempt;
mod candidates;
pub(crate) mod compact;
pub(crate) mod delegate;
pub(crate) mod embed;
mod ending;
mod intent;
pub mod limit;
pub mod next;
mod order;
pub mod phases;
mod pipeline;
mod prompt;
pub(crate) mod route;
mod sample;
mod schedule;
mod taken_up;
mod uses;

use std::time::Instant;

use tokio_util::sync::CancellationToken;

use crate::hooks::moments::StopWord;
use crate::session::background::tell_of_ends;
use crate::session::conversation::Conversation;
use crate::session::resume::interrupted;
use crate::session::steering;
use ending::{close, report, seal};
use kode_base::ids::{QuestionId, TurnId};
use kode_base::mode::Mode;
use kode_base::question::{LIMIT_GO_ON, Question, QuestionDraft};
use kode_base::reminder;
use kode_config::preferences::IncompleteIntent;
use kode_model::fallback::Trigger;
use kode_model::{StopReason, Usage};
use kode_record::compaction::Cause;
use kode_record::event::{ItemBody, NoticeKind, NoticeLevel, TurnEnd};
use kode_record::options::TurnOptions;
use kode_record::phases::PhaseTimes;
use kode_record::record::Record;
use kode_tool::delegation::Delegation;
use limit::{Repeats, TurnLimit};
use next::{Cut, Facts, Moment, Next, Pause, Why, next};
use phases::Phase;
use sample::{Answer, Sample, Wish, sample};

pub(crate) use ending::{failed, seal_but, sealing};
pub(crate) use taken_up::{AskedAgain, TakenUp, is_left_open};

/// What the model is told after an answer that only announced something.
const DO_IT: &str = "You have said what you are going to do, and have not done it. Do it now, with your tools, or say that \
    you are done.";

/// What the model is told after a text that was cut off.
const GO_ON: &str =
    "Your answer was cut off by its token limit. Continue exactly where it stopped; repeat nothing.";

/// What the model is told after thinking that was cut off before anything was said.
const THINK_LESS: &str =
    "Your answer was cut off by its token limit before you had said anything. Think less, and answer.";

/// What the model is told after a call that was cut off.
const SMALLER: &str = "Your answer was cut off by its token limit in the middle of a call, so nothing of it was run. Make the \
    call again in smaller pieces.";

/// How a turn ended, and what it took.
pub(crate) struct Ended {
    pub(crate) reason: TurnEnd,
    pub(crate) spent: Spent,
    duration_ms: u64,
    phases: PhaseTimes,
    /// What failed, when the reason is an error.
    pub(crate) failure: Option<String>,
}

/// What a turn took, with its sub-agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) usage: Usage,
    pub(crate) model_calls: u32,
    pub(crate) tool_calls: u32,
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.usage += other.usage;
        self.model_calls = self.model_calls.saturating_add(other.model_calls);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
    }
}

/// Does what a prompt asks for: compacts the conversation, or runs a turn.
pub(crate) async fn carry_out(
    conversation: &Conversation<'_>,
    turn: &TurnId,
    cancel: &CancellationToken,
) -> Ended {
    let asked = conversation.read(|thread| match thread.newest_since(turn).first().map(|item| &item.body) {
        Some(ItemBody::UserMessage { text, .. }) => {
            kode_config::command::compact::asked(text).map(str::to_owned)
        }
        _ => None,
    });
    let Some(focus) = asked else { return run(conversation, turn, cancel).await };
    let started = Instant::now();
    let reason = compact::on_request(conversation, turn, focus, cancel).await;
    conversation.note_phase(Phase::CompactCheck, started);
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (spent, phases) = (conversation.spent(), conversation.phases().times());
    Ended { reason, spent, duration_ms, phases, failure: None }
}

/// Runs a turn to its end: ask the model, run the tools it calls, ask again.
pub(crate) async fn run(conversation: &Conversation<'_>, turn: &TurnId, cancel: &CancellationToken) -> Ended {
    let course = Course::new(conversation, turn, cancel);
    finish(course, None).await
}

/// Runs a turn that begins with a sub-agent at work, as if the model had called it.
pub(crate) async fn begin_with(
    conversation: &Conversation<'_>,
    turn: &TurnId,
    delegation: Delegation,
    cancel: &CancellationToken,
) -> Ended {
    let call = sample::call_of_task(conversation, turn, delegation);
    finish(Course::new(conversation, turn, cancel), Some(TakenUp::Calls(vec![call]))).await
}

/// Goes on with a turn that was taken up.
pub(crate) async fn go_on(
    conversation: &Conversation<'_>,
    turn: &TurnId,
    taken_up: TakenUp,
    cancel: &CancellationToken,
) -> Ended {
    let mut course = Course::new(conversation, turn, cancel);
    if conversation.agent.is_none() {
        let state = conversation.session.state();
        course.model_calls = state.rounds;
        course.spent.model_calls = state.rounds;
        course.spent.usage = state.spending.usage_of(turn);
    }
    finish(course, Some(taken_up)).await
}

async fn finish(mut course: Course<'_>, taken_up: Option<TakenUp>) -> Ended {
    let started = Instant::now();
    let (conversation, turn) = (course.conversation, course.turn);
    let gone_on = match taken_up {
        Some(taken_up) => course.take_up(taken_up).await,
        None => Ok(()),
    };
    let reason = match gone_on {
        Ok(()) => course.run().await,
        Err(end) => end,
    };
    if !is_left_open(conversation, turn, reason) {
        close(conversation, turn, reason, course.model_calls);
    }
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut spent = course.spent;
    spent += conversation.spent();
    Ended { reason, spent, duration_ms, phases: conversation.phases().times(), failure: course.failure }
}

/// A turn while it runs.
struct Course<'a> {
    conversation: &'a Conversation<'a>,
    turn: &'a TurnId,
    cancel: &'a CancellationToken,
    options: TurnOptions,
    intent: IncompleteIntent,
    /// How often hooks may have the agent go on when it has said all.
    stop_limit: u32,
    spent: Spent,
    /// Model calls since the user last let the turn go on.
    model_calls: u32,
    /// How often in a row the model was asked to do what it announced.
    announced: u32,
    /// How often in a row the model was asked to go on after its token limit.
    continued: u32,
    /// How often hooks had the agent go on when it had said all.
    held_back: u32,
    repeats: Repeats,
    wish: Wish,
    failure: Option<String>,
}

impl<'a> Course<'a> {
    fn new(conversation: &'a Conversation<'a>, turn: &'a TurnId, cancel: &'a CancellationToken) -> Self {
        let session = conversation.session;
        let in_force = session.in_force();
        let preferences = &in_force.policy.preferences;
        let is_own = conversation.agent.is_none();
        if is_own {
            session.begin_budget(turn);
        }
        let options = if is_own { session.turn_options() } else { TurnOptions::default() };
        let candidates = is_own && options.candidate_answers.unwrap_or(preferences.candidate_answers);
        Self {
            conversation,
            turn,
            cancel,
            options,
            intent: preferences.incomplete_intent,
            stop_limit: preferences.stop_hook_limit,
            spent: Spent::default(),
            model_calls: 0,
            announced: 0,
            continued: 0,
            held_back: 0,
            repeats: Repeats::default(),
            wish: Wish { candidates, fallback_first: false },
            failure: None,
        }
    }

    async fn run(&mut self) -> TurnEnd {
        let conversation = self.conversation;
        loop {
            if self.limit() == TurnLimit::Disabled {
                return TurnEnd::ChatDisabled;
            }
            if conversation.session.hooks.has_stopped(self.turn) {
                return TurnEnd::Hook;
            }
            // Settings that have changed count from this round on; whoever began the turn has looked just now.
            if self.spent.model_calls > 0 {
                conversation.session.look().await;
            }
            let before = conversation.phases();
            tell_of_ends(conversation, self.turn);
            steering::take(conversation, self.turn, self.cancel).await;
            let began = Instant::now();
            compact::before_call(conversation, self.turn, self.cancel).await;
            conversation.note_phase(Phase::CompactCheck, began);
            let answer = match self.ask().await {
                Ok(answer) => answer,
                Err(end) => return end,
            };
            let decided = self.carry_out(&answer).await;
            tracing::trace!(turn = %self.turn, model_call = self.spent.model_calls,
                times = ?conversation.phases().since(&before).times(), "round");
            let (why, pause) = match decided {
                Ok(decided) => decided,
                Err(end) => return end,
            };
            if let Err(end) = self.go_on(why, pause).await {
                return end;
            }
        }
    }

    /// Goes on where the turn was taken up, up to the next model call; the end of the turn when it is over.
    async fn take_up(&mut self, taken_up: TakenUp) -> Result<(), TurnEnd> {
        let calls = match taken_up {
            TakenUp::Calls(calls) => calls,
            TakenUp::Limit(question) => {
                let Question { id, draft, .. } = *question;
                return {
                    let goes_on = self.lets_go_on(draft, Some(id)).await;
                    self.end_unless(goes_on, Pause::Limit)
                };
            }
        };
        schedule::run(self.conversation, calls.clone(), self.cancel).await;
        if !self.cancel.is_cancelled() && !self.conversation.session.is_attended() {
            // What had to be asked again needs no answer any more, and nobody was there who wants the turn to go on.
            if self.conversation.agent.is_none() {
                let hint = "Send `continue` to go on from here.";
                self.conversation.commit(interrupted(self.turn, hint));
            }
            self.failure = Some("the server ended in the middle of its work".to_owned());
            return Err(TurnEnd::Error);
        }
        self.repeats.take(self.conversation, &calls);
        let (usage, text) = (Usage::default(), String::new());
        let answer = Answer { stop_reason: StopReason::ToolUse, usage, calls, cut: Cut::Text, text };
        match next(Moment::ToolsRan, &self.facts(&answer, false)) {
            Next::AskModel { why, pause } => self.go_on(why, pause).await,
            Next::RunTools => self.go_on(Why::Results, None).await,
            Next::Stop(end) => Err(end),
        }
    }

    /// Makes ready for the next model call; the end of the turn when the user does not want it to go on.
    async fn go_on(&mut self, why: Why, pause: Option<Pause>) -> Result<(), TurnEnd> {
        if let Some(pause) = pause {
            let goes_on = self.goes_on(pause).await;
            self.end_unless(goes_on, pause)?;
        }
        self.conversation.timed(Phase::Next, || self.prepare(why));
        Ok(())
    }

    fn end_unless(&self, goes_on: bool, pause: Pause) -> Result<(), TurnEnd> {
        match goes_on {
            true => Ok(()),
            false if self.cancel.is_cancelled() => Err(TurnEnd::Cancelled),
            false => Err(pause.end()),
        }
    }

    /// Asks the model once; the end of the turn when there is no answer.
    async fn ask(&mut self) -> Result<Answer, TurnEnd> {
        self.spent.model_calls = self.spent.model_calls.saturating_add(1);
        self.model_calls = self.model_calls.saturating_add(1);
        let wish = std::mem::take(&mut self.wish);
        match sample(self.conversation, self.turn, wish, self.cancel).await {
            Sample::Answer(answer) => {
                self.spent.usage += answer.usage;
                Ok(answer)
            }
            Sample::Cancelled => Err(TurnEnd::Cancelled),
            Sample::NotChosen(usage) => {
                self.spent.usage += usage;
                Err(if self.cancel.is_cancelled() { TurnEnd::Cancelled } else { TurnEnd::NotChosen })
            }
            Sample::Failed { error, attempts } => {
                report(self.conversation, self.turn, &error, attempts);
                self.failure = Some(error.to_string());
                Err(TurnEnd::Error)
            }
        }
    }

    /// Does what an answer asks for, and says why the model is asked again and what the user is asked before; the end of
    /// the turn when it is over.
    async fn carry_out(&mut self, answer: &Answer) -> Result<(Why, Option<Pause>), TurnEnd> {
        let began = Instant::now();
        if answer.stop_reason != StopReason::MaxTokens {
            self.continued = 0;
        }
        let announces = self.announces(answer);
        let mut moment = Moment::Answered;
        let mut decided = next(moment, &self.facts(answer, announces));
        self.conversation.note_phase(Phase::Next, began);
        loop {
            match decided {
                Next::RunTools => {
                    let began = Instant::now();
                    let calls = u32::try_from(answer.calls.len()).unwrap_or(u32::MAX);
                    self.spent.tool_calls = self.spent.tool_calls.saturating_add(calls);
                    schedule::run(self.conversation, answer.calls.clone(), self.cancel).await;
                    self.conversation.note_phase(Phase::ToolExecution, began);
                    self.announced = 0;
                    self.repeats.take(self.conversation, &answer.calls);
                    moment = Moment::ToolsRan;
                    decided = next(moment, &self.facts(answer, announces));
                }
                Next::AskModel { why, pause } => return Ok((why, pause)),
                Next::Stop(TurnEnd::EndTurn) if moment == Moment::Answered => {
                    moment = self.before_stop().await?;
                    decided = next(moment, &self.facts(answer, announces));
                }
                Next::Stop(end) => return Err(end),
            }
        }
    }

    /// Has hooks look at the end of the turn; the end, unless one of them wants the agent to go on.
    async fn before_stop(&mut self) -> Result<Moment, TurnEnd> {
        let is_active = self.held_back > 0;
        match self.conversation.before_stop(self.turn, is_active, self.cancel).await {
            // What the user has said meanwhile is heard first.
            _ if steering::waits(self.conversation) => Ok(Moment::ToolsRan),
            StopWord::Ends => Err(TurnEnd::EndTurn),
            StopWord::Stopped => Err(TurnEnd::Hook),
            StopWord::GoesOn(_) if self.held_back >= self.stop_limit => {
                let text = format!(
                    "A hook has had the agent go on {} times and wants it again; the turn ends all the same.",
                    self.held_back
                );
                self.notice(NoticeKind::Hook, &text);
                Err(TurnEnd::EndTurn)
            }
            StopWord::GoesOn(reason) => {
                self.held_back += 1;
                let remark = format!("A hook held the end of your work back, for this reason:\n{reason}");
                self.remark(&reminder(&remark));
                Ok(Moment::HeldBack)
            }
        }
    }

    fn facts<'f>(&self, answer: &'f Answer, announces: bool) -> Facts<'f> {
        Facts {
            stop_reason: &answer.stop_reason,
            calls: answer.calls.len(),
            cut: answer.cut,
            announces,
            intent: self.intent,
            announced: self.announced,
            continued: self.continued,
            stopped: self.conversation.session.hooks.has_stopped(self.turn),
            cancelled: self.cancel.is_cancelled(),
            steered: steering::waits(self.conversation),
            exit: self.conversation.is_asked_to_stop(),
            model_calls: self.model_calls,
            model_call_limit: match self.limit() {
                TurnLimit::Calls(limit) => Some(limit),
                TurnLimit::Unlimited => None,
                TurnLimit::Disabled => Some(0),
            },
            used_up: self.conversation.session.used_up(self.turn),
            repeats: self.repeats.count(),
            // A sub-agent reports to the call it works for.
            may_ask: self.conversation.agent.is_none(),
        }
    }

    /// Whether an answer only announces what it is going to do, where it could do it: in plan mode it plans.
    fn announces(&self, answer: &Answer) -> bool {
        let has_tools = self.conversation.tools.iter().next().is_some();
        has_tools
            && self.mode() != Mode::Plan
            && answer.calls.is_empty()
            && intent::announces(&answer.text, || self.asked())
    }

    /// What the user said last in the turn, or whoever called the sub-agent.
    fn asked(&self) -> String {
        self.conversation.read(|thread| {
            let said = thread.newest_since(self.turn).iter().rev().find_map(|item| match &item.body {
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

    fn mode(&self) -> Mode {
        self.conversation.mode(self.conversation.session.mode())
    }

    /// How many model calls the turn may make, by what is said now.
    fn limit(&self) -> TurnLimit {
        match self.conversation.model_call_limit {
            Some(limit) => TurnLimit::Calls(limit),
            None => self.conversation.session.turn_limit_of(self.options, self.mode()),
        }
    }

    /// Asks the user whether the turn goes on, and makes room for it when it does.
    async fn goes_on(&mut self, pause: Pause) -> bool {
        let question = match pause {
            Pause::Limit => format!("The turn has made {} model calls. Shall it go on?", self.model_calls),
            Pause::Cost => {
                let cost = self.conversation.session.spent_since(self.turn).0;
                format!("The turn has cost ${cost:.2}, as much as its budget is. Shall it go on?")
            }
            Pause::Time => {
                let minutes = self.conversation.session.spent_since(self.turn).1.as_secs() / 60;
                format!(
                    "The turn has gone on for {minutes} minutes, as long as its budget is. Shall it go on?"
                )
            }
            Pause::Repeats => {
                let times = self.repeats.count();
                format!("The same call was made {times} times in a row with the same result. Shall it go on?")
            }
        };
        self.lets_go_on(QuestionDraft::turn_limit(question), None).await
    }

    /// Asks whether the turn goes on; `again` is what was asked before the session was taken up.
    async fn lets_go_on(&mut self, draft: QuestionDraft, again: Option<QuestionId>) -> bool {
        let reply = self.conversation.ask_for_turn(draft, again, self.cancel).await;
        let said = reply.as_ref().and_then(|reply| reply.answers.as_ref()?.first()?.labels.first());
        if said.is_none_or(|label| label != LIMIT_GO_ON) {
            return false;
        }
        self.model_calls = 0;
        self.repeats.forget();
        let (began, request) = (Instant::now(), compact::Request { cause: Cause::TurnLimit, focus: None });
        let outcome = compact::compact(self.conversation, self.turn, request, self.cancel).await;
        self.conversation.note_phase(Phase::CompactCheck, began);
        self.conversation.session.begin_budget(self.turn);
        outcome != compact::Outcome::Cancelled
    }

    /// Tells the model why it is asked again, where it would not know.
    fn prepare(&mut self, why: Why) {
        match why {
            Why::Results | Why::Paused | Why::Steered | Why::Hook => {}
            Why::Cut(cut) => {
                self.continued += 1;
                seal(self.conversation, ending::CUT_OFF);
                if self.continued == 1 {
                    let text = "The answer was cut off by its token limit and is continued.";
                    self.notice(NoticeKind::Continued, text);
                }
                self.remark(match cut {
                    Cut::Text => GO_ON,
                    Cut::Thinking => THINK_LESS,
                    Cut::Call => SMALLER,
                });
            }
            Why::Announced { fallback } => {
                self.announced += 1;
                self.wish.fallback_first = fallback || self.falls_back_from_announcing();
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
        let models = self.conversation.session.models();
        models.profile(&self.conversation.model()).is_ok_and(|profile| {
            let fallback = profile.fallback.as_ref();
            fallback.is_some_and(|fallback| fallback.triggers.contains(&Trigger::IncompleteIntent))
        })
    }

    fn notice(&self, kind: NoticeKind, text: &str) {
        self.conversation.notice_of(kind, self.turn, (NoticeLevel::Info, text, ""));
    }

    fn remark(&self, text: &str) {
        let record = Record::Remark { turn: self.turn.clone(), text: text.to_owned() };
        self.conversation.commit(record);
    }
}
