//! Turns: submit a prompt, cancel a turn or one call of it.
//!
//! Rule: requests are answered at once and with an id; everything that comes of them is reported by events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lsp::RangeShape;
use crate::text::{CallId, ItemId, QueueId, SessionId, TurnId, Uri};

/// A prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartTurnParams {
    /// The session.
    pub session_id: SessionId,
    /// The parts of the prompt, in order; at least one that is not empty.
    pub input: Vec<InputPart>,
    /// The editor's state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<EditorContext>,
    /// The delivery while a turn runs.
    #[serde(default)]
    pub delivery: Delivery,
    /// The most model calls of the turn: -1 for the built-in limit, 0 for none at all; absent as the settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<i64>,
    /// Whether the prompt is answered twice, for the user to choose; absent as the settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_answers: Option<bool>,
    /// The budget of the turn in US dollars, with its sub-agents, before the user is asked whether it continues: a number
    /// above
    /// 0. What has no known price is not counted. Absent as the settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// How many minutes the turn may continue before the user is asked: a number above 0. Absent as the settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_minutes: Option<f64>,
    /// The profile of the sandbox that the commands of this turn run in; absent as the session says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
}

/// A part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum InputPart {
    /// Words of the user.
    Text(TextPart),
    /// A file or document that the user names.
    Mention(MentionPart),
    /// Text that the user has selected.
    Selection(SelectionPart),
    /// Something that is defined in the code.
    Symbol(SymbolPart),
    /// The diagnostics of a file, or one of them.
    Diagnostics(DiagnosticsPart),
    /// The changes in the repository.
    Diff(DiffPart),
    /// The outcome of another conversation.
    Session(SessionPart),
    /// A picture.
    Image(ImagePart),
    /// Text that was pasted into the prompt.
    Pasted(PastedPart),
}

/// Words of the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextPart {
    /// The words.
    pub text: String,
}

/// A file, folder or document that the user names; the server reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MentionPart {
    /// The named thing.
    pub uri: Uri,
    /// The part of it that is meant; all of it when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<RangeShape>")]
    pub range: Option<lsp_types::Range>,
}

/// Text that the user has selected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectionPart {
    /// The document.
    pub uri: Uri,
    /// Where in it.
    #[schemars(with = "RangeShape")]
    pub range: lsp_types::Range,
    /// The text as it was when it was selected.
    pub text: String,
}

/// Something that is defined in the code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SymbolPart {
    /// Its name.
    pub name: String,
    /// Where it is defined; the server looks for it when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<Uri>,
    /// The definition in the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<RangeShape>")]
    pub range: Option<lsp_types::Range>,
}

/// The diagnostics of a file, or one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosticsPart {
    /// The document; all of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<Uri>,
    /// The part of the document that is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<RangeShape>")]
    pub range: Option<lsp_types::Range>,
    /// The one that is meant, as the editor shows it; the server asks the editor when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The changes in the repository: the working tree against the last commit, by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffPart {
    /// The staged changes instead.
    #[serde(default)]
    pub staged: bool,
    /// The revision, or the range of two, instead of the last commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

/// The outcome of another conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionPart {
    /// Its id, or a part of its title.
    pub session: String,
}

/// A picture: PNG, JPEG, GIF or WebP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImagePart {
    /// Its type, for example `image/png`.
    pub media_type: String,
    /// Its bytes in base64; at most 5 MiB of them.
    pub data: String,
}

/// Text that was pasted into the prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PastedPart {
    /// The text.
    pub text: String,
}

/// The editor's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditorContext {
    /// The document with the cursor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_uri: Option<Uri>,
    /// The selection in it, or the cursor as an empty range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<RangeShape>")]
    pub selection: Option<lsp_types::Range>,
    /// The selected text; left out when nothing is selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_text: Option<String>,
    /// The part of it that is seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<RangeShape>")]
    pub visible_range: Option<lsp_types::Range>,
    /// The documents that are open to the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_uris: Vec<Uri>,
}

/// The delivery of a prompt while a turn runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Delivery {
    /// It waits until the turn has ended and then begins one of its own. After a turn that was cancelled or failed, and
    /// after a restart, it waits for a person: until another prompt comes, after which it begins, or it is promoted.
    #[default]
    Queue,
    /// It goes to the running turn before its next model call, after the results of the calls that run; it continues with
    /// it where it would have ended. What it cannot be told any more waits in the queue, before all else.
    Steer,
}

/// The outcome of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum StartTurnResult {
    /// Its turn began.
    Started(StartedTurn),
    /// It waits.
    Queued(QueuedTurn),
    /// It goes to the running turn.
    Steering(SteeredTurn),
    /// It is a command that is answered at once.
    Answered(AnsweredTurn),
}

/// A command that is answered at once and begins no turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnsweredTurn {
    /// The turn that the answer belongs to: the running one where one runs.
    pub turn_id: TurnId,
    /// The item that comes with the answer.
    pub item_id: ItemId,
}

/// A prompt whose turn began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartedTurn {
    /// The turn.
    pub turn_id: TurnId,
}

/// A prompt for the running turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SteeredTurn {
    /// The turn.
    pub turn_id: TurnId,
    /// Its id as long as it waits.
    pub queue_id: QueueId,
}

/// A prompt that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedTurn {
    /// Its place in the queue.
    pub queue_id: QueueId,
}

/// A prompt that waits, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedPrompt {
    /// Its id.
    pub queue_id: QueueId,
    /// Its text.
    pub text: String,
}

/// The session whose turn is cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelTurnParams {
    /// The session.
    pub session_id: SessionId,
}

/// The session whose model is asked again now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryTurnParams {
    /// The session.
    pub session_id: SessionId,
}

/// Whether a turn runs; a model that no caller waits for is asked no sooner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryTurnResult {
    /// False when no turn runs.
    pub running: bool,
}

/// Which image is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadAttachmentParams {
    /// The session.
    pub session_id: SessionId,
    /// The prompt.
    pub item_id: ItemId,
    /// The index of the image among the attachments of the prompt, from 0.
    pub index: u32,
}

/// Which call is cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelToolParams {
    /// The session.
    pub session_id: SessionId,
    /// The call.
    pub call_id: CallId,
}

/// Whether there was something to cancel. Cancelled work ends by its events, shortly after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelResult {
    /// False when nothing was running any more.
    pub cancelled: bool,
}

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model had said all.
    EndTurn,
    /// The answer was cut by the token limit.
    MaxTokens,
    /// The limit of model calls was reached.
    MaxTurns,
    /// The turn had cost as much, or continued as long, as it may.
    Budget,
    /// The model, or a filter, declined.
    Refusal,
    /// The user cancelled.
    Cancelled,
    /// A fault ended it; an `error` event or a notice says which.
    Error,
    /// The same call had the same result over and over, and the user did not continue it.
    Repetition,
    /// The answer only announced what it was going to do, and the settings say to stop there.
    IncompleteIntent,
    /// The user chose none of the answers.
    NotChosen,
    /// The turn limit is zero: there is no chat.
    ChatDisabled,
    /// A hook refused the prompt, or stopped the turn; a notice says why.
    Hook,
}

/// How long each part of a turn took, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PhaseTimes {
    /// Looking whether the conversation has to be compacted, and compacting it.
    pub compact_check_ms: u64,
    /// Putting the requests together.
    pub prompt_build_ms: u64,
    /// Making the history one that can be sent.
    pub normalise_ms: u64,
    /// Asking the model, with all attempts and the waits between them.
    pub model_call_ms: u64,
    /// Running the calls, with all that was asked before.
    pub tool_execution_ms: u64,
    /// Deciding what happens next.
    pub next_ms: u64,
}

/// Tokens, as the provider reported them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Input that was not cached.
    pub input_tokens: u64,
    /// Output, reasoning included.
    pub output_tokens: u64,
    /// Input that was read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Input that was written to the provider's cache.
    pub cache_write_tokens: u64,
    /// The part of the output that is reasoning, where the provider says so.
    #[serde(default)]
    pub thinking_tokens: u64,
}
