//! Finding a passage whose lines are in the text with another indentation.
//!
//! Rule: whole lines, one change of indentation for all of them, one place. Models copy code with tabs for spaces or one
//! level off; an uneven difference could mean other code, so it is no match. The new text is indented by the same change.

mod search;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Instant;

use self::search::{anchor, bytes_around, bytes_of, count_lines, line_of_body};
use memchr::memmem;
use similar::DiffTag;

use crate::edit::TextEdit;
use crate::edit::diff::{DIFF_DEADLINE, common_ends, diff_tokens, split_lines, without_break};
use kode_base::encoding::LineEnding;

/// Letters and digits that a passage of one line needs: shorter lines are in many places by chance.
const MIN_LETTERS_OF_ONE_LINE: usize = 8;

/// Letters and digits that a passage of several lines needs: closing brackets alone stand anywhere.
const MIN_LETTERS: usize = 4;

/// Comparisons of lines that one search makes; a text of equal lines would need their square.
const MAX_COMPARISONS: usize = 4_000_000;

/// Places that a search returns; more than one is refused by the caller, who lists them.
const MAX_PLACES: usize = 20;

/// Spaces that one tab can stand for.
const TAB_WIDTHS: std::ops::RangeInclusive<usize> = 2..=8;

/// A passage that is in the text with another indentation or other trailing blanks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndentedMatch {
    /// Its lines in the text, from 0.
    pub lines: Range<usize>,
    /// How the text's indentation follows from that of the passage.
    pub change: IndentChange,
}

/// How the indentation in a text follows from the one in a passage, the same for every line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndentChange {
    /// The text has these blanks before the passage's indentation; empty when only trailing blanks differ.
    Added(String),
    /// The passage has these blanks before the text's indentation.
    Removed(String),
    /// The text has this number of spaces for each tab.
    TabsToSpaces {
        /// Spaces for one tab.
        width: usize,
        /// Spaces after the tabs of any line of the passage: alignment, which is kept.
        alignments: BTreeSet<usize>,
    },
    /// The text has one tab for this number of spaces.
    SpacesToTabs {
        /// Spaces for one tab.
        width: usize,
        /// Spaces after the tabs of any line of the text: alignment, which is kept.
        alignments: BTreeSet<usize>,
    },
}

/// One line without its line break: indentation and what follows, trailing blanks left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IndentedLine<'text> {
    indent: &'text str,
    body: &'text str,
}

impl<'text> IndentedLine<'text> {
    fn of(line: &'text str) -> Self {
        let line = without_break(line).trim_end_matches(BLANKS);
        let body = line.trim_start_matches(BLANKS);
        Self { indent: &line[..line.len() - body.len()], body }
    }

    fn is_blank(&self) -> bool {
        self.body.is_empty()
    }
}

const BLANKS: [char; 2] = [' ', '\t'];

impl IndentedMatch {
    /// The places where the lines of `old` are in `text`, each with one change of indentation; in order, at most 20.
    #[must_use]
    pub fn find(text: &str, old: &str) -> Vec<Self> {
        if is_distinctive(&indented(&split_lines(old))) { Self::find_any(text, old) } else { Vec::new() }
    }

    /// As [`Self::find`], also for lines that are in many texts by chance.
    #[must_use]
    pub(super) fn find_any(text: &str, old: &str) -> Vec<Self> {
        let wanted = indented(&split_lines(old));
        let Some(anchor) = anchor(&wanted) else { return Vec::new() };
        // The last line of the text has a line break only where the text ends with one.
        let fits_at_end = !old.ends_with(['\n', '\r']) || text.ends_with(['\n', '\r']);
        let mut found = Vec::new();
        let mut comparisons = 0;
        let mut counted = (0, 0);
        let body = wanted[anchor].body;
        for at in memmem::find_iter(text.as_bytes(), body) {
            comparisons += 1;
            let place = line_of_body(text, at, body).and_then(|start| {
                bytes_around(text, start, (&wanted[..anchor], &wanted[anchor..]), &mut comparisons)
            });
            if let Some(place) = place
                && (place.end < text.len() || fits_at_end)
                && let Some(change) =
                    IndentChange::between(&wanted, &indented(&split_lines(&text[place.clone()])))
            {
                let first = counted.1 + count_lines(&text[counted.0..place.start]);
                counted = (place.start, first);
                found.push(Self { lines: first..first + wanted.len(), change });
            }
            if comparisons > MAX_COMPARISONS || found.len() == MAX_PLACES {
                break;
            }
        }
        found
    }

    /// The edit that puts `new` in place of `old`, indented as the text is. Lines that `old` and `new` share keep the
    /// text's bytes.
    ///
    /// `None` when the indentation of `new` does not follow from the change: a line of it is shallower than what the
    /// change removes, the width of a tab stays unclear, or `new` is indented as the text is already.
    #[must_use]
    pub fn replacement(&self, text: &str, old: &str, new: &str) -> Option<TextEdit> {
        let (start, mut end) = bytes_of(text, &self.lines)?;
        let passage = split_lines(&text[start..end]);
        if new.is_empty() {
            return Some(TextEdit { range: start..end, new_text: String::new() });
        }
        if !old.ends_with(['\n', '\r']) {
            end -= passage.last().map_or(0, |line| line.len() - without_break(line).len());
        }
        let (wanted, written) = (split_lines(old), split_lines(new));
        if !self.change.is_certain(&indented(&wanted), &indented(&written), text) {
            return None;
        }
        let old_text = &text[start..end];
        let line_break =
            LineEnding::dominant(old_text).or_else(|| LineEnding::dominant(text)).unwrap_or("\n");
        let new_text = self.indented_text(&wanted, &written, &passage, line_break)?;
        let joins = |before: &str, after: &str| before.ends_with('\r') && after.starts_with('\n');
        // Mixed line breaks: two of them would become one.
        if joins(&text[..start], &new_text) || joins(&new_text, &text[end..]) {
            return None;
        }
        let (prefix, suffix) = common_ends(old_text, &new_text);
        let new_text = new_text[prefix..new_text.len() - suffix].to_owned();
        Some(TextEdit { range: start + prefix..end - suffix, new_text })
    }

    fn indented_text<'text>(
        &self,
        wanted: &[&'text str],
        written: &[&'text str],
        passage: &[&str],
        line_break: &str,
    ) -> Option<String> {
        let bare = |line: &&'text str| without_break(line);
        let old: Vec<&str> = wanted.iter().map(bare).collect();
        let new: Vec<&str> = written.iter().map(bare).collect();
        let deadline = Instant::now() + DIFF_DEADLINE;
        let mut text = String::new();
        for op in diff_tokens(&old, &new, deadline) {
            for (offset, at) in op.new_range().enumerate() {
                let kept = (op.tag() == DiffTag::Equal).then(|| passage[op.old_range().start + offset]);
                match kept {
                    Some(line) => text.push_str(without_break(line)),
                    None => text.push_str(&self.change.apply_to_line(new[at])?),
                }
                if written[at].len() > new[at].len() {
                    let own =
                        kept.map(|line| &line[without_break(line).len()..]).filter(|own| !own.is_empty());
                    text.push_str(own.unwrap_or(line_break));
                }
            }
        }
        Some(text)
    }
}

impl IndentChange {
    /// The one change that leads from the indentation of `wanted` to that of `found`, whose bodies are equal.
    fn between(wanted: &[IndentedLine<'_>], found: &[IndentedLine<'_>]) -> Option<Self> {
        let pairs = || wanted.iter().zip(found).filter(|(line, _)| !line.is_blank());
        let (first, first_found) = pairs().next()?;
        let shift = if let Some(added) = first_found.indent.strip_suffix(first.indent) {
            Some(Self::Added(added.to_owned()))
        } else {
            first.indent.strip_suffix(first_found.indent).map(|removed| Self::Removed(removed.to_owned()))
        };
        let fits = |change: &Self| {
            pairs()
                .all(|(line, found)| change.apply(line.indent).is_some_and(|indent| indent == found.indent))
        };
        shift.filter(fits).or_else(|| Self::ratio(pairs()).filter(fits))
    }

    /// The change between tabs and spaces in which one width holds for all lines.
    fn ratio<'line>(
        pairs: impl Iterator<Item = (&'line IndentedLine<'line>, &'line IndentedLine<'line>)> + Clone,
    ) -> Option<Self> {
        let has_tab = |line: &IndentedLine<'_>| line.indent.contains('\t');
        let to_spaces = pairs.clone().any(|(line, _)| has_tab(line));
        if to_spaces == pairs.clone().any(|(_, found)| has_tab(found)) {
            return None;
        }
        let mut width = None;
        let mut alignments = BTreeSet::new();
        for (line, found) in pairs {
            let (tabbed, spaced) = if to_spaces { (line, found) } else { (found, line) };
            let (tabs, alignment) = tabs_and_spaces(tabbed.indent)?;
            alignments.insert(alignment);
            if tabs == 0 {
                continue;
            }
            let spaces = spaced.indent.len().checked_sub(alignment)?;
            let of_line = spaces / tabs;
            if spaces % tabs != 0 || width.is_some_and(|width| width != of_line) {
                return None;
            }
            width = Some(of_line);
        }
        let width = width.filter(|width| TAB_WIDTHS.contains(width))?;
        Some(match to_spaces {
            true => Self::TabsToSpaces { width, alignments },
            false => Self::SpacesToTabs { width, alignments },
        })
    }

    /// The indentation in the text that represents `indent` in the passage.
    fn apply<'indent>(&self, indent: &'indent str) -> Option<Cow<'indent, str>> {
        match self {
            Self::Added(added) if added.is_empty() => Some(Cow::Borrowed(indent)),
            Self::Added(added) => Some(Cow::Owned([added, indent].concat())),
            Self::Removed(removed) => indent.strip_prefix(removed.as_str()).map(Cow::Borrowed),
            Self::TabsToSpaces { width, .. } => {
                let (tabs, spaces) = tabs_and_spaces(indent)?;
                Some(Cow::Owned(" ".repeat(tabs * width + spaces)))
            }
            Self::SpacesToTabs { width, .. } => {
                let spaces = indent.len();
                let only_spaces = indent.bytes().all(|byte| byte == b' ');
                only_spaces.then(|| Cow::Owned("\t".repeat(spaces / width) + &" ".repeat(spaces % width)))
            }
        }
    }

    /// A line of the new text as it is written; blank lines stay as they are.
    fn apply_to_line(&self, line: &str) -> Option<String> {
        let IndentedLine { indent, body } = IndentedLine::of(line);
        if body.is_empty() {
            return Some(line.to_owned());
        }
        let spaces = match self {
            Self::Added(_) | Self::Removed(_) => None,
            Self::TabsToSpaces { alignments, .. } => Some((tabs_and_spaces(indent)?.1, alignments)),
            Self::SpacesToTabs { width, alignments } => Some((indent.len() % width, alignments)),
        };
        // The second line of a block comment is one space to the right.
        let is_aligned = |(spaces, seen): (usize, &BTreeSet<usize>)| {
            spaces == 0 || seen.contains(&spaces) || (spaces == 1 && body.starts_with('*'))
        };
        let is_known = spaces.is_none_or(is_aligned);
        is_known
            .then(|| self.apply(indent))
            .flatten()
            .map(|applied| applied.into_owned() + &line[indent.len()..])
    }

    /// Whether the indentation of `new` leaves one reading of this change.
    fn is_certain(&self, old: &[IndentedLine<'_>], new: &[IndentedLine<'_>], text: &str) -> bool {
        let (least_old, least_new) = (least_indent(old), least_indent(new));
        match self {
            Self::Added(added) if added.is_empty() => true,
            Self::Added(added) => {
                !least_new.starts_with(&[added, least_old].concat())
                    && is_shift_certain(added, old, new, text)
            }
            Self::Removed(removed) => {
                let is_deep = least_new.len() > least_old.len().saturating_sub(removed.len());
                (least_new == least_old || is_deep) && is_shift_certain(removed, old, new, text)
            }
            Self::TabsToSpaces { width, .. } => {
                depths(old, |line| line.indent.matches('\t').count()) > 1 || usual_step(text) == Some(*width)
            }
            Self::SpacesToTabs { width, .. } => {
                let whole: Vec<_> =
                    new.iter().filter(|line| line.indent.len() % width == 0).copied().collect();
                depths(old, |line| line.indent.len() / width) > 1 || steps(&whole).all(|step| step == *width)
            }
        }
    }
}

/// Whether `new` is indented by the unit of the text. A passage of several depths has shown its unit by standing in the
/// text; of one depth, it may be written in another unit, whose shift would give neither the one nor the other.
fn is_shift_certain(shift: &str, old: &[IndentedLine<'_>], new: &[IndentedLine<'_>], text: &str) -> bool {
    let (old_indents, new_indents) = (indents(old), indents(new));
    let is_known = |blank: char| {
        let seen = shift.contains(blank) || old_indents.iter().any(|indent| indent.contains(blank));
        seen || !new_indents.iter().any(|indent| indent.contains(blank))
    };
    let both: Vec<IndentedLine<'_>> = old.iter().chain(new).copied().collect();
    BLANKS.into_iter().all(is_known)
        && (old_indents.iter().collect::<BTreeSet<_>>().len() > 1
            || usual_step(text).is_none_or(|usual| steps(&both).all(|step| step == usual)))
}

fn indented<'text>(lines: &[&'text str]) -> Vec<IndentedLine<'text>> {
    lines.iter().map(|line| IndentedLine::of(line)).collect()
}

fn is_distinctive(wanted: &[IndentedLine<'_>]) -> bool {
    let least = match wanted.iter().filter(|line| !line.is_blank()).count() {
        1 => MIN_LETTERS_OF_ONE_LINE,
        _ => MIN_LETTERS,
    };
    let letters =
        wanted.iter().flat_map(|line| line.body.chars()).filter(|character| character.is_alphanumeric());
    letters.take(least).count() == least
}

/// Tabs and the spaces behind them; `None` when a tab follows a space.
fn tabs_and_spaces(indent: &str) -> Option<(usize, usize)> {
    let tabs = indent.bytes().take_while(|byte| *byte == b'\t').count();
    indent[tabs..].bytes().all(|byte| byte == b' ').then(|| (tabs, indent.len() - tabs))
}

fn least_indent<'text>(lines: &[IndentedLine<'text>]) -> &'text str {
    indents(lines).into_iter().min_by_key(|indent| indent.len()).unwrap_or_default()
}

fn indents<'text>(lines: &[IndentedLine<'text>]) -> Vec<&'text str> {
    lines.iter().filter(|line| !line.is_blank()).map(|line| line.indent).collect()
}

/// The number of different depths that are indented at all.
fn depths(lines: &[IndentedLine<'_>], depth: impl Fn(&IndentedLine<'_>) -> usize) -> usize {
    let depths = lines.iter().filter(|line| !line.is_blank()).map(depth).filter(|depth| *depth > 0);
    depths.collect::<BTreeSet<_>>().len()
}

/// By how many spaces each line is deeper than the line before it, where it is.
fn steps<'line>(lines: &'line [IndentedLine<'line>]) -> impl Iterator<Item = usize> + 'line {
    let spaces = |line: &&IndentedLine<'_>| !line.is_blank() && !line.indent.contains('\t');
    let depths: Vec<usize> = lines.iter().filter(spaces).map(|line| line.indent.len()).collect();
    (1..depths.len()).filter_map(move |at| depths[at].checked_sub(depths[at - 1])).filter(|step| *step > 0)
}

/// The most frequent step of a text that is indented by spaces.
fn usual_step(text: &str) -> Option<usize> {
    let mut counts = [0_usize; *TAB_WIDTHS.end() + 1];
    for step in steps(&indented(&split_lines(text))).filter(|step| TAB_WIDTHS.contains(step)) {
        counts[step] += 1;
    }
    let most = counts.iter().copied().max().filter(|most| *most > 0)?;
    counts.iter().position(|count| *count == most)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::edit::change::apply_edits;

    /// The text after the edit; `None` when it is refused.
    fn replaced(text: &str, old: &str, new: &str) -> Option<String> {
        match IndentedMatch::find(text, old).as_slice() {
            [place] => place.replacement(text, old, new).map(|edit| apply_edits(text, &[edit])),
            _ => None,
        }
    }

    #[test]
    fn one_change_of_indentation_is_applied_to_every_line() {
        for (text, old, new, expected) in [
            // One level less, one level more.
            (
                "{\n    one();\n    two();\n}\n",
                "one();\ntwo();",
                "one();\nsix();",
                "{\n    one();\n    six();\n}\n",
            ),
            (
                "one();\n  two();\n",
                "\tone();\n\t  two();",
                "\tone();\n\t  six();\n\ttwo();",
                "one();\n  six();\ntwo();\n",
            ),
            // Spaces for tabs, tabs for spaces.
            (
                "\tone();\n\t\ttwo();\n",
                "  one();\n    two();",
                "  one();\n      six();",
                "\tone();\n\t\t\tsix();\n",
            ),
            (
                "  one();\n    two();\n",
                "\tone();\n\t\ttwo();",
                "\tone();\n\t\t\tsix();",
                "  one();\n      six();\n",
            ),
            // A block comment is one space to the right.
            (
                "\t/**\n\t * one two\n\t */\n",
                "    /**\n     * one two\n     */",
                "    /**\n     * three\n     */",
                "\t/**\n\t * three\n\t */\n",
            ),
            // Trailing blanks, which lines that stay keep.
            (
                "first line  \nsecond line\t\n",
                "first line\nsecond line",
                "first line\nthird line",
                "first line  \nthird line\n",
            ),
            // Line breaks of the text.
            ("\tone();\r\n\ttwo();\r\n", "one();\ntwo();\n", "one();\nsix();\n", "\tone();\r\n\tsix();\r\n"),
            // Whole lines go with their line break.
            ("a\n    first_one();\n    second_one();\nb\n", "first_one();\nsecond_one();", "", "a\nb\n"),
            // Code that is wrapped.
            (
                "    one();\n    two();\n",
                "one();\ntwo();",
                "if x {\n    one();\n    two();\n}",
                "    if x {\n        one();\n        two();\n    }\n",
            ),
            // Blank lines have no indentation.
            ("  one();\n\n  two();\n", "one();\n\ntwo();", "one();\n\nsix();", "  one();\n\n  six();\n"),
            ("    call_of_a_function();\n", "\tcall_of_a_function( );\n", "x", ""),
        ] {
            let expected = (!expected.is_empty()).then(|| expected.to_owned());
            assert_eq!(replaced(text, old, new), expected, "{old:?} in {text:?}");
        }
    }

    #[test]
    fn what_leaves_a_doubt_is_refused() {
        for (text, old, new, why) in [
            ("  one();\n    two();\n", "one();\n two();", "six();", "uneven"),
            ("  one();\n", "one(); \n", "six();", "too few letters for one line"),
            (" one();\n two();\n  one();\n  two();\n", "one();\ntwo();", "six();", "two places"),
            (
                "    one();\n    two();\n",
                "one();\ntwo();",
                "    one();\n    six();",
                "new is indented as the text",
            ),
            (
                "one();\ntwo();\n",
                "    one();\n    two();",
                "  six();",
                "new is shallower than the difference",
            ),
            ("        first_word();\n", "\tfirst_word();", "\tsecond();", "a width that nothing confirms"),
            (
                "\t\tfirst_word();\n",
                "    first_word();",
                "    if x\n        second();",
                "a width the steps contradict",
            ),
            ("\tone();\n\t\ttwo();\n", "  one();\n    two();", "   six();", "an alignment that nobody has"),
            ("  one();\n  two();", "one();\ntwo();\n", "six();\n", "a line break the text does not have"),
            ("x = one();\n", "one( );", "six();", "part of a line"),
            ("\tone();\n\ttwo();\n", "one();\ntwo();", "if x\n    one();", "spaces in a text of tabs"),
            (
                "a\n  b\n    c\n    d\n",
                "        c\n        d",
                "        c\n            e",
                "a step the text has not",
            ),
            ("", "one();\ntwo();", "six();", "nothing"),
        ] {
            assert_eq!(replaced(text, old, new), None, "{why}");
        }
    }

    #[test]
    fn equal_lines_without_end_are_searched_within_bounds() {
        let text = "same line;\n".repeat(20_000);
        let mut old = " same line;\n".repeat(2_000);
        old.push_str(" other line;\n");
        assert_eq!(IndentedMatch::find(&text, &old), []);
        assert_eq!(IndentedMatch::find(&text, " same line;\n").len(), MAX_PLACES);
    }

    /// Code with a unit of indentation: each line a depth and a word of its own.
    fn code() -> impl Strategy<Value = (Vec<(usize, bool)>, Range<usize>, Vec<usize>)> {
        let lines = proptest::collection::vec((0_usize..4, proptest::bool::weighted(0.1)), 4..24);
        let new = proptest::collection::vec(0_usize..3, 1..5);
        (lines, any::<proptest::sample::Index>(), 2_usize..8, new).prop_map(|(mut lines, at, height, new)| {
            // Code goes deeper by one level at a time, and the first step shows its unit.
            lines.splice(0..0, [(0, false), (1, false)]);
            let mut depth = 1;
            for line in &mut lines[2..] {
                line.0 = line.0.min(depth + 1);
                depth = if line.1 { depth } else { line.0 };
            }
            let start = at.index(lines.len() - 1);
            let end = (start + height).min(lines.len());
            (lines, start..end, new)
        })
    }

    fn written(lines: &[(usize, bool)], first: usize, unit: &str, more: usize) -> String {
        let line = |(number, (depth, blank)): (usize, &(usize, bool))| match blank {
            true => "\n".to_owned(),
            false => format!("{}statement_{number}();\n", unit.repeat(depth + more)),
        };
        (first..).zip(lines).map(line).collect()
    }

    proptest! {
        #[test]
        fn a_passage_with_another_unit_or_depth_gives_what_the_exact_one_gives(
            (lines, place, new) in code(),
            unit in proptest::sample::select(vec!["\t", "  ", "    "]),
            other in proptest::sample::select(vec!["\t", "  ", "    "]),
            more in 0_usize..2,
        ) {
            let text = written(&lines, 0, unit, 0);
            let depths = || lines[place.clone()].iter().filter(|line| !line.1).map(|line| line.0);
            let least = depths().min().unwrap_or_default();
            let mut depth = 0;
            let new: Vec<(usize, bool)> = new.iter().map(|next| {
                depth = (*next).min(depth + 1);
                (least + depth, false)
            }).collect();
            // Another unit or another depth; both at once is uneven.
            let (other, more) = if more > 0 { (unit, more) } else { (other, 0) };
            let of = |lines: &[(usize, bool)], first, unit: &str, more| written(lines, first, unit, more);
            let (old, new_text) = (of(&lines[place.clone()], place.start, other, more), of(&new, 900, other, more));
            let exact = text.replacen(&of(&lines[place.clone()], place.start, unit, 0), &of(&new, 900, unit, 0), 1);
            let levels = depths().filter(|depth| *depth > 0).collect::<BTreeSet<_>>().len();
            // The exact search goes first; two spaces for four are no change that is followed.
            if !text.contains(&old) {
                let replaced = replaced(&text, &old, &new_text);
                let is_followed = unit == other || unit == "\t" || other == "\t";
                prop_assert!(replaced.is_some() || !is_followed || levels < 2, "{:?} in {:?}", old, text);
                prop_assert!(replaced.is_none_or(|replaced| replaced == exact));
            }
        }

        #[test]
        fn an_uneven_indentation_is_never_applied(
            (lines, place, _) in code(),
            uneven in any::<proptest::sample::Index>(),
        ) {
            let solid: Vec<usize> = place.clone().filter(|line| !lines[*line].1).collect();
            prop_assume!(solid.len() > 1);
            let mut passage = lines.clone();
            passage[solid[uneven.index(solid.len())]].0 += 1;
            let old = written(&passage[place.clone()], place.start, "    ", 0);
            prop_assert_eq!(replaced(&written(&lines, 0, "    ", 0), &old, "x\n"), None);
        }
    }
}
