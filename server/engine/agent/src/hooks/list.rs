//! The hooks there are, for people: what would run when, where it stands, and how it ended last.
//!
//! Rule: what does not run is listed with the reason; nothing is run by listing.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::session::{Session, lock};
use kode_base::blocking;
use kode_config::agents::AgentTypes;
use kode_config::extension::{Catalog, ExtensionKind};
use kode_config::hooks::config::{DeclaredHook, Hooks};
use kode_config::hooks::event::HookEvent;
use kode_config::policy::PolicySource;
use kode_config::settings::TrustRequest;
use kode_config::settings::declared::Approval;
use kode_permission::rules::{RuleSource, SettingsProblem};
use kode_record::hook::HookOutcome;

/// All hooks, and what is wrong with them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookList {
    /// Whether all of them are switched off.
    pub is_disabled: bool,
    /// The hooks: those of settings, the strongest layer first, then those that other files bring along.
    pub hooks: Vec<HookInfo>,
    /// What is wrong, and where.
    pub problems: Vec<SettingsProblem>,
}

/// What brings a hook along that stands in no settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bringer {
    /// What it is.
    pub kind: BringerKind,
    /// What it is called.
    pub name: String,
}

/// A kind of file that brings hooks along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BringerKind {
    /// A type of sub-agent: they run while one of it works.
    Agent,
    /// A skill: they run from its use on.
    Skill,
    /// A command: the same.
    Command,
}

impl BringerKind {
    /// The name in lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Skill => "skill",
            Self::Command => "command",
        }
    }
}

/// A hook as people see it.
#[derive(Clone, Debug, PartialEq)]
pub struct HookInfo {
    /// What brings it along; `None` for one of the settings, which runs always.
    pub bringer: Option<Bringer>,
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
    pub source: RuleSource,
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

/// The declared hooks, the strongest layer first, with how each ended last.
fn infos(hooks: &Hooks, last: &HashMap<u64, LastRun>, bringer: Option<&Bringer>) -> Vec<HookInfo> {
    let info = |listed: &DeclaredHook| HookInfo {
        bringer: bringer.cloned(),
        is_fired: HookEvent::of_name(&listed.event).is_some(),
        event: listed.event.clone(),
        matcher: listed.matcher.clone(),
        kind: listed.kind.clone(),
        head: listed.head.clone(),
        source: listed.source.clone(),
        approval: listed.approval.clone(),
        is_disabled: hooks.is_disabled,
        problem: listed.problem.clone(),
        last: listed.key.and_then(|key| last.get(&key).cloned()),
    };
    hooks.listed.iter().map(info).collect()
}

impl HookList {
    /// The hooks of settings and those that these files bring along, as they are approved by `source`, with how they ended
    /// `last`. Blocks on the disk.
    pub(crate) fn of(
        settings: &Hooks,
        (agents, catalog): (&AgentTypes, &Catalog),
        source: &dyn PolicySource,
        last: &HashMap<u64, LastRun>,
    ) -> Self {
        let of_agents = agents
            .iter()
            .filter_map(|agent| Some((BringerKind::Agent, agent.name.clone(), agent.hooks.as_ref()?)));
        let of_catalog = catalog.all().filter_map(|extension| {
            let kind = match extension.kind {
                ExtensionKind::Skill => BringerKind::Skill,
                ExtensionKind::Command => BringerKind::Command,
            };
            Some((kind, extension.name.clone(), extension.hooks.as_ref()?))
        });
        let mut list = Self {
            is_disabled: settings.is_disabled,
            hooks: infos(settings, last, None),
            problems: settings.problems.clone(),
        };
        for (kind, name, hooks) in of_agents.chain(of_catalog) {
            let is_approved = |wish: &TrustRequest| source.is_approved(wish);
            let entries = hooks.settled(kind == BringerKind::Agent, &is_approved);
            let settled = Hooks::of_entries(entries, settings.is_disabled, &hooks.at.root);
            list.hooks.extend(infos(&settled, last, Some(&Bringer { kind, name })));
            list.problems.extend(settled.problems);
        }
        list
    }
}

impl Session {
    /// What the settings declared of hooks when they were looked at last.
    #[must_use]
    pub fn hooks(&self) -> Arc<Hooks> {
        Arc::clone(&self.in_force().hooks)
    }

    /// The hooks of this session, as settings and other files were when they were looked at last.
    pub async fn list_hooks(&self) -> HookList {
        let last = lock(self.hooks.last()).clone();
        let (hooks, source) = (self.hooks(), self.policy_source());
        let (agents, catalog) = (self.agents.types(), self.catalog());
        blocking(move || HookList::of(&hooks, (&agents, &catalog), &*source, &last)).await
    }
}
