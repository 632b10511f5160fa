//! Hooks that files of agents, skills and commands bring along in their heads, in the form that they have in settings.
//!
//! Rule: they run only where they are in force: those of an agent while a sub-agent of its type works, those of a skill or
//! command from its use on in the conversation that used it, and both in the sub-agents beneath. What a file of the project
//! brings along needs the user's approval, text and scripts, and that is looked at again before it runs.

use crate::session::conversation::Conversation;
use kode_base::blocking;
use kode_base::ids::TurnId;
use kode_config::hooks::config::Hooks;
use kode_config::hooks::declared::{FileHooks, TurnHooks};
use kode_config::hooks::event::HookEvent;
use kode_config::in_force::EffectivePolicy;
use kode_config::settings::TrustRequest;
use kode_record::record::Record;

/// What a file brings along, and whether the end of a sub-agent is meant where it says `Stop`.
#[derive(Clone, Debug)]
pub(crate) struct Brought {
    pub(crate) hooks: FileHooks,
    pub(crate) is_of_agent: bool,
}

impl Conversation<'_> {
    /// Whether any hook could run at an event. Looks at no file: what was looked at last counts.
    pub(crate) fn has_hooks(&self, event: HookEvent) -> bool {
        let hooks = &self.session.in_force().hooks;
        !hooks.has_none(event) || (!hooks.is_disabled && self.brings(event))
    }

    /// Lets the hooks that a skill or command brings along count in this conversation from now on.
    pub(crate) fn bring_hooks(&self, turn: &TurnId, hooks: Option<FileHooks>) {
        if let Some(hooks) = hooks {
            let used = Box::new(TurnHooks { turn: turn.clone(), hooks });
            self.commit(Record::HooksBrought { used });
        }
    }

    /// What files bring along that counts in this conversation. What stands above it reaches beneath, but for what is done
    /// when a sub-agent above it ends.
    pub(crate) fn brought(&self) -> Vec<Brought> {
        let all = |used: &[TurnHooks], is_of_agent| {
            let brought = |used: &TurnHooks| Brought { hooks: used.hooks.clone(), is_of_agent };
            used.iter().map(brought).collect::<Vec<_>>()
        };
        let state = self.session.state();
        let mut brought = all(&state.hooks, false);
        if let Some(assignment) = &self.assignment {
            brought.extend(assignment.hooks.iter().cloned());
        }
        if let Some(agent) = self.agent.as_ref().and_then(|agent| state.agents.get(agent)) {
            brought.extend(all(&agent.hooks, true));
        }
        brought
    }

    /// What of this reaches the sub-agents of this conversation, without what counts in the whole session anyway.
    pub(crate) fn hooks_for_agents(&self) -> Vec<Brought> {
        let of_session = self.session.state().hooks.len();
        let brought = self.brought().into_iter().skip(of_session);
        brought.map(|brought| Brought { is_of_agent: false, ..brought }).collect()
    }

    /// The hooks that files bring along, as far as they are approved now.
    pub(super) async fn brought_hooks(&self, in_force: &EffectivePolicy) -> Hooks {
        let brought = self.brought();
        if brought.is_empty() {
            return Hooks::default();
        }
        let (source, cwd) = (self.session.policy_source(), self.session.workspace.cwd());
        let is_disabled = in_force.hooks.is_disabled;
        blocking(move || {
            let is_approved = |wish: &TrustRequest| source.is_approved(wish);
            let entries = brought.iter().flat_map(|one| one.hooks.settled(one.is_of_agent, &is_approved));
            Hooks::of_entries(entries, is_disabled, &cwd)
        })
        .await
    }

    fn brings(&self, event: HookEvent) -> bool {
        let used =
            |used: &[TurnHooks], is_of_agent| used.iter().any(|used| used.hooks.has(event, is_of_agent));
        let state = self.session.state();
        let of_agent = self.agent.as_ref().and_then(|agent| state.agents.get(agent));
        let assigned = self.assignment.iter().flat_map(|assignment| &assignment.hooks);
        used(&state.hooks, false)
            || of_agent.is_some_and(|agent| used(&agent.hooks, true))
            || assigned.into_iter().any(|brought| brought.hooks.has(event, brought.is_of_agent))
    }
}
