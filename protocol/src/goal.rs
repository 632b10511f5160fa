//! The goal of a session: a check decides whether a turn may end, within bounds.
//!
//! Rule: a goal is always sent whole, with its progress. Its time and money grow with every event, not between them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::Timestamp;

/// The goal of a session, and its progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Goal {
    /// The goal, in the user's words.
    pub text: String,
    /// The command whose exit code 0 says that the goal is met; absent where a model checks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The state of the work.
    pub state: GoalState,
    /// When it was set.
    pub since: Timestamp,
    /// The number of checks that ran.
    pub rounds: u32,
    /// The most checks.
    pub max_rounds: u32,
    /// The known cost since it was set, in US dollars.
    pub cost: f64,
    /// The most cost, in US dollars; absent without such a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
    /// Milliseconds of all turns since it was set.
    pub duration_ms: u64,
    /// The most minutes of turns; absent without such a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_minutes: Option<u32>,
    /// The newest check's reason why the goal is not met; absent before the first check, and once it is met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
}

/// The state of the work for a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// The goal was set, checked, bounded or removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GoalChanged {
    /// The goal now; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
}
