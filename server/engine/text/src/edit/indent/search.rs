//! Looking for the lines of a passage from its longest line, without splitting the text into lines.
//!
//! Rule: a line is whole: nothing but blanks is before and behind the searched text. Every line checked is counted.

use std::ops::Range;

use memchr::{memchr, memchr_iter};

use super::{BLANKS, IndentedLine};
use crate::edit::diff::split_lines;

/// The longest line of a passage, at which the search begins; `None` where all are blank.
pub(super) fn anchor(wanted: &[IndentedLine<'_>]) -> Option<usize> {
    let solid = (0..wanted.len()).filter(|at| !wanted[*at].is_blank());
    solid.max_by_key(|at| wanted[*at].body.len())
}

/// Where the line begins that has nothing but blanks around the `body` at an offset.
pub(super) fn line_of_body(text: &str, at: usize, body: &str) -> Option<usize> {
    let start = text[..at].trim_end_matches(BLANKS).len();
    let behind = text[at + body.len()..].trim_start_matches(BLANKS);
    let is_whole = (start == 0 || text[..start].ends_with(['\n', '\r']))
        && (behind.is_empty() || behind.starts_with(['\n', '\r']));
    is_whole.then_some(start)
}

/// The bytes of the lines that end before a line and continue with it, if their bodies are those wanted before and from
/// there.
pub(super) fn bytes_around(
    text: &str,
    line: usize,
    (before, from): (&[IndentedLine<'_>], &[IndentedLine<'_>]),
    comparisons: &mut usize,
) -> Option<Range<usize>> {
    let is =
        |range: Range<usize>, wanted: &IndentedLine<'_>| IndentedLine::of(&text[range]).body == wanted.body;
    let mut start = line;
    for wanted in before.iter().rev() {
        *comparisons += 1;
        let begin = line_before(text, start)?;
        if !is(begin..start, wanted) {
            return None;
        }
        start = begin;
    }
    let mut end = line;
    for wanted in from {
        *comparisons += 1;
        let next = line_behind(text, end)?;
        if !is(end..next, wanted) {
            return None;
        }
        end = next;
    }
    Some(start..end)
}

/// How many lines a text has that ends with a line break.
pub(super) fn count_lines(text: &str) -> usize {
    match memchr(b'\r', text.as_bytes()) {
        Some(_) => split_lines(text).len(),
        None => memchr_iter(b'\n', text.as_bytes()).count(),
    }
}

/// Where lines begin and end in a text, in bytes, their line breaks included; `None` where it has fewer.
pub(super) fn bytes_of(text: &str, lines: &Range<usize>) -> Option<(usize, usize)> {
    let start = match lines.start.checked_sub(1) {
        None => 0,
        Some(_) if memchr(b'\r', text.as_bytes()).is_some() => {
            split_lines(text).get(..lines.start)?.iter().map(|line| line.len()).sum()
        }
        Some(last) => memchr_iter(b'\n', text.as_bytes()).nth(last)? + 1,
    };
    let end = lines.clone().try_fold(start, |end, _| line_behind(text, end))?;
    Some((start, end))
}

/// Where the line before the one at `start` begins.
fn line_before(text: &str, start: usize) -> Option<usize> {
    let before = text[..start].strip_suffix('\n').map(|before| before.strip_suffix('\r').unwrap_or(before));
    let before = before.or_else(|| text[..start].strip_suffix('\r'))?;
    Some(before.bytes().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1))
}

/// Where the line at `start` ends, its line break included.
fn line_behind(text: &str, start: usize) -> Option<usize> {
    let rest = text.as_bytes().get(start..).filter(|rest| !rest.is_empty())?;
    let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
        return Some(text.len());
    };
    let is_double = rest[at] == b'\r' && rest.get(at + 1) == Some(&b'\n');
    Some(start + at + 1 + usize::from(is_double))
}
