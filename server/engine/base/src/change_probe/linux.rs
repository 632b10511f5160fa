//! Probes by inotify.
//!
//! Rule: one inotify instance for all probes, because a user has few. A path is watched as the kernel resolves it: each folder
//! for the name that is looked up in it, each link followed, and the file itself, which may be written under another name.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use super::mounts::MountTable;

/// The most files and folders that are watched for all probes together.
const MAX_WATCHES: usize = 1_024;

/// The most links that are followed for one path, as in Linux.
const MAX_LINKS: usize = 40;

/// The most events that one question reads; with more of them everything counts as changed.
const MAX_EVENTS: usize = 1_000;

/// Bytes that are read from the queue at once.
const QUEUE_BYTES: usize = 4_096;

/// File systems of which the kernel sees each change: ext2 to ext4, XFS, Btrfs, tmpfs, F2FS and ZFS.
const LOCAL_FILE_SYSTEMS: [u32; 6] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0xf2f5_2010, 0x2fc1_2fc1];

/// Changes to the names in a folder. A folder that is moved or removed is a name in the folder above it. Not its attributes: for
/// events that files in it have as well, the kernel walks all their names that it has cached, for 2 ms in a large `/tmp`. Files of a
/// folder that is forbidden later count as unchanged.
const FOLDER_EVENTS: WatchFlags =
    WatchFlags::CREATE.union(WatchFlags::DELETE).union(WatchFlags::MOVED_FROM).union(WatchFlags::MOVED_TO);

/// Changes to a file. A write through mapped memory is reported when its program closes the file.
const FILE_EVENTS: WatchFlags = WatchFlags::MODIFY.union(WatchFlags::ATTRIB).union(WatchFlags::CLOSE_WRITE);

/// The instance of this program; `None` where the user has no more of them.
static INSTANCE: LazyLock<Mutex<Option<ProbeInstance>>> =
    LazyLock::new(|| Mutex::new(ProbeInstance::new().ok()));

/// Whether anything has happened to a set of paths.
#[derive(Debug)]
pub(super) struct ProbedPaths {
    changed: Arc<AtomicBool>,
}

struct ProbeInstance {
    inotify: OwnedFd,
    mounts: MountTable,
    watches: HashMap<i32, Vec<ProbeListener>>,
}

/// A probe that waits for events of one watch.
struct ProbeListener {
    /// The name within the folder; `None` for all of them.
    name: Option<OsString>,
    changed: Weak<AtomicBool>,
}

impl ProbedPaths {
    pub(super) fn of<'a>(paths: impl Iterator<Item = &'a Path>, contents: bool) -> Option<Self> {
        let mut instance = INSTANCE.lock();
        let instance = instance.as_mut()?;
        instance.forget_dropped();
        // Older events are no news for this probe.
        instance.take_events();
        let changed = Arc::new(AtomicBool::new(false));
        let mut way = PathWalk {
            instance,
            changed: Arc::downgrade(&changed),
            contents,
            seen: HashSet::new(),
            folders: HashMap::new(),
        };
        for path in paths {
            way.watch(path).ok()?;
        }
        Some(Self { changed })
    }

    pub(super) fn is_unchanged(&self) -> bool {
        if self.changed.load(Ordering::SeqCst) {
            return false;
        }
        // It is held for long only while a probe is made, which waits for the disk.
        let Some(mut instance) = INSTANCE.try_lock() else { return false };
        let Some(instance) = instance.as_mut() else { return false };
        instance.take_events();
        !self.changed.load(Ordering::SeqCst)
    }
}

impl ProbeInstance {
    fn new() -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let mounts = MountTable::open()?;
        Ok(Self { inotify, mounts, watches: HashMap::new() })
    }

    /// Reads the queue and tells the probes.
    fn take_events(&mut self) {
        if self.mounts.has_changed() {
            self.change_all();
        }
        let mut buffer = [MaybeUninit::uninit(); QUEUE_BYTES];
        let mut queue = inotify::Reader::new(&self.inotify, &mut buffer);
        for _ in 0..MAX_EVENTS {
            match queue.next() {
                Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => break,
                Ok(event) => {
                    let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                    let listeners = self.watches.get(&event.wd());
                    for listener in listeners.into_iter().flatten().filter(|one| one.hears(name)) {
                        listener.change();
                    }
                    if event.events().contains(ReadFlags::IGNORED) {
                        self.watches.remove(&event.wd());
                    }
                }
                Err(rustix::io::Errno::AGAIN) => return,
                Err(_) => break,
            }
        }
        self.change_all();
    }

    fn change_all(&self) {
        self.watches.values().flatten().for_each(ProbeListener::change);
    }

    /// Ends the watches that no probe needs any more.
    fn forget_dropped(&mut self) {
        let inotify = &self.inotify;
        self.watches.retain(|watch, listeners| {
            listeners.retain(|listener| listener.changed.strong_count() > 0);
            let is_needed = !listeners.is_empty();
            if !is_needed {
                // A watch whose file is gone has ended by itself.
                let _ = inotify::remove_watch(inotify, *watch);
            }
            is_needed
        });
    }
}

impl ProbeListener {
    /// Whether an event with this name, `None` for the folder or file itself, is about its path. Folders may ignore case.
    fn hears(&self, name: Option<&OsStr>) -> bool {
        match (&self.name, name) {
            (Some(own), Some(name)) => own.eq_ignore_ascii_case(name) || !own.is_ascii() || !name.is_ascii(),
            (None, _) | (_, None) => true,
        }
    }

    fn change(&self) {
        if let Some(changed) = self.changed.upgrade() {
            changed.store(true, Ordering::SeqCst);
        }
    }
}

/// Follows paths for one probe.
struct PathWalk<'a> {
    instance: &'a mut ProbeInstance,
    changed: Weak<AtomicBool>,
    /// Whether changes within the files and folders count that the paths lead to.
    contents: bool,
    /// The watches and names that the probe waits for already.
    seen: HashSet<(i32, Option<OsString>)>,
    /// The watches of folders.
    folders: HashMap<PathBuf, i32>,
}

impl PathWalk<'_> {
    /// Watches everything that decides which file has this path, and what it contains where that counts.
    ///
    /// # Errors
    /// When a change might not be reported.
    fn watch(&mut self, path: &Path) -> io::Result<()> {
        let mut at = PathBuf::from("/");
        let mut rest: VecDeque<OsString> = names(path).collect();
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                at.pop();
                continue;
            }
            let folder = self.folder(&at)?;
            self.listen(folder, Some(name.clone()));
            let next = at.join(&name);
            // The folder is watched by now: a later file of this name is reported.
            let kind = match next.symlink_metadata() {
                Ok(metadata) => metadata.file_type(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(error),
            };
            if kind.is_symlink() {
                links += 1;
                if links > MAX_LINKS {
                    return Err(rustix::io::Errno::LOOP.into());
                }
                let target = next.read_link()?;
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                names(&target).rev().for_each(|name| rest.push_front(name));
            } else if kind.is_dir() {
                at = next;
            } else {
                if self.contents {
                    let file = self.add(&next, FILE_EVENTS)?;
                    self.listen(file, None);
                }
                // A path through a file leads nowhere until the file is another.
                return Ok(());
            }
        }
        if self.contents {
            let folder = self.folder(&at)?;
            self.listen(folder, None);
        }
        Ok(())
    }

    /// The watch of a folder.
    fn folder(&mut self, folder: &Path) -> io::Result<i32> {
        if let Some(known) = self.folders.get(folder) {
            return Ok(*known);
        }
        let watch = self.add(folder, FOLDER_EVENTS.union(WatchFlags::ONLYDIR))?;
        self.folders.insert(folder.to_owned(), watch);
        Ok(watch)
    }

    fn add(&mut self, path: &Path, events: WatchFlags) -> io::Result<i32> {
        if self.instance.watches.len() >= MAX_WATCHES {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        // A file of another disk may be mounted over a name.
        if !is_reported(path)? {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let watch = inotify::add_watch(&self.instance.inotify, path, events.union(WatchFlags::DONT_FOLLOW))?;
        self.instance.watches.entry(watch).or_default();
        Ok(watch)
    }

    fn listen(&mut self, watch: i32, name: Option<OsString>) {
        if self.seen.insert((watch, name.clone())) {
            let listener = ProbeListener { name, changed: self.changed.clone() };
            self.instance.watches.entry(watch).or_default().push(listener);
        }
    }
}

/// Whether the kernel sees each change on the disk of a path.
pub(super) fn is_reported(path: &Path) -> io::Result<bool> {
    let kind = rustix::fs::statfs(path)?.f_type;
    // Of another width and sign on each processor; the numbers are of 32 bits.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the upper half is empty")]
    let kind = kind as u32;
    Ok(LOCAL_FILE_SYSTEMS.contains(&kind))
}

/// The names of a path, and its `..`.
fn names(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

#[cfg(test)]
mod tests;
