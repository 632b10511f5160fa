//! Items and events of a session as `session/update` notifications.
//!
//! Rule: an item is shown by what the client has not been sent of it yet, so that events, a replay and the state after a gap
//! are one thing.

use std::collections::HashMap;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    CompactionStatus, CompactionUpdate, ContentBlock, ContentChunk, Cost, CurrentModeUpdate, MessageId,
    Notice, NoticeSeverity, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, ResourceLink,
    SessionInfoUpdate, SessionNotification, SessionUpdate, UsageUpdate,
};
use jiff::Timestamp;
use kode_engine::agent::history::Snapshot;
use kode_engine::base::ids::{AgentId, CallId, ItemId, SessionId, TurnId};
use kode_engine::base::mode::Mode;
use kode_engine::base::todo::{Todo, TodoStatus};
use kode_engine::record::event::{CompressionStep, Item, ItemBody, NoticeKind, NoticeLevel};
use kode_engine::record::prompt::Attachment;
use serde_json::{Value, json};
use url::Url;

use super::initialize::AcpClient;
use super::terminal::TerminalTable;
use super::tool_call::{self, SessionPlaces, ToolCallView};
use crate::display::retry_line;
use kode_engine::acp::peer::RpcPeer;

/// The method of all updates.
const UPDATE: &str = "session/update";

/// Sends a client the updates of one session.
pub(super) struct UpdateSender {
    peer: Arc<RpcPeer>,
    client: Arc<AcpClient>,
    session: SessionId,
    places: SessionPlaces,
    /// Whether prompts are shown: in a replay, and those of other clients.
    shows_prompts: bool,
    /// The sent part of each item of the running turn.
    sent: HashMap<ItemId, SentPart>,
    /// The items of the calls of the running turn.
    calls: HashMap<CallId, ItemId>,
    /// The calls that sub-agents work for.
    parents: HashMap<AgentId, ItemId>,
    /// The terminals of the client that run commands of the session.
    terminals: Arc<TerminalTable>,
    /// The newest output of running commands.
    outputs: HashMap<ItemId, String>,
    /// The mode that the client was sent last.
    mode: Option<Mode>,
    /// The newest updates beside the conversation that wait for the next turn; `None` while none is held back.
    held: Option<Vec<SessionUpdate>>,
}

/// The sent part of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SentPart {
    /// Bytes of a text.
    Text(usize),
    /// A call, in a state that is final or is not.
    Call { is_final: bool },
    /// All of it.
    Whole,
}

impl UpdateSender {
    pub(super) fn new(
        peer: &Arc<RpcPeer>,
        client: &Arc<AcpClient>,
        session: &SessionId,
        places: SessionPlaces,
        terminals: Arc<TerminalTable>,
    ) -> Self {
        Self {
            peer: Arc::clone(peer),
            client: Arc::clone(client),
            session: session.clone(),
            places,
            shows_prompts: false,
            sent: HashMap::new(),
            calls: HashMap::new(),
            parents: HashMap::new(),
            terminals,
            outputs: HashMap::new(),
            mode: None,
            held: None,
        }
    }

    /// The same for a transcript, whose prompts are shown too.
    pub(super) fn replaying(self) -> Self {
        Self { shows_prompts: true, ..self }
    }

    /// Whether the prompts of the turns that follow are shown.
    pub(super) fn show_prompts(&mut self, shows: bool) {
        self.shows_prompts = shows;
    }

    /// Sends an update.
    pub(super) async fn send(&self, update: SessionUpdate) {
        let id = agent_client_protocol_schema::v1::SessionId::new(self.session.as_str());
        self.peer.notify(UPDATE, SessionNotification::new(id, update)).await;
    }

    /// Sends an update beside the conversation, or keeps it while such updates are held back.
    async fn send_aside(&mut self, update: SessionUpdate) {
        match &mut self.held {
            None => self.send(update).await,
            Some(held) => {
                held.retain(|other| std::mem::discriminant(other) != std::mem::discriminant(&update));
                held.push(update);
            }
        }
    }

    /// Holds updates beside the conversation back: the client expects none behind the answer to a cancelled prompt.
    pub(super) fn hold(&mut self) {
        self.held.get_or_insert_default();
    }

    /// Sends the updates that were held back.
    pub(super) async fn release(&mut self) {
        for update in self.held.take().unwrap_or_default() {
            self.send(update).await;
        }
    }

    /// Shows a line of the protocol's own side as text of the answer.
    pub(super) async fn say(&self, text: &str) {
        self.send(SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into()))).await;
    }

    /// Shows the commands.
    pub(super) async fn commands(&mut self, update: SessionUpdate) {
        self.send_aside(update).await;
    }

    /// Shows the new part of an item.
    pub(super) async fn item(&mut self, item: &Item) {
        match &item.body {
            // The text of a sub-agent is in the result of its call.
            ItemBody::AgentMessage { .. } | ItemBody::Thinking { .. } | ItemBody::UserMessage { .. }
                if item.agent.is_some() =>
            {
                self.sent.insert(item.id.clone(), SentPart::Whole);
            }
            ItemBody::UserMessage { text, attachments, .. } => self.prompt(item, text, attachments).await,
            ItemBody::AgentMessage { text, .. } | ItemBody::Thinking { text, .. } => {
                self.text(&item.id, text, matches!(item.body, ItemBody::Thinking { .. })).await;
            }
            ItemBody::ToolCall(call) => {
                self.calls.insert(call.call.clone(), item.id.clone());
                let output = self.outputs.get(&item.id).map(String::as_str);
                let parent = item.agent.as_ref().and_then(|agent| self.parents.get(agent));
                let terminal = self.terminals.of_call(&call.call);
                let context = ToolCallView { parent, output, terminal: terminal.as_ref() };
                let is_final = call.state.is_final();
                let update = match self.sent.get(&item.id) {
                    Some(SentPart::Call { is_final: true }) => return,
                    Some(_) => SessionUpdate::ToolCallUpdate(tool_call::updated(
                        &item.id,
                        call,
                        context,
                        &self.places,
                    )),
                    None => {
                        SessionUpdate::ToolCall(tool_call::announced(&item.id, call, context, &self.places))
                    }
                };
                self.sent.insert(item.id.clone(), SentPart::Call { is_final });
                if is_final {
                    self.outputs.remove(&item.id);
                    self.terminals.forget(&call.call);
                }
                self.send(update).await;
            }
            ItemBody::Notice { level, text, hint, kind } if self.is_new(&item.id) => {
                self.notice(*level, text, hint.as_deref(), *kind).await;
            }
            ItemBody::Command { text, go_to, .. } if self.is_new(&item.id) => {
                let chunk = chunk(&item.id, text);
                let meta = go_to.as_ref().map(|id| meta(json!({ "goTo": id.as_str() })));
                self.send(SessionUpdate::AgentMessageChunk(chunk.meta(meta))).await;
            }
            ItemBody::Notice { .. } | ItemBody::Command { .. } => {}
        }
    }

    /// Shows a piece of a text that is being written.
    pub(super) async fn piece(&mut self, item: &ItemId, text: &str, is_thought: bool) {
        match self.sent.get_mut(item) {
            Some(SentPart::Whole | SentPart::Call { .. }) => return,
            Some(SentPart::Text(sent)) => *sent += text.len(),
            None => drop(self.sent.insert(item.clone(), SentPart::Text(text.len()))),
        }
        self.send(message(item, text, is_thought)).await;
    }

    /// Shows the newest output of a running command; that in a terminal of the client the client shows itself.
    pub(super) async fn progress(&mut self, item: &ItemId, call: &CallId, text: String) {
        if matches!(self.sent.get(item), Some(SentPart::Call { is_final: false })) {
            let terminal = self.terminals.of_call(call);
            if terminal.is_none() || !self.outputs.contains_key(item) {
                let progress = tool_call::progress(item, &text, terminal.as_ref());
                self.send(SessionUpdate::ToolCallUpdate(progress)).await;
            }
            self.outputs.insert(item.clone(), text);
        }
    }

    /// Notes which call a sub-agent works for.
    pub(super) fn sub_agent(&mut self, agent: &AgentId, call: &CallId) {
        if let Some(item) = self.calls.get(call) {
            self.parents.insert(agent.clone(), item.clone());
        }
    }

    /// Forgets the sent parts of a turn: it has ended.
    pub(super) fn end_turn(&mut self) {
        self.sent.retain(|_, part| matches!(part, SentPart::Call { is_final: false }));
        self.outputs.retain(|item, _| self.sent.contains_key(item));
        self.calls.retain(|_, item| self.sent.contains_key(item));
        if self.sent.is_empty() {
            self.parents.clear();
        }
    }

    /// Shows what a gap in the events has left out of the running turns.
    pub(super) async fn catch_up(&mut self, snapshot: &Snapshot, turns: &[TurnId]) {
        let of_turns = snapshot.items.iter().filter(|item| turns.contains(&item.turn));
        for item in of_turns {
            self.item(item).await;
        }
    }

    /// Shows the todo list.
    pub(super) async fn plan(&self, todos: &[Todo]) {
        let entry = |todo: &Todo| {
            let status = match todo.status {
                TodoStatus::Pending => PlanEntryStatus::Pending,
                TodoStatus::InProgress => PlanEntryStatus::InProgress,
                TodoStatus::Completed => PlanEntryStatus::Completed,
            };
            PlanEntry::new(todo.content.clone(), PlanEntryPriority::Medium, status)
        };
        self.send(SessionUpdate::Plan(Plan::new(todos.iter().map(entry).collect()))).await;
    }

    /// Shows the title.
    pub(super) async fn title(&mut self, title: String) {
        let info = SessionInfoUpdate::new().title(title).updated_at(Timestamp::now().to_string());
        self.send_aside(SessionUpdate::SessionInfoUpdate(info)).await;
    }

    /// Shows the fill of the context window, and the cost of the session where it is known.
    pub(super) async fn usage(&mut self, snapshot: &Snapshot) {
        let Some(context) = &snapshot.context else { return };
        let cost = snapshot.cost.total().map(|amount| Cost::new(amount, "USD"));
        let usage = UsageUpdate::new(context.tokens, context.window).cost(cost);
        self.send_aside(SessionUpdate::UsageUpdate(usage)).await;
    }

    /// Sets the mode that the client knows from the answer to its request.
    pub(super) fn knows_mode(&mut self, mode: Mode) {
        self.mode = Some(mode);
    }

    /// Shows the mode, if it is another than the client was sent.
    pub(super) async fn mode(&mut self, mode: Mode) {
        if self.mode.replace(mode) != Some(mode) {
            self.send(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode.name()))).await;
        }
    }

    /// Shows a compaction to a client that has a place for it.
    pub(super) async fn compaction(&self, turn: &TurnId, step: &CompressionStep) {
        if !self.client.has_compactions() {
            return;
        }
        let update = |status| CompactionUpdate::new(turn.as_str().to_owned(), status);
        let update = match step {
            CompressionStep::Started { .. } => update(CompactionStatus::InProgress),
            CompressionStep::Progress { .. } => return,
            CompressionStep::Done { .. } => update(CompactionStatus::Completed),
            CompressionStep::Unchanged { reason } => update(CompactionStatus::Failed).error(reason.clone()),
        };
        self.send(SessionUpdate::CompactionUpdate(update)).await;
    }

    /// Shows that a model call failed and is tried again.
    pub(super) async fn retry(&self, retry: &kode_engine::record::event::ModelRetry) {
        if self.client.has_notices() {
            let notice = Notice::new(NoticeSeverity::Warning, retry_line(retry));
            self.send(SessionUpdate::Notice(notice)).await;
        }
    }

    /// Shows a notice. A client without a place for notices gets warnings as text of the answer.
    pub(super) async fn notice(
        &self,
        level: NoticeLevel,
        text: &str,
        hint: Option<&str>,
        kind: Option<NoticeKind>,
    ) {
        if self.client.has_notices() {
            let severity = match level {
                NoticeLevel::Info => NoticeSeverity::Info,
                NoticeLevel::Warning => NoticeSeverity::Warning,
                NoticeLevel::Error => NoticeSeverity::Error,
            };
            let notice = Notice::new(severity, text).description(hint.map(str::to_owned));
            return self.send(SessionUpdate::Notice(notice)).await;
        }
        // A failed turn is answered with an error that has the same text.
        if level == NoticeLevel::Info || is_failure(kind) {
            return;
        }
        let hint = hint.map(|hint| format!(" {hint}")).unwrap_or_default();
        let text = format!("\n\n*{text}{hint}*\n\n");
        self.send(SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into()))).await;
    }

    async fn prompt(&mut self, item: &Item, text: &str, attachments: &[Attachment]) {
        if !self.is_new(&item.id) || !self.shows_prompts {
            return;
        }
        let mut blocks: Vec<ContentBlock> = Vec::new();
        if !text.is_empty() {
            blocks.push(text.into());
        }
        blocks.extend(attachments.iter().filter_map(link).map(ContentBlock::ResourceLink));
        for block in blocks {
            let chunk = ContentChunk::new(block).message_id(MessageId::new(item.id.as_str()));
            self.send(SessionUpdate::UserMessageChunk(chunk)).await;
        }
    }

    async fn text(&mut self, item: &ItemId, text: &str, is_thought: bool) {
        let sent = match self.sent.get(item) {
            Some(SentPart::Text(sent)) => *sent,
            Some(SentPart::Whole | SentPart::Call { .. }) => return,
            None => 0,
        };
        self.sent.insert(item.clone(), SentPart::Text(text.len().max(sent)));
        if let Some(rest) = text.get(sent..).filter(|rest| !rest.is_empty()) {
            self.send(message(item, rest, is_thought)).await;
        }
    }

    /// Whether nothing of an item was sent; all of it is from now on.
    fn is_new(&mut self, item: &ItemId) -> bool {
        self.sent.insert(item.clone(), SentPart::Whole).is_none()
    }
}

/// Whether a notice says why a turn failed.
pub(super) fn is_failure(kind: Option<NoticeKind>) -> bool {
    matches!(kind, Some(NoticeKind::ApiError | NoticeKind::ApiKey | NoticeKind::ContextTooLong))
}

/// Our own fields of a message.
pub(super) fn meta(kode: Value) -> agent_client_protocol_schema::v1::Meta {
    std::iter::once(("kode".to_owned(), kode)).collect()
}

fn chunk(item: &ItemId, text: &str) -> ContentChunk {
    ContentChunk::new(text.into()).message_id(MessageId::new(item.as_str()))
}

fn message(item: &ItemId, text: &str, is_thought: bool) -> SessionUpdate {
    match is_thought {
        true => SessionUpdate::AgentThoughtChunk(chunk(item, text)),
        false => SessionUpdate::AgentMessageChunk(chunk(item, text)),
    }
}

/// The link to an attached file.
fn link(attachment: &Attachment) -> Option<ResourceLink> {
    let uri = Url::from_file_path(attachment.path.as_ref()?).ok()?;
    Some(ResourceLink::new(attachment.label.clone(), uri.to_string()))
}
