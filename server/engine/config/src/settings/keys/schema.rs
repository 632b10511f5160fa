//! The JSON Schema of settings files, for editors that complete and check by `$schema`.
//!
//! Rule: made from the table of keys and nothing else; unknown keys are no errors, because other programs have their own.

use serde_json::{Map, Value, json};

use super::{KEYS, Key, KeyReach, KeyShape};

/// Where the schema is kept in the repository, from its root.
pub const SCHEMA_FILE: &str = "protocol/generated/settings.schema.json";

/// The schema.
#[must_use]
pub fn schema() -> Value {
    let mut root = section("Settings of kode-ls");
    for key in KEYS {
        let mut place = &mut root;
        let mut names: Vec<&str> = key.path.split('.').collect();
        let last = names.pop().unwrap_or_default();
        for name in names {
            place = entry(place, name, || section(""));
        }
        entry(place, last, || described(key));
    }
    root["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    root
}

/// The value of a name in a section, made where there is nothing.
fn entry<'v>(section: &'v mut Value, name: &str, make: impl FnOnce() -> Value) -> &'v mut Value {
    let properties = &mut section["properties"];
    if !properties.is_object() {
        *properties = Value::Object(Map::new());
    }
    let known = &mut properties[name];
    if known.is_null() {
        *known = make();
    }
    known
}

fn section(title: &str) -> Value {
    let mut section = json!({ "type": "object", "properties": {} });
    if !title.is_empty() {
        section["title"] = json!(title);
    }
    section
}

fn described(key: &Key) -> Value {
    let mut schema = shaped(key.shape);
    schema["description"] = json!(format!("{}.{}", key.doc, remark(key.reach)));
    if let Some(default) = key.default_value() {
        schema["default"] = default;
    }
    if !key.is_in_use() {
        schema["deprecationMessage"] = json!("kode-ls does nothing with it.");
    }
    schema
}

/// From which files it counts, as an editor shows it.
fn remark(reach: KeyReach) -> String {
    match reach {
        KeyReach::Everywhere => String::new(),
        KeyReach::Approved => " In workspace files it takes effect once you approve it.".to_owned(),
        KeyReach::Loosens => {
            " In workspace files, a value that loosens takes effect once you approve it.".to_owned()
        }
        KeyReach::Own => " It takes effect in your own settings alone.".to_owned(),
        KeyReach::Ignored("") => " It does nothing in kode-ls.".to_owned(),
        KeyReach::Ignored(why) => format!(" It does nothing in kode-ls: {why}."),
    }
}

fn shaped(shape: KeyShape) -> Value {
    let text = json!({ "type": "string" });
    match shape {
        KeyShape::Switch => json!({ "type": "boolean" }),
        KeyShape::Whole { min, max } => {
            let mut schema = json!({ "type": "integer" });
            if min > i64::MIN {
                schema["minimum"] = json!(min);
            }
            if max < i64::MAX {
                schema["maximum"] = json!(max);
            }
            schema
        }
        KeyShape::Number { min, max } if max < f64::MAX => {
            json!({ "type": "number", "minimum": min, "maximum": max })
        }
        KeyShape::Number { .. } => json!({ "type": "number", "exclusiveMinimum": 0 }),
        KeyShape::Text => text,
        KeyShape::Choice(names) => json!({ "type": "string", "enum": names }),
        KeyShape::Texts => json!({ "type": "array", "items": text, "uniqueItems": true }),
        KeyShape::SwitchesByName => {
            json!({ "type": "object", "additionalProperties": { "type": "boolean" } })
        }
        KeyShape::TextsByName => json!({ "type": "object", "additionalProperties": text }),
        KeyShape::ObjectsByName => json!({ "type": "object", "additionalProperties": { "type": "object" } }),
        KeyShape::ListsByName => json!({ "type": "object", "additionalProperties": { "type": "array" } }),
        KeyShape::Objects => json!({ "type": "array", "items": { "type": "object" } }),
        KeyShape::ObjectsByNameOrList => json!({ "anyOf": [
            { "type": "object", "additionalProperties": { "type": "object" } },
            { "type": "array", "items": { "type": "object" } },
        ] }),
        KeyShape::Anything => json!({}),
    }
}
