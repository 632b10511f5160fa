//! SKELETON
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{CallContext, Plan, Tool, ToolError, ToolFacts};

/// SKELETON
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteInput {}

/// SKELETON
pub struct Write;

#[async_trait]
impl Tool for Write {
    type Input = WriteInput;

    fn facts(&self) -> ToolFacts {
        unimplemented!()
    }

    async fn plan(&self, _input: WriteInput, _context: &CallContext) -> Result<Plan, ToolError> {
        unimplemented!()
    }
}
