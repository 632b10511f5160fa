//! MCP servers and their tools, as the wire has them.
//!
//! Rule: counts that do not fit are sent as the largest number.

use kode_engine::config::mcp::fault::{McpFailure, McpFailureClass};
use kode_engine::tool::offer::ToolInfo;
use kode_engine::tool::status::{ServerInfo, ServerState};
use kode_protocol as wire;

use crate::convert::rules::source;

/// Servers.
pub fn servers(servers: Vec<ServerInfo>) -> Vec<wire::McpServer> {
    servers.into_iter().map(server).collect()
}

/// The state of servers, as news.
pub(super) fn changed(servers: Vec<ServerInfo>) -> wire::Event {
    wire::Event::McpChanged(wire::McpChanged { servers: self::servers(servers) })
}

/// A server.
pub fn server(info: ServerInfo) -> wire::McpServer {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    wire::McpServer {
        state: state(info.state),
        transport: info.kind.to_owned(),
        target: info.target,
        source: source(&info.source),
        tools: count(info.tools),
        prompts: count(info.prompts),
        resources: count(info.resources),
        failed_attempts: info.attempts,
        failure: info.failure.map(failure),
        latency_ms: info.latency.map(|latency| u64::try_from(latency.as_millis()).unwrap_or(u64::MAX)),
        title: info.title,
        changed_tools: info.changed_tools,
        notes: info.notes,
        name: info.name,
    }
}

fn state(state: ServerState) -> wire::McpState {
    match state {
        ServerState::Disabled => wire::McpState::Disabled,
        ServerState::WaitingForApproval => wire::McpState::WaitingForApproval,
        ServerState::Stopped => wire::McpState::Stopped,
        ServerState::Starting => wire::McpState::Starting,
        ServerState::Connected => wire::McpState::Connected,
        ServerState::NeedsAuth => wire::McpState::NeedsAuth,
        ServerState::Failed => wire::McpState::Failed,
    }
}

fn failure(failure: McpFailure) -> wire::McpFailure {
    let class = match failure.class {
        McpFailureClass::Transient => wire::McpFailureClass::Transient,
        McpFailureClass::Permanent => wire::McpFailureClass::Permanent,
        McpFailureClass::Auth => wire::McpFailureClass::Auth,
    };
    wire::McpFailure { class, message: failure.message, hint: failure.hint, stderr: failure.stderr }
}

/// A tool.
pub fn tool(info: ToolInfo) -> wire::McpTool {
    wire::McpTool {
        title: kode_engine::config::mcp::names::shown(&info.server, &info.own_name),
        server: info.server,
        name: info.name,
        description: info.description,
        input_schema: info.input_schema,
        read_only_hint: info.read_only_hint,
        changed: info.changed,
    }
}
