//! The content of a prompt: the words of the user, and the files and other things that they point at.
//!
//! Rule: the journal has a prompt as it was submitted before anything is read for it. What it points at is read when its
//! turn begins, so that a prompt that waited has the files as they are then.

mod attach;
pub mod complete;
mod look_up;
pub mod mention;
pub mod note;
mod render;

use std::sync::Arc;

use crate::core::Core;
use crate::core::editor::EditorMemo;
use crate::core::environment::Environment;
use crate::gate::Gatekeeper;
use crate::instructions::InstructionLoader;
use crate::servers::SessionServers;

/// Reads what the prompts of a session point at, and writes its notes.
pub(crate) struct InputReader {
    core: Arc<Core>,
    environment: Environment,
    gate: Arc<Gatekeeper>,
    servers: Arc<SessionServers>,
    instructions: Arc<InstructionLoader>,
    editor: Arc<EditorMemo>,
}

/// The components that input is read with.
pub(crate) struct InputParts<'a> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) environment: &'a Environment,
    pub(crate) gate: &'a Arc<Gatekeeper>,
    pub(crate) servers: &'a Arc<SessionServers>,
    pub(crate) instructions: &'a Arc<InstructionLoader>,
    pub(crate) editor: &'a Arc<EditorMemo>,
}

impl InputReader {
    pub(crate) fn new(parts: &InputParts<'_>) -> Arc<Self> {
        Arc::new(Self {
            core: Arc::clone(parts.core),
            environment: parts.environment.clone(),
            gate: Arc::clone(parts.gate),
            servers: Arc::clone(parts.servers),
            instructions: Arc::clone(parts.instructions),
            editor: Arc::clone(parts.editor),
        })
    }

    /// Forgets the editor's content: the conversation contains it no more.
    pub(crate) fn forget_editor(&self) {
        self.editor.forget();
    }
}
