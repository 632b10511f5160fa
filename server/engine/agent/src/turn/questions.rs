//! Questions to the user.
//!
//! Rule: question and answer are in the journal before the call goes on. While a question waits the session is paused; only
//! its call waits with it, or the turn that asked.

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::turn::services::TurnContext;
use kode_base::ids::{CallId, ItemId, QuestionId};
use kode_base::question::{Question, QuestionDraft, Reply};
use kode_record::record::Record;

/// Asks the user for a call and waits for the answer; `None` when the call was cancelled first. `again` is the question of
/// an earlier run of the session.
pub(super) async fn ask_for_call(
    turn: TurnContext<'_>,
    (call, item, title): (&CallId, &ItemId, &str),
    again: Option<QuestionId>,
    draft: QuestionDraft,
    cancel: &CancellationToken,
) -> (Question, Option<Reply>) {
    let question = Question {
        id: again.unwrap_or_else(QuestionId::generate),
        call: Some(call.clone()),
        item: Some(item.clone()),
        draft,
        timestamp: Timestamp::now(),
    };
    let waits = || turn.conversation.thread.call_waits(item, title, None, Vec::new());
    ask(turn, question, waits, cancel).await
}

/// Asks the user for the turn and waits for the answer; `None` when the turn was cancelled first. `again` is the question of
/// an earlier run of the session.
pub(super) async fn ask_for_turn(
    turn: TurnContext<'_>,
    draft: QuestionDraft,
    again: Option<QuestionId>,
    cancel: &CancellationToken,
) -> Option<Reply> {
    let (id, timestamp) = (again.unwrap_or_else(QuestionId::generate), Timestamp::now());
    ask(turn, Question { id, call: None, item: None, draft, timestamp }, || {}, cancel).await.1
}

/// Asks the user for a call that runs and waits for the answer; `None` when the call was cancelled first. The journal has no
/// such question: the call cannot go on in another run of the session.
pub(super) async fn ask_while_running(
    turn: TurnContext<'_>,
    call: &CallId,
    item: &ItemId,
    draft: QuestionDraft,
    cancel: &CancellationToken,
) -> Option<Reply> {
    let (id, timestamp) = (QuestionId::generate(), Timestamp::now());
    let question = Question { id, call: Some(call.clone()), item: Some(item.clone()), draft, timestamp };
    turn.services.requests.ask_question(question, cancel).await
}

async fn ask(
    turn: TurnContext<'_>,
    question: Question,
    waits: impl FnOnce(),
    cancel: &CancellationToken,
) -> (Question, Option<Reply>) {
    let (core, requests) = (&turn.services.core, &turn.services.requests);
    let known = core.state().running.questions.iter().find(|asked| asked.id == question.id).cloned();
    let question = match known {
        Some(known) if known.draft == question.draft => known,
        Some(_) | None => {
            core.commit(Record::Asked { question: Box::new(question.clone()) });
            question
        }
    };
    waits();
    core.sync().await;
    let reply = requests.ask_question(question.clone(), cancel).await;
    // A kept question is asked again when the session is resumed.
    if reply.is_none() && requests.is_kept_for_next_run() {
        return (question, None);
    }
    core.commit(Record::Replied { resolved: question.resolved(reply.as_ref()) });
    core.sync().await;
    (question, reply)
}
