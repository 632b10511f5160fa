//! Who may do what: modes, standing answers of the session, and the prompts that wait for the user.
//!
//! Rule: one gate for every call. The gate is a pure function of the mode, the call and the standing answers; the
//! broker only carries questions and answers, and anything but a clear yes is a no.

pub mod broker;
pub mod delivery;
pub mod gate;
pub mod shell;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{AgentId, CallId, HunkId, ItemId, PermissionId};
pub use broker::{Answered, Broker, RespondError};
pub use delivery::{BadRule, Deliveries, Delivery, DeliveryRule};
pub use gate::{Grant, Verdict};

/// How much the agent may do unasked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Reads run; edits and commands ask.
    #[default]
    Default,
    /// Reads and edits inside the workspace run; commands ask.
    AcceptEdits,
    /// Reads run; edits and commands are refused.
    Plan,
    /// Everything runs.
    BypassPermissions,
}

impl Mode {
    /// All modes in the order in which clients list them.
    pub const ALL: [Self; 4] = [Self::Default, Self::AcceptEdits, Self::Plan, Self::BypassPermissions];

    /// The name used in settings and on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::BypassPermissions => "bypassPermissions",
        }
    }

    /// The one of two that allows less.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        let freedom = |mode: Self| match mode {
            Self::Plan => 0,
            Self::Default => 1,
            Self::AcceptEdits => 2,
            Self::BypassPermissions => 3,
        };
        if freedom(other) < freedom(self) { other } else { self }
    }

    /// The mode of that name, in this product's spelling or another agent's.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "default" | "DEFAULT" => Some(Self::Default),
            "acceptEdits" | "AUTO_EDIT" => Some(Self::AcceptEdits),
            "plan" | "PLAN" => Some(Self::Plan),
            "bypassPermissions" | "YOLO" => Some(Self::BypassPermissions),
            _ => None,
        }
    }
}

/// What is asked of the user before a call runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionPrompt {
    /// Names the prompt in the answer.
    pub id: PermissionId,
    /// The call that waits.
    pub call: CallId,
    /// The call's item in the transcript.
    pub item: ItemId,
    /// The sub-agent that made the call; `None` for the session's own conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The tool.
    pub tool: String,
    /// One line for people.
    pub title: String,
    /// Why the user is asked.
    pub reason: String,
    /// Exactly what will happen.
    pub preview: Preview,
    /// What could go wrong, worst first; may be empty.
    pub risks: Vec<String>,
    /// How far a yes can reach.
    pub scopes: Vec<Scope>,
    /// What a yes for the session would allow without asking, as a rule; `None` when no standing yes is offered.
    pub rule: Option<String>,
    /// The arguments, which the answer may replace.
    pub input: Value,
    /// When it was asked.
    pub timestamp: Timestamp,
}

/// Exactly what a call will do, for the user to judge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Preview {
    /// A command line and where it runs.
    Command {
        /// The command line, exactly.
        command: String,
        /// The folder it starts in.
        cwd: String,
    },
    /// Changes to files.
    Diff {
        /// The paths or untitled URIs, as shown to people.
        paths: Vec<String>,
        /// The change as a unified diff.
        unified: String,
    },
    /// Files or folders that are read.
    Paths {
        /// The paths, as shown to people.
        paths: Vec<String>,
    },
}

/// How far a yes reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// This call.
    Once,
    /// This call and those the prompt's rule covers, until the session ends.
    Session,
}

/// What the user says to a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Yes or no.
    pub allow: bool,
    /// How far a yes reaches.
    pub scope: Scope,
    /// Words for the model, mostly with a no.
    pub feedback: Option<String>,
    /// Arguments to use instead of the model's; checked again.
    pub updated_input: Option<Value>,
    /// With a yes to a change: the hunks of it that are meant; all of them when `None`.
    pub hunks: Option<Vec<HunkId>>,
    /// Which surface or client answered.
    pub by: String,
}

/// What became of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The prompt.
    pub id: PermissionId,
    /// The call.
    pub call: CallId,
    /// What was decided.
    pub outcome: Outcome,
    /// How far a yes reaches; `Once` for everything else.
    pub scope: Scope,
    /// Which surface or client decided, or `cancel`.
    pub by: String,
    /// Words for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
}

/// How a prompt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The call runs.
    Allow,
    /// The call is refused.
    Deny,
    /// The call, the turn or the session was cancelled before anyone answered.
    Cancelled,
}
