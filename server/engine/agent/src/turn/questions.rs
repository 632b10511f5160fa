//! Questions to the user.
//!
//! Rule: question and answer are in the journal before the call continues. While a question waits the session is paused; only
//! its call waits with it, or the turn that asked.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::turn::services::TurnContext;
use kode_base::ids::{CallId, ItemId, QuestionId};
use kode_base::question::{InquiryAnswer, Question, QuestionDraft, REST_RETRY, Reply};
use kode_record::record::Record;

/// The name of the clock as the one that answers a question.
const RESET: &str = "the reset of the limit";

/// The period of reading the machine's clock: timers stand still while the machine sleeps.
const CLOCK_PERIOD: Duration = Duration::from_secs(30);

/// The pause before a rest that is over tries again to end its question.
const RETRY_PERIOD: Duration = Duration::from_millis(50);

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

/// Rests until the time of the draft, or until the user answers; whether the turn continues. `again` is the question of an
/// earlier run of the session.
pub(super) async fn rest_for_turn(
    turn: TurnContext<'_>,
    draft: QuestionDraft,
    again: Option<QuestionId>,
    cancel: &CancellationToken,
) -> bool {
    let until = draft.until.unwrap_or_else(Timestamp::now);
    let id = again.unwrap_or_else(QuestionId::generate);
    let asked = ask_for_turn(turn, draft, Some(id.clone()), cancel);
    tokio::pin!(asked);
    let reply = loop {
        tokio::select! {
            biased;
            reply = &mut asked => break reply,
            () = reached(until) => {}
        }
        let proceed = InquiryAnswer { labels: vec![REST_RETRY.to_owned()], text: None };
        let reply = Reply { answers: Some(vec![proceed]), by: RESET.to_owned(), ..Reply::default() };
        if turn.services.requests.reply(&id, reply).is_ok() {
            break asked.await;
        }
        // The question is answered already, or is not asked yet: the journal comes first.
        tokio::select! {
            reply = &mut asked => break reply,
            () = sleep(RETRY_PERIOD) => {}
        }
    };
    let label = reply.as_ref().and_then(|reply| reply.answers.as_ref()?.first()?.labels.first());
    label.is_some_and(|label| label == REST_RETRY)
}

/// Waits for a time of the machine's clock.
async fn reached(until: Timestamp) {
    let left = Duration::try_from(until.duration_since(Timestamp::now())).unwrap_or_default();
    let deadline = Instant::now() + left;
    while Instant::now() < deadline && Timestamp::now() < until {
        let left = deadline.saturating_duration_since(Instant::now());
        sleep(left.min(CLOCK_PERIOD)).await;
    }
}

/// Asks the user for a call that runs and waits for the answer; `None` when the call was cancelled first. The journal has no
/// such question: the call cannot continue in another run of the session.
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
