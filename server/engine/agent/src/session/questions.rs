//! What the session asks the user, and the modes that the model enters and leaves.
//!
//! Rule: question and answer are in the journal before the call goes on; while one waits the session is paused and
//! nothing but its call, or the turn that asked, waits with it.

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::session::Session;
use crate::session::conversation::Conversation;
use kode_base::broker::BrokerOutcome;
use kode_base::ids::{CallId, ItemId, QuestionId};
use kode_base::mode::Mode;
use kode_base::question::{Question, QuestionDraft, Reply, ReplyError};
use kode_record::record::Record;

impl Session {
    /// The questions that wait, oldest first.
    #[must_use]
    pub fn questions(&self) -> Vec<Question> {
        self.questions.pending()
    }

    /// Answers a question.
    ///
    /// # Errors
    /// [`ReplyError`], above all when somebody was first.
    pub fn reply(&self, id: &QuestionId, reply: Reply) -> Result<(), ReplyError> {
        self.questions.respond(id, reply)
    }

    /// Leaves plan mode for `mode`, or for the one it was entered from; answers the mode from now on. A mode that the
    /// user has chosen meanwhile stays, unless another is asked for.
    pub(crate) fn leave_plan_mode(&self, mode: Option<Mode>) -> Mode {
        let (now, before) = {
            let state = self.state();
            (state.mode, state.mode_before_plan.unwrap_or_default())
        };
        let next = mode.unwrap_or(if now == Mode::Plan { before } else { now });
        self.configure(Some(next), None);
        next
    }
}

impl Conversation<'_> {
    /// Asks the user for a call and waits for the answer; `None` when the call was cancelled first.
    pub(crate) async fn ask(
        &self,
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
        self.put(question, |conversation| conversation.call_waits(item, title, None, Vec::new()), cancel)
            .await
    }

    /// Asks the user what the turn waits for; `None` when it was cancelled first. `again` is what they were asked before
    /// the session was taken up.
    pub(crate) async fn ask_for_turn(
        &self,
        draft: QuestionDraft,
        again: Option<QuestionId>,
        cancel: &CancellationToken,
    ) -> Option<Reply> {
        let (id, timestamp) = (again.unwrap_or_else(QuestionId::generate), Timestamp::now());
        self.put(Question { id, call: None, item: None, draft, timestamp }, |_| {}, cancel).await.1
    }

    /// Asks the user something for a call that runs, and waits for the answer; `None` when the call was cancelled first. It
    /// is not in the journal: the call cannot go on after the server has ended, and so is not asked for again.
    pub(crate) async fn ask_beside(
        &self,
        call: &CallId,
        item: &ItemId,
        draft: QuestionDraft,
        cancel: &CancellationToken,
    ) -> Option<Reply> {
        let (id, timestamp) = (QuestionId::generate(), Timestamp::now());
        let question = Question { id, call: Some(call.clone()), item: Some(item.clone()), draft, timestamp };
        self.session.begin_waiting();
        let answered = self.session.questions.ask(question, cancel).await;
        self.session.end_waiting();
        match answered {
            BrokerOutcome::By(reply) => {
                self.session.note_answer();
                Some(reply)
            }
            BrokerOutcome::Cancelled => None,
        }
    }

    async fn put(
        &self,
        question: Question,
        asked: impl FnOnce(&Self),
        cancel: &CancellationToken,
    ) -> (Question, Option<Reply>) {
        let session = self.session;
        let known = session.state().asked.iter().find(|asked| asked.id == question.id).cloned();
        let question = match known {
            Some(known) if known.draft == question.draft => known,
            Some(_) | None => {
                session.commit(Record::Asked { question: Box::new(question.clone()) });
                question
            }
        };
        asked(self);
        session.sync().await;
        session.begin_waiting();
        let answered = session.questions.ask(question.clone(), cancel).await;
        session.end_waiting();
        let reply = match answered {
            BrokerOutcome::By(reply) => {
                session.note_answer();
                Some(reply)
            }
            // It is not at an end: it is asked again when the session is loaded.
            BrokerOutcome::Cancelled if session.is_left_to_next_life() => return (question, None),
            BrokerOutcome::Cancelled => None,
        };
        session.commit(Record::Replied { resolved: question.resolved(reply.as_ref()) });
        session.sync().await;
        (question, reply)
    }
}
