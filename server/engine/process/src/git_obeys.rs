//! Why git obeys a file: for calls that change it without a command.
//!
//! Rule: every folder above the file is asked. The settings of a repository are read again when one of their files has
//! changed.

pub(crate) mod folders;
pub(crate) mod settings;
pub(crate) mod stamp;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use parking_lot::Mutex;

use kode_base::paths::AbsPath;
use kode_base::steering::GIT;

use folders::{common_folder, is_of_bare, makes_repository};
use settings::{NamedPaths, SettingsPlace};

/// How many repositories are remembered.
const MAX_REMEMBERED: usize = 256;

/// The names in the settings that apply in a folder.
static REMEMBERED: LazyLock<Mutex<HashMap<PathBuf, NamedPaths>>> = LazyLock::new(Mutex::default);

/// Why git runs or obeys a file, if it does: the settings of a repository name it, or a folder it lies in; or the file makes a
/// folder a repository, or steers one. For people. Blocks on the disk.
#[must_use]
pub fn obeyed_by_git(file: &AbsPath) -> Option<&'static str> {
    let file = file.as_path();
    let mut above = file.ancestors().skip(1);
    above.find_map(|folder| {
        if is_obeyed_in(file, folder) {
            return Some("the settings of the repository name it, so that git runs or obeys it");
        }
        is_of_repository(file, folder)
            .then_some("it is part of what makes its folder a repository, which git obeys")
    })
}

/// Whether a folder would be a repository by its content with this file, and the file takes part in that or steers it.
fn is_of_repository(file: &Path, folder: &Path) -> bool {
    let Some(entry) = file.strip_prefix(folder).ok().and_then(|below| below.iter().next()) else {
        return false;
    };
    if !is_of_bare(entry) {
        return false;
    }
    let has = |name: &str| entry.eq_ignore_ascii_case(name) || folder.join(name).symlink_metadata().is_ok();
    makes_repository(&has)
}

fn is_obeyed_in(file: &Path, worktree: &Path) -> bool {
    let inside = worktree.join(GIT);
    if inside.symlink_metadata().is_err() {
        return false;
    }
    let Some(folder) = common_folder(&inside) else { return false };
    let mut remembered = REMEMBERED.lock();
    if remembered.len() >= MAX_REMEMBERED {
        remembered.clear();
    }
    let known = remembered.remove(worktree).filter(NamedPaths::is_current);
    let home = std::env::home_dir();
    let place = SettingsPlace { folder: &folder, worktree, home: home.as_deref() };
    let named =
        remembered.entry(worktree.to_path_buf()).or_insert(known.unwrap_or_else(|| NamedPaths::by(&place)));
    named.covers(file, worktree)
}
