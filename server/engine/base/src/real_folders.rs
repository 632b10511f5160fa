//! Many paths with their links followed, each folder above them once.
//!
//! Rule: the results are those of [`real_path`]. A folder is followed once in the life of a table, so that a caller makes a table for
//! one list of paths and drops it with the list.

#[cfg(target_os = "linux")]
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::paths::real_path;

/// The folders above a list of paths, with all links followed.
#[derive(Debug, Default)]
pub struct RealFolders {
    /// The folders, by the paths that lead to them.
    #[cfg(target_os = "linux")]
    folders: HashMap<PathBuf, Result<PathBuf, io::ErrorKind>>,
}

impl RealFolders {
    /// An absolute path with all links followed.
    ///
    /// # Errors
    /// As [`real_path`].
    #[cfg(target_os = "linux")]
    pub fn real(&mut self, path: &Path) -> io::Result<PathBuf> {
        if let Some(known) = self.folders.get(path) {
            return known.clone().map_err(io::Error::from);
        }
        // A folder above is known by its name alone where no name goes up again.
        let goes_up = path.components().any(|part| part == std::path::Component::ParentDir);
        let (Some(folder), Some(name), false) = (path.parent(), path.file_name(), goes_up) else {
            return real_path(path);
        };
        let path = self.folder(folder)?.join(name);
        match std::fs::read_link(&path) {
            Ok(_) => real_path(path),
            // It is there, and no link.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(path),
            Err(error) => Err(error),
        }
    }

    /// An absolute path with all links followed.
    ///
    /// # Errors
    /// As [`real_path`].
    #[cfg(not(target_os = "linux"))]
    pub fn real(&mut self, path: &Path) -> io::Result<PathBuf> {
        // Elsewhere the system also gives names the letters that the disk has.
        real_path(path)
    }

    #[cfg(target_os = "linux")]
    fn folder(&mut self, folder: &Path) -> io::Result<PathBuf> {
        let real = self.real(folder);
        if !self.folders.contains_key(folder) {
            let known = real.as_ref().map(PathBuf::clone).map_err(io::Error::kind);
            self.folders.insert(folder.to_owned(), known);
        }
        real
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_is_what_the_system_follows_it_to() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        fs::write(root.join("a/b/file"), "").unwrap();
        symlink("b", root.join("a/link")).unwrap();
        symlink(root.join("a/link/c"), root.join("far")).unwrap();
        symlink("../a/b/file", root.join("a/to-file")).unwrap();
        symlink("nowhere", root.join("a/broken")).unwrap();
        symlink("round", root.join("round")).unwrap();
        let mut paths = RealFolders::default();
        for name in [
            "a",
            "a/b/c",
            "a/b/file",
            "a/link",
            "a/link/c",
            "a/link/file",
            "far",
            "far/x",
            "far/../file",
            "a/to-file",
            "a/broken",
            "a/broken/x",
            "round",
            "round/x",
            "a/b/file/x",
            "none",
            "none/x",
            "none/y",
            "a/./b",
            "",
        ] {
            let path = root.join(name);
            let ours = paths.real(&path).map_err(|error| error.kind());
            assert_eq!(ours, real_path(&path).map_err(|error| error.kind()), "{name}");
        }
        assert_eq!(paths.real(Path::new("/")).unwrap(), Path::new("/"));
    }
}
