//! A session's state as a fold over its records.
//!
//! Rule: [`SessionState::apply`] is the only way a record changes memory and the only source of what the record tells,
//! live, on resume and where another process writes alike. What belongs to one
//! conversation is in its [`Thread`]; what is here is the whole session's.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::input::Prompt;
use crate::session::agents::Agent;
use crate::session::background::Background;
use crate::session::spending::Spending;
use crate::session::thread::{self, Thread};
use crate::session::{queue, title_from, told};
use kode_base::effort::Effort;
use kode_base::ids::{AgentId, ItemId, QueueId, ResolutionId, SessionId, TurnId};
use kode_base::mode::{Mode, WrittenMode};
use kode_base::paths::AbsPath;
use kode_base::question::{Question, QuestionKind};
use kode_base::todo::{Todo, TodoCounts};
use kode_config::command;
use kode_config::hooks::declared::{TurnHooks, take_in};
use kode_journal::Shelf;
use kode_model::{Block, Message, Usage};
use kode_permission::equipment::Equipment;
use kode_permission::{DeliveryRule, Grant};
use kode_record::background::TaskEntry;
use kode_record::draft::PromptDraft;
use kode_record::event::{
    Event, Item, ItemBody, QueuedPrompt, ResumeStrategy, RunState, SealedCall, TurnEnd,
};
use kode_record::intent::Intent;
use kode_record::options::TurnOptions;
use kode_record::prompt::PromptPart;
use kode_record::record::{Record, TurnFigures};
use kode_record::title::TitledBy;

/// What a session's records add up to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionState {
    /// Its id.
    pub id: SessionId,
    /// The session it was forked from.
    pub forked_from: Option<SessionId>,
    /// What people call it.
    pub title: String,
    /// Who named it so; `None` for the first line of its first prompt.
    pub titled: Option<TitledBy>,
    /// Whether it was put away.
    pub archived: bool,
    /// The workspace folders.
    pub roots: Vec<AbsPath>,
    /// Where relative paths and commands start.
    pub cwd: AbsPath,
    /// Its mode.
    pub mode: Mode,
    /// The name of its mode where this build does not know that; the default mode counts then.
    pub unknown_mode: Option<String>,
    /// The mode that plan mode was entered from, while it lasts.
    pub mode_before_plan: Option<Mode>,
    /// The name of its model profile.
    pub model: String,
    /// Its own conversation.
    pub main: Thread,
    /// Its sub-agents.
    pub agents: BTreeMap<AgentId, Agent>,
    /// Prompts that wait for their turn, next first.
    pub queue: VecDeque<Waiting>,
    /// What waits to be told to the running turn, next first.
    pub steering: VecDeque<Waiting>,
    /// The newest of what waited and has begun, oldest first.
    pub(super) begun: VecDeque<QueueId>,
    /// The prompt that the user has not sent yet.
    pub draft: Option<PromptDraft>,
    /// The prompt of the running turn, until what goes with it was looked up.
    pub attaching: Option<Attaching>,
    /// What the user has allowed for the whole session.
    pub grants: Vec<Grant>,
    /// What the skills and commands of the running turn bring along.
    #[serde(default)]
    pub equipment: Equipment,
    /// The hooks that skills and commands have brought along, the oldest first.
    #[serde(default)]
    pub hooks: Vec<TurnHooks>,
    /// The todo list.
    pub todos: Vec<Todo>,
    /// The lists at the prompts of turns, where there was one.
    todos_before: BTreeMap<TurnId, Vec<Todo>>,
    /// Model rounds of work since the list was written: those that called tools, and all while anything is left to do.
    pub rounds_without_todos: u32,
    /// Whether the list was written after the newest answer.
    pub todos_changed: bool,
    /// How hard models think, where the user has said so for this session.
    pub effort: Option<Effort>,
    /// The name of the style of the answers, where the user has chosen one for this session.
    pub output_style: Option<String>,
    /// How many turns ended because the model had said all.
    pub worked: u64,
    /// How often the model has answered in the session's own conversation.
    pub answers: u64,
    /// The mode that the model knows: the one in which it last answered.
    pub mode_known: Option<Mode>,
    /// Tokens of all turns.
    pub usage: Usage,
    /// What was taken of which model.
    pub spending: Spending,
    /// The turn that has begun and not ended.
    pub turn: Option<TurnId>,
    /// The background commands.
    pub background: Background,
    /// How changes reach the files, where the session has rules of its own.
    pub deliveries: Option<Vec<DeliveryRule>>,
    /// All turns there ever were, oldest first: files remember those that the conversation does not.
    every_turn: Vec<TurnId>,
    /// What was cut off when the conversation went back, until another prompt comes.
    cut: Option<Cut>,
    /// What of the files is still to be brought back.
    pub(super) restoring: Option<Restoring>,
    /// Where what is old leaves memory to; without it everything stays.
    #[serde(skip)]
    shelf: Option<Arc<Shelf>>,
    /// What was said about how the running turn goes.
    pub options: TurnOptions,
    /// How often the model has answered in the running turn since the user last let it go on.
    pub rounds: u32,
    /// Changes that were about to be made, until their call has ended.
    pub writing: Vec<Intent>,
    /// The questions of the running turn that were not answered.
    pub asked: Vec<Question>,
}

/// A prompt that waits for its turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Waiting {
    /// The prompt as clients see it.
    pub prompt: QueuedPrompt,
    /// Its words as the model gets them.
    pub content: Vec<Block>,
    /// What goes with it.
    pub parts: Vec<PromptPart>,
}

/// A prompt whose turn has begun, and that waits for what goes with it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Attaching {
    /// Its item.
    pub item: ItemId,
    /// The prompt.
    pub prompt: Prompt,
}

/// Files that are to be brought back with the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Restoring {
    /// The act of the user's.
    pub(super) resolution: ResolutionId,
    /// The turns whose changes are taken back.
    pub(super) turns: Vec<TurnId>,
}

/// What was cut off when the conversation went back.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cut {
    resolution: ResolutionId,
    main: thread::Cut,
    agents: BTreeMap<AgentId, thread::Cut>,
    #[serde(default)]
    hooks: Vec<TurnHooks>,
    todos: Vec<Todo>,
    title: String,
    titled: Option<TitledBy>,
}

impl SessionState {
    /// The state of a session that begins with `record`; `None` when it is not [`Record::Opened`].
    #[must_use]
    pub fn open(record: &Record) -> Option<Self> {
        let Record::Opened { session, roots, cwd, mode, model, forked_from } = record else { return None };
        Some(Self {
            id: session.clone(),
            forked_from: forked_from.clone(),
            title: String::new(),
            titled: None,
            archived: false,
            roots: roots.clone(),
            cwd: cwd.clone(),
            mode: mode.known().unwrap_or_default(),
            unknown_mode: mode.unknown().map(str::to_owned),
            mode_before_plan: None,
            model: model.clone(),
            main: Thread::default(),
            agents: BTreeMap::new(),
            queue: VecDeque::new(),
            steering: VecDeque::new(),
            begun: VecDeque::new(),
            draft: None,
            attaching: None,
            grants: Vec::new(),
            equipment: Equipment::default(),
            hooks: Vec::new(),
            todos: Vec::new(),
            todos_before: BTreeMap::new(),
            rounds_without_todos: 0,
            todos_changed: false,
            effort: None,
            output_style: None,
            worked: 0,
            answers: 0,
            mode_known: None,
            usage: Usage::default(),
            spending: Spending::default(),
            turn: None,
            background: Background::default(),
            deliveries: None,
            every_turn: Vec::new(),
            cut: None,
            restoring: None,
            shelf: None,
            options: TurnOptions::default(),
            rounds: 0,
            writing: Vec::new(),
            asked: Vec::new(),
        })
    }

    /// Folds a whole journal; `None` when it has no beginning, wherever that stands.
    #[must_use]
    pub fn fold(records: Vec<Record>) -> Option<Self> {
        let mut state = records.iter().find_map(Self::open)?;
        for record in records {
            state.apply(record);
        }
        Some(state)
    }

    /// Lets what is old leave memory for this shelf, on which lies what has left it already.
    pub fn attach(&mut self, shelf: &Arc<Shelf>) {
        self.shelf = Some(Arc::clone(shelf));
        self.main.attach(shelf);
        self.agents.values_mut().for_each(|agent| agent.thread.attach(shelf));
    }

    /// Where what is old leaves memory to.
    #[must_use]
    pub fn shelf(&self) -> Option<&Arc<Shelf>> {
        self.shelf.as_ref()
    }

    /// A sub-agent, made if there is none yet.
    pub(super) fn agent_mut(&mut self, id: AgentId) -> &mut Agent {
        self.agents.entry(id).or_insert_with(|| {
            let mut agent = Agent::default();
            if let Some(shelf) = &self.shelf {
                agent.thread.attach(shelf);
            }
            agent
        })
    }

    /// Folds one record into the state, and answers the events that it tells, in their order.
    pub fn apply(&mut self, record: Record) -> Vec<Event> {
        self.forget_written(&record);
        match record {
            // What became of the agent's changes is the ledger's to fold.
            Record::Edits { entry } => told::of_edits(&entry).into_iter().collect(),
            Record::Opened { .. } | Record::Delivering { .. } | Record::Writing { .. } => {
                self.apply_quiet(record)
            }
            Record::Queued { prompt, content, parts, steering } => {
                let sent = self.send_draft();
                let waiting = Waiting { prompt, content, parts };
                // Without a turn there is nobody to be told: the record of its beginning was lost.
                if steering && self.turn.is_some() {
                    self.steering.push_back(waiting);
                } else {
                    self.queue.push_back(waiting);
                }
                std::iter::once(self.queue_event()).chain(sent).collect()
            }
            Record::QueueChanged { change } => {
                self.change_queue(change);
                vec![self.queue_event()]
            }
            Record::Drafted { draft } => vec![self.take_draft(draft)],
            Record::Prompt { .. } => self.apply_prompt(record),
            Record::Steered { ref queued, ref item, ref parts, .. } => {
                self.note_begun(queued);
                self.attach_to(item, parts);
                let shown = self.main.apply(record);
                shown.into_iter().chain([self.queue_event()]).collect()
            }
            Record::Attached { .. } | Record::PromptRefused { .. } => {
                self.attaching = None;
                self.main.apply(record)
            }
            Record::Answer { ref message, .. } => {
                self.count_round(message);
                self.main.apply(record)
            }
            Record::Compacted { ref compaction } => {
                // What was cut off belongs to a history that is no more.
                self.cut = None;
                let event = told::compacted(None, compaction);
                self.main.apply(record);
                vec![event]
            }
            Record::Streamed { .. }
            | Record::Grown { .. }
            | Record::Item { .. }
            | Record::CallMoved { .. }
            | Record::CallEnded { .. }
            | Record::Commanded { .. }
            | Record::Remark { .. } => self.main.apply(record),
            Record::Delegated { .. } => self.delegate(record),
            Record::InAgent { agent, record } => self.apply_in_agent(agent, *record),
            // For audits: who asks and who answers tells of it.
            Record::Decided { .. }
            | Record::Granted { .. }
            | Record::Equipped { .. }
            | Record::HooksBrought { .. }
            | Record::Begun { .. }
            | Record::Restored { .. }
            | Record::Asked { .. }
            | Record::Replied { .. } => self.apply_quiet(record),
            Record::Todos { todos } => {
                self.todos = todos;
                self.rounds_without_todos = 0;
                self.todos_changed = true;
                vec![self.todo_event()]
            }
            Record::Charged { turn, model, usage, cost, context } => {
                self.spending.charge(&turn, &model, usage, cost);
                vec![Event::TokenUsage { turn, usage, model, cost, context }]
            }
            Record::TurnEnded { turn, reason, usage, figures } => self.end_turn(turn, reason, usage, figures),
            Record::Configured { mode, model, effort, output_style } => {
                self.output_style = output_style;
                self.configure(&mode, model, effort)
            }
            Record::Background { entry } => self.apply_task(entry),
            Record::Titled { title, by } => self.take_title(title, by),
            Record::Archived { archived } => {
                self.archived = archived;
                vec![Event::ArchivedChanged { archived }]
            }
            Record::Rewound { turn, resolution, files } => self.go_back(&turn, resolution, files),
            Record::Unwound { resolution } => {
                self.forget_restore(&resolution);
                self.unwind(&resolution)
            }
            Record::Resumed { sealed, skipped_records, states, strategy } => {
                self.resumed(told::sealed(sealed, states), skipped_records, strategy)
            }
        }
    }

    fn apply_task(&mut self, entry: TaskEntry) -> Vec<Event> {
        let told = told::of_task(&entry);
        self.background.apply(entry);
        let event = told.and_then(|(id, event)| Some(event(self.background.find(&id)?.clone())));
        event.into_iter().collect()
    }

    fn go_back(&mut self, turn: &TurnId, resolution: ResolutionId, files: bool) -> Vec<Event> {
        let (turns, by) = (self.turns_since(turn), resolution.clone());
        self.restoring = files.then_some(Restoring { resolution: by, turns });
        self.rewind(turn, resolution)
    }

    fn forget_restore(&mut self, resolution: &ResolutionId) {
        self.restoring.take_if(|restoring| restoring.resolution == *resolution);
    }

    /// Forgets what was about to be changed by a call that has ended by itself: it is entered by then.
    fn forget_written(&mut self, record: &Record) {
        let ended = match record {
            Record::InAgent { record, .. } => record,
            other => other,
        };
        if let Record::CallEnded {
            result: Block::ToolResult { tool_use_id, .. }, executed: Some(_), ..
        } = ended
        {
            self.writing.retain(|intent| intent.change.call.as_str() != tool_use_id);
        }
    }

    fn delegate(&mut self, record: Record) -> Vec<Event> {
        let Record::Delegated { agent: id, turn: _, call, kind, description, model, worktree } = record
        else {
            return Vec::new();
        };
        let agent = self.agent_mut(id.clone());
        agent.call = Some(call.clone());
        if agent.kind.is_empty() {
            (agent.kind, agent.description) = (kind.clone(), description.clone());
        }
        (agent.model, agent.worktree) = (model, worktree);
        vec![Event::SubagentStarted { agent: id, call, kind, description }]
    }

    fn apply_prompt(&mut self, record: Record) -> Vec<Event> {
        let Record::Prompt { turn, queued, item, parts, options, .. } = &record else { return Vec::new() };
        let (dequeued, turn) = (!self.queue.is_empty(), turn.clone());
        let sent = match queued {
            Some(queued) => {
                self.note_begun(queued);
                None
            }
            None => self.send_draft(),
        };
        self.options = *options;
        let is_named = self.begin_turn(&turn, item, parts);
        let begun = told::begun(turn, self.main.apply(record));
        let title = is_named.then(|| self.title_event());
        begun.into_iter().chain(title).chain(dequeued.then(|| self.queue_event())).chain(sent).collect()
    }

    fn configure(&mut self, mode: &WrittenMode, model: String, effort: Option<Effort>) -> Vec<Event> {
        self.unknown_mode = mode.unknown().map(str::to_owned);
        let mode = mode.known().unwrap_or_default();
        if mode != self.mode {
            self.mode_before_plan = (mode == Mode::Plan).then_some(self.mode);
        }
        (self.mode, self.model, self.effort) = (mode, model, effort);
        let output_style = self.output_style.clone();
        vec![Event::ModeChanged { mode, model: self.model.clone(), effort, output_style }]
    }

    /// Folds a record that tells nothing.
    fn apply_quiet(&mut self, record: Record) -> Vec<Event> {
        match record {
            Record::Decided { decision, grants } => {
                self.grants.extend(grants);
                let agents = self.agents.values_mut().map(|agent| &mut agent.thread);
                agents.chain([&mut self.main]).for_each(|thread| thread.note_decided(&decision.id));
            }
            Record::Granted { grants } => self.grants.extend(grants),
            Record::Equipped { turn: _, equipment } => self.equipment.take(equipment),
            Record::HooksBrought { used } => take_in(&mut self.hooks, *used),
            Record::Asked { question } => {
                self.asked.retain(|asked| asked.id != question.id);
                self.asked.push(*question);
            }
            Record::Replied { resolved } => {
                let answered = self.asked.extract_if(.., |asked| asked.id == resolved.id);
                // Who lets a turn go on lets it go on as far again.
                if answered.filter(|asked| asked.draft.kind == QuestionKind::TurnLimit).count() > 0 {
                    self.rounds = 0;
                }
            }
            Record::Delivering { rules } => self.deliveries = Some(rules),
            Record::Writing { intents } => self.writing = intents,
            Record::Restored { resolution } => self.forget_restore(&resolution),
            _ => {}
        }
        Vec::new()
    }

    /// Folds a record of a sub-agent's conversation.
    fn apply_in_agent(&mut self, id: AgentId, record: Record) -> Vec<Event> {
        let own = match &record {
            Record::TurnEnded { turn: _, reason, usage, figures } => {
                let agent = self.agent_mut(id.clone());
                agent.usage += *usage;
                (agent.turn, agent.charged) = (None, Usage::default());
                agent.equipment = Equipment::default();
                let (ok, duration_ms) = (*reason == TurnEnd::EndTurn, figures.duration_ms);
                Some(Event::SubagentEnded { agent: id.clone(), ok, usage: *usage, duration_ms })
            }
            Record::Prompt { turn, .. } => {
                let agent = self.agent_mut(id.clone());
                (agent.turn, agent.equipment) = (Some(turn.clone()), Equipment::default());
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
            Record::Charged { turn, model, usage, cost, context } => {
                self.agent_mut(id.clone()).charged += *usage;
                self.spending.charge(turn, model, *usage, *cost);
                let (turn, model) = (turn.clone(), model.clone());
                Some(Event::TokenUsage { turn, usage: *usage, model, cost: *cost, context: *context })
            }
            Record::Compacted { compaction } => Some(told::compacted(Some(id.clone()), compaction)),
            _ => None,
        };
        self.agent_mut(id).thread.apply(record).into_iter().chain(own).collect()
    }

    fn take_draft(&mut self, draft: Option<PromptDraft>) -> Event {
        self.draft.clone_from(&draft);
        Event::DraftChanged { draft }
    }

    /// What was sent is no draft any more.
    fn send_draft(&mut self) -> Option<Event> {
        self.draft.take().map(|_| Event::DraftChanged { draft: None })
    }

    fn end_turn(&mut self, turn: TurnId, reason: TurnEnd, usage: Usage, figures: TurnFigures) -> Vec<Event> {
        let had_steering = !self.steering.is_empty();
        self.worked += u64::from(reason == TurnEnd::EndTurn);
        self.spending.end_turn(&turn, usage);
        self.usage += usage;
        self.turn = None;
        self.equipment = Equipment::default();
        self.attaching = None;
        self.asked.clear();
        self.return_steering();
        let waits = self.is_queue_paused() && (had_steering || !queue::goes_on_after(reason));
        let cost = self.spending.of_turn(&turn);
        let done = told::done(turn, reason, usage, cost, figures);
        let ended = [done, Event::StateChanged { state: RunState::Ready }];
        ended.into_iter().chain(waits.then(|| self.queue_event())).collect()
    }

    /// What an earlier life told without a record is gone: what may have changed by it is told anew.
    fn resumed(&self, sealed: Vec<SealedCall>, skipped_records: u64, strategy: ResumeStrategy) -> Vec<Event> {
        vec![
            Event::DraftChanged { draft: self.draft.clone() },
            self.queue_event(),
            Event::AgentResumed { sealed, strategy, skipped_records },
        ]
    }

    fn todo_event(&self) -> Event {
        Event::TodoChanged { todos: self.todos.clone() }
    }

    /// Begins a turn with its prompt; whether the session has a title by that.
    fn begin_turn(&mut self, turn: &TurnId, item: &Item, parts: &[PromptPart]) -> bool {
        let mut is_named = false;
        if let (true, ItemBody::UserMessage { text, .. }) = (self.title.is_empty(), &item.body)
            && !command::is_unsaid(text)
        {
            self.title = title_from(text);
            is_named = !self.title.is_empty();
        }
        self.rounds = 0;
        self.equipment = Equipment::default();
        self.attach_to(item, parts);
        self.every_turn.push(turn.clone());
        self.cut = None;
        self.turn = Some(turn.clone());
        if !self.todos.is_empty() {
            self.todos_before.insert(turn.clone(), self.todos.clone());
        }
        is_named
    }

    /// Notes that what a prompt names is still to be looked up.
    fn attach_to(&mut self, item: &Item, parts: &[PromptPart]) {
        if let ItemBody::UserMessage { text, .. } = &item.body {
            let prompt = Prompt { text: text.clone(), parts: parts.to_vec(), ..Prompt::default() };
            self.attaching = Some(Attaching { item: item.id.clone(), prompt });
        }
    }

    /// The newest turn, also when the conversation went back before it.
    #[must_use]
    pub fn newest_turn(&self) -> Option<&TurnId> {
        self.every_turn.last()
    }

    /// The turns from this one on, oldest first, also those that the conversation went back before; none when there is
    /// no such turn.
    #[must_use]
    pub fn turns_since(&self, turn: &TurnId) -> Vec<TurnId> {
        self.every_turn.iter().skip_while(|known| *known != turn).cloned().collect()
    }

    /// The turns that the conversation went back before: the model knows nothing of them.
    #[must_use]
    pub fn forgotten_turns(&self) -> BTreeSet<TurnId> {
        let mut forgotten: BTreeSet<TurnId> = self.every_turn.iter().cloned().collect();
        for turn in self.main.turns() {
            forgotten.remove(turn);
        }
        forgotten
    }

    /// The act that took the conversation back, while it can be taken back itself.
    #[must_use]
    pub fn rewound_by(&self) -> Option<&ResolutionId> {
        self.cut.as_ref().map(|cut| &cut.resolution)
    }

    /// The conversation of a sub-agent, or the session's own; `None` when there is no such sub-agent.
    #[must_use]
    pub fn thread(&self, agent: Option<&AgentId>) -> Option<&Thread> {
        match agent {
            None => Some(&self.main),
            Some(agent) => self.agents.get(agent).map(|agent| &agent.thread),
        }
    }

    /// Counts an answer of the session's own conversation.
    fn count_round(&mut self, answer: &Message) {
        self.todos_changed = false;
        self.answers = self.answers.saturating_add(1);
        self.rounds = self.rounds.saturating_add(1);
        self.mode_known = Some(self.mode);
        let works = answer.content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
        if works || TodoCounts::of(&self.todos).is_open() {
            self.rounds_without_todos = self.rounds_without_todos.saturating_add(1);
        }
    }

    /// Whether what is needed to go back to before this turn can be read.
    #[must_use]
    pub(super) fn can_rewind(&self, turn: &TurnId) -> bool {
        let gone: BTreeSet<TurnId> = self.turns_since(turn).into_iter().collect();
        let threads = self.agents.values().map(|agent| &agent.thread);
        std::iter::once(&self.main).chain(threads).all(|thread| thread.can_rewind(&gone))
    }

    fn rewind(&mut self, turn: &TurnId, resolution: ResolutionId) -> Vec<Event> {
        let first = self.main.prompt(turn).map(|prompt| prompt.item.clone());
        let rewound = first.map(|item| Event::Rewound { item });
        if !self.main.turns().any(|known| known == turn) {
            return Vec::new();
        }
        let gone: BTreeSet<TurnId> = self.turns_since(turn).into_iter().collect();
        let Some(main) = self.main.rewind(&gone) else { return Vec::new() };
        let cut = |(id, agent): (&AgentId, &mut Agent)| Some((id.clone(), agent.thread.rewind(&gone)?));
        let agents = self.agents.iter_mut().filter_map(cut).collect();
        let hooks = self.hooks.extract_if(.., |used| gone.contains(&used.turn)).collect();
        let todos = self.todos_before.get(turn).cloned().unwrap_or_default();
        let todos = std::mem::replace(&mut self.todos, todos);
        let todos_changed = todos != self.todos;
        let (title, titled) = (self.title.clone(), self.titled);
        self.cut = Some(Cut { resolution, main, agents, hooks, todos, title, titled });
        let title = self.name_anew();
        rewound.into_iter().chain(todos_changed.then(|| self.todo_event())).chain(title).collect()
    }

    fn unwind(&mut self, resolution: &ResolutionId) -> Vec<Event> {
        let Some(cut) = self.cut.take_if(|cut| cut.resolution == *resolution) else { return Vec::new() };
        let known = self.main.items.count();
        self.main.unwind(cut.main);
        let todos_changed = cut.todos != self.todos;
        self.todos = cut.todos;
        cut.hooks.into_iter().for_each(|used| take_in(&mut self.hooks, used));
        for (agent, cut) in cut.agents {
            self.agent_mut(agent).thread.unwind(cut);
        }
        // What the user has called it since stays.
        let title = (self.titled != Some(TitledBy::User) && self.title != cut.title).then(|| {
            (self.title, self.titled) = (cut.title, cut.titled);
            self.title_event()
        });
        let items = self.main.items.part(known..self.main.items.count()).read_what_can_be();
        let back = items.into_iter().map(|item| Event::ItemAdded { item });
        back.chain(todos_changed.then(|| self.todo_event())).chain(title).collect()
    }

    /// A title of the user's is only changed by the user.
    fn take_title(&mut self, title: String, by: TitledBy) -> Vec<Event> {
        if by == TitledBy::Model && self.titled == Some(TitledBy::User) {
            return Vec::new();
        }
        (self.title, self.titled) = (title, Some(by));
        vec![self.title_event()]
    }

    /// The first prompt names the session, unless somebody has. A model's title goes with the conversation that it
    /// was made for.
    fn name_anew(&mut self) -> Option<Event> {
        if self.titled == Some(TitledBy::User) || (self.titled.is_some() && self.main.items.count() > 0) {
            return None;
        }
        let title = self
            .main
            .prompts()
            .find(|prompt| prompt.is_said)
            .map(|prompt| prompt.title.clone())
            .unwrap_or_default();
        let is_other = title != self.title;
        (self.title, self.titled) = (title, None);
        is_other.then(|| self.title_event())
    }
}
