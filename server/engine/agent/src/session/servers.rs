//! The MCP servers as a session uses them: begun with its first turn, left when it is closed.
//!
//! Rule: opening a session starts none. Where somebody wants it so, the first prompt waits for those that are on their way, for a
//! bounded time; otherwise no prompt waits for them, and they start behind its first request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::session::{Session, lock};
use kode_record::event::{Event, EventLog};
use kode_tool::servers::{McpServers, Membership, ServerListener, StartHold};
use kode_tool::status::ServerInfo;

/// The servers of a session.
pub(super) struct Used {
    servers: Arc<dyn McpServers>,
    /// Nothing once the session is closed.
    member: Mutex<Option<Box<dyn Membership>>>,
    /// How many servers there were when they were waited for last.
    waited_for: AtomicU64,
    /// The prompt whose first request is not sent yet.
    hold: Mutex<Option<Box<dyn StartHold>>>,
}

impl Used {
    pub(super) fn new(servers: &Arc<dyn McpServers>, events: &Arc<EventLog>) -> Self {
        let log = Arc::downgrade(events);
        let listener: ServerListener = Arc::new(move |servers: &[ServerInfo]| {
            if let Some(log) = log.upgrade() {
                log.publish(Event::McpChanged { servers: servers.to_vec() });
            }
        });
        let member = Mutex::new(Some(servers.join(listener)));
        Self { servers: Arc::clone(servers), member, waited_for: AtomicU64::new(0), hold: Mutex::default() }
    }
}

impl Session {
    /// The MCP servers of its folders.
    #[must_use]
    pub fn servers(&self) -> &Arc<dyn McpServers> {
        &self.servers.servers
    }

    /// Sees to it before a turn that the servers are there that settings name. Those that are new are waited for as long as
    /// somebody wants that, so that the prompt has their tools; otherwise they start when its first request is sent.
    pub(super) async fn begin_servers(&self) {
        let servers = self.servers();
        let hold = servers.hold_starts();
        servers.begin().await;
        let (wait, made) = (servers.first_wait(), servers.made());
        if wait.is_zero() {
            *lock(&self.servers.hold) = Some(hold);
            return;
        }
        drop(hold);
        if self.servers.waited_for.swap(made, Ordering::Relaxed) != made {
            servers.settled(wait).await;
        }
    }

    /// A request has been handed to the model.
    pub(crate) fn request_handed_over(&self) {
        if let Some(hold) = lock(&self.servers.hold).take() {
            hold.handed_over();
        }
    }

    /// The turn has ended, whether or not the model was asked.
    pub(super) fn let_servers_start(&self) {
        lock(&self.servers.hold).take();
    }

    /// Leaves the servers; the last session ends them.
    pub(super) async fn leave_servers(&self) {
        let member = lock(&self.servers.member).take();
        if let Some(member) = member {
            member.leave().await;
        }
    }
}
