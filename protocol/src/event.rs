//! The one stream: everything that happens in a session, numbered.
//!
//! Rule: all that a client shows is a fold over the snapshot and these events. Pieces of one text that are sent as
//! one carry the number of the last, so numbers grow and may skip; `gap` reports lost events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::ContextCompression;
use crate::edits::{EditFailure, ReviewAction};
use crate::goal::GoalChanged;
use crate::hooks::HookRan;
use crate::item::{CallState, Item};
use crate::mcp::McpChanged;
use crate::permission::{
    Mode, PermissionOutcome, PermissionPrompt, ProposedDiagnostics, Scope, SettingsProblem, WithheldSetting,
};
use crate::problem::FileProblem;
use crate::question::{Question, QuestionAnswer, QuestionOutcome};
use crate::queue::Draft;
use crate::sessions::TitledBy;
use crate::state::{Effort, RunState, SessionWriter};
use crate::task::BackgroundTask;
use crate::team::TeamChanged;
use crate::text::{
    AgentId, AskId, CallId, CheckpointId, HunkId, ItemId, PermissionId, QuestionId, ResolutionId, SessionId,
    Timestamp, TurnId, Uri,
};
use crate::todo::{Todo, TodoCounts, TodoReminderReason};
use crate::turn::{PhaseTimes, QueuedPrompt, StopReason, Usage};

/// An event with its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentEventParams {
    /// The session it is about.
    pub session_id: SessionId,
    /// Its place.
    pub bookmark: Bookmark,
    /// The stream it belongs to.
    pub channel: Channel,
    /// The event.
    pub event: Event,
}

/// A place in a session's sequence of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bookmark {
    /// Number of the event, from 1. Numbers grow, over restarts as well, and a jump is no loss. `lease_changed` has the number of
    /// the event before it; so have `permission_required`, `permission_decided`, `question_asked` and `question_answered` in a
    /// session that another server writes, and folding one of these twice changes nothing.
    pub seq: u64,
    /// When it happened.
    pub timestamp: Timestamp,
}

/// The three streams of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Channel {
    /// Events for display: text, tools, the end of a turn.
    Progress,
    /// Events that people must answer.
    Control,
    /// Events for clients and audits.
    Monitor,
}

/// The event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A turn began.
    TurnStarted(TurnStarted),
    /// The turn reached another step.
    BreakpointChanged(BreakpointChanged),
    /// The transcript grew by an item.
    ItemAdded(ItemAdded),
    /// An item changed in more than its streamed text.
    ItemUpdated(ItemUpdated),
    /// An agent message grew.
    TextChunk(TextChunk),
    /// A thinking item grew.
    ThinkChunk(ThinkChunk),
    /// The answer to a side question grew.
    SideAnswer(SideAnswer),
    /// A tool call began to run.
    #[serde(rename = "tool:start")]
    ToolStart(ToolStart),
    /// A running call put something out.
    #[serde(rename = "tool:progress")]
    ToolProgress(ToolProgress),
    /// A tool call ended, in whichever way.
    #[serde(rename = "tool:end")]
    ToolEnd(ToolEnd),
    /// A turn ended.
    Done(Done),
    /// A call needs the user's answer.
    PermissionRequired(Box<PermissionRequired>),
    /// A prompt was answered or withdrawn.
    PermissionDecided(PermissionDecided),
    /// A language server has reported what the change of a prompt that waits would add and remove.
    PermissionUpdated(PermissionUpdated),
    /// The model asks the user something.
    QuestionAsked(Box<QuestionAsked>),
    /// A question was answered or withdrawn.
    QuestionAnswered(QuestionAnswered),
    /// The session's state changed.
    StateChanged(StateChanged),
    /// The session's mode or model changed.
    ModeChanged(ModeChanged),
    /// The queue or the messages to the running turn changed.
    QueueChanged(QueueChanged),
    /// The session has another title.
    TitleChanged(TitleChanged),
    /// The session was archived, or taken out again.
    ArchivedChanged(ArchivedChanged),
    /// The unsent prompt changed.
    DraftChanged(DraftChanged),
    /// A call waits for its turn to run.
    #[serde(rename = "tool:queued")]
    ToolQueued(ToolQueued),
    /// A call took too long.
    #[serde(rename = "tool:timeout")]
    ToolTimeout(ToolTimeout),
    /// A call was refused.
    #[serde(rename = "tool:denied")]
    ToolDenied(ToolDenied),
    /// A call was carried out.
    ToolExecuted(ToolExecuted),
    /// The todo list was written, or is another one since the conversation went back or forward.
    TodoChanged(TodoChanged),
    /// The goal of the session was set, checked, bounded or removed.
    GoalChanged(GoalChanged),
    /// The team changed: a member joined, ended, waits or continues, a message was sent or read, or a task changed.
    TeamChanged(TeamChanged),
    /// The model was reminded of its todo list.
    TodoReminder(TodoReminder),
    /// A query begins, or the model is reminded of something.
    Reminder(Reminder),
    /// A hook ran.
    HookRan(HookRan),
    /// A background command was started.
    BackgroundStarted(BackgroundStarted),
    /// A background command has ended.
    BackgroundEnded(BackgroundEnded),
    /// Hunks came, went or changed.
    EditsChanged(EditsChanged),
    /// The user's act on hunks, or on a checkpoint, is done.
    EditsResolved(EditsResolved),
    /// The state before a prompt can be restored.
    CheckpointCreated(CheckpointCreated),
    /// The conversation went back.
    Rewound(Rewound),
    /// A file that this session has read was changed by others.
    FileChanged(FileChanged),
    /// Settings have changed, or what of them cannot be used or waits for approval.
    ConfigChanged(ConfigChanged),
    /// Files of agents, skills, commands or output styles have changed.
    ExtensionsChanged(ExtensionsChanged),
    /// Files of the workspace ask for something that the user has not been asked about yet.
    TrustRequired(TrustRequired),
    /// The state of MCP servers, or their offer, changed.
    McpChanged(McpChanged),
    /// A sub-agent began to work for a call.
    SubagentStarted(SubagentStarted),
    /// A sub-agent ended its work for a call.
    SubagentEnded(SubagentEnded),
    /// One model call used tokens.
    TokenUsage(TokenUsage),
    /// A conversation is being compacted, or was.
    ContextCompression(Box<ContextCompression>),
    /// A model call failed and is tried again.
    ModelRetry(ModelRetry),
    /// A session was resumed from its journal.
    AgentResumed(AgentResumed),
    /// Another server writes the session from now on, or none, or this one does.
    LeaseChanged(LeaseChanged),
    /// The journal could not be written.
    StorageFailure(StorageFailure),
    /// Something failed that is not part of a call.
    Error(ErrorEvent),
    /// The client was too slow, and events were dropped.
    Gap(Gap),
    /// A type of event that this build does not know.
    #[serde(other, skip_serializing)]
    #[schemars(skip)]
    Unknown,
}

/// A turn began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnStarted {
    /// The turn.
    pub turn_id: TurnId,
}

/// The turn reached another step. The steps of sub-agents are not reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BreakpointChanged {
    /// The turn.
    pub turn_id: TurnId,
    /// The step.
    pub breakpoint: Breakpoint,
    /// The call that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// With `PRE_MODEL`: the number of the model call in the turn, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_call: Option<u32>,
    /// With `PRE_MODEL`: the most model calls of the turn; absent where there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_model_calls: Option<u32>,
}

/// A step of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Breakpoint {
    /// No turn is under way.
    #[default]
    Ready,
    /// The model is asked next.
    PreModel,
    /// The model answers.
    StreamingModel,
    /// The answer has calls, none of which has started.
    ToolPending,
    /// A call waits for the user.
    AwaitingApproval,
    /// A call may run, and runs next.
    PreTool,
    /// A call runs.
    ToolExecuting,
    /// All calls of the answer have their results.
    PostTool,
}

/// The transcript grew by an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemAdded {
    /// The item as it is now.
    pub item: Item,
}

/// An item changed in more than its streamed text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemUpdated {
    /// The item as it is now.
    pub item: Item,
}

/// An agent message grew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextChunk {
    /// The item.
    pub item_id: ItemId,
    /// The ended item.
    pub text: String,
}

/// A thinking item grew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThinkChunk {
    /// The item.
    pub item_id: ItemId,
    /// The ended item.
    pub text: String,
}

/// A tool call began to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolStart {
    /// The call's item as it is now.
    pub item: Item,
}

/// A running call put something out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolProgress {
    /// The call's item.
    pub item_id: ItemId,
    /// The call.
    pub call_id: CallId,
    /// The newest output, bounded; it replaces the earlier one.
    pub text: String,
}

/// A tool call ended, in whichever way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolEnd {
    /// The call's item as it is now.
    pub item: Item,
}

/// A turn ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// The turn.
    pub turn_id: TurnId,
    /// Why.
    pub stop_reason: StopReason,
    /// Tokens of all its model calls.
    pub usage: Usage,
    /// Milliseconds from its start.
    pub duration_ms: u64,
    /// Model calls made.
    pub model_calls: u32,
    /// Tool calls made.
    pub tool_calls: u32,
    /// How long each part of it took.
    #[serde(default)]
    pub phases: PhaseTimes,
    /// The cost in US dollars by the prices of the day; absent where a part is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// A call needs the user's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequired {
    /// The question.
    pub prompt: PermissionPrompt,
}

/// A language server has reported what the change of a prompt that waits would add and remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionUpdated {
    /// The prompt.
    pub permission_id: PermissionId,
    /// Its diagnostics.
    pub diagnostics: ProposedDiagnostics,
}

/// A prompt was answered or withdrawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionDecided {
    /// The prompt.
    pub permission_id: PermissionId,
    /// The call.
    pub call_id: CallId,
    /// The decision.
    pub outcome: PermissionOutcome,
    /// How far a yes reaches; `once` for everything else.
    pub scope: Scope,
    /// Which surface or client decided, or `cancel`.
    pub by: String,
    /// Words for the model; absent when there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
}

/// The model asks the user something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionAsked {
    /// The question.
    pub question: Question,
}

/// A question was answered or withdrawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionAnswered {
    /// The question.
    pub question_id: QuestionId,
    /// The call; absent when the turn waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// How it ended.
    pub outcome: QuestionOutcome,
    /// The answers; empty unless it was answered.
    #[serde(default)]
    pub answers: Vec<QuestionAnswer>,
    /// Words for the model besides; absent when there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// The plan as the user has changed it; absent when they have not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The mode in which the user wants the plan to be carried out; absent when they named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Which surface or client ended it, or `cancel`.
    pub by: String,
}

/// The todo list was written, or is another one since the conversation went back or forward.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TodoChanged {
    /// The list now.
    pub todos: Vec<Todo>,
    /// How many of them are how far.
    pub counts: TodoCounts,
}

/// The model was reminded of its todo list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TodoReminder {
    /// Why.
    pub reason: TodoReminderReason,
}

/// A query begins, or the model is reminded of something with its next request. Reminders are in no transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reminder {
    /// Of what.
    pub kind: ReminderKind,
    /// The sub-agent that is reminded; absent for the session's own conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// How many messages the conversation has.
    pub messages: u64,
}

/// The reminders for the model, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ReminderKind {
    /// The mode is another one since the model last answered.
    ModeChanged,
    /// The user has said something to the running turn.
    Steered,
    /// An edit failed because of the file's content.
    EditFailed,
    /// Files that were read were changed by others.
    FilesChanged,
    /// A query begins, of the session or of a sub-agent; sent once for each, also when there is nothing to say.
    SessionStart,
    /// The todo list has changed; `todo_reminder` is sent as well.
    TodoChanged,
    /// The todo list was not written for a while; `todo_reminder` is sent as well.
    TodoStale,
}

/// The session's state changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateChanged {
    /// The state now.
    pub state: RunState,
}

/// The session's mode, model, effort or style of answers changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModeChanged {
    /// The mode now.
    pub mode: Mode,
    /// The name of the model profile now.
    pub model: String,
    /// How hard models think now, where the user has said so for this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The style of the answers from the next turn on, where the user has chosen one for this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_style: Option<String>,
    /// The profile of the sandbox now, where the user has chosen one for this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
}

/// The queue or the messages to the running turn changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueChanged {
    /// The prompts that wait for a turn of their own, next first.
    pub queue: Vec<QueuedPrompt>,
    /// The messages to the running turn, next first.
    #[serde(default)]
    pub steering: Vec<QueuedPrompt>,
    /// Whether the queue waits for a person: after a cancel, an error or a restart nothing begins by itself. A new
    /// prompt, or `agent/queue/update` with `promote`, lets it continue.
    #[serde(default)]
    pub paused: bool,
}

/// The session has another title than the first line of its first prompt, or that one again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TitleChanged {
    /// Its current title.
    pub title: String,
    /// The author of the title; absent for the first line of its first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<TitledBy>,
}

/// The session was archived, or taken out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArchivedChanged {
    /// Whether it is archived now.
    pub archived: bool,
}

/// The unsent prompt changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DraftChanged {
    /// Its current value; absent once it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<Draft>,
}

/// A call waits for its turn to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolQueued {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub name: String,
    /// How many calls of this answer wait, this one included.
    pub queue_length: u64,
}

/// A call took too long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolTimeout {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub name: String,
}

/// A call was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolDenied {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub name: String,
    /// The refusing party, and the reason.
    pub reason: String,
}

/// A call was carried out; for audits and measurements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecuted {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub name: String,
    /// Milliseconds of the run.
    pub duration_ms: u64,
    /// Whether it worked.
    pub ok: bool,
}

/// A background command was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackgroundStarted {
    /// The command.
    pub task: BackgroundTask,
}

/// A background command has ended, in whichever way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackgroundEnded {
    /// The command, with its end.
    pub task: BackgroundTask,
}

/// Hunks came, went, moved into another state, or the text under them changed other than by typing around them: what
/// the listed hunks of these files are out of date.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditsChanged {
    /// The files or documents.
    pub uris: Vec<Uri>,
}

/// Hunks were accepted, rejected, kept or undone, or a checkpoint was restored, or one of these was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditsResolved {
    /// The id that the request was answered with; it takes the act back.
    pub resolution_id: ResolutionId,
    /// The action on hunks; absent when a checkpoint was restored or an earlier act was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ReviewAction>,
    /// The hunks that have the requested state now.
    pub resolved: Vec<HunkId>,
    /// The hunks that the user's own text is in; their state is `conflict` now.
    pub conflicts: Vec<HunkId>,
    /// The files that could not be changed.
    pub failed: Vec<EditFailure>,
}

/// A prompt came, and what stood before it can be brought back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointCreated {
    /// The checkpoint.
    pub checkpoint_id: CheckpointId,
    /// The turn of the prompt.
    pub turn_id: TurnId,
}

/// The conversation went back to before a prompt: this item and all after it are gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rewound {
    /// The first item that is gone.
    pub item_id: ItemId,
}

/// A file that this session has read was changed by others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChanged {
    /// The file.
    pub uri: Uri,
    /// Whether it is gone.
    pub deleted: bool,
}

/// Files of the workspace ask for something that the user has not been asked about yet. `agent/trust/list` says what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustRequired {
    /// How many settings wait, those included that were asked about before.
    pub count: u32,
    /// The paths of the files they are in.
    pub files: Vec<String>,
    /// How many of what, for people: `2 hooks, 1 MCP server`.
    #[serde(default)]
    pub summary: String,
}

/// Settings have changed, or what of them cannot be used or waits for approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigChanged {
    /// The paths of the files whose contents are others than before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The unusable entries; empty when there are none of them.
    pub problems: Vec<SettingsProblem>,
    /// The unapproved trust requests of workspace files now.
    pub withheld: Vec<WithheldSetting>,
}

/// Files of agents, skills, commands or output styles have changed; the lists of them are other ones now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionsChanged {
    /// How many types of sub-agents there are now.
    pub agents: usize,
    /// How many skills.
    pub skills: usize,
    /// How many commands of files.
    pub commands: usize,
    /// How many output styles.
    pub styles: usize,
    /// The problems of the files now; empty when all can be used.
    pub problems: Vec<FileProblem>,
}

/// A sub-agent began to work for a call, a new one or one that continues. Its items carry its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubagentStarted {
    /// The sub-agent.
    pub agent_id: AgentId,
    /// The call it works for.
    pub call_id: CallId,
    /// The name of its type.
    pub agent_type: String,
    /// Its topic, in a few words.
    pub description: String,
}

/// A sub-agent ended its work for a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubagentEnded {
    /// The sub-agent.
    pub agent_id: AgentId,
    /// Whether it said all it had to say.
    pub ok: bool,
    /// Tokens it took for this call.
    pub usage: Usage,
    /// Milliseconds from its start.
    pub duration_ms: u64,
}

/// The answer to a side question grew. Only the client that asked shows it, and nothing keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SideAnswer {
    /// The id that the client gave the question.
    pub ask_id: AskId,
    /// The new text.
    pub text: String,
}

/// One model call used tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// The turn; an id of no turn for a side question.
    pub turn_id: TurnId,
    /// The usage that the provider reported.
    pub usage: Usage,
    /// The model, as the provider knows it.
    #[serde(default)]
    pub model: String,
    /// Its cost in US dollars by the prices of the day; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Tokens of the next request of the session's own conversation; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Tokens its model can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Tokens of output a second, from the first piece of the answer to its end; absent for short answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_second: Option<f64>,
    /// The provider's rate limits, as far as it states them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<ProviderLimit>,
}

/// A rate limit of the provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderLimit {
    /// Its name for people: `requests`, `tokens`, `5 hours`, `7 days` and the like.
    pub name: String,
    /// The used share, from 0 to 1.
    pub used: f64,
    /// The time of its reset, if the provider states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
}

/// A model call failed and is tried again. Cancelling the turn ends the wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelRetry {
    /// Failed attempts so far.
    pub attempt: u32,
    /// How many retries there are at most.
    pub of: u32,
    /// Milliseconds until the next.
    pub delay_ms: u64,
    /// When the next begins.
    pub next_at: Timestamp,
    /// Milliseconds that all waits to come may take together, this one included.
    pub left_ms: u64,
    /// The class of the fault, for example `rateLimited`.
    pub kind: ModelFault,
    /// The failed operation.
    pub reason: String,
    /// The model, as the provider knows it.
    pub model: String,
}

/// Why a model could not be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ModelFault {
    /// The profile cannot work: no key, bad address.
    Configuration,
    /// The key was refused.
    Authentication,
    /// The server found the request wrong.
    BadRequest,
    /// The request is longer than what the model can read.
    ContextTooLong,
    /// Too many requests.
    RateLimited,
    /// The server failed or is overloaded.
    Server,
    /// The connection could not be made or broke before an answer began.
    Network,
    /// The answer broke off in the middle.
    Interrupted,
    /// The server sent something that is no answer.
    Protocol,
    /// The user cancelled.
    Cancelled,
}

/// A call that was unfinished when the server ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SealedCall {
    /// The call.
    pub call_id: CallId,
    /// The state it was in; absent where an older journal does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<CallState>,
}

/// How a session was resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResumeStrategy {
    /// The server had ended in the middle of something: unfinished calls are sealed or asked again.
    Crash,
    /// Nothing was unfinished.
    Manual,
}

/// A session was resumed from its journal. All earlier prompts for the user are closed; those that still wait are
/// sent again, under the same id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentResumed {
    /// Calls that were unfinished and are sealed now.
    pub sealed: Vec<CallId>,
    /// The same calls with the states they were in, as far as those are known.
    pub sealed_calls: Vec<SealedCall>,
    /// Whether anything was unfinished.
    pub strategy: ResumeStrategy,
    /// Journal lines that could not be read and were skipped.
    pub skipped_records: u64,
    /// The step that the turn had reached when the server before ended, as far as the journal tells.
    #[serde(default)]
    pub breakpoint: Breakpoint,
}

/// Another server writes the session from now on, or none, or this one does. It is no part of what the session tells: it has
/// the number of the event before it, and is not sent again for a bookmark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseChanged {
    /// The writer of the session; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<SessionWriter>,
    /// Whether that is this server.
    pub is_mine: bool,
}

/// The journal could not be written: unwritten records stay in memory and are tried again until they are written. Reported
/// once when it begins and once, with `recovered`, when it is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageFailure {
    /// The failure and its place, how much waits, and what to do.
    pub message: String,
    /// Whether all is written again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recovered: bool,
}

/// Something failed that is not part of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorEvent {
    /// The event.
    pub message: String,
    /// The next step.
    pub hint: String,
}

/// The client was too slow, and events were dropped: it must load the session again. The bookmark of this event is
/// the client's own place, up to which it has missed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// The newest event the client was sent.
    pub since: u64,
    /// The oldest event that the server still has.
    pub oldest: u64,
}
