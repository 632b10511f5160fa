//! The diagnostics that proposed hunks would add and remove.
//!
//! Rule: a report is of one text. It goes with every change of a followed text, because the change may have made it wrong, and
//! it is in no journal.

use std::collections::BTreeMap;

use crate::edits::Edits;
use crate::edits::difference::DiagnosticDifference;
use crate::edits::hunk_lines::HunkLines;
use kode_base::ids::HunkId;
use kode_base::paths::Target;
use kode_record::event::Event;
use kode_text::edit::ChangeSet;
use kode_text::edit::ledger::review::{FileReview, HunkState};
use kode_text::edit::ledger::{Ledger, LedgerEntry};
use kode_text::workspace::Workspace;

/// The diagnostics of proposed hunks, and of their files outside of the hunks.
#[derive(Debug, Default)]
pub(crate) struct HunkReports {
    pub(crate) hunks: BTreeMap<HunkId, DiagnosticDifference>,
    pub(crate) files: BTreeMap<Target, DiagnosticDifference>,
}

impl HunkReports {
    /// Adds the difference in one file, each diagnostic at the hunk whose line it is in.
    pub(crate) fn add(&mut self, of_file: DiagnosticDifference, lines: &HunkLines) {
        for (target, one) in of_file.added {
            self.part(lines.hunk_after(one.line), &target).added.push((target, one));
        }
        for (target, one) in of_file.removed {
            self.part(lines.hunk_before(one.line), &target).removed.push((target, one));
        }
    }

    fn part(&mut self, hunk: Option<&HunkId>, target: &Target) -> &mut DiagnosticDifference {
        match hunk {
            Some(hunk) => self.hunks.entry(hunk.clone()).or_default(),
            None => self.files.entry(target.clone()).or_default(),
        }
    }

    /// Adds the known diagnostics to the proposed hunks of a file, and returns those of the file outside of them.
    pub(crate) fn fill_in(&self, file: &mut FileReview, workspace: &Workspace) -> DiagnosticDifference {
        for hunk in file.hunks.iter_mut().filter(|hunk| hunk.state == HunkState::Proposed) {
            hunk.diagnostics = self.hunks.get(&hunk.id).map(|known| known.clone().proposed(workspace));
        }
        self.files.get(&file.target).cloned().unwrap_or_default()
    }

    /// Drops the reports that an entry outdates, before the ledger has it, and returns their files.
    pub(crate) fn drop_outdated(&mut self, entry: &LedgerEntry, ledger: &Ledger) -> Vec<Target> {
        let is_proposal = |id: &HunkId| ledger.state(id) == Some(HunkState::Proposed);
        match entry {
            // The text stays; the proposals of other prompts wait on.
            LedgerEntry::Moved { target, moves, .. } if moves.iter().all(|(id, _)| is_proposal(id)) => {
                self.drop_of(target, moves.iter().map(|(id, _)| id))
            }
            LedgerEntry::Withdrawn { target, hunks } => self.drop_of(target, hunks.iter()),
            LedgerEntry::Changed { change, .. } if change.permission.is_some() => Vec::new(),
            LedgerEntry::Typed { .. }
            | LedgerEntry::Changed { .. }
            | LedgerEntry::Replaced { .. }
            | LedgerEntry::Moved { .. }
            | LedgerEntry::Unmade { .. } => {
                let Self { hunks, files } = std::mem::take(self);
                let mut targets: Vec<Target> =
                    hunks.keys().filter_map(|hunk| ledger.target_of(hunk).cloned()).collect();
                targets.extend(files.into_keys());
                targets.sort_unstable();
                targets.dedup();
                targets
            }
            LedgerEntry::Tracked { .. } | LedgerEntry::Before { .. } | LedgerEntry::Told { .. } => Vec::new(),
        }
    }

    fn drop_of<'a>(&mut self, target: &Target, hunks: impl Iterator<Item = &'a HunkId>) -> Vec<Target> {
        let mut is_known = false;
        for hunk in hunks {
            is_known |= self.hunks.remove(hunk).is_some();
        }
        is_known |= self.files.remove(target).is_some();
        is_known.then(|| target.clone()).into_iter().collect()
    }
}

impl Edits {
    /// Adds to the proposed hunks of a change what they would add and remove, unless its files have other texts by now.
    pub(crate) async fn report_diagnostics(&self, set: &ChangeSet, reports: HunkReports) {
        let mut targets = Vec::with_capacity(set.files.len());
        for file in &set.files {
            targets.push(self.followed_as(&file.target).await);
        }
        let mut book = self.synced();
        let is_current = set
            .files
            .iter()
            .zip(&targets)
            .all(|(file, target)| book.ledger.text(target).is_some_and(|text| *text == *file.old_text()));
        if !is_current || (reports.hunks.is_empty() && reports.files.is_empty()) {
            return;
        }
        book.reports.hunks.extend(reports.hunks);
        book.reports.files.extend(reports.files);
        drop(book);
        self.core.publish(Event::EditsChanged { targets });
    }
}
