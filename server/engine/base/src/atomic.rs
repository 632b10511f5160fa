//! Writing a file so that it holds the old bytes or the new ones at every moment, whatever happens.
//!
//! Rule: new bytes go to a temporary file beside the old one, are synced, and take its name in one step; mode and
//! owner stay. The check that nothing changed meanwhile is the last thing before that step.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::{Builder, NamedTempFile};

use crate::file_moves;

/// Replaces the contents of an existing file, given with all links followed. Returns whether it was replaced: not
/// when `is_unchanged` says no at the last moment. A file with several hard links is cut from the others.
pub fn replace(
    path: &Path,
    bytes: &[u8],
    metadata: &Metadata,
    is_unchanged: impl FnOnce() -> bool,
) -> io::Result<bool> {
    let temporary = write_beside(path, bytes, Builder::new().prefix(TEMPORARY_PREFIX))?;
    keep_owner(temporary.as_file(), metadata);
    temporary.as_file().set_permissions(metadata.permissions())?;
    take_place(temporary, path, is_unchanged)
}

/// The same with mode bits of its own; a link at `path` is itself replaced.
pub fn replace_as(
    path: &Path,
    bytes: &[u8],
    metadata: &Metadata,
    mode: u32,
    is_unchanged: impl FnOnce() -> bool,
) -> io::Result<bool> {
    let temporary = write_beside(path, bytes, Builder::new().prefix(TEMPORARY_PREFIX))?;
    keep_owner(temporary.as_file(), metadata);
    set_mode(temporary.as_file(), mode)?;
    take_place(temporary, path, is_unchanged)
}

/// Creates a file that must not exist yet, with the permissions the user's umask gives new files.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut builder = Builder::new();
    builder.prefix(TEMPORARY_PREFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let temporary = write_beside(path, bytes, &mut builder)?;
    temporary.as_file().sync_all()?;
    file_moves::persist_new(temporary, path)?;
    sync_folder(path);
    Ok(())
}

/// Creates a file that must not exist yet, readable by this user alone until it has its mode bits.
pub fn create_as(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let temporary = write_beside(path, bytes, Builder::new().prefix(TEMPORARY_PREFIX))?;
    set_mode(temporary.as_file(), mode)?;
    temporary.as_file().sync_all()?;
    file_moves::persist_new(temporary, path)?;
    sync_folder(path);
    Ok(())
}

/// Removes the temporary files that a killed process left beside `path`. Blocks on the disk.
pub fn sweep_beside(path: &Path) {
    let entries = folder_of(path).and_then(std::fs::read_dir).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(is_temporary_name);
        if is_ours
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && is_abandoned(&entry.path(), SystemTime::now()).unwrap_or(false)
            && let Err(error) = file_moves::remove_file(&entry.path())
        {
            tracing::warn!(%error, path = %entry.path().display(), "an abandoned temporary file stays");
        }
    }
}

/// Whether no process writes a temporary file. Between its creation and its lock a file is empty, so that an empty one is
/// abandoned only after [`EMPTY_AGE`].
fn is_abandoned(path: &Path, now: SystemTime) -> io::Result<bool> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let is_old =
        || Ok::<_, io::Error>(now.duration_since(metadata.modified()?).is_ok_and(|age| age > EMPTY_AGE));
    Ok((metadata.len() > 0 || is_old()?) && file.try_lock().is_ok())
}

/// Whether a name is one of a temporary file: the prefix, and letters or digits.
fn is_temporary_name(name: &str) -> bool {
    let random = name.strip_prefix(TEMPORARY_PREFIX);
    random.is_some_and(|random| {
        random.len() == TEMPORARY_LETTERS && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Whether this user may write the file. Asks for the mode bits too: to the superuser every file is writable, but
/// one that was made read-only was made so on purpose.
pub fn is_writable(path: &Path, metadata: &Metadata) -> bool {
    #[cfg(unix)]
    let is_allowed = rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
    #[cfg(not(unix))]
    let is_allowed = path.exists();
    is_allowed && !metadata.permissions().readonly()
}

/// How the name of a temporary file begins.
pub(crate) const TEMPORARY_PREFIX: &str = ".kode-";

/// Maximum time between the creation of a temporary file and its lock.
const EMPTY_AGE: Duration = Duration::from_secs(60);

/// How many letters or digits follow, as [`Builder`] has them.
pub(crate) const TEMPORARY_LETTERS: usize = 6;

fn write_beside(path: &Path, bytes: &[u8], builder: &mut Builder<'_, '_>) -> io::Result<NamedTempFile> {
    let mut temporary = builder.tempfile_in(folder_of(path)?)?;
    // As long as this process holds the lock, no sweep removes the file.
    if let Err(error) = temporary.as_file().try_lock() {
        tracing::debug!(%error, "a temporary file is not locked");
    }
    temporary.write_all(bytes)?;
    Ok(temporary)
}

fn folder_of(path: &Path) -> io::Result<&Path> {
    path.parent().ok_or_else(|| io::Error::other("the root is not a file"))
}

fn take_place(
    temporary: NamedTempFile,
    path: &Path,
    is_unchanged: impl FnOnce() -> bool,
) -> io::Result<bool> {
    temporary.as_file().sync_all()?;
    if !is_unchanged() {
        return Ok(false);
    }
    file_moves::persist(temporary, path)?;
    sync_folder(path);
    Ok(true)
}

/// Where there are no mode bits, those for writing decide whether the file is read-only.
fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    #[cfg(unix)]
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
    #[cfg(not(unix))]
    let permissions = {
        let mut permissions = file.metadata()?.permissions();
        permissions.set_readonly(mode & 0o222 == 0);
        permissions
    };
    file.set_permissions(permissions)
}

/// Only the superuser can give files away, so failing is the usual case when the owner is another user.
fn keep_owner(file: &File, metadata: &Metadata) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let is_same = |own: &Metadata| (own.uid(), own.gid()) == (metadata.uid(), metadata.gid());
        if !file.metadata().is_ok_and(|own| is_same(&own)) {
            let _ = fchown(file, Some(metadata.uid()), Some(metadata.gid()));
        }
    }
    #[cfg(not(unix))]
    let _ = (file, metadata);
}

/// Makes the new name survive a power loss. The file is written by now, so failing is only worth a note.
fn sync_folder(path: &Path) {
    #[cfg(unix)]
    if let Some(Err(error)) = path.parent().map(|folder| File::open(folder)?.sync_all()) {
        tracing::warn!(path = %path.display(), %error, "The folder could not be synced after a write");
    }
    #[cfg(not(unix))]
    let _ = path;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_at_the_last_moment_keeps_the_file_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, "old").unwrap();
        let metadata = path.metadata().unwrap();
        assert!(!replace(&path, b"new", &metadata, || false).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert!(replace(&path, b"new", &metadata, || true).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn creating_takes_nobodys_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        create(&path, b"first").unwrap();
        assert_eq!(create(&path, b"second").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_sweep_removes_what_killed_processes_left_beside_a_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        let at_work = write_beside(&path, b"new", Builder::new().prefix(TEMPORARY_PREFIX)).unwrap();
        for name in ["a.txt", ".kode-Ab12zZ", ".kode-settings", ".kode-Ab12zZ.json", ".kode.json"] {
            std::fs::write(folder.path().join(name), "text").unwrap();
        }
        sweep_beside(&path);
        let mut left: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.retain(|name| *name != *at_work.path().file_name().unwrap());
        left.sort();
        assert_eq!(left, [".kode-Ab12zZ.json", ".kode-settings", ".kode.json", "a.txt"]);
        assert!(at_work.path().exists());
    }

    #[test]
    fn a_sweep_leaves_a_file_that_is_not_locked_yet() {
        let folder = tempfile::tempdir().unwrap();
        let made = folder.path().join(".kode-Ab12zZ");
        std::fs::write(&made, "").unwrap();
        sweep_beside(&folder.path().join("a.txt"));
        assert!(made.exists());
        let later = SystemTime::now() + EMPTY_AGE + Duration::from_secs(1);
        assert!(is_abandoned(&made, later).unwrap());
    }
}
