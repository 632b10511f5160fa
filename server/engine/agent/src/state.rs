//! A session's state as a fold over its records.
//!
//! Rule: [`SessionState::apply`] is the only way a record changes memory and the only source of the events that the record
//! emits: live, on resume, and where another process writes. It routes; each topic folds its own records. The state of one
//! conversation is its [`Thread`].

pub mod agents;
pub mod background;
pub mod config;
pub(crate) mod events;
pub(crate) mod images;
pub mod queue;
pub mod replay;
mod reviewed;
pub mod rewinds;
pub(crate) mod seal;
pub mod spending;
pub mod team;
pub mod thread;
pub mod titles;
pub mod todos;
pub mod transcript;
pub mod turn;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use agents::SubAgent;
use background::Background;
use config::SessionConfig;
use kode_base::ids::{AgentId, ItemId, SessionId, TurnId};
use kode_base::mode::Mode;
use kode_base::paths::{AbsPath, Target};
use kode_config::hooks::declared::{TurnHooks, take_in};
use kode_journal::{BlobId, Shelf};
use kode_model::{Block, Message, Usage};
use kode_permission::Grant;
use kode_process::worktree::Worktree;
use kode_record::draft::PromptDraft;
use kode_record::event::{Event, Item, ItemBody, ModelCallUsage, RunState, TurnEnd};
use kode_record::goal::Goal;
use kode_record::intent::Intent;
use kode_record::record::{Record, TurnFigures};
use kode_record::team::TeamEntry;
use queue::{Queue, WaitingPrompt};
pub(crate) use reviewed::digest;
use rewinds::Rewinds;
use spending::Spending;
use thread::Thread;
use titles::SessionTitle;
use todos::Todos;
use turn::RunningTurn;

/// The sum of a session's records.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionState {
    /// Its id.
    pub id: SessionId,
    /// The session it was forked from.
    pub forked_from: Option<SessionId>,
    /// Whether it is archived.
    pub archived: bool,
    /// The workspace folders.
    pub roots: Vec<AbsPath>,
    /// The folder that relative paths and commands start in.
    pub cwd: AbsPath,
    /// The worktree it works in; `None` for the workspace itself.
    #[serde(default)]
    pub worktree: Option<Worktree>,
    /// Its title.
    pub title: SessionTitle,
    /// Its mode, model, effort, style and delivery.
    pub config: SessionConfig,
    /// Its own conversation.
    pub main: Thread,
    /// Its sub-agents.
    pub agents: BTreeMap<AgentId, SubAgent>,
    /// The prompts that wait.
    pub queue: Queue,
    /// The unsent prompt.
    pub draft: Option<PromptDraft>,
    /// The running turn.
    pub running: RunningTurn,
    /// The permissions that the user has granted for the whole session.
    pub grants: Vec<Grant>,
    /// The hooks of skills and commands it has used, oldest first.
    #[serde(default)]
    pub hooks: Vec<TurnHooks>,
    /// The todo list.
    pub todos: Todos,
    /// The goal, and its progress.
    #[serde(default)]
    pub goal: Option<Box<Goal>>,
    /// The files whose changes the user has reviewed, with the digests of the hunks; the newest last.
    #[serde(default)]
    pub reviewed: Vec<(Target, Vec<BlobId>)>,
    /// Tokens and money, by model and by turn.
    pub spending: Spending,
    /// The background commands, and the team of the sub-agents in the background.
    pub background: Background,
    /// Its turns, and going back before them.
    pub rewinds: Rewinds,
    /// Changes that were about to be made, until their call has ended.
    pub writing: Vec<Intent>,
    /// Its counters.
    #[serde(flatten)]
    pub counts: SessionCounts,
    /// Where old items and messages go; without it everything stays in memory.
    #[serde(skip)]
    shelf: Option<Arc<Shelf>>,
}

/// The counters of a session.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct SessionCounts {
    /// The number of turns that ended because the model was done.
    pub turns_done: u64,
    /// The number of answers in the session's own conversation.
    pub answers: u64,
}

/// Makes an item of a turn.
pub(crate) fn new_item(turn: &TurnId, body: ItemBody) -> Item {
    Item { id: ItemId::generate(), turn: turn.clone(), agent: None, timestamp: Timestamp::now(), body }
}

impl SessionState {
    /// The state of a session that begins with `record`; `None` for any other record than [`Record::Opened`].
    #[must_use]
    pub fn open(record: &Record) -> Option<Self> {
        let Record::Opened { session, roots, cwd, mode, model, forked_from, worktree } = record else {
            return None;
        };
        Some(Self {
            id: session.clone(),
            forked_from: forked_from.clone(),
            archived: false,
            roots: roots.clone(),
            cwd: cwd.clone(),
            worktree: worktree.clone(),
            title: SessionTitle::default(),
            config: SessionConfig::new(mode, model.clone()),
            main: Thread::default(),
            agents: BTreeMap::new(),
            queue: Queue::default(),
            draft: None,
            running: RunningTurn::default(),
            grants: Vec::new(),
            hooks: Vec::new(),
            todos: Todos::default(),
            goal: None,
            reviewed: Vec::new(),
            spending: Spending::default(),
            background: Background::default(),
            rewinds: Rewinds::default(),
            writing: Vec::new(),
            counts: SessionCounts::default(),
            shelf: None,
        })
    }

    /// Folds a whole journal; `None` when no record opens a session.
    #[must_use]
    pub fn fold(records: Vec<Record>) -> Option<Self> {
        let mut state = records.iter().find_map(Self::open)?;
        for record in records {
            state.apply(record);
        }
        Some(state)
    }

    /// Moves old items and messages to this shelf, which holds those that have left memory already.
    pub fn attach(&mut self, shelf: &Arc<Shelf>) {
        self.shelf = Some(Arc::clone(shelf));
        self.main.attach(shelf);
        self.agents.values_mut().for_each(|agent| agent.thread.attach(shelf));
    }

    /// Where old items and messages go.
    #[must_use]
    pub fn shelf(&self) -> Option<&Arc<Shelf>> {
        self.shelf.as_ref()
    }

    /// The conversation of a sub-agent, or the session's own; `None` for an unknown sub-agent.
    #[must_use]
    pub fn thread(&self, agent: Option<&AgentId>) -> Option<&Thread> {
        match agent {
            None => Some(&self.main),
            Some(agent) => self.agents.get(agent).map(|agent| &agent.thread),
        }
    }

    /// Whether neither a turn runs nor a sub-agent works.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.running.id.is_none() && !self.has_agents_at_work()
    }

    /// Whether prompts wait and none of them begins by itself.
    #[must_use]
    pub fn is_queue_paused(&self) -> bool {
        self.running.id.is_none() && !self.queue.is_empty()
    }

    /// Folds one record into the state, and returns the events that it emits, in their order.
    pub fn apply(&mut self, record: Record) -> Vec<Event> {
        self.forget_written(&record);
        match record {
            Record::Opened { .. } | Record::Begun { .. } => Vec::new(),
            // The ledger folds the agent's changes.
            Record::Edits { entry } => events::edits_changed(&entry).into_iter().collect(),
            Record::Queued { prompt, content, parts, steering } => {
                self.enqueue(WaitingPrompt::new(prompt, content, parts), steering)
            }
            Record::QueueChanged { change } => {
                self.queue.change(change);
                vec![self.queue_event()]
            }
            Record::Drafted { draft } => vec![self.set_draft(draft)],
            Record::Prompt { .. } => self.begin_turn(record),
            Record::Steered { ref queued, ref item, ref parts, .. } => {
                self.queue.start(queued);
                self.running.attach(item, parts);
                let shown = self.main.apply(record);
                shown.into_iter().chain([self.queue_event()]).collect()
            }
            Record::Attached { .. } | Record::PromptRefused { .. } => {
                self.running.prompt = None;
                self.main.apply(record)
            }
            Record::Answer { ref message, mode, .. } => {
                self.count_round(message, mode);
                self.main.apply(record)
            }
            Record::Compacted { ref compaction } => {
                self.rewinds.forget_cut();
                let event = events::compacted(None, compaction);
                self.main.apply(record);
                vec![event]
            }
            Record::CallMoved { .. } | Record::CallEnded { .. } => self.apply_to_call(None, record),
            Record::Streamed { .. }
            | Record::Grown { .. }
            | Record::Item { .. }
            | Record::Commanded { .. }
            | Record::PicturesRefused { .. }
            | Record::Remark { .. } => self.main.apply(record),
            Record::Delegated { ref agent, .. } => {
                self.agent_mut(agent.clone()).delegate(record).into_iter().collect()
            }
            Record::InAgent { agent, record } => self.apply_in_agent(agent, *record),
            Record::Todos { todos } => vec![self.todos.write(todos)],
            Record::GoalSet { goal } => {
                self.goal = goal;
                vec![Event::GoalChanged { goal: self.goal.clone() }]
            }
            Record::FileReviewed { target, hunks } => self.mark_reviewed(target, hunks),
            Record::Charged { turn, model, usage, cost, context, pace, provider, aside } => {
                match aside {
                    true => self.spending.charge_aside(&model, usage, cost),
                    false => self.spending.charge(&turn, &model, usage, cost),
                }
                let agent = None;
                let call = Box::new(ModelCallUsage { usage, model, provider, cost, context, pace });
                vec![Event::TokenUsage { turn, agent, call }]
            }
            Record::TurnEnded { turn, reason, usage, figures } => self.end_turn(turn, reason, usage, figures),
            Record::Configured { mode, model, effort, output_style, sandbox } => {
                self.config.sandbox = sandbox;
                vec![self.config.configure(&mode, model, effort, output_style)]
            }
            Record::Team { entry } => vec![self.change_team(entry)],
            Record::Background { entry } => self.background.apply(entry).into_iter().collect(),
            Record::Titled { title, by } => self.title.set(title, by).into_iter().collect(),
            Record::Archived { archived } => {
                self.archived = archived;
                vec![Event::ArchivedChanged { archived }]
            }
            Record::Rewound { turn, resolution, files } => self.rewind(&turn, resolution, files),
            Record::Unwound { resolution } => self.unwind(&resolution),
            Record::Resumed { sealed, skipped_records, states, strategy, breakpoint } => {
                let sealed = events::sealed_calls(sealed, states);
                self.resumed(Event::AgentResumed { sealed, strategy, skipped_records, breakpoint })
            }
            Record::Decided { .. }
            | Record::Granted { .. }
            | Record::Equipped { .. }
            | Record::HooksBrought { .. }
            | Record::Asked { .. }
            | Record::Replied { .. }
            | Record::Delivering { .. }
            | Record::Writing { .. }
            | Record::Restored { .. } => {
                self.apply_silently(record);
                Vec::new()
            }
        }
    }

    /// A sub-agent, made before there is one.
    pub(crate) fn agent_mut(&mut self, id: AgentId) -> &mut SubAgent {
        self.agents.entry(id).or_insert_with(|| {
            let mut agent = SubAgent::default();
            if let Some(shelf) = &self.shelf {
                agent.thread.attach(shelf);
            }
            agent
        })
    }

    /// Takes over the unrecorded parts: growing items, and a draft that is not written yet.
    pub(crate) fn take_over(&mut self, live: &Self) {
        self.draft.clone_from(&live.draft);
        self.main.take_over(&live.main);
        for (id, agent) in &live.agents {
            self.agent_mut(id.clone()).thread.take_over(&agent.thread);
        }
    }

    /// Folds a record that emits no event: the process that asked and the one that answered publish their own.
    fn apply_silently(&mut self, record: Record) {
        match record {
            Record::Decided { decision, grants } => {
                self.grants.extend(grants);
                let agents = self.agents.values_mut().map(|agent| &mut agent.thread);
                agents.chain([&mut self.main]).for_each(|thread| thread.note_decided(&decision.id));
            }
            Record::Granted { grants } => self.grants.extend(grants),
            Record::Equipped { turn: _, equipment } => self.running.equipment.take(equipment),
            Record::HooksBrought { used } => take_in(&mut self.hooks, *used),
            Record::Asked { question } => self.running.ask(*question),
            Record::Replied { resolved } => self.running.reply(&resolved),
            Record::Delivering { rules } => self.config.deliveries = Some(rules),
            Record::Writing { intents } => self.writing = intents,
            Record::Restored { resolution } => self.rewinds.restored(&resolution),
            _ => {}
        }
    }

    /// Folds a record of a sub-agent's conversation.
    fn apply_in_agent(&mut self, id: AgentId, record: Record) -> Vec<Event> {
        let own = match &record {
            Record::TurnEnded { turn: _, reason, usage, figures } => {
                self.agent_mut(id.clone()).end_turn(*usage);
                let (ok, duration_ms) = (*reason == TurnEnd::EndTurn, figures.duration_ms);
                Some(Event::SubagentEnded { agent: id.clone(), ok, usage: *usage, duration_ms })
            }
            Record::Prompt { turn, .. } => {
                self.agent_mut(id.clone()).begin_turn(turn);
                None
            }
            Record::Equipped { turn: _, equipment } => {
                self.agent_mut(id.clone()).equipment.take(equipment.clone());
                None
            }
            Record::Begun { copies } => {
                let said = self.thread(copies.as_ref()).map(Thread::said_so_far);
                self.agent_mut(id.clone()).thread.begin_with(said.unwrap_or_default());
                None
            }
            Record::HooksBrought { used } => {
                take_in(&mut self.agent_mut(id.clone()).hooks, used.as_ref().clone());
                None
            }
            Record::Charged { turn, model, usage, cost, context, pace, provider, aside: _ } => {
                self.agent_mut(id.clone()).charged += *usage;
                self.spending.charge(turn, model, *usage, *cost);
                let call = ModelCallUsage {
                    usage: *usage,
                    model: model.clone(),
                    provider: provider.clone(),
                    cost: *cost,
                    context: *context,
                    pace: pace.clone(),
                };
                Some(Event::TokenUsage { turn: turn.clone(), agent: Some(id.clone()), call: Box::new(call) })
            }
            Record::Compacted { compaction } => Some(events::compacted(Some(id.clone()), compaction)),
            Record::CallMoved { .. } | Record::CallEnded { .. } => {
                return self.apply_to_call(Some(id), record);
            }
            _ => None,
        };
        self.agent_mut(id).thread.apply(record).into_iter().chain(own).collect()
    }

    /// Folds a record that moves or ends a call of a conversation.
    fn apply_to_call(&mut self, agent: Option<AgentId>, record: Record) -> Vec<Event> {
        let is_news = self.background.team.note_call(agent.as_ref(), &record);
        let events = match agent {
            None => self.main.apply(record),
            Some(agent) => self.agent_mut(agent).thread.apply(record),
        };
        events.into_iter().chain(is_news.then(|| self.team_event())).collect()
    }

    /// Forgets the announced changes of a call that has ended by itself: the ledger has them by then, but for one that an
    /// editor has not answered.
    fn forget_written(&mut self, record: &Record) {
        let ended = match record {
            Record::InAgent { record, .. } => record,
            other => other,
        };
        if let Record::CallEnded {
            result: Block::ToolResult { tool_use_id, .. }, executed: Some(_), ..
        } = ended
        {
            self.writing.retain(|intent| intent.is_unanswered || intent.change.call.as_str() != tool_use_id);
        }
    }

    fn enqueue(&mut self, waiting: WaitingPrompt, steering: bool) -> Vec<Event> {
        let sent = self.send_draft();
        // Without a running turn the record of its beginning was lost.
        self.queue.add(waiting, steering && self.running.id.is_some());
        std::iter::once(self.queue_event()).chain(sent).collect()
    }

    fn begin_turn(&mut self, record: Record) -> Vec<Event> {
        let Record::Prompt { turn, queued, item, parts, options, .. } = &record else { return Vec::new() };
        let (was_queued, turn) = (!self.queue.is_empty(), turn.clone());
        let sent = match queued {
            Some(queued) => {
                self.queue.start(queued);
                None
            }
            None => self.send_draft(),
        };
        self.running.begin(&turn, options.clone());
        self.running.attach(item, parts);
        let prompt = self.running.prompt.as_ref().map(|pending| &pending.prompt);
        let prompt = prompt.filter(|prompt| !prompt.kind().is_silent());
        let title = prompt.and_then(|prompt| self.title.name_after(prompt.text()));
        self.rewinds.begin_turn(&turn);
        self.todos.begin_turn(&turn);
        let begun = events::turn_started(turn, self.main.apply(record));
        let queued = was_queued.then(|| self.queue_event());
        begun.into_iter().chain(title).chain(queued).chain(sent).chain(self.team_news()).collect()
    }

    fn end_turn(&mut self, turn: TurnId, reason: TurnEnd, usage: Usage, figures: TurnFigures) -> Vec<Event> {
        let had_steering = self.queue.has_steering();
        self.counts.turns_done += u64::from(reason == TurnEnd::EndTurn);
        self.spending.end_turn(&turn, usage);
        self.running.end();
        self.queue.return_steering();
        let waits = self.is_queue_paused() && (had_steering || !queue::continues_after(reason));
        let cost = self.spending.of_turn(&turn);
        let done = events::turn_done(turn, reason, usage, cost, figures);
        let ended = [done, Event::StateChanged { state: RunState::Ready }];
        ended.into_iter().chain(waits.then(|| self.queue_event())).chain(self.team_news()).collect()
    }

    /// Emits again the events that the process before may have emitted without a record.
    fn resumed(&self, resumed: Event) -> Vec<Event> {
        vec![Event::DraftChanged { draft: self.draft.clone().map(Box::new) }, self.queue_event(), resumed]
    }

    /// Counts an answer of the session's own conversation.
    fn count_round(&mut self, answer: &Message, requested: Option<Mode>) {
        let calls_tools = answer.content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
        self.todos.count_round(calls_tools);
        self.counts.answers = self.counts.answers.saturating_add(1);
        self.running.rounds = self.running.rounds.saturating_add(1);
        self.config.mode_known = Some(requested.unwrap_or(self.config.mode));
    }

    fn set_draft(&mut self, draft: Option<PromptDraft>) -> Event {
        self.draft.clone_from(&draft);
        Event::DraftChanged { draft: draft.map(Box::new) }
    }

    /// A sent prompt is no draft any more.
    fn send_draft(&mut self) -> Option<Event> {
        self.draft.take().map(|_| Event::DraftChanged { draft: None })
    }

    fn change_team(&mut self, entry: TeamEntry) -> Event {
        self.background.team.apply(entry);
        self.team_event()
    }

    /// The event with the team as it is now.
    fn team_event(&self) -> Event {
        self.background.team.event(self.running.id.is_some())
    }

    /// The event that the main conversation begins or ends a turn, for the view of a team.
    fn team_news(&self) -> Option<Event> {
        self.background.team.is_shown().then(|| self.team_event())
    }

    fn queue_event(&self) -> Event {
        self.queue.event(self.running.id.is_some())
    }
}
