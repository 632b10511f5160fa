//! The team of a session: its own conversation and its sub-agents in the background, their mailboxes and their shared list of
//! tasks.
//!
//! Rule: members go by their names, which are unique in a session. Entries are facts; the fold of a session checks nothing.

use jiff::Timestamp;
use kode_base::ids::AgentId;
use serde::{Deserialize, Serialize};

/// A change of the team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TeamEntry {
    /// A sub-agent begins to work in the background, for the first time or once more.
    Joined {
        /// Its name.
        name: String,
        /// The sub-agent.
        agent: AgentId,
        /// The name of its type.
        kind: String,
        /// Its task, in a few words.
        description: String,
    },
    /// A sub-agent has not begun after all.
    Withdrawn {
        /// Its name.
        name: String,
    },
    /// A sub-agent has ended: its tasks are free again, and the messages that it has not read go back to their senders.
    Left {
        /// Its name.
        name: String,
    },
    /// A message was sent.
    Sent {
        /// The message.
        message: TeamMessage,
        /// The names of its recipients.
        to: Vec<String>,
    },
    /// Messages reached the conversation of their recipient.
    Read {
        /// The name of the recipient.
        by: String,
        /// Their numbers.
        numbers: Vec<u64>,
    },
    /// A member waits for a message.
    Waiting {
        /// Its name.
        name: String,
        /// The sender that it waits for; `None` for any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<String>,
    },
    /// A member waits no more.
    Continued {
        /// Its name.
        name: String,
    },
    /// A task was added to the shared list.
    TaskAdded {
        /// The task.
        task: TeamTask,
    },
    /// A task was claimed.
    TaskClaimed {
        /// Its number.
        task: u32,
        /// The name of its owner from now on.
        by: String,
    },
    /// A task was completed.
    TaskCompleted {
        /// Its number.
        task: u32,
        /// The name of the member that completed it.
        by: String,
    },
    /// A task has no owner any more.
    TaskReleased {
        /// Its number.
        task: u32,
    },
    /// The tasks before a task were replaced.
    TaskBlocked {
        /// Its number.
        task: u32,
        /// The numbers of the tasks before it.
        blocked_by: Vec<u32>,
    },
}

/// A message from one member to another, or from the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamMessage {
    /// Its number in the session, from 1 on.
    pub number: u64,
    /// The name of its sender; [`kode_base::team::USER`] for the user.
    pub from: String,
    /// Its text.
    pub text: String,
    /// When it was sent.
    pub at: Timestamp,
    /// The name of the recipient that ended before it had read the message; absent for every other message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_by: Option<String>,
}

/// A task of the shared list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamTask {
    /// Its number in the session, from 1 on.
    pub number: u32,
    /// Its topic.
    pub title: String,
    /// How far it is.
    pub state: TeamTaskState,
    /// The name of its owner, or of the member that completed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The numbers of the tasks that have to be completed before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<u32>,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TeamTaskState {
    /// It has no owner.
    Open,
    /// Its owner works on it.
    Claimed,
    /// It is completed.
    Completed,
}

/// The team as clients see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TeamView {
    /// The main conversation, then the sub-agents in the order in which they began.
    pub members: Vec<TeamMember>,
    /// The shared list, oldest task first; `blocked_by` has only tasks that are not completed.
    pub tasks: Vec<TeamTask>,
}

/// A member of the team as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamMember {
    /// Its name.
    pub name: String,
    /// The sub-agent; `None` for the main conversation.
    pub agent: Option<AgentId>,
    /// The name of its type; empty for the main conversation.
    pub kind: String,
    /// Its task, in a few words; empty for the main conversation.
    pub description: String,
    /// Its state.
    pub state: MemberState,
    /// The number of messages that it has not read.
    pub unread: usize,
}

/// The state of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// It works.
    Working,
    /// It waits for a message of this member; `None` for one of any member.
    WaitingFor(Option<String>),
    /// It waits for the user to decide about a call.
    Permission,
    /// It waits for the user to answer a question.
    Question,
    /// No turn of the main conversation runs.
    Idle,
    /// The sub-agent has ended.
    Ended,
}
