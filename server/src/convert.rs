//! Between the engine's types and those of the wire.
//!
//! Rule: values only, no decisions; matches are exhaustive, so that a new case of either side is not forgotten.

pub mod agents;
pub mod commands;
pub mod context;
pub(crate) mod error;
mod event;
mod goal;
pub mod hooks;
pub mod input;
mod item;
pub mod mcp;
pub mod models;
mod permission;
pub mod question;
pub mod review;
pub mod rules;
pub mod sessions;
mod task;
mod team;
pub mod transfer;
mod turn;

use jiff::Timestamp;
use kode_engine::agent::history::Snapshot;
use kode_engine::agent::history::paging::ItemPage;
use kode_engine::agent::state::agents::{SubAgentView, WorkingAgent};
use kode_engine::base::file_uri::{self, DriveSpelling};
use kode_engine::base::ids::{
    AgentId, CallId, CheckpointId, HunkId, ItemId, PermissionId, QueueId, ResolutionId, SessionId, TurnId,
};
use kode_engine::base::mode::Mode;
use kode_engine::base::paths::{AbsPath, Target};
use kode_engine::journal::lease::SessionWriter;
use kode_engine::model::Usage;
use kode_engine::model::models::Models;
use kode_engine::model::provider::Provider;
use kode_engine::permission::{BadRule, Deliveries, EditDelivery, EditDeliveryRule};
use kode_engine::process::worktree::Worktree;
use kode_engine::record::draft::PromptDraft;
use kode_engine::record::event::{Bookmark, Channel, QueuedPrompt, RunState};
use kode_protocol as wire;
use serde_json::Value;

use crate::documents::{self, Documents};
use error::RequestError;
pub use event::{event, gap};
use item::call_state;
pub(crate) use item::item;
pub use item::tool_kind;
pub use permission::{prompt, scope_from_wire};
pub use task::task;
pub(crate) use turn::turn_of;

// -- ids, times, places -------------------------------------------------------------------------------------------

/// A session's id.
#[must_use]
pub fn session_id(id: &SessionId) -> wire::SessionId {
    wire::SessionId::new(id.as_str())
}

/// A turn's id.
#[must_use]
pub fn turn_id(id: &TurnId) -> wire::TurnId {
    wire::TurnId::new(id.as_str())
}

/// An item's id.
#[must_use]
pub fn item_id(id: &ItemId) -> wire::ItemId {
    wire::ItemId::new(id.as_str())
}

/// A sub-agent's id.
#[must_use]
pub fn agent_id(id: &AgentId) -> wire::AgentId {
    wire::AgentId::new(id.as_str())
}

/// A call's id.
#[must_use]
pub fn call_id(id: &CallId) -> wire::CallId {
    wire::CallId::new(id.as_str())
}

/// The id of a waiting prompt.
#[must_use]
pub fn queue_id(id: &QueueId) -> wire::QueueId {
    wire::QueueId::new(id.as_str())
}

/// A hunk's id.
#[must_use]
pub fn hunk_id(id: &HunkId) -> wire::HunkId {
    wire::HunkId::new(id.as_str())
}

/// The id of an act of the user on hunks.
#[must_use]
pub fn resolution_id(id: &ResolutionId) -> wire::ResolutionId {
    wire::ResolutionId::new(id.as_str())
}

/// A checkpoint's id.
#[must_use]
pub fn checkpoint_id(id: &CheckpointId) -> wire::CheckpointId {
    wire::CheckpointId::new(id.as_str())
}

fn permission_id(id: &PermissionId) -> wire::PermissionId {
    wire::PermissionId::new(id.as_str())
}

pub(crate) fn timestamp(time: Timestamp) -> wire::Timestamp {
    wire::Timestamp::new(time.to_string())
}

/// How files are named to the reader of a value.
#[derive(Clone, Copy, Debug)]
pub struct UriNames<'a>(Option<&'a Documents>);

impl<'a> UriNames<'a> {
    /// As a client writes the URIs of its own files.
    #[must_use]
    pub const fn of(documents: &'a Documents) -> Self {
        Self(Some(documents))
    }

    /// For readers that have named no file: files on the disk, and programs.
    #[must_use]
    pub const fn standard() -> Self {
        Self(None)
    }

    /// The URI of a file or untitled document.
    #[must_use]
    pub fn uri(self, target: &Target) -> wire::Uri {
        wire::Uri::new(match (self.0, target) {
            (Some(documents), target) => documents.uri_of(target),
            (None, Target::File(path)) => file_uri::of_path(path, DriveSpelling::default()),
            (None, Target::Untitled(uri)) => uri.clone(),
        })
    }

    fn file(self, path: AbsPath) -> wire::Uri {
        self.uri(&Target::File(path))
    }
}

/// The file or untitled document that a parameter names by its URI.
///
/// # Errors
/// `invalidParams` at `path` when it is not a URI.
pub(crate) fn target_from_wire(path: &str, uri: &wire::Uri) -> Result<Target, RequestError> {
    let parsed = lsp_types::Url::parse(uri.as_str());
    parsed
        .map(|uri| documents::target(&uri))
        .map_err(|reason| error::invalid_params(path, &format!("`{uri}` is not a URI: {reason}")))
}

// -- sessions -----------------------------------------------------------------------------------------------------

/// A session as it is.
#[must_use]
pub fn snapshot(models: &Models, snapshot: Snapshot, names: UriNames<'_>) -> wire::Snapshot {
    let id = snapshot.id;
    wire::Snapshot {
        session_id: session_id(&id),
        title: snapshot.title,
        bookmark: bookmark(snapshot.bookmark),
        state: run_state(snapshot.state),
        mode: mode(snapshot.mode),
        model: model_ref(models, &snapshot.model),
        items: snapshot.items.into_iter().map(|each| item(each, names)).collect(),
        more_items: snapshot.more_items,
        pending_permissions: snapshot.pending.into_iter().map(|pending| prompt(&id, pending)).collect(),
        questions: snapshot.questions.into_iter().map(|asked| question::question(&id, asked)).collect(),
        todos: question::todos(&snapshot.todos),
        goal: snapshot.goal.map(goal::goal),
        worktree: snapshot.worktree.as_ref().map(|own| worktree(own, names)),
        team: snapshot.team.map(team::team),
        queue: snapshot.queue.into_iter().map(queued).collect(),
        steering: snapshot.steering.into_iter().map(queued).collect(),
        queue_paused: snapshot.queue_paused,
        draft: snapshot.draft.map(draft),
        tasks: snapshot.tasks.into_iter().map(task).collect(),
        subagents: snapshot.agents.into_iter().map(working).collect(),
        effort: snapshot.effort.map(models::effort),
        output_style: snapshot.output_style,
        sandbox: snapshot.sandbox,
        usage: usage(snapshot.usage),
        cost: snapshot.cost.total(),
        context: snapshot.context.as_ref().map(context::context_use),
        trust_required: None,
        following: None,
    }
}

fn worktree(worktree: &Worktree, names: UriNames<'_>) -> wire::SessionWorktree {
    wire::SessionWorktree {
        uri: names.file(worktree.path.clone()),
        path: worktree.path.to_string(),
        branch: worktree.branch.clone(),
        base: worktree.base.clone(),
        workspace: worktree.of.to_string(),
    }
}

/// A server that writes a session.
#[must_use]
pub fn writer(writer: SessionWriter) -> wire::SessionWriter {
    let host = writer.other_host().map(str::to_owned);
    let SessionWriter { pid, host: _, client, version, since, started: _, lease: _ } = writer;
    wire::SessionWriter { pid, host, client, version, since: timestamp(since) }
}

/// A channel that a client names.
#[must_use]
pub fn channel_from_wire(channel: wire::Channel) -> Channel {
    match channel {
        wire::Channel::Progress => Channel::Progress,
        wire::Channel::Control => Channel::Control,
        wire::Channel::Monitor => Channel::Monitor,
    }
}

/// A sub-agent as it is.
#[must_use]
pub fn sub_agent(agent: SubAgentView, names: UriNames<'_>) -> wire::Subagent {
    wire::Subagent {
        agent_id: agent_id(&agent.id),
        agent_type: agent.kind,
        description: agent.description,
        items: agent.items.into_iter().map(|each| item(each, names)).collect(),
        more_items: agent.more_items,
        usage: usage(agent.usage),
        bookmark: bookmark(agent.bookmark),
    }
}

fn working(agent: WorkingAgent) -> wire::SubagentStarted {
    let WorkingAgent { id, call, kind, description } = agent;
    wire::SubagentStarted { agent_id: agent_id(&id), call_id: call_id(&call), agent_type: kind, description }
}

/// A page of a transcript.
#[must_use]
pub fn item_page(page: ItemPage, names: UriNames<'_>) -> wire::ItemPage {
    let items = page.items.into_iter().map(|each| item(each, names)).collect();
    wire::ItemPage { items, more_items: page.more_items }
}

/// The model of a session.
#[must_use]
pub fn model_ref(models: &Models, name: &str) -> wire::ModelRef {
    let provider = models.profile(name).ok().map(|profile| provider(profile.provider).to_owned());
    wire::ModelRef { name: name.to_owned(), provider }
}

/// The provider of a model.
#[must_use]
pub fn provider(provider: Provider) -> &'static str {
    provider.name()
}

/// A mode.
#[must_use]
pub fn mode(mode: Mode) -> wire::Mode {
    match mode {
        Mode::Default => wire::Mode::Default,
        Mode::AcceptEdits => wire::Mode::AcceptEdits,
        Mode::Plan => wire::Mode::Plan,
        Mode::DontAsk => wire::Mode::DontAsk,
        Mode::BypassPermissions => wire::Mode::BypassPermissions,
        Mode::Approval => wire::Mode::Approval,
        Mode::Readonly => wire::Mode::Readonly,
    }
}

/// A mode a client asks for.
#[must_use]
pub fn mode_from_wire(mode: wire::Mode) -> Mode {
    match mode {
        wire::Mode::Default => Mode::Default,
        wire::Mode::AcceptEdits => Mode::AcceptEdits,
        wire::Mode::Plan => Mode::Plan,
        wire::Mode::DontAsk => Mode::DontAsk,
        wire::Mode::BypassPermissions => Mode::BypassPermissions,
        wire::Mode::Approval => Mode::Approval,
        wire::Mode::Readonly => Mode::Readonly,
    }
}

/// Rules for how changes reach files.
#[must_use]
pub fn deliveries(deliveries: &Deliveries) -> Vec<wire::EditDeliveryRule> {
    let rule = |rule: EditDeliveryRule| wire::EditDeliveryRule {
        glob: rule.glob,
        delivery: match rule.delivery {
            EditDelivery::Propose => wire::EditDelivery::Propose,
            EditDelivery::Apply => wire::EditDelivery::Apply,
        },
    };
    deliveries.rules().into_iter().map(rule).collect()
}

/// Rules that a client sets.
///
/// # Errors
/// [`BadRule`], naming the first that is no glob.
pub fn deliveries_from_wire(rules: Vec<wire::EditDeliveryRule>) -> Result<Deliveries, BadRule> {
    let rule = |rule: wire::EditDeliveryRule| EditDeliveryRule {
        glob: rule.glob,
        delivery: match rule.delivery {
            wire::EditDelivery::Propose => EditDelivery::Propose,
            wire::EditDelivery::Apply => EditDelivery::Apply,
        },
    };
    Deliveries::new(rules.into_iter().map(rule).collect())
}

fn run_state(state: RunState) -> wire::RunState {
    match state {
        RunState::Ready => wire::RunState::Ready,
        RunState::Working => wire::RunState::Working,
        RunState::Paused => wire::RunState::Paused,
    }
}

fn queued(prompt: QueuedPrompt) -> wire::QueuedPrompt {
    wire::QueuedPrompt { queue_id: queue_id(&prompt.id), text: prompt.text }
}

/// A draft; what goes with it is left out where an older build wrote it in another form.
fn draft(draft: PromptDraft) -> wire::Draft {
    let parts = match draft.parts {
        Value::Null => Vec::new(),
        parts => serde_json::from_value(parts).unwrap_or_else(|error| {
            tracing::warn!(%error, "the attachments of a draft cannot be read");
            Vec::new()
        }),
    };
    wire::Draft { text: draft.text, parts }
}

pub(crate) fn usage(usage: Usage) -> wire::Usage {
    wire::Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cache_read_tokens: usage.cache_read_tokens,
        cache_write_tokens: usage.cache_write_tokens,
        thinking_tokens: usage.thinking_tokens,
    }
}

fn bookmark(bookmark: Bookmark) -> wire::Bookmark {
    wire::Bookmark { seq: bookmark.seq, timestamp: timestamp(bookmark.timestamp) }
}

#[cfg(test)]
mod tests;
