//! Changes by others of what this session has read: found, told to the user at once and to the model with the next
//! prompt.
//!
//! Rule: a change is a text other than the one the session knows, reported once; a new date alone is no change, and neither
//! is what the session itself writes. No access to a file or document happens under a lock of this module.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};

use crate::document::DocumentSnapshot;
use crate::file_text::{FileStamp, TextStamp};
use crate::host::{DocumentEvent, DocumentObserver, Host};
use crate::workspace::reads::Reads;
use crate::workspace::unsaved::AgentChanges;
use crate::workspace::watch::TargetWatch;
use crate::workspace::{OpenText, Portion, ReadError, Workspace};
use kode_base::paths::{AbsPath, Target, real_path};
use kode_base::reminder;

/// The most files checked when a turn begins: those used last.
const MAX_LOOKED_AT: usize = 1_024;

/// Time limit of the check when a turn begins; the rest is checked in the background.
const LOOK_BUDGET: Duration = Duration::from_millis(100);

/// Files larger than this are not read when a turn begins but in the background.
const MAX_READ_AT_ONCE: u64 = 1 << 20;

/// Changed files that the model is reported by name.
const MAX_NAMED: usize = 20;

/// The listener for changes, called at once and from any thread.
type ChangeListener = Box<dyn Fn(WatchReport) + Send + Sync>;

/// The changes that are reported at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchReport {
    /// A text that this session has read was changed by others.
    Changed {
        /// The file or document.
        target: Target,
        /// Whether it is gone.
        deleted: bool,
    },
    /// Some files are not watched; told once. Their changes are found when a turn begins and before each edit.
    NotWatching {
        /// Why not.
        reason: String,
    },
}

/// A change by others of which the model is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideChange {
    /// The file or document.
    pub target: Target,
    /// Where it was changed.
    pub origin: ChangeAuthor,
    /// Whether it is gone.
    pub deleted: bool,
}

/// Where a text was changed, which is as much as is known of who changed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeAuthor {
    /// On disk, by some program.
    Disk,
    /// In the editor.
    Editor,
}

/// The content now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetContent {
    /// A text, by its SHA-256.
    Text([u8; 32]),
    /// Nothing.
    Gone,
    /// Something that cannot be read as text.
    Unreadable,
}

/// The result of a check.
#[derive(Debug)]
pub(super) struct OutsideText {
    pub(super) content: TargetContent,
    pub(super) by: ChangeAuthor,
    pub(super) stamp: Option<TextStamp>,
}

/// The known texts of one session, shared with the thread that watches them.
pub(super) struct Tracker {
    host: Arc<dyn Host>,
    reads: Mutex<Reads>,
    /// The writes of the session at this moment, with their number.
    writing: Mutex<HashMap<Target, usize>>,
    pub(super) agent_changes: Mutex<AgentChanges>,
    listener: OnceLock<ChangeListener>,
    pub(super) watch: TargetWatch,
}

/// While it lives the session itself writes a target, and a difference there is no change by others.
pub(super) struct OwnWrite<'a> {
    tracker: &'a Arc<Tracker>,
    target: Target,
}

/// The purpose of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PollReason {
    /// Something happened to the file: it is read whatever its date. Open documents speak for themselves later.
    FileEvent,
    /// A turn begins: dates and versions are believed, and long files are left for later.
    TurnStart,
}

/// The result of a look.
enum PollOutcome {
    /// As before, or nothing that counts.
    Nothing,
    /// This.
    Found(OutsideText),
    /// It takes too long now.
    Later,
}

/// The open documents, by every name of their files.
struct OpenDocuments {
    documents: Vec<DocumentSnapshot>,
    by_target: HashMap<Target, usize>,
    by_real_path: HashMap<PathBuf, usize>,
}

impl Workspace {
    /// Tells `listener` of changes from now on; the first listener stays. It is called from any thread and must not
    /// wait.
    pub fn report_changes(&self, listener: impl Fn(WatchReport) + Send + Sync + 'static) {
        if self.tracker.listener.set(Box::new(listener)).is_err() {
            tracing::debug!("Changes by others are reported to the first listener only");
        }
    }

    /// Checks what the session has read, as far as that is quickly done, and reports new changes. Blocks for a
    /// limited time.
    pub fn look_for_changes(&self) {
        let targets: Vec<_> = self.tracker.reads().latest().take(MAX_LOOKED_AT).cloned().collect();
        if targets.is_empty() {
            return;
        }
        let documents = OpenDocuments::of(self.tracker.host.as_ref());
        let deadline = Instant::now() + LOOK_BUDGET;
        for target in targets {
            if Instant::now() > deadline {
                self.tracker.watch.look_again(target);
                continue;
            }
            self.tracker.look_and_report(&target, PollReason::TurnStart, &documents);
            if documents.find(&target).is_none() {
                self.tracker.watch(&target);
            }
        }
    }

    /// The changes by others of which the model has not been told; from now on it counts as told.
    pub fn take_changes(&self) -> Vec<OutsideChange> {
        let unreported = self.tracker.reads().take_unreported();
        let change = |(target, content, origin)| OutsideChange {
            target,
            origin,
            deleted: match content {
                TargetContent::Gone => true,
                TargetContent::Text(_) | TargetContent::Unreadable => false,
            },
        };
        unreported.into_iter().map(change).collect()
    }

    /// The text for the model about changes by others; `None` if none exist.
    pub fn reminder(&self, changes: &[OutsideChange]) -> Option<String> {
        if changes.is_empty() {
            return None;
        }
        let mut text =
            "Changed by others since you last read it. Read it again before you edit or rely on it:"
                .to_owned();
        for change in changes.iter().take(MAX_NAMED) {
            // A name is data: it must not be able to begin a line of its own.
            let name = self.display(&change.target).replace(char::is_control, "\u{fffd}");
            let how = match (change.deleted, change.origin) {
                (true, ChangeAuthor::Disk) => "deleted",
                (true, ChangeAuthor::Editor) => "closed in the editor",
                (false, ChangeAuthor::Disk) => "on disk",
                (false, ChangeAuthor::Editor) => "in the editor",
            };
            let _ = write!(text, "\n- `{name}`: {how}");
        }
        match changes.len().saturating_sub(MAX_NAMED) {
            0 => {}
            more => {
                let _ = write!(text, "\n- and {more} more");
            }
        }
        Some(reminder(&text))
    }

    /// The same workspace, which watches at most this many folders. It knows nothing yet.
    #[cfg(test)]
    pub(crate) fn watching_at_most(mut self, max_folders: usize) -> Self {
        self.tracker = Tracker::start(Arc::clone(&self.host), max_folders);
        self
    }

    /// Starts the watching ahead of the first file that is read.
    pub fn start_watching(&self) {
        self.tracker.watch.start(&self.tracker);
    }

    /// Ends the watching: the session is over.
    pub fn stop_watching(&self) {
        self.tracker.watch.stop();
    }

    /// Says that the session itself writes the target until the answer is dropped.
    pub(super) fn own_write(&self, target: &Target) -> OwnWrite<'_> {
        *self.tracker.writing.lock().entry(target.clone()).or_default() += 1;
        OwnWrite { tracker: &self.tracker, target: target.clone() }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        self.stop_watching();
    }
}

impl Drop for OwnWrite<'_> {
    fn drop(&mut self) {
        let mut writing = self.tracker.writing.lock();
        if let Some(count) = writing.get_mut(&self.target) {
            *count -= 1;
            if *count == 0 {
                writing.remove(&self.target);
            }
        }
        self.tracker.reads().outdate(&self.target);
        drop(writing);
        // Other changes meanwhile were not checked.
        self.tracker.watch.look_again(self.target.clone());
    }
}

impl Tracker {
    /// A tracker that knows nothing yet and watches at most `max_folders` folders.
    pub(super) fn start(host: Arc<dyn Host>, max_folders: usize) -> Arc<Self> {
        let tracker = Arc::new(Self {
            host,
            reads: Mutex::default(),
            writing: Mutex::default(),
            agent_changes: Mutex::default(),
            listener: OnceLock::new(),
            watch: TargetWatch::new(max_folders),
        });
        let observer: Arc<dyn DocumentObserver> = tracker.clone();
        tracker.host.observe_documents(Arc::downgrade(&observer));
        tracker
    }

    pub(super) fn reads(&self) -> MutexGuard<'_, Reads> {
        self.reads.lock()
    }

    /// Notes a text that was read to an portion, or made by the session if absent.
    pub(super) fn note(
        &self,
        target: &Target,
        hash: [u8; 32],
        portion: Option<&Portion>,
        stamp: Option<TextStamp>,
    ) {
        let forgotten = self.reads().note(target, hash, portion, stamp);
        if let Some(forgotten) = forgotten {
            self.watch.release(forgotten);
        }
    }

    /// Has the file of the target watched from now on.
    pub(super) fn watch(self: &Arc<Self>, target: &Target) {
        if target.file().is_some() {
            self.watch.add(target, self);
        }
    }

    pub(super) fn report(&self, report: WatchReport) {
        if let Some(listener) = self.listener.get() {
            listener(report);
        }
    }

    /// Checks files to which something happened.
    pub(super) fn look_after_events(&self, targets: BTreeSet<Target>) {
        let documents = OpenDocuments::of(self.host.as_ref());
        for target in targets {
            self.look_and_report(&target, PollReason::FileEvent, &documents);
        }
    }

    fn look_and_report(&self, target: &Target, occasion: PollReason, documents: &OpenDocuments) {
        let Some((revision, stamp)) = self.reads().begin_look(target) else { return };
        let found = match look(target, stamp.as_ref(), occasion, documents) {
            PollOutcome::Nothing => return,
            PollOutcome::Later => return self.watch.look_again(target.clone()),
            PollOutcome::Found(found) => found,
        };
        let deleted = found.content == TargetContent::Gone;
        let is_news = {
            let writing = self.writing.lock();
            // The end of the session's own write has it checked again.
            if writing.contains_key(target) {
                return;
            }
            self.reads().end_look(target, revision, found)
        };
        match is_news {
            Some(true) => self.report(WatchReport::Changed { target: target.clone(), deleted }),
            Some(false) => {}
            None => self.watch.look_again(target.clone()),
        }
    }
}

impl DocumentObserver for Tracker {
    fn observe(&self, event: &DocumentEvent) {
        self.agent_changes.lock().observe(event);
        match event {
            // Versions may start over.
            DocumentEvent::Opened(document) => self.reads().forget_version(&document.uri),
            DocumentEvent::Changed { .. } | DocumentEvent::Saved { .. } | DocumentEvent::Closed(_) => {}
        }
    }
}

impl OpenDocuments {
    fn of(host: &dyn Host) -> Self {
        let documents = host.documents();
        let places = || documents.iter().enumerate();
        let real = |(place, document): (usize, &DocumentSnapshot)| {
            Some((real_path(document.path.as_ref()?).ok()?, place))
        };
        Self {
            by_target: places().map(|(place, document)| (document.target(), place)).collect(),
            by_real_path: places().filter_map(real).collect(),
            documents,
        }
    }

    fn find(&self, target: &Target) -> Option<&DocumentSnapshot> {
        let by_real_path = || {
            // Following links costs more than a look; without documents there is nothing to find.
            let path = target.file().filter(|_| !self.documents.is_empty())?;
            self.by_real_path.get(&real_path(path).ok()?)
        };
        let place = self.by_target.get(target).or_else(by_real_path)?;
        self.documents.get(*place)
    }
}

fn look(
    target: &Target,
    stamp: Option<&TextStamp>,
    occasion: PollReason,
    documents: &OpenDocuments,
) -> PollOutcome {
    match (documents.find(target), target) {
        (Some(_), _) if occasion == PollReason::FileEvent => PollOutcome::Nothing,
        (Some(document), _) => inspect_document(document, stamp),
        (None, Target::Untitled(_)) => PollOutcome::Found(OutsideText {
            content: TargetContent::Gone,
            by: ChangeAuthor::Editor,
            stamp: None,
        }),
        (None, Target::File(path)) => inspect_file(target, path, stamp, occasion),
    }
}

fn inspect_document(document: &DocumentSnapshot, stamp: Option<&TextStamp>) -> PollOutcome {
    let now = TextStamp::of_document(document);
    if stamp == Some(&now) {
        return PollOutcome::Nothing;
    }
    let mut hash = Sha256::new();
    document.text.chunks().for_each(|chunk| hash.update(chunk));
    let content = TargetContent::Text(hash.finalize().into());
    PollOutcome::Found(OutsideText { content, by: ChangeAuthor::Editor, stamp: Some(now) })
}

fn inspect_file(
    target: &Target,
    path: &AbsPath,
    stamp: Option<&TextStamp>,
    occasion: PollReason,
) -> PollOutcome {
    let found = |content, stamp| {
        PollOutcome::Found(OutsideText {
            content,
            by: ChangeAuthor::Disk,
            stamp: Option::map(stamp, TextStamp::File),
        })
    };
    let now = match std::fs::metadata(path) {
        Ok(metadata) => FileStamp::of(&metadata),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return found(TargetContent::Gone, None);
        }
        Err(_) => return found(TargetContent::Unreadable, None),
    };
    if occasion == PollReason::TurnStart {
        match stamp {
            Some(TextStamp::File(stamp)) if stamp.proves(&now) => return PollOutcome::Nothing,
            _ if now.size() > MAX_READ_AT_ONCE => return PollOutcome::Later,
            _ => {}
        }
    }
    match text_hash(target, path) {
        Ok(hash) => found(TargetContent::Text(hash), Some(now)),
        Err(ReadError::NotFound { .. }) => found(TargetContent::Gone, None),
        Err(error) => {
            tracing::debug!(%path, %error, "A file that was read cannot be read any more");
            found(TargetContent::Unreadable, Some(now))
        }
    }
}

/// The hash of a file's text; memory does not grow with the file.
fn text_hash(target: &Target, path: &AbsPath) -> Result<[u8; 32], ReadError> {
    let mut hash = Sha256::new();
    match OpenText::read(target.clone(), path.as_path(), &path.to_string())? {
        OpenText::Whole(file) => hash.update(file.text.as_bytes()),
        OpenText::Stream(mut stream) => {
            while let Some(piece) = stream.next_piece()? {
                hash.update(piece);
            }
        }
    }
    Ok(hash.finalize().into())
}
