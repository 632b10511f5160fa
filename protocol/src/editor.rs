//! The server's requests to the editor, beyond LSP.
//!
//! Rule: asked only of clients that have offered it, never waited for without a limit, and nothing here moves focus,
//! cursor or scroll.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lsp::RangeShape;
use crate::text::Uri;

/// Which documents to save.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SaveDocumentsParams {
    /// Open documents, spelled as the editor has opened them.
    pub uris: Vec<Uri>,
}

/// The saved documents. A document that is in neither list counts as not saved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SaveDocumentsResult {
    /// The documents whose files have their text now, those that needed no saving included.
    #[serde(default)]
    pub saved: Vec<Uri>,
    /// The others.
    #[serde(default)]
    pub failed: Vec<SaveFailure>,
}

/// A document that was not saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SaveFailure {
    /// The document.
    pub uri: Uri,
    /// Why not, for people.
    pub reason: String,
}

/// About which files the language servers are asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditorDiagnosticsParams {
    /// The files or documents; all that the editor knows something about if none exist.
    pub uris: Vec<Uri>,
    /// How long the client waits for servers to publish, in milliseconds: it answers when no more comes. Absent if the
    /// state known at once is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle_ms: Option<u32>,
}

/// Diagnostics. A file without diagnostics may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditorDiagnosticsResult {
    /// The files.
    #[serde(default)]
    pub files: Vec<EditorFileDiagnostics>,
}

/// The diagnostics of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditorFileDiagnostics {
    /// The file or document.
    pub uri: Uri,
    /// The version of the document that they are about; absent when that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i32>,
    /// The diagnostics, without those of this server.
    pub diagnostics: Vec<EditorDiagnostic>,
}

/// One thing that a language server says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditorDiagnostic {
    /// Where.
    #[schemars(with = "RangeShape")]
    pub range: lsp_types::Range,
    /// How bad it is, as LSP counts: 1 error, 2 warning, 3 information, 4 hint; absent means error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<u8>,
    /// The problem.
    pub message: String,
    /// Which server says so; absent when that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The server's name for it, as text; absent when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// A request of the Language Server Protocol for the language servers of the editor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditorLspParams {
    /// The method: one that reads or computes edits, such as `textDocument/references`. No edit is applied for it.
    pub method: String,
    /// Its parameters as LSP has them. Columns count code units of UTF-16. Where `textDocument` has a `version` and the document
    /// has another one, the client refuses with the code -32801 (`ContentModified`). After the limit it refuses with -32802.
    pub params: Value,
    /// The longest time for the answer, in milliseconds.
    pub limit_ms: u32,
    /// The server that is asked, as an answer named it; all that serve the document when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// The answers of the language servers of the editor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditorLspResult {
    /// One for each server that has the method for this document; empty when none has it.
    #[serde(default)]
    pub answers: Vec<EditorLspAnswer>,
}

/// The answer of one language server of the editor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditorLspAnswer {
    /// The name of the server; that of the editor where it answers for all.
    pub server: String,
    /// The unit of columns in the result as LSP names it; `utf-16` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position_encoding: Option<String>,
    /// The result as LSP has it.
    pub result: Value,
}
