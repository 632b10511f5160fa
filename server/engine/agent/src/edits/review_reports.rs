//! The diagnostics that hunks in the text have added and removed since before their changes.
//!
//! Rule: kept by the lines of the hunks, so that they move with the text. Diagnostics of a text that the user has changed only take from a
//! report, because those of the user's text are no part of a hunk. A report goes when the hunk is decided, and it is in no journal.

use std::collections::BTreeMap;

use ropey::Rope;

use crate::edits::difference::{DiagnosticDifference, anywhere, is_same, matters};
use crate::edits::hunk_lines::HunkLines;
use kode_base::ids::{CallId, HunkId};
use kode_base::paths::Target;
use kode_text::edit::ledger::Ledger;
use kode_text::edit::ledger::review::{FileReview, HunkState};
use kode_text::host::Diagnostic;
use kode_text::workspace::Workspace;

/// The most diagnostics of a file before or after a change; a file with more has no report.
const MAX_DIAGNOSTICS: usize = 1_000;

/// The diagnostics of a changed file before and after the change.
#[derive(Debug)]
pub(crate) struct FileComparison {
    /// The file, as the ledger follows it.
    pub(crate) target: Target,
    /// The text that those after the change are of.
    pub(crate) text: Rope,
    /// Those before the change; `None` where no server had checked that text.
    pub(crate) before: Option<Vec<Diagnostic>>,
    /// Those after the change; `None` while a server has not finished.
    pub(crate) after: Option<Vec<Diagnostic>>,
}

/// The reports about all files with hunks in the text.
#[derive(Debug, Default)]
pub(crate) struct ReviewReports {
    files: BTreeMap<Target, FileReport>,
}

/// The reports about the hunks of one file.
#[derive(Debug, Default)]
struct FileReport {
    /// The text that they are about.
    text: Rope,
    hunks: BTreeMap<HunkId, PartReport>,
    /// The report about the lines of no hunk.
    outside: PartReport,
    /// Diagnostics to compare the next ones with, as long as the text is the same.
    earlier: Option<EarlierDiagnostics>,
}

/// Diagnostics of a text, or of the text before the newest changes of it.
#[derive(Clone, Debug)]
struct EarlierDiagnostics {
    list: Vec<Diagnostic>,
    /// The calls whose changes came between.
    calls: Vec<CallId>,
}

/// The diagnostics that a hunk, or a file outside of its hunks, has added and removed.
#[derive(Debug, Default)]
struct PartReport {
    /// Their lines count from 0 at the first line of the hunk, or from 1 in the file.
    added: Vec<Diagnostic>,
    /// Their lines are those of the text before.
    removed: Vec<Diagnostic>,
    /// Those of others in the same lines that say the same as an added one; lines as in `added`.
    same: Vec<Diagnostic>,
}

impl ReviewReports {
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// At most `limit` files with reports, those first whose text has changed or that wait for a server, with their texts now.
    pub(crate) fn files(&self, ledger: &Ledger, limit: usize) -> Vec<(Target, Rope)> {
        let text = |(target, file): (&Target, &FileReport)| {
            let now = ledger.text(target)?.clone();
            Some((is_unchanged(&file.text, &now) && file.earlier.is_none(), target.clone(), now))
        };
        let mut files: Vec<_> = self.files.iter().filter_map(text).collect();
        files.sort_by_key(|(is_settled, _, _)| *is_settled);
        files.into_iter().take(limit).map(|(_, target, now)| (target, now)).collect()
    }

    /// Enters the diagnostics before and after a change by this call. Returns whether a report is different now.
    pub(crate) fn enter(&mut self, review: &FileReview, call: &CallId, compared: FileComparison) -> bool {
        let FileComparison { target, text, before, after } = compared;
        let earlier = self.files.get_mut(&target).and_then(|file| file.earlier.take());
        let earlier = match (before, earlier) {
            (Some(list), _) => EarlierDiagnostics { list, calls: vec![call.clone()] },
            (None, Some(mut earlier)) => {
                earlier.calls.push(call.clone());
                earlier
            }
            (None, None) => return false,
        };
        if earlier.list.len() > MAX_DIAGNOSTICS {
            return self.drop_file(&target);
        }
        let file = self.files.entry(target.clone()).or_default();
        file.text = text.clone();
        file.earlier = Some(earlier);
        let is_changed = match &after {
            Some(after) => self.compare(review, &text, after),
            None => false,
        };
        if let Some(list) = after.filter(|after| after.len() <= MAX_DIAGNOSTICS) {
            // Later diagnostics of the same text are of this change as well.
            let file = self.files.entry(target).or_default();
            file.text = text;
            file.earlier = Some(EarlierDiagnostics { list, calls: Vec::new() });
        }
        is_changed
    }

    /// Drops the report of a file. Returns whether it had one to show.
    fn drop_file(&mut self, target: &Target) -> bool {
        self.files.remove(target).is_some_and(|file| !file.is_empty())
    }

    /// Brings the reports of a file to its diagnostics now. Returns whether one of them is different.
    pub(crate) fn compare(&mut self, review: &FileReview, text: &Rope, now: &[Diagnostic]) -> bool {
        if now.len() > MAX_DIAGNOSTICS {
            return self.drop_file(&review.target);
        }
        let Some(file) = self.files.get_mut(&review.target) else { return false };
        let earlier = file.earlier.take().filter(|_| is_unchanged(&file.text, text));
        file.text = text.clone();
        let before = file.shown();
        if let Some(earlier) = earlier {
            file.add(review, &earlier, now);
        }
        file.follow(review, now);
        let is_changed = before != file.shown();
        if file.is_empty() {
            self.files.remove(&review.target);
        }
        is_changed
    }

    /// Drops the report of a file that no server checks any more, unless its text is still that of the report. Returns whether it
    /// was dropped.
    pub(crate) fn drop_unchecked(&mut self, target: &Target, text: &Rope) -> bool {
        let Some(file) = self.files.get_mut(target) else { return false };
        file.earlier = None;
        if is_unchanged(&file.text, text) && !file.is_empty() {
            return false;
        }
        self.drop_file(target)
    }

    /// Forgets what the next diagnostics of a file are compared with: the user has changed its text.
    pub(crate) fn forget_earlier(&mut self, target: &Target) {
        if let Some(file) = self.files.get_mut(target) {
            file.earlier = None;
        }
    }

    /// Drops the reports of hunks that are no longer in review.
    pub(crate) fn drop_decided(&mut self, ledger: &Ledger) {
        let waits = |id: &HunkId| matches!(ledger.state(id), Some(HunkState::Applied | HunkState::Conflict));
        self.files.retain(|target, file| {
            file.hunks.retain(|id, _| waits(id));
            !file.hunks.is_empty() || !ledger.applied(target).is_empty()
        });
    }

    /// Adds the reports to the hunks of a file, and that of the file outside of them to `outside`.
    pub(crate) fn fill_in(
        &self,
        file: &mut FileReview,
        outside: &mut DiagnosticDifference,
        workspace: &Workspace,
    ) {
        let Some(report) = self.files.get(&file.target) else { return };
        for hunk in file.hunks.iter_mut().filter(|hunk| is_in_review(hunk.state)) {
            let Some(part) = report.hunks.get(&hunk.id).filter(|part| !part.is_empty()) else { continue };
            let last = u32::try_from(hunk.lines.len().saturating_sub(1)).unwrap_or(u32::MAX);
            let first = number(hunk.lines.start) + 1;
            let difference = part.difference(&file.target, |line| first + line.min(last));
            hunk.diagnostics = Some(difference.proposed(workspace));
        }
        if file.hunks.iter().any(|hunk| is_in_review(hunk.state)) {
            let of_file = report.outside.difference(&file.target, |line| line);
            outside.added.extend(of_file.added);
            outside.removed.extend(of_file.removed);
        }
    }
}

impl FileReport {
    /// Adds the diagnostics that are new or gone since earlier ones.
    fn add(&mut self, review: &FileReview, earlier: &EarlierDiagnostics, now: &[Diagnostic]) {
        let lines = HunkLines::of_review(review, &earlier.calls);
        let same_line = |old: &Diagnostic, new: &Diagnostic| lines.moved(old.line) == Some(new.line);
        let same_part =
            |old: &Diagnostic, new: &Diagnostic| lines.hunk_before(old.line) == lines.hunk_after(new.line);
        let mut difference = DiagnosticDifference::default();
        let same_offset = |old: &Diagnostic, new: &Diagnostic| lines.has_same_offset(old.line, new.line);
        difference.add(&review.target, (&earlier.list, now), &[&same_line, &same_offset, &same_part]);
        // A diagnostic that an earlier change added and this one takes back is neither new nor gone.
        difference.added.retain(|(_, one)| !self.take_back(one, |part| &mut part.removed));
        difference.removed.retain(|(_, one)| !self.take_back(one, |part| &mut part.added));
        for (_, one) in difference.added {
            let hunk = lines.hunk_after(one.line);
            let first = hunk.and_then(|hunk| lines.first_line(hunk)).unwrap_or_default();
            let line = one.line.saturating_sub(first);
            self.part(hunk).added.push(Diagnostic { line, ..one });
        }
        for (_, one) in difference.removed {
            self.part(lines.hunk_before(one.line)).removed.push(one);
        }
    }

    fn take_back(
        &mut self,
        one: &Diagnostic,
        list: impl Fn(&mut PartReport) -> &mut Vec<Diagnostic>,
    ) -> bool {
        let parts = self.hunks.values_mut().chain([&mut self.outside]);
        for known in parts.map(list) {
            if let Some(at) = known.iter().position(|other| is_same(one, other)) {
                known.swap_remove(at);
                return true;
            }
        }
        false
    }

    fn part(&mut self, hunk: Option<&HunkId>) -> &mut PartReport {
        match hunk {
            Some(hunk) => self.hunks.entry(hunk.clone()).or_default(),
            None => &mut self.outside,
        }
    }

    /// Takes the lines of added diagnostics as they are now, and drops those that the server has withdrawn.
    fn follow(&mut self, review: &FileReview, now: &[Diagnostic]) {
        let lines = HunkLines::of_review(review, &[]);
        let mut parts: BTreeMap<Option<&HunkId>, Vec<Diagnostic>> = BTreeMap::new();
        for one in now.iter().filter(|one| matters(one)) {
            let hunk = lines.hunk_after(one.line);
            let first = hunk.and_then(|hunk| lines.first_line(hunk)).unwrap_or_default();
            let one = Diagnostic { line: one.line.saturating_sub(first), ..one.clone() };
            parts.entry(hunk).or_default().push(one);
        }
        for (hunk, part) in &mut self.hunks {
            part.follow(parts.remove(&Some(hunk)).unwrap_or_default());
        }
        self.outside.follow(parts.remove(&None).unwrap_or_default());
        self.hunks.retain(|_, part| !part.is_empty());
    }

    /// The added and removed diagnostics of all parts.
    fn shown(&self) -> Vec<(Option<HunkId>, Vec<Diagnostic>, Vec<Diagnostic>)> {
        let hunks = self.hunks.iter().map(|(id, part)| (Some(id.clone()), part));
        let parts = hunks.chain([(None, &self.outside)]).filter(|(_, part)| !part.is_empty());
        parts.map(|(id, part)| (id, part.added.clone(), part.removed.clone())).collect()
    }

    fn is_empty(&self) -> bool {
        self.hunks.values().all(PartReport::is_empty) && self.outside.is_empty()
    }
}

impl PartReport {
    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }

    /// Those at their old lines are the same; then those of others are found before the added ones.
    fn follow(&mut self, mut left: Vec<Diagnostic>) {
        let same_line = |one: &Diagnostic, other: &Diagnostic| one.line == other.line;
        let (mut added, missing) = pair(std::mem::take(&mut self.added), &mut left, same_line);
        let (mut same, others) = pair(std::mem::take(&mut self.same), &mut left, same_line);
        same.extend(pair(others, &mut left, anywhere).0);
        added.extend(pair(missing, &mut left, anywhere).0);
        added.sort_by_key(|one| (one.line, one.column));
        left.retain(|one| added.iter().any(|known| is_same(known, one)));
        same.extend(left);
        (self.added, self.same) = (added, same);
    }

    fn difference(&self, target: &Target, line: impl Fn(u32) -> u32) -> DiagnosticDifference {
        let added = self.added.iter().map(|one| Diagnostic { line: line(one.line), ..one.clone() });
        DiagnosticDifference {
            added: added.map(|one| (target.clone(), one)).collect(),
            removed: self.removed.iter().map(|one| (target.clone(), one.clone())).collect(),
            ..DiagnosticDifference::default()
        }
    }
}

/// Takes one of `left` for each known diagnostic that it can be. Returns those that were taken, and those that none is left for.
fn pair(
    known: Vec<Diagnostic>,
    left: &mut Vec<Diagnostic>,
    fits: impl Fn(&Diagnostic, &Diagnostic) -> bool,
) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for one in known {
        match left.iter().position(|other| is_same(&one, other) && fits(&one, other)) {
            Some(at) => found.push(left.swap_remove(at)),
            None => missing.push(one),
        }
    }
    (found, missing)
}

/// Whether a hunk is in the text, and the user has not decided about it.
pub(super) fn is_in_review(state: HunkState) -> bool {
    match state {
        HunkState::Applied | HunkState::Conflict => true,
        HunkState::Proposed | HunkState::Kept | HunkState::Undone => false,
    }
}

fn is_unchanged(one: &Rope, other: &Rope) -> bool {
    one.is_instance(other) || one == other
}

fn number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX - 1)
}

#[cfg(test)]
mod tests;
