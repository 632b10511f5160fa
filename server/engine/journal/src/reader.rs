//! Reads a journal back.
//!
//! Rule: what cannot be read is skipped and counted, never silently; one bad line costs that line alone, and a
//! line that comes again counts once.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use crate::disk::{Disk, DiskFile, DiskReader, OpenMode, RealDisk};
use crate::{JournalEntry, JournalLine, VERSION, payloads};

/// The longest line that is read, in bytes with its end; longer ones are skipped as damaged.
pub const LINE_LIMIT: usize = 64 * 1024 * 1024;

/// Number of bytes that are read at once.
const READ_STEP: usize = 64 << 10;

/// Number of lines that are recognized: a writer writes again what no sync has covered, and that is never more.
const MAX_SEEN: usize = 20_000;

/// The content of a journal.
#[derive(Debug)]
pub struct ReadJournal<E> {
    /// The records, oldest first.
    pub records: Vec<E>,
    /// The fields of the lines beside their records, in the order of these.
    pub stamps: Vec<LineStamp>,
    /// Lines that were no record this build can read.
    pub skipped: u64,
}

/// The fields of a line beside its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineStamp {
    /// The number of the newest event before those that the record tells.
    pub seq: u64,
    /// When the record was written.
    pub written: Timestamp,
    /// Whether something before it could not be read.
    pub after_damage: bool,
}

/// Reads all records of a journal.
///
/// # Errors
/// Only when the file itself cannot be read; damaged lines are counted in [`ReadJournal::skipped`].
pub fn read<E: JournalEntry>(path: &Path) -> io::Result<ReadJournal<E>> {
    read_on(&RealDisk, path)
}

/// The same on another disk.
pub(crate) fn read_on<E: JournalEntry>(disk: &dyn Disk, path: &Path) -> io::Result<ReadJournal<E>> {
    let mut lines = JournalLines::open_on(disk, path, 0)?;
    let mut journal = ReadJournal { records: Vec::new(), stamps: Vec::new(), skipped: 0 };
    for line in lines.by_ref() {
        let (stamp, record) = line?;
        journal.stamps.push(stamp);
        journal.records.push(record);
    }
    journal.skipped = lines.skipped();
    Ok(journal)
}

/// The lines of a journal one by one, oldest first. Read lines are not kept.
#[derive(Debug)]
pub struct JournalLines<E> {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    reader: BufReader<DiskReader>,
    /// The bytes before the next line.
    at: u64,
    /// Where reading ends.
    end: u64,
    skipped: u64,
    /// Whether something was skipped since the newest record.
    after_damage: bool,
    line: Vec<u8>,
    seen: RecentLines,
    /// Where the payloads of the lines before are: the first byte of the line that has each of them whole.
    payloads: HashMap<String, u64>,
    entries: PhantomData<E>,
}

impl<E: JournalEntry> JournalLines<E> {
    /// The lines of a journal from a byte on, which is the first of a line, to the end it has now.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open(path: &Path, at: u64) -> io::Result<Self> {
        Self::open_on(&RealDisk, path, at)
    }

    /// The same on another disk.
    pub fn open_on(disk: &dyn Disk, path: &Path, at: u64) -> io::Result<Self> {
        let file = disk.open(path, OpenMode::Read)?;
        let end = file.size()?;
        let reader = BufReader::with_capacity(READ_STEP, DiskReader::on(Arc::clone(&file), at));
        Ok(Self {
            path: path.to_path_buf(),
            file,
            reader,
            at,
            end,
            skipped: 0,
            after_damage: false,
            line: Vec::new(),
            seen: RecentLines::default(),
            payloads: HashMap::new(),
            entries: PhantomData,
        })
    }

    /// Reads to this byte and not further: the one behind the end of a line. It may be beyond where reading has ended.
    pub fn read_to(&mut self, end: u64) {
        self.end = end;
    }

    /// How many bytes come before the next line.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Where reading ends.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Lines so far that were no record this build can read.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The content of the last line, which begins at `start`; `None` when it is to be passed over.
    fn parsed(&mut self, start: u64) -> Option<(LineStamp, E)> {
        match parse(&self.line) {
            Ok(ParsedLine { line, is_whole }) => {
                self.skipped += u64::from(!is_whole);
                self.after_damage |= !is_whole;
                if !self.seen.is_new(line.written, &self.line) {
                    tracing::warn!(path = %self.path.display(), "a line is in the journal twice; the second one is ignored");
                    return None;
                }
                let JournalLine { mut record, seq, written, v: _ } = line;
                let file = &self.file;
                payloads::restore(&mut record, start, &mut self.payloads, |at| record_at(file, at));
                let after_damage = std::mem::take(&mut self.after_damage);
                Some((LineStamp { seq, written, after_damage }, record))
            }
            Err(_) if self.line.iter().all(u8::is_ascii_whitespace) => None,
            Err(error) => {
                self.skipped += 1;
                self.after_damage = true;
                tracing::warn!(path = %self.path.display(), %error, "a line of the journal could not be read and was skipped");
                None
            }
        }
    }
}

impl<E: JournalEntry> Iterator for JournalLines<E> {
    type Item = io::Result<(LineStamp, E)>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.end {
            let start = self.at;
            match read_line(&mut self.reader, &mut self.line) {
                Ok(None) => return None,
                Ok(Some((LineEnd::Missing, taken))) => {
                    self.at += taken;
                    // A line without its end was being written when its writer ended: no client saw its record. Zeros
                    // are what a power cut leaves of lines that were whole.
                    if self.line.contains(&0) {
                        self.skipped += 1;
                        self.after_damage = true;
                    }
                    let bytes = self.line.len();
                    tracing::warn!(path = %self.path.display(), bytes, "the journal ends in the middle of a line");
                    return None;
                }
                Ok(Some((LineEnd::There, taken))) => self.at += taken,
                Err(error) => return Some(Err(error)),
            }
            if let Some(parsed) = self.parsed(start) {
                return Some(Ok(parsed));
            }
        }
        None
    }
}

/// The record of the line that begins at a byte.
fn record_at<E: JournalEntry>(file: &Arc<dyn DiskFile>, at: u64) -> Option<E> {
    let mut line = Vec::new();
    let read = read_line(&mut BufReader::new(DiskReader::on(Arc::clone(file), at)), &mut line);
    let parsed = read.and_then(|_| parse(&line).map_err(io::Error::from));
    parsed
        .inspect_err(|error| tracing::warn!(%error, at, "a payload cannot be read again"))
        .map(|parsed| parsed.line.record)
        .ok()
}

/// The newest lines that were read, to tell those that come again: no writer writes the same line twice.
#[derive(Debug, Default)]
pub(super) struct RecentLines {
    lines: HashSet<(Timestamp, u64)>,
    order: VecDeque<(Timestamp, u64)>,
}

impl RecentLines {
    /// Whether a line comes for the first time, or so late that it is not known any more.
    pub(super) fn is_new(&mut self, written: Timestamp, bytes: &[u8]) -> bool {
        let mut hasher = DefaultHasher::new();
        trimmed(bytes).hash(&mut hasher);
        let id = (written, hasher.finish());
        if !self.lines.insert(id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > MAX_SEEN
            && let Some(oldest) = self.order.pop_front()
        {
            self.lines.remove(&oldest);
        }
        true
    }
}

/// A line that was read.
#[derive(Debug)]
pub(super) struct ParsedLine<E> {
    pub(super) line: JournalLine<E>,
    /// Whether nothing but the line is there: a power cut can leave zeros where the lines before it were.
    pub(super) is_whole: bool,
}

/// Reads a line, given with its end or without.
///
/// # Errors
/// Why it is not one of this build.
pub(super) fn parse<E: JournalEntry>(bytes: &[u8]) -> serde_json::Result<ParsedLine<E>> {
    let text = trimmed(bytes);
    let line: JournalLine<E> = serde_json::from_slice(text)?;
    if line.v != VERSION {
        let other = format!("it is of version {}, and this build reads version {VERSION}", line.v);
        return Err(serde::de::Error::custom(other));
    }
    Ok(ParsedLine { line, is_whole: !bytes.contains(&0) })
}

/// A line without its end, and without zeros around it.
pub fn trimmed(bytes: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| *byte != 0 && !byte.is_ascii_whitespace();
    let start = bytes.iter().position(is_text).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(is_text).map_or(start, |last| last + 1);
    &bytes[start..end]
}

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEnd {
    There,
    /// The file ends first.
    Missing,
}

/// Reads one line into `line`; of an overlong one nothing is remembered and it comes out as a lone `!`, which no record
/// parses from. Answers how it ends and how many bytes were read; `None` at the end of the file.
pub(super) fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<(LineEnd, u64)>> {
    line.clear();
    let mut read = 0;
    let mut is_too_long = false;
    let mut end = LineEnd::Missing;
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        let (taken, ended) = match chunk.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (chunk.len(), false),
        };
        if is_too_long || line.len() + taken > LINE_LIMIT {
            is_too_long = true;
            // Its room is given back at once.
            *line = Vec::new();
        } else {
            line.extend_from_slice(&chunk[..taken]);
        }
        reader.consume(taken);
        read += taken as u64;
        if ended {
            end = LineEnd::There;
            break;
        }
    }
    if is_too_long {
        line.push(b'!');
    }
    Ok((read > 0).then_some((end, read)))
}
