//! A session that another process writes, as this one sees it.
//!
//! Rule: it reads and never writes: its state and its events are those of the records, with the numbers that they have
//! in the writing process. Events without a record (progress, retries, errors) exist there alone.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::core::lock;
use crate::edits::resolve::side_of;
use crate::edits::review::ReviewSide;
use crate::history::Snapshot;
use crate::history::open::changes_of;
use crate::history::paging::{ItemPage, PagingError};
use crate::history::relay::PendingRequests;
use crate::sessions::BLOBS;
use crate::state::SessionState;
use crate::state::agents::SubAgentView;
use crate::state::replay::Replay;
use crate::state::spending::Spending;
use kode_base::blocking;
use kode_base::ids::{AgentId, ItemId, SessionId};
use kode_base::paths::{AbsPath, Target, slashed};
use kode_base::task;
use kode_journal::growing::{Growth, JournalTail};
use kode_journal::lease::{Lease, SessionWriter};
use kode_journal::{Blobs, LineStamp, Shelf};
use kode_permission::PermissionPrompt;
use kode_record::event::{Event, EventLog, RecentEvents, RunState};
use kode_record::record::Record;
use kode_text::edit::ledger::Ledger;
use kode_text::edit::ledger::review::FileReview;

/// The interval of polling the journal where the system reports no change.
const POLL: Duration = Duration::from_secs(2);

/// The time in which changes are collected before they are read.
const GATHER: Duration = Duration::from_millis(30);

/// The shortest interval of checking for a writer.
const LOCK_INTERVAL: Duration = Duration::from_secs(1);

/// A session that another process writes.
#[derive(Debug)]
pub struct FollowedSession {
    id: SessionId,
    path: PathBuf,
    pub(crate) lease: Lease,
    log: Arc<EventLog>,
    /// Held while the disk is read; taken before `inner`, never after it.
    reading: Mutex<TailPosition>,
    /// Never held while the disk is read: those who show the session wait for it.
    inner: Mutex<FollowedState>,
    /// The changes, and the number of the newest event when they were read.
    changes: Mutex<Option<(u64, Ledger)>>,
    /// Woken when something in the session's folder has changed.
    pub(crate) wake: Arc<Notify>,
    stop: CancellationToken,
    /// Held while the session is being taken over.
    pub(crate) taking: tokio::sync::Mutex<()>,
}

/// How far the journal was read.
#[derive(Debug)]
struct TailPosition {
    tail: JournalTail,
    /// Whether the journal is another one by now, whose beginning has not come yet: its content is no part of the
    /// shown transcript.
    is_headless: bool,
}

#[derive(Debug)]
struct FollowedState {
    state: SessionState,
    writer: Option<SessionWriter>,
    /// The requests to the user that wait in the writing process.
    pending: PendingRequests,
}

impl FollowedSession {
    /// Reads a journal and follows it; `log` is that of the session where this process has written it until now: it gets
    /// the events that another one has written since. `beginning` is treated as the first record where that is lost, and
    /// says by which id the session is known. `None` when that has none either. Waits for the disk.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn open(
        path: &Path,
        beginning: &Record,
        log: Option<Arc<EventLog>>,
    ) -> io::Result<Option<Arc<Self>>> {
        let mut tail = JournalTail::new(path);
        let reported_until = log.as_ref().map_or(0, |log| log.newest());
        let (replay, read) = fold(&mut tail, Some(beginning), |stamp, reported| {
            // This process has published and numbered its own records.
            if let Some(log) = log.as_ref().filter(|_| stamp.seq >= reported_until) {
                report(log, stamp, reported.to_vec());
            }
        });
        read?;
        let Some(Replay { state, kept }) = replay else { return Ok(None) };
        let id = state.id.clone();
        let log = log.unwrap_or_else(|| EventLog::with(id.clone(), kept));
        let lease = Lease::beside(path);
        let writer = writer(&lease);
        let pending = pending(&lease, writer.as_ref());
        Ok(Some(Arc::new(Self {
            id,
            path: path.to_path_buf(),
            lease,
            log,
            reading: Mutex::new(TailPosition { tail, is_headless: false }),
            inner: Mutex::new(FollowedState { state, writer, pending }),
            changes: Mutex::default(),
            wake: Arc::default(),
            stop: CancellationToken::new(),
            taking: tokio::sync::Mutex::default(),
        })))
    }

    /// Begins to follow: publishes the writer, and then the new records.
    pub(crate) fn start(self: &Arc<Self>) {
        self.report_writer();
        task::spawn(follow(Arc::clone(self)));
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The session's events.
    #[must_use]
    pub fn events(&self) -> &Arc<EventLog> {
        &self.log
    }

    /// The writer of the session; `None` without one.
    #[must_use]
    pub fn writer(&self) -> Option<SessionWriter> {
        lock(&self.inner).writer.clone()
    }

    /// The session as its records say it is, with at most `items` of its newest items.
    #[must_use]
    pub fn snapshot(&self, items: usize) -> Snapshot {
        let (mut snapshot, part) = {
            let inner = lock(&self.inner);
            let (snapshot, part) = Snapshot::of(&inner.state, self.log.newest(), items);
            let (pending, questions) = (inner.pending.prompts.clone(), inner.pending.questions.clone());
            let is_waiting = !pending.is_empty() || !questions.is_empty();
            let state = if is_waiting { RunState::Paused } else { snapshot.state };
            (Snapshot { pending, questions, state, ..snapshot }, part)
        };
        snapshot.items = part.read_what_can_be();
        snapshot
    }

    /// The permission prompts that wait in the writing process.
    #[must_use]
    pub fn pending(&self) -> Vec<PermissionPrompt> {
        lock(&self.inner).pending.prompts.clone()
    }

    /// At most `limit` items before one of them, of the session's own transcript or of a sub-agent's.
    ///
    /// # Errors
    /// [`PagingError`].
    pub async fn items_before(
        self: &Arc<Self>,
        agent: Option<AgentId>,
        before: ItemId,
        limit: usize,
    ) -> Result<ItemPage, PagingError> {
        let following = Arc::clone(self);
        blocking(move || {
            let found = lock(&following.inner).state.items_before(agent.as_ref(), &before, limit)?;
            ItemPage::read(found, &before, limit)
        })
        .await
    }

    /// A sub-agent with at most `items` of its newest items; `None` when there is no such sub-agent.
    #[must_use]
    pub fn sub_agent(&self, id: &AgentId, items: usize) -> Option<SubAgentView> {
        let (view, part) = {
            let inner = lock(&self.inner);
            SubAgentView::of(&inner.state, self.log.newest(), id, items)?
        };
        Some(SubAgentView { items: part.read_what_can_be(), ..view })
    }

    /// The files with hunks that are proposed, applied or in conflict, as far as they are recorded.
    ///
    /// # Errors
    /// The error of the system.
    pub async fn review(self: &Arc<Self>) -> io::Result<Vec<FileReview>> {
        self.inspect_changes(Ledger::review).await
    }

    /// A side of a file with such hunks, as far as they are recorded, empty where that side is no file; `None` when the file
    /// has none.
    ///
    /// # Errors
    /// The error of the system.
    pub async fn side(self: &Arc<Self>, target: Target, side: ReviewSide) -> io::Result<Option<String>> {
        let look = move |changes: &Ledger| {
            changes.review_of(&target)?;
            Some(side_of(changes, &target, side).unwrap_or_default())
        };
        self.inspect_changes(look).await
    }

    async fn inspect_changes<T: Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&Ledger) -> T + Send + 'static,
    ) -> io::Result<T> {
        let following = Arc::clone(self);
        blocking(move || {
            let newest = following.log.newest();
            let mut known = lock(&following.changes);
            if let Some((at, changes)) = &*known
                && *at == newest
            {
                return Ok(look(changes));
            }
            let blobs = Blobs::new(following.path.with_file_name(BLOBS));
            let (_, changes) = known.insert((newest, changes_of(&following.path, &blobs)?));
            Ok(look(changes))
        })
        .await
    }

    /// A file or document for people: relative to where the session works.
    #[must_use]
    pub fn display(&self, target: &Target) -> String {
        let cwd = self.cwd();
        let relative = target.file().and_then(|file| file.as_path().strip_prefix(cwd.as_path()).ok());
        relative.map_or_else(|| target.to_string(), slashed)
    }

    /// The recorded usage of the session.
    #[must_use]
    pub fn spending(&self) -> Spending {
        lock(&self.inner).state.spending.clone()
    }

    /// Where it works.
    pub(crate) fn cwd(&self) -> AbsPath {
        lock(&self.inner).state.cwd.clone()
    }

    /// The journal.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads and publishes new records, until following has ended; it ends with the journal. Blocks on the disk.
    pub(crate) fn catch_up(&self) {
        let mut reading = lock(&self.reading);
        // Under the lock: the own records of this process are never read here.
        if self.is_stopped() {
            return;
        }
        match self.read_on(&mut reading) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                tracing::info!(path = %self.path.display(), "the session is gone and is followed no more");
                self.stop();
                self.log.close();
            }
            read => self.warn(read),
        }
    }

    /// Reads and publishes the last records, and ends following. Blocks on the disk.
    pub(crate) fn finish(&self) {
        let mut reading = lock(&self.reading);
        let read = self.read_on(&mut reading);
        self.warn(read);
        self.stop();
        // The requests of the writing process end with it; this process publishes its own.
        let mut inner = lock(&self.inner);
        let before = std::mem::take(&mut inner.pending);
        PendingRequests::default()
            .events_since(&before)
            .into_iter()
            .for_each(|event| self.log.report_aside(event));
    }

    fn read_on(&self, reading: &mut TailPosition) -> io::Result<()> {
        let TailPosition { tail, is_headless } = reading;
        let grown = tail.read(|stamp, record| self.add(stamp, record, is_headless))?;
        match grown {
            Growth::Further => Ok(()),
            Growth::Replaced => self.start_over(reading),
        }
    }

    fn add(&self, stamp: LineStamp, record: Record, is_headless: &mut bool) {
        let beginning = if *is_headless { SessionState::open(&record) } else { None };
        if *is_headless && beginning.is_none() {
            return;
        }
        *is_headless = false;
        // State and events change under one lock: a snapshot has both of one moment.
        let mut inner = lock(&self.inner);
        if let Some(mut state) = beginning {
            attach_shelf(&mut state);
            inner.state = state;
            self.log.lose();
        }
        let reported = inner.state.apply(record);
        report(&self.log, stamp, reported);
    }

    fn warn(&self, read: io::Result<()>) {
        if let Err(error) = read {
            tracing::warn!(%error, path = %self.path.display(), "the journal cannot be read");
        }
    }

    /// Ends the following; the events stay.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Whether the following has ended.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Reads the journal that replaced the known one. Where that fails, reading continues from there.
    fn start_over(&self, reading: &mut TailPosition) -> io::Result<()> {
        let mut tail = JournalTail::new(&self.path);
        let (replay, read) = fold(&mut tail, None, |_, _| {});
        *reading = TailPosition { tail, is_headless: replay.is_none() };
        let Some(Replay { state, kept }) = replay else {
            tracing::warn!(path = %self.path.display(), "the journal is another one, without a beginning");
            return read;
        };
        let old = {
            let mut inner = lock(&self.inner);
            self.log.reach(kept.newest());
            self.log.lose();
            std::mem::replace(&mut inner.state, state)
        };
        // Only now: it may be much.
        drop(old);
        read
    }

    /// Checks for the writer, and publishes a new one.
    fn inspect_writer(&self) {
        let now = writer(&self.lease);
        let is_new = {
            let mut inner = lock(&self.inner);
            let is_new = inner.writer != now;
            inner.writer = now;
            is_new
        };
        if is_new && !self.is_stopped() {
            self.report_writer();
        }
    }

    /// Reads the requests that wait in the writing process, and publishes changes.
    fn read_pending(&self) {
        let now = pending(&self.lease, self.writer().as_ref());
        let mut inner = lock(&self.inner);
        if inner.pending == now || self.is_stopped() {
            return;
        }
        // Under the lock: a snapshot and the events agree.
        for event in now.events_since(&inner.pending) {
            self.log.report_aside(event);
        }
        inner.pending = now;
    }

    fn report_writer(&self) {
        self.log.report_aside(Event::LeaseChanged { writer: self.writer().map(Box::new), is_mine: false });
    }
}

/// Publishes the events of a line that another process wrote.
fn report(log: &EventLog, stamp: LineStamp, reported: Vec<Event>) {
    if stamp.after_damage {
        log.lose();
    }
    log.follow(stamp.seq, stamp.written, reported);
}

/// Folds a journal from its beginning, wherever that is, and emits each line's events. Answers the folded state, and
/// whether the rest could be read.
fn fold(
    tail: &mut JournalTail,
    beginning: Option<&Record>,
    mut show: impl FnMut(LineStamp, &[Event]),
) -> (Option<Replay>, io::Result<()>) {
    let mut replay: Option<Replay> = None;
    let mut before = Vec::new();
    let mut add = |replay: &mut Replay, stamp: LineStamp, record| {
        let reported = replay.state.apply(record);
        show(stamp, &reported);
        replay.note(stamp, reported);
    };
    let read = tail.read(|stamp, record| match &mut replay {
        Some(replay) => add(replay, stamp, record),
        None => {
            let state = SessionState::open(&record);
            before.push((stamp, record));
            if let Some(state) = state {
                let begun = replay.insert(begun(state, beginning));
                std::mem::take(&mut before).into_iter().for_each(|(stamp, record)| add(begun, stamp, record));
            }
        }
    });
    if replay.is_none()
        && let Some(state) = beginning.and_then(SessionState::open)
    {
        let begun = replay.insert(begun(state, beginning));
        before.into_iter().for_each(|(stamp, record)| add(begun, stamp, record));
    }
    (replay, read.map(drop))
}

/// A session before its first line. Its id is the name of its folder, whatever a foreign line contains.
fn begun(mut state: SessionState, beginning: Option<&Record>) -> Replay {
    if let Some(Record::Opened { session, .. }) = beginning {
        state.id.clone_from(session);
    }
    attach_shelf(&mut state);
    Replay { state, kept: RecentEvents::default() }
}

/// Attaches a shelf of this process: the session's own shelf belongs to the writing process.
fn attach_shelf(state: &mut SessionState) {
    state.attach(&Arc::new(Shelf::unnamed()));
}

/// The writer, as far as it is known; `None` without one.
fn writer(lease: &Lease) -> Option<SessionWriter> {
    if lease.is_free() {
        return None;
    }
    Some(lease.writer().unwrap_or_else(|| SessionWriter {
        pid: 0,
        host: String::new(),
        client: "another server".to_owned(),
        version: String::new(),
        since: Timestamp::UNIX_EPOCH,
        started: Timestamp::UNIX_EPOCH,
        lease: kode_base::ids::LeaseId::from_external(""),
    }))
}

/// The requests that wait in the writing process; empty without a writer, or while the note is of another one.
fn pending(lease: &Lease, writer: Option<&SessionWriter>) -> PendingRequests {
    let noted: PendingRequests = lease.pending().unwrap_or_default();
    if writer.is_some_and(|writer| noted.lease.as_ref() == Some(&writer.lease)) {
        noted
    } else {
        PendingRequests::default()
    }
}

async fn follow(following: Arc<FollowedSession>) {
    let watched = Arc::clone(&following);
    let _watcher = blocking(move || watched.lease.watch(Arc::clone(&watched.wake), true)).await;
    let mut looked = Instant::now();
    loop {
        tokio::select! {
            biased;
            () = following.stop.cancelled() => break,
            () = following.wake.notified() => {}
            () = sleep(POLL) => {}
        }
        let looks = looked.elapsed() >= LOCK_INTERVAL;
        if looks {
            looked = Instant::now();
        }
        let read = Arc::clone(&following);
        blocking(move || {
            read.catch_up();
            if looks {
                read.inspect_writer();
            }
            read.read_pending();
        })
        .await;
        sleep(GATHER).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kode_base::mode::Mode;
    use kode_journal::Journal;
    use kode_record::event::log::LIFE_JUMP;
    use kode_record::title::TitledBy;

    fn opened(cwd: &str) -> Record {
        let cwd = AbsPath::new(cwd).unwrap();
        let (session, model) = (SessionId::from_external("ses_1"), "fake".to_owned());
        let roots = vec![cwd.clone()];
        Record::Opened {
            session,
            roots,
            cwd,
            mode: Mode::Default.into(),
            model,
            forked_from: None,
            worktree: None,
        }
    }

    #[test]
    fn a_session_whose_first_line_is_lost_or_another_ones_is_followed_under_its_own_name() {
        for first in [None, Some(opened("/w"))] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("journal.jsonl");
            let journal = Journal::open(&path).unwrap();
            first.iter().for_each(|first| write(&journal, first, 0));
            write(&journal, &titled("kept"), 1);
            let mut beginning = opened("/w");
            if let Record::Opened { session, .. } = &mut beginning {
                *session = SessionId::from_external("ses_2");
            }
            let following = FollowedSession::open(&path, &beginning, None).unwrap().unwrap();
            assert_eq!(following.id().as_str(), "ses_2");
            assert_eq!(following.snapshot(0).title, "kept");
            write(&journal, &titled("later"), 2);
            following.catch_up();
            assert_eq!(following.snapshot(0).title, "later");
        }
    }

    fn titled(title: &str) -> Record {
        Record::Titled { title: title.to_owned(), by: TitledBy::User }
    }

    /// Writes a line as another process does.
    fn write(journal: &Journal, record: &Record, seq: u64) {
        journal.append_line(journal.prepare(record).unwrap(), seq).unwrap();
    }

    fn seqs(events: &[kode_record::event::EventRecord]) -> Vec<u64> {
        events.iter().map(|record| record.bookmark.seq).collect()
    }

    #[test]
    fn what_another_wrote_before_the_following_began_is_reported_once_and_nothing_of_ones_own_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let journal = Journal::open(&path).unwrap();
        write(&journal, &opened("/w"), 0);
        let (own, log) = (titled("own"), EventLog::new(SessionId::from_external("ses_1"), 0));
        let mut state = SessionState::open(&opened("/w")).unwrap();
        log.report(Timestamp::now(), state.apply(own.clone()), |seq| write(&journal, &own, seq));
        // Nothing of this one is written.
        log.publish(Event::StateChanged { state: kode_record::event::RunState::Ready });
        let mut reader = log.subscribe(0, vec![]);
        assert_eq!(seqs(&reader.ready().unwrap()), [1, 2]);
        write(&journal, &titled("other"), 1 + LIFE_JUMP);
        let following = FollowedSession::open(&path, &opened("/w"), Some(Arc::clone(&log))).unwrap().unwrap();
        assert_eq!(seqs(&reader.ready().unwrap()), [2 + LIFE_JUMP]);
        write(&journal, &titled("later"), 2 + LIFE_JUMP);
        following.catch_up();
        following.catch_up();
        assert_eq!(seqs(&reader.ready().unwrap()), [3 + LIFE_JUMP]);
        assert_eq!(seqs(&log.subscribe(0, vec![]).ready().unwrap()), [1, 2, 2 + LIFE_JUMP, 3 + LIFE_JUMP]);
    }

    #[test]
    fn a_journal_in_the_place_of_another_is_shown_from_its_beginning_on() {
        let folder = tempfile::tempdir().unwrap();
        let (path, new) = (folder.path().join("journal.jsonl"), folder.path().join("new.jsonl"));
        let journal = Journal::open(&path).unwrap();
        write(&journal, &opened("/old"), 0);
        (0..20).for_each(|seq| write(&journal, &titled(&format!("title {seq}")), seq));
        let following = FollowedSession::open(&path, &opened("/old"), None).unwrap().unwrap();
        let mut reader = following.events().subscribe(20, vec![]);
        reader.ready().unwrap();
        let journal = Journal::open(&new).unwrap();
        write(&journal, &titled("headless"), 50);
        std::fs::rename(&new, &path).unwrap();
        following.catch_up();
        assert_eq!(
            (following.cwd().as_path(), following.snapshot(0).title.as_str()),
            (Path::new("/old"), "title 19")
        );
        write(&journal, &opened("/new"), 51);
        write(&journal, &titled("new"), 51);
        following.catch_up();
        assert_eq!(
            (following.cwd().as_path(), following.snapshot(0).title.as_str()),
            (Path::new("/new"), "new")
        );
        assert!(reader.ready().is_err(), "nobody goes on from the journal before");
        assert_eq!(following.events().newest(), 52);
    }

    #[tokio::test]
    async fn a_session_that_is_deleted_is_followed_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        write(&Journal::open(&path).unwrap(), &opened("/w"), 0);
        let following = FollowedSession::open(&path, &opened("/w"), None).unwrap().unwrap();
        let log = following.events();
        let mut reader = log.subscribe(log.newest(), vec![]);
        std::fs::remove_file(&path).unwrap();
        following.catch_up();
        assert!(following.is_stopped());
        assert_eq!(reader.next().await.unwrap(), None);
    }
}
