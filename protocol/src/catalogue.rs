//! What there is to choose from.
//!
//! Rule: everything a client lists comes from here; no client has a list of its own.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::item::ToolKind;

/// Parameters of a list without choices.
#[derive(Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListParams {}

/// Result of `agent/tools/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolList {
    /// The tools, by name.
    pub tools: Vec<Tool>,
}

/// A tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Names from other agents that mean the same.
    pub aliases: Vec<String>,
    /// What it does to the world.
    pub kind: ToolKind,
    /// Whether it only looks.
    pub read_only: bool,
    /// Whether calls may run beside each other.
    pub concurrency_safe: bool,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
}

/// Result of `agent/models/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelList {
    /// The profiles, by name.
    pub models: Vec<Model>,
    /// The profile new sessions use.
    pub default: String,
    /// Why the default profile cannot be used, with what to do about it; absent when it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A model profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// The profile's name.
    pub name: String,
    /// The model's name at its provider.
    pub model: String,
    /// Where it is served.
    pub base_url: String,
    /// Tokens that fit into its context.
    pub context_window: u64,
    /// The most tokens of an answer.
    pub max_tokens: u32,
}
