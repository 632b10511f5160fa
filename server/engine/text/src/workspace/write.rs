//! Applying change sets: the only code that changes the user's text.
//!
//! Rule: an open document is changed only through the host and a closed file only by an atomic write, each against
//! the text that is there at that moment: when it is not the text the change was computed on, the change is rebased
//! or refused, and it is tried a fixed number of times, each in a longer pause of the user's typing than the last.

mod closed;
mod removal;
mod rollback;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use self::closed::{is_link, remove_undone};
use crate::document::DocumentSnapshot;
use crate::edit::change::apply_edits;
use crate::edit::rebase::{Rebase, rebase};
use crate::edit::{AppliedFile, Author, ChangeSet, FileChange, FileRemoval, TextEdit};
use crate::host::{DocumentEdit, DocumentEditOutcome};
use crate::workspace::{Freshness, ReadError, Workspace};
use kode_base::blocking;
use kode_base::call::{ToolError, ToolErrorKind};
use kode_base::encoding::EncodeError;
use kode_base::paths::{AbsPath, ResolvedPaths, Target};

/// How often a change is computed again for a text that keeps moving.
const MAX_ATTEMPTS: u32 = 5;

/// Pause in the typing, before an edit is retried in a document that changed while the editor applied it.
/// It doubles with each attempt: an editor that is slow to take an edit needs a longer pause to take it in.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// How long such a pause is waited for; then the change is tried all the same.
const MAX_WAIT_FOR_PAUSE: Duration = Duration::from_secs(2);

/// Characters of the user's text that a conflict quotes.
const MAX_QUOTED_CHARS: usize = 400;

/// Why a change set was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The user's typing, or whatever else wrote the file, changed the very text that was to be replaced.
    #[error(
        "`{path}` was changed meanwhile at line {line}, in the text to be replaced; it is now:\n{theirs}"
    )]
    Conflict {
        /// The file.
        path: String,
        /// First line of the place as it is now, from 1.
        line: usize,
        /// The current text.
        theirs: String,
    },
    /// A file that was to be created has appeared.
    #[error("`{path}` was created by someone else meanwhile")]
    Exists {
        /// The file.
        path: String,
    },
    /// The file or document that was to be changed is no more.
    #[error("`{path}` was deleted or closed meanwhile")]
    Gone {
        /// The file.
        path: String,
    },
    /// It may not be written, or is no longer what may be written.
    #[error("`{path}` cannot be written: {reason}")]
    Forbidden {
        /// The file.
        path: String,
        /// Why not.
        reason: String,
    },
    /// It leads elsewhere than it did when the call was judged, or a link took its place.
    #[error("`{path}` was replaced by a link while it was changed")]
    Replaced {
        /// The file.
        path: String,
    },
    /// It cannot be read as what it was.
    #[error("the file changed meanwhile: {0}")]
    Unreadable(#[source] ReadError),
    /// Its encoding cannot hold the change.
    #[error("`{path}` cannot be changed: {source}")]
    Encode {
        /// The file.
        path: String,
        /// Why not.
        source: EncodeError,
    },
    /// The editor refused the edit.
    #[error("the editor refused to change `{path}`: {reason}")]
    Rejected {
        /// The document.
        path: String,
        /// The editor's reason.
        reason: String,
    },
    /// The editor never showed the edit.
    #[error("the editor did not confirm the change of `{path}`: {reason}")]
    Unconfirmed {
        /// The document.
        path: String,
        /// The awaited change.
        reason: String,
    },
    /// The text changed again at every attempt.
    #[error("`{path}` kept changing: {MAX_ATTEMPTS} attempts to change it came too late")]
    Moving {
        /// The file.
        path: String,
    },
    /// The system failed to write it.
    #[error("`{path}` cannot be written: {source}")]
    Io {
        /// The file.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Cancelled before anything was sent or written.
    #[error("cancelled before `{path}` was changed")]
    Cancelled {
        /// The file.
        path: String,
    },
    /// Cancelled while the editor was at it.
    #[error("cancelled while the editor was changing `{path}`; it may have been changed")]
    Abandoned {
        /// The document.
        path: String,
    },
    /// Some files were changed before one could not be, and have been changed back.
    #[error("{source}\nNone of the files was changed: the others have their old text again.")]
    TakenBack {
        /// Why that file was not changed.
        source: Box<ApplyError>,
    },
    /// Some files were changed before one could not be.
    #[error("{source}\nAlready changed before that: {}", .changed.join(", "))]
    Partial {
        /// The applied edits.
        applied: Vec<AppliedFile>,
        /// The same for people.
        changed: Vec<String>,
        /// Why the next file was not changed.
        source: Box<ApplyError>,
    },
}

impl Workspace {
    /// Applies the changed texts of a change set: open documents through the host, closed files by guarded atomic writes.
    /// Files are changed in order, and their new text counts as read if the old one did. Removals are left to the caller.
    ///
    /// # Errors
    /// [`ApplyError`]. When the user's change set fails after some files it is [`ApplyError::Partial`]; those of the agent's
    /// are taken back, as [`Self::take_back`] says.
    pub async fn apply(
        &self,
        change: ChangeSet,
        cancel: &CancellationToken,
    ) -> Result<Vec<AppliedFile>, ApplyError> {
        self.apply_judged(change, &ResolvedPaths::default(), cancel).await
    }

    /// As [`Self::apply`], of a call whose files were where `judged` says when it was judged. One that is elsewhere now is not
    /// changed.
    ///
    /// # Errors
    /// As [`Self::apply`], and [`ApplyError::Replaced`].
    pub async fn apply_judged(
        &self,
        change: ChangeSet,
        judged: &ResolvedPaths,
        cancel: &CancellationToken,
    ) -> Result<Vec<AppliedFile>, ApplyError> {
        let ChangeSet { label, summary: _, files, removals, author } = change;
        let mut applied: Vec<AppliedFile> = Vec::with_capacity(files.len());
        for file in files {
            let moved =
                removals.iter().find(|removal| removal.moved_to.as_ref() == Some(&file.target)).cloned();
            let (real, file) = (judged_of(&file.target, judged), Arc::new(file));
            let by = ChangeSource { label: &label, author, judged: real };
            match self.apply_file(file, moved, by, cancel).await {
                Ok(file) => applied.push(file),
                Err(error) if applied.is_empty() => return Err(error),
                // An edit that may still come cannot be taken back.
                Err(error) if author == Author::Agent && !error.may_come_late() => {
                    return Err(self.take_back(applied, (&label, judged), error).await);
                }
                Err(error) => {
                    let changed = applied.iter().map(|file| self.display(&file.target)).collect();
                    return Err(ApplyError::Partial { applied, changed, source: Box::new(error) });
                }
            }
        }
        Ok(applied)
    }

    /// Removes a file whose creation was undone; `undone` is the text that the undo took out. An editor that has the document
    /// open is asked first, because it closes the document with the file. What else is in the file or the document stays.
    ///
    /// # Errors
    /// The system's; of kind [`io::ErrorKind::ResourceBusy`] when there is other text in it, and
    /// [`io::ErrorKind::InvalidInput`] when it is a link, no file, or led out of the workspace by a link.
    pub async fn remove_undone(&self, target: &Target, undone: &str) -> io::Result<()> {
        let Some(place) = target.file().cloned() else { return Ok(()) };
        let document = self.open_document(target).await;
        if document.as_ref().is_some_and(|document| document.text.len_bytes() > 0) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "the editor has text in it"));
        }
        let (roots, path, own) = (self.roots.clone(), place.clone(), undone.to_owned());
        blocking(move || remove_undone(&path, &roots, &own, false)).await?;
        if let Some(document) = document {
            // Whether the editor did it is read from the disk.
            self.host.delete_document(&document).await;
        }
        let (roots, own) = (self.roots.clone(), undone.to_owned());
        match blocking(move || remove_undone(&place, &roots, &own, true)).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    async fn apply_file(
        &self,
        file: Arc<FileChange>,
        moved: Option<FileRemoval>,
        by: ChangeSource<'_>,
        cancel: &CancellationToken,
    ) -> Result<AppliedFile, ApplyError> {
        let ChangeSource { label, author, judged } = by;
        let path = self.display(&file.target);
        let _own_write = self.own_write(&file.target);
        let mut rebased = 0;
        for attempt in 0..MAX_ATTEMPTS {
            if attempt > 0 {
                let pause = self.pause_in_typing(&file.target, FIRST_PAUSE * 2u32.pow(attempt - 1));
                let _ = cancel.run_until_cancelled(pause).await;
            }
            if cancel.is_cancelled() {
                return Err(ApplyError::Cancelled { path });
            }
            let job = WriteJob {
                file: file.clone(),
                path: path.clone(),
                rebased,
                moved: moved.clone(),
                judged: judged.clone(),
            };
            let attempt = match (self.open_document(&file.target).await, &file.target) {
                (Some(document), _) => self.edit_document(job, document, label, cancel).await?,
                (None, Target::Untitled(_)) => return Err(ApplyError::Gone { path }),
                (None, Target::File(place)) => match self.create_by_editor(&job, place, cancel).await? {
                    Some(created) => created,
                    None => {
                        let (roots, place) = (self.roots.clone(), place.clone());
                        blocking(move || job.write(&roots, &place)).await?
                    }
                },
            };
            match attempt {
                Attempt::Done(applied) => {
                    match author {
                        Author::Agent => self.note_applied(&applied),
                        Author::User => {}
                    }
                    return Ok(*applied);
                }
                Attempt::Again { rebased: so_far } => rebased = so_far,
            }
        }
        Err(ApplyError::Moving { path })
    }

    /// Returns when the text of an open document has not changed for so long, or when that has been waited for long enough;
    /// at once for files that are not open.
    async fn pause_in_typing(&self, target: &Target, pause: Duration) {
        let version = || async { self.open_document(target).await.map(|document| document.version) };
        let wait = async {
            let mut last = version().await;
            while last.is_some() {
                tokio::time::sleep(pause).await;
                let now = version().await;
                if now == last {
                    break;
                }
                last = now;
            }
        };
        // Typing that never pauses is no reason to give up without another attempt.
        let _ = tokio::time::timeout(MAX_WAIT_FOR_PAUSE, wait).await;
    }

    async fn edit_document(
        &self,
        job: WriteJob,
        document: DocumentSnapshot,
        label: &str,
        cancel: &CancellationToken,
    ) -> Result<Attempt, ApplyError> {
        let now = document.text.to_string();
        let (merged, job, now) = blocking(move || (job.merge(&now), job, now)).await;
        let MergedEdits { edits, rebased } = merged?;
        if edits.is_empty() {
            return Ok(Attempt::Done(Box::new(job.done(now.clone(), now, edits, rebased))));
        }
        let edit = DocumentEdit { base: document, edits: edits.clone(), label: label.to_owned() };
        // An outcome that is already there is taken even when cancelled: what happened is reported as it happened.
        let outcome = tokio::select! {
            biased;
            outcome = self.host.edit_document(edit) => outcome,
            () = cancel.cancelled() => return Err(ApplyError::Abandoned { path: job.path }),
        };
        match outcome {
            DocumentEditOutcome::Applied(shown) => {
                self.note_agent_change(&shown);
                let new_text = apply_edits(&now, &edits);
                let done = job.done(now, new_text, edits, rebased);
                Ok(Attempt::Done(Box::new(AppliedFile { shown: Some(shown), ..done })))
            }
            DocumentEditOutcome::Stale | DocumentEditOutcome::Closed => Ok(Attempt::Again { rebased }),
            DocumentEditOutcome::Rejected { reason } => Err(ApplyError::Rejected { path: job.path, reason }),
            DocumentEditOutcome::Unconfirmed { reason } => {
                Err(ApplyError::Unconfirmed { path: job.path, reason })
            }
        }
    }

    /// Has the editor create a file; `None` for a file that is there, and where the editor takes no part in it.
    async fn create_by_editor(
        &self,
        job: &WriteJob,
        place: &AbsPath,
        cancel: &CancellationToken,
    ) -> Result<Option<Attempt>, ApplyError> {
        // An editor would not keep the encoding and the mode bits of a moved file.
        if job.file.base.is_some() || job.moved.is_some() {
            return Ok(None);
        }
        let (roots, at, checked) = (self.roots.clone(), place.clone(), job.clone());
        if !blocking(move || checked.make_folder(&roots, &at)).await? {
            return Ok(None);
        }
        let new_text = job.file.new_text();
        let outcome = tokio::select! {
            biased;
            outcome = self.host.create_document(&job.file.target, &new_text) => outcome,
            () = cancel.cancelled() => return Err(ApplyError::Abandoned { path: job.path.clone() }),
        };
        let path = || job.path.clone();
        match outcome {
            None => Ok(None),
            Some(DocumentEditOutcome::Applied(shown)) => {
                self.note_agent_change(&shown);
                let done = job.done(String::new(), new_text, job.file.edits.clone(), job.rebased);
                let created = AppliedFile { created: true, shown: Some(shown), ..done };
                Ok(Some(Attempt::Done(Box::new(created))))
            }
            Some(DocumentEditOutcome::Stale | DocumentEditOutcome::Closed) => {
                Err(ApplyError::Exists { path: path() })
            }
            Some(DocumentEditOutcome::Rejected { reason }) => {
                Err(ApplyError::Rejected { path: path(), reason })
            }
            Some(DocumentEditOutcome::Unconfirmed { reason }) => {
                Err(ApplyError::Unconfirmed { path: path(), reason })
            }
        }
    }

    /// The new text counts as read unless it holds changes of the user's that the session has not seen.
    fn note_applied(&self, applied: &AppliedFile) {
        match self.freshness_of(&applied.target, &applied.old_text) {
            Freshness::Current | Freshness::Unread => self.note_text(&applied.target, &applied.new_text),
            Freshness::Changed => self.note_merged(&applied.target, &applied.old_text, &applied.new_text),
        }
    }
}

/// The author of a file change, and its verdict.
struct ChangeSource<'c> {
    label: &'c str,
    author: Author,
    /// Where the file was when the call was judged, links followed; `None` where no call was.
    judged: Option<AbsPath>,
}

/// One attempt at one file.
#[derive(Clone)]
struct WriteJob {
    file: Arc<FileChange>,
    path: String,
    rebased: u32,
    /// The file whose place a new one takes.
    moved: Option<FileRemoval>,
    /// Where the file was when the call was judged, links followed; `None` where no call was.
    judged: Option<AbsPath>,
}

/// The edits for the text as it is now; none when they are already in it.
struct MergedEdits {
    edits: Vec<TextEdit>,
    rebased: u32,
}

enum Attempt {
    Done(Box<AppliedFile>),
    Again { rebased: u32 },
}

impl WriteJob {
    fn merge(&self, now: &str) -> Result<MergedEdits, ApplyError> {
        let (base, edits) = (self.file.old_text(), &self.file.edits);
        if now == base {
            return Ok(MergedEdits { edits: edits.clone(), rebased: self.rebased });
        }
        let rebased = self.rebased + 1;
        match rebase(base, edits, now) {
            Rebase::Clean(edits) => Ok(MergedEdits { edits, rebased }),
            Rebase::AlreadyApplied => Ok(MergedEdits { edits: Vec::new(), rebased }),
            Rebase::Conflict { theirs, line, .. } => {
                Err(ApplyError::Conflict { path: self.path.clone(), line, theirs: quoted(&theirs) })
            }
        }
    }

    fn done(&self, old_text: String, new_text: String, edits: Vec<TextEdit>, rebased: u32) -> AppliedFile {
        AppliedFile {
            target: self.file.target.clone(),
            created: false,
            old_text,
            new_text,
            rebased,
            format: None,
            edits,
            shown: None,
            bytes: None,
        }
    }

    fn forbidden(&self, reason: &str) -> ApplyError {
        ApplyError::Forbidden { path: self.path.clone(), reason: reason.to_owned() }
    }

    fn io_error(&self, source: io::Error) -> ApplyError {
        let path = self.path.clone();
        if is_link(&source) {
            return ApplyError::Replaced { path };
        }
        match source.kind() {
            io::ErrorKind::NotFound => ApplyError::Gone { path },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                ApplyError::Forbidden { path, reason: format!("{source} (its folder must be writable, too)") }
            }
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => ApplyError::Forbidden {
                path,
                reason: "a file is in the place of a folder that is needed".to_owned(),
            },
            _ => ApplyError::Io { path, source },
        }
    }
}

impl ApplyError {
    fn from_read(error: ReadError) -> Self {
        match error {
            ReadError::NotFound { path, .. } => Self::Gone { path },
            other => Self::Unreadable(other),
        }
    }

    /// Whether the change may be made after all, by an editor that was too slow for anybody to wait.
    #[must_use]
    pub fn may_come_late(&self) -> bool {
        match self {
            Self::Unconfirmed { .. } | Self::Abandoned { .. } => true,
            Self::Partial { source, .. } | Self::TakenBack { source } => source.may_come_late(),
            Self::Conflict { .. }
            | Self::Exists { .. }
            | Self::Gone { .. }
            | Self::Forbidden { .. }
            | Self::Replaced { .. }
            | Self::Unreadable(_)
            | Self::Encode { .. }
            | Self::Rejected { .. }
            | Self::Moving { .. }
            | Self::Io { .. }
            | Self::Cancelled { .. } => false,
        }
    }

    /// The class of the fault, for the result of the call.
    fn kind(&self) -> ToolErrorKind {
        match self {
            Self::Conflict { .. } | Self::Exists { .. } | Self::Moving { .. } => ToolErrorKind::Conflict,
            Self::Gone { .. } | Self::Unreadable(_) | Self::Encode { .. } => ToolErrorKind::Mismatch,
            Self::Forbidden { .. } | Self::Replaced { .. } => ToolErrorKind::Forbidden,
            Self::Rejected { .. } | Self::Unconfirmed { .. } | Self::Io { .. } => ToolErrorKind::Failed,
            Self::Cancelled { .. } | Self::Abandoned { .. } => ToolErrorKind::Cancelled,
            Self::Partial { source, .. } | Self::TakenBack { source } => source.kind(),
        }
    }

    fn hint(&self) -> &'static str {
        match self {
            Self::Conflict { .. } | Self::Exists { .. } | Self::Moving { .. } => {
                "The user's text was kept. Read the file again and make the change in its current text."
            }
            Self::Gone { .. } => "Find its new place with Glob, or create it again if it is still needed.",
            Self::Unreadable(_) => "Check its current state before changing it.",
            Self::Encode { .. } => {
                "Use characters that the encoding has, or ask the user to convert the file to UTF-8."
            }
            Self::Forbidden { .. } => "Ask the user whether and how it may be changed.",
            Self::Replaced { .. } => {
                "Nothing was written. Make the change again to have the permission checked again."
            }
            Self::Rejected { .. } => "Read the file again; if the editor still refuses, ask the user.",
            Self::Unconfirmed { .. } | Self::Abandoned { .. } => {
                "Read the file again to see whether the change is in it before trying once more."
            }
            Self::Io { .. } => "Check the file system, then try again.",
            Self::Cancelled { .. } => "Nothing to do.",
            Self::Partial { source, .. } | Self::TakenBack { source } => source.hint(),
        }
    }
}

impl From<ApplyError> for ToolError {
    fn from(error: ApplyError) -> Self {
        Self::new(error.kind(), error.to_string(), error.hint())
    }
}

/// The folders that creating the target would create as well.
#[must_use]
pub fn missing_parents(target: &Target) -> Vec<Target> {
    let parents = std::iter::successors(target.file().and_then(|path| path.parent()), |path| path.parent());
    parents.take_while(|path| !path.as_path().exists()).map(Target::File).collect()
}

/// Where a file was when the call was judged.
fn judged_of(target: &Target, judged: &ResolvedPaths) -> Option<AbsPath> {
    judged.get(target.file()?).cloned()
}

fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
