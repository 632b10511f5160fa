//! The agent's edits on their way into the user's text and the ledger, and the user's actions on them.
//!
//! Rule: a text changes first; the ledger follows the verified result, never the other way round. One change of
//! texts runs at a time; typing meanwhile waits in the feed and is applied around it.

pub mod apply_text;
mod checkpoint;
mod command;
pub(crate) mod committed;
pub(crate) mod difference;
mod feed;
mod follow;
pub(crate) mod guest;
#[cfg(test)]
mod histories;
mod hunk_lines;
mod hunk_reports;
mod intents;
pub(crate) mod look;
pub(crate) mod merge;
mod news;
mod proposal;
mod removal;
pub(crate) mod resolve;
pub mod review;
mod review_reports;
mod switch;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod whole;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ropey::Rope;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::core::editor::EditorMemo;
use crate::core::{Core, lock};
use crate::gate::Gatekeeper;
use crate::requests::UserRequests;
use feed::{CommandGuard, Feed, FeedHold};
use guest::GuestWatch;
use kode_base::blocking;
use kode_base::ids::{HunkId, PermissionId, ResolutionId};
use kode_base::paths::{ResolvedPaths, Target};
use kode_journal::{BlobId, Blobs};
use kode_process::shell::Shell;
use kode_record::event::Event;
use kode_record::record::Record;
use kode_record::resolution::ResolutionOutcome;
use kode_text::edit::change::apply_edits;
use kode_text::edit::diff::word_changes;
use kode_text::edit::ledger::review::{HunkKind, HunkState, ReviewAction};
use kode_text::edit::ledger::{ChangeOrigin, FileBefore, Ledger, LedgerEntry, NewHunk, split};
use kode_text::edit::rebase::{Rebase, contains, rebase};
use kode_text::edit::{AppliedFile, ChangeSet, FileChange, TextEdit};
use kode_text::file_text::{FileText, TextSource};
use kode_text::host::DocumentEvent;
use kode_text::shell_change::FileImage;
use kode_text::workspace::shadow::{Shadow, ShadowLimits};
use kode_text::workspace::{ApplyError, ReadError, WatchReport, Workspace};
use news::PendingNews;

pub(crate) use follow::follow;
pub(crate) use hunk_reports::HunkReports;
pub(crate) use look::follow_diagnostics;
pub(crate) use proposal::{AcceptedHunks, Proposal};
pub(crate) use review_reports::FileComparison;
use review_reports::ReviewReports;

/// The most attempts to compute a resolution for a text that keeps changing.
const MAX_ATTEMPTS: usize = 5;

/// The most steps of typing in one record.
const MAX_STEPS: usize = 64;

/// How long a file must stay the same before its content is the user's.
const SETTLE_TIME: Duration = Duration::from_millis(50);

/// A file that was written more recently may still be being written.
const FRESH_TIME: Duration = Duration::from_millis(500);

/// How long the end of a session waits for a running change.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// The most changes of unknown outcome that are waited for; the oldest of more are treated as the user's.
const MAX_LATE: usize = 16;

/// The edits of a session.
pub struct Edits {
    core: Arc<Core>,
    workspace: Arc<Workspace>,
    shell: Arc<Shell>,
    gate: Arc<Gatekeeper>,
    requests: Arc<UserRequests>,
    editor: Arc<EditorMemo>,
    book: Mutex<EditBook>,
    feed: Arc<Feed>,
    blobs: Blobs,
    shadow: Arc<Shadow>,
    /// Held while texts are changed, by the agent or for the user.
    writing: tokio::sync::Mutex<()>,
    /// The guests at work, and the texts before what they change.
    guests: GuestWatch,
    /// The number of the user's actions that run or wait to run.
    resolving: Arc<AtomicUsize>,
    /// The news of the user's actions for the next prompt. Taken last of all locks.
    news: Mutex<PendingNews>,
}

/// The components that edits are made with.
pub(crate) struct EditsParts<'a> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) workspace: &'a Arc<Workspace>,
    pub(crate) shell: &'a Arc<Shell>,
    pub(crate) gate: &'a Arc<Gatekeeper>,
    pub(crate) requests: &'a Arc<UserRequests>,
    pub(crate) editor: &'a Arc<EditorMemo>,
}

/// The ledger, and the entries that are not in the journal yet.
#[derive(Debug, Default)]
pub(crate) struct EditBook {
    pub(crate) ledger: Ledger,
    /// The versions of the followed documents that are open.
    versions: BTreeMap<Target, i32>,
    /// The newest typing, which is written together.
    typing: Option<(Target, Vec<Vec<TextEdit>>)>,
    /// Changes of unknown outcome: the editor may yet show them.
    late: Vec<LateChange>,
    /// Whether the session has ended: nothing is entered any more.
    is_closed: bool,
    /// Decided proposals, while others of the same prompt still wait.
    decided: BTreeMap<HunkId, bool>,
    /// The user's remarks on proposals of prompts that still wait.
    remarks: BTreeMap<PermissionId, Vec<String>>,
    /// The diagnostics of proposals.
    reports: HunkReports,
    /// The diagnostics of hunks in the text.
    review_reports: ReviewReports,
}

impl Edits {
    /// The edits that a journal adds up to. The texts of the ledger are followed from now on.
    pub(crate) fn new(parts: &EditsParts<'_>, ledger: Ledger, blobs: Blobs) -> Arc<Self> {
        let feed = Arc::new(Feed::default());
        ledger.targets().for_each(|target| feed.follow(target));
        let roots = parts.workspace.roots().to_vec();
        // A worktree is merged into the workspace.
        let outer = parts.gate.isolation().map(|isolation| isolation.outer().roots().to_vec());
        Arc::new(Self {
            core: Arc::clone(parts.core),
            workspace: Arc::clone(parts.workspace),
            shell: Arc::clone(parts.shell),
            gate: Arc::clone(parts.gate),
            requests: Arc::clone(parts.requests),
            editor: Arc::clone(parts.editor),
            book: Mutex::new(EditBook { ledger, ..EditBook::default() }),
            feed,
            shadow: Arc::new(
                Shadow::new(roots, blobs.clone(), ShadowLimits::default())
                    .restoring_in(&outer.unwrap_or_default()),
            ),
            blobs,
            writing: tokio::sync::Mutex::default(),
            guests: GuestWatch::default(),
            resolving: Arc::default(),
            news: Mutex::default(),
        })
    }

    /// Publishes the reports of the workspace, and reads the files that they name.
    pub(crate) fn watch_workspace(&self) {
        let (events, feed) = (Arc::clone(self.core.events()), Arc::clone(&self.feed));
        self.workspace.report_changes(move |report| {
            match &report {
                WatchReport::Changed { target, deleted: _ } => feed.mark_stale(target),
                WatchReport::NotWatching { .. } => {}
            }
            events.publish(report.into());
        });
    }

    /// Takes the events of the open documents from now on.
    pub(crate) fn observe_documents(&self) {
        self.workspace.observe_documents(&self.feed);
    }

    fn book(&self) -> MutexGuard<'_, EditBook> {
        lock(&self.book)
    }

    // -- the agent's changes ------------------------------------------------------------------------------------

    /// Applies a change of the agent's and enters what became of it, also when only a part of it could be applied. Its
    /// hunks get these names, in their order, as far as there are any: those they were proposed under.
    ///
    /// # Errors
    /// As [`kode_text::workspace::Workspace::apply`].
    pub(crate) async fn apply_change(
        &self,
        set: ChangeSet,
        change: &ChangeOrigin,
        names: &[HunkId],
        cancel: &CancellationToken,
    ) -> Result<Vec<AppliedFile>, ApplyError> {
        let resolved = ResolvedPaths::default();
        self.apply_change_in((&self.workspace, &resolved), set, change, names, cancel).await
    }

    /// As [`Self::apply_change`], for a conversation that sees the files so, and a call whose files were where `judged` says.
    pub(crate) async fn apply_change_in(
        &self,
        (workspace, judged): (&Workspace, &ResolvedPaths),
        set: ChangeSet,
        change: &ChangeOrigin,
        names: &[HunkId],
        cancel: &CancellationToken,
    ) -> Result<Vec<AppliedFile>, ApplyError> {
        let _one_at_a_time = self.writing.lock().await;
        let mut holds = Vec::with_capacity(set.files.len());
        for file in &set.files {
            holds.push(self.hold(&file.target).await);
        }
        let (files, removals, label) = (set.files.clone(), set.removals.clone(), set.label.clone());
        self.announce(&set, change);
        let (result, removed) = match workspace.apply_judged(set, judged, cancel).await {
            Ok(applied) => match self.remove_files(workspace, &removals, change).await {
                Ok(removed) => (Ok(applied), removed),
                Err(error) => (Err(workspace.take_back(applied, (&label, judged), error).await), Vec::new()),
            },
            Err(error) => (Err(error), Vec::new()),
        };
        let applied = match &result {
            Ok(applied) | Err(ApplyError::Partial { applied, .. }) => applied.as_slice(),
            Err(_) => &[],
        };
        let mut names = names.to_vec();
        for file in applied {
            self.enter_change(file, change, &mut names).await;
        }
        self.enter_removed(workspace, removed, change);
        if let Err(error) = &result
            && error.may_come_late()
        {
            self.expect_late(&files[applied.len()..], change).await;
        }
        drop(holds);
        drop(self.synced());
        result
    }

    /// Waits for a change that was sent to the editor and not shown in time: when it comes, it is the agent's.
    async fn expect_late(&self, files: &[FileChange], change: &ChangeOrigin) {
        let Some(file) = files.first() else { return };
        self.leave_unanswered(&file.target, change);
        let Some(TextSource::Document(document)) = file.base.as_ref().map(|base| &base.source) else {
            return;
        };
        let target = document.target();
        let old_text = file.old_text();
        let base = self.keep_bytes(old_text.as_bytes().into()).await;
        let mut book = self.book();
        self.begin_tracking(&mut book, &target, base, old_text);
        let (turn, before) = (change.turn.clone(), FileBefore::Document { text: base });
        self.enter(&mut book, LedgerEntry::Before { turn, target: target.clone(), before }, None);
        if book.late.len() >= MAX_LATE {
            book.late.remove(0);
        }
        let (base, edits) = (old_text.to_owned(), file.edits.clone());
        book.late.push(LateChange { target, base, edits, change: change.clone() });
    }

    /// Enters a change that comes later than anybody waited for it. Answers whether this was one.
    fn enter_late(&self, book: &mut EditBook, event: &DocumentEvent) -> bool {
        let DocumentEvent::Changed { before, after, .. } = event else { return false };
        let target = after.target();
        if !book.late.iter().any(|late| late.target == target) {
            return false;
        }
        let (then, now) = (before.text.to_string(), after.text.to_string());
        let came = |late: &LateChange| {
            late.target == target
                && !contains(&late.base, &late.edits, &then)
                && contains(&late.base, &late.edits, &now)
        };
        let Some(at) = book.late.iter().position(came) else { return false };
        let LateChange { base, edits, change, .. } = book.late.remove(at);
        let Rebase::Clean(edits) = rebase(&base, &edits, &then) else { return false };
        self.reconcile(book, &target, &before.text);
        let hunks = split(&then, &edits).into_iter().map(|edits| NewHunk { id: HunkId::generate(), edits });
        let hunks = hunks.collect();
        self.enter(book, LedgerEntry::Changed { target: target.clone(), change, hunks }, None);
        self.reconcile(book, &target, &after.text);
        true
    }

    /// Follows a text from now on, if it is not followed yet.
    pub(crate) fn begin_tracking(&self, book: &mut EditBook, target: &Target, base: BlobId, text: &str) {
        if !book.ledger.is_tracked(target) {
            self.feed.follow(target);
            self.enter(book, LedgerEntry::Tracked { target: target.clone(), base }, Some(text));
        }
    }

    /// The blob to begin to follow a text with. One that is followed already needs none.
    pub(crate) async fn base_of(&self, target: &Target, text: &str) -> BlobId {
        if self.book().ledger.is_tracked(target) {
            return BlobId::of(text.as_bytes());
        }
        self.keep_bytes(text.as_bytes().into()).await
    }

    /// Enters a change that has been made.
    async fn enter_change(&self, applied: &AppliedFile, change: &ChangeOrigin, names: &mut Vec<HunkId>) {
        if applied.edits.is_empty() && !applied.created {
            return;
        }
        let target = applied.shown.as_ref().map_or_else(|| applied.target.clone(), |shown| shown.target());
        self.keep_before(&target, applied, change).await;
        let base = self.base_of(&target, &applied.old_text).await;
        let mut book = self.book();
        self.begin_tracking(&mut book, &target, base, &applied.old_text);
        self.settle(&mut book, &target, applied, |ledger| {
            let now = ledger.text(&target).map(Rope::to_string).unwrap_or_default();
            let Some(edits) = edits_on(&now, applied) else {
                tracing::warn!(%target, "a change cannot be told from what the user did at its place, and counts as theirs");
                return None;
            };
            let hunks = split(&now, &edits).into_iter();
            // A name applies only to the hunk that was proposed under it in this text.
            let is_its = |name: &HunkId| {
                ledger.target_of(name) == Some(&target) && ledger.state(name) == Some(HunkState::Proposed)
            };
            let hunks = hunks.map(|edits| {
                let at = names.iter().position(is_its);
                NewHunk { id: at.map_or_else(HunkId::generate, |at| names.remove(at)), edits }
            });
            let hunks = hunks.collect();
            let kind = if applied.created { HunkKind::Created } else { change.kind };
            let change = ChangeOrigin { kind, ..change.clone() };
            Some(LedgerEntry::Changed { target: target.clone(), change, hunks })
        });
    }

    /// Stores the file before its first change in a turn.
    async fn keep_before(&self, target: &Target, applied: &AppliedFile, change: &ChangeOrigin) {
        let is_known = |book: &EditBook| {
            book.ledger.before(&change.turn).is_some_and(|files| files.contains_key(target))
        };
        if is_known(&self.book()) {
            return;
        }
        let before = match (&applied.bytes, applied.created) {
            (_, true) => FileBefore::Absent,
            (Some(bytes), false) => {
                let blob = self.keep_bytes(Arc::clone(bytes)).await;
                // The mode bits have not changed. A link's target is identified by its bytes alone.
                let (shadow, path) = (Arc::clone(&self.shadow), target.file().cloned());
                let mode = blocking(move || path.and_then(|path| shadow.mode(&path))).await;
                mode.map_or(FileBefore::File { bytes: blob }, |mode| FileBefore::Image {
                    image: FileImage::Kept { blob, mode },
                })
            }
            (None, false) => {
                FileBefore::Document { text: self.keep_bytes(applied.old_text.as_bytes().into()).await }
            }
        };
        let (turn, target) = (change.turn.clone(), target.clone());
        self.enter(&mut self.book(), LedgerEntry::Before { turn, target, before }, None);
    }

    /// Marks a command as running while the guard lives: its changes are entered at its end, as its own.
    pub(crate) fn command_runs(&self) -> CommandGuard {
        self.feed.command_runs()
    }

    /// Follows the document for a target, or the file, and keeps its events waiting.
    async fn hold(&self, target: &Target) -> FeedHold {
        self.feed.hold(&self.followed_as(target).await)
    }

    /// The name under which a target is followed: that of the document that is open for it.
    pub(crate) async fn followed_as(&self, target: &Target) -> Target {
        let open = self.workspace.open_document(target).await;
        open.map_or_else(|| target.clone(), |document| document.target())
    }

    /// Keeps bytes for the journal to name. Those that the disk refuses wait with the journal's records.
    pub(crate) async fn keep_bytes(&self, bytes: Arc<[u8]>) -> BlobId {
        let blobs = self.blobs.clone();
        let (kept, id) = blocking(move || (blobs.put(&bytes), BlobId::of(&bytes))).await;
        if let Err(error) = kept {
            self.core.journal().note_failure_of("copies of changed files", &error);
        }
        id
    }

    /// Brings the ledger to where a target is after a change that has been applied: what the user did before it, the
    /// change itself, what the user did since.
    fn settle(
        &self,
        book: &mut EditBook,
        target: &Target,
        applied: &AppliedFile,
        entry: impl FnOnce(&Ledger) -> Option<LedgerEntry>,
    ) {
        let mut events = self.feed.take(target);
        let is_it = |event: &DocumentEvent| match (event, &applied.shown) {
            (DocumentEvent::Changed { after, .. }, Some(shown)) => after.version == shown.version,
            _ => false,
        };
        let (before, after) = match events.iter().position(is_it) {
            Some(at) => {
                let later = events.split_off(at + 1);
                let its_own = events.split_off(begin_of_change(&events, applied));
                events.into_iter().for_each(|event| self.take_in(book, event));
                events = later;
                match (its_own.first(), its_own.last()) {
                    (
                        Some(DocumentEvent::Changed { before, .. }),
                        Some(DocumentEvent::Changed { after, .. }),
                    ) => {
                        book.versions.insert(target.clone(), after.version);
                        (before.text.clone(), after.text.clone())
                    }
                    _ => return,
                }
            }
            None => (Rope::from_str(&applied.old_text), Rope::from_str(&applied.new_text)),
        };
        self.reconcile(book, target, &before);
        if let Some(entry) = entry(&book.ledger) {
            self.enter(book, entry, None);
        }
        self.reconcile(book, target, &after);
        events.into_iter().for_each(|event| self.take_in(book, event));
    }

    // -- the changes of the user and of others ------------------------------------------------------------------

    /// Applies the events of the followed documents and returns the ledger.
    pub(crate) fn synced(&self) -> MutexGuard<'_, EditBook> {
        let mut book = self.book();
        if book.is_closed {
            return book;
        }
        for event in self.feed.take_all() {
            self.take_in(&mut book, event);
        }
        book
    }

    /// Takes in how the texts have changed while no process followed them.
    pub(crate) async fn catch_up_with_texts(&self) {
        let _one_at_a_time = self.writing.lock().await;
        let targets: Vec<Target> = self.book().ledger.targets().cloned().collect();
        for target in targets {
            self.catch_up_with(&target).await;
        }
    }

    /// Reads the targets that were marked as stale.
    pub(crate) async fn read_stale(&self) {
        for target in self.feed.take_stale() {
            self.catch_up_with(&target).await;
        }
    }

    /// Compares a text that changed without an event, such as that of a closed file.
    pub(crate) async fn catch_up_with(&self, target: &Target) {
        for _ in 0..MAX_ATTEMPTS {
            let Some(known) = self.book().ledger.text(target).cloned() else { return };
            let (now, version) = match self.settled_text(target).await {
                Ok(file) => (Rope::from_str(&file.text), file.version()),
                // The last text applies again, should the file come back.
                Err(ReadError::NotFound { .. } | ReadError::NotOpen { .. }) => return,
                Err(error) => {
                    tracing::warn!(%error, "the later content of a file is not known");
                    return;
                }
            };
            let mut book = self.book();
            if self.core.is_closing() {
                return;
            }
            if !self.feed.is_at_rest(target) {
                // The read text may be the agent's, which is entered first.
                break;
            }
            // An event is newer than this read.
            let events = self.feed.take(target);
            if !events.is_empty() {
                events.into_iter().for_each(|event| self.take_in(&mut book, event));
                return;
            }
            // Entries since are newer as well.
            if book.ledger.text(target).is_some_and(|text| text.is_instance(&known)) {
                self.reconcile_read(&mut book, target, &now, version);
                if known != now {
                    self.core.publish(Event::EditsChanged { targets: vec![target.clone()] });
                }
                return;
            }
        }
        self.feed.mark_stale(target);
    }

    /// The text of a target. Of a file that is not as it is known, only when it stays the same for a moment: a program that
    /// writes it may be in the middle of that, and what it takes out and puts back is not the user's doing.
    async fn settled_text(&self, target: &Target) -> Result<FileText, ReadError> {
        let mut file = self.workspace.text(target).await?;
        for _ in 0..MAX_ATTEMPTS {
            let is_known = self.book().ledger.text(target).is_some_and(|text| *text == *file.text);
            if is_known || file.version().is_some() || !is_fresh(target).await {
                break;
            }
            sleep(SETTLE_TIME).await;
            let again = self.workspace.text(target).await?;
            let is_settled = again.hash == file.hash;
            file = again;
            if is_settled {
                break;
            }
        }
        Ok(file)
    }

    pub(crate) fn take_in(&self, book: &mut EditBook, event: DocumentEvent) {
        let target = event.document().target();
        if !book.ledger.is_tracked(&target) {
            return;
        }
        if self.enter_reload(book, &target, &event) {
            return;
        }
        let version = event.document().version;
        if !book.late.is_empty() && self.enter_late(book, &event) {
            book.versions.insert(target, version);
            return;
        }
        match event {
            DocumentEvent::Changed { before, after, edits: Some(edits) }
                if book.ledger.text(&target).is_some_and(|text| {
                    let same_version = book.versions.get(&target) == Some(&before.version);
                    text.is_instance(&before.text)
                        || (same_version && text.len_bytes() == before.text.len_bytes())
                }) =>
            {
                let is_before = book.ledger.text(&target).is_some_and(|text| text.is_instance(&before.text));
                let moved = self.enter_typing(book, &target, &edits);
                let is_as_long =
                    book.ledger.text(&target).is_some_and(|text| text.len_bytes() == after.text.len_bytes());
                match is_as_long {
                    // The same edits of the same text.
                    true if is_before && !moved => book.ledger.adopt_same(&target, &after.text),
                    true => book.ledger.adopt(&target, &after.text),
                    false => self.reconcile(book, &target, &after.text),
                }
            }
            DocumentEvent::Opened(now) | DocumentEvent::Changed { after: now, .. } => {
                self.reconcile(book, &target, &now.text);
            }
            DocumentEvent::Saved { document, by_user } => {
                self.reconcile(book, &target, &document.text);
                if by_user {
                    self.keep_applied(book, &target);
                }
            }
            DocumentEvent::Closed(document) => {
                self.reconcile(book, &target, &document.text);
                book.versions.remove(&target);
                // From now on the text of its file applies; no event has reported a save.
                self.feed.mark_stale(&target);
                return;
            }
        }
        book.versions.insert(target, version);
    }

    /// Compares a text that was just read, unless the feed has a newer one.
    pub(crate) fn reconcile_read(
        &self,
        book: &mut EditBook,
        target: &Target,
        now: &Rope,
        version: Option<i32>,
    ) {
        match (book.versions.get(target), version) {
            (Some(known), Some(read)) if *known > read => {}
            // The document was opened after its file was read.
            (Some(_), None) => {}
            (_, version) => {
                self.reconcile(book, target, now);
                book.versions.extend(version.map(|version| (target.clone(), version)));
            }
        }
    }

    /// Takes in whatever else has changed a text.
    pub(crate) fn reconcile(&self, book: &mut EditBook, target: &Target, now: &Rope) {
        let Some(known) = book.ledger.text(target) else { return };
        if !known.is_instance(now) && known != now {
            let edits = word_changes(&known.to_string(), &now.to_string());
            self.enter_typing(book, target, &edits);
        }
        book.ledger.adopt(target, now);
    }

    /// Enters the user's edits of a text; true when they moved hunks.
    fn enter_typing(&self, book: &mut EditBook, target: &Target, edits: &[TextEdit]) -> bool {
        let (typed, moves) = book.ledger.distinguish(target, edits);
        if !typed.is_empty() {
            self.enter(book, LedgerEntry::Typed { target: target.clone(), steps: vec![typed] }, None);
        }
        let moved = !moves.is_empty();
        if moved {
            let entry = LedgerEntry::Moved { target: target.clone(), resolution: None, reverts: None, moves };
            self.enter(book, entry, None);
        }
        moved
    }

    /// Keeps the applied hunks of a target that was saved or committed: they need no review any more.
    pub(crate) fn keep_applied(&self, book: &mut EditBook, target: &Target) {
        let moves = book.ledger.applied(target).into_iter().map(|hunk| (hunk, HunkState::Kept)).collect();
        self.keep(book, vec![(target.clone(), moves)]);
    }

    /// Enters that hunks are kept, by one act, and publishes it.
    pub(crate) fn keep(&self, book: &mut EditBook, mut wanted: Vec<(Target, Vec<(HunkId, HunkState)>)>) {
        wanted.retain(|(_, moves)| !moves.is_empty());
        if wanted.is_empty() {
            return;
        }
        let id = ResolutionId::generate();
        let resolved = wanted.iter().flat_map(|(_, moves)| moves).map(|(hunk, _)| hunk.clone()).collect();
        for (target, moves) in wanted {
            let entry = LedgerEntry::Moved { target, resolution: Some(id.clone()), reverts: None, moves };
            self.enter(book, entry, None);
        }
        let action = Some(ReviewAction::Keep);
        let outcome = ResolutionOutcome { id, action, resolved, conflicts: vec![], failed: vec![] };
        self.core.publish(Event::EditsResolved { outcome: Box::new(outcome) });
    }

    // -- entries ------------------------------------------------------------------------------------------------

    /// Writes an entry to the journal and folds it into the ledger. `text` is that of the blob it names.
    pub(crate) fn enter(&self, book: &mut EditBook, entry: LedgerEntry, text: Option<&str>) {
        if book.is_closed {
            return;
        }
        if let LedgerEntry::Typed { target, steps } = &entry {
            if !book.grow_typing(target, steps) {
                self.write_typing(book);
                book.typing = Some((target.clone(), steps.clone()));
            }
        } else {
            self.write_typing(book);
            self.core.commit(Record::Edits { entry: entry.clone() });
        }
        let outdated = book.reports.drop_outdated(&entry, &book.ledger);
        if !outdated.is_empty() {
            self.core.publish(Event::EditsChanged { targets: outdated });
        }
        let is_of_text = look::is_of_text(&entry, &book.ledger);
        if let LedgerEntry::Typed { target, .. } = &entry {
            book.review_reports.forget_earlier(target);
        }
        let load = |_: &BlobId| text.map(str::to_owned).ok_or_else(|| std::io::Error::other("no text given"));
        if let Err(error) = book.ledger.apply(entry, load) {
            tracing::error!(%error, "the ledger lost a file");
        }
        if is_of_text && !book.review_reports.is_empty() {
            let EditBook { review_reports, ledger, .. } = book;
            review_reports.drop_decided(ledger);
            self.feed.note_diagnostics(!review_reports.is_empty());
            self.feed.outdate_diagnostics();
        }
    }

    /// Writes the pending entries to the journal before the session ends.
    pub(crate) fn flush(&self) {
        let mut book = self.synced();
        self.write_typing(&mut book);
    }

    /// Ends the ledger of a session that ends: running changes are awaited, and later ones are not entered.
    pub(crate) async fn close(&self) {
        let _no_change_is_under_way = timeout(CLOSE_LIMIT, self.writing.lock()).await;
        self.flush();
        self.book().is_closed = true;
        self.feed.stop();
    }

    /// Writes the newest typing to the journal.
    pub(crate) fn write_typing(&self, book: &mut EditBook) {
        if let Some((target, steps)) = book.typing.take() {
            self.core.commit(Record::Edits { entry: LedgerEntry::Typed { target, steps } });
        }
    }
}

/// A change of the agent's that the editor has not shown.
#[derive(Clone, Debug)]
struct LateChange {
    target: Target,
    base: String,
    edits: Vec<TextEdit>,
    change: ChangeOrigin,
}

impl EditBook {
    /// Adds to the newest typing when it is of the same text and not too much.
    fn grow_typing(&mut self, target: &Target, more: &[Vec<TextEdit>]) -> bool {
        match &mut self.typing {
            Some((known, steps)) if known == target && steps.len() < MAX_STEPS => {
                steps.extend_from_slice(more);
                true
            }
            _ => false,
        }
    }
}

/// Whether a file was written a moment ago, so that its writer may not be done.
async fn is_fresh(target: &Target) -> bool {
    let Some(path) = target.file().cloned() else { return false };
    let modified = blocking(move || std::fs::metadata(&path).and_then(|metadata| metadata.modified())).await;
    // A date in the future says nothing, and then it is better to look twice.
    modified.is_ok_and(|modified| {
        modified.elapsed().is_ok_and(|since| since < FRESH_TIME) || modified.elapsed().is_err()
    })
}

/// Where the change that the last of these events shows begins among them. Some editors tell an edit of two places in two
/// notifications: the first is no less the agent's than the last.
fn begin_of_change(events: &[DocumentEvent], applied: &AppliedFile) -> usize {
    let last = events.len().saturating_sub(1);
    let Some(DocumentEvent::Changed { before, after, .. }) = events.last() else { return last };
    let is_whole = || match rebase(&applied.old_text, &applied.edits, &before.text.to_string()) {
        // The changes of an earlier notification are not among them.
        Rebase::Clean(edits) if edits.len() == applied.edits.len() => {
            after.text == apply_edits(&before.text.to_string(), &edits).as_str()
        }
        Rebase::Clean(_) | Rebase::AlreadyApplied | Rebase::Conflict { .. } => false,
    };
    if last == 0 || applied.edits.len() < 2 || is_whole() {
        return last;
    }
    let is_piece = |event: &&DocumentEvent| matches!(event, DocumentEvent::Changed { .. });
    let pieces = events.iter().rev().take_while(is_piece).count();
    let is_base = |event: &DocumentEvent| match event {
        DocumentEvent::Changed { before, .. } => before.text == applied.old_text.as_str(),
        DocumentEvent::Opened(_) | DocumentEvent::Saved { .. } | DocumentEvent::Closed(_) => false,
    };
    let from = events.len() - pieces;
    events[from..].iter().rposition(is_base).map_or(last, |at| from + at)
}

/// The edits of an applied change on a text that may be further than the one they count in; `None` when they cannot be
/// told from what the user did.
fn edits_on(now: &str, applied: &AppliedFile) -> Option<Vec<TextEdit>> {
    if now == applied.old_text {
        return Some(applied.edits.clone());
    }
    match rebase(&applied.old_text, &applied.edits, now) {
        Rebase::Clean(edits) => Some(edits),
        Rebase::AlreadyApplied | Rebase::Conflict { .. } => None,
    }
}
