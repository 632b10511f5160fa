//! The agent's changes on their way into the user's text and the ledger, and the user's acts on them.
//!
//! Rule: a text changes first and the ledger follows what was shown to have happened, never the other way round. One
//! change of texts goes on at a time; what the user types meanwhile waits in the feed and is taken in around it.

pub mod ahead;
#[cfg(test)]
mod histories;
pub(super) mod switch;
#[cfg(test)]
pub(super) mod tests;
#[cfg(test)]
mod whole;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ropey::Rope;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::session::Session;
use crate::session::feed::{CommandRuns, Feed, Hold};
use crate::session::news::Waiting;
use kode_base::blocking;
use kode_base::ids::{HunkId, PermissionId, ResolutionId};
use kode_base::paths::{AbsPath, Target};
use kode_journal::{BlobId, Blobs};
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
use kode_text::workspace::{ApplyError, ReadError, Workspace};

/// How often a resolution is computed anew for a text that keeps moving.
const MAX_ATTEMPTS: usize = 5;

/// Steps of typing that are written to the journal as one record.
const MAX_STEPS: usize = 64;

/// How long a file must stay the same to be taken for what somebody made of it.
const SETTLE_TIME: Duration = Duration::from_millis(50);

/// A file that was written so shortly ago may still be being written.
const FRESH_TIME: Duration = Duration::from_millis(500);

/// How long the end of a session waits for a change that is under way.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// Changes whose end is not known that are waited for; more of them are taken for the user's when they come.
const MAX_LATE: usize = 16;

/// What a session knows of its changes.
pub(crate) struct Changes {
    book: Mutex<Book>,
    pub(super) feed: Arc<Feed>,
    pub(super) blobs: Blobs,
    pub(super) shadow: Arc<Shadow>,
    /// Held while texts are changed, by the agent or for the user.
    pub(super) writing: tokio::sync::Mutex<()>,
    /// How many steps of the user's are being carried out, or wait to be.
    pub(super) resolving: Arc<AtomicUsize>,
    /// What the next prompt tells of the user's acts. Taken last of all locks.
    pub(super) news: Mutex<Waiting>,
}

/// The ledger, and what of it is not in the journal yet.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(super) ledger: Ledger,
    /// The versions of the followed documents that are open.
    pub(super) versions: BTreeMap<Target, i32>,
    /// The newest typing, which is written together.
    typing: Option<(Target, Vec<Vec<TextEdit>>)>,
    /// Changes that nobody knows the end of: they may yet come.
    late: Vec<Late>,
    /// Whether the session has ended: nothing is entered any more.
    pub(super) is_closed: bool,
    /// Proposals that the user has decided about while others of the same prompt still wait.
    pub(super) decided: BTreeMap<HunkId, bool>,
    /// What the user has said about proposals of prompts that still wait.
    pub(super) said: BTreeMap<PermissionId, Vec<String>>,
}

impl Changes {
    pub(crate) fn new(ledger: Ledger, blobs: Blobs, roots: Vec<AbsPath>) -> Self {
        let feed = Arc::new(Feed::default());
        ledger.targets().for_each(|target| feed.follow(target));
        let book = Book { ledger, ..Book::default() };
        let shadow = Arc::new(Shadow::new(roots, blobs.clone(), ShadowLimits::default()));
        let (writing, news) = (tokio::sync::Mutex::default(), Mutex::default());
        let resolving = Arc::default();
        Self { book: Mutex::new(book), feed, blobs, shadow, writing, resolving, news }
    }

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
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
        self.apply_change_in(&self.workspace, set, change, names, cancel).await
    }

    /// As [`Session::apply_change`], for a conversation that sees the files so.
    pub(crate) async fn apply_change_in(
        &self,
        workspace: &Workspace,
        set: ChangeSet,
        change: &ChangeOrigin,
        names: &[HunkId],
        cancel: &CancellationToken,
    ) -> Result<Vec<AppliedFile>, ApplyError> {
        let _one_at_a_time = self.changes.writing.lock().await;
        let mut holds = Vec::with_capacity(set.files.len());
        for file in &set.files {
            holds.push(self.hold(&file.target).await);
        }
        let files = set.files.clone();
        self.announce(&set, change);
        let result = workspace.apply(set, cancel).await;
        let applied = match &result {
            Ok(applied) | Err(ApplyError::Partial { applied, .. }) => applied.as_slice(),
            Err(_) => &[],
        };
        let mut names = names.to_vec();
        for file in applied {
            self.enter_change(file, change, &mut names).await;
        }
        if let Err(error) = &result
            && error.may_come_late()
        {
            self.expect_late(&files[applied.len()..], change).await;
        }
        drop(holds);
        drop(self.sync_changes());
        result
    }

    /// Waits for a change that was sent to the editor and not shown in time: when it comes, it is the agent's.
    async fn expect_late(&self, files: &[FileChange], change: &ChangeOrigin) {
        let Some(file) = files.first() else { return };
        let Some(TextSource::Document(document)) = file.base.as_ref().map(|base| &base.source) else {
            return;
        };
        let target = document.target();
        let old_text = file.old_text();
        let base = self.keep_bytes(old_text.as_bytes().into()).await;
        let mut book = self.changes.book();
        self.begin_tracking(&mut book, &target, base, old_text);
        let (turn, before) = (change.turn.clone(), FileBefore::Document { text: base });
        self.enter(&mut book, LedgerEntry::Before { turn, target: target.clone(), before }, None);
        if book.late.len() >= MAX_LATE {
            book.late.remove(0);
        }
        let (base, edits) = (old_text.to_owned(), file.edits.clone());
        book.late.push(Late { target, base, edits, change: change.clone() });
    }

    /// Enters a change that comes later than anybody waited for it. Answers whether this was one.
    fn enter_late(&self, book: &mut Book, event: &DocumentEvent) -> bool {
        let DocumentEvent::Changed { before, after, .. } = event else { return false };
        let target = after.target();
        if !book.late.iter().any(|late| late.target == target) {
            return false;
        }
        let (then, now) = (before.text.to_string(), after.text.to_string());
        let came = |late: &Late| {
            late.target == target
                && !contains(&late.base, &late.edits, &then)
                && contains(&late.base, &late.edits, &now)
        };
        let Some(at) = book.late.iter().position(came) else { return false };
        let Late { base, edits, change, .. } = book.late.remove(at);
        let Rebase::Clean(edits) = rebase(&base, &edits, &then) else { return false };
        self.reconcile(book, &target, &before.text);
        let hunks = split(&then, &edits).into_iter().map(|edits| NewHunk { id: HunkId::generate(), edits });
        let hunks = hunks.collect();
        self.enter(book, LedgerEntry::Changed { target: target.clone(), change, hunks }, None);
        self.reconcile(book, &target, &after.text);
        true
    }

    /// Follows a text from now on, if it is not followed yet.
    pub(super) fn begin_tracking(&self, book: &mut Book, target: &Target, base: BlobId, text: &str) {
        if !book.ledger.is_tracked(target) {
            self.changes.feed.follow(target);
            self.enter(book, LedgerEntry::Tracked { target: target.clone(), base }, Some(text));
        }
    }

    /// The blob to begin to follow a text with. One that is followed already needs none.
    pub(super) async fn base_of(&self, target: &Target, text: &str) -> BlobId {
        if self.changes.book().ledger.is_tracked(target) {
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
        let mut book = self.changes.book();
        self.begin_tracking(&mut book, &target, base, &applied.old_text);
        self.settle(&mut book, &target, applied, |ledger| {
            let now = ledger.text(&target).map(Rope::to_string).unwrap_or_default();
            let Some(edits) = edits_on(&now, applied) else {
                tracing::warn!(%target, "a change cannot be told from what the user did at its place, and counts as theirs");
                return None;
            };
            let hunks = split(&now, &edits).into_iter();
            // A name counts only for what was proposed under it in this very text.
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

    /// Keeps what a file was before its first change of a turn.
    async fn keep_before(&self, target: &Target, applied: &AppliedFile, change: &ChangeOrigin) {
        let is_known =
            |book: &Book| book.ledger.before(&change.turn).is_some_and(|files| files.contains_key(target));
        if is_known(&self.changes.book()) {
            return;
        }
        let before = match (&applied.bytes, applied.created) {
            (_, true) => FileBefore::Absent,
            (Some(bytes), false) => {
                let blob = self.keep_bytes(Arc::clone(bytes)).await;
                // The mode bits have stayed. What is behind a link is told by its bytes alone.
                let (shadow, path) = (Arc::clone(&self.changes.shadow), target.file().cloned());
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
        self.enter(&mut self.changes.book(), LedgerEntry::Before { turn, target, before }, None);
    }

    /// Says that a command runs as long as the answer lives: what it changes is entered at its end, as its own.
    pub(crate) fn command_runs(&self) -> CommandRuns {
        self.changes.feed.command_runs()
    }

    /// Follows the document for a target, or the file, and keeps its events waiting.
    async fn hold(&self, target: &Target) -> Hold {
        self.changes.feed.hold(&self.followed_as(target).await)
    }

    /// The name under which a target is followed: that of the document that is open for it.
    pub(super) async fn followed_as(&self, target: &Target) -> Target {
        let open = self.workspace.open_document(target).await;
        open.map_or_else(|| target.clone(), |document| document.target())
    }

    /// Keeps bytes for the journal to name. Those that the disk refuses wait with the journal's records.
    pub(super) async fn keep_bytes(&self, bytes: Arc<[u8]>) -> BlobId {
        let blobs = self.changes.blobs.clone();
        let (kept, id) = blocking(move || (blobs.put(&bytes), BlobId::of(&bytes))).await;
        if let Err(error) = kept {
            self.journal.note_failure_of("copies of changed files", &error);
        }
        id
    }

    /// Brings the ledger to where a target is after a change that has been applied: what the user did before it, the
    /// change itself, what the user did since.
    fn settle(
        &self,
        book: &mut Book,
        target: &Target,
        applied: &AppliedFile,
        entry: impl FnOnce(&Ledger) -> Option<LedgerEntry>,
    ) {
        let mut events = self.changes.feed.take(target);
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

    // -- what the user and others do ----------------------------------------------------------------------------

    /// Takes in what happened to the followed documents and answers the ledger as it is then.
    pub(crate) fn sync_changes(&self) -> MutexGuard<'_, Book> {
        let mut book = self.changes.book();
        if book.is_closed {
            return book;
        }
        for event in self.changes.feed.take_all() {
            self.take_in(&mut book, event);
        }
        book
    }

    /// Takes in how the texts have changed while no process followed them.
    pub(crate) async fn catch_up_with_texts(&self) {
        let _one_at_a_time = self.changes.writing.lock().await;
        let targets: Vec<Target> = self.changes.book().ledger.targets().cloned().collect();
        for target in targets {
            self.catch_up_with(&target).await;
        }
    }

    /// Looks at the targets of which it was said that something happened to them.
    pub(super) async fn look_at_stale(&self) {
        for target in self.changes.feed.take_stale() {
            self.catch_up_with(&target).await;
        }
    }

    /// Takes in what a text has become without a word of it, as that of a closed file does.
    pub(super) async fn catch_up_with(&self, target: &Target) {
        for _ in 0..MAX_ATTEMPTS {
            let Some(known) = self.changes.book().ledger.text(target).cloned() else { return };
            let (now, version) = match self.settled_text(target).await {
                Ok(file) => (Rope::from_str(&file.text), file.version()),
                // What it was counts on, should it come back.
                Err(ReadError::NotFound { .. } | ReadError::NotOpen { .. }) => return,
                Err(error) => {
                    tracing::warn!(%error, "what a file became meanwhile is not known");
                    return;
                }
            };
            let mut book = self.changes.book();
            if self.is_closing() {
                return;
            }
            if !self.changes.feed.is_at_rest(target) {
                // What was read may be the agent's, and is entered as such first.
                break;
            }
            // An event is newer than what was read here.
            let events = self.changes.feed.take(target);
            if !events.is_empty() {
                events.into_iter().for_each(|event| self.take_in(&mut book, event));
                return;
            }
            // And so is what was entered since.
            if book.ledger.text(target).is_some_and(|text| text.is_instance(&known)) {
                self.reconcile_read(&mut book, target, &now, version);
                if known != now {
                    self.publish(Event::EditsChanged { targets: vec![target.clone()] });
                }
                return;
            }
        }
        self.changes.feed.look_at(target);
    }

    /// The text of a target. Of a file that is not as it is known, only when it stays the same for a moment: a program that
    /// writes it may be in the middle of that, and what it takes out and puts back is not the user's doing.
    async fn settled_text(&self, target: &Target) -> Result<FileText, ReadError> {
        let mut file = self.workspace.text(target).await?;
        for _ in 0..MAX_ATTEMPTS {
            let is_known = self.changes.book().ledger.text(target).is_some_and(|text| *text == *file.text);
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

    pub(super) fn take_in(&self, book: &mut Book, event: DocumentEvent) {
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
                // From now on the text of its file counts, and nothing says that this was saved.
                self.changes.feed.look_at(&target);
                return;
            }
        }
        book.versions.insert(target, version);
    }

    /// Takes in a text that was read a moment ago, unless the feed has brought a newer one since.
    pub(super) fn reconcile_read(&self, book: &mut Book, target: &Target, now: &Rope, version: Option<i32>) {
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
    pub(super) fn reconcile(&self, book: &mut Book, target: &Target, now: &Rope) {
        let Some(known) = book.ledger.text(target) else { return };
        if !known.is_instance(now) && known != now {
            let edits = word_changes(&known.to_string(), &now.to_string());
            self.enter_typing(book, target, &edits);
        }
        book.ledger.adopt(target, now);
    }

    /// Enters what the user did to a text; true when that moved hunks.
    fn enter_typing(&self, book: &mut Book, target: &Target, edits: &[TextEdit]) -> bool {
        let (typed, moves) = book.ledger.tell_apart(target, edits);
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

    /// Nothing that was saved or committed waits to be looked at any more.
    pub(super) fn keep_applied(&self, book: &mut Book, target: &Target) {
        let applied = book.ledger.applied(target);
        if applied.is_empty() {
            return;
        }
        let id = ResolutionId::generate();
        let moves: Vec<_> = applied.into_iter().map(|hunk| (hunk, HunkState::Kept)).collect();
        let resolved = moves.iter().map(|(hunk, _)| hunk.clone()).collect();
        let entry =
            LedgerEntry::Moved { target: target.clone(), resolution: Some(id.clone()), reverts: None, moves };
        self.enter(book, entry, None);
        let action = Some(ReviewAction::Keep);
        let outcome = ResolutionOutcome { id, action, resolved, conflicts: vec![], failed: vec![] };
        self.publish(Event::EditsResolved { outcome });
    }

    // -- entries ------------------------------------------------------------------------------------------------

    /// Writes an entry to the journal and folds it into the ledger. `text` is that of the blob it names.
    pub(super) fn enter(&self, book: &mut Book, entry: LedgerEntry, text: Option<&str>) {
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
            self.commit(Record::Edits { entry: entry.clone() });
        }
        let load = |_: &BlobId| text.map(str::to_owned).ok_or_else(|| std::io::Error::other("no text given"));
        if let Err(error) = book.ledger.apply(entry, load) {
            tracing::error!(%error, "the ledger lost a file");
        }
    }

    /// Writes what is known of the changes to the journal before the session ends.
    pub(super) fn write_changes(&self) {
        let mut book = self.sync_changes();
        self.write_typing(&mut book);
    }

    /// Ends the ledger of a session that ends: what is under way is waited for, and from then on nothing is entered.
    pub(super) async fn close_changes(&self) {
        let _no_change_is_under_way = timeout(CLOSE_LIMIT, self.changes.writing.lock()).await;
        self.write_changes();
        self.changes.book().is_closed = true;
        self.changes.feed.stop();
    }

    /// Writes the newest typing to the journal.
    pub(super) fn write_typing(&self, book: &mut Book) {
        if let Some((target, steps)) = book.typing.take() {
            self.commit(Record::Edits { entry: LedgerEntry::Typed { target, steps } });
        }
    }
}

/// A change of the agent's that the editor has not shown.
#[derive(Clone, Debug)]
struct Late {
    target: Target,
    base: String,
    edits: Vec<TextEdit>,
    change: ChangeOrigin,
}

impl Book {
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

/// Whether a file was written a moment ago, so that whoever does may not be done.
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
        // What an earlier notification has told is not among them.
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
