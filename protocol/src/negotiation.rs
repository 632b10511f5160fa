//! What client and server tell each other in `capabilities.experimental.kode`.
//!
//! Rule: whatever is missing counts as not offered, and is replaced by plain LSP.

use serde::{Deserialize, Serialize};

/// What a client offers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClientCapabilities {
    /// The protocol version the client speaks; [`crate::PROTOCOL_VERSION`] at the moment.
    pub protocol_version: u32,
    /// Whether `agent/event` notifications are wanted.
    #[serde(default)]
    pub events: bool,
    /// Whether the client asks the user for permissions itself.
    #[serde(default)]
    pub permission_ui: bool,
    /// Whether `agent/editor/save` is understood.
    #[serde(default)]
    pub save_documents: bool,
    /// Whether `agent/editor/diagnostics` is understood.
    #[serde(default)]
    pub diagnostics: bool,
    /// Whether the client shows diffs itself.
    #[serde(default)]
    pub diff_ui: bool,
}

/// What the server offers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerCapabilities {
    /// The protocol version the server speaks.
    pub protocol_version: u32,
    /// The server's own version.
    pub server_version: String,
    /// The commands of `workspace/executeCommand`.
    pub commands: Vec<String>,
    /// [`crate::SCHEMA_HASH`]: a client generated from the same schema knows every type.
    pub schema_hash: String,
}
