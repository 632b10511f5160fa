//! The hooks there are, for people: what would run when, where it stands, and how it ended last.
//!
//! Rule: what does not run is listed with the reason; nothing is run by listing.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::config::{Hooks, Listed};
use super::{HookEvent, HookOutcome};
use crate::permission::rules::Source;
use crate::session::Session;
use crate::session::changes::lock;
use crate::settings::declared::Approval;

/// A hook as people see it.
#[derive(Clone, Debug, PartialEq)]
pub struct HookInfo {
    /// The event, as the file names it.
    pub event: String,
    /// Whether the event ever comes here.
    pub is_fired: bool,
    /// What it is for, as the file says it.
    pub matcher: Option<String>,
    /// The type of the handler.
    pub kind: String,
    /// The beginning of what it runs.
    pub head: String,
    /// Where it stands.
    pub source: Source,
    /// Whether it may run.
    pub approval: Approval,
    /// Whether all hooks are switched off.
    pub is_disabled: bool,
    /// Why it does not run, or not quite as it is written.
    pub problem: Option<String>,
    /// How it ended last in the session.
    pub last: Option<LastRun>,
}

/// How a handler ended last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastRun {
    /// When.
    pub at: Timestamp,
    /// How.
    pub outcome: HookOutcome,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// What it said, in one line.
    pub message: Option<String>,
}

impl Hooks {
    /// All that is declared, the strongest layer first.
    #[must_use]
    pub fn list(&self) -> Vec<HookInfo> {
        self.list_with(&HashMap::new())
    }

    fn list_with(&self, last: &HashMap<u64, LastRun>) -> Vec<HookInfo> {
        let info = |listed: &Listed| HookInfo {
            is_fired: HookEvent::of_name(&listed.event).is_some(),
            event: listed.event.clone(),
            matcher: listed.matcher.clone(),
            kind: listed.kind.clone(),
            head: listed.head.clone(),
            source: listed.source.clone(),
            approval: listed.approval.clone(),
            is_disabled: self.is_disabled,
            problem: listed.problem.clone(),
            last: listed.key.and_then(|key| last.get(&key).cloned()),
        };
        self.listed.iter().map(info).collect()
    }
}

impl Session {
    /// What the settings declared of hooks when they were looked at last.
    #[must_use]
    pub fn hooks(&self) -> Arc<Hooks> {
        Arc::clone(&self.in_force().hooks)
    }

    /// The hooks of this session, the strongest layer first, as the settings were when they were looked at last.
    #[must_use]
    pub fn list_hooks(&self) -> Vec<HookInfo> {
        let last = lock(self.hooks.last()).clone();
        self.in_force().hooks.list_with(&last)
    }
}
