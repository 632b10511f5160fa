//! The sub-agents of a session: which types there are, who is at work, and what each of them did.
//!
//! Rule: a sub-agent works for one call at a time; what may not run beside anything else runs alone in the whole
//! session, whichever conversation calls it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::{MutexGuard, Semaphore, SemaphorePermit};

use crate::session::thread::Thread;
use crate::session::transcript::Part;
use crate::session::{Session, SessionState, lock};
use kode_base::ids::{AgentId, CallId, TurnId};
use kode_config::agents::{AgentTypes, KnownAgents};
use kode_config::hooks::declared::TurnHooks;
use kode_model::Usage;
use kode_permission::equipment::Equipment;
use kode_process::worktree::Worktree;
use kode_record::event::{Bookmark, Item};

/// So deep sub-agents call sub-agents.
pub(crate) const MAX_DEPTH: usize = 2;

/// So many sub-agents of one depth work at once; the others wait.
const MAX_AT_WORK: usize = 10;

/// A sub-agent as its records add up.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Agent {
    /// The name of its type.
    pub kind: String,
    /// What it was called for first.
    pub description: String,
    /// The name of its model profile, where it is not that of the session.
    pub model: Option<String>,
    /// Tokens of all its turns, with those of the sub-agents it called.
    pub usage: Usage,
    /// The call it was given its newest task by.
    pub call: Option<CallId>,
    /// The turn in which it works, until it has ended its work.
    pub turn: Option<TurnId>,
    /// What its models have taken for that work.
    pub charged: Usage,
    /// The worktree it works in, where that is not the workspace itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// What the skills bring along that it has used for that work.
    #[serde(default)]
    pub equipment: Equipment,
    /// The hooks that skills have brought along which it has used, the oldest first.
    #[serde(default)]
    pub hooks: Vec<TurnHooks>,
    /// Its conversation.
    pub thread: Thread,
}

/// A sub-agent as a client sees it.
#[derive(Clone, Debug)]
pub struct AgentView {
    /// The sub-agent.
    pub id: AgentId,
    /// The name of its type.
    pub kind: String,
    /// What it was called for first.
    pub description: String,
    /// The newest items, oldest first.
    pub items: Vec<Item>,
    /// Whether there are older items.
    pub more_items: bool,
    /// Tokens of all its turns.
    pub usage: Usage,
    /// The newest event of the session that this is after, and when it was taken.
    pub bookmark: Bookmark,
}

/// A sub-agent that works at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkingAgent {
    /// The sub-agent.
    pub id: AgentId,
    /// The call it works for.
    pub call: CallId,
    /// The name of its type.
    pub kind: String,
    /// What it was called for first.
    pub description: String,
}

/// What a live session keeps about sub-agents beside its records.
#[derive(Debug)]
pub(crate) struct Agents {
    types: Mutex<Arc<AgentTypes>>,
    at_work: Mutex<BTreeSet<AgentId>>,
    /// By depth: one that waits for those it called must not take the place of any of them.
    places: [Semaphore; MAX_DEPTH],
    alone: tokio::sync::Mutex<()>,
}

/// Says that a sub-agent is at work. Dropping it ends that.
pub(crate) struct AtWork<'a> {
    agents: &'a Agents,
    id: AgentId,
}

impl Default for Agents {
    fn default() -> Self {
        Self {
            types: Mutex::default(),
            at_work: Mutex::default(),
            places: std::array::from_fn(|_| Semaphore::new(MAX_AT_WORK)),
            alone: tokio::sync::Mutex::default(),
        }
    }
}

impl Agents {
    /// Notes that a sub-agent is at work; `None` when it is already.
    pub(crate) fn begin(&self, id: &AgentId) -> Option<AtWork<'_>> {
        lock(&self.at_work).insert(id.clone()).then(|| AtWork { agents: self, id: id.clone() })
    }

    /// Waits for a place among the sub-agents called by a conversation of that depth.
    pub(crate) async fn place(&self, depth: usize) -> Option<SemaphorePermit<'_>> {
        // Never closed.
        self.places.get(depth)?.acquire().await.ok()
    }

    /// Waits until nothing runs that has to run alone, and keeps others of the kind from it.
    pub(crate) async fn alone(&self) -> MutexGuard<'_, ()> {
        self.alone.lock().await
    }

    /// Lets these types count from now on.
    pub(super) fn know(&self, types: &Arc<AgentTypes>) {
        *lock(&self.types) = Arc::clone(types);
    }

    /// The types, as the turn found them.
    pub(crate) fn types(&self) -> Arc<AgentTypes> {
        Arc::clone(&lock(&self.types))
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        lock(&self.agents.at_work).remove(&self.id);
    }
}

impl AgentView {
    /// A sub-agent, and which items are still to be read: what has left memory is on the disk.
    /// `newest` is the number of the session's newest event.
    pub(super) fn of(state: &SessionState, newest: u64, id: &AgentId, items: usize) -> Option<(Self, Part)> {
        let agent = state.agents.get(id)?;
        let part = agent.thread.items.newest_part(items);
        let view = Self {
            id: id.clone(),
            kind: agent.kind.clone(),
            description: agent.description.clone(),
            more_items: part.more,
            items: Vec::new(),
            usage: agent.usage,
            bookmark: Bookmark { seq: newest, timestamp: Timestamp::now() },
        };
        Some((view, part))
    }
}

impl SessionState {
    /// The sub-agents that work, in the order in which they began first.
    pub(super) fn working_agents(&self) -> Vec<WorkingAgent> {
        let working = self.agents.iter().filter(|(_, agent)| agent.turn.is_some());
        let shown = working.filter_map(|(id, agent)| {
            let (kind, description) = (agent.kind.clone(), agent.description.clone());
            Some(WorkingAgent { id: id.clone(), call: agent.call.clone()?, kind, description })
        });
        shown.collect()
    }
}

impl SessionState {
    /// Whether any sub-agent works, for a turn that runs or in the background.
    pub(crate) fn has_agents_at_work(&self) -> bool {
        self.agents.values().any(|agent| agent.turn.is_some())
    }
}

impl Session {
    /// A sub-agent with at most `items` of its newest items; `None` when there is no such sub-agent.
    #[must_use]
    pub fn sub_agent(&self, id: &AgentId, items: usize) -> Option<AgentView> {
        let (view, part) = {
            let state = self.state();
            AgentView::of(&state, self.events.newest(), id, items)?
        };
        Some(AgentView { items: part.read_what_can_be(), ..view })
    }

    /// What a call of a sub-agent may name.
    pub(crate) fn known_agents(&self) -> KnownAgents {
        let state = self.state();
        // One that the conversation went back before is not known to the model any more.
        let known = state.agents.iter().filter(|(_, agent)| agent.thread.turns().next().is_some());
        let begun = known.map(|(id, agent)| (id.clone(), agent.kind.clone())).collect();
        KnownAgents { types: self.agents.types(), begun }
    }
}
