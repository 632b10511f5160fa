//! The MCP servers as a session uses them: begun with its first turn, left when it is closed.
//!
//! Rule: opening a session starts none; the first prompt waits for those that are on their way, for a bounded time, and no
//! later one waits at all.

use std::sync::atomic::{AtomicBool, Ordering};
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
    has_waited: AtomicBool,
}

impl Used {
    pub(super) fn new(servers: &Arc<Servers>, events: &Arc<EventLog>) -> Self {
        let member = Mutex::new(Some(servers.join(events)));
        Self { servers: Arc::clone(servers), member, has_waited: AtomicBool::new(false) }
    }
}

impl Session {
    /// The MCP servers of its folders.
    #[must_use]
    pub fn servers(&self) -> &Arc<Servers> {
        &self.servers.servers
    }

    /// Sees to it before a turn that the servers are there that settings name; before the first one those that are on their
    /// way are waited for a moment, so that a single prompt has their tools.
    pub(super) async fn begin_servers(&self) {
        let servers = self.servers();
        servers.begin().await;
        if !self.servers.has_waited.swap(true, Ordering::Relaxed) {
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
