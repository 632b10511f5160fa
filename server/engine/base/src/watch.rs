//! Subscriptions to folders, and the pause after which a burst of events counts as one change.
//!
//! Rule: all subscriptions share the one OS watch of [`FolderWatch`]. An event is a hint to stat and never the change itself,
//! so events are counted and not kept: what an event is about is each subscriber's filter.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use notify::{ErrorKind, Event};

use crate::folder_watch::FolderWatch;

/// A burst of events, which ends when nothing has happened for a while, or after a limit though events continue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Burst {
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Burst {
    /// Counts an event.
    pub fn touch(&mut self) {
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    /// The state of the burst, which ends `quiet` after its last event, and at the latest `longest` after its first. One that has
    /// ended is taken.
    pub fn poll(&mut self, quiet: Duration, longest: Duration) -> BurstState {
        let Some((first, last)) = self.first.zip(self.last) else { return BurstState::Idle };
        let end = (last + quiet).min(first + longest);
        let left = end.saturating_duration_since(Instant::now());
        if left > Duration::ZERO {
            return BurstState::Ends(left);
        }
        *self = Self::default();
        BurstState::Ended
    }
}

/// The state of a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BurstState {
    /// There was no event.
    Idle,
    /// It ends after this time, unless there are more events.
    Ends(Duration),
    /// It has ended and counts as one change; the next event begins another.
    Ended,
}

/// A set of watched folders. Dropping it ends the watch.
pub struct FolderSet {
    watch: FolderWatch,
    watched: BTreeSet<PathBuf>,
    limit: usize,
}

/// A folder that is not watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnwatchedFolder {
    /// Its path.
    pub folder: PathBuf,
    /// The reason, for a log line.
    pub reason: String,
}

impl FolderSet {
    /// An empty set of at most `limit` folders. `on_event` is called on the OS watch's thread: it must neither wait nor take long.
    ///
    /// # Errors
    /// When the OS refuses a watch, such as at the inotify limit.
    pub fn new(
        limit: usize,
        on_event: impl Fn(notify::Result<Event>) + Send + Sync + 'static,
    ) -> notify::Result<Self> {
        Ok(Self { watch: FolderWatch::new(on_event)?, watched: BTreeSet::new(), limit })
    }

    /// Watches these folders and no others, and returns those that it cannot watch. Folders that are missing are skipped. Blocks on
    /// the OS watch's thread: no lock may be held that `on_event` takes.
    pub fn set(&mut self, wanted: impl IntoIterator<Item = PathBuf>) -> Vec<UnwatchedFolder> {
        let wanted: BTreeSet<PathBuf> = wanted.into_iter().filter(|folder| folder.is_dir()).collect();
        for gone in self.watched.difference(&wanted) {
            self.watch.unwatch(gone);
        }
        self.watched.clear();
        let mut unwatched = Vec::new();
        for folder in wanted {
            match self.add(&folder) {
                Ok(()) => drop(self.watched.insert(folder)),
                Err(Some(reason)) => unwatched.push(UnwatchedFolder { folder, reason }),
                Err(None) => {}
            }
        }
        unwatched
    }

    /// Also a folder that is watched already: there may be another one under its name by now.
    fn add(&self, folder: &Path) -> Result<(), Option<String>> {
        if self.watched.len() >= self.limit {
            return Err(Some(format!("{} folders are watched, and not more", self.limit)));
        }
        self.watch.watch(folder).map_err(|error| match error.kind {
            ErrorKind::PathNotFound => None,
            _ => Some(error.to_string()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_burst_ends_after_a_pause_or_at_its_limit() {
        let hour = Duration::from_secs(3_600);
        let mut burst = Burst::default();
        assert_eq!(burst.poll(hour, hour), BurstState::Idle);
        burst.touch();
        assert!(matches!(burst.poll(hour, hour), BurstState::Ends(left) if left <= hour));
        for (quiet, longest) in [(Duration::ZERO, hour), (hour, Duration::ZERO)] {
            burst.touch();
            assert_eq!(burst.poll(quiet, longest), BurstState::Ended);
            assert_eq!(burst.poll(quiet, longest), BurstState::Idle, "one burst is one change");
        }
    }

    #[test]
    fn a_set_watches_its_folders_up_to_its_limit_and_skips_missing_ones() {
        let folder = tempfile::tempdir().unwrap();
        let root = crate::paths::real_path(folder.path()).unwrap();
        let paths: Vec<_> = ["a", "b", "c"].map(|name| root.join(name)).into();
        for path in &paths[..2] {
            fs::create_dir(path).unwrap();
        }
        let (sender, events) = channel();
        let mut set = FolderSet::new(2, move |event| sender.send(event).unwrap_or_default()).unwrap();
        assert_eq!(set.set(paths.clone()), []);
        fs::write(paths[0].join("file"), "x").unwrap();
        assert!(events.recv().unwrap().unwrap().paths[0].starts_with(&paths[0]));

        fs::create_dir(&paths[2]).unwrap();
        let unwatched = set.set(paths.clone());
        assert_eq!(unwatched.len(), 1, "{unwatched:?}");
        assert!(unwatched[0].reason.contains("2 folders"));
        assert_eq!(set.set([paths[1].clone()]), []);
        while events.try_recv().is_ok() {}
        fs::write(paths[0].join("other"), "x").unwrap();
        fs::write(paths[1].join("file"), "x").unwrap();
        let next = events.recv().unwrap().unwrap();
        assert!(next.paths[0].starts_with(&paths[1]), "the first folder is no longer watched: {next:?}");
    }
}
