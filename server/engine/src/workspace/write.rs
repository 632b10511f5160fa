//! Applying change sets: the only code that changes the user's text.
//!
//! Rule: an open document is changed only through the host and a closed file only by an atomic write, each against
//! the text that is there at that moment: when it is not the text the change was computed on, the change is rebased
//! or refused, and it is tried a fixed number of times.

use std::io;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::edit::change::apply_edits;
use crate::edit::rebase::{Rebase, rebase};
use crate::edit::{AppliedFile, Author, ChangeSet, FileChange, TextEdit};
use crate::host::{DocumentEdit, DocumentEditOutcome, DocumentSnapshot};
use crate::paths::{AbsPath, Target};
use crate::tools::{ToolError, ToolErrorKind};
use crate::workspace::encoding::{self, EncodeError, TextFormat};
use crate::workspace::overlay::{FileBytes, Roots, blocking, read_bytes, real_path};
use crate::workspace::{Freshness, ReadError, Workspace, atomic};

/// How often a change is computed anew for a text that keeps moving.
const MAX_ATTEMPTS: u32 = 5;

/// Characters of the user's text that a conflict quotes.
const MAX_QUOTED_CHARS: usize = 400;

/// Why a change set was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The user's typing, or whatever else wrote the file, changed the very text that was to be replaced.
    #[error(
        "`{path}` was changed meanwhile at line {line}, in the text that was to be replaced; there now stands:\n{theirs}"
    )]
    Conflict {
        /// The file.
        path: String,
        /// First line of the place as it is now, from 1.
        line: usize,
        /// What stands there now.
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
        /// What was waited for.
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
    /// Some files were changed before one could not be.
    #[error("{source}\nAlready changed before that: {}", .changed.join(", "))]
    Partial {
        /// What was applied.
        applied: Vec<AppliedFile>,
        /// The same for people.
        changed: Vec<String>,
        /// Why the next file was not changed.
        source: Box<ApplyError>,
    },
}

impl Workspace {
    /// Applies a change set: open documents through the host, closed files by guarded atomic writes. Files are
    /// changed in order, and their new text counts as read if the old one did.
    ///
    /// # Errors
    /// [`ApplyError`]; [`ApplyError::Partial`] when some files had been changed by then.
    pub async fn apply(
        &self,
        change: ChangeSet,
        cancel: &CancellationToken,
    ) -> Result<Vec<AppliedFile>, ApplyError> {
        let mut applied: Vec<AppliedFile> = Vec::with_capacity(change.files.len());
        for file in change.files {
            match self.apply_file(Arc::new(file), &change.label, change.author, cancel).await {
                Ok(file) => applied.push(file),
                Err(error) if applied.is_empty() => return Err(error),
                Err(error) => {
                    let changed = applied.iter().map(|file| self.display(&file.target)).collect();
                    return Err(ApplyError::Partial { applied, changed, source: Box::new(error) });
                }
            }
        }
        Ok(applied)
    }

    /// Removes a file that has no bytes and is open nowhere.
    ///
    /// # Errors
    /// What the system says; of kind [`io::ErrorKind::ResourceBusy`] when there is text in it after all.
    pub(crate) async fn remove_empty(&self, target: &Target) -> io::Result<()> {
        let Some(place) = target.file().cloned() else { return Ok(()) };
        if self.open_document(target).await.is_some_and(|document| document.text.len_bytes() > 0) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "the editor has text in it"));
        }
        blocking(move || {
            if std::fs::metadata(&place)?.len() > 0 {
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, "there is text in it"));
            }
            std::fs::remove_file(&place)
        })
        .await
    }

    async fn apply_file(
        &self,
        file: Arc<FileChange>,
        label: &str,
        author: Author,
        cancel: &CancellationToken,
    ) -> Result<AppliedFile, ApplyError> {
        let path = self.display(&file.target);
        let _own_write = self.own_write(&file.target);
        let mut rebased = 0;
        for _ in 0..MAX_ATTEMPTS {
            if cancel.is_cancelled() {
                return Err(ApplyError::Cancelled { path });
            }
            let job = Job { file: file.clone(), path: path.clone(), rebased };
            let attempt = match (self.open_document(&file.target).await, &file.target) {
                (Some(document), _) => self.edit_document(job, document, label, cancel).await?,
                (None, Target::Untitled(_)) => return Err(ApplyError::Gone { path }),
                (None, Target::File(place)) => {
                    let (roots, place) = (self.roots.clone(), place.clone());
                    blocking(move || job.write(&roots, &place)).await?
                }
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

    async fn edit_document(
        &self,
        job: Job,
        document: DocumentSnapshot,
        label: &str,
        cancel: &CancellationToken,
    ) -> Result<Attempt, ApplyError> {
        let now = document.text.to_string();
        let (merged, job, now) = blocking(move || (job.merge(&now), job, now)).await;
        let Merged { edits, rebased } = merged?;
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

    /// The new text counts as read unless it holds changes of the user's that the session has not seen.
    fn note_applied(&self, applied: &AppliedFile) {
        match self.freshness_of(&applied.target, &applied.old_text) {
            Freshness::Current | Freshness::Unread => self.note_text(&applied.target, &applied.new_text),
            Freshness::Changed => self.note_merged(&applied.target, &applied.old_text, &applied.new_text),
        }
    }
}

/// One attempt at one file.
struct Job {
    file: Arc<FileChange>,
    path: String,
    rebased: u32,
}

/// The edits for the text as it is now; none when they are already in it.
struct Merged {
    edits: Vec<TextEdit>,
    rebased: u32,
}

enum Attempt {
    Done(Box<AppliedFile>),
    Again { rebased: u32 },
}

impl Job {
    fn merge(&self, now: &str) -> Result<Merged, ApplyError> {
        let (base, edits) = (self.file.old_text(), &self.file.edits);
        if now == base {
            return Ok(Merged { edits: edits.clone(), rebased: self.rebased });
        }
        let rebased = self.rebased + 1;
        match rebase(base, edits, now) {
            Rebase::Clean(edits) => Ok(Merged { edits, rebased }),
            Rebase::AlreadyApplied => Ok(Merged { edits: Vec::new(), rebased }),
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

    fn write(self, roots: &Roots, place: &AbsPath) -> Result<Attempt, ApplyError> {
        if roots.name(place) && !roots.hold(place) {
            return Err(self.forbidden("it leads out of the workspace, or nowhere, through a symbolic link"));
        }
        match self.file.base {
            Some(_) => self.replace(place),
            None => self.create(place),
        }
    }

    fn replace(&self, place: &AbsPath) -> Result<Attempt, ApplyError> {
        let real = std::fs::canonicalize(place).map_err(|error| self.io_error(error))?;
        let FileBytes { bytes, metadata } =
            read_bytes(&real).map_err(|error| ApplyError::from_read(error.into_read_error(&self.path)))?;
        if !atomic::is_writable(&real, &metadata) {
            return Err(self.forbidden("it is read-only"));
        }
        let decoded = encoding::decode(&bytes)
            .map_err(|not_text| ApplyError::Unreadable(not_text.into_read_error(&self.path)))?;
        let Merged { edits, rebased } = self.merge(&decoded.text)?;
        let new_text = apply_edits(&decoded.text, &edits);
        let format = decoded.format;
        let done = |edits| {
            let done = self.done(decoded.text.clone(), new_text.clone(), edits, rebased);
            let bytes = Some(bytes.as_slice().into());
            Attempt::Done(Box::new(AppliedFile { format: Some(format), bytes, ..done }))
        };
        if new_text == decoded.text {
            return Ok(done(Vec::new()));
        }
        let encode_error = |source| ApplyError::Encode { path: self.path.clone(), source };
        decoded.format.check_faithful(&decoded.text, &bytes).map_err(encode_error)?;
        let new_bytes = decoded.format.encode(&new_text).map_err(encode_error)?;
        let is_unchanged = || {
            std::fs::canonicalize(place).is_ok_and(|now| now == real)
                && read_bytes(&real).is_ok_and(|now| now.bytes == bytes)
        };
        match atomic::replace(&real, &new_bytes, &metadata, is_unchanged) {
            Ok(true) => Ok(done(edits)),
            Ok(false) => Ok(Attempt::Again { rebased }),
            Err(error) => Err(self.io_error(error)),
        }
    }

    fn create(&self, place: &AbsPath) -> Result<Attempt, ApplyError> {
        let new_text = self.file.new_text();
        let encode_error = |source| ApplyError::Encode { path: self.path.clone(), source };
        let bytes = TextFormat::UTF_8.encode(&new_text).map_err(encode_error)?;
        let real = real_path(place).map_err(|error| self.io_error(error))?;
        if let Some(folder) = real.parent() {
            std::fs::create_dir_all(folder).map_err(|error| self.io_error(error))?;
        }
        if !real_path(place).is_ok_and(|now| now == real) {
            return Ok(Attempt::Again { rebased: self.rebased });
        }
        match atomic::create(real.as_path(), &bytes) {
            Ok(()) => {
                let done = self.done(String::new(), new_text, self.file.edits.clone(), self.rebased);
                let format = Some(TextFormat::UTF_8);
                Ok(Attempt::Done(Box::new(AppliedFile { created: true, format, ..done })))
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(ApplyError::Exists { path: self.path.clone() })
            }
            Err(error) => Err(self.io_error(error)),
        }
    }

    fn forbidden(&self, reason: &str) -> ApplyError {
        ApplyError::Forbidden { path: self.path.clone(), reason: reason.to_owned() }
    }

    fn io_error(&self, source: io::Error) -> ApplyError {
        let path = self.path.clone();
        match source.kind() {
            io::ErrorKind::NotFound => ApplyError::Gone { path },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                ApplyError::Forbidden { path, reason: format!("{source} (its folder must be writable, too)") }
            }
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                ApplyError::Forbidden { path, reason: "a file stands where a folder is needed".to_owned() }
            }
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
            Self::Partial { source, .. } => source.may_come_late(),
            Self::Conflict { .. }
            | Self::Exists { .. }
            | Self::Gone { .. }
            | Self::Forbidden { .. }
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
            Self::Forbidden { .. } => ToolErrorKind::Forbidden,
            Self::Rejected { .. } | Self::Unconfirmed { .. } | Self::Io { .. } => ToolErrorKind::Failed,
            Self::Cancelled { .. } | Self::Abandoned { .. } => ToolErrorKind::Cancelled,
            Self::Partial { source, .. } => source.kind(),
        }
    }

    fn hint(&self) -> &'static str {
        match self {
            Self::Conflict { .. } | Self::Exists { .. } | Self::Moving { .. } => {
                "The user's text was kept. Read the file again and make the change on what is there now."
            }
            Self::Gone { .. } => {
                "Find out with Glob where it is now, or create it anew if it is still wanted."
            }
            Self::Unreadable(_) => "Look at what became of it before changing it.",
            Self::Encode { .. } => {
                "Use characters that the encoding has, or ask the user to convert the file to UTF-8."
            }
            Self::Forbidden { .. } => "Ask the user whether and how it may be changed.",
            Self::Rejected { .. } => "Read the file again; if the editor still refuses, ask the user.",
            Self::Unconfirmed { .. } | Self::Abandoned { .. } => {
                "Read the file again to see whether the change is in it before trying once more."
            }
            Self::Io { .. } => "Check the file system, then try again.",
            Self::Cancelled { .. } => "Nothing to do.",
            Self::Partial { source, .. } => source.hint(),
        }
    }
}

impl From<ApplyError> for ToolError {
    fn from(error: ApplyError) -> Self {
        Self::new(error.kind(), error.to_string(), error.hint())
    }
}

fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::workspace::testing::{Meanwhile, Rig};

    const BASE: &str = "one\ntwo\nthree\nfour\n";

    fn edit(file: &str, old: &str, new: &str) -> Value {
        json!({"file_path": file, "old_string": old, "new_string": new})
    }

    /// A rig with `a.txt` on disk, read by the session.
    async fn closed() -> Rig {
        let rig = Rig::new();
        rig.write("a.txt", BASE);
        rig.call("Read", json!({"file_path": "a.txt"})).await.unwrap();
        rig
    }

    /// The same file open in the editor.
    async fn open() -> Rig {
        let rig = closed().await;
        rig.open("a.txt", BASE);
        rig
    }

    /// Plans an edit of `two`, lets something happen, and applies it.
    async fn apply_after(rig: &Rig, happen: impl FnOnce(&Rig)) -> Result<Vec<AppliedFile>, ApplyError> {
        let change = rig.plan("Edit", edit("a.txt", "two", "TWO")).await;
        happen(rig);
        rig.workspace().apply(change, &rig.context.cancel).await
    }

    #[tokio::test]
    async fn an_open_document_changes_through_the_editor_and_not_on_disk() {
        let rig = open().await;
        let applied = apply_after(&rig, |_| {}).await.unwrap();
        assert_eq!(rig.shown("a.txt"), "one\nTWO\nthree\nfour\n");
        assert_eq!(rig.text("a.txt"), BASE);
        assert_eq!((applied[0].rebased, applied[0].format), (0, None));
    }

    #[tokio::test]
    async fn typing_elsewhere_is_kept_whenever_it_happens() {
        let rig = open().await;
        rig.meanwhile(Meanwhile::Typed("zero\none\ntwo\nthree\nfour\n".to_owned()));
        rig.meanwhile(Meanwhile::Typed("zero\none\ntwo\nthree\nfour!\n".to_owned()));
        let applied =
            apply_after(&rig, |rig| rig.type_text("a.txt", "one\ntwo\nthree\nfour.\n")).await.unwrap();
        assert_eq!(rig.shown("a.txt"), "zero\none\nTWO\nthree\nfour!\n");
        assert_eq!(applied[0].rebased, 3);
        assert_eq!(applied[0].old_text, "zero\none\ntwo\nthree\nfour!\n");
    }

    #[tokio::test]
    async fn typing_into_the_replaced_text_is_a_conflict_that_keeps_it() {
        let rig = open().await;
        let typed = "one\ntw+o\nthree\nfour\n";
        rig.meanwhile(Meanwhile::Typed(typed.to_owned()));
        let error = apply_after(&rig, |_| {}).await.unwrap_err();
        assert!(
            matches!(&error, ApplyError::Conflict { path, line: 2, theirs } if path == "a.txt" && theirs == "tw+o"),
            "{error:?}"
        );
        assert_eq!(rig.shown("a.txt"), typed);
    }

    #[tokio::test]
    async fn a_text_that_never_stands_still_is_given_up() {
        let rig = open().await;
        for number in 0..MAX_ATTEMPTS {
            rig.meanwhile(Meanwhile::Typed(format!("{BASE}{number}\n")));
        }
        let error = apply_after(&rig, |_| {}).await.unwrap_err();
        assert!(matches!(error, ApplyError::Moving { .. }), "{error:?}");
        assert_eq!(rig.shown("a.txt"), format!("{BASE}4\n"));
    }

    #[tokio::test]
    async fn a_document_closed_meanwhile_is_written_on_disk() {
        let rig = open().await;
        rig.meanwhile(Meanwhile::Closed);
        apply_after(&rig, |_| {}).await.unwrap();
        assert_eq!(rig.text("a.txt"), "one\nTWO\nthree\nfour\n");
    }

    #[tokio::test]
    async fn a_file_opened_meanwhile_is_changed_in_the_editor() {
        let rig = closed().await;
        apply_after(&rig, |rig| rig.open("a.txt", "unsaved\none\ntwo\nthree\nfour\n")).await.unwrap();
        assert_eq!(rig.shown("a.txt"), "unsaved\none\nTWO\nthree\nfour\n");
        assert_eq!(rig.text("a.txt"), BASE);
    }

    #[tokio::test]
    async fn an_untitled_document_closed_meanwhile_is_gone() {
        let rig = Rig::new();
        rig.open("untitled:U1", BASE);
        rig.call("Read", json!({"file_path": "untitled:U1"})).await.unwrap();
        rig.meanwhile(Meanwhile::Closed);
        let error = rig.call("Edit", edit("untitled:U1", "two", "TWO")).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Mismatch);
        assert!(error.message.contains("closed meanwhile"), "{error}");
    }

    #[tokio::test]
    async fn an_editor_that_refuses_or_stays_silent_is_an_error() {
        let rig = open().await;
        rig.meanwhile(Meanwhile::Refused);
        let error = apply_after(&rig, |_| {}).await.unwrap_err();
        assert!(matches!(error, ApplyError::Rejected { .. }), "{error:?}");
        rig.meanwhile(Meanwhile::Silent);
        let error = apply_after(&rig, |_| {}).await.unwrap_err();
        assert!(matches!(error, ApplyError::Unconfirmed { .. }), "{error:?}");
    }

    #[tokio::test]
    async fn cancelling_ends_the_wait_for_the_editor() {
        let rig = open().await;
        rig.meanwhile(Meanwhile::Hung);
        let change = rig.plan("Edit", edit("a.txt", "two", "TWO")).await;
        let apply = rig.workspace().apply(change.clone(), &rig.context.cancel);
        let (result, ()) = tokio::join!(apply, async { rig.context.cancel.cancel() });
        assert!(matches!(result.unwrap_err(), ApplyError::Abandoned { .. } | ApplyError::Cancelled { .. }));
        let error = rig.workspace().apply(change, &rig.context.cancel).await.unwrap_err();
        assert!(matches!(error, ApplyError::Cancelled { .. }), "{error:?}");
        assert_eq!(rig.shown("a.txt"), BASE);
    }

    #[tokio::test]
    async fn a_file_changed_elsewhere_on_disk_is_merged_and_then_counts_as_unseen() {
        let rig = closed().await;
        let applied = apply_after(&rig, |rig| rig.write("a.txt", "one\ntwo\nthree\n4\n")).await.unwrap();
        assert_eq!((rig.text("a.txt").as_str(), applied[0].rebased), ("one\nTWO\nthree\n4\n", 1));
        let file = rig.workspace().text(&rig.target("a.txt")).await.unwrap();
        assert_eq!(rig.workspace().freshness(&file), Freshness::Changed);
    }

    #[tokio::test]
    async fn what_became_of_a_file_outside_decides() {
        type Event = fn(&Rig);
        type Check = fn(&ApplyError) -> bool;
        let cases: [(Event, Check); 6] = [
            (|rig| rig.write("a.txt", "one\n2\nthree\nfour\n"), |e| matches!(e, ApplyError::Conflict { .. })),
            (
                |rig| std::fs::remove_file(rig.path("a.txt")).unwrap(),
                |e| matches!(e, ApplyError::Gone { .. }),
            ),
            (|rig| rig.write("a.txt", b"\x89PNG\r\n\x1a\n"), |e| matches!(e, ApplyError::Unreadable(_))),
            (
                |rig| {
                    std::fs::remove_file(rig.path("a.txt")).unwrap();
                    std::fs::create_dir(rig.path("a.txt")).unwrap();
                },
                |e| matches!(e, ApplyError::Unreadable(ReadError::Directory { .. })),
            ),
            (
                |rig| {
                    let mut permissions = std::fs::metadata(rig.path("a.txt")).unwrap().permissions();
                    permissions.set_readonly(true);
                    std::fs::set_permissions(rig.path("a.txt"), permissions).unwrap();
                },
                |e| matches!(e, ApplyError::Forbidden { .. }),
            ),
            (
                |rig| {
                    rig.write(
                        "a.txt",
                        [BASE.as_bytes(), "\u{e9}\u{e9}\u{e9}\u{e9}".as_bytes(), b"\xff"].concat(),
                    )
                },
                |e| matches!(e, ApplyError::Encode { .. }),
            ),
        ];
        for (number, (happen, is_expected)) in cases.into_iter().enumerate() {
            let error = apply_after(&closed().await, happen).await.unwrap_err();
            assert!(is_expected(&error), "case {number}: {error:?}");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_link_that_leaves_the_workspace_since_the_plan_is_refused() {
        let rig = closed().await;
        rig.write("../outside.txt", BASE);
        let error = apply_after(&rig, |rig| {
            std::fs::remove_file(rig.path("a.txt")).unwrap();
            std::os::unix::fs::symlink(rig.path("../outside.txt"), rig.path("a.txt")).unwrap();
        });
        let error = error.await.unwrap_err();
        assert!(matches!(error, ApplyError::Forbidden { .. }), "{error:?}");
        assert_eq!(rig.text("../outside.txt"), BASE);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_new_file_is_not_made_through_a_link_that_leaves_the_workspace() {
        let rig = Rig::new();
        let change = rig.plan("Write", json!({"file_path": "sub/new.txt", "content": "x"})).await;
        std::fs::create_dir(rig.path("../out")).unwrap();
        std::os::unix::fs::symlink(rig.path("../out"), rig.path("sub")).unwrap();
        let error = rig.workspace().apply(change, &rig.context.cancel).await.unwrap_err();
        assert!(matches!(error, ApplyError::Forbidden { .. }), "{error:?}");
        assert!(!rig.path("../out/new.txt").exists());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn links_and_permissions_stay_as_they_are() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let rig = Rig::new();
        rig.write("real.sh", BASE);
        std::fs::set_permissions(rig.path("real.sh"), std::fs::Permissions::from_mode(0o750)).unwrap();
        symlink("real.sh", rig.path("a.txt")).unwrap();
        rig.call("Read", json!({"file_path": "a.txt"})).await.unwrap();
        apply_after(&rig, |_| {}).await.unwrap();
        assert!(rig.path("a.txt").symlink_metadata().unwrap().is_symlink());
        assert_eq!(rig.text("real.sh"), "one\nTWO\nthree\nfour\n");
        assert_eq!(rig.path("real.sh").metadata().unwrap().permissions().mode() & 0o7777, 0o750);
        assert_eq!(std::fs::read_dir(rig.path("")).unwrap().count(), 2, "no temporary file is left");
    }

    #[tokio::test]
    async fn a_new_file_never_replaces_one_that_has_appeared() {
        let rig = Rig::new();
        let change = rig.plan("Write", json!({"file_path": "deep/er/new.txt", "content": "mine"})).await;
        rig.write("deep/er/new.txt", "theirs");
        let error = rig.workspace().apply(change, &rig.context.cancel).await.unwrap_err();
        assert!(matches!(error, ApplyError::Exists { .. }), "{error:?}");
        assert_eq!(rig.text("deep/er/new.txt"), "theirs");
    }

    #[tokio::test]
    async fn a_failure_in_the_middle_says_what_was_changed() {
        let rig = closed().await;
        let mut change = rig.plan("Edit", edit("a.txt", "two", "TWO")).await;
        let mut second = rig.plan("Write", json!({"file_path": "b.txt", "content": "b"})).await;
        change.files.append(&mut second.files);
        rig.write("b.txt", "theirs");
        let error = rig.workspace().apply(change, &rig.context.cancel).await.unwrap_err();
        assert!(error.to_string().ends_with("Already changed before that: a.txt"), "{error}");
        assert_eq!(ToolError::from(error).kind, ToolErrorKind::Conflict);
    }
}
