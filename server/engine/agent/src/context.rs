//! The requests to the model: system prompt, history, tools, reminders.
//!
//! Rule: a request is a byte prefix of the turn's next one, up to the additions, so that provider caches hold; nothing that
//! changes from call to call precedes the history.

mod cut_prompts;
pub mod meter;
pub(crate) mod needs;
pub(crate) mod reminders;
mod system;
pub mod tokens;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::conversation::Conversation;
use crate::conversation::phases::Phase;
use crate::core::environment::Environment;
use crate::core::{Core, lock};
use crate::extensions::SessionExtensions;
use crate::gate::Gatekeeper;
use crate::instructions::{InstructionLoader, Instructions};
use crate::servers::SessionServers;
use kode_base::ids::{AgentId, SessionId};
use kode_model::profile::Profile;
use kode_model::{Block, History, Message, ModelRequest, ToolChoice, ToolDeclaration};
use kode_tool::OfferContext;
use meter::Meters;
use needs::{ContextRoom, NeededTools};
use reminders::Reminders;
use system::{SystemPrompt, system_prompt};

/// Builds the requests of a session and measures how full its context windows are.
pub struct ContextBuilder {
    core: Arc<Core>,
    environment: Environment,
    gate: Arc<Gatekeeper>,
    extensions: Arc<SessionExtensions>,
    instructions: Arc<InstructionLoader>,
    servers: Arc<SessionServers>,
    meters: Meters,
    reminders: Reminders,
}

/// The components that requests are built from.
pub(crate) struct ContextBuilderParts<'a> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) environment: &'a Environment,
    pub(crate) gate: &'a Arc<Gatekeeper>,
    pub(crate) extensions: &'a Arc<SessionExtensions>,
    pub(crate) instructions: &'a Arc<InstructionLoader>,
    pub(crate) servers: &'a Arc<SessionServers>,
}

impl ContextBuilder {
    pub(crate) fn new(parts: &ContextBuilderParts<'_>) -> Arc<Self> {
        Arc::new(Self {
            core: Arc::clone(parts.core),
            environment: parts.environment.clone(),
            gate: Arc::clone(parts.gate),
            extensions: Arc::clone(parts.extensions),
            instructions: Arc::clone(parts.instructions),
            servers: Arc::clone(parts.servers),
            meters: Meters::default(),
            reminders: Reminders::default(),
        })
    }

    /// The request for the next model call of a conversation.
    pub(crate) fn request(&self, conversation: &Conversation, profile: &Profile) -> ModelRequest {
        let (system, tools) =
            self.fixed(conversation, ContextRoom::of(profile), profile.capabilities.patches);
        let messages = conversation
            .timed(Phase::Normalise, || conversation.thread.read(|thread| thread.messages.clone()));
        let settings = self.settings(conversation, profile);
        let in_force = self.gate.in_force();
        let state = self.core.state();
        let rounds = in_force.policy.preferences.todo_reminder_rounds;
        let reminders = self.reminders(conversation, &state, &tools, rounds);
        *lock(&conversation.requested_mode) = Some(state.config.mode);
        ModelRequest { system: vec![system.text()], messages, reminders, tools, ..settings }
    }

    /// A request that asks something beside a conversation, about `messages` of it: but for `texts` at its end it is what the
    /// conversation's own request would be after these messages, so that the provider's cache of it is read.
    pub(crate) fn side_request(
        &self,
        conversation: &Conversation,
        profile: &Profile,
        (messages, texts): (History, Vec<String>),
        instructions: &Instructions,
    ) -> ModelRequest {
        let takes_patches = profile.capabilities.patches;
        let (system, tools) =
            self.fixed_with(conversation, ContextRoom::of(profile), takes_patches, instructions);
        let (messages, reminders) = match messages.is_empty() {
            true => {
                let blocks = texts.into_iter().map(|text| Block::Text { text }).collect();
                (vec![Message::user(blocks)].into(), Vec::new())
            }
            false => (messages, texts),
        };
        ModelRequest {
            system: vec![system.text()],
            messages,
            reminders,
            tools,
            tool_choice: ToolChoice::None,
            ..self.settings(conversation, profile)
        }
    }

    /// A request of a conversation without its texts and tools.
    fn settings(&self, conversation: &Conversation, profile: &Profile) -> ModelRequest {
        let preferred = self.gate.in_force().policy.preferences.effort;
        let state = self.core.state();
        let effort = conversation.effort(state.config.effort, &state).or(profile.effort).or(preferred);
        ModelRequest {
            max_tokens: profile.max_tokens,
            temperature: profile.temperature,
            top_p: profile.top_p,
            effort,
            cache_key: Some(cache_key(self.core.id(), conversation.agent())),
            ..ModelRequest::default()
        }
    }

    /// The parts of every request of a conversation, as far as there is room: the system prompt and the tools.
    fn fixed(
        &self,
        conversation: &Conversation,
        room: ContextRoom,
        takes_patches: bool,
    ) -> (SystemPrompt, Vec<ToolDeclaration>) {
        self.fixed_with(conversation, room, takes_patches, &self.instructions.current())
    }

    /// As [`Self::fixed`], with these instructions.
    fn fixed_with(
        &self,
        conversation: &Conversation,
        room: ContextRoom,
        takes_patches: bool,
        instructions: &Instructions,
    ) -> (SystemPrompt, Vec<ToolDeclaration>) {
        let catalog = self.extensions.catalog();
        let in_force = self.gate.in_force_for(conversation);
        let workspace = &self.environment.workspace;
        let (can_diagnose, has_languages) = (workspace.can_diagnose(), workspace.languages().is_some());
        let agents = self.extensions.agent_types();
        let mode = conversation.mode(self.core.state().config.mode);
        let is_denied = |tool: &str| in_force.rules.removes(tool).is_some();
        let in_team = is_in_team(&self.core, conversation);
        let offering = OfferContext {
            mode,
            can_diagnose,
            has_languages,
            catalog: &catalog,
            is_denied: &is_denied,
            agents: &agents,
            by_need: matches!(room, ContextRoom::Small(_)),
            takes_patches,
            in_team,
        };
        let mut tools = conversation.tools.declarations_for(&offering);
        let by_need = room.is_by_need(&tools);
        if by_need && !offering.by_need {
            tools = conversation.tools.declarations_for(&OfferContext { by_need, ..offering });
        }
        // Read before the state is locked.
        let needed = if by_need { needs::of(conversation) } else { BTreeSet::new() };
        let servers = self.servers.all().instructions();
        let state = self.core.state();
        let prompt = |further: &str| {
            let (assignment, most) = (conversation.assignment.as_ref(), needs::overview_tokens(room));
            let place = (assignment, self.gate.isolation());
            system_prompt(&state, place, instructions, (&servers, further), most)
        };
        if !by_need {
            return (prompt(""), tools);
        }
        let NeededTools { declared, left_out } = needs::divide(tools, &needed, room);
        let prompt = prompt(&needs::further(&left_out, room));
        match room {
            ContextRoom::Ample(_) => (prompt, declared),
            ContextRoom::Small(_) => {
                (needs::fit(prompt, room), declared.into_iter().map(needs::shortened).collect())
            }
        }
    }
}

/// Whether a conversation is offered the tools of a team: a sub-agent while it works in the background, the session's own from
/// its first such sub-agent on, so that the tools of its requests change once.
fn is_in_team(core: &Core, conversation: &Conversation) -> bool {
    let state = core.state();
    match conversation.agent() {
        None => state.background.team.has_begun(),
        agent @ Some(_) => state.background.team.caller(agent).is_ok(),
    }
}

/// The name of a conversation for providers that keep a cache for each.
fn cache_key(session: &SessionId, agent: Option<&AgentId>) -> String {
    agent.map_or_else(|| session.to_string(), |agent| format!("{session}/{agent}"))
}
