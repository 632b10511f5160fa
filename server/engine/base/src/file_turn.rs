//! The turn of one process to change a file, among the servers that several editors started.
//!
//! Rule: advisory and bounded. A file system without locks, or a lock that is held too long, delays a change and never prevents
//! it; the comparison right before the replacement stays. On Windows a lock keeps readers out, so there the lock is that of an
//! empty file in the user's folder for temporary files, whose name is derived from the path.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The longest wait for a turn.
const LIMIT: Duration = Duration::from_secs(2);

/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(2);

/// A turn. It ends when this is dropped.
#[derive(Debug)]
pub struct FileTurn {
    _lock: Option<File>,
}

impl FileTurn {
    /// Waits for the turn to change an existing file, given with all links followed. Blocks for at most 2 s.
    #[must_use]
    pub fn take(path: &Path) -> Self {
        let deadline = Instant::now() + LIMIT;
        while Instant::now() < deadline {
            let Ok(file) = open(path) else { break };
            match file.try_lock() {
                Ok(()) if is_current(&file, path) => return Self { _lock: Some(file) },
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => sleep(PAUSE),
                Err(TryLockError::Error(_)) => break,
            }
        }
        Self { _lock: None }
    }
}

/// Opens the file whose lock is the turn. A device or a pipe is not opened: it could block.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    crate::regular::open(path)
}

/// Another process may have put a new file in the place of the one that was waited for.
#[cfg(unix)]
fn is_current(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(held), Ok(now)) = (file.metadata(), path.metadata()) else { return false };
    (held.dev(), held.ino()) == (now.dev(), now.ino())
}

/// Number of files whose locks are turns. Two paths with the same one wait for each other without need.
#[cfg(any(windows, test))]
const LOCKS: u16 = 1_024;

/// The number of the file whose lock is the turn of a path. Every process of every version must find the same.
#[cfg(any(windows, test))]
fn lock_number(path: &Path) -> u16 {
    use sha2::{Digest, Sha256};
    // Letters of both cases name the same file there.
    let digest = Sha256::digest(path.to_string_lossy().to_lowercase());
    u16::from_be_bytes([digest[0], digest[1]]) % LOCKS
}

#[cfg(windows)]
fn open(path: &Path) -> io::Result<File> {
    // Not with the prefix of the folders that the sweep removes.
    let folder = std::env::temp_dir().join("kode-ls.turns");
    std::fs::create_dir_all(&folder)?;
    File::options().write(true).create(true).truncate(false).open(folder.join(lock_number(path).to_string()))
}

#[cfg(windows)]
fn is_current(_file: &File, _path: &Path) -> bool {
    true
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic;
    use crate::paths::real_path;

    #[test]
    fn changes_that_take_turns_lose_none() {
        const CHANGES: usize = 100;
        let folder = tempfile::tempdir().unwrap();
        let path = real_path(folder.path()).unwrap().join("count");
        std::fs::write(&path, "").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..CHANGES {
                        let _turn = FileTurn::take(&path);
                        let mut bytes = std::fs::read(&path).unwrap();
                        let metadata = path.metadata().unwrap();
                        bytes.push(b'x');
                        assert!(atomic::replace(&path, &bytes, &metadata, || true).unwrap());
                    }
                });
            }
        });
        assert_eq!(std::fs::read(&path).unwrap().len(), 4 * CHANGES);
    }
    #[test]
    fn a_path_has_the_same_turn_in_both_cases_of_its_letters() {
        assert_eq!(lock_number(Path::new(r"C:\Work\Main.rs")), lock_number(Path::new(r"c:\work\main.rs")));
        assert_ne!(lock_number(Path::new(r"C:\work\main.rs")), lock_number(Path::new(r"C:\work\lib.rs")));
    }
}
