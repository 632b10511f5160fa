//! Messages of the user to a running turn.
//!
//! Rule: a message is in the journal before its caller has an answer. It reaches the model with the next call, behind the
//! results of running calls. A message that the turn can no longer take waits as a prompt of its own, before all others.

use tokio_util::sync::CancellationToken;

use crate::core::Core;
use crate::hooks::Admission;
use crate::prompt::Prompt;
use crate::state::queue::{Queue, QueueError, WaitingPrompt};
use crate::turn::services::TurnContext;
use kode_base::ids::{ItemId, QueueId};
use kode_record::event::{ItemBody, NoticeKind, NoticeLevel};
use kode_record::queue::QueueChange;
use kode_record::record::Record;

/// Changes the queue of a session.
///
/// # Errors
/// [`QueueError`]; the queue stays as it is then.
pub(crate) fn change_queue(
    core: &Core,
    change: impl FnOnce(&Queue) -> Result<QueueChange, QueueError>,
) -> Result<(), QueueError> {
    let mut state = core.state();
    if core.is_closing() {
        return Err(QueueError::Closed);
    }
    let change = change(&state.queue)?;
    core.commit_to(&mut state, Record::QueueChanged { change });
    Ok(())
}

/// Whether messages wait for the turn of this conversation. Only the session's own gets any.
pub(super) fn waits(turn: TurnContext<'_>) -> bool {
    turn.conversation.is_main() && turn.services.core.state().queue.has_steering()
}

/// Adds the waiting messages to the conversation: the next request has them.
pub(super) async fn take(turn: TurnContext<'_>, cancel: &CancellationToken) {
    if !turn.conversation.is_main() {
        return;
    }
    let services = turn.services;
    while let Some((id, text)) = first(&services.core) {
        match services.hooks.admit(turn.conversation, turn.id, &text, cancel).await {
            Admission::Accepted => {}
            Admission::Rejected(reason) => {
                match change_queue(&services.core, |queue| queue.removal(&id)) {
                    Ok(()) => {
                        let text = format!("A hook refused what you said: {reason}");
                        let hint = "The model has not seen it. Write it in another way.";
                        turn.notice_of(NoticeKind::Hook, (NoticeLevel::Warning, &text, hint));
                    }
                    Err(QueueError::Closed) => return,
                    // The user has removed it meanwhile.
                    Err(error) => tracing::debug!(%error, "a message that a hook rejected waits no more"),
                }
                continue;
            }
            Admission::Stopped => return,
        }
        if let Some((item, prompt)) = take_one(turn, &text) {
            services.input.attach(turn.id, &item, (prompt.text(), prompt.parts()), cancel).await;
        }
    }
}

/// The next message.
fn first(core: &Core) -> Option<(QueueId, String)> {
    let state = core.state();
    state.queue.front_steering().map(|waiting| (waiting.id.clone(), waiting.prompt.text().to_owned()))
}

/// Takes the next message, if it is still the one that hooks have admitted.
fn take_one(turn: TurnContext<'_>, admitted: &str) -> Option<(ItemId, Prompt)> {
    let core = &turn.services.core;
    let mut state = core.state();
    let first = state.queue.front_steering().filter(|waiting| waiting.prompt.text() == admitted);
    let WaitingPrompt { id: queued, prompt, content } = first.cloned()?;
    let (text, parts) = (prompt.text().to_owned(), prompt.parts().to_vec());
    let body = ItemBody::UserMessage { text, attachments: Vec::new(), steered: true, command: None };
    let item = turn.new_item(body);
    let id = item.id.clone();
    let record = Record::Steered { turn: turn.id.clone(), queued, item, content, parts };
    core.commit_to(&mut state, record);
    Some((id, prompt))
}
