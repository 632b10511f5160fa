//! `textDocument/hover`: what a hunk did, as a diff, and how to decide about it.
//!
//! Rule: on the lines of a hunk and nowhere else, so that other servers' hovers stay undisturbed; bounded, whatever
//! the size of the hunk.

use std::fmt::Write as _;

use kode_engine::base::proposed::ProposedDiagnostics;
use kode_engine::text::edit::ledger::review::{HunkState, HunkView};
use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind, Position, Range};

use super::place::HunkLocation;
use super::words::{does, location, short, state};
use super::{SessionReview, waits};
use crate::display::printable;
use crate::lsp::PositionEncoding;

/// Maximum number of hunks when several are on one line.
const HUNKS: usize = 3;
/// Maximum number of lines of a diff.
const DIFF_LINES: usize = 40;
/// Maximum characters of a line.
const LINE_CHARS: usize = 200;

/// The hover at a position; `None` where no hunk is.
pub(crate) fn hover(
    reviews: &[SessionReview],
    position: Position,
    encoding: PositionEncoding,
    kind: MarkupKind,
) -> Option<Hover> {
    let mut parts = Vec::new();
    let mut range = None;
    for review in reviews {
        let text = &review.file.text;
        for hunk in review.file.hunks.iter().filter(|hunk| waits(hunk)) {
            let place = HunkLocation::of(text, hunk);
            if !place.touches(text, Range::new(position, position)) {
                continue;
            }
            range.get_or_insert_with(|| place.range(text, encoding));
            if parts.len() < HUNKS {
                let whose = (reviews.len() > 1).then(|| short(&review.title));
                parts.push(describe(hunk, &place, whose.as_deref(), &kind));
            }
        }
    }
    // An empty range, as of a removal, would hold no position of the mouse.
    let range = range.filter(|range| range.start != range.end);
    let contents = HoverContents::Markup(MarkupContent { value: parts.join("\n\n"), kind });
    (!parts.is_empty()).then_some(Hover { contents, range })
}

fn describe(hunk: &HunkView, place: &HunkLocation, whose: Option<&str>, kind: &MarkupKind) -> String {
    let whose = whose.map(|title| format!(" in “{title}”")).unwrap_or_default();
    let mut text = format!("Kode {} {}{whose}. {}\n", does(hunk), location(place, hunk), state(hunk));
    let diff = diff(hunk);
    if *kind == MarkupKind::Markdown {
        let fence = fence(&diff);
        let _ = write!(text, "\n{fence}diff\n{diff}{fence}\n");
    } else {
        let _ = write!(text, "\n{diff}");
    }
    if let Some(diagnostics) = &hunk.diagnostics {
        text.push_str(&verdict(diagnostics, kind));
    }
    let decisions = decisions(hunk);
    if !decisions.is_empty() {
        let _ = write!(text, "\nCode actions: {}", decisions.join(", "));
    }
    text
}

/// The diagnostics that a proposed hunk would add and remove.
fn verdict(diagnostics: &ProposedDiagnostics, kind: &MarkupKind) -> String {
    let mut lines = String::new();
    for line in &diagnostics.lines {
        let _ = writeln!(lines, "{}", printable(line).replace('\n', " "));
    }
    let summary = printable(&diagnostics.summary);
    match kind {
        MarkupKind::Markdown => {
            let fence = fence(&lines);
            format!("\nIt {summary}:\n\n{fence}text\n{lines}{fence}\n")
        }
        MarkupKind::PlainText => format!("\nIt {summary}:\n{lines}"),
    }
}

/// The code actions of a hunk.
fn decisions(hunk: &HunkView) -> Vec<&'static str> {
    match hunk.state {
        HunkState::Proposed => vec!["allow", "deny"],
        HunkState::Applied => vec!["keep", "undo"],
        HunkState::Conflict => vec!["keep as it is", "undo, leaving what you typed"],
        HunkState::Kept | HunkState::Undone => Vec::new(),
    }
}

/// The lines of a hunk with their signs; of a long one the beginning of both sides.
fn diff(hunk: &HunkView) -> String {
    let sides = [('-', &hunk.old_text), ('+', &hunk.new_text)].map(|(sign, text)| {
        let lines: Vec<&str> = text.lines().collect();
        (sign, lines)
    });
    let total: usize = sides.iter().map(|(_, lines)| lines.len()).sum();
    let mut diff = String::new();
    for (sign, lines) in sides {
        let kept = if total > DIFF_LINES { DIFF_LINES / 2 } else { DIFF_LINES };
        for line in lines.iter().take(kept) {
            let mut line = printable(line);
            if let Some((end, _)) = line.char_indices().nth(LINE_CHARS) {
                line.truncate(end);
                line.push('…');
            }
            let _ = writeln!(diff, "{sign}{line}");
        }
        if lines.len() > kept {
            let _ = writeln!(diff, " … {} more lines with {sign}", lines.len() - kept);
        }
    }
    diff
}

/// A fence that no line of the text ends.
fn fence(text: &str) -> String {
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::review::testing::{WithHunks, file, session};

    fn at(reviews: &[SessionReview], line: u32, kind: MarkupKind) -> Option<(String, Option<Range>)> {
        let hover = hover(reviews, Position::new(line, 0), PositionEncoding::Utf16, kind)?;
        let HoverContents::Markup(content) = hover.contents else { panic!("no markup") };
        Some((content.value, hover.range))
    }

    #[test]
    fn a_hunk_shows_its_diff_its_state_and_its_actions() {
        let reviews =
            [session("Fix", file("a\n🙂 new\nb\n").applied("🙂 new\n", "old ``` \u{202e}\n", 1..2))];
        let (text, range) = at(&reviews, 1, MarkupKind::Markdown).unwrap();
        assert_eq!(
            text,
            "Kode changed 1 line (line 2, +1 -1). In the text, not reviewed yet.\n\n\
             ````diff\n-old ``` \\u{202e}\n+🙂 new\n````\n\n\
             Code actions: keep, undo"
        );
        assert_eq!(range, Some(Range::new(Position::new(1, 0), Position::new(1, 6))));
        let (plain, _) = at(&reviews, 1, MarkupKind::PlainText).unwrap();
        assert!(
            plain.contains("\n+🙂 new\n") && !plain.contains("```d") && plain.ends_with("keep, undo"),
            "{plain}"
        );
        for other in [0, 2] {
            assert_eq!(at(&reviews, other, MarkupKind::Markdown), None, "line {other}");
        }
    }

    #[test]
    fn a_removal_and_a_conflict_are_shown_too() {
        let removed = [session("Fix", file("a\nb\n").removed("gone\n", 2))];
        let (text, range) = at(&removed, 1, MarkupKind::Markdown).unwrap();
        assert!(
            text.contains("Kode removed 1 line") && text.contains("\n-gone\n") && range.is_none(),
            "{text}"
        );
        let conflict = [session("Fix", file("a\nmine\n").applied("mine\n", "", 1..2).in_conflict())];
        let (text, _) = at(&conflict, 1, MarkupKind::Markdown).unwrap();
        assert!(text.contains("undo, leaving what you typed") && text.contains("Decide whether"), "{text}");
    }

    #[test]
    fn a_large_hunk_is_cut_on_both_sides_and_says_so() {
        let new: String = (0..1_000).map(|line| format!("new {line}\n")).collect();
        let old = format!("{}\n{}", "x".repeat(10_000), "old\n".repeat(29));
        let reviews = [session("Fix", file(&new).applied(&new, &old, 0..1_000))];
        let (text, _) = at(&reviews, 999, MarkupKind::Markdown).unwrap();
        assert!(text.len() < 4_000, "{} bytes", text.len());
        for expected in
            ["(lines 1-1000, +1000 -30)", "10 more lines with -", "980 more lines with +", "+new 0\n"]
        {
            assert!(text.contains(expected), "no {expected:?} in {text}");
        }
    }

    #[test]
    fn hunks_of_two_sessions_on_one_line_are_both_shown() {
        let one = session("One", file("a\n").applied("a\n", "", 0..1));
        let two = session("Two", file("a\n").proposed("a\n", "b\n", 0));
        let (text, _) = at(&[one, two], 0, MarkupKind::Markdown).unwrap();
        assert!(text.contains("in “One”") && text.contains("in “Two”"), "{text}");
        assert!(text.contains("keep, undo") && text.contains("allow, deny"), "{text}");
    }
}
