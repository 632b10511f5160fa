//! Passages that are in a text in one place as given, and can be read in another way all the same.
//!
//! Rule: where two readings of a request lead to different texts, it has none. A passage of whole lines has one reading.

use std::ops::Range;

use crate::edit::diff::{common_ends, split_lines, without_break};
use crate::edit::indent::{IndentChange, IndentedMatch};

/// The lines, from 0, of a passage as whole lines with another indentation, if it begins or ends within a line in
/// the `place` its place as given: `}` of several lines may be meant there, or be the beginning of `});` by chance. So
/// may a line with fewer blanks before it than there, where another one has fewer still.
pub(super) fn whole_lines_elsewhere(text: &str, place: &Range<usize>, old: &str) -> Vec<Range<usize>> {
    let (before, after) = (line_before(text, place.start), line_after(text, place.end));
    let is_whole = before.is_empty() && (is_blank(after) || old.ends_with(['\n', '\r']));
    // A part of one line may stand anywhere; but one with blanks before it alone may be the whole line.
    let is_part = split_lines(old).len() < 2 && (before.is_empty() || !is_blank(before));
    if is_whole || is_part {
        return Vec::new();
    }
    let first = split_lines(&text[..place.start - before.len()]).len();
    let places = IndentedMatch::find_any(text, old).into_iter().map(|found| found.lines);
    places.filter(|lines| lines.start != first).collect()
}

/// The indentation before a passage that begins within the indentation of its first line, where it stays open how the new text
/// is meant: from there, or with that indentation missing in the first line alone.
///
/// The two come to the same where the new text begins with the first line of the passage, or with what takes its place.
pub(super) fn open_first_line(
    text: &str,
    place: &Range<usize>,
    old: &str,
    new: &str,
) -> Option<IndentChange> {
    let before = line_before(text, place.start);
    if before.is_empty() || !is_blank(before) || new.is_empty() {
        return None;
    }
    let bare = |text| -> Vec<&str> { split_lines(text).into_iter().map(without_break).collect() };
    let (old, new) = (bare(old), bare(new));
    let ([first, further @ ..], [first_new, further_new @ ..]) = (old.as_slice(), new.as_slice()) else {
        return None;
    };
    let is_clear = is_blank(first)
        || indent(first_new) == indent(first)
            && !is_blank(first_new)
            && count(further_new, first) == count(further, first)
            && (first_new == first || is_first_changed(first, first_new, further, further_new))
            && (further.iter().any(|line| !is_blank(line))
                || further_new
                    .iter()
                    .all(|line| is_blank(line) || line.starts_with(&[before, indent(first)].concat())));
    (!is_clear).then(|| IndentChange::Added(before.to_owned()))
}

/// Whether the first line of the new text is the one of the passage changed, and none of its further lines that are gone.
fn is_first_changed(first: &str, first_new: &str, further: &[&str], further_new: &[&str]) -> bool {
    let likeness = |line: &str| {
        let (prefix, suffix) = common_ends(line.trim(), first_new.trim());
        prefix + suffix
    };
    let is_gone = |line: &&&str| !is_blank(line) && !further_new.contains(line);
    !further.contains(&first_new)
        && further.iter().filter(is_gone).all(|line| likeness(line) < likeness(first))
}

fn count(lines: &[&str], line: &str) -> usize {
    lines.iter().filter(|other| **other == line).count()
}

/// The part of a line before an offset.
fn line_before(text: &str, at: usize) -> &str {
    let start = text[..at].rfind(['\n', '\r']).map_or(0, |line_break| line_break + 1);
    &text[start..at]
}

/// The part of a line behind an offset, without its line break.
fn line_after(text: &str, at: usize) -> &str {
    let rest = &text[at..];
    &rest[..rest.find(['\n', '\r']).unwrap_or(rest.len())]
}

fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' ' | b'\t'))
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}
