//! The goal of a session on the wire.
//!
//! Rule: values only, no decisions.

use kode_engine::record::goal::{Goal, GoalCheck, GoalState};
use kode_protocol as wire;

use super::timestamp;

/// A goal with its progress.
#[must_use]
pub(super) fn goal(goal: Goal) -> wire::Goal {
    wire::Goal {
        text: goal.text,
        check: match goal.check {
            GoalCheck::Command { command } => Some(command),
            GoalCheck::Model => None,
        },
        state: match goal.state {
            GoalState::Active => wire::GoalState::Active,
            GoalState::Met => wire::GoalState::Met,
            GoalState::OutOfRounds => wire::GoalState::OutOfRounds,
            GoalState::OutOfMoney => wire::GoalState::OutOfMoney,
            GoalState::OutOfTime => wire::GoalState::OutOfTime,
        },
        since: timestamp(goal.since),
        rounds: goal.rounds,
        max_rounds: goal.bounds.rounds,
        cost: goal.cost_usd,
        max_cost: goal.bounds.cost_usd,
        duration_ms: goal.duration_ms,
        max_minutes: goal.bounds.minutes,
        finding: goal.finding,
    }
}

/// That the goal is another one.
pub(super) fn changed(changed: Option<Box<Goal>>) -> wire::Event {
    wire::Event::GoalChanged(wire::GoalChanged { goal: changed.map(|changed| goal(*changed)) })
}
