//! What the model is sent: system prompt, history, tools.
//!
//! Rule: a request is a byte prefix of the turn's next one but for what was added, so that provider caches hold;
//! nothing that changes from call to call stands before the history.

pub mod meter;
pub(crate) mod overview;
mod system;
pub mod tokens;

use crate::session::conversation::Conversation;
use crate::session::reminders;
use crate::turn::phases::Phase;
use kode_base::ids::{AgentId, SessionId};
use kode_model::profile::Profile;
use kode_model::{ModelRequest, ToolDeclaration};
use kode_tool::Offering;
use system::{SystemPrompt, system_prompt};

/// The request for the next model call of a conversation.
pub(crate) fn request(conversation: &Conversation<'_>, profile: &Profile) -> ModelRequest {
    let session = conversation.session;
    let (system, tools) = fixed(conversation);
    let messages =
        conversation.timed(Phase::Normalise, || conversation.read(|thread| thread.messages.clone()));
    let in_force = session.in_force();
    let preferences = &in_force.policy.preferences;
    let state = session.state();
    let reminders = reminders::for_request(conversation, &state, &tools, preferences.todo_reminder_rounds);
    ModelRequest {
        system: vec![system.text()],
        messages,
        reminders,
        tools,
        max_tokens: profile.max_tokens,
        temperature: profile.temperature,
        top_p: profile.top_p,
        effort: conversation.effort(state.effort, &state).or(profile.effort).or(preferences.effort),
        cache_key: Some(cache_key(session.id(), conversation.agent.as_ref())),
    }
}

/// What stands in every request of a conversation: the system prompt and the tools.
fn fixed(conversation: &Conversation<'_>) -> (SystemPrompt, Vec<ToolDeclaration>) {
    let session = conversation.session;
    let catalog = session.catalog();
    let in_force = conversation.in_force();
    let can_diagnose = session.workspace.can_diagnose();
    let agents = session.agents.types();
    let standing = session.standing();
    let state = session.state();
    let is_denied = |tool: &str| in_force.rules.removes(tool).is_some();
    let offering = Offering {
        mode: conversation.mode(state.mode),
        can_diagnose,
        catalog: &catalog,
        is_denied: &is_denied,
        agents: &agents,
    };
    let tools = conversation.tools.declarations_for(&offering);
    let servers = session.servers().instructions();
    (system_prompt(&state, conversation.assignment.as_ref(), &standing, &servers), tools)
}

/// Names a conversation to providers that keep a cache for each.
fn cache_key(session: &SessionId, agent: Option<&AgentId>) -> String {
    agent.map_or_else(|| session.to_string(), |agent| format!("{session}/{agent}"))
}
