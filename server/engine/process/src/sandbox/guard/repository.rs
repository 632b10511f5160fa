//! Entries of a git folder that commits need, and new entries that name no program.
//!
//! Rule: an allow-list. Any other name is read-only; a new entry that is neither on it nor plain is
//! set aside.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use kode_base::beneath::is_gone;
use kode_base::regular;
use kode_base::steering::is_repository;

use crate::plain_git::is_plain_settings;

/// Folders that commits write in.
const FOLDERS: [&str; 6] = ["objects", "refs", "logs", "reftable", "lfs", "rr-cache"];
/// The folders of them in which git writes files by names that a link could lead elsewhere.
const NAMED_FILES: [&str; 2] = ["refs", "logs"];
/// Files that commits write.
const FILES: [&str; 22] = [
    "HEAD",
    "index",
    "packed-refs",
    "packed-refs.new",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "REBASE_HEAD",
    "COMMIT_EDITMSG",
    "EDIT_DESCRIPTION",
    "NOTES_EDITMSG",
    "TAG_EDITMSG",
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "MERGE_RR",
    "SQUASH_MSG",
    "AUTO_MERGE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "shallow",
    "gc.pid",
    "gc.log",
];
/// The prefixes of further files that commits write.
const PREFIXES: [&str; 4] = ["sharedindex.", "next-index-", "BISECT_", "NOTES_MERGE_"];
/// The suffix of a file that git is about to replace.
const LOCK: &str = ".lock";
/// Folders that hold further git folders.
const CONTAINERS: [&str; 2] = ["worktrees", "modules"];
/// State of a command that stopped half-way: it names what the next `--continue` runs.
const UNFINISHED: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];
/// The end of the names of hooks that git never runs.
const SAMPLE: &str = ".sample";
/// The `commondir` of a linked worktree.
const PARENT: &str = "../..";
/// How much of such a file is read, in bytes.
const MAX_POINTER: u64 = 4096;

/// The purpose of a git folder's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryRole {
    /// Commits write it.
    Data,
    /// Commits write it, by names that must be no links.
    NamedFiles,
    /// It holds further git folders.
    Container,
    /// Everything else.
    Steering,
}

/// The names of entries that commits write, for a kernel that is given patterns of names.
#[cfg(any(target_os = "macos", all(test, target_os = "linux")))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataNames {
    /// Folders, with all that is in them.
    pub(crate) folders: &'static [&'static str],
    /// Files, and the beginnings of names of further ones.
    pub(crate) files: &'static [&'static str],
    pub(crate) prefixes: &'static [&'static str],
    /// The end of the name of a file that git is about to replace.
    pub(crate) lock: &'static str,
    /// Folders that hold further git folders.
    pub(crate) containers: &'static [&'static str],
}

/// The names of entries that commits write.
#[cfg(any(target_os = "macos", all(test, target_os = "linux")))]
pub(crate) const DATA_NAMES: DataNames =
    DataNames { folders: &FOLDERS, files: &FILES, prefixes: &PREFIXES, lock: LOCK, containers: &CONTAINERS };

/// The purpose of a git folder's entry, by its name and whether it is a folder.
pub(super) fn role(name: &OsStr, is_folder: bool) -> EntryRole {
    let Some(name) = name.to_str() else { return EntryRole::Steering };
    if is_folder {
        return match name {
            _ if NAMED_FILES.contains(&name) => EntryRole::NamedFiles,
            _ if FOLDERS.contains(&name) => EntryRole::Data,
            _ if CONTAINERS.contains(&name) => EntryRole::Container,
            _ => EntryRole::Steering,
        };
    }
    let name = name.strip_suffix(LOCK).unwrap_or(name);
    let is_data = FILES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    if is_data { EntryRole::Data } else { EntryRole::Steering }
}

/// Whether commits write the entry of these names in a git folder, for tests of patterns.
#[cfg(all(test, target_os = "linux"))]
pub(crate) fn is_data_of_git(names: &[&OsStr]) -> bool {
    let is_folder = |name: &OsStr| matches!(role(name, true), EntryRole::Data | EntryRole::NamedFiles);
    let is_data = |names: &[&OsStr]| match names {
        [] => false,
        [only] => is_folder(only) || role(only, false) == EntryRole::Data,
        [first, ..] => is_folder(first),
    };
    let holds_more = names.first().is_some_and(|first| role(first, true) == EntryRole::Container);
    is_data(names) || holds_more && (1..names.len()).any(|at| is_data(&names[at..]))
}

/// Whether a command that is still running may need it for a moment.
pub(super) fn is_passing(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    UNFINISHED.contains(&name) || name.ends_with(LOCK)
}

/// Whether a new entry of a git folder names no program and leads nowhere else. `worktree` is the folder of the
/// repository's files.
pub(super) fn is_harmless(path: &Path, folder: &Path, worktree: Option<&Path>) -> bool {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => return is_gone(&error),
    };
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    if metadata.is_symlink() {
        return leads_to_data(path, name);
    }
    match name {
        "config" | "config.worktree" => metadata.is_file() && is_plain_settings(path, folder, worktree),
        "hooks" => metadata.is_dir() && has_only(path, &|name| name.ends_with(SAMPLE)),
        "info" => metadata.is_dir() && has_only(path, &|_| true),
        // Files in it are addresses of remotes.
        "branches" => metadata.is_dir() && has_only(path, &|_| false),
        "description" | "gitdir" | "locked" => metadata.is_file(),
        "commondir" => {
            let says = regular::read_text(path, MAX_POINTER).unwrap_or_default();
            is_linked_worktree(folder) && says.trim_end_matches('\n') == PARENT
        }
        _ => false,
    }
}

/// Whether a git folder is that of a linked worktree.
pub(super) fn is_linked_worktree(folder: &Path) -> bool {
    folder.parent().and_then(Path::file_name).is_some_and(|container| container == CONTAINERS[0])
}

/// Whether a link in a git folder is a branch or a `HEAD` as old versions of git wrote it.
fn leads_to_data(path: &Path, name: &str) -> bool {
    let Ok(target) = fs::read_link(path) else { return true };
    let is_plain = target.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    name == "HEAD" && is_plain && target.starts_with("refs/heads")
}

/// Whether a folder holds nothing but regular files of these names.
fn has_only(folder: &Path, is_wanted: &dyn Fn(&str) -> bool) -> bool {
    let Ok(mut entries) = fs::read_dir(folder) else { return false };
    entries.all(|entry| {
        entry.is_ok_and(|entry| {
            entry.file_type().is_ok_and(|kind| kind.is_file())
                && entry.file_name().to_str().is_some_and(is_wanted)
        })
    })
}

/// The folder of the files of the repository whose git folder this is.
pub(super) fn worktree_of(folder: &Path) -> Option<&Path> {
    folder.file_name().filter(|name| is_repository(name))?;
    folder.parent()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_need_what_is_listed_and_nothing_else() {
        let of = |name: &str, is_folder| role(OsStr::new(name), is_folder);
        for name in ["HEAD", "index", "index.lock", "COMMIT_EDITMSG", "packed-refs.lock", "BISECT_LOG"] {
            assert_eq!(of(name, false), EntryRole::Data, "{name}");
        }
        for name in ["config", "config.lock", "commondir", "hooks", "config.worktree", "Head", "x"] {
            assert_eq!(of(name, false), EntryRole::Steering, "{name}");
        }
        for name in ["hooks", "rebase-merge", "rebase-apply", "sequencer", "info", "HEAD", "index"] {
            assert_eq!(of(name, true), EntryRole::Steering, "{name}");
        }
        assert_eq!((of("objects", true), of("logs", true)), (EntryRole::Data, EntryRole::NamedFiles));
        assert_eq!(
            (of("objects", false), of("worktrees", true)),
            (EntryRole::Steering, EntryRole::Container)
        );
    }
}
