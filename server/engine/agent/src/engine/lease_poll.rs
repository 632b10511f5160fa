//! One poll for the requests of other processes, over the folders of all sessions that are live here.
//!
//! Rule: the watch of the system reports a request at once; the poll finds what no watch reports, as on a file system of another
//! host. It asks for the time of each folder and reads none of them: a session at rest costs one `stat`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;
use tokio::time::sleep;

use crate::core::lock;
use kode_base::blocking;
use kode_base::task;
use kode_journal::lease::Lease;

/// The interval of polling.
const POLL: Duration = Duration::from_secs(2);

/// A file system may give two changes the same time: a folder that changed this recently counts as changed again.
const RECENT: Duration = Duration::from_secs(5);

/// The folders that are polled. A clone is the same poll.
#[derive(Clone, Debug, Default)]
pub(super) struct LeasePoll {
    folders: Arc<Mutex<PolledFolders>>,
}

#[derive(Debug, Default)]
struct PolledFolders {
    next: u64,
    folders: HashMap<u64, PolledFolder>,
    is_running: bool,
}

#[derive(Debug)]
struct PolledFolder {
    lease: Lease,
    wake: Arc<Notify>,
    seen: SeenTime,
}

/// The time of a folder as the last poll found it.
#[derive(Clone, Copy, Debug, Default)]
struct SeenTime {
    changed: Option<SystemTime>,
    was_recent: bool,
}

/// A folder is polled until this is dropped.
#[derive(Debug)]
pub(super) struct PollGuard {
    poll: LeasePoll,
    id: u64,
}

impl Drop for PollGuard {
    fn drop(&mut self) {
        lock(&self.poll.folders).folders.remove(&self.id);
    }
}

impl LeasePoll {
    /// Wakes when the folder of a session's requests has changed, or may have.
    pub(super) fn watch(&self, lease: &Lease, wake: &Arc<Notify>) -> PollGuard {
        let (lease, wake) = (lease.clone(), Arc::clone(wake));
        let mut folders = lock(&self.folders);
        folders.next += 1;
        let id = folders.next;
        folders.folders.insert(id, PolledFolder { lease, wake, seen: SeenTime::default() });
        if !std::mem::replace(&mut folders.is_running, true) {
            task::spawn(self.clone().run());
        }
        PollGuard { poll: self.clone(), id }
    }

    /// Polls until there is no folder left.
    async fn run(self) {
        loop {
            sleep(POLL).await;
            let leases: Vec<(u64, Lease)> = {
                let mut folders = lock(&self.folders);
                folders.is_running = !folders.folders.is_empty();
                if !folders.is_running {
                    return;
                }
                folders.folders.iter().map(|(id, folder)| (*id, folder.lease.clone())).collect()
            };
            let look = move || leases.into_iter().map(|(id, lease)| (id, lease.changed_at())).collect();
            let times: Vec<(u64, Option<SystemTime>)> = blocking(look).await;
            let (now, mut folders) = (SystemTime::now(), lock(&self.folders));
            for (id, changed) in times {
                if let Some(folder) = folders.folders.get_mut(&id)
                    && folder.seen.look(changed, now)
                {
                    folder.wake.notify_one();
                }
            }
        }
    }
}

impl SeenTime {
    /// Notes the time of a folder, and returns whether the folder may have changed since the last look.
    fn look(&mut self, changed: Option<SystemTime>, now: SystemTime) -> bool {
        let is_other = self.changed != changed || self.was_recent;
        // A time in the future is that of another host.
        let is_recent = |at: SystemTime| now.duration_since(at).map_or(true, |age| age < RECENT);
        *self = Self { changed, was_recent: changed.is_some_and(is_recent) };
        is_other
    }
}

#[cfg(test)]
mod tests {
    use kode_journal::lease::SessionWriter;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_is_found_without_a_watch_until_nothing_is_polled_any_more() {
        let home = tempfile::tempdir().unwrap();
        let (poll, wake) = (LeasePoll::default(), Arc::new(Notify::new()));
        let lease = Lease::beside(&home.path().join("journal.jsonl"));
        let guard = poll.watch(&lease, &wake);
        lease.announce(&SessionWriter::this("another"));
        lease.write_pending(&"something").unwrap();
        wake.notified().await;
        drop(guard);
        sleep(POLL * 2).await;
        assert!(!lock(&poll.folders).is_running);
        // It begins again with the next.
        let _guard = poll.watch(&lease, &wake);
        wake.notified().await;
    }

    #[test]
    fn a_folder_is_read_again_when_its_time_is_another_or_was_recent() {
        let now = SystemTime::now();
        let old = Some(now - Duration::from_secs(60));
        let mut seen = SeenTime::default();
        assert!(!seen.look(None, now), "no folder, no request");
        assert!(seen.look(old, now));
        assert!(!seen.look(old, now), "at rest");
        assert!(seen.look(Some(now), now));
        assert!(seen.look(Some(now), now), "a second change may have the same time");
        assert!(seen.look(Some(now), now + RECENT), "the look before was too early to tell");
        assert!(!seen.look(Some(now), now + RECENT * 2));
        let ahead = Some(now + Duration::from_secs(3_600));
        assert!(seen.look(ahead, now) && seen.look(ahead, now), "the clock of another host is ahead");
    }
}
