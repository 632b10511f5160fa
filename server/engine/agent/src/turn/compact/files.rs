//! The files that are quoted with a summary.
//!
//! Rule: the shown text is the current one of the editor or the disk, and counts as read; a file that may not be read
//! unasked is not shown, every cut is stated, and a file that cannot be read is named with the reason.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;

use super::CompactionInput;
use crate::conversation::Conversation;
use crate::gate::Gatekeeper;
use kode_base::call::{Exposure, ToolKind};
use kode_base::paths::Target;
use kode_model::{Block, Message};
use kode_record::compaction::RecoveredFile;
use kode_text::edit::diff::push_numbered;
use kode_text::file_text::FileText;
use kode_text::workspace::{OpenText, Portion, Workspace};

/// The most quoted files.
pub(super) const MAX_FILES: usize = 5;

/// The most lines of each.
const MAX_LINES: usize = 1_000;

/// The most characters of a line.
const MAX_LINE_CHARS: usize = 2_000;

/// The most tokens of each, and of all together.
const MAX_FILE_TOKENS: u64 = 10_000;
const MAX_TOKENS: u64 = 50_000;

/// The share of the window, as one part in this many, that they may take together.
const WINDOW_PART: u64 = 4;

/// Less room than this is not worth a file.
const MIN_ROOM: u64 = 200;

/// The most files that are considered.
const MAX_CANDIDATES: usize = 50;

/// A file beside a summary.
pub(super) struct FileExcerpt {
    pub(super) file: RecoveredFile,
    /// The text for the model.
    text: String,
    /// The text and the portion that were read.
    read: Option<(FileText, Portion)>,
}

impl FileExcerpt {
    /// Records the read portion.
    pub(super) fn note(&self, workspace: &Workspace) {
        if let Some((text, portion)) = &self.read {
            workspace.note_read(text, portion);
        }
    }

    fn not_shown(target: Target, path: &str, problem: String) -> Self {
        let text = format!("`{path}` is not shown: {problem}");
        let file =
            RecoveredFile { target, modified: None, hash: None, shown: 0, lines: 0, problem: Some(problem) };
        Self { file, text, read: None }
    }
}

/// How much a file has to do with the conversation; more comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct FileRank {
    is_modified: bool,
    mentions: usize,
    last: usize,
}

/// The files that count most, as they are now, in at most `room` tokens.
pub(super) async fn recover(
    gate: &Gatekeeper,
    conversation: &Conversation,
    before: &CompactionInput<'_>,
    room: u64,
) -> Vec<FileExcerpt> {
    let workspace = conversation.workspace();
    let mut room = room.min(MAX_TOKENS).min(before.profile.context_window / WINDOW_PART);
    let may_read = gate.may_read_for(conversation);
    let mut recovered = Vec::new();
    for target in ranked(conversation, &before.messages).into_iter().take(MAX_CANDIDATES) {
        if recovered.len() >= MAX_FILES || room < MIN_ROOM {
            break;
        }
        if !may_read(&target, Exposure::Content) {
            continue;
        }
        let path = workspace.display(&target);
        let file = match workspace.open(&target).await {
            Ok(OpenText::Whole(text)) => show(text, &path, room.min(MAX_FILE_TOKENS), before),
            Ok(OpenText::Stream(stream)) => {
                let problem = format!("it is too long ({} bytes); read the part that counts", stream.size());
                FileExcerpt::not_shown(target, &path, problem)
            }
            Err(error) => FileExcerpt::not_shown(target, &path, error.to_string()),
        };
        room = room.saturating_sub(before.corrected(before.counter.text(&file.text)));
        recovered.push(file);
    }
    recovered
}

/// The block for the model.
pub(super) fn blocks(files: &[FileExcerpt]) -> Option<Block> {
    if files.is_empty() {
        return None;
    }
    let texts: Vec<_> = files.iter().map(|file| file.text.as_str()).collect();
    Some(Block::Text { text: format!("Files as they are now:\n\n{}", texts.join("\n\n")) })
}

/// The files that calls of the conversation named, those that count most first: changed ones, then those named most often,
/// then those named last.
fn ranked(conversation: &Conversation, messages: &[Message]) -> Vec<Target> {
    let mut ranks: HashMap<Target, FileRank> = HashMap::new();
    let workspace = conversation.workspace();
    let older =
        conversation.thread.read(|thread| thread.compacted().map(|compaction| compaction.files.clone()));
    for file in older.into_iter().flatten().filter(|file| file.problem.is_none()) {
        ranks.entry(file.target).or_default().mentions += 1;
    }
    let failed: HashSet<&str> =
        messages.iter().flat_map(|message| &message.content).filter_map(failed).collect();
    for (at, message) in messages.iter().enumerate() {
        for block in &message.content {
            let Block::ToolUse { id, name, input, .. } = block else { continue };
            let Some(tool) = conversation.tools.find(name) else { continue };
            let named = ["file_path", "notebook_path", "path"].into_iter().filter_map(|key| input.get(key));
            for path in named.filter_map(Value::as_str) {
                let Ok(target) = workspace.resolve(path) else { continue };
                let rank = ranks.entry(target).or_default();
                rank.is_modified |= tool.facts().kind == ToolKind::Write && !failed.contains(id.as_str());
                rank.mentions += 1;
                rank.last = at + 1;
            }
        }
    }
    let is_folder = |target: &Target| {
        target.file().is_some_and(|path| workspace.roots().contains(path) || path.as_path().is_dir())
    };
    let mut ranked: Vec<_> = ranks.into_iter().collect();
    ranked.sort_by(|(one, rank), (other, other_rank)| other_rank.cmp(rank).then_with(|| one.cmp(other)));
    ranked
        .into_iter()
        .map(|(target, _)| target)
        .filter(|target| !is_folder(target))
        .take(MAX_CANDIDATES)
        .collect()
}

/// The call that a block says has failed.
fn failed(block: &Block) -> Option<&str> {
    match block {
        Block::ToolResult { tool_use_id, is_error: true, .. } => Some(tool_use_id),
        Block::ToolResult { .. }
        | Block::Text { .. }
        | Block::Image(_)
        | Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::ToolUse { .. } => None,
    }
}

fn show(text: FileText, path: &str, tokens: u64, before: &CompactionInput<'_>) -> FileExcerpt {
    let lines = text.text.lines().count();
    let head = format!("`{path}` ({lines} lines):\n");
    let cut = |taken: usize| format!("[lines 1 to {taken} of {lines}; read the rest where it counts]");
    let mut shown = String::new();
    // The heading and the cut mark count as well.
    let mut used = before.corrected(before.counter.text(&head) + before.counter.text(&cut(lines)));
    let (mut taken, mut has_cut_line) = (0, false);
    for (at, line) in text.text.lines().take(MAX_LINES).enumerate() {
        let mut numbered = String::new();
        push_numbered(&mut numbered, at + 1, line, MAX_LINE_CHARS);
        numbered.push('\n');
        used += before.corrected(before.counter.text(&numbered));
        if used > tokens {
            break;
        }
        has_cut_line |= line.chars().nth(MAX_LINE_CHARS).is_some();
        shown.push_str(&numbered);
        taken = at + 1;
    }
    let cut = if taken < lines { cut(taken) } else { String::new() };
    let reported = format!("{head}{shown}{cut}");
    let modified = text.modified().and_then(|modified| Timestamp::try_from(modified).ok());
    let hash = text.hash.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    let seen = if has_cut_line { 0 } else { taken };
    let portion = Portion::Lines { shown: 1..1 + seen, total: lines };
    let file = RecoveredFile {
        target: text.target.clone(),
        modified,
        hash: Some(hash),
        shown: taken,
        lines,
        problem: None,
    };
    FileExcerpt { file, text: reported, read: Some((text, portion)) }
}
