//! What the user says to a turn that runs.
//!
//! Rule: it is in the journal before anybody is told that it was taken, and reaches the model with the next call, after
//! the results of those that run; what the turn cannot be told any more waits as a prompt of its own, before all others.

use tokio_util::sync::CancellationToken;

use crate::hooks::moments::Admission;
use crate::input::Prompt;
use crate::session::conversation::Conversation;
use crate::session::queue::QueueError;
use crate::session::state::Waiting;
use crate::session::{Session, SessionState, SubmitError, Submitted};
use kode_base::ids::{ItemId, QueueId, TurnId};
use kode_record::event::{ItemBody, NoticeKind, NoticeLevel, QueuedPrompt};
use kode_record::record::Record;

/// So much may wait for the running turn.
pub const STEERING_LIMIT: usize = 20;

impl Session {
    /// Tells the running turn something, or begins a turn with it when none runs.
    ///
    /// # Errors
    /// [`SubmitError`]; nothing was taken then.
    pub fn steer(&self, prompt: Prompt) -> Result<Submitted, SubmitError> {
        self.hand_in(prompt, true)
    }
}

impl SessionState {
    /// Whether no more may wait for the running turn.
    pub(super) fn is_steering_full(&self) -> bool {
        self.steering.len() >= STEERING_LIMIT
    }
}

/// Whether the user has said something that the turn of this conversation has not taken in.
pub(crate) fn waits(conversation: &Conversation<'_>) -> bool {
    conversation.agent.is_none() && !conversation.session.state().steering.is_empty()
}

/// Adds what the user has said to the conversation: the next request has it. Only the session's own is told.
pub(crate) async fn take(conversation: &Conversation<'_>, turn: &TurnId, cancel: &CancellationToken) {
    if conversation.agent.is_some() {
        return;
    }
    while let Some((id, text)) = first(conversation) {
        match conversation.admit(turn, &text, cancel).await {
            Admission::Taken => {}
            Admission::Refused(reason) => {
                match conversation.session.remove_queued(&id) {
                    Ok(()) => {
                        let text = format!("A hook refused what you said: {reason}");
                        let hint = "The model has not seen it. Write it in another way.";
                        let said = (NoticeLevel::Warning, text.as_str(), hint);
                        conversation.notice_of(NoticeKind::Hook, turn, said);
                    }
                    Err(QueueError::Closed) => return,
                    // The user has taken it back meanwhile.
                    Err(error) => tracing::debug!(%error, "what a hook refused waits no more"),
                }
                continue;
            }
            Admission::Stopped => return,
        }
        if let Some((item, prompt)) = take_one(conversation, turn, &text) {
            conversation.session.attach(turn, &item, &prompt, cancel).await;
        }
    }
}

/// What is said next.
fn first(conversation: &Conversation<'_>) -> Option<(QueueId, String)> {
    let state = conversation.session.state();
    state.steering.front().map(|waiting| (waiting.prompt.id.clone(), waiting.prompt.text.clone()))
}

/// Takes what is said next, if it is what hooks have looked at.
fn take_one(conversation: &Conversation<'_>, turn: &TurnId, looked_at: &str) -> Option<(ItemId, Prompt)> {
    let session = conversation.session;
    let mut state = session.state();
    let first = state.steering.front().filter(|waiting| waiting.prompt.text == looked_at);
    let Waiting { prompt: QueuedPrompt { id: queued, text, .. }, content, parts } = first.cloned()?;
    let prompt = Prompt { text: text.clone(), parts: parts.clone(), ..Prompt::default() };
    let body = ItemBody::UserMessage { text, attachments: Vec::new(), steered: true, command: None };
    let item = conversation.new_item(turn, body);
    let id = item.id.clone();
    let record = Record::Steered { turn: turn.clone(), queued, item, content, parts };
    session.commit_locked(&mut state, record);
    Some((id, prompt))
}
