//! The writer of a session: the note beside its journal, how another process asks for it, and the relay of requests to the
//! user.
//!
//! Rule: the lock of the journal is the truth; all files here are notes. Each is written whole by a rename and readable by
//! the user alone. A request addresses one lease: the holder of a later one ignores it. The caller has
//! given up after [`TAKE_OVER_LIMIT`]: older requests are ignored.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use kode_base::file_moves;
use kode_base::folder_watch::FolderWatch;
use kode_base::host_name::host_name;
use kode_base::ids::{AskId, LeaseId};
use kode_base::private;

use crate::disk;

/// So long a writer may take to let go or to say why not.
pub const TAKE_OVER_LIMIT: Duration = Duration::from_secs(10);

/// The note of who writes, beside the journal.
const WRITER: &str = "writer.json";

/// The folder of requests and answers, beside the journal, so that records do not wake its watch.
const FOLDER: &str = "lease";

/// Maximum number of requests that are checked; no honest use reaches it.
const MAX_ASKS: usize = 32;

/// A note that is longer than this many bytes is not ours.
const MAX_NOTE: u64 = 16 * 1_024;

/// The name of the note of pending requests, in that folder.
const PENDING: &str = "pending.json";

/// The longest note with texts of a session, in bytes.
const MAX_TEXTS: u64 = 16 * 1_024 * 1_024;

/// When this process began, as well as it knows.
static STARTED: LazyLock<Timestamp> = LazyLock::new(Timestamp::now);

/// A process that writes a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionWriter {
    /// Names the time it writes: another one each time a session is opened.
    pub lease: LeaseId,
    /// Its process, on its host.
    pub pid: u32,
    /// The name of its host; empty where the system has none, and in older notes.
    #[serde(default)]
    pub host: String,
    /// When that process began to open sessions: tells it from a later one of the same number.
    pub started: Timestamp,
    /// The client it works for.
    pub client: String,
    /// Its version.
    pub version: String,
    /// Since when it writes.
    pub since: Timestamp,
}

/// Another process wants to write the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseRequest {
    /// Its id.
    pub id: AskId,
    /// Whom it is asked of; `None` where no note said who writes.
    #[serde(default)]
    pub lease: Option<LeaseId>,
    /// Whether what runs is to be cancelled.
    #[serde(default)]
    pub force: bool,
}

/// An ask as it is written down.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestNote {
    #[serde(flatten)]
    ask: LeaseRequest,
    /// When it was asked.
    at: Timestamp,
    /// The process that asks.
    pid: u32,
    /// When that process began to open sessions.
    started: Timestamp,
}

impl RequestNote {
    fn of(ask: LeaseRequest) -> Self {
        Self { ask, at: Timestamp::now(), pid: std::process::id(), started: *STARTED }
    }

    /// Whether the process that asks still waits for an answer.
    fn is_awaited(&self) -> bool {
        is_recent(self.at)
    }

    fn is_of_this_process(&self) -> bool {
        (self.pid, self.started) == (std::process::id(), *STARTED)
    }
}

/// The note of an answer that another process relays.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct AnswerNote<T> {
    /// The lease of the writer that gets it.
    lease: LeaseId,
    /// When it was relayed.
    at: Timestamp,
    answer: T,
}

/// Why a writer continues writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
pub enum LeaseRefusal {
    /// A turn runs, or files are being brought back.
    #[error("a turn runs there, or files are being brought back")]
    TurnRunning,
    /// Commands run in the background and would end.
    #[error("commands run in the background there")]
    CommandsRunning,
}

/// The notes of one session.
#[derive(Clone, Debug)]
pub struct Lease {
    journal: PathBuf,
    folder: PathBuf,
}

impl SessionWriter {
    /// This process, for a client of that name, from now on.
    pub fn this(client: &str) -> Self {
        Self {
            lease: LeaseId::generate(),
            pid: std::process::id(),
            host: host_name().to_owned(),
            started: *STARTED,
            client: client.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            since: Timestamp::now(),
        }
    }

    /// The name of its host, if that is another one than this. Its process id means nothing here then.
    pub fn other_host(&self) -> Option<&str> {
        Some(self.host.as_str()).filter(|host| !host.is_empty() && *host != host_name())
    }

    /// Names its process, and its host if that is another one than this.
    pub fn process(&self) -> String {
        let place = self.other_host().map_or_else(String::new, |host| format!(" on {host}"));
        format!("process {}{place}", self.pid)
    }
}

impl std::fmt::Display for SessionWriter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ({})", self.client, self.process())
    }
}

impl Lease {
    /// The notes beside a journal.
    pub fn beside(journal: &Path) -> Self {
        Self { journal: journal.to_path_buf(), folder: journal.with_file_name(FOLDER) }
    }

    /// Records the writer. Requests to an earlier writer are void; requests to the current one stay, unless
    /// this process asked it and has got what it wanted.
    pub fn announce(&self, writer: &SessionWriter) {
        let made = private::create_folders(&self.folder);
        for note in self.notes() {
            let asked: Option<RequestNote> = is_ask(&note).then(|| get(&note)).flatten();
            let concerns = |asked: &RequestNote| {
                asked.ask.lease.is_none() && asked.is_awaited() && !asked.is_of_this_process()
            };
            if !asked.is_some_and(|asked| concerns(&asked)) {
                remove(&note);
            }
        }
        if let Err(error) = made.and_then(|()| put(&self.note(), writer)) {
            // Only a note: a process that wants to write gets less information.
            tracing::warn!(%error, "the writer of the session could not be recorded");
        }
    }

    /// Takes the note away, if it is still this writer's.
    pub fn withdraw(&self, writer: &SessionWriter) {
        if self.writer().is_some_and(|noted| noted.lease == writer.lease) {
            remove(&self.note());
        }
    }

    /// The writer, as noted.
    pub fn writer(&self) -> Option<SessionWriter> {
        get(&self.note())
    }

    /// Whether no process writes. Call it rarely: a process that opens the journal at this moment is refused.
    pub fn is_free(&self) -> bool {
        matches!(disk::lock(&self.journal), Ok(Some(_)))
    }

    /// Asks the writer to let go.
    pub fn ask(&self, ask: &LeaseRequest) -> io::Result<()> {
        private::create_folders(&self.folder)?;
        put(&self.ask_note(&ask.id), &RequestNote::of(ask.clone()))
    }

    /// The awaited request. All other requests are removed: the caller has given up or ended.
    pub fn asks(&self) -> Vec<LeaseRequest> {
        let asks = self.notes().into_iter().filter(|path| is_ask(path)).take(MAX_ASKS);
        let awaited = asks.filter_map(|path| {
            // Where it lies says which it is: what it says itself may lead elsewhere.
            let id = AskId::from_external(path.file_stem()?.to_str()?);
            match get::<RequestNote>(&path).filter(RequestNote::is_awaited) {
                Some(note) => Some(LeaseRequest { id, ..note.ask }),
                None => {
                    remove(&path);
                    None
                }
            }
        });
        awaited.collect()
    }

    /// Notes the requests that wait for the user, for processes that follow the session.
    ///
    /// # Errors
    /// The error of the system.
    pub fn write_pending(&self, pending: &impl Serialize) -> io::Result<()> {
        put(&self.folder.join(PENDING), pending)
    }

    /// The last note of the writer about pending requests.
    pub fn pending<T: DeserializeOwned>(&self) -> Option<T> {
        get_at_most(&self.folder.join(PENDING), MAX_TEXTS)
    }

    /// Removes the note of pending requests.
    pub fn remove_pending(&self) {
        remove(&self.folder.join(PENDING));
    }

    /// Relays an answer of the user to a writer.
    ///
    /// # Errors
    /// The error of the system.
    pub fn relay_answer(&self, id: &AskId, to: &LeaseId, answer: &impl Serialize) -> io::Result<()> {
        private::create_folders(&self.folder)?;
        let note = AnswerNote { lease: to.clone(), at: Timestamp::now(), answer };
        put(&self.reply_note(id), &note)
    }

    /// Takes the answers that were relayed to a writer and are still awaited. Removes their notes.
    pub fn take_answers<T: DeserializeOwned>(&self, writer: &LeaseId) -> Vec<(AskId, T)> {
        let notes = self.notes().into_iter().filter(|path| reply_id(path).is_some()).take(MAX_ASKS);
        let taken = notes.filter_map(|path| {
            let note: Option<AnswerNote<T>> = get_at_most(&path, MAX_TEXTS);
            remove(&path);
            let note = note.filter(|note| note.lease == *writer && is_recent(note.at))?;
            Some((reply_id(&path)?, note.answer))
        });
        taken.collect()
    }

    /// Notes the outcome of a relayed answer.
    pub fn write_outcome(&self, id: &AskId, outcome: &impl Serialize) {
        if let Err(error) = put(&self.answer_note(id), outcome) {
            tracing::warn!(%error, "the outcome of a relayed answer could not be noted");
        }
    }

    /// The outcome of a relayed answer; `None` before the writer has noted it.
    pub fn outcome<T: DeserializeOwned>(&self, id: &AskId) -> Option<T> {
        get(&self.answer_note(id))
    }

    /// Removes the notes of a relayed answer and its outcome.
    pub fn remove_answer(&self, id: &AskId) {
        remove(&self.reply_note(id));
        remove(&self.answer_note(id));
    }

    /// Requests and answers, and the rest of earlier times.
    fn notes(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        // One that begins with a dot is being written.
        let whole = entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
        whole.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
    }

    /// Tells the caller that the writer continues.
    pub fn decline(&self, ask: &AskId, why: LeaseRefusal) {
        remove(&self.ask_note(ask));
        if let Err(error) = put(&self.answer_note(ask), &why) {
            tracing::warn!(%error, "an ask for the session could not be answered");
        }
    }

    /// Why the writer continues, if it has said so.
    pub fn declined(&self, ask: &AskId) -> Option<LeaseRefusal> {
        get(&self.answer_note(ask))
    }

    /// Forgets an ask and its answer.
    pub fn forget(&self, ask: &AskId) {
        remove(&self.ask_note(ask));
        remove(&self.answer_note(ask));
    }

    /// When something was last asked, answered or noted as pending; `None` before.
    #[must_use]
    pub fn changed_at(&self) -> Option<SystemTime> {
        self.folder.metadata().and_then(|found| found.modified()).ok()
    }

    /// Wakes when something is asked or answered, and with `journal` also when the journal grows or another note says who
    /// writes. `None` where the system cannot tell; a waiting caller polls anyway.
    pub fn watch(&self, wake: Arc<Notify>, journal: bool) -> Option<FolderWatch> {
        // That a file that was written is closed counts too: so ends a process that is killed.
        let watcher = FolderWatch::new(move |_| wake.notify_one()).and_then(|watcher| {
            watcher.watch(&self.folder)?;
            if let (true, Some(folder)) = (journal, self.journal.parent()) {
                watcher.watch(folder)?;
            }
            Ok(watcher)
        });
        watcher.inspect_err(|error| tracing::info!(%error, "a session's folder cannot be watched")).ok()
    }

    fn note(&self) -> PathBuf {
        self.journal.with_file_name(WRITER)
    }

    fn ask_note(&self, id: &AskId) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    fn answer_note(&self, id: &AskId) -> PathBuf {
        self.folder.join(format!("answer-{id}.json"))
    }

    fn reply_note(&self, id: &AskId) -> PathBuf {
        self.folder.join(format!("reply-{id}.json"))
    }
}

/// Whether a note is an ask.
fn is_ask(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("ask"))
}

/// The id of a relayed answer; `None` for other notes.
fn reply_id(path: &Path) -> Option<AskId> {
    let id = path.file_stem()?.to_str()?.strip_prefix("reply-")?;
    Some(AskId::from_external(id))
}

/// Whether a process still waits for the outcome of a note of that time. The clock may have been set meanwhile, so a future
/// time counts by its distance.
fn is_recent(at: Timestamp) -> bool {
    Timestamp::now().duration_since(at).unsigned_abs() <= TAKE_OVER_LIMIT
}

fn get<T: DeserializeOwned>(path: &Path) -> Option<T> {
    get_at_most(path, MAX_NOTE)
}

fn get_at_most<T: DeserializeOwned>(path: &Path, limit: u64) -> Option<T> {
    let size = fs::metadata(path).ok()?.len();
    (size <= limit).then_some(())?;
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Writes a note whole, readable by the user alone.
fn put(path: &Path, note: &impl Serialize) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".note-").tempfile_in(folder)?;
    file.write_all(&serde_json::to_vec(note)?)?;
    file_moves::persist(file, path)
}

fn remove(path: &Path) {
    match file_moves::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, path = %path.display(), "a note could not be taken away");
        }
        Ok(()) | Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_private_and_go_with_their_writer_alone() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal.jsonl");
        let lease = Lease::beside(&journal);
        let (first, second) = (SessionWriter::this("one"), SessionWriter::this("two"));
        lease.announce(&first);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(folder.path().join(WRITER)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        lease.announce(&second);
        lease.withdraw(&first);
        assert_eq!(lease.writer(), Some(second.clone()));
        lease.withdraw(&second);
        assert_eq!(lease.writer(), None);
    }

    #[test]
    fn the_process_of_another_host_is_named_with_its_host() {
        let here = SessionWriter { pid: 7, ..SessionWriter::this("Neovim") };
        assert_eq!(here.to_string(), "Neovim (process 7)");
        let there = SessionWriter { host: "devbox".to_owned(), ..here.clone() };
        assert_eq!(
            (there.to_string().as_str(), there.other_host()),
            ("Neovim (process 7 on devbox)", Some("devbox"))
        );
        let mut older = serde_json::to_value(&here).unwrap();
        older.as_object_mut().unwrap().remove("host");
        let older: SessionWriter = serde_json::from_value(older).unwrap();
        assert_eq!((older.to_string(), older.other_host()), (here.to_string(), None));
    }

    #[test]
    fn an_ask_is_found_and_its_answer_goes_to_whoever_asked() {
        let folder = tempfile::tempdir().unwrap();
        let lease = Lease::beside(&folder.path().join("journal.jsonl"));
        let ask = || LeaseRequest { id: AskId::generate(), lease: Some(LeaseId::generate()), force: true };
        let (one, two) = (ask(), ask());
        lease.ask(&one).unwrap();
        lease.ask(&two).unwrap();
        lease.decline(&one.id, LeaseRefusal::TurnRunning);
        assert_eq!(lease.asks(), std::slice::from_ref(&two));
        assert_eq!(
            (lease.declined(&one.id), lease.declined(&two.id)),
            (Some(LeaseRefusal::TurnRunning), None)
        );
        lease.forget(&one.id);
        lease.forget(&two.id);
        assert_eq!((lease.asks(), lease.declined(&one.id)), (vec![], None));
    }

    /// Asks as another process would have this many seconds ago.
    fn asked(lease: &Lease, of: Option<&SessionWriter>, seconds: i64) -> AskId {
        let id = AskId::generate();
        let ask = LeaseRequest { id: id.clone(), lease: of.map(|writer| writer.lease.clone()), force: false };
        let at = Timestamp::now() - jiff::SignedDuration::from_secs(seconds);
        put(&lease.ask_note(&id), &RequestNote { at, pid: 0, ..RequestNote::of(ask) }).unwrap();
        id
    }

    fn ids(lease: &Lease) -> Vec<AskId> {
        lease.asks().into_iter().map(|ask| ask.id).collect()
    }

    #[test]
    fn an_ask_that_nobody_waits_for_is_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let lease = Lease::beside(&folder.path().join("journal.jsonl"));
        private::create_folders(&lease.folder).unwrap();
        let limit = i64::try_from(TAKE_OVER_LIMIT.as_secs()).unwrap();
        let (old, future) = (asked(&lease, None, limit + 1), asked(&lease, None, -limit - 60));
        let fresh = asked(&lease, None, 0);
        assert_eq!(ids(&lease), std::slice::from_ref(&fresh));
        let stands = [&old, &future, &fresh].map(|id| lease.ask_note(id).exists());
        assert_eq!(stands, [false, false, true]);
    }

    #[test]
    fn a_new_writer_hears_what_was_asked_of_whoever_writes_and_not_what_it_asked_itself() {
        let folder = tempfile::tempdir().unwrap();
        let lease = Lease::beside(&folder.path().join("journal.jsonl"));
        private::create_folders(&lease.folder).unwrap();
        let (before, now) = (SessionWriter::this("one"), SessionWriter::this("two"));
        let open = asked(&lease, None, 0);
        asked(&lease, Some(&before), 0);
        lease.ask(&LeaseRequest { id: AskId::generate(), lease: None, force: true }).unwrap();
        lease.announce(&now);
        assert_eq!(ids(&lease), [open]);
    }

    #[test]
    fn a_relayed_answer_reaches_one_writer_once_and_gets_its_outcome() {
        let folder = tempfile::tempdir().unwrap();
        let lease = Lease::beside(&folder.path().join("journal.jsonl"));
        let (one, two) = (SessionWriter::this("one"), SessionWriter::this("two"));
        lease.announce(&one);
        let (id, other) = (AskId::generate(), AskId::generate());
        lease.relay_answer(&id, &one.lease, &"yes").unwrap();
        lease.relay_answer(&other, &two.lease, &"no").unwrap();
        assert_eq!(lease.take_answers::<String>(&one.lease), [(id.clone(), "yes".to_owned())]);
        assert!(lease.take_answers::<String>(&one.lease).is_empty() && lease.asks().is_empty());
        assert_eq!(lease.outcome::<String>(&id), None);
        lease.write_outcome(&id, &"taken");
        assert_eq!(lease.outcome::<String>(&id), Some("taken".to_owned()));
        lease.remove_answer(&id);
        assert_eq!(lease.outcome::<String>(&id), None);
    }

    #[test]
    fn a_long_note_of_pending_requests_is_read_until_the_writer_changes() {
        let folder = tempfile::tempdir().unwrap();
        let lease = Lease::beside(&folder.path().join("journal.jsonl"));
        lease.announce(&SessionWriter::this("one"));
        let long = "x".repeat(100_000);
        lease.write_pending(&long).unwrap();
        assert_eq!(lease.pending::<String>(), Some(long));
        lease.announce(&SessionWriter::this("two"));
        assert_eq!(lease.pending::<String>(), None);
    }

    #[test]
    fn an_ask_is_named_by_where_it_lies() {
        let folder = tempfile::tempdir().unwrap();
        let lease = Lease::beside(&folder.path().join("journal.jsonl"));
        private::create_folders(&lease.folder).unwrap();
        let victim = folder.path().join("victim.json");
        fs::write(&victim, "kept").unwrap();
        let ask = LeaseRequest { id: AskId::from_external("../victim"), lease: None, force: false };
        put(&lease.folder.join("ask_1.json"), &RequestNote::of(ask)).unwrap();
        let asks = lease.asks();
        lease.decline(&asks[0].id, LeaseRefusal::TurnRunning);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
        assert!(lease.declined(&AskId::from_external("ask_1")).is_some());
    }
}
