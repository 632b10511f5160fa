//! Reads a journal back.
//!
//! Rule: what cannot be read is skipped and counted, never silently; one bad line costs that line alone.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::event::ItemBody;
use crate::journal::pictures;
use crate::journal::record::{Line, Record};
use crate::session::title_from;

/// The longest line that is read, in bytes with its end; longer ones are skipped as damaged.
pub(super) const LINE_LIMIT: usize = 64 * 1024 * 1024;

/// So many bytes are read at once.
const BUFFER: usize = 256 * 1024;

/// So many lines are looked through for the first prompt.
const TITLE_LINES: usize = 64;

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
    let mut lines = Lines::open(path, 0)?;
    let mut journal = ReadJournal::default();
    for line in lines.by_ref() {
        let (stamp, record) = line?;
        journal.stamps.push(stamp);
        journal.records.push(record);
    }
    journal.skipped = lines.skipped();
    Ok(journal)
}

/// The lines of a journal one by one, oldest first. What was read is not kept.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    /// The bytes before the next line.
    at: u64,
    /// Where reading ends.
    end: u64,
    skipped: u64,
    /// Whether something was skipped since the newest record.
    after_damage: bool,
    line: Vec<u8>,
    /// Where the pictures of the lines before are: the first byte of the line that has each of them whole.
    pictures: HashMap<String, u64>,
}

impl Lines {
    /// The lines of a journal from a byte on, which is the first of a line, to the end it has now.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: &Path, at: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(at))?;
        let reader = BufReader::with_capacity(BUFFER, file);
        let (path, pictures) = (path.to_path_buf(), HashMap::new());
        Ok(Self { path, reader, at, end, skipped: 0, after_damage: false, line: Vec::new(), pictures })
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
}

impl Iterator for Lines {
    type Item = io::Result<(Stamp, Record)>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.end {
            let start = self.at;
            match read_line(&mut self.reader, &mut self.line) {
                Ok(0) => return None,
                Ok(taken) => self.at += taken,
                Err(error) => return Some(Err(error)),
            }
            match serde_json::from_slice::<Line>(&self.line) {
                Ok(Line { mut record, seq, written, v: _ }) => {
                    let again = |at| picture_line(&self.path, at);
                    pictures::restore(&mut record, start, &mut self.pictures, again);
                    let after_damage = std::mem::take(&mut self.after_damage);
                    return Some(Ok((Stamp { seq, written, after_damage }, record)));
                }
                Err(_) if self.line.iter().all(u8::is_ascii_whitespace) => {}
                Err(error) => {
                    self.skipped += 1;
                    self.after_damage = true;
                    tracing::warn!(path = %self.path.display(), %error, "a line of the journal could not be read and was skipped");
                }
            }
        }
        None
    }
}

/// The record of the line that begins at a byte.
fn picture_line(path: &Path, at: u64) -> Option<Record> {
    let read = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(at))?;
        let mut line = Vec::new();
        read_line(&mut BufReader::new(file), &mut line)?;
        Ok::<Line, io::Error>(serde_json::from_slice(&line)?)
    };
    read()
        .inspect_err(|error| tracing::warn!(%error, path = %path.display(), "a picture cannot be read again"))
        .map(|line| line.record)
        .ok()
}

/// The title of the session in a journal: from its first prompt, empty when there is none among the first lines.
#[must_use]
pub fn title(path: &Path) -> String {
    let Ok(file) = File::open(path) else { return String::new() };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    for _ in 0..TITLE_LINES {
        match read_line(&mut reader, &mut line) {
            Ok(1..) => {}
            Ok(0) | Err(_) => break,
        }
        if let Ok(Line { record: Record::Prompt { item, .. }, .. }) = serde_json::from_slice(&line)
            && let ItemBody::UserMessage { text, .. } = item.body
        {
            return title_from(&text);
        }
    }
    String::new()
}

/// Reads one line with its end into `line`; an overlong one is passed over and comes out as a lone `!`, which no record
/// parses from. Answers how many bytes were read: none at the end of the file.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let mut read = 0;
    let mut too_long = false;
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        let (taken, ended) = match chunk.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (chunk.len(), false),
        };
        if line.len() + taken > LINE_LIMIT {
            too_long = true;
            line.clear();
        } else if !too_long {
            line.extend_from_slice(&chunk[..taken]);
        }
        reader.consume(taken);
        read += taken as u64;
        if ended {
            break;
        }
    }
    if too_long {
        line.clear();
        line.push(b'!');
    }
    Ok(read)
}
