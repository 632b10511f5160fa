//! The watch by inotify.
//!
//! Rule: a user has few instances and watches, so that sessions in the same folders share one, and there is a bound on both.

use std::collections::HashSet;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::TreeWatch;
use kode_base::change_probe::is_reported;
use kode_base::paths::AbsPath;

/// The most workspaces that are watched at once: a user has 128 instances, and other programs want some.
const MAX_INSTANCES: usize = 16;

/// The most folders of one workspace.
const MAX_FOLDERS: usize = 20_000;

/// How many watches the user may have.
const QUOTA: &str = "/proc/sys/fs/inotify/max_user_watches";

/// Which part of them one workspace takes.
const SHARE: usize = 4;

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

#[derive(Debug)]
pub(super) struct WatchedFolders {
    /// Nothing once something is not watched.
    inotify: Mutex<Option<WatchQueue>>,
    /// The table of mounts, which is ready with an exception after each change: another disk may lie over a folder.
    mounts: OwnedFd,
    room: usize,
}

#[derive(Debug)]
struct WatchQueue {
    queue: OwnedFd,
    watches: HashSet<i32>,
    generation: u64,
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
        let mounts = std::fs::File::open("/proc/self/mountinfo")?.into();
        let quota = std::fs::read_to_string(QUOTA)?;
        let quota: usize = quota.trim().parse().map_err(io::Error::other)?;
        let queue = WatchQueue { queue, watches: HashSet::new(), generation: 0 };
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
        let has_changed = queue.take_events();
        queue.generation += u64::from(has_changed || self.have_mounts_changed());
        Some(queue.generation)
    }

    fn have_mounts_changed(&self) -> bool {
        let mut asked = [PollFd::new(&self.mounts, PollFlags::PRI)];
        match poll(&mut asked, Some(&Timespec::default())) {
            Ok(_) => asked[0].revents().intersects(PollFlags::PRI | PollFlags::ERR),
            Err(_) => true,
        }
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

impl WatchQueue {
    fn enter(&mut self, folder: &Path, room: usize) -> io::Result<()> {
        self.add(folder, CHANGES, room)?;
        // Commands of git write beside the ignore file all the time: its own folder is watched, or the place where that can be made.
        let git = folder.join(".git");
        if !self.add(&git.join("info"), CHANGES, room)? {
            self.add(&git, NAMES, room)?;
        }
        Ok(())
    }

    /// Watches a folder; `false` when it is not there.
    fn add(&mut self, folder: &Path, events: WatchFlags, room: usize) -> io::Result<bool> {
        match inotify::add_watch(&self.queue, folder, events) {
            Ok(watch) => {
                self.watches.insert(watch);
                if self.watches.len() > room { Err(io::ErrorKind::QuotaExceeded.into()) } else { Ok(true) }
            }
            // The folder above is watched, and was told of its end.
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the queue to its end; whether there was anything in it.
    fn take_events(&mut self) -> bool {
        let mut buffer = vec![MaybeUninit::uninit(); QUEUE_BYTES];
        let mut reader = inotify::Reader::new(&self.queue, &mut buffer);
        let mut has_changed = false;
        loop {
            match reader.next() {
                Ok(event) => {
                    has_changed = true;
                    if event.events().contains(ReadFlags::IGNORED) {
                        self.watches.remove(&event.wd());
                    }
                }
                Err(Errno::AGAIN) => return has_changed,
                Err(Errno::INTR) => {}
                Err(_) => return true,
            }
        }
    }
}
