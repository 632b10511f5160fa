//! Between the engine's types and those of the wire.
//!
//! Rule: values only, no decisions; matches are exhaustive, so that a new case of either side is not forgotten.

pub mod agents;
pub mod commands;
pub mod context;
pub mod hooks;
pub mod input;
pub mod mcp;
pub mod models;
pub mod question;
pub mod review;
pub mod rules;
pub mod sessions;
mod task;
pub mod transfer;
mod turn;

use jiff::Timestamp;
use kode_engine::context::meter::ContextUse;
use kode_engine::event::{
    AuditEntry, Bookmark, CallState, Channel, Event, EventRecord, Gap, Item, ItemBody, NoticeLevel,
    QueuedPrompt, RunState, ToolCallItem,
};
use kode_engine::ids::{
    AgentId, CallId, CheckpointId, HunkId, ItemId, PermissionId, QueueId, ResolutionId, SessionId, TurnId,
};
use kode_engine::journal::lease::Writer;
use kode_engine::model::models::Models;
use kode_engine::model::profile::Provider;
use kode_engine::model::{Effort, Usage};
use kode_engine::paths::Target;
use kode_engine::permission::{
    BadRule, Decision, Deliveries, Delivery, DeliveryRule, Mode, Offer, Outcome, PermissionPrompt, Preview,
    Scope,
};
use kode_engine::session::Snapshot;
use kode_engine::session::agents::{AgentView, WorkingAgent};
use kode_engine::session::draft::Draft;
use kode_engine::session::paging::ItemPage;
use kode_engine::tools::{ToolErrorKind, ToolKind};
use kode_protocol as wire;
use serde_json::Value;

use crate::display::{both_ends, prompt_lines};
pub use task::task;

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

/// The URI of a file or untitled document.
#[must_use]
pub fn uri(target: &Target) -> wire::Uri {
    match target {
        // An absolute path always has a URI.
        Target::File(path) => wire::Uri::new(
            lsp_types::Url::from_file_path(path).map_or_else(|()| path.to_string(), |uri| uri.to_string()),
        ),
        Target::Untitled(uri) => wire::Uri::new(uri.as_str()),
    }
}

// -- sessions -----------------------------------------------------------------------------------------------------

/// A session as it is.
#[must_use]
pub fn snapshot(models: &Models, snapshot: Snapshot) -> wire::Snapshot {
    let id = snapshot.id;
    wire::Snapshot {
        session_id: session_id(&id),
        title: snapshot.title,
        bookmark: bookmark(snapshot.bookmark),
        state: run_state(snapshot.state),
        mode: mode(snapshot.mode),
        model: model_ref(models, &snapshot.model),
        items: snapshot.items.into_iter().map(item).collect(),
        more_items: snapshot.more_items,
        pending_permissions: snapshot.pending.into_iter().map(|pending| prompt(&id, pending)).collect(),
        questions: snapshot.questions.into_iter().map(|asked| question::question(&id, asked)).collect(),
        todos: question::todos(&snapshot.todos),
        queue: snapshot.queue.into_iter().map(queued).collect(),
        steering: snapshot.steering.into_iter().map(queued).collect(),
        queue_paused: snapshot.queue_paused,
        draft: snapshot.draft.map(draft),
        tasks: snapshot.tasks.into_iter().map(task).collect(),
        subagents: snapshot.agents.into_iter().map(working).collect(),
        effort: snapshot.effort.map(models::effort),
        output_style: snapshot.output_style,
        usage: usage(snapshot.usage),
        cost: snapshot.cost.total(),
        context: snapshot.context.as_ref().map(context::context_use),
        trust_required: None,
        following: None,
    }
}

/// A server that writes a session.
#[must_use]
pub fn writer(writer: Writer) -> wire::SessionWriter {
    let Writer { pid, client, version, since, started: _, lease: _ } = writer;
    wire::SessionWriter { pid, client, version, since: timestamp(since) }
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
pub fn sub_agent(agent: AgentView) -> wire::Subagent {
    wire::Subagent {
        agent_id: agent_id(&agent.id),
        agent_type: agent.kind,
        description: agent.description,
        items: agent.items.into_iter().map(item).collect(),
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
pub fn item_page(page: ItemPage) -> wire::ItemPage {
    wire::ItemPage { items: page.items.into_iter().map(item).collect(), more_items: page.more_items }
}

/// The model of a session.
#[must_use]
pub fn model_ref(models: &Models, name: &str) -> wire::ModelRef {
    let provider = models.profile(name).ok().map(|profile| provider(profile.provider).to_owned());
    wire::ModelRef { name: name.to_owned(), provider }
}

/// Who serves a model.
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
    let rule = |rule: DeliveryRule| wire::EditDeliveryRule {
        glob: rule.glob,
        delivery: match rule.delivery {
            Delivery::Propose => wire::EditDelivery::Propose,
            Delivery::Apply => wire::EditDelivery::Apply,
        },
    };
    deliveries.rules().into_iter().map(rule).collect()
}

/// Rules that a client sets.
///
/// # Errors
/// [`BadRule`], naming the first that is no glob.
pub fn deliveries_from_wire(rules: Vec<wire::EditDeliveryRule>) -> Result<Deliveries, BadRule> {
    let rule = |rule: wire::EditDeliveryRule| DeliveryRule {
        glob: rule.glob,
        delivery: match rule.delivery {
            wire::EditDelivery::Propose => Delivery::Propose,
            wire::EditDelivery::Apply => Delivery::Apply,
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
fn draft(draft: Draft) -> wire::Draft {
    let parts = match draft.parts {
        Value::Null => Vec::new(),
        parts => serde_json::from_value(parts).unwrap_or_else(|error| {
            tracing::warn!(%error, "what goes with a draft cannot be read");
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

// -- items --------------------------------------------------------------------------------------------------------

pub(crate) fn item(item: Item) -> wire::Item {
    wire::Item {
        item_id: item_id(&item.id),
        turn_id: turn_id(&item.turn),
        agent_id: item.agent.as_ref().map(agent_id),
        timestamp: timestamp(item.timestamp),
        body: match item.body {
            ItemBody::UserMessage { text, attachments, steered, command } => {
                wire::ItemBody::UserMessage(wire::UserMessage {
                    command: command.map(commands::command_use),
                    steered,
                    text,
                    attachments: attachments.into_iter().map(input::attachment).collect(),
                })
            }
            ItemBody::AgentMessage { text, complete, interrupted, model, duration_ms } => {
                wire::ItemBody::AgentMessage(wire::AgentMessage {
                    text,
                    complete,
                    interrupted,
                    model,
                    duration_ms,
                })
            }
            ItemBody::Thinking { text, complete } => {
                wire::ItemBody::Thinking(wire::Thinking { text, complete })
            }
            ItemBody::ToolCall(call) => wire::ItemBody::ToolCall(Box::new(tool_call(*call))),
            ItemBody::Command { name, arguments, text, data, failed, go_to } => {
                let go_to = go_to.as_ref().map(session_id);
                wire::ItemBody::Command(wire::CommandOutput { name, arguments, text, data, failed, go_to })
            }
            ItemBody::Notice { level, text, hint, kind } => wire::ItemBody::Notice(wire::Notice {
                level: notice_level(level),
                text,
                hint,
                kind: kind.map(turn::notice_kind),
            }),
        },
    }
}

fn tool_call(call: ToolCallItem) -> wire::ToolCall {
    wire::ToolCall {
        call_id: call_id(&call.call),
        name: call.name,
        title: call.title,
        kind: call.kind.map(tool_kind),
        input: call.input,
        state: call_state(call.state),
        display: call.display,
        structured: call.structured,
        error: call.error.map(tool_error_kind),
        started_at: call.started.map(timestamp),
        ended_at: call.ended.map(timestamp),
        audit: call.audit.into_iter().map(audit_entry).collect(),
    }
}

fn audit_entry(entry: AuditEntry) -> wire::AuditEntry {
    wire::AuditEntry { state: call_state(entry.state), at: timestamp(entry.at) }
}

fn notice_level(level: NoticeLevel) -> wire::NoticeLevel {
    match level {
        NoticeLevel::Info => wire::NoticeLevel::Info,
        NoticeLevel::Warning => wire::NoticeLevel::Warning,
        NoticeLevel::Error => wire::NoticeLevel::Error,
    }
}

/// What a tool does to the world.
#[must_use]
pub fn tool_kind(kind: ToolKind) -> wire::ToolKind {
    match kind {
        ToolKind::ReadOnly => wire::ToolKind::ReadOnly,
        ToolKind::Write => wire::ToolKind::Write,
        ToolKind::Execute => wire::ToolKind::Execute,
    }
}

fn call_state(state: CallState) -> wire::CallState {
    match state {
        CallState::Pending => wire::CallState::Pending,
        CallState::ApprovalRequired => wire::CallState::ApprovalRequired,
        CallState::Executing => wire::CallState::Executing,
        CallState::Completed => wire::CallState::Completed,
        CallState::Failed => wire::CallState::Failed,
        CallState::Denied => wire::CallState::Denied,
        CallState::Sealed => wire::CallState::Sealed,
    }
}

fn tool_error_kind(kind: ToolErrorKind) -> wire::ToolErrorKind {
    match kind {
        ToolErrorKind::UnknownTool => wire::ToolErrorKind::UnknownTool,
        ToolErrorKind::InvalidInput => wire::ToolErrorKind::InvalidInput,
        ToolErrorKind::NotFound => wire::ToolErrorKind::NotFound,
        ToolErrorKind::Forbidden => wire::ToolErrorKind::Forbidden,
        ToolErrorKind::Mismatch => wire::ToolErrorKind::Mismatch,
        ToolErrorKind::Conflict => wire::ToolErrorKind::Conflict,
        ToolErrorKind::Denied => wire::ToolErrorKind::Denied,
        ToolErrorKind::Timeout => wire::ToolErrorKind::Timeout,
        ToolErrorKind::Cancelled => wire::ToolErrorKind::Cancelled,
        ToolErrorKind::Failed => wire::ToolErrorKind::Failed,
    }
}

/// The text of a prompt is cut to so many characters, both ends kept.
const PROMPT_TEXT_LIMIT: usize = 20_000;

// -- permissions --------------------------------------------------------------------------------------------------

/// A permission prompt of a session.
#[must_use]
pub fn prompt(session: &SessionId, prompt: PermissionPrompt) -> wire::PermissionPrompt {
    let text = both_ends(&prompt_lines(&prompt).join("\n"), PROMPT_TEXT_LIMIT);
    wire::PermissionPrompt {
        text,
        session_id: session_id(session),
        permission_id: permission_id(&prompt.id),
        call_id: call_id(&prompt.call),
        item_id: item_id(&prompt.item),
        agent_id: prompt.agent.as_ref().map(agent_id),
        tool: prompt.tool,
        title: prompt.title,
        reason: prompt.reason,
        preview: match prompt.preview {
            Preview::Command { command, cwd } => {
                wire::Preview::Command(wire::CommandPreview { command, cwd })
            }
            Preview::Diff { paths, unified } => wire::Preview::Diff(wire::DiffPreview { paths, unified }),
            Preview::Paths { paths } => wire::Preview::Paths(wire::PathsPreview { paths }),
        },
        risks: prompt.risks,
        scopes: prompt.scopes.into_iter().map(scope).collect(),
        offers: prompt.offers.into_iter().map(offer).collect(),
        input: prompt.input,
        timestamp: timestamp(prompt.timestamp),
    }
}

fn offer(offer: Offer) -> wire::Offer {
    wire::Offer {
        scope: scope(offer.scope),
        rules: offer.rules,
        spared: offer.spared.map(|spared| wire::Spared { matched: spared.matched, of: spared.of }),
    }
}

fn scope(scope: Scope) -> wire::Scope {
    match scope {
        Scope::Once => wire::Scope::Once,
        Scope::Session => wire::Scope::Session,
        Scope::Project => wire::Scope::Project,
        Scope::User => wire::Scope::User,
    }
}

/// How far a client wants a yes to reach.
#[must_use]
pub fn scope_from_wire(scope: wire::Scope) -> Scope {
    match scope {
        wire::Scope::Once => Scope::Once,
        wire::Scope::Session => Scope::Session,
        wire::Scope::Project => Scope::Project,
        wire::Scope::User => Scope::User,
    }
}

fn decided(decision: Decision) -> wire::PermissionDecided {
    wire::PermissionDecided {
        permission_id: permission_id(&decision.id),
        call_id: call_id(&decision.call),
        outcome: match decision.outcome {
            Outcome::Allow => wire::PermissionOutcome::Allow,
            Outcome::Deny => wire::PermissionOutcome::Deny,
            Outcome::Cancelled => wire::PermissionOutcome::Cancelled,
        },
        scope: scope(decision.scope),
        by: decision.by,
        feedback: decision.feedback,
    }
}

// -- events -------------------------------------------------------------------------------------------------------

/// An event with its place.
#[must_use]
pub fn event(record: EventRecord) -> wire::AgentEventParams {
    wire::AgentEventParams {
        session_id: session_id(&record.session),
        bookmark: bookmark(record.bookmark),
        channel: channel(record.event.channel()),
        event: event_body(&record.session, record.event),
    }
}

/// The event that tells a client it was too slow; its place is that of the last event the client was sent.
#[must_use]
pub fn gap(session: &SessionId, gap: Gap) -> wire::AgentEventParams {
    wire::AgentEventParams {
        session_id: session_id(session),
        bookmark: wire::Bookmark { seq: gap.since, timestamp: timestamp(Timestamp::now()) },
        channel: wire::Channel::Monitor,
        event: wire::Event::Gap(wire::Gap { since: gap.since, oldest: gap.oldest }),
    }
}

fn channel(channel: Channel) -> wire::Channel {
    match channel {
        Channel::Progress => wire::Channel::Progress,
        Channel::Control => wire::Channel::Control,
        Channel::Monitor => wire::Channel::Monitor,
    }
}

fn event_body(session: &SessionId, event: Event) -> wire::Event {
    match event {
        Event::TurnStarted { turn } => {
            wire::Event::TurnStarted(wire::TurnStarted { turn_id: turn_id(&turn) })
        }
        Event::ItemAdded { item: added } => wire::Event::ItemAdded(wire::ItemAdded { item: item(added) }),
        Event::ItemUpdated { item: updated } => {
            wire::Event::ItemUpdated(wire::ItemUpdated { item: item(updated) })
        }
        Event::TextChunk { item, text } => text_chunk(&item, text),
        Event::ThinkChunk { item, text } => think_chunk(&item, text),
        Event::ToolStart { item: started } => wire::Event::ToolStart(wire::ToolStart { item: item(started) }),
        Event::ToolProgress { item, call, text } => tool_progress(&item, &call, text),
        Event::ToolEnd { item: ended } => wire::Event::ToolEnd(wire::ToolEnd { item: item(ended) }),
        Event::Done { turn, reason, usage: used, duration_ms, model_calls, tool_calls, phases, cost } => {
            wire::Event::Done(wire::Done {
                turn_id: turn_id(&turn),
                stop_reason: turn::stop_reason(reason),
                usage: usage(used),
                cost: cost.total(),
                duration_ms,
                model_calls,
                tool_calls,
                phases: turn::phases(phases),
            })
        }
        Event::PermissionRequired { prompt: asked } => required(session, *asked),
        Event::PermissionDecided { decision } => wire::Event::PermissionDecided(decided(decision)),
        Event::QuestionAsked { question } => question::asked(session, *question),
        Event::QuestionAnswered { resolved } => wire::Event::QuestionAnswered(question::resolved(resolved)),
        Event::TodoChanged { todos } => wire::Event::TodoChanged(question::todo_changed(&todos)),
        Event::McpChanged { servers } => mcp::changed(servers),
        Event::TodoReminder { reason } => wire::Event::TodoReminder(question::todo_reminder(reason)),
        Event::HookRan { event, name, duration_ms, outcome, message } => {
            hooks::ran(event, name, duration_ms, outcome, message)
        }
        Event::Reminder { kind, agent, messages } => question::reminder(kind, agent.as_ref(), messages),
        Event::StateChanged { state } => {
            wire::Event::StateChanged(wire::StateChanged { state: run_state(state) })
        }
        Event::ModeChanged { mode: now, model, effort, output_style } => {
            mode_changed(now, model, effort, output_style)
        }
        Event::QueueChanged { queue, steering, paused } => queue_changed(queue, steering, paused),
        Event::TitleChanged { title, by } => sessions::title_changed(title, by),
        Event::ArchivedChanged { archived } => sessions::archived_changed(archived),
        Event::DraftChanged { draft: now } => {
            wire::Event::DraftChanged(wire::DraftChanged { draft: now.map(draft) })
        }
        Event::ToolQueued { call, name, queue_length } => tool_queued(&call, name, queue_length),
        Event::ToolTimeout { call, name } => tool_timeout(&call, name),
        Event::ToolDenied { call, name, reason } => tool_denied(&call, name, reason),
        Event::ToolExecuted { call, name, duration_ms, ok } => tool_executed(&call, name, duration_ms, ok),
        Event::BackgroundStarted { task: started } => task::started(started),
        Event::BackgroundEnded { task: ended } => task::ended(ended),
        Event::EditsChanged { targets } => {
            wire::Event::EditsChanged(wire::EditsChanged { uris: targets.iter().map(uri).collect() })
        }
        Event::EditsResolved { outcome } => wire::Event::EditsResolved(review::resolved(outcome)),
        Event::CheckpointCreated { checkpoint, turn } => checkpoint_created(&checkpoint, &turn),
        Event::Rewound { item } => wire::Event::Rewound(wire::Rewound { item_id: item_id(&item) }),
        Event::FileChanged { target, deleted } => {
            wire::Event::FileChanged(wire::FileChanged { uri: uri(&target), deleted })
        }
        Event::ConfigChanged { files, problems, withheld } => {
            wire::Event::ConfigChanged(rules::changed(&files, problems, &withheld))
        }
        Event::ExtensionsChanged { counts, problems } => agents::changed(counts, &problems),
        Event::TrustRequired { waiting } => wire::Event::TrustRequired(rules::trust_required(waiting)),
        Event::SubagentStarted { agent, call, kind, description } => {
            subagent_started(&agent, &call, kind, description)
        }
        Event::SubagentEnded { agent, ok, usage: used, duration_ms } => {
            subagent_ended(&agent, ok, used, duration_ms)
        }
        Event::TokenUsage { turn, usage: used, model, cost, context } => {
            token_usage(&turn, used, model, cost, context)
        }
        Event::ContextCompression { turn, agent, step } => context::compression(&turn, agent.as_ref(), step),
        Event::ModelRetry { retry } => wire::Event::ModelRetry(turn::retry(retry)),
        Event::AgentResumed { sealed, strategy, skipped_records } => {
            turn::resumed(&sealed, strategy, skipped_records)
        }
        Event::LeaseChanged { writer, is_mine } => lease_changed(writer.map(|writer| *writer), is_mine),
        Event::StorageFailure { message, recovered } => {
            wire::Event::StorageFailure(wire::StorageFailure { message, recovered })
        }
        Event::Error { message, hint } => wire::Event::Error(wire::ErrorEvent { message, hint }),
    }
}

fn tool_timeout(call: &CallId, name: String) -> wire::Event {
    wire::Event::ToolTimeout(wire::ToolTimeout { call_id: call_id(call), name })
}

fn tool_denied(call: &CallId, name: String, reason: String) -> wire::Event {
    wire::Event::ToolDenied(wire::ToolDenied { call_id: call_id(call), name, reason })
}

fn tool_executed(call: &CallId, name: String, duration_ms: u64, ok: bool) -> wire::Event {
    wire::Event::ToolExecuted(wire::ToolExecuted { call_id: call_id(call), name, duration_ms, ok })
}

fn text_chunk(item: &ItemId, text: String) -> wire::Event {
    wire::Event::TextChunk(wire::TextChunk { item_id: item_id(item), text })
}

fn think_chunk(item: &ItemId, text: String) -> wire::Event {
    wire::Event::ThinkChunk(wire::ThinkChunk { item_id: item_id(item), text })
}

fn lease_changed(now: Option<Writer>, is_mine: bool) -> wire::Event {
    wire::Event::LeaseChanged(wire::LeaseChanged { writer: now.map(writer), is_mine })
}

fn queue_changed(queue: Vec<QueuedPrompt>, steering: Vec<QueuedPrompt>, paused: bool) -> wire::Event {
    let all = |prompts: Vec<QueuedPrompt>| prompts.into_iter().map(queued).collect();
    wire::Event::QueueChanged(wire::QueueChanged { queue: all(queue), steering: all(steering), paused })
}

fn mode_changed(
    now: Mode,
    model: String,
    effort: Option<Effort>,
    output_style: Option<String>,
) -> wire::Event {
    let effort = effort.map(models::effort);
    wire::Event::ModeChanged(wire::ModeChanged { mode: mode(now), model, effort, output_style })
}

fn token_usage(
    turn: &TurnId,
    used: Usage,
    model: String,
    cost: Option<f64>,
    context: Option<ContextUse>,
) -> wire::Event {
    wire::Event::TokenUsage(wire::TokenUsage {
        turn_id: turn_id(turn),
        usage: usage(used),
        model,
        cost,
        context_tokens: context.map(|context| context.tokens),
        context_window: context.map(|context| context.window),
    })
}

fn subagent_ended(agent: &AgentId, ok: bool, used: Usage, duration_ms: u64) -> wire::Event {
    let agent_id = agent_id(agent);
    wire::Event::SubagentEnded(wire::SubagentEnded { agent_id, ok, usage: usage(used), duration_ms })
}

fn tool_progress(item: &ItemId, call: &CallId, text: String) -> wire::Event {
    wire::Event::ToolProgress(wire::ToolProgress { item_id: item_id(item), call_id: call_id(call), text })
}

fn tool_queued(call: &CallId, name: String, queue_length: usize) -> wire::Event {
    let queue_length = u64::try_from(queue_length).unwrap_or(u64::MAX);
    wire::Event::ToolQueued(wire::ToolQueued { call_id: call_id(call), name, queue_length })
}

fn checkpoint_created(checkpoint: &CheckpointId, turn: &TurnId) -> wire::Event {
    let (checkpoint_id, turn_id) = (checkpoint_id(checkpoint), turn_id(turn));
    wire::Event::CheckpointCreated(wire::CheckpointCreated { checkpoint_id, turn_id })
}

fn subagent_started(agent: &AgentId, call: &CallId, agent_type: String, description: String) -> wire::Event {
    let (agent_id, call_id) = (agent_id(agent), call_id(call));
    wire::Event::SubagentStarted(wire::SubagentStarted { agent_id, call_id, agent_type, description })
}

fn required(session: &SessionId, asked: PermissionPrompt) -> wire::Event {
    wire::Event::PermissionRequired(Box::new(wire::PermissionRequired { prompt: prompt(session, asked) }))
}

#[cfg(test)]
mod tests;
