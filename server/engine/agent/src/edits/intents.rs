//! Intended changes, in the journal before they are written.
//!
//! Rule: a change that reached its text before the server ended is the agent's when the session is resumed, though it
//! was not entered; a change that did not, or whose text was edited since, is not claimed.

use crate::edits::Edits;
use kode_base::{atomic, blocking};
use kode_record::intent::Intent;
use kode_record::record::Record;
use kode_text::edit::ledger::ChangeOrigin;
use kode_text::edit::{AppliedFile, ChangeSet};

impl Edits {
    /// Records an intended change.
    pub(crate) fn announce(&self, set: &ChangeSet, change: &ChangeOrigin) {
        let intents = set.files.iter().map(|file| Intent::of(file, change)).collect();
        self.core.commit(Record::Writing { intents });
    }

    /// Enters the changes that were made and not entered when the server ended.
    pub(crate) async fn enter_lost_changes(&self) {
        let intents = self.core.state().writing.clone();
        if intents.is_empty() {
            return;
        }
        let _one_at_a_time = self.writing.lock().await;
        let targets: Vec<_> = intents.iter().filter_map(|intent| intent.target.file().cloned()).collect();
        blocking(move || targets.iter().for_each(|target| atomic::sweep_beside(target.as_path()))).await;
        for intent in &intents {
            if self.book().ledger.has_made(&intent.change.id, &intent.target) {
                continue;
            }
            let target = self.followed_as(&intent.target).await;
            let Ok(now) = self.workspace.text(&target).await else { continue };
            let Some(made) = intent.made(&now) else { continue };
            tracing::info!(%target, "a change is entered that was made when the server ended");
            self.enter_change(&AppliedFile { target, ..made }, &intent.change, &mut Vec::new()).await;
        }
        self.core.commit(Record::Writing { intents: Vec::new() });
    }
}
