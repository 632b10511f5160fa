//! The prompts that wait for a turn of their own: edited, removed, moved, promoted.
//!
//! Rule: submitted prompts begin in their order, each once, and only after a turn that came to its end. After a cancel, a
//! fault or a restart the queue waits for the user: a new prompt begins at once then, and the queue continues after it.

use crate::session::prompts::{Prompts, SubmitOutcome};
use crate::state::queue::{QueueError, WaitingPrompt};
use crate::turn::steering::change_queue;
use kode_base::ids::QueueId;
use kode_record::prompt::PromptPart;
use kode_record::queue::QueueChange;
use kode_record::record::Record;

impl Prompts {
    /// Gives a waiting prompt another text. Without `parts` it keeps its attachments.
    ///
    /// # Errors
    /// [`QueueError`]; the queue stays as it is then.
    pub fn edit_queued(
        &self,
        id: &QueueId,
        text: &str,
        parts: Option<Vec<PromptPart>>,
    ) -> Result<(), QueueError> {
        change_queue(&self.core, |queue| queue.edit(id, text, parts))
    }

    /// Removes a waiting prompt.
    ///
    /// # Errors
    /// [`QueueError`]; the queue stays as it is then.
    pub fn remove_queued(&self, id: &QueueId) -> Result<(), QueueError> {
        change_queue(&self.core, |queue| queue.removal(id))
    }

    /// Moves a prompt of the queue before another one, or to its end.
    ///
    /// # Errors
    /// [`QueueError`]; the queue stays as it is then.
    pub fn move_queued(&self, id: &QueueId, before: Option<&QueueId>) -> Result<(), QueueError> {
        change_queue(&self.core, |queue| queue.placement(id, before))
    }

    /// Promotes a prompt of the queue: the running turn gets it, or it begins its own when none runs.
    ///
    /// # Errors
    /// [`QueueError`]; the queue stays as it is then.
    pub fn promote_queued(&self, id: &QueueId) -> Result<SubmitOutcome, QueueError> {
        // Before the lock: the editor must not be asked for its texts under it.
        self.workspace.look_for_changes();
        self.edits.gather_news();
        let mut state = self.core.state();
        if self.core.is_closing() {
            return Err(QueueError::Closed);
        }
        let waiting = state.queue.find(id)?.clone();
        let mut active = self.turns.active();
        let Some(turn) = active.as_ref().map(|active| active.id.clone()) else {
            let WaitingPrompt { id, prompt, content } = waiting;
            let turn = self.begin_turn(&mut state, &mut active, Some(id), prompt, content);
            return Ok(SubmitOutcome::Started(turn));
        };
        if !state.queue.is_steering(id) {
            // A command is no message to the model: it begins next.
            let is_command = waiting.prompt.kind().is_command();
            if !is_command && state.queue.is_steering_full() {
                return Err(QueueError::Full);
            }
            let change = match state.queue.front().filter(|_| is_command) {
                Some(first) => QueueChange::Moved { id: id.clone(), before: Some(first.id.clone()) },
                None => QueueChange::Promoted { id: id.clone() },
            };
            self.core.commit_to(&mut state, Record::QueueChanged { change });
        }
        Ok(if state.queue.is_steering(id) {
            SubmitOutcome::Steering { turn, queue: id.clone() }
        } else {
            SubmitOutcome::Queued(id.clone())
        })
    }
}
