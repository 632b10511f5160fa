//! Watches settings files, those that are not there yet among them.
//!
//! Rule: the system's word that something happened is only a reason to look; only real changes are reported. One thread for
//! all files, which ends with the watch. Where nothing can be watched, settings are still checked before each use.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::SettingsStamp;
use kode_base::paths::{AbsPath, real_path};
use kode_base::watch::{Burst, BurstState, FolderSet};
use parking_lot::{Condvar, Mutex, MutexGuard};

/// Files are checked when nothing has happened to them for so long.
pub const QUIET: Duration = Duration::from_millis(300);
/// Files are checked after so long though things continue happening.
const LONGEST_WAIT: Duration = Duration::from_secs(3);
/// The most folders that are watched.
const MAX_FOLDERS: usize = 256;

/// A watch over files. Dropping it ends it.
#[derive(Debug)]
pub struct FileWatch(Arc<SharedFileWatch>);

#[derive(Debug, Default)]
struct SharedFileWatch {
    state: Mutex<FileWatchState>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct FileWatchState {
    is_over: bool,
    /// The files, when they differ from before, in the state of the report.
    wanted: Option<FileStamps>,
    /// The paths by which events name files and the folders on the way to them.
    names: BTreeSet<PathBuf>,
    touched: Burst,
}

/// Files as they looked from outside.
type FileStamps = BTreeMap<AbsPath, Option<SettingsStamp>>;

/// The next job of the thread.
enum FileWatchWork {
    Files(FileStamps),
    Look,
}

impl FileWatch {
    /// A watch over no files yet. `changed` is called on its thread with files that have come, gone or changed.
    #[must_use]
    pub fn start(changed: impl Fn(&[AbsPath]) + Send + 'static) -> Self {
        let shared = Arc::<SharedFileWatch>::default();
        let thread = FileWatchThread { shared: Arc::clone(&shared), known: BTreeMap::new() };
        let spawned = std::thread::Builder::new().name("kode-settings".to_owned());
        if let Err(error) = spawned.spawn(move || thread.run(&changed)) {
            tracing::warn!(%error, "settings files are not watched; they are checked before each use");
        }
        Self(shared)
    }

    /// Watches these files and no others: changes to them from now on are reported. Checks each.
    pub fn watch(&self, files: impl IntoIterator<Item = AbsPath>) {
        let stamped = files.into_iter().map(|file| {
            let stamp = SettingsStamp::of(&file);
            (file, stamp)
        });
        let stamped = stamped.collect();
        self.0.state().wanted = Some(stamped);
        self.0.wake.notify_one();
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        self.0.state().is_over = true;
        self.0.wake.notify_one();
    }
}

impl SharedFileWatch {
    fn state(&self) -> MutexGuard<'_, FileWatchState> {
        self.state.lock()
    }

    /// Waits for the next request; `None` at the end.
    fn next(&self) -> Option<FileWatchWork> {
        let mut state = self.state();
        loop {
            if state.is_over {
                return None;
            }
            if let Some(files) = state.wanted.take() {
                return Some(FileWatchWork::Files(files));
            }
            match state.touched.poll(QUIET, LONGEST_WAIT) {
                BurstState::Idle => self.wake.wait(&mut state),
                BurstState::Ends(left) => {
                    self.wake.wait_for(&mut state, left);
                }
                BurstState::Ended => return Some(FileWatchWork::Look),
            }
        }
    }

    /// Takes what the system says. Called from the system's thread for everything in the watched folders.
    fn hear(&self, event: &notify::Event) {
        let mut state = self.state();
        if event.need_rescan() || event.paths.iter().any(|path| state.names.contains(path)) {
            state.touched.touch();
            drop(state);
            self.wake.notify_one();
        }
    }
}

/// The thread that watches and looks.
struct FileWatchThread {
    shared: Arc<SharedFileWatch>,
    known: FileStamps,
}

impl FileWatchThread {
    fn run(mut self, changed: &dyn Fn(&[AbsPath])) {
        let shared = Arc::downgrade(&self.shared);
        let hear = move |event: notify::Result<notify::Event>| match (event, shared.upgrade()) {
            (Ok(event), Some(shared)) => shared.hear(&event),
            (Err(error), _) => tracing::warn!(%error, "a settings file may have changed unseen"),
            (_, None) => {}
        };
        let mut folders = match FolderSet::new(MAX_FOLDERS, hear) {
            Ok(folders) => folders,
            Err(error) => {
                tracing::warn!(%error, "settings files are not watched; they are checked before each use");
                return;
            }
        };
        while let Some(work) = self.shared.next() {
            match work {
                FileWatchWork::Files(files) => {
                    self.known.retain(|file, _| files.contains_key(file));
                    for (file, stamp) in files {
                        self.known.entry(file).or_insert(stamp);
                    }
                    self.arrange(&mut folders);
                    // Whatever happened between the first look and now.
                    self.shared.state().touched.touch();
                }
                FileWatchWork::Look => {
                    // A folder that came may hold files already: it is watched before it is looked into.
                    self.arrange(&mut folders);
                    let mut news = Vec::new();
                    for (file, known) in &mut self.known {
                        let now = SettingsStamp::of(file);
                        if now != *known {
                            *known = now;
                            news.push(file.clone());
                        }
                    }
                    if !news.is_empty() {
                        changed(&news);
                    }
                }
            }
        }
    }

    /// Watches the folders of all files, or of what there is on the way to them.
    fn arrange(&self, set: &mut FolderSet) {
        let mut names = BTreeSet::new();
        let mut folders = BTreeSet::new();
        for file in self.known.keys() {
            for place in places(file) {
                folders.extend(place.parent().map(Path::to_path_buf));
                names.insert(place);
            }
        }
        // Before the folders are watched: no event may come before its listener.
        self.shared.state().names = names;
        for unwatched in set.set(folders) {
            let (folder, reason) = (unwatched.folder.display(), &unwatched.reason);
            tracing::warn!(%folder, reason, "a folder of settings is not watched");
        }
    }
}

/// The paths, without links in their folders, whose events concern a file: its own or, where its folder is not there, that of
/// the folder to come; and that of the file it leads to.
fn places(file: &AbsPath) -> Vec<PathBuf> {
    let way = file.as_path().ancestors().zip(file.as_path().ancestors().skip(1));
    let there = way.filter_map(|(path, folder)| {
        let folder = real_path(folder).ok()?;
        Some(folder.join(path.file_name()?))
    });
    let named = there.into_iter().next();
    // The folder itself may be deleted and come again.
    let folder = file.as_path().parent().and_then(|folder| real_path(folder).ok());
    let real = real_path(file).ok();
    let mut places: Vec<_> = named.into_iter().chain(folder).chain(real).collect();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    fn watching(files: &[&AbsPath]) -> (FileWatch, Receiver<Vec<AbsPath>>) {
        let (sender, receiver) = channel();
        let watch = FileWatch::start(move |files| sender.send(files.to_vec()).unwrap());
        watch.watch(files.iter().copied().cloned());
        (watch, receiver)
    }

    #[test]
    fn files_that_change_come_in_new_folders_or_go_are_reported_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(real_path(folder.path()).unwrap()).unwrap();
        let (there, to_come) = (root.join("there.json"), root.join(".kode/sub/settings.json"));
        fs::write(there.as_path(), "1").unwrap();
        let (_watch, reported) = watching(&[&there, &to_come]);

        fs::write(there.as_path(), "12").unwrap();
        assert_eq!(reported.recv().unwrap(), std::slice::from_ref(&there));
        fs::write(root.join("other").as_path(), "x").unwrap();
        fs::create_dir_all(to_come.parent().unwrap().as_path()).unwrap();
        fs::write(to_come.as_path(), "1").unwrap();
        assert_eq!(reported.recv().unwrap(), std::slice::from_ref(&to_come));
        fs::write(to_come.as_path(), "123").unwrap();
        assert_eq!(reported.recv().unwrap(), std::slice::from_ref(&to_come));
        fs::remove_dir_all(root.join(".kode").as_path()).unwrap();
        assert_eq!(reported.recv().unwrap(), std::slice::from_ref(&to_come));
        fs::remove_file(there.as_path()).unwrap();
        assert_eq!(reported.recv().unwrap(), [there]);
    }

    #[test]
    fn a_file_behind_a_link_is_reported_under_the_name_it_is_known_by() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(real_path(folder.path()).unwrap()).unwrap();
        fs::create_dir(root.join("dotfiles").as_path()).unwrap();
        fs::write(root.join("dotfiles/a.json").as_path(), "1").unwrap();
        let link = root.join("settings.json");
        std::os::unix::fs::symlink(root.join("dotfiles/a.json").as_path(), link.as_path()).unwrap();
        let (_watch, reported) = watching(&[&link]);
        fs::write(root.join("dotfiles/a.json").as_path(), "12").unwrap();
        assert_eq!(reported.recv().unwrap(), [link]);
    }
}
