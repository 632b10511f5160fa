//! One watch of the system over the folders of all who want to learn of them.
//!
//! Rule: the system gives a user few watches and tells each of everything in its folders; so this program has one, the
//! caller, as long as anybody does. A folder that is known by several names, by way of links, is reported under each of
//! them. Mere reading emits nothing. The end of a subscription waits for nothing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Weak};

use notify::event::{AccessKind, AccessMode};
use notify::{Config, Event, EventKind, EventKindMask, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;

use crate::identity::FileIdentity;

/// The listener. Called on the system's thread: it must neither wait nor take long.
type FolderListener = dyn Fn(notify::Result<Event>) + Send + Sync;

/// The watch of this program, while there is one.
static SHARED: LazyLock<Mutex<Weak<SharedWatcher>>> = LazyLock::new(Mutex::default);

/// A subscription to folders, without their subfolders. Dropping it ends the subscription.
pub struct FolderWatch {
    id: u64,
    shared: Arc<SharedWatcher>,
}

struct SharedWatcher {
    /// Held while the system is asked, for which its thread is needed: never taken on that thread, nor together with `known`.
    watcher: Mutex<RecommendedWatcher>,
    known: Arc<Mutex<ListenerTable>>,
    ended: Mutex<EndedSubscriptions>,
}

/// Subscriptions that have ended, and whose folders are still to be left.
#[derive(Default)]
struct EndedSubscriptions {
    ids: Vec<u64>,
    /// Whether a thread leaves them.
    is_leaving: bool,
}

#[derive(Default)]
struct ListenerTable {
    hearers: HashMap<u64, Arc<FolderListener>>,
    next: u64,
    folders: HashMap<PathBuf, WatchedFolder>,
    /// The names of each folder.
    names: HashMap<FileIdentity, Vec<PathBuf>>,
}

struct WatchedFolder {
    identity: Option<FileIdentity>,
    hearers: Vec<u64>,
}

impl FolderWatch {
    /// Watches nothing yet.
    ///
    /// # Errors
    /// When the system refuses a watch, for example at the inotify limit.
    pub fn new(hear: impl Fn(notify::Result<Event>) + Send + Sync + 'static) -> notify::Result<Self> {
        let shared = {
            let mut running = SHARED.lock();
            match running.upgrade() {
                Some(shared) => shared,
                None => {
                    let shared = Arc::new(SharedWatcher::start()?);
                    *running = Arc::downgrade(&shared);
                    shared
                }
            }
        };
        let id = {
            let mut known = shared.known.lock();
            known.next += 1;
            let id = known.next;
            known.hearers.insert(id, Arc::new(hear));
            id
        };
        Ok(Self { id, shared })
    }

    /// Learns of a folder from now on. Asked again, it learns of whatever folder has that name by now. Waits for the
    /// system's thread: no lock may be held that the hearer takes.
    ///
    /// # Errors
    /// When the folder is not there or cannot be watched.
    pub fn watch(&self, folder: &Path) -> notify::Result<()> {
        let mut watcher = self.shared.watcher.lock();
        // Known before it is watched, so that nothing is missed.
        let left = self.shared.known.lock().enter(self.id, folder);
        settle(&mut watcher, folder, left);
        let watched = watcher.watch(folder, RecursiveMode::NonRecursive);
        if watched.is_err() {
            // The folder that the system watched under that name is gone.
            self.shared.known.lock().leave(self.id, folder);
        }
        watched
    }

    /// Learns of a folder no longer.
    pub fn unwatch(&self, folder: &Path) {
        let mut watcher = self.shared.watcher.lock();
        let left = self.shared.known.lock().leave(self.id, folder);
        settle(&mut watcher, folder, left);
    }
}

impl Drop for FolderWatch {
    /// Leaves its folders in a thread: the system's own answers no request as long as events keep coming, and a task that waited for it
    /// would hold up all others.
    fn drop(&mut self) {
        self.shared.known.lock().hearers.remove(&self.id);
        {
            let mut ended = self.shared.ended.lock();
            ended.ids.push(self.id);
            if std::mem::replace(&mut ended.is_leaving, true) {
                return;
            }
        }
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("kode-unwatch".to_owned());
        if let Err(error) = thread.spawn(move || shared.leave_ended()) {
            tracing::debug!(%error, "folders are left with the next subscription that ends");
            self.shared.ended.lock().is_leaving = false;
        }
    }
}

/// The handling of a folder that is left under one of its names.
#[derive(Debug, PartialEq, Eq)]
pub enum NameChange {
    /// Others learn of it by that name.
    Heard,
    /// It is heard of by this name.
    Otherwise(PathBuf),
    /// No subscriber has it.
    Unheard,
}

/// Has the system do what follows. It may have ended a watch itself, with the folder.
fn settle(watcher: &mut RecommendedWatcher, folder: &Path, left: NameChange) {
    let done = match left {
        NameChange::Heard => Ok(()),
        // The system may call a folder by a name that is watched no longer, until that name is taken back.
        NameChange::Otherwise(name) => {
            watcher.unwatch(folder).and_then(|()| watcher.watch(&name, RecursiveMode::NonRecursive))
        }
        NameChange::Unheard => watcher.unwatch(folder),
    };
    if let Err(error) = done {
        tracing::debug!(folder = %folder.display(), %error, "a folder was no longer watched");
    }
}

impl SharedWatcher {
    fn start() -> notify::Result<Self> {
        let known = Arc::<Mutex<ListenerTable>>::default();
        let heard_by = Arc::clone(&known);
        let hear = move |event: notify::Result<Event>| {
            if event.as_ref().is_ok_and(is_reading) {
                return;
            }
            let reported = heard_by.lock().reported(event);
            reported.into_iter().for_each(|(hear, event)| hear(event));
        };
        // By default the system also reports each file that any program opens in these folders.
        let changes = EventKindMask::CORE | EventKindMask::ACCESS_CLOSE;
        let watcher = RecommendedWatcher::new(hear, Config::default().with_event_kinds(changes))?;
        Ok(Self { watcher: Mutex::new(watcher), known, ended: Mutex::default() })
    }

    /// Leaves the folders of subscriptions that have ended, until there is none.
    fn leave_ended(&self) {
        loop {
            let ids = {
                let mut ended = self.ended.lock();
                if ended.ids.is_empty() {
                    ended.is_leaving = false;
                    return;
                }
                std::mem::take(&mut ended.ids)
            };
            for id in ids {
                let mut watcher = self.watcher.lock();
                let left = self.known.lock().end(id);
                left.into_iter().for_each(|(folder, left)| settle(&mut watcher, &folder, left));
            }
        }
    }
}

/// Reading changes nothing; that a file that was written is closed says that something has.
fn is_reading(event: &Event) -> bool {
    matches!(event.kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write))
}

impl ListenerTable {
    /// The handling of the folder that had that name before.
    fn enter(&mut self, hearer: u64, name: &Path) -> NameChange {
        let identity = identity_of(name);
        let folder = self
            .folders
            .entry(name.to_path_buf())
            .or_insert(WatchedFolder { identity: None, hearers: Vec::new() });
        if !folder.hearers.contains(&hearer) {
            folder.hearers.push(hearer);
        }
        let before = std::mem::replace(&mut folder.identity, identity);
        if before == identity {
            return NameChange::Heard;
        }
        let left = self.forget_name(before, name);
        if let Some(identity) = identity {
            self.names.entry(identity).or_default().push(name.to_path_buf());
        }
        if before.is_some() { left } else { NameChange::Heard }
    }

    fn leave(&mut self, hearer: u64, name: &Path) -> NameChange {
        let Some(folder) = self.folders.get_mut(name) else { return NameChange::Heard };
        folder.hearers.retain(|other| *other != hearer);
        if !folder.hearers.is_empty() {
            return NameChange::Heard;
        }
        let identity = self.folders.remove(name).and_then(|folder| folder.identity);
        self.forget_name(identity, name)
    }

    /// Forgets who heard; what becomes of the folders.
    fn end(&mut self, hearer: u64) -> Vec<(PathBuf, NameChange)> {
        self.hearers.remove(&hearer);
        let is_heard = |(_, folder): &(&PathBuf, &WatchedFolder)| folder.hearers.contains(&hearer);
        let heard: Vec<_> = self.folders.iter().filter(is_heard).map(|(name, _)| name.clone()).collect();
        let leave = |name: PathBuf| {
            let left = self.leave(hearer, &name);
            (name, left)
        };
        heard.into_iter().map(leave).collect()
    }

    /// The handling of a folder without this name.
    fn forget_name(&mut self, identity: Option<FileIdentity>, name: &Path) -> NameChange {
        let Some(identity) = identity else { return NameChange::Unheard };
        let Some(names) = self.names.get_mut(&identity) else { return NameChange::Unheard };
        names.retain(|other| other != name);
        if let Some(other) = names.first() {
            return NameChange::Otherwise(other.clone());
        }
        self.names.remove(&identity);
        NameChange::Unheard
    }

    /// The subscribers, with their folders under the names that they use.
    fn reported(&self, event: notify::Result<Event>) -> Vec<(Arc<FolderListener>, notify::Result<Event>)> {
        let event = match event {
            Ok(event) if event.need_rescan() => return self.all(|| Ok(event.clone())),
            Ok(event) => event,
            Err(error) => return self.all(|| Err(notify::Error::generic(&error.to_string()))),
        };
        let mut paths: HashMap<u64, Vec<PathBuf>> = HashMap::new();
        for path in &event.paths {
            let within = path.parent().zip(path.file_name()).map(|(folder, name)| (folder, Some(name)));
            for (folder, name) in within.into_iter().chain([(path.as_path(), None)]) {
                for known in self.names_of(folder) {
                    let path = name.map_or_else(|| known.to_path_buf(), |name| known.join(name));
                    for hearer in self.folders.get(known).into_iter().flat_map(|folder| &folder.hearers) {
                        paths.entry(*hearer).or_default().push(path.clone());
                    }
                }
            }
        }
        let reported = paths.into_iter().filter_map(|(hearer, paths)| {
            let event = Event { paths, ..event.clone() };
            Some((Arc::clone(self.hearers.get(&hearer)?), Ok(event)))
        });
        reported.collect()
    }

    fn all(
        &self,
        event: impl Fn() -> notify::Result<Event>,
    ) -> Vec<(Arc<FolderListener>, notify::Result<Event>)> {
        self.hearers.values().map(|hear| (Arc::clone(hear), event())).collect()
    }

    /// All names of a folder that the system calls by one of them.
    fn names_of<'a>(&'a self, name: &'a Path) -> impl Iterator<Item = &'a Path> {
        let identity = self.folders.get(name).and_then(|folder| folder.identity);
        let names = identity.and_then(|identity| self.names.get(&identity));
        let alone = names.is_none().then_some(name);
        alone.into_iter().chain(names.into_iter().flatten().map(PathBuf::as_path))
    }
}

/// The identity of a folder; `None` where it is missing.
fn identity_of(folder: &Path) -> Option<FileIdentity> {
    FileIdentity::of(folder).ok()
}

#[cfg(test)]
mod tests;
