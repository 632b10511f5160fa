//! Changes that the user is asked about: in the ledger as proposals, hunk by hunk, until the prompt is answered.
//!
//! Rule: a proposal never touches a text. AcceptedHunks, it becomes a change under the same name; rejected, it stays where
//! it can be brought back; when its call ends in any other way, it is gone.

use ropey::Rope;

use crate::edits::Edits;
use crate::edits::hunk_lines::HunkLines;
use kode_base::ids::HunkId;
use kode_base::paths::Target;
use kode_text::edit::ledger::review::{HunkKind, HunkState};
use kode_text::edit::ledger::{ChangeOrigin, LedgerEntry, NewHunk, split};
use kode_text::edit::rebase::{Rebase, rebase};
use kode_text::edit::{ChangeSet, FileChange};
use kode_text::file_text::FileText;

/// The hunks of a change that is asked about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proposal {
    /// For each hunk the number of its file in the change set, and its edits on the base of that.
    hunks: Vec<(usize, NewHunk)>,
}

/// The hunks of a proposal that the user has accepted.
#[derive(Clone, Debug, Default)]
pub(crate) struct AcceptedHunks {
    proposal: Proposal,
    /// The hunks that are to be made.
    pub(crate) names: Vec<HunkId>,
    /// The others.
    pub(crate) rejected: Vec<HunkId>,
}

impl Proposal {
    fn of(change: &ChangeSet) -> Self {
        let files = change.files.iter().enumerate();
        let hunks = files.flat_map(|(number, file)| {
            let hunks = split(file.old_text(), &file.edits).into_iter();
            hunks.map(move |edits| (number, NewHunk { id: HunkId::generate(), edits }))
        });
        Self { hunks: hunks.collect() }
    }

    /// The lines of its hunks in one file of the change set.
    pub(crate) fn lines(&self, number: usize, file: &FileChange) -> HunkLines {
        let hunks = self.hunks.iter().filter(|(of, _)| *of == number).map(|(_, hunk)| hunk);
        HunkLines::of(file.old_text(), &file.new_text(), hunks)
    }

    /// The names of the hunks, in their order.
    pub(crate) fn names(&self) -> Vec<HunkId> {
        self.hunks.iter().map(|(_, hunk)| hunk.id.clone()).collect()
    }

    /// The proposal with these hunks accepted; `None` means all.
    pub(crate) fn accepted(self, hunks: Option<&[HunkId]>) -> AcceptedHunks {
        let is_accepted = |id: &HunkId| hunks.is_none_or(|hunks| hunks.contains(id));
        let (names, rejected) = self.names().into_iter().partition(is_accepted);
        AcceptedHunks { proposal: self, names, rejected }
    }
}

impl AcceptedHunks {
    /// Keeps the accepted hunks in the change, and returns the rest. Files are removed only with everything accepted.
    pub(crate) fn split(&self, change: &mut ChangeSet) -> ChangeSet {
        let part_of = |set: &ChangeSet, names: &[HunkId]| {
            let files = set.files.iter().enumerate().map(|(number, file)| {
                let hunks = self.proposal.hunks.iter();
                let meant = hunks.filter(|(of, hunk)| *of == number && names.contains(&hunk.id));
                let edits = meant.flat_map(|(_, hunk)| hunk.edits.clone()).collect();
                FileChange { edits, ..file.clone() }
            });
            files.filter(|file| !file.edits.is_empty()).collect()
        };
        let left_out = ChangeSet { files: part_of(change, &self.rejected), ..change.clone() };
        change.files = part_of(change, &self.names);
        // The text of a moved file could be in the refused part.
        change.removals.clear();
        left_out
    }
}

impl Edits {
    /// Enters a change that the user is asked about.
    pub(crate) async fn propose(&self, set: &ChangeSet, change: &ChangeOrigin) -> Proposal {
        let proposal = Proposal::of(set);
        for (number, file) in set.files.iter().enumerate() {
            let target = self.followed_as(&file.target).await;
            let hunks = proposal.hunks.iter().filter(|(of, _)| *of == number).map(|(_, hunk)| hunk.clone());
            self.propose_file(&target, file, change, hunks.collect()).await;
        }
        proposal
    }

    async fn propose_file(
        &self,
        target: &Target,
        file: &FileChange,
        change: &ChangeOrigin,
        hunks: Vec<NewHunk>,
    ) {
        let base = self.base_of(target, file.old_text()).await;
        self.feed.follow(target);
        let now = self.workspace.text(target).await.ok();
        let version = now.as_ref().and_then(FileText::version);
        let now = now.map(|file| file.text).unwrap_or_default();
        let mut book = self.synced();
        self.begin_tracking(&mut book, target, base, file.old_text());
        self.reconcile_read(&mut book, target, &Rope::from_str(&now), version);
        let now = book.ledger.text(target).map(Rope::to_string).unwrap_or_default();
        // The user may have typed since the change was planned.
        let moved = hunks.into_iter().filter_map(|hunk| match rebase(file.old_text(), &hunk.edits, &now) {
            Rebase::Clean(edits) => Some(NewHunk { edits, ..hunk }),
            Rebase::AlreadyApplied | Rebase::Conflict { .. } => None,
        });
        let hunks: Vec<NewHunk> = moved.collect();
        let kind = if file.base.is_none() { HunkKind::Created } else { change.kind };
        let change = ChangeOrigin { kind, ..change.clone() };
        self.enter(&mut book, LedgerEntry::Changed { target: target.clone(), change, hunks }, None);
    }

    /// The proposals that the user has refused one by one, while the prompt was still open.
    pub(crate) fn refused_proposals(&self, names: &[HunkId]) -> Vec<HunkId> {
        let book = self.book();
        names.iter().filter(|name| book.decided.get(name) == Some(&false)).cloned().collect()
    }

    /// Forgets these proposals as far as they have not become changes.
    pub(crate) fn withdraw_proposals(&self, names: &[HunkId]) {
        let withdraw = |target: &Target, hunks| LedgerEntry::Withdrawn { target: target.clone(), hunks };
        self.end_proposals(names, withdraw);
    }

    /// Withdraws all proposals: no prompt asks about them any more.
    pub(crate) fn withdraw_all_proposals(&self) {
        let names: Vec<HunkId> = {
            let book = self.synced();
            let hunks = book.ledger.review().into_iter().flat_map(|file| file.hunks);
            hunks.filter(|hunk| hunk.state == HunkState::Proposed).map(|hunk| hunk.id).collect()
        };
        self.withdraw_proposals(&names);
    }

    /// Notes that the user does not want these proposals now.
    pub(crate) fn reject_proposals(&self, names: &[HunkId]) {
        let reject = |target: &Target, hunks: Vec<HunkId>| {
            let moves = hunks.into_iter().map(|hunk| (hunk, HunkState::Undone)).collect();
            LedgerEntry::Moved { target: target.clone(), resolution: None, reverts: None, moves }
        };
        self.end_proposals(names, reject);
    }

    fn end_proposals(&self, names: &[HunkId], entry: impl Fn(&Target, Vec<HunkId>) -> LedgerEntry) {
        let mut book = self.synced();
        let open = names.iter().filter(|name| book.ledger.state(name) == Some(HunkState::Proposed));
        let open: Vec<HunkId> = open.cloned().collect();
        let mut targets: Vec<Target> =
            open.iter().filter_map(|name| book.ledger.target_of(name).cloned()).collect();
        targets.sort_unstable();
        targets.dedup();
        for target in &targets {
            let of_file = open.iter().filter(|name| book.ledger.target_of(name) == Some(target));
            let of_file: Vec<HunkId> = of_file.cloned().collect();
            self.enter(&mut book, entry(target, of_file), None);
        }
        book.decided.retain(|hunk, _| !names.contains(hunk));
    }
}
