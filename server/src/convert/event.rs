//! Between the events of the engine and those of the wire.
//!
//! Rule: values only, no decisions; every event of the engine has its form on the wire.

use std::sync::Arc;

use jiff::Timestamp;
use kode_engine::base::effort::Effort;
use kode_engine::base::ids::{AgentId, CallId, CheckpointId, ItemId, SessionId, TurnId};
use kode_engine::base::mode::Mode;
use kode_engine::base::paths::Target;
use kode_engine::journal::lease::SessionWriter;
use kode_engine::model::{Usage, UsageWindow};
use kode_engine::permission::PermissionPrompt;
use kode_engine::record::event::{
    Channel, Event, EventRecord, Gap, Item, ModelCallUsage, QueuedPrompt, RunState,
};
use kode_protocol as wire;

use super::permission::{decided, prompt, updated};
use super::{
    UriNames, agent_id, agents, bookmark, call_id, checkpoint_id, context, draft, goal, hooks, item, item_id,
    mcp, mode, models, question, queued, review, rules, run_state, session_id, sessions, task, team,
    timestamp, turn, turn_id, usage, writer,
};

/// An event with its place.
#[must_use]
pub fn event(record: EventRecord, names: UriNames<'_>) -> wire::AgentEventParams {
    wire::AgentEventParams {
        session_id: session_id(&record.session),
        bookmark: bookmark(record.bookmark),
        channel: channel(record.event.channel()),
        event: event_body(&record.session, record.event, names),
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

fn event_body(session: &SessionId, event: Event, names: UriNames<'_>) -> wire::Event {
    match event {
        Event::TurnStarted { turn } => turn::started(&turn),
        Event::BreakpointChanged { turn, breakpoint, call, model_call, max_model_calls } => {
            turn::step((&turn, breakpoint), call.as_ref(), (model_call, max_model_calls))
        }
        Event::ItemAdded { item: added } => item_added(added, names),
        Event::ItemUpdated { item: updated } => item_updated(updated, names),
        Event::TextChunk { item, text } => text_chunk(&item, text),
        Event::ThinkChunk { item, text } => think_chunk(&item, text),
        Event::SideAnswer { ask, text } => side_answer(ask, text),
        Event::ToolStart { item: started } => tool_start(started, names),
        Event::ToolProgress { item, call, text } => tool_progress(&item, &call, text),
        Event::ToolEnd { item: ended } => wire::Event::ToolEnd(wire::ToolEnd { item: item(ended, names) }),
        Event::Done { turn, reason, usage: used, duration_ms, model_calls, tool_calls, phases, cost } => {
            wire::Event::Done(wire::Done {
                turn_id: turn_id(&turn),
                stop_reason: turn::stop_reason(reason),
                usage: usage(*used),
                cost: cost.total(),
                duration_ms,
                model_calls,
                tool_calls,
                phases: turn::phases(*phases),
            })
        }
        Event::PermissionRequired { prompt: asked } => required(session, *asked),
        Event::PermissionUpdated { id, diagnostics } => updated(&id, diagnostics),
        Event::PermissionDecided { decision } => wire::Event::PermissionDecided(decided(decision)),
        Event::QuestionAsked { question } => question::asked(session, *question),
        Event::QuestionAnswered { resolved } => wire::Event::QuestionAnswered(question::resolved(*resolved)),
        Event::TodoChanged { todos } => wire::Event::TodoChanged(question::todo_changed(&todos)),
        Event::GoalChanged { goal } => goal::changed(goal),
        Event::TeamChanged { team } => team::changed(team),
        Event::McpChanged { servers } => mcp::changed(servers),
        Event::TodoReminder { reason } => wire::Event::TodoReminder(question::todo_reminder(reason)),
        Event::HookRan { event, name, duration_ms, outcome, message } => {
            hooks::ran(event, name, duration_ms, outcome, message)
        }
        Event::Reminder { kind, agent, messages } => question::reminder(kind, agent.as_ref(), messages),
        Event::StateChanged { state } => state_changed(state),
        Event::ModeChanged { mode: now, model, effort, output_style, sandbox } => {
            mode_changed(now, model, effort, (output_style, sandbox))
        }
        Event::QueueChanged { queue, steering, paused } => queue_changed(queue, steering, paused),
        Event::TitleChanged { title, by } => sessions::title_changed(title, by),
        Event::ArchivedChanged { archived } => sessions::archived_changed(archived),
        Event::DraftChanged { draft: now } => {
            wire::Event::DraftChanged(wire::DraftChanged { draft: now.map(|now| draft(*now)) })
        }
        Event::ToolQueued { call, name, queue_length } => tool_queued(&call, name, queue_length),
        Event::ToolTimeout { call, name } => tool_timeout(&call, name),
        Event::ToolDenied { call, name, reason } => tool_denied(&call, name, reason),
        Event::ToolExecuted { call, name, duration_ms, ok } => tool_executed(&call, name, duration_ms, ok),
        Event::BackgroundStarted { task: started } => task::started(*started),
        Event::BackgroundEnded { task: ended } => task::ended(*ended),
        Event::EditsChanged { targets } => wire::Event::EditsChanged(wire::EditsChanged {
            uris: targets.iter().map(|target| names.uri(target)).collect(),
        }),
        Event::EditsResolved { outcome } => wire::Event::EditsResolved(review::resolved(*outcome, names)),
        Event::CheckpointCreated { checkpoint, turn } => checkpoint_created(&checkpoint, &turn),
        Event::Rewound { item } => wire::Event::Rewound(wire::Rewound { item_id: item_id(&item) }),
        Event::FileChanged { target, deleted } => file_changed(&target, deleted, names),
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
        Event::TokenUsage { turn, call, .. } => token_usage(&turn, *call),
        Event::ContextCompression { turn, agent, step } => {
            context::compression(&turn, agent.as_ref(), step, names)
        }
        Event::ModelRetry { retry } => wire::Event::ModelRetry(turn::retry(*retry)),
        Event::AgentResumed { sealed, strategy, skipped_records, breakpoint } => {
            turn::resumed(&sealed, strategy, skipped_records, breakpoint)
        }
        Event::LeaseChanged { writer, is_mine } => lease_changed(writer.map(|writer| *writer), is_mine),
        Event::StorageFailure { message, recovered } => {
            wire::Event::StorageFailure(wire::StorageFailure { message, recovered })
        }
        Event::Error { message, hint } => wire::Event::Error(wire::ErrorEvent { message, hint }),
    }
}

fn item_added(added: Arc<Item>, names: UriNames<'_>) -> wire::Event {
    wire::Event::ItemAdded(wire::ItemAdded { item: item(added, names) })
}

fn tool_start(started: Arc<Item>, names: UriNames<'_>) -> wire::Event {
    wire::Event::ToolStart(wire::ToolStart { item: item(started, names) })
}

fn file_changed(target: &Target, deleted: bool, names: UriNames<'_>) -> wire::Event {
    wire::Event::FileChanged(wire::FileChanged { uri: names.uri(target), deleted })
}

fn state_changed(state: RunState) -> wire::Event {
    wire::Event::StateChanged(wire::StateChanged { state: run_state(state) })
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

fn item_updated(updated: Arc<Item>, names: UriNames<'_>) -> wire::Event {
    wire::Event::ItemUpdated(wire::ItemUpdated { item: item(updated, names) })
}

fn side_answer(ask: String, text: String) -> wire::Event {
    wire::Event::SideAnswer(wire::SideAnswer { ask_id: wire::AskId::new(ask), text })
}

fn think_chunk(item: &ItemId, text: String) -> wire::Event {
    wire::Event::ThinkChunk(wire::ThinkChunk { item_id: item_id(item), text })
}

fn lease_changed(now: Option<SessionWriter>, is_mine: bool) -> wire::Event {
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
    (output_style, sandbox): (Option<String>, Option<String>),
) -> wire::Event {
    let effort = effort.map(models::effort);
    wire::Event::ModeChanged(wire::ModeChanged { mode: mode(now), model, effort, output_style, sandbox })
}

fn token_usage(turn: &TurnId, call: ModelCallUsage) -> wire::Event {
    let ModelCallUsage { usage: used, model, provider: _, cost, context, pace } = call;
    wire::Event::TokenUsage(wire::TokenUsage {
        turn_id: turn_id(turn),
        usage: usage(used),
        model,
        cost,
        context_tokens: context.map(|context| context.tokens),
        context_window: context.map(|context| context.window),
        tokens_per_second: pace.tokens_per_second,
        limits: pace.limits.into_iter().map(limit).collect(),
    })
}

fn limit(window: UsageWindow) -> wire::ProviderLimit {
    wire::ProviderLimit { name: window.name, used: window.used, resets_at: window.resets.map(timestamp) }
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
