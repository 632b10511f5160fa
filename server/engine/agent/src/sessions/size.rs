//! How much room a session takes on the disk.
//!
//! Rule: sizes are counted file by file on request, and links are not followed.

use std::path::Path;

use crate::sessions::{BLOBS, JOURNAL, OUTPUT};

/// Folders in folders are counted so deep.
const MAX_DEPTH: usize = 4;

/// The room a session takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionSize {
    /// The journal.
    pub journal: u64,
    /// Contents of files, for checkpoints.
    pub blobs: u64,
    /// Output of commands.
    pub output: u64,
    /// The total, with other files.
    pub total: u64,
}

impl SessionSize {
    /// The size of the session in a folder.
    pub(super) fn of(folder: &Path) -> Self {
        let mut size = Self::default();
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let bytes = bytes_in(&entry.path(), MAX_DEPTH);
            let name = entry.file_name();
            if name == JOURNAL {
                size.journal = bytes;
            } else if name == BLOBS {
                size.blobs = bytes;
            } else if name == OUTPUT {
                size.output = bytes;
            }
            size.total += bytes;
        }
        size
    }
}

/// The bytes of a file, or of all files in a folder.
pub(super) fn bytes_in(path: &Path, depth: usize) -> u64 {
    let Ok(metadata) = path.symlink_metadata() else { return 0 };
    if !metadata.is_dir() {
        return metadata.len();
    }
    if depth == 0 {
        return 0;
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| bytes_in(&entry.path(), depth - 1)).sum()
}
