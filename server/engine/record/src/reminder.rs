//! The kinds of reminders that a request can carry.
//!
//! Rule: the set is closed; each kind can be turned off.

use kode_base::todo::TodoReminderReason;

/// The reminders for the model, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReminderKind {
    /// The mode is another one since the model last answered.
    ModeChanged,
    /// The user has said something while the turn ran.
    Steered,
    /// An edit failed because of the file's content.
    EditFailed,
    /// Files that were read were changed by others.
    FilesChanged,
    /// A query begins; there is something to say at the first of a session.
    SessionStart,
    /// The todo list has changed.
    TodoChanged,
    /// The todo list was not written for a while.
    TodoStale,
}

/// Kinds that share their bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReminderCategory {
    /// The user's changes of the work.
    User,
    /// The content of files.
    Files,
    /// The todo list.
    Todos,
}

impl ReminderKind {
    /// The category whose bounds it shares.
    #[must_use]
    pub fn category(self) -> ReminderCategory {
        match self {
            Self::ModeChanged | Self::Steered => ReminderCategory::User,
            Self::EditFailed | Self::FilesChanged => ReminderCategory::Files,
            Self::SessionStart | Self::TodoChanged | Self::TodoStale => ReminderCategory::Todos,
        }
    }

    /// The kind of a reminder about the todo list.
    pub fn of_todos(reason: TodoReminderReason) -> Self {
        match reason {
            TodoReminderReason::Initial => Self::SessionStart,
            TodoReminderReason::Changed => Self::TodoChanged,
            TodoReminderReason::Stale => Self::TodoStale,
        }
    }
}

impl ReminderCategory {
    /// The most reminders of a turn, and of a session as long as it is live.
    #[must_use]
    pub fn limits(self) -> (u32, u32) {
        match self {
            Self::User | Self::Files => (50, 1_000),
            Self::Todos => (5, 10),
        }
    }
}
