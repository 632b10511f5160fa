//! Where the sections of a patch belong in a text, and the edits that they come to.
//!
//! Rule: rather refuse than guess. Lines that a section keeps or takes out must be in the text: exactly, else but for
//! quotes, else in one place as Edit finds whole lines. Without a header they must be in one place only.

use std::ops::Range;

use super::{PatchLine, PatchSection};
use crate::edit::TextEdit;
use crate::edit::diff::{split_lines, without_break};
use crate::edit::matching::Matches;
use crate::edit::passage::{PassageMismatch, PassageNote, replace_lines};
use crate::edit::repair::{Repair, RepairedMatch};
use kode_base::encoding::LineEnding;

/// Places of an ambiguous section that are kept.
const MAX_PLACES: usize = 20;

/// The edits of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchedText {
    /// Sorted, not overlapping.
    pub edits: Vec<TextEdit>,
    /// How sections stood in the text, where that was not as they were given.
    pub notes: Vec<PassageNote>,
}

/// Why a section cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionRefusal {
    /// Its number in its file, from 1.
    pub section: usize,
    /// The lines that were looked for.
    pub wanted: String,
    /// The problem.
    pub fault: SectionFault,
}

/// The problems of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionFault {
    /// No line of the text is this header.
    NoHeader(String),
    /// The lines do not be in the text.
    NotFound,
    /// They stand at the end of the text only if the text were another.
    NotAtEnd,
    /// They stand at these lines, from 1, and nothing says which is meant.
    Ambiguous(Vec<usize>),
    /// They are in one place otherwise than given, and how the new lines are to be written there does not follow.
    Unclear {
        /// Their lines in the text, from 0.
        lines: Range<usize>,
        /// How they stand there.
        note: PassageNote,
    },
    /// Only lines are added below a header: where is not said.
    NoPlace,
    /// It changes what a section before it changes too.
    Overlap,
}

/// The place of a section.
enum SectionPlace {
    /// At these lines of the text, from 0, which are kept as they are where the section keeps them.
    Lines(Range<usize>),
    /// Otherwise than given: the changes there, and their form.
    Otherwise(Vec<TextEdit>, PassageNote),
}

impl PatchedText {
    /// The edits that sections come to in a text. `is_stale` says whether the text has changed since the caller read it: lines
    /// that stand there otherwise than given are not treated as those that were read, then.
    ///
    /// # Errors
    /// [`SectionRefusal`] of the first section that cannot be applied.
    pub fn of(text: &str, sections: &[PatchSection], is_stale: bool) -> Result<Self, SectionRefusal> {
        let lines = TextLines::of(text);
        let mut patched = Self::default();
        let mut cursor = 0;
        for (number, section) in (1..).zip(sections) {
            let refuse =
                |fault| SectionRefusal { section: number, wanted: section.old_lines().join("\n"), fault };
            let begin = lines.after_headers(&section.headers, cursor).map_err(refuse)?;
            if section.old_lines().is_empty() {
                if !section.headers.is_empty() {
                    return Err(refuse(SectionFault::NoPlace));
                }
                patched.edits.push(lines.appended(section));
                continue;
            }
            match lines.place(section, begin, is_stale).map_err(refuse)? {
                SectionPlace::Lines(place) => {
                    cursor = place.end;
                    patched.edits.extend(lines.changes(section, place.start));
                }
                SectionPlace::Otherwise(edits, note) => {
                    cursor = note.lines().end;
                    patched.edits.extend(edits);
                    patched.notes.push(note);
                }
            }
            let mut sorted = patched.edits.clone();
            sorted.sort_by_key(|edit| (edit.range.start, edit.range.end));
            if sorted.windows(2).any(|pair| pair[0].range.end > pair[1].range.start) {
                return Err(refuse(SectionFault::Overlap));
            }
            patched.edits = sorted;
        }
        Ok(patched)
    }
}

impl PatchSection {
    /// The lines that must be in the text.
    fn old_lines(&self) -> Vec<&str> {
        let lines = self.lines.iter().filter_map(|line| match line {
            PatchLine::Context(text) | PatchLine::Removed(text) => Some(text.as_str()),
            PatchLine::Added(_) => None,
        });
        lines.collect()
    }

    fn old_text(&self) -> String {
        terminated(self.old_lines().into_iter())
    }

    fn new_text(&self) -> String {
        terminated(self.lines.iter().filter_map(|line| match line {
            PatchLine::Context(text) | PatchLine::Added(text) => Some(text.as_str()),
            PatchLine::Removed(_) => None,
        }))
    }
}

/// The lines of a text with where each begins.
struct TextLines<'text> {
    text: &'text str,
    lines: Vec<&'text str>,
    /// Where each line begins, in bytes, and the end of the text.
    starts: Vec<usize>,
    line_break: &'static str,
}

impl<'text> TextLines<'text> {
    fn of(text: &'text str) -> Self {
        let lines = split_lines(text);
        let mut starts = Vec::with_capacity(lines.len() + 1);
        starts.push(0);
        for line in &lines {
            starts.push(starts.last().copied().unwrap_or_default() + line.len());
        }
        Self { text, lines, starts, line_break: LineEnding::dominant(text).unwrap_or("\n") }
    }

    /// The first line below the headers, each of which is looked for below the one before.
    fn after_headers(&self, headers: &[String], begin: usize) -> Result<usize, SectionFault> {
        let mut at = begin;
        for header in headers {
            let same = [
                |line: &str, header: &str| line == header,
                |line: &str, header: &str| line.trim() == header.trim(),
                // Models leave out what follows a name: a brace, a list of parameters.
                |line: &str, header: &str| line.trim().starts_with(header.trim()),
            ];
            let found = same.iter().find_map(|same| {
                (at..self.lines.len()).find(|line| same(without_break(self.lines[*line]), header))
            });
            at = found.ok_or_else(|| SectionFault::NoHeader(header.clone()))? + 1;
        }
        Ok(at)
    }

    /// The place of a section, which is below `begin` unless it is in one place only.
    fn place(
        &self,
        section: &PatchSection,
        begin: usize,
        is_stale: bool,
    ) -> Result<SectionPlace, SectionFault> {
        let places = self.exact(&section.old_lines());
        if places.is_empty() {
            let found = self.otherwise(section, is_stale)?;
            let ends_text =
                matches!(&found, SectionPlace::Otherwise(_, note) if note.lines().end == self.lines.len());
            return if section.is_at_end && !ends_text { Err(SectionFault::NotAtEnd) } else { Ok(found) };
        }
        if section.is_at_end {
            let last = places.into_iter().find(|place| place.end == self.lines.len());
            return last.map(SectionPlace::Lines).ok_or(SectionFault::NotAtEnd);
        }
        let below: Vec<_> = places.iter().filter(|place| place.start >= begin).cloned().collect();
        match (below.as_slice(), places.as_slice()) {
            ([place], _) | ([], [place]) => Ok(SectionPlace::Lines(place.clone())),
            // A header names the part of the file, and the passage is the next one in it.
            ([place, ..], _) if !section.headers.is_empty() => Ok(SectionPlace::Lines(place.clone())),
            ([], all) | (all, _) => Err(ambiguous(all)),
        }
    }

    /// The places where the lines stand exactly, but for line breaks.
    fn exact(&self, wanted: &[&str]) -> Vec<Range<usize>> {
        let last = (self.lines.len() + 1).saturating_sub(wanted.len());
        let is_here = |at: &usize| {
            self.lines[*at..*at + wanted.len()]
                .iter()
                .zip(wanted)
                .all(|(line, old)| without_break(line) == *old)
        };
        (0..last).filter(is_here).map(|at| at..at + wanted.len()).collect()
    }

    /// The places where they stand but for quotes: whole lines only.
    fn alike(&self, old: &str) -> Vec<Range<usize>> {
        let old = old.strip_suffix('\n').unwrap_or(old);
        let found = Matches::find(self.text, old);
        let whole = found.ranges.into_iter().filter_map(|range| {
            let start = self.starts.binary_search(&range.start).ok()?;
            let ends = |end: usize| without_break(&self.text[self.starts[end]..self.starts[end + 1]]);
            let last = self.starts.partition_point(|start| *start < range.end).checked_sub(1)?;
            (self.starts[last] + ends(last).len() == range.end).then_some(start..last + 1)
        });
        whole.collect()
    }

    /// The one place where the lines of a section stand otherwise than given.
    fn otherwise(&self, section: &PatchSection, is_stale: bool) -> Result<SectionPlace, SectionFault> {
        let (old, new) = (section.old_text(), section.new_text());
        let alike = self.alike(&old);
        match alike.as_slice() {
            [] if is_stale => return Err(SectionFault::NotFound),
            [] => {}
            [lines] => {
                let found = RepairedMatch::of_characters(lines.clone(), &old);
                let note = PassageNote::Repaired { repair: Repair::Characters, lines: lines.clone() };
                return match found.replacement(self.text, &old, &new) {
                    Some(edit) => Ok(SectionPlace::Otherwise(vec![edit], note)),
                    None => Err(SectionFault::Unclear { lines: lines.clone(), note }),
                };
            }
            places => return Err(ambiguous(places)),
        }
        let replaced = match replace_lines(self.text, &old, &new) {
            // The last lines of a text without a line break at its end.
            Err(PassageMismatch::NotFound) if !self.text.ends_with(['\n', '\r']) => {
                let bare = |text: &str| text.strip_suffix('\n').unwrap_or(text).to_owned();
                replace_lines(self.text, &bare(&old), &bare(&new))
            }
            replaced => replaced,
        };
        match replaced {
            Ok(edit) => {
                edit.note.map(|note| SectionPlace::Otherwise(edit.edits, note)).ok_or(SectionFault::NotFound)
            }
            Err(PassageMismatch::AmbiguousLines(places)) => Err(ambiguous(&places)),
            Err(PassageMismatch::Unclear { lines, note: Some(note) }) => {
                Err(SectionFault::Unclear { lines, note })
            }
            Err(
                PassageMismatch::NotFound
                | PassageMismatch::Ambiguous(_)
                | PassageMismatch::TwoReadings { .. }
                | PassageMismatch::Unclear { note: None, .. },
            ) => Err(SectionFault::NotFound),
        }
    }

    /// The edits of a section whose first line is at `at`: each run of removed and added lines is one.
    fn changes(&self, section: &PatchSection, mut at: usize) -> Vec<TextEdit> {
        let mut edits = Vec::new();
        let mut run: Option<(usize, Vec<&str>)> = None;
        for line in &section.lines {
            match line {
                PatchLine::Context(_) => {
                    edits.extend(run.take().map(|(begin, added)| self.edit(begin..at, &added)));
                    at += 1;
                }
                PatchLine::Removed(_) => {
                    run.get_or_insert((at, Vec::new()));
                    at += 1;
                }
                PatchLine::Added(text) => run.get_or_insert((at, Vec::new())).1.push(text),
            }
        }
        edits.extend(run.map(|(begin, added)| self.edit(begin..at, &added)));
        edits
    }

    /// The edit that puts lines in the place of others. Every line of a patch ends with a line break.
    fn edit(&self, lines: Range<usize>, added: &[&str]) -> TextEdit {
        let mut new_text: String = added.iter().flat_map(|line| [*line, self.line_break]).collect();
        let range = self.starts[lines.start]..self.starts[lines.end];
        let follows_unterminated = range.start == self.text.len()
            && !self.text.is_empty()
            && !self.text.ends_with(['\n', '\r'])
            && !new_text.is_empty();
        if follows_unterminated {
            new_text.insert_str(0, self.line_break);
        }
        TextEdit { range, new_text }
    }

    /// The edit of a section that only adds: at the end of the text.
    fn appended(&self, section: &PatchSection) -> TextEdit {
        let added = section.lines.iter().filter_map(|line| match line {
            PatchLine::Added(text) => Some(text.as_str()),
            PatchLine::Context(_) | PatchLine::Removed(_) => None,
        });
        self.edit(self.lines.len()..self.lines.len(), &added.collect::<Vec<_>>())
    }
}

fn ambiguous(places: &[Range<usize>]) -> SectionFault {
    SectionFault::Ambiguous(places.iter().take(MAX_PLACES).map(|place| place.start + 1).collect())
}

fn terminated<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.flat_map(|line| [line, "\n"]).collect()
}
