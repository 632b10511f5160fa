//! The todo list of a session, and when a request reminds the model of it.
//!
//! Rule: whether a reminder is due follows from the records alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::state::thread::Thread;
use kode_base::ids::TurnId;
use kode_base::todo::{Todo, TodoCounts, TodoReminderReason};
use kode_model::Role;
use kode_record::event::Event;

/// The todo list of a session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Todos {
    /// The list.
    list: Vec<Todo>,
    /// The lists at the prompts of turns, where there was one.
    at_turns: BTreeMap<TurnId, Vec<Todo>>,
    /// Model rounds of work since the list was written: those that called tools, and all while a todo is open.
    rounds_unchanged: u32,
    /// Whether the list was written after the newest answer.
    is_new: bool,
}

impl Todos {
    /// The list.
    #[must_use]
    pub fn list(&self) -> &[Todo] {
        &self.list
    }

    /// Replaces the list.
    pub(super) fn write(&mut self, list: Vec<Todo>) -> Event {
        self.list = list;
        self.rounds_unchanged = 0;
        self.is_new = true;
        self.event()
    }

    /// Keeps the list as it is when a turn begins.
    pub(super) fn begin_turn(&mut self, turn: &TurnId) {
        if !self.list.is_empty() {
            self.at_turns.insert(turn.clone(), self.list.clone());
        }
    }

    /// Counts an answer; `calls_tools` says whether it calls any.
    pub(super) fn count_round(&mut self, calls_tools: bool) {
        self.is_new = false;
        if calls_tools || TodoCounts::of(&self.list).is_open() {
            self.rounds_unchanged = self.rounds_unchanged.saturating_add(1);
        }
    }

    /// Restores the list at the beginning of a turn. Returns the list as it was.
    pub(super) fn rewind(&mut self, turn: &TurnId) -> (Vec<Todo>, Option<Event>) {
        let before = self.at_turns.get(turn).cloned().unwrap_or_default();
        let after = std::mem::replace(&mut self.list, before);
        let event = (after != self.list).then(|| self.event());
        (after, event)
    }

    /// Restores the list of before a rewind.
    pub(super) fn restore(&mut self, list: Vec<Todo>) -> Option<Event> {
        let before = std::mem::replace(&mut self.list, list);
        (before != self.list).then(|| self.event())
    }

    /// The reminder that the next request of the session's own conversation carries. The list is stale after `stale`
    /// rounds in which it was not written.
    pub(crate) fn reminder(&self, main: &Thread, stale: u32) -> Option<TodoReminderReason> {
        let is_first = main.messages.iter().all(|message| message.role == Role::User);
        if is_first && self.list.is_empty() {
            Some(TodoReminderReason::Initial)
        } else if self.is_new && TodoCounts::of(&self.list).is_open() {
            Some(TodoReminderReason::Changed)
        } else if self.rounds_unchanged == stale {
            Some(TodoReminderReason::Stale)
        } else {
            None
        }
    }

    fn event(&self) -> Event {
        Event::TodoChanged { todos: self.list.clone() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::SessionState;
    use kode_base::ids::SessionId;
    use kode_base::mode::Mode;
    use kode_base::paths::AbsPath;
    use kode_base::todo::TodoStatus;
    use kode_config::preferences::TODO_REMINDER_ROUNDS;
    use kode_model::{Block, Message, Usage};
    use kode_record::record::Record;

    fn state() -> SessionState {
        let cwd = AbsPath::new("/w").unwrap();
        let (session, roots, model) = (SessionId::generate(), vec![cwd.clone()], "main".to_owned());
        let mode = Mode::Default.into();
        let mut state = SessionState::open(&Record::Opened {
            session,
            roots,
            cwd,
            mode,
            model,
            forked_from: None,
            worktree: None,
        })
        .unwrap();
        state.apply(Record::Remark { turn: TurnId::generate(), text: "go".into() });
        state
    }

    fn answer(state: &mut SessionState, works: bool) {
        let block = match works {
            true => {
                Block::ToolUse { id: "c".into(), name: "Read".into(), input: json!({}), input_error: None }
            }
            false => Block::Text { text: "so".into() },
        };
        let message = Message::assistant(vec![block]);
        state.apply(Record::Answer {
            turn: TurnId::generate(),
            message,
            items: vec![],
            usage: Usage::default(),
            streamed: vec![],
            duration_ms: None,
            mode: None,
        });
    }

    fn write(state: &mut SessionState, status: TodoStatus) {
        let todo = Todo { content: "a".into(), status, active_form: "b".into() };
        state.apply(Record::Todos { todos: vec![todo] });
    }

    /// The due reminder of each request, each of them answered.
    fn rounds(state: &mut SessionState, count: usize, works: bool) -> Vec<Option<TodoReminderReason>> {
        rounds_with(state, TODO_REMINDER_ROUNDS, count, works)
    }

    fn rounds_with(
        state: &mut SessionState,
        stale: u32,
        count: usize,
        works: bool,
    ) -> Vec<Option<TodoReminderReason>> {
        let round = |_| {
            let due = state.todos.reminder(&state.main, stale);
            answer(state, works);
            due
        };
        (0..count).map(round).collect()
    }

    #[test]
    fn the_first_request_and_the_eleventh_remind_and_a_written_list_starts_over() {
        let mut fresh = state();
        let seen = rounds(&mut fresh, 25, true);
        let expected = |at| match at {
            0 => Some(TodoReminderReason::Initial),
            10 => Some(TodoReminderReason::Stale),
            _ => None,
        };
        assert_eq!(seen, (0..25).map(expected).collect::<Vec<_>>(), "the eleventh, and once");

        write(&mut fresh, TodoStatus::InProgress);
        let seen = rounds(&mut fresh, 12, true);
        assert_eq!((seen[0], seen[10]), (Some(TodoReminderReason::Changed), Some(TodoReminderReason::Stale)));
        assert_eq!(seen.iter().flatten().count(), 2);
    }

    #[test]
    fn the_settings_say_after_how_many_rounds() {
        let mut state = state();
        let seen = rounds_with(&mut state, 3, 12, true);
        let stale = seen.iter().position(|due| *due == Some(TodoReminderReason::Stale));
        assert_eq!((stale, seen.iter().flatten().count()), (Some(3), 2));
    }

    #[test]
    fn talk_without_work_is_left_alone_unless_something_is_left_to_do() {
        let mut chat = state();
        assert_eq!(rounds(&mut chat, 15, false).iter().flatten().count(), 1, "only the initial one");
        write(&mut chat, TodoStatus::Completed);
        assert_eq!(rounds(&mut chat, 15, false).iter().flatten().count(), 0);
        write(&mut chat, TodoStatus::Pending);
        let seen = rounds(&mut chat, 15, false);
        assert_eq!((seen[0], seen[10]), (Some(TodoReminderReason::Changed), Some(TodoReminderReason::Stale)));
    }
}
