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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::testing::Rig;

    async fn read(rig: &Rig, input: serde_json::Value) -> String {
        rig.call("Read", input).await.unwrap().model_text
    }

    #[tokio::test]
    async fn lines_are_numbered_like_cat_n() {
        let rig = Rig::new();
        rig.write("a.txt", "one\r\n\ttwo\rthree\n\nno break");
        let text = read(&rig, json!({"file_path": "a.txt"})).await;
        assert_eq!(text, "     1\tone\n     2\t\ttwo\n     3\tthree\n     4\t\n     5\tno break");
    }

    #[tokio::test]
    async fn a_page_is_exact_and_says_where_to_go_on() {
        let rig = Rig::new();
        let lines: String = (1..=5_000).map(|number| format!("line {number}\n")).collect();
        rig.write("a.txt", lines);
        let text = read(&rig, json!({"file_path": "a.txt"})).await;
        assert!(text.ends_with("  2000\tline 2000\n[Lines 1 to 2000 of 5000; go on with offset 2001]"));
        let text = read(&rig, json!({"file_path": "a.txt", "offset": 4999, "limit": 1})).await;
        assert_eq!(text, "  4999\tline 4999\n[Lines 4999 to 4999 of 5000; go on with offset 5000]");
        let text = read(&rig, json!({"path": "a.txt", "start_line": "4999", "end_line": "5000"})).await;
        assert_eq!(text, "  4999\tline 4999\n  5000\tline 5000\n[Lines 4999 to 5000 of 5000]");
    }

    #[tokio::test]
    async fn limits_cut_lines_and_pages_visibly() {
        let rig = Rig::new();
        rig.write("wide.txt", "é".repeat(MAX_LINE_CHARS + 3));
        let text = read(&rig, json!({"file_path": "wide.txt"})).await;
        assert_eq!(text, format!("     1\t{}... [3 more characters]", "é".repeat(MAX_LINE_CHARS)));
        rig.write("large.txt", format!("{}\n", "x".repeat(1_500)).repeat(400));
        let output = rig.call("Read", json!({"file_path": "large.txt"})).await.unwrap();
        assert!(output.model_text.len() < MAX_OUTPUT_BYTES + 100);
        let shown = output.structured.unwrap()["lines"].as_u64().unwrap();
        let expected = format!("[Lines 1 to {shown} of 400; go on with offset {}]", shown + 1);
        assert!(output.model_text.ends_with(&expected));
    }

    #[tokio::test]
    async fn an_empty_file_and_an_offset_past_the_end_are_told() {
        let rig = Rig::new();
        rig.write("empty.txt", "");
        rig.write("a.txt", "one\ntwo\n");
        assert_eq!(read(&rig, json!({"file_path": "empty.txt"})).await, "[The file is empty]");
        let error = rig.call("Read", json!({"file_path": "a.txt", "offset": 3})).await.unwrap_err();
        assert_eq!(error.message, "`a.txt` has 2 lines; line 3 is past its end");
        let error = rig.call("Edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": "1"}));
        assert!(error.await.is_err(), "nothing was shown, so nothing was read");
    }

    #[tokio::test]
    async fn unsaved_text_is_read_and_a_guessed_encoding_is_told() {
        let rig = Rig::new();
        rig.write("a.txt", "saved");
        rig.open("a.txt", "unsaved");
        rig.write("utf16.txt", [0xff, 0xfe, b'h', 0, b'i', 0]);
        let output = rig.call("Read", json!({"file_path": "a.txt"})).await.unwrap();
        assert_eq!(output.model_text, "     1\tunsaved");
        assert_eq!(output.structured.unwrap()["source"], "document");
        let output = rig.call("Read", json!({"file_path": "utf16.txt"})).await.unwrap();
        assert!(output.model_text.starts_with("     1\thi\n[Encoding: UTF-16LE with BOM"));
        assert_eq!(output.structured.unwrap()["encoding"], "UTF-16LE with BOM");
    }

    #[tokio::test]
    async fn reading_declares_what_it_touches_and_does_nothing_before_it_may() {
        let rig = Rig::new();
        let input = ReadInput { file_path: "missing.txt".to_owned(), offset: None, limit: None };
        let plan = Read.plan(input, &rig.context).await.unwrap();
        assert_eq!(plan.title, "Read missing.txt");
        assert_eq!(plan.touches, [Touch::Read(rig.target("missing.txt"))]);
    }
}
