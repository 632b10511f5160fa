//! Characters that stand for each other in copied text: curly and straight quotes, dashes and hyphens, kinds of spaces.
//!
//! Rule: a text is adapted only by what the passage shows. A character whose counterpart stays open makes the text unclear,
//! and an unclear text is not written.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use memchr::memchr3_iter;
use similar::DiffTag;

use crate::edit::diff::{DIFF_DEADLINE, diff_tokens, split_lines, without_break};

/// The plain character that `character` is a variant of; itself when it is not a variant.
pub(super) fn plain(character: char) -> char {
    match character {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2002}' | '\u{2003}' | '\u{2007}' | '\u{2009}' | '\u{202f}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// The text with plain characters alone; as many characters as before.
pub(super) fn plain_text(text: &str) -> Cow<'_, str> {
    if !has_variants(text) {
        return Cow::Borrowed(text);
    }
    let mut plain_text = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, variant)) = next_variant(rest) {
        plain_text.push_str(&rest[..at]);
        plain_text.push(plain(variant));
        rest = &rest[at + variant.len_utf8()..];
    }
    plain_text.push_str(rest);
    Cow::Owned(plain_text)
}

/// Whether a text has a variant of a plain character.
pub(super) fn has_variants(text: &str) -> bool {
    next_variant(text).is_some()
}

/// The next character that is a variant of a plain one, and its offset in bytes.
fn next_variant(text: &str) -> Option<(usize, char)> {
    // The first bytes of all variants in UTF-8: everything else is skipped many bytes at a time.
    memchr3_iter(0xc2, 0xe2, 0xe3, text.as_bytes())
        .filter_map(|at| text[at..].chars().next().map(|character| (at, character)))
        .find(|(_, character)| plain(*character) != *character)
}

/// `new` in the characters of the file: `old` is how the caller wrote the passage `found`, and the plain texts of the two are
/// equal line by line but for trailing blanks.
///
/// What `old` and `new` share keeps the characters of `found`. `None` when a character of `new` could stand for several.
pub(super) fn adapt(old: &str, found: &str, new: &str) -> Option<String> {
    let bare = |text| -> Vec<&str> { split_lines(text).into_iter().map(without_break).collect() };
    let (old, found, new_lines) = (bare(old), bare(found), split_lines(new));
    if old.len() != found.len() {
        return None;
    }
    let counterparts = Counterparts::of(&old, &found);
    let new_bare: Vec<&str> = new_lines.iter().map(|line| without_break(line)).collect();
    let deadline = Instant::now() + DIFF_DEADLINE;
    let mut adapted = String::with_capacity(new.len());
    for op in diff_tokens(&old, &new_bare, deadline) {
        for (offset, at) in op.new_range().enumerate() {
            let line = new_bare[at];
            let partner = op.old_range().start + offset;
            if op.tag() == DiffTag::Equal {
                adapted.push_str(&with_own_end(old[partner], found[partner]));
            } else if partner < op.old_range().end {
                adapted.push_str(&counterparts.line(old[partner], found[partner], line)?);
            } else {
                adapted.push_str(&counterparts.text(line)?);
            }
            adapted.push_str(&new_lines[at][line.len()..]);
        }
    }
    Some(adapted)
}

/// The characters of `found` that stand for those of `old`, with the blanks at the end of `old`.
fn with_own_end(old: &str, found: &str) -> String {
    let length = old.trim_end_matches([' ', '\t']).chars().count();
    let end = &old[old.trim_end_matches([' ', '\t']).len()..];
    found.chars().take(length).chain(end.chars()).collect()
}

/// Which characters of a file stand for which of a request.
struct Counterparts {
    seen: BTreeMap<char, BTreeSet<char>>,
}

impl Counterparts {
    fn of(old: &[&str], found: &[&str]) -> Self {
        let mut seen: BTreeMap<char, BTreeSet<char>> = BTreeMap::new();
        for (wanted, stands) in old.iter().zip(found).flat_map(|(old, found)| old.chars().zip(found.chars()))
        {
            if matches!(plain(wanted), '\'' | '"' | '-' | ' ') {
                seen.entry(wanted).or_default().insert(stands);
            }
        }
        Self { seen }
    }

    /// A changed line: its beginning and end that `old` shares keep the characters of `found`.
    fn line(&self, old: &str, found: &str, new: &str) -> Option<String> {
        let (old, found, new): (Vec<char>, Vec<char>, Vec<char>) =
            (old.chars().collect(), found.chars().collect(), new.chars().collect());
        let most = old.len().min(new.len()).min(found.len());
        let prefix = (0..most).take_while(|at| old[*at] == new[*at]).count();
        // Blanks at the end of one of the two alone move positions counted from the end.
        let most = if old.len() == found.len() { most - prefix } else { 0 };
        let suffix =
            (0..most).take_while(|back| old[old.len() - 1 - back] == new[new.len() - 1 - back]).count();
        let middle: String = new[prefix..new.len() - suffix].iter().collect();
        let mut line: String = found[..prefix].iter().collect();
        line.push_str(&self.text(&middle)?);
        line.extend(&found[found.len() - suffix..]);
        Some(line)
    }

    fn text(&self, text: &str) -> Option<String> {
        text.chars().map(|character| self.of_character(character)).collect()
    }

    fn of_character(&self, character: char) -> Option<char> {
        let kind = plain(character);
        if !matches!(kind, '\'' | '"' | '-' | ' ') {
            return Some(character);
        }
        let seen = self.seen.get(&character);
        if kind == character {
            return seen.is_none_or(|stands| stands.contains(&character)).then_some(character);
        }
        match seen {
            Some(stands) if stands.len() > 1 => None,
            Some(stands) if !stands.contains(&character) => stands.first().copied(),
            Some(_) => self.is_faithful().then_some(character),
            // A variant that the passage does not have is plain where the others of its kind are.
            None => {
                let variants =
                    self.seen.iter().filter(|(wanted, _)| **wanted != kind && plain(**wanted) == kind);
                let mut stands = variants.flat_map(|(_, stands)| stands).peekable();
                match stands.peek() {
                    Some(_) => stands.all(|stands| *stands == kind).then_some(kind),
                    None => self.is_faithful().then_some(character),
                }
            }
        }
    }

    /// Whether each variant of the request represents itself in the file.
    fn is_faithful(&self) -> bool {
        let mut variants = self.seen.iter().filter(|(wanted, _)| plain(**wanted) != **wanted);
        variants.all(|(wanted, stands)| stands.len() == 1 && stands.contains(wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_changed_takes_the_characters_that_the_passage_shows() {
        for (old, found, new, expected) in [
            ("say(“a”)", "say(\"a\")", "say(“b”)\nlog(“c”)", Some("say(\"b\")\nlog(\"c\")")),
            ("say(\"a\")", "say(“a”)", "say(\"b\")", Some("say(“b”)")),
            // Which of the two the new ones are stays open.
            ("say(\"a\")", "say(“a”)", "say(\"a\", \"b\")", None),
            ("a – b", "a - b", "a – b – c", Some("a - b - c")),
            ("a – b-c", "a – b-c", "a – b-c – d", Some("a – b-c – d")),
            ("3-5 of", "3–5 of", "3-6 of", Some("3–6 of")),
            ("3-5", "3–5", "3-5 and 8-9", None),
            ("a\u{a0}b", "a b", "a\u{a0}b\u{a0}c", Some("a b c")),
            // A passage without dashes does not show what a dash represents.
            ("“a”", "\"a\"", "“a — b”", None),
            ("a", "a", "a — b", Some("a — b")),
            ("“a”  ", "\"a\"", "“a”  \nb", Some("\"a\"  \nb")),
        ] {
            assert_eq!(adapt(old, found, new).as_deref(), expected, "{new:?} for {old:?} in {found:?}");
        }
    }

    #[test]
    fn a_plain_text_has_as_many_characters() {
        let text = "“a” — ‘b’\u{a0}c";
        assert_eq!(plain_text(text), "\"a\" - 'b' c");
        assert!(has_variants(text) && !has_variants("a - 'b'"));
    }
}
