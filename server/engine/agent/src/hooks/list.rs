//! The list of hooks, for people: command, event, source and last run.
//!
//! Rule: a hook that does not run is listed with the reason; listing runs nothing.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::HookRunner;
use crate::core::lock;
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

/// All hooks, and their problems.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookList {
    /// Whether all of them are switched off.
    pub is_disabled: bool,
    /// The hooks: those of settings, the strongest layer first, then those of other files.
    pub hooks: Vec<HookInfo>,
    /// The problems, with their places.
    pub problems: Vec<SettingsProblem>,
}

/// The owner of a hook that is in no settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookOwner {
    /// The kind of file.
    pub kind: HookOwnerKind,
    /// The name.
    pub name: String,
}

/// A kind of file that brings hooks along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookOwnerKind {
    /// A type of sub-agent: they run while one of it works.
    Agent,
    /// A skill: they run from its use on.
    Skill,
    /// A command: the same.
    Command,
}

impl HookOwnerKind {
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
    /// Its owner; `None` for a hook of the settings, which always runs.
    pub owner: Option<HookOwner>,
    /// The event, as the file names it.
    pub event: String,
    /// Whether the event ever comes here.
    pub is_fired: bool,
    /// The event, as written in the file.
    pub matcher: Option<String>,
    /// The type of the handler.
    pub kind: String,
    /// The beginning of its command.
    pub head: String,
    /// Its place.
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
    /// Its output, in one line.
    pub message: Option<String>,
}

/// The declared hooks, the strongest layer first, with how each ended last.
fn infos(hooks: &Hooks, last: &HashMap<u64, LastRun>, owner: Option<&HookOwner>) -> Vec<HookInfo> {
    let info = |listed: &DeclaredHook| HookInfo {
        owner: owner.cloned(),
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
            .filter_map(|agent| Some((HookOwnerKind::Agent, agent.name.clone(), agent.hooks.as_ref()?)));
        let of_catalog = catalog.all().filter_map(|extension| {
            let kind = match extension.kind {
                ExtensionKind::Skill => HookOwnerKind::Skill,
                ExtensionKind::Command => HookOwnerKind::Command,
            };
            Some((kind, extension.name.clone(), extension.hooks.as_ref()?))
        });
        let mut list = Self {
            is_disabled: settings.is_disabled,
            hooks: infos(settings, last, None),
            problems: settings.problems.clone(),
        };
        for (kind, name, hooks) in of_agents.chain(of_catalog) {
            let is_approved = |trust_request: &TrustRequest| source.is_approved(trust_request);
            let entries = hooks.settled(kind == HookOwnerKind::Agent, &is_approved);
            let settled = Hooks::of_entries(entries, settings.is_disabled, &hooks.at.root);
            list.hooks.extend(infos(&settled, last, Some(&HookOwner { kind, name })));
            list.problems.extend(settled.problems);
        }
        list
    }
}

impl HookRunner {
    /// The declared hooks of the settings, as of the last refresh.
    #[must_use]
    pub fn declared(&self) -> Arc<Hooks> {
        Arc::clone(&self.gate.in_force().hooks)
    }

    /// The hooks of the session, as settings and other files were read last.
    pub async fn list(&self) -> HookList {
        let last = lock(self.state.last()).clone();
        let (hooks, source) = (self.declared(), self.gate.source());
        let (agents, catalog) = (self.extensions.agent_types(), self.extensions.catalog());
        blocking(move || HookList::of(&hooks, (&agents, &catalog), &*source, &last)).await
    }
}
