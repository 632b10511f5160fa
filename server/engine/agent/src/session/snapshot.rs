//! A session as a client sees it.
//!
//! Rule: a snapshot is taken under the lock that changes are made under, so that with the events after its bookmark it tells
//! everything once.

use jiff::Timestamp;

use crate::session::agents::WorkingAgent;
use crate::session::transcript::Part;
use crate::session::{Session, SessionState};
use kode_base::effort::Effort;
use kode_base::ids::SessionId;
use kode_base::mode::Mode;
use kode_base::question::Question;
use kode_base::todo::Todo;
use kode_model::Usage;
use kode_model::price::Cost;
use kode_permission::PermissionPrompt;
use kode_record::background::BackgroundTask;
use kode_record::context::ContextUse;
use kode_record::draft::PromptDraft;
use kode_record::event::{Bookmark, Item, QueuedPrompt, RunState};

/// A session as a client sees it: what all the events up to `bookmark` add up to.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The session.
    pub id: SessionId,
    /// What people call it.
    pub title: String,
    /// The newest event that is in the snapshot, 0 when there was none, and when the snapshot was taken.
    pub bookmark: Bookmark,
    /// What it is doing.
    pub state: RunState,
    /// Its mode.
    pub mode: Mode,
    /// The name of its model profile.
    pub model: String,
    /// The newest items, oldest first.
    pub items: Vec<Item>,
    /// Whether there are older items.
    pub more_items: bool,
    /// Prompts that wait for the user.
    pub pending: Vec<PermissionPrompt>,
    /// Questions that wait for the user.
    pub questions: Vec<Question>,
    /// The todo list.
    pub todos: Vec<Todo>,
    /// Prompts that wait for their turn.
    pub queue: Vec<QueuedPrompt>,
    /// What waits to be told to the running turn.
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
    /// Tokens of all turns.
    pub usage: Usage,
    /// What they cost.
    pub cost: Cost,
    /// How full the context window is; `None` before it was measured.
    pub context: Option<ContextUse>,
}

impl Snapshot {
    /// What the records of a session add up to; what only a process knows that runs it is empty. `newest` is the number of
    /// the newest event. The items are still to be read: what has left memory is on the disk.
    pub(super) fn of(state: &SessionState, newest: u64, items: usize) -> (Self, Part) {
        let part = state.main.items.newest_part(items);
        let snapshot = Self {
            id: state.id.clone(),
            title: state.title.clone(),
            bookmark: Bookmark { seq: newest, timestamp: Timestamp::now() },
            state: if state.turn.is_some() { RunState::Working } else { RunState::Ready },
            mode: state.mode,
            model: state.model.clone(),
            items: Vec::new(),
            more_items: part.more,
            pending: Vec::new(),
            questions: Vec::new(),
            todos: state.todos.clone(),
            queue: state.queued(),
            steering: state.steering(),
            queue_paused: state.is_queue_paused(),
            draft: state.draft.clone(),
            tasks: state.background.running().cloned().collect(),
            agents: state.working_agents(),
            effort: state.effort,
            output_style: state.output_style.clone(),
            usage: state.usage,
            cost: state.spending.total(),
            context: None,
        };
        (snapshot, part)
    }
}

impl Session {
    /// The session as it is now, with at most `items` of its newest items.
    #[must_use]
    pub fn snapshot(&self, items: usize) -> Snapshot {
        let (mut snapshot, part) = self.snapshot_and_items(items);
        // What has left memory is read when nobody is held up by it.
        snapshot.items = part.read_what_can_be();
        snapshot
    }

    fn snapshot_and_items(&self, items: usize) -> (Snapshot, Part) {
        let state = self.state();
        let (snapshot, part) = Snapshot::of(&state, self.events.newest(), items);
        let snapshot = Snapshot {
            state: self.run_state(),
            pending: self.broker.pending(),
            questions: self.questions.pending(),
            context: self.meters.last(),
            ..snapshot
        };
        (snapshot, part)
    }
}
