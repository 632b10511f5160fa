//! The items a transcript is made of.
//!
//! Rule: an item is a unit that users see; its last state is in the journal before any client gets it
//! final, and what the model is sent is kept apart from it.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::prompt::Attachment;
use kode_base::call::{ToolErrorKind, ToolKind};
use kode_base::capacity;
use kode_base::ids::{AgentId, CallId, ItemId, SessionId, TurnId};
use kode_config::command::CommandUse;

/// One item of the transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Its id.
    pub id: ItemId,
    /// The turn it belongs to.
    pub turn: TurnId,
    /// The sub-agent whose transcript it is in; `None` for the session's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// When it was added.
    pub timestamp: Timestamp,
    /// Its kind.
    pub body: ItemBody,
}

impl ItemBody {
    /// The user's prompt, in words alone.
    #[must_use]
    pub fn user_message(text: impl Into<String>) -> Self {
        Self::UserMessage { text: text.into(), attachments: Vec::new(), steered: false, command: None }
    }
}

impl Item {
    /// As it is left behind by an answer that broke off at this time.
    #[must_use]
    pub fn broken_off(mut self, at: Timestamp) -> Self {
        match &mut self.body {
            ItemBody::AgentMessage { complete, interrupted, .. } => {
                *complete = true;
                *interrupted = true;
            }
            ItemBody::Thinking { complete, .. } => *complete = true,
            ItemBody::ToolCall(call) => {
                call.display = "The answer broke off before the call was whole.".to_owned();
                call.enter(CallState::Sealed, at);
            }
            ItemBody::UserMessage { .. } | ItemBody::Notice { .. } | ItemBody::Command { .. } => {}
        }
        self
    }

    /// Whether it is a tool call.
    #[must_use]
    pub fn is_call(&self) -> bool {
        matches!(self.body, ItemBody::ToolCall(_))
    }
}

/// The kind of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ItemBody {
    /// The user's prompt.
    UserMessage {
        /// The text.
        text: String,
        /// Its attachments for the model.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// Whether it went to a running turn instead of starting one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        steered: bool,
        /// The command that it was, once that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<CommandUse>,
    },
    /// The model's text.
    AgentMessage {
        /// The text so far.
        text: String,
        /// Whether the text is whole; false while it streams.
        complete: bool,
        /// Whether it broke off: cancelled, cut or lost with the connection.
        interrupted: bool,
        /// The model that said it, as the provider knows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Milliseconds that the answer took of which it is the last text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
    /// The model's reasoning.
    Thinking {
        /// The text so far.
        text: String,
        /// Whether the text is whole.
        complete: bool,
    },
    /// A tool call.
    ToolCall(Box<ToolCallItem>),
    /// Information for the user that is no message.
    Notice {
        /// How serious it is.
        level: NoticeLevel,
        /// The event.
        text: String,
        /// The next step, if anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
        /// Its topic, for what more than a person may want to know.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<NoticeKind>,
    },
    /// The output of a command that no model gets.
    Command {
        /// Its name, without the `/`.
        name: String,
        /// The text behind it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        arguments: String,
        /// Its text, in Markdown.
        text: String,
        /// The same for machines, in the command's own form.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Box<Value>>,
        /// Whether it was not carried out.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
        /// The session to continue with from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        go_to: Option<SessionId>,
    },
}

/// The topic of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NoticeKind {
    /// A model could not be asked; the model itself is not notified of it.
    ApiError,
    /// A model could not be asked, because its key is missing or was refused.
    ApiKey,
    /// A model could not be asked, because the conversation is longer than its context window.
    ContextTooLong,
    /// Another model is asked than the one that was chosen.
    Fallback,
    /// An answer was cut off by its token limit and is continued.
    Continued,
    /// An answer only announced what it was going to do.
    IncompleteIntent,
    /// The turn has reached a limit.
    TurnLimit,
    /// The turn was interrupted.
    Interrupted,
    /// Parts of the session's journal were damaged.
    Damaged,
    /// A hook said something, failed, or waits for approval.
    Hook,
}

/// How serious a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something may need attention.
    Warning,
    /// Something failed.
    Error,
}

/// A tool call as the transcript keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallItem {
    /// The model's id of the call.
    pub call: CallId,
    /// The tool's canonical name, or what the model wrote when there is no such tool.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// The effect of the tool on the world; `None` for an unknown tool.
    pub kind: Option<ToolKind>,
    /// The arguments, which all states of the call share.
    #[serde(deserialize_with = "capacity::read_shared")]
    pub input: Arc<Value>,
    /// Where the call is.
    pub state: CallState,
    /// The short result for people, once it ended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub display: String,
    /// The result for machines, if the tool gives one.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "capacity::read_option")]
    pub structured: Option<Value>,
    /// The class of the failure, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolErrorKind>,
    /// When it began to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// Its states so far, in order.
    pub audit: Vec<AuditEntry>,
}

/// A state a call was in, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// The state.
    pub state: CallState,
    /// Since when.
    pub at: Timestamp,
}

/// Where a tool call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CallState {
    /// Known, not running.
    Pending,
    /// Waits for the user.
    ApprovalRequired,
    /// Runs.
    Executing,
    /// Worked.
    Completed,
    /// Failed.
    Failed,
    /// Was refused.
    Denied,
    /// Was unfinished when the turn or the server ended, and was given a result so that the history is whole.
    Sealed,
}

impl CallState {
    /// Whether no other state follows.
    #[must_use]
    pub fn is_final(self) -> bool {
        match self {
            Self::Pending | Self::ApprovalRequired | Self::Executing => false,
            Self::Completed | Self::Failed | Self::Denied | Self::Sealed => true,
        }
    }
}

/// How a call ended, as shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallOutcome {
    /// A final state.
    pub state: CallState,
    /// The short result for people.
    pub display: String,
    /// The result for machines, if the tool gives one.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "capacity::read_option")]
    pub structured: Option<Value>,
    /// The class of the failure, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolErrorKind>,
}

impl ToolCallItem {
    /// A call that is known and not more.
    #[must_use]
    pub fn pending(call: CallId, name: String, kind: Option<ToolKind>, input: Value, at: Timestamp) -> Self {
        Self {
            call,
            title: name.clone(),
            name,
            kind,
            input: Arc::new(capacity::exact(input)),
            state: CallState::Pending,
            display: String::new(),
            structured: None,
            error: None,
            started: None,
            ended: None,
            audit: vec![AuditEntry { state: CallState::Pending, at }],
        }
    }

    /// Moves the call to a state and notes it in the audit trail. A call in a final state stays there: the answer
    /// says whether the move was made.
    pub fn enter(&mut self, state: CallState, at: Timestamp) -> bool {
        if self.state.is_final() {
            return false;
        }
        self.state = state;
        match state {
            CallState::Executing => self.started = Some(at),
            CallState::Completed | CallState::Failed | CallState::Denied | CallState::Sealed => {
                self.ended = Some(at)
            }
            CallState::Pending | CallState::ApprovalRequired => {}
        }
        self.audit.push(AuditEntry { state, at });
        true
    }

    /// Ends the call, unless it has ended.
    pub fn end(&mut self, outcome: CallOutcome, at: Timestamp) {
        if self.enter(outcome.state, at) {
            self.display = outcome.display;
            self.structured = outcome.structured;
            self.error = outcome.error;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_leaves_a_final_state() {
        let at = Timestamp::UNIX_EPOCH;
        for last in [CallState::Completed, CallState::Failed, CallState::Denied, CallState::Sealed] {
            let mut call = ToolCallItem::pending(CallId::generate(), "Read".into(), None, Value::Null, at);
            assert!(call.enter(CallState::Executing, at) && call.started.is_some());
            assert!(call.enter(last, at) && call.ended.is_some());
            assert!(!call.enter(CallState::Executing, at));
            assert_eq!(call.state, last);
            assert_eq!(call.audit.len(), 3);
        }
    }
}
