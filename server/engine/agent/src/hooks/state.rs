//! The memory of a session's hooks.
//!
//! Rule: nothing here is in the journal; the text that a hook added for the model is.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;

use super::MAX_AT_ONCE;
use super::in_process::HookChain;
use super::lifecycle::{EndReason, StartSource};
use super::list::LastRun;
use super::transcript::Transcripts;
use crate::core::lock;
use kode_base::ids::TurnId;
use kode_config::hooks::config::Hooks;
use kode_config::hooks::event::HookEvent;
use kode_permission::rules::RuleSource;

/// The memory of a session's hooks.
#[derive(Debug)]
pub(crate) struct HookState {
    /// The hooks of the program itself.
    pub(crate) chain: Arc<HookChain>,
    /// Permits of hooks that are waited for, and of those in the background.
    pub(super) permits: Arc<Semaphore>,
    pub(super) background: Arc<Semaphore>,
    pub(super) transcripts: Transcripts,
    once: Mutex<HashSet<u64>>,
    last: Arc<Mutex<HashMap<u64, LastRun>>>,
    /// How the session begins, until its hooks were news.
    start: Mutex<Option<StartSource>>,
    has_started: Mutex<bool>,
    end: Mutex<EndReason>,
    /// The turn that a hook has stopped.
    stopped: Mutex<Option<TurnId>>,
    news: Mutex<HookNews>,
}

/// The notifications of the user.
#[derive(Debug, Default)]
struct HookNews {
    turn: Option<TurnId>,
    problems: HashSet<u64>,
    waiting: Vec<RuleSource>,
}

impl HookState {
    /// The memory of a session that begins now.
    pub(crate) fn new(chain: Arc<HookChain>, start: StartSource) -> Self {
        Self {
            chain,
            permits: Arc::new(Semaphore::new(MAX_AT_ONCE)),
            background: Arc::new(Semaphore::new(MAX_AT_ONCE)),
            transcripts: Transcripts::default(),
            once: Mutex::default(),
            last: Arc::default(),
            start: Mutex::new(Some(start)),
            has_started: Mutex::new(false),
            end: Mutex::default(),
            stopped: Mutex::default(),
            news: Mutex::default(),
        }
    }

    /// Says how the session begins, unless its hooks were news.
    pub(crate) fn begin_as(&self, source: StartSource) {
        if let Some(start) = lock(&self.start).as_mut() {
            *start = source;
        }
    }

    /// Returns how the session begins, once.
    pub(super) fn take_start(&self) -> Option<StartSource> {
        let start = lock(&self.start).take();
        if start.is_some() {
            *lock(&self.has_started) = true;
        }
        start
    }

    /// Whether a prompt has started the session.
    pub(super) fn has_started(&self) -> bool {
        *lock(&self.has_started)
    }

    /// Sets why the session ends.
    pub(crate) fn end_with(&self, reason: EndReason) {
        *lock(&self.end) = reason;
    }

    pub(super) fn end_reason(&self) -> EndReason {
        *lock(&self.end)
    }

    /// Lets the next prompt begin the session again.
    pub(super) fn begin_again(&self) {
        let has_started = std::mem::take(&mut *lock(&self.has_started));
        if has_started {
            *lock(&self.start) = Some(StartSource::Resume);
        }
        *lock(&self.end) = EndReason::default();
    }

    /// Notes that a hook stops a turn.
    pub(crate) fn stop(&self, turn: &TurnId) {
        *lock(&self.stopped) = Some(turn.clone());
    }

    /// Whether a hook has stopped a turn.
    pub(crate) fn has_stopped(&self, turn: &TurnId) -> bool {
        lock(&self.stopped).as_ref() == Some(turn)
    }

    /// Whether a handler that runs once may run, and notes that it does.
    pub(super) fn may_run_once(&self, key: u64) -> bool {
        lock(&self.once).insert(key)
    }

    /// The last runs of the handlers.
    pub(super) fn last(&self) -> &Arc<Mutex<HashMap<u64, LastRun>>> {
        &self.last
    }

    /// Whether the user was not yet notified of a problem in a turn.
    pub(crate) fn is_news(&self, turn: &TurnId, event: HookEvent, problem: &str) -> bool {
        let mut news = lock(&self.news);
        if news.turn.as_ref() != Some(turn) {
            (news.turn, news.problems) = (Some(turn.clone()), HashSet::new());
        }
        let mut hasher = DefaultHasher::new();
        (event, problem).hash(&mut hasher);
        news.problems.insert(hasher.finish())
    }

    /// The number of groups that wait for approval, if others wait than at the last notification.
    pub(super) fn new_waiting(&self, hooks: &Hooks) -> Option<usize> {
        let mut news = lock(&self.news);
        if news.waiting == hooks.waiting {
            return None;
        }
        news.waiting.clone_from(&hooks.waiting);
        (!hooks.waiting.is_empty()).then_some(hooks.waiting.len())
    }
}
