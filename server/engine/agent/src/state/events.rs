//! The events that records emit.
//!
//! Rule: an event follows from the record and the state it is folded into, and from nothing else, so that a replay emits
//! the events of the live session.

use kode_base::call::ToolErrorKind;
use kode_base::ids::{AgentId, CallId, CheckpointId, TaskId, TurnId};
use kode_model::price::Cost;
use kode_model::{Block, Usage};
use kode_record::background::{BackgroundTask, TaskEntry};
use kode_record::compaction::Compaction;
use kode_record::event::{CallOutcome, CallState, CompressionStep, Event, RunState, SealedCall, TurnEnd};
use kode_record::record::{ExecutedCall, TurnFigures};
use kode_text::edit::ledger::LedgerEntry;

/// A turn began; `shown` is its prompt.
pub(crate) fn turn_started(turn: TurnId, shown: Vec<Event>) -> Vec<Event> {
    let started =
        [Event::StateChanged { state: RunState::Working }, Event::TurnStarted { turn: turn.clone() }];
    let checkpoint = Event::CheckpointCreated { checkpoint: CheckpointId::before(&turn), turn };
    started.into_iter().chain(shown).chain([checkpoint]).collect()
}

/// A turn ended.
pub(crate) fn turn_done(
    turn: TurnId,
    reason: TurnEnd,
    usage: Usage,
    cost: Cost,
    figures: TurnFigures,
) -> Event {
    let TurnFigures { duration_ms, model_calls, tool_calls, phases } = figures;
    let (usage, phases) = (Box::new(usage), Box::new(phases));
    Event::Done { turn, reason, usage, cost, duration_ms, model_calls, tool_calls, phases }
}

/// A conversation was compacted; without an agent it is the session's own.
pub(crate) fn compacted(agent: Option<AgentId>, compaction: &Compaction) -> Event {
    let step = CompressionStep::Done { compaction: Box::new(compaction.clone()) };
    Event::ContextCompression { turn: compaction.turn.clone(), agent, step }
}

/// The events before and after the end of a call that was executed or refused.
pub(crate) fn execution(
    outcome: &CallOutcome,
    result: &Block,
    executed: Option<ExecutedCall>,
) -> (Option<Event>, Option<Event>) {
    let (Some(ExecutedCall { name, duration_ms }), Block::ToolResult { tool_use_id, content, is_error, .. }) =
        (executed, result)
    else {
        return (None, None);
    };
    let call = CallId::from_external(tool_use_id);
    let refused = match outcome.error {
        Some(ToolErrorKind::Denied) => {
            Some(Event::ToolDenied { call: call.clone(), name: name.clone(), reason: content.clone() })
        }
        Some(ToolErrorKind::Timeout) => Some(Event::ToolTimeout { call: call.clone(), name: name.clone() }),
        _ => None,
    };
    (refused, Some(Event::ToolExecuted { call, name, duration_ms, ok: !is_error }))
}

/// The event of an entry that changes hunks.
pub(crate) fn edits_changed(entry: &LedgerEntry) -> Option<Event> {
    let target = match entry {
        LedgerEntry::Changed { target, .. }
        | LedgerEntry::Replaced { target, .. }
        | LedgerEntry::Moved { target, .. }
        | LedgerEntry::Withdrawn { target, .. } => target,
        LedgerEntry::Tracked { .. }
        | LedgerEntry::Typed { .. }
        | LedgerEntry::Before { .. }
        | LedgerEntry::Unmade { .. }
        | LedgerEntry::Told { .. } => {
            return None;
        }
    };
    Some(Event::EditsChanged { targets: vec![target.clone()] })
}

/// The sealed calls; their states are unknown in older journals.
pub(crate) fn sealed_calls(calls: Vec<CallId>, states: Vec<CallState>) -> Vec<SealedCall> {
    let states = states.into_iter().map(Some).chain(std::iter::repeat(None));
    calls.into_iter().zip(states).map(|(call, state)| SealedCall { call, state }).collect()
}

/// Makes the event of a background command.
type TaskEvent = fn(Box<BackgroundTask>) -> Event;

/// The background command of an entry, and how to make its event; `None` for an entry without one.
pub(crate) fn task_event(entry: &TaskEntry) -> Option<(TaskId, TaskEvent)> {
    match entry {
        TaskEntry::Started { task, .. } => Some((task.clone(), |task| Event::BackgroundStarted { task })),
        TaskEntry::Ended { task, .. } => Some((task.clone(), |task| Event::BackgroundEnded { task })),
        TaskEntry::Told { .. } => None,
    }
}
