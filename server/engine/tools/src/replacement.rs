//! The common part of `Edit` and `MultiEdit`: replacing passages of one file, one after the other.
//!
//! Rule: all or nothing, and rather refuse than guess. Each passage is looked for in the result of the replacements
//! before it; the final change is minimal.

pub(crate) mod mismatch;

use std::borrow::Cow;

use self::mismatch::{mismatch, note_of, refusal};
use crate::write::refuse_unwritable;
use kode_base::call::{ToolError, ToolErrorKind, Touch};
use kode_base::paths::Target;
use kode_text::edit::change::apply_edits;
use kode_text::edit::compose::compose_edits;
use kode_text::edit::matching::Matches;
use kode_text::edit::passage::{PassageRequest, replace_passage};
use kode_text::edit::{Author, ChangeSet, FileChange, TextEdit};
use kode_text::file_text::{FileText, TextSource};
use kode_text::workspace::overlay::MAX_FILE_BYTES;
use kode_text::workspace::write::missing_parents;
use kode_text::workspace::{Freshness, ReadError};
use kode_tool::{CallAction, CallContext, CallPlan};

/// The most occurrences that one edit replaces.
const MAX_REPLACEMENTS: usize = 100_000;

/// One passage to replace.
#[derive(Clone, Copy, Debug)]
pub(super) struct PassageReplacement<'input> {
    /// The passage; empty only to create a file or to fill an empty one.
    pub(super) old: &'input str,
    /// The resulting text.
    pub(super) new: &'input str,
    /// Whether every occurrence is replaced.
    pub(super) all: bool,
    /// Its number among several, from 1; `None` when it is the only one.
    pub(super) number: Option<usize>,
}

/// The result of the replacements.
#[derive(Debug)]
pub(super) struct ReplacementOutcome {
    /// The file as it is; `None` when it is created.
    pub(super) base: Option<FileText>,
    /// The edits of it.
    pub(super) edits: Vec<TextEdit>,
    /// How many occurrences are replaced.
    pub(super) count: usize,
    /// The remarks for the model about passages with another indentation.
    notes: Vec<String>,
}

/// Makes replacements in the text of a file, each in the result of those before it.
///
/// # Errors
/// [`ToolError`] of the first that cannot be made, naming its number.
pub(super) async fn replace(
    target: &Target,
    path: &str,
    replacements: &[PassageReplacement<'_>],
    context: &CallContext,
) -> Result<ReplacementOutcome, ToolError> {
    for replacement in replacements {
        replacement.refuse_same(path).map_err(|error| replacement.named_in(error))?;
    }
    refuse_notebook(target, path)?;
    let workspace = &context.workspace;
    let creates = replacements.first().is_some_and(|first| first.old.is_empty());
    let base = match workspace.text(target).await {
        Ok(file) => Some(file),
        Err(ReadError::NotFound { .. }) if creates => None,
        Err(error) => return Err(error.into()),
    };
    let freshness = base.as_ref().map_or(Freshness::Current, |file| workspace.freshness(file));
    // An empty old_string has its own error, and nothing can be lost of an empty file.
    if let Some(file) = base.as_ref().filter(|_| !creates) {
        refuse_unread(file, freshness, path)?;
    }
    let original = base.as_ref().map_or("", |file| &*file.text);
    let mut text = Cow::Borrowed(original);
    let mut edits = Vec::new();
    let mut count = 0;
    let mut notes = Vec::new();
    for replacement in replacements {
        let (next, note) =
            replacement.edits(&text, freshness, path).map_err(|error| replacement.named_in(error))?;
        // The topic of a note stood in one place.
        count += if note.is_some() { 1 } else { next.len() };
        notes.extend(note);
        edits = compose_edits(&edits, &next);
        text = Cow::Owned(apply_edits(&text, &next));
    }
    if base.is_some() && text == original {
        return Err(mismatch(
            format!("`{path}` was not changed: the edits undo each other"),
            "Give the edits that lead to the text that should stand there.",
        ));
    }
    if let Some(file) = &base {
        refuse_unwritable(file, &text, path)?;
    }
    Ok(ReplacementOutcome { base, edits, count, notes })
}

/// Refuses to change what this session has not read, or has not read as it is on disk.
pub(super) fn refuse_unread(file: &FileText, freshness: Freshness, path: &str) -> Result<(), ToolError> {
    match (freshness, &file.source) {
        (Freshness::Unread, _) => Err(mismatch(
            format!("`{path}` has not been read in this session"),
            "Read it first, then edit its current text.",
        )),
        (Freshness::Changed, TextSource::Disk) => Err(mismatch(
            format!("`{path}` has changed on disk since it was read"),
            "Read it again, then edit its current text.",
        )),
        // Later typing of the user is safe: the edit is by content, and is rebased once more when it is made.
        (Freshness::Changed, TextSource::Document(_)) | (Freshness::Current, _) => Ok(()),
    }
}

/// Whether the target is a notebook by its name.
pub(super) fn is_notebook(target: &Target) -> bool {
    target.file().is_some_and(|file| file.as_path().extension() == Some("ipynb".as_ref()))
}

impl ReplacementOutcome {
    /// The plan that makes the change, with a title for people and the first words of the result.
    pub(super) fn into_plan(self, target: Target, title: String, summary: String) -> CallPlan {
        let Self { base, edits, notes, .. } = self;
        let mut touches = vec![Touch::Write(target.clone())];
        if base.is_none() {
            touches.extend(missing_parents(&target).into_iter().map(Touch::Write));
        }
        let label = format!("Kode: {title}");
        let summary = [vec![summary], notes].concat().join("\n");
        let files = vec![FileChange { target, base, edits }];
        CallPlan {
            title,
            touches,
            action: CallAction::Change(ChangeSet {
                label,
                summary,
                files,
                removals: Vec::new(),
                author: Author::Agent,
            }),
        }
    }
}

impl PassageReplacement<'_> {
    fn refuse_same(&self, path: &str) -> Result<(), ToolError> {
        if self.old != self.new {
            return Ok(());
        }
        Err(ToolError::new(
            ToolErrorKind::InvalidInput,
            format!("`{path}` was not changed: old_string and new_string are the same"),
            "Give the text that should stand there instead.",
        ))
    }

    /// The edits of one replacement, and what the model must know of them.
    fn edits(
        &self,
        text: &str,
        freshness: Freshness,
        path: &str,
    ) -> Result<(Vec<TextEdit>, Option<String>), ToolError> {
        let Self { old, new, all, .. } = *self;
        if old.is_empty() {
            return match text.is_empty() {
                true => Ok((vec![TextEdit { range: 0..0, new_text: new.to_owned() }], None)),
                false => Err(mismatch(
                    format!("`{path}` exists and is not empty, but old_string is empty"),
                    "Read the file and give the passage to replace; to replace all of it use Write.",
                )),
            };
        }
        if all || (text.len() + new.len()) as u128 > u128::from(MAX_FILE_BYTES) {
            refuse_excess(text, &Matches::find(text, old), new, path)?;
        }
        let request = PassageRequest { old, new, all, is_stale: freshness == Freshness::Changed };
        let passage =
            replace_passage(text, request).map_err(|why| refusal(why, text, old, path, freshness))?;
        if passage.edits.len() > 1 && freshness == Freshness::Changed {
            return Err(mismatch(
                format!(
                    "`{path}` was changed by the user since it was read, and old_string occurs more than once"
                ),
                "Read it again before replacing every occurrence.",
            ));
        }
        Ok((passage.edits, passage.note.as_ref().map(|note| note_of(note, "old_string", "new_string"))))
    }

    /// The error of this replacement, with its number when it is one of several.
    fn named_in(&self, error: ToolError) -> ToolError {
        match self.number {
            None => error,
            Some(number) => ToolError {
                message: format!("Edit {number}: {}", error.message),
                hint: format!("{} None of the edits was made.", error.hint),
                ..error
            },
        }
    }
}

/// Refuses, before it is made, a change whose result is too long to be edited or that takes too many edits.
fn refuse_excess(text: &str, matches: &Matches, new: &str, path: &str) -> Result<(), ToolError> {
    let count = matches.ranges.len();
    let removed: usize = matches.ranges.iter().map(ExactSizeIterator::len).sum();
    let result = (text.len() - removed) as u128 + count as u128 * new.len() as u128;
    let too_much = |message: String| {
        let hint = "Replace a longer passage that occurs less often, or let Bash write the file.";
        Err(ToolError::new(ToolErrorKind::InvalidInput, message, hint))
    };
    if result > u128::from(MAX_FILE_BYTES) {
        return too_much(format!(
            "`{path}` would have {result} bytes; a file that can be edited has at most {MAX_FILE_BYTES}"
        ));
    }
    if count > MAX_REPLACEMENTS {
        return too_much(format!(
            "old_string occurs {count} times in `{path}`; one edit replaces at most {MAX_REPLACEMENTS}"
        ));
    }
    Ok(())
}

/// Refuses a notebook, whose cells are not lines of text.
pub(super) fn refuse_notebook(target: &Target, path: &str) -> Result<(), ToolError> {
    if !is_notebook(target) {
        return Ok(());
    }
    Err(mismatch(
        format!("`{path}` is a notebook, whose cells are not lines of text"),
        "Use NotebookEdit to change one of its cells.",
    ))
}
