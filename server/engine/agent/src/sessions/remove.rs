//! Deleting sessions.
//!
//! Rule: an open session is not deleted. Its folder is renamed first and then emptied, so that after a crash
//! all of it exists, or nothing; leftovers of a crash are emptied later.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::{Catalogue, TRASH_PREFIX, WorkspaceFilter};
use crate::sessions::{JOURNAL, SessionError};
use kode_base::file_moves;
use kode_base::ids::SessionId;
use kode_base::path_style::PathStyle;
use kode_journal::disk::{self, DiskFile};

impl Catalogue {
    /// Deletes a session that is open nowhere, with all that was kept for it. One that cannot be read is deleted too.
    ///
    /// # Errors
    /// [`SessionError`]: unknown, open, or a disk that refuses; then the session is as it was.
    pub fn delete(&self, workspaces: &WorkspaceFilter, id: &SessionId) -> Result<(), SessionError> {
        let folder = self.find(workspaces, id)?;
        let journal = folder.join(JOURNAL);
        let held = hold(&journal).map_err(|source| SessionError::Storage { path: journal, source })?;
        self.discard(&folder, held).map_err(|source| SessionError::Storage { path: folder, source })
    }

    /// Takes the folder of a session away, whose journal the caller held until now.
    pub(super) fn discard(&self, folder: &Path, held: Option<Arc<dyn DiskFile>>) -> io::Result<()> {
        let (Some(workspace), Some(name)) =
            (folder.parent(), folder.file_name().and_then(|name| name.to_str()))
        else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let trash = workspace.join(format!("{TRASH_PREFIX}{name}-{}", Uuid::now_v7().simple()));
        released(PathStyle::HERE, held, || file_moves::rename(folder, &trash))?;
        if let Some(known) = self.known().get_mut(workspace) {
            known.forget(name);
        }
        empty(&trash);
        Ok(())
    }
}

/// Renames a folder whose journal is held. Windows renames no folder with an open file in it, so that the journal is let go
/// before: a program that opens it in between has the rename refused, and the session stays as it was. Elsewhere it is let go after.
fn released(
    style: PathStyle,
    held: Option<Arc<dyn DiskFile>>,
    rename: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let held = held.filter(|_| style == PathStyle::Unix);
    let renamed = rename();
    drop(held);
    renamed
}

/// Locks a journal; `None` if absent, or where it must not be opened.
///
/// # Errors
/// The error of the system; of kind [`io::ErrorKind::ResourceBusy`] for an open session.
pub(super) fn hold(journal: &Path) -> io::Result<Option<Arc<dyn DiskFile>>> {
    match disk::lock(journal) {
        Ok(Some(held)) => Ok(Some(held)),
        Ok(None) => Err(io::Error::new(io::ErrorKind::ResourceBusy, "another kode-ls has this session open")),
        // Any other error does not mean that it is open.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            tracing::debug!(%error, path = %journal.display(), "a journal that cannot be opened has no owner");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The folders whose names have this prefix: renamed and not emptied, or begun and not finished.
pub(super) fn trash(workspace: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(workspace).into_iter().flatten().flatten();
    let is_trash =
        |entry: &std::fs::DirEntry| entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
    entries.filter(is_trash).map(|entry| entry.path()).collect()
}

/// Removes renamed folders. A failure is retried by the next cleanup.
pub(super) fn empty(trash: &Path) {
    if let Err(error) = file_moves::remove_all(trash) {
        tracing::warn!(%error, path = %trash.display(), "deleted files still use disk space");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_is_free_while_windows_renames_its_folder_and_held_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join(JOURNAL);
        std::fs::write(&journal, "").unwrap();
        for (style, expected) in [(PathStyle::Windows, true), (PathStyle::Unix, false)] {
            let held = hold(&journal).unwrap();
            assert!(held.is_some());
            let mut is_free = None;
            let rename = || {
                is_free = Some(disk::lock(&journal).unwrap().is_some());
                Ok(())
            };
            released(style, held, rename).unwrap();
            assert_eq!(is_free, Some(expected), "{style:?}");
            assert!(hold(&journal).unwrap().is_some(), "it is free afterwards");
        }
    }
}
