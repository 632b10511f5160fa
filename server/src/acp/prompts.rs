//! The prompts of a session that wait for their answers.
//!
//! Rule: every prompt is answered once, by the end of its turn and after all updates of that turn. A prompt that is cancelled
//! before its turn begins is answered at once.

use agent_client_protocol_schema::v1::{Error, PromptResponse, RequestId, StopReason};
use kode_engine::agent::session::side::SideAnswer;
use kode_engine::base::ids::{ItemId, QueueId, TurnId};
use kode_engine::model::Usage;
use kode_engine::model::price::Cost;
use kode_engine::record::event::{NoticeKind, TurnEnd};
use serde_json::{Value, json};

use super::error;
use super::updates::meta;

/// The prompts that wait for their answers, oldest first.
#[derive(Debug, Default)]
pub(super) struct PromptTable {
    entries: Vec<WaitingRequest>,
}

/// A prompt that waits for its answer.
#[derive(Debug)]
struct WaitingRequest {
    id: RequestId,
    place: TurnSlot,
    /// How it was cancelled, once it was.
    cancelled: Option<PromptCancel>,
}

/// Where a prompt is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TurnSlot {
    /// It is not submitted yet.
    Preparing,
    /// Its turn runs.
    Turn(TurnId),
    /// It waits behind a running turn.
    Queued(QueueId),
    /// The running turn gets it with its next model call.
    Steering(TurnId, QueueId),
    /// It is a command that is answered by this item.
    Answer(ItemId),
    /// It is a command that restores files; their resolution ends it.
    Restoring,
}

/// How a prompt was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PromptCancel {
    /// By `session/cancel`: it is answered with the stop reason `cancelled`.
    Session,
    /// By `$/cancel_request`: it is answered with an error.
    Request,
}

/// The end of a turn.
#[derive(Clone, Debug)]
pub(super) struct TurnSummary {
    pub(super) reason: TurnEnd,
    pub(super) usage: Usage,
    pub(super) cost: Cost,
    pub(super) duration_ms: u64,
    /// Why it failed, for people, where a notice said so.
    pub(super) failure: Option<(String, Option<NoticeKind>)>,
}

/// A prompt and its answer.
pub(super) type PromptAnswerPair = (RequestId, Result<Value, Error>);

impl PromptTable {
    /// Adds a prompt that is being prepared.
    pub(super) fn add(&mut self, id: RequestId) {
        self.entries.push(WaitingRequest { id, place: TurnSlot::Preparing, cancelled: None });
    }

    /// Takes a prompt out, because it is answered otherwise.
    pub(super) fn remove(&mut self, id: &RequestId) {
        self.entries.retain(|entry| entry.id != *id);
    }

    /// How a prompt was cancelled, if it was.
    pub(super) fn cancelled(&self, id: &RequestId) -> Option<PromptCancel> {
        self.entries.iter().find(|entry| entry.id == *id)?.cancelled
    }

    /// Notes where a prompt is now.
    pub(super) fn place(&mut self, id: &RequestId, place: TurnSlot) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == *id) {
            entry.place = place;
        }
    }

    /// Whether a turn is that of a prompt here. The first that waits gets a turn that has no prompt yet.
    pub(super) fn begin_turn(&mut self, turn: &TurnId) -> bool {
        let is_known = |entry: &WaitingRequest| matches!(&entry.place, TurnSlot::Turn(of) if of == turn);
        if self.entries.iter().any(is_known) {
            return true;
        }
        let next = self.entries.iter_mut().find(|entry| matches!(entry.place, TurnSlot::Queued(_)));
        let Some(next) = next else { return false };
        next.place = TurnSlot::Turn(turn.clone());
        true
    }

    /// Answers the prompts of a turn that has ended. A message that the turn did not take in waits for a turn of its own, if
    /// `still_waits` says so.
    pub(super) fn end_turn(
        &mut self,
        turn: &TurnId,
        summary: &TurnSummary,
        still_waits: impl Fn(&QueueId) -> bool,
    ) -> Vec<PromptAnswerPair> {
        for entry in &mut self.entries {
            if let TurnSlot::Steering(of, queue) = &entry.place
                && of == turn
            {
                entry.place = match still_waits(queue) {
                    true => TurnSlot::Queued(queue.clone()),
                    false => TurnSlot::Turn(turn.clone()),
                };
            }
        }
        self.answer(
            |entry| matches!(&entry.place, TurnSlot::Turn(of) if of == turn),
            |entry| match (entry.cancelled, summary.reason) {
                (Some(PromptCancel::Request), TurnEnd::Cancelled) => Err(error::cancelled()),
                _ => summary.answer(),
            },
        )
    }

    /// Answers the command that an item answers. With `restores` it waits for the files.
    pub(super) fn command_answered(&mut self, item: &ItemId, restores: bool) -> Vec<PromptAnswerPair> {
        let is_meant = |entry: &WaitingRequest| matches!(&entry.place, TurnSlot::Answer(of) if of == item);
        if restores {
            for entry in self.entries.iter_mut().filter(|entry| is_meant(entry)) {
                entry.place = TurnSlot::Restoring;
            }
            return Vec::new();
        }
        self.answer(is_meant, |_| Ok(ended(StopReason::EndTurn, None)))
    }

    /// Answers the commands that restored files.
    pub(super) fn restored(&mut self) -> Vec<PromptAnswerPair> {
        self.answer(|entry| entry.place == TurnSlot::Restoring, |_| Ok(ended(StopReason::EndTurn, None)))
    }

    /// Cancels all prompts. Returns those that wait in the queue; the caller removes them there and answers them.
    pub(super) fn cancel_all(&mut self) -> Vec<(RequestId, QueueId)> {
        let mut queued = Vec::new();
        for entry in &mut self.entries {
            entry.cancelled.get_or_insert(PromptCancel::Session);
            if let TurnSlot::Queued(queue) | TurnSlot::Steering(_, queue) = &entry.place {
                queued.push((entry.id.clone(), queue.clone()));
            }
        }
        queued
    }

    /// Cancels one prompt. Returns where it is; `None` when it is not here.
    pub(super) fn cancel(&mut self, id: &RequestId) -> Option<TurnSlot> {
        let entry = self.entries.iter_mut().find(|entry| entry.id == *id)?;
        entry.cancelled = Some(PromptCancel::Request);
        Some(entry.place.clone())
    }

    /// The first prompt that waits in the queue.
    pub(super) fn first_queued(&self) -> Option<(RequestId, QueueId)> {
        self.entries.iter().find_map(|entry| match &entry.place {
            TurnSlot::Queued(queue) => Some((entry.id.clone(), queue.clone())),
            _ => None,
        })
    }

    /// The turns of the prompts here.
    pub(super) fn turns(&self) -> Vec<TurnId> {
        let turn = |entry: &WaitingRequest| match &entry.place {
            TurnSlot::Turn(turn) | TurnSlot::Steering(turn, _) => Some(turn.clone()),
            _ => None,
        };
        self.entries.iter().filter_map(turn).collect()
    }

    /// Answers all prompts that were submitted: the session has ended here.
    pub(super) fn end(&mut self, why: &str) -> Vec<PromptAnswerPair> {
        self.answer(
            |entry| entry.place != TurnSlot::Preparing,
            |entry| match entry.cancelled {
                Some(PromptCancel::Session) => Ok(ended(StopReason::Cancelled, None)),
                Some(PromptCancel::Request) => Err(error::cancelled()),
                None => Err(error::internal(why)),
            },
        )
    }

    fn answer(
        &mut self,
        is_meant: impl Fn(&WaitingRequest) -> bool,
        answer: impl Fn(&WaitingRequest) -> Result<Value, Error>,
    ) -> Vec<PromptAnswerPair> {
        let (meant, others) = std::mem::take(&mut self.entries).into_iter().partition(is_meant);
        self.entries = others;
        meant.into_iter().map(|entry| (entry.id.clone(), answer(&entry))).collect()
    }
}

impl PromptCancel {
    /// The answer to a prompt that was cancelled before its turn began.
    pub(super) fn answer(self) -> Result<Value, Error> {
        match self {
            Self::Session => Ok(ended(StopReason::Cancelled, None)),
            Self::Request => Err(error::cancelled()),
        }
    }
}

impl TurnSummary {
    /// The answer to the prompts of the turn: a stop reason, or an error where the turn failed.
    fn answer(&self) -> Result<Value, Error> {
        let stop = match self.reason {
            TurnEnd::EndTurn
            | TurnEnd::Budget
            | TurnEnd::Repetition
            | TurnEnd::IncompleteIntent
            | TurnEnd::NotChosen
            | TurnEnd::ChatDisabled
            | TurnEnd::Hook => StopReason::EndTurn,
            TurnEnd::MaxTokens => StopReason::MaxTokens,
            TurnEnd::MaxTurns => StopReason::MaxTurnRequests,
            TurnEnd::Refusal => StopReason::Refusal,
            TurnEnd::Cancelled => StopReason::Cancelled,
            TurnEnd::Error => return Err(self.error()),
        };
        Ok(ended(stop, Some(self)))
    }

    fn error(&self) -> Error {
        match &self.failure {
            Some((text, Some(NoticeKind::ApiKey))) => error::auth_required(text),
            Some((text, _)) => error::internal(text),
            None => error::internal("The turn failed. The log has the details."),
        }
    }
}

/// The answer to a prompt.
fn ended(stop: StopReason, summary: Option<&TurnSummary>) -> Value {
    let kode = summary.map(|summary| {
        json!({
            "stopReason": summary.reason,
            "durationMs": summary.duration_ms,
            "costUsd": summary.cost.total(),
            "usage": usage(&summary.usage),
        })
    });
    let response = PromptResponse::new(stop).meta(kode.map(meta));
    serde_json::to_value(response).unwrap_or_default()
}

/// The answer to a side question that ended for this reason, with its figures where it has an answer.
pub(super) fn aside_done(stop: StopReason, answer: Option<&SideAnswer>) -> Value {
    let kode = answer.map(|answer| json!({ "costUsd": answer.cost, "usage": usage(&answer.usage) }));
    let response = PromptResponse::new(stop).meta(kode.map(meta));
    serde_json::to_value(response).unwrap_or_default()
}

fn usage(usage: &Usage) -> Value {
    json!({
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cacheReadTokens": usage.cache_read_tokens,
        "cacheWriteTokens": usage.cache_write_tokens,
    })
}

/// The answer to a command that the protocol's own side carries out.
pub(super) fn command_done() -> Value {
    ended(StopReason::EndTurn, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: i64) -> RequestId {
        RequestId::Number(number)
    }

    fn summary(reason: TurnEnd) -> TurnSummary {
        TurnSummary {
            reason,
            usage: Usage::default(),
            cost: Cost::default(),
            duration_ms: 1,
            failure: Some(("The key was refused.".into(), Some(NoticeKind::ApiKey))),
        }
    }

    fn stop(answers: &[PromptAnswerPair]) -> Vec<(RequestId, String)> {
        let text = |outcome: &Result<Value, Error>| match outcome {
            Ok(value) => value["stopReason"].as_str().unwrap().to_owned(),
            Err(error) => i32::from(error.code).to_string(),
        };
        answers.iter().map(|(id, outcome)| (id.clone(), text(outcome))).collect()
    }

    #[test]
    fn a_queued_prompt_is_answered_at_the_end_of_its_own_turn() {
        let (first, second) = (TurnId::generate(), TurnId::generate());
        let mut table = PromptTable::default();
        table.add(id(1));
        table.place(&id(1), TurnSlot::Turn(first.clone()));
        table.add(id(2));
        table.place(&id(2), TurnSlot::Queued(QueueId::generate()));
        assert!(table.begin_turn(&first));
        let ended = table.end_turn(&first, &summary(TurnEnd::EndTurn), |_| true);
        assert_eq!(stop(&ended), [(id(1), "end_turn".to_owned())]);
        assert!(table.begin_turn(&second));
        let ended = table.end_turn(&second, &summary(TurnEnd::MaxTurns), |_| true);
        assert_eq!(stop(&ended), [(id(2), "max_turn_requests".to_owned())]);
        assert!(!table.begin_turn(&TurnId::generate()), "a turn of nobody's prompt");
    }

    #[test]
    fn a_message_that_a_turn_did_not_take_in_waits_for_its_own() {
        let (turn, taken, left) = (TurnId::generate(), QueueId::generate(), QueueId::generate());
        let mut table = PromptTable::default();
        for (number, queue) in [(1, &taken), (2, &left)] {
            table.add(id(number));
            table.place(&id(number), TurnSlot::Steering(turn.clone(), queue.clone()));
        }
        let ended = table.end_turn(&turn, &summary(TurnEnd::EndTurn), |queue| *queue == left);
        assert_eq!(stop(&ended), [(id(1), "end_turn".to_owned())]);
        assert_eq!(table.first_queued(), Some((id(2), left)));
    }

    #[test]
    fn a_failed_turn_is_an_error_and_a_cancelled_request_too() {
        let turn = TurnId::generate();
        let mut table = PromptTable::default();
        for number in [1, 2] {
            table.add(id(number));
            table.place(&id(number), TurnSlot::Turn(turn.clone()));
        }
        assert_eq!(table.cancel(&id(2)), Some(TurnSlot::Turn(turn.clone())));
        let ended = table.end_turn(&turn, &summary(TurnEnd::Cancelled), |_| false);
        assert_eq!(stop(&ended), [(id(1), "cancelled".to_owned()), (id(2), "-32800".to_owned())]);
        table.add(id(3));
        table.place(&id(3), TurnSlot::Turn(turn.clone()));
        let ended = table.end_turn(&turn, &summary(TurnEnd::Error), |_| false);
        assert_eq!(stop(&ended), [(id(3), "-32000".to_owned())]);
    }

    #[test]
    fn a_command_that_restores_files_is_answered_when_they_are_restored() {
        let item = ItemId::generate();
        let mut table = PromptTable::default();
        table.add(id(1));
        table.place(&id(1), TurnSlot::Answer(item.clone()));
        assert!(table.command_answered(&item, true).is_empty());
        assert_eq!(stop(&table.restored()), [(id(1), "end_turn".to_owned())]);
    }
}
