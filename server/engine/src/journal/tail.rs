//! Reads on in a journal that another process writes.
//!
//! Rule: only whole lines are taken, each once; half a line waits for its end.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::journal::Stamp;
use crate::journal::pictures;
use crate::journal::reader::{Parsed, Seen, parse, read_line};
use crate::journal::record::{Line, Record};

/// A place in a journal that grows.
#[derive(Debug)]
pub(crate) struct Tail {
    path: PathBuf,
    /// Bytes that were read: whole lines.
    read: u64,
    pictures: HashMap<String, String>,
    seen: Seen,
    after_damage: bool,
}

/// What was read on.
#[derive(Debug)]
pub(crate) enum Grown {
    /// These lines came, maybe none.
    By(Vec<(Stamp, Record)>),
    /// The journal is shorter than what was read of it: it is another one.
    Replaced,
}

impl Tail {
    /// The beginning of a journal.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            read: 0,
            pictures: HashMap::new(),
            seen: Seen::default(),
            after_damage: false,
        }
    }

    /// Reads what has come since.
    pub(crate) fn read(&mut self) -> io::Result<Grown> {
        let mut file = File::open(&self.path)?;
        let end = whole_length(&mut file)?;
        if end < self.read {
            return Ok(Grown::Replaced);
        }
        file.seek(SeekFrom::Start(self.read))?;
        let mut reader = BufReader::new(file.take(end - self.read));
        let (mut line, mut lines) = (Vec::new(), Vec::new());
        while read_line(&mut reader, &mut line)?.is_some() {
            match parse(&line) {
                Ok(Parsed { line: parsed, is_whole }) => {
                    self.after_damage |= !is_whole;
                    if !self.seen.is_new(&parsed, &line) {
                        continue;
                    }
                    let Line { mut record, seq, written, v: _ } = parsed;
                    pictures::restore(&mut record, &mut self.pictures);
                    let after_damage = std::mem::take(&mut self.after_damage);
                    lines.push((Stamp { seq, written, after_damage }, record));
                }
                Err(_) if line.iter().all(u8::is_ascii_whitespace) => {}
                Err(error) => {
                    self.after_damage = true;
                    tracing::warn!(path = %self.path.display(), %error, "a line of the journal could not be read");
                }
            }
        }
        self.read = end;
        Ok(Grown::By(lines))
    }
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
    use crate::ids::TurnId;
    use crate::journal::Journal;

    #[test]
    fn whole_lines_are_taken_once_and_half_a_line_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let remark =
            |text: &str| Record::Remark { turn: TurnId::from_external("turn_1"), text: text.to_owned() };
        let journal = Journal::open(&path).unwrap();
        journal.append(&remark("one")).unwrap();
        let mut tail = Tail::new(&path);
        let mut grown = || match tail.read().unwrap() {
            Grown::By(lines) => lines.into_iter().map(|(_, record)| record).collect::<Vec<_>>(),
            Grown::Replaced => panic!("it only grows"),
        };
        assert_eq!((grown(), grown()), (vec![remark("one")], vec![]));
        let whole = std::fs::read(&path).unwrap();
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(&whole[..20]).unwrap();
        assert_eq!(grown(), []);
        file.write_all(&whole[20..]).unwrap();
        assert_eq!(grown(), [remark("one")]);
        file.set_len(3).unwrap();
        assert!(matches!(tail.read().unwrap(), Grown::Replaced));
    }
}
