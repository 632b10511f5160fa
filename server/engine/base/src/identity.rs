//! Which file a path names, whatever the path is.
//!
//! Rule: two paths with the same identity name the same file or folder, links followed. The identity is the device and the
//! inode on Unix, the volume and the file's index on Windows. It holds while the file exists: the system may give it to
//! another file afterwards.

use std::io;
use std::path::Path;

use file_id::FileId;

/// The identity of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity(FileId);

impl FileIdentity {
    /// That of what lies at a path, links followed.
    ///
    /// # Errors
    /// When nothing is there, or it may not be opened.
    pub fn of(path: &Path) -> io::Result<Self> {
        file_id::get_file_id(path).map(Self)
    }
}

/// Whether two paths name the same file or folder; not when one of them is not there.
#[must_use]
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((FileIdentity::of(one), FileIdentity::of(other)), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_the_same_by_each_of_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a"), "same").unwrap();
        fs::write(path("b"), "same").unwrap();
        fs::hard_link(path("a"), path("c")).unwrap();
        assert!(is_same_file(&path("a"), &path("c")) && is_same_file(folder.path(), &path(".")));
        assert!(!is_same_file(&path("a"), &path("b")));
        assert!(!is_same_file(&path("a"), &path("gone")) && !is_same_file(&path("gone"), &path("gone")));
        fs::rename(path("a"), path("d")).unwrap();
        assert!(is_same_file(&path("d"), &path("c")));
    }
}
