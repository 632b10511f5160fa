//! How requests fail: the `data` of the error, and its code.
//!
//! Rule: clients act on `data.kind` and show the message and `data.hint`; the code is for those who know no more
//! than JSON-RPC.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `data` of every error that an `agent/*` request is answered with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorData {
    /// The kind of failure, with its facts.
    #[serde(flatten)]
    pub kind: ErrorKind,
    /// The next step, for people.
    pub hint: String,
}

/// The kinds of failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ErrorKind {
    /// No session of that id in this workspace, or it is closed.
    UnknownSession,
    /// No permission prompt of that id, or it is long closed.
    UnknownPermission,
    /// No question of that id, or it is long closed.
    UnknownQuestion,
    /// Nothing of that id waits in the queue, or for the running turn.
    UnknownPrompt,
    /// No call of that id runs or waits in this session; it may have ended.
    UnknownCall,
    /// No background command of that id in this session.
    UnknownTask,
    /// The session cannot do this now: its queue is full, a turn runs, or another editor has it.
    SessionBusy,
    /// The server that writes the session continues writing it.
    TakeOverDeclined {
        /// Why.
        reason: DeclineReason,
        /// Its process; 0 when that is not known.
        pid: u32,
    },
    /// The server that writes the session does not answer.
    WriterSilent {
        /// Its process; 0 when that is not known.
        pid: u32,
    },
    /// No hunk of that id in this session.
    UnknownHunk,
    /// No act of that id in this session, or it was taken back already.
    UnknownResolution,
    /// No checkpoint of that id in this session.
    UnknownCheckpoint,
    /// A file that is not open and has no hunks.
    UnknownDocument,
    /// The request makes sense for none of what it names.
    NothingToDo,
    /// Another client answered first.
    AlreadyResolved {
        /// Which surface or client was first, `cancel`, or `turn` for a prompt that has started.
        by: String,
    },
    /// A parameter is missing or makes no sense.
    InvalidParams {
        /// Which one, for example `input[0].uri`; empty for the parameters as a whole.
        path: String,
    },
    /// The model profile is unknown, or lacks its key or address.
    ModelNotConfigured,
    /// The model did not answer, or gave no answer in text; the message has the reason.
    ModelFailed,
    /// No git worktree can be made for the session; the message has the reason.
    WorktreeUnavailable,
    /// The turn limit is zero: no prompt is taken.
    ChatDisabled,
    /// The session's journal cannot be read or written; the message has the system's words.
    StorageFailure,
    /// The session's journal holds no record that this build can read. It is left as it is.
    Corrupted {
        /// Lines that could not be read.
        skipped: u64,
    },
    /// A fault of the server.
    Internal,
    /// A kind that this build does not know.
    #[serde(other, skip_serializing)]
    #[schemars(skip)]
    Unknown,
}

/// Why a server continues writing a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DeclineReason {
    /// A turn runs.
    TurnRunning,
    /// Commands run in the background and would end.
    CommandsRunning,
}

/// The codes of [`ErrorKind`]. Those of our own lie in the range that JSON-RPC keeps for servers (-32099 to -32000)
/// and LSP leaves free, and keep away from the two codes LSP has put there (-32002 and -32001).
pub mod code {
    /// [`ErrorKind::InvalidParams`](super::ErrorKind::InvalidParams), as JSON-RPC has it.
    pub const INVALID_PARAMS: i64 = -32602;
    /// [`ErrorKind::Internal`](super::ErrorKind::Internal), as JSON-RPC has it.
    pub const INTERNAL: i64 = -32603;
    /// [`ErrorKind::UnknownSession`](super::ErrorKind::UnknownSession).
    pub const UNKNOWN_SESSION: i64 = -32010;
    /// [`ErrorKind::UnknownPermission`](super::ErrorKind::UnknownPermission).
    pub const UNKNOWN_PERMISSION: i64 = -32011;
    /// [`ErrorKind::UnknownCall`](super::ErrorKind::UnknownCall).
    pub const UNKNOWN_CALL: i64 = -32012;
    /// [`ErrorKind::SessionBusy`](super::ErrorKind::SessionBusy).
    pub const SESSION_BUSY: i64 = -32013;
    /// [`ErrorKind::AlreadyResolved`](super::ErrorKind::AlreadyResolved).
    pub const ALREADY_RESOLVED: i64 = -32014;
    /// [`ErrorKind::ModelNotConfigured`](super::ErrorKind::ModelNotConfigured).
    pub const MODEL_NOT_CONFIGURED: i64 = -32015;
    /// [`ErrorKind::StorageFailure`](super::ErrorKind::StorageFailure).
    pub const STORAGE_FAILURE: i64 = -32016;
    /// [`ErrorKind::UnknownHunk`](super::ErrorKind::UnknownHunk).
    pub const UNKNOWN_HUNK: i64 = -32017;
    /// [`ErrorKind::UnknownResolution`](super::ErrorKind::UnknownResolution).
    pub const UNKNOWN_RESOLUTION: i64 = -32018;
    /// [`ErrorKind::UnknownCheckpoint`](super::ErrorKind::UnknownCheckpoint).
    pub const UNKNOWN_CHECKPOINT: i64 = -32019;
    /// [`ErrorKind::UnknownDocument`](super::ErrorKind::UnknownDocument).
    pub const UNKNOWN_DOCUMENT: i64 = -32020;
    /// [`ErrorKind::NothingToDo`](super::ErrorKind::NothingToDo).
    pub const NOTHING_TO_DO: i64 = -32021;
    /// [`ErrorKind::UnknownQuestion`](super::ErrorKind::UnknownQuestion).
    pub const UNKNOWN_QUESTION: i64 = -32022;
    /// [`ErrorKind::UnknownTask`](super::ErrorKind::UnknownTask).
    pub const UNKNOWN_TASK: i64 = -32023;
    /// [`ErrorKind::UnknownPrompt`](super::ErrorKind::UnknownPrompt).
    pub const UNKNOWN_PROMPT: i64 = -32030;
    /// [`ErrorKind::TakeOverDeclined`](super::ErrorKind::TakeOverDeclined).
    pub const TAKE_OVER_DECLINED: i64 = -32060;
    /// [`ErrorKind::WriterSilent`](super::ErrorKind::WriterSilent).
    pub const WRITER_SILENT: i64 = -32061;
    /// [`ErrorKind::Corrupted`](super::ErrorKind::Corrupted).
    pub const CORRUPTED: i64 = -32062;
    /// [`ErrorKind::ChatDisabled`](super::ErrorKind::ChatDisabled).
    pub const CHAT_DISABLED: i64 = -32025;
    /// [`ErrorKind::ModelFailed`](super::ErrorKind::ModelFailed).
    pub const MODEL_FAILED: i64 = -32026;
    /// [`ErrorKind::WorktreeUnavailable`](super::ErrorKind::WorktreeUnavailable).
    pub const WORKTREE_UNAVAILABLE: i64 = -32027;
}

impl ErrorKind {
    /// The JSON-RPC code that goes with the kind.
    #[must_use]
    pub fn code(&self) -> i64 {
        match self {
            Self::UnknownSession => code::UNKNOWN_SESSION,
            Self::UnknownPermission => code::UNKNOWN_PERMISSION,
            Self::UnknownQuestion => code::UNKNOWN_QUESTION,
            Self::UnknownCall => code::UNKNOWN_CALL,
            Self::UnknownTask => code::UNKNOWN_TASK,
            Self::UnknownPrompt => code::UNKNOWN_PROMPT,
            Self::SessionBusy => code::SESSION_BUSY,
            Self::TakeOverDeclined { .. } => code::TAKE_OVER_DECLINED,
            Self::WriterSilent { .. } => code::WRITER_SILENT,
            Self::UnknownHunk => code::UNKNOWN_HUNK,
            Self::UnknownResolution => code::UNKNOWN_RESOLUTION,
            Self::UnknownCheckpoint => code::UNKNOWN_CHECKPOINT,
            Self::UnknownDocument => code::UNKNOWN_DOCUMENT,
            Self::NothingToDo => code::NOTHING_TO_DO,
            Self::AlreadyResolved { .. } => code::ALREADY_RESOLVED,
            Self::InvalidParams { .. } => code::INVALID_PARAMS,
            Self::ModelNotConfigured => code::MODEL_NOT_CONFIGURED,
            Self::ModelFailed => code::MODEL_FAILED,
            Self::WorktreeUnavailable => code::WORKTREE_UNAVAILABLE,
            Self::ChatDisabled => code::CHAT_DISABLED,
            Self::StorageFailure => code::STORAGE_FAILURE,
            Self::Corrupted { .. } => code::CORRUPTED,
            Self::Internal | Self::Unknown => code::INTERNAL,
        }
    }
}
