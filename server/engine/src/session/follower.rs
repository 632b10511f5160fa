//! A session that another process writes, as this one sees it.
//!
//! Rule: it reads and never writes: its state and its events are those that the records tell, under the numbers they have
//! where they are written. What no record tells (growing text, prompts that wait) is seen there alone.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::event::{Event, EventLog, Kept};
use crate::ids::SessionId;
use crate::journal::Record;
use crate::journal::lease::{Lease, Writer};
use crate::journal::tail::{Grown, Tail};
use crate::paths::AbsPath;
use crate::session::lock;
use crate::session::snapshot::Snapshot;
use crate::session::state::SessionState;
use crate::workspace::blocking;

/// The journal is looked at so often where the system says nothing of it.
const POLL: Duration = Duration::from_secs(2);

/// What is written meanwhile is read at once after so long.
const GATHER: Duration = Duration::from_millis(30);

/// Whether anybody writes is looked at so often at most.
const LOCK_INTERVAL: Duration = Duration::from_secs(1);

/// A session that another process writes.
#[derive(Debug)]
pub struct Following {
    id: SessionId,
    path: PathBuf,
    pub(crate) lease: Lease,
    log: Arc<EventLog>,
    inner: Mutex<Inner>,
    /// Woken when something in the session's folder has changed.
    pub(crate) wake: Arc<Notify>,
    stop: CancellationToken,
    /// Held while the session is being taken over.
    pub(crate) taking: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Inner {
    state: SessionState,
    tail: Tail,
    writer: Option<Writer>,
}

impl Following {
    /// Reads a journal and follows it; `log` is that of the session where this process has written it until now. `None`
    /// when the journal has no beginning. Waits for the disk.
    ///
    /// # Errors
    /// What the system says about the journal.
    pub(crate) fn open(path: &Path, log: Option<Arc<EventLog>>) -> io::Result<Option<Arc<Self>>> {
        let mut tail = Tail::new(path);
        let Some((state, kept)) = fold(&mut tail)? else { return Ok(None) };
        let id = state.id.clone();
        let log = log.unwrap_or_else(|| EventLog::with(id.clone(), kept));
        let lease = Lease::beside(path);
        let writer = writer(&lease);
        Ok(Some(Arc::new(Self {
            id,
            path: path.to_path_buf(),
            lease,
            log,
            inner: Mutex::new(Inner { state, tail, writer }),
            wake: Arc::default(),
            stop: CancellationToken::new(),
            taking: tokio::sync::Mutex::default(),
        })))
    }

    /// Begins to follow: tells who writes, and then what is written.
    pub(crate) fn start(self: &Arc<Self>) {
        self.tell_writer();
        tokio::spawn(follow(Arc::clone(self)));
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

    /// Who writes the session; `None` when nobody does.
    #[must_use]
    pub fn writer(&self) -> Option<Writer> {
        lock(&self.inner).writer.clone()
    }

    /// The session as its records say it is, with at most `items` of its newest items.
    #[must_use]
    pub fn snapshot(&self, items: usize) -> Snapshot {
        let inner = lock(&self.inner);
        Snapshot::of(&inner.state, self.log.newest(), items)
    }

    /// Where it works.
    pub(crate) fn cwd(&self) -> AbsPath {
        lock(&self.inner).state.cwd.clone()
    }

    /// The journal.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what was written and tells it, unless the following has ended. Waits for the disk.
    pub(crate) fn catch_up(&self) {
        let mut inner = lock(&self.inner);
        // Under the lock: what this process writes itself is never read here.
        if !self.is_stopped() {
            self.read_on(&mut inner);
        }
    }

    /// Reads the end of what was written, tells it and ends the following. Waits for the disk.
    pub(crate) fn finish(&self) {
        let mut inner = lock(&self.inner);
        self.read_on(&mut inner);
        self.stop();
    }

    fn read_on(&self, inner: &mut Inner) {
        match inner.tail.read() {
            Ok(Grown::By(lines)) => {
                for (stamp, record) in lines {
                    if stamp.after_damage {
                        self.log.lose();
                    }
                    let told = inner.state.apply(record);
                    self.log.follow(stamp.seq, stamp.written, told);
                }
            }
            Ok(Grown::Replaced) => self.begin_anew(inner),
            Err(error) => tracing::warn!(%error, path = %self.path.display(), "the journal cannot be read"),
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

    fn begin_anew(&self, inner: &mut Inner) {
        let mut tail = Tail::new(&self.path);
        match fold(&mut tail) {
            Ok(Some((state, _))) => {
                (inner.state, inner.tail) = (state, tail);
                self.log.lose();
            }
            Ok(None) => {
                tracing::warn!(path = %self.path.display(), "the journal is another one, without a beginning")
            }
            Err(error) => tracing::warn!(%error, path = %self.path.display(), "the journal cannot be read"),
        }
    }

    /// Looks who writes and tells it when that is another one.
    fn look_at_writer(&self) {
        let now = writer(&self.lease);
        let is_new = {
            let mut inner = lock(&self.inner);
            let is_new = inner.writer != now;
            inner.writer = now;
            is_new
        };
        if is_new && !self.is_stopped() {
            self.tell_writer();
        }
    }

    fn tell_writer(&self) {
        self.log.tell_aside(Event::LeaseChanged { writer: self.writer().map(Box::new), is_mine: false });
    }
}

/// Folds a journal from its beginning.
fn fold(tail: &mut Tail) -> io::Result<Option<(SessionState, Kept)>> {
    let lines: Vec<(_, Record)> = match tail.read()? {
        Grown::By(lines) => lines,
        Grown::Replaced => Vec::new(),
    };
    Ok(crate::session::replay::Replay::of(lines).map(|replay| (replay.state, replay.kept)))
}

/// Who writes, as far as that is known; `None` when nobody does.
fn writer(lease: &Lease) -> Option<Writer> {
    if lease.is_free() {
        return None;
    }
    Some(lease.writer().unwrap_or_else(|| Writer {
        pid: 0,
        client: "another server".to_owned(),
        version: String::new(),
        since: Timestamp::UNIX_EPOCH,
        started: Timestamp::UNIX_EPOCH,
        lease: crate::ids::LeaseId::from_external(""),
    }))
}

async fn follow(following: Arc<Following>) {
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
                read.look_at_writer();
            }
        })
        .await;
        sleep(GATHER).await;
    }
}
