//! All sessions there are: list, rename, archive, delete and search them.
//!
//! Rule: a session that cannot be read is listed with the reason; a cursor is opaque, and good for the next page whatever
//! has changed since the page before.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::permission::Mode;
use crate::state::RunState;
use crate::text::{ItemId, SessionId, Timestamp, Uri};

/// That the list of sessions is another one now. There is nothing in it: list them again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionListChangedParams {}

/// Which part of the list is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListSessionsParams {
    /// The most sessions of one answer; the server may give fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// `nextCursor` of the answer before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Whether sessions that are archived are listed.
    #[serde(default, skip_serializing_if = "ArchivedFilter::is_default")]
    pub archived: ArchivedFilter,
    /// Sessions that work in this folder, as a `file:` URI, instead of those of the workspace's folders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Uri>,
    /// Whether the answer says what all sessions take together; it costs a check of every file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub totals: bool,
}

/// Whether sessions that are archived are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ArchivedFilter {
    /// They are left out.
    #[default]
    Hide,
    /// They alone.
    Only,
    /// They as well.
    Include,
}

impl ArchivedFilter {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A page of the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListSessionsResult {
    /// The sessions, the one in which something happened last first.
    pub sessions: Vec<SessionSummary>,
    /// The cursor for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The totals of all sessions; absent unless requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totals: Option<SessionTotals>,
}

/// The totals of sessions, archived ones included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionTotals {
    /// How many there are.
    pub sessions: u64,
    /// The room they take on the disk, in bytes.
    pub bytes: u64,
}

/// A session in the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    /// The session.
    pub session_id: SessionId,
    /// Its title; empty before the first prompt.
    pub title: String,
    /// The author of the title; absent for the first line of its first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub titled_by: Option<TitledBy>,
    /// When it began; absent where its journal does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// When something last happened in it. To be renamed or archived is nothing that happens in it.
    pub updated_at: Timestamp,
    /// Where it is.
    pub state: SessionPresence,
    /// Its state; absent unless it is live in this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_state: Option<RunState>,
    /// Why it cannot be read; absent unless `state` is `unreadable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Whether it was archived.
    #[serde(default)]
    pub archived: bool,
    /// Its turns so far, those that the conversation went back before included; absent where a large journal was not
    /// read as a whole yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// The name of its model profile; absent where its journal does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its mode; absent where its journal does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Its working directory; absent where its journal does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Uri>,
    /// The room it takes on the disk, in bytes: journal, kept contents of files, output of commands.
    #[serde(default)]
    pub bytes: u64,
    /// Its cost in US dollars; absent where a part is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The first words of its last answer; absent before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_answer: Option<String>,
}

/// Where a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SessionPresence {
    /// It runs in this server.
    Live,
    /// It is kept on disk and can be loaded.
    Stored,
    /// It is open in another window: another server runs it.
    Elsewhere,
    /// It is kept on disk and cannot be read; `problem` says why.
    Unreadable,
}

/// The author of a session's title.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TitledBy {
    /// The user.
    User,
    /// A model.
    Model,
}

/// The new title of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenameSessionParams {
    /// The session, live or not.
    pub session_id: SessionId,
    /// The title, of at most 200 characters; line breaks become spaces.
    pub title: String,
}

/// Whether a session is archived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArchiveSessionParams {
    /// The session, live or not.
    pub session_id: SessionId,
    /// Whether it is archived from now on.
    pub archived: bool,
}

/// Which session is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteSessionParams {
    /// The session; one that is live is closed first.
    pub session_id: SessionId,
}

/// The search text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchSessionsParams {
    /// The words as they stand one after the other, at most 200 characters; capitals do not matter.
    pub query: String,
    /// The most hits of one answer; the server may give fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// `nextCursor` of the answer before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Sessions that work in this folder, as a `file:` URI, instead of those of the workspace's folders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Uri>,
}

/// A page of hits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchSessionsResult {
    /// The hits: the session last used first, and in it the newest first.
    pub hits: Vec<SessionHit>,
    /// The cursor for more; absent when all was searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Whether it ended because it took long; `nextCursor` continues.
    #[serde(default)]
    pub out_of_time: bool,
}

/// A hit and its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionHit {
    /// The session.
    pub session_id: SessionId,
    /// Its title.
    pub title: String,
    /// The item of the transcript; absent for the title of the session. After the conversation went back, the item may
    /// be one that is in the journal alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_id: Option<ItemId>,
    /// The kind of text of the hit.
    pub kind: SessionHitKind,
    /// When that was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_at: Option<Timestamp>,
    /// The text around it, on one line.
    pub snippet: String,
    /// Where in `snippet` it begins, counted as positions are.
    pub start: u32,
    /// Where in `snippet` it ends, counted as positions are.
    pub end: u32,
}

/// The kind of text of a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SessionHitKind {
    /// The user's text.
    Prompt,
    /// The model's text.
    Answer,
    /// The title that a session was given.
    Title,
    /// The title of a tool call, in one line.
    ToolTitle,
    /// The result of a tool call.
    ToolOutput,
}
