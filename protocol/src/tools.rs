//! Tools that a client registers at run time, and their calls.
//!
//! Rule: a call goes to the client only after the rules and the user have let it run. The tools of a client end with its
//! connection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text::CallId;

/// The tools of a provider, such as an extension of the editor. They replace those that it had; an empty list withdraws them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegisterToolsParams {
    /// The name of the provider, for people and in the names of its tools.
    pub provider: String,
    /// All its tools, at most 128.
    pub tools: Vec<ClientToolSpec>,
}

/// A tool of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientToolSpec {
    /// Its name at the client.
    pub name: String,
    /// The text for the model.
    pub description: String,
    /// The JSON Schema of the arguments, whose `type` is `object`.
    pub input_schema: Value,
}

/// The names of registered tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegisterToolsResult {
    /// The names for the model and for rules, such as `mcp__provider__tool`, in the order of the tools.
    pub names: Vec<String>,
}

/// A call that the client carries out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallToolParams {
    /// The call.
    pub call_id: CallId,
    /// The provider of the tool.
    pub provider: String,
    /// The tool's name at the client.
    pub name: String,
    /// The arguments; they fit the schema.
    pub arguments: Value,
}

/// The result of a call, in the form of an MCP server's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallToolResult {
    /// Texts and pictures for the model.
    pub content: Vec<ToolContent>,
    /// Whether the tool failed; the texts say why.
    #[serde(default)]
    pub is_error: bool,
}

/// A part of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ToolContent {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// The bytes in base64.
        data: String,
        /// The type, such as `image/png`.
        mime_type: String,
    },
}

/// A call that is over: its result is not waited for any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCancelledParams {
    /// The call.
    pub call_id: CallId,
}
