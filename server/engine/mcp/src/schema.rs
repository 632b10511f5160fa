//! Checks JSON against a JSON Schema: the arguments of a call against the schema that a server gives for its tool, and other values.
//!
//! Rule: the schema is untrusted. It refers to nothing outside itself: no file is opened and no address is asked. A tool's
//! schema that cannot be compiled checks nothing, since the server checks the arguments as well.

use std::error::Error;

use boon::{CompileError, Compiler, SchemaIndex, Schemas, UrlLoader, ValidationError};
use serde_json::Value;

/// The name of the schema, for references within it.
const NAME: &str = "urn:kode:schema";

/// A compiled schema.
pub struct JsonSchema {
    schemas: Schemas,
    index: SchemaIndex,
}

/// A fault of a value.
#[derive(Debug, PartialEq, Eq)]
pub struct SchemaFault {
    /// The JSON pointer to the faulty value; empty for the whole.
    pub at: String,
    /// The reason, without a period.
    pub reason: String,
}

/// Loads nothing.
struct NoLoader;

impl UrlLoader for NoLoader {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        Err(format!("it refers to {url}, and nothing outside a schema is loaded").into())
    }
}

impl JsonSchema {
    /// Compiles a schema, of draft 2020-12 unless it names another one.
    ///
    /// # Errors
    /// When it is not a valid schema.
    pub fn compile(schema: &Value) -> Result<Self, Box<CompileError>> {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.use_loader(Box::new(NoLoader));
        compiler.add_resource(NAME, schema.clone()).map_err(Box::new)?;
        let index = compiler.compile(NAME, &mut schemas).map_err(Box::new)?;
        Ok(Self { schemas, index })
    }

    /// The faults of a value, at most `limit` of them.
    #[must_use]
    pub fn faults(&self, value: &Value, limit: usize) -> Vec<SchemaFault> {
        let mut faults = Vec::new();
        if let Err(error) = self.schemas.validate(value, self.index) {
            collect(&error, limit, &mut faults);
        }
        faults
    }
}

/// Collects the innermost errors: those around them say only that something within them is wrong.
fn collect(error: &ValidationError<'_, '_>, limit: usize, faults: &mut Vec<SchemaFault>) {
    if error.causes.is_empty() && faults.len() < limit {
        faults.push(SchemaFault { at: error.instance_location.to_string(), reason: error.kind.to_string() });
    }
    error.causes.iter().for_each(|cause| collect(cause, limit, faults));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn faults_name_the_place_and_the_reason_up_to_a_limit() {
        let schema = json!({
            "type": "object",
            "properties": { "path": { "type": "string" }, "lines": { "$ref": "#/$defs/lines" } },
            "required": ["path"],
            "$defs": { "lines": { "type": "array", "items": { "type": "integer", "minimum": 1 } } },
        });
        let schema = JsonSchema::compile(&schema).unwrap();
        assert_eq!(schema.faults(&json!({ "path": "a", "lines": [1, 2] }), 8), []);
        let faults = schema.faults(&json!({ "lines": [0, "x"] }), 8);
        let places: Vec<_> = faults.iter().map(|fault| fault.at.as_str()).collect();
        assert_eq!(places, ["", "/lines/0", "/lines/1"], "{faults:?}");
        assert!(faults[0].reason.contains("path"), "{faults:?}");
        assert_eq!(schema.faults(&json!({ "lines": [0, 0, 0] }), 2).len(), 2);
    }

    #[test]
    fn a_schema_loads_nothing_from_outside() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("schema.json");
        std::fs::write(&file, "true").unwrap();
        for url in [format!("file://{}", file.display()), "http://127.0.0.1:9/schema.json".to_owned()] {
            let Err(error) = JsonSchema::compile(&json!({ "$ref": url })) else { panic!("{url} was loaded") };
            assert!(format!("{error:?}").contains("nothing outside"), "{error:?}");
        }
    }
}
