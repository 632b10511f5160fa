//! Temporary folders of this process, and the removal of those that ended processes left.
//!
//! Rule: a folder is its owner's as long as the owner holds the lock of the file in it. The system releases the lock when
//! the process ends, however it ends. The sweep removes only folders of this user whose lock is free.

use std::fs::{self, DirEntry, File, OpenOptions};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::file_moves;

/// The prefix of all names in the system's folder for temporary files.
pub const PREFIX: &str = "kode-ls-";

/// The name of the locked file in a folder.
const OWNER: &str = ".owner";

/// The name of that file until it is locked: a sweep that ran between the two would take the folder for an abandoned one.
const NEW_OWNER: &str = ".owner.new";

/// The mode of a folder.
#[cfg(unix)]
const FOLDER_MODE: u32 = 0o700;

/// The least age of what is abandoned without the file of an owner: a file without a folder, an empty folder.
const MIN_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The most entries of the system's folder that one sweep examines.
const MAX_ENTRIES: usize = 100_000;

/// A temporary folder that only this user can read. It is removed when the value is dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    /// Holds the lock.
    _owner: File,
}

impl Scratch {
    /// A new folder in the system's folder for temporary files.
    ///
    /// # Errors
    /// The error of the system.
    pub fn new() -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(parent: &Path) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        // By itself it leaves the mode to the umask, and other users could hold the lock.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(FOLDER_MODE));
        let folder = builder.tempdir_in(parent)?;
        let new_owner = folder.path().join(NEW_OWNER);
        let owner = OpenOptions::new().write(true).create_new(true).open(&new_owner)?;
        owner.try_lock()?;
        file_moves::rename(&new_owner, &folder.path().join(OWNER))?;
        Ok(Self { folder, _owner: owner })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes what ended processes of this user left in the system's folder for temporary files. Blocks on the disk.
pub fn sweep() {
    sweep_in(&std::env::temp_dir(), SystemTime::now());
}

fn sweep_in(parent: &Path, now: SystemTime) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.take(MAX_ENTRIES).flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX))
            && let Err(error) = remove_if_abandoned(&entry, now)
        {
            tracing::debug!(%error, path = %entry.path().display(), "an abandoned temporary file stays");
        }
    }
}

fn remove_if_abandoned(entry: &DirEntry, now: SystemTime) -> io::Result<()> {
    let metadata = entry.metadata()?;
    if !is_own(&metadata) {
        return Ok(());
    }
    let path = entry.path();
    let is_old = now.duration_since(metadata.modified()?).is_ok_and(|age| age > MIN_AGE);
    if metadata.is_file() {
        return if is_old { file_moves::remove_file(&path) } else { Ok(()) };
    }
    if !metadata.is_dir() {
        return Ok(());
    }
    let owner = match File::open(path.join(OWNER)) {
        Ok(owner) => owner,
        // A process is making it, or one was killed while it removed it and left it empty.
        Err(_) if is_old => return file_moves::remove_folder(&path),
        Err(_) => return Ok(()),
    };
    if owner.try_lock().is_err() {
        return Ok(());
    }
    file_moves::remove_all(&path)
}

#[cfg(unix)]
fn is_own(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(metadata) == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_own(_metadata: &fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_sweep_leaves_folders_that_are_being_made() {
        let parent = tempfile::tempdir().unwrap();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    sweep_in(parent.path(), SystemTime::now());
                }
            });
            let stays =
                (0..10_000).all(|_| Scratch::new_in(parent.path()).is_ok_and(|made| made.path().exists()));
            is_done.store(true, Ordering::Relaxed);
            assert!(stays);
        });
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_is_its_users_alone() {
        let parent = tempfile::tempdir().unwrap();
        let made = Scratch::new_in(parent.path()).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&made.path().metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, FOLDER_MODE);
    }

    #[test]
    fn a_sweep_removes_folders_whose_process_has_ended_and_no_others() {
        let parent = tempfile::tempdir().unwrap();
        let kept = Scratch::new_in(parent.path()).unwrap();
        fs::write(kept.path().join("file"), "text").unwrap();
        let dropped = Scratch::new_in(parent.path()).unwrap();
        let gone = dropped.path().to_path_buf();
        drop(dropped);
        assert!(!gone.exists(), "an owner removes its folder itself");
        // A killed process removes nothing, and the system releases its lock.
        let abandoned = parent.path().join("kode-ls-abandoned");
        fs::create_dir_all(abandoned.join("below")).unwrap();
        fs::write(abandoned.join(OWNER), "").unwrap();
        let foreign = parent.path().join("kode-ls-of-another-program");
        fs::create_dir_all(foreign.join("below")).unwrap();
        let empty = parent.path().join("kode-ls-empty");
        fs::create_dir(&empty).unwrap();
        let other = parent.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join(OWNER), "").unwrap();
        let report = parent.path().join("kode-ls-report");
        fs::write(&report, "").unwrap();

        sweep_in(parent.path(), SystemTime::now());
        let stay = [kept.path(), foreign.as_path(), empty.as_path(), other.as_path(), report.as_path()];
        assert!(stay.iter().all(|path| path.exists()) && !abandoned.exists());

        sweep_in(parent.path(), SystemTime::now() + MIN_AGE + Duration::from_secs(1));
        assert!([kept.path(), foreign.as_path()].iter().all(|path| path.exists()));
        assert!(!report.exists() && !empty.exists());
    }
}
