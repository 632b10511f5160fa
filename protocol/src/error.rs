//! The errors of `agent/*` requests.
//!
//! Rule: `data` of a JSON-RPC error is an [`ErrorData`]; its `kind` is for programs, `message` and `hint` are for
//! people.

use serde::{Deserialize, Serialize};

/// JSON-RPC code of every error below but [`ErrorKind::InvalidParams`], which has the standard -32602.
pub const CODE: i64 = -32_020;

/// The `data` of an error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ErrorData {
    /// What went wrong.
    #[serde(flatten)]
    pub kind: ErrorKind,
    /// What to do next.
    pub hint: String,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ErrorKind {
    /// No such session.
    UnknownSession,
    /// No such permission prompt.
    UnknownPermission,
    /// The queue of the session is full.
    SessionBusy,
    /// Somebody answered first.
    AlreadyResolved {
        /// Who.
        by: String,
    },
    /// A parameter does not fit.
    InvalidParams {
        /// Which one.
        path: String,
    },
    /// No model can be used.
    ModelNotConfigured,
    /// There is no folder to work in.
    NoFolder,
    /// The user's state cannot be read or written.
    StorageFailure,
}
