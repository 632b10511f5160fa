//! What a live session keeps of its hooks.
//!
//! Rule: nothing in here is in the journal; what a hook changed of what the model sees is.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;

use super::MAX_AT_ONCE;
use super::in_process::HookChain;
use super::list::LastRun;
use super::transcript::Transcripts;
use crate::session::lock;
use kode_base::ids::TurnId;
use kode_config::hooks::config::Hooks;
use kode_config::hooks::event::HookEvent;
use kode_permission::rules::RuleSource;

/// How a session comes to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartSource {
    /// It is new.
    Startup,
    /// It is taken up again.
    Resume,
    /// It takes the place of one whose conversation was cleared.
    Clear,
    /// Its conversation was compacted.
    Compact,
    /// It goes on from a copy of another.
    Fork,
}

/// Why a session ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndReason {
    /// Its conversation was cleared.
    Clear,
    /// Another one is taken up in its place.
    Resume,
    /// The user has closed it, or has left the editor.
    PromptInputExit,
    /// Anything else.
    #[default]
    Other,
}

/// What a live session keeps of its hooks.
#[derive(Debug)]
pub(crate) struct HookState {
    /// The hooks of the program itself.
    pub(crate) chain: Arc<HookChain>,
    /// Places for hooks that are waited for, and for those that are not.
    pub(super) places: Arc<Semaphore>,
    pub(super) background: Arc<Semaphore>,
    pub(super) transcripts: Transcripts,
    once: Mutex<HashSet<u64>>,
    last: Arc<Mutex<HashMap<u64, LastRun>>>,
    /// How the session begins, until its hooks were told.
    start: Mutex<Option<StartSource>>,
    has_started: Mutex<bool>,
    end: Mutex<EndReason>,
    /// The turn that a hook has stopped.
    stopped: Mutex<Option<TurnId>>,
    told: Mutex<Told>,
}

/// What the user was told.
#[derive(Debug, Default)]
struct Told {
    turn: Option<TurnId>,
    problems: HashSet<u64>,
    waiting: Vec<RuleSource>,
}

impl StartSource {
    /// The name hooks are told.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Resume => "resume",
            Self::Clear => "clear",
            Self::Compact => "compact",
            Self::Fork => "fork",
        }
    }
}

impl EndReason {
    /// The name hooks are told.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Resume => "resume",
            Self::PromptInputExit => "prompt_input_exit",
            Self::Other => "other",
        }
    }
}

impl HookState {
    /// That of a session that begins now.
    pub(crate) fn new(chain: Arc<HookChain>, start: StartSource) -> Self {
        Self {
            chain,
            places: Arc::new(Semaphore::new(MAX_AT_ONCE)),
            background: Arc::new(Semaphore::new(MAX_AT_ONCE)),
            transcripts: Transcripts::default(),
            once: Mutex::default(),
            last: Arc::default(),
            start: Mutex::new(Some(start)),
            has_started: Mutex::new(false),
            end: Mutex::default(),
            stopped: Mutex::default(),
            told: Mutex::default(),
        }
    }

    /// Says how the session begins, unless its hooks were told.
    pub(crate) fn begin_as(&self, source: StartSource) {
        if let Some(start) = lock(&self.start).as_mut() {
            *start = source;
        }
    }

    /// How the session begins, once.
    pub(super) fn take_start(&self) -> Option<StartSource> {
        let start = lock(&self.start).take();
        if start.is_some() {
            *lock(&self.has_started) = true;
        }
        start
    }

    /// Whether a prompt has begun the session.
    pub(super) fn has_started(&self) -> bool {
        *lock(&self.has_started)
    }

    /// Says why the session ends.
    pub(crate) fn end_with(&self, reason: EndReason) {
        *lock(&self.end) = reason;
    }

    pub(super) fn end_reason(&self) -> EndReason {
        *lock(&self.end)
    }

    /// Has what comes after an end begin the session again.
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

    /// How the handlers ended last.
    pub(super) fn last(&self) -> &Arc<Mutex<HashMap<u64, LastRun>>> {
        &self.last
    }

    /// Whether a problem is news in a turn.
    pub(crate) fn is_news(&self, turn: &TurnId, event: HookEvent, problem: &str) -> bool {
        let mut told = lock(&self.told);
        if told.turn.as_ref() != Some(turn) {
            (told.turn, told.problems) = (Some(turn.clone()), HashSet::new());
        }
        let mut hasher = DefaultHasher::new();
        (event, problem).hash(&mut hasher);
        told.problems.insert(hasher.finish())
    }

    /// How many groups wait for approval, if others do than the user was told of.
    pub(super) fn new_waiting(&self, hooks: &Hooks) -> Option<usize> {
        let mut told = lock(&self.told);
        if told.waiting == hooks.waiting {
            return None;
        }
        told.waiting.clone_from(&hooks.waiting);
        (!hooks.waiting.is_empty()).then_some(hooks.waiting.len())
    }
}
