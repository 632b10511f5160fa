//! The `apply_patch` tool: several files added, changed, moved and deleted by one patch.
//!
//! Rule: all files or none, and rather refuse than guess. Each file follows the rules of Edit and Write; a deleted file's
//! bytes stay with the session, so that everything can be undone.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::replacement::mismatch::{note_of, section_refused};
use crate::replacement::{refuse_notebook, refuse_unread};
use crate::write::{WrittenFile, edits_of_existing, refuse_unwritable};
use kode_base::call::{ToolError, ToolErrorKind, ToolKind, Touch};
use kode_base::paths::Target;
use kode_text::edit::change::apply_edits;
use kode_text::edit::compose::compose_edits;
use kode_text::edit::file_patch::{FilePatch, PatchSection, PatchSyntaxError, PatchedText};
use kode_text::edit::{Author, ChangeSet, FileChange, FileRemoval, TextEdit};
use kode_text::file_text::{FileText, TextSource};
use kode_text::workspace::write::missing_parents;
use kode_text::workspace::{Freshness, ReadError, Workspace};
use kode_tool::{CallAction, CallContext, CallPlan, OfferContext, Tool, ToolFacts};

/// Paths that the title of a call names.
const MAX_NAMED: usize = 3;

/// Arguments of `apply_patch`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyPatchInput {
    /// The whole patch, from `*** Begin Patch` to `*** End Patch`.
    pub input: String,
}

/// Applies a patch.
pub struct ApplyPatch;

#[async_trait]
impl Tool for ApplyPatch {
    type Input = ApplyPatchInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "apply_patch",
            kind: ToolKind::Write,
            concurrency_safe: false,
            description: DESCRIPTION,
        }
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        offer.takes_patches.then(|| DESCRIPTION.to_owned())
    }

    fn grammar(&self) -> Option<&'static str> {
        Some(GRAMMAR)
    }

    async fn plan(&self, input: ApplyPatchInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let patches = FilePatch::parse(&input.input).map_err(|error| no_patch(&error))?;
        let mut plan = PatchPlan::new(&context.workspace);
        for patch in patches {
            plan.add(patch).await?;
        }
        plan.follow_moves().await;
        Ok(plan.into_call())
    }
}

/// The changes of a patch, file by file.
struct PatchPlan<'session> {
    workspace: &'session Workspace,
    files: Vec<FileChange>,
    removals: Vec<FileRemoval>,
    /// The action, for people: `Edit src/a.rs`.
    steps: Vec<String>,
    notes: Vec<String>,
}

impl<'session> PatchPlan<'session> {
    fn new(workspace: &'session Workspace) -> Self {
        Self { workspace, files: Vec::new(), removals: Vec::new(), steps: Vec::new(), notes: Vec::new() }
    }

    async fn add(&mut self, patch: FilePatch) -> Result<(), ToolError> {
        let target = self.workspace.resolve(patch.path())?;
        let path = self.workspace.display(&target);
        if self.removals.iter().any(|removal| removal.target == target) {
            return Err(twice(&path));
        }
        match patch {
            FilePatch::Add { text, .. } => self.write(target, &path, text, "Create").await,
            FilePatch::Delete { .. } => self.delete(target, &path).await,
            FilePatch::Update { moved_to, sections, .. } => {
                let moved_to = moved_to.map(|path| self.workspace.resolve(&path)).transpose()?;
                let moved_to = moved_to.filter(|new| *new != target);
                self.update(target, &path, &sections, moved_to).await
            }
        }
    }

    /// The whole text of a file, new or replaced.
    async fn write(&mut self, target: Target, path: &str, text: String, verb: &str) -> Result<(), ToolError> {
        if self.files.iter().any(|file| file.target == target) {
            return Err(twice(path));
        }
        let (base, edits) = match self.workspace.text(&target).await {
            Ok(file) => {
                let seen = WrittenFile {
                    freshness: self.workspace.freshness(&file),
                    whole: self.workspace.has_read_whole(&target),
                };
                let edits = edits_of_existing(&text, &file, seen, path)?;
                (Some(file), edits)
            }
            Err(ReadError::NotFound { .. }) => (None, vec![TextEdit { range: 0..0, new_text: text }]),
            Err(error) => return Err(error.into()),
        };
        let verb = if base.is_some() { "Write" } else { verb };
        self.steps.push(format!("{verb} {path}"));
        self.files.push(FileChange { target, base, edits });
        Ok(())
    }

    async fn delete(&mut self, target: Target, path: &str) -> Result<(), ToolError> {
        if self.files.iter().any(|file| file.target == target) {
            return Err(twice(path));
        }
        let base = self.workspace.text(&target).await?;
        self.refuse_changed(&base, path)?;
        self.steps.push(format!("Delete {path}"));
        self.removals.push(FileRemoval { target, base, moved_to: None });
        Ok(())
    }

    /// A file need not have been read to be deleted, but a file that was read must be unchanged.
    fn refuse_changed(&self, file: &FileText, path: &str) -> Result<(), ToolError> {
        match (self.workspace.freshness(file), &file.source) {
            (Freshness::Unread | Freshness::Current, _) => Ok(()),
            (Freshness::Changed, TextSource::Disk | TextSource::Document(_)) => Err(ToolError::new(
                ToolErrorKind::Mismatch,
                format!("`{path}` has changed since it was read"),
                "Read it again before deleting it.",
            )),
        }
    }

    async fn update(
        &mut self,
        target: Target,
        path: &str,
        sections: &[PatchSection],
        moved_to: Option<Target>,
    ) -> Result<(), ToolError> {
        refuse_notebook(&target, path)?;
        let known = self.files.iter().position(|file| file.target == target);
        let base = match known.and_then(|at| self.files[at].base.clone()) {
            Some(base) => base,
            None if known.is_some() => return Err(twice(path)),
            None => self.workspace.text(&target).await?,
        };
        let freshness = self.workspace.freshness(&base);
        refuse_unread(&base, freshness, path)?;
        let first = known.map_or_else(Vec::new, |at| self.files[at].edits.clone());
        let text = apply_edits(&base.text, &first);
        let patched = PatchedText::of(&text, sections, freshness == Freshness::Changed)
            .map_err(|refusal| section_refused(&text, &refusal, path, freshness))?;
        let name = format!("a section of `{path}`");
        self.notes.extend(patched.notes.iter().map(|note| note_of(note, &name, "its new part")));
        let edits = compose_edits(&first, &patched.edits);
        let new_text = apply_edits(&base.text, &edits);
        refuse_unwritable(&base, &new_text, path)?;
        if let Some(new) = moved_to {
            if known.is_some() {
                return Err(twice(path));
            }
            return self.relocate(target, base, path, new, new_text).await;
        }
        if *new_text == *base.text {
            return Err(ToolError::new(
                ToolErrorKind::Mismatch,
                format!("`{path}` was not changed: the patch results in the text that it already has"),
                "Leave the file out of the patch, or give the lines that should stand there.",
            ));
        }
        match known {
            Some(at) => self.files[at].edits = edits,
            None => {
                self.steps.push(format!("Edit {path}"));
                self.files.push(FileChange { target, base: Some(base), edits });
            }
        }
        Ok(())
    }

    async fn relocate(
        &mut self,
        target: Target,
        base: FileText,
        path: &str,
        new: Target,
        new_text: String,
    ) -> Result<(), ToolError> {
        let shown = self.workspace.display(&new);
        self.write(new.clone(), &shown, new_text, "Create").await?;
        self.steps.pop();
        self.steps.push(format!("Move {path} to {shown}"));
        self.removals.push(FileRemoval { target, base, moved_to: Some(new) });
        Ok(())
    }

    fn into_call(self) -> CallPlan {
        let Self { files, removals, steps, notes, .. } = self;
        let mut touches = Vec::with_capacity(files.len() + removals.len());
        for file in &files {
            touches.push(Touch::Write(file.target.clone()));
            if file.base.is_none() {
                touches.extend(missing_parents(&file.target).into_iter().map(Touch::Write));
            }
        }
        touches.extend(removals.iter().map(|removal| Touch::Write(removal.target.clone())));
        let mut title = steps.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
        if let Some(more) = steps.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
            title.push_str(&format!(" and {more} more"));
        }
        let count = files.len() + removals.iter().filter(|removal| removal.moved_to.is_none()).count();
        let counted = format!("Applied the patch to {count} file{}", if count == 1 { "" } else { "s" });
        let summary = [vec![counted], notes].concat().join("\n");
        let label = format!("Kode: {title}");
        let change = ChangeSet { label, summary, files, removals, author: Author::Agent };
        CallPlan { title, touches, action: CallAction::Change(change) }
    }
}

fn no_patch(error: &PatchSyntaxError) -> ToolError {
    ToolError::new(
        ToolErrorKind::InvalidInput,
        format!("apply_patch: `input` is no patch: {error}"),
        "Write the whole patch again in the format of apply_patch. No file was changed.",
    )
}

fn twice(path: &str) -> ToolError {
    ToolError::new(
        ToolErrorKind::InvalidInput,
        format!("apply_patch: `input` does two things to `{path}` that exclude each other"),
        "Put all that should happen to the file below one line `*** ... File:`. No file was changed.",
    )
}

/// The format for APIs that hold a model to a grammar.
const GRAMMAR: &str = include_str!("apply_patch.lark");

const DESCRIPTION: &str = "\
Changes several files at once by a patch in the format below: files are added, changed, moved and deleted. Prefer it for \
changes that belong together; either all of them are made or none.

*** Begin Patch
*** Add File: path/of/new.txt
+every line of the new file
*** Delete File: path/of/old.txt
*** Update File: path/of/changed.txt
*** Move to: path/of/renamed.txt
@@ fn the_part_of_the_file()
 a line that stays
-a line that goes
+a line that comes
*** End Patch

- Read a file first in this session; a patch of an unread file is refused. Paths are relative to the working folder.
- `*** Move to:` is optional, and `@@` may be alone. A line after `@@` is a line of the file above the passage.
- Lines that stay or go are copied exactly, without line numbers. Give 3 lines that stay on either side. Together they occur in the file once, or once below the `@@` line; else the patch is refused.
- `*** End of File` below a passage says that it ends the file. A passage of `+` lines alone is put at the file's end.
- Encoding, line endings and permissions are kept. What the user types meanwhile is kept, too.";

mod moves;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod tests;
