//! The diagnostics of two texts, compared: those that a change added and those that it removed, as text for people and models.
//!
//! Rule: compared by severity and message. Lines move with every edit, and tell apart only those that are the same otherwise.

use std::fmt::Write as _;

use kode_base::paths::Target;
use kode_base::proposed::ProposedDiagnostics;
use kode_text::host::{Diagnostic, DiagnosticSeverity};
use kode_text::workspace::Workspace;

/// The most lines about a proposed change, or about a part of a change.
const MAX_PROPOSED_LINES: usize = 8;
/// The most lines of a result.
const MAX_LINES: usize = 20;
/// The most characters of a message.
const MAX_MESSAGE: usize = 300;

/// Whether a diagnostic of the text before can be one of the text after, judged by their places.
pub(crate) type SamePlace<'a> = &'a dyn Fn(&Diagnostic, &Diagnostic) -> bool;

/// Accepts all places.
pub(crate) fn anywhere(_: &Diagnostic, _: &Diagnostic) -> bool {
    true
}

/// Whether diagnostics are the same but for their places.
pub(crate) fn is_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    (one.severity, &one.message, &one.code) == (other.severity, &other.message, &other.code)
}

/// Whether a diagnostic is compared: errors and warnings are.
pub(crate) fn matters(one: &Diagnostic) -> bool {
    one.severity <= DiagnosticSeverity::Warning
}

/// The diagnostics that a change added and removed.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiagnosticDifference {
    pub(crate) added: Vec<(Target, Diagnostic)>,
    pub(crate) removed: Vec<(Target, Diagnostic)>,
    /// Whether a server has not finished.
    pub(crate) is_open: bool,
    /// Whether those before are not known.
    pub(crate) is_first: bool,
}

impl DiagnosticDifference {
    /// Compares by severity and text. Lines move with every edit: of several that are the same, those at the first of `places`
    /// belong together, then those at the next.
    pub(crate) fn add(
        &mut self,
        target: &Target,
        (before, after): (&[Diagnostic], &[Diagnostic]),
        places: &[SamePlace<'_>],
    ) {
        let mut left: Vec<&Diagnostic> = before.iter().filter(|one| matters(one)).collect();
        let mut new: Vec<&Diagnostic> = after.iter().filter(|one| matters(one)).collect();
        for place in places {
            new.retain(|one| {
                let known = left.iter().position(|other| is_same(one, other) && place(other, one));
                known.map(|at| left.swap_remove(at)).is_none()
            });
        }
        self.added.extend(new.into_iter().map(|one| (target.clone(), one.clone())));
        self.removed.extend(left.into_iter().map(|one| (target.clone(), one.clone())));
    }

    /// Whether nothing was added or removed.
    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }

    /// The numbers and the first lines, for the user.
    pub(crate) fn proposed(mut self, workspace: &Workspace) -> ProposedDiagnostics {
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

    pub(crate) fn text(mut self, workspace: &Workspace) -> String {
        let mut text = String::new();
        if self.is_empty() {
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
