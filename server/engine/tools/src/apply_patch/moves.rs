//! The changes that go with files that a patch moves, such as those of imports, as a language server computes them.
//!
//! Rule: what the patch says counts. They join its change where they fit beside it; what does not fit, and a server that fails, is a
//! note to the model and nothing else.

use std::time::Duration;

use tokio::time::timeout;

use super::PatchPlan;
use kode_base::paths::Target;
use kode_text::edit::compose::compose_edits;
use kode_text::edit::rebase::{Rebase, rebase};
use kode_text::edit::{FileChange, TextEdit};

/// How long the servers may take for a patch: the first of a session may have to read its project.
const LIMIT: Duration = Duration::from_secs(15);
/// Files that a note names.
const MAX_NAMED: usize = 20;

/// The result of the changes of one file.
enum JoinedChange {
    /// They are part of the patch's change.
    Joined,
    /// The patch makes them itself.
    Known,
    /// They do not fit beside what the patch does to the file.
    Unfit,
}

impl PatchPlan<'_> {
    /// Asks the language servers what goes with the moved files, and adds it.
    pub(super) async fn follow_moves(&mut self) {
        let moved: Vec<(Target, Target)> = self
            .removals
            .iter()
            .filter_map(|removal| Some((removal.target.clone(), removal.moved_to.clone()?)))
            .collect();
        let Some(servers) = self.workspace.languages().filter(|_| !moved.is_empty()) else { return };
        let changes = match timeout(LIMIT, servers.moves(self.workspace, &moved)).await {
            Ok(Ok(changes)) => changes,
            Ok(Err(error)) => return self.note_unfollowed(&error.to_string()),
            Err(_) => {
                let reason = format!("the language server did not answer within {} s", LIMIT.as_secs());
                return self.note_unfollowed(&reason);
            }
        };
        let (mut updated, mut unfit) = (Vec::new(), Vec::new());
        for change in changes {
            let path = self.workspace.display(&change.target);
            match self.join(change) {
                JoinedChange::Joined => updated.push(path),
                JoinedChange::Known => {}
                JoinedChange::Unfit => unfit.push(path),
            }
        }
        if !updated.is_empty() {
            let files = updated.len();
            self.steps.push(format!("Update {files} file{}", if files == 1 { "" } else { "s" }));
            let named = named(&updated);
            self.notes.push(format!("The language server updated references to the moved files: {named}"));
        }
        if !unfit.is_empty() {
            let named = named(&unfit);
            let note = "References to the moved files were left as the patch has them. Check the imports in";
            self.notes.push(format!("{note}: {named}"));
        }
    }

    fn note_unfollowed(&mut self, reason: &str) {
        self.notes.push(format!("References to the moved files were not updated, because {reason}"));
    }

    fn join(&mut self, change: FileChange) -> JoinedChange {
        let Some(text) = change.base.as_ref().map(|base| base.text.clone()) else {
            return JoinedChange::Unfit;
        };
        let removal = self.removals.iter().find(|removal| removal.target == change.target);
        let target = match removal {
            Some(removal) if *removal.base.text == *text => removal.moved_to.clone(),
            Some(_) => return JoinedChange::Unfit,
            None => Some(change.target.clone()),
        };
        // A file that the patch deletes needs no imports.
        let Some(target) = target else { return JoinedChange::Known };
        let is_moved = target != change.target;
        let Some(known) = self.files.iter_mut().find(|file| file.target == target) else {
            self.files.push(change);
            return JoinedChange::Joined;
        };
        if !is_moved && known.base.as_ref().is_none_or(|base| *base.text != *text) {
            return JoinedChange::Unfit;
        }
        match fitted(&text, &change.edits, &known.new_text()) {
            Some(edits) if edits.is_empty() => JoinedChange::Known,
            Some(edits) => {
                known.edits = compose_edits(&known.edits, &edits);
                JoinedChange::Joined
            }
            None => JoinedChange::Unfit,
        }
    }
}

/// The edits of a text as edits of what the patch makes of it; `None` where the patch changes the same.
fn fitted(text: &str, edits: &[TextEdit], patched: &str) -> Option<Vec<TextEdit>> {
    match rebase(text, edits, patched) {
        Rebase::Clean(edits) => Some(edits),
        Rebase::AlreadyApplied => Some(Vec::new()),
        Rebase::Conflict { .. } => None,
    }
}

fn named(paths: &[String]) -> String {
    let mut named = paths.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
    if let Some(more) = paths.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
        named.push_str(&format!(" and {more} more"));
    }
    named
}

#[cfg(test)]
mod tests {
    use kode_text::edit::change::apply_edits;

    use super::*;

    #[test]
    fn edits_fit_beside_those_of_the_patch_and_not_on_them() {
        let text = "import { a } from \"./one\";\n\na();\n";
        let at = text.find("./one").unwrap();
        let edits = [TextEdit { range: at..at + 5, new_text: "@lib/uno".to_owned() }];
        let beside = text.replace("a();", "a(1);\na(2);");
        let both = fitted(text, &edits, &beside).unwrap();
        assert_eq!(apply_edits(&beside, &both), beside.replace("./one", "@lib/uno"));
        assert_eq!(fitted(text, &edits, &text.replace("./one", "@lib/uno")), Some(Vec::new()));
        assert_eq!(fitted(text, &edits, &text.replace("./one", "./other")), None);
    }
}
