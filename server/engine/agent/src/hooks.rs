//! Hooks: commands, requests and questions that the user has run at certain events of a session.
//!
//! Rule: a hook that is not in force never runs. Its output is checked like any other input from outside; a hook that fails,
//! hangs or prints nonsense decides nothing. Without configured hooks nothing is done and nothing is waited for.

pub(crate) mod call;
pub(crate) mod carried;
pub(crate) mod combine;
mod compaction;
pub(crate) mod environment;
mod fire;
mod http;
pub mod in_process;
mod lifecycle;
pub mod list;
pub(crate) mod output;
mod prompt;
pub(crate) mod run;
pub(crate) mod state;
pub(crate) mod transcript;
pub(crate) mod update;

use std::sync::Arc;

use crate::core::Core;
use crate::core::environment::Environment;
use crate::extensions::SessionExtensions;
use crate::gate::Gatekeeper;
use crate::models::SessionModels;
use kode_base::paths::AbsPath;
use state::HookState;

pub use in_process::{HookCall, HookChain, HookLayer, PostUpdate, PreCallDecision, ToolHook};
pub(crate) use lifecycle::{Admission, IDLE, StopDecision, reject_prompt};
pub use lifecycle::{EndReason, StartSource};
pub use list::{HookInfo, HookList, HookOwner, HookOwnerKind, LastRun};

/// The longest text of a hook that is put into a conversation, in characters; the rest is written to a file.
pub const MAX_TEXT: usize = 10_000;

/// The most hooks of one session that run at the same time.
pub const MAX_AT_ONCE: usize = 5;

/// Runs the hooks of a session.
pub struct HookRunner {
    core: Arc<Core>,
    environment: Environment,
    gate: Arc<Gatekeeper>,
    models: Arc<SessionModels>,
    extensions: Arc<SessionExtensions>,
    state: HookState,
}

/// The components that hooks are run with.
pub(crate) struct HookParts<'a> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) environment: &'a Environment,
    pub(crate) gate: &'a Arc<Gatekeeper>,
    pub(crate) models: &'a Arc<SessionModels>,
    pub(crate) extensions: &'a Arc<SessionExtensions>,
}

impl HookRunner {
    /// The hooks of a session that begins in the way of `start`; `chain` are those of the program itself.
    pub(crate) fn new(parts: &HookParts<'_>, chain: Arc<HookChain>, start: StartSource) -> Arc<Self> {
        Arc::new(Self {
            core: Arc::clone(parts.core),
            environment: parts.environment.clone(),
            gate: Arc::clone(parts.gate),
            models: Arc::clone(parts.models),
            extensions: Arc::clone(parts.extensions),
            state: HookState::new(chain, start),
        })
    }

    /// The folder of the project that hooks run in. That of the workspace, also for a session in a worktree: the user has approved
    /// the scripts there.
    fn project(&self) -> AbsPath {
        match self.gate.isolation() {
            Some(isolation) => isolation.outer().cwd(),
            None => self.environment.workspace.cwd(),
        }
    }
}
