//! The context window of a session: how full it is, and making it emptier.
//!
//! Rule: numbers are tokens as well as they are known, and `source` says how well that is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text::{AgentId, SessionId, TurnId, Uri};
use crate::turn::Usage;

/// Which conversation is compacted, and what counts most in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactSessionParams {
    /// The session.
    pub session_id: SessionId,
    /// The most important content for the summary, in the user's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
}

/// The session of the context window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetContextParams {
    /// The session.
    pub session_id: SessionId,
}

/// Which messages of a conversation that was compacted are wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetWindowParams {
    /// The session.
    pub session_id: SessionId,
    /// The sub-agent whose conversation it is; absent for the session's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Names the messages as they were before, as the compaction said when it was done.
    pub window_id: String,
    /// The number of the first message wanted; 0, the oldest, when absent.
    #[serde(default)]
    pub from: u32,
    /// The most messages wanted, at least 1; the server may give fewer.
    pub limit: u32,
}

/// A page of the messages of a conversation as they were before it was compacted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WindowPage {
    /// The messages, oldest first; none when `from` was past the end.
    pub messages: Vec<WindowMessage>,
    /// The number of the message to continue at; absent when there are no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u32>,
    /// How many messages there are in all.
    pub total: u32,
}

/// A message as the model had it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WindowMessage {
    /// The author of the message.
    pub role: WindowRole,
    /// The model that gave it; absent for the user's side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its blocks in order, objects whose `type` is `text` (`text`), `thinking` (`text`), `hiddenThinking`, `image`
    /// (`mediaType`, `bytes` of its base64 text, which is left out), `toolCall` (`callId`, `name`, `input`) or `toolResult`
    /// (`callId`, `text`, `images`, `isError`).
    pub content: Value,
}

/// Whom a message is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WindowRole {
    /// The user, and the results of tools.
    User,
    /// The model.
    Assistant,
}

/// How full a context window is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextUse {
    /// Tokens of the next request.
    pub tokens: u64,
    /// How that number came about.
    pub source: TokenSource,
    /// Tokens the model can read.
    pub window: u64,
    /// The number of tokens from which on the conversation is compacted; absent when that is switched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<u64>,
    /// Tokens that are kept free for the answer.
    pub reserved: u64,
    /// Tokens that are neither taken nor kept free.
    pub free: u64,
    /// The source of the number.
    pub parts: ContextParts,
}

/// How a number of tokens came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TokenSource {
    /// The provider has reported it, except for later additions.
    Reported,
    /// It was estimated by the kinds of text, corrected by earlier reports for the model.
    Estimated,
}

/// The parts of a request, in tokens; they add up to nearly the whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextParts {
    /// The system prompt without memory files.
    pub system_prompt: u64,
    /// The tools.
    pub tools: u64,
    /// Instructions from files of the user and the project.
    pub memory_files: u64,
    /// The user's prompt and the text sent with it.
    pub user_messages: u64,
    /// The model's text.
    pub assistant_messages: u64,
    /// Results of tools.
    pub tool_results: u64,
    /// Pictures.
    pub images: u64,
    /// The summary of compacted messages, with the files beside it.
    pub summary: u64,
}

/// A conversation is being compacted, or was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextCompression {
    /// The turn.
    pub turn_id: TurnId,
    /// The sub-agent whose conversation it is; absent for the session's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// How far it is.
    pub step: CompressionStep,
}

/// How far the compaction of a conversation is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum CompressionStep {
    /// It began.
    Started(CompressionStarted),
    /// The summary is being written.
    Progress(CompressionProgress),
    /// It is done.
    Done(CompressionDone),
    /// It ended, and the conversation is as it was.
    Unchanged(CompressionUnchanged),
}

/// Why a conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CompressionCause {
    /// It came to the share of the context window that is set for it.
    Threshold,
    /// The user asked for it.
    Asked,
    /// A turn came to its limit of model calls and continues.
    TurnLimit,
    /// The provider found the request too long.
    TooLong,
}

/// A compaction began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompressionStarted {
    /// Why.
    pub cause: CompressionCause,
    /// Messages there are.
    pub messages: u64,
    /// Tokens of the next request.
    pub tokens: u64,
    /// Tokens the model can read.
    pub window: u64,
}

/// A summary is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompressionProgress {
    /// Characters written so far.
    pub written: u64,
}

/// A compaction is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompressionDone {
    /// Names the messages as they were before.
    pub window_id: String,
    /// Why it was done.
    pub cause: CompressionCause,
    /// Messages before.
    pub messages_before: u64,
    /// Messages after.
    pub messages_after: u64,
    /// Tokens of the next request before.
    pub tokens_before: u64,
    /// Tokens of the next request after.
    pub tokens_after: u64,
    /// The number of tokens from which on it is done unasked; absent when that is switched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<u64>,
    /// The model that summarized; absent when there is no summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its usage.
    pub usage: Usage,
    /// Milliseconds it took.
    pub duration_ms: u64,
    /// Why there is no summary; absent when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The files that stand beside the summary.
    pub files: Vec<CompressionFile>,
}

/// A file beside a summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompressionFile {
    /// Which.
    pub uri: Uri,
    /// How many of its lines are shown to the model, from the first on.
    pub shown: u64,
    /// How many lines it has.
    pub lines: u64,
    /// Why it is not shown; absent when it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A compaction ended, and the conversation is as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompressionUnchanged {
    /// Why.
    pub reason: String,
}
