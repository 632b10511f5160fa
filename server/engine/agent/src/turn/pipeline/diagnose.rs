//! The diagnostics of edited files: what a change added and what it removed, for the model.
//!
//! Rule: a change waits two seconds at most for each of both looks, and never for a server that the user has not configured and no
//! call has started. Those of the editor are taken where its client has them.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::edits::difference::{DiagnosticDifference, anywhere};
use crate::edits::look::{Look, MAX_FILES, SETTLE, look};
use crate::edits::{Edits, FileComparison, HunkReports, Proposal};
use kode_base::paths::Target;
use kode_base::proposed::ProposedDiagnostics;
use kode_text::edit::ledger::ChangeOrigin;
use kode_text::edit::{AppliedFile, ChangeSet};
use kode_text::host::{Diagnostic, FileDiagnostics};
use kode_text::workspace::Workspace;
use kode_text::workspace::language::{ServerStart, TriedFile};

/// The longest trial of a proposed change.
const TRIAL_LIMIT: Duration = Duration::from_millis(500);

/// The diagnostics of the files of a change before it.
pub(super) struct DiagnosticsBefore {
    targets: Vec<Target>,
    files: Vec<FileDiagnostics>,
}

impl DiagnosticsBefore {
    /// Asks the servers of the files, as far as they run.
    pub(super) async fn of(change: &ChangeSet, workspace: &Workspace, cancel: &CancellationToken) -> Self {
        let targets: Vec<Target> =
            change.files.iter().take(MAX_FILES).map(|file| file.target.clone()).collect();
        // A file that is made has none.
        let existing: Vec<Target> = change
            .files
            .iter()
            .filter(|file| file.base.is_some() && targets.contains(&file.target))
            .map(|file| file.target.clone())
            .collect();
        let wanted = Look { targets: &existing, settle: Duration::ZERO, start: ServerStart::Configured };
        let files = look(workspace, wanted, cancel).await;
        Self { targets, files }
    }

    /// The difference that the change made, as text for the model; empty if absent. The hunks of the change get theirs.
    pub(super) async fn compare(
        self,
        (applied, change): (&[AppliedFile], &ChangeOrigin),
        (edits, workspace): (&Edits, &Workspace),
        cancel: &CancellationToken,
    ) -> String {
        let Some(languages) = workspace.languages() else { return String::new() };
        let on_disk: Vec<(Target, bool)> = applied
            .iter()
            .filter(|file| file.shown.is_none())
            .map(|file| (file.target.clone(), file.created))
            .collect();
        languages.files_changed(workspace, &on_disk).await;
        let texts = edits.texts_of(&self.targets).await;
        let wanted = Look { targets: &self.targets, settle: SETTLE, start: ServerStart::Configured };
        let after = look(workspace, wanted, cancel).await;
        let before = |target: &Target| self.files.iter().find(|file| file.target == *target);
        let mut difference = DiagnosticDifference::default();
        let mut compared = Vec::with_capacity(after.len());
        for file in &after {
            let was_created = applied.iter().any(|one| one.created && one.target == file.target);
            let known = before(&file.target).filter(|known| !known.is_outdated);
            if let Some((target, text)) = texts.get(&file.target) {
                let none = was_created.then(Vec::new);
                compared.push(FileComparison {
                    target: target.clone(),
                    text: text.clone(),
                    before: known.map(|known| known.diagnostics.clone()).or(none),
                    after: (!file.is_outdated).then(|| file.diagnostics.clone()),
                });
            }
            match (known, file.is_outdated) {
                (_, true) => difference.is_open = true,
                (Some(known), false) => {
                    difference.add(&file.target, (&known.diagnostics, &file.diagnostics), &[&anywhere]);
                }
                (None, false) => {
                    difference.is_first |= !was_created;
                    difference.add(&file.target, (&[], &file.diagnostics), &[]);
                }
            }
        }
        edits.report_change(&change.call, compared);
        difference.text(workspace)
    }
}

/// The diagnostics that a proposed change would add and remove.
pub(super) struct TriedChange {
    /// Those of the whole change.
    pub(super) whole: ProposedDiagnostics,
    /// Those of its hunks.
    pub(super) parts: HunkReports,
}

impl TriedChange {
    /// Has servers that run check a proposed change; `None` where none of them reports in time.
    pub(super) async fn of(change: &ChangeSet, proposal: &Proposal, workspace: &Workspace) -> Option<Self> {
        let languages = workspace.languages()?;
        let files = change.files.get(..MAX_FILES).unwrap_or(&change.files);
        let tried = languages.try_changes(workspace, files, TRIAL_LIMIT).await?;
        let mut lines = BTreeMap::new();
        for (number, file) in files.iter().enumerate() {
            // A document is named as the editor names it.
            let open = workspace.open_document(&file.target).await;
            let target = open.map_or_else(|| file.target.clone(), |document| document.target());
            lines.insert(target, proposal.lines(number, file));
        }
        let (mut whole, mut parts) = (DiagnosticDifference::default(), HunkReports::default());
        for TriedFile { before, after } in &tried {
            let Some(lines) = lines.get(&after.target) else { continue };
            let same_line = |old: &Diagnostic, new: &Diagnostic| lines.moved(old.line) == Some(new.line);
            let same_part = |old: &Diagnostic, new: &Diagnostic| {
                lines.hunk_before(old.line) == lines.hunk_after(new.line)
            };
            let both = (before.diagnostics.as_slice(), after.diagnostics.as_slice());
            whole.add(&after.target, both, &[&same_line, &anywhere]);
            let mut of_file = DiagnosticDifference::default();
            of_file.add(&after.target, both, &[&same_line, &same_part]);
            parts.add(of_file, lines);
        }
        Some(Self { whole: whole.proposed(workspace), parts })
    }
}
