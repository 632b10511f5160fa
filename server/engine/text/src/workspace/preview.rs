//! The effect of a change set on the files, for the user to judge.
//!
//! Rule: a preview shows whole lines in the unified format, with paths as the workspace shows them. A moved file is compared
//! with what it was under its old path.

use crate::edit::ChangeSet;
use crate::edit::diff::Patch;
use crate::workspace::Workspace;

/// The effect of a change set on the files, in the unified format, for the user to judge.
#[must_use]
pub fn preview(change: &ChangeSet, workspace: &Workspace) -> String {
    let moved_to = |target| change.removals.iter().find(|removal| removal.moved_to.as_ref() == Some(target));
    let files = change.files.iter().map(|file| {
        let path = workspace.display(&file.target);
        match moved_to(&file.target) {
            Some(moved) => {
                let old = workspace.display(&moved.target);
                Patch::between(&moved.base.text, &file.new_text()).unified_as(Some(&old), Some(&path))
            }
            None => Patch::between(file.old_text(), &file.new_text()).unified(&path, file.base.is_none()),
        }
    });
    let is_moved = |target: &Option<_>| {
        target.as_ref().is_some_and(|target| change.files.iter().any(|file| file.target == *target))
    };
    let removed = change.removals.iter().filter(|removal| !is_moved(&removal.moved_to)).map(|removal| {
        let path = workspace.display(&removal.target);
        Patch::between(&removal.base.text, "").unified_as(Some(&path), None)
    });
    files.chain(removed).collect()
}
