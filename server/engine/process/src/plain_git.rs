//! Whether git can be run in a folder without running what the repository itself names: by settings, hooks or
//! repositories in it.
//!
//! Rule: git is an interpreter of its repository. Only one that names no program is plain, and what cannot be read in
//! full, or could be taken by git and is not understood, is not plain.

mod config;
mod index;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use kode_base::paths::{AbsPath, real_path};

/// More of a small file, such as the one that tells where a repository is, is not checked.
const MAX_POINTER: u64 = 4 * 1024;
/// How deep repositories may stand inside repositories.
const MAX_DEPTH: usize = 4;

/// The hooks that run only when something is changed: commands that look set off none of them.
pub(crate) const WRITING_HOOKS: [&str; 20] = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "post-rewrite",
    "sendemail-validate",
    "pre-receive",
    "update",
    "post-receive",
    "post-update",
    "push-to-checkout",
    "pre-auto-gc",
];

/// Whether the repositories that git could take a folder to lie in name no program that a looking command would run;
/// true as well where there is no repository. A folder that does not exist is not plain.
#[must_use]
pub fn is_plain(folder: &AbsPath) -> bool {
    // Git goes by where the folder really is.
    real_path(folder.as_path()).is_ok_and(|folder| is_plain_within(&folder, 0))
}

/// The files that the repository around a folder tracks, by their names in its worktree. Blocks on the disk.
#[must_use]
pub fn tracked(folder: &AbsPath) -> Vec<AbsPath> {
    let Ok(folder) = real_path(folder.as_path()) else { return Vec::new() };
    let Some(worktree) = folder.ancestors().find(|ancestor| exists(&ancestor.join(".git"))) else {
        return Vec::new();
    };
    let own = git_folder(&worktree.join(".git"));
    let files = own.map(|own| index::files(&own.join("index"))).unwrap_or_default();
    files.into_iter().filter_map(|file| AbsPath::new(worktree.join(file)).ok()).collect()
}

/// Whether a settings file of the repository with this git folder, and with its files in `worktree`, names no program; true
/// as well when there is no such file.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(crate) fn is_plain_settings(file: &Path, folder: &Path, worktree: Option<&Path>) -> bool {
    config::is_plain_file(file, &config::ConfigFolder { folder, worktree })
}

/// Judges each folder upward until one that git cannot pass by.
fn is_plain_within(folder: &Path, depth: usize) -> bool {
    for ancestor in folder.ancestors() {
        let inside = ancestor.join(".git");
        if exists(&inside) {
            let Some(own) = git_folder(&inside) else { return false };
            if !is_plain_repository(&own, Some(ancestor), depth) {
                return false;
            }
            if is_surely_taken(&inside) {
                return true;
            }
        }
        // A bare repository is one by its content.
        if exists(&ancestor.join("HEAD")) && !is_plain_repository(ancestor, None, depth) {
            return false;
        }
    }
    true
}

/// Whether there is something of this name, be it a link that leads nowhere. What cannot be told counts as there.
fn exists(path: &Path) -> bool {
    !path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// The folder that a `.git` is or names.
fn git_folder(inside: &Path) -> Option<PathBuf> {
    if !inside.is_file() {
        return Some(inside.to_path_buf());
    }
    let text = read(inside, MAX_POINTER)?;
    let elsewhere = text.strip_prefix("gitdir: ")?.trim_end_matches('\n');
    let is_odd = elsewhere.is_empty() || elsewhere.contains(|c: char| c.is_control());
    (!is_odd).then(|| inside.parent().unwrap_or(inside).join(elsewhere))
}

/// Whether git takes this `.git` and does not look further up.
fn is_surely_taken(inside: &Path) -> bool {
    if inside.is_file() {
        return true;
    }
    // To check `folder/.` takes the same permission that git asks for.
    let has = |folder: &str| inside.join(folder).join(".").is_dir();
    let head = read(&inside.join("HEAD"), MAX_POINTER).unwrap_or_default();
    let head = head.trim_end_matches('\n');
    let is_commit = head.len() == 40 && head.bytes().all(|byte| byte.is_ascii_hexdigit());
    let names_branch = head.starts_with("ref: refs/heads/");
    (is_commit || names_branch) && has("objects") && has("refs") && !exists(&inside.join("commondir"))
}

fn is_plain_repository(own: &Path, worktree: Option<&Path>, depth: usize) -> bool {
    let pointer = own.join("commondir");
    let shared = if exists(&pointer) {
        let Some(text) = read(&pointer, MAX_POINTER) else { return false };
        let elsewhere = text.trim_end_matches('\n');
        if elsewhere.is_empty() || elsewhere.contains(|c: char| c.is_control()) {
            return false;
        }
        Some(own.join(elsewhere))
    } else {
        None
    };
    let is_plain_folder = |folder: &Path| {
        let settings = ["config", "config.worktree"];
        let place = config::ConfigFolder { folder: own, worktree };
        settings.iter().all(|name| config::is_plain_file(&folder.join(name), &place))
            && has_plain_hooks(folder)
    };
    is_plain_folder(own)
        && shared.as_deref().is_none_or(is_plain_folder)
        && worktree.is_none_or(|worktree| has_plain_submodules(own, worktree, depth))
}

/// Whether no program lies among the hooks that a looking command could set off.
fn has_plain_hooks(folder: &Path) -> bool {
    let hooks = folder.join("hooks");
    if !exists(&hooks) {
        return true;
    }
    let Ok(entries) = fs::read_dir(&hooks) else { return false };
    entries.into_iter().all(|entry| {
        let Ok(entry) = entry else { return false };
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.ends_with(".sample") || WRITING_HOOKS.contains(&&*name) || !is_executable(&entry.path())
    })
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    // An unchecked program may be anything.
    fs::metadata(path).map_or(true, |metadata| metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_path: &Path) -> bool {
    true
}

/// Git asks the repositories that lie in this one as well, with their own settings.
fn has_plain_submodules(own: &Path, worktree: &Path, depth: usize) -> bool {
    let Some(folders) = index::submodules(&own.join("index")) else { return false };
    folders.iter().all(|folder| {
        let folder = worktree.join(folder);
        let inside = folder.join(".git");
        if !exists(&inside) {
            return true;
        }
        let own = git_folder(&inside).filter(|_| depth < MAX_DEPTH && is_surely_taken(&inside));
        own.is_some_and(|own| is_plain_repository(&own, Some(&folder), depth + 1))
    })
}

/// A file's text; `None` when it cannot be read, is no UTF-8 or is longer than `most` bytes.
fn read(path: &Path, most: u64) -> Option<String> {
    // To open a pipe would wait for who writes into it.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    let length = fs::File::open(path).ok()?.take(most + 1).read_to_string(&mut text).ok()?;
    (length as u64 <= most).then_some(text)
}
