//! SKELETON
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{CallContext, Plan, Tool, ToolError, ToolFacts};

/// SKELETON
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobInput {}

/// SKELETON
pub struct Glob;

#[async_trait]
impl Tool for Glob {
    type Input = GlobInput;

    fn facts(&self) -> ToolFacts {
        unimplemented!()
    }

    async fn plan(&self, _input: GlobInput, _context: &CallContext) -> Result<Plan, ToolError> {
        unimplemented!()
    }
}
