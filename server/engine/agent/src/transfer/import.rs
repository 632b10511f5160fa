//! Sessions of the Kode SDK: a folder with the messages, the tool calls and the metadata of an agent.
//!
//! Rule: what cannot be read is named or counted, and nothing of the folder is changed. Two layouts are known: the files
//! side by side (`messages.json`, `tools.json`, `info.json`), and in `runtime/` with `meta.json` beside it.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::state::seal::sealing;
use kode_base::ids::{CallId, ItemId, SessionId, TurnId};
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_base::todo::{Todo, TodoStatus};
use kode_model::{Block, Message, Usage};
use kode_record::event::{CallOutcome, CallState, Item, ItemBody, ToolCallItem, TurnEnd};
use kode_record::options::TurnOptions;
use kode_record::record::{Record, TurnFigures};

/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 256 * 1024 * 1024;

/// Where each file may be, best first.
const MESSAGES: &[&str] = &["messages.json", "runtime/messages.json"];
const CALLS: &[&str] = &["tools.json", "runtime/tool-calls.json"];
const FACTS: &[&str] = &["info.json", "meta.json"];
const TODOS: &[&str] = &["todos.json", "runtime/todos.json"];

/// Why calls that were open have no result.
const OPEN_WHEN_IMPORTED: &str = "it had none when the session was imported";

/// Why a folder was not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It is not the folder of an agent.
    #[error(
        "{} is not the folder of an agent of the Kode SDK: it has neither {}; name the folder that has it, \
         `.kode-<template>/<agent>` by default",
        folder.display(), MESSAGES.join(" nor ")
    )]
    NoAgent {
        /// The folder.
        folder: PathBuf,
    },
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// A file has the wrong form.
    #[error("{} is not what the Kode SDK writes: {reason}; nothing was imported", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The metadata of the agent is incomplete.
    #[error("{} does not say `{field}`; nothing was imported", path.display())]
    MissingField {
        /// The file.
        path: PathBuf,
        /// The missing field.
        field: &'static str,
    },
    /// There is nothing in it.
    #[error("there are no messages in {}", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportOutcome {
    /// The new session.
    pub session: SessionId,
    /// The agent it was.
    pub agent: String,
    /// The template the agent was made from.
    pub template: String,
    /// Messages that were taken over.
    pub messages: usize,
    /// Blocks and messages that this build has no form for, and left out.
    pub skipped: usize,
}

/// The content of a folder, as records of a new session.
pub(crate) struct ImportedRecords {
    pub(crate) records: Vec<Record>,
    pub(crate) agent: String,
    pub(crate) template: String,
    pub(crate) messages: usize,
    pub(crate) skipped: usize,
}

/// A message as the SDK keeps it.
#[derive(Deserialize)]
struct SdkMessage {
    role: String,
    #[serde(default)]
    content: Value,
}

/// A call as the SDK keeps it, as far as a transcript wants it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SdkCall {
    id: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    started_at: Option<i64>,
    #[serde(default)]
    completed_at: Option<i64>,
}

/// Reads the folder of an agent as the records of a new session.
///
/// # Errors
/// [`ImportError`].
pub(crate) fn read_sdk_session(
    folder: &Path,
    id: &SessionId,
    root: &AbsPath,
    mode: Mode,
    model: String,
) -> Result<ImportedRecords, ImportError> {
    let Some((path, messages)) = file::<Vec<Value>>(folder, MESSAGES)? else {
        return Err(ImportError::NoAgent { folder: folder.to_path_buf() });
    };
    if messages.is_empty() {
        return Err(ImportError::Empty { path });
    }
    let Some((facts_path, facts)) = file::<Value>(folder, FACTS)? else {
        return Err(ImportError::MissingField { path: folder.join(FACTS[0]), field: "templateId" });
    };
    let fact = |field: &'static str| {
        let value = [&facts[field], &facts["metadata"][field]].into_iter().find_map(Value::as_str);
        value.map(str::to_owned).ok_or_else(|| ImportError::MissingField { path: facts_path.clone(), field })
    };
    let (agent, template) = (fact("agentId")?, fact("templateId")?);
    let calls = file::<Vec<SdkCall>>(folder, CALLS)?.map(|(_, calls)| calls).unwrap_or_default();
    let begun = time_of(&facts["createdAt"]).unwrap_or_else(Timestamp::now);
    let opened = Record::Opened {
        session: id.clone(),
        roots: vec![root.clone()],
        cwd: root.clone(),
        mode: mode.into(),
        model,
        forked_from: None,
        worktree: None,
    };
    let mut import = SdkImport {
        records: vec![opened],
        calls: calls.into_iter().map(|call| (call.id.clone(), call)).collect(),
        open: Vec::new(),
        turn: None,
        at: begun,
        taken: 0,
        skipped: 0,
    };
    for (number, message) in messages.into_iter().enumerate() {
        let message = SdkMessage::deserialize(message).map_err(|error| ImportError::Malformed {
            path: path.clone(),
            reason: format!("message {number}: {error}"),
        })?;
        import.take(message);
    }
    import.end_turn();
    if let Some((_, todos)) = file::<Value>(folder, TODOS)? {
        import.take_todos(&todos);
    }
    let SdkImport { records, taken, skipped, .. } = import;
    if taken == 0 {
        return Err(ImportError::Empty { path });
    }
    Ok(ImportedRecords { records, agent, template, messages: taken, skipped })
}

/// The first of these files that is there.
fn file<T: for<'de> Deserialize<'de>>(
    folder: &Path,
    names: &[&str],
) -> Result<Option<(PathBuf, T)>, ImportError> {
    let Some(path) = names.iter().map(|name| folder.join(name)).find(|path| path.is_file()) else {
        return Ok(None);
    };
    let unreadable = |source| ImportError::Unreadable { path: path.clone(), source };
    let size = std::fs::metadata(&path).map_err(unreadable)?.len();
    if size > MAX_FILE {
        let reason = format!("it has {size} bytes, and {MAX_FILE} are read at most");
        return Err(ImportError::Malformed { path, reason });
    }
    let bytes = std::fs::read(&path).map_err(unreadable)?;
    match serde_json::from_slice(&bytes) {
        Ok(value) => Ok(Some((path, value))),
        Err(error) => Err(ImportError::Malformed { path, reason: error.to_string() }),
    }
}

/// A time in milliseconds or as text.
fn time_of(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Number(milliseconds) => Timestamp::from_millisecond(milliseconds.as_i64()?).ok(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// The session as far as it is made.
struct SdkImport {
    records: Vec<Record>,
    calls: HashMap<String, SdkCall>,
    /// The calls of the newest answer that have no result yet.
    open: Vec<Item>,
    turn: Option<TurnId>,
    /// The newest time that is known.
    at: Timestamp,
    taken: usize,
    skipped: usize,
}

impl SdkImport {
    fn take(&mut self, message: SdkMessage) {
        let (blocks, skipped) = blocks(message.content);
        self.skipped += skipped;
        match message.role.as_str() {
            "assistant" => self.answer(blocks),
            "user" => self.user(blocks),
            // System messages belong to single requests, which have their own.
            _ => self.skipped += 1,
        }
    }

    fn user(&mut self, blocks: Vec<Block>) {
        let (results, said): (Vec<_>, Vec<_>) =
            blocks.into_iter().partition(|block| matches!(block, Block::ToolResult { .. }));
        let any = !results.is_empty();
        for result in results {
            self.result(result);
        }
        if said.is_empty() {
            self.taken += usize::from(any);
            return;
        }
        self.taken += 1;
        let text = text_of(&said);
        let is_reminder = text.trim_start().starts_with("<system-reminder>");
        match self.turn.clone() {
            Some(turn) if is_reminder => {
                self.seal();
                self.records.push(Record::Remark { turn, text });
            }
            _ => {
                self.end_turn();
                let turn = TurnId::generate();
                let item = self.item(&turn, ItemBody::user_message(text));
                let (queued, parts, options) = (None, Vec::new(), TurnOptions::default());
                let (content, of) = (said, turn.clone());
                self.records.push(Record::Prompt { turn: of, queued, item, content, parts, options });
                self.turn = Some(turn);
            }
        }
    }

    fn answer(&mut self, blocks: Vec<Block>) {
        let blocks: Vec<Block> =
            blocks.into_iter().filter(|block| !matches!(block, Block::ToolResult { .. })).collect();
        let (Some(turn), false) = (self.turn.clone(), blocks.is_empty()) else {
            // Without a prompt: no model accepts such a history.
            self.skipped += 1;
            return;
        };
        self.seal();
        self.taken += 1;
        let mut items = Vec::new();
        for block in &blocks {
            let body = match block {
                Block::Text { text } => ItemBody::AgentMessage {
                    text: text.clone(),
                    complete: true,
                    interrupted: false,
                    model: None,
                    duration_ms: None,
                },
                Block::ToolUse { id, name, input, .. } => {
                    if let Some(started) = self.known(id).and_then(|call| call.started_at) {
                        self.at = Timestamp::from_millisecond(started).unwrap_or(self.at);
                    }
                    let call = CallId::from_external(id);
                    let call = ToolCallItem::pending(call, name.clone(), None, input.clone(), self.at);
                    ItemBody::ToolCall(Box::new(call))
                }
                Block::Thinking { .. }
                | Block::RedactedThinking { .. }
                | Block::Image(_)
                | Block::ToolResult { .. } => continue,
            };
            let item = self.item(&turn, body);
            if item.is_call() {
                self.open.push(item.clone());
            }
            items.push(item);
        }
        let message = Message::assistant(blocks);
        self.records.push(Record::Answer {
            turn,
            message,
            items,
            usage: Usage::default(),
            streamed: Vec::new(),
            duration_ms: None,
            mode: None,
        });
    }

    fn result(&mut self, result: Block) {
        let Block::ToolResult { tool_use_id, content, is_error, .. } = &result else { return };
        let place = self.open.iter().position(|item| call_of(item).is_some_and(|call| call == tool_use_id));
        let Some(item) = place.map(|place| self.open.remove(place)) else {
            self.skipped += 1;
            return;
        };
        let known = self.known(tool_use_id);
        let state = match known.map(|call| call.state.as_str()) {
            Some("DENIED") => CallState::Denied,
            Some("SEALED") => CallState::Sealed,
            _ if *is_error => CallState::Failed,
            _ => CallState::Completed,
        };
        let ended = known.and_then(|call| Timestamp::from_millisecond(call.completed_at?).ok());
        self.at = ended.unwrap_or(self.at);
        let display = content.lines().next().unwrap_or_default().to_owned();
        let outcome = CallOutcome { state, display, structured: None, error: None };
        let (item, at, instructed, executed) = (item.id, self.at, Vec::new(), None);
        self.records.push(Record::CallEnded { item, at, outcome, result, instructed, executed });
    }

    /// Gives the calls that are open a result that says why they have none.
    fn seal(&mut self) {
        for item in std::mem::take(&mut self.open) {
            let ItemBody::ToolCall(call) = &item.body else { continue };
            let (outcome, result) = sealing(call, OPEN_WHEN_IMPORTED, None);
            let (item, at, instructed, executed) = (item.id, self.at, Vec::new(), None);
            self.records.push(Record::CallEnded { item, at, outcome, result, instructed, executed });
        }
    }

    fn end_turn(&mut self) {
        self.seal();
        if let Some(turn) = self.turn.take() {
            let (reason, usage, figures) = (TurnEnd::EndTurn, Usage::default(), TurnFigures::default());
            self.records.push(Record::TurnEnded { turn, reason, usage, figures });
        }
    }

    fn take_todos(&mut self, todos: &Value) {
        let entries = todos["todos"].as_array().or_else(|| todos.as_array());
        let todo = |entry: &Value| {
            let content = entry["title"].as_str().or_else(|| entry["content"].as_str())?.to_owned();
            let active_form = entry["activeForm"].as_str().unwrap_or(&content).to_owned();
            let status = match entry["status"].as_str() {
                Some("completed") => TodoStatus::Completed,
                Some("in_progress") => TodoStatus::InProgress,
                _ => TodoStatus::Pending,
            };
            Some(Todo { content, status, active_form })
        };
        let todos: Vec<Todo> = entries.into_iter().flatten().filter_map(todo).collect();
        if !todos.is_empty() {
            self.records.push(Record::Todos { todos });
        }
    }

    fn known(&self, call: &str) -> Option<&SdkCall> {
        self.calls.get(call)
    }

    fn item(&self, turn: &TurnId, body: ItemBody) -> Item {
        Item { id: ItemId::generate(), turn: turn.clone(), agent: None, timestamp: self.at, body }
    }
}

fn call_of(item: &Item) -> Option<&str> {
    match &item.body {
        ItemBody::ToolCall(call) => Some(call.call.as_str()),
        _ => None,
    }
}

fn text_of(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// The blocks of a message, and how many were of no form that is known here.
fn blocks(content: Value) -> (Vec<Block>, usize) {
    let listed = match content {
        Value::String(text) => return (vec![Block::Text { text }], 0),
        Value::Array(listed) => listed,
        _ => return (Vec::new(), 1),
    };
    let all = listed.len();
    let known: Vec<Block> = listed.iter().filter_map(block).collect();
    let skipped = all - known.len();
    (known, skipped)
}

fn block(block: &Value) -> Option<Block> {
    let text = |field: &str| block[field].as_str().map(str::to_owned);
    match block["type"].as_str()? {
        "text" => text("text").filter(|text| !text.is_empty()).map(|text| Block::Text { text }),
        "tool_use" => Some(Block::ToolUse {
            id: text("id")?,
            name: text("name")?,
            input: block["input"]
                .as_object()
                .cloned()
                .map_or_else(|| Value::Object(serde_json::Map::new()), Value::Object),
            input_error: None,
        }),
        "tool_result" => {
            let content = match &block["content"] {
                Value::String(text) => text.clone(),
                Value::Array(parts) => {
                    let texts = parts.iter().filter_map(|part| part["text"].as_str());
                    texts.collect::<Vec<_>>().join("\n")
                }
                Value::Null => String::new(),
                other => other.to_string(),
            };
            Some(Block::result(text("tool_use_id")?, content, block["is_error"].as_bool().unwrap_or(false)))
        }
        // Reasoning is only good for the model it came from, and that is not known here.
        _ => None,
    }
}
