//! Edits between three texts, and a replacement in the first: the texts, the searched passage, its replacement.
//!
//! Rule: the changes between two texts turn one into the other; two sets in a row come to the same as their composition;
//! a rebase onto the text the edits were made for gives what they give; a replacement inserts the given text. A
//! passage with another indentation is found where a slow search, which tries every change on every line, finds it; so is a
//! passage whose request was damaged, once a slow repair has undone that. Where dots stand for lines, each part that changes
//! is in the text once, and nothing else is changed.

use kode_engine::text::edit::change::apply_edits;
use kode_engine::text::edit::compose::compose_edits;
use kode_engine::text::edit::diff::{line_changes, word_changes};
use kode_engine::text::edit::indent::IndentedMatch;
use kode_engine::text::edit::matching::Matches;
use kode_engine::text::edit::passage::{PassageNote, PassageRequest, replace_passage};
use kode_engine::text::edit::rebase::{Rebase, rebase};
use kode_engine::text::edit::repair::{Repair, RepairedMatch};

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
    let replaced = found.replacements(&a, &old, &new).map(|edits| apply_edits(&a, &edits));
    assert!(!found.ranges.is_empty() || replaced.is_some_and(|replaced| replaced == a));
    check_indented(&a, &old, &new);
    check_repaired(&a, &old, &new);
    check_elided(&a, &old, &new);
}

/// Letters and digits that a passage of one line needs, and one of several.
const MIN_LETTERS_OF_ONE_LINE: usize = 8;
const MIN_LETTERS: usize = 4;

/// Places that a search returns.
const MAX_PLACES: usize = 20;

fn check_indented(text: &str, old: &str, new: &str) {
    let found = IndentedMatch::find(text, old);
    let places: Vec<usize> = found.iter().map(|place| place.lines.start).collect();
    assert_eq!(places, slow_places(text, old), "{old:?} in {text:?}");
    let [place] = found.as_slice() else { return };
    let Some(edit) = place.replacement(text, old, new) else { return };
    let replaced = apply_edits(text, std::slice::from_ref(&edit));
    // Lines before and behind the passage stay, and each line of the new text is there behind its indentation.
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

/// The lines of `old` with one change of indentation, found by trying all changes at all places.
fn slow_places(text: &str, old: &str) -> Vec<usize> {
    let (lines, wanted) = (lines(text), lines(old));
    let letters = |line: &&str| line.chars().filter(|character| character.is_alphanumeric()).count();
    let solid = wanted.iter().filter(|line| !trimmed(line).is_empty()).count();
    let least = if solid == 1 { MIN_LETTERS_OF_ONE_LINE } else { MIN_LETTERS };
    if wanted.iter().map(letters).sum::<usize>() < least || wanted.len() > lines.len() {
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

fn check_repaired(text: &str, old: &str, new: &str) {
    let expected = Repair::ALL.into_iter().find_map(|repair| {
        let wanted = undone(repair, old).filter(|wanted| repair == Repair::Characters || wanted != old)?;
        let has_variants = |text: &str| text != plain(text);
        if repair == Repair::Characters && !has_variants(old) && !has_variants(text) {
            return None;
        }
        let (text, wanted) = if repair == Repair::Characters {
            (plain(text), plain(&wanted))
        } else {
            (text.to_owned(), wanted)
        };
        let all = slow_places(&text, &wanted);
        let same = |start: &usize| {
            lines(&wanted)
                .iter()
                .zip(&lines(&text)[*start..])
                .all(|(wanted, found)| trimmed(wanted) == trimmed(found))
        };
        let cut = all.len() == MAX_PLACES;
        let places: Vec<usize> = all.into_iter().filter(same).collect();
        (!places.is_empty()).then_some((repair, places, cut))
    });
    let found = RepairedMatch::find(text, old);
    let starts =
        |found: &RepairedMatch| found.places.iter().map(|place| place.lines.start).collect::<Vec<_>>();
    match (&found, &expected) {
        (Some(found), Some((repair, places, _))) => {
            assert_eq!((found.repair, starts(found)), (*repair, places.clone()))
        }
        (None, None) => {}
        (found, expected) => panic!("{found:?} is not {expected:?}: {old:?} in {text:?}"),
    }
    let Some(found) = found else { return };
    let Some(edit) = found.replacement(text, old, new) else { return };
    let [place] = found.places.as_slice() else { panic!("an edit at one of several places") };
    let replaced = apply_edits(text, std::slice::from_ref(&edit));
    let (before, after) = (lines(text), lines(&replaced));
    assert_eq!(before[..place.lines.start], after[..place.lines.start]);
    let written = match found.repair {
        Repair::LineNumbers if undone(Repair::LineNumbers, new).is_none() => new.to_owned(),
        repair => undone(repair, new).unwrap_or_else(|| panic!("{new:?} cannot be repaired")),
    };
    if !written.is_empty() && old.ends_with(['\n', '\r']) == written.ends_with(['\n', '\r']) {
        let behind = before.len() - place.lines.end;
        assert_eq!(before[place.lines.end..], after[after.len() - behind..], "{replaced:?}");
        let stands = after[place.lines.start..after.len() - behind].iter().map(|line| plain(line.trim()));
        assert!(
            stands.eq(lines(&written).iter().map(|line| plain(line.trim()))),
            "{new:?} became {replaced:?}"
        );
    }
}

fn check_elided(text: &str, old: &str, new: &str) {
    let request = PassageRequest { old, new, all: false, is_stale: false };
    let Ok(passage) = replace_passage(text, request) else { return };
    if !matches!(passage.note, Some(PassageNote::Elided { .. })) {
        return;
    }
    fn bare(text: &str) -> Vec<&str> {
        lines(text).into_iter().map(|line| line.trim_end_matches(['\n', '\r'])).collect()
    }
    let cut =
        |text| -> Vec<Vec<&str>> { bare(text).split(|line| is_dots(line)).map(<[&str]>::to_vec).collect() };
    let (parts, wanted, stands) = (cut(old), cut(new), bare(text));
    assert_eq!(parts.len(), wanted.len(), "as many parts");
    let changed = parts.iter().zip(&wanted).filter(|(part, wanted)| part != wanted);
    let mut changes: Vec<(usize, &Vec<&str>, &Vec<&str>)> = changed
        .map(|(part, wanted)| {
            let is_here = |at: &usize| stands.get(*at..at + part.len()) == Some(part.as_slice());
            let places: Vec<usize> = (0..stands.len()).filter(is_here).collect();
            assert_eq!(places.len(), 1, "{part:?} in {text:?}");
            (places[0], part, wanted)
        })
        .collect();
    changes.sort();
    let mut expected = stands.clone();
    for (at, part, wanted) in changes.into_iter().rev() {
        expected.splice(at..at + part.len(), wanted.iter().copied());
    }
    let replaced = apply_edits(text, &passage.edits);
    assert_eq!(bare(&replaced), expected, "{old:?} in {text:?}");
}

/// Whether a line is dots, or a comment of dots.
fn is_dots(line: &str) -> bool {
    let line = line.trim();
    let line =
        ["//", "#", "--", ";", "%"].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line).trim();
    let inner = ["...", "\u{2026}"].iter().find_map(|dots| line.strip_prefix(dots)?.strip_suffix(dots));
    line == "..." || line == "\u{2026}" || inner.is_some_and(|inner| !inner.is_empty())
}

/// A text without a damage, in the plainest way; `None` where the damage cannot be undone.
fn undone(repair: Repair, text: &str) -> Option<String> {
    match repair {
        Repair::LineNumbers => {
            let mut expected = None;
            let mut bare = String::new();
            for line in lines(text) {
                let digits: String =
                    line.trim_start_matches(' ').chars().take_while(char::is_ascii_digit).collect();
                let number: usize = digits.parse().ok()?;
                let rest = &line.trim_start_matches(' ')[digits.len()..];
                if expected.is_some_and(|expected| expected != number) {
                    return None;
                }
                expected = Some(number.checked_add(1)?);
                match rest.chars().next() {
                    Some('\t' | '\u{2192}') => bare.extend(rest.chars().skip(1)),
                    None | Some('\n' | '\r') => bare.push_str(rest),
                    Some(_) => return None,
                }
            }
            expected.map(|_| bare)
        }
        Repair::ByteOrderMark => Some(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned()),
        Repair::Entities => {
            let entities = [
                ("&lt;", "<"),
                ("&gt;", ">"),
                ("&quot;", "\""),
                ("&#34;", "\""),
                ("&apos;", "'"),
                ("&#39;", "'"),
                ("&#x27;", "'"),
                ("&amp;", "&"),
            ];
            Some(
                entities
                    .iter()
                    .fold(text.to_owned(), |text, (name, character)| text.replace(name, character)),
            )
        }
        Repair::Backslashes => {
            let runs = text.split(|letter| letter != '\\').map(str::len);
            runs.into_iter().all(|run| run % 2 == 0).then(|| text.replace("\\\\", "\\"))
        }
        Repair::Characters => Some(text.to_owned()),
    }
}

/// A text with plain quotes, hyphens and spaces.
fn plain(text: &str) -> String {
    let kinds = [
        ("'", "\u{2018}\u{2019}\u{201a}\u{201b}"),
        ("\"", "\u{201c}\u{201d}\u{201e}\u{201f}"),
        ("-", "\u{2010}\u{2011}\u{2012}\u{2013}\u{2014}\u{2015}\u{2212}"),
        (" ", "\u{a0}\u{2002}\u{2003}\u{2007}\u{2009}\u{202f}\u{3000}"),
    ];
    kinds.iter().fold(text.to_owned(), |text, (plain, variants)| {
        text.replace(|letter| variants.contains(letter), plain)
    })
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
