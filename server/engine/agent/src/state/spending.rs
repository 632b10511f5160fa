//! The tokens and the cost of a session's model calls, by model and by turn.
//!
//! Rule: it is a fold of the journal, which has every model call with its cost at the time; later prices change
//! nothing. An unknown cost is not counted as zero.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use kode_base::ids::TurnId;
use kode_model::Usage;
use kode_model::price::Cost;

/// The most turns that are kept one by one.
const MAX_TURNS: usize = 200;

/// The usage of one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelSpending {
    /// Its calls.
    pub calls: u64,
    /// Its tokens.
    pub usage: Usage,
    /// Their cost.
    pub cost: Cost,
}

/// The usage of a turn, with its sub-agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnSpending {
    /// The turn.
    pub turn: TurnId,
    /// Its tokens.
    pub usage: Usage,
    /// Their cost.
    pub cost: Cost,
}

/// The usage of a session since it began, with its sub-agents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spending {
    models: BTreeMap<String, ModelSpending>,
    turns: VecDeque<TurnSpending>,
    total: Cost,
    /// Tokens of the turns that have ended, and of side questions.
    usage: Usage,
}

impl Spending {
    /// By model, as its provider calls it.
    pub fn models(&self) -> impl Iterator<Item = (&str, &ModelSpending)> {
        self.models.iter().map(|(model, spending)| (model.as_str(), spending))
    }

    /// By turn, oldest first; only the newest are kept one by one.
    pub fn turns(&self) -> impl Iterator<Item = &TurnSpending> {
        self.turns.iter()
    }

    /// Tokens of all turns that have ended, and of side questions.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The total cost.
    #[must_use]
    pub fn total(&self) -> Cost {
        self.total
    }

    /// The cost of the newest turn.
    #[must_use]
    pub fn of_turn(&self, turn: &TurnId) -> Cost {
        let known = self.turns.iter().rev().find(|spending| spending.turn == *turn);
        known.map(|spending| spending.cost).unwrap_or_default()
    }

    /// The tokens that a turn has taken so far.
    #[must_use]
    pub fn usage_of(&self, turn: &TurnId) -> Usage {
        let known = self.turns.iter().rev().find(|spending| spending.turn == *turn);
        known.map(|spending| spending.usage).unwrap_or_default()
    }

    /// Enters a model call; without a cost its price was unknown.
    pub(super) fn charge(&mut self, turn: &TurnId, model: &str, usage: Usage, cost: Option<f64>) {
        let cost = self.charge_model(model, usage, cost);
        let of_turn = self.turn(turn);
        of_turn.usage += usage;
        of_turn.cost += cost;
    }

    /// As [`Self::charge`], for a side question, which is of no turn.
    pub(super) fn charge_aside(&mut self, model: &str, usage: Usage, cost: Option<f64>) {
        self.charge_model(model, usage, cost);
        self.usage += usage;
    }

    fn charge_model(&mut self, model: &str, usage: Usage, cost: Option<f64>) -> Cost {
        let cost = Cost::known(cost, &usage);
        let of_model = self.models.entry(model.to_owned()).or_default();
        of_model.calls += 1;
        of_model.usage += usage;
        of_model.cost += cost;
        self.total += cost;
        cost
    }

    /// Enters the end of a turn. Older journals have the tokens of turns alone, and not whose they were.
    pub(super) fn end_turn(&mut self, turn: &TurnId, usage: Usage) {
        self.usage += usage;
        let has_calls = self.turns.iter().any(|spending| spending.turn == *turn);
        if !has_calls && usage != Usage::default() {
            let unknown = Cost::known(None, &usage);
            self.total += unknown;
            let of_turn = self.turn(turn);
            of_turn.usage += usage;
            of_turn.cost += unknown;
        }
    }

    fn turn(&mut self, turn: &TurnId) -> &mut TurnSpending {
        let at = match self.turns.iter().rposition(|spending| spending.turn == *turn) {
            Some(at) => at,
            None => {
                if self.turns.len() >= MAX_TURNS {
                    self.turns.pop_front();
                }
                let (usage, cost) = (Usage::default(), Cost::default());
                self.turns.push_back(TurnSpending { turn: turn.clone(), usage, cost });
                self.turns.len() - 1
            }
        };
        &mut self.turns[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64) -> Usage {
        Usage { input_tokens: input, ..Usage::default() }
    }

    #[test]
    fn calls_add_up_by_model_and_by_turn() {
        let (one, two) = (TurnId::generate(), TurnId::generate());
        let mut spending = Spending::default();
        spending.charge(&one, "a", usage(10), Some(0.5));
        spending.charge(&one, "b", usage(1), Some(0.25));
        spending.end_turn(&one, usage(11));
        spending.charge(&two, "a", usage(20), None);
        spending.end_turn(&two, usage(20));
        let models: Vec<_> = spending
            .models()
            .map(|(model, spent)| (model, spent.calls, spent.usage.input_tokens, spent.cost.total()))
            .collect();
        assert_eq!(models, [("a", 2, 30, None), ("b", 1, 1, Some(0.25))]);
        assert_eq!(spending.of_turn(&one).total(), Some(0.75));
        assert_eq!((spending.total().total(), spending.total().usd), (None, 0.75));
        assert_eq!(spending.turns().map(|turn| turn.usage.input_tokens).collect::<Vec<_>>(), [11, 20]);
    }

    #[test]
    fn a_side_question_is_in_the_totals_and_in_no_turn() {
        let turn = TurnId::generate();
        let mut spending = Spending::default();
        spending.charge(&turn, "a", usage(10), Some(0.5));
        spending.charge_aside("a", usage(3), Some(0.25));
        assert_eq!((spending.of_turn(&turn).usd, spending.total().usd), (0.5, 0.75));
        assert_eq!((spending.turns().count(), spending.usage().input_tokens), (1, 3));
        assert_eq!(spending.models().next().map(|(_, spent)| spent.usage.input_tokens), Some(13));
    }

    #[test]
    fn a_turn_of_an_older_journal_costs_an_unknown_sum() {
        let mut spending = Spending::default();
        spending.end_turn(&TurnId::generate(), Usage::default());
        assert_eq!(spending.total().total(), Some(0.0));
        spending.end_turn(&TurnId::generate(), usage(5));
        assert_eq!(spending.total().total(), None);
    }

    #[test]
    fn only_the_newest_turns_are_kept_one_by_one() {
        let mut spending = Spending::default();
        for _ in 0..=MAX_TURNS {
            spending.charge(&TurnId::generate(), "a", usage(1), Some(1.0));
        }
        assert_eq!(spending.turns().count(), MAX_TURNS);
        assert_eq!(spending.models().next().unwrap().1.calls, u64::try_from(MAX_TURNS).unwrap() + 1);
    }
}
