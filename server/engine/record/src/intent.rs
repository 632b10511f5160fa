//! What a change of files was about to write, recorded before it writes.
//!
//! Rule: written ahead of the effect, so that a restart can tell what was done.

use serde::{Deserialize, Serialize};

use kode_base::paths::Target;
use kode_journal::BlobId;
use kode_text::edit::change::apply_edits;
use kode_text::edit::ledger::ChangeOrigin;
use kode_text::edit::{AppliedFile, FileChange, TextEdit};
use kode_text::file_text::{FileText, TextSource};

/// A change that is about to be made in one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// What is changed.
    pub target: Target,
    /// Whose it is.
    pub change: ChangeOrigin,
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
    /// What is recorded before a change of this file is written.
    pub fn of(file: &FileChange, change: &ChangeOrigin) -> Self {
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
    pub fn made(&self, now: &FileText) -> Option<AppliedFile> {
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
        let is_closed = matches!(now.source, TextSource::Disk);
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
