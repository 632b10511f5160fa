//! From the model's JSON to a tool's typed input.
//!
//! Rule: what can be read without doubt is read (numbers and booleans written as text, the field names of other
//! agents); everything else is refused with the place, the reason and the known fields.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::tools::ToolError;

pub(crate) fn parse<T: DeserializeOwned>(
    _tool: &str,
    _schema: &Value,
    _input: Value,
) -> Result<T, ToolError> {
    unimplemented!()
}
