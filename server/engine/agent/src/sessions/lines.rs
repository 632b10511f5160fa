//! The lines of a journal from a place on, one at a time.
//!
//! Rule: no line takes more memory than the longest that is ever written; a longer one is passed over. A stump at the end is
//! no line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};

use kode_journal::reader::LINE_LIMIT;

/// How much is read at once.
const STEP: usize = 64 * 1024;

/// Reads lines.
#[derive(Debug)]
pub(super) struct LineReader {
    reader: BufReader<File>,
    line: Vec<u8>,
    /// Where the next line begins.
    next: u64,
}

impl LineReader {
    /// The lines from `start` on, which is the beginning of one.
    pub(super) fn from(mut file: File, start: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(start))?;
        Ok(Self { reader: BufReader::with_capacity(STEP, file), line: Vec::new(), next: start })
    }

    /// The beginning of the next line.
    pub(super) fn place(&self) -> u64 {
        self.next
    }

    /// The next whole line without its end, empty where it was too long; `None` when there is no more.
    pub(super) fn read(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        let (mut length, mut is_too_long) = (0_u64, false);
        loop {
            let chunk = self.reader.fill_buf()?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(chunk.len());
            if self.line.len() + taken > LINE_LIMIT {
                is_too_long = true;
                self.line.clear();
            } else if !is_too_long {
                self.line.extend_from_slice(&chunk[..taken]);
            }
            let consumed = taken + usize::from(end.is_some());
            self.reader.consume(consumed);
            length += consumed as u64;
            if end.is_some() {
                self.next += length;
                return Ok(Some(&self.line));
            }
        }
    }
}
