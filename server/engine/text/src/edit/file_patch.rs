//! The patch format of `apply_patch`: several files added, changed, moved or deleted by one text.
//!
//! Rule: parsing is pure and strict. A line that means nothing is an error with its number, never skipped; padding
//! around markers and a shell's here-document around the whole are the only freedoms.

mod place;

pub use place::{PatchedText, SectionFault, SectionRefusal};

/// The most files of one patch.
const MAX_FILES: usize = 200;
/// The most sections of one file.
const MAX_SECTIONS: usize = 1_000;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// The change of a patch in one file. Paths are as the model wrote them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilePatch {
    /// The file gets this text; every line ends with a line feed.
    Add {
        /// The file.
        path: String,
        /// Its whole text.
        text: String,
    },
    /// The file is removed.
    Delete {
        /// The file.
        path: String,
    },
    /// Passages of the file are replaced.
    Update {
        /// The file.
        path: String,
        /// Its new path, if it is moved.
        moved_to: Option<String>,
        /// The passages, in the order of the file; none only if it is moved.
        sections: Vec<PatchSection>,
    },
}

/// One passage of a changed file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchSection {
    /// Lines of the file above the passage that say where it is, outermost first: the text after `@@`.
    pub headers: Vec<String>,
    /// The lines of the passage.
    pub lines: Vec<PatchLine>,
    /// Whether the passage ends the file.
    pub is_at_end: bool,
}

/// One line of a passage, without its line break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchLine {
    /// Is in the file and stays.
    Context(String),
    /// Is in the file and is taken out.
    Removed(String),
    /// Is put in.
    Added(String),
}

/// Why a text is not a patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchSyntaxError {
    /// The first line is another.
    #[error("the patch does not begin with `{BEGIN}`")]
    NoBegin,
    /// The end is missing: the text may have been cut.
    #[error("the patch does not end with `{END}`")]
    NoEnd,
    /// There is nothing in it.
    #[error("the patch changes no file")]
    Empty,
    /// A line that means nothing at its place.
    #[error("line {line} of the patch, `{text}`, is not {expected}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// The line, at most 80 characters of it.
        text: String,
        /// The expected lines.
        expected: &'static str,
    },
    /// A file without a path.
    #[error("line {line} of the patch names no file")]
    NoPath {
        /// Its number, from 1.
        line: usize,
    },
    /// A changed file without a change, or a passage without lines.
    #[error("`{path}` has a section without lines in the patch, at line {line}")]
    NoLines {
        /// The file.
        path: String,
        /// The number of the line where they are missing.
        line: usize,
    },
    /// More than one call may do.
    #[error("the patch has more than {MAX_FILES} files, or more than {MAX_SECTIONS} sections in one")]
    TooMuch,
}

const FILE_MARKER: &str =
    "`*** Add File: PATH`, `*** Delete File: PATH`, `*** Update File: PATH` or `*** End Patch`";
const SECTION_LINE: &str = "`@@`, `*** End of File`, or a line that begins with a space, `+` or `-`";

impl FilePatch {
    /// Reads a patch.
    ///
    /// # Errors
    /// [`PatchSyntaxError`] with the line that is wrong.
    pub fn parse(text: &str) -> Result<Vec<Self>, PatchSyntaxError> {
        let mut reader = PatchReader::within_markers(text)?;
        let mut files = Vec::new();
        while let Some((number, line)) = reader.next() {
            let marker = line.trim();
            if marker.is_empty() {
                continue;
            }
            files.push(reader.file(number, marker)?);
            if files.len() > MAX_FILES {
                return Err(PatchSyntaxError::TooMuch);
            }
        }
        if files.is_empty() { Err(PatchSyntaxError::Empty) } else { Ok(files) }
    }

    /// The path that the patch names first.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Add { path, .. } | Self::Delete { path } | Self::Update { path, .. } => path,
        }
    }
}

/// The lines between the markers, each with its number in the whole text, from 1.
struct PatchReader<'text> {
    lines: Vec<(usize, &'text str)>,
    at: usize,
}

impl<'text> PatchReader<'text> {
    fn within_markers(text: &'text str) -> Result<Self, PatchSyntaxError> {
        let lines: Vec<(usize, &str)> = (1..).zip(text.lines()).collect();
        let is_wrapping = |line: &str| {
            let line = line.trim();
            line.is_empty() || line == "EOF" || line.starts_with("<<") || line.starts_with("```")
        };
        let begin = lines.iter().position(|(_, line)| !is_wrapping(line));
        let begin = begin.filter(|at| lines[*at].1.trim() == BEGIN).ok_or(PatchSyntaxError::NoBegin)?;
        let end = lines.iter().rposition(|(_, line)| !is_wrapping(line));
        let end = end.filter(|at| *at > begin && lines[*at].1.trim() == END);
        let end = end.ok_or(PatchSyntaxError::NoEnd)?;
        Ok(Self { lines: lines[begin + 1..end].to_vec(), at: 0 })
    }

    fn next(&mut self) -> Option<(usize, &'text str)> {
        let next = self.peek()?;
        self.at += 1;
        Some(next)
    }

    fn peek(&self) -> Option<(usize, &'text str)> {
        self.lines.get(self.at).copied()
    }

    /// The next line, if it is this kind of line.
    fn next_if(&mut self, is_it: impl Fn(&str) -> bool) -> Option<(usize, &'text str)> {
        let next = self.peek().filter(|(_, line)| is_it(line))?;
        self.at += 1;
        Some(next)
    }

    fn file(&mut self, number: usize, marker: &str) -> Result<FilePatch, PatchSyntaxError> {
        if let Some(path) = marker.strip_prefix(ADD) {
            return Ok(FilePatch::Add { path: named(path, number)?, text: self.added() });
        }
        if let Some(path) = marker.strip_prefix(DELETE) {
            return Ok(FilePatch::Delete { path: named(path, number)? });
        }
        let Some(path) = marker.strip_prefix(UPDATE) else {
            return Err(unexpected(number, marker, FILE_MARKER));
        };
        let path = named(path, number)?;
        let moved = self.next_if(|line| line.trim().starts_with(MOVE));
        let moved_to = match moved {
            Some((number, line)) => Some(named(&line.trim()[MOVE.len()..], number)?),
            None => None,
        };
        let mut sections = Vec::new();
        while self.peek().is_some_and(|(_, line)| !is_file_marker(line)) {
            // A blank line before the next file belongs to neither.
            let rest = &self.lines[self.at..];
            let blank = rest.iter().take_while(|(_, line)| line.is_empty()).count();
            if rest.get(blank).is_none_or(|(_, line)| is_file_marker(line)) {
                break;
            }
            sections.push(self.section(&path)?);
            if sections.len() > MAX_SECTIONS {
                return Err(PatchSyntaxError::TooMuch);
            }
        }
        if sections.is_empty() && moved_to.is_none() {
            return Err(PatchSyntaxError::NoLines { path, line: number });
        }
        Ok(FilePatch::Update { path, moved_to, sections })
    }

    fn added(&mut self) -> String {
        let mut text = String::new();
        while let Some((_, line)) = self.next_if(|line| line.starts_with('+')) {
            text.push_str(&line[1..]);
            text.push('\n');
        }
        text
    }

    fn section(&mut self, path: &str) -> Result<PatchSection, PatchSyntaxError> {
        let begin = self.peek().map_or(0, |(number, _)| number);
        let mut section = PatchSection::default();
        while let Some((number, line)) = self.next_if(|line| line.trim_end().starts_with("@@")) {
            match line.trim_end().strip_prefix("@@ ") {
                Some(header) => section.headers.push(unified_header(header).to_owned()),
                None if line.trim_end() == "@@" => {}
                None => return Err(unexpected(number, line, "`@@` or `@@ LINE OF THE FILE`")),
            }
        }
        section.headers.retain(|header| !header.is_empty());
        while let Some((number, line)) = self.next_if(|line| !line.starts_with("@@") && !is_file_marker(line))
        {
            if line.trim_end() == END_OF_FILE {
                section.is_at_end = true;
                break;
            }
            let text = |line: &str| line[1..].to_owned();
            section.lines.push(match line.as_bytes().first() {
                None => PatchLine::Context(String::new()),
                Some(b' ') => PatchLine::Context(text(line)),
                Some(b'+') => PatchLine::Added(text(line)),
                Some(b'-') => PatchLine::Removed(text(line)),
                Some(_) => return Err(unexpected(number, line, SECTION_LINE)),
            });
        }
        // A blank line before the next file belongs to neither.
        if self.peek().is_none_or(|(_, line)| is_file_marker(line)) && !section.is_at_end {
            let read = self.lines[..self.at].iter().rev().take(section.lines.len());
            let blank = read.take_while(|(_, line)| line.is_empty()).count();
            section.lines.truncate(section.lines.len() - blank);
        }
        let changes = section.lines.iter().any(|line| !matches!(line, PatchLine::Context(_)));
        if !changes {
            return Err(PatchSyntaxError::NoLines { path: path.to_owned(), line: begin });
        }
        Ok(section)
    }
}

/// The text after `@@`; the line numbers that unified diffs have there are left out, as the format has none.
fn unified_header(header: &str) -> &str {
    let is_range = |part: &str| {
        let digits = part.strip_prefix(['-', '+']).unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
    };
    match header.split_once("@@") {
        Some((range, rest)) if range.split_whitespace().all(is_range) => rest.trim(),
        _ => header.trim(),
    }
}

fn is_file_marker(line: &str) -> bool {
    [ADD, DELETE, UPDATE].iter().any(|marker| line.starts_with(marker))
}

fn named(path: &str, line: usize) -> Result<String, PatchSyntaxError> {
    let path = path.trim();
    if path.is_empty() { Err(PatchSyntaxError::NoPath { line }) } else { Ok(path.to_owned()) }
}

fn unexpected(line: usize, text: &str, expected: &'static str) -> PatchSyntaxError {
    const MAX_CHARS: usize = 80;
    PatchSyntaxError::Line { line, text: text.chars().take(MAX_CHARS).collect(), expected }
}

#[cfg(test)]
mod tests;
