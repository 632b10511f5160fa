//! What is about to be written into texts, in the journal before it is written.
//!
//! Rule: a change that reached its text before the server ended is the agent's when the session is taken up, though nobody
//! could enter it; one that did not, or on which somebody has written since, is not claimed.

use serde::{Deserialize, Serialize};

use crate::edit::change::apply_edits;
use crate::edit::ledger::Change;
use crate::edit::{AppliedFile, ChangeSet, FileChange, TextEdit};
use crate::journal::{BlobId, Record};
use crate::paths::Target;
use crate::session::Session;
use crate::workspace::{FileText, Source};

/// A change that is about to be made in one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// What is changed.
    pub target: Target,
    /// Whose it is.
    pub change: Change,
    /// Whether the file is made by it.
    pub created: bool,
    /// The edits, of the text before.
    pub edits: Vec<TextEdit>,
    /// What they take out, edit by edit.
    pub removed: Vec<String>,
    /// The hash of the text afterwards.
    pub after: BlobId,
}

impl Intent {
    fn of(file: &FileChange, change: &Change) -> Self {
        let old = file.old_text();
        let removed =
            file.edits.iter().map(|edit| old.get(edit.range.clone()).unwrap_or_default().to_owned());
        Self {
            target: file.target.clone(),
            change: change.clone(),
            created: file.base.is_none(),
            edits: file.edits.clone(),
            removed: removed.collect(),
            after: BlobId::of(file.new_text().as_bytes()),
        }
    }

    /// The change as it was made, when this is the text it has led to.
    fn made(&self, now: &FileText) -> Option<AppliedFile> {
        if BlobId::of(now.text.as_bytes()) != self.after {
            return None;
        }
        let mut moved = 0_usize;
        let back = self.edits.iter().zip(&self.removed).map(|(edit, removed)| {
            let start = (edit.range.start + moved).checked_sub(self.shrunk_before(edit))?;
            moved += edit.new_text.len();
            Some(TextEdit { range: start..start + edit.new_text.len(), new_text: removed.clone() })
        });
        let old_text = apply_edits(&now.text, &back.collect::<Option<Vec<_>>>()?);
        let is_closed = matches!(now.source, Source::Disk);
        let bytes = (is_closed && !self.created).then(|| now.format.encode(&old_text).ok()).flatten();
        Some(AppliedFile {
            target: self.target.clone(),
            created: self.created,
            old_text,
            new_text: now.text.to_string(),
            rebased: 0,
            format: is_closed.then_some(now.format),
            edits: self.edits.clone(),
            shown: None,
            bytes: bytes.map(Into::into),
        })
    }

    /// Bytes that the edits before this one take out.
    fn shrunk_before(&self, edit: &TextEdit) -> usize {
        let before = self.edits.iter().take_while(|before| before.range.start < edit.range.start);
        before.map(|before| before.range.len()).sum()
    }
}

impl Session {
    /// Writes down what is about to be changed.
    pub(super) fn announce(&self, set: &ChangeSet, change: &Change) {
        let intents = set.files.iter().map(|file| Intent::of(file, change)).collect();
        self.commit(Record::Writing { intents });
    }

    /// Enters the changes that were made and not entered when the server ended.
    pub(crate) async fn enter_lost_changes(&self) {
        let intents = self.state().writing.clone();
        if intents.is_empty() {
            return;
        }
        let _one_at_a_time = self.changes.writing.lock().await;
        for intent in &intents {
            if self.changes.book().ledger.has_made(&intent.change.id, &intent.target) {
                continue;
            }
            let target = self.followed_as(&intent.target).await;
            let Ok(now) = self.workspace.text(&target).await else { continue };
            let Some(made) = intent.made(&now) else { continue };
            tracing::info!(%target, "a change is entered that was made when the server ended");
            self.enter_change(&AppliedFile { target, ..made }, &intent.change, &mut Vec::new()).await;
        }
        self.commit(Record::Writing { intents: Vec::new() });
    }
}
