//! Work that a call hands to a sub-agent.
//!
//! Rule: plain data; the loop starts the sub-agent.

use kode_base::ids::AgentId;
use kode_permission::equipment::Equipment;

/// A piece of work for a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegation {
    /// The name of the type.
    pub kind: String,
    /// Its topic, in a few words.
    pub description: String,
    /// The task.
    pub prompt: String,
    /// The model that was asked for.
    pub model: Option<String>,
    /// The sub-agent that continues; `None` for a new one.
    pub resume: Option<AgentId>,
    /// Whether it works in a worktree of its own; otherwise its type says so.
    pub is_isolated: bool,
    /// Whether the user is asked before git runs what the repository's settings name.
    pub may_run_foreign: bool,
    /// Whether no caller waits for it.
    pub in_background: bool,
    /// The name that it is to have in the team while it works in the background; `None` for one of its type.
    pub name: Option<String>,
    /// The equipment by skills of the turn that starts it, if it continues after that turn.
    pub carried: Equipment,
}
