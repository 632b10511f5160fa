//! Searching one text: counting what matches in it, and writing the matching lines out a page at a time.
//!
//! Rule: no text is held as a whole unless matches may span lines, and then only up to [`HEAP_LIMIT`]; binary
//! files count as not matching.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Read};
use std::path::Path;

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch,
};
use ropey::Rope;

use crate::walk::{SearchAnchor, SearchWatch};

/// The longest line, or where matches may span lines the longest text, that is searched, in bytes.
const HEAP_LIMIT: usize = 64 * 1024 * 1024;
/// How many characters of a line are shown.
const MAX_LINE: usize = 500;
/// How many characters before the match are shown of a line that is too long.
const LEAD: usize = 100;

/// The search text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SearchOptions {
    pub(super) ignore_case: bool,
    pub(super) multiline: bool,
    pub(super) before: usize,
    pub(super) after: usize,
    pub(super) line_numbers: bool,
}

/// Compiles a pattern.
pub(super) fn matcher(pattern: &str, options: SearchOptions) -> Result<RegexMatcher, grep_regex::Error> {
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(options.ignore_case).multi_line(true).crlf(true);
    if options.multiline {
        builder.dot_matches_new_line(true).line_terminator(None);
    }
    builder.build(pattern)
}

/// A text to search.
#[derive(Clone, Copy, Debug)]
pub(super) enum SearchText<'a> {
    /// A file on disk, found from this place.
    File(&'a SearchAnchor, &'a Path),
    /// An open document.
    Document(&'a Rope),
}

/// How much of a text matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// How many matches there are: matching lines, or stretches of lines where matches may span them.
    pub(super) matches: usize,
    /// How many lines are shown for them, context included.
    pub(super) lines: usize,
}

/// How far a text is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchExtent {
    /// To the first match.
    First,
    /// To the end.
    All,
}

/// Searches texts one after the other, on one thread.
pub(super) struct Scanner<'a> {
    matcher: RegexMatcher,
    searcher: Searcher,
    watch: &'a SearchWatch,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(matcher: &RegexMatcher, options: SearchOptions, watch: &'a SearchWatch) -> Self {
        let searcher = SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .multi_line(options.multiline)
            .before_context(options.before)
            .after_context(options.after)
            .line_number(options.line_numbers)
            .heap_limit(Some(HEAP_LIMIT))
            .build();
        Self { matcher: matcher.clone(), searcher, watch }
    }

    /// Counts what matches; nothing in a binary file does.
    pub(super) fn count(&mut self, text: SearchText<'_>, extent: SearchExtent) -> io::Result<Tally> {
        let mut counter = MatchCounter { extent, tally: Tally::default() };
        self.search(text, &mut counter)?;
        Ok(counter.tally)
    }

    /// Writes the matching lines to the page, until it is full.
    pub(super) fn write(&mut self, text: SearchText<'_>, name: &str, page: &mut LinePage) -> io::Result<()> {
        let matcher = self.matcher.clone();
        self.search(text, &mut PageWriter { matcher: &matcher, name, page })
    }

    fn search(&mut self, text: SearchText<'_>, sink: impl Sink<Error = io::Error>) -> io::Result<()> {
        let binary = match text {
            SearchText::File(..) => BinaryDetection::quit(0),
            SearchText::Document(_) => BinaryDetection::none(),
        };
        self.searcher.set_binary_detection(binary);
        let reader: Box<dyn Read> = match text {
            SearchText::File(anchor, path) => Box::new(anchor.open(path)?),
            SearchText::Document(rope) => Box::new(RopeReader { chunks: rope.chunks(), current: &[] }),
        };
        self.searcher.search_reader(&self.matcher, WatchedReader { reader, watch: self.watch }, sink)
    }
}

/// Ends a long read when no caller waits for it any more.
struct WatchedReader<'a, R> {
    reader: R,
    watch: &'a SearchWatch,
}

impl<R: Read> Read for WatchedReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.watch.is_stopped() {
            return Err(io::Error::other("the search was stopped"));
        }
        self.reader.read(buffer)
    }
}

struct RopeReader<'a> {
    chunks: ropey::iter::Chunks<'a>,
    current: &'a [u8],
}

impl Read for RopeReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.chunks.next() {
                Some(chunk) => self.current = chunk.as_bytes(),
                None => return Ok(0),
            }
        }
        self.current.read(buffer)
    }
}

struct MatchCounter {
    extent: SearchExtent,
    tally: Tally,
}

impl Sink for MatchCounter {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.tally.matches += 1;
        self.tally.lines += if searcher.multi_line() { found.lines().count() } else { 1 };
        Ok(self.extent == SearchExtent::All)
    }

    fn context(&mut self, _: &Searcher, _: &SinkContext<'_>) -> io::Result<bool> {
        self.tally.lines += 1;
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        if finish.binary_byte_offset().is_some() {
            self.tally = Tally::default();
        }
        Ok(())
    }
}

/// Some of all lines there are: those after an offset, up to a number of lines and of characters.
#[derive(Debug)]
pub(super) struct LinePage {
    /// The written text.
    pub(super) text: String,
    /// How many lines that is.
    pub(super) shown: usize,
    skip: usize,
    limit: usize,
    max_chars: usize,
    chars: usize,
    full: bool,
}

impl LinePage {
    /// An empty page that begins after `skip` lines and takes `limit` lines of `max_chars` characters together.
    pub(super) fn new(skip: usize, limit: usize, max_chars: usize) -> Self {
        Self { text: String::new(), shown: 0, skip, limit, max_chars, chars: 0, full: limit == 0 }
    }

    /// Whether nothing more fits.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Leaves a number of lines out if all of them come before the page.
    pub(super) fn skips(&mut self, lines: usize) -> bool {
        let skips = lines <= self.skip;
        if skips {
            self.skip -= lines;
        }
        skips
    }

    /// Adds a line that is not counted, to show that lines were left out.
    pub(super) fn separate(&mut self) {
        if self.shown > 0 && !self.full {
            self.text.push_str("--\n");
            self.chars += 3;
        }
    }

    /// Adds a line and says whether another may fit.
    pub(super) fn add(&mut self, line: &str) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return true;
        }
        let chars = line.chars().count() + 1;
        // A first line always fits, so that continuing after the page always gets somewhere.
        if self.shown == self.limit || (self.shown > 0 && self.chars + chars > self.max_chars) {
            self.full = true;
            return false;
        }
        self.chars += chars;
        self.shown += 1;
        self.text.push_str(line);
        self.text.push('\n');
        true
    }
}

struct PageWriter<'a> {
    matcher: &'a RegexMatcher,
    name: &'a str,
    page: &'a mut LinePage,
}

impl PageWriter<'_> {
    fn add(&mut self, number: Option<u64>, mark: char, line: &[u8], focus: usize) -> bool {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = excerpt(line, focus);
        let name = self.name;
        match number {
            Some(number) => self.page.add(&format!("{name}{mark}{number}{mark}{text}")),
            None => self.page.add(&format!("{name}{mark}{text}")),
        }
    }
}

impl Sink for PageWriter<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        for (index, line) in (0u64..).zip(found.lines()) {
            let focus = match self.matcher.find(line) {
                Ok(Some(place)) if line.len() > MAX_LINE => place.start(),
                _ => 0,
            };
            if !self.add(found.line_number().map(|first| first + index), ':', line, focus) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        debug_assert_ne!(*context.kind(), SinkContextKind::Other);
        Ok(self.add(context.line_number(), '-', context.bytes(), 0))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.page.separate();
        Ok(true)
    }
}

/// A line, or of one that is too long the part around the byte `focus`, with the numbers of characters left out.
fn excerpt(line: &[u8], focus: usize) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(line);
    let total = text.chars().count();
    if total <= MAX_LINE {
        return text;
    }
    let before_focus = String::from_utf8_lossy(&line[..focus]).chars().count();
    let start = before_focus.saturating_sub(LEAD).min(total - MAX_LINE);
    let mut excerpt = String::new();
    if start > 0 {
        let _ = write!(excerpt, "[{start} characters] ");
    }
    excerpt.extend(text.chars().skip(start).take(MAX_LINE));
    let rest = total - start - MAX_LINE;
    if rest > 0 {
        let _ = write!(excerpt, " [{rest} characters]");
    }
    Cow::Owned(excerpt)
}
