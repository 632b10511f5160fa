//! The decision whether the loop continues.
//!
//! Rule: this is the only place that decides it, and it decides by the facts alone.

use kode_config::budget::BudgetLimit;
use kode_config::preferences::IncompleteIntent;
use kode_model::StopReason;
use kode_record::event::TurnEnd;

/// The most times in a row that the model is asked to do the announced work; its next answer is accepted.
pub const ANNOUNCED_LIMIT: u32 = 2;

/// The most times in a row that the model is asked to continue after its token limit; then the turn ends.
pub const CONTINUED_LIMIT: u32 = 3;

/// How often in a row a provider may pause an answer before the user is asked, in a turn without a limit of calls.
pub const PAUSED_LIMIT: u32 = 20;

/// The most times in a row that a call may have the same result, where nothing else limits the turn.
pub const REPEAT_LIMIT: u32 = 20;

/// When the question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionPoint {
    /// The model has answered.
    Answered,
    /// The calls of the answer have results.
    ToolsRan,
    /// A hook has the agent continue although it had finished.
    HeldBack,
}

/// The inputs of the decision.
#[derive(Clone, Copy, Debug)]
pub struct DecisionFacts<'a> {
    /// Why the model stopped.
    pub stop_reason: &'a StopReason,
    /// Whole tool calls in the answer.
    pub calls: usize,
    /// The part that the token limit cut off, where it ended the answer.
    pub cut: CutPart,
    /// Whether the answer only announces work.
    pub announces: bool,
    /// The user's setting for such answers.
    pub intent: IncompleteIntent,
    /// The number of times in a row that the model was asked to do the announced work.
    pub announced: u32,
    /// The number of times in a row that the model was asked to continue after its token limit.
    pub continued: u32,
    /// The number of times in a row that the provider paused the answer.
    pub paused: u32,
    /// Whether a hook has stopped the turn.
    pub stopped: bool,
    /// Whether the user has cancelled the turn.
    pub cancelled: bool,
    /// Whether the user has said something to the running turn that the model has not heard.
    pub steered: bool,
    /// Whether a call has asked the turn to end.
    pub exit: bool,
    /// Model calls made in this turn, since the user last let it continue.
    pub model_calls: u32,
    /// The most there may be; `None` for any number.
    pub model_call_limit: Option<u32>,
    /// The exhausted part of the turn's budget, since the user last let it continue.
    pub used_up: Option<Pause>,
    /// Whether a bound of the goal is reached: the turn ends then, without a question.
    pub goal_exhausted: bool,
    /// How often in a row the newest call was made with the same result.
    pub repeats: u32,
    /// Whether the user can be asked whether to continue.
    pub may_ask: bool,
}

/// The part of an answer that the token limit cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutPart {
    /// Text that had started.
    Text,
    /// Thinking: no text yet.
    Thinking,
    /// A call, before its arguments were whole.
    Call,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// The calls of the answer run.
    RunTools,
    /// The model is asked again.
    AskModel {
        /// The reason of the call.
        why: CallReason,
        /// The question to the user before that; the turn ends when they decline.
        pause: Option<Pause>,
    },
    /// The turn ends.
    Stop(TurnEnd),
}

/// Why the model is called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallReason {
    /// Its calls have results.
    Results,
    /// Its provider paused the answer.
    Paused,
    /// The user has said something meanwhile.
    Steered,
    /// A hook wants something done before the end, which the conversation says.
    Hook,
    /// Its answer was cut off.
    Cut(CutPart),
    /// It only announced work; the fallback model is called instead where `fallback` is set.
    Announced {
        /// Whether the user wants the fallback model asked.
        fallback: bool,
    },
}

/// The reason to ask the user before the turn continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The turn has made as many model calls as it may.
    Limit,
    /// The turn has cost as much as it may.
    Cost,
    /// The turn has taken as much time as it may.
    Time,
    /// The same call was made with the same result over and over.
    Repeats,
    /// The provider paused the answer over and over.
    Paused,
}

impl From<BudgetLimit> for Pause {
    fn from(exceeded: BudgetLimit) -> Self {
        match exceeded {
            BudgetLimit::Cost => Self::Cost,
            BudgetLimit::Time => Self::Time,
        }
    }
}

impl Pause {
    /// The end of the turn when the user declines.
    #[must_use]
    pub fn end(self) -> TurnEnd {
        match self {
            Self::Limit => TurnEnd::MaxTurns,
            Self::Cost | Self::Time => TurnEnd::Budget,
            Self::Repeats | Self::Paused => TurnEnd::Repetition,
        }
    }
}

/// Decides whether the loop continues.
#[must_use]
pub fn next(point: DecisionPoint, facts: &DecisionFacts<'_>) -> NextStep {
    if facts.cancelled {
        return NextStep::Stop(TurnEnd::Cancelled);
    }
    if facts.stopped {
        return NextStep::Stop(TurnEnd::Hook);
    }
    match (point, facts.stop_reason) {
        (DecisionPoint::ToolsRan, _) if facts.exit && !facts.steered => NextStep::Stop(TurnEnd::EndTurn),
        (DecisionPoint::ToolsRan, _) => ask(CallReason::Results, facts),
        (DecisionPoint::HeldBack, _) => ask(CallReason::Hook, facts),
        (DecisionPoint::Answered, StopReason::Refusal) => NextStep::Stop(TurnEnd::Refusal),
        (DecisionPoint::Answered, StopReason::MaxTokens) if facts.continued < CONTINUED_LIMIT => {
            // No call of such an answer runs: the provider marks it as incomplete.
            ask(CallReason::Cut(if facts.calls > 0 { CutPart::Call } else { facts.cut }), facts)
        }
        (DecisionPoint::Answered, StopReason::MaxTokens) => NextStep::Stop(TurnEnd::MaxTokens),
        (
            DecisionPoint::Answered,
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::StopSequence
            | StopReason::PauseTurn
            | StopReason::Other(_),
        ) if facts.calls > 0 => {
            // Calls count whatever the stop reason says: some servers end an answer that calls tools with `end_turn`.
            NextStep::RunTools
        }
        (DecisionPoint::Answered, StopReason::PauseTurn) => ask(CallReason::Paused, facts),
        (
            DecisionPoint::Answered,
            StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence | StopReason::Other(_),
        ) if facts.steered => ask(CallReason::Steered, facts),
        (
            DecisionPoint::Answered,
            StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence | StopReason::Other(_),
        ) => match facts.intent {
            _ if !facts.announces || facts.announced >= ANNOUNCED_LIMIT => NextStep::Stop(TurnEnd::EndTurn),
            IncompleteIntent::Stop => NextStep::Stop(TurnEnd::IncompleteIntent),
            IncompleteIntent::Retry => ask(CallReason::Announced { fallback: false }, facts),
            IncompleteIntent::Fallback => ask(CallReason::Announced { fallback: true }, facts),
        },
    }
}

/// Asks the model again, unless the user has to be asked before.
fn ask(why: CallReason, facts: &DecisionFacts<'_>) -> NextStep {
    if facts.goal_exhausted {
        return NextStep::Stop(TurnEnd::Budget);
    }
    let limit = match facts.model_call_limit {
        Some(limit) => (facts.model_calls >= limit).then_some(Pause::Limit),
        None if facts.repeats >= REPEAT_LIMIT => Some(Pause::Repeats),
        None => (facts.paused >= PAUSED_LIMIT).then_some(Pause::Paused),
    };
    let pause = facts.used_up.or(limit);
    match pause {
        Some(pause) if !facts.may_ask => NextStep::Stop(pause.end()),
        pause => NextStep::AskModel { why, pause },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::limit::MODEL_CALL_LIMIT;

    fn facts(stop_reason: &StopReason) -> DecisionFacts<'_> {
        DecisionFacts {
            stop_reason,
            calls: 0,
            cut: CutPart::Text,
            announces: false,
            intent: IncompleteIntent::Retry,
            announced: 0,
            continued: 0,
            paused: 0,
            stopped: false,
            cancelled: false,
            steered: false,
            exit: false,
            model_calls: 1,
            model_call_limit: Some(MODEL_CALL_LIMIT),
            used_up: None,
            goal_exhausted: false,
            repeats: 1,
            may_ask: true,
        }
    }

    fn again(why: CallReason) -> NextStep {
        NextStep::AskModel { why, pause: None }
    }

    #[test]
    fn every_stop_reason_has_its_continuation() {
        use NextStep::{RunTools, Stop};
        let other = StopReason::Other("from the future".into());
        let table = [
            // stop reason, without calls, with calls
            (StopReason::EndTurn, Stop(TurnEnd::EndTurn), RunTools),
            (StopReason::ToolUse, Stop(TurnEnd::EndTurn), RunTools),
            (StopReason::StopSequence, Stop(TurnEnd::EndTurn), RunTools),
            (
                StopReason::MaxTokens,
                again(CallReason::Cut(CutPart::Text)),
                again(CallReason::Cut(CutPart::Call)),
            ),
            (StopReason::Refusal, Stop(TurnEnd::Refusal), Stop(TurnEnd::Refusal)),
            (StopReason::PauseTurn, again(CallReason::Paused), RunTools),
            (other, Stop(TurnEnd::EndTurn), RunTools),
        ];
        for (stop_reason, without, with) in table {
            let facts = facts(&stop_reason);
            assert_eq!(next(DecisionPoint::Answered, &facts), without, "{stop_reason:?}");
            let called = DecisionFacts { calls: 2, ..facts };
            assert_eq!(next(DecisionPoint::Answered, &called), with, "{stop_reason:?} with calls");
            assert_eq!(
                next(DecisionPoint::ToolsRan, &called),
                again(CallReason::Results),
                "{stop_reason:?}, tools ran"
            );
            for point in [DecisionPoint::Answered, DecisionPoint::ToolsRan] {
                let cancelled = DecisionFacts { cancelled: true, announces: true, calls: 1, ..facts };
                assert_eq!(next(point, &cancelled), Stop(TurnEnd::Cancelled), "{stop_reason:?} {point:?}");
            }
        }
    }

    #[test]
    fn an_answer_that_only_announces_is_asked_again_twice_as_the_user_wants() {
        use IncompleteIntent::{Fallback, Retry, Stop};
        for (intent, announced, expected) in [
            (Retry, 0, again(CallReason::Announced { fallback: false })),
            (Retry, 1, again(CallReason::Announced { fallback: false })),
            (Retry, 2, NextStep::Stop(TurnEnd::EndTurn)),
            (Fallback, 1, again(CallReason::Announced { fallback: true })),
            (Fallback, 2, NextStep::Stop(TurnEnd::EndTurn)),
            (Stop, 0, NextStep::Stop(TurnEnd::IncompleteIntent)),
        ] {
            let facts = DecisionFacts { announces: true, intent, announced, ..facts(&StopReason::EndTurn) };
            assert_eq!(next(DecisionPoint::Answered, &facts), expected, "{intent:?} {announced}");
            let called = DecisionFacts { calls: 1, ..facts };
            assert_eq!(next(DecisionPoint::Answered, &called), NextStep::RunTools, "what calls has begun");
        }
    }

    #[test]
    fn a_reached_bound_of_the_goal_ends_the_turn_without_a_question_once_its_calls_ran() {
        let facts = DecisionFacts {
            calls: 1,
            goal_exhausted: true,
            used_up: Some(Pause::Cost),
            ..facts(&StopReason::ToolUse)
        };
        assert_eq!(next(DecisionPoint::Answered, &facts), NextStep::RunTools);
        for point in [DecisionPoint::ToolsRan, DecisionPoint::HeldBack] {
            assert_eq!(next(point, &facts), NextStep::Stop(TurnEnd::Budget), "{point:?}");
        }
    }

    #[test]
    fn an_answer_that_is_paused_over_and_over_asks_the_user() {
        for (paused, limit, pause) in [
            (PAUSED_LIMIT - 1, None, None),
            (PAUSED_LIMIT, None, Some(Pause::Paused)),
            // A turn with a limit stops there.
            (PAUSED_LIMIT, Some(MODEL_CALL_LIMIT), None),
        ] {
            let facts = DecisionFacts { paused, model_call_limit: limit, ..facts(&StopReason::PauseTurn) };
            let expected = NextStep::AskModel { why: CallReason::Paused, pause };
            assert_eq!(next(DecisionPoint::Answered, &facts), expected, "{paused} {limit:?}");
        }
    }

    #[test]
    fn a_cut_answer_is_continued_three_times_whatever_was_cut() {
        for cut in [CutPart::Text, CutPart::Thinking, CutPart::Call] {
            for continued in 0..CONTINUED_LIMIT {
                let facts = DecisionFacts { cut, continued, ..facts(&StopReason::MaxTokens) };
                assert_eq!(next(DecisionPoint::Answered, &facts), again(CallReason::Cut(cut)));
            }
            let facts = DecisionFacts { cut, continued: CONTINUED_LIMIT, ..facts(&StopReason::MaxTokens) };
            assert_eq!(next(DecisionPoint::Answered, &facts), NextStep::Stop(TurnEnd::MaxTokens));
        }
    }

    #[test]
    fn whoever_asks_the_model_again_asks_the_user_first_at_the_limit() {
        let asks = [
            (DecisionPoint::ToolsRan, StopReason::ToolUse, 1, false, CallReason::Results),
            (DecisionPoint::Answered, StopReason::PauseTurn, 0, false, CallReason::Paused),
            (DecisionPoint::Answered, StopReason::MaxTokens, 0, false, CallReason::Cut(CutPart::Text)),
            (
                DecisionPoint::Answered,
                StopReason::EndTurn,
                0,
                true,
                CallReason::Announced { fallback: false },
            ),
        ];
        for (point, stop_reason, calls, announces, why) in asks {
            let facts = DecisionFacts { calls, announces, ..facts(&stop_reason) };
            for (model_calls, limit, repeats, pause) in [
                (MODEL_CALL_LIMIT - 1, Some(MODEL_CALL_LIMIT), 1, None),
                (MODEL_CALL_LIMIT, Some(MODEL_CALL_LIMIT), 1, Some(Pause::Limit)),
                (MODEL_CALL_LIMIT + 1, None, 1, None),
                // A turn with a limit may repeat calls: the limit stops it.
                (2, Some(MODEL_CALL_LIMIT), REPEAT_LIMIT, None),
                (2, None, REPEAT_LIMIT - 1, None),
                (2, None, REPEAT_LIMIT, Some(Pause::Repeats)),
            ] {
                let facts = DecisionFacts { model_calls, model_call_limit: limit, repeats, ..facts };
                let case = format!("{why:?} {model_calls} {limit:?} {repeats}");
                assert_eq!(next(point, &facts), NextStep::AskModel { why, pause }, "{case}");
                let alone = next(point, &DecisionFacts { may_ask: false, ..facts });
                assert_eq!(alone, pause.map_or(again(why), |pause| NextStep::Stop(pause.end())), "{case}");
            }
        }
        for (pause, limit) in [(Pause::Cost, None), (Pause::Time, Some(MODEL_CALL_LIMIT))] {
            let facts = DecisionFacts {
                calls: 1,
                used_up: Some(pause),
                model_call_limit: limit,
                ..facts(&StopReason::ToolUse)
            };
            assert_eq!(next(DecisionPoint::Answered, &facts), NextStep::RunTools, "{pause:?}");
            let asked = NextStep::AskModel { why: CallReason::Results, pause: Some(pause) };
            assert_eq!(next(DecisionPoint::ToolsRan, &facts), asked);
            let alone = DecisionFacts { may_ask: false, ..facts };
            assert_eq!(next(DecisionPoint::ToolsRan, &alone), NextStep::Stop(TurnEnd::Budget));
        }
        // Calls that were made run, also those of the last answer.
        let last = DecisionFacts { calls: 1, model_calls: MODEL_CALL_LIMIT, ..facts(&StopReason::ToolUse) };
        assert_eq!(next(DecisionPoint::Answered, &last), NextStep::RunTools);
    }

    #[test]
    fn what_the_user_says_meanwhile_continues_where_the_turn_would_have_ended_well() {
        use DecisionPoint::{Answered, ToolsRan};
        use NextStep::{RunTools, Stop};
        let table = [
            // point, stop reason, calls, exit, steered, expected
            (Answered, StopReason::EndTurn, 0, false, true, again(CallReason::Steered)),
            (Answered, StopReason::EndTurn, 1, false, true, RunTools),
            (Answered, StopReason::Refusal, 0, false, true, Stop(TurnEnd::Refusal)),
            (ToolsRan, StopReason::ToolUse, 1, true, false, Stop(TurnEnd::EndTurn)),
            (ToolsRan, StopReason::ToolUse, 1, true, true, again(CallReason::Results)),
        ];
        for (point, stop_reason, calls, exit, steered, expected) in table {
            let facts = DecisionFacts { calls, exit, steered, ..facts(&stop_reason) };
            assert_eq!(next(point, &facts), expected, "{point:?} {facts:?}");
        }
        let announces = DecisionFacts { steered: true, announces: true, ..facts(&StopReason::EndTurn) };
        assert_eq!(next(Answered, &announces), again(CallReason::Steered));
    }
}
