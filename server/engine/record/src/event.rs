//! The events of a session: items of the transcript, events about them, and the log that subscribers read.
//!
//! Rule: events carry facts and states, never layout; every event has a place in one sequence per session, so a
//! subscriber that knows its bookmark misses nothing and sees nothing twice.

mod announce;
pub mod item;
pub mod log;

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::background::BackgroundTask;
use crate::compaction::{Cause, Compaction};
use crate::context::{ContextUse, Pace};
use crate::draft::PromptDraft;
use crate::goal::Goal;
use crate::hook::HookOutcome;
use crate::options::TurnOptions;
use crate::phases::PhaseTimes;
use crate::reminder::ReminderKind;
use crate::resolution::ResolutionOutcome;
use crate::team::TeamView;
use crate::title::TitledBy;
use kode_base::effort::Effort;
use kode_base::ids::{AgentId, CallId, CheckpointId, ItemId, PermissionId, QueueId, SessionId, TurnId};
use kode_base::paths::{AbsPath, Target};
use kode_base::proposed::ProposedDiagnostics;
use kode_base::question::{Question, QuestionResolution};
use kode_base::todo::{Todo, TodoReminderReason};
use kode_config::extension::live::{ExtensionCounts, LoadedExtensions};
use kode_config::settings::{TrustSummary, WithheldSetting};
use kode_journal::lease::SessionWriter;
use kode_model::price::Cost;
use kode_model::{ModelErrorKind, Usage};
use kode_permission::rules::SettingsProblem;
use kode_permission::{PermissionPrompt, PermissionResolution};
use kode_text::workspace::WatchReport;
use kode_tool::status::ServerInfo;

pub use item::{AuditEntry, CallOutcome, CallState, Item, ItemBody, NoticeKind, NoticeLevel, ToolCallItem};
pub use log::{EventLog, Gap, RecentEvents, Subscription};

/// The three streams of events, subscribed to separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// Events for display: text, tools, the end of a turn.
    Progress,
    /// Events that people must answer.
    Control,
    /// Events for clients and audits.
    Monitor,
}

/// A place in a session's sequence of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bookmark {
    /// Number of the event, from 1. Numbers grow; a jump is no loss.
    pub seq: u64,
    /// When it happened.
    pub timestamp: Timestamp,
}

/// An event with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRecord {
    /// The session it is about.
    pub session: SessionId,
    /// Its place.
    pub bookmark: Bookmark,
    /// The event.
    pub event: Event,
}

/// The state of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RunState {
    /// Nothing; the next prompt starts at once.
    #[default]
    Ready,
    /// A turn runs.
    Working,
    /// A turn runs and waits for an answer of the user.
    Paused,
}

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// The model had said all.
    EndTurn,
    /// The answer was cut by the token limit.
    MaxTokens,
    /// The turn limit was reached.
    MaxTurns,
    /// It had cost as much, or continued as long, as it may.
    Budget,
    /// The model, or a filter, declined.
    Refusal,
    /// The user cancelled.
    Cancelled,
    /// A fault ended it.
    Error,
    /// The same call had the same result over and over, and the user did not continue it.
    Repetition,
    /// The answer only announced what it was going to do, and the settings say to stop there.
    IncompleteIntent,
    /// The user chose none of the answers.
    NotChosen,
    /// The turn limit is zero: there is no chat.
    ChatDisabled,
    /// A hook refused the prompt, or stopped the turn.
    Hook,
}

/// The end of a turn in three cases, for those that do not show the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnOutcome {
    /// The model had said all.
    Done,
    /// The user cancelled.
    Cancelled,
    /// Anything else ended it.
    Unfinished,
}

impl TurnEnd {
    /// The outcome that this reason represents.
    #[must_use]
    pub fn outcome(self) -> TurnOutcome {
        match self {
            Self::EndTurn => TurnOutcome::Done,
            Self::Cancelled => TurnOutcome::Cancelled,
            Self::MaxTokens
            | Self::MaxTurns
            | Self::Budget
            | Self::Refusal
            | Self::Error
            | Self::Repetition
            | Self::IncompleteIntent
            | Self::NotChosen
            | Self::ChatDisabled
            | Self::Hook => TurnOutcome::Unfinished,
        }
    }
}

/// A call that was unfinished and is sealed now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedCall {
    /// The call.
    pub call: CallId,
    /// The state it was in; `None` where an older journal does not say.
    pub state: Option<CallState>,
}

/// How a session was resumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResumeStrategy {
    /// The server had ended in the middle of something: unfinished calls are sealed or asked again.
    Crash,
    /// Nothing was unfinished.
    #[default]
    Manual,
}

/// A model call that failed and is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRetry {
    /// Failed attempts so far.
    pub attempt: u32,
    /// How many retries there are at most.
    pub of: u32,
    /// Milliseconds until the next.
    pub delay_ms: u64,
    /// When the next begins.
    pub next: Timestamp,
    /// Milliseconds that all waits to come may take together, this one included.
    pub left_ms: u64,
    /// The class of the fault.
    pub kind: ModelErrorKind,
    /// The failed operation.
    pub reason: String,
    /// The model, as the provider knows it.
    pub model: String,
}

/// The use and cost of one model call.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCallUsage {
    /// The usage that the provider reported.
    pub usage: Usage,
    /// The model, as the provider knows it.
    pub model: String,
    /// The provider, as settings call it; empty where a journal does not say.
    pub provider: String,
    /// Its cost in US dollars, if that is known.
    pub cost: Option<f64>,
    /// How full the context window is now.
    pub context: Option<ContextUse>,
    /// How fast the answer came.
    pub pace: Pace,
}

/// The event. A session keeps thousands of them: the payload of a large variant is boxed.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A turn began.
    TurnStarted {
        /// The turn.
        turn: TurnId,
    },
    /// The turn of the session's own conversation reached another step.
    BreakpointChanged {
        /// The turn.
        turn: TurnId,
        /// The step.
        breakpoint: Breakpoint,
        /// The call that it is about.
        call: Option<CallId>,
        /// Before a model call: its number in the turn, from 1.
        model_call: Option<u32>,
        /// Before a model call: the most of the turn, where it has a limit.
        max_model_calls: Option<u32>,
    },
    /// The transcript grew by an item.
    ItemAdded {
        /// The item as it is now.
        item: Arc<Item>,
    },
    /// An item changed in more than its streamed text.
    ItemUpdated {
        /// The item as it is now.
        item: Arc<Item>,
    },
    /// An agent message grew.
    TextChunk {
        /// The item.
        item: ItemId,
        /// The ended item.
        text: String,
    },
    /// A thinking item grew.
    ThinkChunk {
        /// The item.
        item: ItemId,
        /// The ended item.
        text: String,
    },
    /// A tool call began to run.
    ToolStart {
        /// The call's item as it is now.
        item: Arc<Item>,
    },
    /// A running call put something out.
    ToolProgress {
        /// The call's item.
        item: ItemId,
        /// The call.
        call: CallId,
        /// The newest output, bounded; it replaces the earlier one.
        text: String,
    },
    /// A tool call ended, in whichever way.
    ToolEnd {
        /// The call's item as it is now.
        item: Arc<Item>,
    },
    /// A turn ended.
    Done {
        /// The turn.
        turn: TurnId,
        /// Why.
        reason: TurnEnd,
        /// Tokens of all its model calls.
        usage: Box<Usage>,
        /// Their cost.
        cost: Cost,
        /// Milliseconds from its start.
        duration_ms: u64,
        /// Model calls made.
        model_calls: u32,
        /// Tool calls made.
        tool_calls: u32,
        /// How long each part of it took.
        phases: Box<PhaseTimes>,
    },
    /// A call needs the user's answer.
    PermissionRequired {
        /// The question.
        prompt: Box<PermissionPrompt>,
    },
    /// A language server has reported what the change of a prompt that waits would add and remove.
    PermissionUpdated {
        /// The prompt.
        id: PermissionId,
        /// Its diagnostics.
        diagnostics: ProposedDiagnostics,
    },
    /// A prompt was answered or withdrawn.
    PermissionDecided {
        /// The decision and its author.
        decision: PermissionResolution,
    },
    /// The model asks the user something.
    QuestionAsked {
        /// The question.
        question: Box<Question>,
    },
    /// A question was answered or withdrawn.
    QuestionAnswered {
        /// Its outcome, and by whom.
        resolved: Box<QuestionResolution>,
    },
    /// The session's state changed.
    StateChanged {
        /// The state now.
        state: RunState,
    },
    /// The session's mode, model, effort or style of answers changed.
    ModeChanged {
        /// The mode now.
        mode: kode_base::mode::Mode,
        /// The name of the model profile now.
        model: String,
        /// How hard models think now, where the user has said so for this session.
        effort: Option<Effort>,
        /// The name of the style of the answers from the next turn on, where the user has chosen one for this session.
        output_style: Option<String>,
        /// The profile of the sandbox now, where the user has chosen one for this session.
        sandbox: Option<String>,
    },
    /// The queue or the messages to the running turn changed.
    QueueChanged {
        /// The prompts that wait for a turn of their own, next first.
        queue: Vec<QueuedPrompt>,
        /// The messages to the running turn, next first.
        steering: Vec<QueuedPrompt>,
        /// Whether prompts wait and nothing begins them by itself.
        paused: bool,
    },
    /// The session has a title: that of its first prompt, or another one, or that of its prompts again.
    TitleChanged {
        /// Its current title.
        title: String,
        /// The author of the title; `None` for the first line of its first prompt.
        by: Option<TitledBy>,
    },
    /// The session was archived, or taken out again.
    ArchivedChanged {
        /// Whether it is archived now.
        archived: bool,
    },
    /// The unsent prompt changed.
    DraftChanged {
        /// Its current value.
        draft: Option<Box<PromptDraft>>,
    },
    /// A call waits for its turn to run.
    ToolQueued {
        /// The call.
        call: CallId,
        /// The tool.
        name: String,
        /// How many calls of this answer wait, this one included.
        queue_length: usize,
    },
    /// A call took too long.
    ToolTimeout {
        /// The call.
        call: CallId,
        /// The tool.
        name: String,
    },
    /// A call was refused.
    ToolDenied {
        /// The call.
        call: CallId,
        /// The tool.
        name: String,
        /// The refusing party, and the reason.
        reason: String,
    },
    /// A call was carried out; for audits and measurements.
    ToolExecuted {
        /// The call.
        call: CallId,
        /// The tool.
        name: String,
        /// Milliseconds of the run.
        duration_ms: u64,
        /// Whether it worked.
        ok: bool,
    },
    /// The todo list was written.
    TodoChanged {
        /// The list now.
        todos: Vec<Todo>,
    },
    /// The goal of the session was set, checked or removed.
    GoalChanged {
        /// The goal now; `None` without one.
        goal: Option<Box<Goal>>,
    },
    /// The team changed: a member joined, ended, waits or goes on, a message was sent or read, or a task changed.
    TeamChanged {
        /// The team now; `None` without one.
        team: Option<Box<TeamView>>,
    },
    /// The model was reminded of its todo list.
    TodoReminder {
        /// Why.
        reason: TodoReminderReason,
    },
    /// A query begins, or the model is reminded of something other than its todo list.
    Reminder {
        /// Of what.
        kind: ReminderKind,
        /// The sub-agent that is reminded; `None` for the session's own conversation.
        agent: Option<AgentId>,
        /// How many messages the conversation has.
        messages: usize,
    },
    /// A hook ran.
    HookRan {
        /// The name of the event it ran at.
        event: String,
        /// The beginning of what it runs.
        name: String,
        /// Milliseconds it took.
        duration_ms: u64,
        /// How it ended.
        outcome: HookOutcome,
        /// Its output, in one line for people.
        message: Option<String>,
    },
    /// A background command was started.
    BackgroundStarted {
        /// It.
        task: Box<BackgroundTask>,
    },
    /// A background command has ended.
    BackgroundEnded {
        /// It, with its end.
        task: Box<BackgroundTask>,
    },
    /// Hunks came, went, moved into another state, or the text under them changed other than by typing around them.
    EditsChanged {
        /// The files or documents.
        targets: Vec<Target>,
    },
    /// Hunks were accepted, rejected, kept or undone, or a checkpoint was restored, or one of these was taken back.
    EditsResolved {
        /// How it went.
        outcome: Box<ResolutionOutcome>,
    },
    /// A prompt came, and what stood there before it can be brought back.
    CheckpointCreated {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The turn of the prompt.
        turn: TurnId,
    },
    /// The conversation went back: this item and all after it are gone.
    Rewound {
        /// The first item that is gone.
        item: ItemId,
    },
    /// A file that this session has read was changed by others.
    FileChanged {
        /// The file.
        target: Target,
        /// Whether it is gone.
        deleted: bool,
    },
    /// Settings have changed, or what of them cannot be used or waits for the user's approval.
    ConfigChanged {
        /// The files whose contents are others than before.
        files: Vec<AbsPath>,
        /// The unusable entries.
        problems: Vec<SettingsProblem>,
        /// The unapproved trust requests of workspace files.
        withheld: Vec<WithheldSetting>,
    },
    /// Files of agents, skills, commands or output styles were read again because one of them has changed.
    ExtensionsChanged {
        /// How many there are now.
        counts: ExtensionCounts,
        /// The problems of the files.
        problems: Vec<SettingsProblem>,
    },
    /// Files of the workspace ask for something that the user has not been asked about yet.
    TrustRequired {
        /// How much waits.
        waiting: TrustSummary,
    },
    /// A sub-agent began to work for a call, a new one or one that continues.
    SubagentStarted {
        /// The sub-agent.
        agent: AgentId,
        /// The call it works for.
        call: CallId,
        /// The name of its type.
        kind: String,
        /// Its topic, in a few words.
        description: String,
    },
    /// A sub-agent ended its work for a call.
    SubagentEnded {
        /// The sub-agent.
        agent: AgentId,
        /// Whether it said all it had to say.
        ok: bool,
        /// Tokens it took for this call.
        usage: Usage,
        /// Milliseconds from its start.
        duration_ms: u64,
    },
    /// Tokens of one model call.
    TokenUsage {
        /// The turn.
        turn: TurnId,
        /// The sub-agent whose conversation it is; `None` for the session's own.
        agent: Option<AgentId>,
        /// The call.
        call: Box<ModelCallUsage>,
    },
    /// The answer to a side question grew. It is shown to the client that asked, and kept nowhere.
    SideAnswer {
        /// The client's id of the question.
        ask: String,
        /// The new text.
        text: String,
    },
    /// A conversation is being compacted, or was.
    ContextCompression {
        /// The turn.
        turn: TurnId,
        /// The sub-agent whose conversation it is; `None` for the session's own.
        agent: Option<AgentId>,
        /// How far it is.
        step: CompressionStep,
    },
    /// A model call failed and is tried again.
    ModelRetry {
        /// The failure, and the time of the next attempt.
        retry: Box<ModelRetry>,
    },
    /// A session was resumed from its journal.
    AgentResumed {
        /// Calls that were unfinished and are sealed now.
        sealed: Vec<SealedCall>,
        /// Whether anything was unfinished.
        strategy: ResumeStrategy,
        /// Journal lines that could not be read and were skipped.
        skipped_records: u64,
        /// The step that the turn had reached when the process before ended.
        breakpoint: Breakpoint,
    },
    /// The state of an MCP server, or its offer, changed.
    McpChanged {
        /// All servers of the workspace as they are now.
        servers: Vec<ServerInfo>,
    },
    /// Another process writes the session from now on, or none, or this one does. It has the number of the event before it:
    /// it is no part of what the session tells, and is not told again.
    LeaseChanged {
        /// The writer; `None` without one.
        writer: Option<Box<SessionWriter>>,
        /// Whether that is this process.
        is_mine: bool,
    },
    /// The journal could not be written, and its records are kept and tried again; or that is over.
    StorageFailure {
        /// The failure and its place, how much waits, and what to do.
        message: String,
        /// Whether all is written again.
        recovered: bool,
    },
    /// Something failed that is not part of a call.
    Error {
        /// The event.
        message: String,
        /// The next step.
        hint: String,
    },
}

impl From<&LoadedExtensions> for Event {
    fn from(loaded: &LoadedExtensions) -> Self {
        Self::ExtensionsChanged { counts: loaded.counts(), problems: loaded.problems() }
    }
}

impl Event {
    /// Whether it reports an item in the transcript of a sub-agent, and so of nothing the session's own shows.
    #[must_use]
    pub fn is_of_sub_agent(&self) -> bool {
        match self {
            Self::ItemAdded { item }
            | Self::ItemUpdated { item }
            | Self::ToolStart { item }
            | Self::ToolEnd { item } => item.agent.is_some(),
            _ => false,
        }
    }

    /// The channel the event belongs to.
    #[must_use]
    pub fn channel(&self) -> Channel {
        match self {
            Self::TurnStarted { .. }
            | Self::Rewound { .. }
            | Self::ItemAdded { .. }
            | Self::ItemUpdated { .. }
            | Self::TextChunk { .. }
            | Self::ThinkChunk { .. }
            | Self::ToolStart { .. }
            | Self::ToolProgress { .. }
            | Self::ToolEnd { .. }
            | Self::SideAnswer { .. }
            | Self::Done { .. } => Channel::Progress,
            Self::PermissionRequired { .. }
            | Self::PermissionUpdated { .. }
            | Self::PermissionDecided { .. }
            | Self::QuestionAsked { .. }
            | Self::QuestionAnswered { .. } => Channel::Control,
            Self::BreakpointChanged { .. }
            | Self::StateChanged { .. }
            | Self::ModeChanged { .. }
            | Self::QueueChanged { .. }
            | Self::TitleChanged { .. }
            | Self::ArchivedChanged { .. }
            | Self::DraftChanged { .. }
            | Self::ToolQueued { .. }
            | Self::ToolTimeout { .. }
            | Self::ToolDenied { .. }
            | Self::ToolExecuted { .. }
            | Self::TodoChanged { .. }
            | Self::GoalChanged { .. }
            | Self::TeamChanged { .. }
            | Self::TodoReminder { .. }
            | Self::Reminder { .. }
            | Self::HookRan { .. }
            | Self::BackgroundStarted { .. }
            | Self::BackgroundEnded { .. }
            | Self::EditsChanged { .. }
            | Self::EditsResolved { .. }
            | Self::CheckpointCreated { .. }
            | Self::FileChanged { .. }
            | Self::ConfigChanged { .. }
            | Self::ExtensionsChanged { .. }
            | Self::TrustRequired { .. }
            | Self::McpChanged { .. }
            | Self::SubagentStarted { .. }
            | Self::SubagentEnded { .. }
            | Self::TokenUsage { .. }
            | Self::ContextCompression { .. }
            | Self::ModelRetry { .. }
            | Self::AgentResumed { .. }
            | Self::LeaseChanged { .. }
            | Self::StorageFailure { .. }
            | Self::Error { .. } => Channel::Monitor,
        }
    }

    /// Whether a user or a program waits for the event: requests to the user and their ends, the end of a turn, and the state
    /// of the session.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        self.channel() == Channel::Control || matches!(self, Self::Done { .. } | Self::StateChanged { .. })
    }
}

/// A step of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// How far the compaction of a conversation is.
#[derive(Clone, Debug, PartialEq)]
pub enum CompressionStep {
    /// It began.
    Started {
        /// Why.
        cause: Cause,
        /// Messages there are.
        messages: u64,
        /// Tokens of the next request.
        tokens: u64,
        /// Tokens the model can read.
        window: u64,
    },
    /// The summary is being written.
    Progress {
        /// Characters written so far.
        written: u64,
    },
    /// It is done.
    Done {
        /// The action.
        compaction: Box<Compaction>,
    },
    /// It ended, and the conversation is as it was.
    Unchanged {
        /// Why.
        reason: String,
    },
}

impl From<WatchReport> for Event {
    fn from(report: WatchReport) -> Self {
        match report {
            WatchReport::Changed { target, deleted } => Self::FileChanged { target, deleted },
            WatchReport::NotWatching { reason } => Self::Error {
                message: format!("Not all files that were read can be watched: {reason}."),
                hint: "Changes by other programs are still found with the next prompt and before each edit."
                    .to_owned(),
            },
        }
    }
}

/// A prompt that waits for the turn before it to end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedPrompt {
    /// Its id.
    pub id: QueueId,
    /// Its text.
    pub text: String,
    /// The options of its turn.
    #[serde(default, skip_serializing_if = "TurnOptions::is_default")]
    pub options: TurnOptions,
}
