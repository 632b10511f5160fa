//! Requests that leave out lines of a passage: a line of dots represents them, in the passage and in the new text alike.
//!
//! Rule: omitted lines stay. A part that changes is in the text once, as given; the parts that stay surround it in
//! their order. In a text that has lines of dots itself, dots stand for nothing.

use std::ops::Range;

use crate::edit::TextEdit;
use crate::edit::diff::{common_ends, split_lines, without_break};
use kode_base::encoding::LineEnding;

/// The comment marks of languages.
const COMMENT_MARKS: [&str; 5] = ["//", "#", "--", ";", "%"];

/// A passage of which lines were left out, found in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ElidedMatch {
    /// From the first part's first line to the last part's last one, from 0.
    pub(super) lines: Range<usize>,
    /// The changes of the parts, in order.
    pub(super) edits: Vec<TextEdit>,
}

impl ElidedMatch {
    /// The changes that a request comes to whose dots stand for lines that stay; `None` when it is not such a request, or
    /// leaves a doubt.
    pub(super) fn find(text: &str, old: &str, new: &str) -> Option<Self> {
        let (old, new) = (parts(old)?, parts(new)?);
        let raw = split_lines(text);
        let lines: Vec<&str> = raw.iter().map(|line| without_break(line)).collect();
        if old.len() != new.len() || old == new || lines.iter().any(|line| is_dots(line)) {
            return None;
        }
        let mut places = Vec::with_capacity(old.len());
        let mut from = 0;
        for (part, wanted) in old.iter().zip(&new) {
            let mut starts = places_of(&lines, part);
            let start = if part == wanted { starts.find(|start| *start >= from)? } else { starts.next()? };
            // A part that changes occurs once.
            if start < from || part != wanted && starts.next().is_some() {
                return None;
            }
            from = start + part.len();
            places.push(start..from);
        }
        let line_break = LineEnding::dominant(text).unwrap_or("\n");
        let changed = places.iter().zip(old.iter().zip(&new)).filter(|(_, (part, wanted))| part != wanted);
        let edits = changed.map(|(place, (_, wanted))| edit(&raw, place, &wanted.join(line_break))).collect();
        Some(Self { lines: places.first()?.start..from, edits })
    }
}

/// The parts of a text between its lines of dots, each with lines that are not blank; `None` when there are no such lines.
fn parts(text: &str) -> Option<Vec<Vec<&str>>> {
    let lines: Vec<&str> = split_lines(text).into_iter().map(without_break).collect();
    let parts: Vec<Vec<&str>> = lines.split(|line| is_dots(line)).map(<[&str]>::to_vec).collect();
    let has_lines = |part: &Vec<&str>| part.iter().any(|line| !line.trim().is_empty());
    (parts.len() > 1 && parts.iter().all(has_lines)).then_some(parts)
}

/// Whether a line says that lines are left out: `...`, `// ...` or `# ... existing code ...`.
fn is_dots(line: &str) -> bool {
    let line = line.trim();
    let line = COMMENT_MARKS.iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line).trim();
    matches!(line, "..." | "\u{2026}")
        || (line.starts_with("...") && line.ends_with("...") && line.len() > 6)
        || (line.starts_with('\u{2026}') && line.ends_with('\u{2026}') && line.chars().count() > 2)
}

/// Where the lines of a part begin, in order.
fn places_of<'text>(lines: &'text [&str], part: &'text [&str]) -> impl Iterator<Item = usize> + 'text {
    lines.windows(part.len()).enumerate().filter(move |(_, window)| *window == part).map(|(start, _)| start)
}

/// The edit that puts a text in the place of lines, whose last line break stays.
fn edit(raw: &[&str], place: &Range<usize>, new: &str) -> TextEdit {
    let start: usize = raw[..place.start].iter().map(|line| line.len()).sum();
    let passage = raw[place.clone()].concat();
    // A part may end with empty lines, whose breaks belong to it.
    let last_break = raw[place.clone()].last().map_or(0, |line| line.len() - without_break(line).len());
    let passage = &passage[..passage.len() - last_break];
    let (prefix, suffix) = common_ends(passage, new);
    let new_text = new[prefix..new.len() - suffix].to_owned();
    TextEdit { range: start + prefix..start + passage.len() - suffix, new_text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::change::apply_edits;

    const TEXT: &str = "fn a() {\n    one();\n    two();\n    three();\n}\n\nfn b() {\n    four();\n}\n";

    fn replaced(text: &str, old: &str, new: &str) -> Option<String> {
        ElidedMatch::find(text, old, new).map(|found| apply_edits(text, &found.edits))
    }

    #[test]
    fn what_dots_stand_for_stays() {
        for (old, new, from, to) in [
            ("fn a() {\n    ...\n}", "fn a(x: u8) {\n    ...\n}", "fn a()", "fn a(x: u8)"),
            ("fn a() {\n    // ...\n    three();", "fn a() {\n    // ...\n    six();", "three", "six"),
            (
                "fn a() {\n// ... existing code ...\n    three();\n}",
                "fn a() {\n// ... existing code ...\n}",
                "    three();\n",
                "",
            ),
            (
                "    one();\n\u{2026}\n    four();",
                "    1();\n    2();\n\u{2026}\n    four();",
                "one();",
                "1();\n    2();",
            ),
        ] {
            let expected = TEXT.replacen(from, to, 1);
            assert_eq!(replaced(TEXT, old, new), Some(expected), "{new:?} for {old:?}");
            let crlf = |text: &str| text.replace('\n', "\r\n");
            let expected = crlf(&TEXT.replacen(from, to, 1));
            assert_eq!(replaced(&crlf(TEXT), old, new), Some(expected), "{new:?} for {old:?}");
        }
        let spaced = "first();\n\n\nsecond();\nthird();\n";
        let blank = replaced(spaced, "first();\n\n\n...\nthird();", "last();\n\n\n...\nthird();");
        assert_eq!(blank, Some(spaced.replace("first", "last")), "empty lines before the dots");
        let both = replaced(TEXT, "fn a() {\n...\nfn b() {", "fn c() {\n...\nfn d() {").unwrap();
        assert_eq!(both, TEXT.replace("fn a", "fn c").replace("fn b", "fn d"));
    }

    #[test]
    fn dots_that_leave_a_doubt_stand_for_nothing() {
        for (text, old, new, why) in [
            (TEXT, "fn a() {\n...\n}", "fn a() {\n...\n}\n// end", "the part that changes stands twice"),
            (TEXT, "fn a() {\n...\n}", "fn c() {\n}", "the new text leaves nothing out"),
            (TEXT, "fn b() {\n...\n    two();", "fn c() {\n...\n    two();", "another order"),
            (TEXT, "fn a()  {\n...\n}", "fn c() {\n...\n}", "other blanks"),
            (TEXT, "...\n}", "...\n)", "no first part"),
            ("a:\n  ...\nb:\n  c\n", "a:\n...\n  c", "x:\n...\n  c", "the text has dots of its own"),
            (TEXT, "fn a() {\n    one();", "fn c() {\n    one();", "no dots"),
        ] {
            assert_eq!(replaced(text, old, new), None, "{why}");
        }
    }
}
