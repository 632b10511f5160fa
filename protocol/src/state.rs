//! The state of a session that snapshots, lists and events share.
//!
//! Rule: plain values below `event`, `session` and `sessions`, so that none of the three needs another for them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::Timestamp;

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum RunState {
    /// Nothing; the next prompt starts at once.
    Ready,
    /// A turn runs.
    Working,
    /// A turn runs and waits for an answer of the user.
    Paused,
}

/// How hard a model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Effort {
    /// Little.
    Low,
    /// As usual.
    Medium,
    /// Much.
    High,
}

/// How hard a model is to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum EffortChoice {
    /// As the profile and the settings say.
    Auto,
    /// Little.
    Low,
    /// As usual.
    Medium,
    /// Much.
    High,
}

/// A server that writes a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionWriter {
    /// Its process; 0 when that is not known.
    pub pid: u32,
    /// The name of its host, if that is another one than the server's. Its process id means nothing on the server's host then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The name of its client.
    pub client: String,
    /// Its version.
    pub version: String,
    /// Since when it writes.
    pub since: Timestamp,
}
