//! The goal of a session: the agent works until a check says that it is met, or a bound is reached.
//!
//! Rule: a record holds the whole goal with its progress, so the newest one is its state, also after a restart.

use jiff::Timestamp;
use kode_base::ids::TurnId;
use serde::{Deserialize, Serialize};

/// The goal of a session, and its progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Goal {
    /// The goal, in the user's words.
    pub text: String,
    /// The check that decides whether it is met.
    pub check: GoalCheck,
    /// The bounds of the work.
    pub bounds: GoalBounds,
    /// The turn that it was set in.
    pub turn: TurnId,
    /// When it was set.
    pub since: Timestamp,
    /// The known cost of the session when it was set, in US dollars.
    pub cost_before: f64,
    /// The state of the work.
    pub state: GoalState,
    /// The number of checks that ran.
    pub rounds: u32,
    /// Milliseconds of all turns since it was set.
    pub duration_ms: u64,
    /// The known cost of the session since it was set, in US dollars.
    pub cost_usd: f64,
    /// The newest check's reason why the goal is not met; absent before the first check, and once it is met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
}

/// The check that decides whether a goal is met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum GoalCheck {
    /// A command: the goal is met when its exit code is 0.
    Command {
        /// The command line.
        command: String,
    },
    /// A model that reads the conversation.
    Model,
}

/// The bounds of the work for a goal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GoalBounds {
    /// The most checks.
    pub rounds: u32,
    /// The most money, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The most minutes of turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes: Option<u32>,
}

/// The state of the work for a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GoalState {
    /// Turns do not end before it is met.
    Active,
    /// The check found it met.
    Met,
    /// Its checks are used up.
    OutOfRounds,
    /// Its money is used up.
    OutOfMoney,
    /// Its time is used up.
    OutOfTime,
}

impl Goal {
    /// The bound that the work has reached.
    #[must_use]
    pub fn exhausted(&self) -> Option<GoalState> {
        let minutes = self.bounds.minutes.map(|minutes| u64::from(minutes) * 60_000);
        if self.rounds >= self.bounds.rounds {
            Some(GoalState::OutOfRounds)
        } else if self.bounds.cost_usd.is_some_and(|most| self.cost_usd >= most) {
            Some(GoalState::OutOfMoney)
        } else if minutes.is_some_and(|most| self.duration_ms >= most) {
            Some(GoalState::OutOfTime)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bound_is_reached_at_its_number_and_not_before() {
        let goal = |rounds, cost_usd, duration_ms| Goal {
            text: "All tests pass".to_owned(),
            check: GoalCheck::Model,
            bounds: GoalBounds { rounds: 3, cost_usd: Some(2.0), minutes: Some(5) },
            turn: TurnId::generate(),
            since: Timestamp::UNIX_EPOCH,
            cost_before: 0.0,
            state: GoalState::Active,
            rounds,
            duration_ms,
            cost_usd,
            finding: None,
        };
        for (rounds, cost, duration_ms, expected) in [
            (2, 1.99, 299_999, None),
            (3, 0.0, 0, Some(GoalState::OutOfRounds)),
            (0, 2.0, 0, Some(GoalState::OutOfMoney)),
            (0, 0.0, 300_000, Some(GoalState::OutOfTime)),
        ] {
            assert_eq!(
                goal(rounds, cost, duration_ms).exhausted(),
                expected,
                "{rounds} {cost} {duration_ms}"
            );
        }
    }
}
