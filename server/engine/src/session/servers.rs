//! The MCP servers as a session uses them: begun with its first turn, left when it is closed.
//!
//! Rule: opening a session starts none; the first prompt waits for those that are on their way, for a bounded time, and no
//! later one waits at all.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::event::EventLog;
use crate::mcp::{Member, Servers};
use crate::session::Session;
use crate::session::changes::lock;

/// The servers of a session.
pub(super) struct Used {
    servers: Arc<Servers>,
    /// Nothing once the session is closed.
    member: Mutex<Option<Member>>,
    /// How many servers there were when they were waited for last.
    waited_for: AtomicU64,
}

impl Used {
    pub(super) fn new(servers: &Arc<Servers>, events: &Arc<EventLog>) -> Self {
        let member = Mutex::new(Some(servers.join(events)));
        Self { servers: Arc::clone(servers), member, waited_for: AtomicU64::new(0) }
    }
}

impl Session {
    /// The MCP servers of its folders.
    #[must_use]
    pub fn servers(&self) -> &Arc<Servers> {
        &self.servers.servers
    }

    /// Sees to it before a turn that the servers are there that settings name; those that are new and on their
    /// way are waited for a moment, so that the next prompt has their tools.
    pub(super) async fn begin_servers(&self) {
        let servers = self.servers();
        servers.begin().await;
        let made = servers.made();
        if self.servers.waited_for.swap(made, Ordering::Relaxed) != made {
            servers.settled(servers.first_wait()).await;
        }
    }

    /// Leaves the servers; the last session ends them.
    pub(super) async fn leave_servers(&self) {
        let member = lock(&self.servers.member).take();
        if let Some(member) = member {
            member.leave().await;
        }
    }
}
