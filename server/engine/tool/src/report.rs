//! The report of an applied change: numbered snippets for the model, one line for people, and a patch for machines.
//!
//! Rule: the report is made from the applied changes, never from the request.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::ToolOutput;
use kode_base::encoding::LineEnding;
use kode_text::edit::diff::{Patch, push_numbered, split_lines};
use kode_text::edit::{AppliedFile, FileRemoval};
use kode_text::workspace::Workspace;

/// The lines of changed texts that a report shows the model, of all files together.
pub(crate) const MAX_SNIPPET_LINES: usize = 120;

/// Characters of one line that a report shows the model.
pub(crate) const MAX_SNIPPET_LINE_CHARS: usize = 400;

/// The result of an applied change: counts and numbered snippets for the model, one line for people, and for
/// machines `{path, absolutePath, patch, unified, truncated, encoding, lineEnding, created, added, removed,
/// rebased}`, or `{files: [...]}` of these when the change touched several files. A removed file is `{path, absolutePath,
/// deleted, movedTo, unified, added, removed}`.
#[must_use]
pub fn report(
    summary: &str,
    files: &[AppliedFile],
    removals: &[FileRemoval],
    workspace: &Workspace,
) -> ToolOutput {
    let mut model_text = summary.to_owned();
    let mut displays = Vec::new();
    let mut structured = Vec::new();
    let mut room = MAX_SNIPPET_LINES;
    for file in files {
        let path = workspace.display(&file.target);
        let patch = Patch::between(&file.old_text, &file.new_text);
        describe(&mut model_text, &path, file, (&patch, &mut room));
        let verb = if file.created { "Created" } else { "Edited" };
        displays.push(format!("{verb} {path} (+{} -{})", patch.added, patch.removed));
        structured.push(json!({
            "unified": patch.unified(&path, file.created),
            "path": path,
            "absolutePath": file.target.file().map(ToString::to_string),
            "patch": patch.hunks,
            "truncated": patch.truncated,
            "encoding": file.format.map(|format| format.to_string()),
            "lineEnding": LineEnding::of(&file.new_text).name(),
            "created": file.created,
            "added": patch.added,
            "removed": patch.removed,
            "rebased": file.rebased,
        }));
    }
    for removal in removals {
        let path = workspace.display(&removal.target);
        let moved_to = removal.moved_to.as_ref().map(|target| workspace.display(target));
        let patch = Patch::between(&removal.base.text, "");
        let said = match &moved_to {
            Some(new) => format!("{path} moved to {new}"),
            None => format!("{path} deleted: -{}", patch.removed),
        };
        let _ = write!(model_text, "{}{said}", if model_text.is_empty() { "" } else { "\n" });
        displays.push(match &moved_to {
            Some(new) => format!("Moved {path} to {new}"),
            None => format!("Deleted {path} (+0 -{})", patch.removed),
        });
        structured.push(json!({
            "unified": patch.unified_as(Some(&path), None),
            "path": path,
            "absolutePath": removal.target.file().map(ToString::to_string),
            "deleted": true,
            "movedTo": moved_to,
            "added": 0,
            "removed": patch.removed,
        }));
    }
    let structured = match structured.len() {
        1 => structured.pop(),
        _ => Some(Value::Object([("files".to_owned(), Value::Array(structured))].into_iter().collect())),
    };
    ToolOutput { model_text, display: displays.join("\n"), structured, ..ToolOutput::default() }
}

/// Appends a changed file with snippets of at most `room` lines, and takes those from it.
pub(crate) fn describe(
    text: &mut String,
    path: &str,
    file: &AppliedFile,
    (patch, room): (&Patch, &mut usize),
) {
    let start = if text.is_empty() { "" } else { "\n" };
    let verb = if file.created { "created" } else { "changed" };
    let _ = write!(text, "{start}{path} {verb}: +{} -{}", patch.added, patch.removed);
    if file.created {
        return;
    }
    if file.old_text == file.new_text {
        text.push_str("\nThe text already was as asked; nothing was changed.");
        return;
    }
    if file.rebased > 0 {
        text.push_str("\nOther places had changed meanwhile; those changes were kept.");
    }
    let new = split_lines(&file.new_text);
    for hunk in &patch.hunks {
        if *room == 0 {
            text.push_str("\n[more changed places are not shown]");
            break;
        }
        let first = if hunk.new_lines == 0 { hunk.new_start + 1 } else { hunk.new_start };
        let _ = write!(text, "\n@@ line {first}: +{} -{}", hunk.count('+'), hunk.count('-'));
        let lines = &new[first - 1..first - 1 + hunk.new_lines];
        for (number, line) in (first..).zip(lines.iter().take(*room)) {
            text.push('\n');
            push_numbered(text, number, line, MAX_SNIPPET_LINE_CHARS);
        }
        if lines.len() > *room {
            let _ = write!(text, "\n[{} more lines of this place are not shown]", lines.len() - *room);
        }
        *room = room.saturating_sub(lines.len());
    }
    if patch.truncated {
        text.push_str("\n[the change is too long to be shown in full]");
    }
}
