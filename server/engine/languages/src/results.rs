//! The results of requests as the protocol has them.
//!
//! Rule: an item that does not have the form of the protocol is left out; a result is never trusted to be small.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::positions::PositionRange;

/// The most items of a list that are read.
const MAX_ITEMS: usize = 20_000;

/// A place in a file.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Location {
    pub(crate) uri: String,
    pub(crate) range: PositionRange,
}

/// A place in a file, with its whole text.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(crate) uri: String,
    /// The range of the name.
    pub(crate) name: PositionRange,
    /// The range of the whole declaration, where the server names it.
    pub(crate) whole: PositionRange,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LocationLink {
    target_uri: String,
    target_range: PositionRange,
    target_selection_range: PositionRange,
}

/// A declaration of an outline.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DocumentSymbol {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) detail: Option<String>,
    pub(crate) kind: u32,
    pub(crate) range: PositionRange,
    pub(crate) selection_range: PositionRange,
    #[serde(default)]
    pub(crate) children: Vec<DocumentSymbol>,
}

/// A declaration of the workspace, or of an outline without levels.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SymbolInformation {
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) location: SymbolLocation,
    #[serde(default)]
    pub(crate) container_name: Option<String>,
}

/// A place of a symbol; some servers name the file alone.
#[derive(Deserialize)]
pub(crate) struct SymbolLocation {
    pub(crate) uri: String,
    #[serde(default)]
    pub(crate) range: Option<PositionRange>,
}

/// A diagnostic.
#[derive(Deserialize)]
pub(crate) struct LspDiagnostic {
    pub(crate) range: PositionRange,
    #[serde(default)]
    pub(crate) severity: Option<u32>,
    #[serde(default)]
    pub(crate) code: Value,
    #[serde(default)]
    pub(crate) source: Option<String>,
    pub(crate) message: Value,
}

/// The items of a list that have the form of the protocol.
pub(crate) fn items<T: DeserializeOwned>(value: Value) -> Vec<T> {
    let list = match value {
        Value::Array(list) => list,
        Value::Null => Vec::new(),
        one => vec![one],
    };
    list.into_iter().take(MAX_ITEMS).filter_map(|item| serde_json::from_value(item).ok()).collect()
}

/// The places of a result: one location, locations, or links.
pub(crate) fn destinations(value: Value) -> Vec<Destination> {
    let list = match value {
        Value::Array(list) => list,
        Value::Null => Vec::new(),
        one => vec![one],
    };
    list.into_iter().take(MAX_ITEMS).filter_map(destination).collect()
}

fn destination(value: Value) -> Option<Destination> {
    if value.get("targetUri").is_some() {
        let link: LocationLink = serde_json::from_value(value).ok()?;
        let LocationLink { target_uri: uri, target_range: whole, target_selection_range: name } = link;
        return Some(Destination { uri, name, whole });
    }
    let location: Location = serde_json::from_value(value).ok()?;
    Some(Destination { uri: location.uri, name: location.range, whole: location.range })
}

/// The text of a hover: markup, one marked text, or a list of them.
pub(crate) fn hover_text(value: &Value) -> Option<String> {
    fn text(contents: &Value) -> Option<String> {
        match contents {
            Value::String(text) => Some(text.clone()),
            Value::Array(list) => {
                let parts: Vec<_> = list.iter().filter_map(text).collect();
                Some(parts.join("\n\n"))
            }
            Value::Object(object) => {
                let value = object.get("value")?.as_str()?;
                match object.get("language").and_then(Value::as_str) {
                    Some(language) => Some(format!("```{language}\n{value}\n```")),
                    None => Some(value.to_owned()),
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }
    text(value.get("contents")?).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The name of a kind of symbol.
pub(crate) fn kind_name(kind: u32) -> &'static str {
    const NAMES: [&str; 26] = [
        "file",
        "module",
        "namespace",
        "package",
        "class",
        "method",
        "property",
        "field",
        "constructor",
        "enum",
        "interface",
        "function",
        "variable",
        "constant",
        "string",
        "number",
        "boolean",
        "array",
        "object",
        "key",
        "null",
        "enum member",
        "struct",
        "event",
        "operator",
        "type parameter",
    ];
    (kind as usize).checked_sub(1).and_then(|at| NAMES.get(at)).copied().unwrap_or("symbol")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_are_read_in_every_form_and_others_left_out() {
        let range = json!({ "start": { "line": 1, "character": 2 }, "end": { "line": 1, "character": 3 } });
        let location = json!({ "uri": "file:///a", "range": range });
        let link = json!({ "targetUri": "file:///b", "targetRange": range, "targetSelectionRange": range });
        assert_eq!(destinations(Value::Null).len(), 0);
        assert_eq!(destinations(location.clone())[0].uri, "file:///a");
        let both = destinations(json!([location, link, { "uri": 1 }, 7]));
        assert_eq!(
            both.iter().map(|place| place.uri.as_str()).collect::<Vec<_>>(),
            ["file:///a", "file:///b"]
        );
    }

    #[test]
    fn a_hover_is_read_in_every_form() {
        for (contents, expected) in [
            (json!("a "), Some("a")),
            (json!({ "kind": "markdown", "value": "b" }), Some("b")),
            (json!([{ "language": "rust", "value": "fn c()" }, "d"]), Some("```rust\nfn c()\n```\n\nd")),
            (json!([]), None),
            (json!(null), None),
        ] {
            assert_eq!(hover_text(&json!({ "contents": contents })).as_deref(), expected);
        }
    }
}
