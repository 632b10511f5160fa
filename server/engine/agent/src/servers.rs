//! The MCP servers of a session: started with its first turn, left when it is closed.
//!
//! Rule: opening a session starts no server. Where the user wants it so, the first prompt waits for the starting servers,
//! for a bounded time; otherwise no prompt waits, and they start after its first request is sent.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::core::{Core, lock};
use kode_record::event::Event;
use kode_tool::servers::{McpServers, Membership, ServerListener, StartHold};
use kode_tool::status::ServerInfo;

/// The MCP servers of a session.
pub(crate) struct SessionServers {
    servers: Arc<dyn McpServers>,
    /// `None` once the session is closed.
    member: Mutex<Option<Box<dyn Membership>>>,
    /// The number of servers when they were waited for last.
    waited_for: AtomicU64,
    /// Holds back starts until the first request of a prompt is sent.
    hold: Mutex<Option<Box<dyn StartHold>>>,
}

impl SessionServers {
    /// Joins the servers. Their changes are published as events.
    pub(crate) fn new(core: &Arc<Core>, servers: Arc<dyn McpServers>) -> Arc<Self> {
        let events = Arc::downgrade(core.events());
        let listener: ServerListener = Arc::new(move |servers: &[ServerInfo]| {
            if let Some(events) = events.upgrade() {
                events.publish(Event::McpChanged { servers: servers.to_vec() });
            }
        });
        let member = Mutex::new(Some(servers.join(listener)));
        Arc::new(Self { servers, member, waited_for: AtomicU64::new(0), hold: Mutex::default() })
    }

    /// All servers of the session's folders.
    pub(crate) fn all(&self) -> &Arc<dyn McpServers> {
        &self.servers
    }

    /// Starts the servers that settings name, before a turn. New ones are waited for as long as the user wants, so that the
    /// prompt has their tools; otherwise they start when its first request is sent.
    pub(crate) async fn begin(&self) {
        let hold = self.servers.hold_starts();
        self.servers.begin().await;
        let (wait, made) = (self.servers.first_wait(), self.servers.made());
        if wait.is_zero() {
            *lock(&self.hold) = Some(hold);
            return;
        }
        drop(hold);
        if self.waited_for.swap(made, Ordering::Relaxed) != made {
            self.servers.settled(wait).await;
        }
    }

    /// Lets the servers start, because a request was sent to the model.
    pub(crate) fn request_sent(&self) {
        if let Some(hold) = lock(&self.hold).take() {
            hold.handed_over();
        }
    }

    /// Lets the servers start, because the turn has ended.
    pub(crate) fn turn_ended(&self) {
        lock(&self.hold).take();
    }

    /// Leaves the servers; the last session ends them.
    pub(crate) async fn leave(&self) {
        let member = lock(&self.member).take();
        if let Some(member) = member {
            member.leave().await;
        }
    }
}
