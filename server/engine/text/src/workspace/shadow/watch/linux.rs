//! The watch by inotify.
//!
//! Rule: a user has few instances and watches, so that sessions in the same folders share one, and there is a bound on both.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::TreeWatch;
use crate::workspace::shadow::walk::RULE_FILES;
use kode_base::change_probe::{MountTable, is_reported};
use kode_base::paths::AbsPath;
use kode_base::vcs::is_vcs_folder;

/// The most workspaces that are watched at once: a user has 128 instances, and other programs want some. Tests run beside each other.
const MAX_INSTANCES: usize = if cfg!(test) { 100 } else { 16 };

/// The most folders of all workspaces.
const MAX_FOLDERS: usize = 20_000;

/// How many watches the user may have.
const QUOTA: &str = "/proc/sys/fs/inotify/max_user_watches";

/// Which part of them all workspaces take: editors want some as well.
const SHARE: usize = 4;

/// The most generations whose changed folders are kept, and the most folders of one: beyond them a walk costs no more.
const MAX_KNOWN_CHANGES: usize = 64;
const MAX_CHANGED_FOLDERS: usize = 64;

/// Bytes that are read from the queue at once.
const QUEUE_BYTES: usize = 64 * 1024;

/// Changes to the files of a folder, and to the names in it. A write through mapped memory is reported when its program closes the
/// file.
const CHANGES: WatchFlags =
    WatchFlags::MODIFY.union(WatchFlags::ATTRIB).union(WatchFlags::CLOSE_WRITE).union(NAMES);

/// Changes to the names in a folder.
const NAMES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::DONT_FOLLOW);

/// The watches of this program, each with its roots.
type KnownWatches = Vec<(Vec<AbsPath>, Weak<TreeWatch>)>;

static SHARED: LazyLock<Mutex<KnownWatches>> = LazyLock::new(Mutex::default);

/// How many folders all of them watch.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug)]
pub(super) struct WatchedFolders {
    /// Nothing once something is not watched.
    inotify: Mutex<Option<WatchQueue>>,
    mounts: MountTable,
    room: usize,
}

#[derive(Debug)]
struct WatchQueue {
    queue: OwnedFd,
    watches: HashMap<i32, WatchTarget>,
    generation: u64,
    /// The newest changes, the last one of which made the generation.
    changes: VecDeque<FolderChanges>,
}

#[derive(Debug)]
enum WatchTarget {
    /// A folder whose files are covered.
    Covered(PathBuf),
    /// A folder in which ignore files can be.
    Rules,
}

/// A change between two generations.
#[derive(Debug)]
enum FolderChanges {
    /// Of files in these folders, and of folders that were made in them.
    Files(BTreeSet<PathBuf>),
    /// Of anything.
    Unknown,
}

/// The watch over these roots that this program has, or a new one.
pub(super) fn shared(
    roots: &[AbsPath],
    make: impl FnOnce(WatchedFolders) -> TreeWatch,
) -> Option<Arc<TreeWatch>> {
    let mut known = SHARED.lock();
    known.retain(|(_, watch)| watch.strong_count() > 0);
    if let Some(watch) = known.iter().find_map(|(of, watch)| watch.upgrade().filter(|_| of == roots)) {
        return Some(watch);
    }
    if known.len() >= MAX_INSTANCES || !roots.iter().all(|root| is_reported(root.as_path())) {
        return None;
    }
    let folders = WatchedFolders::new();
    if let Err(error) = &folders {
        tracing::debug!(%error, "the workspace is walked before and after each command: it cannot be watched");
    }
    let watch = Arc::new(make(folders.ok()?));
    known.push((roots.to_vec(), Arc::downgrade(&watch)));
    Some(watch)
}

impl WatchedFolders {
    fn new() -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let mounts = MountTable::open()?;
        let quota = std::fs::read_to_string(QUOTA)?;
        let quota: usize = quota.trim().parse().map_err(io::Error::other)?;
        let (watches, generation, changes) = Default::default();
        let queue = WatchQueue { queue, watches, generation, changes };
        Ok(Self { inotify: Mutex::new(Some(queue)), mounts, room: MAX_FOLDERS.min(quota / SHARE) })
    }

    pub(super) fn enter(&self, folder: &Path) {
        let mut inotify = self.inotify.lock();
        let Some(queue) = inotify.as_mut() else { return };
        if let Err(error) = queue.enter(folder, self.room) {
            tracing::debug!(%error, folder = %folder.display(), "the workspace is walked before and after each command: a folder is not watched");
            *inotify = None;
        }
    }

    pub(super) fn generation(&self) -> Option<u64> {
        let mut inotify = self.inotify.lock();
        let queue = inotify.as_mut()?;
        queue.refresh(self.mounts.has_changed());
        Some(queue.generation)
    }

    /// The folders with files that have changed since a generation; `None` where more may have.
    pub(super) fn changed_since(&self, generation: u64) -> Option<BTreeSet<PathBuf>> {
        let mut inotify = self.inotify.lock();
        let queue = inotify.as_mut()?;
        queue.refresh(self.mounts.has_changed());
        let count = usize::try_from(queue.generation.checked_sub(generation)?).ok()?;
        if count > queue.changes.len() {
            return None;
        }
        let mut folders = BTreeSet::new();
        for change in queue.changes.iter().rev().take(count) {
            match change {
                FolderChanges::Files(changed) => folders.extend(changed.iter().cloned()),
                FolderChanges::Unknown => return None,
            }
        }
        Some(folders)
    }
}

impl Drop for WatchedFolders {
    /// Ends the watches in a thread: the kernel takes 20 ms for 4,000, and a session that ends has no time for it.
    fn drop(&mut self) {
        let queue = self.inotify.get_mut().take();
        let thread = std::thread::Builder::new().name("kode-unwatch".to_owned());
        if let Err(error) = thread.spawn(move || drop(queue)) {
            tracing::debug!(%error, "the end of a session waits for that of its watches");
        }
    }
}

impl Drop for WatchQueue {
    fn drop(&mut self) {
        TAKEN.fetch_sub(self.watches.len(), Ordering::Relaxed);
    }
}

impl WatchQueue {
    fn enter(&mut self, folder: &Path, room: usize) -> io::Result<()> {
        self.add(folder, CHANGES, WatchTarget::Covered(folder.to_owned()), room)?;
        // Commands of git write beside the ignore file all the time: its own folder is watched, or the place where that can be made.
        let git = folder.join(".git");
        if !self.add(&git.join("info"), CHANGES, WatchTarget::Rules, room)? {
            self.add(&git, NAMES, WatchTarget::Rules, room)?;
        }
        Ok(())
    }

    /// Watches a folder; `false` when it is not there.
    fn add(
        &mut self,
        folder: &Path,
        events: WatchFlags,
        target: WatchTarget,
        room: usize,
    ) -> io::Result<bool> {
        match inotify::add_watch(&self.queue, folder, events) {
            Ok(watch) => {
                let is_new = self.watches.insert(watch, target).is_none();
                let taken = TAKEN.fetch_add(is_new.into(), Ordering::Relaxed);
                if is_new && taken >= room { Err(io::ErrorKind::QuotaExceeded.into()) } else { Ok(true) }
            }
            // The folder above is watched, and reports its end.
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the queue to its end. Events in it make a generation.
    fn refresh(&mut self, have_mounts_changed: bool) {
        let change = match (self.take_events(), have_mounts_changed) {
            (None, false) => return,
            (Some(FolderChanges::Files(folders)), false) if folders.len() <= MAX_CHANGED_FOLDERS => {
                FolderChanges::Files(folders)
            }
            (_, _) => FolderChanges::Unknown,
        };
        self.generation += 1;
        self.changes.push_back(change);
        if self.changes.len() > MAX_KNOWN_CHANGES {
            self.changes.pop_front();
        }
    }

    fn take_events(&mut self) -> Option<FolderChanges> {
        let mut buffer = vec![MaybeUninit::uninit(); QUEUE_BYTES];
        let mut reader = inotify::Reader::new(&self.queue, &mut buffer);
        let mut folders = BTreeSet::new();
        let (mut is_empty, mut is_unknown) = (true, false);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                Err(_) => return Some(FolderChanges::Unknown),
            };
            is_empty = false;
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
            // It is found among the files of the folder above. One of a repository decides on ignored files.
            let is_new_folder = event.events().contains(ReadFlags::ISDIR | ReadFlags::CREATE)
                && name.is_some_and(|name| !is_vcs_folder(Path::new(name)));
            let is_of_a_file = !event.events().intersects(ReadFlags::ISDIR | ReadFlags::IGNORED);
            let is_rule = name.is_none_or(|name| RULE_FILES.iter().any(|rule| name == OsStr::new(rule)));
            match self.watches.get(&event.wd()) {
                Some(WatchTarget::Covered(folder)) if (is_of_a_file || is_new_folder) && !is_rule => {
                    if !folders.contains(folder) {
                        folders.insert(folder.clone());
                    }
                }
                Some(_) | None => is_unknown = true,
            }
            if event.events().contains(ReadFlags::IGNORED) && self.watches.remove(&event.wd()).is_some() {
                TAKEN.fetch_sub(1, Ordering::Relaxed);
            }
        }
        match (is_empty, is_unknown) {
            (true, _) => None,
            (false, true) => Some(FolderChanges::Unknown),
            (false, false) => Some(FolderChanges::Files(folders)),
        }
    }
}
