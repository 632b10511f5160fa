//! How long the phases of a turn took.
//!
//! Rule: times are in milliseconds.

use serde::{Deserialize, Serialize};

/// How long each phase took, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PhaseTimes {
    /// [`Phase::CompactCheck`].
    pub compact_check_ms: u64,
    /// [`Phase::PromptBuild`].
    pub prompt_build_ms: u64,
    /// [`Phase::Normalise`].
    pub normalise_ms: u64,
    /// [`Phase::ModelCall`].
    pub model_call_ms: u64,
    /// [`Phase::ToolExecution`].
    pub tool_execution_ms: u64,
    /// [`Phase::Next`].
    pub next_ms: u64,
}
