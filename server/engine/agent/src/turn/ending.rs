//! How a turn ends: its calls get results, and the user is told where it is not plain.
//!
//! Rule: however a turn ends, every call of it has a result, so that the history is one the model's provider accepts
//! next. What failed is told to the user and never to the model.

use serde_json::json;

use crate::session::Session;
use crate::session::conversation::Conversation;
use crate::session::thread::Thread;
use crate::turn::{Ended, Spent};
use kode_base::call::ToolKind;
use kode_base::ids::{AgentId, CallId, TurnId};
use kode_config::agents::TASK;
use kode_model::{Block, ModelError, ModelErrorKind};
use kode_record::event::{
    CallOutcome, CallState, Event, ItemBody, NoticeKind, NoticeLevel, SealedCall, ToolCallItem, TurnEnd,
};
use kode_record::phases::PhaseTimes;
use kode_record::record::{Record, TurnFigures};

/// What the model is told when the user has interrupted a turn.
const INTERRUPTED: &str = "[The user interrupted the turn here.]";

/// Why a call has no result when its turn failed.
const ENDED_WITH_ERROR: &str = "the turn ended with an error";

/// Why a call has no result when its answer was cut.
pub(super) const CUT_OFF: &str = "the answer was cut off by its token limit";

impl Ended {
    /// The end of a turn in which no model was asked.
    pub(crate) fn without_model() -> Self {
        let phases = PhaseTimes::default();
        Self { reason: TurnEnd::EndTurn, spent: Spent::default(), duration_ms: 0, phases, failure: None }
    }

    /// The end of a turn whose prompt a hook has refused.
    pub(crate) fn by_hook() -> Self {
        Self { reason: TurnEnd::Hook, ..Self::without_model() }
    }

    /// The record of the turn's end.
    pub(crate) fn record(&self, turn: &TurnId) -> Record {
        let Spent { usage, model_calls, tool_calls } = self.spent;
        let (duration_ms, phases) = (self.duration_ms, self.phases);
        let figures = TurnFigures { duration_ms, model_calls, tool_calls, phases };
        Record::TurnEnded { turn: turn.clone(), reason: self.reason, usage, figures }
    }
}

/// Ends a turn that a fault in this program has broken off.
pub(crate) fn failed(conversation: &Conversation<'_>, turn: &TurnId) -> Ended {
    tracing::error!(%turn, "the turn panicked");
    let text = "The turn broke off because of a fault in kode-ls itself.".to_owned();
    let hint = "What was done is kept; the log has the details.".to_owned();
    conversation.notice(turn, NoticeLevel::Error, text, Some(hint));
    match conversation.agent {
        None => seal_all(conversation.session, ENDED_WITH_ERROR),
        Some(_) => seal(conversation, ENDED_WITH_ERROR),
    }
    Ended {
        reason: TurnEnd::Error,
        spent: conversation.spent(),
        duration_ms: 0,
        phases: conversation.phases().times(),
        failure: None,
    }
}

/// Gives every unfinished call of a session a result that says why it has none, those of sub-agents first.
fn seal_all(session: &Session, why: &str) {
    let agents: Vec<_> = session.state().agents.keys().cloned().collect();
    let of_agents = agents.into_iter().map(|agent| Conversation::of_agent(session, agent));
    of_agents.chain([Conversation::main(session)]).for_each(|conversation| seal(&conversation, why));
}

/// Gives every unfinished call of a conversation a result that says why it has none.
pub(super) fn seal(conversation: &Conversation<'_>, why: &str) {
    seal_but(conversation, why, &[]);
}

/// Gives every unfinished call of a conversation but some a result that says why it has none. Answers the calls it
/// sealed.
pub(crate) fn seal_but(conversation: &Conversation<'_>, why: &str, but: &[CallId]) -> Vec<SealedCall> {
    let unanswered = conversation.read(Thread::unanswered);
    let mut sealed = Vec::new();
    for item in unanswered {
        let ItemBody::ToolCall(call) = item.body else { continue };
        if but.contains(&call.call) {
            continue;
        }
        let agent = {
            let state = conversation.session.state();
            let mut agents = state.agents.iter();
            agents.find(|(_, agent)| agent.call.as_ref() == Some(&call.call)).map(|(id, _)| id.clone())
        };
        let (outcome, result) = sealing(&call, why, agent.as_ref());
        conversation.end_call(&item.id, outcome, (result, vec![]), None);
        sealed.push(SealedCall { call: call.call, state: Some(call.state) });
    }
    sealed
}

/// How a call that did not end is sealed: the outcome for people, and the result for the model. `agent` is the sub-agent
/// that worked for it.
pub(crate) fn sealing(call: &ToolCallItem, why: &str, agent: Option<&AgentId>) -> (CallOutcome, Block) {
    let error = format!("The call has no result: {why}.");
    let recommendations = recommendations(call, agent);
    let content = format!("{error}\n{}", recommendations.join("\n"));
    let structured = json!({
    "ok": false, "error": error, "state": call.state, "recommendations": recommendations,
    });
    let outcome = CallOutcome {
        state: CallState::Sealed,
        display: format!("Not finished: {why}"),
        structured: Some(structured),
        error: None,
    };
    let result = Block::result(call.call.as_str(), content, true);
    (outcome, result)
}

/// What is to be done about a call that has no result, by how far it had come and what it does.
fn recommendations(call: &ToolCallItem, agent: Option<&AgentId>) -> Vec<String> {
    let said: &[&str] = match (call.state, call.kind) {
        (CallState::Executing, _) if call.name == TASK => {
            let mut said =
                vec!["It had begun: check what its sub-agent did before you give the task again.".to_owned()];
            if let Some(agent) = agent {
                said.push(format!(
                    "Pass `{agent}` as `resume` to let the sub-agent go on with what it knows."
                ));
            }
            return said;
        }
        (CallState::Executing, Some(ToolKind::Execute)) => &[
            "It had begun: check what it did, inside and outside the workspace, before you repeat it.",
            "Look at files, processes and other systems that the command changes; what it started may still run.",
        ],
        (CallState::Executing, Some(ToolKind::Write)) => &[
            "It had begun: the change may have been made or not.",
            "Read the file before you make the change again.",
        ],
        (CallState::Executing, Some(ToolKind::ReadOnly)) => {
            &["It had begun, but changes nothing: repeat it if it is still needed."]
        }
        (CallState::Executing, None) => {
            &["It had begun: check what it did, inside and outside the workspace, before you repeat it."]
        }
        (CallState::ApprovalRequired, _) => &[
            "It had not begun: it waited for the user, who has not allowed it.",
            "Repeat it if it is still needed; the user is asked again.",
        ],
        (
            CallState::Pending
            | CallState::Completed
            | CallState::Failed
            | CallState::Denied
            | CallState::Sealed,
            _,
        ) => &["It had not begun: repeat it if it is still needed."],
    };
    said.iter().map(|&said| said.to_owned()).collect()
}

/// Leaves the history whole and says how the turn ended, where that is not plain. `model_calls` were made since the user
/// last let it go on.
pub(super) fn close(conversation: &Conversation<'_>, turn: &TurnId, reason: TurnEnd, model_calls: u32) {
    let notice = |kind: NoticeKind, level, text: &str, hint: &str| {
        // How a sub-agent ended is told to the call it works for.
        if conversation.agent.is_none() {
            conversation.notice_of(kind, turn, (level, text, hint));
        }
    };
    use NoticeLevel::{Info, Warning};
    match reason {
        TurnEnd::EndTurn => {}
        TurnEnd::NotChosen => {}
        // The user was told when the hook said so.
        TurnEnd::Hook => seal(conversation, "a hook stopped the turn"),
        TurnEnd::Cancelled => {
            seal(conversation, "the user interrupted the turn");
            conversation.commit(Record::Remark { turn: turn.clone(), text: INTERRUPTED.to_owned() });
            let hint = "Say what to do instead, or `continue`.";
            notice(NoticeKind::Interrupted, Info, "Interrupted.", hint);
        }
        TurnEnd::MaxTokens => {
            seal(conversation, CUT_OFF);
            let text = "The answer was cut off by its token limit, again and again.";
            notice(
                NoticeKind::Continued,
                Warning,
                text,
                "Send `continue` to go on, or ask for less at once.",
            );
        }
        TurnEnd::MaxTurns => {
            let text = format!("Stopped after {model_calls} model calls in one turn.");
            notice(NoticeKind::TurnLimit, Warning, &text, "Send `continue` to go on.");
        }
        TurnEnd::Budget => {
            let text = "Stopped: the turn has used up its budget.";
            notice(
                NoticeKind::TurnLimit,
                Warning,
                text,
                "Send `continue` to go on, or set `maxCostUsd` or `maxMinutes`.",
            );
        }
        TurnEnd::Repetition => {
            let text = "Stopped: the same call had the same result over and over.";
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
            seal(conversation, "the model declined to answer");
            let hint = "Rephrase the request, or choose another model.";
            notice(NoticeKind::ApiError, Warning, "The model declined to answer.", hint);
        }
        TurnEnd::Error => {
            seal(conversation, ENDED_WITH_ERROR);
        }
    }
}

/// Tells the user that the model could not be asked.
pub(super) fn report(conversation: &Conversation<'_>, turn: &TurnId, error: &ModelError, attempts: u32) {
    let tried = if attempts > 1 { format!(" (tried {attempts} times)") } else { String::new() };
    let (message, hint) = (format!("{error}{tried}"), error.hint());
    let kind = match error.kind {
        ModelErrorKind::Configuration | ModelErrorKind::Authentication => NoticeKind::ApiKey,
        ModelErrorKind::ContextTooLong => NoticeKind::ContextTooLong,
        _ => NoticeKind::ApiError,
    };
    conversation.notice_of(kind, turn, (NoticeLevel::Error, &message, hint));
    if conversation.agent.is_none() {
        conversation.session.publish(Event::Error { message, hint: hint.to_owned() });
    }
}
