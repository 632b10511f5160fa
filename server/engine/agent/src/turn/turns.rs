//! The running turn of a session, its limits and its budget.
//!
//! Rule: limits are read when they are needed: settings and mode may change while a turn runs. The budget of a turn is one
//! for all its conversations.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::core::{Core, lock};
use crate::gate::Gatekeeper;
use crate::turn::limit::{LimitSources, TurnLimit};
use crate::turn::next::Pause;
use kode_base::ids::{CallId, TurnId};
use kode_base::mode::Mode;
use kode_config::budget::Budget;
use kode_record::options::TurnOptions;

/// The running turn of a session, its limits and its budget.
pub struct Turns {
    core: Arc<Core>,
    gate: Arc<Gatekeeper>,
    active: Mutex<Option<ActiveTurn>>,
    /// The turn limit of the command line.
    limit: OnceLock<i64>,
    /// The budget of the command line.
    budget: OnceLock<Budget>,
    budget_start: Mutex<Option<BudgetStart>>,
}

/// The turn that runs.
pub(crate) struct ActiveTurn {
    pub(crate) id: TurnId,
    pub(crate) options: TurnOptions,
    pub(crate) cancel: CancellationToken,
    pub(crate) calls: HashMap<CallId, CancellationToken>,
    /// Ends the wait before a model is called again.
    retry: Arc<Notify>,
}

/// The point from which the budget of a turn counts.
#[derive(Debug)]
struct BudgetStart {
    turn: TurnId,
    /// The cost of the turn at that point, in US dollars.
    cost: f64,
    time: Instant,
}

impl ActiveTurn {
    /// A turn that begins, or that is resumed.
    pub(crate) fn new(core: &Core, id: TurnId, options: TurnOptions) -> Self {
        Self { id, options, cancel: core.cancel_token(), calls: HashMap::new(), retry: Arc::default() }
    }
}

impl Turns {
    pub(crate) fn new(core: &Arc<Core>, gate: &Arc<Gatekeeper>) -> Arc<Self> {
        Arc::new(Self {
            core: Arc::clone(core),
            gate: Arc::clone(gate),
            active: Mutex::default(),
            limit: OnceLock::new(),
            budget: OnceLock::new(),
            budget_start: Mutex::default(),
        })
    }

    /// The running turn; `None` when none runs. Locked after the state, never before it.
    pub(crate) fn active(&self) -> MutexGuard<'_, Option<ActiveTurn>> {
        lock(&self.active)
    }

    /// Whether a turn runs.
    pub(crate) fn is_busy(&self) -> bool {
        self.active().is_some()
    }

    /// Cancels the running turn; the queue stays. False when none runs.
    pub fn cancel(&self) -> bool {
        self.cancel_where(|_| true)
    }

    /// Cancels the running turn if it is the one of that id. False when it is not.
    pub fn cancel_of(&self, turn: &str) -> bool {
        self.cancel_where(|active| active.id.as_str() == turn)
    }

    fn cancel_where(&self, is_meant: impl FnOnce(&ActiveTurn) -> bool) -> bool {
        match self.active().as_ref() {
            Some(active) if is_meant(active) => {
                active.cancel.cancel();
                true
            }
            Some(_) | None => false,
        }
    }

    /// Ends the wait before the model is called again. False when no turn runs.
    pub fn retry_now(&self) -> bool {
        match self.active().as_ref() {
            Some(turn) => {
                turn.retry.notify_waiters();
                true
            }
            None => false,
        }
    }

    /// The notifier that ends the wait before the model is called again.
    pub(super) fn retry_notifier(&self) -> Arc<Notify> {
        self.active().as_ref().map_or_else(Arc::default, |turn| Arc::clone(&turn.retry))
    }

    /// Cancels one call of the running turn; its siblings continue. False when no such call is unfinished.
    pub fn cancel_call(&self, call: &CallId) -> bool {
        match self.active().as_ref().and_then(|turn| turn.calls.get(call)) {
            Some(cancel) => {
                cancel.cancel();
                true
            }
            None => false,
        }
    }

    pub(super) fn register_call(&self, call: &CallId, parent: &CancellationToken) -> CancellationToken {
        let token = parent.child_token();
        if let Some(turn) = self.active().as_mut() {
            turn.calls.insert(call.clone(), token.clone());
        }
        token
    }

    pub(super) fn forget_call(&self, call: &CallId) {
        if let Some(turn) = self.active().as_mut() {
            turn.calls.remove(call);
        }
    }

    /// Sets the turn limit of the command line, once: it has precedence over prompts and settings.
    pub fn limit_turns(&self, max_turns: i64) {
        if self.limit.set(max_turns).is_err() {
            tracing::warn!(max_turns, "the turn limit of the command line is set already");
        }
    }

    /// Sets the budget of the command line, once: it has precedence over prompts and settings.
    pub fn limit_budget(&self, budget: Budget) {
        if self.budget.set(budget).is_err() {
            tracing::warn!(?budget, "the budget of the command line is set already");
        }
    }

    /// The options of the running turn's prompt.
    pub(super) fn options(&self) -> TurnOptions {
        self.active().as_ref().map(|turn| turn.options.clone()).unwrap_or_default()
    }

    /// The limit of a turn in a mode, with the options of its prompt.
    pub(crate) fn limit_of(&self, options: &TurnOptions, mode: Mode) -> TurnLimit {
        let sources = LimitSources {
            command_line: self.limit.get().copied(),
            call: options.max_turns,
            settings: self.gate.in_force().policy.preferences.max_turns,
        };
        TurnLimit::of(sources, mode)
    }

    /// Begins to count the budget of a turn; starts over when the user lets it continue.
    pub(super) fn begin_budget(&self, turn: &TurnId) {
        let cost = self.core.state().spending.of_turn(turn).usd;
        *lock(&self.budget_start) = Some(BudgetStart { turn: turn.clone(), cost, time: Instant::now() });
    }

    /// The part of its budget that the running turn has used up, with its sub-agents.
    pub(super) fn used_up(&self, turn: &TurnId) -> Option<Pause> {
        let of_settings = self.gate.in_force().policy.preferences.budget;
        let of_command_line = self.budget.get().copied().unwrap_or_default();
        let budget = of_command_line.or(self.options().budget).or(of_settings);
        let (cost, time) = self.spent_since(turn);
        budget.exceeded(cost, time).map(Pause::from)
    }

    /// The known cost of the turn in US dollars, and its time, since its budget counts.
    pub(super) fn spent_since(&self, turn: &TurnId) -> (f64, Duration) {
        let cost = self.core.state().spending.of_turn(turn).usd;
        match lock(&self.budget_start).as_ref().filter(|start| start.turn == *turn) {
            Some(start) => (cost - start.cost, start.time.elapsed()),
            None => (0.0, Duration::ZERO),
        }
    }
}
