//! Between the items of a transcript in the engine and on the wire.
//!
//! Rule: values only, no decisions; matches are exhaustive.

use std::sync::Arc;

use kode_engine::base::call::{ToolErrorKind, ToolKind};
use kode_engine::record::event::{AuditEntry, CallState, Item, ItemBody, NoticeLevel, ToolCallItem};
use kode_protocol as wire;

use crate::convert::{
    UriNames, agent_id, call_id, commands, input, item_id, session_id, timestamp, turn, turn_id,
};

pub(crate) fn item(item: Arc<Item>, names: UriNames<'_>) -> wire::Item {
    let item = Arc::unwrap_or_clone(item);
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
                    attachments: attachments.into_iter().map(|each| input::attachment(each, names)).collect(),
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
                let (data, go_to) = (data.map(|data| *data), go_to.as_ref().map(session_id));
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
        input: Arc::unwrap_or_clone(call.input),
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

pub(super) fn notice_level(level: NoticeLevel) -> wire::NoticeLevel {
    match level {
        NoticeLevel::Info => wire::NoticeLevel::Info,
        NoticeLevel::Warning => wire::NoticeLevel::Warning,
        NoticeLevel::Error => wire::NoticeLevel::Error,
    }
}

/// The effect of a tool on the world.
#[must_use]
pub fn tool_kind(kind: ToolKind) -> wire::ToolKind {
    match kind {
        ToolKind::ReadOnly => wire::ToolKind::ReadOnly,
        ToolKind::Write => wire::ToolKind::Write,
        ToolKind::Execute => wire::ToolKind::Execute,
    }
}

pub(super) fn call_state(state: CallState) -> wire::CallState {
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

pub(super) fn tool_error_kind(kind: ToolErrorKind) -> wire::ToolErrorKind {
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
