//! Files and folders that only their owner may read: the product's state, logs, keys, and output of commands.
//!
//! Rule: on Unix the mode says so from the moment of creation: 0600 for files, 0700 for folders. On Windows a new file has the
//! access list of its folder; folders in the user's profile let in the user, the system and administrators alone. A state
//! folder elsewhere is as private as its parent.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// The mode of a file.
#[cfg(unix)]
const FILE: u32 = 0o600;
/// The mode of a folder.
#[cfg(unix)]
const FOLDER: u32 = 0o700;

/// Options that create files which only their owner may read. How a file is opened is up to the caller.
#[must_use]
pub fn file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, FILE);
    options.read(true);
    options
}

/// Creates one folder that only its owner may read.
///
/// # Errors
/// As [`std::fs::create_dir`].
pub fn create_folder(path: &Path) -> io::Result<()> {
    builder().create(path)
}

/// Creates a folder that only its owner may read, with the folders above it that are missing.
///
/// # Errors
/// As [`std::fs::create_dir_all`].
pub fn create_folders(path: &Path) -> io::Result<()> {
    builder().recursive(true).create(path)
}

/// Takes the rights of others on a file away.
///
/// # Errors
/// As [`std::fs::set_permissions`].
pub fn restrict_file(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    return restrict(path, FILE);
    #[cfg(not(unix))]
    path.metadata().map(drop)
}

/// Takes the rights of others on a folder away.
///
/// # Errors
/// As [`std::fs::set_permissions`].
pub fn restrict_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    return restrict(path, FOLDER);
    #[cfg(not(unix))]
    path.metadata().map(drop)
}

fn builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(false);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, FOLDER);
    builder
}

#[cfg(unix)]
fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_the_owner_may_read() {
        let base = tempfile::tempdir().unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let (deep, file) = (base.path().join("a/b"), base.path().join("a/b/file"));
        create_folders(&deep).unwrap();
        create_folder(&deep.join("c")).unwrap();
        assert_eq!(create_folder(&deep.join("c")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        file_options().write(true).create_new(true).open(&file).unwrap();
        for path in [&base.path().join("a"), &deep, &deep.join("c")] {
            assert_eq!(mode(path), 0o700, "{}", path.display());
        }
        assert_eq!(mode(&file), 0o600);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        fs::set_permissions(&deep, fs::Permissions::from_mode(0o755)).unwrap();
        restrict_file(&file).unwrap();
        restrict_folder(&deep).unwrap();
        assert_eq!((mode(&file), mode(&deep)), (0o600, 0o700));
        assert!(restrict_file(&base.path().join("gone")).is_err());
    }
}
