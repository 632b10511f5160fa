//! Actions of tools on the team of a session.
//!
//! Rule: plain data; the loop carries them out, under the lock of the session.

use std::time::Duration;

/// An action on the team of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TeamAction {
    /// Sends a message.
    Send {
        /// The name of a member, or [`kode_base::team::EVERYONE`].
        to: String,
        /// The text.
        text: String,
    },
    /// Waits for a message.
    Wait {
        /// The sender that is waited for; `None` for any.
        from: Option<String>,
        /// The most time of the wait.
        limit: Duration,
    },
    /// Shows or changes the shared list.
    Tasks(TaskAction),
}

/// An action on the shared list of tasks. Tasks go by their numbers, from 1 on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskAction {
    /// Shows it.
    List,
    /// Adds a task.
    Add {
        /// Its topic.
        title: String,
        /// The tasks that have to be completed before it.
        blocked_by: Vec<u32>,
    },
    /// Takes a task for the caller.
    Claim(u32),
    /// Completes a task of the caller.
    Complete(u32),
    /// Gives a task of the caller back.
    Release(u32),
    /// Replaces the tasks that have to be completed before a task.
    Block {
        /// The task.
        task: u32,
        /// The tasks before it.
        blocked_by: Vec<u32>,
    },
}
