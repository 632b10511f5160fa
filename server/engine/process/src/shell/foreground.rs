//! Commands that a call waits for, and that can be moved to the background while they run.
//!
//! Rule: a moved command is the same process with the whole of its output. Its end and a move exclude each other: whichever
//! comes first counts. One that no caller waits for any more is ended.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio_util::sync::CancellationToken;

use super::output::{OutputBudget, UnreadOutput};
use super::process::RunObserver;
use super::tasks::{ShellTask, StartError, TaskReport, Tasks};
use super::{CommandOutcome, ShellError};
use kode_base::ids::CallId;

/// The outcome of waiting for a command.
#[derive(Debug)]
pub enum ForegroundEnd {
    /// It has ended.
    Ended(Box<CommandOutcome>),
    /// It runs on in the background.
    Moved(Arc<ShellTask>),
}

/// Why a command was not moved to the background.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// The call runs no command that can be moved: none was started, or it has ended, or it is being ended.
    #[error("no command of the call `{0}` runs in the foreground")]
    NotRunning(CallId),
    /// There is no place for it in the background.
    #[error(transparent)]
    NoPlace(StartError),
}

/// A command that a call waits for.
pub(super) struct ForegroundRun {
    call: CallId,
    title: String,
    started: Instant,
    /// Ends the command, wherever it runs by then.
    stop: CancellationToken,
    /// Lifts the limit in time.
    lifted: CancellationToken,
    state: Mutex<ForegroundState>,
}

/// The receiver of the output and the end of a command.
enum ForegroundState {
    /// The call that waits for it.
    Foreground(Box<ForegroundCaller>),
    /// The background command it has become, with its place among those of the server.
    Background(Arc<ShellTask>, OwnedSemaphorePermit),
    /// It has ended.
    Over,
}

struct ForegroundCaller {
    unread: UnreadOutput,
    on_output: Box<dyn FnMut(&str) + Send>,
    ended: oneshot::Sender<Result<ForegroundEnd, ShellError>>,
}

/// Takes down what a command writes that may be moved.
pub(super) struct ForegroundRecorder(Arc<ForegroundRun>);

impl RunObserver for ForegroundRecorder {
    fn started(&mut self) {}

    fn output(&mut self, text: &str) {
        match &mut *self.0.state() {
            ForegroundState::Foreground(caller) => {
                caller.unread.push(text);
                (caller.on_output)(text);
            }
            ForegroundState::Background(task, _) => task.write(text),
            ForegroundState::Over => {}
        }
    }
}

/// Ends a command that no caller waits for any more; a moved one runs on.
struct CallerGuard(Arc<ForegroundRun>);

impl Drop for CallerGuard {
    fn drop(&mut self) {
        self.0.stop_if_waited_for();
    }
}

impl ForegroundRun {
    fn state(&self) -> MutexGuard<'_, ForegroundState> {
        self.state.lock()
    }

    /// Begins to end it, unless it was moved.
    fn stop_if_waited_for(&self) {
        if let ForegroundState::Foreground(_) = &*self.state() {
            self.stop.cancel();
        }
    }
}

impl fmt::Debug for ForegroundRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ForegroundRun").field(&self.call).finish()
    }
}

/// The names of a command, and how much of its output is kept in memory.
pub(super) struct ForegroundSpec {
    pub(super) call: CallId,
    pub(super) title: String,
    pub(super) budget: OutputBudget,
}

impl Tasks {
    /// Runs a command to its end or until it is moved. `execute` gets its observer, the token that ends it, and the token that
    /// lifts its limit in time.
    pub(super) async fn run_in_foreground<F, R>(
        self: &Arc<Self>,
        spec: ForegroundSpec,
        on_output: impl FnMut(&str) + Send + 'static,
        cancel: &CancellationToken,
        execute: F,
    ) -> Result<ForegroundEnd, ShellError>
    where
        F: FnOnce(ForegroundRecorder, CancellationToken, CancellationToken) -> R + Send + 'static,
        R: Future<Output = Result<CommandOutcome, ShellError>> + Send + 'static,
    {
        let ForegroundSpec { call, title, budget } = spec;
        let spill = self.outputs().map(|outputs| outputs.spill(&call));
        let (sender, mut ended) = oneshot::channel();
        let unread = UnreadOutput::spilling_when_long(budget, spill);
        let caller = ForegroundCaller { unread, on_output: Box::new(on_output), ended: sender };
        let (stop, lifted) = (self.cancel().child_token(), CancellationToken::new());
        let (started, state) = (Instant::now(), Mutex::new(ForegroundState::Foreground(Box::new(caller))));
        let run = Arc::new(ForegroundRun { call, title, started, stop, lifted, state });
        self.known().foreground.push(Arc::clone(&run));
        let guard = CallerGuard(Arc::clone(&run));
        let tasks = Arc::clone(self);
        self.tracker().spawn(async move {
            let recorder = ForegroundRecorder(Arc::clone(&run));
            let executed = execute(recorder, run.stop.clone(), run.lifted.clone());
            let outcome = AssertUnwindSafe(executed).catch_unwind().await;
            tasks.end_run(&run, outcome.unwrap_or_else(|_| Err(fault(&run))));
        });
        let end = tokio::select! {
            biased;
            end = &mut ended => end,
            () = cancel.cancelled() => {
                guard.0.stop_if_waited_for();
                ended.await
            }
        };
        end.unwrap_or(Err(ShellError::Fault))
    }

    /// Moves the command that a call waits for to the background, and gives what it is there. Its output until now is the
    /// unread output of the background command.
    ///
    /// # Errors
    /// [`MoveError`]; then nothing has changed.
    pub fn move_to_background(&self, call: &CallId) -> Result<Arc<ShellTask>, MoveError> {
        let not_running = || MoveError::NotRunning(call.clone());
        let mut known = self.known();
        let run = known.foreground.iter().find(|run| run.call == *call).cloned().ok_or_else(not_running)?;
        let place = self.place(&known).map_err(MoveError::NoPlace)?;
        let mut state = run.state();
        if run.stop.is_cancelled() || !matches!(&*state, ForegroundState::Foreground(_)) {
            return Err(not_running());
        }
        let ForegroundState::Foreground(caller) = std::mem::replace(&mut *state, ForegroundState::Over)
        else {
            return Err(not_running());
        };
        let ForegroundCaller { mut unread, on_output: _, ended } = *caller;
        unread.spill_all();
        let task = self.moved(&mut known, &run, unread);
        drop(known);
        *state = ForegroundState::Background(Arc::clone(&task), place);
        run.lifted.cancel();
        // It ends only after this is released, so that its beginning is reported before its end.
        self.report(TaskReport::started(&task));
        drop(state);
        // The call may have been given up in this very moment; the command runs on all the same.
        drop(ended.send(Ok(ForegroundEnd::Moved(Arc::clone(&task)))));
        Ok(task)
    }

    fn moved(
        &self,
        known: &mut super::tasks::TaskTable,
        run: &ForegroundRun,
        unread: UnreadOutput,
    ) -> Arc<ShellTask> {
        let (call, title) = (run.call.clone(), run.title.clone());
        let task = Arc::new(known.make((call, title), (run.started, run.stop.clone()), unread, None));
        known.add(Arc::clone(&task));
        task
    }

    /// Enters how a command ended, where it belongs by now.
    fn end_run(&self, run: &Arc<ForegroundRun>, outcome: Result<CommandOutcome, ShellError>) {
        let state = std::mem::replace(&mut *run.state(), ForegroundState::Over);
        self.known().foreground.retain(|known| !Arc::ptr_eq(known, run));
        match state {
            ForegroundState::Foreground(caller) => {
                let ForegroundCaller { mut unread, on_output: _, ended } = *caller;
                let outcome = outcome.map(|outcome| CommandOutcome { output: unread.take(), ..outcome });
                // The call may have been given up.
                drop(ended.send(outcome.map(|outcome| ForegroundEnd::Ended(Box::new(outcome)))));
            }
            ForegroundState::Background(task, place) => {
                drop(place);
                self.finish(&task, outcome);
            }
            ForegroundState::Over => {}
        }
    }
}

fn fault(run: &ForegroundRun) -> ShellError {
    tracing::error!(call = %run.call, "a command broke off because of a fault");
    ShellError::Fault
}
