//! Finding the text a model wants replaced in the text that is there.
//!
//! Rule: rather none than a guess. What matches is exact but for line breaks and curly quotes, which models cannot
//! be relied on to copy; and of a passage that matched that way only what old and new text differ in is written.

use std::borrow::Cow;
use std::ops::Range;
use std::time::Instant;

use memchr::memmem::Finder;
use memchr::{memchr, memchr2_iter};

use crate::edit::TextEdit;
use crate::edit::characters::adapt;
use crate::edit::diff::{DIFF_DEADLINE, common_ends, diff_tokens, split_lines};
use kode_base::encoding::LineEnding;

/// All places where a text was found, by the strictest comparison that found any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matches {
    /// Byte ranges in the text searched, in order, not overlapping.
    pub ranges: Vec<Range<usize>>,
    /// Whether the only range found overlaps another one: `aa` in `aaa`.
    pub overlaps: bool,
    tolerance: Tolerance,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tolerance {
    Exact,
    LineBreaks,
    Quotes,
}

impl Tolerance {
    /// Whether a search with this tolerance can find more in, or of, a text than an exact one.
    fn applies_to(self, text: &str) -> bool {
        match self {
            Self::Exact => true,
            Self::LineBreaks | Self::Quotes => next_folded(text, self).is_some(),
        }
    }
}

impl Matches {
    /// Looks for `old` in `text`: exactly, else with any line breaks, else with any kind of quotes as well.
    #[must_use]
    pub fn find(text: &str, old: &str) -> Self {
        let nothing = Self { ranges: Vec::new(), overlaps: false, tolerance: Tolerance::Exact };
        if old.is_empty() {
            return nothing;
        }
        [Tolerance::Exact, Tolerance::LineBreaks, Tolerance::Quotes]
            .into_iter()
            .filter(|tolerance| tolerance.applies_to(text) || tolerance.applies_to(old))
            .map(|tolerance| Self::find_with(text, old, tolerance))
            .find(|matches| !matches.ranges.is_empty())
            .unwrap_or(nothing)
    }

    /// How many there are, counting an overlapping second one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ranges.len() + usize::from(self.overlaps)
    }

    /// The edits that put `new` where `old` was found.
    ///
    /// Line breaks of `new` are written as in the passage, else as in the text; quotes as the passage has those of `old`.
    /// Without `new`, a passage of whole lines loses its last line break too, unless the next passage begins with it.
    /// `None` when a quote of `new` could stand for several of the text.
    #[must_use]
    pub fn replacements(&self, text: &str, old: &str, new: &str) -> Option<Vec<TextEdit>> {
        let fallback = LineEnding::dominant(text);
        let ends = self.ranges.iter().skip(1).map(|next| next.start).chain([text.len()]);
        let mut edits = Vec::with_capacity(self.ranges.len());
        for (range, end) in self.ranges.iter().cloned().zip(ends) {
            let new = match self.tolerance {
                Tolerance::Quotes => Cow::Owned(adapt(old, &text[range.clone()], new)?),
                Tolerance::Exact | Tolerance::LineBreaks => Cow::Borrowed(new),
            };
            edits.push(self.replacement(&text[..end], range, old, &new, fallback));
        }
        Some(edits)
    }

    fn find_with(text: &str, old: &str, tolerance: Tolerance) -> Self {
        let folded = FoldedText::new(text, tolerance);
        let needle = FoldedText::new(old, tolerance).text;
        let splits_break = |at: usize| text[..at].ends_with('\r') && text[at..].starts_with('\n');
        let original = |start: usize| folded.original(start)..folded.original(start + needle.len());
        let fits = |range: &Range<usize>| !splits_break(range.start) && !splits_break(range.end);
        let finder = Finder::new(needle.as_bytes());
        let starts: Vec<usize> = finder.find_iter(folded.text.as_bytes()).collect();
        let ranges: Vec<Range<usize>> = starts.iter().copied().map(original).filter(fits).collect();
        let overlaps = match (ranges.as_slice(), starts.first()) {
            ([_], Some(first)) => {
                let step = needle.chars().next().map_or(1, char::len_utf8);
                let next = finder.find(&folded.text.as_bytes()[first + step..]).map(|at| first + step + at);
                next.is_some_and(|next| next < first + needle.len() && fits(&original(next)))
            }
            _ => false,
        };
        Self { ranges, overlaps, tolerance }
    }

    /// The edit of one passage; `text` ends where the next one begins.
    fn replacement(
        &self,
        text: &str,
        mut range: Range<usize>,
        old: &str,
        new: &str,
        fallback: Option<&str>,
    ) -> TextEdit {
        let passage = &text[range.clone()];
        if new.is_empty() {
            let starts_line = range.start == 0 || text[..range.start].ends_with(['\n', '\r']);
            if starts_line && !old.ends_with(['\n', '\r']) {
                range.end += leading_line_break(&text[range.end..]);
            }
            return TextEdit { range, new_text: String::new() };
        }
        let line_break = LineEnding::dominant(passage).or(fallback);
        let (folded, old, folded_new) = (
            FoldedText::new(passage, self.tolerance),
            FoldedText::new(old, self.tolerance).text,
            FoldedText::new(new, self.tolerance),
        );
        let (prefix, suffix) = common_ends(&old, &folded_new.text);
        if old == folded_new.text {
            return TextEdit { range, new_text: with_line_breaks(new, line_break) };
        }
        let middle = folded_new.original(prefix)..folded_new.original(folded_new.text.len() - suffix);
        let start = range.start + folded.original(prefix);
        let end = range.start + folded.original(old.len() - suffix);
        TextEdit { range: start..end, new_text: with_line_breaks(&new[middle], line_break) }
    }
}

/// `new` with each line break as the lines around it in `old` have theirs: unchanged lines keep their own, others
/// get the most frequent one. A text that brings carriage returns of its own is taken as it is.
#[must_use]
pub fn adopt_line_breaks<'new>(old: &str, new: &'new str) -> Cow<'new, str> {
    if new.contains('\r') || !old.contains('\r') {
        return Cow::Borrowed(new);
    }
    let dominant = LineEnding::dominant(old);
    if LineEnding::of(old) != LineEnding::Mixed {
        return Cow::Owned(with_line_breaks(new, dominant));
    }
    let (old_lines, new_lines) = (split_lines(old), split_lines(new));
    let bare = |lines: &[&str]| -> Vec<String> {
        lines.iter().map(|line| FoldedText::new(line, Tolerance::LineBreaks).text.into_owned()).collect()
    };
    let (old_bare, new_bare) = (bare(&old_lines), bare(&new_lines));
    let old_tokens: Vec<&str> = old_bare.iter().map(String::as_str).collect();
    let new_tokens: Vec<&str> = new_bare.iter().map(String::as_str).collect();
    let deadline = Instant::now() + DIFF_DEADLINE;
    let mut adopted = String::with_capacity(new.len());
    for op in diff_tokens(&old_tokens, &new_tokens, deadline) {
        if op.tag() == similar::DiffTag::Equal {
            adopted.extend(old_lines[op.old_range()].iter().copied());
        } else {
            let lines = new_lines[op.new_range()].iter();
            adopted.extend(lines.map(|line| with_line_breaks(line, dominant)));
        }
    }
    Cow::Owned(adopted)
}

/// A text in which different characters count as the same, and the way back to the original.
struct FoldedText<'text> {
    text: Cow<'text, str>,
    /// Ends of characters whose length changed: offset in the folded text, offset in the original.
    anchors: Vec<(usize, usize)>,
}

impl<'text> FoldedText<'text> {
    fn new(text: &'text str, tolerance: Tolerance) -> Self {
        if next_folded(text, tolerance).is_none() {
            return Self { text: Cow::Borrowed(text), anchors: Vec::new() };
        }
        let mut folded = String::with_capacity(text.len());
        let mut anchors = Vec::new();
        let mut rest = text;
        while let Some(at) = next_folded(rest, tolerance) {
            folded.push_str(&rest[..at]);
            rest = &rest[at..];
            let character = rest.chars().next().unwrap_or_default();
            let (replacement, length) = match straight_quote(character) {
                Some(quote) => (quote, character.len_utf8()),
                None => ('\n', leading_line_break(rest)),
            };
            folded.push(replacement);
            rest = &rest[length..];
            anchors.push((folded.len(), text.len() - rest.len()));
        }
        folded.push_str(rest);
        Self { text: Cow::Owned(folded), anchors }
    }

    /// The offset in the original text of an offset in the folded one.
    fn original(&self, offset: usize) -> usize {
        let passed = self.anchors.partition_point(|(folded, _)| *folded <= offset);
        match passed.checked_sub(1).map(|last| self.anchors[last]) {
            Some((folded, original)) => original + (offset - folded),
            None => offset,
        }
    }
}

/// The offset of the next character that a tolerance folds, in bytes.
fn next_folded(text: &str, tolerance: Tolerance) -> Option<usize> {
    let is_folded = |character: char| character == '\r' || straight_quote(character).is_some();
    match tolerance {
        Tolerance::Exact => None,
        Tolerance::LineBreaks => memchr(b'\r', text.as_bytes()),
        // The first byte of all curly quotes in UTF-8.
        Tolerance::Quotes => {
            memchr2_iter(b'\r', 0xe2, text.as_bytes()).find(|at| text[*at..].starts_with(is_folded))
        }
    }
}

fn straight_quote(character: char) -> Option<char> {
    match character {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' => Some('\''),
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' => Some('"'),
        _ => None,
    }
}

fn leading_line_break(text: &str) -> usize {
    if text.starts_with("\r\n") { 2 } else { usize::from(text.starts_with(['\n', '\r'])) }
}

/// All line breaks of `text` written as `line_break`; unchanged without a sample to follow.
fn with_line_breaks(text: &str, line_break: Option<&str>) -> String {
    let Some(line_break) = line_break else { return text.to_owned() };
    let folded = FoldedText::new(text, Tolerance::LineBreaks).text;
    if line_break == "\n" { folded.into_owned() } else { folded.replace('\n', line_break) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::edit::change::apply_edits;

    fn replaced(text: &str, old: &str, new: &str) -> String {
        let matches = Matches::find(text, old);
        assert!(!matches.ranges.is_empty(), "{old:?} is not in {text:?}");
        apply_edits(text, &matches.replacements(text, old, new).unwrap())
    }

    #[test]
    fn replacement_text_is_literal() {
        assert_eq!(replaced("a X c", "X", r"$& \1 {} %s"), r"a $& \1 {} %s c");
    }

    #[test]
    fn line_breaks_match_each_other_and_stay_what_they_are() {
        for (text, old, new, expected) in [
            ("a\r\nb\r\nc\r\n", "a\nb", "a\nx\nb", "a\r\nx\r\nb\r\nc\r\n"),
            ("a\rb\rc", "a\nb", "A\nB", "A\rB\rc"),
            ("a\nb\n", "a\r\nb", "a\r\nc", "a\nc\n"),
            ("a\r\nb\nc\r\n", "a\nb\nc", "a\nb\nd", "a\r\nb\nd\r\n"),
            ("one\r\ntwo\r\n", "two", "two\nthree", "one\r\ntwo\r\nthree\r\n"),
            ("a\r\nb", "\nb", "\nc", "a\r\nc"),
            ("a\r\nb", "\nb", "", "a"),
            ("no break", "no", "a\nb", "a\nb break"),
        ] {
            assert_eq!(replaced(text, old, new), expected, "{old:?} in {text:?}");
        }
    }

    #[test]
    fn an_exact_match_is_preferred_to_a_tolerant_one() {
        assert_eq!(Matches::find("a\r\nb a\nb", "a\nb").ranges[0], 5..8);
        assert_eq!(Matches::find("“x” \"x\"", "\"x\"").ranges[0], 8..11);
    }

    #[test]
    fn straight_quotes_match_curly_ones_and_only_the_difference_is_written() {
        let text = "He said “it’s fine” and “no”.\n";
        assert_eq!(replaced(text, "\"it's fine\"", "\"it's great\""), "He said “it’s great” and “no”.\n");
        assert_eq!(replaced("a ‘b’ c", "'b'", "''"), "a ‘’ c");
        assert_eq!(replaced("say(\"a\")", "(“a”)", "(“b”, “c”)"), "say(\"b\", \"c\")");
        let curly = "say(“a”)";
        assert_eq!(Matches::find(curly, "(\"a\")").replacements(curly, "(\"a\")", "(\"b\", \"c\")"), None);
    }

    #[test]
    fn what_is_deleted_takes_no_line_break_that_the_next_passage_begins_with() {
        assert_eq!(replaced("\n\nx\nx\ny", "\nx", ""), "\n\ny");
        assert_eq!(replaced("\r\n\r\nx\r\nx\r\ny", "\nx", ""), "\r\n\r\ny");
    }

    #[test]
    fn deleting_whole_lines_takes_their_line_break() {
        for (text, old, expected) in [
            ("a\nb\nc\n", "b", "a\nc\n"),
            ("a\r\nb\r\nc\r\n", "b", "a\r\nc\r\n"),
            ("a\nb\nc\n", "b\n", "a\nc\n"),
            ("a\nxb\nc\n", "b", "a\nx\nc\n"),
            ("a\nbx\n", "b", "a\nx\n"),
            ("a\nb", "b", "a\n"),
            ("a\nb\nc", "a\nb", "c"),
        ] {
            assert_eq!(replaced(text, old, ""), expected, "{old:?} from {text:?}");
        }
    }

    #[test]
    fn every_match_is_counted() {
        assert_eq!(Matches::find("a b a b a", "a").count(), 3);
        assert_eq!(Matches::find("aaa", "aa").count(), 2);
        assert_eq!(Matches::find("a b", "c").count(), 0);
        assert_eq!(Matches::find("a b", "").count(), 0);
    }

    #[test]
    fn a_whole_text_takes_over_the_line_breaks_of_the_old_one() {
        assert_eq!(adopt_line_breaks("a\r\nb\r\n", "a\nc\n"), "a\r\nc\r\n");
        assert_eq!(adopt_line_breaks("a\r\nb\nc\r\nd\r\n", "a\nb\nx\nd\n"), "a\r\nb\nx\r\nd\r\n");
        assert_eq!(adopt_line_breaks("a\r\n", "b\r\nc\n"), "b\r\nc\n");
        assert_eq!(adopt_line_breaks("a\n", "b\n"), "b\n");
    }

    proptest! {
        #[test]
        fn nothing_outside_the_matched_passage_changes(
            before in "[ab “”'é\r\n]{0,20}",
            passage in "[ab “”é\r\n]{1,8}",
            after in "[ab “”'é\r\n]{0,20}",
            new in "[xy\n\"]{0,6}",
        ) {
            let text = format!("{before}{passage}{after}");
            let old = passage.replace("\r\n", "\n").replace('\r', "\n").replace(['“', '”'], "\"");
            let matches = Matches::find(&text, &old);
            let Some(edits) = matches.replacements(&text, &old, &new) else { return Ok(()) };
            for (edit, range) in edits.iter().zip(&matches.ranges) {
                let line_break = leading_line_break(&text[range.end..]);
                prop_assert!(range.start <= edit.range.start && edit.range.end <= range.end + line_break);
                prop_assert!(text.is_char_boundary(edit.range.start) && text.is_char_boundary(edit.range.end));
            }
            prop_assert!(edits.is_sorted_by_key(|edit| edit.range.start));
        }
    }
}
