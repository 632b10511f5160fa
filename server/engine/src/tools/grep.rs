//! SKELETON
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{CallContext, Plan, Tool, ToolError, ToolFacts};

/// SKELETON
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrepInput {}

/// SKELETON
pub struct Grep;

#[async_trait]
impl Tool for Grep {
    type Input = GrepInput;

    fn facts(&self) -> ToolFacts {
        unimplemented!()
    }

    async fn plan(&self, _input: GrepInput, _context: &CallContext) -> Result<Plan, ToolError> {
        unimplemented!()
    }
}
