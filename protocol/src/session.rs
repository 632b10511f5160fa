//! Sessions: begin, load, configure and close them, and the snapshot a client starts from.
//!
//! Rule: a snapshot is what all events up to its bookmark add up to; a client folds the later ones into it and
//! needs nothing else.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::ContextUse;
use crate::event::{Bookmark, Channel, SubagentStarted, TrustRequired};
use crate::goal::Goal;
use crate::item::Item;
use crate::permission::{Mode, PermissionPrompt};
use crate::question::Question;
use crate::queue::Draft;
use crate::state::{Effort, EffortChoice, RunState, SessionWriter};
use crate::task::BackgroundTask;
use crate::team::Team;
use crate::text::{AgentId, ItemId, SessionId, TurnId, Uri};
use crate::todo::Todo;
use crate::turn::{QueuedPrompt, Usage};

/// The initial options of a session; absent ones come from the user's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewSessionParams {
    /// The folder to work in, as a `file:` URI; without it the workspace's own folders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_folder: Option<Uri>,
    /// The mode to begin in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The name of the model profile, one of `agent/models/list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether it works in a new git worktree of the folder, at the newest commit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub worktree: bool,
}

/// The git worktree that a session works in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionWorktree {
    /// Its folder, as a `file:` URI.
    pub uri: Uri,
    /// Its folder as a path.
    pub path: String,
    /// The branch that was made for it.
    pub branch: String,
    /// The commit that it began at.
    pub base: String,
    /// The folder of the repository that it was made of, as a path.
    pub workspace: String,
}

/// A session that has started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewSessionResult {
    /// The session.
    pub session_id: SessionId,
    /// The session as it is now.
    pub snapshot: Snapshot,
}

/// Which session is loaded, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadSessionParams {
    /// The session.
    pub session_id: SessionId,
    /// Number of the newest event that the client has seen. With it the events after that one are sent again, which
    /// a client needs that records events; one that shows state leaves it out and continues from the snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// Only events of these channels are sent from now on; of all when it is left out or empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<Channel>,
    /// Only events of these types are sent from now on, as their `type` says; of all when it is left out or empty. `gap` is
    /// always sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// The most items wanted, counted from the newest; the server may give fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<u32>,
}

/// A session as it is at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// The session.
    pub session_id: SessionId,
    /// Its title; empty before the first prompt.
    pub title: String,
    /// The newest event that the snapshot contains, number 0 when there was none, and when the snapshot was taken.
    /// Events up to this number change nothing any more.
    pub bookmark: Bookmark,
    /// The state of the session.
    pub state: RunState,
    /// Its mode.
    pub mode: Mode,
    /// Its model.
    pub model: ModelRef,
    /// The newest items of the transcript, oldest first.
    pub items: Vec<Item>,
    /// Whether there are older items; `agent/session/items` gives them.
    pub more_items: bool,
    /// The prompts that wait for the user, oldest first.
    pub pending_permissions: Vec<PermissionPrompt>,
    /// The questions of the model that wait for the user, oldest first.
    #[serde(default)]
    pub questions: Vec<Question>,
    /// The todo list.
    #[serde(default)]
    pub todos: Vec<Todo>,
    /// The goal, and its progress; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
    /// The git worktree it works in; absent where it works in the workspace itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<SessionWorktree>,
    /// The team of the main conversation and the sub-agents in the background; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<Team>,
    /// The prompts that wait for their turn, next first.
    pub queue: Vec<QueuedPrompt>,
    /// The messages to the running turn, next first.
    #[serde(default)]
    pub steering: Vec<QueuedPrompt>,
    /// Whether the queue waits for a person, see `queue_changed`.
    #[serde(default)]
    pub queue_paused: bool,
    /// The unsent prompt; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<Draft>,
    /// The background commands that run, oldest first.
    #[serde(default)]
    pub tasks: Vec<BackgroundTask>,
    /// The sub-agents that work at this moment, as in `subagent_started`.
    #[serde(default)]
    pub subagents: Vec<SubagentStarted>,
    /// How hard models think, where the user has said so for this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The style of the answers, where the user has chosen one for this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_style: Option<String>,
    /// The profile of the sandbox, where the user has chosen one for this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// Tokens of all turns.
    pub usage: Usage,
    /// The cost in US dollars; absent where a part is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// How full the context window is; absent before the first answer since the session was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextUse>,
    /// How much of what files of the workspace ask for waits for the user; absent when nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_required: Option<TrustRequired>,
    /// Present when this server does not write the session but follows what another one writes: requests that change the
    /// session fail with `sessionBusy` then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub following: Option<FollowedSession>,
}

/// A session that this server follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FollowedSession {
    /// Its writer; absent without one: the next prompt makes it this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<SessionWriter>,
}

/// Which session this server is to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TakeOverSessionParams {
    /// The session.
    pub session_id: SessionId,
    /// Whether a turn that runs there is cancelled, as its user would; without it the other server declines.
    #[serde(default)]
    pub force: bool,
}

/// Which sub-agent is shown, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadSubagentParams {
    /// The session.
    pub session_id: SessionId,
    /// The sub-agent.
    pub agent_id: AgentId,
    /// The most items wanted, counted from the newest; the server may give fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<u32>,
}

/// A sub-agent of a session as it is at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subagent {
    /// The sub-agent.
    pub agent_id: AgentId,
    /// The name of its type.
    pub agent_type: String,
    /// The purpose of its first call, in a few words.
    pub description: String,
    /// The newest items of its transcript, oldest first.
    pub items: Vec<Item>,
    /// Whether there are older items.
    pub more_items: bool,
    /// Tokens of all its turns.
    pub usage: Usage,
    /// The newest event that is in it: events up to this number change nothing of it any more.
    pub bookmark: Bookmark,
}

/// Which older items of a transcript are wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetItemsParams {
    /// The session.
    pub session_id: SessionId,
    /// The sub-agent whose transcript it is; absent for the session's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The item before which they stand: the oldest of those the client has.
    pub before: ItemId,
    /// The most items wanted; the server may give fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A page of a transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemPage {
    /// The items just before the one that was named, oldest first; none before the oldest.
    pub items: Vec<Item>,
    /// Whether there are older items.
    pub more_items: bool,
}

/// The model of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelRef {
    /// The name of its profile.
    pub name: String,
    /// Its provider; absent while the profile is not configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
}

/// Which session ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloseSessionParams {
    /// The session.
    pub session_id: SessionId,
}

/// The changes of a session; absent fields stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigureSessionParams {
    /// The session.
    pub session_id: SessionId,
    /// The mode from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The name of the model profile from the next model call on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How hard models think from the next model call on; `auto` is what the profile and the settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<EffortChoice>,
    /// The style of the answers from the next turn on, built in or a file's, whatever its letter case; an empty name is
    /// what the settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_style: Option<String>,
    /// The profile of the sandbox that commands run in from now on: one of `sandboxProfiles`; `default` is what the settings
    /// say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// How changes reach the files from the next call on, instead of as the user has set for all sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Vec<EditDeliveryRule>>,
}

/// How changes reach certain files; of several rules the first that matches decides, and where none does the mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditDeliveryRule {
    /// Which files: a glob of paths relative to a workspace folder; one without a slash matches names in all folders.
    pub glob: String,
    /// How changes reach them.
    pub delivery: EditDelivery,
}

/// How a change reaches a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum EditDelivery {
    /// The user is shown the change and says which hunks of it are made.
    Propose,
    /// The change is made at once; its hunks wait to be kept or undone.
    Apply,
}

/// The state in force in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigureSessionResult {
    /// The mode.
    pub mode: Mode,
    /// The model.
    pub model: ModelRef,
    /// How hard models think, where the user has said so for this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The style of the answers, where the user has chosen one for this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_style: Option<String>,
    /// How changes reach the files.
    pub delivery: Vec<EditDeliveryRule>,
    /// The profile of the sandbox, where the user has chosen one for this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The profiles of the sandbox that there are.
    #[serde(default)]
    pub sandbox_profiles: Vec<SandboxProfile>,
}

/// A profile of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxProfile {
    /// Its name.
    pub name: String,
    /// Its purpose, for people; may be empty.
    pub description: String,
}

/// The session of the spending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetUsageParams {
    /// The session.
    pub session_id: SessionId,
}

/// The usage of a session by model since it began, with its sub-agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionUsage {
    /// Tokens of all model calls that were entered one by one.
    pub usage: Usage,
    /// The cost in US dollars; absent where a part is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The part of the cost that is known, in US dollars.
    pub known_cost: f64,
    /// By model, in the order of their names.
    pub models: Vec<ModelUsage>,
    /// By turn, oldest first; only the newest are listed.
    pub turns: Vec<TurnUsage>,
}

/// The usage of one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelUsage {
    /// Its name as the provider knows it.
    pub model: String,
    /// Its calls.
    pub calls: u64,
    /// Its tokens.
    pub usage: Usage,
    /// The cost in US dollars; absent where a part is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// The usage of one turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnUsage {
    /// The turn.
    pub turn_id: TurnId,
    /// Its tokens.
    pub usage: Usage,
    /// The cost in US dollars; absent where a part is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}
