//! One session in an editor without a plugin: progress, messages, message requests.
//!
//! Rule: a form that a client does not offer is left out, and a request for an answer stays answerable by command. A
//! message request without an answer blocks nothing but its own call.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use kode_engine::agent::session::Session;
use kode_engine::base::ids::SessionId;
use kode_engine::base::task;
use kode_engine::permission::{PermissionPrompt, PromptAnswer};
use kode_engine::record::event::{CallState, Event, ItemBody, NoticeLevel, RunState, TurnEnd, TurnOutcome};
use kode_engine::record::resolution::ResolutionOutcome;
use lsp_types::notification::Progress;
use lsp_types::request::{ShowMessageRequest, WorkDoneProgressCreate};
use lsp_types::{
    MessageActionItem, MessageType, NumberOrString, ProgressParams, ProgressParamsValue,
    ShowMessageRequestParams, WorkDoneProgress, WorkDoneProgressBegin, WorkDoneProgressCreateParams,
    WorkDoneProgressEnd, WorkDoneProgressReport,
};
use tokio::time::timeout;

use super::{PlainFrontEnd, questions, review, settings};
use crate::agent::SessionView;
use crate::answers::choices;
use crate::display::{Parts, both_ends, parts, printable, readable, retry_line};
use crate::plain::review::publish::ReviewPublisher;

/// Maximum characters of a question in a message request.
const PROMPT_LIMIT: usize = 2_000;
/// Maximum characters of the answer in a message; the whole is in the log of the client.
pub(super) const ANSWER_LIMIT: usize = 2_000;
/// A client that takes longer to create a progress gets none.
const PROGRESS_LIMIT: Duration = Duration::from_secs(5);

/// How a prompt is answered without a message request.
const HOW_TO_ANSWER: &str = "Answer with a code action.";

/// One session as a client without a plugin sees it.
pub(super) struct PlainView {
    front_end: Arc<PlainFrontEnd>,
    session: Weak<Session>,
    /// Whether the client leaves watching to us.
    watches: bool,
    /// Whether the client leaves asking to us.
    asks: bool,
    progress: Option<NumberOrString>,
    answer: String,
    /// Whether the session has had changes to decide about.
    has_hunks: bool,
}

#[async_trait]
impl SessionView for PlainView {
    async fn show(&mut self, event: &Event) {
        self.ask_about(event).await;
        match event {
            Event::EditsChanged { .. } => {
                self.has_hunks = true;
                ReviewPublisher::hunks_changed(&self.front_end);
            }
            Event::EditsResolved { outcome } => {
                // A proposal that is rejected changes no text, and so nothing else tells that it is gone.
                ReviewPublisher::hunks_changed(&self.front_end);
                self.resolved(outcome).await;
            }
            Event::PermissionRequired { .. } | Event::PermissionDecided { .. } if self.asks => {
                ReviewPublisher::prompts_changed(&self.front_end);
            }
            Event::ConfigChanged { .. } => self.settings_changed(),
            Event::ExtensionsChanged { .. } => ReviewPublisher::settings_changed(&self.front_end),
            Event::ItemAdded { item } => {
                if let ItemBody::Command { go_to: Some(id), .. } = &item.body {
                    self.go_to(id).await;
                }
            }
            Event::TrustRequired { .. } if self.asks => {
                if let Some(session) = self.session.upgrade() {
                    settings::ask(&self.front_end, &session);
                }
            }
            _ => {}
        }
        if !self.watches {
            return;
        }
        // The text of a sub-agent is for its call, which reports the result; its steps are steps.
        if event.is_of_sub_agent() && !matches!(event, Event::ToolStart { .. }) {
            return;
        }
        match event {
            Event::TurnStarted { turn } => self.begin(turn.as_str()).await,
            Event::ToolStart { item } => {
                if let ItemBody::ToolCall(call) = &item.body {
                    self.report(&call.title).await;
                }
            }
            Event::ToolEnd { item } => {
                if let ItemBody::ToolCall(call) = &item.body {
                    let failed = call.state != CallState::Completed;
                    let kind = if failed { MessageType::WARNING } else { MessageType::LOG };
                    self.log(kind, &format!("{}: {}", call.title, call.display)).await;
                }
            }
            Event::ItemAdded { item } | Event::ItemUpdated { item } => match &item.body {
                ItemBody::AgentMessage { text, complete: true, .. } => {
                    self.answer.clone_from(text);
                    self.log(MessageType::LOG, text).await;
                }
                ItemBody::Command { text, failed, .. } => {
                    self.log(MessageType::LOG, text).await;
                    let kind = if *failed { MessageType::WARNING } else { MessageType::INFO };
                    self.message(kind, &both_ends(text.trim(), ANSWER_LIMIT)).await;
                }
                ItemBody::Notice { level, text, hint, kind: _ } => {
                    let text = format!("{text} {}", hint.as_deref().unwrap_or_default());
                    self.message(message_type(*level), &text).await;
                }
                _ => {}
            },
            Event::ModelRetry { retry } => self.report(&retry_line(retry)).await,
            Event::FileChanged { target, deleted } => {
                let what = if *deleted { "deleted" } else { "changed" };
                let Some(session) = self.session.upgrade() else { return };
                let path = review::path(&session, target);
                drop(session);
                self.log(MessageType::LOG, &format!("{path} was {what} outside of this session")).await;
            }
            Event::Rewound { .. } => {
                self.answer.clear();
                self.log(MessageType::LOG, "The conversation went back to before a prompt").await;
            }
            Event::BackgroundEnded { task } => {
                let how = task.ended.as_ref().map(|(_, end)| end.to_string()).unwrap_or_default();
                self.log(MessageType::LOG, &format!("{} (`{}`) {how}", task.id, task.title)).await;
            }
            Event::StorageFailure { message, recovered } => {
                let kind = if *recovered { MessageType::INFO } else { MessageType::ERROR };
                self.message(kind, message).await;
            }
            Event::Done { reason, .. } => self.end(*reason).await,
            _ => {}
        }
    }

    /// Asks pending questions and ends the progress of a turn that is over.
    async fn catch_up(&mut self) {
        self.has_hunks = true;
        ReviewPublisher::hunks_changed(&self.front_end);
        self.settings_changed();
        let Some(session) = self.session.upgrade() else { return };
        let snapshot = session.snapshot(0);
        drop(session);
        if self.asks {
            for prompt in &snapshot.pending {
                self.ask(prompt).await;
            }
            for question in snapshot.questions {
                questions::ask(&self.front_end.connection, self.session.clone(), question).await;
            }
        }
        if self.watches && snapshot.state == RunState::Ready {
            self.close_progress("done").await;
        }
    }

    fn close(&self) {
        if self.has_hunks {
            ReviewPublisher::hunks_changed(&self.front_end);
        }
        ReviewPublisher::settings_changed(&self.front_end);
    }
}

/// A session that another server writes: only its diffs are shown, for its prompts cannot be answered here.
pub(super) struct FollowedView {
    front_end: Arc<PlainFrontEnd>,
}

impl FollowedView {
    /// Starts to show a followed session.
    pub(super) fn new(front_end: Arc<PlainFrontEnd>) -> Self {
        Self { front_end }
    }
}

#[async_trait]
impl SessionView for FollowedView {
    async fn show(&mut self, event: &Event) {
        if matches!(event, Event::EditsChanged { .. }) {
            ReviewPublisher::sides_changed(&self.front_end);
        }
    }

    async fn catch_up(&mut self) {
        ReviewPublisher::sides_changed(&self.front_end);
    }

    fn close(&self) {}
}

impl PlainView {
    /// Starts to show a session.
    pub(super) fn new(front_end: Arc<PlainFrontEnd>, session: &Arc<Session>) -> Self {
        let kode = front_end.connection.facts.get().map(|facts| facts.kode.clone()).unwrap_or_default();
        let has_hunks = !session.edits().review().is_empty();
        if has_hunks {
            ReviewPublisher::hunks_changed(&front_end);
        }
        settings::report(&front_end, &session.gate().complaints());
        // A client that learns of no events cannot ask either.
        let asks = !(kode.events && kode.permission_ui);
        if asks && session.gate().trust_waiting().is_some() {
            settings::ask(&front_end, session);
        }
        Self {
            front_end,
            session: Arc::downgrade(session),
            watches: !kode.events,
            asks,
            progress: None,
            answer: String::new(),
            has_hunks,
        }
    }

    /// Asks the user what an event says that waits for them, where the client can.
    async fn ask_about(&mut self, event: &Event) {
        if let (Event::PermissionRequired { prompt }, true) = (event, self.asks) {
            // An event that is read late, or read again, may be of a prompt that is long closed.
            let waits = |session: Arc<Session>| {
                session.requests().permissions().iter().any(|pending| pending.id == prompt.id)
            };
            if self.session.upgrade().is_some_and(waits) {
                self.ask(prompt).await;
            }
        }
        if let (Event::QuestionAsked { question }, true) = (event, self.asks)
            && self.session.upgrade().is_some_and(|session| questions::waits(&session, question))
        {
            questions::ask(&self.front_end.connection, self.session.clone(), *question.clone()).await;
        }
    }

    fn settings_changed(&self) {
        ReviewPublisher::settings_changed(&self.front_end);
        if let Some(session) = self.session.upgrade() {
            settings::report(&self.front_end, &session.gate().complaints());
        }
    }

    /// Lets prompts without a session of their own go where a command of this session leads, where they went to this one.
    async fn go_to(&self, id: &SessionId) {
        let (Some(agent), Some(session)) = (self.front_end.live_agent(), self.session.upgrade()) else {
            return;
        };
        if !agent.is_plain_session(session.id()) {
            return;
        }
        drop(session);
        if let Err(error) = agent.continue_with(id).await {
            self.message(MessageType::WARNING, &error.to_string()).await;
        }
    }

    /// Tells how a decision went: aloud when the user has something to do about it.
    async fn resolved(&self, outcome: &ResolutionOutcome) {
        let Some(session) = self.session.upgrade() else { return };
        self.front_end.publisher.decided(session.id());
        if !self.watches {
            return;
        }
        let (kind, text) =
            review::outcome(outcome, &session.edits().review(), |target| review::path(&session, target));
        drop(session);
        if kind == MessageType::LOG {
            self.log(kind, &text).await;
        } else {
            self.message(kind, &text).await;
        }
    }

    async fn begin(&mut self, turn: &str) {
        self.answer.clear();
        self.close_progress("done").await;
        if !self.front_end.connection.facts.get().is_some_and(|facts| facts.work_done_progress) {
            return;
        }
        let token = NumberOrString::String(turn.to_owned());
        let (client, wanted) =
            (self.front_end.connection.client.clone(), WorkDoneProgressCreateParams { token: token.clone() });
        // The request is owned by a task of its own: the service cannot bear an answer no caller waits for.
        let create = task::spawn(async move { client.send_request::<WorkDoneProgressCreate>(wanted).await });
        let created = timeout(PROGRESS_LIMIT, create).await;
        if !matches!(created, Ok(Ok(Ok(())))) {
            tracing::debug!("the client creates no progress");
            return;
        }
        let title = self.session.upgrade().map(|session| session.snapshot(0).title).unwrap_or_default();
        self.progress = Some(token);
        self.send(WorkDoneProgress::Begin(WorkDoneProgressBegin {
            title: format!("Kode: {}", printable(&title)),
            cancellable: Some(true),
            message: None,
            percentage: None,
        }))
        .await;
    }

    async fn report(&self, step: &str) {
        self.send(WorkDoneProgress::Report(WorkDoneProgressReport {
            cancellable: Some(true),
            message: Some(printable(step)),
            percentage: None,
        }))
        .await;
    }

    async fn end(&mut self, reason: TurnEnd) {
        self.close_progress(outcome(reason)).await;
        // An answer that is written into a document need not be said as well.
        let is_left = self.session.upgrade().is_some_and(|session| self.front_end.chats.leave(session.id()));
        if !self.answer.is_empty() && !is_left {
            let answer = both_ends(self.answer.trim(), ANSWER_LIMIT);
            self.message(MessageType::INFO, &answer).await;
        }
    }

    async fn close_progress(&mut self, message: &str) {
        self.send(WorkDoneProgress::End(WorkDoneProgressEnd { message: Some(message.to_owned()) })).await;
        self.progress = None;
    }

    async fn send(&self, value: WorkDoneProgress) {
        if let Some(token) = self.progress.clone() {
            let value = ProgressParamsValue::WorkDone(value);
            self.front_end
                .connection
                .client
                .send_notification::<Progress>(ProgressParams { token, value })
                .await;
        }
    }

    async fn log(&self, kind: MessageType, text: &str) {
        self.front_end.connection.client.log_message(kind, readable(text)).await;
    }

    async fn message(&self, kind: MessageType, text: &str) {
        self.front_end.connection.client.show_message(kind, readable(text)).await;
    }

    /// Asks by a message request in a task of its own. A client that has none, or whose user closes it without an
    /// answer, gets the commands.
    async fn ask(&self, prompt: &PermissionPrompt) {
        let can_ask = self.front_end.connection.facts.get().is_some_and(|facts| facts.show_message_request);
        // The coverage of the offered answers is above the body.
        let Parts { head, body, foot } = parts(prompt);
        let offered = choices(prompt).into_iter().filter(|choice| can_ask || choice.ends_with_session());
        let covered = offered.filter(|choice| choice.covers.is_some()).map(|choice| choice.text());
        let lines = [head, covered.collect(), body, foot].concat();
        let text = both_ends(&lines.join("\n"), PROMPT_LIMIT);
        let (prompt, client, session) =
            (prompt.clone(), self.front_end.connection.client.clone(), self.session.clone());
        if !can_ask {
            client.show_message(MessageType::WARNING, format!("{text}\n{HOW_TO_ANSWER}")).await;
            return;
        }
        task::spawn(async move {
            let answered = client.send_request::<ShowMessageRequest>(ShowMessageRequestParams {
                typ: MessageType::INFO,
                message: text,
                actions: Some(actions(&prompt)),
            });
            // Waits as long as the user does; nothing else waits for this task.
            let chosen = match answered.await {
                Ok(chosen) => chosen.map(|chosen| chosen.title),
                Err(error) => {
                    tracing::warn!(%error, "the message request failed");
                    None
                }
            };
            let Some(session) = session.upgrade() else { return };
            let Some(chosen) = chosen else {
                if session.requests().permissions().iter().any(|pending| pending.id == prompt.id) {
                    let title = printable(&prompt.title);
                    let text = format!("Still waiting for an answer: {title}\n{HOW_TO_ANSWER}");
                    client.show_message(MessageType::WARNING, text).await;
                }
                return;
            };
            // Some editors answer with a title that was not offered.
            let choice = choices(&prompt).into_iter().find(|choice| choice.label == chosen);
            let by = "window/showMessageRequest";
            let answer = choice.map_or_else(
                || PromptAnswer { by: by.to_owned(), ..PromptAnswer::default() },
                |choice| choice.answer(by),
            );
            if let Err(error) = session.requests().respond(&prompt.id, answer) {
                client.show_message(MessageType::INFO, error.to_string()).await;
            }
        });
    }
}

/// The actions of a message request, in the order of all clients.
fn actions(prompt: &PermissionPrompt) -> Vec<MessageActionItem> {
    let labels = choices(prompt).into_iter().map(|choice| choice.label.to_owned());
    labels.map(|title| MessageActionItem { title, properties: Default::default() }).collect()
}

fn message_type(level: NoticeLevel) -> MessageType {
    match level {
        NoticeLevel::Info => MessageType::INFO,
        NoticeLevel::Warning => MessageType::WARNING,
        NoticeLevel::Error => MessageType::ERROR,
    }
}

/// The end of a turn as the last message of its progress.
pub(super) fn outcome(reason: TurnEnd) -> &'static str {
    match reason.outcome() {
        TurnOutcome::Done => "done",
        TurnOutcome::Cancelled => "cancelled",
        TurnOutcome::Unfinished => "not finished",
    }
}
