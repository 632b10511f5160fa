//! The operations of a journal and its blobs on the file system: a thin layer, so that tests can put a bad disk below them.
//!
//! Rule: everything that must outlive a crash goes through here; an error says what the system said and nothing is
//! retried or hidden, except that an interrupted write continues and that a file is waited for that another program holds on
//! Windows ([`file_moves`]). Files and folders that are made are their user's alone.

use std::ffi::OsString;
use std::fmt::Debug;
use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kode_base::{file_moves, private};
use parking_lot::Mutex;
use uuid::Uuid;

/// From this many files on, the whole file system is synced once instead of each file: cheaper than a disk barrier for
/// each, dearer than a few.
#[cfg(any(target_os = "linux", target_os = "android"))]
const SYNC_ALL_FROM: usize = 16;

/// How often in a row a write may be interrupted before that is an error.
const MAX_INTERRUPTIONS: usize = 100;

/// How names of unfinished files begin: what a crash has left under such a name is of no use to anybody.
pub const TEMPORARY_PREFIX: &str = ".tmp-";

/// The end of the name of the file that is locked instead, where locks keep readers out.
const LOCK: &str = "lock";

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading; it must be there.
    Read,
    /// For reading and writing; it must be there.
    Existing,
    /// For reading and writing; it is made when missing.
    Create,
    /// For reading and writing; it must not be there yet.
    New,
}

/// A file system, as far as a session's folder needs one.
pub trait Disk: Debug + Send + Sync {
    /// Opens a file.
    fn open(&self, path: &Path, how: OpenMode) -> io::Result<Arc<dyn DiskFile>>;

    /// Makes one folder in one that is there. False when it is there already.
    fn make_folder(&self, path: &Path) -> io::Result<bool>;

    /// The names in a folder.
    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>>;

    /// Gives a file another name in one step, in place of the file that had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Waits until the disk has the names in a folder.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Waits until the disk has files of one folder, and their names.
    fn sync_files(&self, folder: &Path, names: &[String]) -> io::Result<()> {
        for name in names {
            self.open(&folder.join(name), OpenMode::Read)?.sync()?;
        }
        self.sync_folder(folder)
    }
}

/// An open file.
pub trait DiskFile: Debug + Send + Sync {
    /// Locks the file for this handle until [`DiskFile::unlock`] or the end of the handle. False when another has it.
    fn try_lock(&self) -> io::Result<bool>;

    /// Lets others lock it.
    fn unlock(&self) -> io::Result<()>;

    /// Its length in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Reads from a place on; 0 at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes to a place; perhaps not all of it.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Cuts it, or makes it longer.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Waits until the disk has its bytes. After an error, data written since the last success may be lost, even
    /// when the next call succeeds.
    fn sync(&self) -> io::Result<()>;

    /// Fails a sync, as a system does that drops what it could not write.
    fn fail_sync(&self) {}
}

/// The disk of this machine.
#[derive(Debug)]
pub struct RealDisk;

/// The disk of this machine.
pub fn real() -> Arc<dyn Disk> {
    Arc::new(RealDisk)
}

impl Disk for RealDisk {
    fn open(&self, path: &Path, how: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = private::file_options();
        options.write(how != OpenMode::Read);
        match how {
            OpenMode::Read | OpenMode::Existing => {}
            OpenMode::Create => {
                options.create(true).truncate(false);
            }
            OpenMode::New => {
                options.create_new(true);
            }
        }
        let file = options.open(path)?;
        if cfg!(windows) {
            return Ok(Arc::new(FileWithLock {
                file,
                lock: path.with_extension(LOCK),
                held: Mutex::default(),
            }));
        }
        Ok(Arc::new(file))
    }

    fn make_folder(&self, path: &Path) -> io::Result<bool> {
        match private::create_folder(path) {
            Ok(()) => Ok(true),
            Err(_) if path.is_dir() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        file_moves::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        file_moves::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        // Elsewhere folders cannot be opened; there the system sees to its names.
        if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
    }

    fn sync_files(&self, folder: &Path, names: &[String]) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if names.len() >= SYNC_ALL_FROM {
            return Ok(rustix::fs::syncfs(File::open(folder)?)?);
        }
        for name in names {
            // Windows writes out only what was opened for writing.
            File::options().read(true).write(cfg!(windows)).open(folder.join(name))?.sync_all()?;
        }
        self.sync_folder(folder)
    }
}

impl DiskFile for File {
    fn try_lock(&self) -> io::Result<bool> {
        match Self::try_lock(self) {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn unlock(&self) -> io::Result<()> {
        Self::unlock(self)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::read_at(self, buffer, offset);
        #[cfg(windows)]
        return std::os::windows::fs::FileExt::seek_read(self, buffer, offset);
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::write_at(self, bytes, offset);
        #[cfg(windows)]
        return std::os::windows::fs::FileExt::seek_write(self, bytes, offset);
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Locks a journal of this machine that is not written meanwhile, until what is returned is dropped; `None` where another
/// process has it.
///
/// # Errors
/// The error of the system: it is not there, or must not be opened.
pub fn lock(journal: &Path) -> io::Result<Option<Arc<dyn DiskFile>>> {
    let file = RealDisk.open(journal, OpenMode::Read)?;
    Ok(file.try_lock()?.then_some(file))
}

/// A file whose lock is another file beside it: where locks are mandatory, a locked file has no readers.
#[derive(Debug)]
struct FileWithLock {
    file: File,
    lock: PathBuf,
    held: Mutex<Option<File>>,
}

impl DiskFile for FileWithLock {
    fn try_lock(&self) -> io::Result<bool> {
        let lock = private::file_options().write(true).create(true).truncate(false).open(&self.lock)?;
        let is_free = DiskFile::try_lock(&lock)?;
        if is_free {
            *self.held.lock() = Some(lock);
        }
        Ok(is_free)
    }

    fn unlock(&self) -> io::Result<()> {
        // The lock ends with the file that holds it.
        drop(self.held.lock().take());
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        DiskFile::read_at(&self.file, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        DiskFile::write_at(&self.file, bytes, offset)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.file.truncate(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

/// Writes all bytes to a place.
pub(crate) fn write_all_at(file: &dyn DiskFile, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    let mut interruptions = 0;
    while !bytes.is_empty() {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                offset += written as u64;
                interruptions = 0;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted && interruptions < MAX_INTERRUPTIONS => {
                interruptions += 1;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads from a place on, and continues when that is interrupted; 0 at the end.
pub(crate) fn read_some_at(file: &dyn DiskFile, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut interruptions = 0;
    loop {
        match file.read_at(buffer, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted && interruptions < MAX_INTERRUPTIONS => {
                interruptions += 1;
            }
            read => return read,
        }
    }
}

/// A file as something to read from, from its beginning on.
#[derive(Debug)]
pub(crate) struct DiskReader {
    file: Arc<dyn DiskFile>,
    offset: u64,
}

impl DiskReader {
    /// The file of that name, from its beginning on.
    pub(crate) fn open(disk: &dyn Disk, path: &Path) -> io::Result<Self> {
        Ok(Self::on(disk.open(path, OpenMode::Read)?, 0))
    }

    /// A file that is open, from a byte on.
    pub(crate) fn on(file: Arc<dyn DiskFile>, offset: u64) -> Self {
        Self { file, offset }
    }
}

impl Read for DiskReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = read_some_at(&*self.file, buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// All bytes of a file.
pub(crate) fn read_all(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    DiskReader::open(disk, path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Makes a folder with all that it lies in. Answers the folders whose names are new to the disk: those that hold a
/// folder that was made.
pub(crate) fn make_folders(disk: &dyn Disk, folder: &Path) -> io::Result<Vec<PathBuf>> {
    let missing = match disk.make_folder(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => error,
        made => {
            let parent = folder.parent().filter(|_| matches!(made, Ok(true))).map(Path::to_path_buf);
            return made.map(|_| parent.into_iter().collect());
        }
    };
    let Some(parent) = folder.parent() else { return Err(missing) };
    let mut changed = make_folders(disk, parent)?;
    if disk.make_folder(folder)? {
        changed.push(parent.to_path_buf());
    }
    Ok(changed)
}

/// Writes a file so that it holds the old bytes or the new ones at every moment, also after a power cut, and its user
/// alone can read it; `pieces` are its bytes, one after the other. Its folder must be there. For files that can be made again, such
/// as summaries of a journal.
///
/// # Errors
/// The error of the system; the old file stays then.
pub(crate) fn write_atomically(path: &Path, pieces: &[&[u8]]) -> io::Result<()> {
    write_atomically_on(&RealDisk, path, pieces)
}

/// The same on another disk.
pub(crate) fn write_atomically_on(disk: &dyn Disk, path: &Path, pieces: &[&[u8]]) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("the root is not a file"))?;
    put_in_place(disk, folder, path, pieces, true)?;
    disk.sync_folder(folder)
}

/// Writes a file under another name and gives it its own in one step.
pub(crate) fn put_in_place(
    disk: &dyn Disk,
    folder: &Path,
    path: &Path,
    pieces: &[&[u8]],
    is_synced: bool,
) -> io::Result<()> {
    let temporary = folder.join(format!("{}{}", own_prefix(), Uuid::now_v7().simple()));
    let written = disk.open(&temporary, OpenMode::New).and_then(|file| {
        let mut at = 0;
        for piece in pieces {
            write_all_at(&*file, piece, at)?;
            at += piece.len() as u64;
        }
        if is_synced { file.sync() } else { Ok(()) }
    });
    let placed = written.and_then(|()| disk.rename(&temporary, path));
    if placed.is_err()
        && let Err(error) = disk.remove(&temporary)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::debug!(%error, path = %temporary.display(), "an unfinished file stays");
    }
    placed
}

/// Removes the leftovers of a crash in a folder: unfinished files of other processes than this one. Only the process that
/// alone writes the folder may do so.
pub(crate) fn remove_unfinished(disk: &dyn Disk, folder: &Path) -> io::Result<()> {
    let own = own_prefix();
    for name in disk.list(folder)? {
        let text = name.to_string_lossy();
        if text.starts_with(TEMPORARY_PREFIX) && !text.starts_with(&own) {
            // It takes room and harms nothing, so failing is only worth a note.
            if let Err(error) = disk.remove(&folder.join(&name)) {
                tracing::warn!(folder = %folder.display(), name = %text, %error, "an unfinished file stays");
            }
        }
    }
    Ok(())
}

/// How names of this process's unfinished files begin. Process ids would not do: they come again.
pub(crate) fn own_prefix() -> String {
    static ID: std::sync::OnceLock<Uuid> = std::sync::OnceLock::new();
    format!("{TEMPORARY_PREFIX}{}-", ID.get_or_init(Uuid::now_v7).simple())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_beside_a_file_keeps_writers_out_and_readers_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let open = || {
            let file = private::file_options().write(true).create(true).truncate(false).open(&path).unwrap();
            FileWithLock { file, lock: path.with_extension(LOCK), held: Mutex::default() }
        };
        let (one, other) = (open(), open());
        assert!(DiskFile::try_lock(&one).unwrap());
        assert_eq!(DiskFile::write_at(&one, b"line", 0).unwrap(), 4);
        assert!(!DiskFile::try_lock(&other).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"line");
        // The file itself is free, so that it can be read where locks are mandatory.
        assert!(DiskFile::try_lock(&File::open(&path).unwrap()).unwrap());
        DiskFile::unlock(&one).unwrap();
        assert!(DiskFile::try_lock(&other).unwrap());
        drop(other);
        assert!(DiskFile::try_lock(&one).unwrap());
    }
}
