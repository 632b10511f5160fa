//! The `Edit` tool: one passage of a file replaced by another.
//!
//! Rule: rather refuse than guess. Only a text this session has read is edited, only where the old passage stands
//! exactly once (or everywhere, when asked for), and every refusal says what stands there and what to do next.

use std::fmt::Write as _;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::edit::change::apply_edits;
use crate::edit::diff::split_lines;
use crate::edit::matching::{Matches, nearest};
use crate::edit::{ChangeSet, FileChange, TextEdit};
use crate::paths::Target;
use crate::tools::write::{missing_parents, refuse_unwritable};
use crate::tools::{Action, CallContext, Plan, Tool, ToolError, ToolErrorKind, ToolFacts, ToolKind, Touch};
use crate::workspace::{FileText, Freshness, ReadError, Source};

/// The code of the error that says there is more than one match.
const MORE_THAN_ONE_MATCH: u32 = 1;

/// Line numbers of matches that an error lists.
const MAX_LISTED_MATCHES: usize = 20;

/// Characters of the nearest passage that an error shows.
const MAX_PASSAGE_CHARS: usize = 2_000;

/// Arguments of `Edit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditInput {
    /// The file to change: an absolute path, a path relative to the working folder, or the URI of an open document.
    pub file_path: String,
    /// The passage to replace, exactly as it stands in the file, without line numbers. Empty only to create a file.
    pub old_string: String,
    /// What replaces it, taken literally. Must differ from old_string.
    pub new_string: String,
    /// Replace every occurrence instead of the only one.
    #[serde(default)]
    pub replace_all: bool,
}

/// Replaces a passage.
pub struct Edit;

#[async_trait]
impl Tool for Edit {
    type Input = EditInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "Edit",
            aliases: &["fs_edit", "edit_file", "edit_text", "FileEdit", "Update"],
            kind: ToolKind::Write,
            concurrency_safe: false,
            description: DESCRIPTION,
        }
    }

    async fn plan(&self, input: EditInput, context: &CallContext) -> Result<Plan, ToolError> {
        let workspace = &context.workspace;
        let target = workspace.resolve(&input.file_path)?;
        let path = workspace.display(&target);
        if input.old_string == input.new_string {
            return Err(ToolError::new(
                ToolErrorKind::InvalidInput,
                format!("`{path}` was not changed: old_string and new_string are the same"),
                "Give the text that should stand there instead.",
            ));
        }
        refuse_notebook(&target, &path)?;
        let (base, edits) = match workspace.text(&target).await {
            Ok(file) => {
                let edits = edits_of_existing(&input, &file, workspace.freshness(&file), &path)?;
                (Some(file), edits)
            }
            Err(ReadError::NotFound { .. }) if input.old_string.is_empty() => {
                (None, vec![TextEdit { range: 0..0, new_text: input.new_string }])
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(file) = &base {
            refuse_unwritable(file, &apply_edits(&file.text, &edits), &path)?;
        }
        let (title, summary) = match (&base, edits.len()) {
            (None, _) => (format!("Create {path}"), format!("Created {path}")),
            (Some(_), 1) => (format!("Edit {path}"), "Replaced 1 occurrence".to_owned()),
            (Some(_), count) => (format!("Edit {path}"), format!("Replaced {count} occurrences")),
        };
        let mut touches = vec![Touch::Write(target.clone())];
        if base.is_none() {
            touches.extend(missing_parents(&target).into_iter().map(Touch::Write));
        }
        let label = format!("Kode: {title}");
        let files = vec![FileChange { target, base, edits }];
        Ok(Plan { title, touches, action: Action::Change(ChangeSet { label, summary, files }) })
    }
}

const DESCRIPTION: &str = "\
Replaces a passage of a file or an open document. Prefer this to Write for existing files: it costs far less and \
leaves everything else as it is.

- Read the file first in this session; an edit of an unread file is refused.
- old_string must stand in the file exactly once, indentation included and without the line numbers of Read. Add \
surrounding lines until it is unique, or set replace_all to replace every occurrence (useful to rename).
- Whitespace matters. Line breaks and curly quotes need not be copied exactly; the file keeps its own.
- To delete text give an empty new_string. To create a file give an empty old_string.
- The file's encoding, line endings and permissions are kept. What the user types meanwhile is kept, too.";

fn edits_of_existing(
    input: &EditInput,
    file: &FileText,
    freshness: Freshness,
    path: &str,
) -> Result<Vec<TextEdit>, ToolError> {
    let EditInput { old_string: old, new_string: new, replace_all, .. } = input;
    let mismatch = |message, hint: &str| ToolError::new(ToolErrorKind::Mismatch, message, hint);
    if old.is_empty() {
        // Nothing can be lost of an empty file, so it need not have been read.
        return match file.text.is_empty() {
            true => Ok(vec![TextEdit { range: 0..0, new_text: new.clone() }]),
            false => Err(mismatch(
                format!("`{path}` exists and is not empty, but old_string is empty"),
                "Read the file and give the passage to replace; to replace all of it use Write.",
            )),
        };
    }
    match (freshness, &file.source) {
        (Freshness::Unread, _) => {
            return Err(mismatch(
                format!("`{path}` has not been read in this session"),
                "Read it first, then edit what stands there.",
            ));
        }
        (Freshness::Changed, Source::Disk) => {
            return Err(mismatch(
                format!("`{path}` has changed on disk since it was read"),
                "Read it again, then edit what stands there now.",
            ));
        }
        // What the user typed since is safe: the edit is by content, and is rebased once more when it is made.
        (Freshness::Changed, Source::Document(_)) | (Freshness::Current, _) => {}
    }
    let matches = Matches::find(&file.text, old);
    match matches.count() {
        0 => return Err(not_found(file, old, path)),
        1 => {}
        count if !replace_all => return Err(ambiguous(file, &matches, count, path)),
        _ if freshness == Freshness::Changed => {
            return Err(mismatch(
                format!(
                    "`{path}` was changed by the user since it was read, and old_string stands there more than once"
                ),
                "Read it again before replacing every occurrence.",
            ));
        }
        _ => {}
    }
    Ok(matches.replacements(&file.text, old, new))
}

fn not_found(file: &FileText, old: &str, path: &str) -> ToolError {
    let message = format!("old_string was not found in `{path}`");
    let Some(passage) = nearest(&file.text, old) else {
        return ToolError::new(
            ToolErrorKind::Mismatch,
            message,
            "Read the file and copy the passage exactly, without line numbers.",
        );
    };
    let cut = passage.text.char_indices().nth(MAX_PASSAGE_CHARS);
    let shown = cut.map_or(passage.text.as_str(), |(at, _)| &passage.text[..at]);
    let more = if cut.is_some() { "..." } else { "" };
    ToolError::new(
        ToolErrorKind::Mismatch,
        format!("{message}. The nearest passage stands at line {}:\n{shown}{more}", passage.line),
        "If that is what you mean, copy it exactly into old_string; else read the file again.",
    )
}

fn ambiguous(file: &FileText, matches: &Matches, count: usize, path: &str) -> ToolError {
    let mut lines = String::new();
    for range in matches.ranges.iter().take(MAX_LISTED_MATCHES) {
        let separator = if lines.is_empty() { "" } else { ", " };
        let _ = write!(lines, "{separator}{}", line_number(&file.text, range.start));
    }
    if matches.ranges.len() > MAX_LISTED_MATCHES {
        lines.push_str(", ...");
    }
    let message = format!("old_string stands {count} times in `{path}`, at lines {lines}");
    let hint =
        "Add surrounding lines to old_string until it is unique, or set replace_all to replace every one.";
    let mut error = ToolError::new(ToolErrorKind::Mismatch, message, hint);
    error.code = Some(MORE_THAN_ONE_MATCH);
    error
}

fn line_number(text: &str, offset: usize) -> usize {
    let before = &text[..offset];
    split_lines(before).len() + usize::from(before.is_empty() || before.ends_with(['\n', '\r']))
}

fn refuse_notebook(target: &Target, path: &str) -> Result<(), ToolError> {
    let is_notebook = target.file().is_some_and(|file| file.as_path().extension() == Some("ipynb".as_ref()));
    if !is_notebook {
        return Ok(());
    }
    Err(ToolError::new(
        ToolErrorKind::Mismatch,
        format!("`{path}` is a notebook, whose cells are not lines of text"),
        "Use NotebookEdit if it is offered, else ask the user to change the cell.",
    ))
}
