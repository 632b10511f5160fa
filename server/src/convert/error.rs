//! From the engine's errors to those of the wire.
//!
//! Rule: every failed request says what happened in `message`, what to do next in `data.hint`, and what a program can
//! go by in `data.kind`.

use std::io;

use kode_engine::agent::edits::apply_text::ApplyTextError;
use kode_engine::agent::edits::review::ResolveError;
use kode_engine::agent::engine::{ImportFailure, RelayError, SessionError};
use kode_engine::agent::history::paging::PagingError;
use kode_engine::agent::session::drafts::DraftError;
use kode_engine::agent::session::prompts::SubmitError;
use kode_engine::agent::session::side::SideError;
use kode_engine::agent::session::tasks::{MoveCallError, OutputError};
use kode_engine::agent::sessions::BadQuery;
use kode_engine::agent::state::queue::QueueError;
use kode_engine::agent::state::team::TeamError;
use kode_engine::agent::state::titles::TitleError;
use kode_engine::base::ids::{PermissionId, QuestionId};
use kode_engine::base::question::ReplyError;
use kode_engine::config::policy::{KeepRuleError, ModeDisabled};
use kode_engine::config::settings::{SetError, SettingsError};
use kode_engine::journal::lease::{LeaseRefusal, SessionWriter};
use kode_engine::model::{ModelError, ModelErrorKind};
use kode_engine::permission::PromptRespondError;
use kode_engine::process::worktree::WorktreeError;
use kode_protocol::{DeclineReason, ErrorData, ErrorKind};
use tower_lsp::jsonrpc::{Error, ErrorCode};

/// A failed request.
pub(crate) type RequestError = Error;

fn failure(kind: ErrorKind, message: String, hint: impl Into<String>) -> RequestError {
    let code = ErrorCode::from(kind.code());
    let data = serde_json::to_value(ErrorData { kind, hint: hint.into() }).ok();
    Error { code, message: message.into(), data }
}

/// A parameter does not fit; an empty path means the parameters as a whole.
pub(crate) fn invalid_params(path: &str, message: &str) -> RequestError {
    let wrong = if path.is_empty() { "the parameters".to_owned() } else { format!("`{path}`") };
    let hint = format!("Correct {wrong} and send the request again.");
    failure(ErrorKind::InvalidParams { path: path.to_owned() }, message.to_owned(), hint)
}

/// A chat document cannot be sent as it is.
pub(crate) fn chat(message: &str, hint: &str) -> RequestError {
    failure(ErrorKind::InvalidParams { path: "uri".to_owned() }, message.to_owned(), hint)
}

/// Not now.
pub(crate) fn busy(message: &str, hint: &str) -> RequestError {
    failure(ErrorKind::SessionBusy, message.to_owned(), hint)
}

/// A message of the user was not sent.
pub(crate) fn team(error: &TeamError) -> RequestError {
    let of = |path: &str| ErrorKind::InvalidParams { path: path.to_owned() };
    let (kind, hint) = match error {
        TeamError::Empty | TeamError::TooLong(_) => (of("text"), "Write 1 to 8192 bytes."),
        TeamError::Full(_) => (ErrorKind::SessionBusy, "Send it once the sub-agent has read some of them."),
        TeamError::ByPrompt | TeamError::Alone => {
            (ErrorKind::NothingToDo, "Write to the main conversation instead.")
        }
        TeamError::NoMember
        | TeamError::Unknown { .. }
        | TeamError::Ended { .. }
        | TeamError::Oneself(_)
        | TeamError::Taken { .. }
        | TeamError::Cycle(_)
        | TeamError::Task(_) => (of("to"), "Name a sub-agent that is at work in the background."),
    };
    failure(kind, format!("the message was not sent: {error}"), hint)
}

/// A fault of the server.
pub(crate) fn internal(message: &str) -> RequestError {
    failure(ErrorKind::Internal, message.to_owned(), "Try again; the log has the details.")
}

/// There is no place for the user's state.
pub(crate) fn no_home(message: &str) -> RequestError {
    failure(ErrorKind::StorageFailure, message.to_owned(), "Set KODE_LS_HOME to a folder you can write to.")
}

/// The changes of a session that another server writes cannot be read.
pub(crate) fn followed_changes(error: io::Error) -> RequestError {
    failure(
        ErrorKind::StorageFailure,
        format!("the changes of the session cannot be read from its journal: {error}"),
        "Check the session's folder and try again, or review them in the editor that has the session open.",
    )
}

/// A session cannot be had.
pub(crate) fn session(error: SessionError) -> RequestError {
    let message = error.to_string();
    match error {
        SessionError::Unknown(_) => {
            failure(ErrorKind::UnknownSession, message, "`agent/session/list` names the sessions there are.")
        }
        SessionError::Running(_) => failure(
            ErrorKind::SessionBusy,
            message,
            "Cancel the turn with `agent/turn/cancel`, or wait for it.",
        ),
        SessionError::Title(TitleError::Closed) => {
            failure(ErrorKind::UnknownSession, message, "Try again: the session was just closed.")
        }
        SessionError::Title(TitleError::Empty | TitleError::TooLong) => invalid_params("title", &message),
        SessionError::NoFolder => invalid_params(
            "workspaceFolder",
            "there is no folder to work in: open a folder or file, or name one",
        ),
        SessionError::Storage { source, .. } if source.kind() == std::io::ErrorKind::ResourceBusy => failure(
            ErrorKind::SessionBusy,
            message,
            "Close the session in the other editor, or start a new one.",
        ),
        SessionError::Followed { by: Some(_) } => failure(
            ErrorKind::SessionBusy,
            message,
            "`agent/session/takeOver` (or the command `kode.takeOver`) continues it in this editor.",
        ),
        SessionError::Followed { by: None } => failure(
            ErrorKind::SessionBusy,
            message,
            "A prompt, or `agent/session/takeOver`, continues it in this editor.",
        ),
        SessionError::Declined { by, why } => {
            let reason = match why {
                LeaseRefusal::TurnRunning => DeclineReason::TurnRunning,
                LeaseRefusal::CommandsRunning => DeclineReason::CommandsRunning,
            };
            let kind = ErrorKind::TakeOverDeclined { reason, pid: by.map_or(0, |by| by.pid) };
            failure(kind, message, "Wait for it, or take the session over with `force`, which cancels it.")
        }
        SessionError::Silent { by } => {
            let pid = by.as_ref().map_or(0, |by| by.pid);
            let process = by.as_deref().map_or_else(|| "process".to_owned(), SessionWriter::process);
            let hint = format!(
                "The {process} may be stopped or hanging. Resume it or end it (`kill {pid}`), then \
                     take the session over again. Everything already written is kept."
            );
            failure(ErrorKind::WriterSilent { pid }, message, hint)
        }
        SessionError::Storage { .. } => failure(
            ErrorKind::StorageFailure,
            message,
            "Check the folder, its permissions and the free space.",
        ),
        SessionError::Corrupted { skipped, .. } => failure(
            ErrorKind::Corrupted { skipped },
            message,
            "Start a new session, or restore a copy of the journal and load it again. The damaged journal is kept.",
        ),
        SessionError::Worktree(WorktreeError::NotPlain { .. }) => failure(
            ErrorKind::WorktreeUnavailable,
            message,
            "Turn the sandbox on, or start the session in the workspace itself.",
        ),
        SessionError::Worktree(_) => failure(
            ErrorKind::WorktreeUnavailable,
            message,
            "Worktrees need a git repository with a commit. Start the session in the workspace itself.",
        ),
        SessionError::Mode(error) => mode(error),
        SessionError::Model(error) => model(&error),
    }
}

/// Something about an MCP server cannot be done.
pub(crate) fn mcp(error: kode_engine::config::mcp::fault::McpFailure) -> RequestError {
    failure(ErrorKind::InvalidParams { path: "server".to_owned() }, error.message, error.hint)
}

/// Nothing was imported.
pub(crate) fn import(error: ImportFailure) -> RequestError {
    match error {
        ImportFailure::Session(error) => session(error),
        ImportFailure::Folder(error) => invalid_params("from", &error.to_string()),
    }
}

/// Nothing is searched.
pub(crate) fn query(error: &BadQuery) -> RequestError {
    let path = match error {
        BadQuery::Empty | BadQuery::TooLong | BadQuery::Words(_) => "query",
        BadQuery::Cursor => "cursor",
    };
    invalid_params(path, &error.to_string())
}

/// A mode is switched off.
pub(crate) fn mode(error: ModeDisabled) -> RequestError {
    invalid_params("mode", &error.to_string())
}

/// A model cannot be used.
pub(crate) fn model(error: &ModelError) -> RequestError {
    failure(ErrorKind::ModelNotConfigured, error.to_string(), error.hint())
}

/// A side question has no answer.
pub(crate) fn side(error: SideError) -> RequestError {
    let message = error.to_string();
    match error {
        SideError::Empty | SideError::TooLong => invalid_params("question", &message),
        SideError::Busy => {
            failure(ErrorKind::SessionBusy, message, "Wait for one of the answers, or cancel one.")
        }
        SideError::Closed => {
            failure(ErrorKind::UnknownSession, message, "Load the session with `agent/session/load`.")
        }
        SideError::ChatDisabled => submit(SubmitError::ChatDisabled),
        SideError::Model(error) if error.kind == ModelErrorKind::Configuration => model(&error),
        SideError::Model(error) => failure(ErrorKind::ModelFailed, message, error.hint()),
        SideError::NoText(_) => {
            failure(ErrorKind::ModelFailed, message, "Ask in other words, or ask it as a prompt.")
        }
        SideError::Refused(_) => invalid_params("question", &message),
        SideError::Cancelled => {
            Error { code: ErrorCode::RequestCancelled, message: message.into(), data: None }
        }
        SideError::Broken => internal(&message),
    }
}

/// A prompt was not taken.
pub(crate) fn submit(error: SubmitError) -> RequestError {
    match error {
        SubmitError::Empty => invalid_params("input", "the prompt is empty"),
        SubmitError::QueueFull | SubmitError::SteeringFull => {
            failure(ErrorKind::SessionBusy, error.to_string(), "Wait for the turn, or cancel it.")
        }
        SubmitError::ChatDisabled => failure(
            ErrorKind::ChatDisabled,
            error.to_string(),
            "Set `maxTurns` to another number, or to -1 for the built-in limit.",
        ),
        SubmitError::SideQuestion => failure(
            ErrorKind::InvalidParams { path: "input".to_owned() },
            error.to_string(),
            "Ask it with `agent/session/ask`, or with the command `kode.btw`.",
        ),
        SubmitError::Closed => failure(
            ErrorKind::UnknownSession,
            error.to_string(),
            "Load the session with `agent/session/load`.",
        ),
    }
}

/// The queue was not changed.
pub(crate) fn queue(error: QueueError) -> RequestError {
    let message = error.to_string();
    match error {
        QueueError::Unknown(_) => failure(
            ErrorKind::UnknownPrompt,
            message,
            "`agent/session/load` lists the queued prompts; this one may have been removed.",
        ),
        QueueError::Begun(_) => failure(
            ErrorKind::AlreadyResolved { by: "turn".to_owned() },
            message,
            "Send it with `agent/turn/start`.",
        ),
        QueueError::Empty => invalid_params("op.text", &message),
        QueueError::Full => {
            failure(ErrorKind::SessionBusy, message, "Wait until the turn has read the earlier messages.")
        }
        QueueError::Closed => {
            failure(ErrorKind::UnknownSession, message, "Load the session with `agent/session/load`.")
        }
    }
}

/// An unsent prompt was not kept.
pub(crate) fn draft(error: DraftError) -> RequestError {
    let message = error.to_string();
    match error {
        DraftError::TooLong { .. } => invalid_params("text", &message),
        DraftError::Closed => {
            failure(ErrorKind::UnknownSession, message, "Load the session with `agent/session/load`.")
        }
    }
}

/// An answer was not taken.
pub(crate) fn respond(error: PromptRespondError) -> RequestError {
    let message = error.to_string();
    match error {
        PromptRespondError::Unknown(_) => failure(
            ErrorKind::UnknownPermission,
            message,
            "`agent/permission/list` names the prompts that wait.",
        ),
        PromptRespondError::AlreadyResolved { by, .. } => {
            failure(ErrorKind::AlreadyResolved { by }, message, "This prompt was already answered.")
        }
        PromptRespondError::Unfit(_) => invalid_params("scope", &message),
    }
}

/// An answer to a question was not taken.
pub(crate) fn reply(error: ReplyError) -> RequestError {
    let message = error.to_string();
    match error {
        ReplyError::Unknown(_) => failure(
            ErrorKind::UnknownQuestion,
            message,
            "`agent/session/load` names the questions that wait.",
        ),
        ReplyError::AlreadyResolved { by, .. } => {
            failure(ErrorKind::AlreadyResolved { by }, message, "This question was already answered.")
        }
        ReplyError::Unfit(unfit) => invalid_params(&unfit.path, &message),
    }
}

/// The process that has the session open did not accept an answer; `unknown` is the kind for an id of which nothing waits.
pub(crate) fn relay(error: RelayError, unknown: ErrorKind) -> RequestError {
    let message = error.to_string();
    match error {
        RelayError::Unknown { .. } => {
            failure(unknown, message, "It was already answered, or its call was cancelled.")
        }
        RelayError::AlreadyResolved { by, .. } => {
            failure(ErrorKind::AlreadyResolved { by }, message, "It is already closed.")
        }
        RelayError::Unfit { .. } => invalid_params("scope", &message),
        RelayError::Unanswered => failure(
            ErrorKind::SessionBusy,
            message,
            "Answer in the window that has the session open, or take the session over.",
        ),
    }
}

/// No question of that id waits, or none at all.
pub(crate) fn unknown_question(id: Option<&QuestionId>) -> RequestError {
    match id {
        Some(id) => reply(ReplyError::Unknown(id.clone())),
        None => failure(
            ErrorKind::UnknownQuestion,
            "no question waits".to_owned(),
            "Nothing to do until the agent asks.",
        ),
    }
}

/// A rule was not written or removed.
pub(crate) fn keep(error: &KeepRuleError) -> RequestError {
    let message = error.to_string();
    match error {
        KeepRuleError::BadRule { .. } => invalid_params("rule", &message),
        KeepRuleError::NoSettings | KeepRuleError::File(_) => {
            failure(ErrorKind::StorageFailure, message, "Nothing was changed. Check the file and try again.")
        }
    }
}

/// A setting was not written.
pub(crate) fn set(error: &SetError) -> RequestError {
    let message = error.to_string();
    match error {
        SetError::Unknown { .. } | SetError::Unused { .. } => invalid_params("key", &message),
        SetError::Value { .. } => invalid_params("value", &message),
        SetError::NotThere { .. } | SetError::File(SettingsError::NoPlace(_)) => {
            invalid_params("scope", &message)
        }
        SetError::File(_) => {
            failure(ErrorKind::StorageFailure, message, "Nothing was changed. Check the file and try again.")
        }
    }
}

/// No permission prompt of that id waits, or none at all.
pub(crate) fn unknown_permission(id: Option<&PermissionId>) -> RequestError {
    match id {
        Some(id) => respond(PromptRespondError::Unknown(id.clone())),
        None => failure(
            ErrorKind::UnknownPermission,
            "no permission prompt waits".to_owned(),
            "Nothing to do until the agent asks.",
        ),
    }
}

/// An act on hunks or on a checkpoint was not begun.
pub(crate) fn resolve(error: ResolveError) -> RequestError {
    let message = error.to_string();
    match error {
        ResolveError::UnknownHunk(_) => {
            failure(ErrorKind::UnknownHunk, message, "`agent/edits/list` names the hunks there are.")
        }
        ResolveError::UnknownResolution => failure(
            ErrorKind::UnknownResolution,
            message,
            "It was already taken back, or its id belongs to another session.",
        ),
        ResolveError::Nothing { .. } => failure(
            ErrorKind::NothingToDo,
            message,
            "`agent/edits/list` lists the current state of the hunks.",
        ),
        ResolveError::UnknownCheckpoint(_) => failure(
            ErrorKind::UnknownCheckpoint,
            message,
            "`agent/checkpoint/list` names the checkpoints there are.",
        ),
        ResolveError::FilesOff => invalid_params("what", &message),
        ResolveError::Busy => failure(
            ErrorKind::SessionBusy,
            message,
            "Cancel the turn with `agent/turn/cancel`, or wait for it.",
        ),
        ResolveError::Closed => {
            failure(ErrorKind::UnknownSession, message, "Load the session with `agent/session/load`.")
        }
    }
}

/// A text was not put into a document.
pub(crate) fn apply_text(error: ApplyTextError) -> RequestError {
    let message = error.to_string();
    match error {
        ApplyTextError::Outside(_) => invalid_params("uri", &format!("{message}: open it first")),
        ApplyTextError::Same(_) => {
            failure(ErrorKind::NothingToDo, message, "The document already has this text.")
        }
        ApplyTextError::TooLong(_) => invalid_params("text", &message),
        ApplyTextError::Read(_) | ApplyTextError::Apply(_) => invalid_params("uri", &message),
        ApplyTextError::Closed => {
            failure(ErrorKind::UnknownSession, message, "Load the session with `agent/session/load`.")
        }
    }
}

/// An output or a background command cannot be had.
pub(crate) fn output(error: OutputError) -> RequestError {
    let message = error.to_string();
    match error {
        OutputError::UnknownCall(_) => failure(
            ErrorKind::UnknownCall,
            message,
            "Ask again when the call has ended, or with an id of this session's items.",
        ),
        OutputError::UnknownTask(_) => failure(
            ErrorKind::UnknownTask,
            message,
            "`agent/tasks/list` names the background commands there are.",
        ),
        OutputError::Storage(_) => failure(
            ErrorKind::StorageFailure,
            message,
            "Check the server's state folder and its permissions.",
        ),
    }
}

/// A command was not moved to the background.
pub(crate) fn move_call(error: &MoveCallError) -> RequestError {
    let (kind, hint) = match error {
        MoveCallError::Unknown(_) => {
            (ErrorKind::UnknownCall, "Give the `callId` of a call of this session that runs.")
        }
        MoveCallError::Ended(_) => (ErrorKind::UnknownCall, "There is nothing to move: its result is there."),
        MoveCallError::NotRunning(_) => {
            (ErrorKind::UnknownCall, "Try again once it runs; where it has just ended its result comes now.")
        }
        MoveCallError::InBackground(_) => {
            (ErrorKind::NothingToDo, "`agent/output/read` shows its output, `agent/tasks/stop` ends it.")
        }
        MoveCallError::OtherTool(_) => {
            (ErrorKind::NothingToDo, "Wait for the call, or stop it with `agent/tool/cancel`.")
        }
        MoveCallError::NoPlace(_) => (
            ErrorKind::SessionBusy,
            "Stop one of the commands in the background first, or wait for one to end.",
        ),
    };
    failure(kind, format!("the command was not moved to the background: {error}"), hint)
}

/// A part of a conversation cannot be had.
pub(crate) fn paging(error: PagingError) -> RequestError {
    let message = error.to_string();
    match error {
        PagingError::UnknownAgent(_) => invalid_params("agentId", &message),
        PagingError::UnknownItem(_) => invalid_params("before", &message),
        PagingError::UnknownWindow(_) => invalid_params("windowId", &message),
        PagingError::Storage(_) => failure(
            ErrorKind::StorageFailure,
            message,
            "Check the server's state folder, its permissions and the free space.",
        ),
    }
}

/// No session has hunks in that document, and it is not open.
pub(crate) fn unknown_document(uri: &str) -> RequestError {
    failure(
        ErrorKind::UnknownDocument,
        format!("`{uri}` is not open, and no live session has hunks in it"),
        "The file has no pending changes; read it from disk.",
    )
}

/// No unfinished call of that id.
pub(crate) fn unknown_call(id: &str) -> RequestError {
    failure(
        ErrorKind::UnknownCall,
        format!("there is no unfinished call `{id}` in this session"),
        "The call has ended, or its id belongs to another session.",
    )
}
