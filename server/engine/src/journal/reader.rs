//! Reads a journal back.
//!
//! Rule: what cannot be read is skipped and counted, never silently; one bad line costs that line alone.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use jiff::Timestamp;

use crate::event::ItemBody;
use crate::journal::pictures;
use crate::journal::record::{Line, Record};
use crate::session::title_from;

/// The longest line that is read, in bytes with its end; longer ones are skipped as damaged.
pub(super) const LINE_LIMIT: usize = 64 * 1024 * 1024;

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
    let mut reader = BufReader::new(File::open(path)?);
    let mut journal = ReadJournal::default();
    let (mut line, mut pictures) = (Vec::new(), HashMap::new());
    let mut after_damage = false;
    while read_line(&mut reader, &mut line)? {
        match parse_line(&line, path) {
            Ok(Some((mut stamp, mut record))) => {
                pictures::restore(&mut record, &mut pictures);
                stamp.after_damage = std::mem::take(&mut after_damage);
                journal.records.push(record);
                journal.stamps.push(stamp);
            }
            Ok(None) => {}
            Err(_) => {
                journal.skipped += 1;
                after_damage = true;
            }
        }
    }
    Ok(journal)
}

/// The record of a line; none of a blank one. That a line cannot be read is logged.
pub(super) fn parse_line(line: &[u8], path: &Path) -> serde_json::Result<Option<(Stamp, Record)>> {
    match serde_json::from_slice(line) {
        Ok(Line { record, seq, written, v: _ }) => {
            Ok(Some((Stamp { seq, written, after_damage: false }, record)))
        }
        Err(_) if line.iter().all(u8::is_ascii_whitespace) => Ok(None),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a line of the journal could not be read and was skipped");
            Err(error)
        }
    }
}

/// The title of the session in a journal: from its first prompt, empty when there is none among the first lines.
#[must_use]
pub fn title(path: &Path) -> String {
    let Ok(file) = File::open(path) else { return String::new() };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    for _ in 0..TITLE_LINES {
        match read_line(&mut reader, &mut line) {
            Ok(true) => {}
            Ok(false) | Err(_) => break,
        }
        if let Ok(Line { record: Record::Prompt { item, .. }, .. }) = serde_json::from_slice(&line)
            && let ItemBody::UserMessage { text, .. } = item.body
        {
            return title_from(&text);
        }
    }
    String::new()
}

/// Reads one line without its end into `line`; an overlong one is passed over and comes out as a lone `!`, which
/// no record parses from. False at the end of the file.
pub(super) fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut any = false;
    let mut too_long = false;
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
        if line.len() + taken > LINE_LIMIT {
            too_long = true;
            line.clear();
        } else if !too_long {
            line.extend_from_slice(&chunk[..taken]);
        }
        reader.consume(taken);
        if ended {
            break;
        }
    }
    if too_long {
        line.clear();
        line.push(b'!');
    }
    Ok(any)
}
