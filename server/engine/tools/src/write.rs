//! The `Write` tool: a whole file, new or replaced.
//!
//! Rule: nothing is written over a text this session has not read as it is now; a replaced file keeps its encoding
//! and line endings, and only the lines that differ are changed.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::read::page::MAX_LINE_CHARS;
use kode_base::call::{ToolError, ToolErrorKind, ToolKind, Touch};
use kode_base::encoding::LineEnding;
use kode_text::edit::diff::line_changes;
use kode_text::edit::matching::adopt_line_breaks;
use kode_text::edit::{Author, ChangeSet, FileChange, TextEdit};
use kode_text::file_text::{FileText, TextSource};
use kode_text::workspace::write::missing_parents;
use kode_text::workspace::{Freshness, ReadError};
use kode_tool::{CallAction, CallContext, CallPlan, Tool, ToolFacts};

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
        ToolFacts { name: "Write", kind: ToolKind::Write, concurrency_safe: false, description: DESCRIPTION }
    }

    async fn plan(&self, input: WriteInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let workspace = &context.workspace;
        let target = workspace.resolve(&input.file_path)?;
        let path = workspace.display(&target);
        let mut touches = vec![Touch::Write(target.clone())];
        let (base, edits, summary) = match workspace.text(&target).await {
            Ok(file) => {
                let seen = WrittenFile {
                    freshness: workspace.freshness(&file),
                    whole: workspace.has_read_whole(&target),
                };
                let edits = edits_of_existing(&input.content, &file, seen, &path)?;
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
        Ok(CallPlan {
            title,
            touches,
            action: CallAction::Change(ChangeSet {
                label,
                summary,
                files,
                removals: Vec::new(),
                author: Author::Agent,
            }),
        })
    }
}

const DESCRIPTION: &str = "\
Writes a whole file, creating it and its folders when needed.

- To change part of an existing file use Edit: it costs far less and cannot lose the rest.
- An existing file must have been read in this session, all of it, and not have changed since.
- An existing file keeps its encoding, its line endings and its permissions.
- Do not create documentation or other files that were not asked for.";

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

/// The session's view of a file.
pub(super) struct WrittenFile {
    pub(super) freshness: Freshness,
    pub(super) whole: bool,
}

/// Whether every line break of a content is CRLF, and every one of the file that it replaces LF.
fn is_windows_text_for_unix_file(content: &str, file: &str) -> bool {
    LineEnding::of(content) == LineEnding::Crlf && LineEnding::of(file) == LineEnding::Lf
}

/// The number of the first line, from 1, of which Read leaves out the end.
fn first_long_line(text: &str) -> Option<usize> {
    text.split(['\n', '\r']).position(|line| line.chars().nth(MAX_LINE_CHARS).is_some()).map(|at| at + 1)
}

/// The edits that give a file this text.
///
/// # Errors
/// When the session has not read all of it as it is now, or it has this text already.
pub(super) fn edits_of_existing(
    content: &str,
    file: &FileText,
    seen: WrittenFile,
    path: &str,
) -> Result<Vec<TextEdit>, ToolError> {
    let mismatch = |message, hint: &str| Err(ToolError::new(ToolErrorKind::Mismatch, message, hint));
    // The byte order mark is the file's: a model that writes one neither doubles nor adds it.
    let content = content.trim_start_matches('\u{feff}');
    let unix = is_windows_text_for_unix_file(content, &file.text).then(|| content.replace("\r\n", "\n"));
    let content = adopt_line_breaks(&file.text, unix.as_deref().unwrap_or(content));
    match (seen.freshness, &file.source) {
        // Nothing can be lost of an empty file, so it need not have been read.
        (Freshness::Unread, _) if file.text.is_empty() => {}
        (Freshness::Unread, _) => {
            return mismatch(
                format!("`{path}` exists and has not been read in this session"),
                "Read it first, then use Edit, or Write if all of it has to change.",
            );
        }
        (Freshness::Changed, TextSource::Disk) => {
            return mismatch(
                format!("`{path}` has changed on disk since it was read"),
                "Read it again before writing over it.",
            );
        }
        (Freshness::Changed, TextSource::Document(_)) => {
            return mismatch(
                format!("the user has changed `{path}` in the editor since it was read"),
                "Read it again before writing over it, or use Edit for the passage that has to change.",
            );
        }
        (Freshness::Current, _) if !seen.whole => {
            return match first_long_line(&file.text) {
                Some(line) => mismatch(
                    format!(
                        "`{path}` has only been read in part: Read shows the first {MAX_LINE_CHARS} characters of line {line}"
                    ),
                    "Use Edit for the passage that has to change. To replace all of the file, remove it with Bash and write it again.",
                ),
                None => mismatch(
                    format!("`{path}` has only been read in part"),
                    "Read the rest of it first, or use Edit for the passage that has to change.",
                ),
            };
        }
        (Freshness::Current, _) => {}
    }
    if *content == *file.text {
        return mismatch(
            format!("`{path}` already has exactly this content"),
            "Nothing needs to be written; continue with the next step.",
        );
    }
    refuse_unwritable(file, &content, path)?;
    Ok(line_changes(&file.text, &content))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rig::ToolRig;
    use kode_testing::text::Meanwhile;
    use kode_tool::ToolOutput;

    async fn write(rig: &ToolRig, file: &str, content: &str) -> Result<ToolOutput, ToolError> {
        rig.call("Write", json!({"file_path": file, "content": content})).await
    }

    async fn rig_with(name: &str, bytes: impl AsRef<[u8]>) -> ToolRig {
        let rig = ToolRig::new();
        rig.write(name, bytes);
        rig.call("Read", json!({"file_path": name})).await.unwrap();
        rig
    }

    #[tokio::test]
    async fn a_new_file_is_made_with_its_folders_and_may_be_changed_at_once() {
        let rig = ToolRig::new();
        let output = write(&rig, "a/b/new.txt", "one\ntwo\n").await.unwrap();
        assert_eq!(output.display, "Created a/b/new.txt (+2 -0)");
        assert_eq!(output.structured.unwrap()["created"], true);
        write(&rig, "a/b/new.txt", "one\n2\n").await.unwrap();
        assert_eq!(rig.text("a/b/new.txt"), "one\n2\n");
    }

    #[tokio::test]
    async fn an_unread_or_changed_file_is_not_written_over() {
        let rig = ToolRig::new();
        rig.write("a.txt", "old\n");
        let error = write(&rig, "a.txt", "new\n").await.unwrap_err();
        assert_eq!(error.message, "`a.txt` exists and has not been read in this session");
        rig.call("Read", json!({"file_path": "a.txt"})).await.unwrap();
        rig.write("a.txt", "newer\n");
        let error = write(&rig, "a.txt", "new\n").await.unwrap_err();
        assert_eq!(error.message, "`a.txt` has changed on disk since it was read");
        rig.call("Read", json!({"file_path": "a.txt"})).await.unwrap();
        rig.open("a.txt", "typed\n");
        let error = write(&rig, "a.txt", "new\n").await.unwrap_err();
        assert_eq!(error.message, "the user has changed `a.txt` in the editor since it was read");
        assert_eq!((rig.text("a.txt").as_str(), rig.shown("a.txt").as_str()), ("newer\n", "typed\n"));
    }

    #[tokio::test]
    async fn a_file_read_in_part_is_not_written_over_but_may_be_edited() {
        let rig = ToolRig::new();
        rig.write("a.txt", "one\ntwo\nthree\n");
        rig.write("wide.txt", format!("one\n{}", "x".repeat(2_001)));
        let read = async |file: &str, offset, limit| {
            let input = json!({"file_path": file, "offset": offset, "limit": limit});
            rig.call("Read", input).await.unwrap();
        };
        read("a.txt", 1, 2).await;
        read("wide.txt", 1, 2).await;
        let error = write(&rig, "a.txt", "new\n").await.unwrap_err();
        assert_eq!(error.message, "`a.txt` has only been read in part");
        let error = write(&rig, "wide.txt", "new\n").await.unwrap_err();
        let expected =
            "`wide.txt` has only been read in part: Read shows the first 2000 characters of line 2";
        assert_eq!(error.message, expected);
        assert!(error.hint.contains("Use Edit") && error.hint.contains("remove it with Bash"), "{error:?}");
        std::fs::remove_file(rig.path("wide.txt")).unwrap();
        write(&rig, "wide.txt", "new\n").await.unwrap();
        read("a.txt", 3, 1).await;
        write(&rig, "a.txt", "one\ntwo\n3\n").await.unwrap();
        rig.write("a.txt", "uno\ndos\ntres\n");
        read("a.txt", 2, 1).await;
        rig.call("Edit", json!({"file_path": "a.txt", "old_string": "uno", "new_string": "1"}))
            .await
            .unwrap();
        assert!(write(&rig, "a.txt", "new\n").await.is_err(), "the edit has shown no more of it");
    }

    #[tokio::test]
    async fn the_same_content_is_not_written_again() {
        let rig = rig_with("a.txt", "one\r\ntwo\r\n").await;
        for content in ["one\ntwo\n", "one\r\ntwo\r\n"] {
            let error = write(&rig, "a.txt", content).await.unwrap_err();
            assert_eq!(error.message, "`a.txt` already has exactly this content");
        }
    }

    #[tokio::test]
    async fn encoding_mark_and_line_endings_are_kept() {
        let utf_16 = |text: &str| -> Vec<u8> {
            format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect()
        };
        let rig = rig_with("a.txt", utf_16("one\r\ntwo\r\n")).await;
        write(&rig, "a.txt", "\u{feff}one\nzwei\n\u{1f600}\n").await.unwrap();
        assert_eq!(rig.bytes("a.txt"), utf_16("one\r\nzwei\r\n\u{1f600}\r\n"));
    }

    #[tokio::test]
    async fn a_file_gets_no_byte_order_mark_and_no_other_line_endings() {
        let rig = rig_with("a.txt", "one\ntwo\nthree\n").await;
        write(&rig, "a.txt", "\u{feff}one\r\n2\r\nthree\r\n").await.unwrap();
        assert_eq!(rig.bytes("a.txt"), b"one\n2\nthree\n");
        write(&rig, "a.txt", "one\r\n2\nthree\n").await.unwrap();
        assert_eq!(rig.bytes("a.txt"), b"one\r\n2\nthree\n", "mixed ones are meant");
    }

    #[tokio::test]
    async fn typing_between_plan_and_edit_is_kept() {
        let rig = rig_with("a.txt", "one\ntwo\nthree\n").await;
        rig.open("a.txt", "one\ntwo\nthree\n");
        rig.meanwhile(Meanwhile::Typed("one!\ntwo\nthree\n".to_owned()));
        write(&rig, "a.txt", "one\ntwo\n3\nfour\n").await.unwrap();
        assert_eq!(rig.shown("a.txt"), "one!\ntwo\n3\nfour\n");
        let error = write(&rig, "a.txt", "one\n").await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Mismatch, "the session has not seen what the user typed");
    }
}
