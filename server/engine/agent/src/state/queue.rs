//! The prompts that wait: for a turn of their own, or to be given to the running turn.
//!
//! Rule: a prompt begins once, in its order. What the running turn was not given any more waits for a turn of its own,
//! before all others.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::prompt::Prompt;
use kode_base::ids::QueueId;
use kode_model::Block;
use kode_record::event::{Event, QueuedPrompt, TurnEnd};
use kode_record::prompt::PromptPart;
use kode_record::queue::QueueChange;

/// The most ids of started prompts that are remembered.
const MAX_STARTED: usize = 200;

/// The most prompts that wait for the running turn.
pub const STEERING_LIMIT: usize = 20;

/// Why the queue was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// No waiting prompt has that id.
    #[error("no prompt `{0}` waits")]
    Unknown(QueueId),
    /// Its turn has started.
    #[error("the prompt `{0}` has started")]
    Begun(QueueId),
    /// It has neither text nor parts.
    #[error("the prompt is empty")]
    Empty,
    /// [`STEERING_LIMIT`] prompts wait for the running turn.
    #[error("too much waits for the running turn already")]
    Full,
    /// The session was closed.
    #[error("the session is closed; load it again to continue")]
    Closed,
}

/// A prompt that waits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WaitingPrompt {
    /// Its id as long as it waits.
    pub id: QueueId,
    /// The prompt. Its attachments are read when it begins.
    pub prompt: Prompt,
    /// Its text as the model gets it.
    pub content: Vec<Block>,
}

/// The prompts that wait.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Queue {
    /// Prompts that wait for a turn of their own, next first.
    waiting: VecDeque<WaitingPrompt>,
    /// Prompts for the running turn, next first.
    steering: VecDeque<WaitingPrompt>,
    /// The newest prompts that waited and have started, oldest first.
    started: VecDeque<QueueId>,
}

/// Whether the next prompt begins by itself after a turn that ended for this reason.
pub(crate) fn continues_after(reason: TurnEnd) -> bool {
    match reason {
        TurnEnd::EndTurn | TurnEnd::MaxTokens | TurnEnd::Refusal => true,
        // After a cancel the user decides what runs next; after a fault the next prompt would most likely fail as well.
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

impl WaitingPrompt {
    /// The prompt of a record.
    pub(super) fn new(queued: QueuedPrompt, content: Vec<Block>, parts: Vec<PromptPart>) -> Self {
        let QueuedPrompt { id, text, options } = queued;
        Self { id, prompt: Prompt::new(text, parts).with_options(options), content }
    }

    /// The prompt as clients see it.
    fn queued(&self) -> QueuedPrompt {
        let (text, options) = (self.prompt.text().to_owned(), self.prompt.options());
        QueuedPrompt { id: self.id.clone(), text, options }
    }

    /// Its content with another text.
    fn with_text(&self, text: &str) -> Vec<Block> {
        let mut content = self.content.clone();
        let is_text = |block: &Block| matches!(block, Block::Text { text } if text == self.prompt.text());
        if let Some(at) = content.iter().rposition(is_text) {
            content.remove(at);
        }
        if !text.trim().is_empty() {
            content.push(Block::Text { text: text.to_owned() });
        }
        content
    }
}

impl Queue {
    /// Adds a prompt, for the running turn or for one of its own.
    pub(super) fn add(&mut self, waiting: WaitingPrompt, is_steering: bool) {
        let end = if is_steering { &mut self.steering } else { &mut self.waiting };
        end.push_back(waiting);
    }

    /// Applies a change of the user's.
    pub(super) fn change(&mut self, change: QueueChange) {
        match change {
            QueueChange::Edited { id, text, content, parts } => {
                let mut all = self.waiting.iter_mut().chain(&mut self.steering);
                if let Some(waiting) = all.find(|waiting| waiting.id == id) {
                    waiting.prompt = Prompt::new(text, parts).with_options(waiting.prompt.options());
                    waiting.content = content;
                }
            }
            QueueChange::Removed { id } => self.remove(&id),
            QueueChange::Moved { id, before } => {
                if before.as_ref() == Some(&id) {
                    return;
                }
                let Some(moved) = self.position(&id).and_then(|at| self.waiting.remove(at)) else { return };
                let end = self.waiting.len();
                let at = before.as_ref().map_or(end, |before| self.position(before).unwrap_or(end));
                self.waiting.insert(at, moved);
            }
            QueueChange::Promoted { id } => {
                let promoted = self.position(&id).and_then(|at| self.waiting.remove(at));
                self.steering.extend(promoted);
            }
        }
    }

    /// Notes that a waiting prompt has started.
    pub(super) fn start(&mut self, id: &QueueId) {
        self.remove(id);
        if self.started.len() == MAX_STARTED {
            self.started.pop_front();
        }
        self.started.push_back(id.clone());
    }

    /// Returns the prompts of a turn that has ended to the front of the queue.
    pub(super) fn return_steering(&mut self) {
        while let Some(waiting) = self.steering.pop_back() {
            self.waiting.push_front(waiting);
        }
    }

    /// The next prompt.
    #[must_use]
    pub fn front(&self) -> Option<&WaitingPrompt> {
        self.waiting.front()
    }

    /// The next prompt for the running turn.
    #[must_use]
    pub fn front_steering(&self) -> Option<&WaitingPrompt> {
        self.steering.front()
    }

    /// The number of prompts that wait for a turn of their own.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no prompt waits for a turn of its own.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether prompts wait for the running turn.
    #[must_use]
    pub fn has_steering(&self) -> bool {
        !self.steering.is_empty()
    }

    /// The number of all prompts that wait.
    #[must_use]
    pub fn total(&self) -> usize {
        self.waiting.len() + self.steering.len()
    }

    /// Whether no more prompts may wait for the running turn.
    #[must_use]
    pub fn is_steering_full(&self) -> bool {
        self.steering.len() >= STEERING_LIMIT
    }

    /// The prompts that wait for a turn of their own, as clients see them.
    #[must_use]
    pub fn prompts(&self) -> Vec<QueuedPrompt> {
        self.waiting.iter().map(WaitingPrompt::queued).collect()
    }

    /// The prompts for the running turn, as clients see them.
    #[must_use]
    pub fn steering(&self) -> Vec<QueuedPrompt> {
        self.steering.iter().map(WaitingPrompt::queued).collect()
    }

    /// The event with all waiting prompts.
    pub(super) fn event(&self, is_running: bool) -> Event {
        let paused = !is_running && !self.is_empty();
        Event::QueueChanged { queue: self.prompts(), steering: self.steering(), paused }
    }

    /// The waiting prompt of an id.
    ///
    /// # Errors
    /// [`QueueError::Unknown`] and [`QueueError::Begun`].
    pub(crate) fn find(&self, id: &QueueId) -> Result<&WaitingPrompt, QueueError> {
        let mut all = self.waiting.iter().chain(&self.steering);
        all.find(|waiting| waiting.id == *id).ok_or_else(|| self.missing(id))
    }

    /// Whether a prompt waits for the running turn.
    pub(crate) fn is_steering(&self, id: &QueueId) -> bool {
        self.steering.iter().any(|waiting| waiting.id == *id)
    }

    /// The change that gives a waiting prompt another text; without `parts` it keeps its attachments.
    ///
    /// # Errors
    /// As [`Self::find`], and [`QueueError::Empty`].
    pub(crate) fn edit(
        &self,
        id: &QueueId,
        text: &str,
        parts: Option<Vec<PromptPart>>,
    ) -> Result<QueueChange, QueueError> {
        let waiting = self.find(id)?;
        let content = if parts.is_some() { Prompt::from(text).content() } else { waiting.with_text(text) };
        let prompt = Prompt::new(text, parts.unwrap_or_else(|| waiting.prompt.parts().to_vec()));
        if prompt.is_empty() && content.is_empty() {
            return Err(QueueError::Empty);
        }
        let (text, parts) = prompt.into_input();
        Ok(QueueChange::Edited { id: id.clone(), text, content, parts })
    }

    /// The change that removes a waiting prompt.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub(crate) fn removal(&self, id: &QueueId) -> Result<QueueChange, QueueError> {
        self.find(id)?;
        Ok(QueueChange::Removed { id: id.clone() })
    }

    /// The change that moves a prompt before another one, or to the end.
    ///
    /// # Errors
    /// As [`Self::find`], also for prompts of the running turn.
    pub(crate) fn placement(
        &self,
        id: &QueueId,
        before: Option<&QueueId>,
    ) -> Result<QueueChange, QueueError> {
        for id in std::iter::once(id).chain(before) {
            self.position(id).ok_or_else(|| self.missing(id))?;
        }
        Ok(QueueChange::Moved { id: id.clone(), before: before.cloned() })
    }

    fn remove(&mut self, id: &QueueId) {
        self.waiting.retain(|waiting| waiting.id != *id);
        self.steering.retain(|waiting| waiting.id != *id);
    }

    fn position(&self, id: &QueueId) -> Option<usize> {
        self.waiting.iter().position(|waiting| waiting.id == *id)
    }

    fn missing(&self, id: &QueueId) -> QueueError {
        if self.started.contains(id) {
            QueueError::Begun(id.clone())
        } else {
            QueueError::Unknown(id.clone())
        }
    }
}
