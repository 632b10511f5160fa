//! The identity of a file before and after a change.
//!
//! Rule: on Unix the time of the last change of the inode is part of it, because a command cannot set that time. Elsewhere it
//! is the time of the last write, which a command can set.

use std::fs::Metadata;
use std::path::Path;

use kode_base::identity::FileIdentity;

/// The identity and state of a file, links followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InodeStamp {
    identity: FileIdentity,
    size: u64,
    changed: (i64, i64),
}

impl InodeStamp {
    /// That of a file; nothing if absent.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        let identity = FileIdentity::of(path).ok()?;
        Some(Self { identity, size: metadata.len(), changed: changed(&metadata) })
    }
}

/// When a file was last changed, in seconds and nanoseconds.
#[cfg(unix)]
fn changed(metadata: &Metadata) -> (i64, i64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn changed(metadata: &Metadata) -> (i64, i64) {
    use std::time::UNIX_EPOCH;
    let since = metadata.modified().ok().and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
    since.map_or((0, 0), |since| (since.as_secs().cast_signed(), since.subsec_nanos().into()))
}
