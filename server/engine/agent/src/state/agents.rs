//! The sub-agents of a session as their records add up.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::state::SessionState;
use crate::state::thread::Thread;
use crate::state::transcript::TranscriptPart;
use kode_base::ids::{AgentId, CallId, TurnId};
use kode_config::hooks::declared::TurnHooks;
use kode_model::Usage;
use kode_permission::equipment::Equipment;
use kode_process::worktree::Worktree;
use kode_record::event::{Bookmark, Event, Item};
use kode_record::record::Record;

/// A sub-agent as its records add up.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SubAgent {
    /// The name of its type.
    pub kind: String,
    /// The description of its first task.
    pub description: String,
    /// The name of its model profile; `None` for that of the session.
    pub model: Option<String>,
    /// Tokens of all its turns, including those of the sub-agents it called.
    pub usage: Usage,
    /// The call that gave it its newest task.
    pub call: Option<CallId>,
    /// The turn in which it works, until its work ends.
    pub turn: Option<TurnId>,
    /// Tokens that its models have treated as that work.
    pub charged: Usage,
    /// The worktree it works in; `None` for the workspace itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// The equipment of the skills it has used for that work.
    #[serde(default)]
    pub equipment: Equipment,
    /// The hooks of the skills it has used, oldest first.
    #[serde(default)]
    pub hooks: Vec<TurnHooks>,
    /// Its conversation.
    pub thread: Thread,
}

/// A sub-agent as a client sees it.
#[derive(Clone, Debug)]
pub struct SubAgentView {
    /// The sub-agent.
    pub id: AgentId,
    /// The name of its type.
    pub kind: String,
    /// The description of its first task.
    pub description: String,
    /// The newest items, oldest first.
    pub items: Vec<Arc<Item>>,
    /// Whether there are older items.
    pub more_items: bool,
    /// Tokens of all its turns.
    pub usage: Usage,
    /// The newest event of the session that this is after, and when it was taken.
    pub bookmark: Bookmark,
}

/// A sub-agent that works now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkingAgent {
    /// The sub-agent.
    pub id: AgentId,
    /// The call it works for.
    pub call: CallId,
    /// The name of its type.
    pub kind: String,
    /// The description of its first task.
    pub description: String,
}

impl SubAgentView {
    /// A sub-agent without its items, and the items to read: old ones are on the disk. `newest` is the number of the
    /// session's newest event.
    pub(crate) fn of(
        state: &SessionState,
        newest: u64,
        id: &AgentId,
        items: usize,
    ) -> Option<(Self, TranscriptPart)> {
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

impl SubAgent {
    /// Gives it a task. Returns its type and description, which stay those of its first task.
    pub(super) fn delegate(&mut self, record: Record) -> Option<Event> {
        let Record::Delegated { agent, turn: _, call, kind, description, model, worktree } = record else {
            return None;
        };
        self.call = Some(call.clone());
        if self.kind.is_empty() {
            (self.kind, self.description) = (kind.clone(), description.clone());
        }
        (self.model, self.worktree) = (model, worktree);
        Some(Event::SubagentStarted { agent, call, kind, description })
    }

    /// Begins its work in a turn.
    pub(super) fn begin_turn(&mut self, turn: &TurnId) {
        (self.turn, self.equipment) = (Some(turn.clone()), Equipment::default());
    }

    /// Ends its work.
    pub(super) fn end_turn(&mut self, usage: Usage) {
        self.usage += usage;
        (self.turn, self.charged) = (None, Usage::default());
        self.equipment = Equipment::default();
    }
}

impl SessionState {
    /// The sub-agents that work, in the order in which they first began.
    #[must_use]
    pub fn working_agents(&self) -> Vec<WorkingAgent> {
        let working = self.agents.iter().filter(|(_, agent)| agent.turn.is_some());
        let shown = working.filter_map(|(id, agent)| {
            let (kind, description) = (agent.kind.clone(), agent.description.clone());
            Some(WorkingAgent { id: id.clone(), call: agent.call.clone()?, kind, description })
        });
        shown.collect()
    }

    /// Whether a sub-agent works, for a running turn or in the background.
    #[must_use]
    pub fn has_agents_at_work(&self) -> bool {
        self.agents.values().any(|agent| agent.turn.is_some())
    }
}
