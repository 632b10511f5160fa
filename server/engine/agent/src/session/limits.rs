//! How many model calls the turns of a session may make, and what they may take.
//!
//! Rule: limits are looked up when they are needed: settings and mode may change while a turn runs. The budget of a turn is
//! one for all its conversations.

use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use tokio::time::Instant;

use crate::session::{Session, lock};
use crate::turn::limit::{Sources, TurnLimit};
use crate::turn::next::Pause;
use kode_base::ids::TurnId;
use kode_base::mode::Mode;
use kode_config::budget::Budget;
use kode_record::options::TurnOptions;

/// What a live session keeps of budgets.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    /// That of the command line.
    command_line: OnceLock<Budget>,
    since: Mutex<Option<Since>>,
}

/// Since when the budget of a turn counts.
#[derive(Debug)]
struct Since {
    turn: TurnId,
    /// What the turn had cost then, in US dollars.
    cost: f64,
    time: Instant,
}

impl Session {
    /// Limits the turns of this session from the command line, once: it wins over what prompts and settings say.
    pub fn limit_turns(&self, max_turns: i64) {
        if self.turn_limit.set(max_turns).is_err() {
            tracing::warn!(max_turns, "the turn limit of the command line is set already");
        }
    }

    /// Gives the turns of this session a budget from the command line, once: what it says wins over prompts and settings.
    pub fn limit_budget(&self, budget: Budget) {
        if self.budgets.command_line.set(budget).is_err() {
            tracing::warn!(?budget, "the budget of the command line is set already");
        }
    }

    /// What was said with the prompt of the running turn.
    pub(crate) fn turn_options(&self) -> TurnOptions {
        self.active().as_ref().map(|turn| turn.options).unwrap_or_default()
    }

    /// How many model calls a turn may make in a mode, by what was said with its prompt.
    pub(crate) fn turn_limit_of(&self, options: TurnOptions, mode: Mode) -> TurnLimit {
        let sources = Sources {
            command_line: self.turn_limit.get().copied(),
            call: options.max_turns,
            settings: self.in_force().policy.preferences.max_turns,
        };
        TurnLimit::of(sources, mode)
    }

    /// Begins to count what the turn takes, anew when the user lets it go on.
    pub(crate) fn begin_budget(&self, turn: &TurnId) {
        let cost = self.state().spending.of_turn(turn).usd;
        *lock(&self.budgets.since) = Some(Since { turn: turn.clone(), cost, time: Instant::now() });
    }

    /// What of its budget the running turn has used up, with its sub-agents.
    pub(crate) fn used_up(&self, turn: &TurnId) -> Option<Pause> {
        let of_settings = self.in_force().policy.preferences.budget;
        let said = self.budgets.command_line.get().copied().unwrap_or_default();
        let budget = said.or(self.turn_options().budget).or(of_settings);
        let (cost, time) = self.spent_since(turn);
        budget.exceeded(cost, time).map(Pause::from)
    }

    /// What the turn has cost in US dollars, as far as that is known, and how long it has gone on since its budget counts.
    pub(crate) fn spent_since(&self, turn: &TurnId) -> (f64, Duration) {
        let cost = self.state().spending.of_turn(turn).usd;
        match lock(&self.budgets.since).as_ref().filter(|since| since.turn == *turn) {
            Some(since) => (cost - since.cost, since.time.elapsed()),
            None => (0.0, Duration::ZERO),
        }
    }
}
