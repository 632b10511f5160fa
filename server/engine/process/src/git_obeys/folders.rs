//! Folders that are repositories, and the folders that repositories point to.
//!
//! Rule: files that name a folder are read up to a bound, and a path that is given is resolved.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use kode_base::paths::real_path;
use kode_base::regular;

/// The entries that make a folder a repository without a `.git`.
pub(crate) const HEAD: &str = "HEAD";
pub(crate) const COMMON: &str = "commondir";
pub(crate) const BARE: [&str; 2] = ["objects", "refs"];
/// How much of a file that names a folder is read, in bytes.
pub(crate) const MAX_POINTER: u64 = 4096;
/// Entries that steer git in a folder that is a repository by its content alone.
pub(crate) const OF_BARE: [&str; 8] =
    ["hooks", "config", "config.worktree", "commondir", "info", "rebase-merge", "rebase-apply", "sequencer"];

/// Whether a folder with these entries is a repository by its content.
pub(crate) fn makes_repository(has: &dyn Fn(&str) -> bool) -> bool {
    has(HEAD) && (has(COMMON) || BARE.iter().all(|data| has(data)))
}

/// Whether a name takes part in what makes a folder a repository, or steers one that is.
pub(crate) fn is_of_bare(name: &OsStr) -> bool {
    let is = |other: &&str| name.eq_ignore_ascii_case(other);
    is(&HEAD) || BARE.iter().chain(&OF_BARE).any(is)
}

/// The folder with the settings of the repository that a `.git` is or names.
pub(crate) fn common_folder(path: &Path) -> Option<PathBuf> {
    let folder = pointed_to(path)?;
    let common = regular::read_text(&folder.join(COMMON), MAX_POINTER).ok();
    common.and_then(|common| real_path(folder.join(common.trim_end())).ok()).or(Some(folder))
}

/// The folder a `.git` file or link points to, resolved.
pub(crate) fn pointed_to(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return real_path(path).ok();
    }
    let text = regular::read_text(path, MAX_POINTER).ok()?;
    let folder = text.strip_prefix("gitdir:")?.trim();
    real_path(path.parent()?.join(folder)).ok()
}

/// A path with its dots folded, for one that is not there.
pub(crate) fn folded(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|folder| real_path(folder).ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => kode_base::paths::AbsPath::new(path).map_or_else(|_| path.to_path_buf(), PathBuf::from),
    }
}
