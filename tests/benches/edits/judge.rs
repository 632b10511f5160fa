//! The outcome of a case, and the sums of it.
//!
//! Rule: a text is right when it is the intended one, byte for byte, and was to be written at all. Everything else that is
//! written is wrong. Trailing blanks of lines that stay are the file's.

use std::ops::Range;

use kode_e2e::distortion::{Distortion, Expected};
use kode_engine::text::edit::change::apply_edits;
use kode_engine::text::edit::nearest::nearest;
use kode_engine::text::edit::passage::{PassageEdit, PassageMismatch, PassageRequest, replace_passage};

use crate::cases::Case;

/// The outcome of one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Right,
    /// Nothing was written; whether the refusal names the passage that was meant.
    Refused {
        names_passage: bool,
    },
    Wrong,
}

/// Ours.
pub(crate) fn of_ours(case: &Case) -> Outcome {
    match ours(case, &case.text) {
        Ok(edit) => of_text(case, Some(&apply_edits(&case.text, &edit.edits))),
        Err(mismatch) => {
            let names_passage = named(&mismatch, &case.text, &case.old)
                .iter()
                .any(|shown| shares(shown, &case.lines) * 2 >= case.lines.len());
            Outcome::Refused { names_passage }
        }
    }
}

/// The text of a peer; `None` for a refusal.
pub(crate) fn of_text(case: &Case, written: Option<&str>) -> Outcome {
    match written {
        None => Outcome::Refused { names_passage: false },
        Some(text) if text == case.text => Outcome::Refused { names_passage: false },
        Some(text) if text == case.intended && case.expected != Expected::Refused => Outcome::Right,
        Some(_) => Outcome::Wrong,
    }
}

fn shares(shown: &Range<usize>, meant: &Range<usize>) -> usize {
    shown.end.min(meant.end).saturating_sub(shown.start.max(meant.start))
}

/// The lines, from 1, that a refusal names.
fn named(mismatch: &PassageMismatch, text: &str, old: &str) -> Vec<Range<usize>> {
    let from_one = |lines: &Range<usize>| lines.start + 1..lines.end + 1;
    match mismatch {
        PassageMismatch::NotFound => nearest(text, old).map(|passage| passage.lines).into_iter().collect(),
        PassageMismatch::Unclear { lines, .. } => vec![from_one(lines)],
        PassageMismatch::AmbiguousLines(places) => places.iter().map(from_one).collect(),
        PassageMismatch::TwoReadings { within, whole } => {
            std::iter::once(within).chain(whole).map(from_one).collect()
        }
        PassageMismatch::Ambiguous(matches) => {
            let number = |at: usize| text[..at].matches('\n').count() + 1;
            matches.ranges.iter().map(|range| number(range.start)..number(range.end) + 1).collect()
        }
    }
}

/// The request of a case, as the tools make it of a text.
pub(crate) fn ours(case: &Case, text: &str) -> Result<PassageEdit, PassageMismatch> {
    let is_stale = case.distortion == Distortion::Stale;
    replace_passage(text, PassageRequest { old: &case.old, new: &case.new, all: false, is_stale })
}

/// The lines that are shown for a request; for measuring.
pub(crate) fn shown_lines(case: &Case, text: &str) -> Vec<Range<usize>> {
    match ours(case, text) {
        Ok(_) => Vec::new(),
        Err(mismatch) => named(&mismatch, text, &case.old),
    }
}

/// Outcomes by distortion.
pub(crate) struct Tally {
    counts: Vec<Counts>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    right: usize,
    refused: usize,
    named: usize,
    wrong: usize,
}

impl Counts {
    fn all(self) -> usize {
        self.right + self.refused + self.wrong
    }
}

impl Tally {
    pub(crate) fn of(cases: &[Case], outcomes: &[Outcome]) -> Self {
        let mut counts = vec![Counts::default(); Distortion::ALL.len()];
        for (case, outcome) in cases.iter().zip(outcomes) {
            let counts = &mut counts[case.distortion as usize];
            match outcome {
                Outcome::Right => counts.right += 1,
                Outcome::Wrong => counts.wrong += 1,
                Outcome::Refused { names_passage } => {
                    counts.refused += 1;
                    counts.named += usize::from(*names_passage);
                }
            }
        }
        Self { counts }
    }

    /// The three shares of a distortion in percent.
    pub(crate) fn shares(&self, distortion: Distortion) -> String {
        let counts = self.counts[distortion as usize];
        let share = |part: usize| percent(part, counts.all());
        format!("{:.1} /{:5.1} /{:5.1}", share(counts.right), share(counts.refused), share(counts.wrong))
    }

    pub(crate) fn wrong(&self) -> usize {
        self.counts.iter().map(|counts| counts.wrong).sum()
    }

    pub(crate) fn right_of_harmless(&self) -> f64 {
        let harmless = Distortion::ALL.into_iter().filter(|distortion| distortion.is_harmless());
        let (right, all) = harmless
            .map(|distortion| self.counts[distortion as usize])
            .fold((0, 0), |(right, all), counts| (right + counts.right, all + counts.all()));
        percent(right, all)
    }

    /// The share of refusals that name the passage.
    pub(crate) fn named(&self) -> f64 {
        let sum = |part: fn(&Counts) -> usize| self.counts.iter().map(part).sum();
        percent(sum(|counts| counts.named), sum(|counts| counts.refused))
    }

    /// Whether more was applied right than by another, with no more wrong texts.
    pub(crate) fn is_ahead_of(&self, other: &Self, distortion: Distortion) -> bool {
        let (own, other) = (self.counts[distortion as usize], other.counts[distortion as usize]);
        own.wrong < other.wrong || own.wrong == other.wrong && own.right > other.right
    }
}

fn percent(part: usize, all: usize) -> f64 {
    // Counts of cases are far below what a float holds exactly.
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let share = part as f64 * 100.0 / all.max(1) as f64;
    share
}
