//! Copying sessions into and out of the store: forks, exports, and sessions of other agents.
//!
//! Rule: the copied session stays as it is. A new session is complete before a process can see it: it is written beside the
//! others under a name that no session has, and then renamed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::Engine;
use crate::hooks::StartSource;
use crate::session::Session;
use crate::sessions::{JOURNAL, SessionError, UNFINISHED};
use crate::state::SessionState;
use crate::transfer::{
    ForkPoint, ImportError, ImportOutcome, ImportedRecords, SessionExport, UnknownItem, fork,
    read_sdk_session,
};
use kode_base::ids::SessionId;
use kode_base::paths::AbsPath;
use kode_base::{blocking, file_moves};
use kode_journal as journal;
use kode_journal::{Journal, ReadJournal, disk};
use kode_record::record::Record;

/// Why a session was not forked.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The session cannot be had, or the new one cannot be written.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// There is nothing at that place.
    #[error(transparent)]
    Item(#[from] UnknownItem),
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportFailure {
    /// The new session cannot be written.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The folder cannot be read.
    #[error(transparent)]
    Folder(#[from] ImportError),
}

impl Engine {
    /// Begins a session with the conversation of another one up to some place. The other may be live, also in another server.
    ///
    /// # Errors
    /// [`ForkError`].
    pub async fn fork_session(
        &self,
        folders: &[AbsPath],
        id: &SessionId,
        at: ForkPoint,
    ) -> Result<Arc<Session>, ForkError> {
        let (journal, _) = self.stored_journal(folders, id)?;
        let (origin, new) = (id.clone(), SessionId::generate());
        let (forked, cwd) = {
            let new = new.clone();
            blocking(move || {
                let read = read_journal(&journal)?;
                let forked = fork(read.records, &at, &origin, &new)?;
                let state = SessionState::fold(forked.clone());
                let corrupted = SessionError::Corrupted { path: journal, skipped: read.skipped };
                Ok::<_, ForkError>((forked, state.ok_or(corrupted)?.cwd))
            })
            .await?
        };
        write_session(&self.folder(&cwd), &new, forked).await?;
        let session = self.load_session(&[cwd], &new).await?;
        session.hooks().begin_as(StartSource::Fork);
        Ok(session)
    }

    /// A session as it is now, for a text. It may be live, also in another server.
    ///
    /// # Errors
    /// [`SessionError`].
    pub async fn export_session(
        &self,
        folders: &[AbsPath],
        id: &SessionId,
    ) -> Result<SessionExport, SessionError> {
        let (journal, _) = self.stored_journal(folders, id)?;
        blocking(move || read_export(journal)).await
    }

    /// Makes a session of this workspace folder from the folder of an agent of the Kode SDK.
    ///
    /// # Errors
    /// [`ImportFailure`]; nothing was imported then.
    pub async fn import_session(&self, root: &AbsPath, from: &Path) -> Result<ImportOutcome, ImportFailure> {
        let (mode, model) = self.beginning_of(root)?;
        let (id, from, cwd) = (SessionId::generate(), from.to_path_buf(), root.clone());
        let read = {
            let id = id.clone();
            blocking(move || read_sdk_session(&from, &id, &cwd, mode, model)).await?
        };
        let ImportedRecords { records, agent, template, messages, skipped } = read;
        write_session(&self.folder(root), &id, records).await?;
        Ok(ImportOutcome { session: id, agent, template, messages, skipped })
    }
}

impl SessionExport {
    /// Reads the session that is stored in a folder. Blocks on the disk.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn read(folder: &Path) -> Result<Self, SessionError> {
        read_export(folder.join(JOURNAL))
    }
}

fn read_export(journal: PathBuf) -> Result<SessionExport, SessionError> {
    let read = read_journal(&journal)?;
    let skipped = read.skipped;
    let state = SessionState::fold(read.records);
    let state = state.ok_or(SessionError::Corrupted { path: journal, skipped })?;
    Ok(SessionExport { state, skipped })
}

fn read_journal(path: &Path) -> Result<ReadJournal<Record>, SessionError> {
    journal::read(path).map_err(|source| SessionError::Storage { path: path.to_path_buf(), source })
}

/// Writes a new session into a folder of sessions: all of its records, or nothing.
async fn write_session(sessions: &Path, id: &SessionId, records: Vec<Record>) -> Result<(), SessionError> {
    let unfinished = sessions.join(format!("{UNFINISHED}{id}"));
    let filled = fill(unfinished.join(JOURNAL), records).await;
    let (sessions, finished) = (sessions.to_path_buf(), sessions.join(id.as_str()));
    blocking(move || {
        // One call: it is there as a whole from now on.
        let named = filled.and_then(|()| file_moves::rename(&unfinished, &finished));
        // Survives a power cut before the caller knows the session.
        let synced = named.and_then(|()| disk::real().sync_folder(&sessions));
        synced.map_err(|source| {
            let path = if finished.is_dir() { finished } else { unfinished };
            if let Err(error) = file_moves::remove_all(&path) {
                tracing::warn!(%error, path = %path.display(), "an unfinished session stays on the disk");
            }
            SessionError::Storage { path, source }
        })
    })
    .await
}

async fn fill(path: PathBuf, records: Vec<Record>) -> io::Result<()> {
    let journal = blocking(move || {
        let journal = Journal::open(&path)?;
        records.iter().try_for_each(|record| journal.append(record)).map_err(|error| error.source)?;
        io::Result::Ok(journal)
    })
    .await?;
    journal.sync().await.map_err(|error| error.source)?;
    journal.release();
    Ok(())
}
