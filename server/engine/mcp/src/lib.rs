//! Servers of the Model Context Protocol: programs and addresses that offer tools, resources and prompts.
//!
//! Rule: nothing of a workspace's files is started or reached before the user has approved that very text; no prompt waits
//! for a server that it does not need; one bad server costs itself alone; what servers say is data and gives no permission.
//!
//! Must not know: sessions, the loop.
//! Used by: engine.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

mod arguments;
mod auth;
mod client;
pub mod client_tools;
mod connection;
mod elicit;
pub mod failure;
mod of_file;
mod pages;
pub mod prompts;
mod result;
mod rush;
pub mod schema;
mod seen;
mod servers;
pub mod surroundings;
mod transport;
mod used;

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use parking_lot::Mutex;

use kode_base::paths::AbsPath;
use kode_config::policy::PolicySource;
use kode_process::shell::Secrets;
use kode_tool::servers::{McpServers, ServerPool};
use servers::ServerContext;

pub use servers::{ServerMember, Servers};

/// The servers of all workspaces of an engine.
pub struct Mcp {
    state: AbsPath,
    first_wait: Duration,
    asks_for_pages: bool,
    workspaces: Mutex<HashMap<Vec<AbsPath>, Weak<Servers>>>,
}

impl Mcp {
    /// For an engine whose state is in this folder.
    #[must_use]
    pub fn new(state: AbsPath) -> Self {
        Self { state, first_wait: Duration::ZERO, asks_for_pages: false, workspaces: Mutex::default() }
    }

    /// Sets the longest wait of a first prompt for servers that are starting. `KODE_LS_MCP_WAIT` has precedence.
    #[must_use]
    pub fn waiting(self, first_wait: Duration) -> Self {
        Self { first_wait, ..self }
    }

    /// Sets whether servers learn that their users can be asked to open pages.
    #[must_use]
    pub fn asking_for_pages(self, asks_for_pages: bool) -> Self {
        Self { asks_for_pages, ..self }
    }

    /// The servers of a workspace: the same for all that have the same folders. Starts nothing.
    #[must_use]
    pub fn servers(
        &self,
        roots: &[AbsPath],
        secrets: &Secrets,
        policy: impl FnOnce() -> Arc<dyn PolicySource>,
    ) -> Arc<Servers> {
        let mut workspaces = self.workspaces.lock();
        if let Some(known) = workspaces.get(roots).and_then(Weak::upgrade) {
            return known;
        }
        workspaces.retain(|_, servers| servers.strong_count() > 0);
        let place = ServerContext {
            state: self.state.clone(),
            secrets: secrets.clone(),
            first_wait: self.first_wait,
            asks_for_pages: self.asks_for_pages,
        };
        let made = Servers::new(roots.to_vec(), policy(), place);
        workspaces.insert(roots.to_vec(), Arc::downgrade(&made));
        made
    }
}

#[async_trait]
impl ServerPool for Mcp {
    fn of(
        &self,
        roots: &[AbsPath],
        secrets: &Secrets,
        policy: &dyn Fn() -> Arc<dyn PolicySource>,
    ) -> Arc<dyn McpServers> {
        self.servers(roots, secrets, policy)
    }

    async fn end(&self) {
        let all: Vec<_> = {
            let workspaces = self.workspaces.lock();
            workspaces.values().filter_map(Weak::upgrade).collect()
        };
        join_all(all.iter().map(|servers| servers.end())).await;
    }
}
