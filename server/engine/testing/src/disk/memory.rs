//! A disk in memory that can lose its power.
//!
//! Rule: it promises as little as a file system may: bytes are safe once their file was synced, names once their folder
//! was; of unsynced data, a power cut leaves any blocks, in any order, and zeros where blocks are missing. A sync that
//! failed has dropped what it should have written.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kode_journal::disk::{Disk, DiskFile, OpenMode};
use parking_lot::{Mutex, MutexGuard};

/// Small, so that lines lie in several blocks.
const BLOCK: usize = 32;

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    files: Vec<Content>,
    names: BTreeMap<PathBuf, Node>,
    safe_names: BTreeMap<PathBuf, Node>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Folder,
    File(usize),
}

#[derive(Debug, Default)]
struct Content {
    now: Vec<u8>,
    safe: Vec<u8>,
    /// The unsynced writes of the disk, oldest first.
    pending: Vec<Change>,
    /// The handle that has the lock.
    locked_by: Option<usize>,
    handles: usize,
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Truncate { length: usize },
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes: new } => {
                let end = offset + new.len();
                bytes.resize(bytes.len().max(end), 0);
                bytes[*offset..end].copy_from_slice(new);
            }
            Self::Truncate { length } => bytes.resize(*length, 0),
        }
    }
}

/// Numbers that look like chance and are the same each time.
#[derive(Debug)]
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % bound
    }
}

impl Memory {
    /// A disk with these folders.
    pub fn with_folder(folder: &Path) -> Self {
        let disk = Self::default();
        let folders: BTreeMap<_, _> =
            folder.ancestors().map(|folder| (folder.to_path_buf(), Node::Folder)).collect();
        disk.state().safe_names = folders.clone();
        disk.state().names = folders;
        disk
    }

    /// The process that used it ends: what it wrote stays, its locks go.
    pub fn end_process(&self) {
        self.state().files.iter_mut().for_each(|file| file.locked_by = None);
    }

    /// The power goes, and comes back. What survives of the rest depends on `seed`.
    pub fn cut_power(&self, seed: u64) {
        let mut chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut state = self.state();
        for file in &mut state.files {
            file.locked_by = None;
            file.now = survivors(file, &mut chance);
            file.safe = file.now.clone();
            file.pending.clear();
        }
        let all: Vec<PathBuf> = state.names.keys().chain(state.safe_names.keys()).cloned().collect();
        for path in all {
            let (now, safe) = (state.names.get(&path).copied(), state.safe_names.get(&path).copied());
            let left = if now == safe || chance.below(2) == 0 { now } else { safe };
            match left {
                Some(node) => state.names.insert(path.clone(), node),
                None => state.names.remove(&path),
            };
        }
        // Nothing is in a folder that is not there.
        let names = state.names.clone();
        state.names.retain(|path, _| path.ancestors().skip(1).all(|folder| names.contains_key(folder)));
        state.safe_names = state.names.clone();
    }

    /// The bytes of a file, for a test to check.
    pub fn bytes(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        match state.names.get(path)? {
            Node::Folder => None,
            Node::File(file) => Some(state.files[*file].now.clone()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

/// The content of a file after a power cut.
fn survivors(file: &Content, chance: &mut Chance) -> Vec<u8> {
    let mut left = file.safe.clone();
    // How far the disk got: what came after that is gone, of what came before any blocks may be missing.
    let reached = chance.below(file.pending.len() + 1);
    let is_in_order = chance.below(3) == 0;
    for change in &file.pending[..reached] {
        match change {
            Change::Write { offset, bytes } if !is_in_order => {
                let end = offset + bytes.len();
                let mut at = *offset;
                while at < end {
                    let stop = end.min((at / BLOCK + 1) * BLOCK);
                    if chance.below(2) == 0 {
                        let block = bytes[at - offset..stop - offset].to_vec();
                        Change::Write { offset: at, bytes: block }.apply(&mut left);
                    } else if chance.below(2) == 0 {
                        // The length is there and the bytes are not.
                        left.resize(left.len().max(stop), 0);
                    }
                    at = stop;
                }
            }
            Change::Write { .. } | Change::Truncate { .. } => change.apply(&mut left),
        }
    }
    left
}

fn gone() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Disk for Memory {
    fn open(&self, path: &Path, how: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        let file = match (state.names.get(path).copied(), how) {
            (Some(Node::Folder), _) => return Err(io::ErrorKind::IsADirectory.into()),
            (Some(Node::File(_)), OpenMode::New) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(Node::File(file)), OpenMode::Read | OpenMode::Existing | OpenMode::Create) => file,
            (None, OpenMode::Read | OpenMode::Existing) => return Err(gone()),
            (None, OpenMode::Create | OpenMode::New) => {
                if path.parent().and_then(|folder| state.names.get(folder)) != Some(&Node::Folder) {
                    return Err(gone());
                }
                state.files.push(Content::default());
                let file = state.files.len() - 1;
                state.names.insert(path.to_path_buf(), Node::File(file));
                file
            }
        };
        state.files[file].handles += 1;
        let handle = state.files[file].handles;
        Ok(Arc::new(Handle { disk: self.clone(), file, handle }))
    }

    fn make_folder(&self, path: &Path) -> io::Result<bool> {
        let mut state = self.state();
        match state.names.get(path) {
            Some(Node::Folder) => return Ok(false),
            Some(Node::File(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
            None => {}
        }
        if path.parent().and_then(|folder| state.names.get(folder)) != Some(&Node::Folder) {
            return Err(gone());
        }
        state.names.insert(path.to_path_buf(), Node::Folder);
        Ok(true)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        let state = self.state();
        let inside = state.names.keys().filter(|path| path.parent() == Some(folder));
        Ok(inside.filter_map(|path| path.file_name().map(OsString::from)).collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let node = state.names.remove(from).ok_or_else(gone)?;
        state.names.insert(to.to_path_buf(), node);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.state().names.remove(path).map(drop).ok_or_else(gone)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.state();
        let State { names, safe_names, .. } = &mut *state;
        safe_names.retain(|path, _| path.parent() != Some(folder));
        let inside = names.iter().filter(|(path, _)| path.parent() == Some(folder));
        safe_names.extend(inside.map(|(path, node)| (path.clone(), *node)));
        Ok(())
    }
}

#[derive(Debug)]
struct Handle {
    disk: Memory,
    file: usize,
    handle: usize,
}

impl Handle {
    fn with<T>(&self, act: impl FnOnce(&mut Content) -> T) -> T {
        act(&mut self.disk.state().files[self.file])
    }

    fn change(&self, change: Change) {
        self.with(|file| {
            change.apply(&mut file.now);
            file.pending.push(change);
        });
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.with(|file| file.locked_by = file.locked_by.filter(|handle| *handle != self.handle));
    }
}

impl DiskFile for Handle {
    fn try_lock(&self) -> io::Result<bool> {
        Ok(self.with(|file| *file.locked_by.get_or_insert(self.handle) == self.handle))
    }

    fn unlock(&self) -> io::Result<()> {
        self.with(|file| file.locked_by = None);
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.with(|file| file.now.len() as u64))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(self.with(|file| {
            let rest = file.now.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
            let read = rest.len().min(buffer.len());
            buffer[..read].copy_from_slice(&rest[..read]);
            read
        }))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let offset = usize::try_from(offset).unwrap();
        self.change(Change::Write { offset, bytes: bytes.to_vec() });
        Ok(bytes.len())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.change(Change::Truncate { length: usize::try_from(length).unwrap() });
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.with(|file| {
            for change in std::mem::take(&mut file.pending) {
                change.apply(&mut file.safe);
            }
        });
        Ok(())
    }

    fn fail_sync(&self) {
        self.with(|file| file.pending.clear());
    }
}
