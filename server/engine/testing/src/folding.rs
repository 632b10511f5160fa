//! A disk in memory whose folders fold names as a value says: as NTFS, APFS and ext4 do, and a mixture of them.
//!
//! Rule: it is the oracle of tests: which names are one file is decided here by rules of its own, not by those under test.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kode_base::spelling::{FileId, FolderStamp, NameDisk};
use parking_lot::Mutex;
use unicode_normalization::UnicodeNormalization;

/// How the names in a folder are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameFolding {
    /// Byte for byte, as ext4 does.
    None,
    /// Letter by letter in their large forms, as NTFS does: composed and split letters are two names.
    Letters,
    /// Composed, and letters in their full folding, as APFS does: `ß` is `SS`.
    LettersAndForms,
    /// Composed alone, as APFS in its other format does.
    Forms,
}

impl NameFolding {
    fn key(self, name: &str) -> String {
        let letters = |name: &str| {
            let large = |letter: char| {
                let mut large = letter.to_uppercase();
                match (large.next(), large.next()) {
                    (Some(large), None) => large,
                    _ => letter,
                }
            };
            name.chars().map(large).collect()
        };
        match self {
            Self::None => name.to_owned(),
            Self::Letters => letters(name),
            Self::LettersAndForms => {
                name.nfd().collect::<String>().to_uppercase().to_lowercase().nfd().collect()
            }
            Self::Forms => name.nfd().collect(),
        }
    }
}

#[derive(Debug)]
struct FoldingFolder {
    folding: NameFolding,
    disk: u64,
    /// By their keys: the listed name and the number of the file.
    entries: BTreeMap<String, (String, u64)>,
    changed: SystemTime,
}

#[derive(Debug, Default)]
struct FoldingState {
    folders: HashMap<u64, FoldingFolder>,
    next: u64,
    clock: u64,
}

/// A disk in memory.
#[derive(Clone, Debug)]
pub struct FoldingDisk {
    state: Arc<Mutex<FoldingState>>,
    questions: Arc<AtomicUsize>,
}

impl FoldingDisk {
    /// A disk whose root compares names in this way.
    #[must_use]
    pub fn new(folding: NameFolding) -> Self {
        let disk = Self { state: Arc::default(), questions: Arc::default() };
        disk.state.lock().folders.insert(0, Self::folder(folding, 1, UNIX_EPOCH));
        disk
    }

    fn folder(folding: NameFolding, disk: u64, changed: SystemTime) -> FoldingFolder {
        FoldingFolder { folding, disk, entries: BTreeMap::new(), changed }
    }

    /// How many questions it has answered.
    #[must_use]
    pub fn questions(&self) -> usize {
        self.questions.load(Ordering::Relaxed)
    }

    /// Makes a folder, and those above it, as the folder it is in is.
    pub fn make_folder(&self, path: &str) {
        self.make(path, true, None);
    }

    /// Makes a folder that is a disk of its own.
    pub fn mount(&self, path: &str, folding: NameFolding) {
        self.make(path, true, Some(folding));
    }

    /// Makes a file, in the folder of this name.
    pub fn write(&self, path: &str) {
        self.make(path, false, None);
    }

    /// Removes an entry.
    pub fn remove(&self, path: &str) {
        let mut state = self.state.lock();
        let (folder, name) = split(path);
        let folder = state.find(folder).unwrap();
        let changed = state.tick();
        let folder = state.folders.get_mut(&folder).unwrap();
        let key = folder.folding.key(&name);
        folder.entries.remove(&key).unwrap();
        folder.changed = changed;
    }

    /// The number of the file that a path names.
    #[must_use]
    pub fn file(&self, path: &Path) -> Option<u64> {
        self.state.lock().find(path)
    }

    fn make(&self, path: &str, is_folder: bool, mounted: Option<NameFolding>) {
        let (parent, name) = split(path);
        if self.file(parent).is_none() {
            self.make(parent.to_str().unwrap(), true, None);
        }
        let mut state = self.state.lock();
        let parent = state.find(parent).unwrap();
        let changed = state.tick();
        state.next += 1;
        let number = state.next;
        let folder = state.folders.get_mut(&parent).unwrap();
        let key = folder.folding.key(&name);
        if folder.entries.contains_key(&key) {
            return;
        }
        folder.entries.insert(key, (name, number));
        folder.changed = changed;
        let (folding, disk) = (folder.folding, folder.disk);
        if is_folder {
            let disk = if mounted.is_some() { number } else { disk };
            state.folders.insert(number, Self::folder(mounted.unwrap_or(folding), disk, changed));
        }
    }

    fn ask(&self) -> parking_lot::MutexGuard<'_, FoldingState> {
        self.questions.fetch_add(1, Ordering::Relaxed);
        self.state.lock()
    }
}

impl FoldingState {
    fn find(&self, path: &Path) -> Option<u64> {
        let mut number = 0;
        for name in path.components().skip(1) {
            let folder = self.folders.get(&number)?;
            number = folder.entries.get(&folder.folding.key(name.as_os_str().to_str()?))?.1;
        }
        Some(number)
    }

    /// Years ago, so that no list is too new to be kept.
    fn tick(&mut self) -> SystemTime {
        self.clock += 1;
        UNIX_EPOCH + Duration::from_secs(self.clock)
    }
}

fn split(path: &str) -> (&Path, String) {
    let path = Path::new(path);
    (path.parent().unwrap(), path.file_name().unwrap().to_str().unwrap().to_owned())
}

impl NameDisk for FoldingDisk {
    fn names(&self, folder: &Path, limit: usize) -> io::Result<Vec<OsString>> {
        let state = self.ask();
        let folder = state.find(folder).and_then(|number| state.folders.get(&number));
        let folder = folder.ok_or(io::ErrorKind::NotADirectory)?;
        Ok(folder.entries.values().map(|(name, _)| name.into()).take(limit).collect())
    }

    fn identity(&self, path: &Path) -> Option<FileId> {
        let number = self.ask().find(path)?;
        Some(FileId::new_inode(1, number))
    }

    fn stamp(&self, folder: &Path) -> Option<FolderStamp> {
        let state = self.ask();
        let folder = state.folders.get(&state.find(folder)?)?;
        Some(FolderStamp { disk: folder.disk, changed: folder.changed })
    }

    fn folds_by_default(&self) -> bool {
        false
    }
}
