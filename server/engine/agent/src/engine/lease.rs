//! Sessions that other processes write: following them, taking them over, and letting go of one's own.
//!
//! Rule: only the holder of the journal's lock writes; no process takes a session over unasked. A request to
//! another process is answered, or given up after [`TAKE_OVER_LIMIT`].

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{MutexGuard, Notify};
use tokio::time::{Instant, sleep, timeout_at};

use crate::core::lock;
use crate::engine::lease_poll::LeasePoll;
use crate::engine::opened::{OpenedSession, in_background, open_session};
use crate::engine::relay::{deliver_answers, write_pending};
use crate::engine::{Engine, LoadedSession};
use crate::history::LoadProgress;
use crate::history::following::FollowedSession;
use crate::history::relay::PendingRequests;
use crate::session::Session;
use crate::sessions::{JOURNAL, SessionError};
use kode_base::blocking;
use kode_base::ids::{AskId, SessionId};
use kode_base::paths::AbsPath;
use kode_base::task;
use kode_journal::lease::{Lease, LeaseRefusal, LeaseRequest, SessionWriter, TAKE_OVER_LIMIT};
use kode_record::event::Event;

/// The most writers that are asked, one after the other, where each replaces its predecessor meanwhile.
const MAX_ASKS: usize = 3;

/// The most time that a turn cancelled for another process has to end.
const RELEASE_LIMIT: Duration = Duration::from_secs(5);

/// The interval of polling for the answer to a request where the system reports none.
const POLL: Duration = Duration::from_secs(2);

/// The sessions that other processes write.
pub(super) type FollowedSessions = Arc<Mutex<HashMap<SessionId, Arc<FollowedSession>>>>;

/// Live sessions that are not ready for anybody.
pub(super) type Preparations = Arc<Mutex<HashSet<SessionId>>>;

/// A session is not ready as long as this is there.
pub(super) struct PreparationGuard {
    all: Preparations,
    id: SessionId,
}

impl Drop for PreparationGuard {
    fn drop(&mut self) {
        lock(&self.all).remove(&self.id);
    }
}

/// Completes work that must not be left half done, also when its caller is gone.
pub(super) async fn unbroken<T: Send + 'static>(
    work: impl Future<Output = Result<T, SessionError>> + Send + 'static,
) -> Result<T, SessionError> {
    task::spawn(work).await.unwrap_or_else(|error| {
        tracing::error!(%error, "loading a session broke off");
        let path = std::path::PathBuf::from(JOURNAL);
        Err(SessionError::Storage { path, source: io::Error::other(error) })
    })
}

/// A session as it can be had here.
#[derive(Clone)]
pub enum AttachedSession {
    /// This process writes it.
    Live(Arc<Session>),
    /// Another process writes it, or the one that did has ended.
    Following(Arc<FollowedSession>),
}

impl Engine {
    /// Sets the name of the client: other processes see it as the holder of a session.
    pub fn name_client(&self, name: &str) {
        name.clone_into(&mut lock(&self.client));
    }

    /// The session of that id as it can be had: live here, resumed from its journal, or followed where another process
    /// writes it.
    ///
    /// # Errors
    /// As [`Engine::load_session`].
    pub async fn attach(
        &self,
        folders: &[AbsPath],
        id: &SessionId,
        since: Option<u64>,
        report: impl Fn(LoadProgress) + Send + 'static,
    ) -> Result<AttachedSession, SessionError> {
        let (engine, folders, id) = (self.clone(), folders.to_vec(), id.clone());
        unbroken(async move { engine.attach_to(&folders, &id, since, report).await }).await
    }

    async fn attach_to(
        &self,
        folders: &[AbsPath],
        id: &SessionId,
        since: Option<u64>,
        report: impl Fn(LoadProgress) + Send + 'static,
    ) -> Result<AttachedSession, SessionError> {
        let loading = self.loading.lock().await;
        if let Some(following) = self.following(id) {
            return Ok(AttachedSession::Following(following));
        }
        match self.load(folders, id, since, report).await {
            Ok(LoadedSession::Live(session)) => Ok(AttachedSession::Live(session)),
            Ok(LoadedSession::Opened(session, preparing)) => {
                self.make_ready(&session, preparing, loading).await;
                Ok(AttachedSession::Live(session))
            }
            Err(SessionError::Storage { path, source }) if source.kind() == io::ErrorKind::ResourceBusy => {
                let of = path.clone();
                let (_, folder) = self.stored_journal(folders, id)?;
                let beginning = self.beginning_in(id, folder)?;
                let opened = blocking(move || FollowedSession::open(&of, &beginning, None)).await;
                let opened = opened.map_err(|source| SessionError::Storage { path: path.clone(), source })?;
                let following = opened.ok_or(SessionError::Corrupted { path, skipped: 0 })?;
                lock(&self.followed).insert(id.clone(), Arc::clone(&following));
                following.start();
                Ok(AttachedSession::Following(following))
            }
            Err(error) => Err(error),
        }
    }

    /// The session of that id as it is had here now, without loading it.
    ///
    /// # Errors
    /// [`SessionError::Unknown`] when it is neither live nor followed.
    pub fn attached(&self, id: &SessionId) -> Result<AttachedSession, SessionError> {
        match self.following(id) {
            Some(following) => Ok(AttachedSession::Following(following)),
            None => self.session(id).map(AttachedSession::Live),
        }
    }

    /// All sessions that are live or followed here, the newest first.
    #[must_use]
    pub fn all_attached(&self) -> Vec<AttachedSession> {
        let mut all: Vec<(SessionId, AttachedSession)> = self
            .live_sessions()
            .into_iter()
            .map(|session| (session.id().clone(), AttachedSession::Live(session)))
            .collect();
        let followed = lock(&self.followed);
        let followed = followed.iter().filter(|(_, following)| !following.is_stopped());
        all.extend(
            followed.map(|(id, following)| (id.clone(), AttachedSession::Following(Arc::clone(following)))),
        );
        all.sort_by(|(a, _), (b, _)| b.cmp(a));
        all.into_iter().map(|(_, attached)| attached).collect()
    }

    /// Withholds the session of that id until it is ready.
    pub(super) fn prepare(&self, id: &SessionId) -> PreparationGuard {
        lock(&self.preparing).insert(id.clone());
        PreparationGuard { all: Arc::clone(&self.preparing), id: id.clone() }
    }

    /// Makes a resumed session ready. Others are loaded as soon as it can be used.
    pub(super) async fn make_ready(
        &self,
        session: &Arc<Session>,
        preparing: PreparationGuard,
        loading: MutexGuard<'_, ()>,
    ) {
        session.edits().enter_lost_changes().await;
        session.check_losses().await;
        drop(preparing);
        drop(loading);
        // The caller sees the current texts, not those at the end of the session.
        session.edits().catch_up_with_texts().await;
        session.edits().finish_restore().await;
        session.requests_repeated().await;
    }

    /// The live session of that id; one that is being made ready is waited for.
    async fn ready_session(&self, id: &SessionId) -> Result<Arc<Session>, SessionError> {
        let is_preparing = lock(&self.preparing).contains(id);
        if is_preparing {
            drop(self.loading.lock().await);
        }
        self.session(id)
    }

    /// Ends the following of a session, and its events.
    pub(super) fn end_following(&self, id: &SessionId) {
        let following = lock(&self.followed).remove(id);
        if let Some(following) = following {
            following.stop();
            following.events().close();
        }
    }

    /// The session of that id that another process writes, as far as it is followed here.
    #[must_use]
    pub fn following(&self, id: &SessionId) -> Option<Arc<FollowedSession>> {
        lock(&self.followed).get(id).filter(|following| !following.is_stopped()).cloned()
    }

    /// The session to hand a prompt to. A session without a writer is taken over: this is the intent of a
    /// prompt.
    ///
    /// # Errors
    /// As [`Engine::session`], and the errors of taking it over.
    pub async fn session_for_prompt(&self, id: &SessionId) -> Result<Arc<Session>, SessionError> {
        if let Some(following) = self.following(id)
            && let Some(session) = self.take_free(&following).await?
        {
            return Ok(session);
        }
        self.ready_session(id).await
    }

    /// Makes this process the writer of a session that it follows. With `force` running work is cancelled there.
    ///
    /// # Errors
    /// [`SessionError`]: it is not followed, its writer declines or does not answer, or another process was first.
    pub async fn take_over(&self, id: &SessionId, force: bool) -> Result<Arc<Session>, SessionError> {
        let Some(following) = self.following(id) else { return self.ready_session(id).await };
        let _one_at_a_time = following.taking.lock().await;
        if following.is_stopped() {
            return self.ready_session(id).await;
        }
        if let Some(session) = self.take_free(&following).await? {
            return Ok(session);
        }
        for _ in 0..MAX_ASKS {
            if let Some(session) = self.ask_for(&following, force).await? {
                return Ok(session);
            }
        }
        Err(SessionError::Followed { by: following.writer().map(Box::new) })
    }

    /// Asks the recorded writer. `None` when there is another writer meanwhile, to which the request does not apply.
    async fn ask_for(
        &self,
        following: &Arc<FollowedSession>,
        force: bool,
    ) -> Result<Option<Arc<Session>>, SessionError> {
        let (lease, ask) = (following.lease.clone(), AskId::generate());
        let asked = ask.clone();
        let writer = blocking(move || {
            let writer = lease.writer();
            let addressed = writer.as_ref().map(|writer| writer.lease.clone());
            lease.ask(&LeaseRequest { id: asked, lease: addressed, force }).map(|()| writer)
        })
        .await;
        let path = following.path().to_path_buf();
        let writer = writer.map_err(|source| SessionError::Storage { path, source })?;
        let taken = self.wait_for_lease(following, &ask, writer.as_ref()).await;
        let lease = following.lease.clone();
        blocking(move || lease.forget(&ask)).await;
        taken
    }

    async fn wait_for_lease(
        &self,
        following: &Arc<FollowedSession>,
        ask: &AskId,
        writer: Option<&SessionWriter>,
    ) -> Result<Option<Arc<Session>>, SessionError> {
        let until = Instant::now() + TAKE_OVER_LIMIT;
        let wake = Arc::new(Notify::new());
        let (lease, waker) = (following.lease.clone(), Arc::clone(&wake));
        let _watcher = blocking(move || lease.watch(waker, true)).await;
        loop {
            let (lease, id) = (following.lease.clone(), ask.clone());
            let (declined, now) = blocking(move || (lease.declined(&id), lease.writer())).await;
            if let Some(why) = declined {
                return Err(SessionError::Declined { by: writer.cloned().map(Box::new), why });
            }
            if let Some(session) = self.take_free(following).await? {
                return Ok(Some(session));
            }
            // Another process was first, or began to write while this one asked.
            if now.is_some_and(|now| writer.is_some_and(|asked| asked.lease != now.lease)) {
                return Ok(None);
            }
            if Instant::now() >= until {
                return Err(SessionError::Silent { by: writer.cloned().map(Box::new) });
            }
            tokio::select! {
                () = wake.notified() => {}
                () = sleep(POLL.min(until.saturating_duration_since(Instant::now()))) => {}
            }
        }
    }

    /// Takes a session over if it has no writer.
    async fn take_free(
        &self,
        following: &Arc<FollowedSession>,
    ) -> Result<Option<Arc<Session>>, SessionError> {
        let (engine, following) = (self.clone(), Arc::clone(following));
        unbroken(async move { engine.take_if_free(&following).await }).await
    }

    async fn take_if_free(
        &self,
        following: &Arc<FollowedSession>,
    ) -> Result<Option<Arc<Session>>, SessionError> {
        let loading = self.loading.lock().await;
        if following.is_stopped() {
            return self.session(following.id()).map(Some);
        }
        let beginning = self.beginning_there(following.id(), &following.cwd()).await?;
        let disk = Arc::clone(&self.disk);
        let open = move |path: &std::path::Path| open_session(&disk, path, &beginning, None, &|_| {});
        let opened = match in_background(following.path().to_path_buf(), open).await {
            Ok(opened) => opened,
            Err(SessionError::Storage { source, .. }) if source.kind() == io::ErrorKind::ResourceBusy => {
                return Ok(None);
            }
            Err(error) => {
                if matches!(error, SessionError::Unknown(_)) {
                    // It was deleted.
                    self.end_following(following.id());
                }
                return Err(error);
            }
        };
        let (last, preparing) = (Arc::clone(following), self.prepare(following.id()));
        // It has no writer any more: this read has its last events.
        blocking(move || last.finish()).await;
        let log = following.events();
        log.begin_life();
        lock(&self.followed).remove(following.id());
        let opened = self.with_worktree(OpenedSession { events: Arc::clone(log), ..opened }).await;
        let session = self.start(opened);
        self.make_ready(&session, preparing, loading).await;
        Ok(Some(session))
    }

    /// Notes who writes a session, and answers those who want to, until it is closed.
    pub(super) fn hold(&self, session: &Arc<Session>, lease: Lease) {
        let writer = SessionWriter::this(&lock(&self.client));
        let reported = Event::LeaseChanged { writer: Some(Box::new(writer.clone())), is_mine: true };
        session.events().report_aside(reported);
        let holder = LeaseHolder {
            session: Arc::clone(session),
            lease,
            writer,
            followed: Arc::clone(&self.followed),
            loading: Arc::clone(&self.loading),
            poll: self.lease_poll.clone(),
        };
        task::spawn(holder.hold());
    }
}

/// The parts of a live session that hand over its journal.
struct LeaseHolder {
    session: Arc<Session>,
    lease: Lease,
    writer: SessionWriter,
    followed: FollowedSessions,
    loading: Arc<tokio::sync::Mutex<()>>,
    poll: LeasePoll,
}

impl LeaseHolder {
    async fn hold(self) {
        let wake = Arc::new(Notify::new());
        // Subscribed before the first note: no later request is missed.
        let log = self.session.events();
        let mut events = log.subscribe_urgent();
        let mut pending = PendingRequests::of_writer(self.writer.lease.clone());
        let (lease, writer, waker) = (self.lease.clone(), self.writer.clone(), Arc::clone(&wake));
        let _watcher = blocking(move || {
            lease.announce(&writer);
            lease.watch(waker, false)
        })
        .await;
        let _poll = self.poll.watch(&self.lease, &wake);
        pending = write_pending(&self.session, &self.lease, pending).await;
        loop {
            deliver_answers(&self.session, &self.lease, &self.writer.lease).await;
            let lease = self.lease.clone();
            for ask in blocking(move || lease.asks()).await {
                if ask.lease.as_ref().is_some_and(|lease| *lease != self.writer.lease) {
                    continue;
                }
                let Some(why) = self.let_go(ask.force).await else { return };
                let lease = self.lease.clone();
                blocking(move || lease.decline(&ask.id, why)).await;
            }
            tokio::select! {
                biased;
                () = self.session.core().closing() => break,
                () = wake.notified() => {}
                batch = events.next() => {
                    let is_changed = match batch {
                        Ok(Some(batch)) => {
                            let mut is_changed = false;
                            for record in batch {
                                is_changed |= pending.observe(record.event);
                            }
                            is_changed
                        }
                        Ok(None) => {
                            self.session.core().closing().await;
                            break;
                        }
                        // Events were lost.
                        Err(_) => true,
                    };
                    if is_changed {
                        pending = write_pending(&self.session, &self.lease, pending).await;
                    }
                }
            }
        }
        self.session.closed().await;
        self.withdraw().await;
    }

    /// Ends the session here, lets the other process write it, and follows it from then on; or says why not.
    async fn let_go(&self, force: bool) -> Option<LeaseRefusal> {
        if !force && let Some(why) = self.session.work() {
            return Some(why);
        }
        // A caller that loads the session meanwhile must not take the lock again.
        let loading = self.loading.lock().await;
        if self.session.is_closing() {
            drop(loading);
            self.session.closed().await;
            self.withdraw().await;
            return None;
        }
        let path = self.session.core().journal().path().to_path_buf();
        if force {
            if self.session.turns().cancel() {
                self.wait_until_idle().await;
            }
            self.session.hand_over();
        } else if let Err(why) = self.session.hand_over_if_idle() {
            return Some(why);
        }
        self.session.closed().await;
        let log = Arc::clone(self.session.events());
        let beginning = self.session.core().opened();
        let opened = blocking(move || FollowedSession::open(&path, &beginning, Some(log))).await;
        match opened {
            Ok(Some(following)) => {
                lock(&self.followed).insert(following.id().clone(), Arc::clone(&following));
                following.start();
            }
            Ok(None) | Err(_) => {
                tracing::warn!(?opened, "a session that was let go cannot be followed");
                self.session.events().close();
            }
        }
        drop(loading);
        self.withdraw().await;
        None
    }

    async fn wait_until_idle(&self) {
        let until = Instant::now() + RELEASE_LIMIT;
        let mut events = self.session.events().subscribe(self.session.events().newest(), vec![]);
        while self.session.is_busy() {
            if timeout_at(until, events.next()).await.is_err() {
                tracing::warn!("a turn does not end; the session is let go all the same");
                return;
            }
        }
    }

    async fn withdraw(&self) {
        let (lease, writer) = (self.lease.clone(), self.writer.clone());
        blocking(move || {
            if lease.writer().is_some_and(|noted| noted.lease == writer.lease) {
                lease.remove_pending();
            }
            lease.withdraw(&writer);
        })
        .await;
    }
}
