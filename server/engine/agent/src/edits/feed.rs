//! Events of the open documents whose text the ledger follows, in order, until the ledger takes it in; and which
//! files it has to check, because no event describes them.
//!
//! Rule: taking an event costs the editor's thread a lock that is never held for long; the queue is bounded, and a
//! document that goes past it is compared as a whole instead. What the agent itself is about to change or a command is
//! changing is checked afterwards: it is not the user's.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ropey::Rope;
use tokio::sync::Notify;

use kode_base::paths::Target;
use kode_text::host::{DocumentEvent, DocumentObserver};

/// The most events that wait; of a document with more changes the last text is compared.
const MAX_EVENTS: usize = 1_024;

/// The events of followed documents.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    state: Mutex<FeedState>,
    arrived: Notify,
    /// Notified when a text changes while hunks have diagnostics.
    outdated: Notify,
    /// Whether hunks have diagnostics.
    has_diagnostics: AtomicBool,
}

#[derive(Debug, Default)]
struct FeedState {
    followed: BTreeSet<Target>,
    /// Targets whose events wait until a change of them is through.
    held: BTreeSet<Target>,
    /// Targets watched while commands run, by the number of commands, with their saved text.
    watched: BTreeMap<Target, (usize, Option<Rope>)>,
    events: VecDeque<DocumentEvent>,
    /// Followed targets to be read.
    stale: BTreeSet<Target>,
    /// How many commands run.
    commands: usize,
}

/// Holds back reads of files while a command runs, until it is dropped.
pub(crate) struct CommandGuard {
    feed: Arc<Feed>,
}

/// Keeps the events of documents waiting while a command runs. Dropping it lets them go.
pub(crate) struct CommandWatch {
    feed: Arc<Feed>,
    targets: Vec<Target>,
}

/// Keeps the events of a target waiting. Dropping it lets them go.
pub(crate) struct FeedHold {
    feed: Arc<Feed>,
    target: Target,
}

impl Feed {
    /// Follows a document from now on.
    pub(crate) fn follow(&self, target: &Target) {
        self.lock().followed.insert(target.clone());
    }

    /// Follows a document, and keeps its events waiting as long as the answer lives.
    pub(crate) fn hold(self: &Arc<Self>, target: &Target) -> FeedHold {
        let mut state = self.lock();
        state.followed.insert(target.clone());
        state.held.insert(target.clone());
        FeedHold { feed: Arc::clone(self), target: target.clone() }
    }

    /// The events that wait and are not held, in their order.
    pub(crate) fn take_all(&self) -> Vec<DocumentEvent> {
        let mut state = self.lock();
        let FeedState { held, watched, events, .. } = &mut *state;
        let waits = |target: &Target| held.contains(target) || watched.contains_key(target);
        let (waiting, ready): (VecDeque<_>, VecDeque<_>) =
            events.drain(..).partition(|event| waits(&event.document().target()));
        *events = waiting;
        ready.into()
    }

    /// Follows documents, and keeps their events waiting while a command runs.
    pub(crate) fn watch(self: &Arc<Self>, targets: Vec<Target>) -> CommandWatch {
        let mut state = self.lock();
        for target in &targets {
            state.followed.insert(target.clone());
            state.watched.entry(target.clone()).or_default().0 += 1;
        }
        CommandWatch { feed: Arc::clone(self), targets }
    }

    /// The watched documents of which events wait, with the text they have now if it has only changed.
    pub(crate) fn watched(&self) -> Vec<(Target, Option<Rope>)> {
        let state = self.lock();
        let is_free = |target: &&Target| !state.held.contains(*target);
        let text = |target: &Target| {
            let mut events =
                state.events.iter().filter(|event| event.document().target() == *target).peekable();
            events.peek()?;
            let only_changes = events.try_fold(None, |_, event| match event {
                DocumentEvent::Changed { after, .. } => Some(Some(after.text.clone())),
                DocumentEvent::Opened(_) | DocumentEvent::Saved { .. } | DocumentEvent::Closed(_) => None,
            });
            Some((target.clone(), only_changes.flatten()))
        };
        state.watched.keys().filter(is_free).filter_map(text).collect()
    }

    /// The events of one document, held or not.
    pub(crate) fn take(&self, target: &Target) -> Vec<DocumentEvent> {
        let mut state = self.lock();
        let (of_target, others): (VecDeque<_>, VecDeque<_>) =
            state.events.drain(..).partition(|event| event.document().target() == *target);
        state.events = others;
        of_target.into()
    }

    /// Follows nothing any more.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.followed.clear();
        state.events.clear();
    }

    /// Has a followed target read soon.
    pub(crate) fn mark_stale(&self, target: &Target) {
        let mut state = self.lock();
        if state.followed.contains(target) {
            state.stale.insert(target.clone());
            drop(state);
            self.arrived.notify_one();
        }
    }

    /// The targets to be read now.
    pub(crate) fn take_stale(&self) -> BTreeSet<Target> {
        let mut state = self.lock();
        if state.commands > 0 {
            return BTreeSet::new();
        }
        let FeedState { held, stale, .. } = &mut *state;
        let (ready, waiting) = std::mem::take(stale).into_iter().partition(|target| !held.contains(target));
        *stale = waiting;
        ready
    }

    /// Whether a command runs.
    pub(crate) fn is_command_running(&self) -> bool {
        self.lock().commands > 0
    }

    /// Whether the text of a target contains no change that is not entered yet.
    pub(crate) fn is_at_rest(&self, target: &Target) -> bool {
        let state = self.lock();
        state.commands == 0 && !state.held.contains(target)
    }

    /// Says that a command runs as long as the answer lives.
    pub(crate) fn command_runs(self: &Arc<Self>) -> CommandGuard {
        self.lock().commands += 1;
        CommandGuard { feed: Arc::clone(self) }
    }

    /// Waits until there may be events to take or targets to read.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Notes whether hunks have diagnostics, which a change of any document may make wrong.
    pub(crate) fn note_diagnostics(&self, has_diagnostics: bool) {
        self.has_diagnostics.store(has_diagnostics, Ordering::Relaxed);
    }

    /// Says that the diagnostics of hunks may be wrong, if there are any.
    pub(crate) fn outdate_diagnostics(&self) {
        if self.has_diagnostics.load(Ordering::Relaxed) {
            self.outdated.notify_one();
        }
    }

    /// Waits until the diagnostics of hunks may be wrong.
    pub(crate) async fn diagnostics_outdated(&self) {
        self.outdated.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DocumentObserver for Feed {
    fn observe(&self, event: &DocumentEvent) {
        if matches!(event, DocumentEvent::Changed { .. }) {
            self.outdate_diagnostics();
        }
        let mut state = self.lock();
        let target = event.document().target();
        if !state.followed.contains(&target) {
            return;
        }
        if let DocumentEvent::Saved { document, .. } = event
            && let Some((_, saved)) = state.watched.get_mut(&target)
        {
            *saved = Some(document.text.clone());
        }
        let event = if state.events.len() < MAX_EVENTS {
            event.clone()
        } else {
            // The current text of the document is enough: it is compared as a whole.
            state.events.retain(|event| event.document().target() != target);
            match event {
                DocumentEvent::Changed { after, .. } => DocumentEvent::Opened(after.clone()),
                DocumentEvent::Opened(_) | DocumentEvent::Saved { .. } | DocumentEvent::Closed(_) => {
                    event.clone()
                }
            }
        };
        state.events.push_back(event);
        drop(state);
        self.arrived.notify_one();
    }
}

impl CommandWatch {
    /// The text of a document that was saved since the command began.
    pub(crate) fn saved(&self, target: &Target) -> Option<Rope> {
        self.feed.lock().watched.get(target).and_then(|(_, saved)| saved.clone())
    }
}

impl Drop for CommandWatch {
    fn drop(&mut self) {
        let mut state = self.feed.lock();
        for target in &self.targets {
            if let Some((count, _)) = state.watched.get_mut(target) {
                *count -= 1;
                if *count == 0 {
                    state.watched.remove(target);
                }
            }
        }
        drop(state);
        self.feed.arrived.notify_one();
    }
}

impl Drop for FeedHold {
    fn drop(&mut self) {
        self.feed.lock().held.remove(&self.target);
        self.feed.arrived.notify_one();
    }
}

impl Drop for CommandGuard {
    fn drop(&mut self) {
        self.feed.lock().commands -= 1;
        self.feed.arrived.notify_one();
    }
}
