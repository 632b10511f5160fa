//! A session as a client sees it.
//!
//! Rule: a snapshot is taken under the lock of the state, so that it and the events after its bookmark contain every change
//! once.

use std::sync::Arc;

use jiff::Timestamp;

use crate::state::SessionState;
use crate::state::agents::WorkingAgent;
use crate::state::transcript::TranscriptPart;
use kode_base::effort::Effort;
use kode_base::ids::SessionId;
use kode_base::mode::Mode;
use kode_base::question::Question;
use kode_base::todo::Todo;
use kode_model::Usage;
use kode_model::price::Cost;
use kode_permission::PermissionPrompt;
use kode_process::worktree::Worktree;
use kode_record::background::BackgroundTask;
use kode_record::context::ContextUse;
use kode_record::draft::PromptDraft;
use kode_record::event::{Bookmark, Item, QueuedPrompt, RunState};
use kode_record::goal::Goal;
use kode_record::team::TeamView;

/// A session as a client sees it: the sum of all events up to `bookmark`.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The session.
    pub id: SessionId,
    /// The title.
    pub title: String,
    /// The newest event that is in the snapshot, 0 when there was none, and when the snapshot was taken.
    pub bookmark: Bookmark,
    /// The run state.
    pub state: RunState,
    /// Its mode.
    pub mode: Mode,
    /// The name of its model profile.
    pub model: String,
    /// The newest items, oldest first.
    pub items: Vec<Arc<Item>>,
    /// Whether there are older items.
    pub more_items: bool,
    /// Prompts that wait for the user.
    pub pending: Vec<PermissionPrompt>,
    /// Questions that wait for the user.
    pub questions: Vec<Question>,
    /// The todo list.
    pub todos: Vec<Todo>,
    /// The goal, and its progress.
    pub goal: Option<Goal>,
    /// The worktree it works in; `None` for the workspace itself.
    pub worktree: Option<Worktree>,
    /// The team of the main conversation and the sub-agents in the background; `None` without one.
    pub team: Option<TeamView>,
    /// Prompts that wait for their turn.
    pub queue: Vec<QueuedPrompt>,
    /// The messages that wait for the running turn.
    pub steering: Vec<QueuedPrompt>,
    /// Whether prompts wait and nothing begins them by itself.
    pub queue_paused: bool,
    /// The prompt that the user has not sent yet.
    pub draft: Option<PromptDraft>,
    /// The background commands that run, oldest first.
    pub tasks: Vec<BackgroundTask>,
    /// The sub-agents that work.
    pub agents: Vec<WorkingAgent>,
    /// How hard models think, where the user has said so for this session.
    pub effort: Option<Effort>,
    /// The name of the style of the answers, where the user has chosen one for this session.
    pub output_style: Option<String>,
    /// The profile of the sandbox, where the user has chosen one for this session.
    pub sandbox: Option<String>,
    /// Tokens of all turns.
    pub usage: Usage,
    /// Their cost.
    pub cost: Cost,
    /// How full the context window is; `None` before it was measured.
    pub context: Option<ContextUse>,
}

impl Snapshot {
    /// The snapshot of the recorded state, without the parts that only the process knows that runs the session. `newest` is
    /// the number of the newest event. The caller reads the items: older ones are on disk.
    pub(crate) fn of(state: &SessionState, newest: u64, items: usize) -> (Self, TranscriptPart) {
        let part = state.main.items.newest_part(items);
        let snapshot = Self {
            id: state.id.clone(),
            title: state.title.text.clone(),
            bookmark: Bookmark { seq: newest, timestamp: Timestamp::now() },
            state: if state.running.id.is_some() { RunState::Working } else { RunState::Ready },
            mode: state.config.mode,
            model: state.config.model.clone(),
            items: Vec::new(),
            more_items: part.more,
            pending: Vec::new(),
            questions: Vec::new(),
            todos: state.todos.list().to_vec(),
            goal: state.goal.as_deref().cloned(),
            worktree: state.worktree.clone(),
            team: state.background.team.view(state.running.id.is_some()),
            queue: state.queue.prompts(),
            steering: state.queue.steering(),
            queue_paused: state.is_queue_paused(),
            draft: state.draft.clone(),
            tasks: state.background.running().cloned().collect(),
            agents: state.working_agents(),
            effort: state.config.effort,
            output_style: state.config.output_style.clone(),
            sandbox: state.config.sandbox.clone(),
            usage: state.spending.usage(),
            cost: state.spending.total(),
            context: None,
        };
        (snapshot, part)
    }
}
