//! The runtime of a process that serves a client on standard input and output.
//!
//! Rule: every such process keeps a log, ends in order when the system asks for it, and removes what killed ones left.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use kode_engine::base::scratch;

use crate::lifecycle::Lifecycle;
use crate::logging;
use crate::signals::EndSignals;

/// The work of the process's own tasks is short; more threads would only cost start-up time.
const WORKER_THREADS: usize = 2;

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
    // A read of standard input that is under way cannot be cancelled and must not keep the process alive.
    runtime.shutdown_timeout(Duration::ZERO);
    ended.context("standard input and output cannot be opened")
}

/// Ends the process in order when the system asks for it. Must be called in a runtime.
pub(crate) fn end_on_signal(lifecycle: &Arc<Lifecycle>) {
    match EndSignals::listen() {
        Ok(mut signals) => {
            let lifecycle = Arc::clone(lifecycle);
            tokio::spawn(async move {
                signals.next().await;
                lifecycle.stop();
            });
        }
        Err(error) => tracing::warn!(%error, "signals end this process at once"),
    }
}
