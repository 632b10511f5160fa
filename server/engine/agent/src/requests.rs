//! The requests of a session to its user: permission prompts and questions.
//!
//! Rule: while a request waits the session is paused, and nothing but the call or the turn that made it waits with it. A
//! request that waits when the server ends is made again when the session is resumed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::core::Core;
use kode_base::broker::BrokerOutcome;
use kode_base::ids::{PermissionId, QuestionId};
use kode_base::proposed::ProposedDiagnostics;
use kode_base::question::{Question, QuestionBroker, Reply, ReplyError};
use kode_permission::{PermissionBroker, PermissionPrompt, PromptAnswer, PromptRespondError};
use kode_record::event::{Event, EventLog, RunState};

/// The requests of a session to its user.
pub struct UserRequests {
    core: Arc<Core>,
    permissions: PermissionBroker,
    questions: QuestionBroker,
    /// The number of requests that a call or turn waits for; the session is paused while there are any.
    waiting: AtomicUsize,
    /// Whether the user has answered since the session was resumed, or was asked nothing then.
    is_attended: watch::Sender<bool>,
    /// Whether requests that wait are kept for the next run of the session.
    is_kept: AtomicBool,
}

impl UserRequests {
    pub(crate) fn new(core: &Arc<Core>) -> Arc<Self> {
        let events = core.events();
        Arc::new(Self {
            core: Arc::clone(core),
            permissions: PermissionBroker::new(Arc::<EventLog>::clone(events)),
            questions: QuestionBroker::new(Arc::<EventLog>::clone(events)),
            waiting: AtomicUsize::new(0),
            is_attended: watch::Sender::new(true),
            is_kept: AtomicBool::new(false),
        })
    }

    /// The permission prompts that wait, oldest first.
    #[must_use]
    pub fn permissions(&self) -> Vec<PermissionPrompt> {
        self.permissions.pending()
    }

    /// The questions that wait, oldest first.
    #[must_use]
    pub fn questions(&self) -> Vec<Question> {
        self.questions.pending()
    }

    /// Answers a permission prompt.
    ///
    /// # Errors
    /// [`PromptRespondError`], above all when another client was first.
    pub fn respond(&self, id: &PermissionId, answer: PromptAnswer) -> Result<(), PromptRespondError> {
        self.permissions.respond(id, answer)
    }

    /// Answers a question.
    ///
    /// # Errors
    /// [`ReplyError`], above all when another client was first.
    pub fn reply(&self, id: &QuestionId, reply: Reply) -> Result<(), ReplyError> {
        self.questions.respond(id, reply)
    }

    /// Asks for a permission; `None` when `cancel` fires first.
    pub(crate) async fn ask_permission(
        &self,
        prompt: PermissionPrompt,
        cancel: &CancellationToken,
    ) -> Option<PromptAnswer> {
        self.begin_waiting();
        let answered = self.permissions.ask(prompt, cancel).await;
        self.end_waiting(answered)
    }

    /// Adds to a prompt that waits what its change would add and remove.
    pub(crate) fn report_diagnostics(&self, id: &PermissionId, diagnostics: ProposedDiagnostics) {
        self.permissions.update(id, |prompt| prompt.diagnostics = Some(diagnostics));
    }

    /// Asks a question; `None` when `cancel` fires first.
    pub(crate) async fn ask_question(&self, question: Question, cancel: &CancellationToken) -> Option<Reply> {
        self.begin_waiting();
        let answered = self.questions.ask(question, cancel).await;
        self.end_waiting(answered)
    }

    /// Whether a call or turn waits for the user.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Whether the user has answered since the session was resumed, or was asked nothing then.
    pub(crate) fn is_attended(&self) -> bool {
        *self.is_attended.borrow()
    }

    /// Waits until [`Self::is_attended`].
    pub(crate) async fn attended(&self) {
        // The sender lives as long as the session.
        drop(self.is_attended.subscribe().wait_for(|is_attended| *is_attended).await);
    }

    /// Holds back a resumed turn until the user answers.
    pub(crate) fn hold_until_attended(&self) {
        self.is_attended.send_replace(false);
    }

    /// Ends the hold of [`Self::hold_until_attended`], because the resumed turn is over. The user starts the next turn.
    pub(crate) fn end_hold(&self) {
        self.is_attended.send_replace(true);
    }

    /// Keeps requests that wait for the next run of the session, because the server ends.
    pub(crate) fn keep_for_next_run(&self) {
        self.is_kept.store(true, Ordering::SeqCst);
    }

    /// Whether requests that wait are made again in the next run of the session.
    pub(crate) fn is_kept_for_next_run(&self) -> bool {
        self.is_kept.load(Ordering::SeqCst)
    }

    fn begin_waiting(&self) {
        if self.waiting.fetch_add(1, Ordering::SeqCst) == 0 {
            self.core.publish(Event::StateChanged { state: RunState::Paused });
        }
    }

    fn end_waiting<A>(&self, answered: BrokerOutcome<A>) -> Option<A> {
        if self.waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.core.publish(Event::StateChanged { state: RunState::Working });
        }
        match answered {
            BrokerOutcome::By(answer) => {
                self.is_attended.send_if_modified(|is_attended| !std::mem::replace(is_attended, true));
                Some(answer)
            }
            BrokerOutcome::Cancelled => None,
        }
    }
}
