//! WaitForMessage: waits for a message of another agent of the team.
//!
//! Rule: a wait is bounded; whether anybody could still send is decided by the loop.

use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use kode_base::call::{ToolError, ToolErrorKind, ToolKind};
use kode_base::team::{MAX_WAIT_SECONDS, WAIT_SECONDS};
use kode_tool::names::WAIT_FOR_MESSAGE;
use kode_tool::team::TeamAction;
use kode_tool::{CallAction, CallContext, CallPlan, OfferContext, Tool, ToolFacts};

/// The arguments of WaitForMessage.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitForMessageInput {
    /// The name of the agent whose message is waited for. Any message ends the wait if left out.
    #[serde(default)]
    pub from: Option<String>,
    /// The most seconds of the wait, at most 600. 300 if left out.
    #[serde(default)]
    pub timeout_seconds: Option<u64>,
}

/// Waits for a message.
#[derive(Clone, Copy, Debug)]
pub struct WaitForMessage;

#[async_trait]
impl Tool for WaitForMessage {
    type Input = WaitForMessageInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: WAIT_FOR_MESSAGE,
            kind: ToolKind::ReadOnly,
            concurrency_safe: false,
            description: "Waits until a message of another agent comes, the agent ends, or the time is over. Messages \
                also come by themselves between your steps: wait only where you cannot continue without one. A wait in \
                which agents would wait for one another is refused.",
        }
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        offer.in_team.then(|| self.facts().description.to_owned())
    }

    fn timeout(&self) -> Option<Duration> {
        None
    }

    async fn plan(&self, input: WaitForMessageInput, _context: &CallContext) -> Result<CallPlan, ToolError> {
        let seconds = input.timeout_seconds.unwrap_or(WAIT_SECONDS);
        if !(1..=MAX_WAIT_SECONDS).contains(&seconds) {
            let message = format!("`timeout_seconds` is {seconds}; it is from 1 to {MAX_WAIT_SECONDS}.");
            let hint = "Leave it out for the usual time, and wait once more if that was too short.";
            return Err(ToolError::new(ToolErrorKind::InvalidInput, message, hint));
        }
        let from = input.from.map(|from| from.trim().to_owned()).filter(|from| !from.is_empty());
        let title = match &from {
            Some(from) => format!("Wait for a message of {}", from.replace(char::is_control, "\u{fffd}")),
            None => "Wait for a message".to_owned(),
        };
        let action = CallAction::Team(TeamAction::Wait { from, limit: Duration::from_secs(seconds) });
        Ok(CallPlan { title, touches: Vec::new(), action })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::Fixture;

    #[tokio::test]
    async fn a_wait_is_bounded() {
        let fixture = Fixture::new();
        for (input, expected) in [
            (json!({}), Some((None, 300))),
            (json!({ "from": " one ", "timeout_seconds": 600 }), Some((Some("one".to_owned()), 600))),
            (json!({ "from": " " }), Some((None, 300))),
            (json!({ "timeout_seconds": 0 }), None),
            (json!({ "timeout_seconds": 601 }), None),
        ] {
            let planned =
                fixture.plan(WaitForMessage, input.clone()).await.ok().map(|plan| match plan.action {
                    CallAction::Team(TeamAction::Wait { from, limit }) => (from, limit.as_secs()),
                    _ => panic!("it waits"),
                });
            assert_eq!(planned, expected, "{input}");
        }
    }
}
