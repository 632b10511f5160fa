//! The schema document: every method and every type it needs, as one JSON Schema.
//!
//! Rule: methods are in the order of their table and definitions in that of their names, so that a change of one
//! type is a change of a few lines.

use kode_protocol::{
    ClientKode, ErrorData, NOTIFICATIONS, PROTOCOL_VERSION, REQUESTS, RequestEntry, SERVER_REQUESTS,
    ServerKode,
};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Makes the document.
pub(crate) fn document() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let client_requests = requests(REQUESTS, &mut generator);
    let server_requests = requests(SERVER_REQUESTS, &mut generator);
    let mut notifications = Map::new();
    for entry in NOTIFICATIONS {
        let params = (entry.params)(&mut generator);
        let notification = json!({ "description": description(entry.doc), "params": params });
        notifications.insert(entry.method.to_owned(), notification);
    }
    let capabilities = json!({
        "client": generator.subschema_for::<ClientKode>(),
        "server": generator.subschema_for::<ServerKode>(),
    });
    let error = generator.subschema_for::<ErrorData>();
    let mut definitions: Vec<_> = generator.take_definitions(true).into_iter().collect();
    definitions.sort_by(|(one, _), (two, _)| one.cmp(two));
    definitions.iter_mut().for_each(|(_, definition)| forbid_null(definition));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The agent/* methods of kode-ls",
        "protocolVersion": PROTOCOL_VERSION,
        "requests": client_requests,
        "serverRequests": server_requests,
        "notifications": notifications,
        "capabilities": capabilities,
        "error": error,
        "$defs": Map::from_iter(definitions),
    })
}

fn requests(table: &[RequestEntry], generator: &mut SchemaGenerator) -> Map<String, Value> {
    let request = |entry: &RequestEntry| {
        let (params, result) = ((entry.params)(generator), (entry.result)(generator));
        let request = json!({ "description": description(entry.doc), "params": params, "result": result });
        (entry.method.to_owned(), request)
    };
    table.iter().map(request).collect()
}

/// The lines of a doc comment as one text.
fn description(doc: &[&str]) -> String {
    doc.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// Takes `null` out of the fields that may be absent: a reader in Rust accepts it, no client or server sends it.
fn forbid_null(definition: &mut Value) {
    let required = definition.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let fields = definition.get_mut("properties").and_then(Value::as_object_mut);
    for (name, field) in fields.into_iter().flatten() {
        if !required.iter().any(|required| required == name.as_str()) {
            forbid_null_in(field);
        }
    }
}

fn forbid_null_in(field: &mut Value) {
    let Some(field) = field.as_object_mut() else { return };
    if let Some(Value::Array(types)) = field.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            field.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(cases)) = field.get_mut("anyOf") else { return };
    cases.retain(|case| *case != json!({ "type": "null" }));
    if let [Value::Object(only)] = cases.as_slice() {
        let mut only = only.clone();
        field.remove("anyOf");
        only.append(field);
        *field = only;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_fields_are_never_null_and_required_ones_stay() {
        let mut definition = json!({
            "required": ["always"],
            "properties": {
                "text": { "type": ["string", "null"], "description": "d" },
                "named": { "anyOf": [{ "$ref": "#/$defs/X" }, { "type": "null" }], "description": "d" },
                "always": { "type": ["string", "null"] },
            },
        });
        forbid_null(&mut definition);
        assert_eq!(
            definition["properties"],
            json!({
                "text": { "type": "string", "description": "d" },
                "named": { "$ref": "#/$defs/X", "description": "d" },
                "always": { "type": ["string", "null"] },
            })
        );
    }
}
