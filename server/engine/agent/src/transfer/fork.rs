//! Forks: a new session that begins with the conversation of another one up to some item.
//!
//! Rule: a fork has the conversation and nothing that belongs to the other session alone: no changes of files, no
//! commands, nothing that waits, nothing that was allowed, and none of what it cost. Every call in it has a result.

use std::sync::Arc;

use jiff::Timestamp;

use crate::state::SessionState;
use crate::state::seal::sealing;
use crate::state::thread::Thread;
use kode_base::ids::{AgentId, ItemId, SessionId};
use kode_model::Usage;
use kode_record::draft::PromptDraft;
use kode_record::event::{Item, ItemBody, TurnEnd};
use kode_record::record::{Record, TurnFigures};

/// Why calls of a fork have no result.
const NOT_IN_FORK: &str = "the conversation was forked before the call ended";

/// Where a session is forked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForkPoint {
    /// After all there is.
    End,
    /// After this item.
    After(ItemId),
    /// Before this item; the words of a prompt become the unsent prompt of the fork, without what went with them.
    Before(ItemId),
}

/// The session's own conversation has no such item.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no item `{0}` in the session's own conversation")]
pub struct UnknownItem(pub ItemId);

/// The records of a fork of the session with these records.
///
/// # Errors
/// [`UnknownItem`].
pub(crate) fn fork(
    records: Vec<Record>,
    at: &ForkPoint,
    origin: &SessionId,
    id: &SessionId,
) -> Result<Vec<Record>, UnknownItem> {
    let (end, draft) = end_of(&records, at)?;
    let mut forked: Vec<Record> =
        records.into_iter().take(end).filter_map(|record| taken_over(record, origin, id)).collect();
    let unfinished = SessionState::fold(forked.clone()).map(|state| finish(&state)).unwrap_or_default();
    forked.extend(unfinished);
    forked.extend(draft.map(|draft| Record::Drafted { draft: Some(draft) }));
    Ok(forked)
}

/// The number of copied records, and the unsent prompt.
fn end_of(records: &[Record], at: &ForkPoint) -> Result<(usize, Option<PromptDraft>), UnknownItem> {
    let has = |record: &Record, item: &ItemId| items_of(record).any(|known| known == item);
    match at {
        ForkPoint::End => Ok((records.len(), None)),
        ForkPoint::After(item) => {
            let last = records.iter().rposition(|record| has(record, item));
            Ok((last.ok_or_else(|| UnknownItem(item.clone()))? + 1, None))
        }
        ForkPoint::Before(item) => {
            let first = records.iter().position(|record| has(record, item));
            let first = first.ok_or_else(|| UnknownItem(item.clone()))?;
            let draft = match &records[first] {
                Record::Prompt { item, .. } | Record::Steered { item, .. } => said(item),
                _ => None,
            };
            Ok((first, draft))
        }
    }
}

fn said(item: &Item) -> Option<PromptDraft> {
    match &item.body {
        ItemBody::UserMessage { text, .. } => {
            Some(PromptDraft { text: text.clone(), ..PromptDraft::default() })
        }
        _ => None,
    }
}

/// The items of the session's own conversation in a record.
fn items_of(record: &Record) -> impl Iterator<Item = &ItemId> {
    let (one, many): (Option<&ItemId>, &[Item]) = match record {
        Record::Prompt { item, .. }
        | Record::Steered { item, .. }
        | Record::Streamed { item }
        | Record::Item { item, .. } => (Some(&item.id), &[]),
        Record::Attached { item, .. }
        | Record::Commanded { item, .. }
        | Record::Grown { item, .. }
        | Record::CallMoved { item, .. }
        | Record::CallEnded { item, .. } => (Some(item), &[]),
        Record::Answer { items, .. } => (None, items),
        Record::Opened { .. }
        | Record::Queued { .. }
        | Record::QueueChanged { .. }
        | Record::Drafted { .. }
        | Record::Remark { .. }
        | Record::PromptRefused { .. }
        | Record::PicturesRefused { .. }
        | Record::Compacted { .. }
        | Record::Decided { .. }
        | Record::Granted { .. }
        | Record::Equipped { .. }
        | Record::HooksBrought { .. }
        | Record::Begun { .. }
        | Record::Asked { .. }
        | Record::Replied { .. }
        | Record::Todos { .. }
        | Record::GoalSet { .. }
        | Record::Team { .. }
        | Record::FileReviewed { .. }
        | Record::TurnEnded { .. }
        | Record::Charged { .. }
        | Record::Configured { .. }
        | Record::Titled { .. }
        | Record::Archived { .. }
        | Record::Edits { .. }
        | Record::Delivering { .. }
        | Record::Writing { .. }
        | Record::Rewound { .. }
        | Record::Restored { .. }
        | Record::Unwound { .. }
        | Record::Delegated { .. }
        | Record::Background { .. }
        | Record::InAgent { .. }
        | Record::Resumed { .. } => (None, &[]),
    };
    one.into_iter().chain(many.iter().map(|item| &item.id))
}

/// A record of the fork; `None` for records of the other session alone.
fn taken_over(record: Record, origin: &SessionId, id: &SessionId) -> Option<Record> {
    match record {
        Record::Opened { session: _, roots, cwd, mode, model, forked_from: _, worktree } => {
            Some(Record::Opened {
                session: id.clone(),
                roots,
                cwd,
                mode,
                model,
                forked_from: Some(origin.clone()),
                // Its files are there.
                worktree,
            })
        }
        Record::Prompt { turn, queued: _, item, content, parts, options } => {
            Some(Record::Prompt { turn, queued: None, item, content, parts, options })
        }
        Record::TurnEnded { turn, reason, usage: _, figures } => {
            Some(Record::TurnEnded { turn, reason, usage: Usage::default(), figures })
        }
        Record::InAgent { agent, record } => {
            let record = Box::new(taken_over(*record, origin, id)?);
            Some(Record::InAgent { agent, record })
        }
        // The files are those of the session it comes from.
        Record::Rewound { turn, resolution, files: _ } => {
            Some(Record::Rewound { turn, resolution, files: false })
        }
        Record::Attached { .. }
        | Record::Commanded { .. }
        | Record::Steered { .. }
        | Record::Answer { .. }
        | Record::Streamed { .. }
        | Record::Grown { .. }
        | Record::Item { .. }
        | Record::CallMoved { .. }
        | Record::CallEnded { .. }
        | Record::Remark { .. }
        | Record::HooksBrought { .. }
        | Record::Begun { .. }
        | Record::PromptRefused { .. }
        | Record::PicturesRefused { .. }
        | Record::Compacted { .. }
        | Record::Asked { .. }
        | Record::Replied { .. }
        | Record::Todos { .. }
        | Record::Configured { .. }
        | Record::Delivering { .. }
        | Record::Unwound { .. }
        | Record::Titled { .. }
        | Record::Delegated { .. } => Some(record),
        Record::Queued { .. }
        | Record::QueueChanged { .. }
        | Record::Drafted { .. }
        | Record::Decided { .. }
        | Record::Granted { .. }
        | Record::Equipped { .. }
        | Record::Charged { .. }
        | Record::Archived { .. }
        | Record::Edits { .. }
        | Record::GoalSet { .. }
        | Record::Team { .. }
        | Record::FileReviewed { .. }
        | Record::Writing { .. }
        | Record::Restored { .. }
        | Record::Background { .. }
        | Record::Resumed { .. } => None,
    }
}

/// The records that end open turns and calls at the point of the fork.
fn finish(state: &SessionState) -> Vec<Record> {
    let at = Timestamp::now();
    let seal = |item: Arc<Item>| {
        let ItemBody::ToolCall(call) = &item.body else { return None };
        let (outcome, result) = sealing(call, NOT_IN_FORK, None);
        Some(Record::CallEnded {
            item: item.id.clone(),
            at,
            outcome,
            result,
            instructed: Vec::new(),
            executed: None,
        })
    };
    let of = |agent: Option<&AgentId>, record: Record| match agent {
        None => record,
        Some(agent) => Record::InAgent { agent: agent.clone(), record: Box::new(record) },
    };
    let finished = |agent: Option<&AgentId>, thread: &Thread| {
        // Streamed items are not sealed: the record of the answer ends them.
        let streamed: Vec<_> = thread.broken_off(at).into_iter().map(|item| item.id).collect();
        let open = thread.unanswered().into_iter().filter(|item| !streamed.contains(&item.id));
        let sealed: Vec<_> = open.filter_map(seal).collect();
        sealed
            .into_iter()
            .chain(thread.broken_off_answer(at))
            .map(|record| of(agent, record))
            .collect::<Vec<_>>()
    };
    let of_agents = state.agents.iter().flat_map(|(id, agent)| finished(Some(id), &agent.thread));
    let own = finished(None, &state.main);
    let ended = state.running.id.clone().map(|turn| Record::TurnEnded {
        turn,
        reason: TurnEnd::Cancelled,
        usage: Usage::default(),
        figures: TurnFigures::default(),
    });
    of_agents.chain(own).chain(ended).collect()
}
