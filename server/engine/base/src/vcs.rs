//! The folders in which version control systems keep their own data.
//!
//! Rule: searches, watches and snapshots skip these folders by name, at any depth.

use std::path::Path;

/// Folders of version control systems: never looked into.
pub(crate) const VCS_FOLDERS: [&str; 4] = [".git", ".svn", ".hg", ".bzr"];

/// Whether a path is the folder of a version control system.
pub fn is_vcs_folder(path: &Path) -> bool {
    path.file_name().is_some_and(|name| VCS_FOLDERS.iter().any(|folder| name == *folder))
}
