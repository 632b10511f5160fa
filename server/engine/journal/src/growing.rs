//! Reads on in a journal that another process writes.
//!
//! Rule: only whole lines are taken, each once; half a line waits for its end.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::reader::{LineEnd, ParsedLine, RecentLines, parse, read_line};
use crate::{JournalEntry, JournalLine, LineStamp, payloads};

/// A place in a journal that grows.
#[derive(Debug)]
pub struct JournalTail {
    path: PathBuf,
    /// Bytes that were read: whole lines.
    read: u64,
    /// Where the lines begin that have payloads whole.
    payloads: HashMap<String, u64>,
    seen: RecentLines,
    after_damage: bool,
}

/// How a journal has grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// By the lines that were handed over, maybe by none.
    Further,
    /// It is shorter than its read part: it is another one.
    Replaced,
}

impl JournalTail {
    /// The beginning of a journal.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            read: 0,
            payloads: HashMap::new(),
            seen: RecentLines::default(),
            after_damage: false,
        }
    }

    /// Reads what has come since and hands it over line by line.
    ///
    /// # Errors
    /// The error of the system. The part handed over until then counts as read; the rest comes with the next call.
    pub fn read<E: JournalEntry>(&mut self, each: impl FnMut(LineStamp, E)) -> io::Result<Growth> {
        let mut file = File::open(&self.path)?;
        let end = whole_length(&mut file)?;
        if end < self.read {
            return Ok(Growth::Replaced);
        }
        file.seek(SeekFrom::Start(self.read))?;
        self.take_lines(&mut BufReader::new(file.take(end - self.read)), each)?;
        Ok(Growth::Further)
    }

    fn take_lines<E: JournalEntry>(
        &mut self,
        reader: &mut impl BufRead,
        mut each: impl FnMut(LineStamp, E),
    ) -> io::Result<()> {
        let mut line = Vec::new();
        while let Some((LineEnd::There, length)) = read_line(reader, &mut line)? {
            let start = self.read;
            // Line by line: when reading fails, those before are known and would be passed over the next time.
            self.read += length;
            match parse(&line) {
                Ok(ParsedLine { line: parsed, is_whole }) => {
                    self.after_damage |= !is_whole;
                    if !self.seen.is_new(parsed.written, &line) {
                        continue;
                    }
                    let JournalLine { mut record, seq, written, v: _ } = parsed;
                    let path = &self.path;
                    payloads::restore(&mut record, start, &mut self.payloads, |at| record_at(path, at));
                    let after_damage = std::mem::take(&mut self.after_damage);
                    each(LineStamp { seq, written, after_damage }, record);
                }
                Err(_) if line.iter().all(u8::is_ascii_whitespace) => {}
                Err(error) => {
                    self.after_damage = true;
                    tracing::warn!(path = %self.path.display(), %error, "a line of the journal could not be read");
                }
            }
        }
        Ok(())
    }
}

/// The record whose line begins at a place, read again.
fn record_at<E: JournalEntry>(path: &Path, at: u64) -> Option<E> {
    let read = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(at))?;
        let mut line = Vec::new();
        read_line(&mut BufReader::new(file), &mut line)?;
        parse(&line).map_err(io::Error::from)
    };
    read()
        .inspect_err(
            |error| tracing::warn!(path = %path.display(), %error, at, "a payload cannot be read again"),
        )
        .map(|parsed| parsed.line.record)
        .ok()
}

/// Length of the file up to and with its last line end.
fn whole_length(file: &mut File) -> io::Result<u64> {
    const STEP: u64 = 64 * 1024;
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut buffer = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(STEP);
        file.seek(SeekFrom::Start(start))?;
        buffer.clear();
        Read::by_ref(file).take(end - start).read_to_end(&mut buffer)?;
        if let Some(last) = buffer.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::Journal;
    use crate::testing::{Note, note as remark};

    #[test]
    fn whole_lines_are_taken_once_and_half_a_line_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let journal = Journal::open(&path).unwrap();
        journal.append(&remark("one")).unwrap();
        let mut tail = JournalTail::new(&path);
        let mut grown = || {
            let mut records = Vec::new();
            assert_eq!(tail.read(|_, record| records.push(record)).unwrap(), Growth::Further);
            records
        };
        assert_eq!((grown(), grown()), (vec![remark("one")], vec![]));
        // Another line than the first: one that comes twice counts once.
        let whole = std::fs::read_to_string(&path).unwrap().replace("\"one\"", "\"two\"").into_bytes();
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(&whole[..20]).unwrap();
        assert_eq!(grown(), []);
        file.write_all(&whole[20..]).unwrap();
        assert_eq!(grown(), [remark("two")]);
        file.set_len(3).unwrap();
        assert_eq!(tail.read(|_, _: Note| {}).unwrap(), Growth::Replaced);
    }

    /// A disk that fails.
    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("broken"))
        }
    }

    #[test]
    fn what_comes_before_a_failure_is_taken_and_the_rest_the_next_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let journal = Journal::open(&path).unwrap();
        for text in ["one", "two", "three"] {
            journal.append(&remark(text)).unwrap();
        }
        let bytes = std::fs::read(&path).unwrap();
        let (mut tail, mut records) = (JournalTail::new(&path), Vec::new());
        // The failure comes in the middle of the third line.
        let mut reader = BufReader::new(bytes[..bytes.len() - 5].chain(Broken));
        tail.take_lines(&mut reader, |_, record: Note| records.push(record)).unwrap_err();
        assert_eq!(records, [remark("one"), remark("two")]);
        tail.read(|_, record| records.push(record)).unwrap();
        assert_eq!(records, [remark("one"), remark("two"), remark("three")]);
    }
}
