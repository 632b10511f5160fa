//! The end of a journal's file: the lines that are still to be written, and those that the disk may not have yet.
//!
//! Rule: a line is written whole or not at all, and stays in memory until a sync has succeeded. A failed sync means
//! that the system may have dropped the writes since the last one: all of that is written again, to its place.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, DiskFile, OpenMode, make_folders, read_some_at, remove_unfinished, write_all_at};

/// Maximum number of records that wait in memory while the disk refuses them; more are refused until it takes some.
pub(super) const UNWRITTEN_LIMIT: usize = 10_000;

/// Repeatable records take at most this part of the room: the rest is for unrepeatable ones.
const TRANSIENT_PART: usize = 2;

/// Maximum bytes of them; a single record may be as long as a line may be.
const UNWRITTEN_BYTES: usize = 64 << 20;

/// Maximum unsynced bytes that are remembered; past it the oldest are left to the system.
const UNSYNCED_BYTES: usize = 64 << 20;

/// From this many bytes on a sync is due, though no caller waits for one.
const SYNC_DUE_BYTES: usize = 4 << 20;

/// How many of the folders around a journal are ours: the session's, the workspace's, that of all sessions, and the one
/// that it is in. Their names are synced with the first record.
const OWN_FOLDERS: usize = 4;

/// Bytes that are checked at once for the last line end.
const STEP: u64 = 64 * 1024;

/// The end of the file.
#[derive(Debug)]
pub(super) struct JournalEnd {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    /// Has the lock, and is written through until a sync fails.
    locked: Arc<dyn DiskFile>,
    file: Arc<dyn DiskFile>,
    /// The lines that the disk may not have, oldest first.
    kept: VecDeque<Vec<u8>>,
    kept_bytes: usize,
    /// The number of the first of them; lines are counted from the opening on.
    first: u64,
    /// How many of them are in the file.
    written: usize,
    written_bytes: usize,
    /// Where the next one goes.
    position: u64,
    /// Length of the file up to its last whole line.
    extent: u64,
    /// Whether half a line may stand behind that.
    is_torn: bool,
    /// Whether a sync has failed: the next try goes through a new handle, which reports later failures afresh.
    is_suspect: bool,
    /// How many lines the disk is known to have.
    synced: u64,
    /// Folders whose names the disk may not have.
    folders: Vec<PathBuf>,
    /// Tells syncs from before a failure from later ones.
    failures: u64,
}

/// The range of a sync.
#[derive(Debug)]
pub(super) struct SyncPoint {
    disk: Arc<dyn Disk>,
    file: Arc<dyn DiskFile>,
    folders: Vec<PathBuf>,
    /// All lines before this number.
    upto: u64,
    failures: u64,
}

impl SyncPoint {
    /// Waits until the disk has it all. To be called on a thread that may wait, and without a lock.
    pub(super) fn wait(&self) -> io::Result<()> {
        self.file.sync()?;
        self.folders.iter().try_for_each(|folder| self.disk.sync_folder(folder))
    }
}

impl JournalEnd {
    /// Opens and locks the file; with [`OpenMode::Create`] it and its folder are made when missing.
    ///
    /// # Errors
    /// The error of the system; of kind [`io::ErrorKind::ResourceBusy`] when another process has it.
    pub(super) fn open(disk: Arc<dyn Disk>, path: &Path, how: OpenMode) -> io::Result<Self> {
        let mut folders = match path.parent() {
            Some(folder) if how == OpenMode::Create => make_folders(&*disk, folder)?,
            Some(_) | None => Vec::new(),
        };
        // The creator of the folder may have ended before the disk knew its name.
        let near = path.ancestors().skip(1).take(OWN_FOLDERS).filter(|folder| !folder.as_os_str().is_empty());
        folders.extend(near.map(Path::to_path_buf));
        folders.sort();
        folders.dedup();
        let file = disk.open(path, how)?;
        // Two writers would tell two stories. The lock is gone with the process, however it ends.
        if !file.try_lock()? {
            let reason = "another kode-ls has this session open";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, reason));
        }
        // A process that deletes a session moves it away under the lock: a journal opened before is orphaned by now.
        disk.open(path, OpenMode::Read)?;
        if let Some(folder) = path.parent()
            && let Err(error) = remove_unfinished(&*disk, folder)
        {
            tracing::warn!(%error, folder = %folder.display(), "unfinished files stay");
        }
        let extent = whole_length(&*file)?;
        let is_torn = file.size()? > extent;
        // The data read now is trusted from now on, so the disk must have it.
        if extent > 0
            && let Err(error) = file.sync()
        {
            tracing::warn!(%error, path = %path.display(), "the disk may not have all of the journal");
        }
        Ok(Self {
            disk,
            path: path.to_path_buf(),
            locked: Arc::clone(&file),
            file,
            kept: VecDeque::new(),
            kept_bytes: 0,
            first: 0,
            written: 0,
            written_bytes: 0,
            position: extent,
            extent,
            is_torn,
            is_suspect: false,
            synced: 0,
            folders,
            failures: 0,
        })
    }

    /// Lets others write the file.
    pub(super) fn unlock(&self) -> io::Result<()> {
        self.locked.unlock()
    }

    /// How many lines there were since it was opened.
    pub(super) fn lines(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// How many bytes the file has up to its last whole line.
    pub(super) fn length(&self) -> u64 {
        self.extent
    }

    /// How many of them the disk is known to have.
    pub(super) fn synced(&self) -> u64 {
        self.synced
    }

    /// The lines that the disk may not have.
    pub(super) fn unsynced(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.kept.iter()
    }

    /// How many lines are not in the file.
    pub(super) fn waiting(&self) -> usize {
        self.kept.len() - self.written
    }

    /// Whether there is too much that no sync has covered.
    pub(super) fn is_sync_due(&self) -> bool {
        self.written_bytes >= SYNC_DUE_BYTES
    }

    /// Whether another line of this length can wait; one that a later record tells again has less room.
    pub(super) fn has_room(&self, length: usize, is_transient: bool) -> bool {
        let waiting = self.kept_bytes - self.written_bytes;
        let part = if is_transient { TRANSIENT_PART } else { 1 };
        self.waiting() == 0
            || self.waiting() < UNWRITTEN_LIMIT / part && waiting + length <= UNWRITTEN_BYTES / part
    }

    /// Takes a line, with its end. It is written by [`JournalEnd::flush`].
    pub(super) fn push(&mut self, line: Vec<u8>) {
        self.kept_bytes += line.len();
        self.kept.push_back(line);
    }

    /// Writes what waits.
    ///
    /// # Errors
    /// The error of the system; unwritten records keep waiting.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.waiting() == 0 {
            return Ok(());
        }
        self.renew();
        if self.is_torn {
            self.file.truncate(self.extent)?;
            self.is_torn = false;
        }
        while let Some(line) = self.kept.get(self.written) {
            let length = line.len();
            let end = self.position + length as u64;
            if let Err(error) = write_all_at(&*self.file, line, self.position) {
                // Half a line must not stay. If the same bytes were there already, there is no half line.
                if end > self.extent {
                    self.is_torn = self.file.truncate(self.extent).is_err();
                }
                return Err(error);
            }
            self.position = end;
            self.extent = self.extent.max(end);
            self.written += 1;
            self.written_bytes += length;
        }
        while self.written_bytes > UNSYNCED_BYTES && self.written > 0 {
            self.let_go();
        }
        Ok(())
    }

    /// Writes the file again where another process has removed or moved it: the open handle still has its bytes. True
    /// where it was gone.
    ///
    /// # Errors
    /// The error of the system; the lines go to the old handle until the file can be written again.
    pub(super) fn restore(&mut self) -> io::Result<bool> {
        match self.disk.open(&self.path, OpenMode::Read) {
            Ok(_) => return Ok(false),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            // The next write reports it.
            Err(_) => return Ok(false),
        }
        let folder = self.path.parent().ok_or(io::ErrorKind::NotFound)?;
        let folders = make_folders(&*self.disk, folder)?;
        let file = self.disk.open(&self.path, OpenMode::New)?;
        if !file.try_lock()? {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another kode-ls has this session open"));
        }
        if let Err(error) = copy(&*self.file, &*file, self.extent).and_then(|()| file.sync()) {
            // Half a journal must not pass for the whole one.
            self.disk.remove(&self.path)?;
            return Err(error);
        }
        self.locked = Arc::clone(&file);
        (self.file, self.is_torn) = (file, false);
        self.folders.extend(folders);
        self.folders.push(folder.to_path_buf());
        Ok(true)
    }

    /// The pending range of a sync.
    pub(super) fn sync_point(&self) -> SyncPoint {
        SyncPoint {
            disk: Arc::clone(&self.disk),
            file: Arc::clone(&self.file),
            folders: self.folders.clone(),
            upto: self.first + self.written as u64,
            failures: self.failures,
        }
    }

    /// Notes that a sync succeeded.
    pub(super) fn note_synced(&mut self, point: &SyncPoint) {
        // Data written before a failure is in doubt, whatever a sync says that began before it.
        if point.failures != self.failures {
            return;
        }
        self.folders.clear();
        self.synced = self.synced.max(point.upto);
        while self.first < point.upto && self.written > 0 {
            self.let_go();
        }
    }

    /// Notes that a sync failed. Answers how many lines may be lost that are not in memory any more.
    pub(super) fn note_sync_failed(&mut self) -> u64 {
        self.failures += 1;
        self.is_suspect = true;
        self.position -= self.written_bytes as u64;
        (self.written, self.written_bytes) = (0, 0);
        let gone = self.first.saturating_sub(self.synced);
        // They are counted once.
        self.synced = self.synced.max(self.first);
        gone
    }

    /// Forgets the first line that is kept: it is in the file.
    fn let_go(&mut self) {
        if let Some(line) = self.kept.pop_front() {
            self.kept_bytes -= line.len();
            self.written_bytes -= line.len();
            self.written -= 1;
            self.first += 1;
        }
    }

    /// Opens the file again after a failed sync. The lock stays where it is.
    fn renew(&mut self) {
        if !self.is_suspect {
            return;
        }
        let start = self.position;
        let opened = self.disk.open(&self.path, OpenMode::Existing).and_then(|file| Ok((file.size()?, file)));
        match opened {
            Ok((size, file)) if size >= start => (self.file, self.is_suspect) = (file, false),
            // It is another file by now, or none: earlier data is in the open one.
            Ok(_) => self.is_suspect = false,
            Err(error) => {
                tracing::warn!(%error, path = %self.path.display(), "the journal is not opened again")
            }
        }
    }
}

/// Copies the first `length` bytes of a file.
fn copy(from: &dyn DiskFile, to: &dyn DiskFile, length: u64) -> io::Result<()> {
    let mut buffer = vec![0; usize::try_from(STEP).unwrap_or_default()];
    let mut at = 0;
    while at < length {
        let wanted = usize::try_from(STEP.min(length - at)).unwrap_or_default();
        match read_some_at(from, &mut buffer[..wanted], at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                write_all_at(to, &buffer[..read], at)?;
                at += read as u64;
            }
        }
    }
    Ok(())
}

/// Length of the file up to and with its last line end.
fn whole_length(file: &dyn DiskFile) -> io::Result<u64> {
    let mut end = file.size()?;
    let mut buffer = vec![0; usize::try_from(STEP.min(end)).unwrap_or_default()];
    while end > 0 {
        let start = end.saturating_sub(STEP);
        let wanted = usize::try_from(end - start).unwrap_or_default();
        let mut read = 0;
        while read < wanted {
            match read_some_at(file, &mut buffer[read..wanted], start + read as u64)? {
                0 => break,
                more => read += more,
            }
        }
        if let Some(last) = buffer[..read].iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}
