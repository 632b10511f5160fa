//! Where a turn runs: the session's own conversation, or that of one of its sub-agents.
//!
//! Rule: whatever is recorded through a conversation is recorded as its own, and what it shows says whose it is; all
//! else (files, changes, permissions, usage) is the session's, whoever does it.

use std::sync::Arc;

use jiff::Timestamp;

use crate::event::{CallOutcome, CallState, Event, Item, ItemBody, NoticeLevel};
use crate::ids::{AgentId, ItemId, TurnId};
use crate::journal::Record;
use crate::model::Block;
use crate::session::thread::Thread;
use crate::session::{Session, new_item};
use crate::tools::Registry;
use crate::turn::MODEL_CALL_LIMIT;

/// A conversation in which a turn runs.
pub(crate) struct Conversation<'a> {
    pub(crate) session: &'a Session,
    /// Whose it is; `None` for the session's own.
    pub(crate) agent: Option<AgentId>,
    /// The tools that may be called in it.
    pub(crate) tools: Arc<Registry>,
    /// The most model calls of one turn.
    pub(crate) model_call_limit: u32,
}

impl<'a> Conversation<'a> {
    /// The session's own.
    pub(crate) fn main(session: &'a Session) -> Self {
        Self { session, agent: None, tools: Arc::clone(&session.tools), model_call_limit: MODEL_CALL_LIMIT }
    }

    /// That of a sub-agent.
    pub(crate) fn of_agent(session: &'a Session, agent: AgentId) -> Self {
        Self { agent: Some(agent), ..Self::main(session) }
    }

    /// Looks at what the conversation is now.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Thread) -> T) -> T {
        let state = self.session.state();
        match state.thread(self.agent.as_ref()) {
            Some(thread) => look(thread),
            None => look(&Thread::default()),
        }
    }

    /// Writes a record of this conversation, folds it into the state and tells of it.
    pub(crate) fn commit(&self, record: Record, events: impl FnOnce(&Thread) -> Vec<Event>) {
        let record = match &self.agent {
            None => record,
            Some(agent) => Record::InAgent { agent: agent.clone(), record: Box::new(record) },
        };
        self.session.commit(record, |state| {
            let thread = state.thread(self.agent.as_ref());
            thread.map(events).unwrap_or_default()
        });
    }

    /// Changes an item that is still growing, in memory alone, and tells of it.
    pub(crate) fn show(&self, change: impl FnOnce(&mut Thread) -> Event) {
        let mut state = self.session.state();
        if let Some(thread) = state.thread_mut(self.agent.as_ref()) {
            let event = change(thread);
            self.session.publish(event);
        }
    }

    /// Makes an item of this conversation.
    pub(crate) fn new_item(&self, turn: &TurnId, body: ItemBody) -> Item {
        Item { agent: self.agent.clone(), ..new_item(turn, body) }
    }

    /// Notes that a call waits for the user or begins to run, and tells of it.
    pub(crate) fn move_call(&self, item: &ItemId, state: CallState, title: &str) {
        let record =
            Record::CallMoved { item: item.clone(), at: Timestamp::now(), state, title: title.to_owned() };
        self.commit(record, |thread| {
            let moved = thread.item(item).cloned();
            let event = match state {
                CallState::Executing => moved.map(|item| Event::ToolStart { item }),
                _ => moved.map(|item| Event::ItemUpdated { item }),
            };
            event.into_iter().collect()
        });
    }

    /// Ends a call with its result, and tells of it together with `more`.
    pub(crate) fn end_call(&self, item: &ItemId, outcome: CallOutcome, result: Block, more: Vec<Event>) {
        let record = Record::CallEnded { item: item.clone(), at: Timestamp::now(), outcome, result };
        self.commit(record, |thread| {
            let ended = thread.item(item).cloned().map(|item| Event::ToolEnd { item });
            ended.into_iter().chain(more).collect()
        });
    }

    /// Adds a notice to the transcript.
    pub(crate) fn notice(&self, turn: &TurnId, level: NoticeLevel, text: String, hint: Option<String>) {
        let item = self.new_item(turn, ItemBody::Notice { level, text, hint });
        self.commit(Record::Item { item: item.clone() }, |_| vec![Event::ItemAdded { item }]);
    }
}
