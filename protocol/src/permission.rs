//! Permission prompts and their answers.
//!
//! Rule: a prompt is an event and an entry in the snapshot, never a request to the client; any surface may answer,
//! the first answer wins.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallId, ItemId, PermissionId, SessionId};

/// What is asked of the user before a call runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionPrompt {
    /// Names the prompt in the answer.
    pub permission_id: PermissionId,
    /// The call that waits.
    pub call_id: CallId,
    /// The call's item.
    pub item_id: ItemId,
    /// The tool.
    pub tool: String,
    /// One line for people.
    pub title: String,
    /// Why the user is asked.
    pub reason: String,
    /// Exactly what will happen.
    pub preview: Preview,
    /// What could go wrong, worst first.
    pub risks: Vec<String>,
    /// How far a yes can reach.
    pub scopes: Vec<Scope>,
    /// What a yes for the session would allow, as a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The arguments, which the answer may replace.
    pub input: Value,
    /// When it was asked, RFC 3339.
    pub timestamp: String,
}

/// Exactly what a call will do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Preview {
    /// A command line and where it runs.
    Command {
        /// The command line.
        command: String,
        /// The folder it starts in.
        cwd: String,
    },
    /// Changes to files.
    Diff {
        /// The paths or untitled URIs.
        paths: Vec<String>,
        /// The change as a unified diff.
        unified: String,
    },
    /// Files or folders that are read.
    Paths {
        /// The paths.
        paths: Vec<String>,
    },
}

/// How far a yes reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// This call.
    Once,
    /// This call and those the prompt's rule covers, until the session ends.
    Session,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// The call runs.
    Allow,
    /// The call is refused.
    Deny,
}

/// Parameters of `agent/permission/respond`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RespondParams {
    /// The session.
    pub session_id: SessionId,
    /// The prompt.
    pub permission_id: PermissionId,
    /// Yes or no.
    pub decision: Verdict,
    /// How far a yes reaches; once when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Words for the model, mostly with a no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// Arguments to use instead; they are checked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Value>,
    /// Which surface answered, for the others to be told; the client's name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Parameters of `agent/permission/list`.
#[derive(Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListParams {
    /// The session; all live ones when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Result of `agent/permission/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListResult {
    /// The prompts that wait, oldest first.
    pub permissions: Vec<PendingPermission>,
}

/// A prompt that waits, with its session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PendingPermission {
    /// The session.
    pub session_id: SessionId,
    /// The prompt.
    pub prompt: PermissionPrompt,
}

/// What became of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The prompt.
    pub permission_id: PermissionId,
    /// The call.
    pub call_id: CallId,
    /// What was decided.
    pub outcome: Outcome,
    /// How far a yes reaches.
    pub scope: Scope,
    /// Which surface decided, or `cancel`.
    pub by: String,
    /// Words for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
}

/// How a prompt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// The call runs.
    Allow,
    /// The call is refused.
    Deny,
    /// The call was cancelled before anyone answered.
    Cancelled,
}
