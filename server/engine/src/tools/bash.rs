//! SKELETON
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{CallContext, Plan, Tool, ToolError, ToolFacts};

/// SKELETON
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashInput {}

/// SKELETON
pub struct Bash;

#[async_trait]
impl Tool for Bash {
    type Input = BashInput;

    fn facts(&self) -> ToolFacts {
        unimplemented!()
    }

    async fn plan(&self, _input: BashInput, _context: &CallContext) -> Result<Plan, ToolError> {
        unimplemented!()
    }
}
