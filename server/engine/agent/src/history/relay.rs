//! The requests to the user in a session that another process writes, and the relay of the user's answers to that process.
//!
//! Rule: the writing process alone decides: a relayed answer is an answer like any other, and the first one wins. A caller
//! waits at most [`ANSWER_LIMIT`] for a writer that hangs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::history::following::FollowedSession;
use kode_base::blocking;
use kode_base::broker::RespondError;
use kode_base::ids::{AskId, LeaseId, PermissionId, QuestionId};
use kode_base::question::{Question, QuestionResolution, Reply};
use kode_permission::{PermissionPrompt, PermissionResolution, PromptAnswer};
use kode_record::event::Event;

/// The most time that a writer has to accept an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// The interval of polling for the outcome where the system reports no change.
const POLL: Duration = Duration::from_millis(500);

/// The number of closed requests of each kind in the note, from which followers take how a request ended.
const MAX_CLOSED: usize = 32;

/// The requests that wait for the user, as the writing process notes them beside the journal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PendingRequests {
    /// The lease of the writer of the note.
    pub(crate) lease: Option<LeaseId>,
    pub(crate) prompts: Vec<PermissionPrompt>,
    pub(crate) questions: Vec<Question>,
    /// How the last prompts ended.
    decisions: VecDeque<PermissionResolution>,
    /// How the last questions ended.
    resolutions: VecDeque<Box<QuestionResolution>>,
}

impl PendingRequests {
    /// The empty note of a writer.
    pub(crate) fn of_writer(lease: LeaseId) -> Self {
        Self { lease: Some(lease), ..Self::default() }
    }

    /// Notes the requests that wait now. Questions about pages are asked in this process alone: their addresses are in no file.
    pub(crate) fn wait(&mut self, prompts: Vec<PermissionPrompt>, mut questions: Vec<Question>) {
        questions.retain(|question| question.draft.page.is_none());
        (self.prompts, self.questions) = (prompts, questions);
    }

    /// Notes how a request ended. Returns whether the event changes the requests that wait.
    pub(crate) fn observe(&mut self, event: Event) -> bool {
        match event {
            Event::PermissionRequired { .. } | Event::QuestionAsked { .. } => {}
            Event::PermissionDecided { decision } => push_bounded(&mut self.decisions, decision),
            Event::QuestionAnswered { resolved } => push_bounded(&mut self.resolutions, resolved),
            _ => return false,
        }
        true
    }

    /// The events between an earlier note and this one.
    pub(crate) fn events_since(&self, before: &Self) -> Vec<Event> {
        let mut events = Vec::new();
        for closed in before.prompts.iter().filter(|closed| !self.has_prompt(&closed.id)) {
            let known = self.decisions.iter().find(|decision| decision.id == closed.id);
            let decision = known.cloned().unwrap_or_else(|| closed.decision(None));
            events.push(Event::PermissionDecided { decision });
        }
        for closed in before.questions.iter().filter(|closed| !self.has_question(&closed.id)) {
            let known = self.resolutions.iter().find(|resolved| resolved.id == closed.id);
            let resolved = known.cloned().unwrap_or_else(|| Box::new(closed.resolved(None)));
            events.push(Event::QuestionAnswered { resolved });
        }
        let prompts = self.prompts.iter().filter(|prompt| !before.has_prompt(&prompt.id));
        events.extend(prompts.map(|prompt| Event::PermissionRequired { prompt: Box::new(prompt.clone()) }));
        let questions = self.questions.iter().filter(|question| !before.has_question(&question.id));
        events
            .extend(questions.map(|question| Event::QuestionAsked { question: Box::new(question.clone()) }));
        events
    }

    fn has_prompt(&self, id: &PermissionId) -> bool {
        self.prompts.iter().any(|prompt| prompt.id == *id)
    }

    fn has_question(&self, id: &QuestionId) -> bool {
        self.questions.iter().any(|question| question.id == *id)
    }
}

fn push_bounded<T>(closed: &mut VecDeque<T>, last: T) {
    closed.push_back(last);
    if closed.len() > MAX_CLOSED {
        closed.pop_front();
    }
}

/// An answer of the user on its way to the writing process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum RelayedAnswer {
    Permission { id: PermissionId, answer: PromptAnswer },
    Question { id: QuestionId, reply: Reply },
}

/// Why a relayed answer was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RelayError {
    /// No request of that id waits in the writing process.
    #[error("nothing waits for an answer under the id `{id}`")]
    Unknown {
        /// The id.
        id: String,
    },
    /// Another client was first.
    #[error("`{id}` was already answered by {by}")]
    AlreadyResolved {
        /// The id.
        id: String,
        /// The client that was first.
        by: String,
    },
    /// The answer does not fit the request.
    #[error("{message}")]
    Unfit {
        /// The reason.
        message: String,
    },
    /// No process writes the session, or its writer does not accept the answer in time.
    #[error("the process that has the session open does not answer")]
    Unanswered,
}

impl RelayError {
    pub(crate) fn of<I, U>(error: RespondError<I, U>) -> Self
    where
        I: std::fmt::Debug + std::fmt::Display,
        U: std::fmt::Debug + std::fmt::Display,
    {
        match error {
            RespondError::Unknown(id) => Self::Unknown { id: id.to_string() },
            RespondError::AlreadyResolved { id, by } => Self::AlreadyResolved { id: id.to_string(), by },
            RespondError::Unfit(unfit) => Self::Unfit { message: unfit.to_string() },
        }
    }
}

impl FollowedSession {
    /// Relays an answer to a permission prompt to the writing process.
    ///
    /// # Errors
    /// [`RelayError`].
    pub async fn respond(&self, id: &PermissionId, answer: PromptAnswer) -> Result<(), RelayError> {
        self.relay(RelayedAnswer::Permission { id: id.clone(), answer }).await
    }

    /// Relays an answer to a question to the writing process.
    ///
    /// # Errors
    /// [`RelayError`].
    pub async fn reply(&self, id: &QuestionId, reply: Reply) -> Result<(), RelayError> {
        self.relay(RelayedAnswer::Question { id: id.clone(), reply }).await
    }

    async fn relay(&self, answer: RelayedAnswer) -> Result<(), RelayError> {
        let writer = self.writer().ok_or(RelayError::Unanswered)?;
        let (lease, id, wake) = (self.lease.clone(), AskId::generate(), Arc::new(Notify::new()));
        let (notes, waker, named) = (lease.clone(), Arc::clone(&wake), id.clone());
        let written = blocking(move || {
            let watcher = notes.watch(waker, false);
            notes.relay_answer(&named, &writer.lease, &answer).map(|()| watcher)
        });
        let _watcher = written.await.map_err(|error| {
            tracing::warn!(%error, "an answer could not be relayed to the process that has the session open");
            RelayError::Unanswered
        })?;
        let until = Instant::now() + ANSWER_LIMIT;
        let outcome = loop {
            let (notes, named) = (lease.clone(), id.clone());
            let outcome: Option<Option<RelayError>> = blocking(move || notes.outcome(&named)).await;
            if let Some(outcome) = outcome {
                break outcome.map_or(Ok(()), Err);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break Err(RelayError::Unanswered);
            }
            tokio::select! {
                () = wake.notified() => {}
                () = sleep(POLL.min(left)) => {}
            }
        };
        blocking(move || lease.remove_answer(&id)).await;
        outcome
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kode_base::page::{PageCompletion, PageOffer};
    use kode_base::question::QuestionDraft;

    use super::*;

    #[test]
    fn a_question_about_a_page_is_not_noted_and_others_are() {
        let asked = |draft: QuestionDraft| Question {
            id: QuestionId::generate(),
            call: None,
            item: None,
            draft,
            timestamp: Timestamp::now(),
        };
        let offer = PageOffer::of("https://a.example/?state=secret", PageCompletion::default()).unwrap();
        let page = asked(QuestionDraft::page("Sign in?", "", offer));
        let limit = asked(QuestionDraft::turn_limit("On?".into()));
        let mut pending = PendingRequests::default();
        pending.wait(Vec::new(), vec![page, limit.clone()]);
        assert_eq!(pending.questions, [limit]);
        assert!(!serde_json::to_string(&pending).unwrap().contains("secret"));
    }
}
