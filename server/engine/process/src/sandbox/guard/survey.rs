//! Finding the guarded files beneath the folders a command may write in.
//!
//! Rule: folders are read level by level, so that a bound cuts off what is deepest; what was cut off is said.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use kode_base::regular;

/// Names that are guarded wherever they are found.
const NAMES: [&str; 12] = [
    ".kode",
    ".kode-ls",
    ".claude",
    ".blade",
    ".cursor",
    ".vscode",
    ".idea",
    ".husky",
    ".mcp.json",
    ".mcprc",
    ".envrc",
    ".gitmodules",
];
/// Start files of shells and of programs everybody runs, guarded in the home folder.
const START_FILES: [&str; 21] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".inputrc",
    ".gitconfig",
    ".vimrc",
    ".xinitrc",
    ".xprofile",
    ".config/fish",
    ".config/git",
    ".config/nvim",
    ".config/autostart",
    ".config/systemd",
];
/// What is guarded in a repository: what git runs, and what says what git runs.
const IN_REPOSITORY: [&str; 3] = ["hooks", "config", "config.worktree"];
/// What makes a folder a repository without a `.git`: git obeys its `config`.
const BARE: [&str; 3] = ["HEAD", "objects", "refs"];
/// Folders that hold too much and nothing that anyone opens.
const SKIPPED: [&str; 4] = ["node_modules", "target", ".venv", "__pycache__"];
/// How many levels of folders are searched, the root being the first.
const LEVELS: usize = 3;
/// How many levels of `.git/modules` are searched; names of submodules may hold slashes.
const MODULE_LEVELS: usize = 4;
/// How many entries are looked at for one command.
const MAX_ENTRIES: usize = 20_000;
/// How much of a file that names a folder is read.
const MAX_POINTER: u64 = 4096;

/// What a guarded path is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GuardedPath {
    /// A file.
    File,
    /// A folder, with all that is in it.
    Folder,
    /// A link, with where it points.
    Link(PathBuf),
}

/// The guarded paths there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GuardSurvey {
    /// By path.
    pub(crate) found: BTreeMap<PathBuf, GuardedPath>,
    /// Why it may not be all.
    pub(crate) incomplete: Option<String>,
    entries: usize,
}

impl GuardSurvey {
    /// Looks through `roots`, which are resolved paths, and guards the start files if the `home` folder can be
    /// written.
    #[must_use]
    pub(crate) fn of(roots: &[PathBuf], home: Option<&Path>) -> Self {
        let mut survey = Self::default();
        let mut queue: VecDeque<_> = roots.iter().map(|root| (root.clone(), 1)).collect();
        while let Some((folder, level)) = queue.pop_front() {
            survey.search(&folder, level, roots, &mut queue);
        }
        if let Some(home) = home {
            for name in START_FILES {
                let path = home.join(name);
                if roots.iter().any(|root| path.starts_with(root)) {
                    survey.take(&path);
                }
            }
        }
        survey
    }

    /// What is guarded here and was not in `before`.
    #[must_use]
    pub(crate) fn beyond(&self, before: &Self) -> Vec<PathBuf> {
        let paths: BTreeSet<_> = before.found.keys().collect();
        self.found.keys().filter(|path| !paths.contains(path)).cloned().collect()
    }

    fn search(
        &mut self,
        folder: &Path,
        level: usize,
        roots: &[PathBuf],
        queue: &mut VecDeque<(PathBuf, usize)>,
    ) {
        // A folder that cannot be read by us cannot be written by the command.
        let Ok(entries) = fs::read_dir(folder) else { return };
        let mut bare = 0;
        for entry in entries.flatten() {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                self.incomplete = Some(format!(
                    "guarded files were looked for among the first {MAX_ENTRIES} files of the workspace only"
                ));
                return;
            }
            let (name, path) = (entry.file_name(), entry.path());
            let name = name.to_string_lossy();
            // Some file systems do not tell letter cases apart.
            let is = |other: &&str| name.eq_ignore_ascii_case(other);
            if is(&".git") {
                self.repository(&path, roots);
            } else if NAMES.iter().any(is) {
                self.take(&path);
            } else if level < LEVELS
                && !SKIPPED.contains(&&*name)
                && entry.file_type().is_ok_and(|kind| kind.is_dir())
            {
                queue.push_back((path, level + 1));
            }
            bare += usize::from(BARE.contains(&&*name));
        }
        if bare == BARE.len() {
            self.git_folder(folder);
        }
    }

    /// A `.git`: a folder, or a file or link that says where the folder is.
    fn repository(&mut self, path: &Path, roots: &[PathBuf]) {
        let Ok(metadata) = fs::symlink_metadata(path) else { return };
        if metadata.is_dir() {
            self.git_folder(path);
            self.modules(&path.join("modules"), 1);
            return;
        }
        self.take(path);
        let Some(folder) = pointed_to(path) else { return };
        let common = fs::read_to_string(folder.join("commondir")).ok();
        let common = common.and_then(|common| folder.join(common.trim_end()).canonicalize().ok());
        for folder in [Some(folder), common].into_iter().flatten() {
            if roots.iter().any(|root| folder.starts_with(root)) {
                self.git_folder(&folder);
                self.take(&folder.join("commondir"));
                self.modules(&folder.join("modules"), 1);
            }
        }
    }

    fn git_folder(&mut self, folder: &Path) {
        for name in IN_REPOSITORY {
            self.take(&folder.join(name));
        }
    }

    fn modules(&mut self, folder: &Path, level: usize) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            self.entries += 1;
            if self.entries > MAX_ENTRIES || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path();
            if path.join("HEAD").exists() {
                self.git_folder(&path);
                self.modules(&path.join("modules"), level);
            } else if level < MODULE_LEVELS {
                self.modules(&path, level + 1);
            }
        }
    }

    /// Enters a path if something is there, with its folder resolved: a link found above it later was put there.
    fn take(&mut self, path: &Path) {
        let Some(folder) = path.parent().and_then(|folder| folder.canonicalize().ok()) else { return };
        let path = &folder.join(path.file_name().unwrap_or_default());
        let Ok(metadata) = fs::symlink_metadata(path) else { return };
        let guarded = if metadata.is_symlink() {
            let Ok(target) = fs::read_link(path) else { return };
            GuardedPath::Link(target)
        } else if metadata.is_dir() {
            GuardedPath::Folder
        } else {
            GuardedPath::File
        };
        self.found.insert(path.to_path_buf(), guarded);
    }
}

/// The folder a `.git` file or link points to, resolved.
fn pointed_to(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return path.canonicalize().ok();
    }
    let text = regular::read_text(path, MAX_POINTER).ok()?;
    let folder = text.strip_prefix("gitdir:")?.trim();
    path.parent()?.join(folder).canonicalize().ok()
}
