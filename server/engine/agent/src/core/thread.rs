//! A handle on one conversation: the session's own, or that of a sub-agent.
//!
//! Rule: records written through a handle are those of its conversation, and its items name their sub-agent.

use std::sync::Arc;

use jiff::Timestamp;

use crate::core::Core;
use crate::state::thread::Thread;
use crate::state::{SessionState, new_item};
use kode_base::capacity;
use kode_base::ids::{AgentId, ItemId, PermissionId, TurnId};
use kode_base::paths::AbsPath;
use kode_model::profile::Profile;
use kode_model::{Block, Usage};
use kode_permission::equipment::Equipment;
use kode_record::context::{ContextUse, Pace};
use kode_record::event::{CallOutcome, CallState, Item, ItemBody, NoticeKind, NoticeLevel};
use kode_record::record::{ExecutedCall, Record};
use kode_text::workspace::KnownText;

/// A handle on one conversation of a session. Clones are handles on the same one.
#[derive(Clone)]
pub(crate) struct ThreadHandle {
    pub(crate) core: Arc<Core>,
    /// The sub-agent; `None` for the session's own conversation.
    pub(crate) agent: Option<AgentId>,
}

impl ThreadHandle {
    /// The session's own conversation.
    pub(crate) fn main(core: &Arc<Core>) -> Self {
        Self { core: Arc::clone(core), agent: None }
    }

    /// The conversation of a sub-agent.
    pub(crate) fn of_agent(core: &Arc<Core>, agent: AgentId) -> Self {
        Self { core: Arc::clone(core), agent: Some(agent) }
    }

    /// All conversations of a session, those of sub-agents first.
    pub(crate) fn all(core: &Arc<Core>) -> Vec<Self> {
        let agents: Vec<_> = core.state().agents.keys().cloned().collect();
        let agents = agents.into_iter().map(|agent| Self::of_agent(core, agent));
        agents.chain([Self::main(core)]).collect()
    }

    /// Whether it is the session's own conversation.
    pub(crate) fn is_main(&self) -> bool {
        self.agent.is_none()
    }

    /// Reads the conversation as it is now; an unknown one is empty.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Thread) -> T) -> T {
        let state = self.core.state();
        match state.thread(self.agent.as_ref()) {
            Some(thread) => read(thread),
            None => read(&Thread::default()),
        }
    }

    /// The equipment of the skills and commands of its turn.
    pub(crate) fn equipped<'s>(&self, state: &'s SessionState) -> Option<&'s Equipment> {
        match &self.agent {
            None => Some(&state.running.equipment),
            Some(agent) => state.agents.get(agent).map(|agent| &agent.equipment),
        }
    }

    /// Commits a record of this conversation.
    pub(crate) fn commit(&self, record: Record) {
        self.core.commit_in(self.agent.as_ref(), record);
    }

    /// Makes an item of this conversation.
    pub(crate) fn new_item(&self, turn: &TurnId, body: ItemBody) -> Item {
        Item { agent: self.agent.clone(), ..new_item(turn, body) }
    }

    /// Records the tokens of an answer, whole or broken off, with their cost. `context` is the fill of the context window
    /// now; `None` where it was not measured.
    pub(crate) fn charge(&self, turn: &TurnId, profile: &Profile, usage: Usage, context: Option<ContextUse>) {
        self.charge_at(turn, profile, usage, context, Pace::default());
    }

    /// As [`Self::charge`], for an answer of a known pace.
    pub(crate) fn charge_at(
        &self,
        turn: &TurnId,
        profile: &Profile,
        usage: Usage,
        context: Option<ContextUse>,
        pace: Pace,
    ) {
        let cost = profile.prices.as_ref().and_then(|prices| prices.cost(&usage));
        let (turn, model) = (turn.clone(), profile.model.clone());
        let provider = profile.provider.name().to_owned();
        self.commit(Record::Charged { turn, model, usage, cost, context, pace, provider, aside: false });
    }

    /// Records the tokens of a side question, which are of no turn. Returns their cost in US dollars, if that is known.
    pub(crate) fn charge_aside(&self, profile: &Profile, usage: Usage) -> Option<f64> {
        let cost = profile.prices.as_ref().and_then(|prices| prices.cost(&usage));
        let (turn, model) = (TurnId::generate(), profile.model.clone());
        let (context, pace, provider) = (None, Pace::default(), profile.provider.name().to_owned());
        self.commit(Record::Charged { turn, model, usage, cost, context, pace, provider, aside: true });
        cost
    }

    /// Records that a call waits for the user, and for which permission prompt if for one. Does nothing where that is
    /// recorded.
    pub(crate) fn call_waits(
        &self,
        item: &ItemId,
        title: &str,
        permission: Option<&PermissionId>,
        known: Vec<KnownText>,
    ) {
        let is_known = self.read(|thread| match thread.item(item).map(|item| &item.body) {
            Some(ItemBody::ToolCall(call)) => {
                let waits = call.state == CallState::ApprovalRequired && call.title == title;
                waits && thread.asked(item) == permission
            }
            Some(_) | None => false,
        });
        if !is_known {
            let (item, title, permission) = (item.clone(), title.to_owned(), permission.cloned());
            let (at, state) = (Timestamp::now(), CallState::ApprovalRequired);
            self.commit(Record::CallMoved { item, at, state, title, permission, known });
        }
    }

    /// Records that a call begins to run.
    pub(crate) fn call_begins(&self, item: &ItemId, title: &str) {
        let (item, title) = (item.clone(), title.to_owned());
        let (at, state) = (Timestamp::now(), CallState::Executing);
        self.commit(Record::CallMoved { item, at, state, title, permission: None, known: Vec::new() });
    }

    /// Records the result of a call, and the folders whose instructions it contains; `executed` where the call was executed
    /// or refused.
    pub(crate) fn end_call(
        &self,
        item: &ItemId,
        outcome: CallOutcome,
        (result, instructed): (Block, Vec<AbsPath>),
        executed: Option<ExecutedCall>,
    ) {
        let (item, at) = (item.clone(), Timestamp::now());
        let outcome = CallOutcome { structured: outcome.structured.map(capacity::exact), ..outcome };
        self.commit(Record::CallEnded { item, at, outcome, result, instructed, executed });
    }

    /// Adds a notice to the transcript.
    pub(crate) fn notice(&self, turn: &TurnId, level: NoticeLevel, text: String, hint: Option<String>) {
        self.add_item(turn, ItemBody::Notice { level, text, hint, kind: None });
    }

    /// Adds a notice of a kind to the transcript; an empty hint is left out.
    pub(crate) fn notice_of(
        &self,
        kind: NoticeKind,
        turn: &TurnId,
        (level, text, hint): (NoticeLevel, &str, &str),
    ) {
        let hint = (!hint.is_empty()).then(|| hint.to_owned());
        let (text, kind) = (text.to_owned(), Some(kind));
        self.add_item(turn, ItemBody::Notice { level, text, hint, kind });
    }

    fn add_item(&self, turn: &TurnId, body: ItemBody) {
        let item = self.new_item(turn, body);
        self.commit(Record::Item { item, streamed: false });
    }
}
