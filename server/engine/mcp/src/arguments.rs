//! The arguments of a call of a foreign tool: checked against its schema, and shown in a line.
//!
//! Rule: arguments are checked against the whole schema before the user is asked; a fault names its place.

use serde_json::{Map, Value};

use crate::schema::JsonSchema;
use kode_base::call::{ToolError, ToolErrorKind};
use kode_config::mcp::fault::bounded;

/// Maximum number of reported faults of arguments.
const MAX_FAULTS: usize = 8;
/// The longest line about arguments in a title.
const MAX_ARGUMENTS: usize = 200;

/// The arguments as an object that fits the schema; without a schema any object does.
///
/// # Errors
/// [`ToolErrorKind::InvalidInput`] with the faults, for the model.
pub(crate) fn check(
    tool: &str,
    schema: Option<&JsonSchema>,
    input: &Value,
) -> Result<Map<String, Value>, ToolError> {
    let wrong = |why: String| {
        ToolError::new(
            ToolErrorKind::InvalidInput,
            format!("The arguments of {tool} do not fit: {why}."),
            "Put them right by the schema of the tool and call it again.",
        )
    };
    let Value::Object(arguments) = input else {
        return Err(wrong("they have to be one JSON object".to_owned()));
    };
    let faults = schema.iter().flat_map(|schema| schema.faults(input, MAX_FAULTS));
    let faults: Vec<_> = faults
        .map(|fault| match fault.at {
            at if at.is_empty() => bounded(&fault.reason),
            at => format!("`{at}`: {}", bounded(&fault.reason)),
        })
        .collect();
    if faults.is_empty() { Ok(arguments.clone()) } else { Err(wrong(faults.join("; "))) }
}

/// The title of a call: the tool, and the beginning of the arguments where there are any.
pub(crate) fn title(shown: &str, input: &Value) -> String {
    if input.as_object().is_some_and(Map::is_empty) {
        return shown.to_owned();
    }
    let line: String = input.to_string().chars().take(MAX_ARGUMENTS).collect();
    format!("{shown} {line}")
}
