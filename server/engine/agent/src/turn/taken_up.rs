//! A turn that is taken up from the journal: what of it waits for the user again.
//!
//! Rule: nothing of it runs and no model is asked before the user has answered; what had begun when the server ended is
//! never run again, and what had not goes its whole way through the pipeline.

use crate::session::conversation::Conversation;
use crate::session::thread::open::OpenCall;
use crate::session::{Session, SessionState};
use crate::turn::sample::Call;
use kode_base::ids::{AgentId, CallId, ItemId, PermissionId, QuestionId, TurnId};
use kode_base::question::{Question, QuestionKind};
use kode_model::Block;
use kode_record::event::{CallState, TurnEnd};
use kode_text::workspace::KnownText;

/// What a conversation goes on with.
#[derive(Clone, Debug)]
pub(crate) enum TakenUp {
    /// The calls of the newest answer that have not begun, in their order; about some of them the user is asked again.
    Calls(Vec<Call>),
    /// The turn had come to its limit, and the user is asked again whether it goes on.
    Limit(Box<Question>),
}

/// What a call waited for when the server ended.
#[derive(Clone, Debug)]
pub(crate) enum Again {
    /// The answer to a permission prompt; with what was known of the texts that the call changes.
    Permission(PermissionId, Vec<KnownText>),
    /// The answer to a question.
    Question(QuestionId),
    /// A sub-agent whose own calls wait.
    Agent(AgentId, Box<TakenUp>),
}

/// Something the user is asked again: the call it is about, or none where the turn asks.
pub(crate) type AskedAgain = Option<CallId>;

impl TakenUp {
    /// What the open turn of a session goes on with; `None` when the user was asked nothing, or nothing that can be asked
    /// again.
    pub(crate) fn of(session: &Session) -> Option<Self> {
        let state = session.state();
        let turn = state.turn.clone()?;
        Self::of_conversation(&state, &turn, None)
    }

    fn of_conversation(state: &SessionState, turn: &TurnId, agent: Option<&AgentId>) -> Option<Self> {
        let open = state.thread(agent)?.open_calls();
        if open.is_empty() && agent.is_none() {
            let is_limit =
                |asked: &&Question| asked.call.is_none() && asked.draft.kind == QuestionKind::TurnLimit;
            return state.asked.iter().find(is_limit).map(|asked| Self::Limit(Box::new(asked.clone())));
        }
        let calls: Vec<Call> = open.into_iter().filter_map(|open| taken_up(state, turn, open)).collect();
        calls.iter().any(|call| call.again.is_some()).then_some(Self::Calls(calls))
    }

    /// The calls of a conversation that go on.
    pub(crate) fn calls_of(&self, agent: Option<&AgentId>) -> Vec<CallId> {
        let Self::Calls(calls) = self else { return Vec::new() };
        let Some(wanted) = agent else { return calls.iter().map(|call| call.id.clone()).collect() };
        let of_agents = calls.iter().filter_map(|call| match &call.again {
            Some(Again::Agent(agent, taken_up)) => Some((agent, taken_up)),
            Some(Again::Permission(..) | Again::Question(_)) | None => None,
        });
        let mut of_agents = of_agents.map(|(agent, taken_up)| match agent == wanted {
            true => taken_up.calls_of(None),
            false => taken_up.calls_of(Some(wanted)),
        });
        of_agents.find(|calls| !calls.is_empty()).unwrap_or_default()
    }

    /// All that the user is asked again.
    pub(crate) fn asked_again(&self) -> Vec<AskedAgain> {
        let Self::Calls(calls) = self else { return vec![None] };
        let asked = calls.iter().flat_map(|call| match &call.again {
            Some(Again::Permission(..) | Again::Question(_)) => vec![Some(call.id.clone())],
            Some(Again::Agent(_, taken_up)) => taken_up.asked_again(),
            None => Vec::new(),
        });
        asked.collect()
    }
}

/// Whether a turn of a conversation that ends for this reason stays open: the server ends while something of it waits for
/// the user, who is asked again when the session is loaded.
pub(crate) fn is_left_open(conversation: &Conversation<'_>, turn: &TurnId, reason: TurnEnd) -> bool {
    reason == TurnEnd::Cancelled && left_open(conversation, turn).is_some()
}

/// Whether a call has no result because the server ends, and goes on when the session is loaded.
pub(super) fn is_call_left_open(conversation: &Conversation<'_>, call: &Call) -> bool {
    left_open(conversation, &call.turn).is_some_and(|left| left.calls_of(None).contains(&call.id))
}

fn left_open(conversation: &Conversation<'_>, turn: &TurnId) -> Option<TakenUp> {
    let session = conversation.session;
    let is_left = session.is_left_to_next_life();
    is_left.then(|| TakenUp::of_conversation(&session.state(), turn, conversation.agent.as_ref())).flatten()
}

/// A call as it goes on; `None` when it had begun, or when what it waited for is not known.
fn taken_up(state: &SessionState, turn: &TurnId, open: OpenCall) -> Option<Call> {
    let now = open.state();
    let Block::ToolUse { id, name, input, input_error } = open.block else { return None };
    let id = CallId::from_external(&id);
    let question = state.asked.iter().find(|asked| asked.call.as_ref() == Some(&id));
    let again = match (now, question) {
        (CallState::Executing | CallState::ApprovalRequired, Some(question)) => {
            Some(Again::Question(question.id.clone()))
        }
        (CallState::Executing, None) => {
            // Some providers use the ids of calls again: an agent of an earlier turn may have worked for the same one.
            let mut agents = state.agents.iter();
            let (agent, _) = agents
                .find(|(_, agent)| agent.call.as_ref() == Some(&id) && agent.turn.as_ref() == Some(turn))?;
            let taken_up = TakenUp::of_conversation(state, turn, Some(agent))?;
            Some(Again::Agent(agent.clone(), Box::new(taken_up)))
        }
        (CallState::ApprovalRequired, None) => {
            open.permission.map(|permission| Again::Permission(permission, open.known))
        }
        (CallState::Pending, _) => None,
        (CallState::Completed | CallState::Failed | CallState::Denied | CallState::Sealed, _) => return None,
    };
    let item = open.item.map_or_else(ItemId::generate, |item| item.id);
    Some(Call { turn: turn.clone(), id, item, name, input, input_error, spared_by: None, again })
}
