//! Open documents whose text is not in their files, and saving those the agent has changed.
//!
//! Rule: what only the user has typed is never saved from here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use futures::future::join_all;
use ropey::Rope;

use crate::document::DocumentSnapshot;
use crate::host::{DocumentEvent, SaveOutcome};
use crate::workspace::Workspace;

use kode_base::blocking;
use kode_base::paths::Target;

/// How many open documents are compared with their files.
const MAX_COMPARED: usize = 64;

/// Up to how many bytes files are compared with open documents.
const MAX_COMPARED_BYTES: u64 = 4 << 20;

/// How long the editor may take to save, all documents together.
const SAVE_LIMIT: Duration = Duration::from_secs(5);

/// A document that was to be saved and was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsavedDocument {
    /// The document.
    pub target: Target,
    /// Why not.
    pub reason: String,
}

/// The open documents that the agent has changed since they were last saved.
#[derive(Debug, Default)]
pub(super) struct AgentChanges {
    changed: BTreeSet<Target>,
    /// The versions that were saved last, of open documents.
    saved: BTreeMap<Target, i32>,
}

/// A document's text compared with that of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Same,
    Different,
    /// The file is too long, or in another encoding.
    Unknown,
}

impl Workspace {
    /// The same workspace, which saves what the agent has changed before a command runs, or does not.
    #[must_use]
    pub fn saving_before_commands(mut self, saves: bool) -> Self {
        self.saves_before_commands = saves;
        self
    }

    /// The open documents with files whose text certainly is not what the file holds. Line endings are not compared,
    /// because editors show them as they like, and files that are long or in other encodings are not read.
    pub async fn unsaved_documents(&self) -> Vec<Target> {
        let mut documents = self.documents();
        if self.is_apart {
            let is_in = |document: &DocumentSnapshot| {
                document.path.as_ref().is_some_and(|path| self.roots.name(path))
            };
            documents.retain(is_in);
        }
        let compare = move || {
            let with_files = documents.iter().filter(|document| document.path.is_some()).take(MAX_COMPARED);
            let unsaved = with_files.filter(|document| compare(document) == Comparison::Different);
            unsaved.map(DocumentSnapshot::target).collect()
        };
        blocking(compare).await
    }

    /// Has the editor save the documents that the agent has changed since they were last saved, where that is wanted
    /// and the editor can; waits for a limited time. Answers those that were not saved.
    pub async fn save_before_command(&self) -> Vec<UnsavedDocument> {
        if !(self.saves_before_commands && self.host.can_save()) {
            return Vec::new();
        }
        let saves = self.agent_changed().await.into_iter().map(async |target| {
            let reason = match tokio::time::timeout(SAVE_LIMIT, self.host.save_document(&target)).await {
                Ok(SaveOutcome::Saved | SaveOutcome::NotOpen) => {
                    self.tracker.agent_changes.lock().changed.remove(&target);
                    return None;
                }
                Ok(SaveOutcome::Failed { reason }) => reason,
                Err(_) => format!("the editor did not save it within {} s", SAVE_LIMIT.as_secs()),
            };
            Some(UnsavedDocument { target, reason })
        });
        join_all(saves).await.into_iter().flatten().collect()
    }

    /// Notes that the agent has changed an open document, which now looks like this.
    pub(super) fn note_agent_change(&self, document: &DocumentSnapshot) {
        let mut changes = self.tracker.agent_changes.lock();
        let target = document.target();
        // An editor that saves by itself may have been quicker.
        let is_saved = changes.saved.get(&target).is_some_and(|saved| *saved >= document.version);
        if document.path.is_some() && !is_saved {
            changes.changed.insert(target);
        }
    }

    /// The documents the agent has changed and that may not be saved. Others that were changed are as good as saved.
    async fn agent_changed(&self) -> Vec<Target> {
        let changed = self.tracker.agent_changes.lock().changed.clone();
        if changed.is_empty() {
            return Vec::new();
        }
        let documents: Vec<_> = changed.iter().filter_map(|target| self.host.document(target)).collect();
        let compared = move || {
            let compared = documents.iter().map(|document| (document.target(), compare(document)));
            compared.collect::<Vec<_>>()
        };
        let compared = blocking(compared).await;
        let (same, unsaved): (Vec<_>, Vec<_>) =
            compared.into_iter().partition(|(_, comparison)| *comparison == Comparison::Same);
        let mut changes = self.tracker.agent_changes.lock();
        for (target, _) in &same {
            changes.changed.remove(target);
        }
        unsaved.into_iter().map(|(target, _)| target).collect()
    }
}

impl AgentChanges {
    pub(super) fn observe(&mut self, event: &DocumentEvent) {
        match event {
            DocumentEvent::Changed { .. } => {}
            DocumentEvent::Saved { document, by_user: _ } => {
                self.changed.remove(&document.target());
                self.saved.insert(document.target(), document.version);
            }
            DocumentEvent::Opened(document) | DocumentEvent::Closed(document) => {
                self.changed.remove(&document.target());
                self.saved.remove(&document.target());
            }
        }
    }
}

fn compare(document: &DocumentSnapshot) -> Comparison {
    let Some(path) = &document.path else { return Comparison::Unknown };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Comparison::Different,
        Err(_) => Comparison::Unknown,
        Ok(metadata) if metadata.len() > MAX_COMPARED_BYTES => Comparison::Unknown,
        Ok(_) => match saved_text(path.as_path()) {
            None => Comparison::Unknown,
            Some(saved) if is_same_text(&document.text, &saved) => Comparison::Same,
            Some(_) => Comparison::Different,
        },
    }
}

fn saved_text(path: &Path) -> Option<String> {
    let text = String::from_utf8(std::fs::read(path).ok()?).ok()?;
    Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn is_same_text(shown: &Rope, saved: &str) -> bool {
    let without_returns = |byte: &u8| *byte != b'\r';
    *shown == *saved || shown.bytes().filter(without_returns).eq(saved.bytes().filter(without_returns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Rig, Saving, plan_edit, read};

    /// Two open documents, one of which the agent has edited, and an editor that saves.
    async fn rig() -> Rig {
        let rig = Rig::new();
        for file in ["agent.txt", "user.txt"] {
            rig.write(file, "one\n");
            rig.open(file, "one\n");
        }
        rig.read("agent.txt").await;
        edit(&rig, "one", "two").await;
        rig.type_text("user.txt", "typed\n");
        rig.set_saving(Saving::Works);
        rig
    }

    async fn edit(rig: &Rig, old: &str, new: &str) {
        rig.edit("agent.txt", old, new).await.unwrap();
    }

    #[tokio::test]
    async fn what_the_user_or_the_editor_saved_is_the_agents_no_more() {
        let rig = rig().await;
        rig.save("agent.txt");
        rig.type_text("agent.txt", "typed\n");
        assert_eq!(rig.workspace().save_before_command().await, []);
        assert_eq!(rig.text("agent.txt"), "two\n");
        edit(&rig, "typed", "three").await;
        rig.write("agent.txt", "three\n");
        rig.workspace().save_before_command().await;
        rig.type_text("agent.txt", "typed again\n");
        rig.workspace().save_before_command().await;
        assert_eq!(rig.text("agent.txt"), "three\n", "its text was on disk without a word from the editor");
        edit(&rig, "typed again", "four").await;
        rig.close("agent.txt");
        rig.open("agent.txt", "typed anew\n");
        rig.workspace().save_before_command().await;
        assert_eq!(rig.text("agent.txt"), "three\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_save_that_takes_too_long_is_reported() {
        let rig = rig().await;
        rig.set_saving(Saving::Hangs);
        let reason = "the editor did not save it within 5 s".to_owned();
        let silent = [UnsavedDocument { target: rig.target("agent.txt"), reason }];
        assert_eq!(rig.workspace().save_before_command().await, silent);
    }

    #[tokio::test]
    async fn nothing_is_saved_where_that_is_not_wanted() {
        let rig = rig().await;
        let session = rig.session_with(|workspace| workspace.saving_before_commands(false));
        read(&session, "user.txt").await;
        let change = plan_edit(&session, "user.txt", "typed", "edited").await;
        session.apply(change, &rig.cancel).await.unwrap();
        assert_eq!(session.save_before_command().await, []);
        assert_eq!(rig.text("user.txt"), "one\n");
        rig.workspace().save_before_command().await;
        assert_eq!(rig.text("user.txt"), "one\n", "another session's edits are not this one's");
    }
}
