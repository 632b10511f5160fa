//! Hooks: what the user has run at certain moments of a session.
//!
//! Rule: a hook is reported by its place and how it ended; what it read and printed is not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::permission::SettingsProblem;
use crate::text::{SessionId, Timestamp};

/// The session of the hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListHooksParams {
    /// The session; without one those that new sessions of the workspace would have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// The hooks, as the settings say now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListHooksResult {
    /// Whether all of them are switched off.
    pub disabled: bool,
    /// The hooks, the strongest source first.
    pub hooks: Vec<HookInfo>,
    /// Their problems, and where.
    pub problems: Vec<SettingsProblem>,
}

/// A hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookInfo {
    /// The event it is for, as its file names it.
    pub event: String,
    /// Whether that event ever comes here.
    pub fired: bool,
    /// Its purpose, as its file says it; absent for everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// The type of the handler: `command`, `http`, `prompt`, or what the file says.
    pub kind: String,
    /// The beginning of what it runs.
    pub name: String,
    /// Its place, for people.
    pub source: String,
    /// The path of its file, if it is from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in that file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The item that declares it, outside of settings files; absent for one that runs always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bringer: Option<HookOwner>,
    /// Whether it may run.
    pub approval: HookApproval,
    /// Why it does not run, or not quite as it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// How it ended last in the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<HookLastRun>,
}

/// The file of an agent, skill or command that brings a hook along.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookOwner {
    /// The described item.
    pub kind: HookOwnerKind,
    /// Its name.
    pub name: String,
}

/// The kind of item that declares a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HookOwnerKind {
    /// A type of sub-agent: the hook runs while one of it works.
    Agent,
    /// A skill: the hook runs from its use on.
    Skill,
    /// A command: the same.
    Command,
    /// Something that this build does not know.
    #[serde(other)]
    Other,
}

/// Whether a hook may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HookApproval {
    /// It is the user's own, or the administrator's.
    NotNeeded,
    /// The user has approved it unchanged.
    Approved,
    /// It does not run until the user approves it.
    Waiting,
}

/// How a hook ended last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookLastRun {
    /// When.
    pub at: Timestamp,
    /// How.
    pub outcome: HookOutcome,
    /// Milliseconds it took.
    pub duration_ms: u64,
    /// Its output, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How a run of a hook ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// It runs on by itself.
    InBackground,
    /// An outcome that this build does not know.
    #[serde(other)]
    Other,
}

/// A hook ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookRan {
    /// The event it ran at.
    pub event: String,
    /// The beginning of what it runs.
    pub name: String,
    /// Milliseconds it took.
    pub duration_ms: u64,
    /// How it ended.
    pub outcome: HookOutcome,
    /// Its output, in one line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
