//! The runtime of a process that serves a client on standard input and output.
//!
//! Rule: every such process keeps a log, ends in order when the system asks for it, and removes what killed ones left.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use kode_engine::base::scratch;
use kode_engine::base::task;
use tokio::runtime::Runtime;

use crate::lifecycle::Lifecycle;
use crate::logging;
use crate::signals::EndSignals;

/// The work of the process's own tasks is short; more threads would only cost start-up time.
const WORKER_THREADS: usize = 2;

/// How long the end of the process waits for the threads of its runtime. A read of standard input or of a terminal that is under
/// way cannot be cancelled and must not keep the process alive. Windows ends threads wherever they are, with the locks that they
/// hold, and the end of the process may wait for such a lock for ever: threads that have work to finish get the time for it.
const END_OF_THREADS: Duration = Duration::from_millis(if cfg!(windows) { 100 } else { 0 });

/// Serves until the client leaves.
///
/// # Errors
/// When the runtime cannot start, or `serve` cannot open a standard stream.
pub(crate) fn run<T>(serve: impl Future<Output = io::Result<T>>) -> anyhow::Result<T> {
    let _log = logging::init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()
        .context("the runtime cannot start")?;
    runtime.spawn_blocking(scratch::sweep);
    let ended = runtime.block_on(serve);
    end(runtime);
    ended.context("standard input and output cannot be opened")
}

/// Ends a runtime before its process ends.
pub(crate) fn end(runtime: Runtime) {
    runtime.shutdown_timeout(END_OF_THREADS);
}

/// Ends the process in order when the system asks for it. Must be called in a runtime.
pub(crate) fn end_on_signal(lifecycle: &Arc<Lifecycle>) {
    match EndSignals::listen() {
        Ok(mut signals) => {
            let lifecycle = Arc::clone(lifecycle);
            task::spawn(async move {
                signals.next().await;
                lifecycle.stop();
            });
        }
        Err(error) => tracing::warn!(%error, "signals end this process at once"),
    }
}
