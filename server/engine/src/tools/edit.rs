//! SKELETON
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{CallContext, Plan, Tool, ToolError, ToolFacts};

/// SKELETON
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditInput {}

/// SKELETON
pub struct Edit;

#[async_trait]
impl Tool for Edit {
    type Input = EditInput;

    fn facts(&self) -> ToolFacts {
        unimplemented!()
    }

    async fn plan(&self, _input: EditInput, _context: &CallContext) -> Result<Plan, ToolError> {
        unimplemented!()
    }
}
