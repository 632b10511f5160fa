//! The `Write` tool: a whole file, new or replaced.
//!
//! Rule: nothing is written over a text this session has not read as it is now; a replaced file keeps its encoding
//! and line endings, and only the lines that differ are changed.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::edit::diff::line_changes;
use crate::edit::matching::adopt_line_breaks;
use crate::edit::{ChangeSet, FileChange, TextEdit};
use crate::paths::Target;
use crate::tools::{Action, CallContext, Plan, Tool, ToolError, ToolErrorKind, ToolFacts, ToolKind, Touch};
use crate::workspace::{FileText, Freshness, ReadError, Source};

/// Arguments of `Write`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteInput {
    /// The file to write: an absolute path, a path relative to the working folder, or the URI of an open document.
    pub file_path: String,
    /// The whole new text of the file, taken literally.
    pub content: String,
}

/// Writes a whole file.
pub struct Write;

#[async_trait]
impl Tool for Write {
    type Input = WriteInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "Write",
            aliases: &["fs_write", "write_file", "FileWrite", "Replace"],
            kind: ToolKind::Write,
            concurrency_safe: false,
            description: DESCRIPTION,
        }
    }

    async fn plan(&self, input: WriteInput, context: &CallContext) -> Result<Plan, ToolError> {
        let workspace = &context.workspace;
        let target = workspace.resolve(&input.file_path)?;
        let path = workspace.display(&target);
        let mut touches = vec![Touch::Write(target.clone())];
        let (base, edits, summary) = match workspace.text(&target).await {
            Ok(file) => {
                let edits = edits_of_existing(&input.content, &file, workspace.freshness(&file), &path)?;
                (Some(file), edits, format!("Rewrote {path}"))
            }
            Err(ReadError::NotFound { .. }) => {
                touches.extend(missing_parents(&target).into_iter().map(Touch::Write));
                let edits = vec![TextEdit { range: 0..0, new_text: input.content }];
                (None, edits, format!("Created {path}"))
            }
            Err(error) => return Err(error.into()),
        };
        let title = format!("{} {path}", if base.is_some() { "Write" } else { "Create" });
        let label = format!("Kode: {title}");
        let files = vec![FileChange { target, base, edits }];
        Ok(Plan { title, touches, action: Action::Change(ChangeSet { label, summary, files }) })
    }
}

const DESCRIPTION: &str = "\
Writes a whole file, creating it and its folders when needed.

- To change part of an existing file use Edit: it costs far less and cannot lose the rest.
- An existing file must have been read in this session, and not have changed since.
- An existing file keeps its encoding, its line endings and its permissions.
- Do not create documentation or other files nobody asked for.";

/// Refuses a change whose result the file's encoding cannot hold, before anybody is asked about it.
pub(super) fn refuse_unwritable(file: &FileText, new_text: &str, path: &str) -> Result<(), ToolError> {
    file.check_writable_as(new_text).map_err(|error| {
        ToolError::new(
            ToolErrorKind::Mismatch,
            format!("`{path}` cannot be changed: {error}"),
            "Use characters that the encoding has, or ask the user to convert the file to UTF-8.",
        )
    })
}

/// The folders that creating the target would create as well.
pub(super) fn missing_parents(target: &Target) -> Vec<Target> {
    let parents = std::iter::successors(target.file().and_then(|path| path.parent()), |path| path.parent());
    parents.take_while(|path| !path.as_path().exists()).map(Target::File).collect()
}

fn edits_of_existing(
    content: &str,
    file: &FileText,
    freshness: Freshness,
    path: &str,
) -> Result<Vec<TextEdit>, ToolError> {
    let mismatch = |message, hint: &str| Err(ToolError::new(ToolErrorKind::Mismatch, message, hint));
    // The byte order mark is the file's; a model that copies it must not double it.
    let content = if file.format.has_bom() { content.trim_start_matches('\u{feff}') } else { content };
    let content = adopt_line_breaks(&file.text, content);
    match (freshness, &file.source) {
        // Nothing can be lost of an empty file, so it need not have been read.
        (Freshness::Unread, _) if file.text.is_empty() => {}
        (Freshness::Unread, _) => {
            return mismatch(
                format!("`{path}` exists and has not been read in this session"),
                "Read it first, then use Edit, or Write if all of it has to change.",
            );
        }
        (Freshness::Changed, Source::Disk) => {
            return mismatch(
                format!("`{path}` has changed on disk since it was read"),
                "Read it again before writing over it.",
            );
        }
        (Freshness::Changed, Source::Document(_)) => {
            return mismatch(
                format!("the user has changed `{path}` in the editor since it was read"),
                "Read it again before writing over it, or use Edit for the passage that has to change.",
            );
        }
        (Freshness::Current, _) => {}
    }
    if *content == *file.text {
        return mismatch(
            format!("`{path}` already has exactly this content"),
            "Nothing needs to be written; go on with the next step.",
        );
    }
    refuse_unwritable(file, &content, path)?;
    Ok(line_changes(&file.text, &content))
}
