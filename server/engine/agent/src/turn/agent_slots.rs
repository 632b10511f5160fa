//! The slots of sub-agents at work.
//!
//! Rule: a sub-agent works for one call at a time. A call that must run alone runs alone in the whole session, whichever
//! conversation made it.

use std::collections::BTreeSet;
use std::sync::Mutex;

use tokio::sync::{MutexGuard, Semaphore, SemaphorePermit};

use crate::core::{Core, lock};
use crate::extensions::SessionExtensions;
use kode_base::ids::AgentId;
use kode_config::agents::KnownAgents;

/// The deepest level at which a sub-agent may call sub-agents.
pub(crate) const MAX_DEPTH: usize = 2;

/// The most sub-agents of one depth that work at once; the others wait.
const MAX_AT_WORK: usize = 10;

/// The slots of sub-agents at work.
#[derive(Debug)]
pub(crate) struct AgentSlots {
    at_work: Mutex<BTreeSet<AgentId>>,
    /// By depth: a sub-agent that waits for those it called must not take a slot of theirs.
    slots: [Semaphore; MAX_DEPTH],
    exclusive: tokio::sync::Mutex<()>,
}

/// A sub-agent at work, until it is dropped.
pub(crate) struct AgentSlot<'a> {
    slots: &'a AgentSlots,
    id: AgentId,
}

impl Default for AgentSlots {
    fn default() -> Self {
        Self {
            at_work: Mutex::default(),
            slots: std::array::from_fn(|_| Semaphore::new(MAX_AT_WORK)),
            exclusive: tokio::sync::Mutex::default(),
        }
    }
}

impl AgentSlots {
    /// Notes that a sub-agent is at work; `None` where it is already.
    pub(crate) fn begin(&self, id: &AgentId) -> Option<AgentSlot<'_>> {
        lock(&self.at_work).insert(id.clone()).then(|| AgentSlot { slots: self, id: id.clone() })
    }

    /// Waits for a slot among the sub-agents called by a conversation of that depth.
    pub(crate) async fn take(&self, depth: usize) -> Option<SemaphorePermit<'_>> {
        // The semaphores are never closed.
        self.slots.get(depth)?.acquire().await.ok()
    }

    /// Waits until no call runs that must run alone, and holds back others of the kind.
    pub(crate) async fn exclusive(&self) -> MutexGuard<'_, ()> {
        self.exclusive.lock().await
    }
}

impl Drop for AgentSlot<'_> {
    fn drop(&mut self) {
        lock(&self.slots.at_work).remove(&self.id);
    }
}

/// The sub-agents that a call may name.
pub(super) fn known_agents(core: &Core, extensions: &SessionExtensions) -> KnownAgents {
    let state = core.state();
    // The model does not know those of turns that the conversation went back before.
    let known = state.agents.iter().filter(|(_, agent)| agent.thread.turns().next().is_some());
    let begun = known.map(|(id, agent)| (id.clone(), agent.kind.clone())).collect();
    KnownAgents { types: extensions.agent_types(), begun }
}
