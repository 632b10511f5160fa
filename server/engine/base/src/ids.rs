//! Newtypes for every id the engine makes.
//!
//! Rule: an id is opaque, made only here, sorted by time of making (UUID v7) and never reused; its prefix says
//! what it names, so that a wrong id in a log or a request is seen at once.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Makes a new id, unique across processes.
            #[must_use]
            pub fn generate() -> Self {
                Self(format!(concat!($prefix, "_{}"), uuid::Uuid::now_v7().simple()).into())
            }

            /// Takes an id that came from outside as it is; looking it up decides whether it names anything.
            pub fn from_external(text: impl AsRef<str>) -> Self {
                Self(text.as_ref().into())
            }

            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

id!(
    /// A session: one conversation with its journal.
    SessionId, "ses"
);
id!(
    /// A turn: one prompt and all that the agent does about it.
    TurnId, "turn"
);
id!(
    /// A sub-agent: a conversation of its own that a call has started.
    AgentId, "agent"
);
id!(
    /// The time for which one process writes a session.
    LeaseId, "lease"
);
id!(
    /// An ask for a session that another process writes.
    AskId, "ask"
);
id!(
    /// An item of the transcript.
    ItemId, "item"
);
id!(
    /// A tool call. The model chooses this id, so it comes from outside and is unique only within a session.
    CallId, "call"
);
id!(
    /// A background command. Unique only within a session: its number, so that a model can name it.
    TaskId, "bash"
);
id!(
    /// A permission prompt.
    PermissionId, "perm"
);
id!(
    /// A question that the model puts to the user.
    QuestionId, "ques"
);
id!(
    /// A prompt waiting in a session's queue.
    QueueId, "queue"
);
id!(
    /// A change set that was applied or refused.
    ChangeId, "change"
);
id!(
    /// A hunk: one place in a file that the agent has changed or wants to change.
    HunkId, "hunk"
);
id!(
    /// One act of the user on hunks: accepting, rejecting, keeping, undoing, or taking one of these back.
    ResolutionId, "res"
);
id!(
    /// A checkpoint: the state before a prompt.
    CheckpointId, "ckpt"
);
id!(
    /// The history of a conversation up to where it was compacted.
    WindowId, "win"
);

impl TaskId {
    /// The background command of that number.
    #[must_use]
    pub fn numbered(number: usize) -> Self {
        Self(format!("bash_{number}").into())
    }
}

impl CheckpointId {
    /// The checkpoint before the prompt of a turn.
    #[must_use]
    pub fn before(turn: &TurnId) -> Self {
        let id = turn.as_str();
        Self(format!("ckpt_{}", id.strip_prefix("turn_").unwrap_or(id)).into())
    }
}
