//! The reminders of the model: one service for all kinds, called once for each request.
//!
//! Rule: a reminder goes with one request and is never stored. Whether one is due follows from the conversation; only
//! changes by others are noted, until an answer shows that the model knows them. A request has at most one reminder of each
//! kind, the most important first, and each category is bounded.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::context::ContextBuilder;
use crate::conversation::Conversation;
use crate::core::lock;
use crate::state::SessionState;
use crate::state::thread::Thread;
use kode_base::call::ToolErrorKind;
use kode_base::ids::{AgentId, TurnId};
use kode_base::mode::Mode;
use kode_base::reminder;
use kode_base::todo::TodoReminderReason;
use kode_model::{Block, Role, ToolDeclaration};
use kode_record::event::{CallState, Event, Item, ItemBody, ToolCallItem};
use kode_record::reminder::{ReminderCategory, ReminderKind};
use kode_text::workspace::OutsideChange;
use kode_tool::names::TODO_WRITE;

/// The number of newest items that are searched for calls with new results.
const LOOKED_BACK: usize = 200;

/// The most named files with failed edits.
const MAX_NAMED: usize = 10;

/// The tools that replace text which the model quotes.
const EDITORS: [&str; 5] = ["apply_patch", "Edit", "MultiEdit", "NotebookEdit", "Write"];

/// The tools whose results say how the mode has changed.
const MODE_TOOLS: [&str; 2] = ["EnterPlanMode", "ExitPlanMode"];

/// The reminders of a live session.
#[derive(Debug, Default)]
pub(super) struct Reminders(Mutex<ReminderMemory>);

#[derive(Debug, Default)]
struct ReminderMemory {
    counts: BTreeMap<ReminderCategory, ReminderCounts>,
    /// Changes by others that the model may not know yet.
    unreported: Vec<OutsideChange>,
    /// The number of answers at the last reminder of them.
    reported_at: Option<u64>,
}

/// How many reminders of a category went out.
#[derive(Debug, Default)]
struct ReminderCounts {
    session: u32,
    turn: u32,
    of: Option<TurnId>,
}

impl ReminderMemory {
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

    /// Adds changes by others; an answer since the last reminder shows that the model knows the earlier ones.
    fn take_in(&mut self, changes: Vec<OutsideChange>, answers: u64) {
        if self.reported_at.take_if(|reported_at| *reported_at != answers).is_some() {
            self.unreported.clear();
        }
        for change in changes {
            self.unreported.retain(|known| known.target != change.target);
            self.unreported.push(change);
        }
    }
}

/// The inputs of the reminders of one request.
#[derive(Clone, Debug, Default)]
struct ReminderFacts {
    /// The mode that the model knows, and the one there is.
    mode: Option<(Mode, Mode)>,
    /// Whether the user has said something to the running turn that the model has not answered yet.
    is_steered: bool,
    /// The files whose edits failed in the newest round.
    failed_edits: Vec<String>,
    /// The text about changes by others.
    changed: Option<String>,
    /// The due reminder of the todo list, and its text.
    todos: Option<(TodoReminderReason, String)>,
}

impl ReminderFacts {
    /// The inputs that follow from the conversation.
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

/// The due reminders, the most important first.
fn due(facts: ReminderFacts) -> Vec<(ReminderKind, String)> {
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

const TODOS_INITIAL: &str = "There is no todo list yet. If this takes three steps or more, write one with TodoWrite first \
    and keep it up to date; if not, go without. Do not mention this to the user.";

const TODOS_STALE: &str = "The todo list was not written for a while. If the work has steps, bring the list up to date with \
    TodoWrite, also where its entries are out of date; if it does not help here, go on without. Do not mention this to \
    the user.";

const STEERED: &str = "The user wrote the last message while you were working. Take it into account and continue the \
    work, unless it says otherwise; where it contradicts an earlier message, it applies.";

const PLAN_RULES: &str = "The user has set the mode to plan: look and think, and change nothing. Edits are refused, and \
    so are commands that do more than look. When the plan is ready, call ExitPlanMode with the whole of it; the user \
    decides.";

fn mode_text(known: Mode, now: Mode) -> String {
    let effect = match now {
        Mode::Plan => return PLAN_RULES.to_owned(),
        Mode::Default => "edits and commands are asked for first",
        Mode::AcceptEdits => "edits in the workspace run, commands are asked for first",
        Mode::DontAsk => "no permission is asked for, and calls that no rule allows are refused",
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
        "An edit did not match the text of the file. Read {}{more} again before you edit there.",
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
    let calls = thread.items.newest().iter().rev().take(LOOKED_BACK).filter_map(|item| call_of(item));
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

impl ContextBuilder {
    /// The reminders of the next request of a conversation; they are counted as given. The todo list is stale after `stale`
    /// rounds in which it was not written.
    pub(super) fn reminders(
        &self,
        conversation: &Conversation,
        state: &SessionState,
        tools: &[ToolDeclaration],
        stale: u32,
    ) -> Vec<String> {
        let agent = conversation.agent();
        let Some(thread) = state.thread(agent) else { return Vec::new() };
        let mut facts = ReminderFacts::of(thread);
        let mut inner = lock(&self.reminders.0);
        // Changes of the whole session are for its own conversation.
        if agent.is_none() {
            let is_reported = |call: &&ToolCallItem| {
                call.state == CallState::Completed && MODE_TOOLS.contains(&call.name.as_str())
            };
            if !unseen_calls(thread).iter().any(is_reported) {
                facts.mode = state.config.mode_known.map(|known| (known, state.config.mode));
            }
            let workspace = &self.environment.workspace;
            inner.take_in(workspace.take_changes(), state.counts.answers);
            facts.changed = workspace.reminder(&inner.unreported);
            let can_write = tools.iter().any(|tool| tool.name == TODO_WRITE);
            facts.todos = todo_reminder(state, stale).filter(|_| can_write);
        }
        let mut given = Vec::new();
        for (kind, text) in due(facts) {
            if !inner.allow(kind.category(), state.running.id.as_ref()) {
                continue;
            }
            match kind {
                ReminderKind::FilesChanged => inner.reported_at = Some(state.counts.answers),
                ReminderKind::SessionStart => self.publish_todo(TodoReminderReason::Initial),
                ReminderKind::TodoChanged => self.publish_todo(TodoReminderReason::Changed),
                ReminderKind::TodoStale => self.publish_todo(TodoReminderReason::Stale),
                ReminderKind::ModeChanged | ReminderKind::Steered | ReminderKind::EditFailed => {}
            }
            let text = if kind == ReminderKind::FilesChanged { text } else { reminder(&text) };
            given.push((kind, text));
        }
        drop(inner);
        self.publish_reminders(agent, thread, &given);
        given.into_iter().map(|(_, text)| text).collect()
    }

    fn publish_todo(&self, reason: TodoReminderReason) {
        self.core.publish(Event::TodoReminder { reason });
    }

    /// Publishes that a query begins, and its reminders.
    fn publish_reminders(&self, agent: Option<&AgentId>, thread: &Thread, given: &[(ReminderKind, String)]) {
        let begins = thread.is_fresh().then_some(ReminderKind::SessionStart);
        let others = given.iter().map(|(kind, _)| *kind).filter(|kind| *kind != ReminderKind::SessionStart);
        for kind in others.chain(begins) {
            let (agent, messages) = (agent.cloned(), thread.messages.len());
            self.core.publish(Event::Reminder { kind, agent, messages });
        }
    }
}

/// The reminder of the todo list in the next request, and why.
fn todo_reminder(state: &SessionState, stale: u32) -> Option<(TodoReminderReason, String)> {
    let reason = state.todos.reminder(&state.main, stale)?;
    let todos = state.todos.list();
    let list = serde_json::to_string(todos).unwrap_or_default();
    let text = match reason {
        TodoReminderReason::Initial => TODOS_INITIAL.to_owned(),
        TodoReminderReason::Stale if todos.is_empty() => TODOS_STALE.to_owned(),
        TodoReminderReason::Stale => format!("{TODOS_STALE} It is now: {list}"),
        TodoReminderReason::Changed => format!(
            "The todo list has changed. Continue the task in progress; do not mention this to the user. It is now: \
            {list}"
        ),
    };
    Some((reason, text))
}
