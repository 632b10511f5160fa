//! `agent/event`: everything that happens in a session, numbered.
//!
//! Rule: events carry facts and states, never layout. A client ignores a type it does not know.

use serde::{Deserialize, Serialize};

use crate::item::Item;
use crate::permission::{Decision, PermissionPrompt};
use crate::session::Mode;
use crate::{CallId, ItemId, QueueId, SessionId, TurnId};

/// Parameters of `agent/event`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EventParams {
    /// The session.
    pub session_id: SessionId,
    /// The event's place in the session; events up to a snapshot's bookmark are in the snapshot.
    pub bookmark: Bookmark,
    /// The stream it belongs to.
    pub channel: Channel,
    /// What happened.
    pub event: Event,
}

/// A place in a session's sequence of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Bookmark {
    /// Number of the event. Numbers grow; one is left out where pieces of a text were joined.
    pub seq: u64,
    /// When it happened, RFC 3339.
    pub timestamp: String,
}

/// The three streams of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Channel {
    /// What people watch.
    Progress,
    /// What people must answer.
    Control,
    /// What clients and audits record.
    Monitor,
}

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum RunState {
    /// Nothing.
    Ready,
    /// A turn runs.
    Working,
    /// A turn waits for the user.
    Paused,
}

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model had said all.
    EndTurn,
    /// The answer was cut by the token limit.
    MaxTokens,
    /// The limit of model calls was reached.
    MaxTurns,
    /// The model, or a filter, declined.
    Refusal,
    /// The user cancelled.
    Cancelled,
    /// A fault ended it.
    Error,
}

/// Tokens, as the provider reported them.
#[derive(Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Input that was not cached.
    pub input_tokens: u64,
    /// Output, reasoning included.
    pub output_tokens: u64,
    /// Input read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Input written to the provider's cache.
    pub cache_write_tokens: u64,
}

/// A prompt that waits for its turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueuedPrompt {
    /// Its place in the queue.
    pub queue_id: QueueId,
    /// Its text.
    pub text: String,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Event {
    /// A turn began.
    TurnStarted {
        /// The turn.
        turn_id: TurnId,
    },
    /// The transcript grew by an item.
    ItemAdded {
        /// The item.
        item: Item,
    },
    /// An item changed.
    ItemUpdated {
        /// The item as it is now.
        item: Item,
    },
    /// An agent message grew.
    TextChunk {
        /// The item.
        item_id: ItemId,
        /// What came to its end.
        text: String,
    },
    /// A thinking item grew.
    ThinkChunk {
        /// The item.
        item_id: ItemId,
        /// What came to its end.
        text: String,
    },
    /// A tool call began to run.
    #[serde(rename = "tool:start")]
    ToolStart {
        /// The call's item as it is now.
        item: Item,
    },
    /// A running call put something out.
    #[serde(rename = "tool:progress")]
    ToolProgress {
        /// The call's item.
        item_id: ItemId,
        /// The call.
        call_id: CallId,
        /// The newest output, bounded; it replaces what was sent before.
        text: String,
    },
    /// A tool call ended.
    #[serde(rename = "tool:end")]
    ToolEnd {
        /// The call's item as it is now.
        item: Item,
    },
    /// A turn ended.
    Done {
        /// The turn.
        turn_id: TurnId,
        /// Why.
        stop_reason: StopReason,
        /// Tokens of all its model calls.
        usage: Usage,
        /// Milliseconds from its start.
        duration_ms: u64,
        /// Model calls made.
        turns: u32,
        /// Tool calls made.
        tool_calls: u32,
    },
    /// A call needs the user's answer.
    PermissionRequired {
        /// What is asked.
        prompt: PermissionPrompt,
    },
    /// A prompt was answered or withdrawn.
    PermissionDecided {
        /// What was decided.
        decision: Decision,
    },
    /// The session's state changed.
    StateChanged {
        /// The state now.
        state: RunState,
    },
    /// The session's mode or model changed.
    ModeChanged {
        /// The mode now.
        mode: Mode,
        /// The name of the model profile now.
        model: String,
    },
    /// The queue changed.
    QueueChanged {
        /// The queue now, next first.
        queue: Vec<QueuedPrompt>,
    },
    /// A call waits to run.
    #[serde(rename = "tool:queued")]
    ToolQueued {
        /// The call.
        call_id: CallId,
        /// The tool.
        name: String,
        /// How many calls wait, this one included.
        queue_length: u64,
    },
    /// A call took too long.
    #[serde(rename = "tool:timeout")]
    ToolTimeout {
        /// The call.
        call_id: CallId,
        /// The tool.
        name: String,
    },
    /// A call was refused.
    #[serde(rename = "tool:denied")]
    ToolDenied {
        /// The call.
        call_id: CallId,
        /// The tool.
        name: String,
        /// Who or what refused, and why.
        reason: String,
    },
    /// A call was carried out.
    ToolExecuted {
        /// The call.
        call_id: CallId,
        /// The tool.
        name: String,
        /// Milliseconds of the run.
        duration_ms: u64,
        /// Whether it worked.
        ok: bool,
    },
    /// The agent changed files or documents.
    EditsChanged {
        /// Their URIs.
        uris: Vec<String>,
    },
    /// Tokens of one model call.
    TokenUsage {
        /// The turn.
        turn_id: TurnId,
        /// What the provider reported.
        usage: Usage,
    },
    /// A model call failed and is tried again.
    ModelRetry {
        /// Failed attempts so far.
        attempt: u32,
        /// Milliseconds until the next.
        delay_ms: u64,
        /// What failed.
        reason: String,
    },
    /// A session was taken up again from its journal.
    AgentResumed {
        /// Calls that were unfinished and are sealed now.
        sealed: Vec<CallId>,
        /// Journal lines that could not be read.
        skipped_records: u64,
    },
    /// The journal could not be written.
    StorageFailure {
        /// What happened and where.
        message: String,
    },
    /// Something failed that is not part of a call.
    Error {
        /// What happened.
        message: String,
        /// What to do next.
        hint: String,
    },
    /// The client was too slow and events are gone: it must load the session again.
    Gap {
        /// The last event it was sent.
        since: u64,
        /// The oldest event there is.
        oldest: u64,
    },
}
