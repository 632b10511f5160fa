//! The limits of a turn in money and time.
//!
//! Rule: an absent limit is no limit; amounts are finite and above zero.

use std::time::Duration;

use serde::{Deserialize, Serialize};

const SECONDS_OF_MINUTE: f64 = 60.0;

/// The budget of a turn, with its sub-agents, before the user is asked; `None` for any amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Budget {
    /// US dollars, above 0. What has no known price is not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// Minutes, above 0, waits included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_minutes: Option<f64>,
}

/// The limit of a [`Budget`] that a turn has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetLimit {
    /// Money.
    Cost,
    /// Time.
    Time,
}

impl Budget {
    /// This budget, and the other one where it says nothing.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            max_cost_usd: self.max_cost_usd.or(other.max_cost_usd),
            max_minutes: self.max_minutes.or(other.max_minutes),
        }
    }

    /// Whether an amount can be one of a budget.
    #[must_use]
    pub fn is_amount(amount: f64) -> bool {
        amount.is_finite() && amount > 0.0
    }

    /// The first limit that this cost and this time reach, if any.
    #[must_use]
    pub fn exceeded(self, cost_usd: f64, time: Duration) -> Option<BudgetLimit> {
        if self.max_cost_usd.is_some_and(|most| cost_usd >= most) {
            return Some(BudgetLimit::Cost);
        }
        self.max_minutes
            .filter(|most| time.as_secs_f64() >= most * SECONDS_OF_MINUTE)
            .map(|_| BudgetLimit::Time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_or_time_exceeds_a_budget() {
        let budget = |max_cost_usd, max_minutes| Budget { max_cost_usd, max_minutes };
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        for (budget, cost, time, expected) in [
            (budget(None, None), 1e9, minutes(1_000), None),
            (budget(Some(2.0), None), 1.99, minutes(1_000), None),
            (budget(Some(2.0), None), 2.0, minutes(0), Some(BudgetLimit::Cost)),
            (budget(None, Some(0.5)), 1e9, Duration::from_secs(29), None),
            (budget(None, Some(0.5)), 0.0, Duration::from_secs(30), Some(BudgetLimit::Time)),
            (budget(Some(2.0), Some(1.0)), 3.0, minutes(3), Some(BudgetLimit::Cost)),
            (
                budget(Some(1.0), None).or(budget(Some(9.0), Some(1.0))),
                1.0,
                minutes(0),
                Some(BudgetLimit::Cost),
            ),
            (
                budget(Some(9.0), None).or(budget(Some(1.0), Some(1.0))),
                1.0,
                minutes(1),
                Some(BudgetLimit::Time),
            ),
        ] {
            assert_eq!(budget.exceeded(cost, time), expected, "{budget:?} {cost} {time:?}");
        }
        assert!(Budget::is_amount(0.01) && !Budget::is_amount(0.0) && !Budget::is_amount(f64::NAN));
        assert!(!Budget::is_amount(-1.0) && !Budget::is_amount(f64::INFINITY));
    }
}
