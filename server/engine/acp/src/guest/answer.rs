//! The requests and reports of a guest, in the words of this program.
//!
//! Rule: an answer allows one thing once. A lasting answer is never given to a guest, because the rules are kept here.

use agent_client_protocol_schema::v1::{
    ContentBlock, Error, ErrorCode, Implementation, PermissionOption, PermissionOptionKind,
    ReadTextFileRequest, ReadTextFileResponse, RequestId, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome, SessionId, SessionUpdate, ToolCallContent,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind, WriteTextFileRequest,
    WriteTextFileResponse,
};
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use kode_base::call::{ToolError, ToolErrorKind};
use kode_tool::guest::{
    GuestAction, GuestActionKind, GuestActionState, GuestAnswer, GuestDesk, GuestEdit, GuestReport,
};

use crate::message::failure;

/// The most bytes of the text of an action's result that are kept.
const MAX_RESULT: usize = 64 << 10;

/// The most bytes of an action's arguments that are kept.
const MAX_INPUT: usize = 64 << 10;

/// The most characters of a title.
const MAX_TITLE: usize = 500;

/// The most bytes of the changes of files that an action shows; of larger ones none is shown.
const MAX_EDITS: usize = 1 << 20;

/// The most files of an action.
const MAX_PATHS: usize = 100;

/// The name of an agent that takes every error of a read for a failure, and so makes no file that it may not read as empty first.
const READS_BEFORE_IT_MAKES: &str = "gemini-cli";

/// The answer to a read of a file that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingFile {
    /// The error of the protocol.
    Error,
    /// No text.
    Empty,
}

impl MissingFile {
    /// The answer that an agent copes with.
    pub(super) fn of(agent: Option<&Implementation>) -> Self {
        match agent.is_some_and(|agent| agent.name == READS_BEFORE_IT_MAKES) {
            true => Self::Empty,
            false => Self::Error,
        }
    }
}

/// The end of work for a guest.
pub(super) enum GuestReply {
    /// A request, with its answer.
    Request { id: RequestId, outcome: Result<Value, Error> },
    /// A report was carried out.
    Report,
}

/// The work on a request of a guest.
///
/// # Errors
/// The answer to a request that is not served so.
pub(super) fn of<'a>(
    desk: &'a dyn GuestDesk,
    (session, missing): (Option<&SessionId>, MissingFile),
    method: &str,
    params: Option<Value>,
) -> Result<BoxFuture<'a, Result<Value, Error>>, Error> {
    let params = params.unwrap_or_default();
    match method {
        "fs/read_text_file" => {
            let request: ReadTextFileRequest = read(params)?;
            is_of(session, &request.session_id)?;
            Ok(Box::pin(async move {
                let text = match desk.read(request.path, request.line, request.limit).await {
                    Err(fault) if fault.kind == ToolErrorKind::NotFound && missing == MissingFile::Empty => {
                        String::new()
                    }
                    read => read.map_err(error)?,
                };
                written(&ReadTextFileResponse::new(text))
            }))
        }
        "fs/write_text_file" => {
            let request: WriteTextFileRequest = read(params)?;
            is_of(session, &request.session_id)?;
            Ok(Box::pin(async move {
                desk.write(request.path, request.content).await.map_err(error)?;
                written(&WriteTextFileResponse::new())
            }))
        }
        "session/request_permission" => {
            let request: RequestPermissionRequest = read(params)?;
            is_of(session, &request.session_id)?;
            Ok(Box::pin(async move {
                let answer = desk.permit(action(request.tool_call)).await;
                written(&RequestPermissionResponse::new(outcome(answer, &request.options)))
            }))
        }
        _ => Err(failure(
            ErrorCode::MethodNotFound,
            &format!("`{method}` is not offered. The capabilities in `initialize` name the offered methods."),
        )),
    }
}

/// The report in an update; `None` for an update of no use here.
pub(super) fn report(update: SessionUpdate) -> Option<GuestReport> {
    match update {
        SessionUpdate::AgentMessageChunk(chunk) => text(chunk.content).map(GuestReport::Text),
        SessionUpdate::AgentThoughtChunk(chunk) => text(chunk.content).map(GuestReport::Thought),
        SessionUpdate::ToolCall(call) => {
            let fields = ToolCallUpdateFields::new()
                .kind(call.kind)
                .status(call.status)
                .title(call.title)
                .content(call.content)
                .locations(call.locations)
                .raw_input(call.raw_input)
                .raw_output(call.raw_output);
            Some(GuestReport::Action(action(ToolCallUpdate::new(call.tool_call_id, fields))))
        }
        SessionUpdate::ToolCallUpdate(update) => Some(GuestReport::Action(action(update))),
        _ => None,
    }
}

fn text(block: ContentBlock) -> Option<String> {
    match block {
        ContentBlock::Text(text) if !text.text.is_empty() => Some(text.text),
        _ => None,
    }
}

fn action(update: ToolCallUpdate) -> GuestAction {
    let ToolCallUpdate { tool_call_id, fields, .. } = update;
    let mut paths = Vec::new();
    let mut edits = Vec::new();
    let mut said = String::new();
    for content in fields.content.unwrap_or_default() {
        match content {
            ToolCallContent::Diff(diff) => {
                paths.push(diff.path.clone());
                edits.push(GuestEdit { path: diff.path, old: diff.old_text, new: diff.new_text });
            }
            ToolCallContent::Content(content) => {
                if let ContentBlock::Text(text) = content.content {
                    said.push_str(&text.text);
                }
            }
            _ => {}
        }
    }
    paths.extend(fields.locations.unwrap_or_default().into_iter().map(|location| location.path));
    let size: usize =
        edits.iter().map(|edit| edit.new.len() + edit.old.as_ref().map_or(0, String::len)).sum();
    if size > MAX_EDITS {
        edits.clear();
    }
    paths.sort();
    paths.dedup();
    paths.truncate(MAX_PATHS);
    GuestAction {
        id: tool_call_id.to_string(),
        title: fields.title.map(|title| title.chars().take(MAX_TITLE).collect()),
        kind: fields.kind.map(kind),
        state: fields.status.and_then(state),
        input: fields.raw_input.filter(|input| input.to_string().len() <= MAX_INPUT),
        paths,
        edits,
        text: (!said.is_empty()).then(|| cut(said)),
    }
}

/// A text of at most [`MAX_RESULT`] bytes.
fn cut(mut text: String) -> String {
    if text.len() > MAX_RESULT {
        let end = (0..=MAX_RESULT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        text.truncate(end);
        text.push('…');
    }
    text
}

fn kind(kind: ToolKind) -> GuestActionKind {
    match kind {
        ToolKind::Read => GuestActionKind::Read,
        ToolKind::Edit => GuestActionKind::Edit,
        ToolKind::Delete => GuestActionKind::Delete,
        ToolKind::Move => GuestActionKind::Move,
        ToolKind::Search => GuestActionKind::Search,
        ToolKind::Execute => GuestActionKind::Execute,
        ToolKind::Think => GuestActionKind::Think,
        ToolKind::Fetch => GuestActionKind::Fetch,
        _ => GuestActionKind::Other,
    }
}

fn state(status: ToolCallStatus) -> Option<GuestActionState> {
    match status {
        ToolCallStatus::Pending => Some(GuestActionState::Pending),
        ToolCallStatus::InProgress => Some(GuestActionState::Running),
        ToolCallStatus::Completed => Some(GuestActionState::Completed),
        ToolCallStatus::Failed => Some(GuestActionState::Failed),
        _ => None,
    }
}

/// The option that says no more than an answer does. Without an option for a single yes, a yes is a no.
fn outcome(answer: GuestAnswer, options: &[PermissionOption]) -> RequestPermissionOutcome {
    let option = |wanted: PermissionOptionKind| options.iter().find(|option| option.kind == wanted);
    let chosen = match answer {
        GuestAnswer::Cancelled => None,
        GuestAnswer::Allowed => {
            option(PermissionOptionKind::AllowOnce).or_else(|| option(PermissionOptionKind::RejectOnce))
        }
        GuestAnswer::Denied => {
            option(PermissionOptionKind::RejectOnce).or_else(|| option(PermissionOptionKind::RejectAlways))
        }
    };
    match chosen {
        Some(option) => {
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
        }
        None => RequestPermissionOutcome::Cancelled,
    }
}

fn is_of(session: Option<&SessionId>, named: &SessionId) -> Result<(), Error> {
    match session {
        Some(session) if session == named => Ok(()),
        _ => Err(failure(ErrorCode::InvalidParams, &format!("There is no session `{named}`."))),
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, Error> {
    serde_json::from_value(params)
        .map_err(|error| failure(ErrorCode::InvalidParams, &format!("The parameters do not fit: {error}.")))
}

fn written(answer: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(answer).map_err(|error| failure(ErrorCode::InternalError, &error.to_string()))
}

fn error(error: ToolError) -> Error {
    let code = match error.kind {
        ToolErrorKind::NotFound => ErrorCode::ResourceNotFound,
        ToolErrorKind::InvalidInput => ErrorCode::InvalidParams,
        ToolErrorKind::Cancelled => ErrorCode::RequestCancelled,
        ToolErrorKind::UnknownTool
        | ToolErrorKind::Forbidden
        | ToolErrorKind::Mismatch
        | ToolErrorKind::Conflict
        | ToolErrorKind::Denied
        | ToolErrorKind::Timeout
        | ToolErrorKind::Failed => ErrorCode::InternalError,
    };
    failure(code, &format!("{} {}", error.message, error.hint))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn options(kinds: &[&str]) -> Vec<PermissionOption> {
        let option = |kind: &&str| json!({ "optionId": format!("the-{kind}"), "name": kind, "kind": kind });
        serde_json::from_value(kinds.iter().map(option).collect()).unwrap()
    }

    #[test]
    fn a_yes_is_never_a_lasting_one() {
        let all = options(&["allow_always", "allow_once", "reject_once", "reject_always"]);
        let chosen = |answer, options: &[PermissionOption]| match outcome(answer, options) {
            RequestPermissionOutcome::Selected(selected) => selected.option_id.to_string(),
            _ => "cancelled".to_owned(),
        };
        assert_eq!(chosen(GuestAnswer::Allowed, &all), "the-allow_once");
        assert_eq!(chosen(GuestAnswer::Denied, &all), "the-reject_once");
        assert_eq!(chosen(GuestAnswer::Cancelled, &all), "cancelled");
        let lasting = options(&["allow_always", "reject_once"]);
        assert_eq!(chosen(GuestAnswer::Allowed, &lasting), "the-reject_once");
        let always = options(&["allow_always", "reject_always"]);
        assert_eq!(chosen(GuestAnswer::Denied, &always), "the-reject_always");
        assert_eq!(chosen(GuestAnswer::Allowed, &options(&["allow_always"])), "cancelled");
    }

    #[test]
    fn an_action_is_bounded_whatever_the_guest_reports() {
        let update = json!({
            "toolCallId": "1", "title": "t".repeat(2 * MAX_TITLE), "kind": "edit", "status": "completed",
            "rawInput": { "x": "y".repeat(MAX_INPUT) },
            "content": [
                { "type": "content", "content": { "type": "text", "text": "é".repeat(MAX_RESULT) } },
                { "type": "diff", "path": "/w/a", "newText": "x" },
                { "type": "of the future" },
            ],
            "locations": [{ "path": "/w/a" }, { "path": "/w/b" }],
        });
        let action = action(serde_json::from_value(update).unwrap());
        assert_eq!(action.title.unwrap().chars().count(), MAX_TITLE);
        assert_eq!(action.input, None);
        assert!(action.text.unwrap().len() <= MAX_RESULT + '…'.len_utf8());
        assert_eq!(action.paths, [std::path::PathBuf::from("/w/a"), "/w/b".into()]);
        assert_eq!(action.edits, [GuestEdit { path: "/w/a".into(), old: None, new: "x".to_owned() }]);
        let long = json!({
            "toolCallId": "1", "content": [{ "type": "diff", "path": "/w/a", "newText": "x".repeat(MAX_EDITS + 1) }],
        });
        assert_eq!(super::action(serde_json::from_value(long).unwrap()).edits, []);
        let (kind, state) = (GuestActionKind::Edit, GuestActionState::Completed);
        assert_eq!((action.kind, action.state), (Some(kind), Some(state)));
    }
}
