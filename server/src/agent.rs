//! The agent behind one connection: the engine, the sessions this client follows, the user's options.
//!
//! Rule: made at the first need and not at start-up, so that a server nobody asks anything costs nothing; nothing in
//! here waits for the client.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kode_engine::agent::engine::{Attached, Engine, EngineOptions, NewSession, SessionError};
use kode_engine::agent::hooks::EndReason;
use kode_engine::agent::input::complete::Completer;
use kode_engine::agent::session::Session;
use kode_engine::agent::sessions::{CleanupOptions, Workspaces};
use kode_engine::agent::transfer::{ForkError, ForkPoint};
use kode_engine::base::ids::SessionId;
use kode_engine::base::mode::Mode;
use kode_engine::base::paths::AbsPath;
use kode_engine::config::policies::PolicyProvider;
use kode_engine::config::settings::{EditorUpdate, SettingsPolicies};
use kode_engine::mcp::Mcp;
use kode_engine::model::models::{Pointer, ProfileLayer};
use kode_engine::model::profile::ProfileOptions;
use kode_engine::permission::{Deliveries, DeliveryRule};
use kode_engine::process::sandbox;
use kode_engine::tools::web_search::CurrentSearch;
use lsp_types::MessageType;
use serde::Deserialize;
use serde_json::Value;
use tokio::runtime::Handle;

use crate::backend::Shared;
use crate::client::ClientFacts;
use crate::display::readable;
use crate::follow::{self, Filter, Follower};
use crate::home;
use crate::host::LspHost;
use crate::listing::ListWatch;
use crate::plain::loading;
use crate::policies;
use crate::trust;
use crate::watching::SettingsWatch;

/// How long after the agent was first needed it is looked whether old sessions are to be deleted.
const CLEANUP_DELAY: Duration = Duration::from_secs(10);

/// What an editor can set in `initializationOptions`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct UserOptions {
    /// The model new sessions use: the name of a profile, of a pointer, or of a model.
    pub profile: Option<String>,
    /// The profile `main`; what is missing comes from the environment.
    pub model: ProfileOptions,
    /// Further profiles by name.
    pub models: BTreeMap<String, ProfileOptions>,
    /// What profiles are used for: `main`, `task`, `compact`, `quick`.
    pub pointers: BTreeMap<Pointer, String>,
    /// The mode new sessions start in; that of the settings files when it is not given.
    pub mode: Option<Mode>,
    /// How changes reach the files; the first rule that matches decides, and where none does the mode.
    pub delivery: Vec<DeliveryRule>,
    /// Whether documents that the agent has changed are saved before a command runs; true when it is not said.
    pub save_before_commands: Option<bool>,
    /// Whether changes that wait for a decision are shown as diagnostics.
    pub review_diagnostics: ReviewDiagnostics,
    /// What the client can do and does not tell in its capabilities, in the same form; read with those.
    pub client_capabilities: Value,
    /// Settings as a settings file holds them, of which nobody says whose they are: they narrow and never loosen.
    pub settings: Value,
    /// Settings that are the user's own.
    pub user_settings: Value,
    /// Whether the editor trusts the workspace; while it does not, no approval counts.
    pub workspace_trusted: Option<bool>,
}

/// Whether changes that wait for a decision are shown as diagnostics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReviewDiagnostics {
    /// In clients that do not hear of changes by events.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// The agent behind one connection.
pub struct Agent {
    /// The sessions, the models and the tools.
    pub engine: Engine,
    /// What the editor has set.
    pub options: UserOptions,
    pub(crate) shared: Arc<Shared>,
    /// The settings.
    pub(crate) policies: Arc<SettingsPolicies>,
    /// The service that searches the web.
    pub(crate) search: CurrentSearch,
    watch: Arc<SettingsWatch>,
    /// What prompts can name.
    pub(crate) completer: Completer,
    /// Who tells of changes of the list of sessions.
    pub(crate) listing: ListWatch,
    followed: Mutex<HashMap<SessionId, Shown>>,
    /// The session that prompts without one of their own go to.
    plain: Mutex<Option<SessionId>>,
}

/// A session that the client is shown.
struct Shown {
    follower: Follower,
    /// As it was when that began.
    attached: Attached,
}

impl Shown {
    /// Whether the following tells all of the session as it can be had now. What was taken over, or taken up again, is
    /// not the session that was followed.
    fn tells(&self, now: &Attached) -> bool {
        match (&self.attached, now) {
            (Attached::Live(shown), Attached::Live(now)) => Arc::ptr_eq(shown, now),
            (Attached::Live(shown), Attached::Following(now)) => Arc::ptr_eq(shown.events(), now.events()),
            (Attached::Following(shown), Attached::Following(now)) => {
                Arc::ptr_eq(shown.events(), now.events())
            }
            (Attached::Following(_), Attached::Live(_)) => false,
        }
    }
}

impl Agent {
    /// Makes the agent from what the client said in `initialize`.
    ///
    /// # Errors
    /// When there is no place for the user's state.
    pub(crate) fn new(shared: Arc<Shared>) -> anyhow::Result<Arc<Self>> {
        // The first session waits for what comes of it: the earlier it begins the better.
        drop(std::thread::spawn(sandbox::detect));
        // A wrong option must not keep an editor from working; the user has been told of it on start.
        let options = shared.facts.get().and_then(|facts| user_options(&facts.initialization_options).ok());
        let options = options.unwrap_or_default();
        let policies = policies::all()?;
        policies.editor().say(word(&options, shared.facts.get()));
        let equipment = policies::equipment(&policies);
        let policies = Arc::new(policies);
        if let Some(problem) = equipment.search.problem() {
            let client = shared.client.clone();
            tokio::spawn(async move { client.show_message(MessageType::WARNING, readable(&problem)).await });
        }
        let search = CurrentSearch::default();
        search.set(equipment.provider);
        let home = home::folder()?;
        let options_of_engine = EngineOptions {
            home: home.clone(),
            tools: policies::tools(&search),
            servers: Arc::new(Mcp::new(home)),
            host: Arc::new(LspHost::new(Arc::clone(&shared))),
            models: policies::models(&policies, own_models(&options)),
            deliveries: Deliveries::new(options.delivery.clone())?,
            policies: Arc::clone(&policies) as Arc<dyn PolicyProvider>,
            concurrency: equipment.concurrency,
            save_before_commands: options.save_before_commands.unwrap_or(true),
        };
        let engine = Engine::new(options_of_engine);
        if let Some(name) = shared.facts.get().and_then(|facts| facts.name.as_deref()) {
            engine.name_client(name);
        }
        let agent = Arc::new(Self {
            engine,
            search,
            options,
            shared: Arc::clone(&shared),
            policies: Arc::clone(&policies),
            watch: watching(&shared),
            completer: Completer::default(),
            listing: ListWatch::default(),
            followed: Mutex::default(),
            plain: Mutex::default(),
        });
        agent.begin_cleanup(policies);
        agent.watch_settings();
        trust::pull_configuration(&agent);
        let ending = Arc::clone(&agent);
        shared.lifecycle.at_end(async move { ending.engine.shutdown_for(EndReason::PromptInputExit).await });
        Ok(agent)
    }

    /// The folders of the workspace as the client names them now.
    #[must_use]
    pub fn folders(&self) -> Vec<AbsPath> {
        self.shared.workspace_roots().into_iter().map(|root| root.path).collect()
    }

    /// What the editor says of models.
    pub(crate) fn own_models(&self) -> ProfileLayer {
        own_models(&self.options)
    }

    /// Watches the settings files of the workspace and of all live sessions, and no others. Nothing waits for it.
    pub(crate) fn watch_settings(&self) {
        self.watch.watch(self.workspaces(), &self.policies);
    }

    /// The same when a session has come, which adds files only where its folders are new.
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

    /// Begins a session and follows it. Without a folder of its own it works in the workspace, and without a
    /// workspace in the folder of an open document.
    ///
    /// # Errors
    /// As [`Engine::new_session`].
    pub fn new_session(
        &self,
        folder: Option<AbsPath>,
        mode: Option<Mode>,
        model: Option<String>,
    ) -> Result<Arc<Session>, SessionError> {
        let mut roots = match folder {
            Some(folder) => vec![folder],
            None => self.folders(),
        };
        if roots.is_empty() {
            roots
                .extend(self.shared.documents.all().into_iter().find_map(|document| document.path?.parent()));
        }
        let session = self.engine.new_session(NewSession {
            roots,
            mode: mode.or(self.options.mode),
            model: model.or_else(|| self.options.profile.clone()),
        })?;
        self.follow(&Attached::Live(Arc::clone(&session)), 0, Filter::default());
        Ok(session)
    }

    /// The session of that id, taken up from its journal when it is not live, or followed where another server writes it.
    /// The client is sent what happens from now on, or again from the event after `since`, as far as the filter lets it.
    ///
    /// # Errors
    /// As [`Engine::attach`].
    pub(crate) async fn load_session(
        &self,
        id: &SessionId,
        since: Option<u64>,
        filter: Filter,
    ) -> Result<Attached, SessionError> {
        let tell = loading::show(Arc::clone(&self.shared), id);
        let attached = self.engine.attach(&self.folders(), id, since, tell).await?;
        let mut followed = self.followed();
        let is_same = followed.get(id).is_some_and(|shown| *shown.follower.filter() == filter);
        if since.is_some() || !is_same {
            followed.remove(id);
        }
        drop(followed);
        let newest = match &attached {
            Attached::Live(session) => session.events().newest(),
            Attached::Following(following) => following.events().newest(),
        };
        self.follow(&attached, since.unwrap_or(newest), filter);
        Ok(attached)
    }

    /// Makes this server the one that writes a session; with `force` a turn that runs elsewhere is cancelled.
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

    /// The session to hand a prompt to: one that nobody writes any more is taken over.
    ///
    /// # Errors
    /// As [`Engine::session_for_prompt`].
    pub async fn session_for_prompt(&self, id: &SessionId) -> Result<Arc<Session>, SessionError> {
        let session = self.engine.session_for_prompt(id).await?;
        self.follow_taken(&session);
        Ok(session)
    }

    /// The session that prompts without one of their own go to from now on.
    pub fn set_plain_session(&self, session: &Session) {
        *self.plain.lock().unwrap_or_else(PoisonError::into_inner) = Some(session.id().clone());
    }

    /// Shows a session that is written here in all forms that the client can take, also when whoever took it over did
    /// not wait for the end of that.
    fn follow_taken(&self, session: &Arc<Session>) {
        let (newest, live) = (session.events().newest(), Attached::Live(Arc::clone(session)));
        self.follow(&live, newest, Filter::default());
    }

    /// Begins a session with what another one said up to some place, and follows it.
    ///
    /// # Errors
    /// As [`Engine::fork_session`].
    pub async fn fork_session(&self, id: &SessionId, at: ForkPoint) -> Result<Arc<Session>, ForkError> {
        let session = self.engine.fork_session(&self.folders(), id, at).await?;
        let newest = session.events().newest();
        self.follow(&Attached::Live(Arc::clone(&session)), newest, Filter::default());
        Ok(session)
    }

    /// The session that prompts without one of their own go to; begun at the first of them, and anew only where that one
    /// is live nowhere.
    ///
    /// # Errors
    /// As [`Agent::new_session`], and [`SessionError::Followed`] where another server has taken it over.
    pub fn plain_session(&self) -> Result<Arc<Session>, SessionError> {
        let mut plain = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        match plain.as_ref().map(|id| self.engine.session(id)) {
            // Whoever goes on with a conversation must not find themselves in an empty one.
            None | Some(Err(SessionError::Unknown(_))) => {}
            Some(known) => return known,
        }
        let session = self.new_session(None, None, None)?;
        *plain = Some(session.id().clone());
        Ok(session)
    }

    /// As [`Self::plain_session`], for a prompt: one that another process wrote and nobody writes any more is taken over.
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

    /// Lets prompts without a session of their own go to that one, which is taken up from its journal when it is not
    /// live. Answers its title.
    ///
    /// # Errors
    /// As [`Engine::load_session`].
    pub async fn go_on_with(&self, id: &SessionId) -> Result<String, SessionError> {
        let session = match self.load_session(id, None, Filter::default()).await? {
            Attached::Live(session) => session,
            Attached::Following(following) => {
                return Err(SessionError::Followed { by: following.writer().map(Box::new) });
            }
        };
        *self.plain.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.clone());
        Ok(session.snapshot(0).title)
    }

    /// Whether prompts without a session of their own go to this one.
    #[must_use]
    pub fn is_plain_session(&self, id: &SessionId) -> bool {
        self.plain.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == Some(id)
    }

    /// Lets the next prompt without a session begin a new one.
    pub fn forget_plain_session(&self) {
        *self.plain.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Ends a live session; its journal stays.
    ///
    /// # Errors
    /// [`SessionError::Unknown`].
    pub fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        self.engine.close_session(id)?;
        // What the session still tells while it ends is sent; loaded again, it is followed anew.
        if let Some(shown) = self.followed().remove(id) {
            shown.follower.follow_to_the_end();
        }
        Ok(())
    }

    /// Deletes a session; a live one in which no turn runs is closed first.
    ///
    /// # Errors
    /// As [`Engine::delete_session`].
    pub async fn delete_session(&self, id: &SessionId) -> Result<(), SessionError> {
        self.engine.delete_session(&Workspaces::All, id).await?;
        if let Some(shown) = self.followed().remove(id) {
            shown.follower.follow_to_the_end();
        }
        Ok(())
    }

    /// Removes sessions nobody has touched for long and what others keep and need no more, at most once a day; what was
    /// deleted is told. Nothing waits for it.
    fn begin_cleanup(&self, policies: Arc<SettingsPolicies>) {
        let (catalogue, shared) = (Arc::clone(self.engine.catalogue()), Arc::clone(&self.shared));
        tokio::spawn(async move {
            // What the agent was made for comes first.
            tokio::time::sleep(CLEANUP_DELAY).await;
            let cleaning = tokio::task::spawn_blocking(move || {
                let days = policies.cleanup_days();
                catalogue.clean_up(CleanupOptions { now: Timestamp::now(), days }).map(|done| (done, days))
            });
            match cleaning.await {
                Ok(Ok((Some(cleaned), Some(days)))) if cleaned.sessions > 0 => {
                    let text = format!(
                        "Kode: deleted {} sessions ({} MB) that nobody has touched for {days} days. \
                         `cleanupPeriodDays` in your settings says how long they are kept; archived ones stay.",
                        cleaned.sessions,
                        cleaned.bytes.div_ceil(1_000_000)
                    );
                    shared.client.show_message(MessageType::INFO, text).await;
                }
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the stored sessions were not cleaned up"),
                Err(error) => tracing::error!(%error, "cleaning up the stored sessions broke off"),
            }
        });
    }

    /// Sends the client what happens in a session after event number `since`, once however often it is asked for. Where it
    /// is shown something that the session is no more, it is sent what came after that, by the same filter.
    fn follow(&self, attached: &Attached, since: u64, filter: Filter) {
        let (id, log) = match attached {
            Attached::Live(session) => (session.id().clone(), session.events()),
            Attached::Following(following) => (following.id().clone(), following.events()),
        };
        let mut followed = self.followed();
        followed.retain(|_, shown| !shown.follower.is_finished());
        let (since, filter) = match followed.get(&id) {
            Some(shown) if shown.tells(attached) => return,
            Some(shown) => (shown.follower.sent().min(log.newest()), shown.follower.filter().clone()),
            None => (since, filter),
        };
        // The old one ends before the new one begins: nothing is sent twice.
        followed.remove(&id);
        let follower = follow::start(Arc::clone(&self.shared), attached, since, filter);
        followed.insert(id, Shown { follower, attached: attached.clone() });
        drop(followed);
        self.watch_settings_of_new_folders();
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<SessionId, Shown>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has settings files that change taken in, as long as there is a connection.
fn watching(shared: &Arc<Shared>) -> Arc<SettingsWatch> {
    let (shared, runtime) = (Arc::downgrade(shared), Handle::current());
    SettingsWatch::start(move || {
        let Some(agent) = shared.upgrade().and_then(|shared| shared.live_agent().cloned()) else { return };
        runtime.spawn(async move { trust::files_changed(&agent).await });
    })
}

/// What the editor said of settings in `initialize`.
fn word(options: &UserOptions, facts: Option<&ClientFacts>) -> EditorUpdate {
    let distrusts = |trusted: Option<bool>| trusted == Some(false);
    EditorUpdate {
        settings: options.settings.clone(),
        user_settings: options.user_settings.clone(),
        is_distrusted: distrusts(options.workspace_trusted)
            || facts.is_some_and(|facts| distrusts(facts.kode.workspace_trusted)),
    }
}

/// What the editor says of models.
fn own_models(options: &UserOptions) -> ProfileLayer {
    let mut profiles: BTreeMap<_, _> =
        options.models.iter().map(|(name, profile)| (name.clone(), Ok(profile.clone()))).collect();
    if options.model != ProfileOptions::default() {
        profiles.insert(Pointer::Main.name().to_owned(), Ok(options.model.clone()));
    }
    ProfileLayer { source: "initializationOptions".to_owned(), profiles, pointers: options.pointers.clone() }
}

/// Reads the user's options.
///
/// # Errors
/// What is wrong with them, for the user.
pub(crate) fn user_options(value: &Value) -> Result<UserOptions, String> {
    if value.is_null() {
        return Ok(UserOptions::default());
    }
    let options = UserOptions::deserialize(value).map_err(|error| {
        // The reader quotes texts that are of the wrong type; such a text may be a key.
        let reason = error.to_string();
        let reason = reason.split("string \"").next().unwrap_or_default().trim_end();
        format!("initializationOptions of kode-ls cannot be read and are ignored: {reason}")
    })?;
    match Deliveries::new(options.delivery.clone()) {
        Ok(_) => Ok(options),
        Err(bad) => Err(format!("initializationOptions of kode-ls cannot be used and are ignored: {bad}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_are_read_and_wrong_ones_named() {
        let options = user_options(&json!({ "profile": "demo", "mode": "acceptEdits" })).unwrap();
        assert_eq!((options.profile.as_deref(), options.mode), (Some("demo"), Some(Mode::AcceptEdits)));
        let quiet = user_options(&json!({ "reviewDiagnostics": "off" })).unwrap();
        assert_eq!(quiet.review_diagnostics, ReviewDiagnostics::Off);
        for nothing in [json!(null), json!({})] {
            assert_eq!(user_options(&nothing).unwrap().mode, None, "{nothing}");
        }
        for wrong in [
            json!({ "mode": 7 }),
            json!({ "reviewDiagnostics": true }),
            json!({ "surprise": 1 }),
            json!("demo"),
        ] {
            assert!(user_options(&wrong).unwrap_err().contains("initializationOptions"), "{wrong}");
        }
    }
}
