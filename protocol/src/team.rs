//! The team of a session: its own conversation and its sub-agents in the background, with their mailboxes and tasks.
//!
//! Rule: a team is always sent whole. Its members go by their names, which are unique in a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{AgentId, SessionId};

/// The team of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Team {
    /// The main conversation, then the sub-agents in the order in which they began; also some that have ended.
    pub members: Vec<TeamMember>,
    /// The shared list of tasks, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TeamTask>,
}

/// A member of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TeamMember {
    /// Its name; that of the main conversation is `main`.
    pub name: String,
    /// The sub-agent; absent for the main conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The name of its type; absent for the main conversation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent_type: String,
    /// Its task, in a few words; absent for the main conversation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its state.
    pub state: TeamMemberState,
    /// The member whose message it waits for; absent for a message of any member, and in other states than `waiting`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// The number of messages that it has not read.
    pub unread: u32,
}

/// The state of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TeamMemberState {
    /// It works.
    Working,
    /// It waits for a message.
    Waiting,
    /// It waits for the user to decide about a call.
    Permission,
    /// It waits for the user to answer a question.
    Question,
    /// No turn of the main conversation runs.
    Idle,
    /// The sub-agent has ended.
    Ended,
}

/// A task of the shared list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TeamTask {
    /// Its number, from 1 on.
    pub number: u32,
    /// Its topic, in one line.
    pub title: String,
    /// How far it is.
    pub state: TeamTaskState,
    /// The name of the member that works on it or has completed it; absent for an open task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The numbers of the uncompleted tasks that come before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<u32>,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TeamTaskState {
    /// No member works on it.
    Open,
    /// Its owner works on it.
    Claimed,
    /// It is completed.
    Completed,
}

/// The team changed: a member joined, ended, waits or continues, a message was sent or read, or a task changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TeamChanged {
    /// The team now; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<Team>,
}

/// A message of the user to a sub-agent in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SendToTeamParams {
    /// The session.
    pub session_id: SessionId,
    /// The name of the sub-agent, or `*` for all that are at work.
    pub to: String,
    /// The text, at most 8 KiB.
    pub text: String,
}

/// The recipients of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SendToTeamResult {
    /// Their names.
    pub to: Vec<String>,
}
