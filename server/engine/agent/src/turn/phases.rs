//! How long each part of a turn took.
//!
//! Rule: measuring changes nothing and costs two looks at the clock; what one phase measures no other does.

use std::time::{Duration, Instant};

use kode_record::phases::PhaseTimes;

/// A part of a round of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Whether the conversation has to be compacted is looked at, and it is.
    CompactCheck,
    /// The system prompt, the tools and what else belongs to the request are put together.
    PromptBuild,
    /// The history is made one that can be sent.
    Normalise,
    /// The model is asked, with all attempts and the waits between them.
    ModelCall,
    /// The calls run, with all that is asked before.
    ToolExecution,
    /// What was found is recorded, and what happens next decided.
    Next,
}

/// How long each phase took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    spent: [Duration; Phase::ALL.len()],
}

impl Phase {
    /// All of them, in their order within a round.
    pub const ALL: [Self; 6] = [
        Self::CompactCheck,
        Self::PromptBuild,
        Self::Normalise,
        Self::ModelCall,
        Self::ToolExecution,
        Self::Next,
    ];
}

impl Phases {
    /// Adds what a phase took.
    pub fn add(&mut self, phase: Phase, spent: Duration) {
        self.spent[phase as usize] += spent;
    }

    /// Adds what a phase took that began then and ends now.
    pub fn end(&mut self, phase: Phase, began: Instant) {
        self.add(phase, began.elapsed());
    }

    /// What a phase took.
    #[must_use]
    pub fn of(&self, phase: Phase) -> Duration {
        self.spent[phase as usize]
    }

    /// What was spent since they were as in `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = Self::default();
        for phase in Phase::ALL {
            since.add(phase, self.of(phase).saturating_sub(earlier.of(phase)));
        }
        since
    }

    /// In milliseconds.
    #[must_use]
    pub fn times(&self) -> PhaseTimes {
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
