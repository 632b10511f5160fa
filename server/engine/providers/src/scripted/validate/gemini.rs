//! The refusals of Gemini's API.
//!
//! Rule: users and the model take turns, and every call has its result in the content right after it. Calls are signed as
//! Gemini 3 wants them.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{DOCUMENT_TYPE, IMAGE_TYPES, is_name};
use crate::scripted::refusal::Refusal;
use crate::scripted::sealed;

/// The most characters of a function's name.
const MAX_NAME: usize = 128;

const REQUEST_FIELDS: &[&str] = &[
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "generationConfig",
    "safetySettings",
    "cachedContent",
    "labels",
];

const GENERATION_FIELDS: &[&str] =
    &["maxOutputTokens", "temperature", "topP", "topK", "thinkingConfig", "stopSequences", "candidateCount"];

const THINKING_FIELDS: &[&str] = &["includeThoughts", "thinkingLevel", "thinkingBudget"];

const PART_FIELDS: &[&str] =
    &["text", "inlineData", "functionCall", "functionResponse", "thought", "thoughtSignature"];

/// The fields of a part that are its data, of which it has exactly one.
const DATA_FIELDS: &[&str] = &["text", "inlineData", "functionCall", "functionResponse"];

/// Checks the body of a request to the server of that number.
///
/// # Errors
/// In the API's manner.
pub(in crate::scripted) fn request(body: &Value, server: u64) -> Result<(), Refusal> {
    known(body, REQUEST_FIELDS, "")?;
    generation(&body["generationConfig"])?;
    if !body["systemInstruction"].is_null() {
        known(&body["systemInstruction"], &["role", "parts"], "system_instruction")?;
        parts(&body["systemInstruction"], "system_instruction")?;
    }
    let tools = list(&body["tools"]);
    let mut names = HashSet::new();
    for function in tools.iter().flat_map(|tool| list(&tool["functionDeclarations"])) {
        let name = function["name"].as_str().unwrap_or_default();
        if !is_name(name, MAX_NAME) || !names.insert(name) {
            return Err(invalid(format!("tools[0].function_declarations: Invalid function name `{name}`.")));
        }
        known(function, &["name", "description", "parametersJsonSchema"], "function_declarations")?;
        if function["parametersJsonSchema"]["type"] != "object" {
            return Err(invalid(format!(
                "`{name}`: parameters_json_schema must be the schema of an object."
            )));
        }
    }
    let contents = list(&body["contents"]);
    if contents.is_empty() {
        return Err(invalid("contents is not specified".to_owned()));
    }
    history(contents)?;
    // The check is that of the compatible endpoint, which has the same rules.
    let messages: Vec<Value> = contents.iter().map(as_message).collect();
    sealed::check_signatures(&messages, server)
}

fn generation(config: &Value) -> Result<(), Refusal> {
    if config.is_null() {
        return Ok(());
    }
    known(config, GENERATION_FIELDS, "generation_config")?;
    if !config["maxOutputTokens"].is_null() && config["maxOutputTokens"].as_u64().is_none_or(|most| most == 0)
    {
        return Err(invalid("max_output_tokens must be positive.".to_owned()));
    }
    let thinking = &config["thinkingConfig"];
    if thinking.is_null() {
        return Ok(());
    }
    known(thinking, THINKING_FIELDS, "thinking_config")?;
    if !thinking["thinkingLevel"].is_null() && !thinking["thinkingBudget"].is_null() {
        return Err(invalid("You can only set one of thinking budget and thinking level.".to_owned()));
    }
    Ok(())
}

fn history(contents: &[Value]) -> Result<(), Refusal> {
    let mut open: Vec<&str> = Vec::new();
    for (index, content) in contents.iter().enumerate() {
        let at = format!("contents[{index}]");
        known(content, &["role", "parts"], &at)?;
        let expected = if index % 2 == 0 { "user" } else { "model" };
        if content["role"] != expected {
            return Err(invalid(format!(
                "{at}: Please ensure that multiturn requests alternate between user and model."
            )));
        }
        parts(content, &at)?;
        let of = |field: &str| -> Vec<&str> {
            let found = list(&content["parts"]).iter().map(|part| &part[field]);
            found.filter(|data| !data.is_null()).map(|data| data["id"].as_str().unwrap_or_default()).collect()
        };
        let mut answered = of("functionResponse");
        let first = list(&content["parts"]).iter().take(answered.len());
        if first.filter(|part| !part["functionResponse"].is_null()).count() != answered.len() {
            return Err(invalid(format!("{at}: function responses come before all other parts.")));
        }
        answered.sort_unstable();
        open.sort_unstable();
        if answered != open {
            return Err(invalid(
                "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.".to_owned(),
            ));
        }
        open = of("functionCall");
        if expected == "user" && !open.is_empty() {
            return Err(invalid(format!("{at}: function calls are the model's.")));
        }
    }
    if open.is_empty() {
        return Ok(());
    }
    Err(invalid(
        "Please ensure that function call turn comes immediately before a function response turn.".to_owned(),
    ))
}

fn parts(content: &Value, at: &str) -> Result<(), Refusal> {
    let parts = list(&content["parts"]);
    if parts.is_empty() {
        return Err(invalid(format!("{at}.parts must not be empty.")));
    }
    for (index, part) in parts.iter().enumerate() {
        let at = format!("{at}.parts[{index}]");
        known(part, PART_FIELDS, &at)?;
        let data: Vec<&&str> = DATA_FIELDS.iter().filter(|field| !part[**field].is_null()).collect();
        let [field] = data[..] else {
            return Err(invalid(format!(
                "{at}.data: required oneof field 'data' must have one initialized field"
            )));
        };
        let value = &part[*field];
        let is_fine = match *field {
            "text" => {
                value.as_str().is_some_and(|text| !text.is_empty() || !part["thoughtSignature"].is_null())
            }
            "inlineData" => {
                known(value, &["mimeType", "data"], &at)?;
                let kind = value["mimeType"].as_str().unwrap_or_default();
                (IMAGE_TYPES.contains(&kind) || kind == DOCUMENT_TYPE)
                    && value["data"].as_str().is_some_and(|data| !data.is_empty())
            }
            "functionCall" => {
                known(value, &["id", "name", "args"], &at)?;
                value["name"].as_str().is_some_and(|name| is_name(name, MAX_NAME))
                    && value["args"].is_object()
            }
            _ => {
                known(value, &["id", "name", "response"], &at)?;
                value["name"].as_str().is_some_and(|name| !name.is_empty()) && value["response"].is_object()
            }
        };
        if !is_fine {
            return Err(invalid(format!("{at}.{field}: invalid value")));
        }
    }
    Ok(())
}

/// A content of the model as the compatible endpoint has it, as far as its calls go.
fn as_message(content: &Value) -> Value {
    let calls = list(&content["parts"]).iter().filter(|part| !part["functionCall"].is_null());
    let calls: Vec<Value> = calls
        .map(|part| {
            let call = &part["functionCall"];
            json!({
                "id": call["id"], "function": {"name": call["name"]},
                "extra_content": {"google": {"thought_signature": part["thoughtSignature"]}},
            })
        })
        .collect();
    json!({"tool_calls": calls})
}

fn known(value: &Value, fields: &[&str], at: &str) -> Result<(), Refusal> {
    let none = Map::new();
    let given = value.as_object().unwrap_or(&none);
    match given.keys().find(|name| !fields.contains(&name.as_str())) {
        Some(name) => Err(invalid(format!(
            "Invalid JSON payload received. Unknown name \"{name}\" at '{at}': Cannot find field."
        ))),
        None => Ok(()),
    }
}

fn invalid(message: String) -> Refusal {
    Refusal::invalid(message)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(contents: Value, more: &Value) -> Option<String> {
        let mut body = json!({"contents": contents});
        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        request(&body, 7).err().map(|refusal| refusal.message)
    }

    fn user(parts: Value) -> Value {
        json!({"role": "user", "parts": parts})
    }

    fn call(id: &str, signature: &str) -> Value {
        let mut part = json!({"functionCall": {"id": id, "name": "Read", "args": {}}});
        if !signature.is_empty() {
            part["thoughtSignature"] = json!(signature);
        }
        part
    }

    fn result(id: &str) -> Value {
        json!({"functionResponse": {"id": id, "name": "Read", "response": {"output": "x"}}})
    }

    #[test]
    fn valid_histories_pass_and_others_are_refused() {
        let hello = || user(json!([{"text": "hello"}]));
        let model = |parts: Value| json!({"role": "model", "parts": parts});
        let skip = "skip_thought_signature_validator";
        let pdf = json!({"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0="}});
        for (contents, expected) in [
            (json!([hello()]), None),
            (json!([user(json!([{"text": "see"}, pdf]))]), None),
            (
                json!([
                    hello(),
                    model(json!([call("a", skip), call("b", "")])),
                    user(json!([result("a"), result("b"), {"text": "and"}]))
                ]),
                None,
            ),
            (json!([]), Some("contents is not specified")),
            (json!([hello(), hello()]), Some("alternate")),
            (json!([user(json!([]))]), Some("must not be empty")),
            (json!([user(json!([{"text": ""}]))]), Some("invalid value")),
            (json!([user(json!([{"text": "a", "inlineData": {}}]))]), Some("oneof")),
            (json!([user(json!([{"words": "a"}]))]), Some("Unknown name")),
            (json!([hello(), model(json!([call("a", skip)]))]), Some("immediately before")),
            (
                json!([hello(), model(json!([call("a", skip)])), hello()]),
                Some("number of function response parts"),
            ),
            (
                json!([hello(), model(json!([call("a", "")])), user(json!([result("a")]))]),
                Some("missing a thought_signature"),
            ),
            (
                json!([hello(), model(json!([call("a", skip)])), user(json!([{"text": "x"}, result("a")]))]),
                Some("before all other parts"),
            ),
        ] {
            let refused = refusal(contents.clone(), &json!({}));
            let fits = match (&refused, expected) {
                (None, None) => true,
                (Some(message), Some(part)) => message.contains(part),
                _ => false,
            };
            assert!(fits, "{contents}: {refused:?}");
        }
    }

    #[test]
    fn settings_the_api_would_refuse_are_refused() {
        let schema = json!({"type": "object"});
        let declared =
            |name: &str| json!([{"functionDeclarations": [{"name": name, "parametersJsonSchema": schema}]}]);
        for (more, expected) in [
            (json!({"model": "m"}), "Unknown name"),
            (json!({"tools": declared("a b")}), "Invalid function name"),
            (json!({"generationConfig": {"maxOutputTokens": 0}}), "positive"),
            (json!({"generationConfig": {"effort": 1}}), "Unknown name"),
            (
                json!({"generationConfig": {"thinkingConfig": {"thinkingLevel": "low", "thinkingBudget": 1}}}),
                "only set one",
            ),
        ] {
            let refused = refusal(json!([user(json!([{"text": "hello"}]))]), &more);
            assert!(
                refused.as_ref().is_some_and(|message| message.contains(expected)),
                "{more}: {refused:?}"
            );
        }
    }
}
