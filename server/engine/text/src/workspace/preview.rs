//! What a change set will do to the files, for the user to judge.
//!
//! Rule: a preview shows whole lines in the unified format, with paths as the workspace shows them.

use crate::edit::ChangeSet;
use crate::edit::diff::Patch;
use crate::workspace::Workspace;

/// What a change set will do to the files, in the unified format, for the user to judge.
#[must_use]
pub fn preview(change: &ChangeSet, workspace: &Workspace) -> String {
    let files = change.files.iter().map(|file| {
        let patch = Patch::between(file.old_text(), &file.new_text());
        patch.unified(&workspace.display(&file.target), file.base.is_none())
    });
    files.collect()
}
