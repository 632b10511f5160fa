//! Settings: what counts and where it comes from, changing one, and what files of the workspace ask the user to trust.
//!
//! Rule: secrets never cross the wire; an approval is for the shown text, by its digest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::permission::RuleSource;
use crate::text::SessionId;

/// The requested settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetConfigParams {
    /// The session whose workspace counts, and whose own mode and model are reported; the client's workspace folders when
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// One setting, or a section such as `permissions`; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// The effective settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetConfigResult {
    /// The settings, in a fixed order.
    pub settings: Vec<ConfigSetting>,
    /// The paths of the files that were found, the strongest first.
    pub files: Vec<String>,
}

/// A setting and what counts of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigSetting {
    /// Its key, such as `permissions.allow` or `env.PATH`. Keys that begin with `session.` are a session's own, and in no file.
    pub key: String,
    /// Its topic: `api`, `behavior`, `interface` or `session`.
    pub kind: String,
    /// The value in force, secrets masked; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Where it comes from; absent for a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<RuleSource>,
    /// All that is stated of it, the strongest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stated: Vec<ConfigStatement>,
}

/// Something that a file states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigStatement {
    /// The value, secrets masked; of a list, one item.
    pub value: Value,
    /// Its place.
    pub source: RuleSource,
    /// Its state.
    pub standing: ConfigStanding,
}

/// The state of a statement in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ConfigStanding {
    /// It counts, unless something stronger says otherwise.
    InForce,
    /// It waits for the user's approval.
    Waiting,
    /// It does not count.
    Ignored,
}

/// A setting to change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetConfigParams {
    /// Its key.
    pub key: String,
    /// The value; when absent, the setting is taken out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Where it is to count.
    pub scope: ConfigScope,
    /// The session that is meant, or whose workspace is; needed for the scope `session`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Where a setting is to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ConfigScope {
    /// In this session alone; nothing is written to a settings file.
    Session,
    /// For this user in this project.
    Local,
    /// For everybody in this project.
    Project,
    /// For this user everywhere.
    User,
}

/// The outcome of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetConfigResult {
    /// The path of the file it is in; absent for the scope `session`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether anything was changed; not where it was so already.
    pub changed: bool,
}

/// The session whose workspace is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListTrustParams {
    /// The session whose folders are meant; the client's workspace folders when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// The trust requests of workspace files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListTrustResult {
    /// Whether the editor distrusts the workspace: then everything waits, whatever was approved.
    pub distrusted: bool,
    /// How many of what wait, for people: `2 hooks, 1 MCP server`; empty when nothing does.
    pub summary: String,
    /// The waiting requests, the strongest first.
    pub waiting: Vec<PendingTrust>,
    /// Entries in effect by approval.
    pub approved: Vec<ApprovedTrust>,
}

/// Something that is not in force until the user approves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingTrust {
    /// The digest of exactly this text in this file of this workspace.
    pub digest: String,
    /// The setting, such as `hooks.PreToolUse`.
    pub key: String,
    /// Its text, and the digests of the workspace's files that it names.
    pub text: String,
    /// Its place.
    pub source: RuleSource,
    /// The earlier approved text in its place, or its beginning; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<String>,
    /// Whether the user has said "not now".
    pub dismissed: bool,
}

/// Something that counts because the user has approved it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovedTrust {
    /// The digest of exactly this text in this file of this workspace.
    pub digest: String,
    /// The setting.
    pub key: String,
    /// Its text.
    pub text: String,
    /// Its place.
    pub source: RuleSource,
}

/// The subject of the user's decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustParams {
    /// The session whose folders are meant; the client's workspace folders when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The digests, as they were listed.
    pub digests: Vec<String>,
}

/// Its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustResult {
    /// How many of them still stood in the files and are otherwise now. Fewer than named means that a file was changed
    /// meanwhile.
    pub changed: u32,
}

/// Whether the editor trusts the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustWorkspaceParams {
    /// Whether it does.
    pub trusted: bool,
}
