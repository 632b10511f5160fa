//! What the model is reminded of: one service for all kinds, asked once for each request.
//!
//! Rule: a reminder goes with one request and is never stored. Whether one is due follows from what the conversation
//! is; only what others changed is noted, until an answer shows that the model was told. Of each kind there is at most
//! one in a request, the most important first, and each category has its bounds.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::session::conversation::Conversation;
use crate::session::thread::Thread;
use crate::session::{SessionState, lock, todos};
use kode_base::call::ToolErrorKind;
use kode_base::ids::TurnId;
use kode_base::mode::Mode;
use kode_base::reminder;
use kode_base::todo::TodoReminderReason;
use kode_model::{Block, Role, ToolDeclaration};
use kode_record::event::{CallState, Event, Item, ItemBody, ToolCallItem};
use kode_record::reminder::{ReminderCategory, ReminderKind};
use kode_text::workspace::OutsideChange;
use kode_tool::names::TODO_WRITE;

/// The calls whose results are new are looked for among so many of the newest items.
const LOOKED_BACK: usize = 200;

/// So many files whose edit failed are named.
const MAX_NAMED: usize = 10;

/// The tools that change files of which they were told what stands there.
const EDITORS: [&str; 4] = ["Edit", "MultiEdit", "NotebookEdit", "Write"];

/// The tools whose results say how the mode has changed.
const MODE_TOOLS: [&str; 2] = ["EnterPlanMode", "ExitPlanMode"];

/// What a live session keeps about reminders.
#[derive(Debug, Default)]
pub(super) struct Reminders(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    counts: BTreeMap<ReminderCategory, Counts>,
    /// What others changed, and the model may not know of yet.
    untold: Vec<OutsideChange>,
    /// How many answers there were when it was told last.
    told_at: Option<u64>,
}

/// How many reminders of a category went out.
#[derive(Debug, Default)]
struct Counts {
    session: u32,
    turn: u32,
    of: Option<TurnId>,
}

impl Inner {
    /// Counts one more; false when there were enough.
    fn allow(&mut self, category: ReminderCategory, turn: Option<&TurnId>) -> bool {
        let (most_of_turn, most_of_session) = category.limits();
        let counts = self.counts.entry(category).or_default();
        if counts.of.as_ref() != turn {
            (counts.turn, counts.of) = (0, turn.cloned());
        }
        if counts.session >= most_of_session || counts.turn >= most_of_turn {
            return false;
        }
        counts.session += 1;
        counts.turn += 1;
        true
    }

    /// Adds what others changed to what is not told for sure; an answer since then says that it was.
    fn take_in(&mut self, changes: Vec<OutsideChange>, answers: u64) {
        if self.told_at.take_if(|told_at| *told_at != answers).is_some() {
            self.untold.clear();
        }
        for change in changes {
            self.untold.retain(|known| known.target != change.target);
            self.untold.push(change);
        }
    }
}

/// What the reminders of one request depend on.
#[derive(Clone, Debug, Default)]
struct Facts {
    /// The mode that the model knows, and the one there is.
    mode: Option<(Mode, Mode)>,
    /// Whether the user has said something to the running turn that the model has not answered yet.
    is_steered: bool,
    /// The files whose edits failed in the newest round.
    failed_edits: Vec<String>,
    /// What others changed, in words.
    changed: Option<String>,
    /// What is due of the todo list, in words.
    todos: Option<(TodoReminderReason, String)>,
}

impl Facts {
    /// What the conversation itself tells.
    fn of(thread: &Thread) -> Self {
        let mut failed_edits: Vec<String> = Vec::new();
        for call in unseen_calls(thread) {
            let is_wrong_text = matches!(call.error, Some(ToolErrorKind::Mismatch | ToolErrorKind::Conflict));
            let path = ["file_path", "notebook_path"].iter().find_map(|name| call.input.get(name)?.as_str());
            if let Some(path) = path
                && is_wrong_text
                && EDITORS.contains(&call.name.as_str())
                && !failed_edits.iter().any(|known| known == path)
            {
                // A name is data: it must not be able to begin a line of its own.
                failed_edits.push(path.replace(char::is_control, "\u{fffd}"));
            }
        }
        Self { is_steered: thread.is_steered(), failed_edits, ..Self::default() }
    }
}

/// What is due, the most important first.
fn due(facts: Facts) -> Vec<(ReminderKind, String)> {
    let mode = facts.mode.filter(|(known, now)| known != now);
    let mode = mode.map(|(known, now)| (ReminderKind::ModeChanged, mode_text(known, now)));
    let steered = facts.is_steered.then(|| (ReminderKind::Steered, STEERED.to_owned()));
    let failed = (!facts.failed_edits.is_empty())
        .then(|| (ReminderKind::EditFailed, failed_text(&facts.failed_edits)));
    let changed = facts.changed.map(|text| (ReminderKind::FilesChanged, text));
    let todos = facts.todos.map(|(reason, text)| (ReminderKind::of_todos(reason), text));
    let mut due: Vec<_> = [mode, steered, failed, changed, todos].into_iter().flatten().collect();
    due.sort_by_key(|(kind, _)| *kind);
    due
}

const STEERED: &str = "The user wrote the last message while you were working. Take it into account and go on with the \
    work, unless it says otherwise; where it contradicts what was asked before, it counts.";

const PLAN_RULES: &str = "The user has set the mode to plan: look and think, and change nothing. Edits are refused, and \
    so are commands that do more than look. When the plan is ready, call ExitPlanMode with the whole of it; the user \
    decides.";

fn mode_text(known: Mode, now: Mode) -> String {
    let effect = match now {
        Mode::Plan => return PLAN_RULES.to_owned(),
        Mode::Default => "edits and commands are asked for first",
        Mode::AcceptEdits => "edits in the workspace run, commands are asked for first",
        Mode::DontAsk => "nothing is asked for, and what is not allowed beforehand is refused",
        Mode::BypassPermissions => "edits and commands run",
        Mode::Approval => "everything is asked for first",
        Mode::Readonly => "edits are refused",
    };
    let over = if known == Mode::Plan { "Plan mode is over. " } else { "" };
    format!("{over}The user has set the mode to {}: {effect}. Do not mention this to the user.", now.name())
}

fn failed_text(files: &[String]) -> String {
    let named: Vec<_> = files.iter().take(MAX_NAMED).map(|file| format!("`{file}`")).collect();
    let more = match files.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "An edit failed for what stands in the file. Read {}{more} again before you edit there.",
        named.join(", ")
    )
}

/// The calls whose results the model has not seen yet.
fn unseen_calls(thread: &Thread) -> Vec<&ToolCallItem> {
    let unseen = thread.messages.iter().rev().take_while(|message| message.role == Role::User);
    let unseen: Vec<&str> = unseen.flat_map(|message| &message.content).filter_map(result_of).collect();
    if unseen.is_empty() {
        return Vec::new();
    }
    let calls = thread.items.newest().iter().rev().take(LOOKED_BACK).filter_map(call_of);
    let mut calls: Vec<_> = calls.filter(|call| unseen.contains(&call.call.as_str())).collect();
    calls.reverse();
    calls
}

fn result_of(block: &Block) -> Option<&str> {
    match block {
        Block::ToolResult { tool_use_id, .. } => Some(tool_use_id),
        _ => None,
    }
}

fn call_of(item: &Item) -> Option<&ToolCallItem> {
    match &item.body {
        ItemBody::ToolCall(call) => Some(call),
        _ => None,
    }
}

/// The reminders of the next request of a conversation; they count as given. `stale` rounds without a word about the todo
/// list are too many.
pub(crate) fn for_request(
    conversation: &Conversation<'_>,
    state: &SessionState,
    tools: &[ToolDeclaration],
    stale: u32,
) -> Vec<String> {
    let (session, agent) = (conversation.session, conversation.agent.as_ref());
    let Some(thread) = state.thread(agent) else { return Vec::new() };
    let mut facts = Facts::of(thread);
    let mut inner = lock(&session.reminders.0);
    // Of what concerns the whole session its own conversation is told.
    if agent.is_none() {
        let is_told = |call: &&ToolCallItem| {
            call.state == CallState::Completed && MODE_TOOLS.contains(&call.name.as_str())
        };
        if !unseen_calls(thread).iter().any(is_told) {
            facts.mode = state.mode_known.map(|known| (known, state.mode));
        }
        inner.take_in(session.workspace.take_changes(), state.answers);
        facts.changed = session.workspace.reminder(&inner.untold);
        let can_write = tools.iter().any(|tool| tool.name == TODO_WRITE);
        facts.todos = todos::due(state, stale).filter(|_| can_write);
    }
    let mut given = Vec::new();
    for (kind, text) in due(facts) {
        if !inner.allow(kind.category(), state.turn.as_ref()) {
            continue;
        }
        match kind {
            ReminderKind::FilesChanged => inner.told_at = Some(state.answers),
            ReminderKind::SessionStart => {
                session.publish(Event::TodoReminder { reason: TodoReminderReason::Initial })
            }
            ReminderKind::TodoChanged => {
                session.publish(Event::TodoReminder { reason: TodoReminderReason::Changed })
            }
            ReminderKind::TodoStale => {
                session.publish(Event::TodoReminder { reason: TodoReminderReason::Stale })
            }
            ReminderKind::ModeChanged | ReminderKind::Steered | ReminderKind::EditFailed => {}
        }
        let text = if kind == ReminderKind::FilesChanged { text } else { reminder(&text) };
        given.push((kind, text));
    }
    drop(inner);
    tell(conversation, thread, &given);
    given.into_iter().map(|(_, text)| text).collect()
}

/// Tells that a query begins, and what the model is reminded of.
fn tell(conversation: &Conversation<'_>, thread: &Thread, given: &[(ReminderKind, String)]) {
    let begins = thread.is_fresh().then_some(ReminderKind::SessionStart);
    let others = given.iter().map(|(kind, _)| *kind).filter(|kind| *kind != ReminderKind::SessionStart);
    for kind in others.chain(begins) {
        conversation.session.publish(Event::Reminder {
            kind,
            agent: conversation.agent.clone(),
            messages: thread.messages.len(),
        });
    }
}
