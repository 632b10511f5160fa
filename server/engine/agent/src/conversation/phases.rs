//! How long each part of a turn took.
//!
//! Rule: measuring changes nothing and costs two reads of the clock. No time is counted in two phases.

use std::time::{Duration, Instant};

use kode_record::phases::PhaseTimes;

/// A part of a round of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The check whether the conversation has to be compacted, and the compaction.
    CompactCheck,
    /// Building the request: system prompt, tools, reminders.
    PromptBuild,
    /// The history is made one that can be sent.
    Normalise,
    /// The model is asked, with all attempts and the waits between them.
    ModelCall,
    /// The calls run, with all that is asked before.
    ToolExecution,
    /// Recording the results, and deciding what happens next.
    Next,
}

/// How long each phase took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Phases {
    spent: [Duration; Phase::ALL.len()],
}

impl Phase {
    /// All of them, in their order within a round.
    pub(crate) const ALL: [Self; 6] = [
        Self::CompactCheck,
        Self::PromptBuild,
        Self::Normalise,
        Self::ModelCall,
        Self::ToolExecution,
        Self::Next,
    ];
}

impl Phases {
    /// Adds the time of a phase.
    pub(crate) fn add(&mut self, phase: Phase, spent: Duration) {
        self.spent[phase as usize] += spent;
    }

    /// Adds the time of a phase from `began` until now.
    pub(crate) fn end(&mut self, phase: Phase, began: Instant) {
        self.add(phase, began.elapsed());
    }

    /// The time of a phase.
    #[must_use]
    pub(crate) fn of(&self, phase: Phase) -> Duration {
        self.spent[phase as usize]
    }

    /// The times since `earlier`.
    #[must_use]
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let mut since = Self::default();
        for phase in Phase::ALL {
            since.add(phase, self.of(phase).saturating_sub(earlier.of(phase)));
        }
        since
    }

    /// In milliseconds.
    #[must_use]
    pub(crate) fn times(&self) -> PhaseTimes {
        let of = |phase| u64::try_from(self.of(phase).as_millis()).unwrap_or(u64::MAX);
        PhaseTimes {
            compact_check_ms: of(Phase::CompactCheck),
            prompt_build_ms: of(Phase::PromptBuild),
            normalise_ms: of(Phase::Normalise),
            model_call_ms: of(Phase::ModelCall),
            tool_execution_ms: of(Phase::ToolExecution),
            next_ms: of(Phase::Next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_a_place_of_its_own() {
        let mut phases = Phases::default();
        for (number, phase) in (1..).zip(Phase::ALL) {
            phases.add(phase, Duration::from_millis(number));
        }
        let times = phases.times();
        let all = [
            times.compact_check_ms,
            times.prompt_build_ms,
            times.normalise_ms,
            times.model_call_ms,
            times.tool_execution_ms,
            times.next_ms,
        ];
        assert_eq!(all, [1, 2, 3, 4, 5, 6]);
        let before = phases;
        phases.add(Phase::Next, Duration::from_millis(4));
        assert_eq!(phases.since(&before).times(), PhaseTimes { next_ms: 4, ..PhaseTimes::default() });
    }
}
