//! A session's state as a fold over its records.
//!
//! Rule: [`SessionState::apply`] is the only way a record changes memory, live and on resume alike; the history it
//! builds answers every call exactly once, in the order of the calls.

use std::collections::{BTreeSet, HashMap, VecDeque};

use crate::event::{CallOutcome, CallState, Item, ItemBody, QueuedPrompt, ToolCallItem};
use crate::ids::{ItemId, ResolutionId, SessionId, TurnId};
use crate::journal::Record;
use crate::model::{Block, Message, Role, Usage};
use crate::paths::AbsPath;
use crate::permission::{DeliveryRule, Grant, Mode};
use crate::session::title_from;
use crate::todo::{Todo, TodoCounts};

/// What a session's records add up to.
#[derive(Clone, Debug)]
pub struct SessionState {
    /// Its id.
    pub id: SessionId,
    /// What people call it.
    pub title: String,
    /// The workspace folders.
    pub roots: Vec<AbsPath>,
    /// Where relative paths and commands start.
    pub cwd: AbsPath,
    /// Its mode.
    pub mode: Mode,
    /// The mode that plan mode was entered from, while it lasts.
    pub mode_before_plan: Option<Mode>,
    /// The name of its model profile.
    pub model: String,
    /// What the model is sent, oldest first.
    pub messages: Vec<Message>,
    /// The transcript, oldest first.
    pub items: Vec<Item>,
    /// Prompts that wait for their turn, next first, with what they will say to the model.
    pub queue: VecDeque<(QueuedPrompt, Vec<Block>)>,
    /// What the user has allowed for the whole session.
    pub grants: Vec<Grant>,
    /// The todo list.
    pub todos: Vec<Todo>,
    /// Model rounds of work since the list was written: those that called tools, and all while anything is left to do.
    pub rounds_without_todos: u32,
    /// Whether the list was written after the newest answer.
    pub todos_changed: bool,
    /// Tokens of all turns.
    pub usage: Usage,
    /// The turn that has begun and not ended.
    pub turn: Option<TurnId>,
    /// Calls of the newest answer, in order, with their results as they come in; empty when all are answered.
    calls: Vec<(String, Option<Block>)>,
    places: HashMap<ItemId, usize>,
    /// How changes reach the files, where the session has rules of its own.
    pub deliveries: Option<Vec<DeliveryRule>>,
    /// Where the turns begin: items and messages before each of them.
    turns: Vec<TurnStart>,
    /// All turns there ever were, oldest first: files remember those that the conversation does not.
    every_turn: Vec<TurnId>,
    /// What was cut off when the conversation went back, until another prompt comes.
    cut: Option<Cut>,
}

/// Where a turn begins.
#[derive(Clone, Debug)]
struct TurnStart {
    turn: TurnId,
    items: usize,
    messages: usize,
    todos: Vec<Todo>,
}

/// The end of a conversation that went back.
#[derive(Clone, Debug)]
struct Cut {
    resolution: ResolutionId,
    items: Vec<Item>,
    messages: Vec<Message>,
    turns: Vec<TurnStart>,
    todos: Vec<Todo>,
}

impl SessionState {
    /// The state of a session that begins with `record`; `None` when it is not [`Record::Opened`].
    #[must_use]
    pub fn open(record: &Record) -> Option<Self> {
        let Record::Opened { session, roots, cwd, mode, model } = record else { return None };
        Some(Self {
            id: session.clone(),
            title: String::new(),
            roots: roots.clone(),
            cwd: cwd.clone(),
            mode: *mode,
            mode_before_plan: None,
            model: model.clone(),
            messages: Vec::new(),
            items: Vec::new(),
            queue: VecDeque::new(),
            grants: Vec::new(),
            todos: Vec::new(),
            rounds_without_todos: 0,
            todos_changed: false,
            usage: Usage::default(),
            turn: None,
            calls: Vec::new(),
            places: HashMap::new(),
            deliveries: None,
            turns: Vec::new(),
            every_turn: Vec::new(),
            cut: None,
        })
    }

    /// Folds a whole journal; `None` when it has no beginning.
    #[must_use]
    pub fn fold(records: Vec<Record>) -> Option<Self> {
        let mut records = records.into_iter();
        let mut state = records.find_map(|record| Self::open(&record))?;
        records.for_each(|record| state.apply(record));
        Some(state)
    }

    /// Folds one record into the state.
    pub fn apply(&mut self, record: Record) {
        match record {
            // What became of the agent's changes is the ledger's to fold.
            Record::Opened { .. } | Record::Edits { .. } => {}
            Record::Queued { prompt, content } => self.queue.push_back((prompt, content)),
            Record::Prompt { turn, queued, item, content } => {
                if let Some(queued) = queued {
                    self.queue.retain(|(prompt, _)| prompt.id != queued);
                }
                if let (true, ItemBody::UserMessage { text }) = (self.title.is_empty(), &item.body) {
                    self.title = title_from(text);
                }
                self.close_calls();
                let start = TurnStart {
                    turn: turn.clone(),
                    items: self.items.len(),
                    messages: self.messages.len(),
                    todos: self.todos.clone(),
                };
                self.turns.push(start);
                self.every_turn.push(turn.clone());
                self.cut = None;
                self.turn = Some(turn);
                self.put(item);
                self.messages.push(Message { role: Role::User, content });
            }
            Record::Answer { turn: _, message, items } => {
                self.close_calls();
                self.calls = message
                    .content
                    .iter()
                    .filter_map(|block| match block {
                        Block::ToolUse { id, .. } => Some((id.clone(), None)),
                        _ => None,
                    })
                    .collect();
                self.count_round();
                if !message.content.is_empty() {
                    self.messages.push(message);
                }
                items.into_iter().for_each(|item| self.put(item));
            }
            Record::Item { item } => self.put(item),
            Record::CallMoved { item, at, state, title } => {
                if let Some(call) = self.call_mut(&item) {
                    call.title = title;
                    call.enter(state, at);
                }
            }
            Record::CallEnded { item, at, outcome, result } => {
                if let Some(call) = self.call_mut(&item) {
                    call.end(outcome, at);
                }
                self.take_result(result);
            }
            Record::Remark { turn: _, text } => {
                self.close_calls();
                self.messages.push(Message { role: Role::User, content: vec![Block::Text { text }] });
            }
            Record::Decided { decision: _, grants } => self.grants.extend(grants),
            // For audits; the call tells the rest.
            Record::Asked { .. } | Record::Replied { .. } => {}
            Record::Todos { todos } => {
                self.todos = todos;
                self.rounds_without_todos = 0;
                self.todos_changed = true;
            }
            Record::TurnEnded { turn: _, reason: _, usage } => {
                self.usage += usage;
                self.turn = None;
            }
            Record::Configured { mode, model } => {
                if mode != self.mode {
                    self.mode_before_plan = (mode == Mode::Plan).then_some(self.mode);
                }
                self.mode = mode;
                self.model = model;
            }
            Record::Delivering { rules } => self.deliveries = Some(rules),
            Record::Rewound { turn, resolution } => self.rewind(&turn, resolution),
            Record::Unwound { resolution } => self.unwind(&resolution),
        }
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
        for start in &self.turns {
            forgotten.remove(&start.turn);
        }
        forgotten
    }

    /// The act that took the conversation back, while it can be taken back itself.
    #[must_use]
    pub fn rewound_by(&self) -> Option<&ResolutionId> {
        self.cut.as_ref().map(|cut| &cut.resolution)
    }

    /// The items from the prompt of a turn on.
    #[must_use]
    pub fn items_since(&self, turn: &TurnId) -> &[Item] {
        let start = self.turns.iter().find(|start| start.turn == *turn);
        start.map(|start| &self.items[start.items..]).unwrap_or_default()
    }

    fn count_round(&mut self) {
        self.todos_changed = false;
        if !self.calls.is_empty() || TodoCounts::of(&self.todos).is_open() {
            self.rounds_without_todos = self.rounds_without_todos.saturating_add(1);
        }
    }

    fn rewind(&mut self, turn: &TurnId, resolution: ResolutionId) {
        let Some(at) = self.turns.iter().position(|start| start.turn == *turn) else { return };
        self.close_calls();
        let turns = self.turns.split_off(at);
        let TurnStart { items, messages, .. } = turns[0];
        let todos = std::mem::replace(&mut self.todos, turns[0].todos.clone());
        let cut = Cut {
            resolution,
            items: self.items.split_off(items),
            messages: self.messages.split_off(messages),
            turns,
            todos,
        };
        for item in &cut.items {
            self.places.remove(&item.id);
        }
        self.cut = Some(cut);
        self.name_anew();
    }

    fn unwind(&mut self, resolution: &ResolutionId) {
        let Some(cut) = self.cut.take_if(|cut| cut.resolution == *resolution) else { return };
        self.messages.extend(cut.messages);
        self.turns.extend(cut.turns);
        self.todos = cut.todos;
        cut.items.into_iter().for_each(|item| self.put(item));
        self.name_anew();
    }

    /// The first prompt names the session.
    fn name_anew(&mut self) {
        let named = self.items.iter().find_map(|item| match &item.body {
            ItemBody::UserMessage { text } => Some(title_from(text)),
            _ => None,
        });
        self.title = named.unwrap_or_default();
    }

    /// The calls that have no result yet, as their items are now.
    #[must_use]
    pub fn unanswered(&self) -> Vec<Item> {
        let open = |id: &str| self.calls.iter().any(|(call, result)| call == id && result.is_none());
        self.items
            .iter()
            .rev()
            .take_while(|item| !matches!(item.body, ItemBody::UserMessage { .. }))
            .filter(|item| match &item.body {
                ItemBody::ToolCall(call) => open(call.call.as_str()) && !call.state.is_final(),
                _ => false,
            })
            .cloned()
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect()
    }

    /// The queue as clients see it.
    #[must_use]
    pub fn queued(&self) -> Vec<QueuedPrompt> {
        self.queue.iter().map(|(prompt, _)| prompt.clone()).collect()
    }

    /// Adds an item, or replaces the one of its id.
    pub fn put(&mut self, item: Item) {
        match self.places.get(&item.id) {
            Some(place) => self.items[*place] = item,
            None => {
                self.places.insert(item.id.clone(), self.items.len());
                self.items.push(item);
            }
        }
    }

    /// The item of that id.
    #[must_use]
    pub fn item(&self, id: &ItemId) -> Option<&Item> {
        self.places.get(id).map(|place| &self.items[*place])
    }

    /// Adds text to the end of a growing item.
    pub fn grow(&mut self, id: &ItemId, more: &str) {
        let Some(place) = self.places.get(id) else { return };
        if let ItemBody::AgentMessage { text, .. } | ItemBody::Thinking { text, .. } =
            &mut self.items[*place].body
        {
            text.push_str(more);
        }
    }

    fn call_mut(&mut self, id: &ItemId) -> Option<&mut ToolCallItem> {
        match &mut self.items[*self.places.get(id)?].body {
            ItemBody::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    /// Answers the calls whose results the journal has lost, so that the history stays one that can be sent.
    fn close_calls(&mut self) {
        for item in self.unanswered() {
            if let Some(call) = self.call_mut(&item.id) {
                let lost = "The result was lost with a damaged line of the journal.".to_owned();
                let outcome =
                    CallOutcome { state: CallState::Sealed, display: lost, structured: None, error: None };
                call.end(outcome, item.timestamp);
            }
        }
        let lost = |id: &str| Block::ToolResult {
            tool_use_id: id.to_owned(),
            content: "The result of this call was lost; check what it did before you repeat it.".to_owned(),
            is_error: true,
        };
        let open: Vec<_> =
            self.calls.iter().filter(|(_, known)| known.is_none()).map(|(id, _)| lost(id)).collect();
        open.into_iter().for_each(|result| self.take_result(result));
    }

    fn take_result(&mut self, result: Block) {
        let Block::ToolResult { tool_use_id, .. } = &result else { return };
        let open = self.calls.iter_mut().find(|(call, known)| call == tool_use_id && known.is_none());
        match open {
            Some((_, place)) => *place = Some(result),
            None => return,
        }
        if self.calls.iter().all(|(_, result)| result.is_some()) {
            let content = self.calls.drain(..).filter_map(|(_, result)| result).collect();
            self.messages.push(Message { role: Role::User, content });
        }
    }
}
