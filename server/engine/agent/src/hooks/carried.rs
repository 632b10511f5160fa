//! The hooks in files of agents, skills and commands, in the form that they have in settings.
//!
//! Rule: they run only where they are in force: those of an agent while a sub-agent of its type works, those of a skill or
//! command from its use on in the conversation that used it, and both in the sub-agents beneath. Hooks of a project's file
//! need the user's approval, text and scripts, which is checked again before they run. Those of the user's files that run a
//! script in a folder where commands of the agent write run in the sandbox.

use super::HookRunner;
use crate::conversation::{CarriedHooks, Conversation};
use crate::core::thread::ThreadHandle;
use kode_base::blocking;
use kode_base::ids::TurnId;
use kode_config::hooks::config::Hooks;
use kode_config::hooks::declared::{FileHooks, TurnHooks};
use kode_config::hooks::event::HookEvent;
use kode_config::in_force::EffectivePolicy;
use kode_config::settings::TrustRequest;
use kode_record::record::Record;

/// Puts the hooks of a skill or command in force in a conversation from now on.
pub(crate) fn use_hooks(thread: &ThreadHandle, turn: &TurnId, hooks: Option<FileHooks>) {
    if let Some(hooks) = hooks {
        let used = Box::new(TurnHooks { turn: turn.clone(), hooks });
        thread.commit(Record::HooksBrought { used });
    }
}

/// The hooks of files that are in force in a conversation. Those above it reach beneath, except for the end of a sub-agent
/// above it.
fn carried(conversation: &Conversation) -> Vec<CarriedHooks> {
    let all = |used: &[TurnHooks], is_of_agent| {
        let carried = |used: &TurnHooks| CarriedHooks { hooks: used.hooks.clone(), is_of_agent };
        used.iter().map(carried).collect::<Vec<_>>()
    };
    let state = conversation.thread.core.state();
    let mut carried = all(&state.hooks, false);
    if let Some(assignment) = &conversation.assignment {
        carried.extend(assignment.hooks.iter().cloned());
    }
    if let Some(agent) = conversation.agent().and_then(|agent| state.agents.get(agent)) {
        carried.extend(all(&agent.hooks, true));
    }
    carried
}

/// The hooks that reach the sub-agents of a conversation, without those of the whole session.
pub(crate) fn carried_for_agents(conversation: &Conversation) -> Vec<CarriedHooks> {
    let of_session = conversation.thread.core.state().hooks.len();
    let carried = carried(conversation).into_iter().skip(of_session);
    carried.map(|carried| CarriedHooks { is_of_agent: false, ..carried }).collect()
}

/// Whether a hook of a file could run at an event in a conversation.
fn has_carried(conversation: &Conversation, event: HookEvent) -> bool {
    let used = |used: &[TurnHooks], is_of_agent| used.iter().any(|used| used.hooks.has(event, is_of_agent));
    let state = conversation.thread.core.state();
    let of_agent = conversation.agent().and_then(|agent| state.agents.get(agent));
    let assigned = conversation.assignment.iter().flat_map(|assignment| &assignment.hooks);
    used(&state.hooks, false)
        || of_agent.is_some_and(|agent| used(&agent.hooks, true))
        || assigned.into_iter().any(|carried| carried.hooks.has(event, carried.is_of_agent))
}

impl HookRunner {
    /// Whether a hook could run at an event. Reads no file: the settings of the last refresh apply.
    pub(crate) fn has_hooks(&self, conversation: &Conversation, event: HookEvent) -> bool {
        let hooks = &self.gate.in_force().hooks;
        !hooks.has_none(event) || (!hooks.is_disabled && has_carried(conversation, event))
    }

    /// The hooks of files that are in force in a conversation and approved now.
    pub(super) async fn carried_hooks(
        &self,
        conversation: &Conversation,
        in_force: &EffectivePolicy,
    ) -> Hooks {
        let carried = carried(conversation);
        if carried.is_empty() {
            return Hooks::default();
        }
        let (source, cwd) = (self.gate.source(), self.project());
        let is_disabled = in_force.hooks.is_disabled;
        let sandbox = in_force.policy.sandbox.as_ref();
        let folders = sandbox.map(|sandbox| sandbox.policy().writable.clone()).unwrap_or_default();
        blocking(move || {
            let is_approved = |request: &TrustRequest| source.is_approved(request);
            let entries = carried.iter().flat_map(|one| one.hooks.settled(one.is_of_agent, &is_approved));
            Hooks::of_files(entries, is_disabled, &cwd, folders)
        })
        .await
    }
}
