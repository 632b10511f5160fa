//! The prompts that wait for a turn of their own: edited, dropped, moved, sent ahead.
//!
//! Rule: what was handed in begins in its order, each once, and only after a turn that came to its end: a cancel, a fault
//! and a restart leave the queue to a person. A new prompt begins at once then, and the queue goes on after it.

use crate::input::Prompt;
use crate::session::state::Waiting;
use crate::session::turns::content_of;
use crate::session::{Session, SessionState, Submitted, new_item};
use kode_base::ids::{QueueId, TurnId};
use kode_config::command::TypedCommand;
use kode_model::Block;
use kode_record::event::{Event, ItemBody, NoticeLevel, QueuedPrompt, TurnEnd};
use kode_record::prompt::PromptPart;
use kode_record::queue::QueueChange;
use kode_record::record::Record;

/// So many prompts may wait in a queue.
pub const QUEUE_LIMIT: usize = 100;

/// So many ids of prompts that have begun are remembered.
const MAX_BEGUN: usize = 200;

/// Why the queue was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// Nothing of that id waits.
    #[error("no prompt `{0}` waits")]
    Unknown(QueueId),
    /// It has begun.
    #[error("the prompt `{0}` has begun")]
    Begun(QueueId),
    /// There is nothing in it.
    #[error("the prompt is empty")]
    Empty,
    /// Too much waits for the running turn.
    #[error("too much waits for the running turn already")]
    Full,
    /// The session was closed.
    #[error("the session is closed; load it again to go on")]
    Closed,
}

impl Session {
    /// Lets something that waits say something else. Without `parts` what went with it before still does.
    ///
    /// # Errors
    /// [`QueueError`]; nothing was changed then.
    pub fn edit_queued(
        &self,
        id: &QueueId,
        text: &str,
        parts: Option<Vec<PromptPart>>,
    ) -> Result<(), QueueError> {
        self.change_queue(|state| {
            let waiting = state.waiting(id).ok_or_else(|| state.not_waiting(id))?;
            let content = if parts.is_some() { content_of(text) } else { waiting.with_text(text) };
            let prompt =
                Prompt { parts: parts.unwrap_or_else(|| waiting.parts.clone()), ..Prompt::text(text) };
            if prompt.is_empty() && content.is_empty() {
                return Err(QueueError::Empty);
            }
            Ok(QueueChange::Edited { id: id.clone(), text: prompt.text, content, parts: prompt.parts })
        })
    }

    /// Drops something that waits.
    ///
    /// # Errors
    /// [`QueueError`]; nothing was changed then.
    pub fn remove_queued(&self, id: &QueueId) -> Result<(), QueueError> {
        self.change_queue(|state| {
            state.waiting(id).ok_or_else(|| state.not_waiting(id))?;
            Ok(QueueChange::Removed { id: id.clone() })
        })
    }

    /// Puts a prompt of the queue before another one, or at its end.
    ///
    /// # Errors
    /// [`QueueError`]; nothing was changed then.
    pub fn move_queued(&self, id: &QueueId, before: Option<&QueueId>) -> Result<(), QueueError> {
        self.change_queue(|state| {
            for id in std::iter::once(id).chain(before) {
                state.place(id).ok_or_else(|| state.not_waiting(id))?;
            }
            Ok(QueueChange::Moved { id: id.clone(), before: before.cloned() })
        })
    }

    /// Sends a prompt of the queue ahead: the running turn is told it, or it begins its own when none runs.
    ///
    /// # Errors
    /// [`QueueError`]; nothing was changed then.
    pub fn promote_queued(&self, id: &QueueId) -> Result<Submitted, QueueError> {
        // Before the lock: what the editor holds must not be asked for under it.
        self.workspace.look_for_changes();
        self.gather_news();
        let mut state = self.state();
        if self.cancel.is_cancelled() {
            return Err(QueueError::Closed);
        }
        let waiting = state.waiting(id).cloned().ok_or_else(|| state.not_waiting(id))?;
        let mut active = self.active();
        let Some(turn) = active.as_ref().map(|active| active.id.clone()) else {
            let Waiting { prompt: QueuedPrompt { id, text, options }, content, parts } = waiting;
            let prompt = Prompt { text, parts, options };
            let turn = self.begin_turn(&mut state, &mut active, Some(id), prompt, content);
            return Ok(Submitted::Started(turn));
        };
        if state.place(id).is_some() {
            // A command is no word to the model: it is the next one that begins.
            let is_command = TypedCommand::read(&waiting.prompt.text).is_some();
            if !is_command && state.is_steering_full() {
                return Err(QueueError::Full);
            }
            let change = match state.queue.front().filter(|_| is_command) {
                Some(first) => QueueChange::Moved { id: id.clone(), before: Some(first.prompt.id.clone()) },
                None => QueueChange::Promoted { id: id.clone() },
            };
            self.commit_locked(&mut state, Record::QueueChanged { change });
        }
        let is_steering = state.steering.iter().any(|waiting| waiting.prompt.id == *id);
        Ok(if is_steering {
            Submitted::Steering { turn, queue: id.clone() }
        } else {
            Submitted::Queued(id.clone())
        })
    }

    /// Says that the prompts which wait do not begin by themselves after this turn.
    pub(super) fn tell_paused(&self, state: &mut SessionState, turn: &TurnId, waiting: usize) {
        let text = match waiting {
            1 => "One prompt still waits; it does not begin by itself.".to_owned(),
            _ => format!("{waiting} prompts still wait; they do not begin by themselves."),
        };
        let hint = "Write something and they go on after it; or send one ahead, or drop them.".to_owned();
        let body = ItemBody::Notice { level: NoticeLevel::Info, text, hint: Some(hint), kind: None };
        let item = new_item(turn, body);
        self.commit_locked(state, Record::Item { item, streamed: false });
    }

    fn change_queue(
        &self,
        change: impl FnOnce(&SessionState) -> Result<QueueChange, QueueError>,
    ) -> Result<(), QueueError> {
        let mut state = self.state();
        if self.cancel.is_cancelled() {
            return Err(QueueError::Closed);
        }
        let change = change(&state)?;
        self.commit_locked(&mut state, Record::QueueChanged { change });
        Ok(())
    }
}

/// Whether the next prompt begins by itself after a turn that ended like this.
pub(super) fn goes_on_after(reason: TurnEnd) -> bool {
    match reason {
        TurnEnd::EndTurn | TurnEnd::MaxTokens | TurnEnd::Refusal => true,
        // What the user has stopped they do not want to see go on with something else, and where one prompt fails the
        // next one would most likely fail as well.
        TurnEnd::Cancelled
        | TurnEnd::NotChosen
        | TurnEnd::MaxTurns
        | TurnEnd::Budget
        | TurnEnd::Repetition
        | TurnEnd::IncompleteIntent
        | TurnEnd::ChatDisabled
        | TurnEnd::Hook
        | TurnEnd::Error => false,
    }
}

impl Waiting {
    /// What it says to the model, with other words.
    fn with_text(&self, text: &str) -> Vec<Block> {
        let mut content = self.content.clone();
        let words = |block: &Block| matches!(block, Block::Text { text } if *text == self.prompt.text);
        if let Some(place) = content.iter().rposition(words) {
            content.remove(place);
        }
        if !text.trim().is_empty() {
            content.push(Block::Text { text: text.to_owned() });
        }
        content
    }
}

impl SessionState {
    /// Folds a change of what waits.
    pub(super) fn change_queue(&mut self, change: QueueChange) {
        match change {
            QueueChange::Edited { id, text, content, parts } => {
                let mut all = self.queue.iter_mut().chain(&mut self.steering);
                if let Some(waiting) = all.find(|waiting| waiting.prompt.id == id) {
                    waiting.prompt.text = text;
                    (waiting.content, waiting.parts) = (content, parts);
                }
            }
            QueueChange::Removed { id } => self.forget_waiting(&id),
            QueueChange::Moved { id, before } => {
                if before.as_ref() == Some(&id) {
                    return;
                }
                let Some(moved) = self.place(&id).and_then(|place| self.queue.remove(place)) else { return };
                let end = self.queue.len();
                let place = before.as_ref().map_or(end, |before| self.place(before).unwrap_or(end));
                self.queue.insert(place, moved);
            }
            QueueChange::Promoted { id } => {
                let promoted = self.place(&id).and_then(|place| self.queue.remove(place));
                self.steering.extend(promoted);
            }
        }
    }

    /// Notes that something that waited has begun.
    pub(super) fn note_begun(&mut self, id: &QueueId) {
        self.forget_waiting(id);
        if self.begun.len() == MAX_BEGUN {
            self.begun.pop_front();
        }
        self.begun.push_back(id.clone());
    }

    /// What the running turn was not told any more waits for one of its own, before all else.
    pub(super) fn return_steering(&mut self) {
        while let Some(waiting) = self.steering.pop_back() {
            self.queue.push_front(waiting);
        }
    }

    /// The queue as clients see it.
    #[must_use]
    pub fn queued(&self) -> Vec<QueuedPrompt> {
        self.queue.iter().map(|waiting| waiting.prompt.clone()).collect()
    }

    /// What waits for the running turn, as clients see it.
    #[must_use]
    pub fn steering(&self) -> Vec<QueuedPrompt> {
        self.steering.iter().map(|waiting| waiting.prompt.clone()).collect()
    }

    /// Whether prompts wait and nothing begins them by itself.
    #[must_use]
    pub fn is_queue_paused(&self) -> bool {
        self.turn.is_none() && !self.queue.is_empty()
    }

    /// The event that tells what waits.
    pub(super) fn queue_event(&self) -> Event {
        Event::QueueChanged {
            queue: self.queued(),
            steering: self.steering(),
            paused: self.is_queue_paused(),
        }
    }

    fn forget_waiting(&mut self, id: &QueueId) {
        self.queue.retain(|waiting| waiting.prompt.id != *id);
        self.steering.retain(|waiting| waiting.prompt.id != *id);
    }

    fn waiting(&self, id: &QueueId) -> Option<&Waiting> {
        self.queue.iter().chain(&self.steering).find(|waiting| waiting.prompt.id == *id)
    }

    fn place(&self, id: &QueueId) -> Option<usize> {
        self.queue.iter().position(|waiting| waiting.prompt.id == *id)
    }

    fn not_waiting(&self, id: &QueueId) -> QueueError {
        if self.begun.contains(id) { QueueError::Begun(id.clone()) } else { QueueError::Unknown(id.clone()) }
    }
}
