//! The components that a turn works with, and the turn that they work for.
//!
//! Rule: the loop alone gets all of them. A component below the loop gets those that it needs, by name.

use std::sync::Arc;

use crate::context::ContextBuilder;
use crate::conversation::Conversation;
use crate::core::Core;
use crate::core::environment::Environment;
use crate::edits::Edits;
use crate::extensions::SessionExtensions;
use crate::gate::Gatekeeper;
use crate::hooks::HookRunner;
use crate::input::InputReader;
use crate::instructions::InstructionLoader;
use crate::models::SessionModels;
use crate::requests::UserRequests;
use crate::servers::SessionServers;
use crate::state::thread::Thread;
use crate::turn::agent_slots::AgentSlots;
use crate::turn::call_slots::CallSlots;
use crate::turn::goals::Goals;
use crate::turn::turns::Turns;
use kode_base::ids::{CallId, TurnId};
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_record::event::{Breakpoint, Event, Item, ItemBody, NoticeKind, NoticeLevel};
use kode_record::record::Record;
use kode_tool::guest::GuestRunner;

/// The components that the turns of a session work with.
pub(crate) struct Services {
    pub(crate) core: Arc<Core>,
    pub(crate) environment: Environment,
    pub(crate) gate: Arc<Gatekeeper>,
    pub(crate) models: Arc<SessionModels>,
    pub(crate) requests: Arc<UserRequests>,
    pub(crate) edits: Arc<Edits>,
    pub(crate) extensions: Arc<SessionExtensions>,
    pub(crate) servers: Arc<SessionServers>,
    pub(crate) instructions: Arc<InstructionLoader>,
    pub(crate) hooks: Arc<HookRunner>,
    pub(crate) context: Arc<ContextBuilder>,
    pub(crate) input: Arc<InputReader>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) goals: Arc<Goals>,
    /// Slots of running calls; a call that waits for the user or for other calls takes none.
    pub(crate) call_slots: CallSlots,
    pub(crate) agent_slots: AgentSlots,
    /// Runs guests; `None` where none can work.
    pub(crate) guests: Option<Arc<dyn GuestRunner>>,
    /// The folder of the worktrees of sub-agents.
    pub(crate) worktrees: AbsPath,
}

/// A turn of a conversation, with the components that it works with.
#[derive(Clone, Copy)]
pub(crate) struct TurnContext<'a> {
    pub(crate) services: &'a Arc<Services>,
    pub(crate) conversation: &'a Conversation,
    pub(crate) id: &'a TurnId,
}

impl Services {
    /// The session's own conversation.
    pub(crate) fn main_conversation(&self) -> Conversation {
        Conversation::main(&self.core, &self.environment)
    }
}

impl TurnContext<'_> {
    /// The mode in which the turn's calls are judged now.
    pub(crate) fn mode(&self) -> Mode {
        self.conversation.current_mode()
    }

    /// Publishes a step of the turn; the steps of sub-agents are not published.
    pub(crate) fn reach(&self, breakpoint: Breakpoint, call: Option<&CallId>) {
        self.publish_step(breakpoint, call.cloned(), None, None);
    }

    /// Publishes that the model is asked next: for the `model_call`th time of `max_model_calls`.
    pub(crate) fn reach_model(&self, model_call: u32, max_model_calls: Option<u32>) {
        self.publish_step(Breakpoint::PreModel, None, Some(model_call), max_model_calls);
    }

    fn publish_step(
        &self,
        breakpoint: Breakpoint,
        call: Option<CallId>,
        model_call: Option<u32>,
        max_model_calls: Option<u32>,
    ) {
        if self.conversation.is_main() {
            let turn = self.id.clone();
            let step = Event::BreakpointChanged { turn, breakpoint, call, model_call, max_model_calls };
            self.services.core.publish(step);
        }
    }

    /// Reads the conversation as it is now.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Thread) -> T) -> T {
        self.conversation.thread.read(read)
    }

    /// Commits a record of the conversation.
    pub(crate) fn commit(&self, record: Record) {
        self.conversation.thread.commit(record);
    }

    /// Makes an item of the turn.
    pub(crate) fn new_item(&self, body: ItemBody) -> Item {
        self.conversation.thread.new_item(self.id, body)
    }

    /// Adds a notice to the transcript.
    pub(crate) fn notice(&self, level: NoticeLevel, text: String, hint: Option<String>) {
        self.conversation.thread.notice(self.id, level, text, hint);
    }

    /// Adds a notice of a kind to the transcript; an empty hint is left out.
    pub(crate) fn notice_of(&self, kind: NoticeKind, notice: (NoticeLevel, &str, &str)) {
        self.conversation.thread.notice_of(kind, self.id, notice);
    }
}
