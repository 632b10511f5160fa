//! Edits between three texts, and a replacement in the first: the texts, what is looked for, what takes its place.
//!
//! Rule: the changes between two texts turn one into the other; two sets in a row come to the same as their composition;
//! a rebase onto the text the edits were made for gives what they give; a replacement puts in what it was told to. A
//! passage with another indentation is found where a slow search, which tries every change on every line, finds it.

use kode_engine::text::edit::change::apply_edits;
use kode_engine::text::edit::compose::compose_edits;
use kode_engine::text::edit::diff::{line_changes, word_changes};
use kode_engine::text::edit::indent::IndentedMatch;
use kode_engine::text::edit::matching::Matches;
use kode_engine::text::edit::rebase::{Rebase, rebase};

use crate::input::Input;

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let [a, b, c, old, new] = std::array::from_fn(|_| input.text());
    let first = word_changes(&a, &b);
    assert_eq!(apply_edits(&a, &first), b);
    assert_eq!(apply_edits(&a, &line_changes(&a, &b)), b);
    let second = word_changes(&b, &c);
    assert_eq!(apply_edits(&a, &compose_edits(&first, &second)), c);
    match rebase(&a, &first, &c) {
        Rebase::Clean(moved) => {
            let merged = apply_edits(&c, &moved);
            assert!(a != c || merged == b, "nothing had changed: {merged:?} is not {b:?}");
        }
        Rebase::AlreadyApplied => {}
        Rebase::Conflict { line, .. } => assert!(a != c && line > 0),
    }
    let found = Matches::find(&a, &old);
    let replaced = apply_edits(&a, &found.replacements(&a, &old, &new));
    assert!(!found.ranges.is_empty() || replaced == a);
    check_indented(&a, &old, &new);
}

/// Characters that a passage of one line needs.
const MIN_LETTERS: usize = 8;

/// Places that a search returns.
const MAX_PLACES: usize = 20;

fn check_indented(text: &str, old: &str, new: &str) {
    let found = IndentedMatch::find(text, old);
    let places: Vec<usize> = found.iter().map(|place| place.lines.start).collect();
    assert_eq!(places, slow_places(text, old), "{old:?} in {text:?}");
    let [place] = found.as_slice() else { return };
    let Some(edit) = place.replacement(text, old, new) else { return };
    let replaced = apply_edits(text, std::slice::from_ref(&edit));
    // Lines before and behind the passage stay, and each line of the new text stands there behind its indentation.
    let (before, after) = (lines(text), lines(&replaced));
    assert_eq!(before[..place.lines.start], after[..place.lines.start]);
    let behind = before.len() - place.lines.end;
    assert!(after.len() >= behind, "{replaced:?}");
    // A break at the end of one of the two alone adds a line, or joins the last one with the line behind it.
    if new.is_empty() || old.ends_with(['\n', '\r']) == new.ends_with(['\n', '\r']) {
        assert_eq!(before[place.lines.end..], after[after.len() - behind..], "{replaced:?}");
        let written = after[place.lines.start..after.len() - behind].iter().map(|line| line.trim());
        assert!(written.eq(lines(new).iter().map(|line| line.trim())), "{new:?} became {replaced:?}");
    }
}

/// The lines at which `old` stands with one change of indentation, found by trying all changes at all places.
fn slow_places(text: &str, old: &str) -> Vec<usize> {
    let (lines, wanted) = (lines(text), lines(old));
    let letters = |line: &&str| line.chars().filter(|character| character.is_alphanumeric()).count();
    let solid: Vec<&&str> = wanted.iter().filter(|line| !trimmed(line).is_empty()).collect();
    if solid.is_empty() || (solid.len() == 1 && letters(solid[0]) < MIN_LETTERS) || wanted.len() > lines.len()
    {
        return Vec::new();
    }
    let ends_with_break = |text: &str| text.ends_with(['\n', '\r']);
    let places = (0..=lines.len() - wanted.len()).filter(|start| {
        let end = start + wanted.len();
        let ends = end < lines.len() || !ends_with_break(old) || ends_with_break(text);
        ends && is_indented(&wanted, &lines[*start..end])
    });
    places.take(MAX_PLACES).collect()
}

/// Whether one change of indentation leads from the wanted lines to the ones found.
fn is_indented(wanted: &[&str], found: &[&str]) -> bool {
    let pairs: Vec<(&str, &str)> =
        wanted.iter().map(|line| trimmed(line)).zip(found.iter().map(|line| trimmed(line))).collect();
    let blank = |line: &str| indent(line).len() == line.len();
    let is = |change: &dyn Fn(&str, &str) -> bool| {
        pairs.iter().all(|(old, text)| match (blank(old), blank(text)) {
            (true, true) => true,
            (false, false) => {
                old[indent(old).len()..] == text[indent(text).len()..] && change(indent(old), indent(text))
            }
            _ => false,
        })
    };
    let shifts: Vec<&str> = pairs.iter().flat_map(|(old, text)| [indent(old), indent(text)]).collect();
    let shifts = || shifts.iter().flat_map(|indent| (0..=indent.len()).map(|end| &indent[..end]));
    let added = shifts().any(|shift| is(&|old, text| text == [shift, old].concat()));
    let removed = shifts().any(|shift| is(&|old, text| old == [shift, text].concat()));
    let ratio = (2..=8).any(|width| is(&|old, text| expanded(old, width).is_some_and(|old| old == text)))
        || (2..=8).any(|width| is(&|old, text| expanded(text, width).is_some_and(|text| text == old)));
    added || removed || ratio
}

/// Tabs before spaces as spaces; `None` for spaces before tabs.
fn expanded(indent: &str, width: usize) -> Option<String> {
    let spaces = indent.trim_start_matches('\t');
    (!spaces.contains('\t')).then(|| " ".repeat((indent.len() - spaces.len()) * width) + spaces)
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

fn trimmed(line: &str) -> &str {
    line.trim_end_matches(['\n', '\r']).trim_end_matches([' ', '\t'])
}

/// Lines with their breaks: `\n`, `\r\n` or `\r`.
fn lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\n', '\r']) {
        let length = if rest[at..].starts_with("\r\n") { 2 } else { 1 };
        lines.push(&rest[..at + length]);
        rest = &rest[at + length..];
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}
