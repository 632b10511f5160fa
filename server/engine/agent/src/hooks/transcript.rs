//! The transcript of a conversation as a file for hooks: one JSON object a line, in the form that scripts for other agents
//! read.
//!
//! Rule: the file is written when a hook is about to run and only new records are added to it; it is its user's alone. It is
//! a copy: nothing of it is ever read back.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use uuid::Uuid;

use super::HookRunner;
use kode_base::ids::AgentId;
use kode_base::paths::AbsPath;
use kode_base::{blocking, file_moves, private, regular};
use kode_model::{Block, Message, Role};

/// The positions up to which the files are written.
#[derive(Debug, Default)]
pub(super) struct Transcripts(Mutex<HashMap<PathBuf, TranscriptPosition>>);

#[derive(Clone, Debug, Default)]
struct TranscriptPosition {
    /// As `Thread::rewrites` then.
    rewrites: u64,
    /// Messages that are in it in full.
    messages: usize,
    /// Blocks of the next one that are in it.
    blocks: usize,
    /// The last line's id.
    last: Option<String>,
}

/// An update of a transcript file.
struct TranscriptUpdate {
    path: PathBuf,
    session: String,
    cwd: String,
    is_of_agent: bool,
    /// Messages with their numbers.
    messages: Vec<(usize, Message)>,
    written: TranscriptPosition,
    is_whole: bool,
}

impl HookRunner {
    /// Writes the file of a conversation in a folder and returns its path; `None` when it cannot be written.
    pub(super) async fn transcript_in(&self, folder: &AbsPath, agent: Option<&AgentId>) -> Option<AbsPath> {
        let name = match agent {
            None => format!("transcript-{}.jsonl", self.core.id()),
            Some(agent) => format!("transcript-{agent}.jsonl"),
        };
        let path = folder.join(name);
        // Held while it is written: two hooks that begin at the same time append to one file.
        let mut files = self.state.transcripts.0.lock().await;
        let known = files.get(path.as_path()).cloned();
        let new = {
            let state = self.core.state();
            let thread = state.thread(agent)?;
            let is_whole = known.as_ref().is_none_or(|known| known.rewrites != thread.rewrites());
            let written = known.filter(|_| !is_whole);
            let written = written.unwrap_or(TranscriptPosition {
                rewrites: thread.rewrites(),
                ..TranscriptPosition::default()
            });
            let messages = thread.messages_from(written.messages);
            TranscriptUpdate {
                path: path.as_path().to_owned(),
                session: self.core.id().to_string(),
                cwd: state.cwd.to_string(),
                is_of_agent: agent.is_some(),
                messages: messages.map(|(number, message)| (number, message.clone())).collect(),
                written,
                is_whole,
            }
        };
        match blocking(move || new.write()).await {
            Ok(written) => {
                files.insert(path.as_path().to_owned(), written);
                Some(path)
            }
            Err(error) => {
                tracing::warn!(%error, %path, "the transcript for hooks could not be written");
                files.remove(path.as_path());
                None
            }
        }
    }
}

impl TranscriptUpdate {
    fn write(mut self) -> io::Result<TranscriptPosition> {
        let mut lines = String::new();
        let messages = std::mem::take(&mut self.messages);
        for (number, message) in &messages {
            let known = if *number == self.written.messages { self.written.blocks } else { 0 };
            let blocks = message.content.get(known..).unwrap_or_default();
            if !blocks.is_empty() {
                lines.push_str(&self.line(message, blocks).to_string());
                lines.push('\n');
            }
            (self.written.messages, self.written.blocks) = (*number, message.content.len());
        }
        if self.is_whole {
            replace(&self.path, lines.as_bytes())?;
        } else if !lines.is_empty() {
            // In a folder that commands write in it may have become anything.
            regular::append(&self.path)?.write_all(lines.as_bytes())?;
        }
        Ok(self.written)
    }

    fn line(&mut self, message: &Message, blocks: &[Block]) -> Value {
        let kind = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        let content = match blocks {
            [Block::Text { text }] if message.role == Role::User => json!(text),
            blocks => blocks.iter().map(block).collect(),
        };
        let mut said = json!({ "role": kind, "content": content });
        if let Some(origin) = &message.origin {
            said["model"] = json!(origin.model);
        }
        let uuid = Uuid::now_v7().to_string();
        let parent = self.written.last.replace(uuid.clone());
        json!({
            "parentUuid": parent, "isSidechain": self.is_of_agent, "type": kind, "message": said, "uuid": uuid,
            "timestamp": Timestamp::now().to_string(), "sessionId": self.session, "cwd": self.cwd,
        })
    }
}

fn block(block: &Block) -> Value {
    match block {
        Block::Text { text } => json!({ "type": "text", "text": text }),
        Block::Thinking { thinking, .. } => json!({ "type": "thinking", "thinking": thinking }),
        Block::RedactedThinking { .. } => json!({ "type": "redacted_thinking" }),
        Block::Image(_) => json!({ "type": "text", "text": "[image]" }),
        Block::ToolUse { id, name, input, .. } => {
            json!({ "type": "tool_use", "id": id, "name": name, "input": input })
        }
        Block::ToolResult { tool_use_id, content, is_error, .. } => {
            json!({ "type": "tool_result", "tool_use_id": tool_use_id, "content": content, "is_error": is_error })
        }
    }
}

/// Replaces a file, readable by its user alone.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension(format!("{}.new", Uuid::now_v7().simple()));
    let written = private::file_options()
        .write(true)
        .create_new(true)
        .open(&beside)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| file_moves::rename(&beside, path));
    if written.is_err()
        && let Err(error) = file_moves::remove_file(&beside)
    {
        tracing::debug!(%error, path = %beside.display(), "a file for hooks is left behind");
    }
    written
}
