//! When another profile is asked instead of the one that failed.
//!
//! Rule: nothing falls back by itself: a profile names its fallback and what triggers it, and the caller says so.

use serde::{Deserialize, Serialize};

use super::{ModelError, ModelErrorKind};

/// The status of an overloaded server, beside the usual 5xx.
const STATUS_OVERLOADED: u16 = 529;
/// The status of servers of other makers then.
const STATUS_UNAVAILABLE: u16 = 503;

/// The profile that is asked when another fails, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fallback {
    /// The name of the profile, as [`super::models::Models::resolve`] reads it.
    pub profile: String,
    /// Its triggers.
    #[serde(default = "Trigger::usual")]
    pub triggers: Vec<Trigger>,
}

/// A reason to ask the fallback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Trigger {
    /// The server has more to do than it can (503, 529).
    Overloaded,
    /// Too many requests, or the quota is used up (429).
    RateLimited,
    /// The server failed otherwise (5xx).
    ServerError,
    /// The server could not be reached, or the answer broke off.
    Network,
    /// The request is longer than what the model can read.
    ContextTooLong,
    /// The answer only announced what it was going to do.
    IncompleteIntent,
    /// The model declined to answer.
    Refusal,
}

impl Trigger {
    /// The default triggers of a fallback: the faults that may pass by themselves.
    #[must_use]
    pub fn usual() -> Vec<Self> {
        vec![Self::Overloaded, Self::RateLimited, Self::ServerError, Self::Network]
    }

    /// The trigger of a failed request, if any.
    #[must_use]
    pub fn of(error: &ModelError) -> Option<Self> {
        match error.kind {
            ModelErrorKind::RateLimited => Some(Self::RateLimited),
            ModelErrorKind::Server => match error.status {
                Some(STATUS_OVERLOADED | STATUS_UNAVAILABLE) => Some(Self::Overloaded),
                _ => Some(Self::ServerError),
            },
            ModelErrorKind::Network | ModelErrorKind::Interrupted => Some(Self::Network),
            ModelErrorKind::ContextTooLong => Some(Self::ContextTooLong),
            ModelErrorKind::Configuration
            | ModelErrorKind::Authentication
            | ModelErrorKind::Payment
            | ModelErrorKind::BadRequest
            | ModelErrorKind::Protocol
            | ModelErrorKind::Cancelled => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_trigger_by_their_kind() {
        use ModelErrorKind::{
            Authentication, BadRequest, Cancelled, Configuration, ContextTooLong, Interrupted, Network,
            Payment, Protocol, RateLimited, Server,
        };
        for (kind, status, expected) in [
            (RateLimited, Some(429), Some(Trigger::RateLimited)),
            (Server, Some(529), Some(Trigger::Overloaded)),
            (Server, Some(503), Some(Trigger::Overloaded)),
            (Server, Some(500), Some(Trigger::ServerError)),
            (Server, None, Some(Trigger::ServerError)),
            (Network, None, Some(Trigger::Network)),
            (Interrupted, None, Some(Trigger::Network)),
            (ContextTooLong, Some(400), Some(Trigger::ContextTooLong)),
            (Authentication, Some(401), None),
            (Payment, Some(402), None),
            (BadRequest, Some(400), None),
            (Configuration, None, None),
            (Protocol, None, None),
            (Cancelled, None, None),
        ] {
            let error = ModelError { status, ..ModelError::new(kind, "it failed") };
            assert_eq!(Trigger::of(&error), expected, "{kind:?} {status:?}");
        }
    }

    #[test]
    fn a_fallback_without_triggers_has_the_usual_ones() {
        let read = |text| serde_json::from_str::<Fallback>(text).unwrap();
        assert_eq!(read(r#"{"profile": "quick"}"#).triggers, Trigger::usual());
        let named = read(r#"{"profile": "quick", "triggers": ["incompleteIntent", "refusal"]}"#);
        assert_eq!(named.triggers, [Trigger::IncompleteIntent, Trigger::Refusal]);
    }
}
