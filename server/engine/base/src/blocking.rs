//! Blocking work for the runtime's blocking threads.
//!
//! Rule: code that reads or writes the disk from an async function goes through [`blocking`].

/// Runs blocking work off the async threads. A panic in the work goes on in the caller.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down: there is nobody left to answer.
            Err(_) => std::future::pending().await,
        },
    }
}
