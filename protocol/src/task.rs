//! Commands that run in the background, and the whole output of commands.
//!
//! Rule: what runs is reported by events and is in the snapshot; output is asked for page by page, because it may be long.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{CallId, SessionId, TaskId, Timestamp};

/// A command in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackgroundTask {
    /// Its id.
    pub task_id: TaskId,
    /// The call that started it.
    pub call_id: CallId,
    /// Its command line in short.
    pub title: String,
    /// When it was started, or moved to the background.
    pub started_at: Timestamp,
    /// When and how it ended; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<BackgroundExit>,
}

/// The end of a command in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackgroundExit {
    /// When.
    pub ended_at: Timestamp,
    /// How.
    pub status: BackgroundStatus,
    /// Its exit code, when it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The number of the signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why it could not be run to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How a command in the background ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BackgroundStatus {
    /// By itself, with an exit code.
    Exited,
    /// By a signal of another process.
    Signaled,
    /// The model or a client ended it.
    Killed,
    /// Its session or the server ended.
    EndedWithSession,
    /// It could not be run to its end.
    Failed,
}

/// The session of the background commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListTasksParams {
    /// The session.
    pub session_id: SessionId,
}

/// The background commands of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListTasksResult {
    /// All of them, also those that have ended, oldest first.
    pub tasks: Vec<BackgroundTask>,
}

/// Which background command is to end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StopTaskParams {
    /// The session.
    pub session_id: SessionId,
    /// The background command.
    pub task_id: TaskId,
}

/// Which call's command is to run on in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MoveToBackgroundParams {
    /// The session.
    pub session_id: SessionId,
    /// The call of Bash that runs the command.
    pub call_id: CallId,
}

/// The background command that a call's command has become.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MoveToBackgroundResult {
    /// Its id.
    pub task_id: TaskId,
}

/// Which part of which output is wanted. Exactly one of `callId` and `taskId` is given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadOutputParams {
    /// The session.
    pub session_id: SessionId,
    /// The call: of a command its whole output as far as it is kept, of any other its result as the model got it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// The background command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Where to begin, in bytes of UTF-8: 0, or `nextOffset` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The most bytes wanted; the server gives at most 65536.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A page of an output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadOutputResult {
    /// The text, whole characters.
    pub text: String,
    /// Where it begins, in bytes: later than asked for when that was inside a character or past the end.
    pub offset: u64,
    /// Where the next page begins.
    pub next_offset: u64,
    /// How many bytes there are by now.
    pub total_bytes: u64,
    /// Whether the command is over: then nothing comes after `totalBytes`.
    pub complete: bool,
}
