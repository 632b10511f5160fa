//! Finding the guarded files beneath the folders that a command may write in.
//!
//! Rule: the walk goes to its end, whatever the depth and the number of files. What cannot be read is guarded whole; where the
//! walk cannot be finished there is no survey, and no command is run by one.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, statat};
use serde::{Deserialize, Serialize};

use kode_base::steering::{self, is_repository, is_steering};
use kode_base::{beneath, regular};

use super::repository::{self, EntryRole};
#[cfg(target_os = "linux")]
use crate::git_obeys::folders::makes_repository;
use crate::git_obeys::folders::{BARE, COMMON, HEAD, MAX_POINTER, OF_BARE, folded, pointed_to};
use crate::git_obeys::settings::{NamedPaths, SettingsPlace, hooks};
use crate::sandbox::hidden::{HiddenFilter, PathTest};
use kode_base::paths::real_path;

/// How many entries of folders are read. A walk over this many takes half a minute.
const MAX_ENTRIES: usize = 8_000_000;
/// How many paths are hidden one by one: each is a mount, which the kernel makes for every command.
const MAX_HIDDEN: usize = 5_000;
/// The maximum number of links that are followed on the way to a script; the kernel has the same.
const MAX_LINKS: usize = 40;
/// The kind of a guarded path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum GuardedPath {
    /// A file.
    File,
    /// A folder, with all that is in it.
    Folder,
    /// A link, with where it points.
    Link(PathBuf),
    /// A folder that cannot be read.
    Unreadable,
}

/// The guarded paths there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct GuardSurvey {
    /// By path.
    pub(crate) found: BTreeMap<PathBuf, GuardedPath>,
    /// The git folders, and the folders that are repositories by their content.
    pub(crate) repositories: BTreeSet<PathBuf>,
    /// Paths that settings of git name and that are not there.
    pub(crate) absent: BTreeSet<PathBuf>,
    /// Guarded files that have another name, by which they could be changed.
    pub(crate) linked: BTreeSet<PathBuf>,
    /// Paths whose contents are not to be seen.
    pub(crate) hidden: BTreeSet<PathBuf>,
    /// Scripts of hooks, those that are not there too, and the links that lead to them.
    #[serde(skip)]
    pub(super) scripts: BTreeSet<PathBuf>,
    /// The git folder whose settings apply in each folder with files of a repository.
    #[serde(skip)]
    worktrees: BTreeMap<PathBuf, PathBuf>,
    /// The names in the settings that apply in each of them.
    #[serde(skip)]
    named: BTreeMap<PathBuf, NamedPaths>,
}

/// How the entries of a folder are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FolderRole {
    /// Every steering name counts.
    Tree,
    /// Only repositories count: nothing is opened in dependencies.
    Dependencies,
    /// The entries of a git folder.
    GitFolder,
    /// A folder that holds further git folders.
    Container,
    /// Data of git, in which links count.
    GitData,
    /// A guarded folder in a git folder: its own entries are checked again while commands run.
    Held,
}

/// A place with the paths that are hidden in it now.
pub(super) struct GuardLook<'a> {
    pub(super) scope: &'a GuardScope,
    hides: Option<PathTest>,
}

impl GuardLook<'_> {
    /// Whether a path is not to be seen.
    pub(super) fn hides(&self, path: &Path, is_folder: bool) -> bool {
        self.hides.as_ref().is_some_and(|hides| hides(path, is_folder))
    }
}

/// The surveyed place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GuardScope {
    /// The folders that commands may write in, resolved.
    pub(crate) roots: Vec<PathBuf>,
    /// The home folder, resolved.
    pub(crate) home: Option<PathBuf>,
    /// Folders that commands do not see, resolved.
    pub(crate) unseen: BTreeSet<PathBuf>,
    /// Further parts they do not see.
    pub(crate) hides: Option<HiddenFilter>,
    /// Scripts that run outside of the sandbox, as their hooks name them.
    pub(crate) scripts: Vec<PathBuf>,
}

/// Receives every folder before it is read.
pub(super) trait FolderVisitor {
    fn enter(&mut self, path: &Path, folder: &OwnedFd, treatment: FolderRole);

    /// Receives every file that hides others.
    fn found_deciding(&mut self, path: &Path);
}

/// Nothing is watched.
impl FolderVisitor for () {
    fn enter(&mut self, _path: &Path, _folder: &OwnedFd, _treatment: FolderRole) {}

    fn found_deciding(&mut self, _path: &Path) {}
}

impl GuardSurvey {
    /// Walks through everything.
    ///
    /// # Errors
    /// Why the walk could not be finished.
    pub(crate) fn of(ground: &GuardScope) -> io::Result<Self> {
        let mut survey = Self::default();
        survey.walk_all(ground, &mut ())?;
        Ok(survey)
    }

    pub(super) fn walk_all(&mut self, ground: &GuardScope, visit: &mut dyn FolderVisitor) -> io::Result<()> {
        let look = ground.look();
        let mut walk = SurveyWalk { survey: self, ground: &look, visit, entries: 0, queue: Vec::new() };
        walk.queue.extend(ground.roots.iter().map(|root| (root.clone(), FolderRole::Tree)));
        walk.run()?;
        self.complete(ground);
        Ok(())
    }

    /// Checks that no more is hidden than a sandbox can hide.
    ///
    /// # Errors
    /// When it is more; no command must run then.
    pub(super) fn check_bound(&self) -> io::Result<()> {
        match self.hidden.first() {
            Some(first) if self.hidden.len() > MAX_HIDDEN => Err(io::Error::other(format!(
                "ignore files and deny rules hide {} files and folders one by one, such as {}, and a sandbox hides at \
                 most {MAX_HIDDEN}; name their folders instead",
                self.hidden.len(),
                first.display()
            ))),
            Some(_) | None => Ok(()),
        }
    }

    /// Looks again at one path, regardless of its former state. `treatment` is that of the folder it lies in.
    #[cfg(target_os = "linux")]
    pub(super) fn examine(
        &mut self,
        path: &Path,
        treatment: FolderRole,
        ground: &GuardLook<'_>,
        visit: &mut dyn FolderVisitor,
    ) -> io::Result<()> {
        self.forget(path);
        let kind = match std::fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_symlink() => FileType::Symlink,
            Ok(metadata) if metadata.is_dir() => FileType::Directory,
            Ok(_) => FileType::RegularFile,
            Err(_) => {
                self.note_closed(path);
                return Ok(());
            }
        };
        let mut walk = SurveyWalk { survey: self, ground, visit, entries: 0, queue: Vec::new() };
        walk.entry(path, kind, treatment);
        walk.run()
    }

    /// Reads a whole folder again.
    #[cfg(target_os = "linux")]
    pub(super) fn examine_folder(
        &mut self,
        folder: &Path,
        treatment: FolderRole,
        ground: &GuardLook<'_>,
        visit: &mut dyn FolderVisitor,
    ) -> io::Result<()> {
        self.forget(folder);
        let mut walk = SurveyWalk { survey: self, ground, visit, entries: 0, queue: Vec::new() };
        walk.queue.push((folder.to_path_buf(), treatment));
        walk.run()
    }

    /// Looks again whether a folder is a repository by its content.
    #[cfg(target_os = "linux")]
    pub(super) fn examine_content(
        &mut self,
        folder: &Path,
        ground: &GuardLook<'_>,
        visit: &mut dyn FolderVisitor,
    ) -> io::Result<()> {
        if self.repositories.remove(folder) {
            self.worktrees.remove(folder);
            OF_BARE.iter().for_each(|name| drop(self.found.remove(&folder.join(name))));
        }
        let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
        if !makes_repository(&has) {
            return Ok(());
        }
        let mut walk = SurveyWalk { survey: self, ground, visit, entries: 0, queue: Vec::new() };
        walk.bare(folder);
        walk.run()
    }

    /// Checks what no walk finds: start files, files that settings name, and files with other names.
    pub(super) fn complete(&mut self, ground: &GuardScope) {
        self.absent.clear();
        self.take_again();
        for name in steering::AT_HOME {
            let Some(path) = ground.home.as_ref().map(|home| home.join(name)) else { break };
            if ground.is_within(&path) {
                self.take(&path);
            }
        }
        self.named.retain(|worktree, named| self.worktrees.contains_key(worktree) && named.is_current());
        for (worktree, folder) in self.worktrees.clone() {
            let place = SettingsPlace { folder: &folder, worktree: &worktree, home: ground.home.as_deref() };
            let named = self.named.remove(&worktree).unwrap_or_else(|| NamedPaths::by(&place));
            self.take_named(&named, &worktree, ground);
            self.named.insert(worktree, named);
        }
        self.scripts.clear();
        ground.scripts.iter().for_each(|script| self.take_script(script, ground));
    }

    /// Enters a script with the links on the way to it; one that is not there is awaited where they lead.
    fn take_script(&mut self, script: &Path, ground: &GuardScope) {
        let FollowedPath { links, end } = FollowedPath::of(script);
        for path in links.into_iter().chain([end]).filter(|path| ground.is_within(path)) {
            self.take_or_await(&path, ground);
            self.scripts.insert(path);
        }
    }

    /// Updates the findings: names change without a change of the folder they lie in.
    fn take_again(&mut self) {
        for (path, guarded) in std::mem::take(&mut self.found) {
            match guarded {
                GuardedPath::Unreadable => drop(self.found.insert(path, guarded)),
                GuardedPath::File | GuardedPath::Folder | GuardedPath::Link(_) => {
                    self.linked.remove(&path);
                    self.take(&path);
                    if !self.found.contains_key(&path) {
                        self.note_closed(&path);
                    }
                }
            }
        }
    }

    /// Enters the folder that keeps a path from being read, if there is one.
    fn note_closed(&mut self, path: &Path) {
        if let Some(folder) = closed_above(path) {
            self.found.insert(folder, GuardedPath::Unreadable);
        }
    }

    /// The folders that could not be read.
    pub(super) fn unreadable(&self) -> Vec<PathBuf> {
        let unreadable = self.found.iter().filter(|(_, guarded)| **guarded == GuardedPath::Unreadable);
        unreadable.map(|(path, _)| path.clone()).collect()
    }

    fn take_named(&mut self, named: &NamedPaths, worktree: &Path, ground: &GuardScope) {
        for path in &named.obeyed {
            let path = real_path(path).unwrap_or_else(|_| folded(path));
            // Hooks that lie among the files of the workspace: the files around them are not git's.
            if worktree.starts_with(&path) {
                hooks().for_each(|hook| self.take_or_await(&path.join(hook), ground));
            } else {
                self.take_or_await(&path, ground);
            }
        }
        for path in &named.programs {
            match real_path(path) {
                Ok(path) if path.is_file() && ground.is_within(&path) => self.take(&path),
                Ok(_) => {}
                // A word of a command line is a file only where it looks like one.
                Err(_) if looks_like_file(path, worktree) => self.take_or_await(&folded(path), ground),
                Err(_) => {}
            }
        }
    }

    fn take_or_await(&mut self, path: &Path, ground: &GuardScope) {
        if !ground.is_within(path) {
            return;
        }
        if std::fs::symlink_metadata(path).is_ok() {
            self.absent.remove(path);
            self.take(path);
        } else {
            self.found.remove(path);
            self.absent.insert(path.to_path_buf());
        }
    }

    /// Enters a path if something is there, with its folder resolved: a link found above it later was put there.
    fn take(&mut self, path: &Path) {
        let Some(folder) = path.parent().and_then(|folder| real_path(folder).ok()) else { return };
        let path = folder.join(path.file_name().unwrap_or_default());
        let Ok(metadata) = std::fs::symlink_metadata(&path) else { return };
        let guarded = if metadata.is_symlink() {
            let Ok(target) = std::fs::read_link(&path) else { return };
            GuardedPath::Link(target)
        } else if metadata.is_dir() {
            GuardedPath::Folder
        } else {
            if std::os::unix::fs::MetadataExt::nlink(&metadata) > 1 {
                self.linked.insert(path.clone());
            }
            GuardedPath::File
        };
        self.found.insert(path, guarded);
    }

    /// Whether what a guarded link leads to is guarded with it. Data of git that lies elsewhere is still data.
    pub(crate) fn holds_target(&self, link: &Path) -> bool {
        let is_in_repository = link.parent().is_some_and(|folder| self.repositories.contains(folder));
        let name = link.file_name().unwrap_or_default();
        !is_in_repository || repository::role(name, link.is_dir()) == EntryRole::Steering
    }

    /// Forgets the git folders of linked worktrees.
    pub(super) fn release_worktrees(&mut self) {
        for folder in self.repositories.clone() {
            if repository::is_linked_worktree(&folder) {
                self.forget(&folder);
            }
        }
    }

    /// Forgets a path and all beneath.
    fn forget(&mut self, path: &Path) {
        forget_in(&mut self.found, path);
        forget_in(&mut self.worktrees, path);
        if let (Some(name), Some(worktree)) = (path.file_name(), path.parent())
            && is_repository(name)
        {
            self.worktrees.remove(worktree);
        }
        for set in [&mut self.repositories, &mut self.linked, &mut self.hidden] {
            let beneath: Vec<_> = set
                .range(path.to_path_buf()..)
                .take_while(|other| other.starts_with(path))
                .cloned()
                .collect();
            for path in &beneath {
                set.remove(path);
            }
        }
    }
}

/// Where a path leads, and by which links.
struct FollowedPath {
    links: Vec<PathBuf>,
    end: PathBuf,
}

impl FollowedPath {
    /// Follows a path component by component, also where nothing is there any more.
    fn of(path: &Path) -> Self {
        let parts = |path: &Path| path.components().rev().map(|part| part.as_os_str().to_owned()).collect();
        let (mut left, mut links, mut end): (Vec<OsString>, _, _) =
            (parts(path), Vec::new(), PathBuf::from("/"));
        while let Some(name) = left.pop() {
            match Path::new(&name).components().next() {
                Some(Component::Normal(_)) => end.push(&name),
                Some(Component::ParentDir) => drop(end.pop()),
                Some(Component::RootDir) => end = PathBuf::from("/"),
                Some(Component::CurDir | Component::Prefix(_)) | None => {}
            }
            if let Some(target) = std::fs::read_link(&end).ok().filter(|_| links.len() < MAX_LINKS) {
                links.push(end.clone());
                end.pop();
                left.extend::<Vec<OsString>>(parts(&target));
            }
        }
        Self { links, end }
    }
}

/// The topmost folder above a path that does not let its owner pass.
fn closed_above(path: &Path) -> Option<PathBuf> {
    let is_denied = |path: &Path| {
        path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    let denied = path.ancestors().take_while(|path| is_denied(path)).last()?;
    denied.parent().map(Path::to_path_buf)
}

fn forget_in<T>(map: &mut BTreeMap<PathBuf, T>, path: &Path) {
    let beneath: Vec<_> = map
        .range(path.to_path_buf()..)
        .map(|(path, _)| path)
        .take_while(|other| other.starts_with(path))
        .cloned()
        .collect();
    beneath.iter().for_each(|path| drop(map.remove(path)));
}

impl GuardScope {
    /// The place with the paths that are hidden in it now.
    pub(super) fn look(&self) -> GuardLook<'_> {
        GuardLook { scope: self, hides: self.hides.as_ref().map(|hides| hides.look()) }
    }

    /// Whether files of that name hide others.
    pub(super) fn is_deciding(&self, name: &OsStr) -> bool {
        self.hides.as_ref().is_some_and(|hides| hides.is_deciding(name))
    }

    /// The paths above the roots at which a file would hide paths in them.
    #[cfg(target_os = "linux")]
    pub(super) fn deciding_above(&self) -> impl Iterator<Item = PathBuf> {
        let names = self.hides.as_ref().map_or(&[][..], |hides| hides.deciding());
        let above: BTreeSet<_> = self.roots.iter().flat_map(|root| root.ancestors().skip(1)).collect();
        above.into_iter().flat_map(move |folder| names.iter().map(move |name| folder.join(name)))
    }

    /// Whether a path lies in a folder that commands may write in.
    pub(crate) fn is_within(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }
}

struct SurveyWalk<'a> {
    survey: &'a mut GuardSurvey,
    ground: &'a GuardLook<'a>,
    visit: &'a mut dyn FolderVisitor,
    entries: usize,
    queue: Vec<(PathBuf, FolderRole)>,
}

impl SurveyWalk<'_> {
    fn run(&mut self) -> io::Result<()> {
        while let Some((folder, treatment)) = self.queue.pop() {
            self.read(&folder, treatment)?;
        }
        Ok(())
    }

    /// Reads one folder.
    fn read(&mut self, path: &Path, treatment: FolderRole) -> io::Result<()> {
        let folder = match beneath::open_folder(path) {
            Ok(folder) => folder,
            Err(error) => return self.not_read(path, error),
        };
        self.visit.enter(path, &folder, treatment);
        let listing = match Dir::read_from(&folder) {
            Ok(listing) => listing,
            Err(error) => return self.not_read(path, error.into()),
        };
        let (mut has_head, mut has_common, mut has_data) = (false, false, 0);
        for entry in listing {
            let Ok(entry) = entry else {
                return Err(io::Error::other(format!("{} cannot be read to its end", path.display())));
            };
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            if name == "." || name == ".." {
                continue;
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(io::Error::other(format!(
                    "the folders it may write in hold more than {MAX_ENTRIES} files"
                )));
            }
            let kind = match entry.file_type() {
                FileType::Unknown => statat(&folder, &*name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode)),
                known => known,
            };
            has_head |= name == HEAD;
            has_common |= name == COMMON;
            has_data += usize::from(BARE.iter().any(|data| name == *data));
            self.entry(&path.join(&name), kind, treatment);
        }
        let is_bare = has_head && (has_common || has_data == BARE.len());
        if is_bare && matches!(treatment, FolderRole::Tree | FolderRole::Dependencies) {
            self.bare(path);
        }
        Ok(())
    }

    /// A folder that was not read: gone is nothing, and one that may not be read is guarded whole.
    fn not_read(&mut self, path: &Path, error: io::Error) -> io::Result<()> {
        if beneath::is_gone(&error) {
            return Ok(());
        }
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                self.survey.found.insert(path.to_path_buf(), GuardedPath::Unreadable);
                Ok(())
            }
            _ => Err(io::Error::new(error.kind(), format!("{} cannot be read: {error}", path.display()))),
        }
    }

    /// Takes one entry of a folder, and has folders read later.
    fn entry(&mut self, path: &Path, kind: FileType, treatment: FolderRole) {
        let is_folder = kind == FileType::Directory;
        let name = path.file_name().unwrap_or_default();
        match treatment {
            FolderRole::Tree | FolderRole::Dependencies => {
                self.entry_of_tree(path, name, is_folder, treatment)
            }
            FolderRole::GitFolder => self.entry_of_git(path, name, kind),
            FolderRole::Container if is_folder => {
                let is_repository = path.join(HEAD).symlink_metadata().is_ok();
                let inside = if is_repository { FolderRole::GitFolder } else { FolderRole::Container };
                self.enter(path, inside);
            }
            FolderRole::GitData if is_folder => self.enter(path, FolderRole::GitData),
            FolderRole::GitData if kind != FileType::Symlink => {}
            FolderRole::Container | FolderRole::GitData => self.survey.take(path),
            FolderRole::Held => {
                // It is guarded with the folder it lies in; only another name of it is news.
                let has_names = |found: std::fs::Metadata| std::os::unix::fs::MetadataExt::nlink(&found) > 1;
                if kind == FileType::RegularFile && path.symlink_metadata().is_ok_and(has_names) {
                    self.survey.linked.insert(path.to_path_buf());
                }
            }
        }
    }

    fn entry_of_tree(&mut self, path: &Path, name: &OsStr, is_folder: bool, treatment: FolderRole) {
        if self.ground.scope.unseen.contains(path) {
            return;
        }
        let is_deciding = !is_folder && self.ground.scope.is_deciding(name);
        if is_deciding {
            self.visit.found_deciding(path);
        }
        if self.ground.hides(path, is_folder) {
            self.survey.hidden.insert(path.to_path_buf());
            return;
        }
        if is_repository(name) {
            self.repository(path);
        } else if is_deciding || treatment == FolderRole::Tree && is_steering(name) {
            self.survey.take(path);
        } else if is_folder {
            let inside =
                if steering::holds_dependencies(name) { FolderRole::Dependencies } else { treatment };
            self.queue.push((path.to_path_buf(), inside));
        }
    }

    fn enter(&mut self, folder: &Path, treatment: FolderRole) {
        if treatment == FolderRole::GitFolder {
            self.survey.repositories.insert(folder.to_path_buf());
        }
        self.queue.push((folder.to_path_buf(), treatment));
    }

    fn entry_of_git(&mut self, path: &Path, name: &OsStr, kind: FileType) {
        let is_folder = kind == FileType::Directory;
        if kind == FileType::Symlink {
            self.survey.take(path);
            return;
        }
        match repository::role(name, is_folder) {
            // A pipe, a socket or a device in its place makes git wait.
            EntryRole::Data if is_folder || kind == FileType::RegularFile => {}
            EntryRole::NamedFiles => self.enter(path, FolderRole::GitData),
            EntryRole::Container => self.enter(path, FolderRole::Container),
            EntryRole::Data | EntryRole::Steering => {
                self.survey.take(path);
                if is_folder {
                    self.enter(path, FolderRole::Held);
                }
            }
        }
    }

    /// A `.git`: a folder, or a file or link that says where the folder is.
    fn repository(&mut self, path: &Path) {
        let Ok(metadata) = std::fs::symlink_metadata(path) else { return };
        let worktree = path.parent().unwrap_or(path).to_path_buf();
        if metadata.is_dir() {
            self.survey.worktrees.insert(worktree, path.to_path_buf());
            self.enter(path, FolderRole::GitFolder);
            return;
        }
        self.survey.take(path);
        let Some(folder) = pointed_to(path) else { return };
        let common = regular::read_text(&folder.join(COMMON), MAX_POINTER).ok();
        let common = common.and_then(|common| real_path(folder.join(common.trim_end())).ok());
        self.survey.worktrees.insert(worktree, common.clone().unwrap_or_else(|| folder.clone()));
        for folder in [Some(folder), common].into_iter().flatten() {
            if self.ground.scope.is_within(&folder) && !self.survey.repositories.contains(&folder) {
                self.enter(&folder, FolderRole::GitFolder);
            }
        }
    }

    /// A folder that git takes for a repository by its content.
    fn bare(&mut self, folder: &Path) {
        self.survey.repositories.insert(folder.to_path_buf());
        self.survey.worktrees.insert(folder.to_path_buf(), folder.to_path_buf());
        for name in OF_BARE {
            let path = folder.join(name);
            if path.symlink_metadata().is_ok() {
                self.survey.take(&path);
            }
        }
        for name in ["worktrees", "modules"] {
            let path = folder.join(name);
            if path.is_dir() && !path.is_symlink() {
                self.queue.push((path, FolderRole::Container));
            }
        }
    }
}

/// Whether a word that represents a file that is not there is likely to be one: it names a folder as well.
fn looks_like_file(path: &Path, worktree: &Path) -> bool {
    path.parent().is_some_and(|folder| folder != worktree)
}
