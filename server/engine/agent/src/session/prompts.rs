//! From a prompt to its turn: a submitted prompt begins one or waits, and one turn runs at a time.
//!
//! Rule: a prompt is accepted and its turn ends, or it is not accepted; both are decided under the lock of the state, under
//! which a session is closed as well.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::core::Core;
use crate::edits::Edits;
use crate::prompt::{Prompt, PromptKind};
use crate::session::commands::CommandQueue;
use crate::state::queue::{STEERING_LIMIT, WaitingPrompt, continues_after};
use crate::state::{SessionState, new_item};
use crate::turn::TurnResult;
use crate::turn::limit::TurnLimit;
use crate::turn::turns::{ActiveTurn, Turns};
use kode_base::ids::{ItemId, QueueId, TurnId};
use kode_config::command::btw;
use kode_config::command::compact::COMMAND;
use kode_model::Block;
use kode_record::event::{ItemBody, NoticeLevel, QueuedPrompt};
use kode_record::record::Record;
use kode_text::workspace::Workspace;

/// The most prompts in a queue.
pub const QUEUE_LIMIT: usize = 100;

/// The result of submitting a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitOutcome {
    /// Its turn began.
    Started(TurnId),
    /// It waits behind a running turn.
    Queued(QueueId),
    /// The running turn gets it with its next model call.
    Steering {
        /// The turn.
        turn: TurnId,
        /// Its id as long as it waits.
        queue: QueueId,
    },
    /// It is a command that is answered at once, in this item, and begins no turn.
    Answered {
        /// The turn of the item: the running one where one runs.
        turn: TurnId,
        /// The item that comes.
        item: ItemId,
    },
}

/// Why a prompt was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// It has neither text nor attachments.
    #[error("the prompt is empty")]
    Empty,
    /// Too many prompts wait.
    #[error("{QUEUE_LIMIT} prompts wait already; cancel the turn or wait for it")]
    QueueFull,
    /// Too many messages wait for the running turn.
    #[error("{} messages wait for the running turn already", STEERING_LIMIT)]
    SteeringFull,
    /// The session was closed.
    #[error("the session is closed; load it again to continue")]
    Closed,
    /// The turn limit is zero.
    #[error("chat is disabled: the turn limit is 0")]
    ChatDisabled,
    /// It is a side question, which begins no turn and waits in no queue.
    #[error("`/btw` asks beside the conversation and is no prompt of it")]
    SideQuestion,
}

/// Accepts the prompts of a session and begins their turns.
pub struct Prompts {
    pub(super) core: Arc<Core>,
    pub(super) workspace: Arc<Workspace>,
    pub(super) edits: Arc<Edits>,
    pub(super) turns: Arc<Turns>,
    commands: Arc<CommandQueue>,
    /// The turns that the session's task runs.
    begun: mpsc::UnboundedSender<TurnId>,
}

/// The components that prompts are accepted with.
pub(super) struct PromptParts<'a> {
    pub(super) core: &'a Arc<Core>,
    pub(super) workspace: &'a Arc<Workspace>,
    pub(super) edits: &'a Arc<Edits>,
    pub(super) turns: &'a Arc<Turns>,
    pub(super) commands: &'a Arc<CommandQueue>,
}

impl Prompts {
    /// The receiver gets the turns that begin.
    pub(super) fn new(parts: &PromptParts<'_>) -> (Arc<Self>, mpsc::UnboundedReceiver<TurnId>) {
        let (begun, receiver) = mpsc::unbounded_channel();
        let prompts = Self {
            core: Arc::clone(parts.core),
            workspace: Arc::clone(parts.workspace),
            edits: Arc::clone(parts.edits),
            turns: Arc::clone(parts.turns),
            commands: Arc::clone(parts.commands),
            begun,
        };
        (Arc::new(prompts), receiver)
    }

    /// Submits a prompt: its turn begins at once, or it waits behind the running one. Where prompts wait and no turn runs, it
    /// comes before them, and they continue after it.
    ///
    /// # Errors
    /// [`SubmitError`]; the prompt is not accepted then.
    pub fn submit(&self, prompt: Prompt) -> Result<SubmitOutcome, SubmitError> {
        self.accept(prompt, false)
    }

    /// Submits a message to the running turn, or begins a turn with it when none runs.
    ///
    /// # Errors
    /// [`SubmitError`]; the prompt is not accepted then.
    pub fn steer(&self, prompt: Prompt) -> Result<SubmitOutcome, SubmitError> {
        self.accept(prompt, true)
    }

    /// Compacts the conversation at once, or after the prompts that wait; as if the user had typed `/compact`.
    ///
    /// # Errors
    /// [`SubmitError`].
    pub fn compact(&self, focus: Option<&str>) -> Result<SubmitOutcome, SubmitError> {
        let text = [COMMAND, focus.unwrap_or_default().trim()].join(" ");
        self.submit(Prompt::from(text.trim_end()))
    }

    fn accept(&self, prompt: Prompt, steering: bool) -> Result<SubmitOutcome, SubmitError> {
        if prompt.is_empty() {
            return Err(SubmitError::Empty);
        }
        if btw::asked(prompt.text()).is_some() {
            return Err(SubmitError::SideQuestion);
        }
        // A command or a note is no message to the model.
        let steering = steering && *prompt.kind() == PromptKind::Text;
        let mode = self.core.state().config.mode;
        let is_limited = !prompt.kind().is_answered_without_model();
        if is_limited && self.turns.limit_of(&prompt.options(), mode) == TurnLimit::Disabled {
            return Err(SubmitError::ChatDisabled);
        }
        let content = prompt.content();
        // Before the lock: the editor must not be asked for its texts under it.
        self.workspace.look_for_changes();
        self.edits.gather_news();
        let mut state = self.core.state();
        if self.core.is_closing() {
            return Err(SubmitError::Closed);
        }
        let mut active = self.turns.active();
        let running = active.as_ref().map(|active| active.id.clone());
        if let Some((turn, item)) = self.commands.answer_at_once(running.as_ref(), prompt.kind()) {
            if state.draft.is_some() {
                self.core.commit_to(&mut state, Record::Drafted { draft: None });
            }
            return Ok(SubmitOutcome::Answered { turn, item });
        }
        let Some(turn) = running else {
            let turn = self.begin_turn(&mut state, &mut active, None, prompt, content);
            return Ok(SubmitOutcome::Started(turn));
        };
        if !steering && state.queue.len() >= QUEUE_LIMIT {
            return Err(SubmitError::QueueFull);
        }
        if steering && state.queue.is_steering_full() {
            return Err(SubmitError::SteeringFull);
        }
        let options = prompt.options();
        let (text, parts) = prompt.into_input();
        let prompt = QueuedPrompt { id: QueueId::generate(), text, options };
        let queue = prompt.id.clone();
        let record = Record::Queued { prompt, content, parts, steering };
        self.core.commit_to(&mut state, record);
        self.core.sync_soon();
        Ok(if steering { SubmitOutcome::Steering { turn, queue } } else { SubmitOutcome::Queued(queue) })
    }

    pub(super) fn begin_turn(
        &self,
        state: &mut SessionState,
        active: &mut Option<ActiveTurn>,
        queued: Option<QueueId>,
        prompt: Prompt,
        mut content: Vec<Block>,
    ) -> TurnId {
        let (is_command, is_silent) = (prompt.kind().is_command(), prompt.kind().is_silent());
        let options = prompt.options();
        let (text, mut parts) = prompt.into_input();
        if is_command {
            // The turn determines the text of a command for the model; news wait for it, or for the next prompt.
            content.clear();
            if is_silent {
                parts.clear();
            }
        } else {
            let news = self.edits.take_news();
            content.splice(0..0, news.map(|text| Block::Text { text }));
        }
        let turn = TurnId::generate();
        *active = Some(ActiveTurn::new(&self.core, turn.clone(), options.clone()));
        let item = new_item(&turn, ItemBody::user_message(text));
        let record = Record::Prompt { turn: turn.clone(), queued, item, content, parts, options };
        self.core.commit_to(state, record);
        self.run(turn.clone());
        turn
    }

    /// Has the session's task run a turn.
    pub(super) fn run(&self, turn: TurnId) {
        // The receiver is gone only when the session is closed, and then the turn is cancelled as well.
        drop(self.begun.send(turn));
    }

    /// Records the end of a turn and begins the next one that waits.
    pub(super) fn end_turn(&self, turn: &TurnId, outcome: &TurnResult) {
        let mut state = self.core.state();
        let mut active = self.turns.active();
        *active = None;
        let continues = continues_after(outcome.reason) && !self.core.is_closing();
        let waiting = state.queue.total();
        if waiting > 0 && !continues {
            self.notify_paused(&mut state, turn, waiting);
        }
        self.core.commit_to(&mut state, outcome.record(turn));
        if continues && let Some(WaitingPrompt { id, prompt, content }) = state.queue.front().cloned() {
            self.begin_turn(&mut state, &mut active, Some(id), prompt, content);
        }
    }

    /// Adds a notice that the waiting prompts do not begin by themselves after this turn.
    fn notify_paused(&self, state: &mut SessionState, turn: &TurnId, waiting: usize) {
        let text = match waiting {
            1 => "One prompt still waits; it does not start by itself.".to_owned(),
            _ => format!("{waiting} prompts still wait; they do not start by themselves."),
        };
        let hint = "Send a prompt and they run after it, or promote or remove them.".to_owned();
        let body = ItemBody::Notice { level: NoticeLevel::Info, text, hint: Some(hint), kind: None };
        self.core.add_item(state, turn, body);
    }

    /// Whether the session's task has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.begun.is_closed()
    }

    /// Waits until the session's task has ended.
    pub(super) async fn closed(&self) {
        self.begun.closed().await;
    }
}
