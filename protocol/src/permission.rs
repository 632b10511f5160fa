//! Permissions: what the user is asked before a call runs, and how any surface answers.
//!
//! Rule: a prompt is an event and an entry of the snapshot, its answer a request of the client; the first answer
//! wins, the others fail with `alreadyResolved`, and nothing waits on the transport.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text::{AgentId, CallId, HunkId, ItemId, PermissionId, SessionId, Timestamp};

/// How much the agent may do unasked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Reads run; edits and commands ask.
    #[default]
    Default,
    /// Reads and edits inside the workspace run; commands ask.
    AcceptEdits,
    /// Reads and read-only commands run; edits and other commands are refused.
    Plan,
    /// Reads and calls that a rule allows run; everything else is refused without asking.
    DontAsk,
    /// Everything runs unless a rule, a guard or the command floor blocks it.
    BypassPermissions,
    /// Everything asks, including reads.
    Approval,
    /// Reads and read-only commands run; edits are refused; other commands ask.
    Readonly,
}

/// The prompt for the user before a call runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionPrompt {
    /// The session.
    pub session_id: SessionId,
    /// Names the prompt in the answer.
    pub permission_id: PermissionId,
    /// The call that waits.
    pub call_id: CallId,
    /// The call's item in the transcript.
    pub item_id: ItemId,
    /// The sub-agent that made the call; absent for the session's own conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
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
    /// Limits of the call, such as the sandbox. These are no risks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The diagnostics that the change would add and remove; absent until a language server has reported them, which
    /// `permission_updated` tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<ProposedDiagnostics>,
    /// How far a yes can reach; answers with another scope are refused.
    pub scopes: Vec<Scope>,
    /// The reach of a permanent permission, for each scope beyond this call; empty when none is offered.
    #[serde(default)]
    pub offers: Vec<Offer>,
    /// A mode in which the call runs without a prompt. An answer that allows it may set this mode; clients offer that as an
    /// answer of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// All of the above as text that is safe to show anywhere: control, direction and invisible characters are escaped,
    /// and of a long text both ends are shown.
    #[serde(default)]
    pub text: String,
    /// The arguments of the call, which the answer may replace.
    pub input: Value,
    /// When it was asked.
    pub timestamp: Timestamp,
}

/// The diagnostics that a change would add and remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProposedDiagnostics {
    /// Their numbers, such as `adds 2 errors, fixes 1 warning`.
    pub summary: String,
    /// The first of them, one a line: the place, the severity and the message.
    pub lines: Vec<String>,
}

/// The reach of a permanent permission of one scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    /// How far the yes reaches.
    pub scope: Scope,
    /// The calls that run unasked from then on, as rules in the form people write them.
    pub rules: Vec<String>,
    /// The prompts that these rules would have spared in this session; absent when it was not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spared: Option<RuleCoverage>,
}

/// The prompts that rules would have spared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleCoverage {
    /// Calls that would have run unasked with the rules, and not without them.
    pub matched: u32,
    /// Calls checked, the newest of the session.
    pub of: u32,
}

/// Exactly what a call will do, for the user to judge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Preview {
    /// Runs a command line.
    Command(CommandPreview),
    /// Changes files.
    Diff(DiffPreview),
    /// Reads files or folders.
    Paths(PathsPreview),
    /// A kind of preview that this build does not know; `title` and `input` still describe the request.
    #[serde(other, skip_serializing)]
    #[schemars(skip)]
    Unknown,
}

/// A command line and where it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandPreview {
    /// The command line, exactly; may hold characters that must not reach a terminal or label as they are.
    pub command: String,
    /// The path of the folder it starts in.
    pub cwd: String,
    /// Whether it runs in the sandbox: it can change the workspace and has no network.
    #[serde(default)]
    pub sandboxed: bool,
}

/// Changes to files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffPreview {
    /// The paths or untitled URIs, as shown to people.
    pub paths: Vec<String>,
    /// The changes as a unified diff.
    pub unified: String,
}

/// Files or folders that are read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PathsPreview {
    /// The paths, as shown to people.
    pub paths: Vec<String>,
}

/// How far a yes reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// An answer to a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RespondPermissionParams {
    /// The session.
    pub session_id: SessionId,
    /// The prompt.
    pub permission_id: PermissionId,
    /// Yes or no.
    pub decision: PermissionDecision,
    /// How far a yes reaches; one of the prompt's scopes.
    #[serde(default)]
    pub scope: Scope,
    /// Words for the model, mostly with a no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// Arguments to use instead of the model's; they are checked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Value>,
    /// With a yes that is kept in settings: the rules to keep instead of those offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<String>>,
    /// With a yes to a change: the hunks of it that are meant, as they are in the ledger under this prompt; all of
    /// them when absent. The model learns the omitted part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hunks: Option<Vec<HunkId>>,
    /// With `allow`: the new mode of the session, the one that the prompt offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PermissionDecision {
    /// The call runs.
    Allow,
    /// The call is refused.
    Deny,
}

/// How a prompt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PermissionOutcome {
    /// The call runs.
    Allow,
    /// The call is refused.
    Deny,
    /// The call, the turn or the session was cancelled before anyone answered.
    Cancelled,
}

/// The session of the prompts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListPermissionsParams {
    /// The session; all live ones when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// The prompts that wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListPermissionsResult {
    /// The prompts, oldest first within a session.
    pub permissions: Vec<PermissionPrompt>,
}

/// The verdict of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RuleBehavior {
    /// It is refused.
    Deny,
    /// The user decides each time.
    Ask,
    /// It runs unasked.
    Allow,
}

/// Which rules are meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListRulesParams {
    /// The session whose rules are listed.
    pub session_id: SessionId,
}

/// The rules of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListRulesResult {
    /// The mode that counts when no rule speaks; another than the session's where settings have switched that one off.
    pub mode: Mode,
    /// The rules in force, the strongest layer first.
    pub rules: Vec<RuleEntry>,
    /// The unapproved trust requests of workspace files, which have no effect.
    pub withheld: Vec<WithheldSetting>,
    /// The invalid entries in the settings.
    pub problems: Vec<SettingsProblem>,
}

/// A rule in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleEntry {
    /// Its text.
    pub behavior: RuleBehavior,
    /// Its text.
    pub rule: String,
    /// Its place.
    pub source: RuleSource,
}

/// The place of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleSource {
    /// The layer: `managed`, `command line`, `session`, `local`, `project`, `user` or `default`.
    pub layer: String,
    /// The path of the file, if it is from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in that file, from 1, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// Something a file of the workspace asks for that needs the user's approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WithheldSetting {
    /// The setting, such as `permissions.allow`.
    pub key: String,
    /// Its value unchanged in the file.
    pub value: String,
    /// Its place.
    pub source: RuleSource,
}

/// Something in the settings that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettingsProblem {
    /// Whether something that should protect does not; otherwise something is merely ignored.
    pub severe: bool,
    /// The problem and the next step.
    pub message: String,
    /// The path of the file, if it is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in that file, from 1, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// A rule to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddRuleParams {
    /// The session whose project is meant.
    pub session_id: SessionId,
    /// `project` or `user`.
    pub scope: Scope,
    /// Its text.
    pub behavior: RuleBehavior,
    /// Its text.
    pub rule: String,
}

/// Where a rule was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddRuleResult {
    /// The path of the file.
    pub file: String,
}

/// A rule to remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoveRuleParams {
    /// The session whose project is meant.
    pub session_id: SessionId,
    /// The path of the file it is in, as listed.
    pub file: String,
    /// Its text.
    pub behavior: RuleBehavior,
    /// Its text.
    pub rule: String,
}

/// The outcome of a rule that was to be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoveRuleResult {
    /// False when it did not stand there.
    pub removed: bool,
}

/// A call to explain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainPermissionParams {
    /// The session whose rules and workspace count.
    pub session_id: SessionId,
    /// The tool, by any of its names.
    pub tool: String,
    /// The arguments.
    pub input: Value,
    /// The mode to suppose; the session's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

/// The verdict on a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainPermissionResult {
    /// The verdict.
    pub decision: RuleBehavior,
    /// The rule that decided; absent when none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The place of that rule, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Why, for people.
    pub reason: String,
    /// Rules that would let it run unasked, where a rule can.
    #[serde(default)]
    pub proposed: Vec<String>,
}
