//! Reports about hunks in texts of one letter a line.
//!
//! Rule: a diagnostic is a line and a message; reports are compared by the lines that a client shows.

use std::ops::Range;

use super::*;
use kode_base::ids::TurnId;
use kode_base::paths::AbsPath;
use kode_text::edit::ledger::review::{HunkKind, HunkView};
use kode_text::host::DiagnosticSeverity;

fn call(name: &str) -> CallId {
    CallId::from_external(name)
}

fn file(text: &str, hunks: Vec<HunkView>) -> FileReview {
    let target = Target::File(AbsPath::new("/w/a").unwrap());
    FileReview { target, text: Rope::from_str(text), version: None, hunks, diagnostics: None }
}

/// A hunk of a call that has put these lines, counted from 0, in the place of `old`.
fn hunk(of: &str, lines: Range<usize>, old: &str) -> HunkView {
    HunkView {
        id: HunkId::generate(),
        turn: TurnId::generate(),
        call: call(of),
        kind: HunkKind::Text,
        state: HunkState::Applied,
        range: 0..0,
        lines,
        old_text: old.to_owned(),
        new_text: String::new(),
        amended: false,
        permission: None,
        diagnostics: None,
    }
}

fn errors(list: &[(u32, &str)]) -> Vec<Diagnostic> {
    let error = |(line, message): &(u32, &str)| Diagnostic {
        line: *line,
        column: 1,
        severity: DiagnosticSeverity::Error,
        message: (*message).to_owned(),
        source: String::new(),
        code: String::new(),
    };
    list.iter().map(error).collect()
}

fn enter(
    reports: &mut ReviewReports,
    review: &FileReview,
    of: &str,
    before: Option<&[(u32, &str)]>,
    after: Option<&[(u32, &str)]>,
) -> bool {
    let (before, after) = (before.map(errors), after.map(errors));
    let (target, text) = (review.target.clone(), review.text.clone());
    reports.enter(review, &call(of), FileComparison { target, text, before, after })
}

/// The added and removed diagnostics of each hunk with some, and then of the file: `+` or `-`, line, message.
fn shown(reports: &ReviewReports, review: &FileReview) -> Vec<Vec<String>> {
    let Some(file) = reports.files.get(&review.target) else { return Vec::new() };
    let line =
        |sign: char, one: &Diagnostic, first: u32| format!("{sign}{} {}", one.line + first, one.message);
    let part = |part: &PartReport, first: u32| {
        let added = part.added.iter().map(|one| line('+', one, first));
        added.chain(part.removed.iter().map(|one| line('-', one, 0))).collect::<Vec<_>>()
    };
    let hunks = review.hunks.iter().map(|hunk| {
        file.hunks.get(&hunk.id).map(|known| part(known, number(hunk.lines.start) + 1)).unwrap_or_default()
    });
    hunks.chain([part(&file.outside, 0)]).collect()
}

#[test]
fn each_hunk_has_what_its_lines_add_and_fix_and_the_file_has_the_rest() {
    // Line 1 was replaced by two, line 4 by one.
    let review = file("A\nB\nb\nc\nD\ne\n", vec![hunk("1", 0..2, "a\n"), hunk("1", 4..5, "d\n")]);
    let mut reports = ReviewReports::default();
    let before = [(2, "kept"), (4, "fixed"), (5, "gone")];
    let after = [(3, "kept"), (2, "first"), (5, "second"), (6, "elsewhere")];
    assert!(enter(&mut reports, &review, "1", Some(&before), Some(&after)));
    assert_eq!(
        shown(&reports, &review),
        [vec!["+2 first"], vec!["+5 second", "-4 fixed"], vec!["+6 elsewhere", "-5 gone"]]
    );
}

#[test]
fn a_report_moves_with_its_hunk_and_loses_what_the_server_withdraws() {
    let mut review = file("x\na\nb\nc\n", vec![hunk("1", 1..3, "")]);
    let mut reports = ReviewReports::default();
    enter(&mut reports, &review, "1", Some(&[]), Some(&[(2, "one"), (3, "two")]));
    // Two lines are typed above.
    review.hunks[0].lines = 3..5;
    review.text = Rope::from_str("t\nt\nx\na\nb\nc\n");
    assert_eq!(shown(&reports, &review), [vec!["+4 one", "+5 two"], vec![]]);
    // The user has fixed one, and made two of their own.
    let now = errors(&[(5, "two"), (4, "typed"), (1, "typed")]);
    assert!(reports.compare(&review, &review.text.clone(), &now));
    assert_eq!(shown(&reports, &review), [vec!["+5 two"], vec![]]);
    assert!(!reports.compare(&review, &review.text.clone(), &now), "nothing is different");
    assert!(reports.compare(&review, &review.text.clone(), &[]));
    assert!(reports.is_empty());
}

#[test]
fn of_two_that_say_the_same_the_one_that_was_there_before_is_not_taken_for_the_added_one() {
    let review = file("a\nb\n", vec![hunk("1", 0..2, "x\nb\n")]);
    let mut reports = ReviewReports::default();
    enter(&mut reports, &review, "1", Some(&[(2, "same")]), Some(&[(1, "same"), (2, "same")]));
    assert_eq!(shown(&reports, &review), [vec!["+1 same"], vec![]]);
    let mut typed = file("fine\nb\n", Vec::new());
    typed.hunks = review.hunks;
    reports.compare(&typed, &typed.text.clone(), &errors(&[(2, "same")]));
    assert!(reports.is_empty(), "{reports:?}");
}

#[test]
fn what_a_later_change_takes_back_was_neither_added_nor_fixed() {
    let first = file("oops\nb\n", vec![hunk("1", 0..1, "hmm\n")]);
    let mut reports = ReviewReports::default();
    enter(&mut reports, &first, "1", Some(&[(1, "hmm")]), Some(&[(1, "oops")]));
    assert_eq!(shown(&reports, &first), [vec!["+1 oops", "-1 hmm"], vec![]]);
    let mut second = file("fine\nhmm\n", vec![hunk("2", 1..2, "b\n")]);
    second.hunks.insert(0, first.hunks[0].clone());
    enter(&mut reports, &second, "2", Some(&[(1, "oops")]), Some(&[(2, "hmm")]));
    assert!(shown(&reports, &second).concat().is_empty(), "{reports:?}");
}

#[test]
fn what_a_server_publishes_late_is_of_the_change_unless_something_is_typed() {
    let review = file("A\nb\n", vec![hunk("1", 0..1, "a\n")]);
    for (typed, expected) in [(false, vec!["+1 late"]), (true, vec![])] {
        for after in [None, Some([].as_slice())] {
            let mut reports = ReviewReports::default();
            assert!(!enter(&mut reports, &review, "1", Some(&[]), after));
            assert!(!reports.is_empty(), "they are looked at again");
            if typed {
                reports.forget_earlier(&review.target);
            }
            reports.compare(&review, &review.text.clone(), &errors(&[(1, "late")]));
            assert_eq!(shown(&reports, &review).concat(), expected);
        }
    }
}

#[test]
fn a_report_that_no_server_checks_stays_while_its_text_does() {
    let review = file("A\nb\n", vec![hunk("1", 0..1, "a\n")]);
    let mut reports = ReviewReports::default();
    enter(&mut reports, &review, "1", Some(&[]), Some(&[(1, "error")]));
    assert!(!reports.drop_unchecked(&review.target, &review.text));
    assert_eq!(shown(&reports, &review).concat(), ["+1 error"]);
    assert!(reports.drop_unchecked(&review.target, &Rope::from_str("A\nb\nc\n")));
    assert!(reports.is_empty());
}

#[test]
fn without_diagnostics_of_the_text_before_or_with_too_many_there_is_no_report() {
    let review = file("A\nb\n", vec![hunk("1", 0..1, "a\n")]);
    let mut reports = ReviewReports::default();
    assert!(!enter(&mut reports, &review, "1", None, Some(&[(1, "error")])));
    let many = vec![(1, "error"); MAX_DIAGNOSTICS + 1];
    assert!(!enter(&mut reports, &review, "1", Some(&[]), Some(&many)));
    assert!(!enter(&mut reports, &review, "1", Some(&many), Some(&[])));
    assert!(reports.is_empty());
}
