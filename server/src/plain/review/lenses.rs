//! `textDocument/codeLens`: the decisions as lines above the hunks.
//!
//! Rule: a lens for the whole file only where one for each hunk is not enough; lenses say the same as the actions and
//! run the same commands.

use kode_engine::text::edit::ledger::review::{HunkState, ReviewAction};
use lsp_types::{CodeLens, Position, Range};
use serde_json::json;

use super::place::HunkLocation;
use super::resolve::command;
use super::words::{counts, short, title, verdict};
use super::{PendingHunks, SHOWN_HUNKS, SessionReview, waits};

/// The lenses of a document.
pub(crate) fn lenses(reviews: &[SessionReview], uri: &lsp_types::Url) -> Vec<CodeLens> {
    let several_sessions = reviews.len() > 1;
    let mut lenses = Vec::new();
    for review in reviews {
        let whose =
            if several_sessions { format!(" of “{}”", short(&review.title)) } else { String::new() };
        lenses.extend(file_lenses(review, uri, &whose));
    }
    for review in reviews {
        lenses.extend(hunk_lenses(review));
    }
    lenses
}

fn file_lenses(review: &SessionReview, uri: &lsp_types::Url, whose: &str) -> Vec<CodeLens> {
    let waiting = PendingHunks::of([&review.file]);
    let all = [ReviewAction::Keep, ReviewAction::Undo, ReviewAction::Accept, ReviewAction::Reject];
    all.into_iter()
        .filter(|action| waiting.for_action(*action) > 1)
        .map(|action| {
            let text = format!("Kode: {} all {}{whose}", title(action), waiting.for_action(action));
            let arguments = json!({ "sessionId": review.session, "uri": uri });
            lens(Position::new(0, 0), command(&text, action, arguments))
        })
        .collect()
}

fn hunk_lenses(review: &SessionReview) -> Vec<CodeLens> {
    let mut lenses = Vec::new();
    for hunk in review.file.hunks.iter().filter(|hunk| waits(hunk)).take(SHOWN_HUNKS) {
        let at = HunkLocation::of(&review.file.text, hunk).start();
        let this = json!({ "sessionId": review.session, "hunkIds": [hunk.id] });
        let counts = format!("{}{}", counts(hunk), verdict(hunk.diagnostics.as_ref()));
        let mut add = |text: &str, action, arguments| {
            lenses.push(lens(at, command(&format!("Kode: {text}"), action, arguments)));
        };
        match hunk.state {
            HunkState::Proposed => {
                add(&format!("Allow {counts}"), ReviewAction::Accept, this.clone());
                add("Deny", ReviewAction::Reject, this);
            }
            HunkState::Applied => {
                add(&format!("Keep {counts}"), ReviewAction::Keep, this.clone());
                add("Undo", ReviewAction::Undo, this);
            }
            HunkState::Conflict => {
                let mut amended = this.clone();
                amended["amended"] = json!("undo");
                add("Keep as it is", ReviewAction::Keep, this);
                add("Undo, leaving what I typed", ReviewAction::Undo, amended);
            }
            HunkState::Kept | HunkState::Undone => {}
        }
    }
    lenses
}

fn lens(at: Position, command: lsp_types::Command) -> CodeLens {
    CodeLens { range: Range::new(at, at), command: Some(command), data: None }
}

#[cfg(test)]
mod tests {
    use kode_engine::base::proposed::ProposedDiagnostics;

    use super::*;
    use crate::plain::review::testing::{PATH, WithHunks, file, session};

    fn shown(reviews: &[SessionReview]) -> Vec<(u32, String)> {
        let uri = lsp_types::Url::from_file_path(PATH).unwrap();
        let line = |lens: CodeLens| (lens.range.start.line, lens.command.unwrap().title);
        lenses(reviews, &uri).into_iter().map(line).collect()
    }

    fn expected(lines: &[(u32, &str)]) -> Vec<(u32, String)> {
        lines.iter().map(|(line, title)| (*line, format!("Kode: {title}"))).collect()
    }

    #[test]
    fn one_hunk_has_its_own_lenses_and_none_for_the_file() {
        let applied = session("Fix", file("a\nnew\n").applied("new\n", "old\n", 1..2));
        assert_eq!(shown(&[applied]), expected(&[(1, "Keep +1 -1"), (1, "Undo")]));
        let removed = session("Fix", file("a\nb\n").removed("gone\n", 2));
        assert_eq!(shown(&[removed]), expected(&[(1, "Keep +0 -1"), (1, "Undo")]), "no line behind the last");
        assert_eq!(shown(&[session("Fix", file("a\n"))]), []);
    }

    #[test]
    fn several_hunks_have_lenses_for_the_file_by_what_is_possible() {
        let file = file("a\nb\nc\nd\n")
            .applied("a\n", "", 0..1)
            .applied("b\n", "", 1..2)
            .in_conflict()
            .proposed("d\n", "", 3);
        assert_eq!(
            shown(&[session("Fix", file)]),
            expected(&[
                (0, "Keep all 2"),
                (0, "Keep +1 -0"),
                (0, "Undo"),
                (1, "Keep as it is"),
                (1, "Undo, leaving what I typed"),
                (3, "Allow +0 -1"),
                (3, "Deny"),
            ])
        );
    }

    #[test]
    fn a_hunk_says_in_its_lens_what_language_servers_say() {
        let mut file =
            file("a\nb\nc\n").proposed("a\n", "A\n", 0).proposed("b\n", "B\n", 1).applied("c\n", "C\n", 2..3);
        for hunk in &mut file.hunks[1..] {
            let lines = vec!["a.rs:2:1 error: no".to_owned()];
            hunk.diagnostics = Some(ProposedDiagnostics { summary: "adds 1 error".to_owned(), lines });
        }
        let lines = shown(&[session("Fix", file)]);
        let own = lines.into_iter().filter(|(_, title)| title.contains(" +"));
        let expected = expected(&[
            (0, "Allow +1 -1"),
            (1, "Allow +1 -1 (adds 1 error)"),
            (2, "Keep +1 -1 (adds 1 error)"),
        ]);
        assert_eq!(own.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn two_sessions_have_lenses_of_their_own() {
        let two = file("a\nb\n").applied("a\n", "", 0..1).applied("b\n", "", 1..2);
        let one = file("a\nb\n").proposed("b\n", "B\n", 1);
        let lines = shown(&[session("One", one), session("Two", two)]);
        assert_eq!(lines[..2], expected(&[(0, "Keep all 2 of “Two”"), (0, "Undo all 2 of “Two”")]));
        assert_eq!(lines.len(), 8);
    }
}
