//! Hooks: what the user has run at certain moments of a session, to look on, to refuse, to change or to add.
//!
//! Rule: a hook that is not in force is never run; what a hook says is data that is checked like anything else that comes
//! from outside; and a hook that fails, hangs or says nonsense decides nothing. Where no hook is configured, nothing is
//! done and nothing is waited for.

pub(crate) mod brought;
pub(crate) mod combine;
pub(crate) mod compaction;
pub(crate) mod environment;
pub(crate) mod fire;
mod http;
pub mod in_process;
pub mod list;
pub(crate) mod moments;
pub(crate) mod output;
mod prompt;
pub(crate) mod run;
pub(crate) mod state;
pub(crate) mod tool;
pub(crate) mod transcript;
pub(crate) mod update;

pub use in_process::{HookCall, HookChain, HookLayer, PostUpdate, PreDecision, ToolHook};
pub use list::{Bringer, BringerKind, HookInfo, HookList, LastRun};
pub use state::{EndReason, StartSource};

/// The longest text of a hook that is put into a conversation as it is, in characters; what is longer goes on in a file.
pub const MAX_TEXT: usize = 10_000;

/// So many hooks of one session run at the same time.
pub const MAX_AT_ONCE: usize = 5;
