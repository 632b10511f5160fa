//! Replacing one passage of a text, as the editing tools do it: all steps of matching, in their order.
//!
//! Rule: a step comes in only where the ones before it found nothing, and writes only where one place is left.

mod readings;

use std::ops::Range;

use memchr::memchr_iter;

use self::readings::{open_first_line, whole_lines_elsewhere};
use crate::edit::TextEdit;
use crate::edit::elision::ElidedMatch;
use crate::edit::indent::IndentedMatch;
use crate::edit::matching::Matches;
use crate::edit::repair::{Repair, RepairedMatch};

/// The edits that replace a passage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassageEdit {
    /// In order, not overlapping; several where all occurrences were asked for, or lines of the passage were left out.
    pub edits: Vec<TextEdit>,
    /// How the passage is in the text, where that is not as it was given.
    pub note: Option<PassageNote>,
}

/// How a passage is in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PassageNote {
    /// With another indentation, or other blanks at the ends of its lines.
    Indented(IndentedMatch),
    /// Without a damage of the request, which was undone in the new text too.
    Repaired {
        /// The undone distortion.
        repair: Repair,
        /// Its lines in the text, from 0.
        lines: Range<usize>,
    },
    /// With lines that a line of dots stood for, and that stay.
    Elided {
        /// All of its lines in the text, from 0.
        lines: Range<usize>,
    },
}

impl PassageNote {
    /// Its lines in the text, from 0.
    #[must_use]
    pub fn lines(&self) -> &Range<usize> {
        match self {
            Self::Indented(place) => &place.lines,
            Self::Repaired { lines, .. } | Self::Elided { lines } => lines,
        }
    }
}

/// Why a passage was not replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PassageMismatch {
    /// It is not in the text.
    NotFound,
    /// It is in several places as it was given.
    Ambiguous(Matches),
    /// It is in several places, with another indentation or once the request is repaired: their lines, from 0.
    AmbiguousLines(Vec<Range<usize>>),
    /// It is in one place as it was given, but within lines there; as whole lines it is elsewhere, with another
    /// indentation.
    TwoReadings {
        /// The lines of the passage as given, from 0.
        within: Range<usize>,
        /// The lines elsewhere, from 0.
        whole: Vec<Range<usize>>,
    },
    /// It is in one place, but how the new text is to be written there does not follow.
    Unclear {
        /// Its lines in the text, from 0.
        lines: Range<usize>,
        /// How it is there; `None` when its quotes differ.
        note: Option<PassageNote>,
    },
}

/// A passage to replace.
#[derive(Clone, Copy, Debug)]
pub struct PassageRequest<'input> {
    /// The passage.
    pub old: &'input str,
    /// The resulting text.
    pub new: &'input str,
    /// Whether every occurrence is replaced.
    pub all: bool,
    /// Whether the text has changed since the caller read it. The passage may be gone then, and a line like it elsewhere be
    /// mistaken for it: it is replaced only its place as given, but for line breaks and quotes.
    pub is_stale: bool,
}

/// The edits that put the new text in the place of the passage, or of all its occurrences.
///
/// # Errors
/// [`PassageMismatch`] when there is not one place, or when the new text does not follow.
pub fn replace_passage(text: &str, request: PassageRequest<'_>) -> Result<PassageEdit, PassageMismatch> {
    let PassageRequest { old, new, all, is_stale } = request;
    let matches = Matches::find(text, old);
    match matches.count() {
        0 if is_stale => Err(PassageMismatch::NotFound),
        0 => match replace_lines(text, old, new) {
            Err(PassageMismatch::NotFound) => elided(text, old, new).ok_or(PassageMismatch::NotFound),
            replaced => replaced,
        },
        count if count > 1 && !all => Err(PassageMismatch::Ambiguous(matches)),
        _ => {
            if let [place] = matches.ranges.as_slice() {
                let whole = whole_lines_elsewhere(text, place, old);
                if !whole.is_empty() {
                    return Err(PassageMismatch::TwoReadings { within: lines_of(text, place), whole });
                }
                if let Some(change) = open_first_line(text, place, old, new) {
                    let place = IndentedMatch { lines: lines_of(text, place), change };
                    return within_indent(text, place, request);
                }
            }
            match matches.replacements(text, old, new) {
                Some(edits) => Ok(PassageEdit { edits, note: None }),
                None => {
                    let lines = matches.ranges.first().map_or(0..0, |place| lines_of(text, place));
                    Err(PassageMismatch::Unclear { lines, note: None })
                }
            }
        }
    }
}

/// The edit that puts the new text in the place of whole lines that are in the text otherwise than given: with another
/// indentation, or once the request is repaired.
///
/// # Errors
/// As [`replace_passage`].
pub(super) fn replace_lines(text: &str, old: &str, new: &str) -> Result<PassageEdit, PassageMismatch> {
    let edit = indented(text, old, new).or_else(|| repaired(text, old, new));
    edit.unwrap_or(Err(PassageMismatch::NotFound))
}

/// A passage that has some indentation, and the text has more: its line as a whole. Without any, it stays open where the
/// further lines belong.
fn within_indent(
    text: &str,
    place: IndentedMatch,
    request: PassageRequest<'_>,
) -> Result<PassageEdit, PassageMismatch> {
    let PassageRequest { old, new, is_stale, .. } = request;
    let whole = (old.starts_with([' ', '\t']) && !is_stale).then(|| indented(text, old, new)).flatten();
    whole.filter(Result::is_ok).unwrap_or_else(|| {
        Err(PassageMismatch::Unclear { lines: place.lines.clone(), note: Some(PassageNote::Indented(place)) })
    })
}

fn indented(text: &str, old: &str, new: &str) -> Option<Result<PassageEdit, PassageMismatch>> {
    let places = IndentedMatch::find(text, old);
    let edit = match places.as_slice() {
        [] => return None,
        [place] => place.replacement(text, old, new),
        places => return Some(Err(ambiguous(places))),
    };
    places.into_iter().next().map(|place| {
        let lines = place.lines.clone();
        edit_or_unclear(edit, lines, PassageNote::Indented(place))
    })
}

fn elided(text: &str, old: &str, new: &str) -> Option<PassageEdit> {
    let ElidedMatch { lines, edits } = ElidedMatch::find(text, old, new)?;
    Some(PassageEdit { edits, note: Some(PassageNote::Elided { lines }) })
}

fn repaired(text: &str, old: &str, new: &str) -> Option<Result<PassageEdit, PassageMismatch>> {
    let found = RepairedMatch::find(text, old)?;
    let [place] = found.places.as_slice() else { return Some(Err(ambiguous(&found.places))) };
    let lines = place.lines.clone();
    let note = PassageNote::Repaired { repair: found.repair, lines: lines.clone() };
    Some(edit_or_unclear(found.replacement(text, old, new), lines, note))
}

fn ambiguous(places: &[IndentedMatch]) -> PassageMismatch {
    PassageMismatch::AmbiguousLines(places.iter().map(|place| place.lines.clone()).collect())
}

fn edit_or_unclear(
    edit: Option<TextEdit>,
    lines: Range<usize>,
    note: PassageNote,
) -> Result<PassageEdit, PassageMismatch> {
    match edit {
        Some(edit) => Ok(PassageEdit { edits: vec![edit], note: Some(note) }),
        None => Err(PassageMismatch::Unclear { lines, note: Some(note) }),
    }
}

/// The lines of a place, from 0.
fn lines_of(text: &str, place: &Range<usize>) -> Range<usize> {
    let number = |at: usize| memchr_iter(b'\n', &text.as_bytes()[..at]).count();
    number(place.start)..number(place.end) + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::edit::change::apply_edits;

    /// The text after the request; `None` when it is refused.
    fn replaced(text: &str, old: &str, new: &str, is_stale: bool) -> Option<String> {
        let request = PassageRequest { old, new, all: false, is_stale };
        replace_passage(text, request).ok().map(|edit| apply_edits(text, &edit.edits))
    }

    #[test]
    fn more_lines_behind_a_line_that_begins_within_its_indentation_are_not_guessed_at() {
        let text = "{\n        return value;\n}\n";
        let deep = "{\n        return value;\n    }\n";
        assert_eq!(replaced(deep, "    return value;\n    }", "    }", false), None);
        for (old, new, expected) in [
            // The further line has the indentation of the file.
            (
                "return value;",
                "check();\n        return value;",
                Some("{\n        check();\n        return value;\n}\n"),
            ),
            ("return value;", "return other;", Some("{\n        return other;\n}\n")),
            // The passage is one level less, and so is the new text.
            (
                "    return value;",
                "    check();\n    return value;",
                Some("{\n        check();\n        return value;\n}\n"),
            ),
            ("return value;", "check();\nreturn value;", None),
            // The line that the passage begins with is gone, and the next one has its whole indentation.
            ("return value;\n}", "        check();\n}", None),
            ("return value;\n}", "check();\n}", Some("{\n        check();\n}\n")),
            ("value;", "value;\nmore", Some("{\n        return value;\nmore\n}\n")),
            // A line before the first one, whose indentation is in the text: so is that of the first line then.
            ("return value;\n}", "check();\nreturn value;\n}", None),
            // Only a blank line replaces the first line, whose indentation would stay before it.
            ("return value;\n}", "\n}", None),
        ] {
            assert_eq!(replaced(text, old, new, false).as_deref(), expected, "{new:?} for {old:?}");
        }
    }

    #[test]
    fn which_line_goes_of_a_passage_that_begins_within_its_indentation_is_not_guessed_at() {
        let text = "    : map<A>\n\ntemplate <B>\nstruct Map\n";
        let (old, new) = (": map<A>\n\ntemplate <B>", "template <B>\ntemplate2 <B>");
        assert_eq!(
            replaced(text, old, new, false),
            None,
            "the first line is gone, the last one stands twice"
        );
        // One of two equal lines is gone: the one with the missing indentation, or the other one.
        let text = "    }\n}\n\nfn b() {\n";
        assert_eq!(replaced(text, "}\n}\n\nfn b() {", "}\n\nfn c() {", false), None);
        let both = replaced(text, "}\n}\n\nfn b() {", "}\n}\n\nfn c() {", false);
        assert_eq!(both.as_deref(), Some("    }\n}\n\nfn c() {\n"));
        // A line that is equal to the first one comes further down, where its indentation is missing too.
        let text = "    return {\n        a,\n    };\n}\n";
        let (old, new) = ("return {\n        a,\n    };\n}", "return {\n        a,\n    };\n}\nreturn {");
        assert_eq!(replaced(text, old, new, false), None);
        // The first line is the changed second one, which has its whole indentation.
        let text = "        first();\n    second_call();\n";
        let (old, new) = ("    first();\n    second_call();", "    second_call(1);");
        assert_eq!(replaced(text, old, new, false), None);
        let first = replaced(text, "first();\n    second_call();", "first(1);\n    second_call(2);", false);
        assert_eq!(first.as_deref(), Some("        first(1);\n    second_call(2);\n"));
    }

    #[test]
    fn lines_that_end_within_a_line_are_not_taken_for_whole_lines_elsewhere() {
        let text = "    });\n  });\nx(() => {\n  });\n}\n";
        let request = PassageRequest { old: "    });\n  }", new: "    });", all: false, is_stale: false };
        let why = replace_passage(text, request);
        let elsewhere = std::iter::once(3..5).collect();
        assert_eq!(why, Err(PassageMismatch::TwoReadings { within: 0..2, whole: elsewhere }));
        // Nothing but that place: the passage is a part of its lines.
        let alone = &text[..text.len() - 2];
        assert_eq!(
            replaced(alone, "    });\n  }", "    });\n  ]", false),
            Some(alone.replacen("\n  }", "\n  ]", 1))
        );
    }

    #[test]
    fn in_a_text_that_changed_since_no_line_like_the_passage_is_taken_for_it() {
        let text = "one();\n    longer_changed();\n    longer_name();\n";
        let (old, new) = ("\tlonger_name();", "\tx();");
        assert_eq!((replaced(text, old, new, false).is_some(), replaced(text, old, new, true)), (true, None));
        let (old, new) = ("\u{feff}one();\n    longer_changed();", "two();");
        assert_eq!((replaced(text, old, new, false).is_some(), replaced(text, old, new, true)), (true, None));
        assert!(replaced(text, "longer_name();", "x();", true).is_some(), "as given");
    }

    /// A line with this many spaces before it; none before an empty one.
    fn line((indent, body): (usize, &str)) -> String {
        if body.is_empty() { "\n".to_owned() } else { format!("{}{body}\n", " ".repeat(indent)) }
    }

    proptest! {
        /// Of lines that are in a text several times, each change is at the one place that the request can mean: where they
        /// stand as given, else where they stand with one change of indentation.
        #[test]
        fn only_the_one_place_that_a_request_can_mean_is_written(
            lines in proptest::collection::vec(
                (0_usize..4, proptest::sample::select(vec!["alpha_beta()", "gamma_delta", "}", "end_x;", ""])), 2..14),
            at in any::<proptest::sample::Index>(),
            height in 1_usize..5,
            shift in 0_usize..6,
            first in proptest::option::weighted(0.3, 0_usize..4),
            new in proptest::collection::vec((0_usize..4, proptest::sample::select(vec!["new_1", "new_2", "}", "end_x;"])), 1..4),
        ) {
            let lines: Vec<(usize, &str)> = lines.into_iter().map(|(indent, body)| (indent * 2, body)).collect();
            let start = at.index(lines.len());
            let end = (start + height).min(lines.len());
            let mut wanted: Vec<(usize, &str)> =
                lines[start..end].iter().map(|(indent, body)| ((indent + shift).saturating_sub(2), *body)).collect();
            // The first line alone may have another indentation.
            if let Some(first) = first {
                wanted[0].0 = first * 2;
            }
            let joined = |lines: &[(usize, &str)]| lines.iter().copied().map(line).collect::<String>();
            let (text, old) = (joined(&lines), joined(&wanted));
            let (old, new) = (old.trim_end_matches('\n'), joined(&new));
            prop_assume!(!old.trim().is_empty() && old.lines().count() == wanted.len());
            let offset = |at: usize| joined(&lines[..at]).len();
            type Lines<'l> = [(usize, &'l str)];
            let places = |is_it: &dyn Fn(&Lines<'_>) -> bool| -> Vec<usize> {
                let starts = 0..=lines.len() - wanted.len();
                starts.filter(|start| is_it(&lines[*start..start + wanted.len()])).collect()
            };
            let exact = places(&|found| joined(found) == joined(&wanted));
            let shifted = places(&|found| {
                let pairs = || found.iter().zip(&wanted);
                let solid = || pairs().filter(|(found, _)| !found.1.is_empty());
                pairs().all(|(found, wanted)| found.1 == wanted.1)
                    && solid().zip(solid().skip(1)).all(|(a, b)| a.0.0 + b.1.0 == b.0.0 + a.1.0)
            });
            let meant = match (exact.as_slice(), shifted.as_slice()) {
                ([place], _) | ([], [place]) => Some(*place),
                _ => None,
            };
            let request = PassageRequest { old, new: new.trim_end(), all: false, is_stale: false };
            if let Ok(edit) = replace_passage(&text, request) {
                let within = text.matches(old).count() == 1 && exact.is_empty() && shifted.is_empty();
                let meant = meant.map(|place| offset(place)..offset(place + wanted.len()));
                for edit in &edit.edits {
                    let is_there = meant.as_ref().is_some_and(|meant| {
                        meant.start <= edit.range.start && edit.range.end <= meant.end
                    });
                    prop_assert!(is_there || within, "{old:?} in {text:?}: {edit:?}");
                }
            }
        }
    }
}
