//! Taking the changes of a session's worktree over into the workspace.
//!
//! Rule: a conflict in one file stops all. The user's own changes in the workspace, saved or not, are merged with; where both changed the same
//! lines nothing is written. Merged files go the way of the agent's own changes: they are reviewed, undone and journaled so.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::edits::Edits;
use crate::edits::resolve::wanted;
use crate::gate::resolved;
use kode_base::blocking;
use kode_base::encoding::decode;
use kode_base::ids::{CallId, ChangeId, TurnId};
use kode_base::paths::{ResolvedPaths, Target};
use kode_process::worktree::Worktree;
use kode_process::worktree::changes::{ChangedFile, WorktreeChanges};
use kode_text::edit::diff::line_changes;
use kode_text::edit::ledger::ChangeOrigin;
use kode_text::edit::ledger::review::{HunkKind, ReviewAction, Selection};
use kode_text::edit::rebase::{Rebase, rebase};
use kode_text::edit::{Author, ChangeSet, FileChange, FileRemoval, TextEdit};
use kode_text::workspace::real_paths::RealPaths;
use kode_text::workspace::{ApplyError, ReadError, Workspace};

/// The most conflicts that are listed.
const LISTED: usize = 20;

/// The outcome of a merge.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MergeReport {
    /// The changed files of the workspace, as people see them.
    pub(crate) merged: Vec<String>,
    /// The files that the workspace has already so.
    pub(crate) same: usize,
    /// The changed files of the worktree that are no text, with the reason.
    pub(crate) left_out: Vec<(PathBuf, &'static str)>,
}

/// Why nothing was merged.
#[derive(Debug)]
pub(crate) enum MergeFailure {
    /// The same lines changed in the workspace.
    Conflicts(Vec<MergeConflict>),
    /// Documents of the worktree are not saved.
    Unsaved(Vec<String>),
    /// A file cannot be read or written.
    Failed(String),
    /// The system refused a file after others were changed.
    Partial(String),
}

/// A file that changed in both.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MergeConflict {
    /// The file, as people see it.
    path: String,
    /// How.
    reason: String,
}

/// The plan for one file of the workspace.
enum FilePlan {
    Change(FileChange),
    Remove(FileRemoval),
    Same,
    NoText(&'static str),
    Conflict(String),
}

impl fmt::Display for MergeFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflicts(conflicts) => {
                formatter.write_str(
                    "Nothing was merged, because these files changed in the workspace as well:\n",
                )?;
                for MergeConflict { path, reason } in conflicts.iter().take(LISTED) {
                    writeln!(formatter, "- `{path}`: {reason}")?;
                }
                let more = conflicts.len().saturating_sub(LISTED);
                if more > 0 {
                    writeln!(formatter, "- {more} more")?;
                }
                formatter.write_str(
                    "\nBring the workspace's version into the worktree and merge again: commit it there, and have the agent \
                     run `git merge` with that branch in its worktree.",
                )
            }
            Self::Unsaved(paths) => write!(
                formatter,
                "Nothing was merged, because files of the worktree are not saved in your editor: {}. Save them and merge again.",
                paths.join(", ")
            ),
            Self::Failed(reason) => write!(formatter, "Nothing was merged: {reason}"),
            Self::Partial(reason) => write!(
                formatter,
                "The merge broke off: {reason}\nThe changes before it are under review. Merge again when the cause is gone."
            ),
        }
    }
}

impl Edits {
    /// Merges the changes of the session's worktree into the workspace that it was made of, as changes to review. The changes in
    /// the worktree count as kept then.
    ///
    /// # Errors
    /// [`MergeFailure`]; the workspace is as it was then, but for [`MergeFailure::Partial`].
    pub(crate) async fn merge_worktree(
        &self,
        worktree: &Worktree,
        into: &Arc<Workspace>,
        changes: &WorktreeChanges,
        cancel: &CancellationToken,
    ) -> Result<MergeReport, MergeFailure> {
        let unsaved = self.workspace.unsaved_documents().await;
        let unsaved: Vec<_> = unsaved
            .iter()
            .filter(|target| target.file().is_some_and(|path| path.is_within(&worktree.path)))
            .map(|target| format!("`{}`", self.workspace.display(target)))
            .collect();
        if !unsaved.is_empty() {
            return Err(MergeFailure::Unsaved(unsaved));
        }
        let mut report = MergeReport { left_out: changes.left_out.clone(), ..MergeReport::default() };
        let (mut files, mut removals, mut conflicts) = (Vec::new(), Vec::new(), Vec::new());
        let target_of = |file: &ChangedFile| Target::File(worktree.of.join(&file.path));
        let (inside, judged) = inside(into, changes.files.iter().map(target_of).collect()).await;
        for file in &changes.files {
            let target = target_of(file);
            if !inside.contains(&target) {
                report.left_out.push((file.path.clone(), "it leads out of the workspace folders"));
                continue;
            }
            let path = into.display(&target);
            match plan(&target, file, into).await.map_err(|error| MergeFailure::Failed(error.to_string()))? {
                FilePlan::Change(change) => files.push(change),
                FilePlan::Remove(removal) => removals.push(removal),
                FilePlan::Same => {
                    report.same += 1;
                    continue;
                }
                FilePlan::NoText(reason) => {
                    report.left_out.push((file.path.clone(), reason));
                    continue;
                }
                FilePlan::Conflict(reason) => {
                    conflicts.push(MergeConflict { path, reason });
                    continue;
                }
            }
            report.merged.push(path);
        }
        if !conflicts.is_empty() {
            return Err(MergeFailure::Conflicts(conflicts));
        }
        if !report.merged.is_empty() {
            self.write((into, &judged), (files, removals), cancel).await?;
        }
        self.keep_in(worktree);
        self.core.sync().await;
        Ok(report)
    }

    async fn write(
        &self,
        (into, judged): (&Workspace, &ResolvedPaths),
        (files, removals): (Vec<FileChange>, Vec<FileRemoval>),
        cancel: &CancellationToken,
    ) -> Result<(), MergeFailure> {
        let turn = self.core.state().rewinds.newest_turn().cloned().unwrap_or_else(TurnId::generate);
        let (id, call, kind) = (ChangeId::generate(), CallId::generate(), HunkKind::Text);
        let change = ChangeOrigin { id, turn, call, kind, permission: None };
        let (label, summary) = ("Kode: Merge the worktree".to_owned(), String::new());
        let set = ChangeSet { label, summary, files, removals, author: Author::User };
        let applied = self.apply_change_in((into, judged), set, &change, &[], cancel).await;
        applied.map(drop).map_err(|error| match &error {
            ApplyError::Partial { .. } => MergeFailure::Partial(error.to_string()),
            _ => MergeFailure::Failed(error.to_string()),
        })
    }

    /// Keeps all changes in the worktree: they are reviewed in the workspace.
    fn keep_in(&self, worktree: &Worktree) {
        let mut book = self.synced();
        let is_in = |target: &Target| target.file().is_some_and(|path| path.is_within(&worktree.path));
        let selected =
            book.ledger.select(&Selection::Session).into_iter().filter(|(target, _)| is_in(target));
        let kept = selected
            .map(|(target, ids)| (target.clone(), wanted(&book.ledger, &target, &ids, ReviewAction::Keep)))
            .collect();
        self.keep(&mut book, kept);
    }
}

/// The files of a merge that lie in the folders of the workspace, and where they led when that was checked. Links are followed: a
/// folder of the worktree may be a link in the workspace.
async fn inside(into: &Arc<Workspace>, targets: Vec<Target>) -> (BTreeSet<Target>, ResolvedPaths) {
    let into = Arc::clone(into);
    blocking(move || {
        let real_paths = RealPaths::default();
        let inside: BTreeSet<_> =
            targets.into_iter().filter(|target| into.contains_by(target, &real_paths)).collect();
        let judged = resolved(inside.iter().filter_map(Target::file), &real_paths);
        (inside, judged)
    })
    .await
}

async fn plan(target: &Target, file: &ChangedFile, into: &Workspace) -> Result<FilePlan, ReadError> {
    let text = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(decode).transpose();
    let (Ok(before), Ok(after)) = (text(&file.before), text(&file.after)) else {
        return Ok(FilePlan::NoText("no text"));
    };
    let (before, after) = (before.map(|text| text.text), after.map(|text| text.text));
    let now = match into.text(target).await {
        Ok(now) => Some(now),
        Err(ReadError::NotFound { .. }) => None,
        Err(error) => return Err(error),
    };
    let target = target.clone();
    Ok(match (before, after, now) {
        (None, Some(after), None) => {
            let edits = vec![TextEdit { range: 0..0, new_text: after }];
            FilePlan::Change(FileChange { target, base: None, edits })
        }
        (_, Some(after), Some(now)) if *now.text == *after => FilePlan::Same,
        (Some(before), Some(after), Some(now)) => {
            match rebase(&before, &line_changes(&before, &after), &now.text) {
                Rebase::Clean(edits) => FilePlan::Change(FileChange { target, base: Some(now), edits }),
                Rebase::AlreadyApplied => FilePlan::Same,
                Rebase::Conflict { line, .. } => FilePlan::Conflict(format!("line {line}")),
            }
        }
        (Some(before), None, Some(now)) if *now.text == *before => {
            FilePlan::Remove(FileRemoval { target, base: now, moved_to: None })
        }
        (Some(_), None, Some(_)) => FilePlan::Conflict("removed in the worktree".to_owned()),
        (Some(_), Some(_), None) => FilePlan::Conflict("removed in the workspace".to_owned()),
        (None, Some(_), Some(_)) => FilePlan::Conflict("added in both".to_owned()),
        (_, None, None) | (None, None, Some(_)) => FilePlan::Same,
    })
}
