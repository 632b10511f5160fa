//! The end of a turn: its calls get results, and a notice names the reason where it is not plain.
//!
//! Rule: however a turn ends, every call of it has a result, so that the history is one the model's provider accepts
//! next. Faults are reported to the user and never to the model.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio_util::sync::CancellationToken;

use crate::conversation::WorkUsage;
use crate::core::Core;
use crate::core::thread::ThreadHandle;
use crate::state::new_item;
use crate::state::seal::sealing;
use crate::state::thread::Thread;
use crate::turn::TurnResult;
use crate::turn::services::TurnContext;
use kode_base::ids::{CallId, TurnId};
use kode_model::{ModelError, ModelErrorKind};
use kode_record::event::{Event, ItemBody, NoticeKind, NoticeLevel, SealedCall, TurnEnd};
use kode_record::goal::GoalState;
use kode_record::phases::PhaseTimes;
use kode_record::record::{Record, TurnFigures};

/// The model's note of a turn that the user has interrupted.
const INTERRUPTED: &str = "[The user interrupted the turn here.]";

/// Why a call has no result when its turn failed.
const ENDED_WITH_ERROR: &str = "the turn ended with an error";

/// Why a call has no result when its answer was cut.
pub(super) const CUT_OFF: &str = "the answer was cut off by its token limit";

impl TurnResult {
    /// The end of a turn in which no model was asked.
    pub(crate) fn without_model() -> Self {
        let phases = PhaseTimes::default();
        Self { reason: TurnEnd::EndTurn, spent: WorkUsage::default(), duration_ms: 0, phases, failure: None }
    }

    /// The end of a turn whose prompt was a command, which the user may have cancelled.
    pub(crate) fn of_command(cancel: &CancellationToken) -> Self {
        let reason = if cancel.is_cancelled() { TurnEnd::Cancelled } else { TurnEnd::EndTurn };
        Self { reason, ..Self::without_model() }
    }

    /// The end of a turn whose prompt a hook has refused.
    pub(crate) fn by_hook() -> Self {
        Self { reason: TurnEnd::Hook, ..Self::without_model() }
    }

    /// The record of the turn's end.
    pub(crate) fn record(&self, turn: &TurnId) -> Record {
        let WorkUsage { usage, model_calls, tool_calls } = self.spent;
        let (duration_ms, phases) = (self.duration_ms, self.phases);
        let figures = TurnFigures { duration_ms, model_calls, tool_calls, phases };
        Record::TurnEnded { turn: turn.clone(), reason: self.reason, usage, figures }
    }
}

/// Ends a turn that a fault in this program has broken off.
pub(crate) fn failed(turn: TurnContext<'_>) -> TurnResult {
    tracing::error!(turn = %turn.id, "the turn panicked");
    let text = "The turn broke off because of a fault in kode-ls itself.".to_owned();
    let hint = "Finished work is kept; the log has the details.".to_owned();
    turn.notice(NoticeLevel::Error, text, Some(hint));
    match turn.conversation.is_main() {
        true => seal_all(&turn.services.core, ENDED_WITH_ERROR),
        false => seal(&turn.conversation.thread, ENDED_WITH_ERROR),
    }
    TurnResult {
        reason: TurnEnd::Error,
        spent: turn.conversation.spent(),
        duration_ms: 0,
        phases: turn.conversation.phases().times(),
        failure: None,
    }
}

/// Gives every unfinished call of a session a result that says why it has none, those of sub-agents first.
fn seal_all(core: &Arc<Core>, why: &str) {
    ThreadHandle::all(core).iter().for_each(|thread| seal(thread, why));
}

/// Gives every unfinished call of a conversation a result that says why it has none.
pub(super) fn seal(thread: &ThreadHandle, why: &str) {
    seal_except(thread, why, &[]);
}

/// Gives every unfinished call of a conversation, except some, a result that says why it has none. Returns the sealed calls.
pub(crate) fn seal_except(thread: &ThreadHandle, why: &str, except: &[CallId]) -> Vec<SealedCall> {
    let unanswered = thread.read(Thread::unanswered);
    let mut sealed = Vec::new();
    for item in unanswered {
        let ItemBody::ToolCall(call) = &item.body else { continue };
        if except.contains(&call.call) {
            continue;
        }
        let agent = {
            let state = thread.core.state();
            let mut agents = state.agents.iter();
            agents.find(|(_, agent)| agent.call.as_ref() == Some(&call.call)).map(|(id, _)| id.clone())
        };
        let (outcome, result) = sealing(call, why, agent.as_ref());
        thread.end_call(&item.id, outcome, (result, vec![]), None);
        sealed.push(SealedCall { call: call.call.clone(), state: Some(call.state) });
    }
    sealed
}

/// Completes the history and adds a notice of the end of the turn, where it is not plain. `model_calls` were made since the user
/// last let it continue.
pub(super) fn close(turn: TurnContext<'_>, reason: TurnEnd, model_calls: u32) {
    let notice = |kind: NoticeKind, level, text: &str, hint: &str| {
        // The end of a sub-agent is the result of its call.
        if turn.conversation.is_main() {
            turn.notice_of(kind, (level, text, hint));
        }
    };
    use NoticeLevel::{Info, Warning};
    match reason {
        TurnEnd::EndTurn => {}
        TurnEnd::NotChosen => {}
        // A notice was added when the hook stopped it.
        TurnEnd::Hook => seal(&turn.conversation.thread, "a hook stopped the turn"),
        TurnEnd::Cancelled => {
            seal(&turn.conversation.thread, "the user interrupted the turn");
            turn.commit(Record::Remark { turn: turn.id.clone(), text: INTERRUPTED.to_owned() });
            let hint = "Say what to do instead, or `continue`.";
            notice(NoticeKind::Interrupted, Info, "Interrupted.", hint);
        }
        TurnEnd::MaxTokens => {
            seal(&turn.conversation.thread, CUT_OFF);
            let text = "The answer was cut off by its token limit, again and again.";
            notice(
                NoticeKind::Continued,
                Warning,
                text,
                "Send `continue` to resume, or ask for less at once.",
            );
        }
        TurnEnd::MaxTurns => {
            let text = format!("Stopped after {model_calls} model calls in one turn.");
            notice(NoticeKind::TurnLimit, Warning, &text, "Send `continue` to resume.");
        }
        TurnEnd::Budget if turn.conversation.is_main() && end_goal(turn) => {}
        TurnEnd::Budget => {
            let text = "Stopped: the turn has used up its budget.";
            notice(
                NoticeKind::TurnLimit,
                Warning,
                text,
                "Send `continue` to resume, or set `maxCostUsd` or `maxMinutes`.",
            );
        }
        TurnEnd::Repetition => {
            let text = "Stopped: the turn repeats itself without a result.";
            notice(NoticeKind::TurnLimit, Warning, text, "Say what to do differently, or `continue`.");
        }
        TurnEnd::IncompleteIntent => {
            let text = "The answer only announces what it is going to do.";
            notice(NoticeKind::IncompleteIntent, Warning, text, "Send `continue` to have it done.");
        }
        TurnEnd::ChatDisabled => {
            let hint = "Set `maxTurns` to another number, or to -1 for the built-in limit.";
            notice(NoticeKind::TurnLimit, Warning, "Chat is disabled: the turn limit is 0.", hint);
        }
        TurnEnd::Refusal => {
            seal(&turn.conversation.thread, "the model declined to answer");
            let hint = "Rephrase the request, or choose another model.";
            notice(NoticeKind::ApiError, Warning, "The model declined to answer.", hint);
        }
        TurnEnd::Error => {
            seal(&turn.conversation.thread, ENDED_WITH_ERROR);
        }
    }
}

/// Ends the work for a goal whose bound is reached, and notifies the user; false where the turn ends for another reason.
fn end_goal(turn: TurnContext<'_>) -> bool {
    let goals = &turn.services.goals;
    let Some(bound) = goals.exhausted() else { return false };
    let Some(goal) = goals.end_at(bound) else { return false };
    let bound = match bound {
        GoalState::Active | GoalState::Met => return false,
        GoalState::OutOfRounds => format!("{} checks", goal.bounds.rounds),
        GoalState::OutOfMoney => format!("${:.2}", goal.cost_usd),
        GoalState::OutOfTime => format!("{} minutes", goal.duration_ms / 60_000),
    };
    let text = format!("Stopped: the goal is not met within its bound; the work took {bound}.");
    let hint = "Set it again with `/goal` and wider bounds, or say what to do differently.";
    turn.notice_of(NoticeKind::TurnLimit, (NoticeLevel::Warning, &text, hint));
    true
}

/// The text of a turn that rests until `until`, in the time zone of this machine.
pub(super) fn resting(host: &str, until: Timestamp) -> String {
    let (now, until) = (Timestamp::now().to_zoned(TimeZone::system()), until.to_zoned(TimeZone::system()));
    let form = if now.date() == until.date() { "%H:%M" } else { "%A, %d %B, %H:%M" };
    format!(
        "{host} accepts no more requests until {}. The turn waits and resumes by itself then.",
        until.strftime(form)
    )
}

/// Reports to the user that the model could not be called.
pub(super) fn report(turn: TurnContext<'_>, error: &ModelError, attempts: u32) {
    let tried = if attempts > 1 { format!(" (tried {attempts} times)") } else { String::new() };
    let (message, hint) = (format!("{error}{tried}"), error.hint());
    let kind = match error.kind {
        ModelErrorKind::Configuration | ModelErrorKind::Authentication => NoticeKind::ApiKey,
        ModelErrorKind::ContextTooLong => NoticeKind::ContextTooLong,
        _ => NoticeKind::ApiError,
    };
    turn.notice_of(kind, (NoticeLevel::Error, &message, hint));
    if turn.conversation.is_main() {
        turn.services.core.publish(Event::Error { message, hint: hint.to_owned() });
    }
}

/// The notice of the point at which the server ended.
pub(crate) fn interrupted(turn: &TurnId, hint: &str) -> Record {
    let body = ItemBody::Notice {
        level: NoticeLevel::Warning,
        text: "The server ended in the middle of this turn.".to_owned(),
        hint: Some(hint.to_owned()),
        kind: Some(NoticeKind::Interrupted),
    };
    Record::Item { item: new_item(turn, body), streamed: false }
}
