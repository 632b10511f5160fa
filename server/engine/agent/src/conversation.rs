//! A conversation at work: the thread it writes, the files it sees, the shell and the tools it has.
//!
//! Rule: records written through a conversation are its own; everything else (files, changes, permissions, usage) belongs to
//! the session, whichever conversation uses it. A component that works for a conversation takes it as an argument.

mod isolated;
pub(crate) mod phases;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::core::environment::Environment;
use crate::core::thread::ThreadHandle;
use crate::core::{Core, lock};
use crate::state::SessionState;
use kode_base::effort::Effort;
use kode_base::ids::{AgentId, ItemId, TurnId};
use kode_base::mode::Mode;
use kode_config::hooks::declared::FileHooks;
use kode_model::Usage;
use kode_permission::equipment::Equipment;
use kode_process::shell::Shell;
use kode_record::record::Record;
use kode_text::workspace::Workspace;
use kode_tool::Registry;
use phases::{Phase, Phases};

pub(crate) use isolated::WorktreeIsolation;

/// A conversation at work.
pub(crate) struct Conversation {
    /// The thread it writes.
    pub(crate) thread: ThreadHandle,
    /// Where its commands run: the commands of one conversation do not move those of another.
    pub(crate) shell: Arc<Shell>,
    /// The tools that may be called in it.
    pub(crate) tools: Arc<Registry>,
    /// The most model calls of one turn of a sub-agent; `None` for the session's own.
    pub(crate) model_call_limit: Option<u32>,
    /// The task of a sub-agent; `None` for the session's own.
    pub(crate) assignment: Option<Assignment>,
    workspace: Arc<Workspace>,
    /// The tokens and calls of its sub-agents, summaries and attempts without an answer.
    spent: Mutex<WorkUsage>,
    /// Whether a call has asked the turn to end.
    stop: AtomicBool,
    /// The time that the phases of its turn took.
    phases: Mutex<Phases>,
    /// Compactions in a row that were of no use.
    pub(crate) useless_compactions: AtomicU32,
    /// Whether the user was notified in this turn that the fallback is asked while the own model rests.
    pub(crate) rest_notified: AtomicBool,
    /// The mode in the newest request; `None` before the first.
    pub(crate) requested_mode: Mutex<Option<Mode>>,
}

/// The task of a sub-agent.
pub(crate) struct Assignment {
    /// The name of its type.
    pub(crate) kind: String,
    /// Its system prompt.
    pub(crate) prompt: String,
    /// The mode in which it works where the session's is not stricter.
    pub(crate) mode: Option<Mode>,
    /// The name of its model profile; `None` for that of the session.
    pub(crate) model: Option<String>,
    /// The thinking effort of its type.
    pub(crate) effort: Option<Effort>,
    /// The equipment of the sub-agents above it.
    pub(crate) inherited: Equipment,
    /// The tools of servers that run for it alone.
    pub(crate) own_tools: BTreeSet<&'static str>,
    /// The hooks of its type, and of the sub-agents above it.
    pub(crate) hooks: Vec<CarriedHooks>,
    /// The worktree it works in; `None` for the workspace itself.
    pub(crate) isolation: Option<Arc<WorktreeIsolation>>,
    /// The number of conversations above it.
    pub(crate) depth: usize,
    /// Reports the titles of calls that begin to run.
    pub(crate) progress: Box<dyn Fn(&str) + Send + Sync>,
}

/// The hooks of a file that are in force in a conversation.
#[derive(Clone, Debug)]
pub(crate) struct CarriedHooks {
    pub(crate) hooks: FileHooks,
    /// Whether `Stop` means the end of a sub-agent.
    pub(crate) is_of_agent: bool,
}

/// The tokens and calls of a turn, with its sub-agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkUsage {
    pub(crate) usage: Usage,
    pub(crate) model_calls: u32,
    pub(crate) tool_calls: u32,
}

impl std::ops::AddAssign for WorkUsage {
    fn add_assign(&mut self, other: Self) {
        self.usage += other.usage;
        self.model_calls = self.model_calls.saturating_add(other.model_calls);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
    }
}

impl Conversation {
    /// The session's own conversation.
    pub(crate) fn main(core: &Arc<Core>, environment: &Environment) -> Self {
        Self {
            thread: ThreadHandle::main(core),
            workspace: Arc::clone(&environment.workspace),
            shell: Arc::clone(&environment.shell),
            tools: Arc::clone(&environment.tools),
            model_call_limit: None,
            assignment: None,
            spent: Mutex::default(),
            stop: AtomicBool::new(false),
            phases: Mutex::default(),
            useless_compactions: AtomicU32::new(0),
            rest_notified: AtomicBool::new(false),
            requested_mode: Mutex::default(),
        }
    }

    /// The conversation of a sub-agent that begins to work.
    pub(crate) fn of_agent(
        core: &Arc<Core>,
        environment: &Environment,
        agent: AgentId,
        (tools, model_call_limit): (Registry, u32),
        assignment: Assignment,
    ) -> Self {
        let workspace = match &assignment.isolation {
            Some(isolation) => &isolation.workspace,
            None => &environment.workspace,
        };
        Self {
            thread: ThreadHandle::of_agent(core, agent),
            workspace: Arc::clone(workspace),
            shell: Arc::new(environment.shell.elsewhere(workspace.cwd())),
            tools: Arc::new(tools),
            model_call_limit: Some(model_call_limit),
            assignment: Some(assignment),
            ..Self::main(core, environment)
        }
    }

    /// The sub-agent; `None` for the session's own conversation.
    pub(crate) fn agent(&self) -> Option<&AgentId> {
        self.thread.agent.as_ref()
    }

    /// Whether it is the session's own conversation.
    pub(crate) fn is_main(&self) -> bool {
        self.thread.is_main()
    }

    /// The mode in which its calls are judged, while the session is in `mode`.
    pub(crate) fn mode(&self, mode: Mode) -> Mode {
        self.mode_limit().map_or(mode, |limit| mode.within(limit))
    }

    /// The mode in which its calls are judged now.
    pub(crate) fn current_mode(&self) -> Mode {
        let mode = self.thread.core.state().config.mode;
        self.mode(mode)
    }

    /// The mode it keeps to where the session's is not stricter.
    pub(crate) fn mode_limit(&self) -> Option<Mode> {
        self.assignment.as_ref().and_then(|assignment| assignment.mode)
    }

    /// The name of its model profile.
    pub(crate) fn model(&self) -> String {
        let state = self.thread.core.state();
        let of_turn = self.thread.equipped(&state).and_then(|equipment| equipment.model.as_ref());
        let own = self.assignment.as_ref().and_then(|assignment| assignment.model.as_ref());
        of_turn.or(own).unwrap_or(&state.config.model).clone()
    }

    /// The thinking effort: that of a skill, of the sub-agent's type, or the one the user has `chosen`.
    pub(crate) fn effort(&self, chosen: Option<Effort>, state: &SessionState) -> Option<Effort> {
        let of_turn = self.thread.equipped(state).and_then(|equipment| equipment.effort);
        let own = self.assignment.as_ref().and_then(|assignment| assignment.effort);
        of_turn.or(own).or(chosen)
    }

    /// Applies the equipment of a skill or command until its turn ends.
    pub(crate) fn equip(&self, turn: &TurnId, equipment: Equipment) {
        if !equipment.is_empty() {
            self.thread.commit(Record::Equipped { turn: turn.clone(), equipment });
        }
    }

    /// Its equipment besides that of the whole session: the equipment of a sub-agent, and of the sub-agents above it.
    pub(crate) fn equipment(&self) -> Equipment {
        let Some(agent) = self.agent() else { return Equipment::default() };
        let inherited = self.assignment.as_ref().map(|assignment| assignment.inherited.clone());
        let mut equipment = inherited.unwrap_or_default();
        if let Some(agent) = self.thread.core.state().agents.get(agent) {
            equipment.take(agent.equipment.clone());
        }
        equipment
    }

    /// The worktree it works in; `None` for the workspace itself.
    pub(crate) fn isolation(&self) -> Option<&Arc<WorktreeIsolation>> {
        self.assignment.as_ref()?.isolation.as_ref()
    }

    /// The files as it sees them.
    pub(crate) fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// The tools of its sub-agents: without those of servers that run for it alone.
    pub(crate) fn tools_for_agents(&self) -> Registry {
        match &self.assignment {
            Some(Assignment { own_tools, .. }) if !own_tools.is_empty() => {
                self.tools.only(|name| !own_tools.contains(name))
            }
            Some(_) | None => Registry::clone(&self.tools),
        }
    }

    /// The number of conversations above it.
    pub(crate) fn depth(&self) -> usize {
        self.assignment.as_ref().map_or(0, |assignment| assignment.depth)
    }

    /// Ends the turn as soon as the running calls have their results.
    pub(crate) fn ask_to_stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Whether a call has asked the turn to end.
    pub(crate) fn is_asked_to_stop(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Adds the usage of a sub-agent, a summary, or an attempt without an answer.
    pub(crate) fn spend(&self, spent: WorkUsage) {
        *lock(&self.spent) += spent;
    }

    /// The usage of its sub-agents, summaries and attempts without an answer.
    pub(crate) fn spent(&self) -> WorkUsage {
        *lock(&self.spent)
    }

    /// Runs a phase of the turn and adds its time.
    pub(crate) fn timed<T>(&self, phase: Phase, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = work();
        lock(&self.phases).end(phase, began);
        done
    }

    /// Adds the time of a phase of the turn that ends now.
    pub(crate) fn note_phase(&self, phase: Phase, began: Instant) {
        lock(&self.phases).end(phase, began);
    }

    /// The time that the phases of its turn took.
    pub(crate) fn phases(&self) -> Phases {
        *lock(&self.phases)
    }

    /// Records that a call begins to run, and reports it to the caller of a sub-agent.
    pub(crate) fn call_begins(&self, item: &ItemId, title: &str) {
        if let Some(assignment) = &self.assignment {
            (assignment.progress)(title);
        }
        self.thread.call_begins(item, title);
    }
}
