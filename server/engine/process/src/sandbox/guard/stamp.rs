//! The identity of a file before and after a change.
//!
//! Rule: the time of the last change of the inode is part of it, because a command cannot set that time.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The identity and state of a file, links followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InodeStamp {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl InodeStamp {
    /// That of a file; nothing if absent.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}
