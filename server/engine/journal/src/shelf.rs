//! The shelf of a session: what has left memory and may be wanted again, in one file beside the journal.
//!
//! Rule: it is a cache of the journal. A read returns byte for byte the stored data, or an error
//! after which the shelf counts as damaged, and its owner makes it again from the journal.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use kode_base::{file_moves, private};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// The name of the file in a session's folder.
pub const SHELF: &str = "items.jsonl";

/// The most bytes that are put on a shelf at once.
const MAX_BYTES: usize = u32::MAX as usize;

/// Where something lies on a shelf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShelfSlot {
    /// The first byte.
    at: u64,
    /// How many bytes.
    len: u32,
    /// Their checksum.
    check: u32,
}

/// The part of a session that has left memory. One process writes it: the one that writes the journal.
#[derive(Debug)]
pub struct Shelf {
    inner: Mutex<ShelfFile>,
    is_damaged: AtomicBool,
}

#[derive(Debug)]
struct ShelfFile {
    /// `None` for one that is never opened again.
    path: Option<PathBuf>,
    /// Opened with the first use: most sessions never need it.
    file: Option<File>,
    length: u64,
}

impl Shelf {
    /// An empty shelf in the place of whatever is there. The file is made with the first thing that is put on it.
    ///
    /// # Errors
    /// The error of the system about the existing file.
    pub fn create(path: &Path) -> io::Result<Self> {
        match file_moves::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        Ok(Self::of(ShelfFile { path: Some(path.to_path_buf()), file: None, length: 0 }))
    }

    /// An empty shelf that is gone with the process: for a session whose folder another process writes.
    #[must_use]
    pub fn unnamed() -> Self {
        Self::of(ShelfFile { path: None, file: None, length: 0 })
    }

    /// The shelf as it was when it had `length` bytes; later data is dropped.
    ///
    /// # Errors
    /// The error of the system; of kind [`io::ErrorKind::InvalidData`] when there is less.
    pub fn open(path: &Path, length: u64) -> io::Result<Self> {
        if length == 0 {
            return Self::create(path);
        }
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let found = file.metadata()?.len();
        if found < length {
            let text = format!("{} has {found} bytes of {length}", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        file.set_len(length)?;
        Ok(Self::of(ShelfFile { path: Some(path.to_path_buf()), file: Some(file), length }))
    }

    /// Gives its file another name, in place of the file that had it.
    ///
    /// # Errors
    /// The error of the system.
    pub fn move_to(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.inner.lock();
        if let (Some(_), Some(old)) = (&inner.file, &inner.path) {
            file_moves::rename(old, path)?;
        }
        inner.path = Some(path.to_path_buf());
        Ok(())
    }

    /// Lets go of its file, whose place another one takes: a file that is open is not replaced on every system. What is on it
    /// counts as damaged from now on.
    pub fn retire(&self) {
        let mut inner = self.inner.lock();
        (inner.file, inner.path) = (None, None);
        self.condemn();
    }

    /// Puts something on the shelf.
    ///
    /// # Errors
    /// The error of the system; nothing was put on it then.
    pub fn put(&self, bytes: &[u8]) -> io::Result<ShelfSlot> {
        let len = u32::try_from(bytes.len()).map_err(|_| {
            let text = format!("{} bytes are too many to be kept at once: {MAX_BYTES}", bytes.len());
            io::Error::new(io::ErrorKind::FileTooLarge, text)
        })?;
        let mut inner = self.inner.lock();
        let at = inner.length;
        let file = inner.file()?;
        // From the end of the last whole thing, whatever an earlier try has left behind it.
        file.seek(SeekFrom::Start(at))?;
        file.write_all(bytes)?;
        inner.length += u64::from(len);
        Ok(ShelfSlot { at, len, check: crc32fast::hash(bytes) })
    }

    /// Reads data from the shelf.
    ///
    /// # Errors
    /// The error of the system; of kind [`io::ErrorKind::InvalidData`] when the data differs from the stored data. The
    /// shelf counts as damaged then.
    pub fn get(&self, slot: &ShelfSlot) -> io::Result<Vec<u8>> {
        let read = self.read(slot);
        if let Err(error) = &read {
            tracing::warn!(%error, "older entries cannot be read back");
            self.condemn();
        }
        read
    }

    fn read(&self, slot: &ShelfSlot) -> io::Result<Vec<u8>> {
        let mut inner = self.inner.lock();
        let file = inner.file()?;
        file.seek(SeekFrom::Start(slot.at))?;
        let mut bytes = Vec::with_capacity(slot.len as usize);
        Read::by_ref(file).take(u64::from(slot.len)).read_to_end(&mut bytes)?;
        if bytes.len() == slot.len as usize && crc32fast::hash(&bytes) == slot.check {
            return Ok(bytes);
        }
        let path = inner.path.as_deref().unwrap_or(Path::new("the shelf"));
        let text = format!("{} is damaged at byte {}", path.display(), slot.at);
        Err(io::Error::new(io::ErrorKind::InvalidData, text))
    }

    /// Reports that the read data is invalid.
    pub fn condemn(&self) {
        self.is_damaged.store(true, Ordering::Release);
    }

    /// Whether something could not be read back.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Acquire)
    }

    /// How many bytes are on it.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.inner.lock().length
    }

    /// Waits until the disk has its data.
    ///
    /// # Errors
    /// The error of the system.
    pub fn sync(&self) -> io::Result<()> {
        let file = self.inner.lock().file.as_ref().map(File::try_clone).transpose()?;
        file.map_or(Ok(()), |file| file.sync_data())
    }

    fn of(inner: ShelfFile) -> Self {
        Self { inner: Mutex::new(inner), is_damaged: AtomicBool::new(false) }
    }
}

impl ShelfFile {
    fn file(&mut self) -> io::Result<&mut File> {
        let file = match (self.file.take(), &self.path) {
            (Some(file), _) => file,
            (None, None) => tempfile::tempfile()?,
            (None, Some(path)) => {
                private::file_options().write(true).create(true).truncate(true).open(path)?
            }
        };
        Ok(self.file.insert(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_on_comes_back_and_damage_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SHELF);
        let shelf = Shelf::create(&path).unwrap();
        assert!(!path.exists(), "an empty shelf is no file");
        let one = shelf.put(b"one").unwrap();
        let two = shelf.put(b"second").unwrap();
        assert_eq!(
            (shelf.get(&one).unwrap(), shelf.get(&two).unwrap()),
            (b"one".to_vec(), b"second".to_vec())
        );
        assert!(!shelf.is_damaged());
        std::fs::write(&path, b"onesecomd").unwrap();
        assert_eq!(shelf.get(&one).unwrap(), b"one");
        assert_eq!(shelf.get(&two).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert!(shelf.is_damaged());
    }

    #[test]
    fn one_that_has_retired_leaves_its_place_to_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SHELF);
        let old = Shelf::create(&path).unwrap();
        let slot = old.put(b"one").unwrap();
        old.retire();
        std::fs::write(&path, b"another").unwrap();
        assert!(old.get(&slot).is_err() && old.is_damaged());
        old.put(b"later").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"another");
    }

    #[test]
    fn a_shelf_is_opened_as_it_was_and_never_with_less() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SHELF);
        let shelf = Shelf::create(&path).unwrap();
        let one = shelf.put(b"one").unwrap();
        let length = shelf.length();
        shelf.put(b"later").unwrap();
        drop(shelf);
        let shelf = Shelf::open(&path, length).unwrap();
        let again = shelf.put(b"again").unwrap();
        assert_eq!(
            (shelf.get(&one).unwrap(), shelf.get(&again).unwrap()),
            (b"one".to_vec(), b"again".to_vec())
        );
        assert_eq!(std::fs::read(&path).unwrap(), b"oneagain");
        drop(shelf);
        assert_eq!(Shelf::open(&path, 100).unwrap_err().kind(), io::ErrorKind::InvalidData);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(Shelf::open(&path, 1).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
