//! SKELETON
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{CallContext, Plan, Tool, ToolError, ToolFacts};

/// SKELETON
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadInput {}

/// SKELETON
pub struct Read;

#[async_trait]
impl Tool for Read {
    type Input = ReadInput;

    fn facts(&self) -> ToolFacts {
        unimplemented!()
    }

    async fn plan(&self, _input: ReadInput, _context: &CallContext) -> Result<Plan, ToolError> {
        unimplemented!()
    }
}
