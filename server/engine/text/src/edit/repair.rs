//! Requests that came damaged: with the line numbers of a listing, a byte order mark, HTML entities, doubled backslashes, or
//! typographic characters.
//!
//! Rule: one kind of damage, undone in the passage and in the new text alike; whole lines, one place. A new text that does
//! not show the damage throughout is unclear, and an unclear text is not written.

use std::borrow::Cow;
use std::ops::Range;

use crate::edit::TextEdit;
use crate::edit::characters::{adapt, has_variants, plain_text};
use crate::edit::diff::{split_lines, without_break};
use crate::edit::indent::{IndentChange, IndentedMatch};

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// The line numbers that a listing puts before each line.
    LineNumbers,
    /// A byte order mark at the beginning.
    ByteOrderMark,
    /// `&lt;` for `<`, and its like.
    Entities,
    /// Two backslashes for each.
    Backslashes,
    /// Curly quotes, dashes or spaces of other kinds than the text has.
    Characters,
}

/// A passage that is in the text once its request is repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairedMatch {
    /// The undone distortion.
    pub repair: Repair,
    /// The places: whole lines, in order, at most 20.
    pub places: Vec<IndentedMatch>,
    /// The passage without the damage.
    old: String,
}

impl Repair {
    /// All kinds, in the order in which they are tried.
    pub const ALL: [Self; 5] =
        [Self::LineNumbers, Self::ByteOrderMark, Self::Entities, Self::Backslashes, Self::Characters];

    /// The passage without this damage; `None` when it does not show it.
    #[must_use]
    pub fn passage(self, old: &str) -> Option<String> {
        match self {
            Self::LineNumbers => without_line_numbers(old),
            Self::ByteOrderMark => old.strip_prefix(BYTE_ORDER_MARK).map(str::to_owned),
            Self::Entities => Entities::of(old).decoded(old),
            Self::Backslashes => halved(old).filter(|halved| halved != old),
            Self::Characters => Some(old.to_owned()),
        }
    }

    /// The new text without this damage; `None` when it shows it in part.
    fn new_text<'new>(self, old: &str, found: &str, new: &'new str) -> Option<Cow<'new, str>> {
        match self {
            Self::LineNumbers => {
                match split_lines(new).iter().filter(|line| line_number(line).is_some()).count() {
                    0 => Some(Cow::Borrowed(new)),
                    _ => without_line_numbers(new).map(Cow::Owned),
                }
            }
            Self::ByteOrderMark => Some(Cow::Borrowed(new.strip_prefix(BYTE_ORDER_MARK).unwrap_or(new))),
            Self::Entities => {
                let (shown, written) = (Entities::of(old), Entities::of(new));
                let is_clear = shown.is_clear() && written.is_clear() && !written.contradicts(&shown);
                is_clear.then(|| written.decoded(new).map_or(Cow::Borrowed(new), Cow::Owned))
            }
            Self::Backslashes => halved(new).map(Cow::Owned),
            Self::Characters => adapt(old, found, new).map(Cow::Owned),
        }
    }
}

impl RepairedMatch {
    /// The places of `old` in `text` once one kind of damage is undone, by the first kind that has any.
    #[must_use]
    pub fn find(text: &str, old: &str) -> Option<Self> {
        Repair::ALL.into_iter().find_map(|repair| {
            let repaired = repair.passage(old)?;
            let mut places = match repair {
                Repair::Characters if has_variants(old) || has_variants(text) => {
                    IndentedMatch::find(&plain_text(text), &plain_text(old))
                }
                Repair::Characters => Vec::new(),
                _ => IndentedMatch::find(text, &repaired),
            };
            // Damage and another indentation at once are too much to be sure.
            places.retain(|place| matches!(&place.change, IndentChange::Added(added) if added.is_empty()));
            (!places.is_empty()).then_some(Self { repair, places, old: repaired })
        })
    }

    /// Whole lines that are in a text with other quotes, dashes or spaces than `old` has.
    pub(super) fn of_characters(lines: Range<usize>, old: &str) -> Self {
        let place = IndentedMatch { lines, change: IndentChange::Added(String::new()) };
        Self { repair: Repair::Characters, places: vec![place], old: old.to_owned() }
    }

    /// The edit that puts the repaired `new` in the one place; `None` when there are several, or when `new` is unclear.
    #[must_use]
    pub fn replacement(&self, text: &str, old: &str, new: &str) -> Option<TextEdit> {
        let [place] = self.places.as_slice() else { return None };
        let found = split_lines(text)[place.lines.clone()].concat();
        let new = self.repair.new_text(old, &found, new)?;
        // In the characters of the text, lines that the two share are equal.
        let own = match self.repair {
            Repair::Characters => adapt(old, &found, old)?,
            _ => self.old.clone(),
        };
        place.replacement(text, &own, &new)
    }
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The number before a line of a listing, and the line behind it.
fn line_number(line: &str) -> Option<(usize, &str)> {
    let numbered = line.trim_start_matches(' ');
    let digits = numbered.bytes().take_while(u8::is_ascii_digit).count();
    let number = numbered[..digits].parse().ok()?;
    let rest = &numbered[digits..];
    // Trailing blanks get lost: an empty line may be its number alone.
    let behind =
        rest.strip_prefix(['\t', '\u{2192}']).or_else(|| without_break(rest).is_empty().then_some(rest));
    behind.map(|behind| (number, behind))
}

/// A listing without its numbers; `None` when a line has none, or they do not count up by one.
fn without_line_numbers(text: &str) -> Option<String> {
    let lines: Vec<(usize, &str)> = split_lines(text).into_iter().map(line_number).collect::<Option<_>>()?;
    let counts_up = lines.windows(2).all(|pair| pair[0].0.checked_add(1) == Some(pair[1].0));
    (!lines.is_empty() && counts_up).then(|| lines.into_iter().map(|(_, line)| line).collect())
}

/// A text with half of its backslashes; `None` when a run of them is odd.
fn halved(text: &str) -> Option<String> {
    let mut half = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let run = rest[at..].bytes().take_while(|byte| *byte == b'\\').count();
        if run % 2 == 1 {
            return None;
        }
        half.push_str(&rest[..at + run / 2]);
        rest = &rest[at + run..];
    }
    half.push_str(rest);
    Some(half)
}

/// The characters that entities stand for, with their names.
const ENTITIES: [(&str, char); 8] = [
    ("&lt;", '<'),
    ("&gt;", '>'),
    ("&amp;", '&'),
    ("&quot;", '"'),
    ("&#34;", '"'),
    ("&apos;", '\''),
    ("&#39;", '\''),
    ("&#x27;", '\''),
];

/// Which characters a text has as entities, and which as themselves.
struct Entities {
    encoded: Vec<char>,
    raw: Vec<char>,
}

impl Entities {
    fn of(text: &str) -> Self {
        let mut found = Self { encoded: Vec::new(), raw: Vec::new() };
        let mut rest = text;
        while let Some(at) = rest.find(['<', '>', '&', '"', '\'']) {
            rest = &rest[at..];
            let length = match ENTITIES.iter().find(|(name, _)| rest.starts_with(name)) {
                Some((name, character)) => {
                    found.encoded.push(*character);
                    name.len()
                }
                None => {
                    found.raw.extend(rest.chars().next());
                    1
                }
            };
            rest = &rest[length..];
        }
        found
    }

    /// Whether each character is written in one way.
    fn is_clear(&self) -> bool {
        !self.encoded.iter().any(|character| self.raw.contains(character))
    }

    /// Whether one text has as an entity what the other has as itself.
    fn contradicts(&self, shown: &Self) -> bool {
        self.encoded.iter().any(|character| shown.raw.contains(character))
    }

    fn decoded(&self, text: &str) -> Option<String> {
        if self.encoded.is_empty() {
            return None;
        }
        let mut decoded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('&') {
            decoded.push_str(&rest[..at]);
            rest = &rest[at..];
            let (character, length) = ENTITIES
                .iter()
                .find(|(name, _)| rest.starts_with(name))
                .map_or(('&', 1), |(name, character)| (*character, name.len()));
            decoded.push(character);
            rest = &rest[length..];
        }
        decoded.push_str(rest);
        Some(decoded)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::edit::change::apply_edits;

    /// The text after the edit; `None` when it is refused.
    fn replaced(text: &str, old: &str, new: &str) -> Option<String> {
        let found = RepairedMatch::find(text, old)?;
        found.replacement(text, old, new).map(|edit| apply_edits(text, &[edit]))
    }

    #[test]
    fn damage_is_undone_in_the_passage_and_in_the_new_text() {
        for (text, old, new, expected) in [
            (
                "fn a() {\n    b();\n}\n",
                "     1\tfn a() {\n     2\t    b();",
                "fn a() {\n    c();",
                "fn a() {\n    c();\n}\n",
            ),
            (
                "fn all() {\n\n}\n",
                "1\u{2192}fn all() {\n2\n3\u{2192}}",
                "1\u{2192}fn b() {\n2\u{2192}}",
                "fn b() {\n}\n",
            ),
            ("let long = 1;\n", "\u{feff}let long = 1;", "\u{feff}let long = 2;", "let long = 2;\n"),
            (
                "if a < b && c {\n  d\n",
                "if a &lt; b &amp;&amp; c {\n  d",
                "if a &gt; b {\n  d",
                "if a > b {\n  d\n",
            ),
            (
                "print('a\\n')\nend()\n",
                "print('a\\\\n')\nend()",
                "print('b\\\\t')\nend()",
                "print('b\\t')\nend()\n",
            ),
            (
                "announce(\"it's\")\n",
                "announce(“it’s”)",
                "announce(“it’s on”)\nlog(“x”)",
                "announce(\"it's on\")\nlog(\"x\")\n",
            ),
            (
                "total = high - low\n",
                "total\u{a0}= high – low",
                "total\u{a0}= high – 1",
                "total = high - 1\n",
            ),
        ] {
            assert_eq!(replaced(text, old, new).as_deref(), Some(expected), "{old:?} in {text:?}");
        }
    }

    #[test]
    fn a_new_text_that_shows_the_damage_in_part_is_refused() {
        for (text, old, new) in [
            ("fn a() {\n    b();\n", "1\tfn a() {\n2\t    b();", "1\tfn a() {\n    c();"),
            ("fn a() {\n    b();\n", "1\tfn a() {\n2\t    b();", "1\tfn a() {\n1\t    c();"),
            ("if first < second {\n", "if first &lt; second {", "if first &lt; x < y {"),
            ("if first < \"second\" {\n", "if first &lt; \"second\" {", "if first &lt; &quot;x&quot; {"),
            ("print('long\\n')\n", "print('long\\\\n')", "print('long\\t')"),
            ("say(“longer”, “x”)\n", "say(\"longer\", \"x\")", "say(\"longer\", \"x\", \"y\")"),
        ] {
            assert_eq!(replaced(text, old, new), None, "{new:?} for {old:?}");
        }
    }

    #[test]
    fn several_places_and_another_indentation_are_refused() {
        let twice = "if a < b {\n  c()\nif a < b {\n  c()\n";
        let found = RepairedMatch::find(twice, "if a &lt; b {\n  c()").unwrap();
        assert_eq!(found.places.len(), 2);
        assert_eq!(found.replacement(twice, "if a &lt; b {\n  c()", "x"), None);
        assert_eq!(RepairedMatch::find("    if a < b {\n      c()\n", "if a &lt; b {\n  c()"), None);
        assert_eq!(RepairedMatch::find("a < b\n", "a &lt; b"), None, "too few letters");
    }

    proptest! {
        /// A request whose passage and new text are damaged alike comes to what the undamaged one does, or to nothing.
        #[test]
        fn no_damage_writes_another_text(
            lines in proptest::collection::vec("[ab<>&\"'\\\\ –-]{0,9}", 1..9),
            place in 0..9usize,
            height in 1..4usize,
            new in proptest::collection::vec("[ab<>&\"'\\\\ –-]{0,9}", 1..4),
            damage in 0..5usize,
        ) {
            let text = lines.join("\n") + "\n";
            let start = place % lines.len();
            let end = (start + height).min(lines.len());
            let (old, new) = (lines[start..end].join("\n"), new.join("\n"));
            let escape = |text: &str| match damage {
                0 => split_lines(text).iter().enumerate().map(|(at, line)| format!("{:>6}\t{line}", at + 7)).collect(),
                1 => format!("\u{feff}{text}"),
                2 => text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"),
                3 => text.replace('\\', "\\\\"),
                _ => text.replace('-', "–").replace(' ', "\u{a0}"),
            };
            let (damaged_old, damaged_new) = (escape(&old), escape(&new));
            // A dash that the file has not and the model means looks like a damaged hyphen.
            prop_assume!(damage != 4 || !new.contains('–'));
            prop_assume!(!text.contains(&damaged_old) && !lines[end - 1].trim().is_empty());
            if let Some(written) = replaced(&text, &damaged_old, &damaged_new) {
                let before = lines[..start].iter().map(|line| format!("{line}\n")).collect::<String>();
                let after = lines[end..].iter().map(|line| format!("{line}\n")).collect::<String>();
                let blanks = |text: &str| text.lines().map(|line| line.trim_end_matches([' ', '\t']).to_owned()).collect::<Vec<_>>();
                let new = if new.is_empty() { new } else { new + "\n" };
                prop_assert_eq!(blanks(&written), blanks(&format!("{before}{new}{after}")));
            }
        }
    }
}
