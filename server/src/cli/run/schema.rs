//! `--output-schema`: answers that match a JSON Schema.
//!
//! Rule: answers are validated here, whatever the model's provider supports. References outside the schema are errors.

use std::path::Path;

use anyhow::Context;
use kode_engine::mcp::schema::{JsonSchema, SchemaFault};
use serde_json::Value;

/// The maximum number of reported mismatches.
const MAX_FAULTS: usize = 8;

/// A compiled schema.
pub(super) struct OutputSchema {
    text: String,
    schema: JsonSchema,
}

impl OutputSchema {
    /// Reads and compiles the schema of a file.
    ///
    /// # Errors
    /// When the file cannot be read, or is not a valid schema.
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("could not read {}", file.display()))?;
        Self::compile(&text).with_context(|| format!("{} is not a valid JSON Schema", file.display()))
    }

    fn compile(text: &str) -> anyhow::Result<Self> {
        let value: Value = serde_json::from_str(text)?;
        let schema = JsonSchema::compile(&value).map_err(|error| anyhow::anyhow!("{error}"))?;
        Ok(Self { text: format!("{value:#}"), schema })
    }

    /// The instructions for the model.
    pub(super) fn instructions(&self) -> String {
        format!(
            "A program parses your final message of each turn. It must be a single JSON value that matches this JSON Schema, \
             with no text before or after it:\n\n{}",
            self.text
        )
    }

    /// The prompt after an answer that does not match.
    pub(super) fn correction(&self, fault: &str) -> String {
        format!(
            "Your final message does not match the JSON Schema: {fault}\nSend the complete JSON value again, and nothing else."
        )
    }

    /// Parses an answer, without validating it.
    pub(super) fn value(&self, answer: &str) -> Option<Value> {
        serde_json::from_str(unfenced(answer)).ok()
    }

    /// The mismatch of an answer; `None` if it matches.
    pub(super) fn fault(&self, answer: &str) -> Option<String> {
        let value: Value = match serde_json::from_str(unfenced(answer)) {
            Ok(value) => value,
            Err(error) => return Some(format!("it is not JSON: {error}")),
        };
        let faults = self.schema.faults(&value, MAX_FAULTS);
        let said = |fault: &SchemaFault| match fault.at.as_str() {
            "" => fault.reason.clone(),
            at => format!("{at}: {}", fault.reason),
        };
        (!faults.is_empty()).then(|| faults.iter().map(said).collect::<Vec<_>>().join("; "))
    }
}

/// Removes a Markdown code fence around an answer.
fn unfenced(answer: &str) -> &str {
    let answer = answer.trim();
    let inner = answer.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.and_then(|inner| inner.split_once('\n')).map_or(answer, |(_, inner)| inner.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mismatch_is_explained() {
        let schema = r#"{"type":"object","required":["count"],"properties":{"count":{"type":"integer"}}}"#;
        let schema = OutputSchema::compile(schema).unwrap();
        for fits in [r#"{"count": 3}"#, "```json\n{\"count\": 3}\n```\n"] {
            assert_eq!(schema.fault(fits), None, "{fits}");
            assert_eq!(schema.value(fits), Some(serde_json::json!({ "count": 3 })));
        }
        assert!(schema.fault("three").unwrap().contains("not JSON"));
        let fault = schema.fault(r#"{"count": "3"}"#).unwrap();
        assert!(fault.contains("count") && fault.contains("integer"), "{fault}");
    }

    #[test]
    fn a_schema_loads_nothing_from_outside() {
        for url in ["file:///etc/hostname", "http://127.0.0.1:9/schema.json"] {
            let schema = format!(r#"{{"$ref": "{url}"}}"#);
            assert!(OutputSchema::compile(&schema).is_err(), "{url}");
        }
    }
}
