//! Which journals another process has open.
//!
//! Rule: a check disturbs no writer: a lock is only tried where the system's own table says that there is one, or where there
//! is no such table.

use std::collections::HashSet;
use std::fs::{File, Metadata, TryLockError};
use std::path::Path;

/// Where Linux lists the locks that are held.
const TABLE: &str = "/proc/locks";

/// The locks that were held a moment ago.
#[derive(Debug)]
pub(super) struct LockTable {
    /// The files, by their inodes alone: not all file systems have one device number; `None` where the system lists none.
    inodes: Option<HashSet<u64>>,
}

impl LockTable {
    /// Looks.
    pub(super) fn now() -> Self {
        let table = std::fs::read_to_string(TABLE).ok();
        Self { inodes: table.map(|table| table.lines().filter_map(inode).collect()) }
    }

    /// Whether a process has the journal open for writing.
    pub(super) fn is_held(&self, journal: &Path) -> bool {
        let Ok(file) = File::open(journal) else { return false };
        let may_be = match (&self.inodes, file.metadata()) {
            (Some(inodes), Ok(metadata)) => inode_of(&metadata).is_none_or(|inode| inodes.contains(&inode)),
            (None, _) | (_, Err(_)) => true,
        };
        may_be && matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }
}

/// The inode in a line such as `1: FLOCK  ADVISORY  WRITE 1234 fd:00:5678 0 EOF`.
fn inode(line: &str) -> Option<u64> {
    line.split_whitespace().find(|word| word.matches(':').count() == 2)?.rsplit(':').next()?.parse().ok()
}

#[cfg(unix)]
fn inode_of(metadata: &Metadata) -> Option<u64> {
    Some(std::os::unix::fs::MetadataExt::ino(metadata))
}

#[cfg(not(unix))]
fn inode_of(_: &Metadata) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_seen_as_long_as_it_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let file = File::create(&path).unwrap();
        assert!(!LockTable::now().is_held(&path));
        file.try_lock().unwrap();
        assert!(LockTable::now().is_held(&path));
        file.unlock().unwrap();
        assert!(!LockTable::now().is_held(&path));
        assert_eq!(inode("1: FLOCK  ADVISORY  WRITE 1234 fd:00:5678 0 EOF"), Some(5678));
    }
}
