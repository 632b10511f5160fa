//! Appends records to a journal.
//!
//! Rule: a line is written whole or not at all. A stump left by a crash is cut before the next append; after a
//! failed write the file is cut back to its last whole line and the records wait in memory for the next try.

use std::collections::{HashSet, VecDeque};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde::Serialize;

use crate::journal::pictures;
use crate::journal::reader::LINE_LIMIT;
use crate::journal::record::{Record, VERSION};

/// So many records wait in memory while the disk refuses them; more are refused until it takes some.
const UNWRITTEN_LIMIT: usize = 1_000;

/// A failed append.
#[derive(Debug, thiserror::Error)]
#[error("could not write the session's journal {}: {source}; {waiting} records wait in memory and are written with the next one", path.display())]
pub struct JournalError {
    /// The journal.
    pub path: PathBuf,
    /// Records that are not written yet, this one included.
    pub waiting: usize,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

/// The journal of one session, open for appending. Clones write the same file.
#[derive(Clone, Debug)]
pub struct Journal {
    path: PathBuf,
    writer: Arc<Mutex<Writer>>,
}

/// The line of a record, without the number that it is appended with.
#[derive(Debug)]
pub struct PreparedLine {
    /// When it was made: the time of the record and of its events.
    pub written: Timestamp,
    json: String,
    pictures: Vec<String>,
}

/// What of a line does not depend on what was told before it.
#[derive(Serialize)]
struct Rest<'a> {
    written: Timestamp,
    #[serde(flatten)]
    record: &'a Record,
}

#[derive(Debug)]
struct Writer {
    file: File,
    /// Length of the file up to its last whole line.
    length: u64,
    unwritten: VecDeque<Vec<u8>>,
    /// The hashes of the pictures that this writer has written, or that wait to be.
    pictures: HashSet<String>,
    /// Whether others may write the journal: this writer would write over what they have written.
    is_released: bool,
}

impl Journal {
    /// Opens a journal, making it and its folder when missing, and cuts a stump at its end.
    ///
    /// # Errors
    /// What the system says about the folder or the file; of kind [`io::ErrorKind::ResourceBusy`] when another process
    /// writes this journal.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            create_private_folder(folder)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        // Two writers would tell two stories. The lock is gone with the process, however it ends.
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                io::Error::new(io::ErrorKind::ResourceBusy, "another kode-ls has this session open")
            }
            TryLockError::Error(error) => error,
        })?;
        let length = whole_length(&mut file)?;
        file.set_len(length)?;
        let writer =
            Writer { file, length, unwritten: VecDeque::new(), pictures: HashSet::new(), is_released: false };
        Ok(Self { path: path.to_path_buf(), writer: Arc::new(Mutex::new(writer)) })
    }

    /// Lets others write the journal from now on, and writes it no more.
    pub fn release(&self) {
        let mut writer = self.lock();
        writer.is_released = true;
        if let Err(error) = writer.file.unlock() {
            tracing::warn!(%error, path = %self.path.display(), "the journal stays locked until this process ends");
        }
    }

    /// The bytes of the journal, all of which are whole lines.
    ///
    /// # Errors
    /// What the system says when records wait to be written and still cannot be.
    pub fn whole_length(&self) -> io::Result<u64> {
        let mut writer = self.lock();
        writer.flush()?;
        Ok(writer.length)
    }

    /// Writes nothing from now on that leans on a line before: pictures are written whole again. Answers where that
    /// begins: the bytes of the journal.
    ///
    /// # Errors
    /// As [`Journal::whole_length`].
    pub fn begin_anew(&self) -> io::Result<u64> {
        let mut writer = self.lock();
        writer.flush()?;
        writer.pictures.clear();
        Ok(writer.length)
    }

    /// Where the journal is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until the disk has all that was written.
    ///
    /// # Errors
    /// [`JournalError`] when the disk refuses.
    pub async fn sync(&self) -> Result<(), JournalError> {
        let journal = self.clone();
        // The file is synced through a handle of its own, so that appends go on meanwhile.
        let synced = tokio::task::spawn_blocking(move || {
            let file = {
                let mut writer = journal.lock();
                writer.flush()?;
                writer.file.try_clone()?
            };
            file.sync_data()
        })
        .await;
        synced.map_err(io::Error::other).flatten().map_err(|source| self.error(source))
    }

    /// Appends a record that tells nothing anybody follows, or is told of elsewhere; see [`Journal::append_line`].
    ///
    /// # Errors
    /// As [`Journal::append_line`].
    pub fn append(&self, record: &Record) -> Result<(), JournalError> {
        self.append_line(self.prepare(record)?, 0)
    }

    /// Makes the line of a record, apart from the number it is appended with: so the lock that numbers are given under is
    /// not held while a large record is written out.
    ///
    /// # Errors
    /// [`JournalError`] when the record cannot be written as a line.
    pub fn prepare(&self, record: &Record) -> Result<PreparedLine, JournalError> {
        let written = Timestamp::now();
        let mut record = record.clone();
        let pictures = pictures::refer(&mut record, || self.lock().pictures.clone());
        let rest = Rest { written, record: &record };
        let json = serde_json::to_string(&rest).map_err(|error| self.error(error.into()))?;
        Ok(PreparedLine { written, json, pictures })
    }

    /// Appends a line; `seq` is the number of the newest event before those of its record. When this returns the
    /// operating system has it: it survives the end of this process, and after [`Journal::sync`] a power cut.
    ///
    /// # Errors
    /// [`JournalError`]; the record is kept, if not too many wait already, and written before the next. One that is longer
    /// than what a reader takes is refused.
    pub fn append_line(&self, line: PreparedLine, seq: u64) -> Result<(), JournalError> {
        let PreparedLine { written: _, json, pictures } = line;
        let fields = json.strip_prefix('{').unwrap_or(&json);
        let bytes = format!("{{\"v\":{VERSION},\"seq\":{seq},{fields}\n").into_bytes();
        if bytes.len() > LINE_LIMIT {
            let size = bytes.len();
            let message = format!(
                "a record has {size} bytes, and the limit is {LINE_LIMIT}; it was not kept, and the session will lack it \
                 when it is loaded again: hand in less at once"
            );
            return Err(self.error(io::Error::new(io::ErrorKind::FileTooLarge, message)));
        }
        let mut writer = self.lock();
        if writer.is_released {
            drop(writer);
            return Err(self.error(io::Error::other("the session is closed")));
        }
        if writer.unwritten.len() >= UNWRITTEN_LIMIT
            && let Err(source) = writer.flush()
        {
            drop(writer);
            return Err(
                self.error(io::Error::new(source.kind(), format!("{source}; this record was not kept")))
            );
        }
        writer.unwritten.push_back(bytes);
        writer.pictures.extend(pictures);
        let flushed = writer.flush();
        drop(writer);
        flushed.map_err(|source| self.error(source))
    }

    fn error(&self, source: io::Error) -> JournalError {
        JournalError { path: self.path.clone(), waiting: self.lock().unwritten.len(), source }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    fn flush(&mut self) -> io::Result<()> {
        while let Some(line) = self.unwritten.front() {
            // From the end of the last whole line, whatever an earlier try has left behind it.
            self.file.seek(SeekFrom::Start(self.length))?;
            if let Err(error) = self.file.write_all(line) {
                // Half a line must not stay; should even this fail, the next open cuts it.
                drop(self.file.set_len(self.length));
                return Err(error);
            }
            self.length += line.len() as u64;
            self.unwritten.pop_front();
        }
        Ok(())
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

pub(super) fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::TurnId;
    use crate::journal::read;

    fn remark(text: &str) -> Record {
        Record::Remark { turn: TurnId::from_external("turn_1"), text: text.to_owned() }
    }

    #[tokio::test]
    async fn records_come_back_in_order_and_the_file_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/journal.jsonl");
        let journal = Journal::open(&path).unwrap();
        journal.append(&remark("one")).unwrap();
        journal.append(&remark("two\nlines")).unwrap();
        journal.sync().await.unwrap();
        let read = read(&path).unwrap();
        assert_eq!(read.records, [remark("one"), remark("two\nlines")]);
        assert_eq!(read.skipped, 0);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(
                std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777,
                0o700
            );
        }
    }

    #[test]
    fn what_no_reader_would_take_is_refused_and_costs_itself_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let journal = Journal::open(&path).unwrap();
        let length = |text: &str| {
            let before = std::fs::metadata(&path).unwrap().len();
            journal.append(&remark(text)).map(|()| std::fs::metadata(&path).unwrap().len() - before)
        };
        let error = length(&"a".repeat(LINE_LIMIT)).unwrap_err();
        assert_eq!((error.waiting, error.source.kind()), (0, io::ErrorKind::FileTooLarge));
        assert!(error.to_string().contains(&LINE_LIMIT.to_string()), "{error}");
        let frame = usize::try_from(length("").unwrap()).unwrap();
        // Times are written with as many digits as they need: this leaves room for all of them.
        length(&"a".repeat(LINE_LIMIT - frame - 16)).unwrap();
        let read = read(&path).unwrap();
        assert_eq!((read.records.len(), read.skipped), (2, 0));
    }

    #[test]
    fn a_damaged_line_costs_itself_alone_and_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        Journal::open(&path).unwrap().append(&remark("one")).unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(
            b"{\"v\":1,\"written\":\"2026-01-01T00:00:00Z\",\"type\":\"fromTheFuture\"}\n\0\0\0\0\n\nnot json\n",
        )
        .unwrap();
        Journal::open(&path).unwrap().append(&remark("two")).unwrap();
        let read = read(&path).unwrap();
        assert_eq!(read.records, [remark("one"), remark("two")]);
        assert_eq!(read.skipped, 3);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn records_the_disk_refused_are_written_with_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let journal = Journal::open(&path).unwrap();
        journal.append(&remark("one")).unwrap();
        // `/dev/full` answers every write with ENOSPC, as a full disk does.
        let good = std::mem::replace(
            &mut journal.lock().file,
            OpenOptions::new().read(true).write(true).open("/dev/full").unwrap(),
        );
        let error = journal.append(&remark("two")).unwrap_err();
        assert_eq!((error.waiting, error.source.kind()), (1, io::ErrorKind::StorageFull));
        journal.lock().file = good;
        journal.append(&remark("three")).unwrap();
        assert_eq!(read(&path).unwrap().records, [remark("one"), remark("two"), remark("three")]);
    }

    #[test]
    fn a_journal_has_one_writer_and_the_next_may_begin_when_it_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let first = Journal::open(&path).unwrap();
        assert_eq!(Journal::open(&path).unwrap_err().kind(), io::ErrorKind::ResourceBusy);
        first.release();
        Journal::open(&path).unwrap().append(&remark("second")).unwrap();
    }

    #[tokio::test]
    async fn a_full_queue_of_unwritten_records_is_written_once_the_disk_has_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let journal = Journal::open(&path).unwrap();
        let full = OpenOptions::new().read(true).write(true).open("/dev/full").unwrap();
        let good = std::mem::replace(&mut journal.lock().file, full);
        for number in 0..=UNWRITTEN_LIMIT {
            assert!(journal.append(&remark(&number.to_string())).is_err());
        }
        assert!(journal.sync().await.is_err());
        journal.lock().file = good;
        journal.sync().await.unwrap();
        assert_eq!(read(&path).unwrap().records.len(), UNWRITTEN_LIMIT);
    }

    proptest! {
        #[test]
        fn a_journal_cut_at_any_byte_keeps_every_whole_line(cut in 0_usize..400, texts in proptest::collection::vec(".{0,20}", 1..5)) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("journal.jsonl");
            let journal = Journal::open(&path).unwrap();
            for text in &texts {
                journal.append(&remark(text)).unwrap();
            }
            drop(journal);
            let bytes = std::fs::read(&path).unwrap();
            let cut = cut.min(bytes.len());
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let whole = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();

            Journal::open(&path).unwrap().append(&remark("after")).unwrap();

            let read = read(&path).unwrap();
            let mut expected: Vec<_> = texts[..whole].iter().map(|text| remark(text)).collect();
            expected.push(remark("after"));
            prop_assert_eq!(read.records, expected);
            prop_assert_eq!(read.skipped, 0);
        }
    }
}
