//! Blocking work for the runtime's blocking threads.
//!
//! Rule: code that reads or writes the disk from an async function goes through [`blocking`].

#![expect(clippy::disallowed_methods, reason = "its work is boxed already, and has one type")]

use std::any::Any;
use std::panic::resume_unwind;
use std::pin::Pin;

/// A value of any type.
type AnyValue = Box<dyn Any + Send>;

/// Runs blocking work off the async threads. A panic in the work continues in the caller.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let value = run(Box::new(move || -> AnyValue { Box::new(work()) })).await;
    match value.downcast() {
        Ok(value) => *value,
        Err(_) => unreachable!("the work returns a `T`"),
    }
}

/// Runs work that returns a value of any type. A task of the runtime takes 2,000 lines of LLVM IR for each type of work and
/// value, in each crate that awaits it: with these types it is compiled once.
fn run(work: Box<dyn FnOnce() -> AnyValue + Send>) -> Pin<Box<dyn Future<Output = AnyValue> + Send>> {
    Box::pin(async move {
        match tokio::task::spawn_blocking(work).await {
            Ok(value) => value,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime is shutting down: no task is left to answer.
                Err(_) => std::future::pending().await,
            },
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_caller_gets_the_value_or_the_panic_of_the_work() {
        assert_eq!(blocking(|| vec![1, 2]).await, [1, 2]);
        let failed = tokio::spawn(blocking(|| -> u8 { panic!("no disk") })).await.unwrap_err();
        assert_eq!(failed.into_panic().downcast_ref(), Some(&"no disk"));
    }
}
