//! Background commands of a session, as its journal and its clients have them.
//!
//! Rule: plain data.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use kode_base::ids::{CallId, TaskId};
use kode_process::shell::TaskEnd;

/// A background command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundTask {
    /// Its id, unique within the session.
    pub id: TaskId,
    /// The call that started it.
    pub call: CallId,
    /// Its command line in short.
    pub title: String,
    /// When it was started.
    pub started: Timestamp,
    /// When and how it ended; nothing while it runs.
    pub ended: Option<(Timestamp, TaskEnd)>,
}

/// An event of a background command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "camelCase")]
pub enum TaskEntry {
    /// It was started.
    Started {
        /// Its id.
        task: TaskId,
        /// The call that started it.
        call: CallId,
        /// Its command line in short.
        title: String,
        /// When.
        at: Timestamp,
    },
    /// It ended.
    Ended {
        /// Its id.
        task: TaskId,
        /// How.
        end: TaskEnd,
        /// When.
        at: Timestamp,
    },
    /// The model knows how it ended.
    Told {
        /// Its id.
        task: TaskId,
    },
}
