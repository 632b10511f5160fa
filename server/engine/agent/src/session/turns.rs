//! From a prompt to its turn: what is handed in begins one or waits, and one turn runs at a time.
//!
//! Rule: a prompt is taken and its turn ends, or it is not taken; both are decided under the lock that closing takes as well.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::queue::{self, QUEUE_LIMIT};
use super::state::Waiting;
use super::{Session, SessionState, new_item, steering};
use crate::input::{Prompt, note};
use crate::turn::Ended;
use crate::turn::limit::TurnLimit;
use kode_base::ids::{CallId, ItemId, QueueId, TurnId};
use kode_config::command::{TypedCommand, is_unsaid};
use kode_model::Block;
use kode_record::event::{Event, ItemBody, QueuedPrompt, RunState};
use kode_record::options::TurnOptions;
use kode_record::record::Record;

/// What became of a prompt that was handed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// Its turn began.
    Started(TurnId),
    /// It waits behind a running turn.
    Queued(QueueId),
    /// The running turn is told it before its next model call.
    Steering {
        /// The turn.
        turn: TurnId,
        /// Its id as long as it waits.
        queue: QueueId,
    },
    /// It is a command that is answered at once, in this item, and begins no turn.
    Answered {
        /// The turn that the item belongs to: the running one where one runs.
        turn: TurnId,
        /// The item that comes.
        item: ItemId,
    },
}

/// Why a prompt was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// There is nothing in it.
    #[error("the prompt is empty")]
    Empty,
    /// Too many prompts wait.
    #[error("{QUEUE_LIMIT} prompts wait already; cancel the turn or wait for it")]
    QueueFull,
    /// Too much waits for the running turn.
    #[error("{} messages wait for the running turn already", steering::STEERING_LIMIT)]
    SteeringFull,
    /// The session was closed.
    #[error("the session is closed; load it again to go on")]
    Closed,
    /// The turn limit is zero.
    #[error("chat is disabled: the turn limit is 0")]
    ChatDisabled,
}

/// The turn that runs.
pub(super) struct ActiveTurn {
    pub(super) id: TurnId,
    pub(super) options: TurnOptions,
    pub(super) cancel: CancellationToken,
    pub(super) calls: HashMap<CallId, CancellationToken>,
    /// Ends the wait before a model is asked again.
    pub(super) hurry: Arc<Notify>,
}

impl Session {
    /// Hands in a prompt: its turn begins at once, or it waits behind the running one. Where prompts wait and none
    /// runs, it comes before them, and they go on after it.
    ///
    /// # Errors
    /// [`SubmitError`]; nothing was taken then.
    pub fn submit(&self, prompt: Prompt) -> Result<Submitted, SubmitError> {
        self.hand_in(prompt, false)
    }

    /// Takes a prompt: it begins a turn when none runs, and otherwise waits for one, or for the running one.
    pub(super) fn hand_in(&self, prompt: Prompt, steering: bool) -> Result<Submitted, SubmitError> {
        if prompt.is_empty() {
            return Err(SubmitError::Empty);
        }
        // A command is no word to the model, and neither is a note.
        let steering = steering && TypedCommand::read(&prompt.text).is_none() && note::of(&prompt).is_none();
        let is_free = is_unsaid(&prompt.text) && kode_config::command::compact::asked(&prompt.text).is_none();
        if !is_free && self.turn_limit_of(prompt.options, self.mode()) == TurnLimit::Disabled {
            return Err(SubmitError::ChatDisabled);
        }
        let content = content_of(&prompt.text);
        // Before the lock: what the editor holds must not be asked for under it.
        self.workspace.look_for_changes();
        self.gather_news();
        let mut state = self.state();
        // Under the lock that closing takes as well: a prompt is taken and its turn ends, or it is not taken.
        if self.cancel.is_cancelled() {
            return Err(SubmitError::Closed);
        }
        let mut active = self.active();
        let running = active.as_ref().map(|active| active.id.clone());
        if let Some((turn, item)) = self.begin_beside(running.as_ref(), &prompt.text) {
            if state.draft.is_some() {
                self.commit_locked(&mut state, Record::Drafted { draft: None });
            }
            return Ok(Submitted::Answered { turn, item });
        }
        let Some(turn) = running else {
            let turn = self.begin_turn(&mut state, &mut active, None, prompt, content);
            return Ok(Submitted::Started(turn));
        };
        if !steering && state.queue.len() >= QUEUE_LIMIT {
            return Err(SubmitError::QueueFull);
        }
        if steering && state.is_steering_full() {
            return Err(SubmitError::SteeringFull);
        }
        let Prompt { text, parts, options } = prompt;
        let prompt = QueuedPrompt { id: QueueId::generate(), text, options };
        let queue = prompt.id.clone();
        let record = Record::Queued { prompt, content, parts, steering };
        self.commit_locked(&mut state, record);
        self.sync_soon();
        Ok(if steering { Submitted::Steering { turn, queue } } else { Submitted::Queued(queue) })
    }

    /// Compacts the conversation at once, or after the prompts that wait; as if the user had typed `/compact`.
    ///
    /// # Errors
    /// [`SubmitError`].
    pub fn compact(&self, focus: Option<&str>) -> Result<Submitted, SubmitError> {
        let text = [kode_config::command::compact::COMMAND, focus.unwrap_or_default().trim()].join(" ");
        self.submit(Prompt { text: text.trim_end().to_owned(), ..Prompt::default() })
    }

    /// Cancels the running turn; the queue stays. False when none runs.
    pub fn cancel_turn(&self) -> bool {
        match self.active().as_ref() {
            Some(turn) => {
                turn.cancel.cancel();
                true
            }
            None => false,
        }
    }

    /// Ends the wait before the model is asked again. False when no turn runs.
    pub fn retry_now(&self) -> bool {
        match self.active().as_ref() {
            Some(turn) => {
                turn.hurry.notify_waiters();
                true
            }
            None => false,
        }
    }

    /// What ends the wait before the model is asked again.
    pub(crate) fn hurry(&self) -> Arc<Notify> {
        self.active().as_ref().map_or_else(Arc::default, |turn| Arc::clone(&turn.hurry))
    }

    /// Cancels the running turn if it is the one of that id. False when it is not.
    pub fn cancel_turn_of(&self, turn: &str) -> bool {
        match self.active().as_ref().filter(|active| active.id.as_str() == turn) {
            Some(turn) => {
                turn.cancel.cancel();
                true
            }
            None => false,
        }
    }

    /// Cancels one call of the running turn; its siblings go on. False when no such call is unfinished.
    pub fn cancel_call(&self, call: &CallId) -> bool {
        match self.active().as_ref().and_then(|turn| turn.calls.get(call)) {
            Some(cancel) => {
                cancel.cancel();
                true
            }
            None => false,
        }
    }

    pub(crate) fn register_call(&self, call: &CallId, parent: &CancellationToken) -> CancellationToken {
        let token = parent.child_token();
        if let Some(turn) = self.active().as_mut() {
            turn.calls.insert(call.clone(), token.clone());
        }
        token
    }

    pub(crate) fn forget_call(&self, call: &CallId) {
        if let Some(turn) = self.active().as_mut() {
            turn.calls.remove(call);
        }
    }

    pub(crate) fn begin_waiting(&self) {
        if self.waiting.fetch_add(1, Ordering::SeqCst) == 0 {
            self.publish(Event::StateChanged { state: RunState::Paused });
        }
    }

    pub(crate) fn end_waiting(&self) {
        if self.waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.publish(Event::StateChanged { state: RunState::Working });
        }
    }

    pub(super) fn active(&self) -> MutexGuard<'_, Option<ActiveTurn>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn run_state(&self) -> RunState {
        if self.active().is_none() {
            RunState::Ready
        } else if self.waiting.load(Ordering::SeqCst) > 0 {
            RunState::Paused
        } else {
            RunState::Working
        }
    }

    pub(super) fn begin_turn(
        &self,
        state: &mut SessionState,
        active: &mut Option<ActiveTurn>,
        queued: Option<QueueId>,
        mut prompt: Prompt,
        mut content: Vec<Block>,
    ) -> TurnId {
        if TypedCommand::read(&prompt.text).is_some() {
            // What the model is told of a command is found out in the turn; what waits to be told goes with that, or with
            // the next prompt.
            content.clear();
            if is_unsaid(&prompt.text) {
                prompt.parts.clear();
            }
        } else {
            let news = self.changes.news_for_prompt();
            content.splice(0..0, news.map(|text| Block::Text { text }));
        }
        let turn = TurnId::generate();
        let (cancel, calls, options) = (self.cancel.child_token(), HashMap::new(), prompt.options);
        *active = Some(ActiveTurn { id: turn.clone(), options, cancel, calls, hurry: Arc::default() });
        let item = new_item(&turn, ItemBody::user_message(prompt.text));
        let parts = prompt.parts;
        let record = Record::Prompt { turn: turn.clone(), queued, item, content, parts, options };
        self.commit_locked(state, record);
        // The receiver is gone only when the session is closed, and then the turn is cancelled as well.
        drop(self.turns.send(turn.clone()));
        turn
    }

    /// Ends a turn in the books and begins the next one that waits.
    pub(super) fn end_turn(&self, turn: &TurnId, ended: &Ended) {
        let reason = ended.reason;
        let mut state = self.state();
        let mut active = self.active();
        *active = None;
        let goes_on = queue::goes_on_after(reason) && !self.cancel.is_cancelled();
        let waiting = state.queue.len() + state.steering.len();
        if waiting > 0 && !goes_on {
            self.tell_paused(&mut state, turn, waiting);
        }
        self.commit_locked(&mut state, ended.record(turn));
        if goes_on {
            self.begin_next(&mut state, &mut active);
        }
    }

    pub(super) fn begin_next(&self, state: &mut SessionState, active: &mut Option<ActiveTurn>) {
        if let Some(Waiting { prompt, content, parts }) = state.queue.front().cloned() {
            let QueuedPrompt { id, text, options } = prompt;
            self.begin_turn(state, active, Some(id), Prompt { text, parts, options }, content);
        }
    }
}

/// The words of a prompt as the model gets them.
pub(super) fn content_of(text: &str) -> Vec<Block> {
    let is_said = !text.trim().is_empty();
    is_said.then(|| Block::Text { text: text.to_owned() }).into_iter().collect()
}
