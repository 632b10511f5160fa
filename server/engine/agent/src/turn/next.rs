//! Whether the loop goes on.
//!
//! Rule: this is the only place that decides it, and it decides by the facts alone.

use kode_config::budget::Exceeded;
use kode_config::preferences::IncompleteIntent;
use kode_model::StopReason;
use kode_record::event::TurnEnd;

/// So often in a row the model is asked to do what it only announced; then its answer is taken as it is.
pub const ANNOUNCED_LIMIT: u32 = 2;

/// So often in a row the model is asked to go on after its token limit; then the turn ends.
pub const CONTINUED_LIMIT: u32 = 3;

/// So often in a row the same call may have the same result, where nothing else limits the turn.
pub const REPEAT_LIMIT: u32 = 20;

/// When the question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The model has answered.
    Answered,
    /// The calls of the answer have results.
    ToolsRan,
    /// A hook has the agent go on although it had said all.
    HeldBack,
}

/// What the decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Why the model stopped.
    pub stop_reason: &'a StopReason,
    /// Whole tool calls in the answer.
    pub calls: usize,
    /// What the token limit cut off, if it was what ended the answer.
    pub cut: Cut,
    /// Whether the answer only announces what it is going to do.
    pub announces: bool,
    /// What the user wants done about that.
    pub intent: IncompleteIntent,
    /// How often in a row the model was asked to do what it announced.
    pub announced: u32,
    /// How often in a row the model was asked to go on after its token limit.
    pub continued: u32,
    /// Whether a hook has stopped the turn.
    pub stopped: bool,
    /// Whether the user has cancelled the turn.
    pub cancelled: bool,
    /// Whether the user has said something to the running turn that the model has not heard.
    pub steered: bool,
    /// Whether a call has asked the turn to end.
    pub exit: bool,
    /// Model calls made in this turn, since the user last let it go on.
    pub model_calls: u32,
    /// The most there may be; `None` for any number.
    pub model_call_limit: Option<u32>,
    /// What of its budget the turn has used up, since the user last let it go on.
    pub used_up: Option<Pause>,
    /// How often in a row the newest call was made with the same result.
    pub repeats: u32,
    /// Whether there is a user who can be asked whether to go on.
    pub may_ask: bool,
}

/// What the token limit cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Text that had begun.
    Text,
    /// Thinking: nothing was said yet.
    Thinking,
    /// A call, before its arguments were whole.
    Call,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The calls of the answer run.
    RunTools,
    /// The model is asked again.
    AskModel {
        /// Why.
        why: Why,
        /// What the user is asked first; the turn ends when they do not want it to go on.
        pause: Option<Pause>,
    },
    /// The turn ends.
    Stop(TurnEnd),
}

/// Why the model is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its calls have results.
    Results,
    /// Its provider paused the answer.
    Paused,
    /// The user has said something meanwhile.
    Steered,
    /// A hook wants something done before the end, which the conversation says.
    Hook,
    /// Its answer was cut off.
    Cut(Cut),
    /// It only announced what it was going to do; the fallback model is asked instead where `fallback` says so.
    Announced {
        /// Whether the user wants the fallback model asked.
        fallback: bool,
    },
}

/// What the user is asked before the turn goes on.
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
}

impl From<Exceeded> for Pause {
    fn from(exceeded: Exceeded) -> Self {
        match exceeded {
            Exceeded::Cost => Self::Cost,
            Exceeded::Time => Self::Time,
        }
    }
}

impl Pause {
    /// How the turn ends when it does not go on.
    #[must_use]
    pub fn end(self) -> TurnEnd {
        match self {
            Self::Limit => TurnEnd::MaxTurns,
            Self::Cost | Self::Time => TurnEnd::Budget,
            Self::Repeats => TurnEnd::Repetition,
        }
    }
}

/// Decides whether the loop goes on.
#[must_use]
pub fn next(moment: Moment, facts: &Facts<'_>) -> Next {
    if facts.cancelled {
        return Next::Stop(TurnEnd::Cancelled);
    }
    if facts.stopped {
        return Next::Stop(TurnEnd::Hook);
    }
    match (moment, facts.stop_reason) {
        (Moment::ToolsRan, _) if facts.exit && !facts.steered => Next::Stop(TurnEnd::EndTurn),
        (Moment::ToolsRan, _) => ask(Why::Results, facts),
        (Moment::HeldBack, _) => ask(Why::Hook, facts),
        (Moment::Answered, StopReason::Refusal) => Next::Stop(TurnEnd::Refusal),
        (Moment::Answered, StopReason::MaxTokens) if facts.continued < CONTINUED_LIMIT => {
            // No call of such an answer runs: the provider says that it is not what the model wanted to say.
            ask(Why::Cut(if facts.calls > 0 { Cut::Call } else { facts.cut }), facts)
        }
        (Moment::Answered, StopReason::MaxTokens) => Next::Stop(TurnEnd::MaxTokens),
        (
            Moment::Answered,
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::StopSequence
            | StopReason::PauseTurn
            | StopReason::Other(_),
        ) if facts.calls > 0 => {
            // Calls count whatever the stop reason says: some servers end an answer that calls tools with `end_turn`.
            Next::RunTools
        }
        (Moment::Answered, StopReason::PauseTurn) => ask(Why::Paused, facts),
        (
            Moment::Answered,
            StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence | StopReason::Other(_),
        ) if facts.steered => ask(Why::Steered, facts),
        (
            Moment::Answered,
            StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence | StopReason::Other(_),
        ) => match facts.intent {
            _ if !facts.announces || facts.announced >= ANNOUNCED_LIMIT => Next::Stop(TurnEnd::EndTurn),
            IncompleteIntent::Stop => Next::Stop(TurnEnd::IncompleteIntent),
            IncompleteIntent::Retry => ask(Why::Announced { fallback: false }, facts),
            IncompleteIntent::Fallback => ask(Why::Announced { fallback: true }, facts),
        },
    }
}

/// Asks the model again, unless the user has to be asked before.
fn ask(why: Why, facts: &Facts<'_>) -> Next {
    let limit = match facts.model_call_limit {
        Some(limit) => (facts.model_calls >= limit).then_some(Pause::Limit),
        None => (facts.repeats >= REPEAT_LIMIT).then_some(Pause::Repeats),
    };
    let pause = facts.used_up.or(limit);
    match pause {
        Some(pause) if !facts.may_ask => Next::Stop(pause.end()),
        pause => Next::AskModel { why, pause },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::limit::MODEL_CALL_LIMIT;

    fn facts(stop_reason: &StopReason) -> Facts<'_> {
        Facts {
            stop_reason,
            calls: 0,
            cut: Cut::Text,
            announces: false,
            intent: IncompleteIntent::Retry,
            announced: 0,
            continued: 0,
            stopped: false,
            cancelled: false,
            steered: false,
            exit: false,
            model_calls: 1,
            model_call_limit: Some(MODEL_CALL_LIMIT),
            used_up: None,
            repeats: 1,
            may_ask: true,
        }
    }

    fn again(why: Why) -> Next {
        Next::AskModel { why, pause: None }
    }

    #[test]
    fn every_stop_reason_has_its_continuation() {
        use Next::{RunTools, Stop};
        let other = StopReason::Other("from the future".into());
        let table = [
            // stop reason, without calls, with calls
            (StopReason::EndTurn, Stop(TurnEnd::EndTurn), RunTools),
            (StopReason::ToolUse, Stop(TurnEnd::EndTurn), RunTools),
            (StopReason::StopSequence, Stop(TurnEnd::EndTurn), RunTools),
            (StopReason::MaxTokens, again(Why::Cut(Cut::Text)), again(Why::Cut(Cut::Call))),
            (StopReason::Refusal, Stop(TurnEnd::Refusal), Stop(TurnEnd::Refusal)),
            (StopReason::PauseTurn, again(Why::Paused), RunTools),
            (other, Stop(TurnEnd::EndTurn), RunTools),
        ];
        for (stop_reason, without, with) in table {
            let facts = facts(&stop_reason);
            assert_eq!(next(Moment::Answered, &facts), without, "{stop_reason:?}");
            let called = Facts { calls: 2, ..facts };
            assert_eq!(next(Moment::Answered, &called), with, "{stop_reason:?} with calls");
            assert_eq!(next(Moment::ToolsRan, &called), again(Why::Results), "{stop_reason:?}, tools ran");
            for moment in [Moment::Answered, Moment::ToolsRan] {
                let cancelled = Facts { cancelled: true, announces: true, calls: 1, ..facts };
                assert_eq!(next(moment, &cancelled), Stop(TurnEnd::Cancelled), "{stop_reason:?} {moment:?}");
            }
        }
    }

    #[test]
    fn an_answer_that_only_announces_is_asked_again_twice_as_the_user_wants() {
        use IncompleteIntent::{Fallback, Retry, Stop};
        for (intent, announced, expected) in [
            (Retry, 0, again(Why::Announced { fallback: false })),
            (Retry, 1, again(Why::Announced { fallback: false })),
            (Retry, 2, Next::Stop(TurnEnd::EndTurn)),
            (Fallback, 1, again(Why::Announced { fallback: true })),
            (Fallback, 2, Next::Stop(TurnEnd::EndTurn)),
            (Stop, 0, Next::Stop(TurnEnd::IncompleteIntent)),
        ] {
            let facts = Facts { announces: true, intent, announced, ..facts(&StopReason::EndTurn) };
            assert_eq!(next(Moment::Answered, &facts), expected, "{intent:?} {announced}");
            let called = Facts { calls: 1, ..facts };
            assert_eq!(next(Moment::Answered, &called), Next::RunTools, "what calls has begun");
        }
    }

    #[test]
    fn a_cut_answer_is_continued_three_times_whatever_was_cut() {
        for cut in [Cut::Text, Cut::Thinking, Cut::Call] {
            for continued in 0..CONTINUED_LIMIT {
                let facts = Facts { cut, continued, ..facts(&StopReason::MaxTokens) };
                assert_eq!(next(Moment::Answered, &facts), again(Why::Cut(cut)));
            }
            let facts = Facts { cut, continued: CONTINUED_LIMIT, ..facts(&StopReason::MaxTokens) };
            assert_eq!(next(Moment::Answered, &facts), Next::Stop(TurnEnd::MaxTokens));
        }
    }

    #[test]
    fn whoever_asks_the_model_again_asks_the_user_first_at_the_limit() {
        let asks = [
            (Moment::ToolsRan, StopReason::ToolUse, 1, false, Why::Results),
            (Moment::Answered, StopReason::PauseTurn, 0, false, Why::Paused),
            (Moment::Answered, StopReason::MaxTokens, 0, false, Why::Cut(Cut::Text)),
            (Moment::Answered, StopReason::EndTurn, 0, true, Why::Announced { fallback: false }),
        ];
        for (moment, stop_reason, calls, announces, why) in asks {
            let facts = Facts { calls, announces, ..facts(&stop_reason) };
            for (model_calls, limit, repeats, pause) in [
                (MODEL_CALL_LIMIT - 1, Some(MODEL_CALL_LIMIT), 1, None),
                (MODEL_CALL_LIMIT, Some(MODEL_CALL_LIMIT), 1, Some(Pause::Limit)),
                (MODEL_CALL_LIMIT + 1, None, 1, None),
                // What is limited in number may repeat itself: the limit is stop enough.
                (2, Some(MODEL_CALL_LIMIT), REPEAT_LIMIT, None),
                (2, None, REPEAT_LIMIT - 1, None),
                (2, None, REPEAT_LIMIT, Some(Pause::Repeats)),
            ] {
                let facts = Facts { model_calls, model_call_limit: limit, repeats, ..facts };
                let case = format!("{why:?} {model_calls} {limit:?} {repeats}");
                assert_eq!(next(moment, &facts), Next::AskModel { why, pause }, "{case}");
                let alone = next(moment, &Facts { may_ask: false, ..facts });
                assert_eq!(alone, pause.map_or(again(why), |pause| Next::Stop(pause.end())), "{case}");
            }
        }
        for (pause, limit) in [(Pause::Cost, None), (Pause::Time, Some(MODEL_CALL_LIMIT))] {
            let facts = Facts {
                calls: 1,
                used_up: Some(pause),
                model_call_limit: limit,
                ..facts(&StopReason::ToolUse)
            };
            assert_eq!(next(Moment::Answered, &facts), Next::RunTools, "{pause:?}");
            let asked = Next::AskModel { why: Why::Results, pause: Some(pause) };
            assert_eq!(next(Moment::ToolsRan, &facts), asked);
            let alone = Facts { may_ask: false, ..facts };
            assert_eq!(next(Moment::ToolsRan, &alone), Next::Stop(TurnEnd::Budget));
        }
        // Calls that were made run, also those of the last answer.
        let last = Facts { calls: 1, model_calls: MODEL_CALL_LIMIT, ..facts(&StopReason::ToolUse) };
        assert_eq!(next(Moment::Answered, &last), Next::RunTools);
    }

    #[test]
    fn what_the_user_says_meanwhile_goes_on_where_the_turn_would_have_ended_well() {
        use Moment::{Answered, ToolsRan};
        use Next::{RunTools, Stop};
        let table = [
            // moment, stop reason, calls, exit, steered, expected
            (Answered, StopReason::EndTurn, 0, false, true, again(Why::Steered)),
            (Answered, StopReason::EndTurn, 1, false, true, RunTools),
            (Answered, StopReason::Refusal, 0, false, true, Stop(TurnEnd::Refusal)),
            (ToolsRan, StopReason::ToolUse, 1, true, false, Stop(TurnEnd::EndTurn)),
            (ToolsRan, StopReason::ToolUse, 1, true, true, again(Why::Results)),
        ];
        for (moment, stop_reason, calls, exit, steered, expected) in table {
            let facts = Facts { calls, exit, steered, ..facts(&stop_reason) };
            assert_eq!(next(moment, &facts), expected, "{moment:?} {facts:?}");
        }
        let announces = Facts { steered: true, announces: true, ..facts(&StopReason::EndTurn) };
        assert_eq!(next(Answered, &announces), again(Why::Steered));
    }
}
