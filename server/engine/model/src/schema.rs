//! The schema of a tool's arguments, with its text.
//!
//! Rule: each request writes the schemas of all tools, so their text is made once and copied.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// A JSON Schema, shared by all requests. Displayed and serialized as JSON without white space.
#[derive(Clone)]
pub struct InputSchema(Arc<SchemaText>);

struct SchemaText {
    value: Value,
    json: Box<RawValue>,
}

impl InputSchema {
    /// The schema as JSON.
    #[must_use]
    pub fn json(&self) -> &str {
        self.0.json.get()
    }
}

impl From<Value> for InputSchema {
    fn from(value: Value) -> Self {
        // A value has only text as keys, so that it always has a form as JSON.
        let json = to_raw_value(&value).unwrap_or_default();
        Self(Arc::new(SchemaText { value, json }))
    }
}

impl Deref for InputSchema {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.value
    }
}

impl PartialEq for InputSchema {
    fn eq(&self, other: &Self) -> bool {
        self.0.value == other.0.value
    }
}

impl fmt::Debug for InputSchema {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.value.fmt(formatter)
    }
}

impl fmt::Display for InputSchema {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.json())
    }
}

impl Serialize for InputSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for InputSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_written_as_its_value_would_be() {
        let value =
            json!({ "type": "object", "properties": { "path": { "description": "A \"quoted\" name" } } });
        let schema = InputSchema::from(value.clone());
        assert_eq!(schema.json(), value.to_string());
        assert_eq!(schema.to_string(), value.to_string());
        assert_eq!(serde_json::to_string(&schema).unwrap(), value.to_string());
        assert_eq!(serde_json::to_value(&schema).unwrap(), value);
        assert_eq!(serde_json::from_value::<InputSchema>(value).unwrap(), schema);
        assert_eq!(schema["type"], "object");
    }
}
