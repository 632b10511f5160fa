//! Newtypes for everything that is text on the wire and more than text in meaning: ids, times, URIs.
//!
//! Rule: ids are opaque and made by the server (call ids by the model, ids of side questions by the client); a client stores, compares and returns them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! text {
    ($($(#[$attribute:meta])* $name:ident;)*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes the text as it is.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text.
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
    )*};
}

text! {
    /// Names a session: one conversation with its journal.
    SessionId;
    /// Names a turn: one prompt and all that the agent does about it.
    TurnId;
    /// Names an item of the transcript.
    ItemId;
    /// Names a sub-agent: a conversation of its own that a tool call has started.
    AgentId;
    /// Names a tool call; chosen by the model, unique only within a session.
    CallId;
    /// Names a command in the background; unique only within a session.
    TaskId;
    /// Names a permission prompt.
    PermissionId;
    /// Names a question that the model puts to the user.
    QuestionId;
    /// Names a side question; chosen by the client that asks it.
    AskId;
    /// Names a prompt that waits in a session's queue.
    QueueId;
    /// Names a hunk: one place in a file that the agent has changed or wants to change.
    HunkId;
    /// Names one act of the user on hunks or on a checkpoint.
    ResolutionId;
    /// Names a checkpoint: the state before a prompt.
    CheckpointId;
    /// A time in UTC as RFC 3339, for example `2025-03-01T09:30:00.123456Z`.
    Timestamp;
    /// A URI as LSP has it: `file:///…`, percent-encoded, or `untitled:…` for a document without a file. Clients
    /// may spell one file in several ways, so compare parsed URIs and not their text.
    Uri;
}
