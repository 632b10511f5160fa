//! SendMessage: sends a message to another agent of the team.
//!
//! Rule: only the form of the call is checked here; whether the recipient is there and has room is decided by the loop.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use kode_base::call::{ToolError, ToolErrorKind, ToolKind};
use kode_base::team::{EVERYONE, MAX_MESSAGE};
use kode_tool::names::SEND_MESSAGE;
use kode_tool::team::TeamAction;
use kode_tool::{CallAction, CallContext, CallPlan, OfferContext, Tool, ToolFacts};

/// The arguments of SendMessage.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendMessageInput {
    /// The name of a sub-agent in the background, `main` for the main conversation, or `*` for all others.
    pub to: String,
    /// The message, at most 8 KiB. Put longer things into a file and send its path.
    pub text: String,
}

/// Sends a message.
#[derive(Clone, Copy, Debug)]
pub struct SendMessage;

#[async_trait]
impl Tool for SendMessage {
    type Input = SendMessageInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: SEND_MESSAGE,
            // It reaches nothing outside the session.
            kind: ToolKind::ReadOnly,
            concurrency_safe: false,
            description: "Sends a message to an agent that works at the same time: to a sub-agent in the background, or \
                from one to the main conversation. It is read with the recipient's next step. Send what the other needs \
                to continue, such as a finding, a decision or a question; do not chat.",
        }
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        offer.in_team.then(|| self.facts().description.to_owned())
    }

    async fn plan(&self, input: SendMessageInput, _context: &CallContext) -> Result<CallPlan, ToolError> {
        let to = input.to.trim().to_owned();
        if to.is_empty() {
            let hint = "Give the name of a sub-agent, `main`, or `*` for all others.";
            return Err(ToolError::new(ToolErrorKind::InvalidInput, "`to` is empty.", hint));
        }
        if input.text.len() > MAX_MESSAGE {
            let message =
                format!("The message has {} bytes; it may have at most {MAX_MESSAGE}.", input.text.len());
            let hint = "Write less, or put the text into a file and send its path.";
            return Err(ToolError::new(ToolErrorKind::InvalidInput, message, hint));
        }
        let whom = if to == EVERYONE { "all others" } else { to.as_str() };
        let title = format!("Send a message to {}", whom.replace(char::is_control, "\u{fffd}"));
        let action = CallAction::Team(TeamAction::Send { to, text: input.text });
        Ok(CallPlan { title, touches: Vec::new(), action })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::Fixture;

    #[tokio::test]
    async fn a_message_has_a_recipient_and_a_bound() {
        let fixture = Fixture::new();
        let plan = |to: &str, text: String| fixture.plan(SendMessage, json!({ "to": to, "text": text }));
        let fits = plan(" one ", "a".repeat(MAX_MESSAGE)).await.unwrap();
        assert_eq!(fits.title, "Send a message to one");
        assert!(matches!(&fits.action, CallAction::Team(TeamAction::Send { to, .. }) if to == "one"));
        assert!(fits.touches.is_empty(), "it touches nothing outside the session");
        let long = plan("one", "a".repeat(MAX_MESSAGE + 1)).await.unwrap_err();
        assert!(long.message.contains("8193 bytes") && long.message.contains("8192"), "{long}");
        assert!(plan(" ", "a".to_owned()).await.is_err());
    }
}
