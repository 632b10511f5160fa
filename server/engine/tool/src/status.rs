//! The state of an MCP server, as clients show it.
//!
//! Rule: plain data; a connection publishes a new value at each change.

use std::time::Duration;

use kode_config::mcp::fault::McpFailure;
use kode_permission::rules::RuleSource;

/// The state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
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

/// A server, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerInfo {
    /// Its name in the settings.
    pub name: String,
    /// How it is reached: `stdio`, `http` or `sse`; empty where its entry cannot be read.
    pub kind: &'static str,
    /// The program or address.
    pub target: String,
    /// Its state.
    pub state: ServerState,
    /// The place of its entry.
    pub source: RuleSource,
    /// Number of failed attempts in a row.
    pub attempts: u32,
    /// The last error; nothing once it is connected again.
    pub failure: Option<McpFailure>,
    /// How long it took to answer when it was asked last whether it is there.
    pub latency: Option<Duration>,
    /// Its own name, with its version.
    pub title: Option<String>,
    /// Number of its tools.
    pub tools: usize,
    /// Number of its prompts.
    pub prompts: usize,
    /// Number of its resources, without those that a template represents.
    pub resources: usize,
    /// Tools that say something else of themselves than when the server was first used.
    pub changed_tools: Vec<String>,
    /// Other things that the user should know.
    pub notes: Vec<String>,
}

impl ServerInfo {
    /// Why its tools are not there, for people; `None` when they are.
    #[must_use]
    pub fn absence(&self) -> Option<String> {
        let why = match self.state {
            ServerState::Connected => return None,
            ServerState::Disabled => "it is switched off",
            ServerState::WaitingForApproval => "it waits for your approval (`/trust`)",
            ServerState::Stopped => "it is not running",
            ServerState::Starting => "it is still starting",
            ServerState::NeedsAuth => "you have to sign in to it",
            ServerState::Failed => "it failed",
        };
        let failure = self.failure.as_ref().map(|failure| format!(": {failure}"));
        Some(format!("{why}{}", failure.unwrap_or_default()))
    }
}
