//! The servers behind the traits that the agent loop uses.
//!
//! Rule: every method hands over to the one of the same name; nothing is decided here.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::rush::PromptGuard;
use crate::{ServerMember, Servers};
use kode_config::mcp::fault::McpFailure;
use kode_config::mcp::file_servers::FileServers;
use kode_tool::ErasedTool;
use kode_tool::offer::{McpPromptPart, PromptInfo, ResourceInfo, ResourceText, ToolInfo};
use kode_tool::servers::{McpServers, Membership, ServerListener, SignInPage, StartHold};
use kode_tool::status::ServerInfo;

#[async_trait]
impl McpServers for Servers {
    fn join(&self, listener: ServerListener) -> Box<dyn Membership> {
        match self.me.upgrade() {
            Some(servers) => Box::new(servers.join(listener)),
            None => Box::new(EndedMembership),
        }
    }

    fn hold_starts(&self) -> Box<dyn StartHold> {
        Box::new(self.rush())
    }

    async fn begin(&self) {
        Self::begin(self).await;
    }

    async fn refresh(&self) {
        Self::refresh(self).await;
    }

    async fn end(&self) {
        Self::end(self).await;
    }

    fn made(&self) -> u64 {
        Self::made(self)
    }

    fn first_wait(&self) -> Duration {
        Self::first_wait(self)
    }

    fn start_limit(&self) -> Duration {
        Self::start_limit(self)
    }

    async fn settled(&self, limit: Duration) {
        Self::settled(self, limit).await;
    }

    fn list(&self) -> Vec<ServerInfo> {
        Self::list(self)
    }

    fn info(&self, name: &str) -> Result<ServerInfo, McpFailure> {
        self.find(name).map(|server| server.info())
    }

    fn tool_list(&self, server: Option<&str>) -> Vec<ToolInfo> {
        Self::tool_list(self, server)
    }

    fn instructions(&self) -> String {
        Self::instructions(self)
    }

    fn prompts(&self) -> Vec<PromptInfo> {
        Self::prompts(self)
    }

    async fn prompt(
        &self,
        server: &str,
        name: &str,
        arguments: &[(Option<String>, String)],
    ) -> Result<Vec<McpPromptPart>, McpFailure> {
        Self::prompt(self, server, name, arguments).await
    }

    fn resources(&self, server: Option<&str>) -> Vec<ResourceInfo> {
        Self::resources(self, server)
    }

    fn left_out(&self) -> Option<String> {
        Self::left_out(self)
    }

    async fn reconnect(&self, name: &str) -> Result<(), McpFailure> {
        Self::reconnect(self, name).await
    }

    async fn authenticate(&self, name: &str) -> Result<SignInPage, McpFailure> {
        Self::authenticate(self, name).await
    }

    async fn enable(&self, name: &str, enabled: bool) -> Result<(), McpFailure> {
        Self::enable(self, name, enabled).await
    }

    async fn read_resource(&self, server: &str, uri: &str) -> Result<ResourceText, McpFailure> {
        Self::read_resource(self, server, uri).await
    }

    fn of_file(&self, file: FileServers) -> Arc<dyn McpServers> {
        Self::of_file(self, file)
    }

    fn own_tools(&self) -> Vec<Arc<dyn ErasedTool>> {
        Self::own_tools(self)
    }
}

/// A membership of servers that are being dropped.
struct EndedMembership;

#[async_trait]
impl Membership for EndedMembership {
    async fn leave(self: Box<Self>) {}
}

#[async_trait]
impl Membership for ServerMember {
    async fn leave(self: Box<Self>) {
        Self::leave(*self).await;
    }
}

impl StartHold for PromptGuard {
    fn handed_over(self: Box<Self>) {
        Self::handed_over(*self);
    }
}
