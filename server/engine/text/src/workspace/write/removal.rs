//! The workspace's part in the removal of a file, which the ledger's owner carries out.
//!
//! Rule: only the text that the removal was planned for is removed. A document with unsaved changes, a link and a file that
//! changed meanwhile stay.

use super::{ApplyError, quoted};
use crate::edit::FileRemoval;
use crate::workspace::Workspace;
use kode_base::paths::Target;

impl Workspace {
    /// Checks that the editor shows nothing else of a file that is to be removed than is on the disk.
    ///
    /// # Errors
    /// [`ApplyError::Conflict`] when the document has another text than the removal was planned for, and
    /// [`ApplyError::Forbidden`] when it is not saved.
    pub async fn check_removal(&self, removal: &FileRemoval) -> Result<(), ApplyError> {
        let path = || self.display(&removal.target);
        let Some(document) = self.open_document(&removal.target).await else { return Ok(()) };
        if document.text != *removal.base.text {
            let theirs = quoted(&document.text.to_string());
            return Err(ApplyError::Conflict { path: path(), line: 1, theirs });
        }
        let saved = self.saved_text(&removal.target).await;
        if saved.is_none_or(|saved| *saved != *removal.base.text) {
            let reason = "the user has unsaved changes in it".to_owned();
            return Err(ApplyError::Forbidden { path: path(), reason });
        }
        Ok(())
    }

    /// Asks the editor that has a file open to delete it with its document. Whether it did is read from the disk.
    pub async fn delete_by_editor(&self, target: &Target) {
        if let Some(document) = self.open_document(target).await {
            self.host.delete_document(&document).await;
        }
    }

    /// Notes that the session has removed a file: that it is gone is no change by others.
    pub fn note_removed(&self, target: &Target) {
        self.tracker.reads().forget(target);
        self.tracker.watch.release(target.clone());
    }
}
