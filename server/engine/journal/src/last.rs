//! Reads a journal from its end.
//!
//! Rule: a read costs its own length, not that of the preceding part. As from the beginning, damaged lines are
//! skipped and counted, and a stump that a crash has left is no line.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::marker::PhantomData;
use std::path::Path;

use crate::reader::parse;
use crate::{JournalEntry, JournalLine, LINE_LIMIT};

/// Number of bytes that are read first; each time a line does not fit, twice as many.
const STEP: u64 = 64 * 1024;

/// The lines of a journal, newest first. A payload that an earlier line has whole is in them by its hash.
#[derive(Debug)]
pub struct LastLines<E> {
    file: File,
    /// The bytes of the file before those in `rest`.
    before: u64,
    /// Bytes that are read and not returned yet; it ends with the end of a line.
    rest: Vec<u8>,
    skipped: u64,
    is_over: bool,
    entries: PhantomData<E>,
}

/// The newest `count` lines of a journal, oldest first, and how many damaged ones were skipped among them.
///
/// # Errors
/// When the file cannot be read.
pub fn read_last<E: JournalEntry>(path: &Path, count: usize) -> io::Result<(Vec<JournalLine<E>>, u64)> {
    let mut lines = LastLines::open(path)?;
    let mut newest = lines.by_ref().take(count).collect::<io::Result<Vec<_>>>()?;
    newest.reverse();
    Ok((newest, lines.skipped()))
}

impl<E: JournalEntry> LastLines<E> {
    /// The lines of a journal as it is now, newest first.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let before = file.seek(SeekFrom::End(0))?;
        let mut lines =
            Self { file, before, rest: Vec::new(), skipped: 0, is_over: false, entries: PhantomData };
        lines.drop_stump()?;
        Ok(lines)
    }

    /// Lines so far that were no record this build can read.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Drops the bytes behind the last end of a line.
    fn drop_stump(&mut self) -> io::Result<()> {
        loop {
            if let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') {
                self.rest.truncate(end + 1);
                return Ok(());
            }
            self.rest.clear();
            if !self.read_more()? {
                return Ok(());
            }
        }
    }

    /// Reads what precedes. False when there is nothing.
    fn read_more(&mut self) -> io::Result<bool> {
        let step = STEP.max(self.rest.len() as u64).min(self.before);
        if step == 0 {
            return Ok(false);
        }
        self.before -= step;
        self.file.seek(SeekFrom::Start(self.before))?;
        let mut bytes = Vec::with_capacity(self.rest.len() + usize::try_from(step).unwrap_or_default());
        Read::by_ref(&mut self.file).take(step).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != step {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the journal became shorter"));
        }
        bytes.append(&mut self.rest);
        self.rest = bytes;
        Ok(true)
    }

    /// The newest line that was not given yet, with its end.
    fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        // The end of the line before is searched only in the new bytes.
        let mut searched = 0;
        loop {
            let before_end = self.rest.len().saturating_sub(1).saturating_sub(searched);
            if let Some(end) = self.rest[..before_end].iter().rposition(|byte| *byte == b'\n') {
                return Ok(Some(self.rest.split_off(end + 1)));
            }
            searched = self.rest.len().saturating_sub(1);
            if self.rest.len() > LINE_LIMIT {
                return self.pass_over().map(Some);
            }
            if !self.read_more()? {
                let first = std::mem::take(&mut self.rest);
                return Ok((!first.is_empty()).then_some(first));
            }
        }
    }

    /// Passes over a line that is too long; it comes out as one that no record parses from.
    fn pass_over(&mut self) -> io::Result<Vec<u8>> {
        self.rest.clear();
        self.drop_stump()?;
        Ok(b"!".to_vec())
    }
}

impl<E: JournalEntry> Iterator for LastLines<E> {
    type Item = io::Result<JournalLine<E>>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_over {
            match self.line() {
                Ok(Some(line)) => match parse(&line) {
                    Ok(parsed) => return Some(Ok(parsed.line)),
                    Err(_) if line.iter().all(u8::is_ascii_whitespace) => {}
                    Err(_) => self.skipped += 1,
                },
                Ok(None) => self.is_over = true,
                Err(error) => {
                    self.is_over = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{Note, note as remark};
    use crate::{Journal, read};

    fn texts(lines: Vec<JournalLine<Note>>) -> Vec<Note> {
        lines.into_iter().map(|line| line.record).collect()
    }

    #[test]
    fn the_newest_come_in_their_order_however_long_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let journal = Journal::open(&path).unwrap();
        let long = "a".repeat(3 * usize::try_from(STEP).unwrap());
        for text in ["one", &long, "two", "three"] {
            journal.append(&remark(text)).unwrap();
        }
        let last = |count| texts(read_last(&path, count).unwrap().0);
        assert_eq!(last(0), []);
        assert_eq!(last(1), [remark("three")]);
        assert_eq!(last(3), [remark(&long), remark("two"), remark("three")]);
        assert_eq!(last(9), [remark("one"), remark(&long), remark("two"), remark("three")]);
    }

    proptest! {
        #[test]
        fn a_journal_says_the_same_from_both_ends(
            lines in proptest::collection::vec(prop_oneof![3 => ".{0,40}".prop_map(Some), 1 => Just(None)], 0..20),
            stump in ".{0,10}",
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("journal.jsonl");
            let journal = Journal::open(&path).unwrap();
            for line in &lines {
                match line {
                    Some(text) => journal.append(&remark(text)).unwrap(),
                    None => {
                        journal.release();
                        let mut bytes = std::fs::read(&path).unwrap();
                        bytes.extend_from_slice(b"{\"v\":1,\"no\":\"record\"}\n");
                        std::fs::write(&path, bytes).unwrap();
                        break;
                    }
                }
            }
            let mut bytes = std::fs::read(&path).unwrap();
            bytes.extend_from_slice(stump.replace('\n', "").as_bytes());
            std::fs::write(&path, bytes).unwrap();
            let (last, skipped) = read_last(&path, usize::MAX).unwrap();
            Journal::open(&path).map(|journal| journal.release()).ok();
            std::fs::write(&path, {
                let bytes = std::fs::read(&path).unwrap();
                let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
                bytes[..whole].to_vec()
            }).unwrap();
            let whole = read::<Note>(&path).unwrap();
            prop_assert_eq!(texts(last), whole.records);
            prop_assert_eq!(skipped, whole.skipped);
        }
    }
}
