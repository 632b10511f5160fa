//! Files that were set aside: kept outside of the reach of commands until the user decides.
//!
//! Rule: the user sees exactly the content that is restored. It is copied before the user sees it, because the command may
//! still hold the file open; nothing is followed and nothing is overwritten on the way there and back.

#![expect(
    clippy::disallowed_methods,
    reason = "it writes files of its own, or those that a call was allowed"
)]

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, openat, readlinkat, renameat_with, statat, unlinkat,
};
use serde::{Deserialize, Serialize};

use kode_base::paths::real_path;

use crate::sandbox::policy::QuarantinedFile;
use kode_base::{beneath, private};

/// The folder for them in the product's state.
const FOLDER: &str = "set-aside";
/// The known facts about one.
const RECORD: &str = "record.json";
/// Its content.
const CONTENT: &str = "content";
/// A removed file while it is copied.
const TAKEN: &str = "taken";
/// How many bytes are kept of one.
const MAX_BYTES: u64 = 16 << 20;
/// How many files are kept of one.
const MAX_FILES: usize = 5_000;
/// How deep folders may lie in folders.
const MAX_DEPTH: usize = 64;
/// The file that a process locks while it puts guarded files back or sets new ones aside.
const LOCK: &str = "lock";
/// How long another process is waited for, and after how long its lock is tried again.
const MAX_WAIT: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(2);
/// How long they are kept.
const AGE: Duration = Duration::from_secs(30 * 24 * 3600);
/// How much text of a file is shown, in bytes.
const MAX_SHOWN: u64 = 1_200;
/// How many files of a folder are named.
const MAX_NAMED: usize = 12;
const PRIVATE: u32 = 0o700;

/// The folder that such files are kept in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Quarantine {
    folder: PathBuf,
}

impl Quarantine {
    /// That of the product's state.
    pub(crate) fn of(state: &Path) -> Self {
        Self { folder: state.join(FOLDER) }
    }

    /// Waits until no other process or thread puts guarded files back or sets new ones aside, and keeps them waiting until the
    /// result is dropped. Otherwise one takes away what another one has just put back.
    #[must_use]
    pub(crate) fn lock(&self) -> Option<File> {
        let open = || {
            private::create_folders(&self.folder)?;
            File::options().create(true).truncate(false).write(true).open(self.folder.join(LOCK))
        };
        let file = open()
            .inspect_err(|error| tracing::debug!(%error, "the folder of set-aside files cannot be locked"))
            .ok()?;
        let deadline = Instant::now() + MAX_WAIT;
        while file.try_lock().is_err() && Instant::now() < deadline {
            thread::sleep(RETRY);
        }
        Some(file)
    }

    /// Removes the file at a path and keeps it. Nothing where nothing is there by now.
    ///
    /// # Errors
    /// When it could not be taken away; it may still be there then.
    pub(crate) fn take(&self, path: &Path, obeyed_by: &str) -> io::Result<Option<QuarantinedFile>> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        // No link on the way: the command may have put one there meanwhile.
        let parent = match beneath::open_folder(parent) {
            Ok(parent) => parent,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).is_err() {
            return Ok(None);
        }
        let item = self.item()?;
        let (kept, taken) = (item.join(CONTENT), item.join(TAKEN));
        let item_folder = beneath::open_folder(&item)?;
        let is_moved = renameat_with(&parent, name, &item_folder, TAKEN, RenameFlags::NOREPLACE).is_ok();
        let mut copy = BoundedCopy::default();
        let copied = match is_moved {
            true => copy.entry(&item_folder, Path::new(TAKEN), &kept, 0),
            false => copy.entry(&parent, Path::new(name), &kept, 0),
        };
        let is_complete = match copied {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "a file that was set aside is not kept whole");
                false
            }
        };
        let mut renamed = None;
        match (is_moved, is_complete) {
            (true, true) => fs::remove_dir_all(&taken).or_else(|_| fs::remove_file(&taken))?,
            (true, false) => {}
            (false, true) => remove(&parent, Path::new(name), 0)?,
            (false, false) => renamed = Some(rename_beside(&parent, name)?),
        }
        // Not kept whole, it stays as it is under a name that nothing obeys.
        let kept = match (is_complete, renamed) {
            (true, _) => kept,
            (false, None) => taken,
            (false, Some(name)) => path.with_file_name(name),
        };
        let set_aside =
            QuarantinedFile { path: path.to_path_buf(), kept, obeyed_by: obeyed_by.to_owned(), is_complete };
        fs::write(item.join(RECORD), serde_json::to_vec(&set_aside)?)?;
        Ok(Some(set_aside))
    }

    /// A folder for one more, and none of those that are too old.
    fn item(&self) -> io::Result<PathBuf> {
        private::create_folders(&self.folder)?;
        self.sweep();
        let item = tempfile::Builder::new().prefix("item-").rand_bytes(12).tempdir_in(&self.folder)?;
        real_path(item.keep())
    }

    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let age = entry.metadata().and_then(|found| found.modified()).ok();
            let is_old =
                age.and_then(|made| SystemTime::now().duration_since(made).ok()).is_some_and(|age| age > AGE);
            if is_old
                && entry.file_name() != LOCK
                && let Err(error) = fs::remove_dir_all(entry.path())
            {
                tracing::debug!(%error, "files that were set aside long ago are still there");
            }
        }
    }
}

impl QuarantinedFile {
    /// Puts it back where it was.
    ///
    /// # Errors
    /// When something is there by now, when it was not kept whole, or what the system says.
    pub fn put_back(&self) -> io::Result<()> {
        if !self.is_complete {
            return Err(io::Error::other("it was too large to be kept whole"));
        }
        let (Some(parent), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let parent = beneath::open_folder(parent)?;
        if statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let from = self.kept.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let from = beneath::open_folder(from)?;
        let kept = self.kept.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let to = beneath::location(&parent)?.join(name);
        BoundedCopy::default().entry(&from, Path::new(kept), &to, 0)
    }

    /// Its content, for people: the beginning of its text, or the names of its files and the text of the first.
    #[must_use]
    pub fn excerpt(&self) -> String {
        let Ok(metadata) = fs::symlink_metadata(&self.kept) else { return String::new() };
        if !metadata.is_dir() {
            return beginning(&self.kept);
        }
        let mut files = Vec::new();
        list(&self.kept, &mut files, 0);
        files.sort();
        let shown = files.iter().take(MAX_NAMED).filter_map(|file| {
            let name = file.strip_prefix(&self.kept).ok()?;
            Some(format!("{}:\n{}", name.display(), beginning(file)))
        });
        let mut text = String::new();
        for part in shown {
            if text.len() > usize::try_from(MAX_SHOWN).unwrap_or(usize::MAX) {
                break;
            }
            text.push_str(&part);
            text.push('\n');
        }
        match files.len().saturating_sub(MAX_NAMED) {
            0 => text,
            more => format!("{text}… and {more} more files"),
        }
    }
}

fn beginning(file: &Path) -> String {
    if let Ok(target) = fs::read_link(file) {
        return format!("a link to {}", target.display());
    }
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(MAX_SHOWN).read_to_end(&mut bytes));
    match read {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => format!("(not readable: {error})"),
    }
}

fn list(folder: &Path, files: &mut Vec<PathBuf>, depth: usize) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => list(&entry.path(), files, depth + 1),
            Ok(_) => files.push(entry.path()),
            Err(_) => {}
        }
    }
}

/// A copy of files, folders and links, within bounds.
#[derive(Default)]
struct BoundedCopy {
    files: usize,
    bytes: u64,
}

impl BoundedCopy {
    /// Copies what has a name in an open folder to a path where nothing is.
    fn entry(&mut self, folder: impl AsFd, name: &Path, to: &Path, depth: usize) -> io::Result<()> {
        self.files += 1;
        if self.files > MAX_FILES || depth > MAX_DEPTH {
            return Err(io::Error::other(format!("it holds more than {MAX_FILES} files")));
        }
        let found = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Symlink => {
                let target = readlinkat(&folder, name, Vec::new())?;
                symlink(PathBuf::from(OsString::from_vec(target.into_bytes())), to)
            }
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let opened = openat(&folder, name, flags, Mode::empty())?;
                fs::DirBuilder::new().mode(rights(found.st_mode) | PRIVATE).create(to)?;
                for entry in names_in(&opened)? {
                    self.entry(&opened, &entry, &to.join(&entry), depth + 1)?;
                }
                Ok(())
            }
            FileType::RegularFile => self.file(folder, name, to),
            // A pipe or a socket has no content.
            _ => Ok(()),
        }
    }

    fn file(&mut self, folder: impl AsFd, name: &Path, to: &Path) -> io::Result<()> {
        let from = beneath::open_regular(folder, name)?;
        let metadata = from.metadata()?;
        let room = MAX_BYTES.saturating_sub(self.bytes);
        let mut bytes = Vec::new();
        from.take(room + 1).read_to_end(&mut bytes)?;
        self.bytes += bytes.len() as u64;
        if self.bytes > MAX_BYTES {
            return Err(io::Error::other(format!("it is larger than {MAX_BYTES} bytes")));
        }
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(metadata.mode() & 0o777).open(to)?;
        file.write_all(&bytes)?;
        file.set_permissions(fs::Permissions::from_mode(metadata.mode() & 0o777))
    }
}

fn names_in(folder: &OwnedFd) -> io::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = PathBuf::from(OsString::from_vec(entry?.file_name().to_bytes().to_vec()));
        if name != Path::new(".") && name != Path::new("..") {
            names.push(name);
        }
    }
    Ok(names)
}

/// The rights in a mode, whatever its width is on this system.
fn rights(mode: impl Into<u32>) -> u32 {
    mode.into() & 0o777
}

/// Gives a file that is too large to be copied a name beside its own.
fn rename_beside(folder: impl AsFd, name: &OsStr) -> io::Result<OsString> {
    for number in 1..=MAX_FILES {
        let mut other = name.to_owned();
        other.push(format!(".set-aside-{number}"));
        match renameat_with(&folder, name, &folder, &*other, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(other),
            Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes what has a name in an open folder, with all that is in it, and follows nothing.
fn remove(folder: impl AsFd, name: &Path, depth: usize) -> io::Result<()> {
    let found = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
        return Ok(unlinkat(&folder, name, AtFlags::empty())?);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(&folder, name, flags, Mode::empty())?;
    if depth < MAX_DEPTH {
        for entry in names_in(&opened)? {
            remove(&opened, &entry, depth + 1)?;
        }
    }
    Ok(unlinkat(&folder, name, AtFlags::REMOVEDIR)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture() -> (tempfile::TempDir, PathBuf, Quarantine) {
        let folder = tempfile::tempdir().unwrap();
        let base = real_path(folder.path()).unwrap();
        fs::create_dir_all(base.join("w/.vscode")).unwrap();
        fs::write(base.join("w/.vscode/tasks.json"), "evil").unwrap();
        symlink("/etc/passwd", base.join("w/.vscode/link")).unwrap();
        let store = Quarantine::of(&base.join("state"));
        (folder, base, store)
    }

    #[test]
    fn what_is_set_aside_is_gone_and_can_be_put_back_as_it_was() {
        let (_keep, base, store) = fixture();
        let path = base.join("w/.vscode");
        let set_aside = store.take(&path, "the editor").unwrap().unwrap();
        assert!(!path.exists() && set_aside.is_complete);
        assert!(set_aside.kept.starts_with(base.join("state")));
        assert!(set_aside.excerpt().contains("tasks.json") && set_aside.excerpt().contains("evil"));
        set_aside.put_back().unwrap();
        assert_eq!(fs::read_to_string(path.join("tasks.json")).unwrap(), "evil");
        assert_eq!(fs::read_link(path.join("link")).unwrap(), Path::new("/etc/passwd"));
        assert_eq!(set_aside.put_back().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(store.take(&base.join("w/none"), "git").unwrap(), None);
    }

    #[test]
    fn nothing_is_taken_through_a_link() {
        let (_keep, base, store) = fixture();
        fs::create_dir(base.join("outside")).unwrap();
        fs::write(base.join("outside/.envrc"), "mine").unwrap();
        symlink("../outside", base.join("w/sub")).unwrap();
        assert!(store.take(&base.join("w/sub/.envrc"), "direnv").is_err());
        assert_eq!(fs::read_to_string(base.join("outside/.envrc")).unwrap(), "mine");
    }

    #[test]
    fn whoever_holds_it_open_does_not_change_what_is_put_back() {
        let (_keep, base, store) = fixture();
        let path = base.join("w/.vscode");
        let mut open = fs::OpenOptions::new().append(true).open(path.join("tasks.json")).unwrap();
        let set_aside = store.take(&path, "the editor").unwrap().unwrap();
        open.write_all(b"more").unwrap();
        set_aside.put_back().unwrap();
        assert_eq!(fs::read_to_string(path.join("tasks.json")).unwrap(), "evil");
    }
}
