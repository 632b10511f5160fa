//! The messages of a pair: JSON-RPC on lines, over a socket.
//!
//! Rule: plain data. Both sides are of one build or refuse each other by [`VERSION`].

use kode_engine::base::paths::{AbsPath, Target};
use kode_engine::text::document::DocumentSnapshot;
use kode_engine::text::edit::TextEdit;
use kode_engine::text::host::{
    Diagnostic, DiagnosticSeverity, DocumentEditOutcome, FileDiagnostics, SaveOutcome,
};
use ropey::Rope;
use serde::{Deserialize, Serialize};

use crate::lsp::position::PositionEncoding;
use crate::plain::review::publish::HunkFile;

/// The version of these messages.
pub(super) const VERSION: u32 = 2;

/// Opens a pair.
pub(super) const HELLO: &str = "hello";
/// Edits a document.
pub(super) const EDIT: &str = "edit";
/// Saves a document.
pub(super) const SAVE: &str = "save";
/// Deletes the file of a document.
pub(super) const DELETE: &str = "delete";
/// Asks for diagnostics.
pub(super) const DIAGNOSE: &str = "diagnose";
/// Shows the hunks of a session.
pub(super) const HUNKS: &str = "hunks";
/// Reports an event of a document.
pub(super) const EVENT: &str = "event";

/// A language server that can be paired with, in a file beside its socket.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PairOffer {
    pub(super) version: u32,
    /// The name of the server's host: hosts with a common state folder cannot be paired.
    pub(super) host: String,
    /// The process of the server.
    pub(super) process: u32,
    /// The process of the editor.
    pub(super) editor: u32,
    /// The workspace folders, links followed.
    pub(super) roots: Vec<AbsPath>,
    pub(super) socket: AbsPath,
    pub(super) token: String,
}

/// The first request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) version: u32,
    pub(super) token: String,
}

/// The answer to it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Welcome {
    /// The name of the editor.
    pub(super) editor: String,
    pub(super) documents: Vec<WireDocument>,
    pub(super) can_save: bool,
    pub(super) can_diagnose: bool,
    pub(super) locale: Option<String>,
    /// The unit of positions of the editor.
    pub(super) encoding: PositionEncoding,
}

/// An open document.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireDocument {
    pub(super) uri: String,
    pub(super) path: Option<AbsPath>,
    pub(super) language_id: String,
    pub(super) version: i32,
    pub(super) text: String,
}

/// An event of a document.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum PairEvent {
    Opened {
        document: WireDocument,
    },
    /// The changes in byte offsets of the text before, or the whole text.
    Changed {
        uri: String,
        version: i32,
        edits: Option<Vec<TextEdit>>,
        text: Option<String>,
        /// The bytes of the text after.
        length: usize,
    },
    Saved {
        uri: String,
        by_user: bool,
    },
    Closed {
        uri: String,
    },
}

/// An edit of the text that has this version.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EditParams {
    pub(super) uri: String,
    pub(super) version: i32,
    pub(super) edits: Vec<TextEdit>,
    pub(super) label: String,
}

/// A document by its URI, and the version that it must still have where one is named.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PairedDocument {
    pub(super) uri: String,
    pub(super) version: Option<i32>,
}

/// The documents to diagnose, all if none is named.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DiagnoseParams {
    pub(super) targets: Vec<Target>,
    /// How long servers may take to publish what a change brings; `None` for what they have published.
    pub(super) settle_ms: Option<u64>,
}

/// The most files of a session whose hunks are shown.
pub(crate) const MAX_HUNK_FILES: usize = 200;

/// The hunks of a session, in place of those that were sent by its number before.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct HunkParams {
    /// The number of the session in this pair.
    pub(super) number: u64,
    /// Without a file the session has no hunks.
    pub(super) files: Vec<HunkFile>,
}

/// How an edit ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "camelCase")]
pub(super) enum WireEdit {
    Applied,
    Stale,
    Closed,
    Rejected { reason: String },
    Unconfirmed { reason: String },
}

/// How a save ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "camelCase")]
pub(super) enum WireSave {
    Saved,
    NotOpen,
    Failed { reason: String },
}

/// The diagnostics of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireDiagnostics {
    pub(super) target: Target,
    pub(super) is_outdated: bool,
    pub(super) diagnostics: Vec<WireDiagnostic>,
}

/// A diagnostic.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireDiagnostic {
    line: u32,
    column: u32,
    /// 1 to 4, as in LSP.
    severity: u8,
    message: String,
    source: String,
    code: String,
}

impl From<&DocumentSnapshot> for WireDocument {
    fn from(document: &DocumentSnapshot) -> Self {
        Self {
            uri: document.uri.clone(),
            path: document.path.clone(),
            language_id: document.language_id.clone(),
            version: document.version,
            text: document.text.to_string(),
        }
    }
}

impl From<WireDocument> for DocumentSnapshot {
    fn from(document: WireDocument) -> Self {
        let WireDocument { uri, path, language_id, version, text } = document;
        Self { uri, path, language_id, version, text: Rope::from_str(&text) }
    }
}

impl From<DocumentEditOutcome> for WireEdit {
    fn from(outcome: DocumentEditOutcome) -> Self {
        match outcome {
            DocumentEditOutcome::Applied(_) => Self::Applied,
            DocumentEditOutcome::Stale => Self::Stale,
            DocumentEditOutcome::Closed => Self::Closed,
            DocumentEditOutcome::Rejected { reason } => Self::Rejected { reason },
            DocumentEditOutcome::Unconfirmed { reason } => Self::Unconfirmed { reason },
        }
    }
}

impl From<SaveOutcome> for WireSave {
    fn from(outcome: SaveOutcome) -> Self {
        match outcome {
            SaveOutcome::Saved => Self::Saved,
            SaveOutcome::NotOpen => Self::NotOpen,
            SaveOutcome::Failed { reason } => Self::Failed { reason },
        }
    }
}

impl From<WireSave> for SaveOutcome {
    fn from(outcome: WireSave) -> Self {
        match outcome {
            WireSave::Saved => Self::Saved,
            WireSave::NotOpen => Self::NotOpen,
            WireSave::Failed { reason } => Self::Failed { reason },
        }
    }
}

impl From<FileDiagnostics> for WireDiagnostics {
    fn from(file: FileDiagnostics) -> Self {
        let diagnostics = file.diagnostics.into_iter().map(|one| WireDiagnostic {
            line: one.line,
            column: one.column,
            severity: match one.severity {
                DiagnosticSeverity::Error => 1,
                DiagnosticSeverity::Warning => 2,
                DiagnosticSeverity::Information => 3,
                DiagnosticSeverity::Hint => 4,
            },
            message: one.message,
            source: one.source,
            code: one.code,
        });
        Self { target: file.target, is_outdated: file.is_outdated, diagnostics: diagnostics.collect() }
    }
}

impl From<WireDiagnostics> for FileDiagnostics {
    fn from(file: WireDiagnostics) -> Self {
        let diagnostics = file.diagnostics.into_iter().map(|one| Diagnostic {
            line: one.line,
            column: one.column,
            severity: match one.severity {
                1 => DiagnosticSeverity::Error,
                2 => DiagnosticSeverity::Warning,
                3 => DiagnosticSeverity::Information,
                _ => DiagnosticSeverity::Hint,
            },
            message: one.message,
            source: one.source,
            code: one.code,
        });
        Self { target: file.target, is_outdated: file.is_outdated, diagnostics: diagnostics.collect() }
    }
}
