//! EnterPlanMode and ExitPlanMode: the model begins to plan by itself, and ends it only with the user's yes.
//!
//! Rule: a plan is presented whole, and nothing but an answer of the user leaves plan mode. What becomes of it is the
//! call's structured result: `{accepted, plan, edited, mode}`, with the plan as it was accepted, or as it was presented.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use kode_base::call::{ToolError, ToolErrorKind, ToolKind};
use kode_base::mode::Mode;
use kode_base::question::{MAX_PLAN, QuestionDraft};
use kode_tool::{CallAction, CallContext, CallPlan, OfferContext, Tool, ToolFacts};

/// The arguments of EnterPlanMode: none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnterPlanModeInput {}

/// The arguments of ExitPlanMode.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExitPlanModeInput {
    /// The whole plan in Markdown: steps with files, changes and how each is checked. The user decides by it alone.
    pub plan: String,
}

/// Begins to plan.
#[derive(Clone, Copy, Debug)]
pub struct EnterPlanMode;

/// Presents the plan.
#[derive(Clone, Copy, Debug)]
pub struct ExitPlanMode;

#[async_trait]
impl Tool for EnterPlanMode {
    type Input = EnterPlanModeInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "EnterPlanMode",
            kind: ToolKind::ReadOnly,
            concurrency_safe: false,
            description: "Switches the session to plan mode: you look and think and change nothing until the user has \
                accepted your plan. Use it before work that is large, risky or can be done in ways the user may want \
                to choose from; not for small or well described changes.",
        }
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        (offer.mode != Mode::Plan).then(|| self.facts().description.to_owned())
    }

    async fn plan(&self, _input: EnterPlanModeInput, _context: &CallContext) -> Result<CallPlan, ToolError> {
        let title = "Enter plan mode".to_owned();
        Ok(CallPlan { title, touches: Vec::new(), action: CallAction::SetMode(Mode::Plan) })
    }
}

#[async_trait]
impl Tool for ExitPlanMode {
    type Input = ExitPlanModeInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "ExitPlanMode",
            kind: ToolKind::ReadOnly,
            concurrency_safe: false,
            description: "Presents the whole plan to the user, who accepts it and so ends plan mode, changes it and accepts \
                that, or says what to change. The result says which, and in which mode you go on. If they do not \
                accept it and say nothing, your turn ends and they write next. Call it once the plan is ready, never \
                to ask a question: AskUserQuestion does that.",
        }
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        (offer.mode == Mode::Plan).then(|| self.facts().description.to_owned())
    }

    async fn plan(&self, input: ExitPlanModeInput, _context: &CallContext) -> Result<CallPlan, ToolError> {
        let length = input.plan.chars().count();
        if input.plan.trim().is_empty() || length > MAX_PLAN {
            return Err(ToolError::new(
                ToolErrorKind::InvalidInput,
                format!("ExitPlanMode: `plan` has {length} characters; there must be 1 to {MAX_PLAN}."),
                "Give the whole plan as Markdown and call it again.",
            ));
        }
        let draft = QuestionDraft::plan(input.plan);
        Ok(CallPlan {
            title: "Present the plan".to_owned(),
            touches: Vec::new(),
            action: CallAction::Ask(Box::new(draft)),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::Fixture;

    #[tokio::test]
    async fn a_plan_is_presented_whole_and_an_empty_one_is_refused() {
        let fixture = Fixture::new();
        let plan = fixture.plan(ExitPlanMode, json!({ "plan": "1. Do it." })).await.unwrap();
        let CallAction::Ask(draft) = plan.action else { panic!("it asks") };
        assert_eq!(draft.plan.as_deref(), Some("1. Do it."));
        let error = fixture.plan(ExitPlanMode, json!({ "plan": " " })).await.unwrap_err();
        assert!(error.message.contains("`plan`") && !error.hint.is_empty(), "{error}");
    }
}
