//! The permission gate: rules, modes, grants, and the prompts that wait for the user.
//!
//! Rule: one gate for every call. The gate is a pure function of the mode, the call and the grants; the broker only
//! carries questions and answers, and anything but a clear yes is a no.
//!
//! Must not know: the settings files that rules come from, sessions.
//! Used by: config, tool, record, tools, mcp, agent, engine.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

pub mod broker;
pub mod delivery;
pub mod equipment;
pub mod gate;
pub mod grant;
pub mod ignored;
pub mod rules;
pub mod sensitive;
pub mod standing;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use kode_base::ids::{AgentId, CallId, HunkId, ItemId, PermissionId};
use kode_base::mode::{self, Mode};
use kode_base::proposed::ProposedDiagnostics;

pub use broker::{PermissionBroker, PromptOutcome, PromptRespondError, ScopeNotOffered};
pub use delivery::{BadRule, Deliveries, EditDelivery, EditDeliveryRule};
pub use gate::{GateDecision, Verdict};
pub use grant::Grant;
pub use ignored::{IgnoreCause, IgnoredBy};
pub use sensitive::{Sensitive, Sensitivity};

/// The prompt for the user before a call runs.
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
    /// The risks, worst first; may be empty.
    pub risks: Vec<String>,
    /// Limits of the call, such as the sandbox; no risks, and may be empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The diagnostics that the change would add and remove; `None` until a language server has reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<ProposedDiagnostics>,
    /// How far a yes can reach.
    pub scopes: Vec<Scope>,
    /// The reach of a permanent permission, for each scope beyond this call; empty when none is offered.
    pub offers: Vec<Offer>,
    /// A mode in which the call runs without a prompt, which an answer that allows it may set.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "mode::known_or_none")]
    pub mode: Option<Mode>,
    /// The arguments, which the answer may replace.
    pub input: Value,
    /// When it was asked.
    pub timestamp: Timestamp,
}

/// The reach of a permanent permission of one scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    /// How far the yes reaches.
    pub scope: Scope,
    /// The calls that run unasked from then on, as rules in the form people write them.
    pub rules: Vec<String>,
    /// How many of this session's newest calls would not have been asked for, and how many of them were; `None` when it
    /// was not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spared: Option<RuleSavings>,
}

/// The prompts that a rule would have spared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleSavings {
    /// Calls that would have run unasked with the rule, and not without it.
    pub matched: u32,
    /// Calls checked.
    pub of: u32,
}

impl PermissionPrompt {
    /// The reach of a yes of a scope, on one line; `None` when it is not offered.
    #[must_use]
    pub fn covers(&self, scope: Scope) -> Option<String> {
        self.offers.iter().find(|offer| offer.scope == scope).map(|offer| offer.rules.join(", "))
    }
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
        /// Whether it runs in the sandbox.
        #[serde(default)]
        sandboxed: bool,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// This call.
    #[default]
    Once,
    /// This call and those its offer covers, until the session ends.
    Session,
    /// This call and those its offer covers, for this user in this project: kept in the project's local settings.
    Project,
    /// This call and those its offer covers, for this user everywhere: kept in the user's settings.
    User,
}

/// [`PromptAnswer::by`] of a denial without a user to ask.
pub const NOBODY: &str = "headless";

/// The answer to a prompt. The default denies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PromptAnswer {
    /// Yes or no.
    pub allow: bool,
    /// How far a yes reaches.
    pub scope: Scope,
    /// Words for the model, mostly with a no.
    pub feedback: Option<String>,
    /// Arguments to use instead of the model's; checked again.
    pub updated_input: Option<Value>,
    /// With a yes that is kept in settings: the rules to keep instead of those offered.
    pub rules: Option<Vec<String>>,
    /// With a yes to a change: the hunks of it that are meant; all of them when `None`.
    pub hunks: Option<Vec<HunkId>>,
    /// With a yes: the new mode of the session, as the prompt offers it.
    pub mode: Option<Mode>,
    /// Which surface or client answered.
    pub by: String,
}

/// The outcome of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionResolution {
    /// The prompt.
    pub id: PermissionId,
    /// The call.
    pub call: CallId,
    /// The decision.
    pub outcome: PermissionOutcome,
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
pub enum PermissionOutcome {
    /// The call runs.
    Allow,
    /// The call is refused.
    Deny,
    /// The call, the turn or the session was cancelled before anyone answered.
    Cancelled,
}
