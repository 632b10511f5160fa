//! Reads a journal back.
//!
//! Rule: what cannot be read is skipped and counted, never silently; one bad line costs that line alone, and a
//! line that comes again counts once.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use jiff::Timestamp;

use crate::journal::disk::{Disk, DiskReader, RealDisk};
use crate::journal::pictures;
use crate::journal::record::{Line, Record, VERSION};

/// The longest line that is read, in bytes with its end; longer ones are skipped as damaged.
pub(crate) const LINE_LIMIT: usize = 64 * 1024 * 1024;

/// So many bytes are read at once.
const READ_STEP: usize = 64 << 10;

/// What a journal held.
#[derive(Debug, Default)]
pub struct ReadJournal {
    /// The records, oldest first.
    pub records: Vec<Record>,
    /// What the lines say beside their records, in the order of these.
    pub stamps: Vec<Stamp>,
    /// Lines that were no record this build can read.
    pub skipped: u64,
}

/// What a line says beside its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
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
pub fn read(path: &Path) -> io::Result<ReadJournal> {
    read_on(&RealDisk, path)
}

/// The same on another disk.
pub(crate) fn read_on(disk: &dyn Disk, path: &Path) -> io::Result<ReadJournal> {
    let mut reader = BufReader::with_capacity(READ_STEP, DiskReader::open(disk, path)?);
    let mut journal = ReadJournal::default();
    let (mut line, mut pictures, mut seen) = (Vec::new(), HashMap::new(), Seen::default());
    let mut after_damage = false;
    while let Some(end) = read_line(&mut reader, &mut line)? {
        if end == LineEnd::Missing {
            // It was being written when its writer ended, and nobody was told that it was.
            tracing::warn!(path = %path.display(), bytes = line.len(), "the journal ends in the middle of a line");
            break;
        }
        match parse(&line) {
            Ok(Parsed { line: parsed, is_whole }) => {
                journal.skipped += u64::from(!is_whole);
                after_damage |= !is_whole;
                if !seen.is_new(&parsed, &line) {
                    tracing::warn!(path = %path.display(), "a line stands in the journal twice and counts once");
                    continue;
                }
                let Line { mut record, seq, written, v: _ } = parsed;
                pictures::restore(&mut record, &mut pictures);
                journal.records.push(record);
                journal.stamps.push(Stamp { seq, written, after_damage });
                after_damage = false;
            }
            Err(_) if line.iter().all(u8::is_ascii_whitespace) => {}
            Err(error) => {
                journal.skipped += 1;
                after_damage = true;
                tracing::warn!(path = %path.display(), %error, "a line of the journal could not be read and was skipped");
            }
        }
    }
    Ok(journal)
}

/// The lines that were read, to tell those that come again: no writer writes the same line twice.
#[derive(Debug, Default)]
pub(super) struct Seen(HashSet<(Timestamp, u64)>);

impl Seen {
    /// Whether a line comes for the first time.
    pub(super) fn is_new(&mut self, line: &Line, bytes: &[u8]) -> bool {
        let mut hasher = DefaultHasher::new();
        trimmed(bytes).hash(&mut hasher);
        self.0.insert((line.written, hasher.finish()))
    }
}

/// A line that was read.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) line: Line,
    /// Whether nothing but the line stands there: a power cut can leave zeros where the lines before it were.
    pub(super) is_whole: bool,
}

/// Reads a line, given with its end or without.
///
/// # Errors
/// Why it is none of this build's.
pub(super) fn parse(bytes: &[u8]) -> serde_json::Result<Parsed> {
    let text = trimmed(bytes);
    let line: Line = serde_json::from_slice(text)?;
    if line.v != VERSION {
        let other = format!("it is of version {}, and this build reads version {VERSION}", line.v);
        return Err(serde::de::Error::custom(other));
    }
    Ok(Parsed { line, is_whole: !bytes.contains(&0) })
}

/// A line without its end, and without zeros around it.
fn trimmed(bytes: &[u8]) -> &[u8] {
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
/// parses from. `None` at the end of the file.
pub(super) fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<LineEnd>> {
    line.clear();
    let mut any = false;
    let mut is_too_long = false;
    let mut end = LineEnd::Missing;
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        any = true;
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
        if ended {
            end = LineEnd::There;
            break;
        }
    }
    if is_too_long {
        line.push(b'!');
    }
    Ok(any.then_some(end))
}
