//! The hooks of a session and a turn, other than those of calls.
//!
//! Rule: text that a hook adds for the model is recorded before the model is asked again; a hook that fails adds nothing.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::HookRunner;
use super::fire::{HookReply, HookTrigger};
use crate::conversation::Conversation;
use crate::core::thread::ThreadHandle;
use crate::state::thread::Thread;
use kode_base::ids::TurnId;
use kode_base::reminder;
use kode_base::task;
use kode_config::hooks::event::HookEvent;
use kode_record::event::{NoticeKind, NoticeLevel};
use kode_record::hook::HookOutcome;
use kode_record::record::Record;
use kode_record::title::TitledBy;

/// The time that all hooks of a session's end have together, unless one sets its own.
const END_LIMIT: Duration = Duration::from_millis(1_500);

/// The most time they have: the server waits for them.
const MAX_END_LIMIT: Duration = Duration::from_secs(4);

/// The idle time after which hooks learn that the agent waits for the user.
pub(crate) const IDLE: Duration = Duration::from_secs(60);

/// How a session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartSource {
    /// It is new.
    Startup,
    /// It is resumed.
    Resume,
    /// It replaces one whose conversation was cleared.
    Clear,
    /// Its conversation was compacted.
    Compact,
    /// It is a fork of another.
    Fork,
}

/// Why a session ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndReason {
    /// Its conversation was cleared.
    Clear,
    /// The user resumes another one.
    Resume,
    /// The user has closed it, or has left the editor.
    PromptInputExit,
    /// Anything else.
    #[default]
    Other,
}

/// The decision of hooks on a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The model is asked.
    Accepted,
    /// A hook rejected it, for this reason.
    Rejected(String),
    /// A hook stopped the turn.
    Stopped,
}

/// The decision of hooks on the end of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StopDecision {
    /// The turn ends.
    End,
    /// The agent continues, for this reason.
    Continue(String),
    /// A hook stopped the turn.
    Stop,
}

impl StartSource {
    /// The name in the input of hooks.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Resume => "resume",
            Self::Clear => "clear",
            Self::Compact => "compact",
            Self::Fork => "fork",
        }
    }
}

impl EndReason {
    /// The name in the input of hooks.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Resume => "resume",
            Self::PromptInputExit => "prompt_input_exit",
            Self::Other => "other",
        }
    }
}

impl HookRunner {
    /// Sets how the session begins, until its first prompt.
    pub fn begin_as(&self, source: StartSource) {
        self.state.begin_as(source);
    }

    /// Sets why the session ends.
    pub(crate) fn end_with(&self, reason: EndReason) {
        self.state.end_with(reason);
    }

    /// Runs the hooks of the session's end, because the user continues in another session. A later prompt begins this one
    /// again.
    pub(crate) async fn leave(&self, reason: EndReason) {
        self.state.end_with(reason);
        self.session_end().await;
        self.state.begin_again();
    }

    /// Notifies the user, once, of hooks of the workspace that wait for approval.
    pub(crate) fn report_waiting(&self, turn: &TurnId) {
        let in_force = self.gate.in_force();
        let Some(count) = self.state.new_waiting(&in_force.hooks) else { return };
        let text = match count {
            1 => "One group of hooks of this workspace waits for your approval and does not run.".to_owned(),
            count => {
                format!("{count} groups of hooks of this workspace wait for your approval and do not run.")
            }
        };
        let hint =
            "Review their commands (`agent/hooks/list`), and approve the settings if you want to run them.";
        self.main_thread().notice_of(NoticeKind::Hook, turn, (NoticeLevel::Warning, &text, hint));
    }

    /// Runs the hooks of the session's end, if a prompt had started it.
    pub(crate) async fn session_end(&self) {
        let conversation = Conversation::main(&self.core, &self.environment);
        if !self.state.has_started() || !self.has_hooks(&conversation, HookEvent::SessionEnd) {
            return;
        }
        let in_force = self.gate.in_force();
        let carried = self.carried_hooks(&conversation, &in_force).await;
        let handlers = [&*in_force.hooks, &carried].map(|hooks| hooks.of_event(HookEvent::SessionEnd));
        let handlers = handlers.into_iter().flatten();
        let own = handlers.filter(|handler| handler.has_own_timeout).map(|handler| handler.timeout);
        let limit = own.max().unwrap_or(END_LIMIT).clamp(END_LIMIT, MAX_END_LIMIT);
        let reason = self.state.end_reason().name();
        let mut trigger = HookTrigger::new(HookEvent::SessionEnd, None, json!({ "reason": reason }));
        trigger.value = Some(reason);
        // The session's own token is cancelled by now.
        let cancel = CancellationToken::new();
        let mut firing = std::pin::pin!(self.fire(&conversation, trigger, &cancel));
        if tokio::time::timeout(limit, &mut firing).await.is_err() {
            cancel.cancel();
            firing.await;
        }
    }

    /// Runs the hooks of a notification, in the background.
    pub(crate) fn notify(self: &Arc<Self>, kind: &'static str, title: &'static str, message: String) {
        let conversation = Conversation::main(&self.core, &self.environment);
        if !self.has_hooks(&conversation, HookEvent::Notification) {
            return;
        }
        let hooks = Arc::clone(self);
        task::spawn(async move {
            let fields = json!({ "message": message, "title": title, "notification_type": kind });
            let mut trigger = HookTrigger::new(HookEvent::Notification, None, fields);
            trigger.value = Some(kind);
            let cancel = hooks.core.cancel_token();
            hooks.fire(&conversation, trigger, &cancel).await;
        });
    }

    /// Runs the hooks of the session's beginning, once, before its first prompt.
    pub(crate) async fn session_start(
        &self,
        conversation: &Conversation,
        turn: &TurnId,
        cancel: &CancellationToken,
    ) {
        if let Some(source) = self.state.take_start() {
            self.start_of(conversation, source, turn, cancel).await;
        }
    }

    /// Runs the hooks of a beginning.
    pub(super) async fn start_of(
        &self,
        conversation: &Conversation,
        source: StartSource,
        turn: &TurnId,
        cancel: &CancellationToken,
    ) {
        if !self.has_hooks(conversation, HookEvent::SessionStart) {
            return;
        }
        let fields = json!({ "source": source.name(), "model": self.model_name(conversation) });
        let mut trigger = HookTrigger::new(HookEvent::SessionStart, Some(turn), fields);
        trigger.value = Some(source.name());
        let reply = self.fire(conversation, trigger, cancel).await;
        self.take_title(&reply);
        let first =
            reply.initial_message.clone().map(|message| format!("The user begins with this:\n{message}"));
        let who = "A hook of the session's beginning says";
        inject(&conversation.thread, turn, who, reply.context.into_iter().chain(first));
        self.note_stop(turn, reply.stop);
    }

    /// Runs the hooks of a prompt before the model sees it.
    pub(crate) async fn admit(
        &self,
        conversation: &Conversation,
        turn: &TurnId,
        text: &str,
        cancel: &CancellationToken,
    ) -> Admission {
        if !self.has_hooks(conversation, HookEvent::UserPromptSubmit) {
            return Admission::Accepted;
        }
        let fields = json!({ "prompt": text, "user_prompt": text });
        let trigger = HookTrigger::new(HookEvent::UserPromptSubmit, Some(turn), fields);
        let reply = self.fire(conversation, trigger, cancel).await;
        if let Some(reason) = reply.block {
            return Admission::Rejected(reason);
        }
        self.take_title(&reply);
        inject(&conversation.thread, turn, "A hook says of the user's prompt", reply.context);
        if self.note_stop(turn, reply.stop) { Admission::Stopped } else { Admission::Accepted }
    }

    /// Runs the hooks of a prompt for a side question. Returns their texts for the model.
    ///
    /// # Errors
    /// Why a hook refuses it.
    pub(crate) async fn admit_aside(
        &self,
        conversation: &Conversation,
        text: &str,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, String> {
        if !self.has_hooks(conversation, HookEvent::UserPromptSubmit) {
            return Ok(Vec::new());
        }
        let fields = json!({ "prompt": text, "user_prompt": text });
        let trigger = HookTrigger::new(HookEvent::UserPromptSubmit, None, fields);
        let reply = self.fire(conversation, trigger, cancel).await;
        match reply.block.or(reply.stop) {
            Some(reason) => Err(reason),
            None => Ok(reply.context),
        }
    }

    /// Runs the hooks of the end of a turn. `is_active`: they have had the agent continue before.
    pub(crate) async fn before_stop(
        &self,
        conversation: &Conversation,
        turn: &TurnId,
        is_active: bool,
        cancel: &CancellationToken,
    ) -> StopDecision {
        let event = if conversation.is_main() { HookEvent::Stop } else { HookEvent::SubagentStop };
        if !self.has_hooks(conversation, event) {
            return StopDecision::End;
        }
        let background: Vec<Value> = {
            let state = self.core.state();
            let running = state.background.running();
            running.map(|task| json!({ "id": task.id, "description": task.title })).collect()
        };
        let fields = json!({
            "stop_hook_active": is_active,
            "last_assistant_message": conversation.thread.read(Thread::turn_answer),
            "background_tasks": background,
            "session_crons": [],
        });
        let kind = conversation.assignment.as_ref().map(|assignment| assignment.kind.clone());
        let mut trigger = HookTrigger::new(event, Some(turn), fields);
        trigger.value = kind.as_deref();
        let reply = self.fire(conversation, trigger, cancel).await;
        inject(&conversation.thread, turn, "A hook says", reply.context);
        if self.note_stop(turn, reply.stop) {
            return StopDecision::Stop;
        }
        reply.block.map_or(StopDecision::End, StopDecision::Continue)
    }

    /// Runs the hooks of a sub-agent's beginning.
    pub(crate) async fn subagent_start(
        &self,
        conversation: &Conversation,
        turn: &TurnId,
        cancel: &CancellationToken,
    ) {
        if !self.has_hooks(conversation, HookEvent::SubagentStart) {
            return;
        }
        let kind = conversation.assignment.as_ref().map(|assignment| assignment.kind.clone());
        let mut trigger = HookTrigger::new(HookEvent::SubagentStart, Some(turn), json!({}));
        trigger.value = kind.as_deref();
        let reply = self.fire(conversation, trigger, cancel).await;
        inject(&conversation.thread, turn, "A hook says of your task", reply.context);
        self.note_stop(turn, reply.stop);
    }

    /// Whether a hook has stopped a turn.
    pub(crate) fn has_stopped(&self, turn: &TurnId) -> bool {
        self.state.has_stopped(turn)
    }

    /// Whether the user was not yet notified of a problem in a turn.
    pub(crate) fn is_news(&self, turn: &TurnId, event: HookEvent, problem: &str) -> bool {
        self.state.is_news(turn, event, problem)
    }

    /// Stops the turn if a hook wants it, and notifies the user. Returns whether it did.
    pub(super) fn note_stop(&self, turn: &TurnId, stop: Option<String>) -> bool {
        let Some(reason) = stop else { return false };
        self.state.stop(turn);
        let text = format!("A hook stopped the turn: {reason}");
        let hint = "Send `continue` to resume.";
        self.main_thread().notice_of(NoticeKind::Hook, turn, (NoticeLevel::Warning, &text, hint));
        true
    }

    /// The session's own conversation, which shows the notices of all hooks.
    pub(super) fn main_thread(&self) -> ThreadHandle {
        ThreadHandle::main(&self.core)
    }

    fn take_title(&self, reply: &HookReply) {
        let Some(title) = &reply.session_title else { return };
        if let Err(error) = self.core.set_title(title, TitledBy::Model) {
            tracing::info!(%error, outcome = ?HookOutcome::Failed, "the title that a hook gives is not taken");
        }
    }

    fn model_name(&self, conversation: &Conversation) -> Option<String> {
        let models = self.models.now();
        models.profile(&conversation.model()).ok().map(|profile| profile.model.clone())
    }
}

/// Removes a rejected prompt from the text that the model sees, and notifies the user.
pub(crate) fn reject_prompt(thread: &ThreadHandle, turn: &TurnId, reason: &str) {
    thread.commit(Record::PromptRefused { turn: turn.clone(), reason: reason.to_owned() });
    let text = format!("A hook refused the prompt: {reason}");
    let hint = "The model has not seen it. Write it in another way.";
    thread.notice_of(NoticeKind::Hook, turn, (NoticeLevel::Warning, &text, hint));
}

/// Adds the text of hooks to a conversation.
fn inject(thread: &ThreadHandle, turn: &TurnId, who: &str, texts: impl IntoIterator<Item = String>) {
    for text in texts {
        let text = reminder(&format!("{who}:\n{text}"));
        thread.commit(Record::Remark { turn: turn.clone(), text });
    }
}
