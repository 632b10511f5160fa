//! From the model's JSON to a tool's typed input.
//!
//! Rule: what can be read without doubt is read (numbers and booleans written as text, the field names of other
//! agents); everything else is refused with the place, the reason and the known fields.

use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

use kode_base::call::{ToolError, ToolErrorKind};

/// Field names of other agents, and ours. They count only for tools that have the second and not the first.
const ALIASES: &[(&str, &str)] = &[
    ("path", "file_path"),
    ("file_path", "path"),
    ("filePath", "file_path"),
    ("filename", "file_path"),
    ("file_path", "notebook_path"),
    ("path", "notebook_path"),
    ("oldString", "old_string"),
    ("old_str", "old_string"),
    ("old_text", "old_string"),
    ("newString", "new_string"),
    ("new_str", "new_string"),
    ("new_text", "new_string"),
    ("replaceAll", "replace_all"),
    ("contents", "content"),
    ("cmd", "command"),
    ("items", "todos"),
    ("active_form", "activeForm"),
    ("multi_select", "multiSelect"),
];

/// Field names that count only beside another field: their meaning depends on the object.
const ALIASES_BESIDE: &[(&str, &str, &str)] = &[("activeForm", "title", "content")];

/// Characters of a wrong value that an error quotes.
const MAX_QUOTED_CHARS: usize = 60;

/// Reads a tool's arguments.
///
/// # Errors
/// [`ToolErrorKind::InvalidInput`] naming the field, the reason and the fields there are.
pub(crate) fn parse<T: DeserializeOwned>(tool: &str, schema: &Value, input: Value) -> Result<T, ToolError> {
    let fields = Fields::of(schema);
    let invalid = |reason: String| {
        ToolError::new(ToolErrorKind::InvalidInput, format!("{tool}: {reason}"), fields.hint(tool))
    };
    let Value::Object(mut object) = input else {
        return Err(invalid(format!("the arguments must be an object, not {}", describe(&input))));
    };
    rename(&mut object, &fields);
    translate_line_range(&mut object, &fields).map_err(invalid)?;
    object.retain(|name, value| !value.is_null() || fields.required.contains(&name.as_str()));
    if let Some(unknown) = object.keys().find(|name| !fields.has(name)) {
        return Err(invalid(format!("there is no field `{unknown}`")));
    }
    if let Some(missing) = fields.required.iter().find(|name| !object.contains_key(**name)) {
        return Err(invalid(format!("the field `{missing}` is missing")));
    }
    for (name, value) in &mut object {
        if let Some(expected) = fields.known.and_then(|known| known.get(name)) {
            *value = coerce(schema, expected, value.take(), name).map_err(invalid)?;
        }
    }
    serde_path_to_error::deserialize(Value::Object(object)).map_err(|error| {
        let place = error.path().to_string();
        // A root without a name is the whole of the arguments.
        let place = if place == "." { String::new() } else { format!("`{place}`: ") };
        invalid(format!("{place}{}", error.inner()))
    })
}

/// The fields of an input as its schema gives them.
struct Fields<'schema> {
    known: Option<&'schema Map<String, Value>>,
    required: Vec<&'schema str>,
}

impl<'schema> Fields<'schema> {
    fn of(schema: &'schema Value) -> Self {
        let known = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        Self { known, required: required.into_iter().flatten().filter_map(Value::as_str).collect() }
    }

    fn has(&self, name: &str) -> bool {
        self.known.is_some_and(|known| known.contains_key(name))
    }

    fn hint(&self, tool: &str) -> String {
        let names: Vec<String> = self
            .known
            .into_iter()
            .flat_map(Map::keys)
            .map(|name| match self.required.contains(&name.as_str()) {
                true => format!("{name} (required)"),
                false => name.clone(),
            })
            .collect();
        match names.is_empty() {
            true => format!("{tool} takes no fields; call it again without any."),
            false => format!("The fields are: {}. Correct the call and make it again.", names.join(", ")),
        }
    }
}

fn rename(object: &mut Map<String, Value>, fields: &Fields<'_>) {
    let beside = ALIASES_BESIDE.iter().filter(|(marker, ..)| fields.has(marker));
    let aliases = ALIASES.iter().copied().chain(beside.map(|(_, alias, name)| (*alias, *name)));
    for (alias, name) in aliases {
        let applies = fields.has(name) && !fields.has(alias) && !object.contains_key(name);
        if applies && let Some(value) = object.remove(alias) {
            object.insert(name.to_owned(), value);
        }
    }
}

/// `start_line` and `end_line`, both inclusive, for tools that have `offset` and `limit`.
fn translate_line_range(object: &mut Map<String, Value>, fields: &Fields<'_>) -> Result<(), String> {
    let is_paged = fields.has("offset") && fields.has("limit") && !fields.has("start_line");
    let is_ranged = object.contains_key("start_line") || object.contains_key("end_line");
    if !is_paged || !is_ranged || object.contains_key("offset") || object.contains_key("limit") {
        return Ok(());
    }
    let mut take = |name: &str| match object.remove(name).filter(|value| !value.is_null()) {
        Some(value) => match integer(&value).and_then(|number| number.as_u64()) {
            Some(line) => Ok(Some(line)),
            None => Err(format!("`{name}` must be a line number, not {}", describe(&value))),
        },
        None => Ok(None),
    };
    let start = take("start_line")?.unwrap_or(1).max(1);
    let end = take("end_line")?;
    if end.is_some_and(|end| end < start) {
        return Err("`end_line` lies before `start_line`".to_owned());
    }
    object.insert("offset".to_owned(), start.into());
    if let Some(end) = end {
        object.insert("limit".to_owned(), (end - start + 1).into());
    }
    Ok(())
}

/// The value as the type its schema asks for; the error says where and why not.
fn coerce(root: &Value, schema: &Value, value: Value, path: &str) -> Result<Value, String> {
    let schema = resolve(root, schema);
    let types = types(schema);
    let accepts = |name: &str| types.is_empty() || types.contains(&name);
    let wrong =
        |value: &Value| Err(format!("`{path}` must be {}, not {}", expected(&types), describe(value)));
    match value {
        Value::Array(items) if accepts("array") => {
            let Some(item_schema) = schema.get("items") else { return Ok(Value::Array(items)) };
            let items = items.into_iter().enumerate();
            let items = items.map(|(at, item)| coerce(root, item_schema, item, &format!("{path}[{at}]")));
            Ok(Value::Array(items.collect::<Result<_, _>>()?))
        }
        Value::Object(mut object) if accepts("object") => {
            let fields = Fields::of(schema);
            let Some(known) = fields.known else { return Ok(Value::Object(object)) };
            rename(&mut object, &fields);
            object.retain(|name, value| !value.is_null() || fields.required.contains(&name.as_str()));
            if let Some(missing) = fields.required.iter().find(|name| !object.contains_key(**name)) {
                return Err(format!("`{path}` lacks the field `{missing}`"));
            }
            for (name, value) in &mut object {
                let Some(schema) = known.get(name) else {
                    return Err(format!("`{path}` has no field `{name}`"));
                };
                *value = coerce(root, schema, value.take(), &format!("{path}.{name}"))?;
            }
            Ok(Value::Object(object))
        }
        Value::String(text) if !accepts("string") => {
            let value = Value::String(text);
            let text = value.as_str().unwrap_or_default().trim();
            match text.to_ascii_lowercase().as_str() {
                "true" if accepts("boolean") => Ok(Value::Bool(true)),
                "false" if accepts("boolean") => Ok(Value::Bool(false)),
                _ if accepts("number") => match text.parse().ok().and_then(Number::from_f64) {
                    Some(number) => Ok(Value::Number(number)),
                    None => wrong(&value),
                },
                _ if accepts("integer") => integer(&value).map_or_else(|| wrong(&value), Ok),
                _ => wrong(&value),
            }
        }
        Value::Number(_) if !accepts("number") && accepts("integer") => {
            integer(&value).map_or_else(|| wrong(&value), Ok)
        }
        Value::Null if accepts("null") => Ok(Value::Null),
        Value::Bool(_) if accepts("boolean") => Ok(value),
        Value::Number(_) if accepts("number") => Ok(value),
        Value::String(_) if accepts("string") => Ok(value),
        _ => wrong(&value),
    }
}

/// A whole number, also when it is written as text or with a zero fraction.
fn integer(value: &Value) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(value.clone()),
        Value::Number(number) => {
            let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < EXACT)?;
            #[expect(clippy::cast_possible_truncation, reason = "whole and small enough to be exact")]
            let whole = float as i64;
            Some(whole.into())
        }
        Value::String(text) => text.trim().parse::<i64>().ok().map(Value::from),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn resolve<'schema>(root: &'schema Value, schema: &'schema Value) -> &'schema Value {
    let reference = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
    reference.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema)
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn expected(types: &[&str]) -> String {
    let names = types.iter().filter(|name| **name != "null").map(|name| match *name {
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "string" => "a text",
        "array" => "a list",
        _ => "an object",
    });
    names.collect::<Vec<_>>().join(" or ")
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => {
            let quoted: String = text.chars().take(MAX_QUOTED_CHARS).collect();
            format!("the text {quoted:?}")
        }
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Input {
        file_path: String,
        offset: Option<u64>,
        limit: Option<u32>,
        #[serde(default)]
        replace_all: bool,
        mode: Option<Mode>,
        #[serde(default)]
        edits: Vec<Item>,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        Content,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Item {
        count: u32,
    }

    fn read(input: Value) -> Result<Input, ToolError> {
        parse("Try", &schemars::schema_for!(Input).to_value(), input)
    }

    fn input() -> Input {
        let file_path = "a".to_owned();
        Input { file_path, offset: None, limit: None, replace_all: false, mode: None, edits: Vec::new() }
    }

    #[test]
    fn what_is_meant_without_doubt_is_understood() {
        for (value, expected) in [
            (json!({"file_path": "a"}), input()),
            (json!({"path": "a", "limit": null, "replace_all": null}), input()),
            (json!({"filePath": "a", "offset": "7"}), Input { offset: Some(7), ..input() }),
            (json!({"file_path": "a", "offset": 7.0}), Input { offset: Some(7), ..input() }),
            (json!({"file_path": "a", "replaceAll": "True"}), Input { replace_all: true, ..input() }),
            (json!({"file_path": "a", "mode": "content"}), Input { mode: Some(Mode::Content), ..input() }),
            (
                json!({"file_path": "a", "edits": [{"count": "3"}]}),
                Input { edits: vec![Item { count: 3 }], ..input() },
            ),
            (
                json!({"file_path": "a", "start_line": "3", "end_line": 5}),
                Input { offset: Some(3), limit: Some(3), ..input() },
            ),
            (json!({"file_path": "a", "end_line": 5}), Input { offset: Some(1), limit: Some(5), ..input() }),
        ] {
            assert_eq!(read(value.clone()).unwrap(), expected, "{value}");
        }
    }

    #[test]
    fn everything_else_is_refused_with_place_reason_and_fields() {
        for (value, reason) in [
            (json!([1]), "Try: the arguments must be an object, not a list"),
            (json!({}), "Try: the field `file_path` is missing"),
            (json!({"file_path": null}), "Try: `file_path` must be a text, not null"),
            (json!({"file_path": 5}), "Try: `file_path` must be a text, not the number 5"),
            (json!({"file_path": "a", "x": 1}), "Try: there is no field `x`"),
            (json!({"file_path": "a", "path": "b"}), "Try: there is no field `path`"),
            (
                json!({"file_path": "a", "offset": "ten"}),
                "Try: `offset` must be a whole number, not the text \"ten\"",
            ),
            (
                json!({"file_path": "a", "offset": 1.5}),
                "Try: `offset` must be a whole number, not the number 1.5",
            ),
            (
                json!({"file_path": "a", "replace_all": 1}),
                "Try: `replace_all` must be true or false, not the number 1",
            ),
            (
                json!({"file_path": "a", "edits": [{"count": []}]}),
                "Try: `edits[0].count` must be a whole number, not a list",
            ),
            (json!({"file_path": "a", "edits": [{"count": 1, "x": 1}]}), "Try: `edits[0]` has no field `x`"),
            (json!({"file_path": "a", "edits": [{}]}), "Try: `edits[0]` lacks the field `count`"),
            (
                json!({"file_path": "a", "start_line": 4, "end_line": 2}),
                "Try: `end_line` lies before `start_line`",
            ),
        ] {
            let error = read(value).unwrap_err();
            assert_eq!((error.kind, error.message.as_str()), (ToolErrorKind::InvalidInput, reason));
            assert!(error.hint.contains("file_path (required), offset"), "{}", error.hint);
        }
        for value in [json!({"file_path": "a", "mode": "no"}), json!({"file_path": "a", "limit": -1})] {
            assert_eq!(read(value).unwrap_err().kind, ToolErrorKind::InvalidInput);
        }
    }
}
