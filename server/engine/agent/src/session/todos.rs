//! The session's todo list, and when the model is reminded of it.
//!
//! Rule: whether a reminder is due follows from the state alone; the list itself is in the journal, a reminder never is.

use crate::session::{Session, SessionState};
use kode_base::todo::{Todo, TodoCounts, TodoReminderReason};
use kode_model::Role;
use kode_record::record::Record;

const INITIAL: &str = "There is no todo list yet. If this takes three steps or more, write one with TodoWrite first \
    and keep it up to date; if not, go without. Do not mention this to the user.";

const STALE: &str = "The todo list was not written for a while. If the work has steps, bring the list up to date with \
    TodoWrite, also where its entries are out of date; if it does not help here, go on without. Do not mention this to \
    the user.";

impl Session {
    /// The todo list.
    #[must_use]
    pub fn todos(&self) -> Vec<Todo> {
        self.state().todos.clone()
    }

    /// Replaces the todo list.
    pub(crate) fn set_todos(&self, todos: Vec<Todo>) {
        self.commit(Record::Todos { todos });
    }
}

/// What the next request has to say about the todo list, and why; `stale` rounds without a word about it are too many.
pub(super) fn due(state: &SessionState, stale: u32) -> Option<(TodoReminderReason, String)> {
    let reason = reason(state, stale)?;
    let list = serde_json::to_string(&state.todos).unwrap_or_default();
    let text = match reason {
        TodoReminderReason::Initial => INITIAL.to_owned(),
        TodoReminderReason::Stale if state.todos.is_empty() => STALE.to_owned(),
        TodoReminderReason::Stale => format!("{STALE} It is now: {list}"),
        TodoReminderReason::Changed => format!(
            "The todo list has changed. Go on with what is in progress; do not mention this to the user. It is now: \
            {list}"
        ),
    };
    Some((reason, text))
}

/// The reminder that is due with the next request.
fn reason(state: &SessionState, stale: u32) -> Option<TodoReminderReason> {
    let is_first = state.main.messages.iter().all(|message| message.role == Role::User);
    if is_first && state.todos.is_empty() {
        Some(TodoReminderReason::Initial)
    } else if state.todos_changed && TodoCounts::of(&state.todos).is_open() {
        Some(TodoReminderReason::Changed)
    } else if state.rounds_without_todos == stale {
        Some(TodoReminderReason::Stale)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kode_base::ids::{SessionId, TurnId};
    use kode_base::mode::Mode;
    use kode_base::paths::AbsPath;
    use kode_base::todo::TodoStatus;
    use kode_config::preferences::TODO_REMINDER_ROUNDS;
    use kode_model::{Block, Message, Usage};

    fn state() -> SessionState {
        let cwd = AbsPath::new("/w").unwrap();
        let (session, roots, model) = (SessionId::generate(), vec![cwd.clone()], "main".to_owned());
        let mode = Mode::Default.into();
        let mut state =
            SessionState::open(&Record::Opened { session, roots, cwd, mode, model, forked_from: None })
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
        });
    }

    fn write(state: &mut SessionState, status: TodoStatus) {
        let todo = Todo { content: "a".into(), status, active_form: "b".into() };
        state.apply(Record::Todos { todos: vec![todo] });
    }

    /// What is due with each of so many requests, each of them answered.
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
            let due = reason(state, stale);
            answer(state, works);
            due
        };
        (0..count).map(round).collect()
    }

    #[test]
    fn the_first_request_and_the_eleventh_remind_and_a_written_list_begins_anew() {
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
