//! Think: room to reason between two calls.
//!
//! Rule: it changes nothing and notifies no listener; the thought is thinking and never part of the answer.

use async_trait::async_trait;
use futures::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use kode_base::call::{ToolError, ToolErrorKind, ToolKind};
use kode_tool::names::THINK;
use kode_tool::{CallAction, CallContext, CallPlan, Tool, ToolFacts, ToolOutput};

/// The arguments of Think.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThinkInput {
    /// What you think: the steps of a task, what a result means, what speaks for and against a way to go.
    pub thought: String,
}

/// Takes a thought.
#[derive(Clone, Copy, Debug)]
pub struct Think;

#[async_trait]
impl Tool for Think {
    type Input = ThinkInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: THINK,
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: "Room to reason: takes a thought and does nothing else. Use it when what you have found needs \
                to be weighed before the next step, or a task needs to be taken apart. It finds out nothing new, and \
                the user does not read it as an answer.",
        }
    }

    async fn plan(&self, input: ThinkInput, _context: &CallContext) -> Result<CallPlan, ToolError> {
        if input.thought.trim().is_empty() {
            return Err(ToolError::new(
                ToolErrorKind::InvalidInput,
                "Think: `thought` is empty",
                "Put the reasoning into `thought`, or go on without this tool.",
            ));
        }
        let run = move |_context: CallContext| {
            let structured = Some(json!({ "thought": input.thought }));
            let output = ToolOutput {
                model_text: "Noted.".to_owned(),
                display: String::new(),
                structured,
                ..ToolOutput::default()
            };
            async move { Ok(output) }.boxed()
        };
        Ok(CallPlan { title: THINK.to_owned(), touches: Vec::new(), action: CallAction::Run(Box::new(run)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixture;

    #[tokio::test]
    async fn a_thought_touches_nothing_and_comes_back_for_the_transcript_only() {
        let fixture = Fixture::new();
        let plan = fixture.plan(Think, json!({ "thought": "first a, then b" })).await.unwrap();
        assert_eq!((plan.title.as_str(), plan.touches.len()), ("Think", 0));
        let output = fixture.run(Think, json!({ "thought": "first a, then b" })).await.unwrap();
        assert_eq!((output.model_text.as_str(), output.display.as_str()), ("Noted.", ""));
        assert_eq!(output.structured, Some(json!({ "thought": "first a, then b" })));
    }

    #[tokio::test]
    async fn an_empty_thought_is_refused() {
        let error = Fixture::new().plan(Think, json!({ "thought": " \n" })).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::InvalidInput);
        assert!(error.message.contains("`thought` is empty") && error.hint.contains("`thought`"));
    }
}
