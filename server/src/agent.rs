//! The agent of one connection: the engine, the user's options, the sessions that the client is shown.
//!
//! Rule: started by the first request that needs it, so that an unused server costs nothing. Nothing in here waits for the
//! client, and nothing knows what a front end draws.

mod alerts;
mod completion;
mod follow;
mod front_end;
mod listing;
mod loading;
mod options;
pub(crate) mod settings;
mod settings_watch;
pub(crate) mod sides;
mod start;
pub(crate) mod trust;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use kode_engine::agent::engine::{AttachedSession, Engine, ForkError, NewSession, SessionError};
use kode_engine::agent::input::complete::Completer;
use kode_engine::agent::session::Session;
use kode_engine::agent::sessions::WorkspaceFilter;
use kode_engine::agent::transfer::ForkPoint;
use kode_engine::base::ids::SessionId;
use kode_engine::base::mode::Mode;
use kode_engine::base::paths::AbsPath;
use kode_engine::config::settings::SettingsPolicies;
use kode_engine::tools::web_search::CurrentSearch;
use tokio_util::sync::CancellationToken;

use crate::connection::ClientConnection;
pub(crate) use completion::candidates;
use follow::SessionFollower;
pub(crate) use follow::{EventFilter, merge};
pub(crate) use front_end::{FrontEnd, SessionView};
pub(crate) use listing::watch_list;
pub use options::{ReviewDiagnostics, UserOptions};
pub(crate) use settings_watch::SettingsWatch;
pub(crate) use start::start;

/// The agent of one connection.
pub struct Agent {
    /// The sessions, the models and the tools.
    pub engine: Engine,
    /// The options of `initialize`.
    pub options: UserOptions,
    pub(crate) connection: Arc<ClientConnection>,
    /// The settings.
    pub(crate) policies: Arc<SettingsPolicies>,
    /// The service that searches the web.
    pub(crate) search: CurrentSearch,
    /// Completes prompts.
    pub(crate) completer: Completer,
    /// Shows the sessions; gone when the connection is.
    front_end: Weak<dyn FrontEnd>,
    watch: Arc<SettingsWatch>,
    /// Set once the list of sessions is watched.
    lists_sessions: OnceLock<()>,
    shown: Mutex<HashMap<SessionId, ShownSession>>,
    /// The session for prompts that name none.
    plain: Mutex<Option<SessionId>>,
}

/// A session that the client is shown.
struct ShownSession {
    follower: SessionFollower,
    /// The session at the start of the follower.
    attached: AttachedSession,
}

impl ShownSession {
    /// Whether the follower passes all events of the session as it is attached now. A session that was taken over or
    /// resumed is another one than the follower follows.
    fn covers(&self, now: &AttachedSession) -> bool {
        match (&self.attached, now) {
            (AttachedSession::Live(shown), AttachedSession::Live(now)) => Arc::ptr_eq(shown, now),
            (AttachedSession::Live(shown), AttachedSession::Following(now)) => {
                Arc::ptr_eq(shown.events(), now.events())
            }
            (AttachedSession::Following(shown), AttachedSession::Following(now)) => {
                Arc::ptr_eq(shown.events(), now.events())
            }
            (AttachedSession::Following(_), AttachedSession::Live(_)) => false,
        }
    }
}

/// How often the turns that outlive an editor are looked for.
const OUTLIVE_INTERVAL: Duration = Duration::from_millis(200);

impl Agent {
    /// Has the turns that run outlive the connection, and says whether any does. With the end of the connection, open documents
    /// are closed: the agent changes their files.
    pub(crate) fn outlive(self: &Arc<Self>) -> bool {
        // One that is served together with a language server ends with its relay.
        if self.connection.wrapped.is_some() || !self.works() {
            return false;
        }
        let agent = Arc::clone(self);
        self.connection.lifecycle.outlive(async move {
            agent.connection.documents.close_all();
            while agent.works() {
                tokio::time::sleep(OUTLIVE_INTERVAL).await;
            }
        });
        true
    }

    /// Whether a turn runs in any session.
    fn works(&self) -> bool {
        self.engine.live_sessions().iter().any(|session| session.is_busy())
    }

    /// The current folders of the workspace, in the client's order.
    #[must_use]
    pub fn folders(&self) -> Vec<AbsPath> {
        self.connection.workspace_roots().into_iter().map(|root| root.path).collect()
    }

    /// Watches the settings files of the workspace and of all live sessions, and no others. Nothing waits for it.
    pub(crate) fn watch_settings(&self) {
        self.watch.watch(self.workspaces(), &self.policies);
    }

    /// Watches the settings files of a new session, unless its folders are watched already.
    fn watch_settings_of_new_folders(&self) {
        let workspaces = self.workspaces();
        if !self.watch.is_of(&workspaces) {
            self.watch.watch(workspaces, &self.policies);
        }
    }

    /// The folders of the workspace and of all live sessions, each once.
    fn workspaces(&self) -> BTreeSet<Vec<AbsPath>> {
        let sessions = self.engine.live_sessions();
        sessions.iter().map(|session| session.roots()).chain([self.folders()]).collect()
    }

    /// Starts a session and shows it. Without `folder` it works in the workspace, and without a workspace in the folder of
    /// an open document.
    ///
    /// # Errors
    /// As [`Engine::new_session`].
    pub fn new_session(
        &self,
        folder: Option<AbsPath>,
        mode: Option<Mode>,
        model: Option<String>,
    ) -> Result<Arc<Session>, SessionError> {
        let session = self.engine.new_session(self.beginning(folder, mode, model))?;
        self.follow(&AttachedSession::Live(Arc::clone(&session)), 0, EventFilter::default());
        Ok(session)
    }

    /// As [`Agent::new_session`], in a new git worktree of the workspace.
    pub async fn new_session_in_worktree(
        &self,
        folder: Option<AbsPath>,
        mode: Option<Mode>,
        model: Option<String>,
    ) -> Result<Arc<Session>, SessionError> {
        let new = self.beginning(folder, mode, model);
        let session = self.engine.new_session_in_worktree(new, &CancellationToken::new()).await?;
        self.follow(&AttachedSession::Live(Arc::clone(&session)), 0, EventFilter::default());
        Ok(session)
    }

    /// The options of a new session; without a folder those of the workspace, or else that of an open document.
    fn beginning(&self, folder: Option<AbsPath>, mode: Option<Mode>, model: Option<String>) -> NewSession {
        let mut roots = match folder {
            Some(folder) => vec![folder],
            None => self.folders(),
        };
        if roots.is_empty() {
            roots.extend(
                self.connection.documents.all().into_iter().find_map(|document| document.path?.parent()),
            );
        }
        NewSession {
            roots,
            mode: mode.or(self.options.mode),
            model: model.or_else(|| self.options.profile.clone()),
        }
    }

    /// The session of that id: the live one, one resumed from its journal, or one that is followed while another server
    /// writes it. The client gets new events, or all events after `since`, that pass the filter.
    ///
    /// # Errors
    /// As [`Engine::attach`].
    pub(crate) async fn load_session(
        &self,
        id: &SessionId,
        since: Option<u64>,
        filter: EventFilter,
    ) -> Result<AttachedSession, SessionError> {
        let report = loading::show(Arc::clone(&self.connection), id);
        let attached = self.engine.attach(&self.folders(), id, since, report).await?;
        let mut shown = self.shown();
        let is_same = shown.get(id).is_some_and(|session| *session.follower.filter() == filter);
        if since.is_some() || !is_same {
            shown.remove(id);
        }
        drop(shown);
        let newest = match &attached {
            AttachedSession::Live(session) => session.events().newest(),
            AttachedSession::Following(following) => following.events().newest(),
        };
        self.follow(&attached, since.unwrap_or(newest), filter);
        Ok(attached)
    }

    /// Makes this server the writer of a session; with `force` a turn that runs elsewhere is cancelled.
    ///
    /// # Errors
    /// As [`Engine::take_over`].
    pub async fn take_over(&self, id: &SessionId, force: bool) -> Result<Arc<Session>, SessionError> {
        if self.engine.session(id).is_err() && self.engine.following(id).is_none() {
            self.engine.attach(&self.folders(), id, None, |_| {}).await?;
        }
        let session = self.engine.take_over(id, force).await?;
        self.follow_taken(&session);
        Ok(session)
    }

    /// The session for a prompt; one without a writer is taken over.
    ///
    /// # Errors
    /// As [`Engine::session_for_prompt`].
    pub async fn session_for_prompt(&self, id: &SessionId) -> Result<Arc<Session>, SessionError> {
        let session = self.engine.session_for_prompt(id).await?;
        self.follow_taken(&session);
        Ok(session)
    }

    /// Sets the session for prompts that name none.
    pub fn set_plain_session(&self, session: &Session) {
        *self.plain.lock().unwrap_or_else(PoisonError::into_inner) = Some(session.id().clone());
    }

    /// Shows a session that this server writes now, also when the request that took it over was cancelled.
    fn follow_taken(&self, session: &Arc<Session>) {
        let (newest, live) = (session.events().newest(), AttachedSession::Live(Arc::clone(session)));
        self.follow(&live, newest, EventFilter::default());
    }

    /// Starts a session with a copy of another one up to `at`, and shows it.
    ///
    /// # Errors
    /// As [`Engine::fork_session`].
    pub async fn fork_session(&self, id: &SessionId, at: ForkPoint) -> Result<Arc<Session>, ForkError> {
        let session = self.engine.fork_session(&self.folders(), id, at).await?;
        let newest = session.events().newest();
        self.follow(&AttachedSession::Live(Arc::clone(&session)), newest, EventFilter::default());
        Ok(session)
    }

    /// The session for prompts that name none; started by the first of them, and again only when it is live nowhere.
    ///
    /// # Errors
    /// As [`Agent::new_session`], and [`SessionError::Followed`] where another server has taken it over.
    pub fn plain_session(&self) -> Result<Arc<Session>, SessionError> {
        let mut plain = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        match plain.as_ref().map(|id| self.engine.session(id)) {
            // A user who continues a conversation must not end up in an empty one.
            None | Some(Err(SessionError::Unknown(_))) => {}
            Some(known) => return known,
        }
        let session = self.new_session(None, None, None)?;
        *plain = Some(session.id().clone());
        Ok(session)
    }

    /// As [`Self::plain_session`], for a prompt: a session of another process is taken over when it has no writer.
    ///
    /// # Errors
    /// As [`Engine::session_for_prompt`].
    pub async fn plain_session_for_prompt(&self) -> Result<Arc<Session>, SessionError> {
        let known = self.plain.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known.filter(|id| self.engine.following(id).is_some()) {
            Some(id) => self.session_for_prompt(&id).await,
            None => self.plain_session(),
        }
    }

    /// Makes that session the one for prompts that name none, and returns its title. One that is not live is resumed.
    ///
    /// # Errors
    /// As [`Engine::load_session`].
    pub async fn continue_with(&self, id: &SessionId) -> Result<String, SessionError> {
        let session = match self.load_session(id, None, EventFilter::default()).await? {
            AttachedSession::Live(session) => session,
            AttachedSession::Following(following) => {
                return Err(SessionError::Followed { by: following.writer().map(Box::new) });
            }
        };
        *self.plain.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.clone());
        Ok(session.snapshot(0).title)
    }

    /// Whether this is the session for prompts that name none.
    #[must_use]
    pub fn is_plain_session(&self, id: &SessionId) -> bool {
        self.plain.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == Some(id)
    }

    /// Makes the next prompt that names no session start a new one.
    pub fn forget_plain_session(&self) {
        *self.plain.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Ends a live session; its journal stays.
    ///
    /// # Errors
    /// [`SessionError::Unknown`].
    pub fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        self.engine.close_session(id)?;
        // The last events of the session are still sent; when it is loaded again, it gets a new follower.
        if let Some(shown) = self.shown().remove(id) {
            shown.follower.follow_to_the_end();
        }
        Ok(())
    }

    /// Deletes a session; a live one in which no turn runs is closed first.
    ///
    /// # Errors
    /// As [`Engine::delete_session`].
    pub async fn delete_session(&self, id: &SessionId) -> Result<(), SessionError> {
        self.engine.delete_session(&WorkspaceFilter::All, id).await?;
        if let Some(shown) = self.shown().remove(id) {
            shown.follower.follow_to_the_end();
        }
        Ok(())
    }

    /// Shows a session from event number `since` on, once for any number of calls. Where the client is shown an earlier
    /// life of the session, it gets what followed that, by the same filter.
    fn follow(&self, attached: &AttachedSession, since: u64, filter: EventFilter) {
        let Some(front_end) = self.front_end.upgrade() else { return };
        let (id, log) = match attached {
            AttachedSession::Live(session) => (session.id().clone(), session.events()),
            AttachedSession::Following(following) => (following.id().clone(), following.events()),
        };
        let mut shown = self.shown();
        shown.retain(|_, session| !session.follower.is_finished());
        let (since, filter) = match shown.get(&id) {
            Some(session) if session.covers(attached) => return,
            Some(session) => (session.follower.sent().min(log.newest()), session.follower.filter().clone()),
            None => (since, filter),
        };
        // The old follower ends before the new one starts: nothing is sent twice.
        shown.remove(&id);
        let view = front_end.view(attached);
        let follower = follow::start(Arc::clone(&self.connection), view, attached, since, filter);
        shown.insert(id, ShownSession { follower, attached: attached.clone() });
        drop(shown);
        self.watch_settings_of_new_folders();
    }

    fn shown(&self) -> MutexGuard<'_, HashMap<SessionId, ShownSession>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
