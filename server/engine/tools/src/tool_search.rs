//! ToolSearch: brings tools that a model is not offered at first, because its window is small or MCP servers have many.
//!
//! Rule: it changes nothing; the tools that it names are declared with the next request, which the conversation sees to.

use async_trait::async_trait;
use futures::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;

use kode_base::call::{ToolError, ToolErrorKind, ToolKind};
use kode_tool::names::TOOL_SEARCH;
use kode_tool::{CallAction, CallContext, CallPlan, OfferContext, Tool, ToolFacts, ToolOutput};

/// The arguments of ToolSearch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolSearchInput {
    /// Names of tools, or words that their names contain, separated by commas.
    pub query: String,
}

/// Brings further tools.
#[derive(Clone, Copy, Debug)]
pub struct ToolSearch;

#[async_trait]
impl Tool for ToolSearch {
    type Input = ToolSearchInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: TOOL_SEARCH,
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: "Brings further tools, which the system prompt lists. They can be called from the next step on.",
        }
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        offer.by_need.then(|| self.facts().description.to_owned())
    }

    async fn plan(&self, input: ToolSearchInput, _context: &CallContext) -> Result<CallPlan, ToolError> {
        let query = input.query.trim().to_owned();
        if query.is_empty() {
            return Err(ToolError::new(
                ToolErrorKind::InvalidInput,
                "ToolSearch: `query` is empty",
                "Name the tools that you need.",
            ));
        }
        let text = format!(
            "The tools that `{query}` names can be called now. If none was added to your tools, there is no such tool."
        );
        let title = format!("{TOOL_SEARCH} {query}");
        let run = move |_context: CallContext| {
            async move { Ok(ToolOutput { model_text: text, ..ToolOutput::default() }) }.boxed()
        };
        Ok(CallPlan { title, touches: Vec::new(), action: CallAction::Run(Box::new(run)) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::Fixture;

    #[tokio::test]
    async fn a_search_touches_nothing_and_an_empty_one_is_refused() {
        let fixture = Fixture::new();
        let plan = fixture.plan(ToolSearch, json!({ "query": " WebFetch " })).await.unwrap();
        assert_eq!((plan.title.as_str(), plan.touches.len()), ("ToolSearch WebFetch", 0));
        assert!(fixture.plan(ToolSearch, json!({ "query": " " })).await.is_err());
    }
}
