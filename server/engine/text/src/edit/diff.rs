//! Differences between two texts: as minimal edits, as hunks, and as a unified patch.
//!
//! Rule: every comparison has a deadline and every output a bound; past the deadline a difference gets coarser,
//! never wrong, and past the bound the reader is notified.

use std::fmt::Write as _;
use std::ops::Range;
use std::time::{Duration, Instant};

use memchr::memchr2_iter;
use serde::Serialize;
use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};

use crate::edit::TextEdit;
use kode_base::paths::one_line;

/// How long one comparison looks for the smallest difference.
pub const DIFF_DEADLINE: Duration = Duration::from_millis(500);

/// The differences of two sequences of lines or words. Every comparison here goes through this: `similar` compiles all its
/// algorithms, some 100 KB, for each type of token.
pub(super) fn diff_tokens(old: &[&str], new: &[&str], deadline: Instant) -> Vec<DiffOp> {
    capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(deadline))
}

/// Unchanged lines shown around a change.
const CONTEXT_LINES: usize = 3;

/// Lines of a patch that are kept.
const MAX_PATCH_LINES: usize = 2_000;

/// Characters of one line of a patch.
const MAX_PATCH_LINE_CHARS: usize = 2_000;

/// Texts up to this size are compared word by word at once, larger ones line by line first.
const WORD_DIFF_BYTES: usize = 16 << 10;

/// A difference between two texts, line by line, with context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// The changed places in order.
    pub hunks: Vec<DiffHunk>,
    /// Lines that are in the new text only.
    pub added: usize,
    /// Lines that are in the old text only.
    pub removed: usize,
    /// Whether hunks are left out because the patch would be too long; the counts are of the whole.
    pub truncated: bool,
}

/// One changed place with its context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffHunk {
    /// First line in the old text, from 1; the line before if none exist.
    pub old_start: usize,
    /// Lines of the old text.
    pub old_lines: usize,
    /// First line in the new text, from 1; the line before if none exist.
    pub new_start: usize,
    /// Lines of the new text.
    pub new_lines: usize,
    /// The lines without their line breaks, each after ` `, `+` or `-`; a `\` line says that the line before it
    /// has no line break.
    pub lines: Vec<String>,
}

/// How many lines a change adds and removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Lines that are in the new text only.
    pub added: usize,
    /// Lines that are in the old text only.
    pub removed: usize,
}

impl LineCounts {
    /// Compares two texts, as [`Patch::between`] does, without the lines of a patch.
    #[must_use]
    pub fn between(old: &str, new: &str) -> Self {
        let ops = diff_tokens(&split_lines(old), &split_lines(new), Instant::now() + DIFF_DEADLINE);
        Self {
            added: changed_lines(&ops, DiffOp::new_range),
            removed: changed_lines(&ops, DiffOp::old_range),
        }
    }
}

impl Patch {
    /// Compares two texts.
    #[must_use]
    pub fn between(old: &str, new: &str) -> Self {
        let (old, new) = (split_lines(old), split_lines(new));
        let deadline = Instant::now() + DIFF_DEADLINE;
        let ops = diff_tokens(&old, &new, deadline);
        let mut patch = Self::default();
        let mut kept_lines = 0;
        for group in group_diff_ops(ops, CONTEXT_LINES) {
            patch.removed += changed_lines(&group, DiffOp::old_range);
            patch.added += changed_lines(&group, DiffOp::new_range);
            if patch.truncated {
                continue;
            }
            let mut hunk = DiffHunk::new(&group, &old, &new);
            // The beginning of a long hunk is shown: the user who judges it must see it.
            patch.truncated = hunk.cut(MAX_PATCH_LINES - kept_lines);
            kept_lines += hunk.lines.len();
            if !hunk.lines.is_empty() {
                patch.hunks.push(hunk);
            }
        }
        patch
    }

    /// The patch in the unified format, `a/` and `b/` before the path.
    #[must_use]
    pub fn unified(&self, path: &str, created: bool) -> String {
        self.unified_as(Some(path).filter(|_| !created), Some(path))
    }

    /// The patch in the unified format from one path to another; `None` where there is no file.
    #[must_use]
    pub fn unified_as(&self, old: Option<&str>, new: Option<&str>) -> String {
        let named = |side: char, path: Option<&str>| match path {
            Some(path) => format!("{side}/{}", one_line(path)),
            None => "/dev/null".to_owned(),
        };
        let mut text = format!("--- {}\n+++ {}\n", named('a', old), named('b', new));
        for hunk in &self.hunks {
            let DiffHunk { old_start, old_lines, new_start, new_lines, .. } = hunk;
            let _ = writeln!(text, "@@ -{old_start},{old_lines} +{new_start},{new_lines} @@");
            for line in &hunk.lines {
                text.push_str(line);
                text.push('\n');
            }
        }
        if self.truncated {
            text.push_str("\\ The patch is too long; the rest is left out\n");
        }
        text
    }
}

impl DiffHunk {
    fn new(group: &[DiffOp], old: &[&str], new: &[&str]) -> Self {
        let cover = |range: fn(&DiffOp) -> Range<usize>| match (group.first(), group.last()) {
            (Some(first), Some(last)) => range(first).start..range(last).end,
            _ => 0..0,
        };
        let (old_range, new_range) = (cover(DiffOp::old_range), cover(DiffOp::new_range));
        let mut lines = Vec::new();
        for op in group {
            match op.tag() {
                DiffTag::Equal => push_lines(&mut lines, ' ', &new[op.new_range()]),
                DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => {
                    push_lines(&mut lines, '-', &old[op.old_range()]);
                    push_lines(&mut lines, '+', &new[op.new_range()]);
                }
            }
        }
        Self {
            old_start: old_range.start + usize::from(!old_range.is_empty()),
            old_lines: old_range.len(),
            new_start: new_range.start + usize::from(!new_range.is_empty()),
            new_lines: new_range.len(),
            lines,
        }
    }

    /// Leaves at most this many lines, none of them longer than [`MAX_PATCH_LINE_CHARS`], and corrects the counts; true
    /// when lines were left out or cut.
    fn cut(&mut self, lines: usize) -> bool {
        let mut cut = self.lines.len() > lines;
        self.lines.truncate(lines);
        for line in &mut self.lines {
            if let Some((end, _)) = line.char_indices().nth(MAX_PATCH_LINE_CHARS) {
                line.truncate(end);
                line.push('…');
                cut = true;
            }
        }
        let of = |signs: [char; 2]| self.lines.iter().filter(|line| line.starts_with(signs)).count();
        (self.old_lines, self.new_lines) = (of([' ', '-']), of([' ', '+']));
        cut
    }

    /// How many of its lines begin with a sign.
    #[must_use]
    pub fn count(&self, sign: char) -> usize {
        self.lines.iter().filter(|line| line.starts_with(sign)).count()
    }
}

/// Appends a line numbered like `cat -n`, without its line break, cut after `max_chars` characters with a marker.
pub fn push_numbered(text: &mut String, number: usize, line: &str, max_chars: usize) {
    let line = line.trim_end_matches(['\r', '\n']);
    match line.char_indices().nth(max_chars) {
        Some((cut, _)) => push_numbered_cut(text, number, &line[..cut], line[cut..].chars().count()),
        None => push_numbered_cut(text, number, line, 0),
    }
}

/// Appends the beginning of a line, numbered like `cat -n`, and how many characters are left out after it.
pub fn push_numbered_cut(text: &mut String, number: usize, start: &str, left_out: usize) {
    let _ = write!(text, "{number:>6}\t");
    text.push_str(start);
    if left_out > 0 {
        let _ = write!(text, "... [{left_out} more characters]");
    }
}

/// The smallest edits, in words, that turn `old` into `new`: sorted, neither overlapping nor touching.
#[must_use]
pub fn word_changes(old: &str, new: &str) -> Vec<TextEdit> {
    let deadline = Instant::now() + DIFF_DEADLINE;
    let Some(middle) = middle(old, new) else { return Vec::new() };
    let spans = if middle.old.len().max(middle.new.len()) <= WORD_DIFF_BYTES {
        token_changes(middle, split_words, deadline)
    } else {
        let lines = token_changes(middle, split_lines, deadline);
        lines.into_iter().flat_map(|span| token_changes(span, split_words, deadline)).collect()
    };
    spans.into_iter().filter_map(DiffSpan::trimmed).map(DiffSpan::into_edit).collect()
}

/// The smallest edits, in whole lines, that turn `old` into `new`: sorted, neither overlapping nor touching.
#[must_use]
pub fn line_changes(old: &str, new: &str) -> Vec<TextEdit> {
    let whole = DiffSpan { start: 0, old, new };
    let spans = token_changes(whole, split_lines, Instant::now() + DIFF_DEADLINE);
    spans.into_iter().filter_map(DiffSpan::trimmed).map(DiffSpan::into_edit).collect()
}

/// A line that [`split_lines`] returned, without its line break.
#[must_use]
pub fn without_break(line: &str) -> &str {
    line.trim_end_matches(['\n', '\r'])
}

/// Lengths of the longest common prefix and suffix that do not overlap, cut neither characters nor `\r\n`.
#[must_use]
pub fn common_ends(old: &str, new: &str) -> (usize, usize) {
    let same = |(a, b): &(u8, u8)| a == b;
    let mut prefix = old.bytes().zip(new.bytes()).take_while(same).count();
    let splits_break = |text: &str, at: usize| {
        at > 0 && text.as_bytes()[at - 1] == b'\r' && text.as_bytes().get(at) == Some(&b'\n')
    };
    while !old.is_char_boundary(prefix) || !new.is_char_boundary(prefix) {
        prefix -= 1;
    }
    if splits_break(old, prefix) || splits_break(new, prefix) {
        prefix -= 1;
    }
    let (old, new) = (&old[prefix..], &new[prefix..]);
    let mut suffix = old.bytes().rev().zip(new.bytes().rev()).take_while(same).count();
    while !old.is_char_boundary(old.len() - suffix) || !new.is_char_boundary(new.len() - suffix) {
        suffix -= 1;
    }
    if splits_break(old, old.len() - suffix) || splits_break(new, new.len() - suffix) {
        suffix -= 1;
    }
    (prefix, suffix)
}

/// The lines of a text with their line breaks: `\n`, `\r\n` or `\r`.
pub fn split_lines(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut lines = Vec::new();
    let mut start = 0;
    for at in memchr2_iter(b'\n', b'\r', bytes) {
        if bytes[at] == b'\n' || bytes.get(at + 1) != Some(&b'\n') {
            lines.push(&text[start..=at]);
            start = at + 1;
        }
    }
    if start < text.len() {
        lines.push(&text[start..]);
    }
    lines
}

/// A stretch of the old text that became a stretch of the new one.
#[derive(Clone, Copy)]
struct DiffSpan<'text> {
    start: usize,
    old: &'text str,
    new: &'text str,
}

impl DiffSpan<'_> {
    /// Without the common ends; `None` when nothing differs.
    fn trimmed(self) -> Option<Self> {
        let (prefix, suffix) = common_ends(self.old, self.new);
        let old = &self.old[prefix..self.old.len() - suffix];
        let new = &self.new[prefix..self.new.len() - suffix];
        (!old.is_empty() || !new.is_empty()).then_some(Self { start: self.start + prefix, old, new })
    }

    fn into_edit(self) -> TextEdit {
        TextEdit { range: self.start..self.start + self.old.len(), new_text: self.new.to_owned() }
    }
}

fn middle<'text>(old: &'text str, new: &'text str) -> Option<DiffSpan<'text>> {
    DiffSpan { start: 0, old, new }.trimmed()
}

fn token_changes<'text>(
    span: DiffSpan<'text>,
    split: fn(&'text str) -> Vec<&'text str>,
    deadline: Instant,
) -> Vec<DiffSpan<'text>> {
    let (old, new) = (split(span.old), split(span.new));
    let (mut old_at, mut new_at) = (0, 0);
    let mut changes = Vec::new();
    for op in diff_tokens(&old, &new, deadline) {
        let old_length: usize = old[op.old_range()].iter().map(|token| token.len()).sum();
        let new_length: usize = new[op.new_range()].iter().map(|token| token.len()).sum();
        if op.tag() != DiffTag::Equal {
            changes.push(DiffSpan {
                start: span.start + old_at,
                old: &span.old[old_at..old_at + old_length],
                new: &span.new[new_at..new_at + new_length],
            });
        }
        old_at += old_length;
        new_at += new_length;
    }
    changes
}

/// Words, runs of blanks, line breaks, and every other character by itself, ideographs and syllables of CJK among them.
fn split_words(text: &str) -> Vec<&str> {
    #[derive(PartialEq)]
    enum Class {
        Word,
        Blank,
        Single,
    }
    let class = |character: char| match character {
        '_' => Class::Word,
        ' ' | '\t' => Class::Blank,
        // Written without blanks between words: a line of them is not one word.
        '\u{2e80}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => Class::Single,
        _ if character.is_alphanumeric() => Class::Word,
        _ => Class::Single,
    };
    let mut words = Vec::new();
    let mut start = 0;
    let mut previous: Option<char> = None;
    for (at, character) in text.char_indices() {
        let joins = previous.is_some_and(|previous| match class(character) {
            Class::Word => class(previous) == Class::Word,
            Class::Blank => class(previous) == Class::Blank,
            Class::Single => (previous, character) == ('\r', '\n'),
        });
        if !joins && at > start {
            words.push(&text[start..at]);
            start = at;
        }
        previous = Some(character);
    }
    if start < text.len() {
        words.push(&text[start..]);
    }
    words
}

fn changed_lines(group: &[DiffOp], range: fn(&DiffOp) -> Range<usize>) -> usize {
    group.iter().filter(|op| op.tag() != DiffTag::Equal).map(|op| range(op).len()).sum()
}

fn push_lines(lines: &mut Vec<String>, sign: char, content: &[&str]) {
    for line in content {
        let bare = line.strip_suffix('\n').map_or(*line, |line| line.strip_suffix('\r').unwrap_or(line));
        let bare = if bare.len() == line.len() { line.strip_suffix('\r').unwrap_or(line) } else { bare };
        lines.push(format!("{sign}{bare}"));
        if bare.len() == line.len() {
            lines.push("\\ No newline at end of file".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::edit::change::apply_edits;

    #[test]
    fn a_patch_is_what_diff_u_prints() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12";
        let new = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n";
        let patch = Patch::between(old, new);
        assert_eq!((patch.added, patch.removed), (3, 2));
        insta::assert_snapshot!(patch.unified("a.txt", false), @r"
        --- a/a.txt
        +++ b/a.txt
        @@ -2,11 +2,12 @@
         2
         3
         4
        -5
        +five
         6
         7
         8
         9
         10
         11
        -12
        \ No newline at end of file
        +12
        +13
        ");
    }

    #[test]
    fn a_created_file_comes_from_nowhere() {
        let unified = Patch::between("", "a\nb\n").unified("new.txt", true);
        assert_eq!(unified, "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n");
    }

    #[test]
    fn long_patches_are_cut_and_say_so() {
        let new = "x\n".repeat(MAX_PATCH_LINES + 1);
        let patch = Patch::between("", &new);
        let [hunk] = patch.hunks.as_slice() else { panic!("the beginning is shown") };
        assert!(patch.truncated && hunk.lines.len() == MAX_PATCH_LINES && hunk.new_lines == MAX_PATCH_LINES);
        let long_line = Patch::between("", &"y".repeat(5 * MAX_PATCH_LINE_CHARS));
        assert!(
            long_line.truncated && long_line.hunks[0].lines[0].chars().count() == MAX_PATCH_LINE_CHARS + 1
        );
        assert_eq!(patch.added, MAX_PATCH_LINES + 1);
        assert!(patch.unified("a", true).contains("the rest is left out"));
    }

    #[test]
    fn changes_are_no_larger_than_the_words_that_differ() {
        let edit = |range, new_text: &str| TextEdit { range, new_text: new_text.to_owned() };
        assert_eq!(
            word_changes("let a = 1;\nlet b = 2;\n", "let aa = 1;\nlet b = 3 + 4;\n"),
            [edit(5..5, "a"), edit(19..20, "3 + 4")]
        );
        assert_eq!(word_changes("same", "same"), []);
        assert_eq!(line_changes("a\nb\nc\n", "a\nc\nd\n"), [edit(2..4, ""), edit(6..6, "d\n")]);
    }

    #[test]
    fn no_change_begins_or_ends_inside_a_line_break() {
        for (old, new) in [("a\r\nb", "a\nb"), ("a\r\nb", "a\rb"), ("a\nb", "a\r\nb"), ("a\r\n", "a\r\n\n")] {
            for edit in word_changes(old, new) {
                for at in [edit.range.start, edit.range.end] {
                    assert!(!(old[..at].ends_with('\r') && old[at..].starts_with('\n')), "{old:?} {new:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn applying_the_changes_gives_the_new_text(old in "[ab \r\né]{0,40}", new in "[ab \r\né]{0,40}") {
            prop_assert_eq!(apply_edits(&old, &word_changes(&old, &new)), new.clone());
            prop_assert_eq!(apply_edits(&old, &line_changes(&old, &new)), new.clone());
            let (patch, counts) = (Patch::between(&old, &new), LineCounts::between(&old, &new));
            prop_assert_eq!((counts.added, counts.removed), (patch.added, patch.removed));
            prop_assert_eq!(split_lines(&old).concat(), old.clone());
            prop_assert_eq!(split_words(&old).concat(), old);
        }
    }

    #[test]
    fn text_without_blanks_between_words_is_compared_by_its_characters() {
        let edit = |range, text: &str| TextEdit { range, new_text: text.to_owned() };
        assert_eq!(word_changes("人人生而自由", "人生而不自由"), [edit(3..6, ""), edit(12..12, "不")]);
    }
}
