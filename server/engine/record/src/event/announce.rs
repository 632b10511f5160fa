//! The requests of brokers, as events of the session.
//!
//! Rule: everything that is asked is one event, and its end is another.

use crate::event::{Event, EventLog};
use kode_base::broker::BrokerListener;
use kode_base::question::{Question, Reply};
use kode_permission::{PermissionPrompt, PromptAnswer};

impl BrokerListener<PermissionPrompt> for EventLog {
    fn asked(&self, prompt: &PermissionPrompt) {
        self.publish(Event::PermissionRequired { prompt: Box::new(prompt.clone()) });
    }

    fn updated(&self, prompt: &PermissionPrompt) {
        if let Some(diagnostics) = prompt.diagnostics.clone() {
            self.publish(Event::PermissionUpdated { id: prompt.id.clone(), diagnostics });
        }
    }

    fn closed(&self, prompt: &PermissionPrompt, answer: Option<&PromptAnswer>) {
        self.publish(Event::PermissionDecided { decision: prompt.decision(answer) });
    }
}

impl BrokerListener<Question> for EventLog {
    fn asked(&self, question: &Question) {
        self.publish(Event::QuestionAsked { question: Box::new(question.clone()) });
    }

    fn closed(&self, question: &Question, reply: Option<&Reply>) {
        self.publish(Event::QuestionAnswered { resolved: Box::new(question.resolved(reply)) });
    }
}
