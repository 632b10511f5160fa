//! The goal of a session: its check at the end of a turn, and its bounds.
//!
//! Rule: only the session's own conversation works for the goal. A turn that the user interrupts, or that fails, ends
//! without a check and leaves the goal active. A check that cannot be carried out ends the turn: it says neither yes nor no.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::context::tokens::Counter;
use crate::core::{Core, lock};
use crate::state::SessionState;
use crate::transfer::export::fenced;
use crate::turn::compact::transcript::{both_ends, transcript};
use crate::turn::embed::{self, CheckRun};
use crate::turn::services::TurnContext;
use kode_base::mode::Mode;
use kode_model::models::Pointer;
use kode_permission::equipment::Equipment;
use kode_process::outcome::Exit;
use kode_record::event::ItemBody;
use kode_record::goal::{Goal, GoalCheck, GoalState};
use kode_record::record::Record;

/// The instructions of the model that checks a goal.
const JUDGE: &str = include_str!("../prompts/goal_check.md");

/// The most time of a check by a command.
const COMMAND_TIME: Duration = Duration::from_secs(600);

/// The most bytes of a command's output that the model and the transcript get.
const MAX_OUTPUT: usize = 8_000;

/// The most tokens of the conversation that a model gets to check the goal.
const MAX_CONVERSATION: u64 = 24_000;

/// The goal of a session while its turns run.
pub(crate) struct Goals {
    core: Arc<Core>,
    /// The start of the time that is not recorded yet; `None` while no turn runs.
    counted_from: Mutex<Option<Instant>>,
}

/// The outcome of the check at the end of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GoalOutcome {
    /// The turn may end: there is no goal, it is met, or it could not be checked.
    End,
    /// The model works on, for this reason.
    Continue(String),
    /// A bound is reached.
    Exhausted,
    /// The user has interrupted the check.
    Cancelled,
}

/// The finding of one check.
enum GoalFinding {
    Met,
    NotMet(String),
    /// The check could not be carried out.
    Failed(String),
}

impl Goals {
    pub(crate) fn new(core: &Arc<Core>) -> Arc<Self> {
        Arc::new(Self { core: Arc::clone(core), counted_from: Mutex::default() })
    }

    /// Begins to count the time of a turn.
    pub(crate) fn begin_turn(&self) {
        *lock(&self.counted_from) = Some(Instant::now());
    }

    /// Records the time and the cost of a turn that has ended.
    pub(crate) fn end_turn(&self) {
        self.change(|_| {});
        *lock(&self.counted_from) = None;
    }

    /// The goal with its progress now; `None` without one.
    pub(crate) fn now(&self) -> Option<Goal> {
        let state = self.core.state();
        let mut goal = state.goal.clone()?;
        self.measure(&state, &mut goal);
        Some(*goal)
    }

    /// Sets a goal in place of the earlier one; `None` removes it.
    pub(crate) fn set(&self, goal: Option<Goal>) {
        let mut counted_from = lock(&self.counted_from);
        if counted_from.is_some() {
            *counted_from = Some(Instant::now());
        }
        drop(counted_from);
        self.core.commit(Record::GoalSet { goal: goal.map(Box::new) });
    }

    /// The bound that the active goal has reached.
    pub(crate) fn exhausted(&self) -> Option<GoalState> {
        self.now().filter(|goal| goal.state == GoalState::Active).and_then(|goal| goal.exhausted())
    }

    /// Ends the work for the active goal at a bound. Returns the goal as it is then.
    pub(super) fn end_at(&self, bound: GoalState) -> Option<Goal> {
        self.change(|goal| goal.state = bound)
    }

    /// Adds the time since the last record, and the cost, to an active goal.
    fn measure(&self, state: &SessionState, goal: &mut Goal) {
        if goal.state == GoalState::Active {
            let elapsed = lock(&self.counted_from).map_or(Duration::ZERO, |from| from.elapsed());
            goal.duration_ms += u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX / 2);
            goal.cost_usd = (state.spending.total().usd - goal.cost_before).max(0.0);
        }
    }

    /// Records a change of the active goal with its progress. Returns the goal as it is then.
    fn change(&self, change: impl FnOnce(&mut Goal)) -> Option<Goal> {
        let mut state = self.core.state();
        let mut goal = state.goal.clone().filter(|goal| goal.state == GoalState::Active)?;
        self.measure(&state, &mut goal);
        change(&mut goal);
        if let Some(from) = lock(&self.counted_from).as_mut() {
            *from = Instant::now();
        }
        self.core.commit_to(&mut state, Record::GoalSet { goal: Some(goal.clone()) });
        Some(*goal)
    }
}

/// Checks the goal of the session before a turn ends, and says whether it may end.
pub(super) async fn before_stop(turn: TurnContext<'_>, cancel: &CancellationToken) -> GoalOutcome {
    let goals = &turn.services.goals;
    let works = turn.conversation.is_main() && !matches!(turn.mode(), Mode::Plan | Mode::Readonly);
    let Some(goal) = goals.now().filter(|goal| works && goal.state == GoalState::Active) else {
        return GoalOutcome::End;
    };
    let finding = match &goal.check {
        GoalCheck::Command { command } => by_command(turn, command, cancel).await,
        GoalCheck::Model => by_model(turn, &goal, cancel).await,
    };
    if cancel.is_cancelled() {
        return GoalOutcome::Cancelled;
    }
    let (state, reason) = match finding {
        GoalFinding::Met => (GoalState::Met, None),
        GoalFinding::NotMet(reason) => (GoalState::Active, Some(reason)),
        GoalFinding::Failed(reason) => {
            let text = format!("The goal could not be checked, so the turn ends: {reason}.");
            report(turn, &text, true, None);
            goals.change(|goal| goal.finding = Some(reason));
            return GoalOutcome::End;
        }
    };
    let checked = goals.change(|goal| {
        goal.rounds = goal.rounds.saturating_add(1);
        goal.finding.clone_from(&reason);
        goal.state = state;
    });
    // The user may have removed the goal during the check.
    let Some(checked) = checked else { return GoalOutcome::End };
    report(turn, &round_text(&checked), checked.state != GoalState::Met, Some(&checked));
    match checked.finding.as_ref() {
        None => GoalOutcome::End,
        Some(_) if checked.exhausted().is_some() => GoalOutcome::Exhausted,
        Some(reason) => GoalOutcome::Continue(reason.clone()),
    }
}

async fn by_command(turn: TurnContext<'_>, command: &str, cancel: &CancellationToken) -> GoalFinding {
    // The user has written this command, and the rule counts for this call alone. Rules that deny or ask come before it.
    let equipment = Equipment { allow: vec!["Bash".to_owned()], ..Equipment::default() };
    let run = embed::check(turn, command, &equipment, COMMAND_TIME, cancel).await;
    let CheckRun { exit, output } = match run {
        Ok(run) => run,
        Err(reason) => return GoalFinding::Failed(reason),
    };
    let ended = match exit {
        Exit::Code(0) => return GoalFinding::Met,
        Exit::Code(code) => format!("ended with exit code {code}"),
        Exit::TimedOut => format!("took longer than {} s and was ended", COMMAND_TIME.as_secs()),
        Exit::Signal(signal) => format!("was ended by signal {signal}"),
        Exit::Cancelled => "was cancelled".to_owned(),
    };
    let output = both_ends(output.trim(), MAX_OUTPUT);
    GoalFinding::NotMet(match output.is_empty() {
        true => format!("`{command}` {ended} and wrote nothing"),
        false => format!("`{command}` {ended}:\n{output}"),
    })
}

async fn by_model(turn: TurnContext<'_>, goal: &Goal, cancel: &CancellationToken) -> GoalFinding {
    let models = turn.services.models.now();
    let profile = match models.profile(&turn.services.models.pointer(Pointer::Quick)) {
        Ok(profile) => profile,
        Err(error) => return GoalFinding::Failed(error.to_string()),
    };
    let (counter, most) = (Counter::of(&profile.model), MAX_CONVERSATION.min(profile.context_window / 2));
    let conversation = turn.read(|thread| {
        let messages: Vec<_> = thread.messages.iter().cloned().collect();
        transcript(&messages, 0, None, most, counter)
    });
    let question = format!("<goal>\n{}\n</goal>\n<conversation>\n{conversation}\n</conversation>", goal.text);
    let verdict = turn.services.hooks.judge(turn.conversation, JUDGE, question, None, cancel).await;
    match verdict {
        Ok(verdict) if verdict.ok => GoalFinding::Met,
        Ok(verdict) => GoalFinding::NotMet(both_ends(verdict.reason.trim(), MAX_OUTPUT)),
        Err(reason) => GoalFinding::Failed(reason),
    }
}

/// The text of a round in the transcript.
fn round_text(goal: &Goal) -> String {
    let (round, most) = (goal.rounds, goal.bounds.rounds);
    match goal.state {
        GoalState::Met => format!("The goal is met, by check {round} of at most {most}."),
        GoalState::Active | GoalState::OutOfRounds | GoalState::OutOfMoney | GoalState::OutOfTime => {
            let reason = goal.finding.as_deref().unwrap_or_default();
            let (first, rest) = reason.split_once('\n').unwrap_or((reason, ""));
            let rest = if rest.is_empty() { String::new() } else { format!("\n\n{}", fenced("text", rest)) };
            format!("Check {round} of at most {most}: the goal is not met. {first}{rest}")
        }
    }
}

/// Shows a check in the transcript, as the answer of `/goal`.
fn report(turn: TurnContext<'_>, text: &str, failed: bool, goal: Option<&Goal>) {
    let data = goal.map(|goal| Box::new(json!(goal)));
    let (name, arguments) = ("goal".to_owned(), String::new());
    let body = ItemBody::Command { name, arguments, text: text.to_owned(), data, failed, go_to: None };
    turn.commit(Record::Item { item: turn.new_item(body), streamed: false });
}
