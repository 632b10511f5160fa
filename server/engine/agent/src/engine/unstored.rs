//! The beginning of a session on the disk, also where the state folder cannot be written.
//!
//! Rule: a session begins whatever the state folder does. One that cannot be stored works in a temporary folder of this process,
//! and its user reads why. It ends with the process.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::Engine;
use super::opened::open_journal;
use crate::core::lock;
use crate::sessions::{JOURNAL, SessionError};
use kode_base::scratch::Scratch;
use kode_journal::disk::OpenMode;
use kode_journal::{Blobs, Journal, SHELF, Shelf};
use kode_record::record::Record;

/// The temporary folder of sessions that are not stored; made for the first of them.
pub(super) type UnstoredSessions = Arc<Mutex<Option<Scratch>>>;

/// The files of a session that has started.
pub(super) struct StoredBeginning {
    pub(super) journal: Journal,
    pub(super) blobs: Blobs,
    pub(super) shelf: Shelf,
}

impl Engine {
    /// Stores the first record of a session at `path`, or else in a temporary folder. In that case the error of `path` is
    /// returned as well.
    ///
    /// # Errors
    /// [`SessionError::Storage`] where the temporary folder cannot be written either, or another process has the journal.
    pub(super) fn store(
        &self,
        path: &Path,
        record: &Record,
    ) -> Result<(StoredBeginning, Option<SessionError>), SessionError> {
        let refusal = match self.store_at(path, record) {
            Ok(stored) => return Ok((stored, None)),
            Err(error) if is_refusal(&error) => error,
            Err(error) => return Err(error),
        };
        tracing::error!(error = %refusal, "the session is not stored");
        let name = path.parent().and_then(Path::file_name).unwrap_or_default();
        let storage = |source| SessionError::Storage { path: path.to_path_buf(), source };
        let folder = self.unstored_folder().map_err(storage)?.join(name);
        Ok((self.store_at(&folder.join(JOURNAL), record)?, Some(refusal)))
    }

    fn unstored_folder(&self) -> io::Result<PathBuf> {
        let mut unstored = lock(&self.unstored);
        if unstored.is_none() {
            *unstored = Some(Scratch::new()?);
        }
        Ok(unstored.as_ref().map(|made| made.path().to_path_buf()).unwrap_or_default())
    }

    fn store_at(&self, path: &Path, record: &Record) -> Result<StoredBeginning, SessionError> {
        let storage = |source| SessionError::Storage { path: path.to_path_buf(), source };
        let (journal, blobs) = open_journal(&self.disk, path, OpenMode::Create)?;
        journal.append(record).map_err(|error| storage(error.source))?;
        let shelf = Shelf::create(&path.with_file_name(SHELF)).map_err(storage)?;
        Ok(StoredBeginning { journal, blobs, shelf })
    }
}

/// Whether the disk takes nothing in this place.
fn is_refusal(error: &SessionError) -> bool {
    let SessionError::Storage { source, .. } = error else { return false };
    matches!(
        source.kind(),
        ErrorKind::StorageFull
            | ErrorKind::QuotaExceeded
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::PermissionDenied
            | ErrorKind::NotADirectory
            | ErrorKind::AlreadyExists
    )
}
