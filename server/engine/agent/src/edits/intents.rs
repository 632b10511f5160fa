//! Intended changes, in the journal before they are written.
//!
//! Rule: a change that reached its text before the server ended is the agent's when the session is resumed, though it
//! was not entered, also where its call had failed because the editor was gone; a change that did not, or whose text was
//! edited since, is not claimed.

use crate::edits::{Edits, MAX_LATE};
use kode_base::paths::Target;
use kode_base::{atomic, blocking};
use kode_record::intent::Intent;
use kode_record::record::Record;
use kode_text::edit::ledger::ChangeOrigin;
use kode_text::edit::{AppliedFile, ChangeSet};

impl Edits {
    /// Records an intended change, beside those whose outcome is still not known.
    pub(crate) fn announce(&self, set: &ChangeSet, change: &ChangeOrigin) {
        let mut intents = self.unanswered_intents();
        intents.extend(set.files.iter().map(|file| Intent::of(file, change)));
        self.core.commit(Record::Writing { intents });
    }

    /// Records that the outcome of an announced change stays unknown with the end of its call.
    pub(crate) fn leave_unanswered(&self, target: &Target, change: &ChangeOrigin) {
        let mut intents = self.unanswered_intents();
        let announced = self.core.state().writing.clone();
        let its_own = announced.into_iter().find(|one| one.target == *target && one.change.id == change.id);
        intents.extend(its_own.map(|intent| Intent { is_unanswered: true, ..intent }));
        let surplus = intents.len().saturating_sub(MAX_LATE);
        intents.drain(..surplus);
        self.core.commit(Record::Writing { intents });
    }

    /// The changes of ended calls that may have been made and are not entered.
    fn unanswered_intents(&self) -> Vec<Intent> {
        let mut intents = self.core.state().writing.clone();
        let book = self.book();
        intents.retain(|one| one.is_unanswered && !book.ledger.has_made(&one.change.id, &one.target));
        intents
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
            // Nothing is lost where the ledger has this text.
            if self.book().ledger.text(&target).is_some_and(|known| *known == *now.text) {
                continue;
            }
            let Some(made) = intent.made(&now) else { continue };
            tracing::info!(%target, "a change is entered that was made when the server ended");
            self.enter_change(&AppliedFile { target, ..made }, &intent.change, &mut Vec::new()).await;
        }
        self.core.commit(Record::Writing { intents: Vec::new() });
    }
}
