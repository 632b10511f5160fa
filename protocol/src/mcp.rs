//! MCP servers: which there are, how they are, what they offer, and what the user does about them.
//!
//! Rule: no header, no token and no variable's value is in any of this; what a server says of itself is data to be shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::permission::RuleSource;
use crate::text::SessionId;

/// The session of the servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListMcpParams {
    /// The session; without it those of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// The servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListMcpResult {
    /// The servers in the order of their names.
    pub servers: Vec<McpServer>,
    /// The omitted entries of the settings, for people; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

/// The state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum McpState {
    /// The user, or its entry, has switched it off.
    Disabled,
    /// Its entry is in a file of the workspace, and the user has not approved it.
    WaitingForApproval,
    /// It was not needed yet, or is not needed any more.
    Stopped,
    /// It is being started or reached, for the first time or again.
    Starting,
    /// It can be used.
    Connected,
    /// It wants the user to sign in.
    NeedsAuth,
    /// It cannot be used, and is not tried again by itself.
    Failed,
}

/// Whether trying again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum McpFailureClass {
    /// It may go away by itself: it is tried again.
    Transient,
    /// The user has to change something.
    Permanent,
    /// The user has to sign in.
    Auth,
}

/// The error of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpFailure {
    /// Whether trying again can help.
    pub class: McpFailureClass,
    /// The event, for people.
    pub message: String,
    /// The next step, for people.
    pub hint: String,
    /// The end of what the server wrote to its standard error; absent when that is nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServer {
    /// Its name in the settings.
    pub name: String,
    /// Its state.
    pub state: McpState,
    /// How it is reached: `stdio`, `http` or `sse`; absent where its entry cannot be read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub transport: String,
    /// The program or address, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// The place of its entry.
    pub source: RuleSource,
    /// Number of its tools.
    pub tools: u32,
    /// Number of its prompts.
    pub prompts: u32,
    /// Number of its resources.
    pub resources: u32,
    /// Number of failed attempts to connect in a row.
    pub failed_attempts: u32,
    /// The last error; absent once it is connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<McpFailure>,
    /// Milliseconds it took to answer when it was asked last whether it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// Its own name, with its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Tools that say something else of themselves than when the server was first used. `agent/mcp/enable` says that this
    /// is fine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_tools: Vec<String>,
    /// Further details for the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The session of the tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListMcpToolsParams {
    /// The session; without it the servers of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The server; without it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// The tools of servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListMcpToolsResult {
    /// The tools by server and name.
    pub tools: Vec<McpTool>,
}

/// A tool of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpTool {
    /// The server.
    pub server: String,
    /// Its canonical name, for rules: `mcp__server__tool`.
    pub name: String,
    /// How it is shown: `server:tool`.
    pub title: String,
    /// Its effect, as the model reads it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// Whether the server says that it only looks. That is a hint and no permission.
    pub read_only_hint: bool,
    /// Whether it says something else of itself than when the server was first used.
    pub changed: bool,
}

/// A server of a session or of the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerParams {
    /// The session; without it the servers of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The server's name.
    pub server: String,
}

/// Where the user signs in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthenticateMcpResult {
    /// The page to open in a browser on this machine.
    pub url: String,
}

/// The state of MCP servers, or their offer, changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpChanged {
    /// All servers as they are now.
    pub servers: Vec<McpServer>,
}
