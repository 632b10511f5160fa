//! The point at which a turn is resumed from the journal: its calls that wait for the user again.
//!
//! Rule: nothing of it runs and no model is called before the user has answered. A call that had started when the server
//! ended never runs again; one that had not passes the whole pipeline.

use crate::core::Core;
use crate::state::SessionState;
use crate::state::thread::open::OpenCall;
use crate::turn::sample::ModelToolCall;
use crate::turn::services::TurnContext;
use kode_base::ids::{AgentId, CallId, ItemId, PermissionId, QuestionId, TurnId};
use kode_base::question::{Question, QuestionKind};
use kode_model::Block;
use kode_record::event::{CallState, TurnEnd};
use kode_text::workspace::KnownText;

/// The point at which a conversation is resumed.
#[derive(Clone, Debug)]
pub(crate) enum ResumePoint {
    /// The calls of the newest answer that have not begun, in their order; about some of them the user is asked again.
    Calls(Vec<ModelToolCall>),
    /// The turn had come to its limit and the user is asked again whether it continues, or it rests until a limit of the
    /// model's provider is reset.
    Limit(Box<Question>),
}

/// The request that a call waited for when the server ended.
#[derive(Clone, Debug)]
pub(crate) enum PendingRequest {
    /// A permission prompt, with the known texts that the call changes.
    Permission(PermissionId, Vec<KnownText>),
    /// A question.
    Question(QuestionId),
    /// A sub-agent whose own calls wait.
    Agent(AgentId, Box<ResumePoint>),
}

/// A request that is made again: the call it is for, or `None` where the turn makes it.
pub(crate) type RepeatedRequest = Option<CallId>;

impl ResumePoint {
    /// The resume point of a session's open turn; `None` where no request waited for the user, or none that can be made again.
    pub(crate) fn of(core: &Core) -> Option<Self> {
        let state = core.state();
        let turn = state.running.id.clone()?;
        Self::of_conversation(&state, &turn, None)
    }

    fn of_conversation(state: &SessionState, turn: &TurnId, agent: Option<&AgentId>) -> Option<Self> {
        let open = state.thread(agent)?.open_calls();
        if open.is_empty() && agent.is_none() {
            let is_limit = |asked: &&Question| {
                let kind = asked.draft.kind;
                asked.call.is_none() && matches!(kind, QuestionKind::TurnLimit | QuestionKind::Rest)
            };
            return state
                .running
                .questions
                .iter()
                .find(is_limit)
                .map(|asked| Self::Limit(Box::new(asked.clone())));
        }
        let calls: Vec<ModelToolCall> =
            open.into_iter().filter_map(|open| resumed(state, turn, open)).collect();
        calls.iter().any(|call| call.pending.is_some()).then_some(Self::Calls(calls))
    }

    /// The resumed calls of a conversation.
    pub(crate) fn calls_of(&self, agent: Option<&AgentId>) -> Vec<CallId> {
        let Self::Calls(calls) = self else { return Vec::new() };
        let Some(wanted) = agent else { return calls.iter().map(|call| call.id.clone()).collect() };
        let of_agents = calls.iter().filter_map(|call| match &call.pending {
            Some(PendingRequest::Agent(agent, point)) => Some((agent, point)),
            Some(PendingRequest::Permission(..) | PendingRequest::Question(_)) | None => None,
        });
        let mut of_agents = of_agents.map(|(agent, point)| match agent == wanted {
            true => point.calls_of(None),
            false => point.calls_of(Some(wanted)),
        });
        of_agents.find(|calls| !calls.is_empty()).unwrap_or_default()
    }

    /// All requests that are made again.
    pub(crate) fn repeated_requests(&self) -> Vec<RepeatedRequest> {
        let Self::Calls(calls) = self else { return vec![None] };
        let asked = calls.iter().flat_map(|call| match &call.pending {
            Some(PendingRequest::Permission(..) | PendingRequest::Question(_)) => vec![Some(call.id.clone())],
            Some(PendingRequest::Agent(_, point)) => point.repeated_requests(),
            None => Vec::new(),
        });
        asked.collect()
    }
}

/// Whether a turn of a conversation that ends for this reason stays open: the server ends while something of it waits for
/// the user, who is asked again when the session is loaded.
pub(crate) fn is_left_open(turn: TurnContext<'_>, reason: TurnEnd) -> bool {
    reason == TurnEnd::Cancelled && left_open(turn).is_some()
}

/// Whether a call has no result because the server ends, and is resumed when the session is loaded.
pub(super) fn is_call_left_open(turn: TurnContext<'_>, call: &ModelToolCall) -> bool {
    left_open(turn).is_some_and(|left| left.calls_of(None).contains(&call.id))
}

fn left_open(turn: TurnContext<'_>) -> Option<ResumePoint> {
    let services = turn.services;
    let is_left = services.requests.is_kept_for_next_run();
    is_left
        .then(|| ResumePoint::of_conversation(&services.core.state(), turn.id, turn.conversation.agent()))
        .flatten()
}

/// A call as it is resumed; `None` when it had started, or where its request is unknown.
fn resumed(state: &SessionState, turn: &TurnId, open: OpenCall) -> Option<ModelToolCall> {
    let now = open.state();
    let Block::ToolUse { id, name, input, input_error } = open.block else { return None };
    let id = CallId::from_external(&id);
    let question = state.running.questions.iter().find(|asked| asked.call.as_ref() == Some(&id));
    let pending = match (now, question) {
        (CallState::Executing | CallState::ApprovalRequired, Some(question)) => {
            Some(PendingRequest::Question(question.id.clone()))
        }
        (CallState::Executing, None) => {
            // Some providers use the ids of calls again: an agent of an earlier turn may have worked for the same one.
            let mut agents = state.agents.iter();
            let (agent, _) = agents
                .find(|(_, agent)| agent.call.as_ref() == Some(&id) && agent.turn.as_ref() == Some(turn))?;
            let point = ResumePoint::of_conversation(state, turn, Some(agent))?;
            Some(PendingRequest::Agent(agent.clone(), Box::new(point)))
        }
        (CallState::ApprovalRequired, None) => {
            open.permission.map(|permission| PendingRequest::Permission(permission, open.known))
        }
        (CallState::Pending, _) => None,
        (CallState::Completed | CallState::Failed | CallState::Denied | CallState::Sealed, _) => return None,
    };
    let item = open.item.map_or_else(ItemId::generate, |item| item.id.clone());
    Some(ModelToolCall { turn: turn.clone(), id, item, name, input, input_error, spared_by: None, pending })
}
