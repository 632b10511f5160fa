//! The common parts of every attempt to call a model, for an answer as for a summary.
//!
//! Rule: the tokens of an attempt are charged when it ends, whatever its end. A retry is published, and waits are spread.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::conversation::WorkUsage;
use crate::core::Core;
use crate::turn::services::TurnContext;
use kode_model::profile::Profile;
use kode_model::retry::RetryPolicy;
use kode_model::{ModelError, Usage};
use kode_record::context::ContextUse;
use kode_record::event::{Event, ModelRetry};

/// Charges tokens of a turn that no answer of its own counts: of a broken attempt, an answer that was not chosen, a summary.
pub(super) fn charge_apart(
    turn: TurnContext<'_>,
    profile: &Profile,
    usage: Usage,
    context: impl FnOnce() -> Option<ContextUse>,
) {
    if usage != Usage::default() {
        turn.conversation.spend(WorkUsage { usage, ..WorkUsage::default() });
        turn.conversation.thread.charge(turn.id, profile, usage, context());
    }
}

/// The tokens of a failed attempt.
pub(super) fn usage_of(error: &ModelError) -> Usage {
    error.partial.as_ref().map(|partial| partial.usage).unwrap_or_default()
}

/// Publishes the `attempt`th retry of a model call, after `delay`; `waited` was spent on it before.
pub(super) fn publish_retry(
    core: &Core,
    model: &str,
    error: &ModelError,
    attempt: u32,
    (delay, waited): (Duration, Duration),
    policy: &RetryPolicy,
) {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let next =
        SignedDuration::try_from(delay).ok().and_then(|delay| Timestamp::now().checked_add(delay).ok());
    let retry = ModelRetry {
        attempt,
        of: policy.max_retries,
        delay_ms: millis(delay),
        next: next.unwrap_or(Timestamp::MAX),
        left_ms: millis(policy.total_wait.saturating_sub(waited)),
        kind: error.kind,
        reason: error.to_string(),
        model: model.to_owned(),
    };
    core.publish(Event::ModelRetry { retry: Box::new(retry) });
}

/// A number between 0 and 1 that differs from process to process and call to call.
pub(super) fn jitter() -> f64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let random = RandomState::new().build_hasher().finish();
    f64::from(u32::try_from(random >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}
