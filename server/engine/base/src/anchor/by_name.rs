//! The same by names, where the system opens nothing relative to a folder.
//!
//! Rule: what an anchor promises of swapped folders and links does not hold here.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

pub use crate::entry::EntryType;
use crate::{atomic, file_moves};

pub use {NamedAnchor as Anchor, PathFacts as EntryFacts};

/// A name in a folder. Its methods block on the disk.
#[derive(Debug)]
pub struct NamedAnchor(PathBuf);

/// The target of a name, links not followed.
#[derive(Clone, Debug)]
pub struct PathFacts {
    /// The kind.
    pub kind: EntryType,
    /// The mode bits, as far as there are any.
    pub mode: u32,
    /// Size in bytes.
    pub size: u64,
    metadata: Metadata,
}

impl NamedAnchor {
    /// Takes a path.
    ///
    /// # Errors
    /// `NotFound` when its folder is not there.
    pub fn open(path: &Path) -> io::Result<Self> {
        path.parent().map_or(Ok(()), |folder| folder.metadata().map(drop))?;
        Ok(Self(path.to_path_buf()))
    }

    /// As [`Self::open`]; makes the folders that are missing.
    ///
    /// # Errors
    /// When a folder cannot be made.
    pub fn open_or_make(path: &Path) -> io::Result<Self> {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        Ok(Self(path.to_path_buf()))
    }

    /// Whether the folder is still there.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.0.parent().is_some_and(Path::is_dir)
    }

    /// The target of the name.
    ///
    /// # Errors
    /// The system's.
    pub fn facts(&self) -> io::Result<PathFacts> {
        let metadata = self.0.symlink_metadata()?;
        let kind = match metadata.file_type() {
            kind if kind.is_file() => EntryType::File,
            kind if kind.is_dir() => EntryType::Folder,
            kind if kind.is_symlink() => EntryType::Link,
            _ => EntryType::Other,
        };
        let mode = if metadata.permissions().readonly() { 0o444 } else { 0o644 };
        Ok(PathFacts { kind, mode, size: metadata.len(), metadata })
    }

    /// Opens the file for reading.
    ///
    /// # Errors
    /// The system's.
    pub fn open_file(&self) -> io::Result<File> {
        File::open(&self.0)
    }

    /// Where a link leads.
    ///
    /// # Errors
    /// The system's.
    pub fn read_link(&self) -> io::Result<PathBuf> {
        std::fs::read_link(&self.0)
    }

    /// Whether this user may write the file.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.0.metadata().is_ok_and(|metadata| atomic::is_writable(&self.0, &metadata))
    }

    /// Replaces a file.
    ///
    /// # Errors
    /// The system's.
    pub fn replace(
        &self,
        bytes: &[u8],
        old: &PathFacts,
        mode: u32,
        is_unchanged: impl FnOnce() -> bool,
    ) -> io::Result<bool> {
        atomic::replace_as(&self.0, bytes, &old.metadata, mode, is_unchanged)
    }

    /// Makes a file.
    ///
    /// # Errors
    /// The system's.
    pub fn create(&self, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
        match mode {
            Some(mode) => atomic::create_as(&self.0, bytes, mode),
            None => atomic::create(&self.0, bytes),
        }
    }

    /// Symbolic links are not made here.
    ///
    /// # Errors
    /// Always.
    pub fn link(&self, _target: &Path, _is_unchanged: impl FnOnce() -> bool) -> io::Result<bool> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "symbolic links are not made on this system"))
    }

    /// Removes the file.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(&self) -> io::Result<()> {
        file_moves::remove_file(&self.0)
    }

    /// Removes the folder, which must be empty.
    ///
    /// # Errors
    /// The system's.
    pub fn remove_folder(&self) -> io::Result<()> {
        file_moves::remove_folder(&self.0)
    }
}
