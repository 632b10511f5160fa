//! Prompts that wait for the user, and the one answer each of them gets.
//!
//! Rule: the first answer wins and the others are told who gave it; cancelling answers too; a prompt that nobody
//! answers blocks nothing but its own call.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::event::{Event, EventLog};
use crate::ids::PermissionId;
use crate::permission::{Answer, Decision, Outcome, PermissionPrompt, Scope};

/// So many closed prompts are remembered, to tell late answers who was first.
const CLOSED_REMEMBERED: usize = 256;

/// The prompts of one session.
#[derive(Debug)]
pub struct Broker {
    events: Arc<EventLog>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    pending: BTreeMap<PermissionId, Pending>,
    closed: VecDeque<(PermissionId, String)>,
}

#[derive(Debug)]
struct Pending {
    prompt: PermissionPrompt,
    answer: oneshot::Sender<Answer>,
}

/// How asking ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// The user answered.
    By(Answer),
    /// The call was cancelled first.
    Cancelled,
}

/// Why an answer was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RespondError {
    /// No such prompt was ever asked here, or it is long closed.
    #[error("there is no permission prompt `{0}`")]
    Unknown(PermissionId),
    /// Somebody was first.
    #[error("the permission prompt `{id}` was already answered by {by}")]
    AlreadyResolved {
        /// The prompt.
        id: PermissionId,
        /// Who was first.
        by: String,
    },
    /// The scope is not among those the prompt offers.
    #[error("the permission prompt `{0}` offers no answer of that scope")]
    ScopeNotOffered(PermissionId),
}

impl Broker {
    /// A broker that tells of its prompts through `events`.
    #[must_use]
    pub fn new(events: Arc<EventLog>) -> Self {
        Self { events, state: Mutex::default() }
    }

    /// The prompts that wait, oldest first.
    #[must_use]
    pub fn pending(&self) -> Vec<PermissionPrompt> {
        self.lock().pending.values().map(|pending| pending.prompt.clone()).collect()
    }

    /// Asks, and waits for the first answer or for `cancel`.
    pub async fn ask(&self, prompt: PermissionPrompt, cancel: &CancellationToken) -> Answered {
        let id = prompt.id.clone();
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.lock();
            state.pending.insert(id.clone(), Pending { prompt: prompt.clone(), answer: sender });
            // Published under the lock, so that nobody is told of an answer before the question.
            self.events.publish(Event::PermissionRequired { prompt: Box::new(prompt) });
        }
        tokio::select! {
            biased;
            answer = receiver => answer.map_or(Answered::Cancelled, Answered::By),
            () = cancel.cancelled() => {
                let mut state = self.lock();
                if let Some(pending) = state.pending.remove(&id) {
                    self.close(&mut state, Decision {
                        id,
                        call: pending.prompt.call,
                        outcome: Outcome::Cancelled,
                        scope: Scope::Once,
                        by: "cancel".to_owned(),
                        feedback: None,
                    });
                }
                Answered::Cancelled
            }
        }
    }

    /// Takes an answer.
    ///
    /// # Errors
    /// [`RespondError`]; the prompt is then as it was.
    pub fn respond(&self, id: &PermissionId, answer: Answer) -> Result<(), RespondError> {
        let mut state = self.lock();
        let Some(pending) = state.pending.get(id) else {
            let by = state.closed.iter().find(|(closed, _)| closed == id).map(|(_, by)| by.clone());
            return Err(match by {
                Some(by) => RespondError::AlreadyResolved { id: id.clone(), by },
                None => RespondError::Unknown(id.clone()),
            });
        };
        if !pending.prompt.scopes.contains(&answer.scope) {
            return Err(RespondError::ScopeNotOffered(id.clone()));
        }
        let Some(pending) = state.pending.remove(id) else { return Err(RespondError::Unknown(id.clone())) };
        let decision = Decision {
            id: id.clone(),
            call: pending.prompt.call,
            outcome: if answer.allow { Outcome::Allow } else { Outcome::Deny },
            scope: answer.scope,
            by: answer.by.clone(),
            feedback: answer.feedback.clone(),
        };
        self.close(&mut state, decision);
        // The asker is gone only when its call was cancelled at this very moment; the cancel then wins.
        drop(pending.answer.send(answer));
        Ok(())
    }

    fn close(&self, state: &mut State, decision: Decision) {
        state.closed.push_back((decision.id.clone(), decision.by.clone()));
        if state.closed.len() > CLOSED_REMEMBERED {
            state.closed.pop_front();
        }
        self.events.publish(Event::PermissionDecided { decision });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CallId, ItemId, SessionId};
    use crate::permission::Preview;

    fn prompt(scopes: Vec<Scope>) -> PermissionPrompt {
        PermissionPrompt {
            id: PermissionId::generate(),
            call: CallId::generate(),
            item: ItemId::generate(),
            agent: None,
            tool: "Bash".into(),
            title: "Run ls".into(),
            reason: "test".into(),
            preview: Preview::Command { command: "ls".into(), cwd: "/".into() },
            risks: vec![],
            scopes,
            offers: vec![],
            input: serde_json::json!({}),
            timestamp: jiff::Timestamp::now(),
        }
    }

    fn answer(allow: bool, by: &str) -> Answer {
        Answer {
            allow,
            scope: Scope::Once,
            feedback: None,
            updated_input: None,
            rules: None,
            hunks: None,
            by: by.into(),
        }
    }

    fn broker() -> Arc<Broker> {
        Arc::new(Broker::new(EventLog::new(SessionId::generate(), 0)))
    }

    async fn asked(
        broker: &Arc<Broker>,
        prompt: PermissionPrompt,
        cancel: &CancellationToken,
    ) -> tokio::task::JoinHandle<Answered> {
        let (asker, cancel, count) = (Arc::clone(broker), cancel.clone(), broker.pending().len());
        let task = tokio::spawn(async move { asker.ask(prompt, &cancel).await });
        while broker.pending().len() == count {
            tokio::task::yield_now().await;
        }
        task
    }

    #[tokio::test]
    async fn the_first_answer_wins_and_the_second_is_told_who_gave_it() {
        let broker = broker();
        let prompt = prompt(vec![Scope::Once]);
        let id = prompt.id.clone();
        let task = asked(&broker, prompt, &CancellationToken::new()).await;
        broker.respond(&id, answer(false, "panel")).unwrap();
        assert_eq!(
            broker.respond(&id, answer(true, "status bar")),
            Err(RespondError::AlreadyResolved { id: id.clone(), by: "panel".into() })
        );
        assert_eq!(task.await.unwrap(), Answered::By(answer(false, "panel")));
        assert_eq!(broker.pending(), vec![]);
    }

    #[tokio::test]
    async fn cancelling_one_prompt_leaves_the_others_answerable() {
        let broker = broker();
        let (one, two) = (prompt(vec![Scope::Once]), prompt(vec![Scope::Once]));
        let (first, second) = (one.id.clone(), two.id.clone());
        let cancel = CancellationToken::new();
        let cancelled = asked(&broker, one, &cancel).await;
        let kept = asked(&broker, two, &CancellationToken::new()).await;
        cancel.cancel();
        assert_eq!(cancelled.await.unwrap(), Answered::Cancelled);
        assert!(
            matches!(broker.respond(&first, answer(true, "panel")), Err(RespondError::AlreadyResolved { by, .. }) if by == "cancel")
        );
        broker.respond(&second, answer(true, "panel")).unwrap();
        assert_eq!(kept.await.unwrap(), Answered::By(answer(true, "panel")));
    }

    #[tokio::test]
    async fn an_answer_beyond_what_was_offered_leaves_the_prompt_open() {
        let broker = broker();
        let prompt = prompt(vec![Scope::Once]);
        let id = prompt.id.clone();
        let _task = asked(&broker, prompt, &CancellationToken::new()).await;
        let wide = Answer { scope: Scope::Session, ..answer(true, "panel") };
        assert_eq!(broker.respond(&id, wide), Err(RespondError::ScopeNotOffered(id.clone())));
        assert_eq!(broker.pending().len(), 1);
        assert!(matches!(
            broker.respond(&PermissionId::generate(), answer(true, "panel")),
            Err(RespondError::Unknown(_))
        ));
    }
}
