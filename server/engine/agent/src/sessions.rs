//! The stored sessions of a user: list, search, size, archive and removal.
//!
//! Rule: the journals are the truth, and everything kept beside them is made from them again when it is missing, damaged or
//! old. A session that cannot be read costs itself alone, and what another process has open is left alone.

mod cleanup;
mod digest;
mod error;
mod index;
mod lines;
mod list;
mod locks;
mod remove;
mod search;
mod size;
mod sweep;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::state::titles::tidy;
use index::IndexedFolder;
use kode_base::ids::SessionId;
use kode_base::paths::AbsPath;
use kode_journal::Journal;
use kode_journal::disk::{self, OpenMode};
use kode_record::event::log::LIFE_JUMP;
use kode_record::record::Record;
use kode_record::title::TitledBy;

pub use cleanup::{CleanupOptions, CleanupReport};
pub use digest::title;
pub use error::SessionError;
pub use list::{
    ArchiveFilter, BadCursor, ListSessions, SessionPage, SessionPresence, SessionSummary, SessionTotals,
};
pub use search::{BadQuery, Hit, HitKind, MAX_HITS, SearchPage, SearchSessions};
pub use size::SessionSize;
pub(crate) use sweep::sweep;

/// The name of a session's journal in its folder.
pub(crate) const JOURNAL: &str = "journal.jsonl";

/// The name of a session's folder of blobs.
pub(crate) const BLOBS: &str = "blobs";

/// The name of a session's folder of command output.
pub(crate) const OUTPUT: &str = "output";

/// The prefix of the folder of a session that is being written. No session id has it.
pub(crate) const UNFINISHED: &str = ".new-";

/// The folder of all sessions in that of the user's state.
const SESSIONS: &str = "sessions";

/// How names of folders and files begin that are on their way out.
const TRASH_PREFIX: &str = ".trash-";

/// The stored sessions of a user. Reading them blocks: call it from a thread that may wait.
#[derive(Debug)]
pub struct Catalogue {
    /// The folder of all sessions.
    root: PathBuf,
    /// The known sessions of each workspace.
    folders: Mutex<HashMap<PathBuf, IndexedFolder>>,
}

/// The workspaces whose sessions are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceFilter {
    /// Sessions that work in one of these folders.
    These(Vec<AbsPath>),
    /// All there are.
    All,
}

/// The most sessions that an error names.
const NAMED: usize = 5;

/// Why the beginning of an id names no session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// None begins so.
    #[error("there is no session `{0}` here")]
    None(String),
    /// Several do.
    #[error("several sessions begin with `{wanted}`: {}", found.get(..NAMED).unwrap_or(found).join(", "))]
    Several {
        /// The given beginning.
        wanted: String,
        /// Their ids.
        found: Vec<String>,
    },
}

impl Catalogue {
    /// The sessions in the folder of the user's state. Nothing is read yet.
    #[must_use]
    pub fn new(home: &AbsPath) -> Self {
        Self { root: home.join(SESSIONS).as_path().to_path_buf(), folders: Mutex::default() }
    }

    /// The folder of the sessions of a workspace folder.
    pub(crate) fn folder(&self, workspace: &AbsPath) -> PathBuf {
        self.root.join(slug(workspace))
    }

    /// The folder of a stored session.
    ///
    /// # Errors
    /// [`SessionError::Unknown`].
    pub fn find(&self, workspaces: &WorkspaceFilter, id: &SessionId) -> Result<PathBuf, SessionError> {
        let unknown = || SessionError::Unknown(id.clone());
        if !is_session_id(id.as_str()) {
            return Err(unknown());
        }
        let folders = self.folders_of(workspaces).into_iter();
        folders.map(|folder| folder.join(id.as_str())).find(|folder| folder.is_dir()).ok_or_else(unknown)
    }

    /// The one session whose id begins with `wanted`, with or without the prefix of all ids.
    ///
    /// # Errors
    /// [`FindError`].
    pub fn complete(&self, workspaces: &WorkspaceFilter, wanted: &str) -> Result<SessionId, FindError> {
        let names = self.folders_of(workspaces).into_iter().flat_map(|folder| session_names(&folder));
        let is_meant = |name: &String| {
            name.starts_with(wanted) || name.strip_prefix("ses_").is_some_and(|id| id.starts_with(wanted))
        };
        let mut found: Vec<String> = names.filter(is_meant).collect();
        if found.iter().any(|name| name == wanted) {
            return Ok(SessionId::from_external(wanted));
        }
        match found.len() {
            1 => Ok(SessionId::from_external(found.remove(0))),
            0 => Err(FindError::None(wanted.to_owned())),
            _ => {
                found.sort();
                Err(FindError::Several { wanted: wanted.to_owned(), found })
            }
        }
    }

    /// Gives a session that is open nowhere a title of the user's.
    ///
    /// # Errors
    /// [`SessionError`]: a title that cannot be taken, unknown, or open elsewhere.
    pub fn rename(
        &self,
        workspaces: &WorkspaceFilter,
        id: &SessionId,
        title: &str,
    ) -> Result<(), SessionError> {
        let title = tidy(title)?;
        self.append(workspaces, id, &Record::Titled { title, by: TitledBy::User })
    }

    /// Puts a session that is open nowhere away, or takes it out again.
    ///
    /// # Errors
    /// [`SessionError`]: unknown, or open elsewhere.
    pub fn archive(
        &self,
        workspaces: &WorkspaceFilter,
        id: &SessionId,
        archived: bool,
    ) -> Result<(), SessionError> {
        self.append(workspaces, id, &Record::Archived { archived })
    }

    /// Adds a fact to the journal of a session, under its lock.
    fn append(
        &self,
        workspaces: &WorkspaceFilter,
        id: &SessionId,
        record: &Record,
    ) -> Result<(), SessionError> {
        let path = self.find(workspaces, id)?.join(JOURNAL);
        let storage = |source| SessionError::Storage { path: path.clone(), source };
        if !path.is_file() {
            return Err(storage(io::Error::new(io::ErrorKind::NotFound, "there is no journal")));
        }
        let journal =
            Journal::open_patiently(disk::real(), &path, OpenMode::Existing, None).map_err(storage)?;
        // Like a run of the session that does nothing else: no client can have seen its numbers.
        let seq = index::refresh(&path).map_or(0, |digest| digest.seq.saturating_add(LIFE_JUMP));
        let append = |line| journal.append_line(line, seq);
        journal.prepare(record).and_then(append).map_err(|error| storage(error.source))?;
        disk::real().open(&path, OpenMode::Existing).and_then(|file| file.sync()).map_err(storage)?;
        index::refresh(&path);
        journal.release();
        Ok(())
    }

    /// The folders in which there are sessions, for these workspaces.
    fn folders_of(&self, workspaces: &WorkspaceFilter) -> Vec<PathBuf> {
        match workspaces {
            WorkspaceFilter::These(folders) => {
                let mut found: Vec<_> = folders.iter().map(|folder| self.folder(folder)).collect();
                found.sort();
                found.dedup();
                found
            }
            WorkspaceFilter::All => {
                let entries = std::fs::read_dir(&self.root).into_iter().flatten().flatten();
                let is_folder = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
                entries.filter(is_folder).map(|entry| entry.path()).collect()
            }
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, IndexedFolder>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the digest of a session beside its journal.
pub(crate) fn refresh(journal: &Path) {
    index::refresh(journal);
}

/// Whether a text can be the id of a session. It is looked up as one path component: it must not be able to name anything
/// else.
pub(crate) fn is_session_id(id: &str) -> bool {
    !id.is_empty() && id.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}

/// The names of the sessions in the folder of a workspace.
fn session_names(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        // Where the file system does not report its kind, a journal in it identifies it.
        let is_folder = entry.file_type().map_or(true, |kind| kind.is_dir());
        (is_folder && is_session_id(&name)).then_some(name)
    })
}

/// The folder name of a workspace: readable, and different for different paths.
pub(crate) fn slug(workspace: &AbsPath) -> String {
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
