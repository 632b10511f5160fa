//! Sessions that other processes write: following them, taking them over, and letting go of one's own.
//!
//! Rule: whoever holds the journal's lock writes, and nobody else; nobody takes a session over unasked. What is asked of
//! another process is answered, or given up after [`TAKE_OVER_LIMIT`].

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{MutexGuard, Notify};
use tokio::time::{Instant, sleep, timeout_at};

use crate::engine::opened::{Opened, in_background, open_session};
use crate::engine::{Engine, SessionError, TakenUp};
use crate::session::follower::Following;
use crate::session::{Loading, Session, lock};
use kode_base::blocking;
use kode_base::ids::{AskId, SessionId};
use kode_base::paths::AbsPath;
use kode_journal::lease::{Lease, LeaseRefusal, LeaseRequest, SessionWriter, TAKE_OVER_LIMIT};
use kode_record::event::Event;

/// So many writers are asked one after the other, where each begins to write while its predecessor is asked.
const MAX_ASKS: usize = 3;

/// So long a turn may take to end after it was cancelled for another process.
const RELEASE_LIMIT: Duration = Duration::from_secs(5);

/// What is asked is looked for so often where the system says nothing of it.
const POLL: Duration = Duration::from_secs(2);

/// The sessions that other processes write.
pub(super) type Followed = Arc<Mutex<HashMap<SessionId, Arc<Following>>>>;

/// Live sessions that are not ready for anybody.
pub(super) type Preparations = Arc<Mutex<HashSet<SessionId>>>;

/// A session is not ready as long as this is there.
pub(super) struct Preparing {
    all: Preparations,
    id: SessionId,
}

impl Drop for Preparing {
    fn drop(&mut self) {
        lock(&self.all).remove(&self.id);
    }
}

/// Goes on with what must not be left half done, also when whoever waits for it is gone.
pub(super) async fn unbroken<T: Send + 'static>(
    work: impl Future<Output = Result<T, SessionError>> + Send + 'static,
) -> Result<T, SessionError> {
    tokio::spawn(work).await.unwrap_or_else(|error| {
        tracing::error!(%error, "loading a session broke off");
        let path = std::path::PathBuf::from(crate::engine::JOURNAL);
        Err(SessionError::Storage { path, source: io::Error::other(error) })
    })
}

/// A session as it can be had here.
#[derive(Clone)]
pub enum Attached {
    /// This process writes it.
    Live(Arc<Session>),
    /// Another process writes it, or the one that did has ended.
    Following(Arc<Following>),
}

impl Engine {
    /// Names the client that this engine works for: others are told who has a session open.
    pub fn name_client(&self, name: &str) {
        name.clone_into(&mut lock(&self.client));
    }

    /// The session of that id as it can be had: live here, taken up from its journal, or followed where another process
    /// writes it.
    ///
    /// # Errors
    /// As [`Engine::load_session`].
    pub async fn attach(
        &self,
        folders: &[AbsPath],
        id: &SessionId,
        since: Option<u64>,
        tell: impl Fn(Loading) + Send + 'static,
    ) -> Result<Attached, SessionError> {
        let (engine, folders, id) = (self.clone(), folders.to_vec(), id.clone());
        unbroken(async move { engine.attach_to(&folders, &id, since, tell).await }).await
    }

    async fn attach_to(
        &self,
        folders: &[AbsPath],
        id: &SessionId,
        since: Option<u64>,
        tell: impl Fn(Loading) + Send + 'static,
    ) -> Result<Attached, SessionError> {
        let loading = self.loading.lock().await;
        if let Some(following) = self.following(id) {
            return Ok(Attached::Following(following));
        }
        match self.take_up(folders, id, since, tell).await {
            Ok(TakenUp::Before(session)) => Ok(Attached::Live(session)),
            Ok(TakenUp::Now(session, preparing)) => {
                self.make_ready(&session, preparing, loading).await;
                Ok(Attached::Live(session))
            }
            Err(SessionError::Storage { path, source }) if source.kind() == io::ErrorKind::ResourceBusy => {
                let of = path.clone();
                let (_, folder) = self.stored_journal(folders, id)?;
                let beginning = self.beginning_in(id, folder)?;
                let opened = blocking(move || Following::open(&of, &beginning, None)).await;
                let opened = opened.map_err(|source| SessionError::Storage { path: path.clone(), source })?;
                let following = opened.ok_or(SessionError::Corrupted { path, skipped: 0 })?;
                lock(&self.followed).insert(id.clone(), Arc::clone(&following));
                following.start();
                Ok(Attached::Following(following))
            }
            Err(error) => Err(error),
        }
    }

    /// The session of that id as it is had here now, without loading it.
    ///
    /// # Errors
    /// [`SessionError::Unknown`] when it is neither live nor followed.
    pub fn attached(&self, id: &SessionId) -> Result<Attached, SessionError> {
        match self.following(id) {
            Some(following) => Ok(Attached::Following(following)),
            None => self.session(id).map(Attached::Live),
        }
    }

    /// All sessions that are live or followed here, the newest first.
    #[must_use]
    pub fn all_attached(&self) -> Vec<Attached> {
        let mut all: Vec<(SessionId, Attached)> = self
            .live_sessions()
            .into_iter()
            .map(|session| (session.id().clone(), Attached::Live(session)))
            .collect();
        let followed = lock(&self.followed);
        let followed = followed.iter().filter(|(_, following)| !following.is_stopped());
        all.extend(followed.map(|(id, following)| (id.clone(), Attached::Following(Arc::clone(following)))));
        all.sort_by(|(a, _), (b, _)| b.cmp(a));
        all.into_iter().map(|(_, attached)| attached).collect()
    }

    /// From now on nobody gets the session of that id, until it is ready.
    pub(super) fn prepare(&self, id: &SessionId) -> Preparing {
        lock(&self.preparing).insert(id.clone());
        Preparing { all: Arc::clone(&self.preparing), id: id.clone() }
    }

    /// Does what a session needs that was taken up from its journal. Others are loaded as soon as it can be used.
    pub(super) async fn make_ready(
        &self,
        session: &Arc<Session>,
        preparing: Preparing,
        loading: MutexGuard<'_, ()>,
    ) {
        session.enter_lost_changes().await;
        session.look_for_losses().await;
        drop(preparing);
        drop(loading);
        // Whoever loads it sees the texts as they are, and not as they were when the session ended.
        session.catch_up_with_texts().await;
        session.finish_restore().await;
        session.asked_again().await;
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
    pub fn following(&self, id: &SessionId) -> Option<Arc<Following>> {
        lock(&self.followed).get(id).filter(|following| !following.is_stopped()).cloned()
    }

    /// The session to hand a prompt to. One that nobody writes any more is taken over: that is what whoever hands in a
    /// prompt means.
    ///
    /// # Errors
    /// As [`Engine::session`], and what keeps it from being taken over.
    pub async fn session_for_prompt(&self, id: &SessionId) -> Result<Arc<Session>, SessionError> {
        if let Some(following) = self.following(id)
            && let Some(session) = self.take_free(&following).await?
        {
            return Ok(session);
        }
        self.ready_session(id).await
    }

    /// Makes this process the one that writes a session that it follows. With `force` what runs there is cancelled.
    ///
    /// # Errors
    /// [`SessionError`]: it is not followed, its writer declines, does not answer, or somebody else was first.
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

    /// Asks whoever is noted as the writer. `None` when meanwhile another one is: what was asked is none of its business.
    async fn ask_for(
        &self,
        following: &Arc<Following>,
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
        following: &Arc<Following>,
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
            // Somebody else was first, or began to write while this one asked.
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

    /// Takes a session over if nobody writes it.
    async fn take_free(&self, following: &Arc<Following>) -> Result<Option<Arc<Session>>, SessionError> {
        let (engine, following) = (self.clone(), Arc::clone(following));
        unbroken(async move { engine.take_if_free(&following).await }).await
    }

    async fn take_if_free(&self, following: &Arc<Following>) -> Result<Option<Arc<Session>>, SessionError> {
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
        // Nobody writes any more: what is read now is the end of what was told there.
        blocking(move || last.finish()).await;
        let log = following.events();
        log.begin_life();
        lock(&self.followed).remove(following.id());
        let session = self.start(Opened { events: Arc::clone(log), ..opened });
        self.make_ready(&session, preparing, loading).await;
        Ok(Some(session))
    }

    /// Notes who writes a session, and answers those who want to, until it is closed.
    pub(super) fn hold(&self, session: &Arc<Session>, lease: Lease) {
        let writer = SessionWriter::this(&lock(&self.client));
        let told = Event::LeaseChanged { writer: Some(Box::new(writer.clone())), is_mine: true };
        session.events().tell_aside(told);
        let holder = Holder {
            session: Arc::clone(session),
            lease,
            writer,
            followed: Arc::clone(&self.followed),
            loading: Arc::clone(&self.loading),
        };
        tokio::spawn(holder.hold());
    }
}

/// What a live session needs to let go of its journal.
struct Holder {
    session: Arc<Session>,
    lease: Lease,
    writer: SessionWriter,
    followed: Followed,
    loading: Arc<tokio::sync::Mutex<()>>,
}

impl Holder {
    async fn hold(self) {
        let wake = Arc::new(Notify::new());
        let (lease, writer, waker) = (self.lease.clone(), self.writer.clone(), Arc::clone(&wake));
        let _watcher = blocking(move || {
            lease.announce(&writer);
            lease.watch(waker, false)
        })
        .await;
        loop {
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
                () = self.session.closing() => break,
                () = wake.notified() => {}
                () = sleep(POLL) => {}
            }
        }
        self.session.closed().await;
        self.withdraw().await;
    }

    /// Ends the session here, lets the other process write it, and follows it from then on; or says why not.
    async fn let_go(&self, force: bool) -> Option<LeaseRefusal> {
        if !force && let Some(why) = self.session.at_work() {
            return Some(why);
        }
        // Whoever loads the session meanwhile must not take the lock again.
        let loading = self.loading.lock().await;
        if self.session.is_closing() {
            drop(loading);
            self.session.closed().await;
            self.withdraw().await;
            return None;
        }
        let path = self.session.journal_path();
        if force {
            if self.session.cancel_turn() {
                self.wait_until_idle().await;
            }
            self.session.close_for_another();
        } else if let Err(why) = self.session.close_for_another_if_idle() {
            return Some(why);
        }
        self.session.closed().await;
        let log = Arc::clone(self.session.events());
        let beginning = self.session.opened();
        let opened = blocking(move || Following::open(&path, &beginning, Some(log))).await;
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
        blocking(move || lease.withdraw(&writer)).await;
    }
}
