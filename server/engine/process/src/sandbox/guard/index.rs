//! The survey of the folders that commands may write in, kept current.
//!
//! Rule: the walk is done once; from then on the kernel names the folders in which something has changed. Its queue is read to
//! the end before a command starts and after it has ended, so that nothing is missed; folders that it does not watch are
//! walked each time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use kode_base::beneath;
use kode_base::steering::{is_repository, is_steering};

use super::survey::{FolderRole, FolderVisitor, GuardLook, GuardScope, GuardSurvey};
use crate::git_obeys::folders::is_of_bare;
use crate::git_obeys::stamp::InodeStamp;

/// How many watches the user may have.
const QUOTA: &str = "/proc/sys/fs/inotify/max_user_watches";
/// Which part of them is taken: editors want some as well.
const SHARE: usize = 2;
/// Where the quota cannot be read.
const FALLBACK: usize = 4096;
/// How much of the kernel's queue is read at a time, in bytes.
const BUFFER: usize = 64 * 1024;

/// A survey and what keeps it current.
#[derive(Debug)]
pub(super) struct GuardIndex {
    ground: GuardScope,
    survey: GuardSurvey,
    watch: Option<FolderWatches>,
    /// The roots as they were walked: another folder may replace one.
    roots: Vec<Option<FolderIdentity>>,
    /// Whether everything has to be walked again.
    is_stale: bool,
}

/// The device and inode of a folder.
type FolderIdentity = (u64, u64);

/// The kernel's watch over folders.
#[derive(Debug)]
struct FolderWatches {
    queue: OwnedFd,
    /// The target of each watch.
    folders: HashMap<i32, (PathBuf, FolderRole)>,
    watches: BTreeMap<PathBuf, i32>,
    /// The topmost folders without a watch.
    unwatched: BTreeMap<PathBuf, FolderRole>,
    /// Files that hide others, as they were when they were found; nothing where one may come to be.
    deciding: BTreeMap<PathBuf, Option<InodeStamp>>,
    room: usize,
}

impl GuardIndex {
    /// Knows nothing yet.
    pub(super) fn new(ground: GuardScope) -> Self {
        Self { ground, survey: GuardSurvey::default(), watch: None, roots: Vec::new(), is_stale: true }
    }

    /// The survey as things are now.
    ///
    /// # Errors
    /// Why a folder could not be walked; the index is stale then.
    pub(super) fn refresh(&mut self) -> io::Result<&GuardSurvey> {
        let roots = self.identities();
        let refreshed = if self.is_stale || roots != self.roots { self.walk() } else { self.apply() };
        self.roots = roots;
        self.is_stale = refreshed.is_err();
        refreshed.map(|()| &self.survey)
    }

    /// Has the next refresh walk through everything.
    pub(super) fn invalidate(&mut self) {
        self.is_stale = true;
    }

    /// Says that something may have happened: the kernel's queue lists it.
    #[expect(clippy::unused_self, reason = "other systems have no queue")]
    pub(super) fn expire(&mut self) {}

    /// The queue of changes, to wait for.
    pub(super) fn queue(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(|watch| watch.queue.as_fd())
    }

    fn identities(&self) -> Vec<Option<FolderIdentity>> {
        let identity = |root: &PathBuf| {
            let found = root.symlink_metadata().ok()?;
            Some((found.dev(), found.ino()))
        };
        self.ground.roots.iter().map(identity).collect()
    }

    fn walk(&mut self) -> io::Result<()> {
        self.survey = GuardSurvey::default();
        // The watches of before end with their queue.
        self.watch = FolderWatches::new();
        match &mut self.watch {
            Some(watch) => {
                self.ground.deciding_above().for_each(|path| watch.found_deciding(&path));
                self.survey.walk_all(&self.ground, watch)
            }
            None => self.survey.walk_all(&self.ground, &mut ()),
        }
    }

    fn apply(&mut self) -> io::Result<()> {
        let Some(watch) = &mut self.watch else { return self.walk() };
        if watch.has_decided_otherwise() {
            return self.walk();
        }
        let look = self.ground.look();
        let Some(changed) = watch.changed(&look) else {
            drop(look);
            return self.walk();
        };
        for (path, treatment) in changed.entries {
            watch.forget(&path);
            self.survey.examine(&path, treatment, &look, watch)?;
        }
        for folder in changed.contents {
            self.survey.examine_content(&folder, &look, watch)?;
        }
        for (folder, treatment) in watch.unwatched.clone() {
            self.survey.examine_folder(&folder, treatment, &look, watch)?;
        }
        for folder in self.survey.unreadable() {
            let treatment = folder.parent().and_then(|parent| watch.role(parent)).unwrap_or(FolderRole::Tree);
            self.survey.examine(&folder, treatment, &look, watch)?;
        }
        self.survey.complete(&self.ground);
        Ok(())
    }
}

/// Where something has changed.
#[derive(Default)]
struct ChangedEntries {
    /// Entries that were made, removed or replaced, with how their folder is treated.
    entries: BTreeMap<PathBuf, FolderRole>,
    /// Folders that may have become repositories, or are no longer ones.
    contents: BTreeSet<PathBuf>,
}

impl FolderWatches {
    /// A watch over nothing; `None` where the system has none.
    fn new() -> Option<Self> {
        let queue = match inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC) {
            Ok(queue) => queue,
            Err(error) => {
                tracing::info!(%error, "GuardedPath files are searched for before each command: folders cannot be watched");
                return None;
            }
        };
        let quota = fs::read_to_string(QUOTA).ok().and_then(|text| text.trim().parse::<usize>().ok());
        let room = quota.unwrap_or(FALLBACK) / SHARE;
        Some(Self {
            queue,
            folders: HashMap::new(),
            watches: BTreeMap::new(),
            unwatched: BTreeMap::new(),
            deciding: BTreeMap::new(),
            room,
        })
    }

    /// Whether a file that hides others has changed.
    fn has_decided_otherwise(&self) -> bool {
        self.deciding.iter().any(|(path, stamp)| InodeStamp::of(path) != *stamp)
    }

    /// The changes since the last query; `None` when the kernel could not keep all of it, and when one is of a file that decides
    /// the hidden paths.
    fn changed(&mut self, look: &GuardLook<'_>) -> Option<ChangedEntries> {
        let mut changed = ChangedEntries::default();
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(&self.queue, &mut buffer);
        let mut ended = Vec::new();
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(_) => return None,
            };
            let events = event.events();
            if events.contains(ReadFlags::QUEUE_OVERFLOW) {
                return None;
            }
            if events.contains(ReadFlags::IGNORED) {
                ended.push(event.wd());
                continue;
            }
            let Some((folder, treatment)) = self.folders.get(&event.wd()) else { continue };
            let Some(name) = event.file_name() else { continue };
            let name = OsStr::from_bytes(name.to_bytes());
            let is_of_tree = matches!(treatment, FolderRole::Tree | FolderRole::Dependencies);
            if is_of_tree && look.scope.is_deciding(name) {
                return None;
            }
            note(&mut changed, (folder, name), *treatment, events.contains(ReadFlags::ISDIR), look);
        }
        for watch in ended {
            if let Some((folder, _)) = self.folders.remove(&watch)
                && self.watches.get(&folder) == Some(&watch)
            {
                self.watches.remove(&folder);
            }
        }
        Some(changed)
    }

    /// The treatment of a watched folder.
    fn role(&self, folder: &Path) -> Option<FolderRole> {
        let (_, role) = self.folders.get(self.watches.get(folder)?)?;
        Some(*role)
    }

    /// Watches a path and all beneath no longer.
    fn forget(&mut self, path: &Path) {
        let beneath =
            self.watches.range(path.to_path_buf()..).take_while(|(other, _)| other.starts_with(path));
        let beneath: Vec<_> = beneath.map(|(folder, watch)| (folder.clone(), *watch)).collect();
        for (folder, watch) in beneath {
            self.watches.remove(&folder);
            // The same folder may have been found elsewhere by now.
            if self.folders.get(&watch).is_some_and(|(known, _)| *known == folder) {
                self.folders.remove(&watch);
                // The kernel ends it by itself when the folder is removed.
                let _ = inotify::remove_watch(&self.queue, watch);
            }
        }
        self.unwatched.retain(|folder, _| !folder.starts_with(path));
    }

    fn leave_unwatched(&mut self, path: &Path, treatment: FolderRole) {
        let is_within = self.unwatched.range(..=path.to_path_buf()).next_back();
        if is_within.is_none_or(|(folder, _)| !path.starts_with(folder)) {
            self.unwatched.insert(path.to_path_buf(), treatment);
        }
    }
}

/// Notes a change of an entry, where it can matter.
fn note(
    changed: &mut ChangedEntries,
    (folder, name): (&Path, &OsStr),
    treatment: FolderRole,
    is_folder: bool,
    look: &GuardLook<'_>,
) {
    if matches!(treatment, FolderRole::Tree | FolderRole::Dependencies) {
        if is_of_bare(name) {
            changed.contents.insert(folder.to_path_buf());
        }
        let steers = is_repository(name) || treatment == FolderRole::Tree && is_steering(name);
        if !is_folder && !steers && !look.hides(&folder.join(name), false) {
            return;
        }
    }
    changed.entries.insert(folder.join(name), treatment);
}

impl FolderVisitor for FolderWatches {
    fn found_deciding(&mut self, path: &Path) {
        self.deciding.insert(path.to_path_buf(), InodeStamp::of(path));
    }

    fn enter(&mut self, path: &Path, folder: &OwnedFd, treatment: FolderRole) {
        if self.unwatched.contains_key(path) {
            return;
        }
        let names = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR;
        let events = match treatment {
            FolderRole::GitFolder | FolderRole::Held => names | WatchFlags::CLOSE_WRITE | WatchFlags::ATTRIB,
            FolderRole::Tree | FolderRole::Dependencies | FolderRole::Container | FolderRole::GitData => {
                names
            }
        };
        if self.folders.len() >= self.room {
            self.leave_unwatched(path, treatment);
            return;
        }
        // By its descriptor: the path may name another folder by now.
        match inotify::add_watch(&self.queue, beneath::by_descriptor(folder), events) {
            Ok(watch) => {
                if let Some((before, _)) = self.folders.insert(watch, (path.to_path_buf(), treatment))
                    && before != path
                {
                    self.watches.remove(&before);
                }
                self.watches.insert(path.to_path_buf(), watch);
            }
            Err(error) => {
                tracing::debug!(%error, folder = %path.display(), "a folder is not watched");
                self.leave_unwatched(path, treatment);
            }
        }
    }
}
