//! Permission prompts as the broker carries them.
//!
//! Rule: an answer reaches no further than the prompt offers.

use crate::{PermissionOutcome, PermissionPrompt, PermissionResolution, PromptAnswer, Scope};
use kode_base::broker::{self, UserRequest};
use kode_base::ids::PermissionId;

/// The permission prompts of one session.
pub type PermissionBroker = broker::Broker<PermissionPrompt>;

/// How asking for a permission ended.
pub type PromptOutcome = broker::BrokerOutcome<PromptAnswer>;

/// Why an answer to a permission prompt was not taken.
pub type PromptRespondError = broker::RespondError<PermissionId, ScopeNotOffered>;

/// The scope is not among those the prompt offers, or the mode is not the one it offers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the permission prompt `{0}` offers no answer of that scope or mode")]
pub struct ScopeNotOffered(pub PermissionId);

impl UserRequest for PermissionPrompt {
    type Id = PermissionId;
    type Answer = PromptAnswer;
    type Unfit = ScopeNotOffered;

    fn id(&self) -> &PermissionId {
        &self.id
    }

    fn check(&self, answer: &PromptAnswer) -> Result<(), ScopeNotOffered> {
        let offers_mode = answer.mode.is_none() || answer.mode == self.mode;
        let is_offered = self.scopes.contains(&answer.scope) && offers_mode;
        if is_offered { Ok(()) } else { Err(ScopeNotOffered(self.id.clone())) }
    }

    fn closed_by(&self, answer: Option<&PromptAnswer>) -> String {
        self.decision(answer).by
    }
}

impl PermissionPrompt {
    /// How the prompt was closed; without an answer it was cancelled.
    #[must_use]
    pub fn decision(&self, answer: Option<&PromptAnswer>) -> PermissionResolution {
        let (id, call) = (self.id.clone(), self.call.clone());
        match answer {
            Some(answer) => PermissionResolution {
                id,
                call,
                outcome: if answer.allow { PermissionOutcome::Allow } else { PermissionOutcome::Deny },
                scope: answer.scope,
                by: answer.by.clone(),
                feedback: answer.feedback.clone(),
            },
            None => PermissionResolution {
                id,
                call,
                outcome: PermissionOutcome::Cancelled,
                scope: Scope::Once,
                by: "cancel".to_owned(),
                feedback: None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::Preview;
    use kode_base::broker::BrokerListener;
    use kode_base::ids::{CallId, ItemId};
    use kode_base::mode::Mode;

    fn prompt(scopes: Vec<Scope>) -> PermissionPrompt {
        PermissionPrompt {
            id: PermissionId::generate(),
            call: CallId::generate(),
            item: ItemId::generate(),
            agent: None,
            tool: "Bash".into(),
            title: "Run ls".into(),
            reason: "test".into(),
            preview: Preview::Command { command: "ls".into(), cwd: "/".into(), sandboxed: false },
            risks: vec![],
            notes: Vec::new(),
            diagnostics: None,
            mode: None,
            scopes,
            offers: vec![],
            input: serde_json::json!({}),
            timestamp: jiff::Timestamp::now(),
        }
    }

    fn answer(allow: bool, by: &str) -> PromptAnswer {
        PromptAnswer {
            allow,
            scope: Scope::Once,
            feedback: None,
            updated_input: None,
            rules: None,
            hunks: None,
            mode: None,
            by: by.into(),
        }
    }

    /// Notifies no listener.
    struct Silent;

    impl BrokerListener<PermissionPrompt> for Silent {
        fn asked(&self, _: &PermissionPrompt) {}
        fn closed(&self, _: &PermissionPrompt, _: Option<&PromptAnswer>) {}
    }

    fn broker() -> Arc<PermissionBroker> {
        Arc::new(PermissionBroker::new(Arc::new(Silent)))
    }

    async fn asked(
        broker: &Arc<PermissionBroker>,
        prompt: PermissionPrompt,
        cancel: &CancellationToken,
    ) -> tokio::task::JoinHandle<PromptOutcome> {
        let (asker, cancel, count) = (Arc::clone(broker), cancel.clone(), broker.pending().len());
        let task = tokio::spawn(async move { asker.ask(prompt, &cancel).await });
        while broker.pending().len() == count {
            tokio::task::yield_now().await;
        }
        task
    }

    #[tokio::test]
    async fn the_first_answer_wins_and_the_second_is_reported_who_gave_it() {
        let broker = broker();
        let prompt = prompt(vec![Scope::Once]);
        let id = prompt.id.clone();
        let task = asked(&broker, prompt, &CancellationToken::new()).await;
        broker.respond(&id, answer(false, "panel")).unwrap();
        assert_eq!(
            broker.respond(&id, answer(true, "status bar")),
            Err(PromptRespondError::AlreadyResolved { id: id.clone(), by: "panel".into() })
        );
        assert_eq!(task.await.unwrap(), PromptOutcome::By(answer(false, "panel")));
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
        assert_eq!(cancelled.await.unwrap(), PromptOutcome::Cancelled);
        assert!(
            matches!(broker.respond(&first, answer(true, "panel")), Err(PromptRespondError::AlreadyResolved { by, .. }) if by == "cancel")
        );
        broker.respond(&second, answer(true, "panel")).unwrap();
        assert_eq!(kept.await.unwrap(), PromptOutcome::By(answer(true, "panel")));
    }

    #[tokio::test]
    async fn an_answer_beyond_what_was_offered_leaves_the_prompt_open() {
        let broker = broker();
        let prompt = prompt(vec![Scope::Once]);
        let id = prompt.id.clone();
        let _task = asked(&broker, prompt, &CancellationToken::new()).await;
        let wide = PromptAnswer { scope: Scope::Session, ..answer(true, "panel") };
        assert_eq!(broker.respond(&id, wide), Err(PromptRespondError::Unfit(ScopeNotOffered(id.clone()))));
        let other_mode = PromptAnswer { mode: Some(Mode::AcceptEdits), ..answer(true, "panel") };
        assert_eq!(
            broker.respond(&id, other_mode),
            Err(PromptRespondError::Unfit(ScopeNotOffered(id.clone())))
        );
        assert_eq!(broker.pending().len(), 1);
        assert!(matches!(
            broker.respond(&PermissionId::generate(), answer(true, "panel")),
            Err(PromptRespondError::Unknown(_))
        ));
    }
}
