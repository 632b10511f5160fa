//! Hunks as clients see them, and the decisions a user takes about them.
//!
//! Rule: plain data; the ledger answers with these types and carries these decisions out.

use std::ops::Range;

use ropey::Rope;
use serde::{Deserialize, Serialize};

use kode_base::ids::{CallId, HunkId, PermissionId, TurnId};
use kode_base::paths::Target;
use kode_base::proposed::ProposedDiagnostics;

/// Where a hunk is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HunkState {
    /// Asked for, not in the text.
    Proposed,
    /// In the text, not checked yet.
    Applied,
    /// In the text for good: the user kept it, saved or committed the file.
    Kept,
    /// Not in the text: rejected or undone. It can be brought back.
    Undone,
    /// In the text, was to be undone, and the user's own changes are in it: the user decides.
    Conflict,
}

/// The effect of a hunk on its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HunkKind {
    /// Changes lines.
    Text,
    /// Makes the file.
    Created,
    /// Deletes the file.
    Deleted,
    /// Replaces a file that is not text.
    Binary,
}

/// A hunk unchanged now.
#[derive(Clone, Debug, PartialEq)]
pub struct HunkView {
    /// Its id.
    pub id: HunkId,
    /// The turn it was made in.
    pub turn: TurnId,
    /// The call that made it.
    pub call: CallId,
    /// Its effect on the file.
    pub kind: HunkKind,
    /// Where it is in its life.
    pub state: HunkState,
    /// The bytes of the text that it reaches over; empty where it only takes text away, or is not in the text.
    pub range: Range<usize>,
    /// The whole lines around `range`, counted from 0; empty when without the hunk there would be lines, and with it
    /// no layer exists.
    pub lines: Range<usize>,
    /// These lines without the hunk.
    pub old_text: String,
    /// These lines with the hunk.
    pub new_text: String,
    /// Whether the user has changed what the hunk put there.
    pub amended: bool,
    /// The prompt that asks about it, while it is proposed.
    pub permission: Option<PermissionId>,
    /// The diagnostics in its lines that it would add and remove, or has added and removed since before it; `None` for none, and
    /// until a language server has reported them.
    pub diagnostics: Option<ProposedDiagnostics>,
}

/// The hunks of one file.
#[derive(Clone, Debug)]
pub struct FileReview {
    /// The file or document.
    pub target: Target,
    /// The text that the hunks' ranges count in.
    pub text: Rope,
    /// The version of the open document that has this text; `None` for a closed file.
    pub version: Option<i32>,
    /// The hunks in the order of their places.
    pub hunks: Vec<HunkView>,
    /// The diagnostics outside of the hunks' lines that the hunks add and remove; `None` for none, and until a language server has
    /// reported them.
    pub diagnostics: Option<ProposedDiagnostics>,
}

/// Which hunks are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// These.
    Hunks(Vec<HunkId>),
    /// All of a file.
    File(Target),
    /// All of a turn.
    Turn(TurnId),
    /// All of the session.
    Session,
}

/// The user's action on hunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReviewAction {
    /// Puts proposed hunks into the text, and undone ones back into it.
    Accept,
    /// Drops proposed hunks, and takes applied ones out of the text.
    Reject,
    /// Leaves hunks in the text and off the list.
    Keep,
    /// Takes hunks out of the text, kept ones as well.
    Undo,
}

impl ReviewAction {
    /// The action as a verb.
    #[must_use]
    pub fn verb(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Reject => "reject",
            Self::Keep => "keep",
            Self::Undo => "undo",
        }
    }
}
