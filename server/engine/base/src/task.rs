//! Tasks of the runtime.
//!
//! Rule: code of ours starts its tasks here. A task of the runtime takes 2,000 lines of LLVM IR for each type of future; behind a
//! box it is compiled once for each type of value.

#![expect(clippy::disallowed_methods, reason = "it starts the tasks for all others")]

use std::pin::Pin;

use tokio::task::JoinHandle;

/// Starts a task on the current runtime, and panics outside of a runtime.
pub fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(boxed(future))
}

/// Starts blocking work on a thread for it, and panics where there is no current runtime.
pub fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let work: Box<dyn FnOnce() -> T + Send> = Box::new(work);
    tokio::task::spawn_blocking(work)
}

fn boxed<T>(future: impl Future<Output = T> + Send + 'static) -> Pin<Box<dyn Future<Output = T> + Send>> {
    Box::pin(future)
}
