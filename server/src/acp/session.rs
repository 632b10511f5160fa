//! A session as one client has it open.
//!
//! Rule: the engine's session is looked up for each use: another process may have taken it over meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kode_engine::agent::engine::{AttachedSession, SessionError};
use kode_engine::agent::session::Session;
use kode_engine::base::ids::SessionId;
use kode_engine::record::event::EventLog;
use tokio::task::AbortHandle;

use super::agent::AcpAgent;
use super::initialize::AcpClient;
use super::prompts::{PromptAnswerPair, PromptTable};
use super::tool_call::SessionPlaces;
use kode_engine::acp::peer::RpcPeer;

/// A session as one client has it open.
pub(super) struct AcpSession {
    pub(super) id: SessionId,
    pub(super) agent: Arc<AcpAgent>,
    pub(super) peer: Arc<RpcPeer>,
    pub(super) client: Arc<AcpClient>,
    pub(super) places: SessionPlaces,
    /// Held while a prompt is prepared: prompts are submitted in the order of their arrival.
    pub(super) order: tokio::sync::Mutex<()>,
    prompts: Mutex<PromptTable>,
    follower: Mutex<Option<SessionFollowing>>,
    /// Whether the user was warned that unsaved text is not seen.
    is_warned: AtomicBool,
    /// Whether the client uses the methods of kode-ls, and so knows their reports.
    expects_reports: AtomicBool,
}

/// The task that follows a session.
struct SessionFollowing {
    log: Arc<EventLog>,
    task: AbortHandle,
}

impl AcpSession {
    pub(super) fn new(
        id: &SessionId,
        agent: &Arc<AcpAgent>,
        peer: &Arc<RpcPeer>,
        client: &Arc<AcpClient>,
        places: SessionPlaces,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: id.clone(),
            agent: Arc::clone(agent),
            peer: Arc::clone(peer),
            client: Arc::clone(client),
            places,
            order: tokio::sync::Mutex::default(),
            prompts: Mutex::default(),
            follower: Mutex::default(),
            is_warned: AtomicBool::new(false),
            expects_reports: AtomicBool::new(false),
        })
    }

    /// Notes that the user is warned that unsaved text is not seen. Answers whether it is the first time.
    pub(super) fn is_first_warning(&self) -> bool {
        !self.is_warned.swap(true, Ordering::Relaxed)
    }

    /// Notes that the client uses the methods of kode-ls.
    pub(super) fn expect_reports(&self) {
        self.expects_reports.store(true, Ordering::Relaxed);
    }

    /// Whether the client knows the reports of these methods.
    pub(super) fn expects_reports(&self) -> bool {
        self.expects_reports.load(Ordering::Relaxed)
    }

    /// The engine's session, if this process writes it.
    ///
    /// # Errors
    /// As `Engine::session`.
    pub(super) fn live(&self) -> Result<Arc<Session>, SessionError> {
        self.agent.engine.session(&self.id)
    }

    /// The engine's session, also where another process writes it.
    ///
    /// # Errors
    /// As `Engine::attached`.
    pub(super) fn attached(&self) -> Result<AttachedSession, SessionError> {
        self.agent.engine.attached(&self.id)
    }

    /// The prompts that wait for their answers. Never held across a wait.
    pub(super) fn prompts(&self) -> MutexGuard<'_, PromptTable> {
        self.prompts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers prompts, in their order.
    pub(super) async fn answer(&self, answers: Vec<PromptAnswerPair>) {
        for (id, outcome) in answers {
            self.peer.respond(id, outcome).await;
        }
    }

    /// Replaces the task that follows the session; the old one ends.
    pub(super) fn follow_by(&self, log: &Arc<EventLog>, task: AbortHandle) {
        let following = SessionFollowing { log: Arc::clone(log), task };
        let old = self.follower.lock().unwrap_or_else(PoisonError::into_inner).replace(following);
        if let Some(old) = old {
            old.task.abort();
        }
    }

    /// Whether a task follows this log.
    pub(super) fn is_followed(&self, log: &Arc<EventLog>) -> bool {
        let follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        follower.as_ref().is_some_and(|now| Arc::ptr_eq(&now.log, log) && !now.task.is_finished())
    }

    /// Ends the task that follows the session.
    pub(super) fn unfollow(&self) {
        let follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(follower) = follower {
            follower.task.abort();
        }
    }
}

impl Drop for AcpSession {
    fn drop(&mut self) {
        self.unfollow();
    }
}
