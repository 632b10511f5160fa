//! The descriptions of hunks and their outcome for people.
//!
//! Rule: what comes from files, models or users goes through [`printable`] here and is cut to a named length.

use kode_engine::agent::session::Session;
use kode_engine::base::ids::HunkId;
use kode_engine::base::paths::Target;
use kode_engine::base::proposed::ProposedDiagnostics;
use kode_engine::record::resolution::ResolutionOutcome;
use kode_engine::text::edit::ledger::review::{FileReview, HunkKind, HunkState, HunkView, ReviewAction};
use lsp_types::MessageType;

use super::place::{HunkLocation, line_count};
use crate::display::printable;

/// Maximum characters of a session's or prompt's title.
const TITLE_LIMIT: usize = 60;

/// Maximum number of conflicts and failures that are named one by one.
const NAMED: usize = 5;

/// The lines a hunk adds and removes: `+3 -1`.
pub(super) fn counts(hunk: &HunkView) -> String {
    format!("+{} -{}", line_count(&hunk.new_text), line_count(&hunk.old_text))
}

/// What language servers say to a hunk or a file, in parentheses behind a space; empty while they say nothing.
pub(super) fn verdict(diagnostics: Option<&ProposedDiagnostics>) -> String {
    diagnostics.map(|one| format!(" ({})", one_line(&one.summary))).unwrap_or_default()
}

/// The effect of a hunk, as a clause without its subject: `changed 3 lines`, `would add 1 line`.
pub(super) fn does(hunk: &HunkView) -> String {
    let (added, removed) = (line_count(&hunk.new_text), line_count(&hunk.old_text));
    let proposed = hunk.state == HunkState::Proposed;
    let verb = |past: &str, infinitive: &str| {
        if proposed { format!("would {infinitive}") } else { past.to_owned() }
    };
    match (hunk.kind, added, removed) {
        (HunkKind::Created, _, _) => format!("{} this file", verb("created", "create")),
        (HunkKind::Deleted, _, _) => format!("{} this file", verb("deleted", "delete")),
        (HunkKind::Binary, _, _) => format!("{} this file, which is not text", verb("replaced", "replace")),
        (HunkKind::Text, 0, removed) => format!("{} {}", verb("removed", "remove"), several(removed, "line")),
        (HunkKind::Text, added, 0) => format!("{} {}", verb("added", "add"), several(added, "line")),
        (HunkKind::Text, added, removed) => {
            format!("{} {}", verb("changed", "change"), several(added.max(removed), "line"))
        }
    }
}

/// Where a hunk is in its life, as a sentence.
pub(super) fn state(hunk: &HunkView) -> &'static str {
    match (hunk.state, hunk.amended) {
        (HunkState::Proposed, _) => "Not in the text yet: it waits for your answer.",
        (HunkState::Applied, false) => "In the text, not reviewed yet.",
        (HunkState::Applied, true) => "In the text, not reviewed yet; you have changed it since.",
        (HunkState::Kept, _) => "In the text, kept.",
        (HunkState::Undone, _) => "Not in the text: it was rejected or undone.",
        (HunkState::Conflict, _) => {
            "Not undone, because you have changed it since. Decide whether to keep or undo it."
        }
    }
}

/// Where a hunk is and how large, in parentheses: `(line 12, +3 -1)`.
pub(super) fn location(place: &HunkLocation, hunk: &HunkView) -> String {
    format!("({}, {})", place.lines_for_people(), counts(hunk))
}

/// A verb with a capital letter, for titles.
pub(super) fn title(action: ReviewAction) -> &'static str {
    match action {
        ReviewAction::Accept => "Allow",
        ReviewAction::Reject => "Deny",
        ReviewAction::Keep => "Keep",
        ReviewAction::Undo => "Undo",
    }
}

/// A number with its noun: `1 line`, `2 lines`.
pub(super) fn several(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// A title of a session, a call or a prompt in one short line.
pub(super) fn short(title: &str) -> String {
    let line = printable(title).replace(['\n', '\t'], " ");
    match line.char_indices().nth(TITLE_LIMIT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// A file as its session calls it, in one line.
pub(crate) fn path(session: &Session, target: &Target) -> String {
    one_line(&session.display(target))
}

/// A path or reason in one line.
fn one_line(text: &str) -> String {
    printable(text).replace('\n', "\\n")
}

/// How a resolution went, and how loudly that is to be said: what the user must do something about is a warning.
pub(crate) fn outcome(
    outcome: &ResolutionOutcome,
    files: &[FileReview],
    path: impl Fn(&Target) -> String,
) -> (MessageType, String) {
    let changes = several(outcome.resolved.len(), "change");
    let mut lines = vec![match outcome.action {
        Some(ReviewAction::Accept) => format!("Kode: {changes} accepted."),
        Some(ReviewAction::Reject) => format!("Kode: {changes} rejected."),
        Some(ReviewAction::Keep) => format!("Kode: {changes} kept."),
        Some(ReviewAction::Undo) => format!("Kode: {changes} undone."),
        None if outcome.resolved.is_empty() => "Kode: went back.".to_owned(),
        None => format!("Kode: went back; {changes} taken out or put back."),
    }];
    if !outcome.conflicts.is_empty() {
        lines.push(format!(
            "{} not touched, because you have changed the same text since: {}. Keep it as it is, or undo the agent's \
             part, with a code action on it.",
            several(outcome.conflicts.len(), "change"),
            named(outcome.conflicts.iter().map(|id| place_of(id, files, &path)), outcome.conflicts.len()),
        ));
    }
    if !outcome.failed.is_empty() {
        let failed =
            outcome.failed.iter().map(|(target, reason)| format!("{}: {}", path(target), one_line(reason)));
        let count = several(outcome.failed.len(), "file");
        lines.push(format!("{count} could not be changed: {}", named(failed, outcome.failed.len())));
    }
    let kind = match (outcome.failed.is_empty(), outcome.conflicts.is_empty()) {
        (false, _) => MessageType::ERROR,
        (true, false) => MessageType::WARNING,
        (true, true) => MessageType::LOG,
    };
    (kind, lines.join("\n"))
}

fn named(names: impl Iterator<Item = String>, count: usize) -> String {
    let mut named: Vec<String> = names.take(NAMED).collect();
    if count > NAMED {
        named.push(format!("and {} more", count - NAMED));
    }
    named.join(", ")
}

fn place_of(id: &HunkId, files: &[FileReview], path: impl Fn(&Target) -> String) -> String {
    let find = |file: &FileReview| {
        let hunk = file.hunks.iter().find(|hunk| hunk.id == *id)?;
        Some(format!("{}:{}", path(&file.target), HunkLocation::of(&file.text, hunk).lines.start + 1))
    };
    files.iter().find_map(find).unwrap_or_else(|| id.to_string())
}

#[cfg(test)]
mod tests {
    use kode_engine::base::ids::ResolutionId;
    use kode_engine::base::paths::AbsPath;

    use super::*;
    use crate::plain::review::testing::{PATH, WithHunks, file, hunk};

    #[test]
    fn what_a_hunk_does_is_said_by_its_kind_and_state() {
        for (state, old, new, expected) in [
            (HunkState::Applied, "a\n", "b\nc\nd\n", "changed 3 lines"),
            (HunkState::Applied, "", "b\n", "added 1 line"),
            (HunkState::Conflict, "a\nb", "", "removed 2 lines"),
            (HunkState::Proposed, "a\r\nb\r\n", "", "would remove 2 lines"),
            (HunkState::Proposed, "a\n", "b", "would change 1 line"),
        ] {
            assert_eq!(does(&hunk(state, old, new)), expected);
        }
        let created = HunkView { kind: HunkKind::Created, ..hunk(HunkState::Applied, "", "b\n") };
        assert_eq!((does(&created).as_str(), counts(&created).as_str()), ("created this file", "+1 -0"));
    }

    #[test]
    fn what_the_user_must_decide_is_said_with_its_place() {
        let path = |target: &Target| target.to_string().replace("/w/", "");
        let files = [file("a\nnew\n").applied("new\n", "old\n", 1..2).in_conflict()];
        let mut went = ResolutionOutcome {
            id: ResolutionId::generate(),
            action: Some(ReviewAction::Undo),
            resolved: vec![HunkId::generate(), HunkId::generate()],
            conflicts: vec![],
            failed: vec![],
        };
        assert_eq!(outcome(&went, &files, path), (MessageType::LOG, "Kode: 2 changes undone.".to_owned()));
        let back = ResolutionOutcome { action: None, resolved: vec![], ..went.clone() };
        assert_eq!(outcome(&back, &files, path).1, "Kode: went back.");
        went.conflicts = vec![files[0].hunks[0].id.clone()];
        let (kind, text) = outcome(&went, &files, path);
        assert!(kind == MessageType::WARNING && text.contains("1 change not touched"), "{text}");
        assert!(text.contains(" src/a.rs:2."), "{text}");
        went.failed = vec![(Target::File(AbsPath::new(PATH).unwrap()), "read\u{1b}only".to_owned()); 7];
        let (kind, text) = outcome(&went, &files, path);
        assert_eq!(kind, MessageType::ERROR);
        assert!(
            text.contains("7 files") && text.contains("read\\u{1b}only") && text.contains("and 2 more"),
            "{text}"
        );
    }

    #[test]
    fn a_title_is_one_short_line() {
        assert_eq!(short("a\nb"), "a b");
        assert_eq!(short(&"ä".repeat(200)).chars().count(), TITLE_LIMIT + 1);
    }
}
