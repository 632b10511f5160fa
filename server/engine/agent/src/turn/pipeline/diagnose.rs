//! The diagnostics of edited files: what a change added and what it removed, for the model.
//!
//! Rule: a change waits two seconds at most for each of both looks, and never for a server that the user has not configured and no
//! call has started. Those of the editor are taken where its client has them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::edits::{HunkLines, HunkReports, Proposal};
use kode_base::ids::HunkId;
use kode_base::paths::Target;
use kode_base::proposed::ProposedDiagnostics;
use kode_text::edit::{AppliedFile, ChangeSet};
use kode_text::host::{Diagnostic, DiagnosticSeverity, FileDiagnostics};
use kode_text::workspace::Workspace;
use kode_text::workspace::language::{DiagnosticsRequest, ServerStart, TriedFile};

/// The longest wait for diagnostics, before a change and after it.
const LIMIT: Duration = Duration::from_secs(2);
/// How long an editor waits after a change until its servers have published.
const SETTLE: Duration = Duration::from_secs(1);
/// The longest trial of a proposed change.
const TRIAL_LIMIT: Duration = Duration::from_millis(500);
/// The most lines about a proposed change.
const MAX_PROPOSED_LINES: usize = 8;
/// The most files of a change whose diagnostics are compared.
const MAX_FILES: usize = 10;
/// The most lines of a result.
const MAX_LINES: usize = 20;
/// The most characters of a message.
const MAX_MESSAGE: usize = 300;

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
        let files = look(workspace, &existing, Duration::ZERO, cancel).await;
        Self { targets, files }
    }

    /// The difference that the change made, as text for the model; empty if absent.
    pub(super) async fn compare(
        self,
        applied: &[AppliedFile],
        workspace: &Workspace,
        cancel: &CancellationToken,
    ) -> String {
        let Some(languages) = workspace.languages() else { return String::new() };
        let on_disk: Vec<(Target, bool)> = applied
            .iter()
            .filter(|file| file.shown.is_none())
            .map(|file| (file.target.clone(), file.created))
            .collect();
        languages.files_changed(workspace, &on_disk).await;
        let after = look(workspace, &self.targets, SETTLE, cancel).await;
        let before = |target: &Target| self.files.iter().find(|file| file.target == *target);
        let mut difference = Difference::default();
        for file in &after {
            let was_created = applied.iter().any(|one| one.created && one.target == file.target);
            let known = before(&file.target).filter(|known| !known.is_outdated);
            match (known, file.is_outdated) {
                (_, true) => difference.is_open = true,
                (Some(known), false) => difference.add(file, &known.diagnostics, &[&anywhere]),
                (None, false) => {
                    difference.is_first |= !was_created;
                    difference.add(file, &[], &[]);
                }
            }
        }
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
        let (mut whole, mut parts) = (Difference::default(), PartDifferences::default());
        for TriedFile { before, after } in &tried {
            let Some(lines) = lines.get(&after.target) else { continue };
            let same_line = |old: &Diagnostic, new: &Diagnostic| lines.moved(old.line) == Some(new.line);
            let same_part = |old: &Diagnostic, new: &Diagnostic| {
                lines.hunk_before(old.line) == lines.hunk_after(new.line)
            };
            whole.add(after, &before.diagnostics, &[&same_line, &anywhere]);
            let mut of_file = Difference::default();
            of_file.add(after, &before.diagnostics, &[&same_line, &same_part]);
            parts.add(of_file, lines);
        }
        Some(Self { whole: whole.proposed(workspace), parts: parts.reports(workspace) })
    }
}

/// The differences of hunks, and of files outside of their hunks.
#[derive(Default)]
struct PartDifferences {
    hunks: BTreeMap<HunkId, Difference>,
    files: BTreeMap<Target, Difference>,
}

impl PartDifferences {
    fn add(&mut self, of_file: Difference, lines: &HunkLines) {
        for (target, one) in of_file.added {
            self.part(lines.hunk_after(one.line), &target).added.push((target, one));
        }
        for (target, one) in of_file.removed {
            self.part(lines.hunk_before(one.line), &target).removed.push((target, one));
        }
    }

    fn part(&mut self, hunk: Option<&HunkId>, target: &Target) -> &mut Difference {
        match hunk {
            Some(hunk) => self.hunks.entry(hunk.clone()).or_default(),
            None => self.files.entry(target.clone()).or_default(),
        }
    }

    fn reports(self, workspace: &Workspace) -> HunkReports {
        let hunks = self.hunks.into_iter().map(|(hunk, one)| (hunk, one.proposed(workspace))).collect();
        let files = self.files.into_iter().map(|(target, one)| (target, one.proposed(workspace))).collect();
        HunkReports { hunks, files }
    }
}

/// Whether a diagnostic of the text before can be one of the text after, judged by their places.
type SamePlace<'a> = &'a dyn Fn(&Diagnostic, &Diagnostic) -> bool;

fn anywhere(_: &Diagnostic, _: &Diagnostic) -> bool {
    true
}

/// The diagnostics of files whose servers run. A server that fails costs the change nothing.
///
/// The editor waits `settle` for its servers, and for none of a file without a known language.
async fn look(
    workspace: &Workspace,
    targets: &[Target],
    settle: Duration,
    cancel: &CancellationToken,
) -> Vec<FileDiagnostics> {
    let Some(languages) = workspace.languages() else { return Vec::new() };
    let targets: Vec<Target> =
        targets.iter().filter(|target| languages.knows_language(target)).cloned().collect();
    if targets.is_empty() {
        return Vec::new();
    }
    let request = DiagnosticsRequest { targets: &targets, limit: LIMIT, start: ServerStart::Configured };
    let asked = async {
        match workspace.editor_diagnostics(&targets, settle).await {
            Some(found) => found,
            None => languages.diagnostics(workspace, request).await,
        }
    };
    let found = tokio::select! {
        biased;
        () = cancel.cancelled() => return Vec::new(),
        found = asked => found,
    };
    found.unwrap_or_else(|error| {
        tracing::debug!(%error, "no diagnostics of an edited file");
        Vec::new()
    })
}

/// The diagnostics that a change added and removed.
#[derive(Default)]
struct Difference {
    added: Vec<(Target, Diagnostic)>,
    removed: Vec<(Target, Diagnostic)>,
    /// Whether a server has not finished.
    is_open: bool,
    /// Whether those before are not known.
    is_first: bool,
}

impl Difference {
    /// Compares by severity and text. Lines move with every edit: of several that are the same, those at the first of `places`
    /// belong together, then those at the next.
    fn add(&mut self, file: &FileDiagnostics, before: &[Diagnostic], places: &[SamePlace<'_>]) {
        let matters = |one: &&Diagnostic| one.severity <= DiagnosticSeverity::Warning;
        let is_same = |one: &Diagnostic, other: &Diagnostic| {
            (one.severity, &one.message, &one.code) == (other.severity, &other.message, &other.code)
        };
        let mut left: Vec<&Diagnostic> = before.iter().filter(matters).collect();
        let mut new: Vec<&Diagnostic> = file.diagnostics.iter().filter(matters).collect();
        for place in places {
            new.retain(|one| {
                let known = left.iter().position(|other| is_same(one, other) && place(other, one));
                known.map(|at| left.swap_remove(at)).is_none()
            });
        }
        self.added.extend(new.into_iter().map(|one| (file.target.clone(), one.clone())));
        self.removed.extend(left.into_iter().map(|one| (file.target.clone(), one.clone())));
    }

    /// The numbers and the first lines, for the user.
    fn proposed(mut self, workspace: &Workspace) -> ProposedDiagnostics {
        self.sort();
        let counts = |list: &[(Target, Diagnostic)]| {
            let of = |severity| list.iter().filter(|(_, one)| one.severity == severity).count();
            let (errors, warnings) = (of(DiagnosticSeverity::Error), of(DiagnosticSeverity::Warning));
            let parts =
                [(errors, "error"), (warnings, "warning")].into_iter().filter(|(count, _)| *count > 0);
            let part = |(count, name)| format!("{count} {name}{}", if count == 1 { "" } else { "s" });
            parts.map(part).collect::<Vec<_>>().join(" and ")
        };
        let parts = [("adds", counts(&self.added)), ("fixes", counts(&self.removed))];
        let parts = parts.iter().filter(|(_, counts)| !counts.is_empty());
        let parts: Vec<String> = parts.map(|(verb, counts)| format!("{verb} {counts}")).collect();
        let summary = match parts.is_empty() {
            true => "adds no errors or warnings".to_owned(),
            false => parts.join(", "),
        };
        let mut lines = self.lines(("", "fixed: "), workspace);
        let left_out = lines.len().saturating_sub(MAX_PROPOSED_LINES);
        lines.truncate(MAX_PROPOSED_LINES);
        if left_out > 0 {
            lines.push(format!("and {left_out} more"));
        }
        ProposedDiagnostics { summary, lines }
    }

    fn sort(&mut self) {
        self.added.sort_by_key(|(_, one)| (one.severity, one.line));
        self.removed.sort_by_key(|(_, one)| (one.severity, one.line));
    }

    /// A line for each diagnostic, with a mark for those that are added and removed.
    fn lines(&self, (added, removed): (&str, &str), workspace: &Workspace) -> Vec<String> {
        let new = self.added.iter().map(|(target, one)| line(added, target, one, workspace));
        let gone = self.removed.iter().map(|(target, one)| line(removed, target, one, workspace));
        new.chain(gone).collect()
    }

    fn text(mut self, workspace: &Workspace) -> String {
        let mut text = String::new();
        if self.added.is_empty() && self.removed.is_empty() {
            if self.is_open {
                text.push_str(
                    "\n\nThe language server has not finished checking this change. Diagnostics reports its result.",
                );
            }
            return text;
        }
        let (added, removed) = (self.added.len(), self.removed.len());
        let heading = match self.is_first {
            true => format!("Diagnostics of the language server: {added}"),
            false => {
                format!("Diagnostics of the language server after this change: {added} new, {removed} gone")
            }
        };
        let _ = write!(text, "\n\n{heading}");
        self.sort();
        let mark = if self.is_first { "" } else { "new: " };
        let lines = self.lines((mark, "gone: "), workspace);
        let left_out = lines.len().saturating_sub(MAX_LINES);
        for line in lines.into_iter().take(MAX_LINES) {
            text.push('\n');
            text.push_str(&line);
        }
        if left_out > 0 {
            let _ = write!(text, "\n[{left_out} more are not shown; Diagnostics lists all]");
        }
        if self.is_open {
            text.push_str("\nThe language server has not finished checking all files of this change.");
        }
        text
    }
}

fn line(mark: &str, target: &Target, one: &Diagnostic, workspace: &Workspace) -> String {
    let message: String = one.message.chars().take(MAX_MESSAGE).collect();
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let severity = match one.severity {
        DiagnosticSeverity::Error => "error",
        DiagnosticSeverity::Warning => "warning",
        DiagnosticSeverity::Information | DiagnosticSeverity::Hint => "note",
    };
    let Diagnostic { line, column, source, code, .. } = one;
    let by = [source.as_str(), code.as_str()].into_iter().filter(|part| !part.is_empty());
    let by = by.collect::<Vec<_>>().join(" ");
    let by = if by.is_empty() { by } else { format!(" [{by}]") };
    format!("{mark}{}:{line}:{column} {severity}: {message}{by}", workspace.display(target))
}
