//! When servers start: not while a prompt is on its way to the model.
//!
//! Rule: starting programs take the machine's cores from a prompt that waits for an answer, and the first request goes out
//! without their tools anyway; so they start behind it. They are held up for a bounded time, and not at all once a caller
//! waits for one.

use std::time::Duration;

use kode_base::task;
use tokio::sync::watch;

/// No server is held up longer, however long a prompt is under way.
const MAX_HOLD: Duration = Duration::from_secs(2);

/// How long after a request was handed over it counts as sent.
const SENT_AFTER: Duration = Duration::from_millis(100);

/// The prompts that are on their way.
#[derive(Debug, Default)]
pub(super) struct PromptCounter {
    count: watch::Sender<usize>,
}

/// A prompt on its way to the model, for as long as this is kept.
#[derive(Debug)]
pub(crate) struct PromptGuard {
    count: watch::Sender<usize>,
}

impl PromptCounter {
    /// One more prompt is on its way.
    pub(super) fn begin(&self) -> PromptGuard {
        self.count.send_modify(|count| *count += 1);
        PromptGuard { count: self.count.clone() }
    }

    /// Returns when no prompt is on its way, or has been for long enough.
    pub(super) async fn over(&self) {
        let mut count = self.count.subscribe();
        let over = count.wait_for(|count| *count == 0);
        // Both ends mean the same: the waiting task continues.
        let _ = tokio::time::timeout(MAX_HOLD, over).await;
    }
}

impl PromptGuard {
    /// The request has been handed over: it is soon on its way.
    pub(crate) fn handed_over(self) {
        task::spawn(async move {
            tokio::time::sleep(SENT_AFTER).await;
            drop(self);
        });
    }
}

impl Drop for PromptGuard {
    fn drop(&mut self) {
        self.count.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    async fn waited(rushes: &PromptCounter) -> Duration {
        let began = Instant::now();
        rushes.over().await;
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn servers_start_when_the_last_request_is_sent_and_at_once_where_none_is_on_its_way() {
        let rushes = PromptCounter::default();
        assert_eq!(waited(&rushes).await, Duration::ZERO);
        let (answered, sent) = (rushes.begin(), rushes.begin());
        drop(answered);
        sent.handed_over();
        // The clock counts whole milliseconds.
        let waited = waited(&rushes).await;
        assert!((SENT_AFTER..SENT_AFTER * 2).contains(&waited), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_prompt_that_takes_long_holds_no_server_up_for_long() {
        let rushes = PromptCounter::default();
        let _kept = rushes.begin();
        let waited = waited(&rushes).await;
        assert!((MAX_HOLD..MAX_HOLD * 2).contains(&waited), "{waited:?}");
    }
}
