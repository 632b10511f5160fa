//! The agent's changes, hunk by hunk, and the user's decisions.
//!
//! Rule: hunks tell how things stand now, and `edits_changed` says when that is out of date; acting is answered at once
//! with an id, and `edits_resolved` tells how it went.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lsp::RangeShape;
use crate::permission::ProposedDiagnostics;
use crate::text::{CallId, HunkId, PermissionId, ResolutionId, SessionId, TurnId, Uri};

/// The session of the edits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListEditsParams {
    /// The session.
    pub session_id: SessionId,
    /// The only file or document that is wanted; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<Uri>,
    /// Whether to tell what each call changed as well; the list is empty for a session that another server writes.
    #[serde(default)]
    pub history: bool,
}

/// The changes of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListEditsResult {
    /// The files and documents with hunks that are proposed, applied or in conflict, in the order of their names.
    pub files: Vec<EditedFile>,
    /// The changes of each call, the file first changed first; empty unless it was asked for.
    #[serde(default)]
    pub history: Vec<FileHistory>,
    /// How the hunks of each call stand, the decided ones included; absent for a session that another server writes, and where
    /// only one file was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallEdits>,
}

/// The file whose changes the user has reviewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarkReviewedParams {
    /// The session.
    pub session_id: SessionId,
    /// The file or document.
    pub uri: Uri,
    /// Whether it is reviewed; false removes the mark.
    pub reviewed: bool,
}

/// How the hunks of one call stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallEdits {
    /// The call.
    pub call_id: CallId,
    /// Hunks that wait to be kept or undone.
    pub open: u32,
    /// Hunks that were kept.
    pub kept: u32,
    /// Hunks that were undone, or rejected.
    pub undone: u32,
}

/// The hunks of a file or document as they stand now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditedFile {
    /// The file or document.
    pub uri: Uri,
    /// Its path or untitled URI, as shown to people.
    pub path: String,
    /// The version of the open document that the ranges count in; absent for a closed file, and for a followed session whose
    /// recorded text is another than the document has. A client whose document has moved on waits for the next list, or
    /// moves the ranges by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i32>,
    /// A document without the hunks that are neither kept nor undone, to be read by `workspace/textDocumentContent` or
    /// `agent/document/baseline`: the left side of a diff.
    pub baseline_uri: Uri,
    /// A document with the proposed hunks: the right side of a diff.
    pub proposed_uri: Uri,
    /// Lines that the hunks add.
    pub added: u64,
    /// Lines that the hunks remove.
    pub removed: u64,
    /// Whether the user has marked these hunks as reviewed, as they are; false for a session that another server writes.
    #[serde(default)]
    pub reviewed: bool,
    /// The hunks in the order of their places.
    pub hunks: Vec<Hunk>,
    /// The diagnostics outside of the hunks' lines that the hunks add and remove; absent for none, and until a language server has
    /// reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<ProposedDiagnostics>,
}

/// One place in a file that the agent has changed or wants to change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hunk {
    /// Names the hunk.
    pub hunk_id: HunkId,
    /// The turn it was made in.
    pub turn_id: TurnId,
    /// The call that made it.
    pub call_id: CallId,
    /// Its effect on the file.
    pub kind: HunkKind,
    /// Where it is in its life.
    pub state: HunkState,
    /// Its range in the text; empty where it only takes text away, or is not in the text.
    #[schemars(with = "RangeShape")]
    pub range: lsp_types::Range,
    /// The whole lines around `range`, to be marked; empty when without the hunk there would be lines, and with it
    /// none exist.
    pub line_range: LineRange,
    /// These lines without the hunk.
    pub old_text: String,
    /// These lines with the hunk.
    pub new_text: String,
    /// Lines it adds.
    pub added: u64,
    /// Lines it removes.
    pub removed: u64,
    /// Whether the user has changed what the hunk put there.
    pub amended: bool,
    /// The prompt that asks about it; only while it is proposed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_id: Option<PermissionId>,
    /// The diagnostics in its lines that it would add and remove, or has added and removed since before it; absent for none, and
    /// until a language server has reported them. They come with `edits_changed`. Those of a proposal go when a text changes, those
    /// of an applied hunk when the server withdraws them and when the hunk is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<ProposedDiagnostics>,
}

/// The effect of a hunk on its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// Where a hunk is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// Whole lines of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineRange {
    /// The first line, from 0.
    pub start: u32,
    /// The line after the last; `start` when there are no lines.
    pub end: u32,
}

/// The changes of a session's calls in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileHistory {
    /// The file or document.
    pub uri: Uri,
    /// Its path or untitled URI, as shown to people.
    pub path: String,
    /// Lines added by all changes, when they were made.
    pub added: u64,
    /// Lines removed by all changes, when they were made.
    pub removed: u64,
    /// The changes, oldest first.
    pub changes: Vec<EditChange>,
}

/// The changes of one call in a file when it ran, regardless of later decisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditChange {
    /// The call.
    pub call_id: CallId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The change as a unified diff.
    pub unified: String,
}

/// The action and its hunks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolveEditsParams {
    /// The hunks.
    pub selection: EditSelection,
    /// The action on them.
    pub action: ReviewAction,
    /// The effect of undo where the user has changed a hunk's text.
    #[serde(default)]
    pub amended: Amended,
    /// The user's note to the model about it. About proposals it goes with the answer to their call, about other changes
    /// with the next prompt, as long as this server lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Which hunks are meant. Hunks for which the action makes no sense are passed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum EditSelection {
    /// Some hunks of a session.
    Hunks(HunksSelection),
    /// All hunks of a file.
    File(FileSelection),
    /// All hunks of a turn.
    Turn(TurnSelection),
    /// All hunks of a session.
    Session(SessionSelection),
    /// All hunks of all live sessions.
    All,
}

/// Some hunks of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HunksSelection {
    /// The session.
    pub session_id: SessionId,
    /// The hunks, at least one.
    pub hunk_ids: Vec<HunkId>,
}

/// All hunks of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileSelection {
    /// The session; all live sessions when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The file or document.
    pub uri: Uri,
}

/// All hunks of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnSelection {
    /// The session.
    pub session_id: SessionId,
    /// The turn.
    pub turn_id: TurnId,
}

/// All hunks of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionSelection {
    /// The session.
    pub session_id: SessionId,
}

/// The user's action on hunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// The effect of undo where the user has changed a hunk's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Amended {
    /// Leaves the text alone and marks the hunk as a conflict.
    #[default]
    Ask,
    /// Takes out the rest of the agent's text, puts back what it replaced, and leaves the user's text there.
    Undo,
}

/// A text that the user puts into a document, such as a code block of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProposeEditsParams {
    /// The session whose change it becomes.
    pub session_id: SessionId,
    /// The file or document: open, or in a folder of the workspace. A file that is not there is made.
    pub uri: Uri,
    /// The range that the text replaces, in the document as the server knows it; all of it when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<RangeShape>")]
    pub range: Option<lsp_types::Range>,
    /// The text.
    pub text: String,
}

/// The outcome of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProposeEditsResult {
    /// Its hunks, in the order of their places: `applied`, to be kept or undone.
    pub hunk_ids: Vec<HunkId>,
}

/// The started act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolveEditsResult {
    /// One for each session that has hunks among those meant; `edits_resolved` tells how each went. Never empty, unless
    /// every session refused.
    pub resolutions: Vec<Resolution>,
    /// The sessions that could not begin, when all live sessions were meant.
    #[serde(default)]
    pub refused: Vec<RefusedResolution>,
}

/// An act that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resolution {
    /// The session.
    pub session_id: SessionId,
    /// Names the act in `edits_resolved`, and in `agent/edits/revert` when it is to be taken back.
    pub resolution_id: ResolutionId,
}

/// An act that was not begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedResolution {
    /// The session.
    pub session_id: SessionId,
    /// Why not, for people.
    pub reason: String,
}

/// The act to undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevertEditsParams {
    /// The session.
    pub session_id: SessionId,
    /// The act or restore; the newest when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution_id: Option<ResolutionId>,
}

/// A file that could not be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditFailure {
    /// The file or document.
    pub uri: Uri,
    /// Why not, for people.
    pub reason: String,
}
