//! Files such as `.aiignore`, which keep others from the agent, in the syntax of `.gitignore`.
//!
//! Rule: such a file counts for all that lies beneath its folder, and takes away only: a path that one of another name lets pass is not
//! let pass by it. One that cannot be read takes everything beneath its folder. A look sees the disk as it is then; a change
//! counts from the next look on.

mod parsed;
pub mod report;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use ignore::Match;
use parking_lot::{Mutex, RwLock};

use kode_base::paths::AbsPath;
use kode_base::steering::IGNORE_FILES;
use kode_permission::{IgnoreCause, IgnoredBy};

use parsed::ParsedIgnoreFile;

/// How many folders a look remembers before it begins again: a walk through more is slower, not larger.
const MAX_FOLDERS: usize = 200_000;
/// How many worktrees are known as copies of a workspace.
const MAX_COPIES: usize = 256;

/// The worktrees of sub-agents, and the folders that they are copies of.
static COPIES: LazyLock<RwLock<Vec<(AbsPath, AbsPath)>>> = LazyLock::new(RwLock::default);

/// Has the ignore files of a workspace folder count in a copy of it too, a git worktree: files that are not committed are not
/// in the copy.
pub fn count_in_copy(copy: &AbsPath, of: &AbsPath) {
    let mut copies = COPIES.write();
    if copies.iter().any(|known| known.0 == *copy && known.1 == *of) {
        return;
    }
    if copies.len() >= MAX_COPIES {
        copies.retain(|(copy, _)| copy.as_path().is_dir());
    }
    copies.push((copy.clone(), of.clone()));
}

/// A view of the ignore files: each folder is read once in it. Blocks on the disk.
#[derive(Debug, Default)]
pub struct IgnoreLook {
    /// The names that the user has switched off.
    disabled: Vec<String>,
    folders: RwLock<HashMap<PathBuf, Arc<FolderIgnores>>>,
    /// The folder that was asked for last: entries are asked for folder by folder.
    last: Mutex<Option<Arc<FolderIgnores>>>,
}

/// The ignore files that count in a folder.
#[derive(Debug)]
struct FolderIgnores {
    folder: PathBuf,
    above: Option<Arc<FolderIgnores>>,
    /// Those that lie in it, by their place in [`IGNORE_FILES`].
    own: [Option<Arc<ParsedIgnoreFile>>; IGNORE_FILES.len()],
    /// Whether any counts in it.
    has_any: bool,
    /// Why the folder itself is kept from the agent, and so all beneath.
    denied: Option<IgnoredBy>,
}

impl IgnoreLook {
    /// A view of the ignore files of all names but these.
    #[must_use]
    pub fn without(disabled: &[String]) -> Self {
        Self { disabled: disabled.to_vec(), ..Self::default() }
    }

    /// Whether it is of all names but these.
    #[must_use]
    pub fn is_without(&self, disabled: &[String]) -> bool {
        self.disabled == disabled
    }

    /// Why a path is kept from the agent, if it is; links are not followed.
    #[must_use]
    pub fn denies(&self, path: &Path) -> Option<IgnoredBy> {
        self.denies_entry(path, &|| path.is_dir())
    }

    /// As [`Self::denies`], for a path that is known to be a folder or none.
    #[must_use]
    pub fn denies_entry(&self, path: &Path, is_folder: &dyn Fn() -> bool) -> Option<IgnoredBy> {
        let by_place = self.folder(path.parent()?).denies(path, is_folder);
        by_place.or_else(|| {
            let original = original_of(path)?;
            self.folder(original.parent()?).denies(&original, is_folder)
        })
    }

    /// The ignore files that count in a folder.
    fn folder(&self, folder: &Path) -> Arc<FolderIgnores> {
        if let Some(last) = &*self.last.lock()
            && last.folder == folder
        {
            return Arc::clone(last);
        }
        let (mut missing, mut known) = (Vec::new(), None);
        {
            let folders = self.folders.read();
            for place in folder.ancestors() {
                known = folders.get(place).cloned();
                if known.is_some() {
                    break;
                }
                missing.push(place);
            }
        }
        for place in missing.into_iter().rev() {
            let made = Arc::new(FolderIgnores::of(place, known, &self.disabled));
            let mut folders = self.folders.write();
            if folders.len() >= MAX_FOLDERS {
                folders.clear();
            }
            folders.insert(place.to_path_buf(), Arc::clone(&made));
            known = Some(made);
        }
        let found = known.unwrap_or_else(|| Arc::new(FolderIgnores::of(folder, None, &self.disabled)));
        *self.last.lock() = Some(Arc::clone(&found));
        found
    }
}

impl FolderIgnores {
    fn of(folder: &Path, above: Option<Arc<Self>>, disabled: &[String]) -> Self {
        let denied = above.as_ref().and_then(|above| above.denies(folder, &|| true));
        let own = match &denied {
            // As in git: nothing in a folder that is left out is let pass again.
            Some(_) => Default::default(),
            None => IGNORE_FILES.map(|name| {
                let is_on = !disabled.iter().any(|other| other == name);
                is_on.then(|| ParsedIgnoreFile::at(&folder.join(name))).flatten()
            }),
        };
        let has_any = own.iter().any(Option::is_some) || above.as_ref().is_some_and(|above| above.has_any);
        Self { folder: folder.to_path_buf(), above, own, has_any, denied }
    }

    /// Why an entry of this folder is kept from the agent.
    fn denies(&self, path: &Path, is_folder: &dyn Fn() -> bool) -> Option<IgnoredBy> {
        if self.denied.is_some() {
            return self.denied.clone();
        }
        if !self.has_any {
            return None;
        }
        let is_folder = is_folder();
        (0..IGNORE_FILES.len()).find_map(|kind| self.denies_by(kind, path, is_folder))
    }

    /// As [`Self::denies`], by the files of one name: the nearest with a pattern for the path decides.
    fn denies_by(&self, kind: usize, path: &Path, is_folder: bool) -> Option<IgnoredBy> {
        let mut at = Some(self);
        while let Some(place) = at {
            at = place.above.as_deref();
            let Some(file) = &place.own[kind] else { continue };
            let cause = match &file.matcher {
                Err(why) => IgnoreCause::Unreadable(why.clone()),
                Ok(matcher) => {
                    let beneath = path.strip_prefix(&place.folder).ok()?;
                    match matcher.matched(beneath, is_folder) {
                        Match::None => continue,
                        Match::Whitelist(_) => return None,
                        Match::Ignore(glob) => file.line_of(glob.original()),
                    }
                }
            };
            let file = AbsPath::new(place.folder.join(IGNORE_FILES[kind])).ok()?;
            return Some(IgnoredBy { file, cause });
        }
        None
    }
}

/// The path of the workspace that a path in a worktree is a copy of.
fn original_of(path: &Path) -> Option<PathBuf> {
    let copies = COPIES.read();
    let (beneath, of) = copies
        .iter()
        .find_map(|(copy, of)| Some((path.strip_prefix(copy.as_path()).ok()?.to_path_buf(), of)))?;
    Some(of.as_path().join(beneath))
}
