//! How a run of a hook ended.
//!
//! Rule: plain data.

use serde::{Deserialize, Serialize};

/// How a run of a hook ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HookOutcome {
    /// It had nothing against what happens.
    Ok,
    /// It refused or held back the event, or had something done again.
    Blocked,
    /// It asked for a person's decision.
    Asked,
    /// It changed something, or added to what the model reads.
    Changed,
    /// It stopped the turn.
    Stopped,
    /// It failed, and nothing came of it.
    Failed,
    /// Its program is missing or cannot be started.
    NotSetUp,
    /// It took too long.
    TimedOut,
    /// The turn or the session was cancelled while it ran.
    Cancelled,
    /// It runs on by itself, and what it says decides nothing.
    InBackground,
}
