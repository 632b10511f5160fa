//! What is about to be written into texts, in the journal before it is written.
//!
//! Rule: a change that reached its text before the server ended is the agent's when the session is taken up, though nobody
//! could enter it; one that did not, or on which somebody has written since, is not claimed.

use crate::session::Session;
use kode_record::intent::Intent;
use kode_record::record::Record;
use kode_text::edit::ledger::ChangeOrigin;
use kode_text::edit::{AppliedFile, ChangeSet};

impl Session {
    /// Writes down what is about to be changed.
    pub(super) fn announce(&self, set: &ChangeSet, change: &ChangeOrigin) {
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
