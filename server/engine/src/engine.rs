//! The engine: all sessions of a server, and what they share.
//!
//! Rule: opening or listing sessions costs no network and starts no process; a model is connected when a turn first
//! needs it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::Semaphore;

use crate::edit::ledger::Ledger;
use crate::event::EventLog;
use crate::host::Host;
use crate::ids::SessionId;
use crate::journal::{self, Blobs, Journal, Record};
use crate::model::ModelError;
use crate::model::models::{Models, Pointer};
use crate::paths::AbsPath;
use crate::permission::policy::{Beginning, ModeDisabled, Policy, PolicySource};
use crate::permission::{Deliveries, Mode};
use crate::session::replay::Replay;
use crate::session::{Parts, Session, SessionState};
use crate::shell::{MAX_TASKS_OVERALL, Outputs, Shell, Tasks};
use crate::tools::Registry;
use crate::workspace::{Workspace, blocking};

/// The name of a session's journal in its folder.
const JOURNAL: &str = "journal.jsonl";

/// The name of a session's folder of blobs beside it.
const BLOBS: &str = "blobs";

/// The name of a session's folder of commands' output beside it.
const OUTPUT: &str = "output";

/// What an engine is made with.
pub struct EngineOptions {
    /// Where the user's state lives; sessions go to `sessions/<workspace>/<session>/` in it.
    pub home: AbsPath,
    /// The editor, or none.
    pub host: Arc<dyn Host>,
    /// The models.
    pub models: Models,
    /// Whether open documents that the agent has changed are saved before a command runs, where the editor can.
    pub save_before_commands: bool,
    /// How changes reach the files, where a session has no rules of its own.
    pub deliveries: Deliveries,
    /// What was settled about permissions, for each session by its folders.
    pub policies: Arc<dyn Policies>,
    /// The most calls of a session that run at once.
    pub concurrency: usize,
}

/// The most calls of a session that run at once, where nobody says otherwise.
pub const CONCURRENCY: usize = 10;

/// Finds what was settled about permissions for a workspace.
pub trait Policies: Send + Sync {
    /// What counts in sessions of these folders; the first is the working directory.
    fn of(&self, roots: &[AbsPath]) -> Arc<dyn PolicySource>;

    /// What sessions of these folders begin with. Starts nothing.
    fn beginning(&self, _roots: &[AbsPath]) -> Beginning {
        Beginning::default()
    }
}

/// Nothing was settled for any workspace: no settings files, no sandbox.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPolicies;

impl Policies for NoPolicies {
    fn of(&self, _roots: &[AbsPath]) -> Arc<dyn PolicySource> {
        Arc::new(Arc::new(Policy::default()))
    }
}

/// What a new session is made with.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// The workspace folders; the first is the working directory.
    pub roots: Vec<AbsPath>,
    /// The mode to start in; that of the settings when `None`.
    pub mode: Option<Mode>,
    /// The model profile; the default one when `None`.
    pub model: Option<String>,
}

/// A session in a list.
#[derive(Clone, Debug)]
pub struct SessionSummary {
    /// The session.
    pub id: SessionId,
    /// What people call it; empty before the first prompt.
    pub title: String,
    /// When its journal was last written.
    pub updated: Timestamp,
    /// Whether it is live in this process.
    pub live: bool,
}

/// Why a session cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// No session of that id.
    #[error("there is no session `{0}` for this workspace")]
    Unknown(SessionId),
    /// A session needs a folder to work in.
    #[error("there is no workspace folder; open one, or name a folder for the session")]
    NoFolder,
    /// Its journal cannot be read or written.
    #[error("the journal {} cannot be used: {source}", path.display())]
    Storage {
        /// The journal.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Its journal holds no session, or none that can be made out.
    #[error("the journal {} does not add up to a session ({skipped} lines could not be read)", path.display())]
    Corrupted {
        /// The journal.
        path: PathBuf,
        /// Lines that could not be read.
        skipped: u64,
    },
    /// The mode is switched off.
    #[error(transparent)]
    Mode(#[from] ModeDisabled),
    /// No such model profile.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// All sessions of a server.
pub struct Engine {
    home: AbsPath,
    host: Arc<dyn Host>,
    models: Arc<Models>,
    tools: Arc<Registry>,
    save_before_commands: bool,
    deliveries: Deliveries,
    policies: Arc<dyn Policies>,
    concurrency: usize,
    /// Places for background commands of all sessions.
    background: Arc<Semaphore>,
    /// Live sessions, and closed ones until their task has ended.
    sessions: Mutex<HashMap<SessionId, Arc<Session>>>,
    /// Held while a session is loaded, so that none is loaded twice.
    loading: tokio::sync::Mutex<()>,
}

impl Engine {
    /// An engine without sessions.
    #[must_use]
    pub fn new(options: EngineOptions) -> Self {
        Self::with_tools(options, Registry::built_in())
    }

    /// An engine whose sessions have these tools.
    #[must_use]
    pub fn with_tools(options: EngineOptions, tools: Registry) -> Self {
        let EngineOptions { home, host, models, save_before_commands, deliveries, policies, concurrency } =
            options;
        Self {
            home,
            host,
            models: Arc::new(models),
            tools: Arc::new(tools),
            save_before_commands,
            deliveries,
            policies,
            concurrency,
            background: Arc::new(Semaphore::new(MAX_TASKS_OVERALL)),
            sessions: Mutex::default(),
            loading: tokio::sync::Mutex::default(),
        }
    }

    /// The models.
    #[must_use]
    pub fn models(&self) -> &Models {
        &self.models
    }

    /// The tools.
    #[must_use]
    pub fn tools(&self) -> &Registry {
        &self.tools
    }

    /// Begins a session.
    ///
    /// # Errors
    /// [`SessionError`]: no folder, no such model, a mode that is switched off, or no place for the journal.
    pub fn new_session(&self, new: NewSession) -> Result<Arc<Session>, SessionError> {
        let cwd = new.roots.first().cloned().ok_or(SessionError::NoFolder)?;
        let beginning = self.policies.beginning(&new.roots);
        let model = match new.model {
            Some(name) => self.models.resolve_with(&name, &beginning.pointers)?,
            None => self.model_of(&beginning),
        };
        let mode = beginning.mode(new.mode)?;
        let id = SessionId::generate();
        let record = Record::Opened { session: id.clone(), roots: new.roots, cwd: cwd.clone(), mode, model };
        let path = self.folder(&cwd).join(id.as_str()).join(JOURNAL);
        let (journal, blobs) = (open_journal(&path)?, blobs_beside(&path));
        journal.append(&record).map_err(|error| SessionError::Storage { path, source: error.source })?;
        let state = SessionState::open(&record).ok_or(SessionError::NoFolder)?;
        let events = EventLog::new(state.id.clone(), 0);
        Ok(self.start(Opened { journal, blobs, state, events, ledger: Ledger::default(), resumed: None }))
    }

    /// The live session of that id.
    ///
    /// # Errors
    /// [`SessionError::Unknown`] when it is not live here.
    pub fn session(&self, id: &SessionId) -> Result<Arc<Session>, SessionError> {
        let live = self.sessions().get(id).filter(|session| !session.is_closing()).cloned();
        live.ok_or_else(|| SessionError::Unknown(id.clone()))
    }

    /// The live session of that id, or the stored one of a workspace folder taken up again. One that is being closed
    /// is waited for: two sessions must not write one journal.
    ///
    /// # Errors
    /// [`SessionError`]: unknown, unreadable or damaged beyond use.
    pub async fn load_session(
        &self,
        folders: &[AbsPath],
        id: &SessionId,
    ) -> Result<Arc<Session>, SessionError> {
        let _one_at_a_time = self.loading.lock().await;
        if let Ok(session) = self.session(id) {
            return Ok(session);
        }
        let closing = self.sessions().get(id).cloned();
        if let Some(session) = closing {
            session.closed().await;
        }
        // An id is looked up as one path component: it must not be able to name anything else.
        let unknown = || SessionError::Unknown(id.clone());
        if !id.as_str().chars().all(|char| char.is_ascii_alphanumeric() || char == '_') {
            return Err(unknown());
        }
        let path = folders
            .iter()
            .map(|folder| self.folder(folder).join(id.as_str()).join(JOURNAL))
            .find(|path| path.is_file())
            .ok_or_else(unknown)?;
        let session = self.start(in_background(path, open_session).await?);
        // Whoever loads it sees the texts as they are, and not as they were when the session ended.
        session.enter_lost_changes().await;
        session.catch_up_with_texts().await;
        let looked_at = Arc::clone(&session);
        blocking(move || looked_at.replace_lost_mode()).await;
        session.asked_again().await;
        Ok(session)
    }

    /// The sessions of the workspace folders, newest first. A session that cannot be read does not hide the others.
    #[must_use]
    pub fn list_sessions(&self, folders: &[AbsPath]) -> Vec<SessionSummary> {
        let mut summaries: Vec<_> = folders
            .iter()
            .filter_map(|folder| std::fs::read_dir(self.folder(folder)).ok())
            .flat_map(|entries| entries.flatten())
            .filter_map(|entry| self.summary(&entry.path().join(JOURNAL)))
            .collect();
        summaries.sort_by_key(|summary| Reverse(summary.updated));
        summaries
    }

    /// Ends a live session; its journal stays.
    ///
    /// # Errors
    /// [`SessionError::Unknown`].
    pub fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        self.session(id)?.close();
        Ok(())
    }

    /// The live sessions.
    #[must_use]
    pub fn live_sessions(&self) -> Vec<Arc<Session>> {
        self.sessions().values().filter(|session| !session.is_closing()).cloned().collect()
    }

    /// Ends all sessions and waits until their commands are gone and their journals are written.
    pub async fn shutdown(&self) {
        let sessions: Vec<_> = self.sessions().drain().map(|(_, session)| session).collect();
        sessions.iter().for_each(|session| session.close());
        for session in sessions {
            session.closed().await;
        }
    }

    /// The profile that the settings of a workspace want; the main one where they name none that is there.
    fn model_of(&self, beginning: &Beginning) -> String {
        let main = || self.models.pointer_with(Pointer::Main, &beginning.pointers);
        let Some(wanted) = &beginning.model else { return main() };
        self.models.resolve_with(wanted, &beginning.pointers).unwrap_or_else(|error| {
            tracing::warn!(wanted, %error, "the setting `model` is not followed");
            main()
        })
    }

    fn start(&self, opened: Opened) -> Arc<Session> {
        let Opened { journal, blobs, state, events, ledger, resumed } = opened;
        let workspace = Workspace::new(Arc::clone(&self.host), state.roots.clone(), state.cwd.clone())
            .saving_before_commands(self.save_before_commands);
        let secrets = self.models.secrets();
        let outputs = AbsPath::new(journal.path().with_file_name(OUTPUT)).ok();
        let tasks = Tasks::new(outputs.map(Outputs::new).map(Arc::new), Arc::clone(&self.background));
        // Rules that were good once are good still.
        let own = state.deliveries.clone().and_then(|rules| Deliveries::new(rules).ok());
        let parts = Parts {
            workspace: Arc::new(workspace),
            shell: Arc::new(Shell::new(state.cwd.clone()).withholding(secrets).with_tasks(Arc::new(tasks))),
            tools: Arc::clone(&self.tools),
            models: Arc::clone(&self.models),
            journal,
            blobs,
            deliveries: own.unwrap_or_else(|| self.deliveries.clone()),
            policy: self.policies.of(&state.roots),
            concurrency: self.concurrency,
            state,
            ledger,
            events,
        };
        let session = Session::start(parts, resumed);
        let mut sessions = self.sessions();
        sessions.retain(|_, session| !session.is_closed());
        sessions.insert(session.id().clone(), Arc::clone(&session));
        session
    }

    fn summary(&self, journal: &std::path::Path) -> Option<SessionSummary> {
        let modified = std::fs::metadata(journal).and_then(|metadata| metadata.modified()).ok()?;
        let id = SessionId::from_external(journal.parent()?.file_name()?.to_str()?);
        let title = match self.session(&id) {
            Ok(session) => session.snapshot(0).title,
            Err(_) => journal::title(journal),
        };
        let live = self.session(&id).is_ok();
        Some(SessionSummary { id, title, updated: Timestamp::try_from(modified).ok()?, live })
    }

    fn folder(&self, workspace: &AbsPath) -> PathBuf {
        self.home.join("sessions").join(slug(workspace)).as_path().to_path_buf()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session as it lies on disk.
struct Opened {
    journal: Journal,
    blobs: Blobs,
    state: SessionState,
    events: Arc<EventLog>,
    ledger: Ledger,
    /// Lines of the journal that could not be read; `None` for a session that has just begun.
    resumed: Option<u64>,
}

/// Has `open` read a journal on a thread that may wait. A fault of ours in what the journal says is not its absence.
async fn in_background(
    journal: PathBuf,
    open: fn(&std::path::Path) -> Result<Opened, SessionError>,
) -> Result<Opened, SessionError> {
    let path = journal.clone();
    tokio::task::spawn_blocking(move || open(&journal)).await.unwrap_or_else(|error| {
        tracing::error!(%error, path = %path.display(), "a session could not be folded");
        Err(SessionError::Corrupted { path, skipped: 0 })
    })
}

/// Opens a stored session for writing and folds its journal.
fn open_session(path: &std::path::Path) -> Result<Opened, SessionError> {
    // Opened first: from then on nobody else writes what is read.
    let journal = open_journal(path)?;
    let read =
        journal::read(path).map_err(|source| SessionError::Storage { path: path.to_path_buf(), source })?;
    let skipped = read.skipped;
    let mut entries = Vec::new();
    let lines = read.stamps.into_iter().zip(read.records).inspect(|(_, record)| {
        if let Record::Edits { entry } = record {
            entries.push(entry.clone());
        }
    });
    let Some(Replay { state, kept }) = Replay::of(lines) else {
        return Err(SessionError::Corrupted { path: path.to_path_buf(), skipped });
    };
    let blobs = blobs_beside(path);
    let (ledger, problems) = Ledger::fold(entries, &blobs);
    for error in problems {
        tracing::warn!(%error, path = %path.display(), "the changes of a file are not known any more");
    }
    let events = EventLog::next_life(state.id.clone(), kept);
    Ok(Opened { journal, blobs, state, events, ledger, resumed: Some(skipped) })
}

/// The blobs of the session with this journal.
fn blobs_beside(journal: &std::path::Path) -> Blobs {
    Blobs::new(journal.with_file_name(BLOBS))
}

fn open_journal(path: &std::path::Path) -> Result<Journal, SessionError> {
    Journal::open(path).map_err(|source| SessionError::Storage { path: path.to_path_buf(), source })
}

/// A folder name for a workspace: readable, and different for different paths.
fn slug(workspace: &AbsPath) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(workspace.as_path().as_os_str().as_encoded_bytes());
    let name: String = workspace
        .file_name()
        .chars()
        .map(|char| if char.is_ascii_alphanumeric() { char } else { '-' })
        .take(40)
        .collect();
    let hash: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("{name}-{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_fault_while_a_journal_is_folded_names_the_journal() {
        let path = PathBuf::from("/state/journal.jsonl");
        let Err(error) = in_background(path.clone(), |_| panic!("the test wanted it")).await else {
            panic!("there is no session in it")
        };
        assert!(
            matches!(&error, SessionError::Corrupted { path: named, skipped: 0 } if *named == path),
            "{error}"
        );
    }
}
