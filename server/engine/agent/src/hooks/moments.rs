//! The moments of a session and a turn at which hooks run, other than those of calls.
//!
//! Rule: what a hook adds to what the model sees is a record before anybody is asked on; a hook that fails adds nothing.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::fire::{Fired, Moment};
use super::state::{EndReason, StartSource};
use crate::session::Session;
use crate::session::conversation::Conversation;
use crate::session::thread::Thread;
use kode_base::ids::TurnId;
use kode_base::reminder;
use kode_config::hooks::event::HookEvent;
use kode_record::event::{NoticeKind, NoticeLevel};
use kode_record::hook::HookOutcome;
use kode_record::record::Record;

/// So long all hooks of a session's end may take together, where none says otherwise.
const END_LIMIT: Duration = Duration::from_millis(1_500);

/// So long they may take at most: the server waits for them.
const MAX_END_LIMIT: Duration = Duration::from_secs(4);

/// After so long without a prompt the user is told that they are waited for.
pub(crate) const IDLE: Duration = Duration::from_secs(60);

/// What becomes of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The model is asked.
    Taken,
    /// A hook refused it, for this reason.
    Refused(String),
    /// A hook has stopped the turn.
    Stopped,
}

/// What becomes of the end of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StopWord {
    /// It ends.
    Ends,
    /// The agent goes on, for this reason.
    GoesOn(String),
    /// A hook has stopped the turn.
    Stopped,
}

impl Session {
    /// Says how the session begins, where that is not plain: before its first prompt.
    pub fn begin_as(&self, source: StartSource) {
        self.hooks.begin_as(source);
    }

    /// As [`Session::close`], and says to hooks why.
    pub fn close_for(&self, reason: EndReason) {
        self.hooks.end_with(reason);
        self.close();
    }

    /// Tells hooks that the user goes on in another session. What is said in this one after that begins it again.
    pub(crate) async fn leave_for(&self, reason: EndReason) {
        self.hooks.end_with(reason);
        self.fire_session_end().await;
        self.hooks.begin_again();
    }

    /// Tells the user, once, that hooks of the workspace wait for their approval.
    pub(crate) fn tell_waiting_hooks(&self, turn: &TurnId) {
        let in_force = self.in_force();
        let Some(count) = self.hooks.new_waiting(&in_force.hooks) else { return };
        let text = match count {
            1 => "One group of hooks of this workspace waits for your approval and does not run.".to_owned(),
            count => {
                format!("{count} groups of hooks of this workspace wait for your approval and do not run.")
            }
        };
        let hint =
            "Look at what they run (`agent/hooks/list`), and approve of the settings if you want them to.";
        Conversation::main(self).notice_of(NoticeKind::Hook, turn, (NoticeLevel::Warning, &text, hint));
    }

    /// Runs the hooks of the session's end, where a prompt had begun it.
    pub(crate) async fn fire_session_end(&self) {
        let conversation = Conversation::main(self);
        if !self.hooks.has_started() || !conversation.has_hooks(HookEvent::SessionEnd) {
            return;
        }
        let in_force = self.in_force();
        let brought = conversation.brought_hooks(&in_force).await;
        let handlers = [&*in_force.hooks, &brought].map(|hooks| hooks.of_event(HookEvent::SessionEnd));
        let handlers = handlers.into_iter().flatten();
        let own = handlers.filter(|handler| handler.has_own_timeout).map(|handler| handler.timeout);
        let limit = own.max().unwrap_or(END_LIMIT).clamp(END_LIMIT, MAX_END_LIMIT);
        let reason = self.hooks.end_reason().name();
        let mut moment = Moment::new(HookEvent::SessionEnd, None, json!({ "reason": reason }));
        moment.value = Some(reason);
        // The session's own is cancelled by now.
        let cancel = CancellationToken::new();
        let mut firing = std::pin::pin!(conversation.fire(moment, &cancel));
        if tokio::time::timeout(limit, &mut firing).await.is_err() {
            cancel.cancel();
            firing.await;
        }
    }

    /// Tells hooks that the user is waited for. Nobody waits for them.
    pub(crate) fn notify(&self, kind: &'static str, title: &'static str, message: String) {
        if !Conversation::main(self).has_hooks(HookEvent::Notification) {
            return;
        }
        let Some(session) = self.shared() else { return };
        tokio::spawn(async move {
            let fields = json!({ "message": message, "title": title, "notification_type": kind });
            let mut moment = Moment::new(HookEvent::Notification, None, fields);
            moment.value = Some(kind);
            let cancel = session.cancel_token();
            Conversation::main(&session).fire(moment, &cancel).await;
        });
    }
}

impl Conversation<'_> {
    /// Runs the hooks of the session's beginning, once, before its first prompt goes anywhere.
    pub(crate) async fn fire_session_start(&self, turn: &TurnId, cancel: &CancellationToken) {
        if let Some(source) = self.session.hooks.take_start() {
            self.fire_start_of(source, turn, cancel).await;
        }
    }

    /// Runs the hooks of a beginning.
    pub(crate) async fn fire_start_of(&self, source: StartSource, turn: &TurnId, cancel: &CancellationToken) {
        if !self.has_hooks(HookEvent::SessionStart) {
            return;
        }
        let fields = json!({ "source": source.name(), "model": self.model_name() });
        let mut moment = Moment::new(HookEvent::SessionStart, Some(turn), fields);
        moment.value = Some(source.name());
        let fired = self.fire(moment, cancel).await;
        self.take_title(&fired);
        let asked =
            fired.initial_message.clone().map(|message| format!("The user begins with this:\n{message}"));
        self.inject(turn, "A hook of the session's beginning says", fired.context.into_iter().chain(asked));
        self.note_stop(turn, fired.stop);
    }

    /// Has hooks look at a prompt before the model sees it.
    pub(crate) async fn admit(&self, turn: &TurnId, text: &str, cancel: &CancellationToken) -> Admission {
        if !self.has_hooks(HookEvent::UserPromptSubmit) {
            return Admission::Taken;
        }
        let fields = json!({ "prompt": text, "user_prompt": text });
        let fired = self.fire(Moment::new(HookEvent::UserPromptSubmit, Some(turn), fields), cancel).await;
        if let Some(reason) = fired.block {
            return Admission::Refused(reason);
        }
        self.take_title(&fired);
        self.inject(turn, "A hook says of the user's prompt", fired.context);
        if self.note_stop(turn, fired.stop) { Admission::Stopped } else { Admission::Taken }
    }

    /// Takes a refused prompt out of what the model sees, and tells the user.
    pub(crate) fn refuse_prompt(&self, turn: &TurnId, reason: &str) {
        self.commit(Record::PromptRefused { turn: turn.clone(), reason: reason.to_owned() });
        let text = format!("A hook refused the prompt: {reason}");
        let hint = "The model has not seen it. Write it in another way.";
        self.notice_of(NoticeKind::Hook, turn, (NoticeLevel::Warning, &text, hint));
    }

    /// Has hooks look at the end of a turn; `is_active`: they have had the agent go on before.
    pub(crate) async fn before_stop(
        &self,
        turn: &TurnId,
        is_active: bool,
        cancel: &CancellationToken,
    ) -> StopWord {
        let event = if self.agent.is_some() { HookEvent::SubagentStop } else { HookEvent::Stop };
        if !self.has_hooks(event) {
            return StopWord::Ends;
        }
        let background: Vec<Value> = {
            let state = self.session.state();
            let running = state.background.running();
            running.map(|task| json!({ "id": task.id, "description": task.title })).collect()
        };
        let fields = json!({
            "stop_hook_active": is_active,
            "last_assistant_message": self.read(Thread::turn_answer),
            "background_tasks": background,
            "session_crons": [],
        });
        let kind = self.assignment.as_ref().map(|assignment| assignment.kind.clone());
        let mut moment = Moment::new(event, Some(turn), fields);
        moment.value = kind.as_deref();
        let fired = self.fire(moment, cancel).await;
        self.inject(turn, "A hook says", fired.context);
        if self.note_stop(turn, fired.stop) {
            return StopWord::Stopped;
        }
        fired.block.map_or(StopWord::Ends, StopWord::GoesOn)
    }

    /// Runs the hooks of a sub-agent's beginning.
    pub(crate) async fn fire_subagent_start(&self, turn: &TurnId, cancel: &CancellationToken) {
        if !self.has_hooks(HookEvent::SubagentStart) {
            return;
        }
        let kind = self.assignment.as_ref().map(|assignment| assignment.kind.clone());
        let mut moment = Moment::new(HookEvent::SubagentStart, Some(turn), json!({}));
        moment.value = kind.as_deref();
        let fired = self.fire(moment, cancel).await;
        self.inject(turn, "A hook says of your task", fired.context);
        self.note_stop(turn, fired.stop);
    }

    /// Adds what hooks say to the conversation.
    pub(crate) fn inject(&self, turn: &TurnId, who: &str, contexts: impl IntoIterator<Item = String>) {
        for context in contexts {
            let text = reminder(&format!("{who}:\n{context}"));
            self.commit(Record::Remark { turn: turn.clone(), text });
        }
    }

    /// Stops the turn if a hook says so, and tells the user why. Whether it did.
    pub(crate) fn note_stop(&self, turn: &TurnId, stop: Option<String>) -> bool {
        let Some(reason) = stop else { return false };
        self.session.hooks.stop(turn);
        let text = format!("A hook stopped the turn: {reason}");
        let main = Conversation::main(self.session);
        main.notice_of(NoticeKind::Hook, turn, (NoticeLevel::Warning, &text, "Send `continue` to go on."));
        true
    }

    fn take_title(&self, fired: &Fired) {
        let Some(title) = &fired.session_title else { return };
        if let Err(error) = self.session.title_by_hook(title) {
            tracing::info!(%error, outcome = ?HookOutcome::Failed, "the title that a hook gives is not taken");
        }
    }

    fn model_name(&self) -> Option<String> {
        let models = self.session.models.now();
        models.profile(&self.model()).ok().map(|profile| profile.model.clone())
    }
}
