//! Replacing one passage of a text, as the editing tools do it: all steps of matching, in their order.
//!
//! Rule: a step comes in only where the ones before it found nothing, and writes only where one place is left.

use std::ops::Range;

use crate::edit::TextEdit;
use crate::edit::diff::{split_lines, without_break};
use crate::edit::indent::{IndentChange, IndentedMatch};
use crate::edit::matching::Matches;
use crate::edit::repair::{Repair, RepairedMatch};

/// The edits that replace a passage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassageEdit {
    /// In order, not overlapping; several only where all occurrences were asked for.
    pub edits: Vec<TextEdit>,
    /// How the passage stands in the text, where that is not as it was given.
    pub note: Option<PassageNote>,
}

/// How a passage stands in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PassageNote {
    /// With another indentation, or other blanks at the ends of its lines.
    Indented(IndentedMatch),
    /// Without a damage of the request, which was undone in the new text too.
    Repaired {
        /// What was undone.
        repair: Repair,
        /// Its lines in the text, from 0.
        lines: Range<usize>,
    },
}

/// Why a passage was not replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PassageMismatch {
    /// It is not in the text.
    NotFound,
    /// It stands in several places as it was given.
    Ambiguous(Matches),
    /// It stands in several places, with another indentation or once the request is repaired: their lines, from 0.
    AmbiguousLines(Vec<Range<usize>>),
    /// It stands in one place, but how the new text is to be written there does not follow.
    Unclear {
        /// Its lines in the text, from 0.
        lines: Range<usize>,
        /// How it stands there; `None` when its quotes differ.
        note: Option<PassageNote>,
    },
}

/// A passage to replace.
#[derive(Clone, Copy, Debug)]
pub struct PassageRequest<'input> {
    /// The passage.
    pub old: &'input str,
    /// What stands there afterwards.
    pub new: &'input str,
    /// Whether every occurrence is replaced.
    pub all: bool,
    /// Whether the text has changed since the caller read it. The passage may be gone then, and a line like it elsewhere be
    /// mistaken for it: it is replaced only where it stands as given, but for line breaks and quotes.
    pub is_stale: bool,
}

/// The edits that put the new text in the place of the passage, or of all its occurrences.
///
/// # Errors
/// [`PassageMismatch`] when there is not one place, or when the new text does not follow.
pub fn replace_passage(text: &str, request: PassageRequest<'_>) -> Result<PassageEdit, PassageMismatch> {
    let PassageRequest { old, new, all, is_stale } = request;
    let matches = Matches::find(text, old);
    match matches.count() {
        0 if is_stale => Err(PassageMismatch::NotFound),
        0 => indented(text, old, new)
            .or_else(|| repaired(text, old, new))
            .unwrap_or(Err(PassageMismatch::NotFound)),
        count if count > 1 && !all => Err(PassageMismatch::Ambiguous(matches)),
        count => {
            if count == 1
                && let Some(place) = place_within_indent(text, &matches, old, new)
            {
                return within_indent(text, place, request);
            }
            match matches.replacements(text, old, new) {
                Some(edits) => Ok(PassageEdit { edits, note: None }),
                None => Err(PassageMismatch::Unclear { lines: lines_of(text, &matches), note: None }),
            }
        }
    }
}

/// The lines of a match that begins within the indentation of its first line, where the indentation of the new text may be
/// meant from there or from the beginning of the line. Further lines of the passage show which for further lines of the new
/// text; its first line has to begin as that of the passage does.
fn place_within_indent(text: &str, matches: &Matches, old: &str, new: &str) -> Option<IndentedMatch> {
    let is_blank = |text: &str| text.bytes().all(|byte| matches!(byte, b' ' | b'\t'));
    let range = matches.ranges.first()?;
    let line_start = text[..range.start].rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let before = &text[line_start..range.start];
    if before.is_empty() || !is_blank(before) {
        return None;
    }
    let indent = |line: &str| line[..line.len() - line.trim_start_matches([' ', '\t']).len()].to_owned();
    let own = indent(old);
    let full = [before, &own].concat();
    let (old_lines, new_lines) = (split_lines(old), split_lines(new));
    let solid = |line: &&&str| !is_blank(without_break(line));
    // A line that the passage has further down is there with its whole indentation.
    let is_later =
        |first: &&str| old_lines.first() != Some(first) && old_lines.iter().skip(1).any(|line| line == first);
    let begins_otherwise =
        new_lines.first().filter(solid).is_some_and(|first| indent(first) != own || is_later(first));
    let is_single = old_lines.iter().skip(1).filter(solid).count() == 0;
    let is_open = is_single && new_lines.iter().skip(1).filter(solid).any(|line| !line.starts_with(&full));
    (begins_otherwise || is_open).then(|| IndentedMatch {
        lines: lines_of(text, matches),
        change: IndentChange::Added(before.to_owned()),
    })
}

/// A passage that has some indentation, and the text has more: its line as a whole. Without any, it stays open where the
/// further lines belong.
fn within_indent(
    text: &str,
    place: IndentedMatch,
    request: PassageRequest<'_>,
) -> Result<PassageEdit, PassageMismatch> {
    let PassageRequest { old, new, is_stale, .. } = request;
    let whole = (old.starts_with([' ', '\t']) && !is_stale).then(|| indented(text, old, new)).flatten();
    whole.filter(Result::is_ok).unwrap_or_else(|| {
        Err(PassageMismatch::Unclear { lines: place.lines.clone(), note: Some(PassageNote::Indented(place)) })
    })
}

fn indented(text: &str, old: &str, new: &str) -> Option<Result<PassageEdit, PassageMismatch>> {
    let places = IndentedMatch::find(text, old);
    let edit = match places.as_slice() {
        [] => return None,
        [place] => place.replacement(text, old, new),
        places => return Some(Err(ambiguous(places))),
    };
    places.into_iter().next().map(|place| {
        let lines = place.lines.clone();
        edit_or_unclear(edit, lines, PassageNote::Indented(place))
    })
}

fn repaired(text: &str, old: &str, new: &str) -> Option<Result<PassageEdit, PassageMismatch>> {
    let found = RepairedMatch::find(text, old)?;
    let [place] = found.places.as_slice() else { return Some(Err(ambiguous(&found.places))) };
    let lines = place.lines.clone();
    let note = PassageNote::Repaired { repair: found.repair, lines: lines.clone() };
    Some(edit_or_unclear(found.replacement(text, old, new), lines, note))
}

fn ambiguous(places: &[IndentedMatch]) -> PassageMismatch {
    PassageMismatch::AmbiguousLines(places.iter().map(|place| place.lines.clone()).collect())
}

fn edit_or_unclear(
    edit: Option<TextEdit>,
    lines: Range<usize>,
    note: PassageNote,
) -> Result<PassageEdit, PassageMismatch> {
    match edit {
        Some(edit) => Ok(PassageEdit { edits: vec![edit], note: Some(note) }),
        None => Err(PassageMismatch::Unclear { lines, note: Some(note) }),
    }
}

/// The lines of the first match, from 0.
fn lines_of(text: &str, matches: &Matches) -> Range<usize> {
    let Some(range) = matches.ranges.first() else { return 0..0 };
    let number = |at: usize| text[..at].matches('\n').count();
    number(range.start)..number(range.end) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::change::apply_edits;

    /// The text after the request; `None` when it is refused.
    fn replaced(text: &str, old: &str, new: &str, is_stale: bool) -> Option<String> {
        let request = PassageRequest { old, new, all: false, is_stale };
        replace_passage(text, request).ok().map(|edit| apply_edits(text, &edit.edits))
    }

    #[test]
    fn more_lines_behind_a_line_that_begins_within_its_indentation_are_not_guessed_at() {
        let text = "{\n        return value;\n}\n";
        let deep = "{\n        return value;\n    }\n";
        assert_eq!(replaced(deep, "    return value;\n    }", "    }", false), None);
        for (old, new, expected) in [
            // The further line has the indentation of the file.
            (
                "return value;",
                "check();\n        return value;",
                Some("{\n        check();\n        return value;\n}\n"),
            ),
            ("return value;", "return other;", Some("{\n        return other;\n}\n")),
            // The passage is one level less, and so is the new text.
            (
                "    return value;",
                "    check();\n    return value;",
                Some("{\n        check();\n        return value;\n}\n"),
            ),
            ("return value;", "check();\nreturn value;", None),
            // The line that the passage begins with is gone, and the next one has its whole indentation.
            ("return value;\n}", "        check();\n}", None),
            ("return value;\n}", "check();\n}", Some("{\n        check();\n}\n")),
            ("value;", "value;\nmore", Some("{\n        return value;\nmore\n}\n")),
        ] {
            assert_eq!(replaced(text, old, new, false).as_deref(), expected, "{new:?} for {old:?}");
        }
    }

    #[test]
    fn in_a_text_that_changed_since_no_line_like_the_passage_is_taken_for_it() {
        let text = "one();\n    longer_changed();\n    longer_name();\n";
        let (old, new) = ("\tlonger_name();", "\tx();");
        assert_eq!((replaced(text, old, new, false).is_some(), replaced(text, old, new, true)), (true, None));
        let (old, new) = ("\u{feff}one();\n    longer_changed();", "two();");
        assert_eq!((replaced(text, old, new, false).is_some(), replaced(text, old, new, true)), (true, None));
        assert!(replaced(text, "longer_name();", "x();", true).is_some(), "as given");
    }
}
