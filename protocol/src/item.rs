//! The items a transcript is made of.
//!
//! Rule: an item carries facts; how it looks is the client's. An item that comes again under its id replaces the
//! one before, and streamed text is appended to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::commands::CommandKind;
use crate::text::{AgentId, CallId, ItemId, SessionId, Timestamp, TurnId, Uri};

/// One item of the transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Its id.
    pub item_id: ItemId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The sub-agent whose transcript it is in; absent for the session's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// When it was added.
    pub timestamp: Timestamp,
    /// Its kind.
    pub body: ItemBody,
}

/// The kind of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ItemBody {
    /// The user's prompt.
    UserMessage(UserMessage),
    /// The model's text.
    AgentMessage(AgentMessage),
    /// The model's reasoning.
    Thinking(Thinking),
    /// A tool call.
    ToolCall(Box<ToolCall>),
    /// Information for the user that is no message.
    Notice(Notice),
    /// The output of a command that no model gets.
    Command(CommandOutput),
    /// A kind of item that this build does not know.
    #[serde(other, skip_serializing)]
    #[schemars(skip)]
    Unknown,
}

/// The user's prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserMessage {
    /// The text.
    pub text: String,
    /// Its attachments for the model; sent when its turn has started and they were looked up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Whether it went to a running turn: it started none, and there is no checkpoint before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub steered: bool,
    /// The command that it was, told when its turn has started; absent for a prompt in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandUse>,
}

/// The command that a prompt was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandUse {
    /// Its name, without the `/`.
    pub name: String,
    /// The text behind it.
    pub arguments: String,
    /// Its kind.
    pub source: CommandKind,
}

/// The output of a command that no model gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandOutput {
    /// Its name, without the `/`.
    pub name: String,
    /// The text behind it; may be empty.
    pub arguments: String,
    /// Its text; Markdown.
    pub text: String,
    /// The same for machines, in the command's own form; absent when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Whether it was not carried out; the text says why.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// The session to show from now on: it is started, and is followed once it is loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub go_to: Option<SessionId>,
}

/// The attachments of a prompt for the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// Its kind.
    pub kind: AttachmentKind,
    /// Its name, for people.
    pub label: String,
    /// The file it is about; absent when it is about none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<Uri>,
    /// How many lines of it the model was given; absent for what has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u32>,
    /// How many bytes of it the model was given.
    pub bytes: u64,
    /// Whether there is more of it.
    pub cut: bool,
    /// Why the model was given nothing of it; absent when it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The kind of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AttachmentKind {
    /// A file or document.
    File,
    /// The list of a folder's content.
    Folder,
    /// A definition in the code.
    Symbol,
    /// Diagnostics.
    Diagnostics,
    /// Changes in the repository.
    Diff,
    /// Another conversation.
    Session,
    /// Selected text.
    Selection,
    /// A picture.
    Image,
    /// Pasted text.
    Pasted,
    /// The editor's state.
    Editor,
}

/// The model's text; Markdown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentMessage {
    /// The text so far.
    pub text: String,
    /// Whether the text is whole; false while it streams.
    pub complete: bool,
    /// Whether it broke off: cancelled, cut or lost with the connection.
    pub interrupted: bool,
    /// The model that said it, as the provider knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Milliseconds from the request to the end of the answer of which this is the last text; absent for other texts and
    /// where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// The model's reasoning; Markdown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Thinking {
    /// The text so far.
    pub text: String,
    /// Whether the text is whole; false while it streams.
    pub complete: bool,
}

/// Information for the user that is no message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    /// How serious it is.
    pub level: NoticeLevel,
    /// The event.
    pub text: String,
    /// The next step; absent when there is nothing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Its topic, where a client may want to show it in another way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<NoticeKind>,
}

/// The topic of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NoticeKind {
    /// A model could not be asked; the model itself is not notified of it.
    ApiError,
    /// A model could not be asked, because its key is missing or was refused.
    ApiKey,
    /// A model could not be asked, because the conversation is longer than its context window.
    ContextTooLong,
    /// Another model is asked than the one that was chosen.
    Fallback,
    /// An answer was cut off by its token limit and is continued.
    Continued,
    /// An answer only announced what it was going to do.
    IncompleteIntent,
    /// The turn has reached a limit.
    TurnLimit,
    /// The turn was interrupted.
    Interrupted,
    /// Parts of the session's journal were damaged.
    Damaged,
    /// A hook said something, failed, or waits for approval.
    Hook,
    /// A kind that this build does not know.
    #[serde(other)]
    Other,
}

/// How serious a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something may need attention.
    Warning,
    /// Something failed.
    Error,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The call.
    pub call_id: CallId,
    /// The tool's canonical name, or what the model wrote when there is no such tool.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// The effect of the tool on the world; absent for an unknown tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    /// The arguments; an object whose fields are the tool's own.
    pub input: Value,
    /// Where the call is.
    pub state: CallState,
    /// The short result for people; empty until the call has ended.
    pub display: String,
    /// The result for machines, in the tool's own form; absent when it gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// The class of the failure; absent when it did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolErrorKind>,
    /// When it began to run; absent before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended; absent before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Its states so far, in order.
    pub audit: Vec<AuditEntry>,
}

/// The effect of a tool on the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ToolKind {
    /// Looks only.
    ReadOnly,
    /// Changes files and documents.
    Write,
    /// Runs something whose effects are not known beforehand.
    Execute,
}

/// A state a call was in, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// The state.
    pub state: CallState,
    /// Since when.
    pub at: Timestamp,
}

/// Where a tool call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CallState {
    /// Known, not running.
    Pending,
    /// Waits for the user.
    ApprovalRequired,
    /// Runs.
    Executing,
    /// Worked; final.
    Completed,
    /// Failed; final.
    Failed,
    /// Was refused; final.
    Denied,
    /// Was unfinished when the turn or the server ended; final.
    Sealed,
}

/// The classes of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ToolErrorKind {
    /// No tool has this name.
    UnknownTool,
    /// The arguments are not JSON or do not fit the schema.
    InvalidInput,
    /// The file, folder or document is not there.
    NotFound,
    /// The file cannot be read or written by this user, or lies where it must not.
    Forbidden,
    /// The text is not what the call took it for: unread, changed, no match, several matches.
    Mismatch,
    /// The user's typing and the edit overlap.
    Conflict,
    /// A rule, a mode or the user said no.
    Denied,
    /// It took too long.
    Timeout,
    /// It was cancelled.
    Cancelled,
    /// It ran and failed.
    Failed,
}
