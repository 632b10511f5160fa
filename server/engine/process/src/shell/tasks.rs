//! Background commands: started once, checked and ended by their ids, and gone with their session.
//!
//! Rule: a background command is in the books from its start to its end; its output is returned
//! once to those who look and kept as a whole in a file. None outlives its session, and there are never too many.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::foreground::ForegroundRun;
use super::output::{OutputBudget, UnreadOutput};
use super::process::RunObserver;
use super::spill::Outputs;
use super::{CommandOutcome, ShellError};
use crate::outcome::{CapturedOutput, Exit};
use crate::sandbox::GuardReport;
use kode_base::ids::{CallId, TaskId};

/// The most background commands of a session that run at once.
pub const MAX_TASKS: usize = 4;
/// The most background commands of a server that run at once.
pub const MAX_TASKS_OVERALL: usize = 16;
/// Maximum number of ended ones that can still be read.
const ENDED_KEPT: usize = 20;

/// How a background command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum TaskEnd {
    /// By itself, with this exit code.
    Exited {
        /// The exit code.
        code: i32,
    },
    /// By a signal that did not come from us.
    Signaled {
        /// The signal's number.
        signal: i32,
    },
    /// It was ended by its id.
    Killed,
    /// The session or the server ended, and it with them.
    WithSession,
    /// It could not be run to its end.
    Failed {
        /// Why.
        reason: String,
    },
}

impl fmt::Display for TaskEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { code } => write!(formatter, "ended with exit code {code}"),
            Self::Signaled { signal } => write!(formatter, "was ended by signal {signal}"),
            Self::Killed => formatter.write_str("was killed"),
            Self::WithSession => formatter.write_str("ended when the session or the server did"),
            Self::Failed { reason } => write!(formatter, "failed: {reason}"),
        }
    }
}

/// The state of a background command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// It runs.
    Running,
    /// It has ended.
    Ended(TaskEnd),
}

/// The result of reading a background command.
#[derive(Clone, Debug)]
pub struct TaskView {
    /// Its output since the last read.
    pub output: CapturedOutput,
    /// Its state.
    pub state: TaskState,
    /// How long it has run.
    pub duration: Duration,
    /// The outcome of guarded files, once it has ended.
    pub guarded: GuardReport,
}

/// Events about background commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskReport {
    /// One was started.
    Started {
        /// Its id.
        task: TaskId,
        /// The call that started it.
        call: CallId,
        /// Its command line in short.
        title: String,
    },
    /// One has ended.
    Ended {
        /// Its id.
        task: TaskId,
        /// How.
        end: TaskEnd,
    },
    /// The end of one was seen by a reader.
    Seen {
        /// Its id.
        task: TaskId,
    },
}

impl TaskReport {
    /// That this one was started.
    pub(super) fn started(ShellTask { id, call, title, .. }: &ShellTask) -> Self {
        Self::Started { task: id.clone(), call: call.clone(), title: title.clone() }
    }
}

/// Why a background command was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It could not be.
    #[error(transparent)]
    Shell(#[from] ShellError),
    /// The session has enough of them.
    #[error("{MAX_TASKS} background commands of this session run already, which is the most: {}", running.join(", "))]
    TooMany {
        /// The running ones, by their names for people.
        running: Vec<String>,
    },
    /// The server has enough of them.
    #[error("{MAX_TASKS_OVERALL} background commands run already in all sessions, which is the most; of this session: {}", if running.is_empty() { "none".to_owned() } else { running.join(", ") })]
    TooManyOverall {
        /// The running ones of this session, by their names for people.
        running: Vec<String>,
    },
    /// The session is closed.
    #[error("the session is closed")]
    Closed,
}

type TaskObserver = Arc<dyn Fn(TaskReport) + Send + Sync>;

/// The background commands of a session.
pub struct Tasks {
    outputs: Option<Arc<Outputs>>,
    /// Places for the background commands of all sessions.
    overall: Arc<Semaphore>,
    cancel: CancellationToken,
    tracker: TaskTracker,
    observer: Mutex<Option<TaskObserver>>,
    known: Mutex<TaskTable>,
}

#[derive(Default)]
pub(super) struct TaskTable {
    /// How many were ever started.
    started: usize,
    tasks: Vec<Arc<ShellTask>>,
    /// The commands that calls wait for.
    pub(super) foreground: Vec<Arc<ForegroundRun>>,
}

/// A background command.
pub struct ShellTask {
    id: TaskId,
    call: CallId,
    title: String,
    started: Instant,
    cancel: CancellationToken,
    inner: Mutex<TaskProgress>,
    changed: watch::Sender<()>,
}

struct TaskProgress {
    unread: UnreadOutput,
    end: Option<TaskEnding>,
    is_killed: bool,
    is_seen: bool,
    /// Tells the caller whether it could be started; nothing once that is known.
    starting: Option<oneshot::Sender<Result<(), ShellError>>>,
}

struct TaskEnding {
    end: TaskEnd,
    guarded: GuardReport,
    duration: Duration,
}

/// Takes down what a background command writes.
pub(super) struct TaskRecorder {
    tasks: Arc<Tasks>,
    task: Arc<ShellTask>,
}

impl RunObserver for TaskRecorder {
    fn started(&mut self) {
        let Some(starting) = self.task.inner().starting.take() else { return };
        self.tasks.report(TaskReport::started(&self.task));
        // No caller waits for it any more when the call was cancelled; it runs all the same.
        drop(starting.send(Ok(())));
    }

    fn output(&mut self, text: &str) {
        self.task.write(text);
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tasks").field("running", &self.running().len()).finish_non_exhaustive()
    }
}

impl Default for Tasks {
    /// No background commands yet, and no place for what they write.
    fn default() -> Self {
        Self::new(None, Arc::new(Semaphore::new(MAX_TASKS_OVERALL)))
    }
}

impl Tasks {
    /// No background commands yet. `overall` has a place for each that runs in the whole server.
    #[must_use]
    pub fn new(outputs: Option<Arc<Outputs>>, overall: Arc<Semaphore>) -> Self {
        Self {
            outputs,
            overall,
            cancel: CancellationToken::new(),
            tracker: TaskTracker::new(),
            observer: Mutex::default(),
            known: Mutex::default(),
        }
    }

    /// Where the whole output of commands is kept, if it is.
    #[must_use]
    pub fn outputs(&self) -> Option<&Arc<Outputs>> {
        self.outputs.as_ref()
    }

    /// Continues counting after those that an earlier process has started.
    pub fn count_from(&self, started: usize) {
        self.known().started = started;
    }

    /// Has everything that happens told to `observer`, in whichever thread it happens.
    pub fn observe(&self, observer: impl Fn(TaskReport) + Send + Sync + 'static) {
        *self.observer.lock() = Some(Arc::new(observer));
    }

    /// The running ones.
    #[must_use]
    pub fn running(&self) -> Vec<Arc<ShellTask>> {
        self.known().running().cloned().collect()
    }

    /// The one of that id, as long as it is known.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<Arc<ShellTask>> {
        self.known().tasks.iter().find(|task| task.id.as_str() == id).cloned()
    }

    /// Gives what one of them wrote since the last look, and what it is doing.
    #[must_use]
    pub fn look(&self, task: &ShellTask) -> TaskView {
        let mut inner = task.inner();
        let output = inner.unread.take();
        let Some(TaskEnding { end, guarded, duration }) = &inner.end else {
            let duration = task.started.elapsed();
            return TaskView { output, state: TaskState::Running, duration, guarded: GuardReport::default() };
        };
        let state = TaskState::Ended(end.clone());
        let seen = TaskView { output, state, duration: *duration, guarded: guarded.clone() };
        let is_new = !std::mem::replace(&mut inner.is_seen, true);
        drop(inner);
        if is_new {
            self.report(TaskReport::Seen { task: task.id.clone() });
        }
        seen
    }

    /// Begins to end all of them; no other is started.
    pub fn close(&self) {
        let _none_is_started_meanwhile = self.known();
        self.cancel.cancel();
        self.tracker.close();
    }

    /// Waits until all are gone after [`Tasks::close`].
    pub async fn closed(&self) {
        self.tracker.wait().await;
    }

    pub(super) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    pub(super) fn tracker(&self) -> &TaskTracker {
        &self.tracker
    }

    /// A place for one more background command.
    pub(super) fn place(&self, known: &TaskTable) -> Result<OwnedSemaphorePermit, StartError> {
        if self.cancel.is_cancelled() {
            return Err(StartError::Closed);
        }
        let running: Vec<_> = known.running().map(|task| task.to_string()).collect();
        if running.len() >= MAX_TASKS {
            return Err(StartError::TooMany { running });
        }
        Arc::clone(&self.overall).try_acquire_owned().map_err(|_| StartError::TooManyOverall { running })
    }

    /// Starts one: `execute` runs it to its end.
    pub(super) async fn start<F, R>(
        self: &Arc<Self>,
        (call, budget): (CallId, OutputBudget),
        title: String,
        execute: F,
    ) -> Result<Arc<ShellTask>, StartError>
    where
        F: FnOnce(TaskRecorder, CancellationToken) -> R + Send + 'static,
        R: Future<Output = Result<CommandOutcome, ShellError>> + Send + 'static,
    {
        let (sender, started) = oneshot::channel();
        let task = {
            let mut known = self.known();
            let place = self.place(&known)?;
            let spill = self.outputs.as_ref().map(|outputs| outputs.spill(&call));
            let unread = UnreadOutput::new(budget, spill);
            let since = (Instant::now(), self.cancel.child_token());
            let task = Arc::new(known.make((call, title), since, unread, Some(sender)));
            known.add(Arc::clone(&task));
            let (tasks, running) = (Arc::clone(self), Arc::clone(&task));
            self.tracker.spawn(async move {
                let recorder = TaskRecorder { tasks: Arc::clone(&tasks), task: Arc::clone(&running) };
                let executed = execute(recorder, running.cancel.clone());
                let outcome = AssertUnwindSafe(executed).catch_unwind().await;
                drop(place);
                tasks.finish(&running, outcome.unwrap_or_else(|_| Err(fault(&running))));
            });
            task
        };
        match started.await {
            Ok(Ok(())) => Ok(task),
            Ok(Err(error)) => Err(StartError::Shell(error)),
            Err(_) => Err(StartError::Shell(ShellError::Fault)),
        }
    }

    /// Enters how one ended; one that never ran leaves nothing.
    pub(super) fn finish(&self, task: &Arc<ShellTask>, outcome: Result<CommandOutcome, ShellError>) {
        let mut inner = task.inner();
        if let Some(starting) = inner.starting.take() {
            drop(inner);
            self.known().tasks.retain(|known| !Arc::ptr_eq(known, task));
            let never_ran = outcome.err().unwrap_or(ShellError::Fault);
            drop(starting.send(Err(never_ran)));
            return;
        }
        let (end, guarded) = match outcome {
            Ok(outcome) => (end_of(outcome.exit, inner.is_killed), outcome.guarded),
            Err(error) => (TaskEnd::Failed { reason: error.to_string() }, GuardReport::default()),
        };
        // The file gets the end of the output also if it is never read.
        inner.unread.hand_over();
        inner.end = Some(TaskEnding { end: end.clone(), guarded, duration: task.started.elapsed() });
        drop(inner);
        self.report(TaskReport::Ended { task: task.id.clone(), end });
        task.changed.send_replace(());
    }

    pub(super) fn report(&self, report: TaskReport) {
        let observer = self.observer.lock().clone();
        if let Some(observer) = observer {
            observer(report);
        }
    }

    pub(super) fn known(&self) -> MutexGuard<'_, TaskTable> {
        self.known.lock()
    }
}

impl TaskTable {
    fn running(&self) -> impl Iterator<Item = &Arc<ShellTask>> {
        self.tasks.iter().filter(|task| !task.has_ended())
    }

    /// Makes one with the next number, which runs since then and is ended by that token. `starting` gets whether it could
    /// be started, where that is not known yet.
    pub(super) fn make(
        &mut self,
        (call, title): (CallId, String),
        (started, cancel): (Instant, CancellationToken),
        unread: UnreadOutput,
        starting: Option<oneshot::Sender<Result<(), ShellError>>>,
    ) -> ShellTask {
        self.started += 1;
        let inner = TaskProgress { unread, end: None, is_killed: false, is_seen: false, starting };
        let (id, inner) = (TaskId::numbered(self.started), Mutex::new(inner));
        ShellTask { id, call, title, started, cancel, inner, changed: watch::Sender::new(()) }
    }

    /// Adds one, and forgets the oldest of those that have ended when they are too many.
    pub(super) fn add(&mut self, task: Arc<ShellTask>) {
        self.tasks.push(task);
        let ended = self.tasks.iter().filter(|task| task.has_ended()).count();
        let mut surplus = ended.saturating_sub(ENDED_KEPT);
        self.tasks.retain(|task| {
            let goes = surplus > 0 && task.has_ended();
            surplus -= usize::from(goes);
            !goes
        });
    }
}

impl ShellTask {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &TaskId {
        &self.id
    }

    /// The call that started it, under which its output is kept.
    #[must_use]
    pub fn call(&self) -> &CallId {
        &self.call
    }

    /// Its command line in short.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Takes down what it has written.
    pub(super) fn write(&self, text: &str) {
        self.inner().unread.push(text);
        self.changed.send_replace(());
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.inner().end.is_some()
    }

    /// Waits until it has written something that is unread, or has ended.
    pub async fn news(&self) {
        self.until(|inner| inner.end.is_some() || !inner.unread.is_empty()).await;
    }

    /// Begins to end it with everything it has started. False when it had ended before.
    pub fn begin_kill(&self) -> bool {
        {
            let mut inner = self.inner();
            if inner.end.is_some() {
                return false;
            }
            inner.is_killed = true;
        }
        self.cancel.cancel();
        true
    }

    /// Ends it as [`ShellTask::begin_kill`] does, and waits until it is gone.
    pub async fn kill(&self) -> bool {
        let was_running = self.begin_kill();
        self.until_ended().await;
        was_running
    }

    /// Waits until it has ended.
    pub async fn until_ended(&self) {
        self.until(|inner| inner.end.is_some()).await;
    }

    /// Sees to it that the file has all that it wrote until now.
    pub fn flush(&self) {
        self.inner().unread.hand_over();
    }

    async fn until(&self, mut is_so: impl FnMut(&TaskProgress) -> bool) {
        let mut changes = self.changed.subscribe();
        loop {
            changes.borrow_and_update();
            if is_so(&self.inner()) {
                return;
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn inner(&self) -> MutexGuard<'_, TaskProgress> {
        self.inner.lock()
    }
}

impl fmt::Debug for ShellTask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Task").field(&self.id).finish()
    }
}

impl fmt::Display for ShellTask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} (`{}`)", self.id, self.title)
    }
}

fn end_of(exit: Exit, is_killed: bool) -> TaskEnd {
    match exit {
        Exit::Code(code) => TaskEnd::Exited { code },
        Exit::Signal(signal) => TaskEnd::Signaled { signal },
        Exit::TimedOut | Exit::Cancelled if is_killed => TaskEnd::Killed,
        Exit::TimedOut | Exit::Cancelled => TaskEnd::WithSession,
    }
}

fn fault(task: &ShellTask) -> ShellError {
    tracing::error!(task = %task.id, "a background command broke off because of a fault");
    ShellError::Fault
}
