//! Learns of changes to the files of users: folders are watched, and a burst of changes counts as one.
//!
//! Rule: the system's word is only a reason to look; nothing is made in any folder. Where watching fails that is reported
//! once, and the files are still checked when they are needed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use kode_base::paths::AbsPath;
use kode_base::watch::FolderSet;

/// A change counts when nothing has happened for so long.
const QUIET: Duration = Duration::from_millis(300);

/// A change counts after so long though things continue happening.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// The most folders that are watched for one workspace.
const MAX_FOLDERS: usize = 1_000;

/// Waits until something has changed and then for a while nothing more.
pub(super) async fn settled(changed: &Notify) {
    changed.notified().await;
    let last = Instant::now() + LONGEST_WAIT;
    loop {
        let quiet = last.min(Instant::now() + QUIET);
        tokio::select! {
            biased;
            () = changed.notified() => {}
            () = sleep_until(quiet) => return,
        }
    }
}

/// The folders that are watched. Dropping it ends that.
pub(super) struct ExtensionWatch {
    folders: Option<FolderSet>,
    has_reported: bool,
}

impl ExtensionWatch {
    /// Watches nothing yet. Reports changes in the places of `concerns` to `changed`.
    pub(super) fn new(
        changed: Arc<Notify>,
        concerns: impl Fn(&std::path::Path) -> bool + Send + Sync + 'static,
    ) -> Self {
        let hear = move |event: notify::Result<notify::Event>| match event {
            Ok(event) => {
                if event.need_rescan() || event.paths.iter().any(|path| concerns(path)) {
                    changed.notify_one();
                }
            }
            Err(error) => tracing::debug!(%error, "a change to users' files was not understood"),
        };
        let mut watch = Self { folders: None, has_reported: false };
        match FolderSet::new(MAX_FOLDERS, hear) {
            Ok(folders) => watch.folders = Some(folders),
            Err(error) => watch.report(&error.to_string()),
        }
        watch
    }

    /// Watches these folders and no others; those that are not there are left out. True when all that are there are
    /// watched. Blocks on the system.
    pub(super) fn arrange(&mut self, wanted: impl IntoIterator<Item = AbsPath>) -> bool {
        let Some(folders) = &mut self.folders else { return false };
        let unwatched = folders.set(wanted.into_iter().map(PathBuf::from));
        if let Some(first) = unwatched.first() {
            self.report(&first.reason);
        }
        unwatched.is_empty()
    }

    fn report(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.has_reported, true) {
            tracing::warn!(
                reason,
                "not all folders of agents, skills, commands and styles are watched; they are read when needed"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ten_changes_within_200_milliseconds_count_as_one() {
        let changed = Arc::new(Notify::new());
        let counting = Arc::clone(&changed);
        let (counted, mut count) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            loop {
                settled(&counting).await;
                counted.send(Instant::now()).unwrap();
            }
        });
        let began = Instant::now();
        for _ in 0..10 {
            changed.notify_one();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let first = count.recv().await.unwrap();
        assert_eq!(first - began, Duration::from_millis(480), "300 ms after the last of them");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(count.try_recv().is_err());
        changed.notify_one();
        assert!(count.recv().await.is_some(), "and the next one counts again");
    }

    #[tokio::test(start_paused = true)]
    async fn changes_without_end_count_after_a_while() {
        let changed = Arc::new(Notify::new());
        let busy = Arc::clone(&changed);
        tokio::spawn(async move {
            loop {
                busy.notify_one();
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        let began = Instant::now();
        settled(&changed).await;
        assert!(began.elapsed() <= LONGEST_WAIT + QUIET);
    }
}
