//! The JSON Schema of settings files, for editors that complete and check by `$schema`.
//!
//! Rule: made from the table of keys and nothing else; unknown keys are no errors, because other programs have their own.

use serde_json::{Map, Value, json};

use super::{KEYS, Key, Reach, Shape};

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

/// What stands under a name in a section, made where there is nothing.
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
fn remark(reach: Reach) -> String {
    match reach {
        Reach::Everywhere => String::new(),
        Reach::Approved => " In files of a workspace it counts once you have approved it.".to_owned(),
        Reach::Loosens => {
            " What loosens in files of a workspace counts once you have approved it.".to_owned()
        }
        Reach::Own => " It counts in your own settings alone.".to_owned(),
        Reach::Ignored("") => " It does nothing in kode-ls.".to_owned(),
        Reach::Ignored(why) => format!(" It does nothing in kode-ls: {why}."),
    }
}

fn shaped(shape: Shape) -> Value {
    let text = json!({ "type": "string" });
    match shape {
        Shape::Switch => json!({ "type": "boolean" }),
        Shape::Whole { min, max } => {
            let mut schema = json!({ "type": "integer" });
            if min > i64::MIN {
                schema["minimum"] = json!(min);
            }
            if max < i64::MAX {
                schema["maximum"] = json!(max);
            }
            schema
        }
        Shape::Number { min, max } if max < f64::MAX => {
            json!({ "type": "number", "minimum": min, "maximum": max })
        }
        Shape::Number { .. } => json!({ "type": "number", "exclusiveMinimum": 0 }),
        Shape::Text => text,
        Shape::Choice(names) => json!({ "type": "string", "enum": names }),
        Shape::Texts => json!({ "type": "array", "items": text, "uniqueItems": true }),
        Shape::SwitchesByName => json!({ "type": "object", "additionalProperties": { "type": "boolean" } }),
        Shape::TextsByName => json!({ "type": "object", "additionalProperties": text }),
        Shape::ObjectsByName => json!({ "type": "object", "additionalProperties": { "type": "object" } }),
        Shape::ListsByName => json!({ "type": "object", "additionalProperties": { "type": "array" } }),
        Shape::Objects => json!({ "type": "array", "items": { "type": "object" } }),
        Shape::Anything => json!({}),
    }
}
