//! Follows a session: events become updates, requests to the user become requests to the client, and the end of a turn answers
//! its prompts.
//!
//! Rule: one task a session, so that the answer to a prompt is written behind all updates of its turn. It waits for the client
//! to read and for nothing else; each request to the client has a task of its own.

use std::collections::HashMap;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{ConfigOptionUpdate, SessionUpdate};
use kode_engine::agent::engine::AttachedSession;
use kode_engine::agent::history::Snapshot;
use kode_engine::agent::session::prompts::SubmitOutcome;
use kode_engine::base::ids::{QueueId, TurnId};
use kode_engine::base::question::Question;
use kode_engine::base::task;
use kode_engine::permission::PermissionPrompt;
use kode_engine::record::event::{
    Event, EventLog, Item, ItemBody, NoticeKind, NoticeLevel, RunState, Subscription, TurnEnd,
};
use tokio::task::AbortHandle;
#[cfg(unix)]
use tokio_util::sync::DropGuard;

#[cfg(unix)]
use super::hunks;

use super::prompts::{TurnSlot, TurnSummary};
use super::session::AcpSession;
use super::updates::{UpdateSender, is_failure};
use super::{commands, config, kode, permission, question};
use crate::agent::merge;

/// The items that are compared after a gap in the events.
const CAUGHT_UP: usize = 1_000;

/// The task that follows a session.
struct AcpFollower {
    session: Arc<AcpSession>,
    updates: UpdateSender,
    /// The requests to the client that wait, by the ids of what they are about.
    asked: HashMap<String, AbortHandle>,
    /// Why the running turn fails, once a notice has said so.
    failure: Option<(String, Option<NoticeKind>)>,
    /// The hunks are shown in the editor of the pair as long as this exists.
    #[cfg(unix)]
    _hunks: Option<DropGuard>,
}

/// Starts to follow a session after event number `since`. Requests to the user that wait are made to the client.
pub(super) fn start(
    session: &Arc<AcpSession>,
    attached: &AttachedSession,
    updates: UpdateSender,
    since: u64,
) {
    let events = log(attached).subscribe(since, vec![]);
    let mut follower = AcpFollower {
        session: Arc::clone(session),
        updates,
        asked: HashMap::new(),
        failure: None,
        #[cfg(unix)]
        _hunks: hunks::show(session, attached),
    };
    let snapshot = snapshot(attached, 0);
    for prompt in snapshot.pending {
        follower.ask_permission(prompt);
    }
    for question in snapshot.questions {
        follower.ask_question(question);
    }
    let task = task::spawn(async move { follower.run(events).await });
    session.follow_by(log(attached), task.abort_handle());
}

/// The events of a session.
pub(super) fn log(attached: &AttachedSession) -> &Arc<EventLog> {
    match attached {
        AttachedSession::Live(session) => session.events(),
        AttachedSession::Following(following) => following.events(),
    }
}

/// A session as it is now.
pub(super) fn snapshot(attached: &AttachedSession, items: usize) -> Snapshot {
    match attached {
        AttachedSession::Live(session) => session.snapshot(items),
        AttachedSession::Following(following) => following.snapshot(items),
    }
}

impl AcpFollower {
    async fn run(mut self, mut events: Subscription) {
        loop {
            match events.next_paced().await {
                Ok(Some(batch)) => {
                    for record in merge(batch) {
                        self.event(record.event).await;
                    }
                }
                Ok(None) => break,
                Err(gap) => {
                    tracing::warn!(%gap, "the client reads too slowly");
                    self.catch_up().await;
                }
            }
        }
        let answers = self.session.prompts().end("The session was closed. Load it again to continue.");
        self.session.answer(answers).await;
    }

    async fn event(&mut self, event: Event) {
        match event {
            Event::TurnStarted { turn } => {
                let is_own = self.session.prompts().begin_turn(&turn);
                self.failure = None;
                self.updates.show_prompts(!is_own);
                self.updates.release().await;
            }
            Event::ItemAdded { item } => self.added(&item).await,
            Event::ItemUpdated { item } | Event::ToolStart { item } | Event::ToolEnd { item } => {
                self.updates.item(&item).await;
            }
            Event::TextChunk { item, text } => self.updates.piece(&item, &text, false).await,
            Event::ThinkChunk { item, text } => self.updates.piece(&item, &text, true).await,
            Event::ToolProgress { item, call, text } => self.updates.progress(&item, &call, text).await,
            Event::SubagentStarted { agent, call, .. } => self.updates.sub_agent(&agent, &call),
            Event::TodoChanged { todos } => self.updates.plan(&todos).await,
            Event::Done { turn, reason, usage, cost, duration_ms, .. } => {
                let failure = self.failure.take();
                let summary = TurnSummary { reason, usage: *usage, cost, duration_ms, failure };
                self.ended(&turn, &summary).await;
            }
            Event::PermissionRequired { prompt } => self.ask_permission(*prompt),
            Event::PermissionDecided { decision } => self.withdraw(decision.id.as_str()),
            Event::QuestionAsked { question } => self.ask_question(*question),
            Event::QuestionAnswered { resolved } => self.withdraw(resolved.id.as_str()),
            Event::EditsResolved { outcome } => {
                kode::report_resolved(&self.session, &outcome).await;
                let answers = self.session.prompts().restored();
                self.session.answer(answers).await;
            }
            other => self.monitor(other).await,
        }
    }

    /// Shows events beside the conversation.
    async fn monitor(&mut self, event: Event) {
        match event {
            Event::ModeChanged { mode, .. } => {
                self.updates.mode(mode).await;
                self.config_changed().await;
            }
            Event::TitleChanged { title, .. } => self.updates.title(title).await,
            Event::TokenUsage { .. } => {
                if let Ok(attached) = self.session.attached() {
                    self.updates.usage(&snapshot(&attached, 0)).await;
                }
            }
            Event::ContextCompression { turn, agent: None, step } => {
                self.updates.compaction(&turn, &step).await;
            }
            Event::ModelRetry { retry } => self.updates.retry(&retry).await,
            Event::ExtensionsChanged { .. } => {
                if let Some(update) = commands::update(&self.session).await {
                    self.updates.commands(update).await;
                }
                self.config_changed().await;
            }
            Event::TrustRequired { waiting } => {
                let text = format!("Files of this workspace ask for {}.", waiting.summary);
                let hint = "They take effect once you approve them. The prompt /trust shows each of them.";
                self.updates.notice(NoticeLevel::Warning, &text, Some(hint), None).await;
            }
            Event::LeaseChanged { is_mine: false, writer } => {
                let answers = self.session.prompts().end("Another process has taken the session over.");
                self.session.answer(answers).await;
                if let Some(writer) = writer {
                    let text = format!("The session is written by {} now.", writer.process());
                    let hint = "The prompt /takeover continues it here.";
                    self.updates.notice(NoticeLevel::Warning, &text, Some(hint), None).await;
                }
            }
            Event::StorageFailure { message, recovered } => {
                let level = if recovered { NoticeLevel::Info } else { NoticeLevel::Error };
                self.updates.notice(level, &message, None, None).await;
            }
            Event::Error { message, hint } => {
                self.updates.notice(NoticeLevel::Error, &message, Some(&hint), None).await;
            }
            _ => {}
        }
    }

    async fn added(&mut self, item: &Item) {
        if let ItemBody::Notice { level: NoticeLevel::Error, text, hint, kind } = &item.body
            && (is_failure(*kind) || self.failure.is_none())
        {
            let hint = hint.as_deref().map(|hint| format!(" {hint}")).unwrap_or_default();
            self.failure = Some((format!("{text}{hint}"), *kind));
        }
        self.updates.item(item).await;
        if let ItemBody::Command { data, .. } = &item.body {
            let restores = data.as_ref().is_some_and(|data| data["resolutionId"].is_string());
            let answers = self.session.prompts().command_answered(&item.id, restores);
            self.session.answer(answers).await;
        }
    }

    /// Answers the prompts of a turn, and begins the next one that waits where nothing else does.
    async fn ended(&mut self, turn: &TurnId, summary: &TurnSummary) {
        self.updates.end_turn();
        let queue = self.session.attached().map(|attached| snapshot(&attached, 0));
        let still_waits = |id: &QueueId| {
            let queue = queue.as_ref().ok();
            queue.is_some_and(|now| now.queue.iter().chain(&now.steering).any(|prompt| prompt.id == *id))
        };
        let answers = self.session.prompts().end_turn(turn, summary, still_waits);
        self.session.answer(answers).await;
        if summary.reason == TurnEnd::Cancelled {
            self.updates.hold();
            return;
        }
        let (Ok(now), Ok(live)) = (queue, self.session.live()) else { return };
        if !now.queue_paused {
            return;
        }
        let mut prompts = self.session.prompts();
        let Some((id, waiting)) = prompts.first_queued() else { return };
        if let Ok(SubmitOutcome::Started(turn)) = live.prompts().promote_queued(&waiting) {
            prompts.place(&id, TurnSlot::Turn(turn));
        }
    }

    async fn config_changed(&mut self) {
        let Ok(attached) = self.session.attached() else { return };
        let options = config::options(&self.session.agent, &attached, &snapshot(&attached, 0));
        self.updates.send(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options))).await;
    }

    fn ask_permission(&mut self, prompt: PermissionPrompt) {
        let (id, session) = (prompt.id.as_str().to_owned(), Arc::clone(&self.session));
        let asking = task::spawn(async move { permission::ask(&session, prompt).await });
        self.asked.insert(id, asking.abort_handle());
    }

    fn ask_question(&mut self, question: Question) {
        let (id, session) = (question.id.as_str().to_owned(), Arc::clone(&self.session));
        let asking = task::spawn(async move { question::ask(&session, question).await });
        self.asked.insert(id, asking.abort_handle());
    }

    /// Takes a request back that was answered elsewhere, or whose call was cancelled.
    fn withdraw(&mut self, id: &str) {
        if let Some(asking) = self.asked.remove(id) {
            asking.abort();
        }
    }

    /// Shows the present state after a gap in the events.
    async fn catch_up(&mut self) {
        let Ok(attached) = self.session.attached() else { return };
        let now = task::spawn_blocking(move || snapshot(&attached, CAUGHT_UP)).await;
        let Ok(now) = now else { return };
        let turns = self.session.prompts().turns();
        self.updates.catch_up(&now, &turns).await;
        self.updates.plan(&now.todos).await;
        self.updates.mode(now.mode).await;
        if now.state == RunState::Ready {
            // The end of the turn was in the gap.
            for turn in turns {
                let (usage, cost) = (now.usage, now.cost);
                let failure = self.failure.take();
                let summary = TurnSummary { reason: TurnEnd::EndTurn, usage, cost, duration_ms: 0, failure };
                self.ended(&turn, &summary).await;
            }
        }
    }
}

impl Drop for AcpFollower {
    fn drop(&mut self) {
        self.asked.values().for_each(AbortHandle::abort);
    }
}
