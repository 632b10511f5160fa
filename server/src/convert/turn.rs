//! Between how a turn goes and ends in the engine and on the wire.
//!
//! Rule: values only, no decisions; matches are exhaustive.

use kode_engine::agent::session::prompts::SubmitOutcome;
use kode_engine::base::ids::{CallId, TurnId};
use kode_engine::model::ModelErrorKind;
use kode_engine::record::event::{Breakpoint, ModelRetry, NoticeKind, ResumeStrategy, SealedCall, TurnEnd};
use kode_engine::record::phases::PhaseTimes;
use kode_protocol as wire;

use crate::convert::{call_id, call_state, timestamp, turn_id};

/// How a session was resumed.
pub(super) fn resumed(
    sealed: &[SealedCall],
    strategy: ResumeStrategy,
    skipped_records: u64,
    reached: Breakpoint,
) -> wire::Event {
    let sealed_calls = sealed.iter().map(|sealed| wire::SealedCall {
        call_id: call_id(&sealed.call),
        state: sealed.state.map(call_state),
    });
    wire::Event::AgentResumed(wire::AgentResumed {
        sealed: sealed.iter().map(|sealed| call_id(&sealed.call)).collect(),
        sealed_calls: sealed_calls.collect(),
        strategy: match strategy {
            ResumeStrategy::Crash => wire::ResumeStrategy::Crash,
            ResumeStrategy::Manual => wire::ResumeStrategy::Manual,
        },
        skipped_records,
        breakpoint: breakpoint(reached),
    })
}

/// A turn that began.
pub(super) fn started(turn: &TurnId) -> wire::Event {
    wire::Event::TurnStarted(wire::TurnStarted { turn_id: turn_id(turn) })
}

/// The step that a turn has reached: the call that it is about, and before a model call its number and the most.
pub(super) fn step(
    (turn, reached): (&TurnId, Breakpoint),
    call: Option<&CallId>,
    (model_call, max_model_calls): (Option<u32>, Option<u32>),
) -> wire::Event {
    wire::Event::BreakpointChanged(wire::BreakpointChanged {
        turn_id: turn_id(turn),
        breakpoint: breakpoint(reached),
        call_id: call.map(call_id),
        model_call,
        max_model_calls,
    })
}

/// The name of a step.
fn breakpoint(reached: Breakpoint) -> wire::Breakpoint {
    match reached {
        Breakpoint::Ready => wire::Breakpoint::Ready,
        Breakpoint::PreModel => wire::Breakpoint::PreModel,
        Breakpoint::StreamingModel => wire::Breakpoint::StreamingModel,
        Breakpoint::ToolPending => wire::Breakpoint::ToolPending,
        Breakpoint::AwaitingApproval => wire::Breakpoint::AwaitingApproval,
        Breakpoint::PreTool => wire::Breakpoint::PreTool,
        Breakpoint::ToolExecuting => wire::Breakpoint::ToolExecuting,
        Breakpoint::PostTool => wire::Breakpoint::PostTool,
    }
}

/// Why a turn ended.
pub(super) fn stop_reason(reason: TurnEnd) -> wire::StopReason {
    match reason {
        TurnEnd::EndTurn => wire::StopReason::EndTurn,
        TurnEnd::MaxTokens => wire::StopReason::MaxTokens,
        TurnEnd::MaxTurns => wire::StopReason::MaxTurns,
        TurnEnd::Budget => wire::StopReason::Budget,
        TurnEnd::Refusal => wire::StopReason::Refusal,
        TurnEnd::Cancelled => wire::StopReason::Cancelled,
        TurnEnd::Error => wire::StopReason::Error,
        TurnEnd::Repetition => wire::StopReason::Repetition,
        TurnEnd::IncompleteIntent => wire::StopReason::IncompleteIntent,
        TurnEnd::NotChosen => wire::StopReason::NotChosen,
        TurnEnd::Hook => wire::StopReason::Hook,
        TurnEnd::ChatDisabled => wire::StopReason::ChatDisabled,
    }
}

/// How long each part of a turn took.
pub(super) fn phases(phases: PhaseTimes) -> wire::PhaseTimes {
    let PhaseTimes {
        compact_check_ms,
        prompt_build_ms,
        normalise_ms,
        model_call_ms,
        tool_execution_ms,
        next_ms,
    } = phases;
    wire::PhaseTimes {
        compact_check_ms,
        prompt_build_ms,
        normalise_ms,
        model_call_ms,
        tool_execution_ms,
        next_ms,
    }
}

/// The topic of a notice.
pub(super) fn notice_kind(kind: NoticeKind) -> wire::NoticeKind {
    match kind {
        NoticeKind::ApiError => wire::NoticeKind::ApiError,
        NoticeKind::ApiKey => wire::NoticeKind::ApiKey,
        NoticeKind::ContextTooLong => wire::NoticeKind::ContextTooLong,
        NoticeKind::Fallback => wire::NoticeKind::Fallback,
        NoticeKind::Continued => wire::NoticeKind::Continued,
        NoticeKind::IncompleteIntent => wire::NoticeKind::IncompleteIntent,
        NoticeKind::TurnLimit => wire::NoticeKind::TurnLimit,
        NoticeKind::Interrupted => wire::NoticeKind::Interrupted,
        NoticeKind::Damaged => wire::NoticeKind::Damaged,
        NoticeKind::Hook => wire::NoticeKind::Hook,
    }
}

/// That a model call failed and is tried again.
pub(super) fn retry(retry: ModelRetry) -> wire::ModelRetry {
    wire::ModelRetry {
        attempt: retry.attempt,
        of: retry.of,
        delay_ms: retry.delay_ms,
        next_at: timestamp(retry.next),
        left_ms: retry.left_ms,
        kind: fault(retry.kind),
        reason: retry.reason,
        model: retry.model,
    }
}

fn fault(kind: ModelErrorKind) -> wire::ModelFault {
    match kind {
        ModelErrorKind::Configuration => wire::ModelFault::Configuration,
        ModelErrorKind::Authentication => wire::ModelFault::Authentication,
        // The wire knows no class of its own for it; the text and the hint name it.
        ModelErrorKind::Payment | ModelErrorKind::BadRequest => wire::ModelFault::BadRequest,
        ModelErrorKind::ContextTooLong => wire::ModelFault::ContextTooLong,
        ModelErrorKind::RateLimited => wire::ModelFault::RateLimited,
        ModelErrorKind::Server => wire::ModelFault::Server,
        ModelErrorKind::Network => wire::ModelFault::Network,
        ModelErrorKind::Interrupted => wire::ModelFault::Interrupted,
        ModelErrorKind::Protocol => wire::ModelFault::Protocol,
        ModelErrorKind::Cancelled => wire::ModelFault::Cancelled,
    }
}

/// The turn that answers a submitted prompt; `None` while the prompt is queued.
pub(crate) fn turn_of(submitted: &SubmitOutcome) -> Option<&TurnId> {
    match submitted {
        SubmitOutcome::Started(turn)
        | SubmitOutcome::Steering { turn, .. }
        | SubmitOutcome::Answered { turn, .. } => Some(turn),
        SubmitOutcome::Queued(_) => None,
    }
}
