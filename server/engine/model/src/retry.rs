//! Whether and when a failed request is tried again.
//!
//! Rule: the decision is one pure function of the fault; only faults that may pass by themselves are retried,
//! never one that was the request's own; no wait is longer than [`WAIT_CEILING`], and all waits of a request together
//! are no longer than its policy says. A limit that is reset later than that is no matter of retries.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{ModelError, ModelErrorKind};

/// The longest wait before a retry, whatever the server asked for.
pub const WAIT_CEILING: Duration = Duration::from_secs(300);

/// The longest that all waits of one request may take together.
pub const TOTAL_WAIT_CEILING: Duration = Duration::from_secs(600);

/// The longest rest until a limit is reset: plans are counted by the week.
pub const REST_CEILING: Duration = Duration::from_secs(8 * 24 * 60 * 60);

/// How many retries a request gets unless its profile says otherwise.
pub const DEFAULT_RETRIES: u32 = 3;

/// The share of a wait that jitter adds at most.
const JITTER_SHARE: f64 = 0.25;

/// How patient to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often a failed request is tried again; the failure after that is reported.
    pub max_retries: u32,
    /// The wait before the first retry; it doubles with each further one.
    pub first_wait: Duration,
    /// The wait when the server limits the rate and does not say for how long.
    pub rate_limit_wait: Duration,
    /// The longest that all waits may take together; a wait that would go beyond it is not begun.
    pub total_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: DEFAULT_RETRIES,
            first_wait: Duration::from_secs(1),
            rate_limit_wait: Duration::from_secs(60),
            total_wait: TOTAL_WAIT_CEILING,
        }
    }
}

/// The reaction to a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Try again after this wait.
    After(Duration),
    /// Report the fault.
    Never,
}

/// When a limit is reset that no retry waits for; `None` for every other fault.
#[must_use]
pub fn reset(error: &ModelError, policy: &RetryPolicy, now: Timestamp) -> Option<Timestamp> {
    let wait = error.retry_after.filter(|_| error.kind == ModelErrorKind::RateLimited)?;
    if wait <= policy.total_wait || wait > REST_CEILING {
        return None;
    }
    now.checked_add(SignedDuration::try_from(wait).ok()?).ok()
}

/// Decides what to do after the `attempt`th attempt (counted from 1) failed with `error`, when `waited` was spent
/// waiting before.
///
/// `jitter`, from 0 to 1, spreads the retries of many clients: it lengthens the wait by up to a quarter.
#[must_use]
pub fn decide(
    error: &ModelError,
    attempt: u32,
    waited: Duration,
    policy: &RetryPolicy,
    jitter: f64,
) -> Retry {
    if attempt > policy.max_retries {
        return Retry::Never;
    }
    let backoff = policy.first_wait.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
    let wait = match error.kind {
        // A wait of 0, or until a time that has passed, is no reason to try again within milliseconds.
        ModelErrorKind::RateLimited => error.retry_after.unwrap_or(policy.rate_limit_wait).max(backoff),
        ModelErrorKind::Server => backoff.max(error.retry_after.unwrap_or_default()),
        ModelErrorKind::Network | ModelErrorKind::Interrupted => backoff,
        ModelErrorKind::Configuration
        | ModelErrorKind::Authentication
        | ModelErrorKind::Payment
        | ModelErrorKind::BadRequest
        | ModelErrorKind::ContextTooLong
        | ModelErrorKind::Protocol
        | ModelErrorKind::Cancelled => return Retry::Never,
    };
    if error.kind == ModelErrorKind::RateLimited && waited.saturating_add(wait) > policy.total_wait {
        return Retry::Never;
    }
    let wait = wait.min(WAIT_CEILING);
    let wait = wait.mul_f64(1.0 + JITTER_SHARE * jitter.clamp(0.0, 1.0)).min(WAIT_CEILING);
    if waited.saturating_add(wait) > policy.total_wait { Retry::Never } else { Retry::After(wait) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: ModelErrorKind, retry_after: Option<u64>) -> ModelError {
        ModelError { retry_after: retry_after.map(Duration::from_secs), ..ModelError::new(kind, "it failed") }
    }

    fn seconds(error: &ModelError, attempt: u32) -> Option<u64> {
        match decide(error, attempt, Duration::ZERO, &RetryPolicy::default(), 0.0) {
            Retry::After(wait) => Some(wait.as_secs()),
            Retry::Never => None,
        }
    }

    #[test]
    fn every_kind_has_its_waits() {
        use ModelErrorKind::{
            Authentication, BadRequest, Cancelled, Configuration, ContextTooLong, Interrupted, Network,
            Payment, Protocol, RateLimited, Server,
        };
        let never = [None, None, None, None];
        let backoff = [Some(1), Some(2), Some(4), None];
        let table = [
            (Network, None, backoff),
            (Interrupted, None, backoff),
            (Server, None, backoff),
            (Server, Some(3), [Some(3), Some(3), Some(4), None]),
            (RateLimited, None, [Some(60), Some(60), Some(60), None]),
            (RateLimited, Some(7), [Some(7), Some(7), Some(7), None]),
            (RateLimited, Some(0), backoff),
            (RateLimited, Some(500), [Some(300), Some(300), Some(300), None]),
            (RateLimited, Some(86_400), never),
            (Configuration, None, never),
            (Authentication, None, never),
            (Payment, Some(1), never),
            (BadRequest, None, never),
            (BadRequest, Some(1), never),
            (ContextTooLong, None, never),
            (Protocol, None, never),
            (Cancelled, None, never),
        ];
        for (kind, retry_after, expected) in table {
            let error = error(kind, retry_after);
            let waits = [1, 2, 3, 4].map(|attempt| seconds(&error, attempt));
            assert_eq!(waits, expected, "{kind:?} with retry-after {retry_after:?}");
        }
    }

    #[test]
    fn a_turn_rests_for_limits_that_no_retry_waits_for() {
        let policy = RetryPolicy::default();
        let after = |kind, seconds| {
            let reset = reset(&error(kind, seconds), &policy, Timestamp::UNIX_EPOCH);
            reset.map(Timestamp::as_second)
        };
        assert_eq!(after(ModelErrorKind::RateLimited, Some(601)), Some(601));
        assert_eq!(after(ModelErrorKind::RateLimited, Some(7 * 86_400)), Some(7 * 86_400));
        for (kind, seconds) in [
            (ModelErrorKind::RateLimited, None),
            (ModelErrorKind::RateLimited, Some(600)),
            (ModelErrorKind::RateLimited, Some(u64::MAX)),
            (ModelErrorKind::Server, Some(3_600)),
        ] {
            assert_eq!(after(kind, seconds), None, "{kind:?} {seconds:?}");
        }
    }

    #[test]
    fn jitter_only_lengthens_and_never_past_the_ceiling() {
        let policy = RetryPolicy::default();
        let network = error(ModelErrorKind::Network, None);
        assert_eq!(
            decide(&network, 1, Duration::ZERO, &policy, 1.0),
            Retry::After(Duration::from_millis(1250))
        );
        assert_eq!(
            decide(&network, 1, Duration::ZERO, &policy, f64::MAX),
            Retry::After(Duration::from_millis(1250))
        );
        assert_eq!(decide(&network, 1, Duration::ZERO, &policy, -1.0), Retry::After(Duration::from_secs(1)));
        let limited = error(ModelErrorKind::RateLimited, Some(500));
        assert_eq!(decide(&limited, 1, Duration::ZERO, &policy, 1.0), Retry::After(WAIT_CEILING));
    }

    #[test]
    fn odd_policies_are_survived() {
        let network = error(ModelErrorKind::Network, None);
        let none = RetryPolicy { max_retries: 0, ..RetryPolicy::default() };
        assert_eq!(decide(&network, 1, Duration::ZERO, &none, 0.0), Retry::Never);
        let endless = RetryPolicy { max_retries: u32::MAX, ..RetryPolicy::default() };
        assert_eq!(decide(&network, u32::MAX, Duration::ZERO, &endless, 0.5), Retry::After(WAIT_CEILING));
        assert_eq!(decide(&network, 0, Duration::ZERO, &endless, 0.0), Retry::After(Duration::from_secs(1)));
    }

    #[test]
    fn all_waits_together_have_a_ceiling() {
        let policy = RetryPolicy { max_retries: u32::MAX, ..RetryPolicy::default() };
        let limited = error(ModelErrorKind::RateLimited, Some(300));
        let after = |waited| decide(&limited, 1, Duration::from_secs(waited), &policy, 0.0);
        assert_eq!(after(300), Retry::After(WAIT_CEILING));
        assert_eq!(after(301), Retry::Never);
        let mut waited = Duration::ZERO;
        for attempt in 1..1_000 {
            let network = error(ModelErrorKind::Network, None);
            match decide(&network, attempt, waited, &policy, 1.0) {
                Retry::After(wait) => waited += wait,
                Retry::Never => break,
            }
        }
        assert!(waited > TOTAL_WAIT_CEILING / 2 && waited <= TOTAL_WAIT_CEILING, "{waited:?}");
    }
}
