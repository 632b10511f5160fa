//! Files that a change of the agent's removes, as the ledger has them: replaced by nothing, as a whole.
//!
//! Rule: the bytes are kept, and named in the journal as what the turn found, before the file goes. A removal that fails
//! takes back those before it.

use std::sync::Arc;

use crate::edits::Edits;
use kode_base::blocking;
use kode_base::paths::{AbsPath, Target};
use kode_text::edit::FileRemoval;
use kode_text::edit::ledger::{ChangeOrigin, FileBefore, LedgerEntry};
use kode_text::shell_change::{FileImage, ShellChange};
use kode_text::workspace::shadow::RestoreError;
use kode_text::workspace::{ApplyError, Workspace};

/// A file that has been removed and is not entered yet.
pub(super) struct RemovedFile {
    target: Target,
    path: AbsPath,
    text: Arc<str>,
    before: FileImage,
    is_closed: bool,
}

impl Edits {
    /// Removes files. The caller holds `writing`.
    ///
    /// # Errors
    /// Why a file cannot be removed; those before it are there again.
    pub(super) async fn remove_files(
        &self,
        workspace: &Workspace,
        removals: &[FileRemoval],
        change: &ChangeOrigin,
    ) -> Result<Vec<RemovedFile>, ApplyError> {
        let mut removed = Vec::with_capacity(removals.len());
        for removal in removals {
            match self.remove_file(workspace, removal, change).await {
                Ok(file) => removed.push(file),
                Err(error) => {
                    for RemovedFile { path, before, .. } in removed {
                        if let Err(error) = self.put_back(path, FileImage::Absent, before).await {
                            tracing::warn!(%error, "a removed file of a failed change is not there again");
                        }
                    }
                    return Err(error);
                }
            }
        }
        Ok(removed)
    }

    /// Enters removed files in the ledger.
    pub(super) fn enter_removed(
        &self,
        workspace: &Workspace,
        removed: Vec<RemovedFile>,
        change: &ChangeOrigin,
    ) {
        for RemovedFile { target, path, text, before, is_closed } in removed {
            workspace.note_removed(&target);
            let made = ShellChange { path, before, after: FileImage::Absent };
            self.enter_whole(&target, made, change, Some(&text), is_closed);
        }
    }

    async fn remove_file(
        &self,
        workspace: &Workspace,
        removal: &FileRemoval,
        change: &ChangeOrigin,
    ) -> Result<RemovedFile, ApplyError> {
        let shown = || workspace.display(&removal.target);
        let gone = || ApplyError::Gone { path: shown() };
        let path = removal.target.file().cloned().ok_or_else(gone)?;
        workspace.check_removal(removal).await?;
        let (shadow, at) = (Arc::clone(&self.shadow), path.clone());
        let before = blocking(move || shadow.image(&at)).await;
        match &before {
            FileImage::Kept { .. } => {}
            FileImage::Absent => return Err(gone()),
            FileImage::Symlink { .. } => return Err(forbidden(shown(), "it is a symbolic link")),
            FileImage::NotKept { reason } => return Err(forbidden(shown(), &reason.to_string())),
        }
        let text = self.text_of(&before).await;
        if text.is_none_or(|text| *text != *removal.base.text) {
            return Err(ApplyError::Moving { path: shown() });
        }
        self.keep_removed(&removal.target, &before, change);
        self.core.sync().await;
        let is_closed = workspace.open_document(&removal.target).await.is_none();
        workspace.delete_by_editor(&removal.target).await;
        if path.as_path().symlink_metadata().is_ok() {
            let removed = self.put_back(path.clone(), before.clone(), FileImage::Absent).await;
            removed.map_err(|error| forbidden(shown(), &error.to_string()))?;
        }
        let (target, text) = (removal.target.clone(), Arc::clone(&removal.base.text));
        Ok(RemovedFile { target, path, text, before, is_closed })
    }

    /// Stores the file as the turn found it, unless the turn has changed it before.
    fn keep_removed(&self, target: &Target, before: &FileImage, change: &ChangeOrigin) {
        let mut book = self.synced();
        if book.ledger.before(&change.turn).is_none_or(|files| !files.contains_key(target)) {
            let (turn, image) = (change.turn.clone(), before.clone());
            let before = FileBefore::Image { image };
            self.enter(&mut book, LedgerEntry::Before { turn, target: target.clone(), before }, None);
        }
    }

    async fn put_back(
        &self,
        path: AbsPath,
        expected: FileImage,
        wanted: FileImage,
    ) -> Result<(), RestoreError> {
        let shadow = Arc::clone(&self.shadow);
        blocking(move || shadow.restore_file(&path, &expected, &wanted)).await
    }
}

fn forbidden(path: String, reason: &str) -> ApplyError {
    ApplyError::Forbidden { path, reason: reason.to_owned() }
}
