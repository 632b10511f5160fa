//! The turn of one process to change a file, among the servers that several editors started.
//!
//! Rule: advisory and bounded. A file system without locks, or a lock that is held too long, delays a change and never prevents
//! it; the comparison right before the replacement stays.

use std::fs::File;
use std::path::Path;

/// A turn. It ends when this is dropped.
#[derive(Debug)]
pub struct FileTurn {
    _lock: Option<File>,
}

impl FileTurn {
    /// Waits for the turn to change an existing file, given with all links followed. Blocks.
    #[cfg(unix)]
    #[must_use]
    pub fn take(path: &Path) -> Self {
        use std::fs::TryLockError;
        use std::thread::sleep;
        use std::time::{Duration, Instant};

        const LIMIT: Duration = Duration::from_secs(2);
        const PAUSE: Duration = Duration::from_millis(2);
        let deadline = Instant::now() + LIMIT;
        while Instant::now() < deadline {
            // A device or a pipe is not opened: it could block.
            let Ok(file) = crate::regular::open(path) else { break };
            match file.try_lock() {
                // Another process may have put a new file in the place of the one that was waited for.
                Ok(()) if is_at(&file, path) => return Self { _lock: Some(file) },
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => sleep(PAUSE),
                Err(TryLockError::Error(_)) => break,
            }
        }
        Self { _lock: None }
    }

    /// On systems whose locks keep readers out, there are no turns.
    #[cfg(not(unix))]
    #[must_use]
    pub fn take(_path: &Path) -> Self {
        Self { _lock: None }
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(held), Ok(now)) = (file.metadata(), path.metadata()) else { return false };
    (held.dev(), held.ino()) == (now.dev(), now.ino())
}

#[cfg(all(test, unix))]
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
}
