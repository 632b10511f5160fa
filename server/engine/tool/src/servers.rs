//! The MCP servers of a workspace, as the agent loop uses them.
//!
//! Rule: the loop starts, lists and ends servers through these traits alone. How a server is reached is not known here.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use url::Url;

use crate::offer::{McpPromptPart, PromptInfo, ResourceInfo, ResourceText, ToolInfo};
use crate::status::ServerInfo;
use crate::{ErasedTool, ToolSource};
use kode_base::paths::AbsPath;
use kode_config::mcp::fault::McpFailure;
use kode_config::mcp::file_servers::FileServers;
use kode_config::policy::PolicySource;
use kode_process::shell::Secrets;

/// Called with the state of all servers each time it changes.
pub type ServerListener = Arc<dyn Fn(&[ServerInfo]) + Send + Sync>;

/// A sign-in that has begun.
pub struct SignInPage {
    /// The page to open in a browser.
    pub url: Url,
    /// Its outcome. A sign-in whose outcome is dropped ends by itself.
    pub outcome: BoxFuture<'static, Result<(), McpFailure>>,
}

/// The servers of all workspaces.
#[async_trait]
pub trait ServerPool: Send + Sync {
    /// The servers of workspace folders: the same for all sessions of the same folders. Starts nothing. No server gets one
    /// of the `secrets` unless its entry names it; those that are added later count.
    fn of(
        &self,
        roots: &[AbsPath],
        secrets: &Secrets,
        policy: &dyn Fn() -> Arc<dyn PolicySource>,
    ) -> Arc<dyn McpServers>;

    /// Ends all servers and waits until they are gone.
    async fn end(&self);
}

/// The servers of one workspace.
#[async_trait]
pub trait McpServers: ToolSource {
    /// Joins the sessions that need the servers. Starts nothing. `listener` is called at once after the next change.
    fn join(&self, listener: ServerListener) -> Box<dyn Membership>;

    /// Holds back servers that are not started yet, until the request of a prompt is sent.
    fn hold_starts(&self) -> Box<dyn StartHold>;

    /// Applies the settings as they are now, and starts the servers that are not started. Waits for no server but those that
    /// are ended.
    async fn begin(&self);

    /// Applies the settings as they are now; starts servers only after [`McpServers::begin`].
    async fn refresh(&self);

    /// Ends all servers and waits until they are gone.
    async fn end(&self);

    /// How many servers there were so far; one whose entry changed counts again.
    fn made(&self) -> u64;

    /// How long the first prompt waits for servers that are starting.
    fn first_wait(&self) -> Duration;

    /// How long a server may take to start.
    fn start_limit(&self) -> Duration;

    /// Waits until no server is starting for the first time, for `limit` at most.
    async fn settled(&self, limit: Duration);

    /// All servers.
    fn list(&self) -> Vec<ServerInfo>;

    /// The server of that name.
    ///
    /// # Errors
    /// [`McpFailure`], naming those there are.
    fn info(&self, name: &str) -> Result<ServerInfo, McpFailure>;

    /// The tools of a server, or of all.
    fn tool_list(&self, server: Option<&str>) -> Vec<ToolInfo>;

    /// The descriptions of connected servers, for the system prompt; empty when they say nothing.
    fn instructions(&self) -> String;

    /// The prompts of all servers, by server and name.
    fn prompts(&self) -> Vec<PromptInfo>;

    /// The resources of a server, or of all.
    fn resources(&self, server: Option<&str>) -> Vec<ResourceInfo>;

    /// The omitted entries of the settings, for people.
    fn left_out(&self) -> Option<String>;

    /// Connects a server again.
    ///
    /// # Errors
    /// No server of that name, or one that may not run.
    async fn reconnect(&self, name: &str) -> Result<(), McpFailure>;

    /// Starts to sign in to a server.
    ///
    /// # Errors
    /// No server of that name, or one without a sign-in.
    async fn authenticate(&self, name: &str) -> Result<SignInPage, McpFailure>;

    /// Switches a server on or off until this process ends. Switching one on accepts its tools as they are now.
    ///
    /// # Errors
    /// No server of that name.
    async fn enable(&self, name: &str, enabled: bool) -> Result<(), McpFailure>;

    /// Has a server put a prompt together. `arguments` are by name; those without a name come in the prompt's order.
    ///
    /// # Errors
    /// No such prompt, a missing argument, or what the server reports.
    async fn prompt(
        &self,
        server: &str,
        name: &str,
        arguments: &[(Option<String>, String)],
    ) -> Result<Vec<McpPromptPart>, McpFailure>;

    /// Reads a resource.
    ///
    /// # Errors
    /// Why it cannot be read.
    async fn read_resource(&self, server: &str, uri: &str) -> Result<ResourceText, McpFailure>;

    /// The servers that an agent file declares, with the settings of these. Starts nothing.
    fn of_file(&self, file: FileServers) -> Arc<dyn McpServers>;

    /// The tools of these servers, without those that all servers share.
    fn own_tools(&self) -> Vec<Arc<dyn ErasedTool>>;
}

/// A session that needs the servers; dropped, it needs them no more.
#[async_trait]
pub trait Membership: Send + Sync {
    /// Leaves. The last member waits until the servers have ended.
    async fn leave(self: Box<Self>);
}

/// Holds server starts back as long as it is kept.
pub trait StartHold: Send + Sync {
    /// The request is handed over: the hold ends shortly after.
    fn handed_over(self: Box<Self>);
}
