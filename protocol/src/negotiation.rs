//! The offers of client and server in `initialize`, under `capabilities.experimental.kode`.
//!
//! Rule: a capability that is absent is not there; whatever a client does not offer is replaced by plain LSP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of this protocol. It grows only when an older reader would misunderstand.
pub const PROTOCOL_VERSION: u32 = 1;

/// SHA-256 of `generated/schema.json` in lower-case hex: equal on both sides, both have the very same types.
pub const SCHEMA_HASH: &str = include_str!("../generated/schema.hash").trim_ascii();

/// The client's offer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientKode {
    /// The version of the protocol that the client speaks; with another than the server's, nothing is offered.
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
    /// Whether `agent/editor/lsp` is understood.
    #[serde(default)]
    pub language_servers: bool,
    /// Whether the client shows diffs itself.
    #[serde(default)]
    pub diff_ui: bool,
    /// Whether the editor trusts the workspace; absent when it does not say. `agent/trust/workspace` tells a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_trusted: Option<bool>,
    /// Whether the client tells the user's own settings apart from those of a workspace: it answers
    /// `workspace/configuration` for the section `kode-ls.user` with the user's own alone.
    #[serde(default)]
    pub user_settings: bool,
    /// Whether the client carries out the command `kode.ask` of code actions itself, in a session that it shows. One that
    /// wants events and does not say so is offered no code actions that ask.
    #[serde(default)]
    pub ask_actions: bool,
    /// Whether `agent/client/bell` rings the bell of the user's terminal.
    #[serde(default)]
    pub bell: bool,
}

/// The server's offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerKode {
    /// The version of the protocol that the server speaks.
    pub protocol_version: u32,
    /// The version of the server.
    pub server_version: String,
    /// The commands of `workspace/executeCommand`.
    pub commands: Vec<String>,
    /// SHA-256 of the server's schema in lower-case hex.
    pub schema_hash: String,
}
