//! A client that shows what a snapshot and the events after it add up to, by the rules of the protocol.

use super::*;
use crate::history::Snapshot;
use kode_base::ids::ItemId;
use kode_base::question::Question;
use kode_base::todo::Todo;
use kode_record::background::BackgroundTask;
use kode_record::draft::PromptDraft;
use kode_record::event::{CallState, EventLog};

/// The display of a client.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) bookmark: u64,
    pub(super) seen: Vec<EventRecord>,
    state: RunState,
    mode: Mode,
    model: String,
    effort: Option<Effort>,
    items: Vec<Arc<Item>>,
    pending: Vec<PermissionPrompt>,
    questions: Vec<Question>,
    todos: Vec<Todo>,
    queue: Vec<QueuedPrompt>,
    steering: Vec<QueuedPrompt>,
    paused: bool,
    draft: Option<PromptDraft>,
    tasks: Vec<BackgroundTask>,
}

impl Client {
    pub(super) fn of(session: &Session) -> Self {
        Self::showing(session.snapshot(usize::MAX))
    }

    /// The display of a snapshot.
    pub(super) fn showing(now: Snapshot) -> Self {
        Self {
            bookmark: now.bookmark.seq,
            seen: Vec::new(),
            state: now.state,
            mode: now.mode,
            model: now.model,
            effort: now.effort,
            items: now.items,
            pending: now.pending,
            questions: now.questions,
            todos: now.todos,
            queue: now.queue,
            steering: now.steering,
            paused: now.queue_paused,
            draft: now.draft,
            tasks: now.tasks,
        }
    }

    /// Folds all events after its bookmark.
    pub(super) fn catch_up(&mut self, session: &Session) {
        self.catch_up_with(session.events());
    }

    /// Folds all events of a log after its bookmark.
    pub(super) fn catch_up_with(&mut self, log: &Arc<EventLog>) {
        let mut events = log.subscribe(self.bookmark, vec![]);
        loop {
            let batch = events.ready().unwrap();
            if batch.is_empty() {
                return;
            }
            for record in batch {
                assert!(record.bookmark.seq > self.bookmark || is_aside(&record.event), "numbers grow");
                self.bookmark = record.bookmark.seq;
                self.fold(record.event.clone());
                self.seen.push(record);
            }
        }
    }

    /// The display equals that of a fresh snapshot.
    #[track_caller]
    pub(super) fn assert_shows(&self, session: &Session) {
        self.assert_shows_as(&Self::of(session));
    }

    /// The display equals that of another client.
    #[track_caller]
    pub(super) fn assert_shows_as(&self, other: &Self) {
        let look = |client: &Self| {
            let fresh = Self { bookmark: 0, seen: Vec::new(), ..client.clone() };
            format!("{fresh:#?}")
        };
        assert_eq!(look(self), look(other));
    }

    fn upsert(&mut self, item: Arc<Item>) {
        if item.agent.is_some() {
            return;
        }
        match self.items.iter_mut().find(|known| known.id == item.id) {
            Some(known) => *known = item,
            None => self.items.push(item),
        }
    }

    fn grow(&mut self, id: &ItemId, more: &str) {
        let known = self.items.iter_mut().find(|item| item.id == *id);
        if let Some(ItemBody::AgentMessage { text, .. } | ItemBody::Thinking { text, .. }) =
            known.map(|item| &mut Arc::make_mut(item).body)
        {
            text.push_str(more);
        }
    }

    fn fold(&mut self, event: Event) {
        match event {
            Event::ItemAdded { item }
            | Event::ItemUpdated { item }
            | Event::ToolStart { item }
            | Event::ToolEnd { item } => self.upsert(item),
            Event::TextChunk { item, text } | Event::ThinkChunk { item, text } => self.grow(&item, &text),
            Event::Rewound { item } => {
                let at = self.items.iter().position(|known| known.id == item);
                self.items.truncate(at.unwrap_or(self.items.len()));
            }
            Event::PermissionRequired { prompt } => self.pending.push(*prompt),
            Event::PermissionDecided { decision } => self.pending.retain(|known| known.id != decision.id),
            Event::QuestionAsked { question } => self.questions.push(*question),
            Event::QuestionAnswered { resolved } => self.questions.retain(|known| known.id != resolved.id),
            Event::StateChanged { state } => self.state = state,
            Event::ModeChanged { mode, model, effort, .. } => {
                (self.mode, self.model, self.effort) = (mode, model, effort);
            }
            Event::QueueChanged { queue, steering, paused } => {
                (self.queue, self.steering, self.paused) = (queue, steering, paused);
            }
            Event::DraftChanged { draft } => self.draft = draft.map(|draft| *draft),
            Event::TodoChanged { todos } => self.todos = todos,
            Event::BackgroundStarted { task } => self.tasks.push(*task),
            Event::BackgroundEnded { task } => self.tasks.retain(|known| known.id != task.id),
            Event::AgentResumed { .. } => {
                self.pending.clear();
                self.questions.clear();
                // An item that grew when the former run ended is reported as interrupted; an open one has no recorded end.
                self.items.retain(|item| match &item.body {
                    ItemBody::AgentMessage { complete, .. } | ItemBody::Thinking { complete, .. } => {
                        *complete
                    }
                    ItemBody::ToolCall(call) => call.state.is_final(),
                    ItemBody::UserMessage { .. } | ItemBody::Notice { .. } | ItemBody::Command { .. } => true,
                });
            }
            _ => {}
        }
    }
}

/// Whether an event is no part of what the session tells, and so has no number of its own.
pub(super) fn is_aside(event: &Event) -> bool {
    matches!(event, Event::LeaseChanged { .. })
}

/// Whether an event is one that only a live session tells, and no record.
pub(super) fn is_transient(event: &Event) -> bool {
    let grows = |item: &Item| match &item.body {
        ItemBody::AgentMessage { complete, .. } | ItemBody::Thinking { complete, .. } => !complete,
        ItemBody::ToolCall(call) => call.state == CallState::Pending,
        ItemBody::UserMessage { .. } | ItemBody::Notice { .. } | ItemBody::Command { .. } => false,
    };
    match event {
        Event::BreakpointChanged { .. }
        | Event::TextChunk { .. }
        | Event::ThinkChunk { .. }
        | Event::ToolProgress { .. }
        | Event::SideAnswer { .. }
        | Event::ToolQueued { .. }
        | Event::ModelRetry { .. }
        | Event::Reminder { .. }
        | Event::TodoReminder { .. }
        | Event::ConfigChanged { .. }
        | Event::ExtensionsChanged { .. }
        | Event::PermissionRequired { .. }
        | Event::PermissionDecided { .. }
        | Event::QuestionAsked { .. }
        | Event::QuestionAnswered { .. }
        // How an act went is the answer to the acting client.
        | Event::EditsResolved { .. }
        | Event::Error { .. } => true,
        Event::ContextCompression { step, .. } => !matches!(step, kode_record::event::CompressionStep::Done { .. }),
        Event::StateChanged { state } => *state != RunState::Ready,
        Event::ItemAdded { item } | Event::ItemUpdated { item } => grows(item),
        _ => false,
    }
}
