//! What the server has to offer: tools and models.
//!
//! Rule: facts for people to see and choose from; nothing here is needed to follow a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::item::ToolKind;

/// Nothing to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListToolsParams {}

/// The tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListToolsResult {
    /// The tools in the order of their names.
    pub tools: Vec<ToolInfo>,
}

/// A tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    /// Its canonical name, the only one shown to the model.
    pub name: String,
    /// What it does to the world.
    pub kind: ToolKind,
    /// Whether it only looks.
    pub read_only: bool,
    /// Whether its calls may run beside each other.
    pub concurrency_safe: bool,
    /// What it does and when to use it, as the model reads it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// Names from other agents that mean the same.
    pub aliases: Vec<String>,
}

/// Nothing to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListModelsParams {}

/// The models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListModelsResult {
    /// The model profiles in the order of their names.
    pub models: Vec<ModelInfo>,
}

/// A model profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    /// The name of the profile, by which it is chosen.
    pub name: String,
    /// Who serves it.
    pub provider: String,
    /// The model's name as the provider knows it.
    pub model: String,
    /// Tokens that input and output may have together.
    pub context_window: u64,
    /// Tokens that one answer may have.
    pub max_tokens: u64,
    /// Whether new sessions use it.
    pub active: bool,
}
