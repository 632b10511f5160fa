//! The `Read` tool: numbered lines of a file or open document.
//!
//! Rule: what is shown is what the user sees, every cut is marked, and only a text that was shown counts as read.

use std::fmt::Write as _;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::edit::diff::{push_numbered, split_lines};
use crate::paths::Target;
use crate::tools::{
    Action, CallContext, Plan, Tool, ToolError, ToolErrorKind, ToolFacts, ToolKind, ToolOutput, Touch,
};
use crate::workspace::encoding::{LineEnding, TextFormat};
use crate::workspace::{FileText, Source};

/// Lines shown when no limit is given.
const DEFAULT_LINES: usize = 2_000;

/// Characters of a line that are shown.
const MAX_LINE_CHARS: usize = 2_000;

/// The most text one call shows.
const MAX_OUTPUT_BYTES: usize = 256 << 10;

/// Arguments of `Read`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadInput {
    /// The file to read: an absolute path, a path relative to the working folder, or the URI of an open document.
    pub file_path: String,
    /// The number of the first line to show, from 1. Only for files too long to read at once.
    #[serde(default)]
    pub offset: Option<usize>,
    /// How many lines to show, 2000 if not given. Only for files too long to read at once.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub limit: Option<usize>,
}

/// Shows the text of a file.
pub struct Read;

#[async_trait]
impl Tool for Read {
    type Input = ReadInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "Read",
            aliases: &["fs_read", "read_file", "FileRead", "View"],
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: DESCRIPTION,
        }
    }

    async fn plan(&self, input: ReadInput, context: &CallContext) -> Result<Plan, ToolError> {
        let target = context.workspace.resolve(&input.file_path)?;
        if input.limit == Some(0) {
            return Err(ToolError::new(
                ToolErrorKind::InvalidInput,
                "Read: `limit` must be at least 1",
                "Leave it out to read up to 2000 lines.",
            ));
        }
        let title = format!("Read {}", context.workspace.display(&target));
        let touches = vec![Touch::Read(target.clone())];
        let first = input.offset.unwrap_or(1).max(1);
        let limit = input.limit.unwrap_or(DEFAULT_LINES);
        let run = move |context: CallContext| -> futures::future::BoxFuture<'static, _> {
            Box::pin(read(target, first, limit, context))
        };
        Ok(Plan { title, touches, action: Action::Run(Box::new(run)) })
    }
}

const DESCRIPTION: &str = "\
Reads a file or an open document as the user sees it, unsaved changes included.

- The result has numbered lines: the number, a tab, then the line. The number and the tab are not part of the text.
- Up to 2000 lines are shown, and 2000 characters of each. Use offset and limit for the rest of a long file.
- Text in any common encoding is read. Images and other binary files are refused.
- A file must be read before Edit or Write may change it.
- Several files can be read at once by several calls in one answer.";

async fn read(
    target: Target,
    first: usize,
    limit: usize,
    context: CallContext,
) -> Result<ToolOutput, ToolError> {
    let workspace = &context.workspace;
    let file = tokio::select! {
        file = workspace.text(&target) => file?,
        () = context.cancel.cancelled() => return Err(cancelled()),
    };
    let path = workspace.display(&target);
    let lines = split_lines(&file.text);
    if first > lines.len().max(1) {
        let count = lines.len();
        return Err(ToolError::new(
            ToolErrorKind::InvalidInput,
            format!("`{path}` has {count} lines; line {first} is past its end"),
            "Read it without offset, or with a smaller one.",
        ));
    }
    let page = Page::of(&lines, first, limit);
    workspace.note_read(&file);
    Ok(ToolOutput {
        display: format!("Read {} lines of {path}", page.shown),
        structured: Some(json!({
            "path": path,
            "absolutePath": target.file().map(ToString::to_string),
            "firstLine": first,
            "lines": page.shown,
            "totalLines": lines.len(),
            "partial": page.shown < lines.len(),
            "source": source_name(&file.source),
            "encoding": encoding_name(&file),
            "lineEnding": LineEnding::of(&file.text).name(),
        })),
        model_text: page.into_text(&file, first, lines.len()),
    })
}

/// The lines that are shown.
struct Page {
    text: String,
    shown: usize,
}

impl Page {
    fn of(lines: &[&str], first: usize, limit: usize) -> Self {
        let mut page = Self { text: String::new(), shown: 0 };
        for (number, line) in (first..).zip(lines[first - 1..].iter().take(limit)) {
            let before = page.text.len();
            push_numbered(&mut page.text, number, line, MAX_LINE_CHARS);
            page.text.push('\n');
            if page.text.len() > MAX_OUTPUT_BYTES && page.shown > 0 {
                page.text.truncate(before);
                break;
            }
            page.shown += 1;
        }
        page
    }

    fn into_text(self, file: &FileText, first: usize, total: usize) -> String {
        let Self { mut text, shown } = self;
        if total == 0 {
            text.push_str("[The file is empty]\n");
        } else if shown < total {
            let last = first + shown - 1;
            let _ = write!(text, "[Lines {first} to {last} of {total}");
            if last < total {
                let _ = write!(text, "; go on with offset {}", last + 1);
            }
            text.push_str("]\n");
        }
        // UTF-8 goes without saying; anything else was found out by looking, and that is never silent.
        if file.format != TextFormat::UTF_8 {
            let _ = writeln!(text, "[Encoding: {}, kept when the file is edited]", file.format);
        }
        text.pop();
        text
    }
}

fn source_name(source: &Source) -> &'static str {
    match source {
        Source::Document(_) => "document",
        Source::Disk => "disk",
    }
}

fn encoding_name(file: &FileText) -> Option<String> {
    match file.source {
        Source::Document(_) => None,
        Source::Disk => Some(file.format.to_string()),
    }
}

fn cancelled() -> ToolError {
    ToolError::new(ToolErrorKind::Cancelled, "Read was cancelled", "Nothing to do.")
}
