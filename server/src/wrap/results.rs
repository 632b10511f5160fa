//! One result of two servers.
//!
//! Rule: the result of the wrapped server stays as it is where the agent has none. What the agent adds is marked, so that a request
//! to complete one of its entries is not taken to the wrapped server.

use serde_json::{Value, json};

/// The field of `data` that marks an entry of the agent.
const MARK: &str = "kode-ls";

/// A request that both servers answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SharedRequest {
    CodeAction,
    CodeLens,
    Completion,
    Hover,
}

impl SharedRequest {
    /// The request with this method.
    pub(super) fn of(method: &str) -> Option<Self> {
        match method {
            "textDocument/codeAction" => Some(Self::CodeAction),
            "textDocument/codeLens" => Some(Self::CodeLens),
            "textDocument/completion" => Some(Self::Completion),
            "textDocument/hover" => Some(Self::Hover),
            _ => None,
        }
    }

    /// Whether a result has nothing in it.
    pub(super) fn is_empty(self, result: &Value) -> bool {
        let list = match self {
            Self::Completion if result.is_object() => &result["items"],
            _ => result,
        };
        match list {
            Value::Null => true,
            Value::Array(list) => list.is_empty(),
            _ => false,
        }
    }

    /// A result of the agent with its entries marked.
    pub(super) fn mark(self, mut own: Value) -> Value {
        let list = match self {
            Self::CodeAction => &mut own,
            Self::Completion if own.is_object() => &mut own["items"],
            Self::Completion => &mut own,
            // Its lenses have their commands, and hovers are not completed.
            Self::CodeLens | Self::Hover => return own,
        };
        for entry in list.as_array_mut().into_iter().flatten() {
            let is_literal = entry["command"].as_str().is_none();
            if let (Some(entry), true) = (entry.as_object_mut(), is_literal) {
                entry.entry("data").or_insert_with(|| json!({ MARK: true }));
            }
        }
        own
    }

    /// The result of both. That of the agent is marked already.
    pub(super) fn merge(self, theirs: Value, own: Value) -> Value {
        match self {
            Self::CodeAction | Self::CodeLens => joined(theirs, own),
            Self::Completion => completions(theirs, own),
            Self::Hover => hovers(&theirs, own),
        }
    }
}

/// Whether the entry that a request is to complete is one of the agent.
pub(super) fn is_of_agent(entry: &Value) -> bool {
    entry["data"].get(MARK).is_some()
}

fn joined(theirs: Value, own: Value) -> Value {
    match (theirs, own) {
        (Value::Array(mut all), Value::Array(own)) => {
            all.extend(own);
            Value::Array(all)
        }
        (theirs, _) => theirs,
    }
}

/// Items of the agent say all that the defaults of a list would say for them.
fn completions(theirs: Value, mut own: Value) -> Value {
    let is_incomplete = own["isIncomplete"] == true;
    let items = if own.is_object() { own["items"].take() } else { own };
    let mut list = match theirs {
        Value::Object(_) => theirs,
        theirs => json!({ "isIncomplete": false, "items": theirs }),
    };
    let has_characters = list.pointer("/itemDefaults/commitCharacters").is_some();
    let mut added = items;
    for item in added.as_array_mut().into_iter().flatten() {
        if has_characters && item["commitCharacters"].is_null() {
            item["commitCharacters"] = json!([]);
        }
    }
    list["items"] = joined(list["items"].take(), added);
    if is_incomplete {
        list["isIncomplete"] = json!(true);
    }
    list
}

/// Both texts, that of the wrapped server first.
fn hovers(theirs: &Value, mut own: Value) -> Value {
    let is_markdown = own.pointer("/contents/kind") == Some(&json!("markdown"));
    let (first, second) = (text_of(&theirs["contents"]), text_of(&own["contents"]));
    let rule = if is_markdown { "\n\n---\n\n" } else { "\n\n" };
    own["contents"]["value"] = json!(format!("{}{rule}{}", first.trim_end(), second));
    if let Some(range) = theirs.get("range") {
        own["range"] = range.clone();
    }
    own
}

/// The text of a hover in any of its forms.
fn text_of(contents: &Value) -> String {
    match contents {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text_of).collect::<Vec<_>>().join("\n\n"),
        Value::Object(part) => {
            let value = part.get("value").and_then(Value::as_str).unwrap_or_default();
            match part.get("language").and_then(Value::as_str) {
                Some(language) => format!("```{language}\n{value}\n```"),
                None => value.to_owned(),
            }
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_of_both_stand_together_and_those_of_the_agent_are_known_again() {
        let own = json!([{ "title": "Ask", "command": { "command": "kode.ask" } }, { "title": "Bare", "command": "kode.x" }]);
        let own = SharedRequest::CodeAction.mark(own);
        let all = SharedRequest::CodeAction.merge(json!([{ "title": "Fix", "data": 1 }]), own);
        let titles: Vec<_> =
            all.as_array().unwrap().iter().map(|one| one["title"].as_str().unwrap()).collect();
        assert_eq!(titles, ["Fix", "Ask", "Bare"]);
        assert!(!is_of_agent(&all[0]) && is_of_agent(&all[1]));
        assert_eq!(all[2].get("data"), None, "a bare command has no data");
    }

    #[test]
    fn completions_of_both_are_one_list_in_either_form() {
        let own = || {
            SharedRequest::Completion.mark(json!({ "isIncomplete": true, "items": [{ "label": "@file" }] }))
        };
        let merged = SharedRequest::Completion.merge(json!([{ "label": "len" }]), own());
        assert_eq!(merged["isIncomplete"], true);
        assert_eq!(
            (&merged["items"][0]["label"], &merged["items"][1]["label"]),
            (&json!("len"), &json!("@file"))
        );
        let defaults =
            json!({ "isIncomplete": false, "itemDefaults": { "commitCharacters": ["."] }, "items": [{}] });
        let merged = SharedRequest::Completion.merge(defaults, own());
        assert_eq!(merged["items"][1]["commitCharacters"], json!([]));
        assert!(is_of_agent(&merged["items"][1]));
    }

    #[test]
    fn hovers_of_both_are_one_text() {
        let own = json!({ "contents": { "kind": "markdown", "value": "changed" } });
        for (theirs, expected) in [
            (json!({ "contents": "a" }), "a\n\n---\n\nchanged"),
            (json!({ "contents": { "kind": "markdown", "value": "b\n" } }), "b\n\n---\n\nchanged"),
            (
                json!({ "contents": [{ "language": "c", "value": "d" }, "e"] }),
                "```c\nd\n```\n\ne\n\n---\n\nchanged",
            ),
        ] {
            assert_eq!(SharedRequest::Hover.merge(theirs, own.clone())["contents"]["value"], expected);
        }
    }

    #[test]
    fn results_without_content_are_empty() {
        for (request, result) in [
            (SharedRequest::Completion, json!({ "isIncomplete": true, "items": [] })),
            (SharedRequest::Completion, json!([])),
            (SharedRequest::CodeAction, json!([])),
            (SharedRequest::Hover, json!(null)),
        ] {
            assert!(request.is_empty(&result), "{result}");
        }
        assert!(!SharedRequest::Hover.is_empty(&json!({ "contents": "" })));
    }
}
