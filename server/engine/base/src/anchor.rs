//! A name in a folder that is held open: each file that it checks, writes, replaces or removes is in that folder and nowhere
//! else.
//!
//! Rule: the folder is opened once, without following a link, and every later step goes through its descriptor. A folder or
//! link that is swapped in between makes a step fail, or is replaced itself; it never leads a step elsewhere.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    Access, AtFlags, FileType, Gid, Mode, OFlags, RawMode, RenameFlags, Uid, accessat, fchmod, fchown, fstat,
    linkat, mkdirat, openat, readlinkat, renameat, renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::atomic::{TEMPORARY_LETTERS, TEMPORARY_PREFIX};
use crate::beneath;
pub use crate::entry::EntryType;

/// Mode bits of a file that is made for this user alone.
const PRIVATE: RawMode = 0o600;

/// Mode bits of a new file and of a new folder, before the user's umask takes some away.
const NEW_FILE: RawMode = 0o666;
const NEW_FOLDER: RawMode = 0o777;

/// The mode bits that a file can be given.
const MODE_BITS: RawMode = 0o7777;

/// How many names are tried for a temporary file.
const MAX_NAMES: usize = 16;

/// A name in an open folder. Its methods block on the disk.
#[derive(Debug)]
pub struct Anchor {
    folder: OwnedFd,
    name: OsString,
    /// Where the folder was when it was opened.
    place: PathBuf,
}

/// The target of a name, links not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryFacts {
    /// The kind.
    pub kind: EntryType,
    /// The mode bits.
    pub mode: u32,
    /// Size in bytes.
    pub size: u64,
    owner: (u32, u32),
}

impl Anchor {
    /// Opens the folder of a path, no component of which is a link.
    ///
    /// # Errors
    /// As [`beneath::open_in`]; [`beneath::is_link`] says whether a link is in the path.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::of(path, open_folder)
    }

    /// As [`Self::open`]; makes the folders that are missing, each in the one before it.
    ///
    /// # Errors
    /// As [`Self::open`], and when a folder cannot be made.
    pub fn open_or_make(path: &Path) -> io::Result<Self> {
        Self::of(path, open_or_make_folder)
    }

    fn of(path: &Path, open: impl FnOnce(&Path) -> io::Result<OwnedFd>) -> io::Result<Self> {
        let (Some(place), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the root is not a file"));
        };
        Ok(Self { folder: open(place)?, name: name.to_owned(), place: place.to_path_buf() })
    }

    /// Whether the folder is still where it was opened, with no link on the way to it.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        let identity = |folder: &OwnedFd| fstat(folder).map(|facts| (facts.st_dev, facts.st_ino)).ok();
        let now = open_folder(&self.place).ok().as_ref().and_then(identity);
        now.is_some() && now == identity(&self.folder)
    }

    /// The target of the name.
    ///
    /// # Errors
    /// The system's; `NotFound` for nothing.
    pub fn facts(&self) -> io::Result<EntryFacts> {
        let facts = statat(&self.folder, &*self.name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = match FileType::from_raw_mode(facts.st_mode) {
            FileType::RegularFile => EntryType::File,
            FileType::Directory => EntryType::Folder,
            FileType::Symlink => EntryType::Link,
            _ => EntryType::Other,
        };
        let size = u64::try_from(facts.st_size).unwrap_or_default();
        Ok(EntryFacts { kind, mode: bits_of(facts.st_mode), size, owner: (facts.st_uid, facts.st_gid) })
    }

    /// Opens what the name represents, for reading. A pipe is not waited for.
    ///
    /// # Errors
    /// The system's; for a link one that [`beneath::is_link`] knows.
    pub fn open_file(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.folder, &*self.name, flags, Mode::empty())?))
    }

    /// Where the link leads that the name represents.
    ///
    /// # Errors
    /// The system's, and when it is no link.
    pub fn read_link(&self) -> io::Result<PathBuf> {
        let target = readlinkat(&self.folder, &*self.name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// Whether this user may write the file. Asks for the mode bits too: to the superuser every file is writable, but one
    /// that was made read-only was made so on purpose.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        let is_allowed = accessat(&self.folder, &*self.name, Access::WRITE_OK, AtFlags::empty()).is_ok();
        is_allowed && self.facts().is_ok_and(|facts| facts.mode & 0o222 != 0)
    }

    /// Replaces the file or link that `old` is of by a file with these bytes, its owner and the mode bits. Returns whether it
    /// was replaced: not when `is_unchanged` says no at the last moment. A file with several hard links is cut from the others.
    ///
    /// # Errors
    /// The system's.
    pub fn replace(
        &self,
        bytes: &[u8],
        old: &EntryFacts,
        mode: u32,
        is_unchanged: impl FnOnce() -> bool,
    ) -> io::Result<bool> {
        let temporary = self.write_beside(bytes, PRIVATE)?;
        temporary.keep_owner(old.owner);
        temporary.set_mode(mode)?;
        temporary.file.sync_all()?;
        if !is_unchanged() {
            return Ok(false);
        }
        temporary.entry.take_place()?;
        self.sync_folder();
        Ok(true)
    }

    /// Makes a file, and replaces no other file; with the permissions that the user's umask gives new files where no
    /// mode bits are given.
    ///
    /// # Errors
    /// The system's; `AlreadyExists` when something is there.
    pub fn create(&self, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
        let temporary = self.write_beside(bytes, if mode.is_some() { PRIVATE } else { NEW_FILE })?;
        if let Some(mode) = mode {
            temporary.set_mode(mode)?;
        }
        temporary.file.sync_all()?;
        temporary.entry.take_free_place()?;
        self.sync_folder();
        Ok(())
    }

    /// Puts a symbolic link in the place of the file or link that is there, or of nothing. Returns whether it did, as
    /// [`Self::replace`] does.
    ///
    /// # Errors
    /// The system's.
    pub fn link(&self, target: &Path, is_unchanged: impl FnOnce() -> bool) -> io::Result<bool> {
        let (entry, ()) = self.make_beside(|name| symlinkat(target, &self.folder, name))?;
        if !is_unchanged() {
            return Ok(false);
        }
        entry.take_place()?;
        self.sync_folder();
        Ok(true)
    }

    /// Removes the file or link; of a link not what it leads to.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(&self) -> io::Result<()> {
        unlinkat(&self.folder, &*self.name, AtFlags::empty())?;
        Ok(())
    }

    /// Removes the folder, which must be empty.
    ///
    /// # Errors
    /// The system's.
    pub fn remove_folder(&self) -> io::Result<()> {
        unlinkat(&self.folder, &*self.name, AtFlags::REMOVEDIR)?;
        Ok(())
    }

    fn write_beside(&self, bytes: &[u8], mode: RawMode) -> io::Result<TemporaryFile<'_>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        let (entry, file) = self.make_beside(|name| openat(&self.folder, name, flags, mode))?;
        let mut file = File::from(file);
        // As long as this process holds the lock, no sweep removes the file.
        if let Err(error) = file.try_lock() {
            tracing::debug!(%error, "a temporary file is not locked");
        }
        file.write_all(bytes)?;
        Ok(TemporaryFile { file, entry })
    }

    /// Makes something under a name of its own.
    fn make_beside<T>(
        &self,
        make: impl Fn(&OsStr) -> rustix::io::Result<T>,
    ) -> io::Result<(TemporaryEntry<'_>, T)> {
        for _ in 0..MAX_NAMES {
            // The end of it is random.
            let random = uuid::Uuid::now_v7().simple().to_string();
            let letters = &random[random.len() - TEMPORARY_LETTERS..];
            let name = OsString::from(format!("{TEMPORARY_PREFIX}{letters}"));
            match make(&name) {
                Ok(made) => return Ok((TemporaryEntry { anchor: self, name: Some(name) }, made)),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::EXIST.into())
    }

    /// Makes a new name survive a power loss. The file is written by now, so failing is only worth a note.
    fn sync_folder(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let synced =
            openat(&self.folder, ".", flags, Mode::empty()).and_then(|folder| rustix::fs::fsync(&folder));
        if let Err(error) = synced {
            tracing::warn!(path = %self.place.display(), %error, "The folder could not be synced after a write");
        }
    }
}

/// A temporary file beside the one whose place it is to take.
struct TemporaryFile<'a> {
    file: File,
    entry: TemporaryEntry<'a>,
}

impl TemporaryFile<'_> {
    fn set_mode(&self, mode: u32) -> io::Result<()> {
        let mode = RawMode::try_from(mode).map_err(io::Error::other)?;
        Ok(fchmod(&self.file, Mode::from_raw_mode(mode & MODE_BITS))?)
    }

    /// Only the superuser can give files away, so failing is the usual case when the owner is another user.
    fn keep_owner(&self, (user, group): (u32, u32)) {
        let is_same = fstat(&self.file).is_ok_and(|own| (own.st_uid, own.st_gid) == (user, group));
        if !is_same {
            let _ = fchown(&self.file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
        }
    }
}

/// A name of its own beside an anchor's, removed with what it represents unless it takes the anchor's place.
struct TemporaryEntry<'a> {
    anchor: &'a Anchor,
    name: Option<OsString>,
}

impl TemporaryEntry<'_> {
    fn take_place(mut self) -> io::Result<()> {
        let Anchor { folder, name, .. } = self.anchor;
        let own = self.name.as_deref().unwrap_or_default();
        renameat(folder, own, folder, &**name)?;
        self.name = None;
        Ok(())
    }

    fn take_free_place(mut self) -> io::Result<()> {
        let Anchor { folder, name, .. } = self.anchor;
        let own = self.name.as_deref().unwrap_or_default();
        match renameat_with(folder, own, folder, &**name, RenameFlags::NOREPLACE) {
            Ok(()) => self.name = None,
            // The file system does not know of it. Of two names the temporary one is removed.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                linkat(folder, own, folder, &**name, AtFlags::empty())?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

impl Drop for TemporaryEntry<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.name.take()
            && let Err(error) = unlinkat(&self.anchor.folder, &*name, AtFlags::empty())
        {
            tracing::warn!(%error, name = %name.display(), "a temporary file stays");
        }
    }
}

/// The mode bits of a status, whatever the width of them is on this system.
fn bits_of(mode: impl Into<u32>) -> u32 {
    const BITS: u32 = 0o7777;
    mode.into() & BITS
}

/// Opens a folder. A link at its own name is an error of a link, as one on the way to it is: the kernel would call it no folder.
fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let below = path.strip_prefix("/").map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let root = beneath::pass_folder(Path::new("/"))?;
    beneath::pass_folder_in(root, &below.join("."))
}

/// Opens a folder; makes it and those above it where they are missing.
fn open_or_make_folder(path: &Path) -> io::Result<OwnedFd> {
    match open_folder(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::NOENT.into());
    };
    let parent = open_or_make_folder(parent)?;
    match mkdirat(&parent, name, Mode::from_raw_mode(NEW_FOLDER)) {
        Ok(()) | Err(Errno::EXIST) => beneath::pass_folder_in(parent.as_fd(), &Path::new(name).join(".")),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;
