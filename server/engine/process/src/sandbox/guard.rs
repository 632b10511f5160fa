//! Guarded files: those that steer other programs, so that who writes them runs code outside the sandbox later.
//!
//! Rule: existing files are read-only; new ones are set aside before any program obeys them, and the user decides about it.
//! It is watched as long as a command runs. Where not everything was found, no command is run.

#![expect(
    clippy::disallowed_methods,
    reason = "it writes files of its own, or those that a call was allowed"
)]

mod aside;
#[cfg(target_os = "linux")]
mod index;
mod reopened;
mod repository;
mod restore;
mod settle;
mod survey;
#[cfg(target_os = "macos")]
mod walk;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, LazyLock, Weak};
use std::thread;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use crate::sandbox::helper::places::PolicyPaths;
use crate::sandbox::{GuardReport, QuarantinedFile, RestoredPath};
#[cfg(target_os = "linux")]
use index::GuardIndex;
use reopened::reopen;
use settle::{GuardOutcome, NewEntries, SettlePoint};
#[cfg(target_os = "macos")]
use walk::SurveyCache as GuardIndex;

pub(crate) use aside::Quarantine;
#[cfg(all(test, target_os = "linux"))]
pub(crate) use repository::is_data_of_git;
#[cfg(any(target_os = "macos", all(test, target_os = "linux")))]
pub(crate) use repository::{DATA_NAMES, DataNames};
pub(crate) use restore::GuardSnapshot;
pub(crate) use survey::{GuardScope, GuardSurvey, GuardedPath};

/// After how long something that may be half made is judged again.
const AGAIN: Duration = Duration::from_millis(60);
/// For how long changes are collected before they are checked.
const QUIET: Duration = Duration::from_millis(20);

/// The input of the helper: the resolved paths of the policy, the guarded files, and the folder for files that it sets aside.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GuardManifest {
    pub(crate) places: PolicyPaths,
    pub(crate) survey: GuardSurvey,
    pub(crate) store: Quarantine,
}

/// The guard over the folders that commands may write in, shared by all who run commands there.
#[derive(Debug)]
pub(crate) struct FileGuard {
    ground: GuardScope,
    store: Quarantine,
    state: Mutex<GuardState>,
}

#[derive(Debug)]
struct GuardState {
    index: GuardIndex,
    /// The files before the running commands, and those of theirs that may stay.
    accepted: Arc<GuardSurvey>,
    unheld: NewEntries,
    /// How many commands run that the user waits for, and how many beside the user.
    attended: usize,
    unattended: usize,
    /// Dropping it ends the thread that watches.
    watching: Option<PipeWriter>,
    /// The undecided files.
    undecided: Vec<QuarantinedFile>,
    /// The actions since commands run without a pause.
    done: GuardOutcome,
}

/// How the guard treats a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseKind {
    /// The user waits for the command.
    Attended,
    /// A command of the agent in the background.
    Background,
    /// A service that runs for the whole session, or git as the server runs it: new entries are accepted, because they may be
    /// the user's or those of a commit.
    Exempt,
}

/// A command that is watched. Dropping it ends that.
#[derive(Debug)]
pub struct GuardLease {
    guard: Arc<FileGuard>,
    /// The guarded files while it runs.
    survey: Arc<GuardSurvey>,
    /// Held files that can be changed by other names.
    linked: GuardSnapshot,
    /// How many entries had been set aside, and how many put back, when it began.
    since: (usize, usize),
    kind: LeaseKind,
    is_over: bool,
}

/// The guards there are.
static GUARDS: LazyLock<Mutex<Vec<Weak<FileGuard>>>> = LazyLock::new(Mutex::default);

impl FileGuard {
    /// The guard over this ground.
    pub(crate) fn over(ground: GuardScope, store: Quarantine) -> Arc<Self> {
        let mut guards = GUARDS.lock();
        guards.retain(|guard| guard.strong_count() > 0);
        let known = guards.iter().filter_map(Weak::upgrade);
        let mut known = known.filter(|guard| guard.ground == ground && guard.store == store);
        if let Some(guard) = known.next() {
            return guard;
        }
        let state = GuardState {
            index: GuardIndex::new(ground.clone()),
            accepted: Arc::default(),
            unheld: NewEntries::default(),
            attended: 0,
            unattended: 0,
            watching: None,
            undecided: Vec::new(),
            done: GuardOutcome::default(),
        };
        let guard = Arc::new(Self { ground, store, state: Mutex::new(state) });
        guards.push(Arc::downgrade(&guard));
        guard
    }

    /// Has a command watched from now on. Blocks on the disk.
    ///
    /// # Errors
    /// Why not everything that is guarded could be found or kept; the command must not run.
    pub(crate) fn begin(self: &Arc<Self>, kind: LeaseKind) -> io::Result<GuardLease> {
        let mut state = self.state();
        if state.attended + state.unattended == 0 {
            let GuardState { index, accepted, unheld, .. } = &mut *state;
            index.expire();
            let survey = index.refresh()?;
            survey.check_bound()?;
            if *survey != **accepted {
                *accepted = Arc::new(survey.clone());
            }
            unheld.clear();
            state.done = GuardOutcome::default();
        } else {
            self.settle(&mut state, false)?;
        }
        let survey = Arc::clone(&state.accepted);
        let mut linked = GuardSnapshot::default();
        if let Some(running) = state.running(kind) {
            *running += 1;
            linked = GuardSnapshot::linked(&survey)?;
            if state.watching.is_none() {
                state.watching = self.watch(&state)?;
            }
        }
        let since = (state.done.set_aside.len(), state.done.restored.len());
        Ok(GuardLease { guard: Arc::clone(self), survey, linked, since, kind, is_over: false })
    }

    /// Walks through the folders, unless a command runs: its lease has walked already. Blocks on the disk.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub(crate) fn survey(&self) -> io::Result<()> {
        let mut state = self.state();
        if state.attended + state.unattended == 0 {
            state.index.expire();
            state.index.refresh()?;
        }
        Ok(())
    }

    /// Files that were set aside and wait for the user's decision; the caller asks from now on.
    pub(crate) fn undecided(&self) -> Vec<QuarantinedFile> {
        std::mem::take(&mut self.state().undecided)
    }

    /// Handles new files, and returns the actions.
    fn settle(&self, state: &mut GuardState, is_end: bool) -> io::Result<GuardOutcome> {
        let moment = SettlePoint { is_end, is_attended: state.attended > 0 };
        let GuardState { index, accepted, unheld, undecided, done, .. } = state;
        index.expire();
        let reopened = match is_end {
            true => reopen(|| Ok(unheld.new_unreadable(index.refresh()?, accepted)))?,
            false => Vec::new(),
        };
        if *index.refresh()? == **accepted && unheld.is_empty() {
            return Ok(GuardOutcome::default());
        }
        // The helper may be putting files back.
        let _alone = self.store.lock();
        let now = index.refresh()?;
        let places = (&self.store, self.ground.home.as_deref());
        let mut settled = unheld.settle(accepted, now, places, moment);
        if !reopened.is_empty() {
            drop(reopened);
            index.invalidate();
        }
        index.expire();
        *accepted = Arc::new(unheld.accepted(index.refresh()?, accepted));
        if !settled.restored.is_empty() {
            // A file made at the target of a link was no script of a hook while the link led elsewhere.
            let again = unheld.settle(accepted, index.refresh()?, places, moment);
            settled.set_aside.extend(again.set_aside);
            settled.restored.extend(again.restored);
            settled.failed.extend(again.failed);
            *accepted = Arc::new(unheld.accepted(index.refresh()?, accepted));
        }
        undecided.extend(settled.set_aside.iter().cloned());
        done.set_aside.extend(settled.set_aside.iter().cloned());
        done.restored.extend(settled.restored.iter().cloned());
        Ok(settled)
    }

    fn end(&self, watched: &GuardLease, restored: Option<&[RestoredPath]>) -> GuardReport {
        let mut state = self.state();
        let Some(running) = state.running(watched.kind) else { return GuardReport::default() };
        *running = running.saturating_sub(1);
        let mut report = {
            let _alone = (!watched.linked.is_empty()).then(|| self.store.lock());
            watched.linked.restore(&self.store)
        };
        let GuardState { unheld, accepted, .. } = &mut *state;
        unheld.accept_restored(restored, Arc::make_mut(accepted));
        match self.settle(&mut state, true) {
            Ok(settled) => {
                // Some of it may have been done while it ran.
                let (set_aside, restored) = watched.since;
                report.set_aside = state.done.set_aside.get(set_aside..).unwrap_or_default().to_vec();
                let restored: BTreeSet<_> =
                    state.done.restored.get(restored..).unwrap_or_default().iter().cloned().collect();
                let restored = restored.into_iter();
                report.restored.extend(restored.map(|path| super::RestoredPath { path, set_aside: None }));
                report.changed.extend(settled.failed);
            }
            Err(error) => {
                let roots = self.ground.roots.iter().map(|root| (root.clone(), error.to_string()));
                report.changed.extend(roots);
            }
        }
        if state.attended + state.unattended == 0 {
            state.watching = None;
        }
        report
    }

    /// Starts the thread that watches while commands run; nothing where the system has no watch.
    fn watch(self: &Arc<Self>, state: &GuardState) -> io::Result<Option<PipeWriter>> {
        if state.index.queue().is_none() {
            return Ok(None);
        }
        let (stopped, stop) = io::pipe()?;
        let guard = Arc::clone(self);
        thread::Builder::new().name("kode-guard".to_owned()).spawn(move || guard.run(&stopped))?;
        Ok(Some(stop))
    }

    fn run(&self, stopped: &PipeReader) {
        loop {
            let (queue, is_waiting) = {
                let state = self.state();
                let queue = state.index.queue().and_then(|queue| queue.try_clone_to_owned().ok());
                (queue, state.unheld.is_waiting())
            };
            let Some(queue) = queue else { return };
            if is_stopped(stopped, &queue, is_waiting.then_some(AGAIN)) {
                return;
            }
            thread::sleep(QUIET);
            let mut state = self.state();
            if state.attended + state.unattended == 0 {
                return;
            }
            match self.settle(&mut state, false) {
                Ok(settled) => {
                    for (path, error) in settled.failed {
                        tracing::warn!(path = %path.display(), error, "A guarded file could not be set aside");
                    }
                }
                Err(error) => tracing::warn!(%error, "GuardedPath files could not be searched for"),
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, GuardState> {
        self.state.lock()
    }
}

impl GuardState {
    /// The number of running commands of a kind, where the guard counts them.
    fn running(&mut self, kind: LeaseKind) -> Option<&mut usize> {
        match kind {
            LeaseKind::Attended => Some(&mut self.attended),
            LeaseKind::Background => Some(&mut self.unattended),
            LeaseKind::Exempt => None,
        }
    }
}

impl GuardLease {
    /// Releases the git folders of linked worktrees, which git as the server runs it makes and removes.
    pub(crate) fn release_worktrees(&mut self) {
        Arc::make_mut(&mut self.survey).release_worktrees();
    }

    /// The input of the helper, written to a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn hand_over(&self, places: PolicyPaths, file: &Path) -> io::Result<()> {
        let (survey, store) = (GuardSurvey::clone(&self.survey), self.guard.store.clone());
        let handed = GuardManifest { places, survey, store };
        fs::write(file, serde_json::to_vec(&handed)?)
    }

    /// Sets aside the files that the command has left, and returns the actions. `restored` are the paths that its helper
    /// has put back. Blocks on the disk.
    #[must_use]
    pub fn end(mut self, restored: &[RestoredPath]) -> GuardReport {
        self.is_over = true;
        self.guard.end(&self, Some(restored))
    }
}

impl Drop for GuardLease {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // The task that waited for the command is gone, and must not wait for the disk.
        let over = Self {
            guard: Arc::clone(&self.guard),
            survey: Arc::clone(&self.survey),
            linked: std::mem::take(&mut self.linked),
            since: self.since,
            kind: self.kind,
            is_over: true,
        };
        let ended = thread::Builder::new()
            .name("kode-guard-end".to_owned())
            .spawn(move || over.guard.end(&over, None));
        if let Err(error) = ended {
            tracing::warn!(%error, "Files that a command left are checked with the next one");
        }
    }
}

/// Settles everything at once, for a command whose server is gone: the former files are compared with a new walk.
pub(crate) fn settle_alone(ground: &GuardScope, handed: &GuardManifest) -> io::Result<GuardReport> {
    let known = NewEntries::default();
    // What the command did not see is not its doing.
    let mut ground = ground.clone();
    ground.unseen.extend(handed.survey.hidden.iter().cloned());
    let reopened = reopen(|| Ok(known.new_unreadable(&GuardSurvey::of(&ground)?, &handed.survey)))?;
    let now = GuardSurvey::of(&ground)?;
    let moment = SettlePoint { is_end: true, is_attended: false };
    let places = (&handed.store, ground.home.as_deref());
    let settled = NewEntries::default().settle(&handed.survey, &now, places, moment);
    drop(reopened);
    let restored = settled.restored.into_iter().map(|path| RestoredPath { path, set_aside: None });
    Ok(GuardReport { set_aside: settled.set_aside, restored: restored.collect(), changed: settled.failed })
}

/// Waits until something changes or the time is over; whether the watch was stopped.
fn is_stopped(stopped: &PipeReader, queue: &OwnedFd, limit: Option<Duration>) -> bool {
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    let mut polled =
        [PollFd::new(stopped, PollFlags::IN), PollFd::from_borrowed_fd(queue.as_fd(), PollFlags::IN)];
    match poll(&mut polled, limit.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => !polled[0].revents().is_empty(),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests;
