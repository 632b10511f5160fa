//! Watches the folders of files that were read.
//!
//! Rule: the system's word that something happened is only a reason to look; events of other files cost a lookup. At
//! most one thread a session, which ends with it. Where nothing can be watched, that is reported once, and the looks when
//! a turn begins and before each edit continue.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::ModifyKind;
use notify::{ErrorKind, EventKind};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::workspace::WatchReport;
use crate::workspace::changes::Tracker;
use kode_base::folder_watch::FolderWatch;
use kode_base::paths::{AbsPath, Target, real_path};
use kode_base::spelling::{Spellings, folded};
use kode_base::watch::{Burst, BurstState};

/// The most folders one session watches.
pub(super) const MAX_WATCHED_FOLDERS: usize = 512;

/// A file is checked when nothing has happened for so long.
const QUIET: Duration = Duration::from_millis(50);

/// A file is checked after so long though things continue happening.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The watched folders, and the requests for the watching thread.
pub(super) struct TargetWatch {
    state: Mutex<TargetWatchState>,
    wake: Condvar,
    max_folders: usize,
}

#[derive(Default)]
struct TargetWatchState {
    stage: WatchStage,
    /// Targets to be watched, and to be watched no longer.
    wanted: Vec<Target>,
    released: Vec<Target>,
    /// Folders that were deleted or moved away.
    lost: Vec<PathBuf>,
    /// Targets to which something happened.
    touched: BTreeSet<Target>,
    burst: Burst,
    /// The paths by which events name a target; none when it cannot be watched.
    paths: HashMap<Target, Vec<PathBuf>>,
    targets: HashMap<PathBuf, Vec<Target>>,
    folders: HashSet<PathBuf>,
    /// Those in which an event may spell a name in another way than its folder lists it.
    folding: HashSet<PathBuf>,
    /// Whether the missing watch was reported.
    has_reported: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WatchStage {
    /// No model was asked and no file read yet.
    #[default]
    Idle,
    Running,
    Ended,
}

/// The next job of the thread.
enum WatchWork {
    /// The set of watched folders changes.
    Arrange { wanted: Vec<Target>, released: Vec<Target>, lost: Vec<PathBuf> },
    /// Files are checked.
    Look(BTreeSet<Target>),
}

impl TargetWatch {
    pub(super) fn new(max_folders: usize) -> Self {
        Self { state: Mutex::default(), wake: Condvar::new(), max_folders }
    }

    /// Starts the thread, unless it runs or has ended: the first file that is read does not wait for it then.
    pub(super) fn start(&self, tracker: &Arc<Tracker>) {
        let mut state = self.state();
        if state.stage == WatchStage::Idle {
            let tracker = Arc::clone(tracker);
            let thread = std::thread::Builder::new().name("kode-watch".to_owned());
            state.stage = match thread.spawn(move || WatchThread::new(tracker).run()) {
                Ok(_) => WatchStage::Running,
                Err(error) => {
                    tracing::warn!(%error, "Files are not watched: the thread could not be started");
                    WatchStage::Ended
                }
            };
        }
    }

    /// Has a target watched, unless it is already. The first one starts the thread.
    pub(super) fn add(&self, target: &Target, tracker: &Arc<Tracker>) {
        self.start(tracker);
        let mut state = self.state();
        if state.stage == WatchStage::Ended || state.paths.contains_key(target) {
            return;
        }
        // Known from now on, so that it is not asked for twice.
        state.paths.insert(target.clone(), Vec::new());
        state.wanted.push(target.clone());
        self.wake.notify_one();
    }

    /// Watches a target no longer.
    pub(super) fn release(&self, target: Target) {
        let mut state = self.state();
        if state.stage == WatchStage::Running {
            state.released.push(target);
            self.wake.notify_one();
        }
    }

    /// Has a target checked soon, whatever happens to it.
    pub(super) fn look_again(&self, target: Target) {
        let mut state = self.state();
        if state.stage == WatchStage::Running {
            state.touch(target);
            self.wake.notify_one();
        }
    }

    /// Ends the thread; nothing is watched from now on.
    pub(super) fn stop(&self) {
        self.state().stage = WatchStage::Ended;
        self.wake.notify_one();
    }

    /// Waits for the next request; `None` at the end.
    fn next(&self) -> Option<WatchWork> {
        let mut state = self.state();
        loop {
            if state.stage == WatchStage::Ended {
                return None;
            }
            if !(state.wanted.is_empty() && state.released.is_empty() && state.lost.is_empty()) {
                return Some(WatchWork::Arrange {
                    wanted: std::mem::take(&mut state.wanted),
                    released: std::mem::take(&mut state.released),
                    lost: std::mem::take(&mut state.lost),
                });
            }
            match state.burst.poll(QUIET, LONGEST_WAIT) {
                BurstState::Idle => self.wake.wait(&mut state),
                BurstState::Ends(left) => {
                    self.wake.wait_for(&mut state, left);
                }
                BurstState::Ended => return Some(WatchWork::Look(std::mem::take(&mut state.touched))),
            }
        }
    }

    /// Takes what the system says. Called from the system's thread for everything in the watched folders.
    fn hear(&self, event: &notify::Event) {
        let mut state = self.state();
        if event.need_rescan() {
            let all: Vec<_> = state.paths.keys().cloned().collect();
            all.into_iter().for_each(|target| state.touch(target));
        }
        for path in &event.paths {
            for target in state.named_by(path) {
                state.touch(target);
            }
            if matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))) {
                state.lose(path);
            }
        }
        if !state.touched.is_empty() || !state.lost.is_empty() {
            self.wake.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, TargetWatchState> {
        self.state.lock()
    }
}

impl TargetWatchState {
    /// The targets that an event names. In a folder that folds, it may name them by another spelling.
    fn named_by(&self, path: &Path) -> Vec<Target> {
        let mut targets = self.targets.get(path).cloned().unwrap_or_default();
        if let (Some(folder), Some(name)) = (path.parent(), path.file_name())
            && self.folding.contains(folder)
        {
            targets.extend(self.targets.get(&folder.join(folded(name))).into_iter().flatten().cloned());
        }
        targets
    }

    fn touch(&mut self, target: Target) {
        self.burst.touch();
        self.touched.insert(target);
    }

    /// Notes that a path was removed or renamed: watched folders that it led to are no longer there, or are others by now,
    /// which then are watched: the system may report the old one late.
    fn lose(&mut self, path: &Path) {
        let lost: Vec<_> = self.folders.iter().filter(|folder| folder.starts_with(path)).cloned().collect();
        for folder in lost {
            self.folders.remove(&folder);
            self.folding.remove(&folder);
            let inside = self.targets.iter().filter(|(path, _)| path.parent() == Some(&folder));
            let inside: HashSet<Target> = inside.flat_map(|(_, targets)| targets.clone()).collect();
            for target in inside {
                self.forget(&target);
                self.touch(target.clone());
                self.paths.insert(target.clone(), Vec::new());
                self.wanted.push(target);
            }
            self.lost.push(folder);
        }
    }

    /// Forgets how events name a target. Answers the folders in which no other target is left.
    fn forget(&mut self, target: &Target) -> Vec<PathBuf> {
        let paths = self.paths.remove(target).unwrap_or_default();
        for path in &paths {
            if let Some(targets) = self.targets.get_mut(path) {
                targets.retain(|other| other != target);
                if targets.is_empty() {
                    self.targets.remove(path);
                }
            }
        }
        let folders: HashSet<&Path> = paths.iter().filter_map(|path| path.parent()).collect();
        let is_empty = |folder: &&Path| !self.targets.keys().any(|path| path.parent() == Some(folder));
        folders.into_iter().filter(is_empty).map(Path::to_path_buf).collect()
    }
}

/// The thread that watches and looks.
struct WatchThread {
    tracker: Arc<Tracker>,
    watcher: Option<FolderWatch>,
    spellings: Arc<Spellings>,
}

impl WatchThread {
    fn new(tracker: Arc<Tracker>) -> Self {
        Self { tracker, watcher: None, spellings: Spellings::here() }
    }

    fn run(mut self) {
        self.watcher = self.connect();
        while let Some(work) = self.watch().next() {
            match work {
                WatchWork::Look(touched) => self.tracker.look_after_events(touched),
                WatchWork::Arrange { wanted, released, lost } => {
                    lost.iter().for_each(|folder| self.leave(folder));
                    released.iter().for_each(|target| self.release(target));
                    wanted.into_iter().for_each(|target| self.add(target));
                }
            }
        }
    }

    fn watch(&self) -> &TargetWatch {
        &self.tracker.watch
    }

    fn connect(&self) -> Option<FolderWatch> {
        let tracker = Arc::clone(&self.tracker);
        let hear = move |event: notify::Result<notify::Event>| match event {
            Ok(event) => tracker.watch.hear(&event),
            Err(error) => report(&tracker, &error.to_string()),
        };
        match FolderWatch::new(hear) {
            Ok(watcher) => Some(watcher),
            Err(error) => {
                report(&self.tracker, &error.to_string());
                None
            }
        }
    }

    fn add(&mut self, target: Target) {
        let Target::File(file) = &target else { return };
        let places = places(file);
        let mut paths = Vec::new();
        let mut folding = Vec::new();
        let mut is_missing = places.is_empty();
        for path in places {
            let Some(folder) = path.parent() else { continue };
            match self.enter(folder) {
                Ok(()) => {
                    let folds = AbsPath::new(folder).is_ok_and(|folder| self.spellings.folds(&folder));
                    let other = path.file_name().filter(|_| folds).map(|name| folder.join(folded(name)));
                    folding.extend(other.as_ref().map(|_| folder.to_path_buf()));
                    paths.extend(other.filter(|other| *other != path));
                    paths.push(path);
                }
                Err(Obstacle::Missing) => is_missing = true,
                Err(Obstacle::Told) => {}
            }
        }
        let mut state = self.watch().state();
        let is_lost = |path: &PathBuf| path.parent().is_some_and(|folder| !state.folders.contains(folder));
        if paths.iter().any(is_lost) {
            // Its folder was reported as gone meanwhile: the current one is watched.
            state.wanted.push(target.clone());
        } else if paths.is_empty() && is_missing {
            // Asked for again when a turn begins: the folder may be there by then.
            state.paths.remove(&target);
        } else {
            state.folding.extend(folding);
            for path in &paths {
                state.targets.entry(path.clone()).or_default().push(target.clone());
            }
            state.paths.insert(target.clone(), paths);
        }
        // Whatever happened between the reading and now.
        state.touch(target);
    }

    /// Has a folder watched. No lock is held: the system's thread takes part in it, and may be waiting for one.
    fn enter(&mut self, folder: &Path) -> Result<(), Obstacle> {
        let watched = {
            let state = self.watch().state();
            if state.folders.contains(folder) {
                return Ok(());
            }
            state.folders.len()
        };
        let limit = self.watch().max_folders;
        if watched >= limit {
            report(&self.tracker, &format!("{limit} folders are watched, and not more"));
            return Err(Obstacle::Told);
        }
        let Some(watcher) = &self.watcher else { return Err(Obstacle::Told) };
        // Known before it is watched: the end of an older folder of that name may be told at any time and end the watch of
        // this one.
        self.tracker.watch.state().folders.insert(folder.to_path_buf());
        let watched = watcher.watch(folder);
        if watched.is_err() {
            self.tracker.watch.state().folders.remove(folder);
        }
        match watched {
            Ok(()) => Ok(()),
            Err(error) if is_missing(&error) => Err(Obstacle::Missing),
            Err(error) => {
                report(&self.tracker, &error.to_string());
                Err(Obstacle::Told)
            }
        }
    }

    fn release(&mut self, target: &Target) {
        let empty = self.watch().state().forget(target);
        for folder in empty {
            let mut state = self.watch().state();
            state.folding.remove(&folder);
            if state.folders.remove(&folder) {
                drop(state);
                self.leave(&folder);
            }
        }
    }

    /// Has a folder watched no longer; the system may have seen to that itself.
    fn leave(&mut self, folder: &Path) {
        if let Some(watcher) = &self.watcher {
            watcher.unwatch(folder);
        }
    }
}

/// Why a folder is not watched.
enum Obstacle {
    /// It is not there.
    Missing,
    /// A reported event.
    Told,
}

/// The paths, without links in their folders, by which events name a file: its own, and that of the file it links
/// to. None when its folder is missing.
fn places(file: &AbsPath) -> Vec<PathBuf> {
    let folder = file.parent().and_then(|folder| real_path(folder).ok());
    let named = folder.zip(file.as_path().file_name()).map(|(folder, name)| folder.join(name));
    let real = real_path(file).ok().filter(|real| Some(real) != named.as_ref());
    named.into_iter().chain(real).collect()
}

fn is_missing(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::PathNotFound => true,
        ErrorKind::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

/// Tells once that something is not watched.
fn report(tracker: &Tracker, reason: &str) {
    if std::mem::replace(&mut tracker.watch.state().has_reported, true) {
        return;
    }
    tracing::warn!(reason, "Not all files that were read are watched; they are compared when a turn begins");
    tracker.report(WatchReport::NotWatching { reason: reason.to_owned() });
}
