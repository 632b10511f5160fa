//! Taking back the files of a change set of which a later file could not be changed.
//!
//! Rule: part of a change is worse than none, and the user's text is worth more than either. A file goes back to its old text
//! with what the user typed since; one that cannot go back is named in the error.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{ApplyError, ChangeSource, judged_of};
use crate::edit::diff::line_changes;
use crate::edit::{AppliedFile, Author, FileChange};
use crate::file_text::FileText;
use crate::workspace::Workspace;
use kode_base::paths::ResolvedPaths;

impl Workspace {
    /// Changes files back that a change set had changed before it failed with `error`. Returns the error of the whole change
    /// set: [`ApplyError::TakenBack`], or [`ApplyError::Partial`] with the files that stay changed.
    pub async fn take_back(
        &self,
        applied: Vec<AppliedFile>,
        (label, judged): (&str, &ResolvedPaths),
        error: ApplyError,
    ) -> ApplyError {
        if applied.is_empty() {
            return error;
        }
        let mut left = Vec::new();
        for file in applied.into_iter().rev() {
            let by = ChangeSource { label, author: Author::Agent, judged: judged_of(&file.target, judged) };
            if !self.take_back_file(&file, by).await {
                left.push(file);
            }
        }
        if left.is_empty() {
            return ApplyError::TakenBack { source: Box::new(error) };
        }
        left.reverse();
        let changed = left.iter().map(|file| self.display(&file.target)).collect();
        ApplyError::Partial { applied: left, changed, source: Box::new(error) }
    }

    /// Whether the file has its old text again, or is gone again.
    async fn take_back_file(&self, file: &AppliedFile, by: ChangeSource<'_>) -> bool {
        let Ok(now) = self.text(&file.target).await else { return false };
        let base = FileText { text: file.new_text.as_str().into(), ..now };
        let edits = line_changes(&file.new_text, &file.old_text);
        let change = FileChange { target: file.target.clone(), base: Some(base), edits };
        // A cancelled call is taken back too.
        let cancel = CancellationToken::new();
        let reverted = self.apply_file(Arc::new(change), None, by, &cancel).await;
        match reverted {
            Ok(_) if file.created => self.remove_undone(&file.target, &file.new_text).await.is_ok(),
            Ok(_) => true,
            Err(error) => {
                tracing::warn!(%error, target = %file.target, "a file of a failed change stays changed");
                false
            }
        }
    }
}
