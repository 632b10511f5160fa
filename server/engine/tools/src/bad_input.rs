//! Arguments that do not fit, for every built-in tool.
//!
//! Rule: whatever the tool, the error names the field that is wrong and the hint says what would be right, so that the
//! model can mend the call by itself.

use serde_json::{Value, json};

use crate::built_in::built_in;
use crate::testing::Fixture;
use kode_base::call::ToolErrorKind;

/// A value that is of none of the types a schema names for a field, and cannot be read as one.
fn misfit(field: &Value) -> Value {
    let types = field["type"].to_string();
    if types.contains("object") || field.get("$ref").is_some() || field.get("anyOf").is_some() {
        json!([[7]])
    } else {
        json!({ "surprise": [7] })
    }
}

#[tokio::test]
async fn every_tool_names_the_field_that_is_wrong_and_says_what_to_do() {
    let fixture = Fixture::new();
    let mut tried = 0;
    for tool in built_in().iter() {
        let (name, schema) = (tool.facts().name, tool.input_schema());
        let required: Vec<_> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let properties = schema["properties"].as_object().cloned().unwrap_or_default();
        let mut cases = vec![(json!({ "no_such_field": 1 }), "no_such_field".to_owned())];
        if let Some(first) = required.first() {
            cases.push((json!({}), (*first).to_owned()));
        }
        for (field, shape) in &properties {
            cases.push((json!({ field: misfit(shape) }), field.clone()));
        }
        for (input, field) in cases {
            // A field alone would be refused for those that are missing: the others are as good as they get.
            let mut whole = input.clone();
            for other in required.iter().filter(|other| **other != field && input != json!({})) {
                whole[*other] = plain(&properties[*other]);
            }
            let Err(error) = tool.plan(whole.clone(), &fixture.context()).await else {
                panic!("{name} takes {whole}");
            };
            assert_eq!(error.kind, ToolErrorKind::InvalidInput, "{name} {whole}: {error}");
            assert!(error.message.contains(name), "{name} {whole}: {error}");
            assert!(error.message.contains(&field), "{name} {whole}: {error} does not name {field}");
            assert!(error.hint.len() > name.len(), "{name} {whole}: {error} has no hint");
            tried += 1;
        }
    }
    assert!(tried > 50, "{tried}");
}

/// Some value of the type of a field.
fn plain(field: &Value) -> Value {
    let types = field["type"].to_string();
    if types.contains("string") {
        json!("a")
    } else if types.contains("integer") || types.contains("number") {
        json!(1)
    } else if types.contains("boolean") {
        json!(true)
    } else if types.contains("array") {
        json!([])
    } else {
        json!({})
    }
}
