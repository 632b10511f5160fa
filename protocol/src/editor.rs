//! What the server asks of the editor, beyond LSP.
//!
//! Rule: asked only of clients that have offered it, never waited for without a limit, and nothing here moves focus,
//! cursor or scroll.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::Uri;

/// Which documents to save.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SaveDocumentsParams {
    /// Open documents, spelled as the editor has opened them.
    pub uris: Vec<Uri>,
}

/// What was saved. A document that is in neither list counts as not saved.
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
