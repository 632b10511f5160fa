//! The agent's changes on their way into the user's text and the ledger, and the user's acts on them.
//!
//! Rule: a text changes first and the ledger follows what was shown to have happened, never the other way round. One
//! change of texts goes on at a time; what the user types meanwhile waits in the feed and is taken in around it.

#[cfg(test)]
mod histories;
#[cfg(test)]
pub(super) mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ropey::Rope;
use tokio_util::sync::CancellationToken;

use crate::edit::diff::word_changes;
use crate::edit::ledger::{Before, Change, Entry, Ledger, NewHunk, Replacement, split};
use crate::edit::rebase::{Rebase, rebase};
use crate::edit::{AppliedFile, Author, ChangeSet, FileChange, TextEdit};
use crate::event::Event;
use crate::host::DocumentEvent;
use crate::ids::{HunkId, ResolutionId};
use crate::journal::{BlobId, Blobs, Record};
use crate::paths::{AbsPath, Target};
use crate::session::Session;
use crate::session::feed::{CommandRuns, Feed, Hold};
use crate::session::news::Waiting;
use crate::session::review::{HunkKind, HunkState, ResolutionOutcome, ReviewAction};
use crate::workspace::shadow::{Limits, Shadow};
use crate::workspace::{ApplyError, ReadError, blocking};

/// How often a resolution is computed anew for a text that keeps moving.
const MAX_ATTEMPTS: usize = 5;

/// What a session knows of its changes.
pub(crate) struct Changes {
    book: Mutex<Book>,
    pub(super) feed: Arc<Feed>,
    pub(super) blobs: Blobs,
    pub(super) shadow: Arc<Shadow>,
    /// Held while texts are changed, by the agent or for the user.
    pub(super) writing: tokio::sync::Mutex<()>,
    /// What the next prompt tells of the user's acts. Taken last of all locks.
    pub(super) news: Mutex<Waiting>,
}

/// The ledger, and what of it is not in the journal yet.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(super) ledger: Ledger,
    /// The versions of the followed documents that are open.
    pub(super) versions: BTreeMap<Target, i32>,
    /// The newest typing, which grows while it goes on at one place.
    typing: Option<(Target, TextEdit)>,
    /// Proposals that the user has decided about while others of the same prompt still wait.
    pub(super) decided: BTreeMap<HunkId, bool>,
}

impl Changes {
    pub(crate) fn new(ledger: Ledger, blobs: Blobs, roots: Vec<AbsPath>) -> Self {
        let feed = Arc::new(Feed::default());
        ledger.targets().for_each(|target| feed.follow(target));
        let book = Book { ledger, ..Book::default() };
        let shadow = Arc::new(Shadow::new(roots, blobs.clone(), Limits::default()));
        let (writing, news) = (tokio::sync::Mutex::default(), Mutex::default());
        Self { book: Mutex::new(book), feed, blobs, shadow, writing, news }
    }

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    // -- the agent's changes ------------------------------------------------------------------------------------

    /// Applies a change of the agent's and enters what became of it, also when only a part of it could be applied. Its
    /// hunks get these names, in their order, as far as there are any: those they were proposed under.
    ///
    /// # Errors
    /// As [`crate::workspace::Workspace::apply`].
    pub(crate) async fn apply_change(
        &self,
        set: ChangeSet,
        change: &Change,
        names: &[HunkId],
        cancel: &CancellationToken,
    ) -> Result<Vec<AppliedFile>, ApplyError> {
        let _one_at_a_time = self.changes.writing.lock().await;
        let mut holds = Vec::with_capacity(set.files.len());
        for file in &set.files {
            holds.push(self.hold(&file.target).await);
        }
        let result = self.workspace.apply(set, cancel).await;
        let applied = match &result {
            Ok(applied) | Err(ApplyError::Partial { applied, .. }) => applied.as_slice(),
            Err(_) => &[],
        };
        let mut names = names.iter().cloned().collect();
        for file in applied {
            self.enter_change(file, change, &mut names).await;
        }
        drop(holds);
        drop(self.sync_changes());
        if !applied.is_empty() {
            self.publish(Event::EditsChanged {
                targets: applied.iter().map(|file| file.target.clone()).collect(),
            });
        }
        result
    }

    /// Enters a change that has been made.
    async fn enter_change(&self, applied: &AppliedFile, change: &Change, names: &mut VecDeque<HunkId>) {
        if applied.edits.is_empty() && !applied.created {
            return;
        }
        let target = applied.shown.as_ref().map_or_else(|| applied.target.clone(), |shown| shown.target());
        self.keep_before(&target, applied, change).await;
        let base = self.keep_bytes(applied.old_text.as_bytes().into()).await;
        let mut book = self.changes.book();
        if !book.ledger.is_tracked(&target) {
            self.changes.feed.follow(&target);
            self.enter(&mut book, Entry::Tracked { target: target.clone(), base }, Some(&applied.old_text));
        }
        self.settle(&mut book, &target, applied, |ledger| {
            let now = ledger.text(&target).map(Rope::to_string).unwrap_or_default();
            let edits = edits_on(&now, applied)?;
            let hunks = split(&now, &edits).into_iter();
            let hunks = hunks.map(|edits| {
                let id = names.pop_front().unwrap_or_else(HunkId::generate);
                NewHunk { id, edits }
            });
            let hunks = hunks.collect();
            let kind = if applied.created { HunkKind::Created } else { change.kind };
            let change = Change { kind, ..change.clone() };
            Some(Entry::Changed { target: target.clone(), change, hunks })
        });
    }

    /// Keeps what a file was before its first change of a turn.
    async fn keep_before(&self, target: &Target, applied: &AppliedFile, change: &Change) {
        let is_known =
            |book: &Book| book.ledger.before(&change.turn).is_some_and(|files| files.contains_key(target));
        if is_known(&self.changes.book()) {
            return;
        }
        let before = match (&applied.bytes, applied.created) {
            (_, true) => Before::Absent,
            (Some(bytes), false) => Before::File { bytes: self.keep_bytes(Arc::clone(bytes)).await },
            (None, false) => {
                Before::Document { text: self.keep_bytes(applied.old_text.as_bytes().into()).await }
            }
        };
        let (turn, target) = (change.turn.clone(), target.clone());
        self.enter(&mut self.changes.book(), Entry::Before { turn, target, before }, None);
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

    /// Keeps bytes for the journal to name. A failure is told and not more: it costs what would have been read from
    /// them.
    pub(super) async fn keep_bytes(&self, bytes: Arc<[u8]>) -> BlobId {
        let blobs = self.changes.blobs.clone();
        let (kept, id) = blocking(move || (blobs.put(&bytes), BlobId::of(&bytes))).await;
        if let Err(error) = kept {
            let folder = self.changes.blobs.folder().display();
            let message = format!("what a file was could not be kept in {folder}: {error}");
            self.publish(Event::StorageFailure { message });
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
        entry: impl FnOnce(&Ledger) -> Option<Entry>,
    ) {
        let mut events = self.changes.feed.take(target);
        let is_it = |event: &DocumentEvent| match (event, &applied.shown) {
            (DocumentEvent::Changed { after, .. }, Some(shown)) => after.version == shown.version,
            _ => false,
        };
        let (before, after) = match events.iter().position(is_it) {
            Some(at) => {
                let later = events.split_off(at + 1);
                let its_own = events.pop();
                events.into_iter().for_each(|event| self.take_in(book, event));
                events = later;
                match its_own {
                    Some(DocumentEvent::Changed { before, after, .. }) => {
                        book.versions.insert(target.clone(), after.version);
                        (before.text, after.text)
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
        for event in self.changes.feed.take_all() {
            self.take_in(&mut book, event);
        }
        book
    }

    /// Takes in how the texts have changed while no process followed them.
    pub(super) async fn catch_up_with_texts(&self) {
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
            let (now, version) = match self.workspace.text(target).await {
                Ok(file) => (Rope::from_str(&file.text), file.version()),
                Err(ReadError::NotFound { .. } | ReadError::NotOpen { .. }) => (Rope::new(), None),
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
                self.reconcile(&mut book, target, &now);
                book.versions.extend(version.map(|version| (target.clone(), version)));
                if known != now {
                    self.publish(Event::EditsChanged { targets: vec![target.clone()] });
                }
                return;
            }
        }
        self.changes.feed.look_at(target);
    }

    fn take_in(&self, book: &mut Book, event: DocumentEvent) {
        let target = event.document().target();
        if !book.ledger.is_tracked(&target) {
            return;
        }
        let version = event.document().version;
        match event {
            DocumentEvent::Changed { before, after, edits: Some(edits) }
                if book.ledger.text(&target).is_some_and(|text| text.is_instance(&before.text))
                    || book.versions.get(&target) == Some(&before.version) =>
            {
                self.enter_typing(book, &target, &edits);
                let is_same =
                    book.ledger.text(&target).is_some_and(|text| text.len_bytes() == after.text.len_bytes());
                match is_same {
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

    /// Takes in whatever else has changed a text.
    pub(super) fn reconcile(&self, book: &mut Book, target: &Target, now: &Rope) {
        let Some(known) = book.ledger.text(target) else { return };
        if !known.is_instance(now) && known != now {
            let edits = word_changes(&known.to_string(), &now.to_string());
            self.enter_typing(book, target, &edits);
        }
        book.ledger.adopt(target, now);
    }

    fn enter_typing(&self, book: &mut Book, target: &Target, edits: &[TextEdit]) {
        let (typed, moves) = book.ledger.tell_apart(target, edits);
        if !typed.is_empty() {
            self.enter(book, Entry::Typed { target: target.clone(), edits: typed }, None);
        }
        if !moves.is_empty() {
            let moved = Entry::Moved { target: target.clone(), resolution: None, reverts: None, moves };
            self.enter(book, moved, None);
            self.publish(Event::EditsChanged { targets: vec![target.clone()] });
        }
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
            Entry::Moved { target: target.clone(), resolution: Some(id.clone()), reverts: None, moves };
        self.enter(book, entry, None);
        let action = Some(ReviewAction::Keep);
        let outcome = ResolutionOutcome { id, action, resolved, conflicts: vec![], failed: vec![] };
        self.publish(Event::EditsChanged { targets: vec![target.clone()] });
        self.publish(Event::EditsResolved { outcome });
    }

    // -- entries ------------------------------------------------------------------------------------------------

    /// Writes an entry to the journal and folds it into the ledger. `text` is that of the blob it names.
    pub(super) fn enter(&self, book: &mut Book, entry: Entry, text: Option<&str>) {
        if let Entry::Typed { target, edits } = &entry {
            if !book.grow_typing(target, edits) {
                self.write_typing(book);
                match edits.as_slice() {
                    [edit] if edit.range.is_empty() => book.typing = Some((target.clone(), edit.clone())),
                    _ => self.commit(Record::Edits { entry: entry.clone() }, |_| vec![]),
                }
            }
        } else {
            self.write_typing(book);
            self.commit(Record::Edits { entry: entry.clone() }, |_| vec![]);
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

    /// Writes the newest typing to the journal.
    pub(super) fn write_typing(&self, book: &mut Book) {
        if let Some((target, edit)) = book.typing.take() {
            self.commit(Record::Edits { entry: Entry::Typed { target, edits: vec![edit] } }, |_| vec![]);
        }
    }

    // -- switching hunks ----------------------------------------------------------------------------------------

    /// Brings hunks of one file into states, in its text and in the ledger. Answers the hunks that are there now, and
    /// those the user's own text stands in. The caller holds `writing`.
    ///
    /// # Errors
    /// Why the text could not be changed, for people.
    pub(super) async fn switch(
        &self,
        target: &Target,
        wanted: &[(HunkId, HunkState)],
        step: &Step,
    ) -> Result<Switched, String> {
        let hold = self.changes.feed.hold(target);
        let mut result = Err(format!("`{}` kept changing; nothing was done", self.workspace.display(target)));
        for _ in 0..MAX_ATTEMPTS {
            let file = match self.workspace.text(target).await {
                Ok(file) => Some(file),
                Err(ReadError::NotFound { .. }) => None,
                Err(error) => {
                    result = Err(error.to_string());
                    break;
                }
            };
            let (switched, moves, edits, whole) = {
                let mut book = self.changes.book();
                self.changes.feed.take(target).into_iter().for_each(|event| self.take_in(&mut book, event));
                let now = file.as_ref().map_or_else(Rope::new, |file| Rope::from_str(&file.text));
                self.reconcile(&mut book, target, &now);
                let plan = book.ledger.plan_moves(target, wanted.to_vec(), step.force);
                let mut moves = plan.moves;
                let resolved = moves.iter().map(|(hunk, _)| hunk.clone()).collect();
                // One that is out of the text stays what it is: there is nothing of it for the user's text to stand in.
                let stands = |hunk: &&HunkId| book.ledger.state(hunk).is_some_and(HunkState::is_in_text);
                let conflicts = plan.conflicts.iter().filter(stands);
                moves.extend(conflicts.map(|hunk| (hunk.clone(), HunkState::Conflict)));
                let edits = book.ledger.edits_for(target, &moves);
                let whole = book.ledger.replacements(&moves);
                let switched = Switched { resolved, conflicts: plan.conflicts };
                if edits.is_empty() && whole.is_empty() {
                    self.enter_moves(&mut book, target, moves, step);
                    result = Ok(switched);
                    break;
                }
                (switched, moves, edits, whole)
            };
            if let Err(reason) = self.replace_whole(whole).await {
                result = Err(reason);
                break;
            }
            if edits.is_empty() {
                self.enter_moves(&mut self.changes.book(), target, moves, step);
                result = Ok(switched);
                break;
            }
            let change = FileChange { target: target.clone(), base: file, edits };
            let (label, summary) = (step.label.clone(), String::new());
            let set = ChangeSet { label, summary, files: vec![change], author: Author::User };
            match self.workspace.apply(set, &CancellationToken::new()).await {
                Ok(applied) => {
                    let mut book = self.changes.book();
                    for file in &applied {
                        self.settle(&mut book, target, file, |_| Some(step.entry(target, moves.clone())));
                    }
                    drop(book);
                    result = Ok(switched);
                    break;
                }
                // The user has typed where the text was to change: looked at anew.
                Err(ApplyError::Conflict { .. } | ApplyError::Moving { .. } | ApplyError::Exists { .. }) => {}
                Err(error) => {
                    result = Err(error.to_string());
                    break;
                }
            }
        }
        drop(hold);
        if result.is_ok() {
            self.remove_if_undone(target, wanted).await;
        }
        drop(self.sync_changes());
        result
    }

    /// Replaces files as a whole, unless somebody has changed them since.
    async fn replace_whole(&self, whole: Vec<Replacement>) -> Result<(), String> {
        let shadow = Arc::clone(&self.changes.shadow);
        let replaced = blocking(move || {
            whole.into_iter().try_for_each(|Replacement { target, expected, wanted }| match target.file() {
                Some(path) => shadow.restore_file(path, &expected, &wanted),
                None => Ok(()),
            })
        });
        replaced.await.map_err(|error| error.to_string())
    }

    fn enter_moves(&self, book: &mut Book, target: &Target, moves: Vec<(HunkId, HunkState)>, step: &Step) {
        if !moves.is_empty() {
            self.enter(book, step.entry(target, moves), None);
        }
    }

    /// Removes the file that a hunk made when the hunk is undone and nothing is left in it.
    async fn remove_if_undone(&self, target: &Target, wanted: &[(HunkId, HunkState)]) {
        let is_unmade = {
            let book = self.changes.book();
            let made = |hunk: &HunkId| {
                book.ledger.kind(hunk) == Some(HunkKind::Created)
                    && book.ledger.state(hunk) == Some(HunkState::Undone)
            };
            wanted.iter().any(|(hunk, _)| made(hunk))
                && book.ledger.text(target).is_some_and(|text| text.len_bytes() == 0)
        };
        if is_unmade && let Err(error) = self.workspace.remove_empty(target).await {
            tracing::warn!(%error, %target, "the empty file stays");
        }
    }
}

/// One act of the user's.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) id: ResolutionId,
    pub(super) reverts: Option<ResolutionId>,
    /// The name of the undo step in the editor.
    pub(super) label: String,
    /// Whether what the user has amended is taken out, too.
    pub(super) force: bool,
}

impl Step {
    fn entry(&self, target: &Target, moves: Vec<(HunkId, HunkState)>) -> Entry {
        let (resolution, reverts) = (Some(self.id.clone()), self.reverts.clone());
        Entry::Moved { target: target.clone(), resolution, reverts, moves }
    }
}

/// What became of hunks that were to be switched.
#[derive(Clone, Debug, Default)]
pub(super) struct Switched {
    pub(super) resolved: Vec<HunkId>,
    pub(super) conflicts: Vec<HunkId>,
}

impl Book {
    /// Adds to the newest typing when it goes on right behind it.
    fn grow_typing(&mut self, target: &Target, edits: &[TextEdit]) -> bool {
        match (&mut self.typing, edits) {
            (Some((known, typing)), [edit])
                if known == target
                    && edit.range.is_empty()
                    && edit.range.start == typing.range.start + typing.new_text.len() =>
            {
                typing.new_text.push_str(&edit.new_text);
                true
            }
            _ => false,
        }
    }
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
