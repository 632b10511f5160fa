//! Forks, exports and imports of sessions.
//!
//! Rule: nothing here changes the session that is copied, and nothing leaves the machine by it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::item::Item;
use crate::permission::Mode;
use crate::text::{AgentId, ItemId, SessionId, Uri};
use crate::todo::Todo;
use crate::turn::Usage;

/// Which session is forked, and where; without a place after all there is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkSessionParams {
    /// The session. It may be live, also in another server, and stays as it is.
    pub session_id: SessionId,
    /// The last item that the fork has; an item of the session's own transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_item_id: Option<ItemId>,
    /// The first item that the fork does not have; the words of a prompt become the fork's draft. Not together with
    /// `afterItemId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_item_id: Option<ItemId>,
}

/// The form of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExportFormat {
    /// A document for people.
    #[default]
    Markdown,
    /// The form for programs.
    Json,
}

/// Which session is exported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportSessionParams {
    /// The session. It may be live, also in another server.
    pub session_id: SessionId,
    /// The form.
    #[serde(default)]
    pub format: ExportFormat,
}

/// An export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportSessionResult {
    /// The title of the session.
    pub title: String,
    /// A name for the file, without a folder.
    pub file_name: String,
    /// The requested document.
    pub document: ExportedDocument,
}

/// The document of an export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "format", rename_all = "lowercase")]
pub enum ExportedDocument {
    /// A document for people.
    Markdown {
        /// Its text.
        text: String,
    },
    /// The form for programs.
    Json {
        /// The session.
        session: Box<ExportedSession>,
    },
}

/// A session as an export in JSON has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportedSession {
    /// The form of the document, 1.
    pub format_version: u32,
    /// The session.
    pub session_id: SessionId,
    /// The session it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
    /// Its title.
    pub title: String,
    /// Where it works, as a path of the machine it was made on.
    pub folder: String,
    /// Its mode.
    pub mode: Mode,
    /// The name of its model profile.
    pub model: String,
    /// Tokens of all turns.
    pub usage: Usage,
    /// The cost in US dollars, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Its transcript, oldest first.
    pub items: Vec<Item>,
    /// The transcripts of its sub-agents.
    pub subagents: Vec<ExportedSubagent>,
    /// Its todo list.
    pub todos: Vec<Todo>,
    /// Lines of its journal that could not be read and are missing.
    pub skipped_records: u64,
}

/// A sub-agent in an export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportedSubagent {
    /// The sub-agent.
    pub agent_id: AgentId,
    /// The name of its type.
    pub kind: String,
    /// Its topic.
    pub description: String,
    /// Its transcript, oldest first.
    pub items: Vec<Item>,
}

/// The source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportSessionParams {
    /// The folder of an agent of the Kode SDK, as a `file:` URI: with `messages.json`, `tools.json` and `info.json`, or
    /// with these in `runtime/` and `meta.json`.
    pub from: Uri,
    /// The workspace folder that the new session works in; the first one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_folder: Option<Uri>,
}

/// The imported session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportSessionResult {
    /// The new session; `agent/session/load` takes it up.
    pub session_id: SessionId,
    /// The agent it was.
    pub agent_id: String,
    /// The template the agent was made from.
    pub template_id: String,
    /// Messages that were taken over.
    pub messages: u32,
    /// Messages and parts of them that have no form here and were left out.
    pub skipped: u32,
}
