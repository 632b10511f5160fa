//! Appends records to a journal.
//!
//! Rule: once [`Journal::sync`] has returned, all earlier appends survive everything short of a broken disk. A
//! record that could not be written waits in memory, is tried again before every other and until it is written, and
//! that is reported once when it begins and once when it is over.

mod end;
#[cfg(test)]
mod tests;

use std::collections::{HashSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kode_base::task;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::Notify;

use crate::disk::{self, Disk, OpenMode};
use crate::{Blobs, JournalEntry, LINE_LIMIT, VERSION, payloads};
use end::JournalEnd;

/// Number of attempts for a locked journal: a check whether it is free holds the lock for a moment.
const LOCK_ATTEMPTS: u32 = 4;

/// The pause between two of these.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// A failed append or sync.
#[derive(Debug, thiserror::Error)]
#[error("could not write the session's journal {}: {source}; {waiting} records wait in memory and are tried again", path.display())]
pub struct JournalError {
    /// The journal.
    pub path: PathBuf,
    /// Records that are not written yet, this one included.
    pub waiting: usize,
    /// The error of the system.
    #[source]
    pub source: io::Error,
}

/// Notices for people about the disk below a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageNews {
    /// The failure, its place, how much waits, and what to do.
    pub message: String,
    /// Whether all is well again.
    pub recovered: bool,
}

/// The journal of one session, open for appending. Clones write the same file.
#[derive(Clone, Debug)]
pub struct Journal {
    path: PathBuf,
    shared: Arc<SharedJournal>,
}

#[derive(Debug)]
struct SharedJournal {
    writer: Mutex<JournalWriter>,
    /// Held while the disk is waited for: who comes meanwhile shares the next wait.
    syncing: Arc<tokio::sync::Mutex<Syncs>>,
    /// Called when the journal's keeper has something to do.
    attention: Notify,
    blobs: Option<Blobs>,
}

/// The line of a record, without the number that it is appended with.
#[derive(Debug)]
pub struct PreparedLine {
    /// When it was made: the time of the record and of its events.
    pub written: Timestamp,
    json: String,
    payloads: Vec<String>,
    /// Whether a later record tells it again.
    is_transient: bool,
}

/// The part of a line that does not depend on earlier events.
#[derive(Serialize)]
struct LineBody<'a, E> {
    written: Timestamp,
    #[serde(flatten)]
    record: &'a E,
}

#[derive(Debug)]
struct JournalWriter {
    end: JournalEnd,
    /// The hashes of the payloads that this writer has written, or that wait to be.
    payloads: HashSet<String>,
    /// When the newest line was written: each is later than the one before, so no two lines are the same.
    newest: Timestamp,
    /// Whether others may write the journal: this writer would write over what they have written.
    is_released: bool,
    /// Whether the disk refuses.
    is_failing: bool,
    /// Whether a caller wants a sync without waiting for it.
    wants_sync: bool,
    /// Records that are lost since the disk began to refuse.
    lost: u64,
    /// How many syncs have started.
    syncs: u64,
    news: VecDeque<StorageNews>,
}

/// How the newest sync ended.
#[derive(Debug, Default)]
struct Syncs {
    number: u64,
    failure: Option<(io::ErrorKind, String)>,
}

impl Journal {
    /// Opens a journal, making it and its folder when missing. A stump at its end is cut before the first append.
    ///
    /// # Errors
    /// The error of the system about the folder or the file; of kind [`io::ErrorKind::ResourceBusy`] when another process
    /// writes this journal.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_on(disk::real(), path, None)
    }

    /// As [`Journal::open_on`], made when missing or not; one that is locked for a moment is tried again. Blocks
    /// meanwhile.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open_patiently(
        disk: Arc<dyn Disk>,
        path: &Path,
        how: OpenMode,
        blobs: Option<Blobs>,
    ) -> io::Result<Self> {
        for _ in 1..LOCK_ATTEMPTS {
            match Self::open_as(Arc::clone(&disk), path, how, blobs.clone()) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(LOCK_PAUSE),
                opened => return opened,
            }
        }
        Self::open_as(disk, path, how, blobs)
    }

    /// The same with the blobs that its records name: those that the disk refused are written before any record is
    /// treated as safe.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub(crate) fn open_on(disk: Arc<dyn Disk>, path: &Path, blobs: Option<Blobs>) -> io::Result<Self> {
        Self::open_as(disk, path, OpenMode::Create, blobs)
    }

    fn open_as(disk: Arc<dyn Disk>, path: &Path, how: OpenMode, blobs: Option<Blobs>) -> io::Result<Self> {
        let writer = JournalWriter {
            end: JournalEnd::open(disk, path, how)?,
            payloads: HashSet::new(),
            newest: Timestamp::MIN,
            is_released: false,
            is_failing: false,
            wants_sync: false,
            lost: 0,
            syncs: 0,
            news: VecDeque::new(),
        };
        let (writer, attention) = (Mutex::new(writer), Notify::new());
        let shared = Arc::new(SharedJournal { writer, syncing: Arc::default(), attention, blobs });
        Ok(Self { path: path.to_path_buf(), shared })
    }

    /// Lets others write the journal from now on, and writes it no more. Answers how many records are lost by that, as
    /// people are notified.
    pub fn release(&self) -> Option<StorageNews> {
        let mut writer = self.shared.writer.lock();
        if writer.is_released {
            return None;
        }
        writer.is_released = true;
        if let Err(error) = writer.end.unlock() {
            tracing::warn!(%error, path = %self.path.display(), "the journal stays locked until this process ends");
        }
        let lost = writer.lost + writer.end.waiting() as u64;
        drop(writer);
        let contents = self.shared.blobs.as_ref().map_or(0, Blobs::unkept_count);
        let records = (lost > 0).then(|| {
            format!(
                "the newest {} not kept, and the session will lack what they tell when it is loaded again",
                if lost == 1 { "record was".to_owned() } else { format!("{lost} records were") },
            )
        });
        let contents = (contents > 0).then(|| {
            format!("{contents} contents of files were not kept, and checkpoints of them cannot be restored")
        });
        let what: Vec<_> = records.into_iter().chain(contents).collect();
        (!what.is_empty()).then(|| StorageNews {
            message: format!(
                "The session was closed while its journal {} could not be written: {}.",
                self.path.display(),
                what.join("; "),
            ),
            recovered: false,
        })
    }

    /// The bytes of the journal, all of which are whole lines.
    ///
    /// # Errors
    /// The error of the system when records wait to be written and still cannot be.
    pub fn whole_length(&self) -> io::Result<u64> {
        let mut writer = self.shared.writer.lock();
        writer.end.flush()?;
        Ok(writer.end.length())
    }

    /// Writes nothing from now on that leans on a line before: payloads are written whole again. Answers where that
    /// begins: the bytes of the journal.
    ///
    /// # Errors
    /// As [`Journal::whole_length`].
    pub fn start_over(&self) -> io::Result<u64> {
        let mut writer = self.shared.writer.lock();
        writer.end.flush()?;
        writer.payloads.clear();
        Ok(writer.end.length())
    }

    /// Where the journal is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until the disk has all that was appended before. Who waits at the same time shares one wait.
    ///
    /// # Errors
    /// [`JournalError`] when the disk refuses; what it does not have is kept and tried again.
    pub async fn sync(&self) -> Result<(), JournalError> {
        let (wanted, seen) = {
            let writer = self.shared.writer.lock();
            (writer.end.lines(), writer.syncs)
        };
        let mut syncs = Arc::clone(&self.shared.syncing).lock_owned().await;
        {
            let writer = self.shared.writer.lock();
            if writer.end.synced() >= wanted && !writer.is_failing {
                return Ok(());
            }
        }
        if syncs.number > seen
            && let Some((kind, reason)) = &syncs.failure
        {
            return Err(self.error(io::Error::new(*kind, reason.clone())));
        }
        let journal = self.clone();
        let task = task::spawn_blocking(move || {
            syncs.number = {
                let mut writer = journal.shared.writer.lock();
                writer.syncs += 1;
                writer.syncs
            };
            let synced = journal.sync_now();
            syncs.failure = synced.as_ref().err().map(|error| (error.kind(), error.to_string()));
            synced
        });
        task.await.map_err(io::Error::other).flatten().map_err(|source| self.error(source))
    }

    /// Wants the disk to have all that was appended before, soon.
    pub fn sync_soon(&self) {
        self.shared.writer.lock().wants_sync = true;
        self.shared.attention.notify_one();
    }

    /// Appends a record that tells nothing anybody follows, or is reported elsewhere; see [`Journal::append_line`].
    ///
    /// # Errors
    /// As [`Journal::append_line`].
    pub fn append(&self, record: &impl JournalEntry) -> Result<(), JournalError> {
        self.append_line(self.prepare(record)?, 0)
    }

    /// Makes the line of a record, apart from the number it is appended with: so the lock that numbers are given under is
    /// not held while a large record is written out.
    ///
    /// # Errors
    /// [`JournalError`] when the record cannot be written as a line.
    pub fn prepare(&self, record: &impl JournalEntry) -> Result<PreparedLine, JournalError> {
        let written = self.shared.writer.lock().now();
        let mut copy = record.may_have_payloads().then(|| record.clone());
        let known = || self.shared.writer.lock().payloads.clone();
        let payloads = copy.as_mut().map(|copy| payloads::refer(copy, known)).unwrap_or_default();
        let rest = LineBody { written, record: copy.as_ref().unwrap_or(record) };
        let json = serde_json::to_string(&rest).map_err(|error| self.error(error.into()))?;
        Ok(PreparedLine { written, json, payloads, is_transient: record.is_transient() })
    }

    /// Appends a line; `seq` is the number of the newest event before those of its record. When this returns the
    /// operating system has it: it survives the end of this process, and after [`Journal::sync`] a power cut.
    ///
    /// # Errors
    /// [`JournalError`]; the record is kept, if not too many wait already, and written before the next. One that is longer
    /// than what a reader takes is refused.
    pub fn append_line(&self, line: PreparedLine, seq: u64) -> Result<(), JournalError> {
        let mut writer = self.shared.writer.lock();
        if writer.is_released {
            drop(writer);
            return Err(self.error(io::Error::other("the session is closed")));
        }
        let outcome = match writer.take(line, seq) {
            Ok(true) => {
                writer.end.flush().inspect_err(|error| self.note_failure(&mut writer, error, "journal"))
            }
            Ok(false) => Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "too many records wait; this one was not kept",
            )),
            Err(refusal) => {
                let message = format!("The session's journal {}: {refusal}", self.path.display());
                writer.news.push_back(StorageNews { message, recovered: false });
                self.shared.attention.notify_one();
                Err(refusal)
            }
        };
        let has_work = outcome.is_ok() && (writer.is_failing || writer.end.is_sync_due());
        drop(writer);
        if has_work {
            self.shared.attention.notify_one();
        }
        outcome.map_err(|source| self.error(source))
    }

    /// Notes that something else of the session could not be kept and waits with the records.
    pub fn note_failure_of(&self, what: &str, error: &io::Error) {
        self.note_failure(&mut self.shared.writer.lock(), error, what);
    }

    /// Has it told that a record was not taken at all.
    pub fn note_refused(&self, error: &JournalError) {
        self.shared
            .writer
            .lock()
            .news
            .push_back(StorageNews { message: error.to_string(), recovered: false });
        self.shared.attention.notify_one();
    }

    /// Waits until there are news to be told or there is something to be written.
    pub async fn attention(&self) {
        self.shared.attention.notified().await;
    }

    /// Whether the disk refuses.
    pub fn is_failing(&self) -> bool {
        self.shared.writer.lock().is_failing
    }

    /// The records that a power cut could cost, as their types are in the journal.
    #[must_use]
    pub fn unsynced(&self) -> Vec<String> {
        let kind = |line: &Vec<u8>| {
            let line: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
            line["type"].as_str().unwrap_or_default().to_owned()
        };
        self.shared.writer.lock().end.unsynced().map(kind).collect()
    }

    /// Whether a sync is due that no caller waits for.
    pub fn is_sync_due(&self) -> bool {
        let mut writer = self.shared.writer.lock();
        let wants = std::mem::take(&mut writer.wants_sync);
        wants || writer.end.is_sync_due()
    }

    /// Events about the disk to be emitted, oldest first.
    pub fn take_news(&self) -> Vec<StorageNews> {
        self.shared.writer.lock().news.drain(..).collect()
    }

    /// Writes what waits and has the disk take it, on this thread.
    fn sync_now(&self) -> io::Result<()> {
        let contents = self.shared.blobs.as_ref().map_or(Ok(()), Blobs::retry);
        if let Err(error) = &contents {
            self.note_failure(&mut self.shared.writer.lock(), error, "kept files");
        }
        let point = {
            let mut writer = self.shared.writer.lock();
            if writer.is_released {
                return Err(io::Error::other("the session is closed"));
            }
            let restored = writer.end.restore();
            if let Err(error) = restored.and_then(|was_gone| {
                if was_gone {
                    self.note_restored(&mut writer);
                }
                writer.end.flush()
            }) {
                self.note_failure(&mut writer, &error, "journal");
                return Err(error);
            }
            writer.end.sync_point()
        };
        let synced = point.wait();
        let mut writer = self.shared.writer.lock();
        match &synced {
            Ok(()) => {
                writer.end.note_synced(&point);
                // Later records may have failed: then it is not over.
                let is_rest_kept = !self.shared.blobs.as_ref().is_some_and(Blobs::has_waiting);
                if writer.is_failing && writer.end.waiting() == 0 && is_rest_kept {
                    let dropped = self.shared.blobs.as_ref().map_or(0, Blobs::take_dropped);
                    writer.recover(&self.path, dropped);
                    self.shared.attention.notify_one();
                }
            }
            Err(error) => {
                let gone = writer.end.note_sync_failed();
                writer.lost += gone;
                self.note_failure(&mut writer, error, "journal");
            }
        }
        // A record that names an unsaved content is not safe, though it is written.
        synced.and(contents)
    }

    /// Notes that the disk refuses, and has it told if it is news.
    fn note_failure(&self, writer: &mut JournalWriter, error: &io::Error, what: &str) {
        if std::mem::replace(&mut writer.is_failing, true) {
            return;
        }
        tracing::error!(%error, path = %self.path.display(), what, "the disk refuses");
        let (path, waiting) = (self.path.display(), writer.end.waiting());
        let advice = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "Make room on the disk",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "See to it that the folder can be written"
            }
            _ => "See to the disk",
        };
        let message = format!(
            "The session's {what} cannot be written ({path}): {error}. The session continues and new records are kept in memory ({waiting} records by now) and tried again until it is written. {advice}; what waits is lost if \
             kode-ls ends before."
        );
        writer.news.push_back(StorageNews { message, recovered: false });
        self.shared.attention.notify_one();
    }

    fn note_restored(&self, writer: &mut JournalWriter) {
        let path = self.path.display();
        tracing::warn!(%path, "another process removed the journal");
        let message = format!(
            "Another process removed the session's journal {path}. kode-ls wrote it again from memory; contents of files that \
             only the removed folder had are lost, and checkpoints of them cannot be restored."
        );
        writer.news.push_back(StorageNews { message, recovered: true });
        self.shared.attention.notify_one();
    }

    fn error(&self, source: io::Error) -> JournalError {
        JournalError { path: self.path.clone(), waiting: self.shared.writer.lock().end.waiting(), source }
    }
}

impl JournalWriter {
    /// The time, later than all before.
    fn now(&mut self) -> Timestamp {
        let next = self.newest.checked_add(SignedDuration::from_nanos(1)).unwrap_or(Timestamp::MAX);
        self.newest = Timestamp::now().max(next);
        self.newest
    }

    /// Takes a line that is to be written; false when too many wait.
    fn take(&mut self, line: PreparedLine, seq: u64) -> io::Result<bool> {
        let PreparedLine { written: _, json, payloads, is_transient } = line;
        let fields = json.strip_prefix('{').unwrap_or(&json);
        let bytes = format!("{{\"v\":{VERSION},\"seq\":{seq},{fields}\n").into_bytes();
        if bytes.len() > LINE_LIMIT {
            let size = bytes.len();
            let message = format!(
                "a record has {size} bytes, and the limit is {LINE_LIMIT}; it was not kept, and the session will lack it \
                 when it is loaded again: hand in less at once"
            );
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        if !self.end.has_room(bytes.len(), is_transient) && self.end.flush().is_err() {
            self.lost += u64::from(!is_transient);
            return Ok(false);
        }
        self.end.push(bytes);
        self.payloads.extend(payloads);
        Ok(true)
    }

    /// Notes that the disk has everything again.
    fn recover(&mut self, path: &Path, dropped: u64) {
        self.is_failing = false;
        let lost = std::mem::take(&mut self.lost);
        let mut outcome = match lost {
            0 if dropped == 0 => "Nothing was lost.".to_owned(),
            0 => String::new(),
            lost => format!(
                "{lost} records were lost because too many waited: the session will lack what they tell when it is \
                 loaded again."
            ),
        };
        if dropped > 0 {
            outcome = format!(
                "{outcome}{}{dropped} contents of files were lost because too much waited: checkpoints of them cannot be \
                 restored.",
                if outcome.is_empty() { "" } else { " " }
            );
        }
        let message = format!("The session's journal is written again ({}). {outcome}", path.display());
        self.news.push_back(StorageNews { message, recovered: true });
    }
}
