//! Prompts that a server cut in silence, by the tokens that it reports.
//!
//! Rule: decided from reported and counted tokens alone; the caller decides which servers are suspected.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use crate::core::lock;
use kode_base::ids::AgentId;

/// The smallest window that is suspected.
const MIN_WINDOW: u64 = 1_024;

/// A prompt that was cut to a window fills at least this share of it.
const FILLED: f64 = 0.9;

/// A first report says that a prompt was cut if the prompt was counted at this multiple of it or more.
const CUT_AT_ONCE: f64 = 2.0;

/// Two reports say so if the prompt was counted at this multiple of them and grew by [`GROWN`], and they did not.
const CUT_AGAIN: f64 = 1.25;
const GROWN: f64 = 1.05;
const SAME: f64 = 0.02;

/// The tokens of a prompt, as the provider reported and as they were counted here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PromptReport {
    reported: u64,
    counted: u64,
}

/// The newest reports, and the models whose reports show cut prompts.
#[derive(Default)]
pub(crate) struct CutPrompts {
    reports: Mutex<HashMap<(Option<AgentId>, String), PromptReport>>,
    models: Mutex<HashSet<String>>,
}

impl CutPrompts {
    /// Whether the reports of a model are those of cut prompts, by which nothing can be measured.
    pub(crate) fn is_cut(&self, model: &str) -> bool {
        lock(&self.models).contains(model)
    }

    /// Notes the reported and the counted tokens of a prompt. Returns the window that the prompt was cut to, the first time
    /// for each model.
    pub(crate) fn note(
        &self,
        agent: Option<&AgentId>,
        model: &str,
        (reported, counted): (u64, u64),
    ) -> Option<u64> {
        let report = PromptReport { reported, counted };
        let key = (agent.cloned(), model.to_owned());
        let before = lock(&self.reports).insert(key, report);
        let window = cut_to(before, report)?;
        lock(&self.models).insert(model.to_owned()).then_some(window)
    }
}

/// The window that a prompt was cut to, if it was.
#[expect(clippy::cast_precision_loss, reason = "numbers of tokens are far below what a float holds exactly")]
fn cut_to(before: Option<PromptReport>, now: PromptReport) -> Option<u64> {
    let (reported, counted) = (now.reported as f64, now.counted as f64);
    let power = now.reported.checked_next_power_of_two()?;
    let fills_power = reported >= power as f64 * FILLED;
    let Some(before) = before else {
        let is_cut = fills_power && power >= MIN_WINDOW && counted >= reported * CUT_AT_ONCE;
        return is_cut.then_some(power);
    };
    let rests = (reported - before.reported as f64).abs() <= reported * SAME;
    let has_grown = counted >= before.counted as f64 * GROWN;
    let is_cut = rests && has_grown && counted >= reported * CUT_AGAIN && now.reported >= MIN_WINDOW;
    // Windows are mostly powers of two; any other is the exact value.
    is_cut.then_some(if fills_power { power } else { now.reported })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(reported: u64, counted: u64) -> PromptReport {
        PromptReport { reported, counted }
    }

    #[test]
    fn a_first_prompt_that_fills_a_window_and_was_twice_as_long_was_cut() {
        for (reported, counted, window) in [
            (4_096, 12_000, Some(4_096)),
            (4_000, 12_000, Some(4_096)),
            (2_048, 9_000, Some(2_048)),
            (4_096, 8_000, None),
            (12_000, 12_500, None),
            (3_000, 12_000, None),
            (37, 12_000, None),
            (512, 12_000, None),
            (u64::MAX, u64::MAX, None),
        ] {
            assert_eq!(cut_to(None, report(reported, counted)), window, "{reported} of {counted}");
        }
    }

    #[test]
    fn prompts_that_grow_while_their_reports_stand_still_were_cut() {
        for (before, now, window) in [
            (report(16_384, 20_000), report(16_384, 22_000), Some(16_384)),
            (report(16_000, 20_000), report(16_200, 22_000), Some(16_384)),
            (report(12_000, 16_000), report(12_000, 18_000), Some(12_000)),
            // The same request again, a prompt that is counted well, and one that became shorter.
            (report(16_384, 22_000), report(16_384, 22_000), None),
            (report(16_000, 16_500), report(16_200, 17_500), None),
            (report(9_000, 22_000), report(16_384, 23_000), None),
            (report(16_384, 30_000), report(16_384, 20_000), None),
        ] {
            assert_eq!(cut_to(Some(before), now), window, "{before:?} {now:?}");
        }
    }

    #[test]
    fn a_cut_is_new_once() {
        let cuts = CutPrompts::default();
        assert_eq!(cuts.note(None, "m", (4_096, 12_000)), Some(4_096));
        assert_eq!(cuts.note(None, "m", (4_096, 14_000)), None);
        assert!(cuts.is_cut("m") && !cuts.is_cut("other"));
    }
}
