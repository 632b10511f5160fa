//! The passage of a text that is most like one that was not found, and where the two differ.
//!
//! Rule: an answer helps the next try, never replaces it. Search, comparison and description are bounded.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{DiffOp, DiffTag};

use crate::edit::diff::{diff_tokens, split_lines, without_break};

/// Bytes of a text that are searched.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Bytes of the missing passage that are compared.
const MAX_PASSAGE_BYTES: usize = 16 << 10;

/// How long one comparison of lines may take.
const DEADLINE: Duration = Duration::from_millis(50);

/// How alike a passage must be to be shown, in thousandths: the trigrams that both have, of all.
const LIKENESS: i32 = 350;

/// Lines around the likely passage in which its first and last line are looked for.
const MARGIN: usize = 8;

/// Differences that are described.
const MAX_DIFFERENCES: usize = 3;

/// The passage most like one that was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearestPassage {
    /// Its lines, from 1.
    pub lines: Range<usize>,
    /// The text that is there, without the last line break.
    pub text: String,
    /// In what it differs, at most three.
    pub differences: Vec<LineDifference>,
    /// Differences beyond those.
    pub more: usize,
}

/// One difference between a missing passage and the nearest one. Line numbers count from 1, those of the missing
/// passage within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineDifference {
    /// The lines have other blanks before or behind them.
    Blanks {
        /// Line of the missing passage.
        wanted: usize,
        /// Line of the text.
        found: usize,
        /// Blanks at the beginning of each: wanted, found.
        indents: (String, String),
    },
    /// Lines of the passage that the text has otherwise.
    Changed {
        /// Lines of the missing passage.
        wanted: Range<usize>,
        /// Lines of the text.
        found: Range<usize>,
    },
    /// Lines of the passage that the text does not have.
    Unknown {
        /// Lines of the missing passage.
        wanted: Range<usize>,
    },
    /// Lines of the text that the passage leaves out.
    LeftOut {
        /// Lines of the text.
        found: Range<usize>,
    },
}

/// The passage of whole lines that is most like `old`, if one is like it at all. Searches the first megabyte.
#[must_use]
pub fn nearest(text: &str, old: &str) -> Option<NearestPassage> {
    let (text, old) = (start_of(text, MAX_TEXT_BYTES), start_of(old, MAX_PASSAGE_BYTES));
    let lines = split_lines(text);
    let wanted = split_lines(old.trim_matches(['\n', '\r']));
    if wanted.is_empty() || lines.is_empty() {
        return None;
    }
    let height = wanted.len().min(lines.len());
    let start = likeliest_window(&lines, &wanted, height)?;
    let passage = aligned(&lines, &wanted, start..start + height);
    let mut differences = differences(&wanted, &lines, &passage);
    let more = differences.len().saturating_sub(MAX_DIFFERENCES);
    differences.truncate(MAX_DIFFERENCES);
    let text = lines[passage.clone()].concat().trim_end_matches(['\n', '\r']).to_owned();
    Some(NearestPassage { lines: passage.start + 1..passage.end + 1, text, differences, more })
}

/// The likely passage, moved and resized so that it begins and ends with the lines that the wanted one does.
fn aligned(lines: &[&str], wanted: &[&str], likely: Range<usize>) -> Range<usize> {
    let around = likely.start.saturating_sub(MARGIN)..(likely.end + MARGIN).min(lines.len());
    let ops = compare(wanted, &lines[around.clone()]);
    let equal: Vec<&DiffOp> = ops.iter().filter(|op| op.tag() == DiffTag::Equal).collect();
    let (Some(first), Some(last)) = (equal.first(), equal.last()) else { return likely };
    let start = (around.start + first.new_range().start).saturating_sub(first.old_range().start);
    let end = around.start + last.new_range().end + (wanted.len() - last.old_range().end);
    start.max(around.start)..end.min(around.end)
}

fn differences(wanted: &[&str], lines: &[&str], passage: &Range<usize>) -> Vec<LineDifference> {
    let number = |range: Range<usize>| range.start + 1..range.end + 1;
    let in_text = |range: Range<usize>| range.start + passage.start + 1..range.end + passage.start + 1;
    let mut differences = Vec::new();
    for op in compare(wanted, &lines[passage.clone()]) {
        let (old, new) = (op.old_range(), op.new_range());
        match op.tag() {
            DiffTag::Equal => {
                let pairs = old.zip(new).map(|(old, new)| (old, new + passage.start));
                let other_blanks =
                    pairs.filter(|(old, new)| without_break(wanted[*old]) != without_break(lines[*new]));
                differences.extend(other_blanks.map(|(old, new)| LineDifference::Blanks {
                    wanted: old + 1,
                    found: new + 1,
                    indents: (indent(wanted[old]), indent(lines[new])),
                }));
            }
            DiffTag::Delete => differences.push(LineDifference::Unknown { wanted: number(old) }),
            DiffTag::Insert => differences.push(LineDifference::LeftOut { found: in_text(new) }),
            DiffTag::Replace => {
                differences.push(LineDifference::Changed { wanted: number(old), found: in_text(new) });
            }
        }
    }
    differences
}

/// The differences of lines whose blanks at both ends do not count.
fn compare(wanted: &[&str], lines: &[&str]) -> Vec<DiffOp> {
    let wanted: Vec<&str> = wanted.iter().map(|line| line.trim()).collect();
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    let deadline = Instant::now() + DEADLINE;
    diff_tokens(&wanted, &lines, deadline)
}

fn indent(line: &str) -> String {
    let line = without_break(line);
    line[..line.len() - line.trim_start().len()].to_owned()
}

fn start_of(text: &str, max_bytes: usize) -> &str {
    let cut = (0..=max_bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..cut.unwrap_or_default()]
}

/// The window of `height` lines that is most like the wanted lines by the trigrams that they share, if it is like them at all.
fn likeliest_window(lines: &[&str], wanted: &[&str], height: usize) -> Option<usize> {
    let index = TrigramIndex::new(wanted);
    let mut missing = index.counts.clone();
    let needed: i32 = missing.iter().sum();
    // The wanted trigrams of all lines so far, and where those of each line end.
    let mut found: Vec<u16> = Vec::new();
    let mut ends: Vec<LineEnds> = Vec::with_capacity(lines.len() + 1);
    ends.push(LineEnds { found: 0, total: 0 });
    let mut shared = 0;
    let mut best = None;
    for (end, line) in (1_usize..).zip(lines) {
        if let Some(start) = end.checked_sub(height + 1) {
            for place in &found[ends[start].found..ends[start + 1].found] {
                let missing = &mut missing[usize::from(*place)];
                *missing += 1;
                shared -= i32::from(*missing > 0);
            }
        }
        let first = found.len();
        let count = index.find(line, &mut found);
        for place in &found[first..] {
            let missing = &mut missing[usize::from(*place)];
            shared += i32::from(*missing > 0);
            *missing -= 1;
        }
        let total = ends[end - 1].total + count;
        ends.push(LineEnds { found: found.len(), total });
        if let Some(start) = end.checked_sub(height) {
            let total = total - ends[start].total;
            let likeness = 1_000 * 2 * shared / (needed + total).max(1);
            if likeness >= LIKENESS && best.is_none_or(|(most, _)| likeness > most) {
                best = Some((likeness, start));
            }
        }
    }
    best.map(|(_, start)| start)
}

/// Counts over a text up to the end of a line.
struct LineEnds {
    /// Trigrams that are wanted.
    found: usize,
    /// All trigrams.
    total: i32,
}

/// The trigrams of the wanted lines. They are found by a hash of 16 bits: two with the same one count as equal, which makes a
/// passage likelier by one part in thousands.
struct TrigramIndex {
    /// One bit for each hash that is wanted: 8 KiB, which stay in the nearest cache of a processor.
    wanted: Box<[u64; 1 << 10]>,
    /// The place of each hash; 0 is the place of those that are not wanted.
    places: Box<[u16; 1 << 16]>,
    /// How often each occurs in the wanted lines.
    counts: Vec<i32>,
}

impl TrigramIndex {
    fn new(wanted: &[&str]) -> Self {
        let (bits, places) = (Box::new([0; 1 << 10]), Box::new([0; 1 << 16]));
        let mut index = Self { wanted: bits, places, counts: vec![0] };
        wanted.iter().for_each(|line| for_each_hash(line, |hash| index.add(hash)));
        index
    }

    fn add(&mut self, hash: u16) {
        self.wanted[usize::from(hash >> 6)] |= 1 << (hash & 63);
        let place = &mut self.places[usize::from(hash)];
        // The wanted passage is cut long before there are more trigrams than places.
        if let (0, Ok(next)) = (*place, u16::try_from(self.counts.len())) {
            *place = next;
            self.counts.push(0);
        }
        self.counts[usize::from(*place)] += 1;
    }

    /// Adds the places of the wanted trigrams of a line to `found`. Returns the number of all its trigrams.
    fn find(&self, line: &str, found: &mut Vec<u16>) -> i32 {
        let mut count = 0;
        for_each_hash(line, |hash| {
            count += 1;
            if self.wanted[usize::from(hash >> 6)] >> (hash & 63) & 1 != 0 {
                found.push(self.places[usize::from(hash)]);
            }
        });
        count
    }
}

/// Gives the hashes of the trigrams of a line without the blanks around it, one for each byte; the last ones are padded.
fn for_each_hash(line: &str, mut with: impl FnMut(u16)) {
    let bytes = line.as_bytes().trim_ascii();
    let mut last_three = 0_u32;
    for (at, byte) in bytes.iter().enumerate() {
        last_three = last_three << 8 | u32::from(*byte);
        if at >= 2 {
            with(hash(last_three));
        }
    }
    for _ in bytes.len().min(2)..2 {
        last_three <<= 8;
    }
    for _ in 0..bytes.len().min(2) {
        last_three <<= 8;
        with(hash(last_three));
    }
}

fn hash(trigram: u32) -> u16 {
    let [.., low, high] = (trigram << 8).wrapping_mul(0x9e37_79b1).to_le_bytes();
    u16::from_le_bytes([low, high])
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn one() {\n    call(1);\n}\n\nfn two() {\n    call(2, true);\n    end();\n}\n";

    fn found(old: &str) -> (Range<usize>, Vec<LineDifference>) {
        let found = nearest(TEXT, old).unwrap();
        (found.lines, found.differences)
    }

    #[test]
    fn the_nearest_passage_is_the_text_of_the_file() {
        let found = nearest(TEXT, "fn two() {\n    call(2, false);\n    end();\n}").unwrap();
        assert_eq!(
            (found.lines.start, found.text.as_str()),
            (5, "fn two() {\n    call(2, true);\n    end();\n}")
        );
        assert_eq!(nearest("let value = 1;\n", "let valeu = 1;").unwrap().lines, 1..2);
        assert_eq!(nearest("    indented(a);\n", "\tindented(a);\n").unwrap().lines, 1..2);
        assert_eq!(nearest(TEXT, "something quite different"), None);
        assert_eq!(nearest("", "x"), None);
    }

    #[test]
    fn each_kind_of_difference_is_described_with_its_lines() {
        let changed = LineDifference::Changed { wanted: 2..3, found: 6..7 };
        assert_eq!(found("fn two() {\n    call(2, false);\n    end();\n}"), (5..9, vec![changed]));
        let left_out = LineDifference::LeftOut { found: 6..7 };
        assert_eq!(found("fn two() {\n    end();\n}"), (5..9, vec![left_out]));
        let unknown = LineDifference::Unknown { wanted: 3..4 };
        assert_eq!(found("fn two() {\n    call(2, true);\n    log();\n    end();\n}"), (5..9, vec![unknown]));
        let indents = ("\t".to_owned(), "    ".to_owned());
        let blanks = LineDifference::Blanks { wanted: 2, found: 6, indents };
        assert_eq!(found("fn two() {\n\tcall(2, true);\n    end();\n}"), (5..9, vec![blanks]));
    }

    #[test]
    fn differences_beyond_three_are_counted() {
        let text = "a1();\nb1();\nc1();\nd1();\ne1();\n";
        let found = nearest(text, "\ta1();\n\tb1();\n\tc1();\n\td1();\n e1();").unwrap();
        assert_eq!((found.differences.len(), found.more), (3, 2));
    }
}
