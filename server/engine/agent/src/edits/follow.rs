//! Keeps the ledger up with the editor until the session is closed.

use std::sync::Arc;

use tokio::time::MissedTickBehavior;

use crate::edits::Edits;
use crate::edits::committed::LOOK_INTERVAL;

/// Applies the events of open documents as they arrive, and keeps the hunks that were committed.
pub(crate) async fn follow(edits: Arc<Edits>) {
    let mut seen = edits.log_times().await;
    let mut looks = tokio::time::interval(LOOK_INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = edits.core.closing() => break,
            () = edits.feed.arrived() => {
                edits.take_in_typing().await;
                drop(edits.synced());
                edits.read_stale().await;
            }
            _ = looks.tick() => {
                edits.flush();
                // The changes of a running command are not entered yet: its commits are read afterwards.
                if edits.feed.is_command_running() || edits.synced().ledger.applied_targets().is_empty() {
                    continue;
                }
                if edits.feed.is_command_running() {
                    continue;
                }
                let now = edits.log_times().await;
                if now != std::mem::replace(&mut seen, now.clone()) {
                    edits.keep_committed().await;
                }
            }
        }
    }
}
