//! The marks of files whose changes the user has reviewed.
//!
//! Rule: a mark is for hunks as they were when it was set. A hunk that came or changed since makes the file unreviewed again; a
//! hunk that was kept or undone does not.

use super::SessionState;
use kode_base::paths::Target;
use kode_journal::BlobId;
use kode_record::event::Event;
use kode_text::edit::ledger::review::{FileReview, HunkView};

/// The most files with a mark; the oldest goes for a new one.
const MAX_FILES: usize = 1_000;

impl SessionState {
    /// Sets the mark of a file, or removes it where there are no hunks.
    pub(super) fn mark_reviewed(&mut self, target: Target, hunks: Vec<BlobId>) -> Vec<Event> {
        self.reviewed.retain(|(marked, _)| *marked != target);
        if !hunks.is_empty() {
            self.reviewed.push((target.clone(), hunks));
            let excess = self.reviewed.len().saturating_sub(MAX_FILES);
            self.reviewed.drain(..excess);
        }
        vec![Event::EditsChanged { targets: vec![target] }]
    }

    /// Whether the user has reviewed all of these hunks as they are.
    #[must_use]
    pub fn is_reviewed(&self, review: &FileReview) -> bool {
        let marked = self.reviewed.iter().find(|(target, _)| *target == review.target);
        marked.is_some_and(|(_, known)| review.hunks.iter().all(|hunk| known.contains(&digest(hunk))))
    }
}

/// The digest of a hunk: its id and its texts.
pub(crate) fn digest(hunk: &HunkView) -> BlobId {
    let parts = [hunk.id.as_str(), &hunk.old_text, &hunk.new_text];
    // The lengths keep the parts apart.
    let parts = parts.map(|part| format!("{} {part}", part.len()));
    BlobId::of(parts.concat().as_bytes())
}
