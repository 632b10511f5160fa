//! Why a passage was not replaced, and what the file has instead.
//!
//! Rule: a refusal shows the passage that the model meant, names what differs and stays within 60 lines.

use std::fmt::Write as _;
use std::ops::Range;

use kode_base::call::{ToolError, ToolErrorKind};
use kode_text::edit::diff::{split_lines, without_break};
use kode_text::edit::file_patch::{SectionFault, SectionRefusal};
use kode_text::edit::indent::{IndentChange, IndentedMatch};
use kode_text::edit::matching::Matches;
use kode_text::edit::nearest::{LineDifference, NearestPassage, nearest};
use kode_text::edit::passage::{PassageMismatch, PassageNote};
use kode_text::edit::repair::Repair;
use kode_text::workspace::Freshness;

/// The code of the error for more than one match.
const MORE_THAN_ONE_MATCH: u32 = 1;

/// Line numbers of matches that an error lists.
const MAX_LISTED_MATCHES: usize = 20;

/// Lines of a passage that an error shows.
const MAX_PASSAGE_LINES: usize = 50;

/// Characters of a passage that an error shows.
const MAX_PASSAGE_CHARS: usize = 4_000;

pub(crate) fn mismatch(message: String, hint: &str) -> ToolError {
    ToolError::new(ToolErrorKind::Mismatch, message, hint)
}

/// The error of a passage that was not replaced.
pub(super) fn refusal(
    why: PassageMismatch,
    text: &str,
    old: &str,
    path: &str,
    freshness: Freshness,
) -> ToolError {
    match why {
        PassageMismatch::NotFound => not_found(text, old, ("old_string", path), freshness),
        PassageMismatch::Ambiguous(matches) => ambiguous(text, &matches, path),
        PassageMismatch::AmbiguousLines(places) => ambiguous_lines(&places, path),
        PassageMismatch::TwoReadings { within, whole } => two_readings(&within, &whole, path),
        PassageMismatch::Unclear { lines, note } => {
            unclear(text, &lines, note.as_ref(), ("old_string", "new_string", path))
        }
    }
}

/// A passage that does not be in a file; `name` is what the model calls the passage.
pub(crate) fn not_found(
    text: &str,
    old: &str,
    (name, path): (&str, &str),
    freshness: Freshness,
) -> ToolError {
    let message = format!("{name} was not found in `{path}`");
    // Only a document that the user typed in gets here changed: a changed file is refused before.
    let changed = match freshness {
        Freshness::Changed => " The user changed the document since it was read: read it again.",
        Freshness::Current | Freshness::Unread => "",
    };
    let Some(passage) = nearest(text, old) else {
        let hint = "Read the file and copy the passage exactly, without line numbers.";
        return mismatch(message, &format!("{hint}{changed}"));
    };
    let message = format!(
        "{message}. The nearest passage is at {}:\n{}{}",
        line_range(&passage.lines),
        numbered(passage.lines.start, &passage.text),
        described(&passage, name),
    );
    let hint = format!(
        "If you meant that passage, copy it into {name} without the line numbers; else read the file again."
    );
    mismatch(message, &format!("{hint}{changed}"))
}

fn ambiguous(text: &str, matches: &Matches, path: &str) -> ToolError {
    let count = matches.count();
    let starts = matches.ranges.iter().map(|range| line_number(text, range.start));
    let message = format!("old_string occurs {count} times in `{path}`, at lines {}", listed(starts));
    let hint =
        "Add surrounding lines to old_string until it is unique, or set replace_all to replace every one.";
    let mut error = mismatch(message, hint);
    error.code = Some(MORE_THAN_ONE_MATCH);
    error
}

/// The passage is in several places, in none of them as it was given.
fn ambiguous_lines(places: &[Range<usize>], path: &str) -> ToolError {
    let starts = places.iter().map(|lines| lines.start + 1);
    let mut error = mismatch(
        format!(
            "old_string was not found in `{path}`. With another indentation or other characters it is at lines {}",
            listed(starts)
        ),
        "Copy the passage exactly, and add surrounding lines until it is unique.",
    );
    error.code = Some(MORE_THAN_ONE_MATCH);
    error
}

/// The passage is within lines as given, and elsewhere as whole lines with another indentation.
fn two_readings(within: &Range<usize>, whole: &[Range<usize>], path: &str) -> ToolError {
    let within = line_range(&(within.start + 1..within.end + 1));
    let starts = whole.iter().map(|lines| lines.start + 1);
    let mut error = mismatch(
        format!(
            "old_string occurs in `{path}` as a part of {within}. With another indentation it is whole lines at lines {}",
            listed(starts)
        ),
        "Copy whole lines exactly, and add surrounding lines until they are unique.",
    );
    error.code = Some(MORE_THAN_ONE_MATCH);
    error
}

/// The passage is in one place, but how the new text is to be written there does not follow.
fn unclear(
    text: &str,
    lines: &Range<usize>,
    note: Option<&PassageNote>,
    (old, new, path): (&str, &str, &str),
) -> ToolError {
    let numbers = lines.start + 1..lines.end + 1;
    let stands = |how: &str, why: &str| {
        let all = split_lines(text);
        let passage = all[lines.start.min(all.len())..lines.end.min(all.len())].concat();
        format!(
            "{old} was not found in `{path}`. {how} it is at {}:\n{}{why}",
            line_range(&numbers),
            numbered(numbers.start, passage.trim_end_matches(['\n', '\r'])),
        )
    };
    match note {
        Some(PassageNote::Indented(place)) => mismatch(
            stands("With another indentation", &capitalized(&change(&place.change))),
            &format!("Copy it with its indentation, and indent {new} as the file does."),
        ),
        Some(PassageNote::Repaired { repair, .. }) => mismatch(
            stands(
                &format!("With {}", repair_name(*repair)),
                "The text that should stand there does not follow from it.",
            ),
            &format!("Copy the passage exactly, and write {new} as it should be in the file."),
        ),
        Some(PassageNote::Elided { .. }) | None => mismatch(
            stands(
                "With other quotes",
                "The quotes of the text that should stand there do not follow from it.",
            ),
            &format!(
                "Copy the passage with its quotes, and write {new} with the quotes that the file should have."
            ),
        ),
    }
}

/// The note on an edit whose passage stood there in another way than given; the model calls the two texts `old` and `new`.
pub(crate) fn note_of(note: &PassageNote, old: &str, new: &str) -> String {
    match note {
        PassageNote::Indented(place) => indent_note(place, old),
        PassageNote::Repaired { repair, lines } => format!(
            "Note: {old} stood at {} with {}; {new} was written alike.",
            line_range(&(lines.start + 1..lines.end + 1)),
            repair_name(*repair)
        ),
        PassageNote::Elided { lines } => format!(
            "Note: {old} stood at {}; what its dots stood for was kept.",
            line_range(&(lines.start + 1..lines.end + 1))
        ),
    }
}

fn repair_name(repair: Repair) -> &'static str {
    match repair {
        Repair::LineNumbers => "no line numbers before its lines",
        Repair::ByteOrderMark => "no byte order mark",
        Repair::Entities => "characters in the place of HTML entities",
        Repair::Backslashes => "one backslash for each two",
        Repair::Characters => "other quotes, dashes or spaces",
    }
}

/// The note on an edit whose passage stood there with another indentation.
fn indent_note(place: &IndentedMatch, name: &str) -> String {
    let lines = line_range(&(place.lines.start + 1..place.lines.end + 1));
    match &place.change {
        IndentChange::Added(added) if added.is_empty() => {
            format!("Note: {name} stood at {lines} with other blanks at the ends of its lines.")
        }
        changed => {
            format!("Note: {name} stood at {lines}: {} The new text was indented alike.", change(changed))
        }
    }
}

fn change(change: &IndentChange) -> String {
    match change {
        IndentChange::Added(added) => format!("the file has {} more before each line.", blanks(added)),
        IndentChange::Removed(removed) => format!("the file has {} less before each line.", blanks(removed)),
        IndentChange::TabsToSpaces { width, .. } => format!("the file has {width} spaces for each tab."),
        IndentChange::SpacesToTabs { width, .. } => format!("the file has a tab for each {width} spaces."),
    }
}

/// A section of a patch that cannot be applied.
pub(crate) fn section_refused(
    text: &str,
    refusal: &SectionRefusal,
    path: &str,
    freshness: Freshness,
) -> ToolError {
    let SectionRefusal { section, wanted, fault } = refusal;
    let named = format!("section {section} of `{path}`");
    let lines = |places: &[usize]| listed(places.iter().copied());
    let mut error = match fault {
        SectionFault::NotFound => not_found(text, wanted, (&format!("section {section}"), path), freshness),
        SectionFault::NoHeader(header) => mismatch(
            format!("no line of `{path}` is `{header}`"),
            "Write after `@@` an exact line of the file above the passage, or `@@` alone.",
        ),
        SectionFault::NotAtEnd => mismatch(
            format!("the lines of {named} do not end the file"),
            "Leave `*** End of File` out, or copy the last lines of the file.",
        ),
        SectionFault::Ambiguous(places) => {
            let message = format!(
                "the lines of {named} stand there {} times, at lines {}",
                places.len(),
                lines(places)
            );
            let hint = "Add lines that stay until they are unique, or a line above the passage after `@@`.";
            ToolError { code: Some(MORE_THAN_ONE_MATCH), ..mismatch(message, hint) }
        }
        SectionFault::Unclear { lines, note } => {
            unclear(text, lines, Some(note), (&format!("section {section}"), "the new lines", path))
        }
        SectionFault::NoPlace => mismatch(
            format!("{named} adds lines below a line after `@@` and says not where"),
            "Give a line that stays, before or after the new ones.",
        ),
        SectionFault::Overlap => mismatch(
            format!("{named} changes lines that a section before it changes"),
            "Put both changes into one section.",
        ),
    };
    error.hint.push_str(" No file was changed.");
    error
}

fn described(passage: &NearestPassage, name: &str) -> String {
    let mut text = String::new();
    for difference in &passage.differences {
        let _ = write!(
            text,
            "{}{}",
            if text.is_empty() { "" } else { "\n" },
            capitalized(&sentence(difference, name))
        );
    }
    if passage.more > 0 {
        let _ = write!(text, "\n{} more differences.", passage.more);
    }
    text
}

fn sentence(difference: &LineDifference, name: &str) -> String {
    let of_old = |lines: &Range<usize>| format!("{} of {name}", line_range(lines));
    match difference {
        LineDifference::Blanks { wanted, found, indents } if indents.0 == indents.1 => {
            format!("line {found} ends with other blanks than line {wanted} of {name}.")
        }
        LineDifference::Blanks { wanted, found, indents: (asked, stands) } => format!(
            "line {found} begins with {}, line {wanted} of {name} with {}.",
            blanks(stands),
            blanks(asked)
        ),
        LineDifference::Changed { wanted, found } => {
            let verb = if wanted.len() == 1 { "differs" } else { "differ" };
            format!("{} {verb} from {}.", of_old(wanted), line_range(found))
        }
        LineDifference::Unknown { wanted } => {
            let verb = if wanted.len() == 1 { "is" } else { "are" };
            format!("{} {verb} not in the file.", of_old(wanted))
        }
        LineDifference::LeftOut { found } => {
            let verb = if found.len() == 1 { "is" } else { "are" };
            format!("{} {verb} missing from {name}.", line_range(found))
        }
    }
}

/// Blanks by their kind and number: `1 tab and 2 spaces`.
fn blanks(blanks: &str) -> String {
    let count = |kind: char, name: &str| match blanks.matches(kind).count() {
        0 => None,
        1 => Some(format!("1 {name}")),
        count => Some(format!("{count} {name}s")),
    };
    let counts: Vec<String> = [count('\t', "tab"), count(' ', "space")].into_iter().flatten().collect();
    if counts.is_empty() { "no blanks".to_owned() } else { counts.join(" and ") }
}

fn capitalized(sentence: &str) -> String {
    let mut rest = sentence.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// `line 4`, or `lines 4-6` of a range from 4 to before 7.
fn line_range(lines: &Range<usize>) -> String {
    match lines.len() {
        0 | 1 => format!("line {}", lines.start),
        _ => format!("lines {}-{}", lines.start, lines.end - 1),
    }
}

/// A passage as `Read` shows it, cut where it is too long.
fn numbered(first: usize, passage: &str) -> String {
    let cut = passage.char_indices().nth(MAX_PASSAGE_CHARS);
    let shown = cut.map_or(passage, |(at, _)| &passage[..at]);
    let lines = split_lines(shown);
    let mut text = String::new();
    for (number, line) in (first..).zip(lines.iter().take(MAX_PASSAGE_LINES)) {
        let _ = writeln!(text, "{number:>6}\t{}", without_break(line));
    }
    if cut.is_some() || lines.len() > MAX_PASSAGE_LINES {
        text.push_str("...\n");
    }
    text
}

fn listed(lines: impl Iterator<Item = usize>) -> String {
    let mut text = String::new();
    for (at, line) in lines.enumerate() {
        if at == MAX_LISTED_MATCHES {
            text.push_str(", ...");
            break;
        }
        let _ = write!(text, "{}{line}", if at == 0 { "" } else { ", " });
    }
    text
}

fn line_number(text: &str, offset: usize) -> usize {
    let before = &text[..offset];
    split_lines(before).len() + usize::from(before.is_empty() || before.ends_with(['\n', '\r']))
}
