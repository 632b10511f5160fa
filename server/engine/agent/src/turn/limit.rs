//! The limit of a turn's model calls before the user is asked.
//!
//! Rule: the command line says it before the call, the call before the settings; no source can lift the built-in limit.
//! Only a mode that asks nothing has no built-in limit; there repeated calls are stopped.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::core::thread::ThreadHandle;
use crate::turn::sample::ModelToolCall;
use kode_base::mode::Mode;
use kode_model::Block;

/// The most model calls of one turn.
pub const MODEL_CALL_LIMIT: u32 = 100;

/// How many model calls a turn may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnLimit {
    /// At most this number.
    Calls(u32),
    /// Any number.
    Unlimited,
    /// None: there is no chat.
    Disabled,
}

/// The places of the limit; each is a number, -1 for the built-in limit, or 0 to switch chat off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitSources {
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
    pub fn of(sources: LimitSources, mode: Mode) -> Self {
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
pub(super) struct RepeatedCalls {
    last: Option<u64>,
    count: u32,
}

impl RepeatedCalls {
    /// How often the newest call was made in a row with the same result.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Starts counting over.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Takes in the calls of an answer, which have their results.
    pub(super) fn take(&mut self, thread: &ThreadHandle, calls: &[ModelToolCall]) {
        thread.read(|thread| {
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
        let of = |command_line, call, settings| LimitSources { command_line, call, settings };
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
    fn only_the_same_call_with_the_same_result_repeats_itself() {
        let mut repeats = RepeatedCalls::default();
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
