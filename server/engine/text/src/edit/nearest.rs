//! The passage of a text that is most like one that was not found, and where the two differ.
//!
//! Rule: an answer helps the next try, never replaces it. Search, comparison and description are bounded.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline};

use crate::edit::diff::{split_lines, without_break};

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
    capture_diff_slices_deadline(Algorithm::Myers, &wanted, &lines, Some(deadline))
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
    let mut index = TrigramIndex::new();
    wanted.iter().for_each(|line| index.add(line));
    let mut missing = index.counts.clone();
    let needed: i32 = missing.iter().sum();
    let mut window: VecDeque<LineTrigrams> = VecDeque::with_capacity(height);
    let (mut shared, mut total) = (0, 0);
    let mut best = None;
    for (end, line) in lines.iter().enumerate() {
        if window.len() == height
            && let Some(first) = window.pop_front()
        {
            total -= first.count;
            for place in first.wanted {
                missing[usize::from(place)] += 1;
                shared -= i32::from(missing[usize::from(place)] > 0);
            }
        }
        let last = index.of_line(line);
        total += last.count;
        for place in &last.wanted {
            shared += i32::from(missing[usize::from(*place)] > 0);
            missing[usize::from(*place)] -= 1;
        }
        window.push_back(last);
        if end + 1 >= height {
            let likeness = 1_000 * 2 * shared / (needed + total).max(1);
            if likeness >= LIKENESS && best.is_none_or(|(most, _)| likeness > most) {
                best = Some((likeness, end + 1 - height));
            }
        }
    }
    best.map(|(_, start)| start)
}

/// The trigrams of one line: their number, and the wanted ones by their place in the index.
struct LineTrigrams {
    count: i32,
    wanted: Vec<u16>,
}

/// The trigrams of the wanted lines. They are found by a hash of 16 bits: two with the same one count as equal, which makes a
/// passage likelier by one part in thousands.
struct TrigramIndex {
    /// The place of each hash; 0 is the place of those that are not wanted.
    places: Vec<u16>,
    /// How often each is in the wanted lines.
    counts: Vec<i32>,
}

impl TrigramIndex {
    fn new() -> Self {
        Self { places: vec![0; 1 << 16], counts: vec![0] }
    }

    fn add(&mut self, line: &str) {
        trigrams(line, |hash| {
            // The wanted passage is cut long before there are more trigrams than places.
            if let (0, Ok(place)) = (self.places[hash], u16::try_from(self.counts.len())) {
                self.places[hash] = place;
                self.counts.push(0);
            }
            self.counts[usize::from(self.places[hash])] += 1;
        });
    }

    fn of_line(&self, line: &str) -> LineTrigrams {
        let mut found = LineTrigrams { count: 0, wanted: Vec::new() };
        trigrams(line, |hash| {
            found.count += 1;
            if self.places[hash] != 0 {
                found.wanted.push(self.places[hash]);
            }
        });
        found
    }
}

/// The hashes of the trigrams of a line without the blanks around it, one for each byte; the last ones are padded.
fn trigrams(line: &str, mut found: impl FnMut(usize)) {
    let mut last = 0_u32;
    for (at, byte) in line.as_bytes().trim_ascii().iter().chain(&[0, 0]).enumerate() {
        last = (last << 8 | u32::from(*byte)) & 0x00ff_ffff;
        if at >= 2 {
            found((last.wrapping_mul(0x9e37_79b1) >> 16) as usize);
        }
    }
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
