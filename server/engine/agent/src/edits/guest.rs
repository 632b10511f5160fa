//! The changes that guests make to files around this program, which become hunks like those of a command.
//!
//! Rule: a guest may change a file at any time, so the files are compared whenever something else is about to change them, and
//! when a guest reports an action. The files that others change in between are never a guest's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::edits::Edits;
use crate::edits::command::CommandBaseline;
use crate::edits::feed::CommandGuard;
use kode_base::ids::ChangeId;
use kode_base::paths::Target;
use kode_text::edit::change::{AppliedFile, FileRemoval};
use kode_text::edit::ledger::ChangeOrigin;
use kode_text::workspace::shadow::Scan;

/// The guests at work.
#[derive(Default)]
pub(crate) struct GuestWatch {
    state: tokio::sync::Mutex<WatchedGuests>,
    /// The changes of others that are under way.
    pauses: Arc<AtomicUsize>,
}

#[derive(Default)]
struct WatchedGuests {
    /// The origins of their changes, the newest guest last.
    origins: Vec<ChangeOrigin>,
    /// The texts since the last comparison; `None` without guests, and while others change files.
    baseline: Option<CommandBaseline>,
    /// The files as the last comparison found them, from which the next baseline goes on: between two scans of the workspace a
    /// write would be seen by neither.
    found: Option<Scan>,
    /// How many pauses have begun.
    paused: u64,
    /// Changed files that no guest was given yet.
    changed: Vec<Target>,
    running: Option<CommandGuard>,
}

/// While it lives, others change files.
pub(crate) struct GuestPause {
    pauses: Arc<AtomicUsize>,
    /// Its number.
    number: u64,
    /// The files at its beginning; `None` without guests, and within another pause.
    scan: Option<Scan>,
}

impl GuestPause {
    /// Whether it matters which files others change meanwhile.
    pub(crate) fn is_watched(&self) -> bool {
        self.scan.is_some()
    }
}

impl Drop for GuestPause {
    fn drop(&mut self) {
        self.pauses.fetch_sub(1, Ordering::AcqRel);
    }
}

impl WatchedGuests {
    fn note(&mut self, changed: Vec<Target>) {
        self.changed.extend(changed);
        self.changed.sort();
        self.changed.dedup();
    }
}

impl Edits {
    /// Notes that a guest begins to work. Nothing else must be changing files.
    pub(crate) async fn guest_begins(&self, change: ChangeOrigin) {
        let mut state = self.guests.state.lock().await;
        self.compare(&mut state, None).await;
        state.origins.push(change);
        state.running.get_or_insert_with(|| self.command_runs());
        self.renew(&mut state).await;
    }

    /// Enters what guests have changed so far as this change, and returns the files. Nothing else must be changing files.
    pub(crate) async fn guest_acted(&self, change: &ChangeOrigin) -> Vec<Target> {
        let mut state = self.guests.state.lock().await;
        self.compare(&mut state, Some(change)).await;
        self.renew(&mut state).await;
        std::mem::take(&mut state.changed)
    }

    /// Enters the last changes of a guest that has ended, and returns the files. Nothing else must be changing files.
    pub(crate) async fn guest_ends(&self, change: &ChangeId) -> Vec<Target> {
        let mut state = self.guests.state.lock().await;
        let origin = state.origins.iter().position(|origin| origin.id == *change);
        let origin = origin.map(|at| state.origins.remove(at));
        self.compare(&mut state, origin.as_ref()).await;
        if state.origins.is_empty() {
            state.running = None;
        }
        self.renew(&mut state).await;
        std::mem::take(&mut state.changed)
    }

    /// Enters what guests have changed, before others change files. Gives nothing to wait for without a guest.
    pub(crate) async fn pause_guests(&self) -> GuestPause {
        self.guests.pauses.fetch_add(1, Ordering::AcqRel);
        let mut pause = GuestPause { pauses: Arc::clone(&self.guests.pauses), number: 0, scan: None };
        let mut state = self.guests.state.lock().await;
        state.paused += 1;
        pause.number = state.paused;
        self.compare(&mut state, None).await;
        pause.scan = state.found.take();
        pause
    }

    /// The files that a change has written on the disk: neither those that had its text by then, which a guest may have written
    /// itself, nor documents that no editor has saved since.
    pub(crate) async fn written(&self, applied: &[AppliedFile], removals: &[FileRemoval]) -> Vec<Target> {
        let mut written: Vec<Target> = removals.iter().map(|removal| removal.target.clone()).collect();
        for file in applied {
            let is_written = match &file.shown {
                None => file.created || !file.edits.is_empty(),
                Some(_) => {
                    let saved = self.workspace.saved_text(&file.target).await;
                    saved.is_some_and(|saved| *saved == *file.new_text)
                }
            };
            if is_written {
                written.push(file.target.clone());
            }
        }
        written
    }

    /// Watches guests again, after others have changed these files; `None` where they may have changed any. Other files that have
    /// changed meanwhile are the guest's, but for those with the text of an open document, which the user may have saved. Where
    /// another pause has begun meanwhile, any file may be one of its own.
    pub(crate) async fn resume_guests(&self, mut pause: GuestPause, own: Option<&[Target]>) {
        let mut state = self.guests.state.lock().await;
        if let (Some(scan), Some(own)) = (pause.scan.take(), own)
            && pause.number == state.paused
            && let Some(origin) = state.origins.last()
        {
            let change = ChangeOrigin { id: ChangeId::generate(), ..origin.clone() };
            let baseline = self.baseline_of(scan);
            let mut others = own.to_vec();
            for (target, text) in baseline.open() {
                if self.workspace.saved_text(target).await.is_some_and(|saved| *text == *saved) {
                    others.push(target.clone());
                }
            }
            let (changed, found) = self.after_command_except(baseline, &change, &others).await;
            state.note(changed);
            state.found = Some(found);
        }
        drop(pause);
        self.renew(&mut state).await;
    }

    async fn compare(&self, state: &mut WatchedGuests, change: Option<&ChangeOrigin>) {
        let Some(baseline) = state.baseline.take() else { return };
        let Some(change) = change.or(state.origins.last()).cloned() else { return };
        let change = ChangeOrigin { id: ChangeId::generate(), ..change };
        let (changed, found) = self.after_command_except(baseline, &change, &[]).await;
        state.note(changed);
        state.found = Some(found);
    }

    async fn renew(&self, state: &mut WatchedGuests) {
        let is_paused = self.guests.pauses.load(Ordering::Acquire) > 0;
        let found = state.found.take();
        if state.origins.is_empty() || is_paused || state.baseline.is_some() {
            return;
        }
        state.baseline = Some(match found {
            Some(found) => self.baseline_of(found),
            None => self.before_command().await,
        });
    }
}
