//! How long a turn may go on before somebody is asked.
//!
//! Rule: the command line says it before the call, the call before the settings; no source can lift the built-in limit.
//! Only a mode that asks nothing has no limit of its own, and there what repeats itself is stopped.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::Block;
use crate::permission::Mode;
use crate::session::conversation::Conversation;
use crate::turn::next::Pause;
use crate::turn::sample::Call;

const SECONDS_OF_MINUTE: f64 = 60.0;

/// The most model calls of one turn.
pub const MODEL_CALL_LIMIT: u32 = 100;

/// What is said with a prompt about how its turn goes; what is `None` is as the settings say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnOptions {
    /// The most model calls, as [`TurnLimit::of`] reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<i64>,
    /// Whether the prompt is answered twice, for the user to choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate_answers: Option<bool>,
    /// What the turn may take.
    #[serde(flatten)]
    pub budget: Budget,
}

/// What a turn may take, with its sub-agents, before somebody is asked; `None` for any amount.
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

    /// What of it is used up by so many dollars and so much time.
    #[must_use]
    pub fn used_up(self, cost_usd: f64, time: Duration) -> Option<Pause> {
        if self.max_cost_usd.is_some_and(|most| cost_usd >= most) {
            return Some(Pause::Cost);
        }
        self.max_minutes.filter(|most| time.as_secs_f64() >= most * SECONDS_OF_MINUTE).map(|_| Pause::Time)
    }
}

impl TurnOptions {
    /// Whether nothing is said.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How many model calls a turn may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnLimit {
    /// So many.
    Calls(u32),
    /// Any number.
    Unlimited,
    /// None: there is no chat.
    Disabled,
}

/// Where the limit is said; each is a number, -1 for the built-in limit, or 0 for none at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// On the command line.
    pub command_line: Option<i64>,
    /// With the prompt.
    pub call: Option<i64>,
    /// In the settings.
    pub settings: Option<i64>,
}

impl TurnLimit {
    /// The limit in a mode: the first that says anything decides.
    #[must_use]
    pub fn of(sources: Sources, mode: Mode) -> Self {
        let said = sources.command_line.or(sources.call).or(sources.settings);
        match said.and_then(|turns| u32::try_from(turns).ok()) {
            Some(0) => Self::Disabled,
            Some(turns) => Self::Calls(turns.min(MODEL_CALL_LIMIT)),
            // A number too great for this type is no negative one.
            None if said.is_some_and(i64::is_positive) => Self::Calls(MODEL_CALL_LIMIT),
            None => match mode {
                Mode::BypassPermissions => Self::Unlimited,
                Mode::Default
                | Mode::AcceptEdits
                | Mode::Plan
                | Mode::DontAsk
                | Mode::Approval
                | Mode::Readonly => Self::Calls(MODEL_CALL_LIMIT),
            },
        }
    }
}

/// How often in a row the same call was made with the same result.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    last: Option<u64>,
    count: u32,
}

impl Repeats {
    /// How often the newest call was made in a row with the same result.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Begins to count anew.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Takes in the calls of an answer, which have their results.
    pub(super) fn take(&mut self, conversation: &Conversation<'_>, calls: &[Call]) {
        conversation.read(|thread| {
            let results =
                thread.messages.last().map(|message| message.content.as_slice()).unwrap_or_default();
            for call in calls {
                let result = results.iter().find_map(|block| match block {
                    Block::ToolResult { tool_use_id, content, .. } if tool_use_id == call.id.as_str() => {
                        Some(content.as_str())
                    }
                    Block::ToolResult { .. }
                    | Block::Text { .. }
                    | Block::Image(_)
                    | Block::Thinking { .. }
                    | Block::RedactedThinking { .. }
                    | Block::ToolUse { .. } => None,
                });
                self.note(&call.name, &call.input.to_string(), result.unwrap_or_default());
            }
        });
    }

    fn note(&mut self, name: &str, input: &str, result: &str) {
        let mut hasher = DefaultHasher::new();
        (name, input, result).hash(&mut hasher);
        let action = hasher.finish();
        self.count = if self.last == Some(action) { self.count.saturating_add(1) } else { 1 };
        self.last = Some(action);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_source_that_says_anything_decides_and_none_lifts_the_limit() {
        use TurnLimit::{Calls, Disabled, Unlimited};
        let of = |command_line, call, settings| Sources { command_line, call, settings };
        for (sources, expected, bypassing) in [
            (of(None, None, None), Calls(100), Unlimited),
            (of(None, None, Some(-1)), Calls(100), Unlimited),
            (of(None, None, Some(0)), Disabled, Disabled),
            (of(None, None, Some(5)), Calls(5), Calls(5)),
            (of(None, None, Some(500)), Calls(100), Calls(100)),
            (of(None, None, Some(i64::MAX)), Calls(100), Calls(100)),
            (of(None, None, Some(i64::MIN)), Calls(100), Unlimited),
            (of(None, Some(7), Some(5)), Calls(7), Calls(7)),
            (of(None, Some(-1), Some(5)), Calls(100), Unlimited),
            (of(None, Some(0), Some(5)), Disabled, Disabled),
            (of(Some(9), Some(7), Some(5)), Calls(9), Calls(9)),
            (of(Some(9), Some(0), None), Calls(9), Calls(9)),
            (of(Some(0), Some(7), None), Disabled, Disabled),
        ] {
            assert_eq!(TurnLimit::of(sources, Mode::Default), expected, "{sources:?}");
            assert_eq!(TurnLimit::of(sources, Mode::BypassPermissions), bypassing, "{sources:?}");
        }
    }

    #[test]
    fn a_budget_is_used_up_by_money_or_time() {
        let budget = |max_cost_usd, max_minutes| Budget { max_cost_usd, max_minutes };
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        for (budget, cost, time, expected) in [
            (budget(None, None), 1e9, minutes(1_000), None),
            (budget(Some(2.0), None), 1.99, minutes(1_000), None),
            (budget(Some(2.0), None), 2.0, minutes(0), Some(Pause::Cost)),
            (budget(None, Some(0.5)), 1e9, Duration::from_secs(29), None),
            (budget(None, Some(0.5)), 0.0, Duration::from_secs(30), Some(Pause::Time)),
            (budget(Some(2.0), Some(1.0)), 3.0, minutes(3), Some(Pause::Cost)),
            (budget(Some(1.0), None).or(budget(Some(9.0), Some(1.0))), 1.0, minutes(0), Some(Pause::Cost)),
            (budget(Some(9.0), None).or(budget(Some(1.0), Some(1.0))), 1.0, minutes(1), Some(Pause::Time)),
        ] {
            assert_eq!(budget.used_up(cost, time), expected, "{budget:?} {cost} {time:?}");
        }
        assert!(Budget::is_amount(0.01) && !Budget::is_amount(0.0) && !Budget::is_amount(f64::NAN));
        assert!(!Budget::is_amount(-1.0) && !Budget::is_amount(f64::INFINITY));
    }

    #[test]
    fn only_the_same_call_with_the_same_result_repeats_itself() {
        let mut repeats = Repeats::default();
        let mut counts = Vec::new();
        for (name, input, result) in [
            ("Read", "{a}", "x"),
            ("Read", "{a}", "x"),
            ("Read", "{a}", "y"),
            ("Read", "{b}", "y"),
            ("Grep", "{b}", "y"),
            ("Grep", "{b}", "y"),
            ("Grep", "{b}", "y"),
        ] {
            repeats.note(name, input, result);
            counts.push(repeats.count());
        }
        assert_eq!(counts, [1, 2, 1, 1, 1, 2, 3]);
        repeats.forget();
        repeats.note("Grep", "{b}", "y");
        assert_eq!(repeats.count(), 1);
    }
}
