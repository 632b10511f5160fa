//! The engine: all sessions of a server, and their shared parts.
//!
//! Rule: opening or listing sessions costs no network and starts no process; a model is connected when a turn first
//! needs it.

mod directory;
mod lease;
mod lease_poll;
mod manage;
mod opened;
mod relay;
mod transfer;
mod unstored;
mod worktrees;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use futures::future::join_all;
use tokio::sync::Semaphore;

use crate::core::lock;
use crate::engine::lease_poll::LeasePoll;
use crate::history::LoadProgress;
use crate::history::base::{BaseTurns, NewestBase};
use crate::hooks::{EndReason, HookChain, HookLayer, HookList, ToolHook};
use crate::session::{Session, SessionParts};
use crate::sessions::{Catalogue, JOURNAL, OUTPUT, is_session_id};
use crate::state::SessionState;
use kode_base::blocking;
use kode_base::ids::SessionId;
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_base::secret::Secret;
use kode_config::extension::live::{Extensions, LoadedExtensions, WeakExtensions};
use kode_config::extension::places::ExtensionFolders;
use kode_config::extension::report::ExtensionReport;
use kode_config::hooks::config::Hooks;
use kode_config::memory::{self, Memory};
use kode_config::policies::PolicyProvider;
use kode_config::policy::SessionDefaults;
use kode_journal::disk::{self, Disk};
use kode_journal::lease::Lease;
use kode_model::models::{CurrentModels, Models, Pointer};
use kode_permission::Deliveries;
use kode_permission::rules::SettingsProblem;
use kode_process::shell::terminal::TerminalProvider;
use kode_process::shell::{MAX_TASKS_OVERALL, Outputs, Secrets, Shell, Tasks};
use kode_process::worktree::Worktree;
use kode_record::event::EventLog;
use kode_record::observer::SessionObserver;
use kode_record::record::Record;
use kode_text::edit::ledger::Ledger;
use kode_text::host::Host;
use kode_text::workspace::Workspace;
use kode_tool::guest::GuestRunner;
use kode_tool::languages::LanguagePool;
use kode_tool::servers::{McpServers, ServerPool};
use kode_tool::{Registry, ToolSource, ToolSources};
use lease::{FollowedSessions, PreparationGuard, Preparations, unbroken};
use opened::{OpenedSession, in_background, is_absent, open_session};
use unstored::{StoredBeginning, UnstoredSessions};
use worktrees::SessionPlace;

pub use crate::history::relay::RelayError;
pub use crate::sessions::SessionError;
pub use lease::AttachedSession;
pub use transfer::{ForkError, ImportFailure};

/// The options of an engine.
pub struct EngineOptions {
    /// Where the user's state lives; sessions go to `sessions/<workspace>/<session>/` in it.
    pub home: AbsPath,
    /// The editor, or none.
    pub host: Arc<dyn Host>,
    /// The models.
    pub models: Models,
    /// The tools of all sessions.
    pub tools: Registry,
    /// The MCP servers of all workspaces.
    pub servers: Arc<dyn ServerPool>,
    /// The language servers of all workspaces.
    pub languages: Arc<dyn LanguagePool>,
    /// Whether open documents that the agent has changed are saved before a command runs, where the editor can.
    pub save_before_commands: bool,
    /// How changes reach the files, where a session has no rules of its own.
    pub deliveries: Deliveries,
    /// The policies of sessions, by their folders.
    pub policies: Arc<dyn PolicyProvider>,
    /// The most calls of a session that run at once.
    pub concurrency: usize,
}

/// The default of the most calls of a session that run at once.
pub const CONCURRENCY: usize = 10;

/// The options of a new session.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// The workspace folders; the first is the working directory.
    pub roots: Vec<AbsPath>,
    /// The mode to start in; that of the settings when `None`.
    pub mode: Option<Mode>,
    /// The model profile; the default one when `None`.
    pub model: Option<String>,
}

/// All sessions of a server. Clones are the same one.
#[derive(Clone)]
pub struct Engine {
    /// The name of the client.
    client: Arc<Mutex<String>>,
    catalogue: Arc<Catalogue>,
    /// The folder that worktrees of sub-agents are made in.
    worktrees: AbsPath,
    host: Arc<dyn Host>,
    models: CurrentModels,
    /// The keys of all models there were, which commands are not to see.
    secrets: Secrets,
    tools: Arc<Registry>,
    save_before_commands: bool,
    deliveries: Deliveries,
    policies: Arc<dyn PolicyProvider>,
    /// The hooks of the program itself, for sessions that begin from now on.
    hooks: Arc<Mutex<Arc<HookChain>>>,
    /// The most calls of each session that run at once.
    concurrency: Arc<AtomicUsize>,
    /// The extensions of users' files, by the folders of the workspace.
    extensions: Arc<Mutex<HashMap<Vec<AbsPath>, WeakExtensions>>>,
    /// Places for background commands of all sessions.
    background: Arc<Semaphore>,
    /// Live sessions, and closed ones until their task has ended.
    sessions: Arc<Mutex<HashMap<SessionId, Arc<Session>>>>,
    /// The disk of journals and blobs.
    disk: Arc<dyn Disk>,
    /// Held while a session is loaded, so that none is loaded twice.
    loading: Arc<tokio::sync::Mutex<()>>,
    /// Live sessions that are withheld until their lost changes are entered.
    preparing: Preparations,
    /// Sessions that other processes write.
    followed: FollowedSessions,
    /// The MCP servers of the workspaces.
    servers: Arc<dyn ServerPool>,
    /// The language servers of the workspaces.
    languages: Arc<dyn LanguagePool>,
    /// The folder of sessions that the state folder does not take.
    unstored: UnstoredSessions,
    /// The tools of the client, if it can register some.
    client_tools: Option<Arc<dyn ToolSource>>,
    /// The terminals of the client.
    terminals: Option<Arc<dyn TerminalProvider>>,
    /// Runs guests; `None` where none can work.
    guests: Option<Arc<dyn GuestRunner>>,
    base_turns: BaseTurns,
    lease_poll: LeasePoll,
    /// The followers of all sessions that begin from now on.
    observers: Arc<Mutex<Vec<Arc<dyn SessionObserver>>>>,
}

impl Engine {
    /// An engine without sessions.
    #[must_use]
    pub fn new(options: EngineOptions) -> Self {
        let EngineOptions {
            home,
            host,
            models,
            tools,
            servers,
            languages,
            save_before_commands,
            deliveries,
            policies,
            concurrency,
        } = options;
        let secrets = Secrets::new(models.secrets());
        Self {
            worktrees: beside(&home),
            catalogue: Arc::new(Catalogue::new(&home)),
            servers,
            languages,
            host,
            secrets,
            models: CurrentModels::new(models),
            tools: Arc::new(tools),
            save_before_commands,
            deliveries,
            policies,
            hooks: Arc::default(),
            concurrency: Arc::new(AtomicUsize::new(concurrency)),
            extensions: Arc::default(),
            background: Arc::new(Semaphore::new(MAX_TASKS_OVERALL)),
            sessions: Arc::default(),
            disk: disk::real(),
            loading: Arc::default(),
            preparing: Preparations::default(),
            followed: FollowedSessions::default(),
            unstored: UnstoredSessions::default(),
            client_tools: None,
            terminals: None,
            guests: None,
            base_turns: BaseTurns::default(),
            lease_poll: LeasePoll::default(),
            observers: Arc::default(),
            client: Arc::new(Mutex::new("an editor".to_owned())),
        }
    }

    /// The same with the tools of the client, which come and go.
    #[must_use]
    pub fn with_client_tools(self, tools: Arc<dyn ToolSource>) -> Self {
        Self { client_tools: Some(tools), ..self }
    }

    /// The same engine, whose sessions may run commands outside of the sandbox in terminals of the client.
    #[must_use]
    pub fn with_terminals(self, terminals: Arc<dyn TerminalProvider>) -> Self {
        Self { terminals: Some(terminals), ..self }
    }

    /// The same with other agents as guests.
    #[must_use]
    pub fn with_guests(self, guests: Arc<dyn GuestRunner>) -> Self {
        Self { guests: Some(guests), ..self }
    }

    /// The same with journals and blobs on another disk.
    #[cfg(test)]
    pub(crate) fn on_disk(self, disk: Arc<dyn Disk>) -> Self {
        Self { disk, ..self }
    }

    /// The users' files in a workspace of these folders; read and watched while anybody has it. Must be called in a
    /// runtime.
    #[must_use]
    pub fn extensions(&self, roots: &[AbsPath]) -> Extensions {
        let mut known = lock(&self.extensions);
        if let Some(extensions) = known.get(roots).and_then(WeakExtensions::upgrade) {
            return extensions;
        }
        known.retain(|_, extensions| extensions.upgrade().is_some());
        let models = self.models.clone();
        let has_model = Arc::new(move |name: &str| models.now().resolve(name).is_ok());
        let policy = self.policies.of(roots);
        let plugins = Arc::new(move || policy.plugins_in_use());
        let extensions = Extensions::begin(ExtensionFolders::usual(roots.to_vec()), plugins, has_model);
        known.insert(roots.to_vec(), extensions.downgrade());
        extensions
    }

    /// Reads the extensions again in the background, where settings may have changed plugins.
    pub fn inspect_plugins(&self) {
        lock(&self.extensions).values().filter_map(WeakExtensions::upgrade).for_each(|one| one.look_again());
    }

    /// The used and unused files of users in a workspace of these folders. Blocks on the disk.
    #[must_use]
    pub fn report(&self, roots: &[AbsPath], loaded: &LoadedExtensions) -> ExtensionReport {
        let policy = self.policies.of(roots).current();
        let memory = roots.first().map(|cwd| {
            let excludes = policy.preferences.memory_excludes.clone();
            Memory::load(&memory::InstructionFolders::usual(cwd.clone(), roots.to_vec(), excludes), &|_| {
                Ok(())
            })
        });
        ExtensionReport::of(loaded, &memory.unwrap_or_default(), &policy)
    }

    /// The models as they are now.
    #[must_use]
    pub fn models(&self) -> Arc<Models> {
        self.models.now()
    }

    /// Lets other models count from the next model call on, and says whether they are others.
    pub async fn replace_models(&self, models: Models) -> bool {
        self.secrets.add(models.secrets());
        self.models.replace(models).await
    }

    /// Sets the most calls of each session that run at once, also of live sessions.
    pub fn set_concurrency(&self, concurrency: usize) {
        self.concurrency.store(concurrency, Ordering::Relaxed);
        self.live_sessions().iter().for_each(|session| session.services().call_slots.set(concurrency));
    }

    /// The problems of the files of agents, skills, commands and styles of a workspace and of the user.
    pub async fn file_problems(&self, roots: Vec<AbsPath>) -> Vec<SettingsProblem> {
        self.extensions(&roots).now().await.problems()
    }

    /// The tools.
    #[must_use]
    pub fn tools(&self) -> &Registry {
        &self.tools
    }

    /// Adds a hook of the program itself behind all others of its layer. Sessions that begin or are resumed from then on
    /// have it.
    pub fn add_hook(&self, layer: HookLayer, hook: Arc<dyn ToolHook>) {
        let mut hooks = lock(&self.hooks);
        Arc::make_mut(&mut hooks).add(layer, hook);
    }

    /// Keeps texts from the environment of commands and MCP servers from now on.
    pub fn withhold(&self, secrets: Vec<Secret>) {
        self.secrets.add(secrets);
    }

    /// Lets an observer follow all sessions that begin or are resumed from now on.
    pub fn observe(&self, observer: Arc<dyn SessionObserver>) {
        lock(&self.observers).push(observer);
    }

    /// The hooks of sessions of these folders, with those of other files. Reads the settings.
    #[must_use]
    pub fn list_hooks(&self, roots: &[AbsPath], loaded: &LoadedExtensions) -> HookList {
        let Some(cwd) = roots.first() else { return HookList::default() };
        let source = self.policies.of(roots);
        let hooks = Hooks::of(&source.current().declared, cwd);
        HookList::of(&hooks, (&loaded.agents, &loaded.catalog), &*source, &HashMap::new())
    }

    /// The MCP servers of workspace folders. Starts nothing.
    #[must_use]
    pub fn servers(&self, roots: &[AbsPath]) -> Arc<dyn McpServers> {
        self.servers.of(roots, &self.secrets, &|| self.policies.of(roots))
    }

    /// Begins a session. Blocks on the disk.
    ///
    /// # Errors
    /// [`SessionError`]: no folder, no such model, a mode that is switched off, or no place for the journal.
    pub fn new_session(&self, new: NewSession) -> Result<Arc<Session>, SessionError> {
        self.begin_session(SessionId::generate(), new, None)
    }

    /// As [`Self::new_session`], under this id and in this worktree, which is there.
    fn begin_session(
        &self,
        id: SessionId,
        new: NewSession,
        worktree: Option<Worktree>,
    ) -> Result<Arc<Session>, SessionError> {
        let cwd = new.roots.first().cloned().ok_or(SessionError::NoFolder)?;
        // First of all: they are read while the session begins.
        let _read_meanwhile = self.extensions(&new.roots);
        let beginning = self.policies.beginning(&new.roots);
        let model = match new.model {
            Some(name) => self.models().resolve_with(&name, &beginning.pointers)?,
            None => self.model_of(&beginning),
        };
        let mode = beginning.mode(new.mode)?;
        let (session, forked_from) = (id.clone(), None);
        let (roots, cwd_of_it, mode) = (new.roots, cwd.clone(), mode.into());
        let record = Record::Opened { session, roots, cwd: cwd_of_it, mode, model, forked_from, worktree };
        let path = self.folder(&cwd).join(id.as_str()).join(JOURNAL);
        let (stored, refusal) = self.store(&path, &record)?;
        let StoredBeginning { journal, blobs, shelf } = stored;
        let mut state = SessionState::open(&record).ok_or(SessionError::NoFolder)?;
        state.attach(&Arc::new(shelf));
        let (events, base) = (EventLog::new(state.id.clone(), 0), NewestBase::default());
        let ledger = Ledger::default();
        let session =
            self.start(OpenedSession { journal, blobs, state, events, ledger, base, resumed: None });
        session.gate().load();
        if let Some(refusal) = refusal {
            session.report_not_stored(&refusal);
        }
        // The folders that are new take the disk longest; the first prompt need not wait for them.
        session.core().sync_soon();
        Ok(session)
    }

    /// The live session of that id.
    ///
    /// # Errors
    /// [`SessionError::Unknown`] when it is not live here, and [`SessionError::Followed`] when another process writes it.
    pub fn session(&self, id: &SessionId) -> Result<Arc<Session>, SessionError> {
        let live = self.sessions().get(id).filter(|session| !session.is_closing()).cloned();
        let ready = live.filter(|_| !lock(&self.preparing).contains(id));
        ready.ok_or_else(|| match self.following(id) {
            Some(following) => SessionError::Followed { by: following.writer().map(Box::new) },
            None => SessionError::Unknown(id.clone()),
        })
    }

    /// The live session of that id, or the stored one of a workspace folder, resumed. A session that is being closed
    /// is waited for: two sessions must not write one journal.
    ///
    /// # Errors
    /// [`SessionError`]: unknown, unreadable, damaged beyond use, or written by another process.
    pub async fn load_session(
        &self,
        folders: &[AbsPath],
        id: &SessionId,
    ) -> Result<Arc<Session>, SessionError> {
        self.load_session_reporting(folders, id, None, |_| {}).await
    }

    /// As [`Engine::load_session`]. The events after number `since` are kept, as far as they are kept at all; while a long
    /// journal is read, `tell` receives the progress.
    ///
    /// # Errors
    /// As [`Engine::load_session`].
    pub async fn load_session_reporting(
        &self,
        folders: &[AbsPath],
        id: &SessionId,
        since: Option<u64>,
        report: impl Fn(LoadProgress) + Send + 'static,
    ) -> Result<Arc<Session>, SessionError> {
        let (engine, folders, id) = (self.clone(), folders.to_vec(), id.clone());
        unbroken(async move {
            let loading = engine.loading.lock().await;
            match engine.load(&folders, &id, since, report).await? {
                LoadedSession::Live(session) => Ok(session),
                LoadedSession::Opened(session, preparing) => {
                    engine.make_ready(&session, preparing, loading).await;
                    Ok(session)
                }
            }
        })
        .await
    }

    /// The live session of that id, or the stored one of a folder. The caller holds the loading lock.
    async fn load(
        &self,
        folders: &[AbsPath],
        id: &SessionId,
        since: Option<u64>,
        report: impl Fn(LoadProgress) + Send + 'static,
    ) -> Result<LoadedSession, SessionError> {
        if let Ok(session) = self.session(id) {
            return Ok(LoadedSession::Live(session));
        }
        let closing = self.sessions().get(id).cloned();
        if let Some(session) = closing {
            session.closed().await;
        }
        let (path, folder) = self.stored_journal(folders, id)?;
        let (disk, beginning) = (Arc::clone(&self.disk), self.beginning_there(id, folder).await?);
        let open = move |path: &Path| open_session(&disk, path, &beginning, since, &report);
        let opened = self.with_worktree(in_background(path, open).await?).await;
        let preparing = self.prepare(id);
        Ok(LoadedSession::Opened(self.start(opened), preparing))
    }

    /// The stored sessions; reading them blocks on the disk.
    #[must_use]
    pub fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    /// Ends a live session because the user has closed it; its journal stays.
    ///
    /// # Errors
    /// [`SessionError::Unknown`].
    pub fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        if self.following(id).is_none() {
            self.session(id)?.close_for(EndReason::PromptInputExit);
        }
        self.end_following(id);
        Ok(())
    }

    /// The live sessions.
    #[must_use]
    pub fn live_sessions(&self) -> Vec<Arc<Session>> {
        self.sessions().values().filter(|session| !session.is_closing()).cloned().collect()
    }

    /// Ends all sessions and waits until their commands are gone and their journals are written.
    pub async fn shutdown(&self) {
        self.shutdown_for(EndReason::Other).await;
    }

    /// As [`Engine::shutdown`], and says to hooks why.
    pub async fn shutdown_for(&self, reason: EndReason) {
        lock(&self.followed).drain().for_each(|(_, following)| following.stop());
        let sessions: Vec<_> = self.sessions().drain().map(|(_, session)| session).collect();
        sessions.iter().for_each(|session| session.close_with_server(reason));
        for session in sessions {
            session.closed().await;
        }
        // Sessions are at their ends: whatever follows them has all their events to read.
        let observers: Vec<_> = lock(&self.observers).iter().map(|observer| observer.end()).collect();
        tokio::join!(self.servers.end(), self.languages.end(), join_all(observers));
    }

    /// The profile that the settings of a workspace want; the main one where they name none that is there.
    fn model_of(&self, beginning: &SessionDefaults) -> String {
        let models = self.models();
        let main = || models.pointer_with(Pointer::Main, &beginning.pointers);
        let Some(wanted) = &beginning.model else { return main() };
        models.resolve_with(wanted, &beginning.pointers).unwrap_or_else(|error| {
            tracing::warn!(wanted, %error, "the setting `model` is not followed");
            main()
        })
    }

    /// As [`Self::beginning_in`], off the threads that answer clients.
    async fn beginning_there(&self, id: &SessionId, folder: &AbsPath) -> Result<Record, SessionError> {
        let (engine, id, folder) = (self.clone(), id.clone(), folder.clone());
        blocking(move || engine.beginning_in(&id, &folder)).await
    }

    /// How a session of a workspace folder would begin now: the replacement of a lost beginning. Blocks on the
    /// disk.
    fn beginning_in(&self, id: &SessionId, folder: &AbsPath) -> Result<Record, SessionError> {
        let (mode, model) = self.beginning_of(folder)?;
        let (roots, cwd, mode) = (vec![folder.clone()], folder.clone(), mode.into());
        let (session, forked_from, worktree) = (id.clone(), None, None);
        Ok(Record::Opened { session, roots, cwd, mode, model, forked_from, worktree })
    }

    /// The journal of a stored session of the folders, and that of them in which it was started.
    ///
    /// # Errors
    /// [`SessionError::Unknown`], and [`SessionError::Storage`] where something is in its place that is no file to be read.
    pub(crate) fn stored_journal<'f>(
        &self,
        folders: &'f [AbsPath],
        id: &SessionId,
    ) -> Result<(PathBuf, &'f AbsPath), SessionError> {
        // An id is looked up as one path component: it must not be able to name anything else.
        let path = |folder: &AbsPath| self.folder(folder).join(id.as_str()).join(JOURNAL);
        let paths = folders.iter().map(|folder| (path(folder), folder));
        let found = paths.filter(|_| is_session_id(id.as_str())).find(|(path, _)| !is_absent(path));
        let (path, folder) = found.ok_or_else(|| SessionError::Unknown(id.clone()))?;
        // Checked before it is opened: opening would create the target of a link.
        let is_file = fs::metadata(&path).map(|metadata| metadata.is_file());
        let no_file = || Err(io::Error::new(io::ErrorKind::InvalidData, "it is no file"));
        match is_file.and_then(|is_file| if is_file { Ok(()) } else { no_file() }) {
            Ok(()) => Ok((path, folder)),
            Err(source) => Err(SessionError::Storage { path, source }),
        }
    }

    /// The mode and the model profile that new sessions of a folder begin with.
    pub(crate) fn beginning_of(&self, root: &AbsPath) -> Result<(Mode, String), SessionError> {
        let beginning = self.policies.beginning(std::slice::from_ref(root));
        Ok((beginning.mode(None)?, self.model_of(&beginning)))
    }

    /// The tools that come and go: those of the servers, then those of the client.
    fn tool_source(&self, servers: &Arc<dyn McpServers>) -> Arc<dyn ToolSource> {
        let servers = Arc::clone(servers) as Arc<dyn ToolSource>;
        match &self.client_tools {
            Some(client) => Arc::new(ToolSources(vec![servers, Arc::clone(client)])),
            None => servers,
        }
    }

    fn start(&self, opened: OpenedSession) -> Arc<Session> {
        let OpenedSession { journal, blobs, state, events, ledger, base, resumed } = opened;
        let host = self.host.of_session(&state.id, &state.roots);
        let host = host.unwrap_or_else(|| Arc::clone(&self.host));
        let workspace = Workspace::new(host, state.roots.clone(), state.cwd.clone())
            .saving_before_commands(self.save_before_commands)
            .with_languages(
                self.languages.of(&state.roots, &self.secrets, &|| self.policies.of(&state.roots)),
            );
        let SessionPlace { workspace, isolation, policy } = self.place_of(&state, Arc::new(workspace));
        let outputs = AbsPath::new(journal.path().with_file_name(OUTPUT)).ok();
        let terminals = self.terminals.as_ref().and_then(|terminals| terminals.of_session(&state.id));
        let tasks = Tasks::new(outputs.map(Outputs::new).map(Arc::new), Arc::clone(&self.background));
        // Rules that were good once are good still.
        let own = state.config.deliveries.clone().and_then(|rules| Deliveries::new(rules).ok());
        let lease = Lease::beside(journal.path());
        let servers = self.servers(&state.roots);
        let parts = SessionParts {
            shell: Arc::new(
                Shell::new(workspace.cwd())
                    .withholding(self.secrets.clone())
                    .with_tasks(Arc::new(tasks))
                    .with_terminals(terminals),
            ),
            workspace,
            isolation,
            tools: Arc::new(self.tools.with_source(self.tool_source(&servers))),
            servers,
            models: self.models.clone(),
            journal,
            blobs,
            deliveries: own.unwrap_or_else(|| self.deliveries.clone()),
            policy,
            hooks: Arc::clone(&lock(&self.hooks)),
            extensions: self.extensions(&state.roots),
            concurrency: self.concurrency.load(Ordering::Relaxed),
            state,
            ledger,
            events,
            base,
            directory: Arc::new(self.clone()),
            worktrees: self.worktrees.clone(),
            guests: self.guests.clone(),
            base_turns: self.base_turns.clone(),
        };
        // Before the session: it publishes events as soon as it runs.
        lock(&self.observers).iter().for_each(|observer| observer.begin(&parts.events));
        let session = Session::start(parts, resumed);
        self.hold(&session, lease);
        let mut sessions = self.sessions();
        sessions.retain(|_, session| !session.is_closed());
        sessions.insert(session.id().clone(), Arc::clone(&session));
        session
    }

    /// Where the sessions of a workspace folder are.
    pub(crate) fn folder(&self, workspace: &AbsPath) -> PathBuf {
        self.catalogue.folder(workspace)
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The folder for worktrees: beside that of the state, which commands do not see.
fn beside(home: &AbsPath) -> AbsPath {
    let name = format!("{}-worktrees", home.file_name());
    home.parent().map_or_else(|| home.join(&name), |folder| folder.join(&name))
}

/// A session that was loaded.
enum LoadedSession {
    /// It was live.
    Live(Arc<Session>),
    /// It was opened, and is to be made ready.
    Opened(Arc<Session>, PreparationGuard),
}
