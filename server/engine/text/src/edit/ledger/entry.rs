//! The agent's changes in the journal.
//!
//! Rule: an entry is a fact that happened; fields are only ever added, with a default.

use serde::{Deserialize, Serialize};

use crate::edit::TextEdit;
use crate::edit::ledger::review::{HunkKind, HunkState};
use crate::shell_change::FileImage;
use kode_base::ids::{CallId, ChangeId, HunkId, PermissionId, ResolutionId, TurnId};
use kode_base::paths::Target;
use kode_journal::BlobId;

/// A fact about the agent's changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum LedgerEntry {
    /// A text is followed from now on.
    Tracked {
        /// The file or document.
        target: Target,
        /// Its text.
        base: BlobId,
    },
    /// A text was changed by others than the agent.
    Typed {
        /// The file or document.
        target: Target,
        /// The changes, step by step: each step's edits are of the text after the step before. Steps are not joined:
        /// text that is deleted and retyped piece by piece comes back differently than in one piece.
        steps: Vec<Vec<TextEdit>>,
    },
    /// The agent changed a text, or wants to.
    Changed {
        /// The file or document.
        target: Target,
        /// The change.
        change: ChangeOrigin,
        /// The places, in their order.
        hunks: Vec<NewHunk>,
    },
    /// A command replaced a file as a whole: one that is not text, that was deleted, or that is open in the editor.
    Replaced {
        /// The file.
        target: Target,
        /// Its owner.
        change: ChangeOrigin,
        /// The hunk's id.
        hunk: HunkId,
        /// The former text.
        before: FileImage,
        /// The text at that time.
        after: FileImage,
        /// Whether the text that was followed under the file's name went with it, and comes back with it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        sets_aside: bool,
    },
    /// Hunks moved into other states, and the text with them.
    Moved {
        /// The file or document.
        target: Target,
        /// The act of the user's that did it; `None` for what the user did in the editor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resolution: Option<ResolutionId>,
        /// The resolution that was taken back by this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reverts: Option<ResolutionId>,
        /// The hunks and their states now.
        moves: Vec<(HunkId, HunkState)>,
    },
    /// Proposals are no longer asked about: they were accepted and come back as changes, or their call has ended. Also
    /// a file as a whole that comes back as a change of lines.
    Withdrawn {
        /// The file or document.
        target: Target,
        /// The proposals.
        hunks: Vec<HunkId>,
    },
    /// The state of a file before its first change by a turn.
    Before {
        /// The turn.
        turn: TurnId,
        /// The file or document.
        target: Target,
        /// The former state.
        before: FileBefore,
    },
    /// A file is removed because its creation was undone.
    Unmade {
        /// The file.
        target: Target,
        /// Its mode bits, which it gets again when it is made again.
        mode: u32,
    },
    /// The model learned the outcome of these hunks.
    Told {
        /// The turn whose prompt told it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<TurnId>,
        /// The hunks, as they were reported.
        hunks: Vec<HunkId>,
    },
}

/// The former state of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FileBefore {
    /// There was none.
    Absent,
    /// An open document; its state on disk is unknown.
    Document {
        /// Its text.
        text: BlobId,
    },
    /// A closed file.
    File {
        /// Its bytes.
        bytes: BlobId,
    },
    /// The finding of a command.
    Image {
        /// The former content.
        image: FileImage,
    },
}

/// The turn and call that a change is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeOrigin {
    /// Its id.
    pub id: ChangeId,
    /// The turn.
    pub turn: TurnId,
    /// The call.
    pub call: CallId,
    /// Its effect on the file.
    pub kind: HunkKind,
    /// The prompt that asks about it; `None` when it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<PermissionId>,
}

/// A place of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewHunk {
    /// Its id.
    pub id: HunkId,
    /// Its range, in bytes of the text before the whole change.
    pub edits: Vec<TextEdit>,
}
