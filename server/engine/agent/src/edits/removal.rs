//! Files that a change of the agent's removes, as the ledger has them: replaced by nothing, as a whole. And files that are
//! made again after their creation was undone.
//!
//! Rule: the bytes are kept, and named in the journal as what the turn found, before the file goes. A removal that fails
//! takes back those before it. A file that is made again has its former mode bits from its first moment.

use std::sync::Arc;

use crate::edits::Edits;
use kode_base::blocking;
use kode_base::ids::HunkId;
use kode_base::paths::{AbsPath, Target};
use kode_text::edit::FileRemoval;
use kode_text::edit::ledger::review::{HunkKind, HunkState};
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

    /// Makes a file that is gone again as an empty one with its former mode bits, if one of the hunks made it and comes back.
    /// Answers what it is now; `None` where there is nothing to make, or the mode bits are not known.
    ///
    /// # Errors
    /// Why it cannot be made, for people.
    pub(super) async fn make_again(
        &self,
        target: &Target,
        wanted: &[(HunkId, HunkState)],
    ) -> Result<Option<FileImage>, String> {
        let mode = {
            let book = self.book();
            let comes_back = |(hunk, state): &(HunkId, HunkState)| {
                book.ledger.kind(hunk) == Some(HunkKind::Created)
                    && state.is_in_text()
                    && !book.ledger.state(hunk).is_some_and(HunkState::is_in_text)
            };
            book.ledger.unmade_mode(target).filter(|_| wanted.iter().any(comes_back))
        };
        let (Some(mode), Some(path)) = (mode, target.file().cloned()) else { return Ok(None) };
        if path.as_path().symlink_metadata().is_ok() {
            return Ok(None);
        }
        let empty = FileImage::Kept { blob: self.keep_bytes(Arc::default()).await, mode };
        self.put_back(path, FileImage::Absent, empty.clone()).await.map_err(|error| error.to_string())?;
        Ok(Some(empty))
    }

    /// Removes a file again that was made again as an empty one, and could not get its text.
    pub(super) async fn unmake(&self, target: &Target, empty: FileImage) {
        let Some(path) = target.file().cloned() else { return };
        if let Err(error) = self.put_back(path, empty, FileImage::Absent).await {
            tracing::warn!(%error, %target, "a file that was to be made again stays empty");
        }
    }

    /// Notes the mode bits of a file whose creation was undone, before it is removed.
    pub(super) async fn note_unmade(&self, target: &Target) {
        let Some(path) = target.file().cloned() else { return };
        let shadow = Arc::clone(&self.shadow);
        if let Some(mode) = blocking(move || shadow.mode(&path)).await {
            self.enter(&mut self.book(), LedgerEntry::Unmade { target: target.clone(), mode }, None);
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
